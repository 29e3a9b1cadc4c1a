/* Reductions and scans. */
#include "gpu.h"

#include <string.h>

/* How the kernels are called, and what they take beside the row. */
static const struct row_kernel {
    ops_reduce_fn reduce;
    ops_scan_fn scan;
    const char *part, *whole; /* whole NULL: a row is one block's */
    double sign;
} row_kernels[] = {
    {ops_row_sum, NULL, "ops_gpu_part<ops_gpu_sum>", "ops_gpu_whole<ops_gpu_sum>", 1},
    {ops_row_mean, NULL, "ops_gpu_part<ops_gpu_mean>", "ops_gpu_whole<ops_gpu_mean>", 1},
    {ops_row_max, NULL, "ops_gpu_part<ops_gpu_extreme>", "ops_gpu_whole<ops_gpu_extreme>", 1},
    {ops_row_min, NULL, "ops_gpu_part<ops_gpu_extreme>", "ops_gpu_whole<ops_gpu_extreme>", -1},
    {ops_row_prod, NULL, "ops_gpu_part<ops_gpu_prod>", "ops_gpu_whole<ops_gpu_prod>", 1},
    {ops_row_norm, NULL, "ops_gpu_part<ops_gpu_norm>", "ops_gpu_whole<ops_gpu_norm>", 1},
    {ops_row_centre, NULL, "ops_gpu_moments<0>", NULL, 1},
    {ops_row_var, NULL, "ops_gpu_moments<1>", NULL, 1},
    {ops_row_argmax, NULL, "ops_gpu_arg", NULL, 1},
    {ops_row_argmin, NULL, "ops_gpu_arg", NULL, -1},
    {ops_row_logsumexp, NULL, "ops_gpu_logsumexp", NULL, 1},
    {NULL, ops_row_softmax, "ops_gpu_softmax<0>", NULL, 1},
    {NULL, ops_row_softmax_fused, "ops_gpu_softmax<1>", NULL, 1},
    {NULL, ops_row_log_softmax, "ops_gpu_softmax<2>", NULL, 1},
    {NULL, ops_row_cumsum, "ops_gpu_scan<ops_gpu_cumsum>", NULL, 1},
    {NULL, ops_row_cumprod, "ops_gpu_scan<ops_gpu_cumprod>", NULL, 1},
};

static const struct row_kernel *kernel_of(const struct ops_rows_attr *attr)
{
    for (uint32_t i = 0; i < sizeof row_kernels / sizeof *row_kernels; i++)
        if (row_kernels[i].reduce == attr->reduce && row_kernels[i].scan == attr->scan)
            return &row_kernels[i];
    return NULL;
}

/* Kept and reduced dimensions of a, as in ../rows.c. */
static void split(const struct ops_value *a, uint32_t axes, struct ops_gpu_rows_args *args)
{
    int64_t strides[RUNG_MAX_DIMS];
    ops_strides(a->n_dims, a->dims, strides);
    args->rows = args->length = 1;
    for (uint32_t d = 0; d < a->n_dims; d++) {
        if (axes >> d & 1) {
            args->reduced[args->n_reduced] = a->dims[d];
            args->reduced_step[args->n_reduced++] = strides[d];
            args->length *= (uint64_t)a->dims[d];
        } else {
            args->kept[args->n_kept] = a->dims[d];
            args->kept_step[args->n_kept++] = strides[d];
            args->rows *= (uint64_t)a->dims[d];
        }
    }
    args->contiguous = axes >> (a->n_dims - args->n_reduced) == (1u << args->n_reduced) - 1;
}

/* Long rows are cut up where there are too few of them for all multiprocessors. */
static uint64_t segments_of(const struct ops_gpu *g, const struct ops_gpu_rows_args *args)
{
    enum { LEAST = 32768 /* elements that are worth a block */ };
    uint64_t most = args->length / LEAST, wanted = 8 * (uint64_t)g->info->sm_count / args->rows;
    uint64_t segments = wanted < most ? wanted : most;
    return segments > 1 ? segments : 1;
}

static uint32_t threads_of(uint64_t length)
{
    return length <= 64 ? 32 : length <= 1024 ? 128 : OPS_GPU_THREADS;
}

static int32_t in_segments(struct ops_gpu *g, const struct row_kernel *k,
                           struct ops_gpu_rows_args *args)
{
    enum { STATE = 64 /* bytes of the largest state, at most */ };
    struct rung_buffer *states = NULL;
    args->segments = segments_of(g, args);
    int32_t status = RUNG_OK;
    if (args->segments > 1)
        status = ops_gpu_alloc(g, args->rows * args->segments * STATE, &states);
    args->states = ops_gpu_address(g, states);
    if (!status)
        status = ops_gpu_launch(g, k->part, args->rows * args->segments, threads_of(args->length),
                                args, sizeof *args);
    if (!status && args->segments > 1)
        status =
            ops_gpu_launch(g, k->whole, args->rows, threads_of(args->segments), args, sizeof *args);
    ops_gpu_free(g, states);
    return status;
}

int32_t ops_gpu_rows(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_rows_attr *attr = v->attr;
    const struct row_kernel *k = kernel_of(attr);
    struct ops_gpu_rows_args args = {.ar = g->ev->arith,
                                     .in = ops_gpu_tensor_of(g, v->in[0]->gpu),
                                     .out = ops_gpu_tensor_of(g, v->gpu),
                                     .segments = 1,
                                     .unbiased = attr->opt.unbiased != 0,
                                     .sign = k ? k->sign : 0};
    if (!k)
        return ops_gpu_cannot(g, "a reduction that is not there");
    split(v->in[0], attr->axes, &args);
    if (k->whole)
        return in_segments(g, k, &args);
    return ops_gpu_launch(g, k->part, args.rows, threads_of(args.length), &args, sizeof args);
}
