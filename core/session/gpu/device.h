/*
 * What the files of session/gpu share: the loaded kernels and their scratch memory on the device.
 */
#ifndef SESSION_GPU_DEVICE_H
#define SESSION_GPU_DEVICE_H

#include "session/gpu/args.h"
#include "session/gpu/gpu.h"

enum gpu_kernel { GPU_DRAW, GPU_SAME, GPU_SAME_BYTES, GPU_COMPARE, GPU_KERNELS };
enum { GPU_POISON_BYTES = 8192 /* longest period of a poison pattern */ };

struct session_gpu {
    struct session_gpu_spec spec;
    const struct rung_artifact *artifact;
    struct rung_module *module;
    uint32_t max_blocks;         /* of a launch: a few waves */
    struct rung_buffer *differs; /* one counter */
    struct rung_buffer *parts;   /* max_blocks of struct session_gpu_part */
    struct rung_buffer *poison;  /* GPU_POISON_BYTES */
};

/* Blocks of SESSION_GPU_THREADS threads for so many items, at most gpu->max_blocks. */
uint32_t gpu_blocks(const struct session_gpu *gpu, uint64_t items);
/* Queues a kernel whose only parameter is the struct at args. Blocks: x, y. */
int32_t gpu_launch(struct session_gpu *gpu, struct rung_call *call, enum gpu_kernel kernel,
                   uint32_t blocks, uint32_t rows, const void *args, uint32_t bytes);
/* Guarded calls of the device; reads wait for all that is queued, and tell of its faults. */
uint64_t gpu_address(struct session_gpu *gpu, struct rung_buffer *buffer, uint64_t offset);
int32_t gpu_read(struct session_gpu *gpu, struct rung_call *call, struct rung_buffer *buffer,
                 uint64_t offset, void *to, uint64_t bytes);
int32_t gpu_write(struct session_gpu *gpu, struct rung_call *call, struct rung_buffer *buffer,
                  const void *from, uint64_t bytes);

#endif
