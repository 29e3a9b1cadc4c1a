/*
 * A task for the `ops` reference put together in a test, with its inputs, and the reference's
 * answer. One thread; failures to set up end the test.
 */
#ifndef TESTS_VERIFY_PROBLEM_H
#define TESTS_VERIFY_PROBLEM_H

#include "support/support.h"

#include "base/arena.h"
#include "plugin/instance.h"
#include "plugin/registry.h"
#include <rung/reference.h>

struct problem {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_instance *instance;
    struct rung_task task;
    struct rung_dim dims[8];
    int64_t values[8];
    struct rung_param params[8];
    struct rung_tensor_spec tensors[8];
    struct rung_tensor_view views[8];
    struct rung_shape_case bench;
    struct rung_region regions[8];
    int with_regions; /* evaluate obeys `regions` */
    struct rung_reference_output outputs[8];
    uint32_t n_outputs;
};

/* Threads of the reference in problems opened from now on; 1 at first. */
extern int64_t problem_threads;

/* A problem without dims, parameters and tensors. Free with problem_close. */
void problem_open(struct problem *p, const char *graph, uint32_t precision);
void problem_close(struct problem *p);
void problem_dim(struct problem *p, const char *name, int64_t value);
void problem_f64(struct problem *p, const char *name, double value);
void problem_i64(struct problem *p, const char *name, int64_t value);
/* shape: extents separated by ','. data (borrowed) belongs to inputs; NULL for outputs. */
void problem_input(struct problem *p, const char *name, uint32_t dtype, const char *shape,
                   const void *data);
void problem_output(struct problem *p, const char *name, uint32_t dtype, const char *shape);
/* Status of check, evaluate and work; the message is in p->error. */
int32_t problem_check(struct problem *p);
int32_t problem_evaluate(struct problem *p);
int32_t problem_work(struct problem *p, struct rung_work *out);

/* Random standard normal float32 data on the heap. */
float *test_normal(uint64_t seed, int64_t n);

/* One float32 matrix x[rows, cols] to y of shape `out`: opens, evaluates, ends the test on errors.
 */
void problem_matrix(struct problem *p, const char *graph, int64_t rows, int64_t cols,
                    const float *x, const char *out);

/* Deterministic float32 data: kinds as in rung/session.h. On the heap. */
float *test_data(const char *kind, uint64_t seed, int64_t rows, int64_t cols);

#endif
