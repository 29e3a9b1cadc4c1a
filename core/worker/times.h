/*
 * The candidate's time: at each bench shape, weighted over them, and as the report has it. One
 * thread.
 */
#ifndef WORKER_TIMES_H
#define WORKER_TIMES_H

#include "worker/track.h"
#include "worker/trial.h"

/* At one shape, or of all together. */
struct rung_shape_time {
    uint32_t kind; /* rung_time_kind */
    double time_ns, low_ns, high_ns;
    double min_ns, q1_ns, q3_ns;
    double floor_ns; /* physical; 0: not known */
    double tie_band;
    const char *gpu, *limiter;
    const struct rung_track *track; /* NULL: modelled */
};

/* From a track that was settled. */
struct rung_shape_time rung_shape_time_of(const struct rung_track *track);
/* All shapes by their weights; the track is that of the shape that counts most. */
struct rung_shape_time rung_times_weighted(const struct rung_task *task,
                                           const struct rung_shape_time *times);
/* Adds median_us, ci_us, min_us, q1_us, q3_us of a measured time. */
void rung_times_add(cJSON *object, const struct rung_shape_time *time);
/* Adds n, mode, event floor, clocks, throttle, and what was verified and dropped, of a track. */
void rung_track_describe(cJSON *object, const struct rung_track *track);
/* Makes trial->time and trial->score anew out of trial->times and their tracks. */
void rung_times_publish(struct rung_trial *trial);
/* samples.json: every sample of the candidate and of those that took turns with it. */
void rung_trial_store_samples(struct rung_trial *trial);

#endif
