/* Limits and waits that a server tells; see hints.h. */
#include "hints.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHORT = 64, LONGEST_MS = 1000000000 };

struct llm_span llm_header(const struct llm_wire *wire, const char *name)
{
    return wire->header ? llm_trim(wire->header(wire, name)) : (struct llm_span){NULL, 0};
}

/* A short span as a C string; false when it is empty or too long. */
static bool copy_short(char out[SHORT], struct llm_span text)
{
    text = llm_trim(text);
    if (text.len == 0 || text.len >= SHORT || memchr(text.ptr, 0, text.len))
        return false;
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
    return true;
}

/* A decimal number that begins with a digit and fills the text. */
static bool read_number(struct llm_span text, double *value)
{
    char copy[SHORT], *end;
    if (!copy_short(copy, text) || !isdigit((unsigned char)copy[0]))
        return false;
    if (strspn(copy, "0123456789.") != strlen(copy))
        return false;
    *value = strtod(copy, &end);
    return *end == 0;
}

/* ---- When to come back ---- */

static uint32_t bounded_ms(double ms)
{
    return ms < 1 ? 1 : ms > LONGEST_MS ? (uint32_t)LONGEST_MS : (uint32_t)ms;
}

static bool read_wait(struct llm_span text, double scale, uint32_t *ms)
{
    double value;
    if (!read_number(text, &value))
        return false;
    *ms = bounded_ms(value * scale);
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", RFC 9110, 5.6.7 */
static bool read_date(struct llm_span text, uint32_t *ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char copy[SHORT], month[4];
    struct tm t = {0};
    if (!copy_short(copy, text) || sscanf(copy, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &t.tm_mday,
                                          month, &t.tm_year, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return false;
    const char *found = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!found || (found - months) % 3)
        return false;
    t.tm_mon = (int)(found - months) / 3;
    t.tm_year -= 1900;
    *ms = bounded_ms(difftime(timegm(&t), time(NULL)) * 1000 + 1);
    return true;
}

/* error.details[] with "retryDelay": "37s" */
static bool read_retry_info(const cJSON *json, uint32_t *ms)
{
    const cJSON *object = cJSON_IsArray(json) ? json->child : json;
    const cJSON *details = llm_json_get(llm_json_get(object, "error"), "details");
    for (const cJSON *d = cJSON_IsArray(details) ? details->child : NULL; d; d = d->next) {
        const char *delay = llm_json_text(d, "retryDelay");
        const size_t n = delay ? strlen(delay) : 0;
        if (n > 1 && delay[n - 1] == 's')
            return read_wait((struct llm_span){delay, n - 1}, 1000, ms);
    }
    return false;
}

uint32_t llm_retry_after_ms(const struct llm_wire *wire, const cJSON *json)
{
    uint32_t ms = 0;
    const struct llm_span after = llm_header(wire, "retry-after");
    if (!read_wait(llm_header(wire, "retry-after-ms"), 1, &ms) && !read_wait(after, 1000, &ms) &&
        !read_date(after, &ms))
        read_retry_info(json, &ms);
    return ms;
}

/* ---- Limits ---- */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* "1h2m3.5s", "20ms" */
static bool read_duration(const char *text, double *seconds)
{
    double sum = 0;
    while (*text) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return false;
        const double value = strtod(text, &end);
        const bool milli = strncmp(end, "ms", 2) == 0;
        const double unit = milli         ? 1e-3
                            : *end == 's' ? 1
                            : *end == 'm' ? 60
                            : *end == 'h' ? 3600
                            : *end == 'd' ? 86400
                                          : 0;
        if (unit == 0)
            return false;
        sum += value * unit;
        text = end + (milli ? 2 : 1);
    }
    *seconds = sum;
    return true;
}

/* "2026-01-27T12:00:30Z", RFC 3339, 5.6 */
static bool read_instant(const char *text, double *seconds)
{
    struct tm t = {0};
    int used = 0, hours = 0, minutes = 0;
    char sign[2] = "+";
    if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
               &t.tm_hour, &t.tm_min, &t.tm_sec, &used) != 6 ||
        used == 0)
        return false;
    const char *zone = text + used + strspn(text + used, ".0123456789");
    if (*zone != 'Z' && *zone != 'z' && sscanf(zone, "%1[+-]%2d:%2d", sign, &hours, &minutes) != 3)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    const double offset = (hours * 60 + minutes) * 60 * (sign[0] == '-' ? -1 : 1);
    *seconds = (double)timegm(&t) - offset - now_s();
    return true;
}

static int64_t reset_ms(struct llm_span text)
{
    enum { EPOCH = 1000000000 }; /* seconds; smaller numbers are waits */
    char copy[SHORT];
    double s;
    if (!copy_short(copy, text))
        return -1;
    if (read_number(text, &s))
        s = s >= EPOCH * 1000.0 ? s / 1000 - now_s() : s >= EPOCH ? s - now_s() : s;
    else if (!read_duration(copy, &s) && !read_instant(copy, &s))
        return -1;
    return s <= 0 ? 0 : s * 1000 > LONGEST_MS ? LONGEST_MS : (int64_t)(s * 1000);
}

struct limit {
    int64_t all, left, reset_ms;
};

/* word: "limit", "remaining" or "reset". */
static struct llm_span named(const struct llm_wire *wire, const char *prefix, const char *word,
                             const char *suffix)
{
    char name[SHORT];
    snprintf(name, sizeof name, "%s%s%s", prefix, word, suffix);
    return llm_header(wire, name);
}

static int64_t count_of(struct llm_span text)
{
    double value;
    return read_number(text, &value) && value <= 1e15 ? (int64_t)value : -1;
}

static struct limit read_limit(const struct llm_wire *wire, const char *prefix, const char *suffix)
{
    return (struct limit){count_of(named(wire, prefix, "limit", suffix)),
                          count_of(named(wire, prefix, "remaining", suffix)),
                          reset_ms(named(wire, prefix, "reset", suffix))};
}

static bool is_told(const struct limit *l)
{
    return l->all >= 0 || l->left >= 0 || l->reset_ms >= 0;
}

/* Share that is left; 1 where it isn't told. */
static double share(const struct limit *l)
{
    return l->left < 0 ? 1 : l->all > 0 ? (double)l->left / (double)l->all : l->left ? 1 : 0;
}

struct rung_rate_limit llm_limits(const struct llm_wire *wire)
{
    static const char *const requests[][2] = {{"x-ratelimit-", "-requests"},
                                              {"anthropic-ratelimit-requests-", ""},
                                              {"x-ratelimit-", ""},
                                              {"ratelimit-", ""}};
    static const char *const tokens[][2] = {{"x-ratelimit-", "-tokens"},
                                            {"anthropic-ratelimit-tokens-", ""},
                                            {"anthropic-ratelimit-input-tokens-", ""},
                                            {"anthropic-ratelimit-output-tokens-", ""}};
    struct limit r = {-1, -1, -1}, t = {-1, -1, -1};
    for (size_t i = 0; i < sizeof requests / sizeof *requests && !is_told(&r); ++i)
        r = read_limit(wire, requests[i][0], requests[i][1]);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; ++i) {
        const struct limit next = read_limit(wire, tokens[i][0], tokens[i][1]);
        if (is_told(&next) && (!is_told(&t) || share(&next) < share(&t)))
            t = next;
    }
    return (struct rung_rate_limit){.struct_size = sizeof(struct rung_rate_limit),
                                    .requests = r.all,
                                    .requests_left = r.left,
                                    .requests_reset_ms = r.reset_ms,
                                    .tokens = t.all,
                                    .tokens_left = t.left,
                                    .tokens_reset_ms = t.reset_ms};
}
