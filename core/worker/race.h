/*
 * Kernels that take turns on one device: the candidate, its rival, the baselines. Parts of race.c
 * (turns), race_report.c (what came of them) and baseline.c. One thread.
 */
#ifndef WORKER_RACE_H
#define WORKER_RACE_H

#include "worker/block.h"
#include "worker/times.h"
#include <rung/baseline.h>

enum rung_racer_kind { RUNG_RACER_CANDIDATE, RUNG_RACER_RIVAL, RUNG_RACER_BASELINE };

/* Whether a baseline's own results are the task's. */
enum rung_within { RUNG_WITHIN_UNKNOWN, RUNG_WITHIN_YES, RUNG_WITHIN_NO };

struct rung_racer {
    enum rung_racer_kind kind;
    const char *name;
    const char *label, *math; /* baselines; "" until prepared */
    const char *out;          /* why it takes no turns; NULL: it does */
    struct rung_executor_baseline *baseline;
    /* What it runs at the shape in hand. */
    const struct rung_session *session;
    struct rung_open_session *open;
    struct rung_watch watch;
    struct rung_baseline_case prepared;
    bool is_prepared;
    enum rung_within within;
    const char *within_why;     /* "" or what was wrong with its results */
    double going_ns;            /* its turn on the way there, of the round in hand */
    struct rung_track **tracks; /* one a bench shape */
};

struct rung_race {
    struct rung_trial *trial;
    struct rung_racer *racers; /* [0]: the candidate */
    uint32_t n;
    double delta;
};

/* ---- baseline.c ---- */
/* Readies a baseline for a shape; on failure racer->out says why. */
void rung_racer_prepare(struct rung_race *race, struct rung_racer *racer, uint32_t shape);
/* Ends what prepare began. Also for one that was never ready. */
void rung_racer_release(struct rung_racer *racer);
/*
 * Another is measured in the candidate's mode, where a sample does not become much too long so:
 * one number with launches in a graph and one without are no comparison. ns: about its time.
 */
void rung_racer_match(const struct rung_race *race, struct rung_racer *racer, uint32_t shape,
                      double ns);
/* One block: of the timer with the racer's session, or of the baseline's own. */
int32_t rung_racer_block(struct rung_race *race, struct rung_racer *racer,
                         const struct rung_block *block, struct rung_timing *out,
                         struct rung_error *err);
/* A guest leaves the race. */
void rung_racer_drop(struct rung_race *race, struct rung_racer *racer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- race_report.c ---- */
/* The candidate against another over the rounds of all shapes, weighted. false: too little. */
bool rung_race_ratio(const struct rung_race *race, const struct rung_racer *other,
                     struct rung_ratio *out);
/* Makes trial->baselines and trial->turned. reason: for those with no turns yet; NULL: as is. */
void rung_race_publish(struct rung_race *race, const char *reason);

#endif
