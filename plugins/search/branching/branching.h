/*
 * What the files of search_branching share: the policy's memory, one decide() call, and the ranking
 * of candidates (rank.c).
 */
#ifndef SEARCH_BRANCHING_H
#define SEARCH_BRANCHING_H

#include <rung/search.h>
#include <stdbool.h>

enum { MAX_KEEP = 16, MAX_ACTIONS = 4096, MAX_COUNT = 64 };

enum phase { PHASE_START, PHASE_BUILT, PHASE_IDEAS, PHASE_LAST_TUNE };

struct policy {
    const struct rung_host *host;
    uint32_t rounds, ideas, branches, keep, repairs, tune, patience, wild;
    uint64_t seed;

    enum phase phase;
    uint32_t round;       /* of ideas; 0 is the first kernels */
    uint32_t idle_rounds; /* rounds in a row without a better time */
    uint32_t seen_ideas;  /* ideas up to this number were built or passed over */
    double best_ns;       /* best time at the end of an earlier round; 0: none yet */
    bool any_accepted;    /* at the end of an earlier round */
    uint32_t *repaired;   /* numbers of candidates for which a repair was asked */
    uint32_t n_repaired;
};

/* One decide() call. */
struct turn {
    struct policy *policy;
    const struct rung_history *history;
    struct rung_action *actions; /* MAX_ACTIONS */
    uint32_t n_actions;
    uint32_t kept[MAX_KEEP]; /* candidate numbers, best first */
    uint32_t n_kept;
};

/* A candidate by number; NULL for 0 and for one that is not there. */
const struct rung_candidate *branching_candidate(const struct turn *turn, uint32_t number);
/* The fastest accepted candidate of an idea and a source that are not kept yet, or NULL. */
const struct rung_candidate *branching_fastest(const struct turn *turn);
/*
 * Keeps the best `keep` accepted candidates, one an idea. Among those that tie with the fastest one
 * left, the lowest number goes first.
 */
void branching_keep_best(struct turn *turn);
/* Keeps `wild` accepted candidates of other ideas more, drawn by seed and round. */
void branching_keep_wild(struct turn *turn);

#endif
