/*
 * A device whose kernels are C functions, and a reference whose results the test sets: enough to
 * try what a session promises. One test process, one thread.
 */
#ifndef TESTS_FAKE_DEVICE_H
#define TESTS_FAKE_DEVICE_H

#include "plugin/instance.h"
#include <rung/device.h>
#include <rung/reference.h>

/* Arguments of a fake kernel: two addresses and a count; more are left alone. */
struct fake_args {
    float *x, *y;
    int32_t n;
    int32_t pad;
    float *t;
};

typedef void (*fake_kernel)(const struct fake_args *args, const struct rung_launch *launch,
                            struct rung_fault *fault);

struct fake_config {
    uint32_t flags; /* rung_device_flag */
    uint64_t memory;
    const char *load_fault; /* NULL or the code that load answers */
    struct {
        const char *symbol;
        fake_kernel run;
    } kernels[16];
    /* The module's one variable, 16 floats of zero at load; NULL: none. */
    const char *variable;
    /* What the reference answers; NULL: 2 x + 1 of the first input, bound 1e-6 |y|. */
    const double *value, *bound;
    int ignore_regions, no_regions; /* of the reference */
    /* What evaluate_device answers where it can't; 0: it can. */
    int32_t device_refuses;
    /* The timed device: a launch takes so long, and how often condition() reports heat. */
    double launch_ns;
    int no_capture; /* what is captured can't be replayed */
};

struct fake_counts {
    int buffers, modules, events; /* live */
    int regions;                  /* evaluations of a box */
    int allocs, launches, fills, evaluations, syncs, resets, copies;
    uint64_t unwritten_fills;
    uint64_t flushed;          /* bytes filled with one byte of 0 */
    const void *reference_saw; /* data of the first input at the last evaluation */
    int graphs;                /* live */
    int captures, replays, flushes, device_evaluations;
};

extern struct fake_config fake_config;
extern struct fake_counts fake_counts;

enum { FAKE_VARIABLE = 16 };
/* The variable's memory, as kernels see it. */
extern float fake_variable[FAKE_VARIABLE];
/* The last launch's cluster and flags. */
extern struct rung_launch fake_last_launch;

/* What events of the timed device read, in ns; launches advance it, and kernels may. */
extern double fake_clock;
/* Memory of a buffer. */
char *fake_memory(struct rung_buffer *buffer);

/* plain: a device without reset, symbol and copy. timed: one with graphs, a flush and the clock. */
extern const struct rung_loaded fake_device_loaded, fake_plain_loaded, fake_timed_loaded,
    fake_reference_loaded;

#endif
