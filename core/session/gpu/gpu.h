/*
 * The session's own kernels, for devices whose memory the host can't read in place: inputs are
 * drawn, watched and outputs compared where they lie. Same results as the host's code (fill.c,
 * compare.c), bit for bit where bits are compared. One thread; everything is queued on the device's
 * stream or done on return, so it runs only between a candidate's launches.
 */
#ifndef SESSION_GPU_GPU_H
#define SESSION_GPU_GPU_H

#include "plugin/instance.h"
#include <rung/session.h>

struct session_gpu;

struct session_gpu_spec {
    struct rung_instance *device; /* started */
    const struct rung_device_info *info;
    /* As rung_host_device.load; what it gives outlives the session_gpu. */
    int32_t (*load)(void *ctx, struct rung_call *, const char *name, struct rung_text source,
                    const char *const *kernels, const struct rung_artifact **artifact,
                    struct rung_module **module);
    void *ctx;
};

/* Compiles and loads the kernels. *out is freed by session_gpu_free, before the device stops. */
int32_t session_gpu_new(const struct session_gpu_spec *spec, struct rung_call *call,
                        struct session_gpu **out);
void session_gpu_free(struct session_gpu *gpu);

/* A range of device memory that holds n elements of dtype, dense. */
struct session_gpu_range {
    struct rung_buffer *buffer;
    uint64_t offset; /* bytes, of the first element */
    uint32_t dtype;
    uint64_t n;
};

/*
 * Draws elements 0 .. n - 1 of a fill without bytes (fill->bytes must be NULL): the same bits as
 * rung_fill_draw(fill, dtype, seed, 0, n, last, ...).
 */
int32_t session_gpu_draw(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *to, const struct rung_fill *fill,
                         uint64_t seed, int64_t last);
/* Whether the range still holds what session_gpu_draw put there. */
int32_t session_gpu_same(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *range, const struct rung_fill *fill,
                         uint64_t seed, int64_t last, bool *same);
/*
 * What session_compare finds of a whole output: value and bound hold range->n doubles each; poison
 * is the pattern of period poison_bytes that the output held before, or NULL. out->tensor and
 * struct_size are the caller's. precision: rung_precision.
 */
int32_t session_gpu_compare(struct session_gpu *gpu, struct rung_call *call,
                            const struct session_gpu_range *range, const uint8_t *poison,
                            uint64_t poison_bytes, uint32_t precision, struct rung_buffer *value,
                            struct rung_buffer *bound, struct rung_comparison *out);

/*
 * Whether `count` ranges of `bytes` bytes of `a`, the i-th from a_offset + i * a_stride on, all
 * equal the one range of `b` from b_offset on. Offsets and sizes of any alignment; count 0 or bytes
 * 0: yes.
 */
int32_t session_gpu_same_bytes(struct session_gpu *gpu, struct rung_call *call,
                               struct rung_buffer *a, uint64_t a_offset, uint64_t a_stride,
                               uint64_t count, struct rung_buffer *b, uint64_t b_offset,
                               uint64_t bytes, bool *same);

#endif
