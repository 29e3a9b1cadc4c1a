/*
 * A run without engine: carries out a policy's actions at once on a made-up history, checks every
 * action against the contract of rung/search.h, and writes them down. One thread.
 */
#ifndef TESTS_SEARCH_SIMULATION_H
#define TESTS_SEARCH_SIMULATION_H

#include "support/support.h"

#include "base/arena.h"
#include "base/text.h"
#include "plugin/instance.h"
#include <rung/search.h>

enum { SIM_MAX = 4096 };

struct sim {
    struct rung_registry *registry;
    struct rung_arena *arena;
    struct rung_instance *instance;
    struct rung_history history;
    struct rung_idea ideas[SIM_MAX]; /* [number - 1] */
    struct rung_candidate candidates[SIM_MAX];
    double budget_used;
    uint64_t salt; /* for scenarios that vary sentences */

    /* Scenario: fills state, code, times, points of a new candidate; NULL: all accepted, same time.
     */
    void (*judge)(struct sim *sim, struct rung_candidate *candidate);
    /* Sentence of a new idea in the arena, or NULL when the request fails; NULL: unique sentences.
     */
    const char *(*think)(struct sim *sim, uint32_t number);

    struct rung_buf log; /* one line an action: "implement idea=0 n=2 from=0" */
    uint32_t n_repairs, n_tuned, n_idea_requests, n_stops;
    uint32_t last_ideas_parents[64], n_last_ideas; /* of the last decision that asked for ideas */
    char stop_note[200];
};

/* Loads policy `name` with options as JSON. */
void sim_open(struct sim *sim, const char *name, const char *options);
void sim_close(struct sim *sim);
/* One decide() call and its actions. false after STOP. */
bool sim_step(struct sim *sim);
/* Steps until STOP, at most `limit` decisions. */
void sim_run(struct sim *sim, uint32_t limit);

#endif
