/*
 * A started device "cuda" with some kernels, in PTX that the driver compiles (or its double, in C).
 */
#ifndef TESTS_DEVICE_CUDA_GPU_H
#define TESTS_DEVICE_CUDA_GPU_H

#include "device/cuda/fake.h"
#include "support/support.h"

#include "plugin/instance.h"
#include "plugin/registry.h"
#include <rung/device.h>

enum { TWICE, POKE, SPIN, STOP, SHARED_USER, COUNT, READ_CONST, ANSWER, WIDE, N_KERNELS };
extern const struct rung_kernel gpu_kernels[N_KERNELS];

struct gpu {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_diags diags;
    struct rung_instance *instance;
    const struct rung_device_ops *ops;
    struct rung_device_info info;
    struct rung_module *module;
};

#define SELF(g) ((g)->instance->self)
#define OK(g, expression)                                                                          \
    do {                                                                                           \
        if ((expression) != RUNG_OK)                                                               \
            fail_msg("%s: %s", #expression, (g)->error.message);                                   \
    } while (0)

/* Without the kernels; the status of start. */
int32_t gpu_start(struct gpu *g);
void gpu_end(struct gpu *g);
/* Started with the kernels loaded, or the test is skipped. */
void gpu_need(struct gpu *g);
struct rung_buffer *gpu_room(struct gpu *g, uint64_t bytes);
/* One thread of a kernel that stores one word at y; returns the word. */
uint32_t gpu_word(struct gpu *g, int kernel, struct rung_buffer *y);
/* `twice` over nothing, as a cluster or cooperative launch. */
void gpu_launch_with(struct gpu *g, uint32_t grid, uint32_t cluster, uint32_t flags,
                     struct rung_fault *fault);
void gpu_launch(struct gpu *g, int kernel, uint32_t grid, uint32_t block, uint32_t shared,
                const void *block_of, struct rung_fault *fault);
/* The stand-in's own record, or NULL on a real driver; whether the driver has a function. */
const struct fake_seen *gpu_seen(void);
int gpu_driver_has(const char *symbol);
struct rung_fault gpu_no_fault(void);
/* Ends a recording that must be right. */
struct rung_graph *gpu_captured(struct gpu *g);

#endif
