#include "problem.h"

#include "library.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5, DISCARDED = 2, PATTERN_BYTES = 65536 };

int32_t bench_unsupported(struct rung_call *call, const char *library, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return bench_fail(call->error, RUNG_EUNSUPPORTED, "baseline.unsupported", "%s: %s", library,
                      text);
}

static int32_t read_tensor(struct rung_call *call, const struct rung_session *session, uint32_t i,
                           const int64_t *dims, struct bench_tensor *out)
{
    const struct rung_tensor_spec *spec = &session->task->tensors[i];
    *out = (struct bench_tensor){.dtype = spec->dtype,
                                 .role = spec->role,
                                 .n_dims = spec->n_dims,
                                 .elements = 1,
                                 .alignment = spec->alignment ? spec->alignment : 256};
    if (session->shape(session, i, dims, out->dims))
        return bench_unsupported(call, "task", "no shape for %s", spec->name);
    for (uint32_t d = 0; d < out->n_dims; d++)
        if (out->dims[d] < 1 ||
            __builtin_mul_overflow(out->elements, (uint64_t)out->dims[d], &out->elements))
            return bench_unsupported(call, "task", "%s is too large", spec->name);
    out->bytes = out->elements * rung_dtype_bits(out->dtype) / 8;
    return RUNG_OK;
}

int32_t bench_problem_read(struct rung_call *call, const struct rung_session *session,
                           const int64_t *dims, struct bench_problem *out)
{
    const struct rung_task *task = session->task;
    const struct rung_tensor_spec *strided = rung_task_strided(task);
    const char *wrong = bench_graph_read(task, dims, &out->graph);
    out->task = task;
    out->output = -1;
    if (strided)
        return bench_unsupported(call, "task", "%s has strides; only dense tensors are taken",
                                 strided->name);
    if (wrong)
        return bench_unsupported(call, "graph", "%s", wrong);
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        int32_t status = read_tensor(call, session, i, dims, &out->tensors[i]);
        if (status)
            return status;
        uint32_t role = task->tensors[i].role;
        if (role == RUNG_ROLE_INOUT || (role == RUNG_ROLE_OUTPUT && out->output >= 0))
            return bench_unsupported(call, "task", "it has not exactly one output");
        if (role == RUNG_ROLE_OUTPUT)
            out->output = (int)i;
    }
    return out->output >= 0 ? RUNG_OK : bench_unsupported(call, "task", "it has no output");
}

int32_t bench_gpu_open(const struct rung_host *host, struct rung_call *call, const char *library,
                       struct bench_gpu *out)
{
    const struct rung_host_device *service = host->get_extension(host, RUNG_HOST_DEVICE);
    *out = (struct bench_gpu){.host = host};
    if (service)
        out->ops = service->ops(host, &out->self);
    if (!out->ops || !RUNG_HAS(out->ops, native) || !out->ops->native ||
        !out->ops->native(out->self, RUNG_NATIVE_CONTEXT))
        return bench_fail(call->error, RUNG_EUNAVAILABLE, "baseline.no_gpu",
                          "%s needs a GPU: run with device = \"cuda\"", library);
    out->stream = (void *)(uintptr_t)out->ops->native(out->self, RUNG_NATIVE_STREAM);
    return RUNG_OK;
}

/* ---- Trying ---- */

struct trial {
    const struct bench_gpu *gpu;
    struct rung_call *call;
    const struct bench_problem *problem;
    struct rung_buffer *buffers[BENCH_MAX_NAMES + 1]; /* the last: scratch */
    uint64_t addresses[BENCH_MAX_NAMES];
    uint64_t scratch;
    struct rung_device_event *begin, *end;
};

static uint16_t half_of(double v)
{
    uint16_t sign = v < 0 ? 0x8000 : 0;
    double a = fabs(v);
    int e;
    double m = frexp(a, &e); /* a = m 2^e, m in [1/2, 1) */
    if (a == 0 || e < -13)
        return sign;
    return (uint16_t)(sign | (uint16_t)((e + 14) << 10) | (uint16_t)((m * 2 - 1) * 1024));
}

static uint16_t brain_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* About normal values: power, and with it the clock, depends on what is computed with. */
static void make_pattern(uint32_t dtype, unsigned char *out)
{
    uint64_t state = 88172645463325252u;
    uint32_t width = rung_dtype_bits(dtype) / 8;
    for (uint32_t at = 0; at + width <= PATTERN_BYTES; at += width) {
        double v = -6;
        for (int i = 0; i < 12; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            v += (double)(state >> 11) * 0x1p-53;
        }
        float f = (float)v;
        uint16_t h = dtype == RUNG_F16 ? half_of(v) : brain_of(f);
        const void *from = dtype == RUNG_F64 ? (const void *)&v : (const void *)&f;
        if (dtype == RUNG_F16 || dtype == RUNG_BF16)
            from = &h;
        if (dtype >= RUNG_I8)
            memset(out + at, state >> 60 & 1, 1); /* small whole numbers, little-endian */
        else
            memcpy(out + at, from, width);
    }
}

static void trial_free(struct trial *t)
{
    const struct rung_device_ops *ops = t->gpu->ops;
    for (uint32_t i = 0; i <= BENCH_MAX_NAMES; i++)
        if (t->buffers[i])
            ops->free(t->gpu->self, t->buffers[i]);
    if (t->begin)
        ops->event_free(t->gpu->self, t->begin);
    if (t->end)
        ops->event_free(t->gpu->self, t->end);
}

static int32_t new_buffer(struct trial *t, uint32_t i, uint64_t bytes, const char *label,
                          uint64_t *address)
{
    const struct rung_device_ops *ops = t->gpu->ops;
    int32_t status = ops->alloc(t->gpu->self, t->call, bytes, 256, label, &t->buffers[i]);
    if (status == RUNG_OK)
        *address = ops->address(t->gpu->self, t->buffers[i]);
    return status;
}

static int32_t trial_new(struct trial *t, uint64_t scratch_bytes)
{
    const struct rung_device_ops *ops = t->gpu->ops;
    const struct bench_problem *p = t->problem;
    unsigned char *pattern = calloc(1, PATTERN_BYTES);
    int32_t status =
        pattern ? RUNG_OK
                : bench_fail(t->call->error, RUNG_ENOMEM, "baseline.memory", "out of memory");
    for (uint32_t i = 0; i < p->task->n_tensors && !status; i++) {
        status = new_buffer(t, i, p->tensors[i].bytes, "a baseline's trial", &t->addresses[i]);
        if (status)
            break;
        make_pattern(p->tensors[i].dtype, pattern);
        status = ops->fill(t->gpu->self, t->call, t->buffers[i], 0, p->tensors[i].bytes, pattern,
                           PATTERN_BYTES, 1);
    }
    free(pattern);
    if (!status && scratch_bytes)
        status = new_buffer(t, BENCH_MAX_NAMES, scratch_bytes, "a baseline's scratch", &t->scratch);
    if (!status && ops->event_new) {
        status = ops->event_new(t->gpu->self, t->call, &t->begin);
        if (!status)
            status = ops->event_new(t->gpu->self, t->call, &t->end);
    }
    return status;
}

static int32_t one_run(struct trial *t, const struct bench_ways *ways, uint32_t way, double *ns)
{
    const struct rung_device_ops *ops = t->gpu->ops;
    struct rung_fault fault = {.struct_size = sizeof fault};
    int32_t status = RUNG_OK;
    *ns = 0;
    if (t->begin && RUNG_HAS(ops, flush) && ops->flush)
        status = ops->flush(t->gpu->self, t->call);
    if (!status && t->begin)
        status = ops->event_record(t->gpu->self, t->call, t->begin);
    if (!status)
        status = ways->enqueue(ways->ctx, t->call, way, t->addresses, t->scratch);
    if (!status && t->begin)
        status = ops->event_record(t->gpu->self, t->call, t->end);
    int32_t ended = ops->sync(t->gpu->self, t->call, &fault);
    if (!status)
        status = ended;
    if (!status && fault.code[0])
        status = bench_fail(t->call->error, RUNG_EUNAVAILABLE, "baseline.fault", "%s: %s",
                            fault.code, fault.message);
    if (!status && t->begin)
        status = ops->event_elapsed(t->gpu->self, t->call, t->begin, t->end, ns);
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int32_t median_run(struct trial *t, const struct bench_ways *ways, uint32_t way, double *ns)
{
    double times[TRIES] = {0}, ignored;
    int32_t status = RUNG_OK;
    for (int i = 0; i < DISCARDED && !status; i++)
        status = one_run(t, ways, way, &ignored);
    for (int i = 0; i < TRIES && !status; i++)
        status = one_run(t, ways, way, &times[i]);
    qsort(times, TRIES, sizeof *times, ascending);
    *ns = times[TRIES / 2];
    return status;
}

/* A way that fails is passed over; a device that is gone, or a call that must end, is not. */
static int must_end(int32_t status)
{
    return status == RUNG_ECANCELLED || status == RUNG_ETIMEOUT || status == RUNG_EUNAVAILABLE;
}

int32_t bench_pick(const struct bench_gpu *gpu, struct rung_call *call,
                   const struct bench_problem *problem, uint64_t scratch_bytes,
                   const struct bench_ways *ways, uint32_t *best, uint32_t *n_good)
{
    struct trial t = {.gpu = gpu, .call = call, .problem = problem};
    double least = 0, ns;
    int32_t status = trial_new(&t, scratch_bytes), last = RUNG_OK;
    *n_good = 0;
    for (uint32_t way = 0; way < ways->n && !status; way++) {
        last = median_run(&t, ways, way, &ns);
        if (must_end(last))
            status = last;
        if (last)
            continue;
        if (!*n_good || ns < least) {
            *best = way;
            least = ns;
        }
        ++*n_good;
    }
    trial_free(&t);
    if (status)
        return status;
    if (*n_good) {
        *call->error = (struct rung_error){.struct_size = call->error->struct_size};
        return RUNG_OK;
    }
    if (!last)
        return bench_unsupported(call, "baseline", "the library offers nothing");
    call->error->code = RUNG_EUNSUPPORTED;
    return RUNG_EUNSUPPORTED;
}
