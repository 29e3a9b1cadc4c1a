/* Loading the session's kernels, drawing and watching tensors with them. */
#include "session/gpu/device.h"

#include "base/status.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(RUNG_F64 == 1 && RUNG_F32 == 2 && RUNG_F16 == 3 && RUNG_BF16 == 4 && RUNG_I8 == 16 &&
                   RUNG_U8 == 17 && RUNG_I32 == 18 && RUNG_I64 == 19 && RUNG_BOOL == 20,
               "prelude.cuh has these numbers");

/* The kernels' source, made from the .cu files beside this one. */
extern const char session_gpu_source[];
extern const unsigned long long session_gpu_source_size;

static const char *const kernels[GPU_KERNELS + 1] = {
    [GPU_DRAW] = "session_draw",
    [GPU_SAME] = "session_same",
    [GPU_SAME_BYTES] = "session_same_bytes",
    [GPU_COMPARE] = "session_compare",
};
static const uint32_t arg_bytes[GPU_KERNELS] = {
    [GPU_DRAW] = sizeof(struct session_gpu_draw_args),
    [GPU_SAME] = sizeof(struct session_gpu_draw_args),
    [GPU_SAME_BYTES] = sizeof(struct session_gpu_bytes_args),
    [GPU_COMPARE] = sizeof(struct session_gpu_compare_args),
};

/* ---- The device ---- */

#define OPS(gpu) ((const struct rung_device_ops *)(gpu)->spec.device->ops)
#define SELF(gpu) ((gpu)->spec.device->self)
#define CALL(status, gpu, op, call, ...)                                                           \
    RUNG_INVOKE(status, (gpu)->spec.device, struct rung_device_ops, op, call, __VA_ARGS__)

static void release(struct session_gpu *gpu, struct rung_buffer *buffer)
{
    struct rung_guard guard;
    struct rung_error err = rung_error_init();
    if (!buffer)
        return;
    rung_guard_enter(&guard, gpu->spec.device);
    OPS(gpu)->free(SELF(gpu), buffer);
    rung_guard_leave(&guard, RUNG_OK, &err);
}

uint64_t gpu_address(struct session_gpu *gpu, struct rung_buffer *buffer, uint64_t offset)
{
    struct rung_guard guard;
    struct rung_error err = rung_error_init();
    rung_guard_enter(&guard, gpu->spec.device);
    uint64_t address = OPS(gpu)->address(SELF(gpu), buffer);
    rung_guard_leave(&guard, RUNG_OK, &err);
    return address + offset;
}

static int32_t faulted(struct rung_call *call, int32_t status, const struct rung_fault *fault)
{
    if (status != RUNG_OK || !fault->code[0])
        return status;
    return rung_fail(call->error, RUNG_EINTERNAL, "session.gpu", "the session's own kernel: %s: %s",
                     fault->code, fault->message);
}

int32_t gpu_read(struct session_gpu *gpu, struct rung_call *call, struct rung_buffer *buffer,
                 uint64_t offset, void *to, uint64_t bytes)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    int32_t status;
    CALL(status, gpu, sync, call, &fault);
    status = faulted(call, status, &fault);
    if (status == RUNG_OK)
        CALL(status, gpu, read, call, buffer, offset, to, bytes);
    return status;
}

int32_t gpu_write(struct session_gpu *gpu, struct rung_call *call, struct rung_buffer *buffer,
                  const void *from, uint64_t bytes)
{
    int32_t status;
    CALL(status, gpu, write, call, buffer, 0, from, bytes);
    return status;
}

uint32_t gpu_blocks(const struct session_gpu *gpu, uint64_t items)
{
    uint64_t blocks = items / SESSION_GPU_THREADS + (items % SESSION_GPU_THREADS != 0);
    return blocks < gpu->max_blocks ? (uint32_t)blocks : gpu->max_blocks;
}

int32_t gpu_launch(struct session_gpu *gpu, struct rung_call *call, enum gpu_kernel kernel,
                   uint32_t blocks, uint32_t rows, const void *args, uint32_t bytes)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    const struct rung_launch launch = {.struct_size = sizeof launch,
                                       .module = gpu->module,
                                       .kernel = &gpu->artifact->kernels[kernel],
                                       .grid = {blocks, rows, 1},
                                       .block = {SESSION_GPU_THREADS, 1, 1},
                                       .params = args,
                                       .param_bytes = bytes};
    int32_t status;
    CALL(status, gpu, launch, call, &launch, &fault);
    return faulted(call, status, &fault);
}

/* ---- Life ---- */

static int32_t check_kernels(const struct session_gpu *gpu, struct rung_call *call)
{
    for (uint32_t i = 0; i < GPU_KERNELS; i++)
        if (i >= gpu->artifact->n_kernels || gpu->artifact->kernels[i].param_bytes != arg_bytes[i])
            return rung_fail(call->error, RUNG_EINTERNAL, "session.gpu",
                             "the compiler gave %s other parameters than it was asked for",
                             kernels[i]);
    return RUNG_OK;
}

static int32_t allocate(struct session_gpu *gpu, struct rung_call *call, uint64_t bytes,
                        struct rung_buffer **out)
{
    int32_t status;
    CALL(status, gpu, alloc, call, bytes, 256, "session", out);
    return status;
}

int32_t session_gpu_new(const struct session_gpu_spec *spec, struct rung_call *call,
                        struct session_gpu **out)
{
    struct session_gpu *gpu = calloc(1, sizeof *gpu);
    const struct rung_text source = {session_gpu_source, session_gpu_source_size};
    *out = NULL;
    if (!gpu)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory", "memory is out");
    gpu->spec = *spec;
    gpu->max_blocks = 16 * (spec->info->sm_count ? spec->info->sm_count : 16);
    int32_t status = spec->load(spec->ctx, call, "the session's kernels", source, kernels,
                                &gpu->artifact, &gpu->module);
    if (status == RUNG_OK)
        status = check_kernels(gpu, call);
    if (status == RUNG_OK)
        status = allocate(gpu, call, 16, &gpu->differs);
    if (status == RUNG_OK)
        status =
            allocate(gpu, call, gpu->max_blocks * sizeof(struct session_gpu_part), &gpu->parts);
    if (status == RUNG_OK)
        status = allocate(gpu, call, GPU_POISON_BYTES, &gpu->poison);
    if (status == RUNG_OK)
        *out = gpu;
    else
        session_gpu_free(gpu);
    return status;
}

void session_gpu_free(struct session_gpu *gpu)
{
    if (!gpu)
        return;
    release(gpu, gpu->poison);
    release(gpu, gpu->parts);
    release(gpu, gpu->differs);
    if (gpu->module) {
        struct rung_guard guard;
        struct rung_error err = rung_error_init();
        rung_guard_enter(&guard, gpu->spec.device);
        OPS(gpu)->unload(SELF(gpu), gpu->module);
        rung_guard_leave(&guard, RUNG_OK, &err);
    }
    free(gpu);
}

/* ---- Drawing ---- */

static int kind_of(const char *name)
{
    for (int k = 0; name && rung_fill_kinds[k]; k++)
        if (strcmp(name, rung_fill_kinds[k]) == 0)
            return k;
    return SESSION_KINDS;
}

static int32_t draw_args(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *to, const struct rung_fill *fill,
                         uint64_t seed, int64_t last, struct session_gpu_draw_args *out)
{
    *out = (struct session_gpu_draw_args){
        .range = gpu_address(gpu, to->buffer, to->offset),
        .differs = gpu_address(gpu, gpu->differs, 0),
        .n = to->n,
        .seed = seed,
        .stream = fill->tensor,
        .last = last > 0 ? (uint64_t)last : 1,
        .scale = fill->scale == 0 ? 1 : fill->scale,
        .shift = fill->shift,
        .kind = (uint32_t)kind_of(fill->kind),
        .dtype = to->dtype,
    };
    if (fill->bytes || out->kind == SESSION_KINDS || !rung_dtype_bits(to->dtype))
        return rung_fail(call->error, RUNG_EINVAL, "session.fill", "no fill that can be drawn");
    return RUNG_OK;
}

int32_t session_gpu_draw(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *to, const struct rung_fill *fill,
                         uint64_t seed, int64_t last)
{
    struct session_gpu_draw_args args;
    int32_t status = draw_args(gpu, call, to, fill, seed, last, &args);
    if (status != RUNG_OK || !to->n)
        return status;
    return gpu_launch(gpu, call, GPU_DRAW, gpu_blocks(gpu, to->n / 2 + to->n % 2), 1, &args,
                      sizeof args);
}

/* ---- Watching ---- */

static int32_t reset_counter(struct session_gpu *gpu, struct rung_call *call)
{
    static const uint64_t zero = 0;
    int32_t status;
    CALL(status, gpu, fill, call, gpu->differs, 0, sizeof zero, &zero, sizeof zero, 1);
    return status;
}

/* What a kernel counted since reset_counter. */
static int32_t read_counter(struct session_gpu *gpu, struct rung_call *call, bool *none)
{
    uint64_t count = 1;
    int32_t status = gpu_read(gpu, call, gpu->differs, 0, &count, sizeof count);
    *none = status == RUNG_OK && count == 0;
    return status;
}

int32_t session_gpu_same(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *range, const struct rung_fill *fill,
                         uint64_t seed, int64_t last, bool *same)
{
    struct session_gpu_draw_args args;
    int32_t status = draw_args(gpu, call, range, fill, seed, last, &args);
    *same = true;
    if (status != RUNG_OK || !range->n)
        return status;
    status = reset_counter(gpu, call);
    if (status == RUNG_OK)
        status = gpu_launch(gpu, call, GPU_SAME, gpu_blocks(gpu, range->n / 2 + range->n % 2), 1,
                            &args, sizeof args);
    return status == RUNG_OK ? read_counter(gpu, call, same) : status;
}

/* The widest access that all addresses and sizes allow. */
static uint32_t width_of(const struct session_gpu_bytes_args *args)
{
    uint64_t all = args->a | args->b | args->stride | args->bytes;
    return all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1;
}

int32_t session_gpu_same_bytes(struct session_gpu *gpu, struct rung_call *call,
                               struct rung_buffer *a, uint64_t a_offset, uint64_t a_stride,
                               uint64_t count, struct rung_buffer *b, uint64_t b_offset,
                               uint64_t bytes, bool *same)
{
    enum { ROWS = 32768 };
    *same = true;
    if (!count || !bytes)
        return RUNG_OK;
    int32_t status = reset_counter(gpu, call);
    for (uint64_t i = 0; i < count && status == RUNG_OK; i += ROWS) {
        struct session_gpu_bytes_args args = {
            .a = gpu_address(gpu, a, a_offset + i * a_stride),
            .b = gpu_address(gpu, b, b_offset),
            .stride = count > 1 ? a_stride : 0,
            .bytes = bytes,
            .differs = gpu_address(gpu, gpu->differs, 0),
        };
        args.width = width_of(&args);
        uint32_t rows = count - i < ROWS ? (uint32_t)(count - i) : ROWS;
        uint32_t blocks = gpu_blocks(gpu, bytes / args.width);
        if (rows > 1 && blocks > 16)
            blocks = 16;
        status = gpu_launch(gpu, call, GPU_SAME_BYTES, blocks, rows, &args, sizeof args);
    }
    return status == RUNG_OK ? read_counter(gpu, call, same) : status;
}
