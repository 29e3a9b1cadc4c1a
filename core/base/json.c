#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* cJSON recurses by depth; so hostile nesting is refused before it parses. */
static bool shallow(const char *text, size_t n)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        if (c == '"')
            quoted = true;
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth)
            depth--;
        if (depth > MAX_DEPTH)
            return false;
    }
    return true;
}

cJSON *rung_json_parse(const char *text, size_t n)
{
    if (!shallow(text, n))
        return NULL;
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!json)
        return NULL;
    for (; end < text + n; end++)
        if (!memchr(" \t\r\n", *end, 4)) {
            cJSON_Delete(json);
            return NULL;
        }
    return json;
}

const cJSON *rung_json_get(const cJSON *object, const char *name)
{
    return object ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

const char *rung_json_text(const cJSON *object, const char *name, const char *fallback)
{
    const cJSON *item = rung_json_get(object, name);
    return cJSON_IsString(item) ? item->valuestring : fallback;
}

double rung_json_number(const cJSON *object, const char *name, double fallback)
{
    const cJSON *item = rung_json_get(object, name);
    double v;
    if (cJSON_IsNumber(item))
        return item->valuedouble;
    if (cJSON_IsRaw(item)) /* added by the calls below, and not printed yet */
        return rung_parse_f64(item->valuestring, &v) ? v : fallback;
    if (!cJSON_IsString(item))
        return fallback;
    if (strcmp(item->valuestring, "inf") == 0)
        return INFINITY;
    if (strcmp(item->valuestring, "-inf") == 0)
        return -INFINITY;
    return strcmp(item->valuestring, "nan") == 0 ? NAN : fallback;
}

int64_t rung_json_i64(const cJSON *object, const char *name, int64_t fallback)
{
    const cJSON *item = rung_json_get(object, name);
    int64_t v;
    if ((cJSON_IsString(item) || cJSON_IsRaw(item)) && rung_parse_i64(item->valuestring, &v))
        return v;
    if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) <= 9007199254740992.0) ||
        item->valuedouble != floor(item->valuedouble))
        return fallback;
    return (int64_t)item->valuedouble;
}

bool rung_json_bool(const cJSON *object, const char *name, bool fallback)
{
    const cJSON *item = rung_json_get(object, name);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : fallback;
}

void rung_json_add_f64(cJSON *object, const char *name, double value)
{
    char text[40];
    if (!isfinite(value)) {
        cJSON_AddStringToObject(object, name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    snprintf(text, sizeof text, "%.17g", value);
    if (!strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", 3);
    cJSON_AddRawToObject(object, name, text);
}

void rung_json_add_i64(cJSON *object, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (value > 9007199254740992 || value < -9007199254740992)
        cJSON_AddStringToObject(object, name, text);
    else
        cJSON_AddRawToObject(object, name, text);
}

void rung_json_add_text(cJSON *object, const char *name, struct rung_text text)
{
    /* A NUL would cut the text silently and broken UTF-8 would break the reader: both are replaced.
     */
    struct rung_buf clean = {0};
    for (size_t i = 0; i < text.len;) {
        size_t n = 1;
        while (n < 4 && i + n < text.len && !rung_utf8_valid(text.ptr + i, n) &&
               ((unsigned char)text.ptr[i + n] & 0xc0) == 0x80)
            n++;
        if (rung_utf8_valid(text.ptr + i, n))
            rung_buf_add(&clean, text.ptr + i, n);
        else
            rung_buf_puts(&clean, "\xef\xbf\xbd");
        i += n;
    }
    cJSON_AddStringToObject(object, name, rung_buf_text(&clean));
    rung_buf_free(&clean);
}

char *rung_json_line(const cJSON *json)
{
    return cJSON_PrintUnformatted(json);
}
