/*
 * Everything that one kernel (the candidate, a rival, a baseline) was measured to at one shape:
 * raw samples, the turns that they came in, and what the device said meanwhile. Plugins' numbers
 * are hostile: what is no time is refused. One thread.
 */
#ifndef WORKER_TRACK_H
#define WORKER_TRACK_H

#include "base/arena.h"
#include "stats/stats.h"
#include <rung/timer.h>
#include <stdbool.h>

enum { RUNG_TRACK_SAMPLES = 4096, RUNG_TRACK_ROUNDS = 256 };

/* One block: samples [first, first + n). */
struct rung_turn {
    uint32_t first, n;
    double median_ns;
    bool in_rounds; /* of a comparison; else of the candidate's own measurement */
};

struct rung_track {
    struct rung_arena *arena;
    double *samples; /* the last blocks are left out beyond RUNG_TRACK_SAMPLES */
    uint32_t n, cap;
    struct rung_turn *turns;
    uint32_t n_turns, cap_turns;
    double rounds_ns[RUNG_TRACK_ROUNDS]; /* what each round took */
    uint32_t n_rounds;
    double gpu_ns; /* all samples together, batches too */
    /* As the first block took them, and all others then; before it, as it shall: 0 leaves it to the
     * timer. */
    uint32_t sets, batch;
    double hint_ns; /* about what a launch takes, before the first block; 0: not known */
    uint32_t cold;  /* rung_cold */
    uint32_t n_dropped, n_verified;
    bool launch_bound;
    double event_floor_ns, physical_floor_ns; /* 0: not known */
    bool has_condition;
    struct rung_device_condition before, after; /* of the first and the last block */
    uint32_t throttle, sm_mhz_min;              /* over all blocks; sm_mhz_min 0: not known */
    /* From rung_track_settle. */
    struct rung_quartiles quartiles;
    struct rung_interval interval;
};

struct rung_track *rung_track_new(struct rung_arena *arena);
/*
 * Takes a block's samples. false when they are no times: nothing is taken then. *median: of the
 * block; may be NULL. in_rounds: the block was a turn of a comparison.
 */
bool rung_track_add(struct rung_track *track, const struct rung_timing *timing, bool in_rounds,
                    double *median);
/*
 * Forgets all blocks but the last when that one is clearly faster than the one before it: the clock
 * was still rising. true when it did. What was forgotten counts as dropped.
 */
bool rung_track_catch_up(struct rung_track *track);
/* Quartiles and interval of all samples so far. false when there are none. */
bool rung_track_settle(struct rung_track *track);
/* Half the width of the interval over the median; of a median of 0, infinity. */
double rung_track_half_width(const struct rung_track *track);
/* Distance of the quartiles over the median; of a median of 0, 0. */
double rung_track_spread(const struct rung_track *track);

#endif
