/*
 * rung/llm.h - a language model: builds a provider's request, reads its reply. Runs in the
 * orchestrator. Calls are synchronous; the core owns concurrency, retries and budgets.
 */
#ifndef RUNG_LLM_H
#define RUNG_LLM_H

#include <rung/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rung_factory.capabilities of a backend. */
enum rung_llm_capability {
    RUNG_LLM_FREE = 1u << 0, /* its replies cost nothing: files, people, a built-in catalog */
};

enum rung_part_kind {
    RUNG_PART_TEXT = 1,
    RUNG_PART_TOOL_CALL = 2,   /* id, name, text = JSON arguments */
    RUNG_PART_TOOL_RESULT = 3, /* id, name, text */
    RUNG_PART_OPAQUE = 4,      /* echo back unchanged on the next turn (signatures) */
};

struct rung_part {
    uint32_t struct_size;
    uint32_t kind; /* rung_part_kind */
    struct rung_text text;
    const char *id;
    const char *name;
    uint32_t cache_mark; /* 1: the prefix up to here is worth caching */
    uint32_t reserved;
};

enum rung_message_role { RUNG_MSG_SYSTEM = 1, RUNG_MSG_USER = 2, RUNG_MSG_ASSISTANT = 3 };

struct rung_message {
    uint32_t struct_size;
    uint32_t role; /* rung_message_role */
    const struct rung_part *parts;
    uint32_t n_parts;
    uint32_t reserved;
};

struct rung_tool {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    const char *summary;
    struct rung_text schema; /* JSON schema of the arguments */
};

struct rung_llm_request {
    uint32_t struct_size;
    uint32_t n_messages;
    const char *key;  /* logical request, unique in the run: "ideas/1/0", "code/12/0" */
    const char *role; /* "ideas", "code" or "repair" */
    const struct rung_message *messages;
    const struct rung_tool *tools;
    uint32_t n_tools;
    uint32_t effort;            /* 0 default, 1 low .. 5 highest */
    uint32_t max_output_tokens; /* 0: the provider's */
    uint32_t reserved;
    double temperature; /* < 0: not sent */
    uint64_t seed;      /* for backends that can */
    /* [same thread] Optional. Streaming text; a non-zero answer stops the call (RUNG_ECANCELLED).
     */
    int32_t (*on_delta)(void *ctx, struct rung_text delta);
    void *on_delta_ctx;
    /* JSON schema that the reply's text shall obey, and a name for it ([a-z_]{1,64}); len 0: none.
     * A backend or model that can't enforce it sends the request without. */
    struct rung_text schema;
    const char *schema_name;
};

/* What a server said of its limits; -1 where it said nothing. */
struct rung_rate_limit {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t requests, requests_left, requests_reset_ms; /* reset: from now on */
    int64_t tokens, tokens_left, tokens_reset_ms;       /* the scarcest kind of tokens */
};

enum rung_finish {
    RUNG_FINISH_STOP = 1,
    RUNG_FINISH_LENGTH = 2,
    RUNG_FINISH_TOOL_CALLS = 3,
    RUNG_FINISH_REFUSED = 4,   /* refusal or content filter */
    RUNG_FINISH_REASONING = 5, /* the budget went into reasoning; no text */
    RUNG_FINISH_CONTEXT = 6,   /* context overflow */
};

/* Tokens by price class; -1 = not reported. */
struct rung_usage {
    uint32_t struct_size;
    uint32_t estimated; /* 1: the stream was cut or the provider says nothing */
    int64_t input, cache_read, cache_write_5m, cache_write_1h, output, reasoning;
};

struct rung_llm_response {
    uint32_t struct_size;
    uint32_t finish; /* rung_finish */
    const struct rung_part *parts;
    uint32_t n_parts;
    uint32_t reserved;
    struct rung_usage usage;
    const char *model;       /* as the provider names it */
    const char *request_id;  /* may be NULL */
    struct rung_text raw;    /* the provider's reply, bounded; may be empty */
    const char *finish_word; /* the provider's own word for `finish`; may be NULL */
    const char *repaired; /* parameter that was left out or renamed, since the server refused it on
                             the first try; NULL: none */
    uint32_t cut;         /* 1: the stream ended early; parts hold what had come */
    uint32_t tries;       /* requests that were sent */
    uint64_t first_token_ns; /* from the call's begin; 0: not streamed */
    struct rung_rate_limit limits;
};

struct rung_llm_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker, started] Obeys call->deadline_ns and call->cancel. Nothing is sent twice, but for
     * one repair of a 400 that names a parameter. On an error too, usage, limits, request_id and
     * tries of *out hold what is known. The errors that the core tells apart: RUNG_ECONFIG llm.key
     * the key is refused; the message names its variable llm.request    the server refuses the
     * request for good llm.model      there is no such model RUNG_EBUDGET       llm.quota      the
     * account's quota is gone; waiting won't help RUNG_ERATELIMIT    llm.rate       too many
     * requests; error->retry_after_ms when told RUNG_EUNAVAILABLE  llm.overloaded the server can't
     * now (408, 409, 5xx, 529); retry_after_ms http.*         no connection RUNG_ETIMEOUT http.*
     *   RUNG_EIO           llm.reply      what came is no reply of this protocol (HTML of a proxy)
     *                      http.broken    cut off; *out holds what had come, cut = 1
     */
    int32_t (*complete)(void *self, struct rung_call *, const struct rung_llm_request *,
                        struct rung_llm_response *out);
};

#ifdef __cplusplus
}
#endif
#endif
