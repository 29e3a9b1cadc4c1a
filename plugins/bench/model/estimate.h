/*
 * From the counters of one launch to a modelled time: the slowest of four resources, each as if it
 * were the only one. Pure; any thread. Times in ns, traffic in bytes of the whole grid.
 */
#ifndef MODEL_ESTIMATE_H
#define MODEL_ESTIMATE_H

#include "gpu.h"
#include <rung/session.h>

enum limiter { LIMIT_DRAM, LIMIT_L2, LIMIT_LSU, LIMIT_ISSUE, LIMIT_LAUNCH, N_LIMITERS };
/* "dram", ... and for people "DRAM bandwidth". Static. */
const char *limiter_name(int limiter);
const char *limiter_words(int limiter);

/* What bounds the blocks that one SM holds at once. */
struct occupancy {
    double blocks_per_sm; /* 0: not even one fits */
    double share;         /* of the SM's warps */
    const char *limit;    /* "warps", "registers", "shared memory", "blocks" */
};
struct occupancy occupancy_of(const struct gpu *gpu, const struct rung_launch_facts *facts);

struct estimate {
    struct occupancy occupancy;
    double ns[N_LIMITERS]; /* one a limiter */
    double time_ns;        /* slowest of the four, plus the launch */
    int limiter;
    double dram_bytes, l2_bytes;
    double grid_blocks, active_sms, waves;
    double sectors_per_line;       /* 1 to 4; 0 without global accesses */
    double lines_per_request;      /* 1 to 32 */
    double global_share;           /* accesses to global memory among the warp instructions */
    double wavefronts_per_request; /* shared memory; 0 without */
    double reread;                 /* sectors requested a distinct sector of a block */
    double reread_bytes; /* the part of dram_bytes that reads again what a cache had to drop */
    int latency_bound;   /* too few loads in flight for the bandwidth */
};

/*
 * footprint: bytes that the launch touches at least (the task's least bytes), 0 when not known.
 * resident: share of the reads that an earlier launch of the plan left in L2, 0 to 1.
 */
void estimate_launch(const struct gpu *gpu, const struct rung_counters *counters,
                     const struct rung_launch_facts *facts, double footprint, double resident,
                     struct estimate *out);

/* Least time of a task: bytes over DRAM bandwidth or operations over the precision's peak, in ns.
 */
double floor_ns(const struct gpu *gpu, const struct rung_work *work, uint32_t precision);

#endif
