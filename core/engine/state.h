/*
 * What a run knows: ideas, candidates and their variants. Built only from journal records and from
 * numbers given out at barriers, so that it is the same after a resume. Guarded by engine.lock
 * while actions run; the main thread alone touches it at barriers.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "base/arena.h"
#include "worker/job.h"
#include <rung/search.h>

struct engine_idea {
    uint32_t number, parent, round;
    uint64_t seq;
    const char *sentence, *category;
};

/* One judged tune point of a candidate. */
struct engine_variant {
    const char *point;
    uint32_t verdict; /* rung_outcome_verdict */
    char code[32];
    uint64_t seq;
    uint32_t time_kind, passed; /* passed: 1 << rung_when, rungs of that occasion */
    double time_ns, tie_band, floor_ns, low_ns, high_ns;
    struct engine_variant *next;
};

/*
 * Small, since a run may have many thousands: sources, messages and advice stay in the journal, and
 * are read back when a prompt or the winner's file needs them (recall.c).
 */
struct engine_candidate {
    uint32_t number, idea, round, n_parents;
    uint32_t parents[RUNG_MAX_PARENTS];
    bool is_repair;   /* made from a failed candidate */
    uint32_t state;   /* rung_candidate_state; 0: not judged yet, or the budget ended first */
    uint32_t replies; /* from the model */
    uint64_t seq;     /* of its last verdict */
    char code[32];
    bool has_source;  /* a reply held code and a plan */
    uint32_t attempt; /* the reply that it is from */
    char source_sha[RUNG_SHA256_HEX];
    struct engine_variant *variants; /* in the order judged */
    uint64_t n_points, n_tried;
    /* The best accepted variant; NULL: none. What follows is a copy of its fields. */
    struct engine_variant *best;
    const char *point;
    uint32_t time_kind;
    double time_ns, tie_band, floor_ns;
    double low_ns, high_ns; /* 95 % interval of a measured time; 0, 0: not known */
};

struct engine_state {
    struct rung_arena *arena;   /* everything below */
    struct engine_idea **ideas; /* ideas[i] has number i + 1 */
    uint32_t n_ideas, cap_ideas;
    struct engine_candidate **candidates;
    uint32_t n_candidates, cap_candidates;
};

struct engine_idea *engine_idea_add(struct engine_state *state);
struct engine_candidate *engine_candidate_add(struct engine_state *state);
void engine_state_free(struct engine_state *state);
/* By number from 1, or NULL. */
struct engine_idea *engine_idea_get(const struct engine_state *state, uint32_t number);
struct engine_candidate *engine_candidate_get(const struct engine_state *state, uint32_t number);
/* Takes a verdict on one tune point into the candidate; texts are copied to the state's arena. */
void engine_candidate_judge(struct engine_state *state, struct engine_candidate *candidate,
                            const struct rung_outcome *outcome, uint64_t seq);
/* A rung that runs later refused the best variant: the next best takes its place, if there is any.
 */
void engine_candidate_demote(struct engine_candidate *candidate, const struct rung_outcome *outcome,
                             uint64_t seq);
/* Whether a is ahead of b: accepted before rejected, then time, then number. */
bool engine_ahead(const struct engine_candidate *a, const struct engine_candidate *b);
/* The candidates in that order; n of them in *n, memory of arena. */
struct engine_candidate **engine_ranking(const struct engine_state *state, struct rung_arena *arena,
                                         uint32_t *n);
/* The accepted candidate that is ahead of all others, or NULL. */
struct engine_candidate *engine_best(const struct engine_state *state);
/*
 * Whether the times can't be told apart: modelled ones within b's tie band; measured ones whose
 * intervals overlap or which are within 1 %, since they were not taken in turns.
 */
bool engine_tie(const struct engine_candidate *a, const struct engine_candidate *b);

/* The view that a policy gets; memory of arena, valid until the next barrier. */
struct rung_history *engine_history(const struct engine_state *state, struct rung_arena *arena,
                                    uint32_t decisions, uint64_t seed, double budget_used);

#endif
