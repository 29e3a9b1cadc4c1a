/*
 * A logical request while it is asked: what ask.c and llm_record.c share. Private to core/engine.
 */
#ifndef ENGINE_ASK_H
#define ENGINE_ASK_H

#include "base/text.h"
#include "engine/llm.h"

struct ask {
    struct engine *e;
    const char *key, *role;
    struct rung_arena *arena;
    struct llm_talk talk;
    struct engine_llm *llm;
    uint64_t given_up; /* models, by their place in the pipeline */
    uint32_t attempt;  /* number of the next sending */
    bool known;        /* an earlier process may have sent some */
    const char *why;   /* of the next sending */
    struct rung_buf text;
    uint32_t continues, tool_calls, overdue, shrunk, cap, effort;
    int64_t tool_bytes;
    bool reasoned, rephrased;
    uint32_t tries; /* in a row that the model turned away */
    uint64_t waited_ms;
    /* Set when it is over. */
    bool done;
    uint32_t finish;
    struct llm_end last;
};

/* ---- llm_record.c: the journal's side ---- */

/*
 * Written before anything is sent, so that a crash leaves a trace of what was paid for. Sets known
 * when an earlier process wrote it.
 */
int32_t ask_record_request(struct ask *a, struct rung_error *err);
/* Whether the reply's own record ends the sending, too: the plain case costs one commit less. */
bool ask_ends_all(const struct ask *a, const struct llm_end *end);
int32_t ask_record_reply(struct ask *a, struct rung_error *err);
/* A request that failed for good, so that a resumed policy hears what it heard before. */
void ask_record_failure(struct ask *a, const struct rung_error *why);
/* The reply that the journal holds, and all that its sendings cost. */
void ask_take_reply(struct ask *a, const cJSON *json, struct engine_reply *out);
/* The failure that the policy went on from, if there is one: it stands. RUNG_OK: none. */
int32_t ask_known_failure(struct ask *a, struct rung_error *err);

#endif
