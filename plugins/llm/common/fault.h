/*
 * Errors of providers: every form of error body, and what each means for the caller. Pure, but for
 * the wall clock of waits. Any thread.
 */
#ifndef LLM_COMMON_FAULT_H
#define LLM_COMMON_FAULT_H

#include "hints.h"

/* Who asked, for messages. Texts are borrowed. */
struct llm_asker {
    const char *plugin;   /* "openai" */
    const char *provider; /* "ollama": whose echoes are kept */
    const char *echo;     /* of openai: the reasoning field that goes back, or NULL */
    const char *url;
    const char *model;
    const char *key; /* the secret's reference, "" when there is none */
};

/*
 * Whether a reply of status 2xx is an error all the same: a member "error" that is not null, or
 * {"type":"error"}. json may be NULL.
 */
bool llm_is_fault(const cJSON *json);

/* A prompt that was turned away, which is an outcome. */
struct llm_turned_away {
    uint32_t finish; /* RUNG_FINISH_CONTEXT: too long. RUNG_FINISH_REFUSED: a filter */
    char word[96];   /* the provider's code or type; may be empty */
};

/*
 * Reads an error. json is the parsed body, or NULL when it is no JSON: then its first bytes are the
 * message. Either RUNG_OK with *away, or a status with error filled, of rung_llm_ops.complete:
 *
 *   RUNG_ERATELIMIT    llm.rate         429; retry_after_ms where the server gives it
 *   RUNG_EUNAVAILABLE  llm.overloaded   408, 409, 424, 425, 5xx, 529, x-should-retry: true; waits
 * too RUNG_EBUDGET       llm.quota        money or credit is used up: waiting doesn't help
 *   RUNG_ECONFIG       llm.key          401, 403; names the variable or file of the key
 *                      llm.model        404
 *                      llm.request      3xx, x-should-retry: false, any other refusal
 *
 * A status of 2xx is replaced by what the error's type or code stands for, else by 500.
 */
int32_t llm_fault_read(const struct llm_wire *wire, const cJSON *json,
                       const struct llm_asker *asker, struct llm_turned_away *away,
                       struct rung_error *error);

#endif
