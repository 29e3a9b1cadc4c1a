/*
 * rung/timer.h - how long a variant takes. Measured and modelled times are different types and
 * never mix: a modelled time comes from counters and a description of a GPU that is not there.
 */
#ifndef RUNG_TIMER_H
#define RUNG_TIMER_H

#include <rung/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rung_factory.capabilities of a timer: what it needs of a device. */
enum rung_timer_needs {
    RUNG_TIMER_COUNTERS = 1u << 0, /* RUNG_DEVICE_COUNTERS */
    RUNG_TIMER_MEASURES = 1u << 1, /* RUNG_DEVICE_MEASURES */
};

enum rung_time_kind { RUNG_TIME_MEASURED = 1, RUNG_TIME_MODELLED = 2 };

/* One block of a measurement; the core owns interleaving and statistics. */
struct rung_timing_recipe {
    uint32_t struct_size;
    uint32_t warmups;    /* launches of the plan before the first sample */
    uint32_t samples;    /* wanted; a modelling timer ignores it */
    uint32_t cold;       /* 1: cold L2; 0: warm */
    const int64_t *dims; /* dims vector: a bench shape */
    uint64_t seed;
    /* As an earlier block of the same measurement chose them; 0, 0: the timer chooses. */
    uint32_t sets, batch;
    uint32_t verify; /* launches whose outputs are compared with the reference; 0: none */
    uint32_t reserved;
    double budget_s; /* wall time that the block may take; fewer samples come then; 0: no limit */
};

/* How the caches were cold. */
enum rung_cold { RUNG_COLD_WARM = 0, RUNG_COLD_FLUSH = 1, RUNG_COLD_ROTATE = 2 };

struct rung_measured {
    uint32_t struct_size;
    uint32_t n_samples;
    const double *samples_ns; /* raw, in the order taken */
    double floor_ns;          /* what an empty measurement reads, in the same mode */
    uint32_t sets, batch;     /* as taken */
    uint32_t cold;            /* rung_cold */
    uint32_t n_dropped;       /* samples thrown away, since the clock was held down */
    uint32_t n_verified;      /* launches whose outputs were compared, all good */
    uint32_t launch_bound;    /* 1: less than three times the floor */
    struct rung_device_condition before, after;
};

struct rung_modelled {
    uint32_t struct_size;
    uint32_t reserved;
    double time_ns;
    double tie_band;     /* 0.3: predictions within a factor 1.3 are ties */
    const char *gpu;     /* the GPU that is modelled */
    const char *limiter; /* "dram", "l2", "lsu", "issue", "launch" */
};

struct rung_timing {
    uint32_t struct_size;
    uint32_t kind;           /* rung_time_kind: which of the two below counts */
    struct rung_fault fault; /* the plan failed while it was timed */
    struct rung_measured measured;
    struct rung_modelled modelled;
    double physical_floor_ns;       /* least work over peak rates; 0 = not known */
    const struct rung_map *metrics; /* may be NULL */
    struct rung_text advice;        /* for the model: what limits and by how much */
};

struct rung_timer_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker, started] */
    int32_t (*measure)(void *self, struct rung_call *, const struct rung_session *,
                       const struct rung_timing_recipe *, struct rung_timing *out);
};

#ifdef __cplusplus
}
#endif
#endif
