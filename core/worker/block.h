/* One block of the timer, and what it may say. Parts of timing.c and race.c. One thread. */
#ifndef WORKER_BLOCK_H
#define WORKER_BLOCK_H

#include "worker/track.h"
#include "worker/trial.h"

/* What a block of a kernel's turn shall be. */
struct rung_block {
    uint32_t shape;  /* of the task's bench */
    uint32_t number; /* of the block or round: inputs differ from one to the next */
    uint32_t warmups, samples, verify;
    double budget_s;                /* 0: none */
    const struct rung_track *track; /* of the blocks before it */
};

/* A recipe of the block for this candidate's inputs. */
struct rung_timing_recipe rung_block_recipe(const struct rung_trial *trial,
                                            const struct rung_block *block);
/* Warm-ups and samples that take about 20 ms of the device, as the track's median has it. */
void rung_block_size(struct rung_block *block);
/* An empty answer, for a plugin to fill. */
void rung_timing_clear(struct rung_timing *timing);
/* Calls the timer with a session; a fault that costs the device is noted in the trial. */
int32_t rung_block_run(struct rung_trial *trial, const struct rung_session *session,
                       const struct rung_block *block, struct rung_timing *out,
                       struct rung_error *err);
/*
 * Settles what the candidate itself did wrong: the timer's failure, or a fault in its answer. true
 * when there is a time to be read.
 */
bool rung_block_good(struct rung_trial *trial, int32_t status, const struct rung_timing *timing,
                     const struct rung_error *err);
/* The code of a fault: "" for none, NULL for a text that is no code. In the trial's arena. */
const char *rung_block_fault(struct rung_trial *trial, const struct rung_timing *timing,
                             struct rung_text *message);

#endif
