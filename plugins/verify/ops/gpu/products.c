/* Matrix products and convolutions. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

/* Whether errors of an operand are to be carried; those that are all 0 are dropped. */
static int32_t has_errors(struct ops_gpu *g, struct ops_gpu_data *data, int *errs)
{
    struct ops_gpu_any_args args = {.e = ops_gpu_address(g, data->e), .n = data->n};
    *errs = 0;
    if (!data->e && !g->dry)
        return RUNG_OK;
    int32_t status = ops_gpu_flag_start(g, &args.flag);
    if (!status)
        status = ops_gpu_each(g, "ops_gpu_any", data->n, &args, sizeof args);
    if (!status)
        status = ops_gpu_flag_read(g, errs);
    if (!status && !*errs) {
        ops_gpu_free(g, data->e);
        data->e = NULL;
    }
    return status;
}

/* Both forms are wanted in a dry walk: it does not know the errors. */
static int32_t multiply(struct ops_gpu *g, const char *const names[2], int errs,
                        struct ops_gpu_product_args *args)
{
    args->tiles_m = (args->m + OPS_GPU_TILE - 1) / OPS_GPU_TILE;
    args->tiles_n = (args->n + OPS_GPU_TILE - 1) / OPS_GPU_TILE;
    if (args->k > INT32_MAX || args->n > INT32_MAX || args->m > INT32_MAX)
        return ops_gpu_cannot(g, "a product of such extents");
    int32_t status = RUNG_OK;
    for (int e = 0; e < 2 && !status; e++)
        if (g->dry || e == errs)
            status =
                ops_gpu_launch(g, names[e], (uint64_t)(args->batch * args->tiles_m * args->tiles_n),
                               OPS_GPU_THREADS, args, sizeof *args);
    return status;
}

static int32_t open_product(struct ops_gpu *g, struct ops_value *v, struct ops_gpu_data *a,
                            struct ops_gpu_data *b, int *errs, struct ops_gpu_product_args *args)
{
    int in_a = 0, in_b = 0;
    int32_t status = has_errors(g, a, &in_a);
    if (!status)
        status = has_errors(g, b, &in_b);
    *errs = in_a || in_b;
    *args = (struct ops_gpu_product_args){.ar = g->ev->arith,
                                          .a = ops_gpu_tensor_of(g, a),
                                          .b = ops_gpu_tensor_of(g, b),
                                          .c = ops_gpu_tensor_of(g, v->gpu)};
    return status;
}

int32_t ops_gpu_matmul(struct ops_gpu *g, struct ops_value *v)
{
    static const char *const names[2] = {"ops_gpu_product<ops_gpu_matrices,0>",
                                         "ops_gpu_product<ops_gpu_matrices,1>"};
    const struct ops_value *a = v->in[0], *b = v->in[1];
    struct ops_gpu_product_args args;
    int errs;
    int32_t status = open_product(g, v, a->gpu, b->gpu, &errs, &args);
    args.m = a->dims[a->n_dims - 2];
    args.k = a->dims[a->n_dims - 1];
    args.n = b->dims[b->n_dims - 1];
    args.batch = (int64_t)v->n / args.m / args.n;
    args.batch_a = a->n_dims > 2 ? args.m * args.k : 0;
    args.batch_b = b->n_dims > 2 ? args.n * args.k : 0;
    return status ? status : multiply(g, names, errs, &args);
}

/* ---- Convolutions, by phases as in ../conv.c ---- */

struct phases {
    const struct ops_conv_attr *attr;
    int32_t *taps;  /* of one phase: flat, then OPS_MAX_SPACE offsets each */
    int64_t volume; /* elements of a kernel */
};

/* Whether tap k of dimension d meets output position `at`, and where it reads from there. */
static int tap_at(const struct ops_conv_attr *attr, uint32_t d, int64_t at, int64_t k,
                  int64_t *offset)
{
    const struct ops_window *w = &attr->win;
    int64_t to = at + w->before[d] - k * w->dilation[d];
    if (!attr->transposed) {
        *offset = k * w->dilation[d] - w->before[d];
        return 1;
    }
    *offset = to / w->stride[d];
    return to % w->stride[d] == 0;
}

/* Fills p->taps in the order of kernel elements; returns how many there are. */
static int32_t list_taps(const struct phases *p, const int32_t *out_at,
                         int64_t (*found)[OPS_MAX_SPACE + 1])
{
    const struct ops_window *w = &p->attr->win;
    int32_t n = 0;
    for (int64_t flat = 0; flat < p->volume; flat++) {
        int64_t rest = flat;
        int good = 1;
        found[n][OPS_MAX_SPACE] = flat;
        for (uint32_t d = w->n; d-- > 0; rest /= w->kernel[d])
            good &= tap_at(p->attr, d, out_at[d], rest % w->kernel[d], &found[n][d]);
        n += good;
    }
    return n;
}

static int64_t phases_of(const struct ops_conv_attr *attr, uint32_t d)
{
    const struct ops_window *w = &attr->win;
    return !attr->transposed ? 1 : w->stride[d] < w->out[d] ? w->stride[d] : w->out[d];
}

/* Positions of the phase whose outputs begin at out_at; 0 when it has none. */
static int64_t place_phase(const struct ops_conv_attr *attr, int64_t index, struct ops_gpu_conv *c)
{
    int64_t n = 1;
    for (uint32_t d = attr->win.n; d-- > 0; index /= phases_of(attr, d)) {
        c->out_at[d] = (int32_t)(index % phases_of(attr, d));
        c->in_step[d] = attr->transposed ? 1 : (int32_t)attr->win.stride[d];
        c->out_step[d] = attr->transposed ? (int32_t)attr->win.stride[d] : 1;
        int64_t left = attr->win.out[d] - c->out_at[d];
        c->q[d] = left > 0 ? (int32_t)((left + c->out_step[d] - 1) / c->out_step[d]) : 0;
        n *= c->q[d];
    }
    return n;
}

static int32_t run_phase(struct ops_gpu *g, const struct phases *p, int64_t index, int errs,
                         struct ops_gpu_product_args *args)
{
    static const char *const names[2] = {"ops_gpu_product<ops_gpu_windows,0>",
                                         "ops_gpu_product<ops_gpu_windows,1>"};
    struct ops_gpu_conv *c = &args->conv;
    struct rung_buffer *buffer = NULL;
    args->n = place_phase(p->attr, index, c);
    if (!args->n)
        return RUNG_OK;
    int64_t(*found)[OPS_MAX_SPACE + 1] = malloc((size_t)(p->volume + 1) * sizeof *found);
    if (!found)
        return ops_no_memory(&g->ev->who);
    c->n_taps = list_taps(p, c->out_at, found);
    for (int32_t t = 0; t < c->n_taps; t++) {
        p->taps[t] = (int32_t)found[t][OPS_MAX_SPACE];
        for (int d = 0; d < OPS_MAX_SPACE; d++)
            p->taps[(1 + d) * c->n_taps + t] = (int32_t)found[t][d];
    }
    free(found);
    uint64_t bytes = ((uint64_t)c->n_taps * (1 + OPS_MAX_SPACE) + 1) * sizeof *p->taps;
    int32_t status = ops_gpu_alloc(g, bytes, &buffer);
    if (!status)
        status = ops_gpu_write(g, buffer, p->taps, bytes);
    c->flat = ops_gpu_address(g, buffer);
    c->offset = c->flat + (uint64_t)c->n_taps * sizeof *p->taps;
    args->k = c->group_in * c->n_taps;
    if (!status)
        status = multiply(g, names, errs, args);
    ops_gpu_free(g, buffer);
    return status;
}

/* Extents and distances that the kernel counts in 32 bits. */
static int fits(const struct ops_value *v, const struct ops_conv_attr *attr)
{
    int good = 1;
    for (uint32_t d = 0; d < attr->win.n; d++) {
        int64_t reach =
            attr->win.kernel[d] * attr->win.dilation[d] + attr->win.before[d] + attr->win.stride[d];
        good &= reach < INT32_MAX / 4 && v->in[0]->dims[2 + d] < INT32_MAX / 4 &&
                v->dims[2 + d] < INT32_MAX / 4 &&
                v->dims[2 + d] * attr->win.stride[d] < INT32_MAX / 4;
    }
    return good;
}

static struct ops_gpu_conv conv_of(const struct ops_value *v, const struct ops_conv_attr *attr)
{
    const struct ops_value *x = v->in[0];
    struct ops_gpu_conv c = {.channels = x->dims[1],
                             .group_in = x->dims[1] / attr->groups,
                             .rows = v->dims[1] / attr->groups,
                             .width = v->in[1]->dims[1],
                             .volume = 1,
                             .groups = attr->groups,
                             .n = (int32_t)attr->win.n,
                             .transposed = attr->transposed};
    for (uint32_t d = 0; d < attr->win.n; d++) {
        c.volume *= attr->win.kernel[d];
        c.extent[d] = (int32_t)x->dims[2 + d];
        c.out[d] = (int32_t)v->dims[2 + d];
    }
    return c;
}

int32_t ops_gpu_conv(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_conv_attr *attr = v->attr;
    struct ops_gpu_product_args args;
    int errs;
    int64_t phases = 1;
    if (!fits(v, attr))
        return ops_gpu_cannot(g, "a convolution of such extents");
    int32_t status = open_product(g, v, v->in[1]->gpu, v->in[0]->gpu, &errs, &args);
    args.conv = conv_of(v, attr);
    args.m = args.conv.rows;
    args.batch = v->dims[0] * attr->groups;
    struct phases p = {.attr = attr, .volume = args.conv.volume};
    p.taps = calloc((size_t)p.volume * (1 + OPS_MAX_SPACE) + 1, sizeof *p.taps);
    if (!p.taps)
        return ops_no_memory(&g->ev->who);
    for (uint32_t d = 0; d < attr->win.n; d++)
        phases *= phases_of(attr, d);
    for (int64_t i = 0; i < phases && !status; i++)
        status = run_phase(g, &p, i, errs, &args);
    free(p.taps);
    return status;
}
