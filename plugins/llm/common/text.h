/*
 * What the model backends of this folder share: a bounded growing text, error and reply helpers.
 * Compiled into each of them; nothing here has state. Any thread, one thread a text.
 */
#ifndef LLM_COMMON_TEXT_H
#define LLM_COMMON_TEXT_H

#include <rung/llm.h>
#include <stdarg.h>
#include <stdbool.h>

/* Growing text on the heap. {0} is empty. After a failed growth `failed` stays set and adds do
 * nothing. */
struct llm_text {
    char *ptr; /* NULL until something was added; else ptr[len] == 0 */
    size_t len;
    size_t cap;
    bool failed; /* memory was out, or the text would pass LLM_TEXT_MAX */
};

enum { LLM_TEXT_MAX = 64 << 20 }; /* bytes */

void llm_text_add(struct llm_text *text, const void *bytes, size_t n);
void llm_text_puts(struct llm_text *text, const char *string);
void llm_text_printf(struct llm_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void llm_text_free(struct llm_text *text);

/* A borrowed piece of text, not closed by a NUL. */
struct llm_span {
    const char *ptr;
    size_t len;
};

/* Takes the next line (without its newline) off the front of rest; false at the end. */
bool llm_next_line(struct llm_span *rest, struct llm_span *line);
struct llm_span llm_trim(struct llm_span span);
bool llm_span_is(struct llm_span span, const char *string);
bool llm_span_starts(struct llm_span span, const char *prefix);

/* Tokens of a text by a rule of thumb: one for four characters of UTF-8, rounded up. */
int64_t llm_estimate(struct llm_span text);
/* The same of all text that the request carries. */
int64_t llm_estimate_prompt(const struct rung_llm_request *request);

/* Fills the error and returns code. symbol is a stable dotted name. */
int32_t llm_fail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
int32_t llm_vfail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                  va_list args);
/* One formatted line to the host's log. */
void llm_log(const struct rung_host *host, uint32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* FNV-1a over a text, continued from hash (start with LLM_HASH_START). */
#define LLM_HASH_START 0xcbf29ce484222325u
uint64_t llm_hash(uint64_t hash, const void *bytes, size_t n);

/*
 * Fills *out with one text part, finish, model name and estimated usage (llm_estimate), and streams
 * the text through request->on_delta when there is one. The texts are copied to call->arena.
 * RUNG_ENOMEM, or RUNG_ECANCELLED when on_delta stops the call.
 */
int32_t llm_answer(const struct rung_host *host, struct rung_call *call,
                   const struct rung_llm_request *request, const char *reply, size_t n,
                   uint32_t finish, const char *model, struct rung_llm_response *out);

/* Whether the request is one that a backend can look at: a key, a role, well-formed messages. */
int32_t llm_check_request(const struct rung_llm_request *request, struct rung_error *error);

#endif
