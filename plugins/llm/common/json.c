/* JSON and UTF-8 of a provider; see json.h. */
#include "json.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_VALUES = 200000, MAX_SEGMENT = 64 };

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* ---- Text ---- */

static bool follows(const unsigned char *p, size_t n, unsigned char low, unsigned char high)
{
    if (p[1] < low || p[1] > high)
        return false;
    for (size_t i = 2; i < n; ++i)
        if ((p[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* Bytes of the well-formed sequence at p (Unicode 15, table 3-7), or 0. */
static size_t sequence(const unsigned char *p, size_t n)
{
    const unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return n >= 2 && follows(p, 2, 0x80, 0xbf) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef)
        return n >= 3 && follows(p, 3, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf) ? 3 : 0;
    if (c >= 0xf0 && c <= 0xf4)
        return n >= 4 && follows(p, 4, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf) ? 4 : 0;
    return 0;
}

void llm_text_add_utf8(struct llm_text *text, const char *bytes, size_t n)
{
    size_t from = 0, at = 0;
    if (n == 0)
        return; /* bytes may be NULL */
    while (at < n) {
        const size_t len =
            bytes[at] ? sequence((const unsigned char *)bytes + at, n - at) : (size_t)0;
        if (len) {
            at += len;
            continue;
        }
        llm_text_add(text, bytes + from, at - from);
        llm_text_puts(text, replacement);
        from = ++at;
    }
    llm_text_add(text, bytes + from, at - from);
}

/* ASCII's blanks and control characters, and those of U+0080 to U+009F, which terminals obey. */
static bool is_blank(const unsigned char *p, size_t len)
{
    return p[0] <= ' ' || p[0] == 127 || (len == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

void llm_excerpt(char *out, size_t cap, struct llm_span bytes)
{
    size_t used = 0, at = 0;
    while (at < bytes.len) {
        const unsigned char *p = (const unsigned char *)bytes.ptr + at;
        const size_t len = sequence(p, bytes.len - at);
        if (used + 8 > cap)
            break;
        if (is_blank(p, len)) {
            if (used && out[used - 1] != ' ')
                out[used++] = ' ';
        } else if (len) {
            memcpy(out + used, p, len);
            used += len;
        } else {
            out[used++] = '?';
        }
        at += len ? len : 1;
    }
    if (at < bytes.len) {
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used] = 0;
}

/* ---- Reading ---- */

/* The number of "\uXXXX" at p, or -1. */
static long escape_at(const char *p, size_t n)
{
    long code = 0;
    if (n < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; ++i) {
        const unsigned char c = (unsigned char)p[i];
        if (!isxdigit(c))
            return -1;
        code = code * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return code;
}

/* Bytes of the escape at p; one that no text can hold is made U+FFFD in place. */
static size_t mend_escape(char *p, size_t n)
{
    const long code = escape_at(p, n);
    if (code < 0)
        return n < 2 ? n : 2;
    if (code >= 0xd800 && code <= 0xdbff) {
        const long next = escape_at(p + 6, n - 6);
        if (next >= 0xdc00 && next <= 0xdfff)
            return 12;
    }
    if (code == 0 || (code >= 0xd800 && code <= 0xdfff))
        memcpy(p + 2, "fffd", 4);
    return 6;
}

/* What cJSON can't bound or read by itself. NULL when all is well. */
static const char *prepare(char *text, size_t n)
{
    size_t values = 0, depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < n;) {
        const char c = text[i];
        if (c == 0)
            return "a NUL byte";
        if (quoted && c == '\\') {
            i += mend_escape(text + i, n - i);
            continue;
        }
        if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[')) {
            if (++depth > MAX_DEPTH)
                return "nested too deep";
        } else if (!quoted && (c == '}' || c == ']') && depth)
            --depth;
        else if (!quoted && c == ',' && ++values > MAX_VALUES)
            return "too many values";
        ++i;
    }
    return NULL;
}

cJSON *llm_json_parse(struct llm_span bytes, const char **why)
{
    const char *end = NULL;
    char *text = malloc(bytes.len + 1);
    *why = "no memory";
    if (!text)
        return NULL;
    if (bytes.len)
        memcpy(text, bytes.ptr, bytes.len);
    text[bytes.len] = 0;
    *why = prepare(text, bytes.len);
    cJSON *json = *why ? NULL : cJSON_ParseWithLengthOpts(text, bytes.len, &end, 0);
    if (json && llm_trim((struct llm_span){end, bytes.len - (size_t)(end - text)}).len) {
        cJSON_Delete(json);
        json = NULL;
    }
    if (!json && !*why)
        *why = "no JSON";
    free(text);
    return json;
}

const cJSON *llm_json_get(const cJSON *object, const char *name)
{
    if (!cJSON_IsObject(object))
        return NULL;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

const char *llm_json_text(const cJSON *object, const char *name)
{
    const cJSON *item = llm_json_get(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

int64_t llm_json_count(const cJSON *object, const char *name)
{
    const cJSON *item = llm_json_get(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1e15))
        return -1;
    return (int64_t)item->valuedouble;
}

/* ---- Writing ---- */

struct llm_body llm_body_new(void)
{
    struct llm_body body = {.root = cJSON_CreateObject()};
    body.failed = !body.root;
    return body;
}

void llm_body_free(struct llm_body *body)
{
    cJSON_Delete(body->root);
    *body = (struct llm_body){0};
}

void llm_body_bytes(struct llm_body *body, cJSON *object, const char *name, struct llm_span bytes)
{
    struct llm_text clean = {0};
    llm_text_add_utf8(&clean, bytes.ptr, bytes.len);
    if (clean.failed || !cJSON_AddStringToObject(object, name, clean.ptr ? clean.ptr : ""))
        body->failed = true;
    llm_text_free(&clean);
}

void llm_body_text(struct llm_body *body, cJSON *object, const char *name, const char *text)
{
    llm_body_bytes(body, object, name, (struct llm_span){text, strlen(text)});
}

void llm_body_bool(struct llm_body *body, cJSON *object, const char *name, bool value)
{
    if (!cJSON_AddBoolToObject(object, name, value))
        body->failed = true;
}

void llm_body_value(struct llm_body *body, cJSON *object, const char *name, cJSON *value)
{
    if (value && object && cJSON_AddItemToObject(object, name, value))
        return;
    cJSON_Delete(value);
    body->failed = true;
}

void llm_body_number(struct llm_body *body, cJSON *object, const char *name, double number)
{
    if (!cJSON_AddNumberToObject(object, name, number))
        body->failed = true;
}

cJSON *llm_body_object(struct llm_body *body, cJSON *object, const char *name)
{
    cJSON *item = cJSON_AddObjectToObject(object, name);
    body->failed |= !item;
    return item;
}

cJSON *llm_body_list(struct llm_body *body, cJSON *object, const char *name)
{
    cJSON *item = cJSON_AddArrayToObject(object, name);
    body->failed |= !item;
    return item;
}

void llm_body_words(struct llm_body *body, cJSON *object, const char *name, const char *word)
{
    cJSON *list = llm_body_list(body, object, name), *item = cJSON_CreateString(word);
    if (list && item && cJSON_AddItemToArray(list, item))
        return;
    cJSON_Delete(item);
    body->failed = true;
}

cJSON *llm_body_item(struct llm_body *body, cJSON *list)
{
    cJSON *item = cJSON_CreateObject();
    if (item && cJSON_AddItemToArray(list, item))
        return item;
    cJSON_Delete(item);
    body->failed = true;
    return NULL;
}

/* Takes the first segment off a dotted path. */
static bool next_segment(struct llm_span *path, char segment[MAX_SEGMENT])
{
    const char *dot = memchr(path->ptr, '.', path->len);
    const size_t n = dot ? (size_t)(dot - path->ptr) : path->len;
    if (n == 0 || n >= MAX_SEGMENT || (dot && n + 1 == path->len))
        return false;
    memcpy(segment, path->ptr, n);
    segment[n] = 0;
    path->ptr += dot ? n + 1 : n;
    path->len -= dot ? n + 1 : n;
    return true;
}

bool llm_body_set(struct llm_body *body, struct llm_span path, struct llm_span value)
{
    char name[MAX_SEGMENT];
    const char *why;
    cJSON *object = body->root, *json = llm_json_parse(value, &why);
    bool fine = json && next_segment(&path, name);
    while (fine && path.len) {
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        if (!cJSON_IsObject(inner)) {
            cJSON_DeleteItemFromObjectCaseSensitive(object, name);
            inner = llm_body_object(body, object, name);
        }
        object = inner;
        fine = next_segment(&path, name);
    }
    if (!fine) {
        cJSON_Delete(json);
        return false;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (!cJSON_AddItemToObject(object, name, json)) {
        cJSON_Delete(json);
        body->failed = true;
    }
    return true;
}
