/*
 * A task at one shape, and the GPU that it runs on, as baselines of libraries see them: shapes in
 * numbers, the graph as calls, and the choice among the ways that a library offers by trying them.
 */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include "graph.h"

#include <rung/baseline.h>
#include <rung/host.h>

struct bench_tensor {
    uint32_t dtype, role, n_dims, reserved;
    int64_t dims[RUNG_MAX_DIMS];
    uint64_t elements, bytes, alignment;
};

struct bench_problem {
    const struct rung_task *task;
    struct bench_tensor tensors[BENCH_MAX_NAMES];
    struct bench_graph graph;
    int output; /* index of the only output tensor */
};

/*
 * Reads the session's task at some dims. RUNG_EUNSUPPORTED: the graph can't be read, or there is
 * not exactly one output and no inout.
 */
int32_t bench_problem_read(struct rung_call *call, const struct rung_session *session,
                           const int64_t *dims, struct bench_problem *out);

/* RUNG_EUNSUPPORTED with the library's name and words of the caller's. */
int32_t bench_unsupported(struct rung_call *call, const char *library, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The device as a library needs it. */
struct bench_gpu {
    const struct rung_host *host;
    const struct rung_device_ops *ops;
    void *self;
    void *stream; /* CUstream */
};

/*
 * The worker's GPU, its context current on this thread. RUNG_EUNAVAILABLE where the device is none
 * that shows its handles.
 */
int32_t bench_gpu_open(const struct rung_host *host, struct rung_call *call, const char *library,
                       struct bench_gpu *out);

/* The ways of computing one problem that are tried. */
struct bench_ways {
    uint32_t n;
    uint32_t reserved;
    void *ctx;
    /* Queues way i as rung_baseline_ops.enqueue does. Not RUNG_OK: it doesn't work here. */
    int32_t (*enqueue)(void *ctx, struct rung_call *, uint32_t way, const uint64_t *addresses,
                       uint64_t scratch);
};

/*
 * Runs every way on tensors of its own with random values and gives the fastest (median of five
 * after two that don't count, cold caches where the device can), with how many worked. One way
 * alone is tried too, so that a library that fails says so here. The buffers are freed.
 * RUNG_ENOMEM: no room for them. RUNG_EUNSUPPORTED: none works; the message is the last one's.
 */
int32_t bench_pick(const struct bench_gpu *gpu, struct rung_call *call,
                   const struct bench_problem *problem, uint64_t scratch_bytes,
                   const struct bench_ways *ways, uint32_t *best, uint32_t *n_good);

#endif
