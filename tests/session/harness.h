/*
 * A small task (x[n] of one dtype to y[n], scratch t on demand) with a session over the fake
 * device. Failures end the test.
 */
#ifndef TESTS_SESSION_HARNESS_H
#define TESTS_SESSION_HARNESS_H

#include "fake_device.h"
#include "session/session.h"

struct harness {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_dim dims[1];
    struct rung_tensor_spec tensors[2];
    struct rung_shape_case bench;
    int64_t default_dims[1];
    struct rung_task task;
    struct rung_kernel_param params[4];
    struct rung_kernel kernels[16];
    struct rung_artifact artifact;
    struct rung_device_info info;
    struct rung_instance *device, *reference;
    struct rung_open_session *open;
    const struct rung_session *session;
    struct rung_fault load_fault;
    uint64_t memory_limit;
    struct session_gpu *gpu;   /* of the sessions that are opened from now on */
    struct rung_symbol symbol; /* of the artifact, where fake_config.variable is set */
};

/* Sets everything but the session; fake_config must hold the kernels. dtype is that of y. */
void harness_init(struct harness *h, uint32_t y_dtype);
/* From now on the device is one without reset, symbol and copy. */
void harness_plain(struct harness *h);
/* From now on it is one with graphs, a flush of the caches and a clock of the test's. */
void harness_timed(struct harness *h);
/* Opens a session for a plan given as `//@` lines. */
void harness_open(struct harness *h, const char *plan);
/* One run of n elements; ends the test when the host fails. */
struct rung_run *harness_run(struct harness *h, int64_t n, uint64_t seed, uint32_t flags);
void harness_done(struct harness *h);
/* A group teardown and setup: no fake buffer, module or event may be left. */
int harness_clean(void **state);

#define ONE_LAUNCH(kernel) "//@ launch " kernel " grid=(1) block=(32) args=(x, y, n)\n"

#endif
