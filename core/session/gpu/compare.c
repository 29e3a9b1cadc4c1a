/* Comparing an output with its reference on the device: the blocks' parts become one result. */
#include "session/gpu/device.h"

#include "base/status.h"
#include "session/conclude.h"
#include "session/convert.h"

#include <math.h>
#include <stdlib.h>

/* Squares of float64 beyond 2^512 overflow: then the sums are made of numbers this much smaller. */
static const double SMALLER = 0x1p-560;

static void keep(double x, uint64_t at, double *most, uint64_t *most_at)
{
    if (x > *most || (x == *most && at < *most_at)) {
        *most = x;
        *most_at = at;
    }
}

static long double value_of(const struct session_gpu_sum *sum)
{
    return (long double)sum->sum - sum->lost;
}

/* Adds one part; the counts of bad elements go into c, as compare.c has them. */
static void join(struct rung_comparison *c, struct session_sums *sums,
                 const struct session_gpu_part *p)
{
    sums->error2 += value_of(&p->error2);
    sums->got_want += value_of(&p->got_want);
    sums->got2 += value_of(&p->got2);
    sums->want2 += value_of(&p->want2);
    sums->peak = fmax(sums->peak, p->peak);
    sums->n_finite += p->n_finite;
    sums->n_poison += p->n_poison;
    c->worst = fmax(c->worst, p->worst);
    keep(p->max_abs, p->max_abs_at, &c->max_abs, &c->max_abs_at);
    keep(p->max_rel, p->max_rel_at, &c->max_rel, &c->max_rel_at);
    c->first_bad = p->first_bad < c->first_bad ? p->first_bad : c->first_bad;
    c->n_bad += p->n_bad;
    c->n_nan += p->n_nan;
    c->n_inf += p->n_inf;
    c->n_missing += p->n_missing;
}

/* One pass over the output with sums at some scale. */
static int32_t pass(struct session_gpu *gpu, struct rung_call *call,
                    const struct session_gpu_compare_args *args, struct rung_comparison *c,
                    struct session_sums *sums)
{
    uint32_t blocks = gpu_blocks(gpu, args->n / 2 + args->n % 2);
    struct session_gpu_part *parts = malloc(blocks * sizeof *parts);
    if (!parts)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory", "memory is out");
    int32_t status = gpu_launch(gpu, call, GPU_COMPARE, blocks, 1, args, sizeof *args);
    if (status == RUNG_OK)
        status = gpu_read(gpu, call, gpu->parts, 0, parts, blocks * sizeof *parts);
    *sums = (struct session_sums){0};
    for (uint32_t i = 0; i < blocks && status == RUNG_OK; i++)
        join(c, sums, &parts[i]);
    free(parts);
    sums->error2 /= (long double)args->scale_error * args->scale_error;
    sums->got_want /= (long double)args->scale_got * args->scale_want;
    sums->got2 /= (long double)args->scale_got * args->scale_got;
    sums->want2 /= (long double)args->scale_want * args->scale_want;
    return status;
}

/* The error that compare.c grants element `got` of a dtype. */
static double allowed_of(uint32_t dtype, double got, double want, double bound)
{
    if (!isfinite(want))
        return 0;
    if (!isfinite(got) || isinf(bound))
        return bound;
    double low = want - bound, high = want + bound;
    if (rung_dtype_is_float(dtype)) {
        low = rung_convert_round(dtype, low);
        high = rung_convert_round(dtype, high);
    }
    return got > want ? high - want : want - low;
}

/* Reads the first bad element again, to say what is wrong with it. */
static int32_t describe_first(struct session_gpu *gpu, struct rung_call *call,
                              const struct session_gpu_range *range, struct rung_buffer *value,
                              struct rung_buffer *bound, struct rung_comparison *c)
{
    uint64_t size = rung_dtype_bits(range->dtype) / 8;
    uint8_t bytes[8];
    double limit;
    if (!c->n_bad)
        return RUNG_OK;
    int32_t status =
        gpu_read(gpu, call, range->buffer, range->offset + c->first_bad * size, bytes, size);
    if (status == RUNG_OK)
        status = gpu_read(gpu, call, value, c->first_bad * 8, &c->first_want, 8);
    if (status == RUNG_OK)
        status = gpu_read(gpu, call, bound, c->first_bad * 8, &limit, 8);
    if (status != RUNG_OK)
        return status;
    rung_convert_load(range->dtype, bytes, 1, &c->first_got);
    c->first_bound = allowed_of(range->dtype, c->first_got, c->first_want, limit);
    return RUNG_OK;
}

static int32_t write_poison(struct session_gpu *gpu, struct rung_call *call, const uint8_t *poison,
                            uint64_t bytes, struct session_gpu_compare_args *args)
{
    if (!poison)
        return RUNG_OK;
    if (!bytes || bytes > GPU_POISON_BYTES)
        return rung_fail(call->error, RUNG_EINVAL, "session.gpu", "a poison of %llu bytes",
                         (unsigned long long)bytes);
    args->poison = gpu_address(gpu, gpu->poison, 0);
    args->poison_bytes = bytes;
    return gpu_write(gpu, call, gpu->poison, poison, bytes);
}

/* All passes that are needed; *c starts anew in each. */
static int32_t passes(struct session_gpu *gpu, struct rung_call *call,
                      struct session_gpu_compare_args *args, struct rung_comparison *c,
                      struct session_sums *sums)
{
    const struct rung_comparison start = *c;
    int32_t status = pass(gpu, call, args, c, sums);
    if (status != RUNG_OK || isfinite(sums->error2 + sums->got_want + sums->got2 + sums->want2))
        return status;
    args->scale_error = isfinite(sums->error2) ? 1 : SMALLER;
    args->scale_got = isfinite(sums->got2) ? 1 : SMALLER;
    args->scale_want = isfinite(sums->want2) ? 1 : SMALLER;
    *c = start;
    return pass(gpu, call, args, c, sums);
}

int32_t session_gpu_compare(struct session_gpu *gpu, struct rung_call *call,
                            const struct session_gpu_range *range, const uint8_t *poison,
                            uint64_t poison_bytes, uint32_t precision, struct rung_buffer *value,
                            struct rung_buffer *bound, struct rung_comparison *out)
{
    struct session_sums sums = {0};
    struct rung_comparison c = {.struct_size = out->struct_size,
                                .tensor = out->tensor,
                                .n = range->n,
                                .first_bad = range->n,
                                .max_abs_at = range->n,
                                .max_rel_at = range->n};
    struct session_gpu_compare_args args = {.range = gpu_address(gpu, range->buffer, range->offset),
                                            .value = gpu_address(gpu, value, 0),
                                            .bound = gpu_address(gpu, bound, 0),
                                            .parts = gpu_address(gpu, gpu->parts, 0),
                                            .n = range->n,
                                            .scale_error = 1,
                                            .scale_got = 1,
                                            .scale_want = 1,
                                            .dtype = range->dtype};
    int32_t status = write_poison(gpu, call, poison, poison_bytes, &args);
    if (status == RUNG_OK && range->n)
        status = passes(gpu, call, &args, &c, &sums);
    if (status == RUNG_OK)
        status = describe_first(gpu, call, range, value, bound, &c);
    if (status != RUNG_OK)
        return status;
    c.max_abs_at = c.max_abs > 0 ? c.max_abs_at : 0;
    c.max_rel_at = c.max_rel > 0 ? c.max_rel_at : 0;
    c.worst_half = c.worst / session_half_over(precision);
    session_conclude(&c, &sums, range->dtype);
    *out = c;
    return RUNG_OK;
}
