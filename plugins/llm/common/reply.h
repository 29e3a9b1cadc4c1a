/*
 * From the bytes that a provider sent to a response: what all dialects share. Pure; one thread a
 * call.
 */
#ifndef LLM_COMMON_REPLY_H
#define LLM_COMMON_REPLY_H

#include "fault.h"

/* What a dialect finds in a reply. Texts are borrowed from the JSON but for `text`. */
struct llm_reply {
    struct llm_text text;    /* the answer, without reasoning; as sent, repaired later */
    bool reasoned;           /* reasoning was there, whether or not it was shown */
    uint32_t finish;         /* rung_finish */
    struct rung_usage usage; /* all -1 until read */
    const char *model;       /* NULL: the one that was asked for */
    const char *request_id;  /* NULL: the header's, if any */
};

struct llm_dialect {
    /*
     * Reads a reply of status 2xx that is no error. RUNG_OK, or a status with error filled:
     * RUNG_EIO through llm_malformed, RUNG_EUNAVAILABLE when the server says that it failed midway.
     */
    int32_t (*read)(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error);
};

/* RUNG_EIO, llm.reply: the reply lacks what it must have, or it has another type. */
int32_t llm_malformed(struct rung_error *error, const struct llm_asker *asker, const char *what);

/*
 * A whole reply, good or bad, into *out (see rung_llm_ops.complete) and request->on_delta. An
 * answer without text whose tokens went into reasoning ends as RUNG_FINISH_REASONING. A prompt that
 * is too long, or one that a filter stopped, is a response without text.
 * Errors: those of llm_fault_read; RUNG_EIO llm.reply for a reply that can't be read, with its
 * first bytes; RUNG_ENOMEM; RUNG_ECANCELLED by on_delta.
 */
int32_t llm_reply_read(const struct llm_dialect *dialect, const struct llm_wire *wire,
                       const struct llm_asker *asker, const struct rung_host *host,
                       struct rung_call *call, const struct rung_llm_request *request,
                       struct rung_llm_response *out);

/* count - part of it that is priced apart; -1 when count is -1, never below 0. */
int64_t llm_tokens_less(int64_t count, int64_t part);

#endif
