/*
 * What the files of the timer "events" share. One instance is used by one thread at a time.
 */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include "../model/gpu.h"

#include <rung/timer.h>
#include <stdbool.h>

enum { EVENTS_MAX_REPEATS = 1 << 20, EVENTS_ADVICE_BYTES = 2048, EVENTS_NOTES = 16 };

/* How a block is measured, and what a sample costs in wall time. */
struct events_mode {
    uint32_t sets, batch;
    double sample_s;           /* one sample with everything around it; 0: not known */
    uint32_t warmups, repeats; /* samples of the block, the first of them thrown away */
};

struct events_timer {
    const struct rung_host *host;
    char path[4096];
    struct gpu gpu; /* the description; used when its name is the device's */
    /* Of earlier blocks, for the next ones of the same measurements; the oldest goes first. */
    struct events_note {
        const void *session;
        uint64_t shape; /* hash of its dims */
        struct events_mode mode;
    } notes[EVENTS_NOTES];
    uint32_t n_notes;
};

/* Fills the error; returns code. */
int32_t events_fail(struct rung_error *err, int32_t code, const char *symbol, const char *message);
/* Middle of n values, which are sorted. n > 0. */
double events_median(double *values, uint32_t n);

/* ---- choose.c ---- */

/* The mode of a block: the recipe's, or from some launches, whose fault is in out->fault. */
int32_t events_choose(struct events_timer *self, struct rung_call *call,
                      const struct rung_session *session, const struct rung_timing_recipe *recipe,
                      struct rung_timing *out, struct events_mode *mode);
/* Notes what a block cost. */
void events_note(struct events_timer *self, const struct rung_session *session,
                 const struct rung_timing_recipe *recipe, const struct events_mode *mode);
/* What the launches did wrong, as a fault: the run's, a write outside, a changed input. */
void events_fault(const struct rung_session *session, const struct rung_run *run,
                  struct rung_fault *out);

/* ---- peaks.c ---- */

/* Peak rates of the session's device; 0: not known. */
struct events_peaks {
    double bytes_per_s; /* device memory */
    double flops;       /* in the task's precision, by the units made for it */
    double l2_bytes;
};
struct events_peaks events_peaks(const struct events_timer *self,
                                 const struct rung_session *session);
/* Least time for the traffic past what L2 can hold, in ns; 0: not known. */
double events_floor(const struct events_peaks *peaks, const struct rung_work *work);
/* The larger of traffic and operations over the peaks, in ns; 0: not known. */
double events_roofline(const struct events_peaks *peaks, const struct rung_work *work);

/* ---- words.c ---- */

struct events_summary {
    double min, q1, median, q3;
};
/* Sorts. n > 0. */
struct events_summary events_summarise(double *values, uint32_t n);

/* One measured block, for numbers and words. */
struct events_block {
    const struct events_timer *self;
    const struct rung_session *session;
    const struct rung_timing *timing;
    struct events_summary times;
    struct events_peaks peaks;
    struct rung_work work;
    uint64_t set_bytes;
};
/* NULL when memory is out. */
const struct rung_map *events_metrics(const struct events_block *b, struct rung_call *call);
/* EVENTS_ADVICE_BYTES at out. */
void events_advise(const struct events_block *b, char *out);

#endif
