/*
 * A started device with the compiler beside it, as an executor has them: the ptx interpreter, or
 * what RUNG_TEST_DEVICE names. Kernels are kept in a folder of the test's own. One thread; failures
 * to set up end the test.
 */
#ifndef TESTS_SESSION_RIG_H
#define TESTS_SESSION_RIG_H

#include "support/support.h"

#include "plugin/instance.h"
#include "session/gpu/gpu.h"
#include "worker/device_service.h"

struct rig {
    struct rung_registry *registry;
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_instance *device, *compiler;
    struct rung_device_info info;
    struct rung_kernels kernels;
    char *cache; /* folder of compiled kernels, under XDG_CACHE_HOME */
};

/* false, with a message, where there is no NVRTC: the test is to be skipped. */
bool rig_open(struct rig *rig);
void rig_close(struct rig *rig);
/* An instance of this tree's plugin with the services of an executor; options as JSON. */
struct rung_instance *rig_make(struct rig *rig, const char *kind, const char *name,
                               const char *options);
struct session_gpu *rig_session(struct rig *rig);
/* Ends the test with the call's message unless status is RUNG_OK. */
void rig_good(struct rig *rig, int32_t status);

/* A buffer with these bytes (from NULL: undefined ones), and back. */
struct rung_buffer *rig_buffer(struct rig *rig, const void *from, uint64_t bytes);
void rig_read(struct rig *rig, struct rung_buffer *buffer, void *to, uint64_t bytes);
void rig_free(struct rig *rig, struct rung_buffer *buffer);
/* Waits for all that is queued; monotonic milliseconds afterwards. */
double rig_ms(struct rig *rig);

#endif
