/* Growing text, errors and replies of the model backends; see text.h. */
#include "text.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(struct llm_text *text, size_t n)
{
    if (text->failed || n > LLM_TEXT_MAX - text->len) {
        text->failed = true;
        return false;
    }
    if (text->len + n + 1 <= text->cap)
        return true;
    size_t cap = text->cap ? text->cap : 256;
    while (cap < text->len + n + 1)
        cap *= 2;
    char *ptr = realloc(text->ptr, cap);
    if (!ptr) {
        text->failed = true;
        return false;
    }
    text->ptr = ptr;
    text->cap = cap;
    return true;
}

void llm_text_add(struct llm_text *text, const void *bytes, size_t n)
{
    if (n == 0 || !grow(text, n))
        return;
    memcpy(text->ptr + text->len, bytes, n);
    text->len += n;
    text->ptr[text->len] = 0;
}

void llm_text_puts(struct llm_text *text, const char *string)
{
    llm_text_add(text, string, strlen(string));
}

void llm_text_printf(struct llm_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n <= 0 || !grow(text, (size_t)n))
        return;
    va_start(args, format);
    vsnprintf(text->ptr + text->len, (size_t)n + 1, format, args);
    va_end(args);
    text->len += (size_t)n;
}

void llm_text_free(struct llm_text *text)
{
    free(text->ptr);
    *text = (struct llm_text){0};
}

bool llm_next_line(struct llm_span *rest, struct llm_span *line)
{
    if (rest->len == 0)
        return false;
    const char *end = memchr(rest->ptr, '\n', rest->len);
    const size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
    *line = (struct llm_span){rest->ptr, n};
    const size_t used = end ? n + 1 : n;
    rest->ptr += used;
    rest->len -= used;
    return true;
}

struct llm_span llm_trim(struct llm_span span)
{
    while (span.len && isspace((unsigned char)span.ptr[0])) {
        span.ptr++;
        span.len--;
    }
    while (span.len && isspace((unsigned char)span.ptr[span.len - 1]))
        span.len--;
    return span;
}

bool llm_span_is(struct llm_span span, const char *string)
{
    return span.len == strlen(string) && memcmp(span.ptr, string, span.len) == 0;
}

bool llm_span_starts(struct llm_span span, const char *prefix)
{
    const size_t n = strlen(prefix);
    return span.len >= n && memcmp(span.ptr, prefix, n) == 0;
}

int32_t llm_vfail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                  va_list args)
{
    error->code = code;
    snprintf(error->symbol, sizeof error->symbol, "%s", symbol);
    vsnprintf(error->message, sizeof error->message, format, args);
    return code;
}

int32_t llm_fail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                 ...)
{
    va_list args;
    va_start(args, format);
    llm_vfail(error, code, symbol, format, args);
    va_end(args);
    return code;
}

void llm_log(const struct rung_host *host, uint32_t level, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    host->log(host, level, line);
}

uint64_t llm_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; ++i)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static char *copy(const struct rung_host *host, struct rung_call *call, const char *bytes, size_t n)
{
    char *text = host->alloc(host, call->arena, n + 1, 1);
    if (text && n)
        memcpy(text, bytes, n);
    return text;
}

static uint64_t characters(struct llm_span text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; ++i)
        n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

int64_t llm_estimate(struct llm_span text)
{
    return (int64_t)((characters(text) + 3) / 4);
}

int64_t llm_estimate_prompt(const struct rung_llm_request *request)
{
    uint64_t n = 0;
    for (uint32_t m = 0; m < request->n_messages; ++m)
        for (uint32_t p = 0; p < request->messages[m].n_parts; ++p)
            n += characters((struct llm_span){request->messages[m].parts[p].text.ptr,
                                              request->messages[m].parts[p].text.len});
    return (int64_t)((n + 3) / 4);
}

int32_t llm_answer(const struct rung_host *host, struct rung_call *call,
                   const struct rung_llm_request *request, const char *reply, size_t n,
                   uint32_t finish, const char *model, struct rung_llm_response *out)
{
    char *text = copy(host, call, reply, n);
    char *name = copy(host, call, model, strlen(model));
    struct rung_part *part = host->alloc(host, call->arena, sizeof *part, 16);
    if (!text || !name || !part)
        return llm_fail(call->error, RUNG_ENOMEM, "llm.memory",
                        "no memory for a reply of %zu bytes", n);
    *part =
        (struct rung_part){.struct_size = sizeof *part, .kind = RUNG_PART_TEXT, .text = {text, n}};
    if (request->on_delta && n && request->on_delta(request->on_delta_ctx, part->text))
        return llm_fail(call->error, RUNG_ECANCELLED, "llm.stopped",
                        "the reader of the reply stopped it");
    *out = (struct rung_llm_response){
        .struct_size = sizeof *out,
        .finish = finish,
        .parts = part,
        .n_parts = 1,
        .usage = {.struct_size = sizeof out->usage,
                  .estimated = 1,
                  .input = llm_estimate_prompt(request),
                  .cache_read = -1,
                  .cache_write_5m = -1,
                  .cache_write_1h = -1,
                  .output = llm_estimate((struct llm_span){text, n}),
                  .reasoning = -1},
        .model = name,
        .raw = {text, n},
    };
    return RUNG_OK;
}

int32_t llm_check_request(const struct rung_llm_request *request, struct rung_error *error)
{
    if (!request->key || !request->key[0] || !request->role || !request->role[0])
        return llm_fail(error, RUNG_EINVAL, "llm.request", "a request needs a key and a role");
    if (request->n_messages && !request->messages)
        return llm_fail(error, RUNG_EINVAL, "llm.request", "request %s has no messages",
                        request->key);
    return RUNG_OK;
}
