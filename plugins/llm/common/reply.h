/*
 * From what a provider sent to a response: what all dialects share. One thread a call.
 */
#ifndef LLM_COMMON_REPLY_H
#define LLM_COMMON_REPLY_H

#include "provider.h"

/* RUNG_EIO, llm.reply: the reply lacks what it must have, or it has another type. */
int32_t llm_malformed(struct rung_error *error, const struct llm_asker *asker, const char *what);
/* RUNG_EUNAVAILABLE, llm.overloaded: the server says that it failed midway. what: its words, or
 * NULL. */
int32_t llm_failed_midway(struct rung_error *error, const struct llm_asker *asker, const char *word,
                          const char *what);
/* Adds the first bytes of the reply to an error about it. */
void llm_show_bytes(struct rung_error *error, struct llm_span bytes);

/*
 * A reply of any status that came whole. RUNG_OK with *reply, whose finish, usage and parts are
 * then settled; else a status with error filled, of llm_fault_read or RUNG_EIO llm.reply.
 */
int32_t llm_reply_read(const struct llm_dialect *dialect, const struct llm_wire *wire,
                       const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error);
/*
 * One event of a stream. data: its bytes. RUNG_OK, with reply->through set when nothing more is to
 * come; else as above. is_error: the event's name says that it is one.
 */
int32_t llm_reply_event(const struct llm_dialect *dialect, struct llm_span data, bool is_error,
                        const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error);
/*
 * Settles why a reply ended: calls of tools, reasoning that left no room for text. RUNG_EIO
 * llm.reply for a stream that went through and held nothing at all; RUNG_ENOMEM.
 */
int32_t llm_reply_settle(struct llm_reply *reply, const struct llm_asker *asker,
                         struct rung_error *error);
/*
 * Fills parts, usage, finish, model, request_id, finish_word, raw and limits of *out, in the call's
 * arena. cut: the reply ended early; what usage doesn't tell is then estimated (llm_estimate).
 * RUNG_ENOMEM with error filled.
 */
int32_t llm_reply_fill(const struct llm_reply *reply, bool cut, const struct llm_wire *wire,
                       const struct llm_provider *provider, struct rung_call *call,
                       const struct rung_llm_request *request, struct rung_llm_response *out);

/* count - part of it that is priced apart; -1 when count is -1, never below 0. */
int64_t llm_tokens_less(int64_t count, int64_t part);

#endif
