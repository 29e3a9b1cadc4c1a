/*
 * What a server's headers say of its limits and of when to come back. Pure, but for the wall clock.
 * Any thread.
 */
#ifndef LLM_COMMON_HINTS_H
#define LLM_COMMON_HINTS_H

#include "json.h"

/* What came back over HTTP. */
struct llm_wire {
    uint32_t status;
    struct llm_span body;
    /* Value of a header of the reply, or {NULL, 0}. NULL: there are no headers. */
    struct llm_span (*header)(const struct llm_wire *wire, const char *name);
    const void *ctx; /* header's */
    const void *reply;
};

/* Value of a header, trimmed; {NULL, 0} when it is not there. */
struct llm_span llm_header(const struct llm_wire *wire, const char *name);

/*
 * Milliseconds to wait from retry-after-ms, else retry-after (seconds or an HTTP date, RFC 9110,
 * 10.2.3), else a Google RetryInfo.retryDelay in the body (json may be NULL); 0: no hint.
 */
uint32_t llm_retry_after_ms(const struct llm_wire *wire, const cJSON *json);

/*
 * Limits from the headers of OpenAI and its relatives (x-ratelimit-*), Anthropic
 * (anthropic-ratelimit-*) and the IETF draft (ratelimit-*). Resets may be durations ("6m0s"), times
 * (RFC 3339), or numbers: seconds from now, of the epoch, or its milliseconds, told apart by their
 * size. Of several kinds of tokens the one with the smallest share left is taken.
 */
struct rung_rate_limit llm_limits(const struct llm_wire *wire);

#endif
