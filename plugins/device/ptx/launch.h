/*
 * launch.h - from a rung_launch to blocks run by workers.
 */
#ifndef PTX_LAUNCH_H
#define PTX_LAUNCH_H

#include "exec.h"

struct ptx_limits {
    uint64_t max_lane_instructions; /* a launch */
    uint32_t max_shared;            /* bytes a block */
    uint32_t max_threads;           /* a block */
    uint32_t n_threads;             /* host threads for blocks */
    uint32_t sm_count;
    uint32_t checks; /* ptx_checks */
    uint64_t seed;   /* 0: blocks and warps run in order; else in an order that it makes */
};

/*
 * Runs a launch to its end. fault->code says what went wrong in the kernel or in the launch itself.
 * Returns a rung_status; call->error is filled when it is not RUNG_OK.
 */
int32_t ptx_launch(const struct rung_host *host, const struct rung_call *call,
                   struct ptx_memory *memory, const struct ptx_isa *isa,
                   const struct ptx_limits *limits, const struct ptx_program *program,
                   const struct rung_launch *launch, struct rung_fault *fault);

#endif
