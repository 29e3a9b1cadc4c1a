/*
 * What the files of requests share: how one sending ended, its record, the conversation that grows
 * and shrinks. Private to core/engine. A sending is one call of a plugin's `complete`; a logical
 * request (engine_ask) is one or more of them.
 */
#ifndef ENGINE_LLM_H
#define ENGINE_LLM_H

#include "engine/engine.h"

/* ---- llm_end.c: the end of a sending ---- */

enum llm_end_kind {
    LLM_ANSWERED = 1, /* `finish` says how */
    LLM_CUT,          /* the stream broke off: billed, nobody said how much */
    LLM_UNSURE,       /* silence or a broken connection: the server may have worked and billed */
    LLM_TURNED_AWAY,  /* rate limit, overload, no connection, a proxy's page: not billed */
    LLM_UNFIT,        /* this model won't take this request */
    LLM_OUT,          /* this model won't answer in this run: quota, unknown model */
    LLM_NO_KEY,       /* key or url are wrong: the run can't go on as configured */
    LLM_LOST,         /* under way when the process was killed; may have been billed */
};

struct llm_end {
    uint32_t kind;           /* llm_end_kind */
    uint32_t finish;         /* rung_finish; of LLM_ANSWERED */
    struct rung_error error; /* of all others */
    const struct rung_part *parts;
    uint32_t n_parts;
    struct rung_usage usage;
    struct rung_rate_limit limits;
    const char *model, *request_id, *finish_word, *repaired; /* may be NULL */
    uint64_t ns, first_token_ns;
};

/* What a plugin's answer means. status and error are those of its call. */
uint32_t llm_kind_of(int32_t status, const struct rung_error *error, bool cut);
/* Whether the same request may be sent again to the same model after a while. */
bool llm_may_repeat(uint32_t kind);
/* Whether its tokens are for us to guess: nobody said them. */
bool llm_is_guess(uint32_t kind);
const char *llm_finish_name(uint32_t finish);
/* RUNG_FINISH_STOP for a word that is none. */
uint32_t llm_finish_of(const char *name);
/* All texts of the parts as one. */
const char *llm_parts_text(const struct rung_part *parts, uint32_t n, struct rung_arena *arena);
/* The record of an end and back; memory of arena. The caller deletes the first. */
cJSON *llm_end_to_json(const struct llm_end *end, const struct engine_llm *llm);
void llm_end_from_json(const cJSON *json, struct rung_arena *arena, struct llm_end *end);

/* ---- llm_talk.c: the conversation ---- */

struct llm_talk {
    struct rung_arena *arena;
    struct rung_message *messages;
    uint32_t n, cap;
};
/* Copies the list of messages; what they point at is borrowed. */
void llm_talk_open(struct llm_talk *talk, struct rung_arena *arena,
                   const struct rung_message *messages, uint32_t n);
void llm_talk_add(struct llm_talk *talk, struct rung_message message);
/* What the model said, to be sent back: all parts, or all but tool calls. */
void llm_talk_add_reply(struct llm_talk *talk, const struct llm_end *end, bool calls);
/* One more text at the end of the last message. */
void llm_talk_append(struct llm_talk *talk, const char *text);
/*
 * Makes it shorter by the next step from *step on that changes anything: the oldest replies and
 * repairs go, then the middles of long texts. System and task stay. False when no step is left.
 */
bool llm_talk_shrink(struct llm_talk *talk, uint32_t *step);
/* Bytes of all texts. */
uint64_t llm_talk_bytes(const struct rung_message *messages, uint32_t n);

/* ---- llm_pick.c: which model ---- */

/* By weight among those of the role that are not stopped, by a hash of the key. NULL: none. */
struct engine_llm *llm_pick(struct engine *e, const char *role, const char *key);
/*
 * The first in the pipeline's order that has the role, is not stopped, and is not among given_up
 * (bit i: item i); NULL: none.
 */
struct engine_llm *llm_pick_other(struct engine *e, const char *role, uint64_t given_up);
/* Whether every model of the role is stopped. */
bool llm_all_stopped(const struct engine *e, const char *role);

/* ---- llm_send.c: one sending ---- */

/*
 * Waits for budget and gate, records `send`, calls the plugin, counts what it cost. The caller
 * records the end. Fails with RUNG_EBUDGET, RUNG_ECANCELLED or a fault of journal or plugin.
 */
int32_t llm_send(struct engine *e, struct engine_llm *llm, const struct rung_llm_request *request,
                 const char *key, uint32_t attempt, const char *why, struct rung_arena *arena,
                 struct llm_end *end, struct rung_error *err);
/*
 * The end of a sending of an earlier process, counted as spent; kind 0 when there was no such
 * sending. One without an end is given one, LLM_LOST.
 */
int32_t llm_recall_end(struct engine *e, const char *key, uint32_t attempt, const char *role,
                       struct rung_arena *arena, struct engine_llm **llm, struct llm_end *end,
                       struct rung_error *err);
int32_t llm_record_end(struct engine *e, const struct engine_llm *llm, const char *key,
                       uint32_t attempt, const struct llm_end *end, struct rung_error *err);

#endif
