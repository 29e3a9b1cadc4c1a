/* Values but for rows and products: inputs, maps, moves, windows. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

/* ---- Ends of the graph ---- */

/* Errors of inputs are rare: memory for them is taken only when there is one. */
static int32_t decode(struct ops_gpu *g, struct ops_value *v)
{
    const struct rung_tensor_view *view = v->attr;
    struct ops_gpu_decode_args args = {.ar = g->ev->arith,
                                       .data = (uint64_t)(uintptr_t)view->data,
                                       .n = v->n,
                                       .dtype = view->dtype};
    int errs = 0;
    int32_t status = ops_gpu_data_new(g, v->n, 0, &v->gpu);
    if (!status)
        status = ops_gpu_flag_start(g, &args.flag);
    if (status)
        return status;
    args.out = ops_gpu_tensor_of(g, v->gpu);
    status = ops_gpu_each(g, "ops_gpu_decode", v->n, &args, sizeof args);
    if (!status)
        status = ops_gpu_flag_read(g, &errs);
    if (status || !errs)
        return status;
    status = ops_gpu_alloc(g, v->n * sizeof(double), &v->gpu->e);
    args.out = ops_gpu_tensor_of(g, v->gpu);
    return status ? status : ops_gpu_each(g, "ops_gpu_decode", v->n, &args, sizeof args);
}

int32_t ops_gpu_finish(struct ops_gpu *g, const struct ops_gpu_data *data, uint32_t dtype,
                       struct ops_gpu_data **out)
{
    struct ops_gpu_finish_args args = {.ar = g->ev->arith, .n = data->n, .dtype = dtype};
    int32_t status = ops_gpu_data_new(g, data->n, 1, out);
    if (status)
        return status;
    args.in = ops_gpu_tensor_of(g, data);
    args.out = ops_gpu_tensor_of(g, *out);
    return ops_gpu_each(g, "ops_gpu_finish", data->n, &args, sizeof args);
}

/* ---- Maps ---- */

void ops_gpu_steps(const struct ops_value *a, uint32_t n_dims, int64_t *steps)
{
    int64_t stride = 1;
    memset(steps, 0, RUNG_MAX_DIMS * sizeof *steps);
    for (uint32_t i = 1; i <= a->n_dims; i++) {
        int64_t extent = a->dims[a->n_dims - i];
        steps[n_dims - i] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

/* Neighbouring dimensions along which every operand steps as along one become one. */
static void merge_dims(struct ops_gpu_map_args *args)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < args->n_dims; d++) {
        int fits = n > 0 || args->dims[d] == 1;
        for (uint32_t k = 0; n > 0 && k < args->n_in; k++)
            fits &= args->steps[k][n - 1] == args->steps[k][d] * args->dims[d];
        fits |= args->dims[d] == 1;
        if (fits && args->dims[d] == 1)
            continue;
        if (!fits)
            n++;
        args->dims[n - 1] = fits ? args->dims[n - 1] * args->dims[d] : args->dims[d];
        for (uint32_t k = 0; k < args->n_in; k++)
            args->steps[k][n - 1] = args->steps[k][d];
    }
    args->n_dims = n;
}

static int32_t map_name(struct ops_gpu *g, const struct ops_map_attr *attr, uint32_t n_in,
                        char name[OPS_GPU_NAME])
{
    const char *f = n_in == 1   ? ops_gpu_unary_name(attr->one)
                    : n_in == 2 ? ops_gpu_binary_name(attr->two)
                                : ops_gpu_ternary_name(attr->three);
    if (n_in == 1 && !attr->one)
        snprintf(name, OPS_GPU_NAME, "ops_gpu_stored");
    else if (!f)
        return ops_gpu_cannot(g, "a function that is not there");
    else
        snprintf(name, OPS_GPU_NAME, "ops_gpu_map%u%s<%s>", n_in,
                 n_in == 2 && attr->exact ? "_exact" : "", f);
    return RUNG_OK;
}

static int32_t map(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_map_attr *attr = v->attr;
    struct ops_gpu_map_args args = {.ar = g->ev->arith,
                                    .out = ops_gpu_tensor_of(g, v->gpu),
                                    .n = v->n,
                                    .n_dims = v->n_dims,
                                    .n_in = v->n_in,
                                    .stored = attr->stored,
                                    .carried = {attr->carried[0], attr->carried[1]}};
    char name[OPS_GPU_NAME];
    memcpy(args.dims, v->dims, v->n_dims * sizeof *args.dims);
    for (uint32_t k = 0; k < v->n_in; k++) {
        args.in[k] = ops_gpu_tensor_of(g, v->in[k]->gpu);
        args.direct[k] = v->in[k]->n == v->n;
        ops_gpu_steps(v->in[k], v->n_dims, args.steps[k]);
    }
    merge_dims(&args);
    int32_t status = map_name(g, attr, v->n_in, name);
    return status ? status : ops_gpu_each(g, name, v->n, &args, sizeof args);
}

static int32_t scalar(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_gpu_map_args args = {
        .out = ops_gpu_tensor_of(g, v->gpu), .n = 1, .number = *(const struct ops_num *)v->attr};
    return ops_gpu_each(g, "ops_gpu_scalar", 1, &args, sizeof args);
}

/* ---- Moves ---- */

static int32_t move(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_value *a = v->in[0];
    struct ops_gpu_move_args args = {
        .in = ops_gpu_tensor_of(g, a->gpu), .n = v->n, .n_dims = v->n_dims};
    int64_t strides[RUNG_MAX_DIMS];
    int32_t status = ops_gpu_data_new(g, v->n, g->dry || a->gpu->e, &v->gpu);
    if (status)
        return status;
    args.out = ops_gpu_tensor_of(g, v->gpu);
    ops_strides(a->n_dims, a->dims, strides);
    for (uint32_t d = 0; d < v->n_dims; d++) {
        args.dims[d] = v->dims[d];
        args.steps[d] =
            strides[v->kernel == &ops_permute_kernel ? ((const uint32_t *)v->attr)[d] : d];
    }
    if (v->kernel == &ops_slice_kernel) {
        const struct ops_slice_attr *c = v->attr;
        args.base = c->start * args.steps[c->axis];
        args.steps[c->axis] *= c->step;
    }
    return ops_gpu_each(g, "ops_gpu_move", v->n, &args, sizeof args);
}

static int32_t concat(struct ops_gpu *g, struct ops_value *v)
{
    uint32_t axis = *(const uint32_t *)v->attr;
    uint64_t inner = 1, to = 0;
    int32_t status = RUNG_OK;
    for (uint32_t d = axis + 1; d < v->n_dims; d++)
        inner *= (uint64_t)v->dims[d];
    for (uint32_t i = 0; i < v->n_in && !status; i++) {
        const struct ops_value *a = v->in[i];
        const struct ops_gpu_put_args args = {.in = ops_gpu_tensor_of(g, a->gpu),
                                              .out = ops_gpu_tensor_of(g, v->gpu),
                                              .n = a->n,
                                              .run = inner * (uint64_t)a->dims[axis],
                                              .stride = inner * (uint64_t)v->dims[axis],
                                              .to = to};
        status = ops_gpu_each(g, "ops_gpu_put", a->n, &args, sizeof args);
        to += args.run;
    }
    return status;
}

static int32_t triangle(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_triangle_attr *t = v->attr;
    const struct ops_gpu_triangle_args args = {.in = ops_gpu_tensor_of(g, v->in[0]->gpu),
                                               .out = ops_gpu_tensor_of(g, v->gpu),
                                               .n = v->n,
                                               .rows = (uint64_t)v->dims[v->n_dims - 2],
                                               .cols = (uint64_t)v->dims[v->n_dims - 1],
                                               .diagonal = t->diagonal,
                                               .fill = t->fill,
                                               .upper = t->upper != 0};
    return ops_gpu_each(g, "ops_gpu_triangle", v->n, &args, sizeof args);
}

static int32_t pick(struct ops_gpu *g, struct ops_value *v)
{
    const struct ops_pick_attr *p = v->attr;
    const struct ops_value *x = v->in[0];
    struct ops_gpu_pick_args args = {.in = ops_gpu_tensor_of(g, x->gpu),
                                     .index = ops_gpu_tensor_of(g, v->in[1]->gpu),
                                     .out = ops_gpu_tensor_of(g, v->gpu),
                                     .n = v->n,
                                     .inner = 1,
                                     .extent = (uint64_t)x->dims[p->axis],
                                     .ignored = p->ignored};
    for (uint32_t d = p->axis + 1; d < x->n_dims; d++)
        args.inner *= (uint64_t)x->dims[d];
    return ops_gpu_each(g, "ops_gpu_pick", v->n, &args, sizeof args);
}

static int32_t pool(struct ops_gpu *g, struct ops_value *v)
{
    struct ops_gpu_pool_args args = {.ar = g->ev->arith,
                                     .attr = *(const struct ops_pool_attr *)v->attr,
                                     .in = ops_gpu_tensor_of(g, v->in[0]->gpu),
                                     .out = ops_gpu_tensor_of(g, v->gpu),
                                     .n = v->n};
    for (uint32_t d = 0; d < args.attr.win.n; d++)
        args.extent[d] = v->in[0]->dims[2 + d];
    return ops_gpu_each(g, "ops_gpu_pool", v->n, &args, sizeof args);
}

/* ---- All ---- */

static int32_t reshape(struct ops_value *v)
{
    v->gpu = v->in[0]->gpu;
    v->gpu->refs++;
    return RUNG_OK;
}

/* Those whose result has errors in any case. */
static const struct {
    const struct ops_kernel *kernel;
    int32_t (*run)(struct ops_gpu *g, struct ops_value *v);
} kinds[] = {
    {&ops_map_kernel, map},
    {&ops_scalar_kernel, scalar},
    {&ops_concat_kernel, concat},
    {&ops_triangle_kernel, triangle},
    {&ops_pick_kernel, pick},
    {&ops_pool_kernel, pool},
    {&ops_reduce_kernel, ops_gpu_rows},
    {&ops_scan_kernel, ops_gpu_rows},
    {&ops_matmul_kernel, ops_gpu_matmul},
    {&ops_conv_kernel, ops_gpu_conv},
};

int32_t ops_gpu_value(struct ops_gpu *g, struct ops_value *v)
{
    if (v->kernel == &ops_input_kernel)
        return decode(g, v);
    if (v->kernel == &ops_reshape_kernel)
        return reshape(v);
    if (v->kernel == &ops_permute_kernel || v->kernel == &ops_slice_kernel)
        return move(g, v);
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kernel == v->kernel) {
            int32_t status = ops_gpu_data_new(g, v->n, 1, &v->gpu);
            return status ? status : kinds[i].run(g, v);
        }
    return ops_gpu_cannot(g, "an operator that is not there");
}
