/*
 * rung/baseline.h - what a kernel must beat: a library or a framework that computes the same task.
 * Runs in executors, beside the candidate, on the same device and the same inputs.
 */
#ifndef RUNG_BASELINE_H
#define RUNG_BASELINE_H

#include <rung/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A baseline that is ready for one task at one shape. */
struct rung_baseline_case {
    uint32_t struct_size;
    uint32_t reserved;
    const char *label;      /* "cublasSgemm", "torch.compile max-autotune"; lives until release */
    const char *math;       /* "fp32", "tf32", "fp16, fp32 accumulation": what it computes in */
    uint64_t scratch_bytes; /* device memory that it wants beside the tensors, for enqueue */
    void *ctx;              /* the plugin's */
};

struct rung_baseline_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker, started] Gets ready for the session's task at some dims: chooses algorithms, builds
     * plans, compiles. Everything slow happens here. RUNG_EUNSUPPORTED: it has nothing for this
     * task, RUNG_EUNAVAILABLE: the library is missing; both with a message, and neither is a
     * failure.
     */
    int32_t (*prepare)(void *self, struct rung_call *, const struct rung_session *,
                       const int64_t *dims, struct rung_baseline_case *out);
    /*
     * [worker, started] Either of the next two, the other NULL. enqueue: queues the whole
     * computation once on the device's native stream and returns without waiting; it allocates
     * nothing and may be called while a graph is captured. addresses: one a task tensor. The core
     * owns the buffers, the rotation and the events, just as for a candidate.
     */
    int32_t (*enqueue)(void *self, struct rung_call *, const struct rung_baseline_case *,
                       const uint64_t *addresses, uint64_t scratch);
    /* [worker, started] measure: one block of the recipe, in another process. The device is idle
     * and stays so. */
    int32_t (*measure)(void *self, struct rung_call *, const struct rung_baseline_case *,
                       const struct rung_timing_recipe *, struct rung_timing *out);
    void (*release)(void *self, struct rung_baseline_case *);
};

#ifdef __cplusplus
}
#endif
#endif
