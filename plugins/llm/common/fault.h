/*
 * Errors of providers: every form of error body, the hints when to come back, and what each means
 * for the caller. Pure, but for the wall clock in llm_retry_after_ms. Any thread.
 */
#ifndef LLM_COMMON_FAULT_H
#define LLM_COMMON_FAULT_H

#include "json.h"

/* What came back over HTTP, apart from what carried it. Absent headers are {NULL, 0}. */
struct llm_wire {
    uint32_t status;
    struct llm_span body;
    struct llm_span retry_after_ms, retry_after, should_retry, request_id, location;
};

/* Who asked, for messages. Texts are borrowed. */
struct llm_asker {
    const char *plugin; /* "openai" */
    const char *url;
    const char *model;
    const char *key; /* the secret's reference, "" when there is none */
};

/*
 * Whether a reply of status 2xx is an error all the same: a member "error" that is not null, or
 * {"type":"error"}. json may be NULL.
 */
bool llm_is_fault(const cJSON *json);

/*
 * Reads an error. json is the parsed body, or NULL when it is no JSON: then its first bytes are the
 * message. Either RUNG_OK with *finish, or a status with error filled:
 *
 *   RUNG_OK            RUNG_FINISH_CONTEXT: the prompt is too long. RUNG_FINISH_REFUSED: a filter
 *   RUNG_ERATELIMIT    llm.rate_limit   429; retry_after_ms where the server gives it
 *   RUNG_EUNAVAILABLE  llm.server       408, 409, 425, 5xx, 529, x-should-retry: true; waits too
 *   RUNG_EUNSUPPORTED  llm.no_retry     any of these two with x-should-retry: false
 *   RUNG_ECONFIG       llm.key          401, 403; names the variable or file of the key
 *                      llm.quota        money or credit is used up: waiting doesn't help
 *                      llm.model        404
 *                      llm.redirect     3xx
 *                      llm.request      any other refusal of the request
 *
 * A status of 2xx is replaced by what the error's type or code stands for, else by 500.
 */
int32_t llm_fault_read(const struct llm_wire *wire, const cJSON *json,
                       const struct llm_asker *asker, uint32_t *finish, struct rung_error *error);

/*
 * Milliseconds to wait from retry-after-ms, else retry-after (seconds or an HTTP date), else a
 * Google RetryInfo in the body; 0: no hint.
 */
uint32_t llm_retry_after_ms(const struct llm_wire *wire, const cJSON *json);

#endif
