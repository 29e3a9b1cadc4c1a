/* Errors of providers; see fault.h. */
#define _DEFAULT_SOURCE /* timegm */
#include "fault.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGE = 512, NAME = 96, HAYSTACK = MESSAGE + 3 * NAME };

struct fault {
    uint32_t status;
    char message[MESSAGE];
    char type[NAME];
    char code[NAME];
    char hay[HAYSTACK]; /* all of these in lower case, to search in */
};

/* ---- The forms of a body ---- */

static struct llm_span span_of(const char *text)
{
    return (struct llm_span){text, strlen(text)};
}

/* Google answers some errors as a list of one. */
static const cJSON *object_of(const cJSON *json)
{
    return cJSON_IsArray(json) ? json->child : json;
}

bool llm_is_fault(const cJSON *json)
{
    const cJSON *object = object_of(json);
    const char *type = llm_json_text(object, "type");
    return llm_json_get(object, "error") || (type && strcmp(type, "error") == 0);
}

/* A member that is a text or a number, as text. */
static void copy_scalar(char out[NAME], const cJSON *object, const char *name)
{
    const cJSON *item = llm_json_get(object, name);
    if (cJSON_IsString(item))
        llm_excerpt(out, NAME, span_of(item->valuestring));
    else if (cJSON_IsNumber(item))
        snprintf(out, NAME, "%.0f", item->valuedouble);
}

static bool copy_message(char out[MESSAGE], const cJSON *item)
{
    if (cJSON_IsString(item)) {
        llm_excerpt(out, MESSAGE, span_of(item->valuestring));
        return true;
    }
    if (!cJSON_IsArray(item) && !cJSON_IsObject(item))
        return false;
    char *text = cJSON_PrintUnformatted(item);
    if (text)
        llm_excerpt(out, MESSAGE, span_of(text));
    free(text);
    return text != NULL;
}

/* {"error":{...}}, {"error":"..."}, {"detail":...}, {"message":...}; else the bytes themselves. */
static void read_body(struct fault *f, const struct llm_wire *wire, const cJSON *json)
{
    const cJSON *top = object_of(json), *error = llm_json_get(top, "error");
    const cJSON *from = cJSON_IsObject(error) ? error : top;
    copy_scalar(f->type, from, "type");
    copy_scalar(f->code, from, "code");
    if (!f->type[0])
        copy_scalar(f->type, from, "status");
    bool found = copy_message(f->message, llm_json_get(from, "message")) ||
                 copy_message(f->message, cJSON_IsObject(error) ? NULL : error) ||
                 copy_message(f->message, llm_json_get(top, "detail"));
    if (!found)
        llm_excerpt(f->message, MESSAGE, wire->body);
    /* The reasons that a provider gives as details, such as API_KEY_INVALID, count as its code. */
    char reason[NAME] = "";
    const cJSON *details = llm_json_get(from, "details");
    if (cJSON_IsArray(details))
        copy_scalar(reason, details->child, "reason");
    snprintf(f->hay, sizeof f->hay, "%s %s %s %s", f->type, f->code, reason, f->message);
    for (char *c = f->hay; *c; ++c)
        *c = (char)tolower((unsigned char)*c);
}

static bool says(const struct fault *f, const char *const *phrases)
{
    for (; *phrases; ++phrases)
        if (strstr(f->hay, *phrases))
            return true;
    return false;
}

/* The status that an error inside a reply of status 200 stands for. */
static uint32_t status_of_type(const struct fault *f)
{
    static const struct {
        const char *word;
        uint32_t status;
    } words[] = {
        {"overloaded", 529},        {"rate_limit", 429},        {"resource_exhausted", 429},
        {"authentication", 401},    {"invalid_api_key", 401},   {"permission", 403},
        {"not_found", 404},         {"invalid_request", 400},   {"invalid_argument", 400},
        {"request_too_large", 413}, {"insufficient_quota", 429}};
    const long code = strtol(f->code, NULL, 10);
    if (code >= 400 && code <= 599)
        return (uint32_t)code;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strstr(f->hay, words[i].word))
            return words[i].status;
    return 500;
}

/* ---- When to come back ---- */

/* A decimal number of whole text times scale, as milliseconds; false when it is none. */
static bool read_wait(struct llm_span text, double scale, uint32_t *ms)
{
    char copy[32], *end;
    text = llm_trim(text);
    if (text.len == 0 || text.len >= sizeof copy || !isdigit((unsigned char)text.ptr[0]))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    const double value = strtod(copy, &end) * scale;
    if (*end || !(value >= 0))
        return false;
    *ms = value < 1 ? 1 : value > 1e9 ? 1000000000u : (uint32_t)value;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", RFC 9110, 5.6.7 */
static bool read_date(struct llm_span text, uint32_t *ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char copy[40], month[4];
    struct tm t = {0};
    text = llm_trim(text);
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    if (sscanf(copy, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &t.tm_mday, month, &t.tm_year, &t.tm_hour,
               &t.tm_min, &t.tm_sec) != 6)
        return false;
    const char *found = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!found || (found - months) % 3)
        return false;
    t.tm_mon = (int)(found - months) / 3;
    t.tm_year -= 1900;
    const time_t then = timegm(&t), now = time(NULL);
    const double wait = difftime(then, now);
    *ms = wait < 0 ? 1 : wait > 1e6 ? 1000000000u : (uint32_t)(wait * 1000) + 1;
    return true;
}

/* error.details[] with "retryDelay": "37s" */
static bool read_retry_info(const cJSON *json, uint32_t *ms)
{
    const cJSON *details = llm_json_get(llm_json_get(object_of(json), "error"), "details");
    if (!cJSON_IsArray(details))
        return false;
    for (const cJSON *d = details->child; d; d = d->next) {
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
    if (!read_wait(wire->retry_after_ms, 1, &ms) && !read_wait(wire->retry_after, 1000, &ms) &&
        !read_date(wire->retry_after, &ms))
        read_retry_info(json, &ms);
    return ms;
}

/* ---- What it means ---- */

static const char *const context_phrases[] = {"context_length_exceeded",
                                              "maximum context length",
                                              "context window",
                                              "context length",
                                              "context size",
                                              "context limit",
                                              "context_size",
                                              "prompt is too long",
                                              "input is too long",
                                              "input token count",
                                              "prompt too long",
                                              "string_above_max",
                                              NULL};
static const char *const filter_phrases[] = {"content_filter",
                                             "content filter",
                                             "content_policy",
                                             "content management policy",
                                             "moderation",
                                             "invalid_prompt",
                                             NULL};
static const char *const quota_phrases[] = {"insufficient_quota",
                                            "credit balance is too low",
                                            "billing_error",
                                            "billing_not_active",
                                            "insufficient balance",
                                            "insufficient credits",
                                            NULL};
static const char *const key_phrases[] = {"api_key_invalid", "api key not valid", "invalid_api_key",
                                          NULL};

static bool is_context(const struct fault *f)
{
    return f->status == 413 || ((f->status == 400 || f->status == 422) && says(f, context_phrases));
}

static bool is_filter(const struct fault *f)
{
    return (f->status == 400 || f->status == 403 || f->status == 422) && says(f, filter_phrases);
}

static bool is_passing(uint32_t status)
{
    return status == 408 || status == 409 || status == 425 || status >= 500;
}

enum { SHORT = 160 };

static const char *shortened(char out[SHORT], struct llm_span text)
{
    llm_excerpt(out, SHORT, text);
    return out;
}

static int32_t report(struct rung_error *error, const struct llm_asker *asker,
                      const struct fault *f, int32_t status, const char *symbol, const char *remedy)
{
    char url[SHORT];
    /* A query may hold what others shouldn't read. */
    const struct llm_span plain = {asker->url, strcspn(asker->url, "?#")};
    return llm_fail(error, status, symbol, "%s: %s: HTTP %u: %s%s%s", asker->plugin,
                    shortened(url, plain), f->status, f->message[0] ? f->message : "no message",
                    remedy[0] ? "; " : "", remedy);
}

static int32_t report_key(struct rung_error *error, const struct llm_asker *asker,
                          const struct fault *f)
{
    char remedy[256], where[SHORT];
    const char *colon = strchr(asker->key, ':');
    shortened(where, span_of(colon ? colon + 1 : ""));
    if (strncmp(asker->key, "env:", 4) == 0)
        snprintf(remedy, sizeof remedy, "the key comes from the environment variable %s", where);
    else if (colon)
        snprintf(remedy, sizeof remedy, "the key comes from the file %s", where);
    else
        snprintf(remedy, sizeof remedy,
                 "no key is set: key = \"env:VARIABLE\" or \"file:PATH\" says where it is");
    return report(error, asker, f, RUNG_ECONFIG, "llm.key", remedy);
}

static int32_t report_rest(struct rung_error *error, const struct llm_asker *asker,
                           const struct fault *f, const struct llm_wire *wire)
{
    char text[256], part[SHORT];
    if (f->status == 404) {
        snprintf(text, sizeof text, "model '%s' is not known there, or the url is wrong",
                 shortened(part, span_of(asker->model)));
        return report(error, asker, f, RUNG_ECONFIG, "llm.model", text);
    }
    if (f->status >= 300 && f->status < 400) {
        snprintf(text, sizeof text, "redirects are not followed; it points to '%s'",
                 shortened(part, wire->location));
        return report(error, asker, f, RUNG_ECONFIG, "llm.redirect", text);
    }
    return report(error, asker, f, RUNG_ECONFIG, "llm.request", "");
}

int32_t llm_fault_read(const struct llm_wire *wire, const cJSON *json,
                       const struct llm_asker *asker, uint32_t *finish, struct rung_error *error)
{
    struct fault f = {.status = wire->status};
    read_body(&f, wire, json);
    if (f.status >= 200 && f.status < 300)
        f.status = status_of_type(&f);
    if (is_context(&f) || is_filter(&f)) {
        *finish = is_filter(&f) && !is_context(&f) ? RUNG_FINISH_REFUSED : RUNG_FINISH_CONTEXT;
        return RUNG_OK;
    }
    error->retry_after_ms = 0;
    if (f.status == 402 ||
        ((f.status == 429 || f.status == 400 || f.status == 403) && says(&f, quota_phrases)))
        return report(error, asker, &f, RUNG_ECONFIG, "llm.quota",
                      "the account's quota or credit is used up");
    if (f.status == 401 || f.status == 403 || (f.status == 400 && says(&f, key_phrases)))
        return report_key(error, asker, &f);
    const bool again = llm_span_is(llm_trim(wire->should_retry), "true");
    const bool never = llm_span_is(llm_trim(wire->should_retry), "false");
    if (f.status == 429 || is_passing(f.status) || again) {
        if (never)
            return report(error, asker, &f, RUNG_EUNSUPPORTED, "llm.no_retry",
                          "the server asks not to try again");
        error->retry_after_ms = llm_retry_after_ms(wire, json);
        return f.status == 429 ? report(error, asker, &f, RUNG_ERATELIMIT, "llm.rate_limit", "")
                               : report(error, asker, &f, RUNG_EUNAVAILABLE, "llm.server", "");
    }
    return report_rest(error, asker, &f, wire);
}
