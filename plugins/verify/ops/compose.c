/*
 * Operators that put tensors together or choose among elements: concatenations, triangles, picking
 * by index.
 */
#include "attr.h"

#include <math.h>
#include <string.h>

/* ---- concatenation ---- */

static int64_t offset_of(const struct ops_value *v, uint32_t axis, uint32_t input)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < input; i++)
        at += v->in[i]->dims[axis];
    return at;
}

static void need_concat(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                        struct ops_box *out)
{
    uint32_t axis = *(const uint32_t *)v->attr;
    int64_t offset = offset_of(v, axis, input), end = offset + v->in[input]->dims[axis];
    int64_t first = want->start[axis], last = first + want->count[axis];
    *out = *want;
    first = first > offset ? first : offset;
    last = last < end ? last : end;
    out->start[axis] = first - offset;
    out->count[axis] = last > first ? last - first : 0;
}

/* Each operand's rows (from its start along the axis to the end) lie together in the result. */
static void put(const struct ops_step *step, uint32_t input, uint32_t axis, int64_t to)
{
    const struct ops_tensor *in = step->in[input];
    struct ops_tensor *out = step->out;
    uint64_t inner = 1, run, stride;
    for (uint32_t d = axis + 1; d < out->n_dims; d++)
        inner *= (uint64_t)out->dims[d];
    run = inner * (uint64_t)in->dims[axis];
    stride = inner * (uint64_t)out->dims[axis];
    for (uint64_t i = 0; i < in->n / run; i++) {
        uint64_t at = i * stride + (uint64_t)to * inner;
        memcpy(out->v + at, in->v + i * run, run * sizeof *out->v);
        if (in->e)
            memcpy(out->e + at, in->e + i * run, run * sizeof *out->e);
        else
            memset(out->e + at, 0, run * sizeof *out->e);
    }
}

static int32_t run_concat(const struct ops_step *step)
{
    uint32_t axis = *(const uint32_t *)step->value->attr;
    int64_t to = 0;
    for (uint32_t i = 0; i < step->value->n_in; i++)
        if (step->in[i]) {
            put(step, i, axis, to);
            to += step->in[i]->dims[axis];
        }
    return RUNG_OK;
}

const struct ops_kernel ops_concat_kernel = {need_concat, run_concat, 0};

struct ops_value *ops_concat(struct ops_eval *ev, uint32_t column, uint32_t axis,
                             struct ops_value *const *in, uint32_t n_in)
{
    int64_t dims[RUNG_MAX_DIMS];
    char a[256], b[256];
    for (uint32_t i = 0; i < n_in; i++) {
        if (!in[i])
            return NULL;
        int good = in[i]->n_dims == in[0]->n_dims;
        for (uint32_t d = 0; good && d < in[0]->n_dims; d++)
            good = d == axis || in[i]->dims[d] == in[0]->dims[d];
        if (!good)
            return ops_stop(ev, column, "concat: shapes %s and %s differ beside axis %u",
                            ops_shape_text(in[0]->n_dims, in[0]->dims, a, sizeof a),
                            ops_shape_text(in[i]->n_dims, in[i]->dims, b, sizeof b), axis);
        if (i == 0)
            memcpy(dims, in[0]->dims, sizeof dims);
        else if (__builtin_add_overflow(dims[axis], in[i]->dims[axis], &dims[axis]))
            return ops_stop(ev, column, "concat: the result is too large");
    }
    return ops_value_new(ev, column, &ops_concat_kernel, in[0]->n_dims, dims, in, n_in, &axis,
                         sizeof axis);
}

/* ---- triangles ---- */

static void need_same(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                      struct ops_box *out)
{
    (void)v, (void)input;
    *out = *want;
}

static int32_t run_triangle(const struct ops_step *step)
{
    const struct ops_triangle_attr *t = step->value->attr;
    const struct ops_tensor *in = step->in[0];
    struct ops_tensor *out = step->out;
    uint64_t rows = (uint64_t)out->dims[out->n_dims - 2],
             cols = (uint64_t)out->dims[out->n_dims - 1];
    int64_t row0 = step->box->start[out->n_dims - 2], col0 = step->box->start[out->n_dims - 1];
    for (uint64_t i = 0; i < out->n; i++) {
        int64_t across = col0 + (int64_t)(i % cols) - row0 - (int64_t)(i / cols % rows);
        int keep = t->upper ? across >= t->diagonal : across <= t->diagonal;
        struct ops_num x = ops_at(in, (int64_t)i);
        out->v[i] = keep ? x.v : t->fill;
        out->e[i] = keep ? x.e : 0;
    }
    return RUNG_OK;
}

const struct ops_kernel ops_triangle_kernel = {need_same, run_triangle, 1};

struct ops_value *ops_triangle(struct ops_eval *ev, int upper, int64_t diagonal, double fill,
                               struct ops_value *a)
{
    struct ops_triangle_attr attr = {upper, diagonal, fill};
    return a ? ops_value_new(ev, 0, &ops_triangle_kernel, a->n_dims, a->dims, &a, 1, &attr,
                             sizeof attr)
             : NULL;
}

/* ---- picking ---- */

static void need_pick(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                      struct ops_box *out)
{
    const struct ops_pick_attr *p = v->attr;
    if (input == 1) {
        *out = *want;
        return;
    }
    for (uint32_t d = 0, from = 0; d < v->in[0]->n_dims; d++) {
        if (d == p->axis)
            continue;
        out->start[d] = want->start[from];
        out->count[d] = want->count[from++];
    }
}

static int32_t run_pick(const struct ops_step *step)
{
    const struct ops_pick_attr *p = step->value->attr;
    const struct ops_tensor *x = step->in[0], *index = step->in[1];
    uint64_t inner = 1, extent = (uint64_t)x->dims[p->axis];
    for (uint32_t d = p->axis + 1; d < x->n_dims; d++)
        inner *= (uint64_t)x->dims[d];
    for (uint64_t i = 0; i < step->out->n; i++) {
        struct ops_num at = ops_at(index, (int64_t)i), r = {0, INFINITY};
        if (at.e == 0 && at.v == (double)p->ignored)
            r.e = 0;
        else if (at.e == 0 && at.v >= 0 && at.v < (double)extent && at.v == floor(at.v))
            r = ops_at(x, (int64_t)((i / inner * extent + (uint64_t)at.v) * inner + i % inner));
        step->out->v[i] = r.v;
        step->out->e[i] = r.e;
    }
    return RUNG_OK;
}

const struct ops_kernel ops_pick_kernel = {need_pick, run_pick, 0};

struct ops_value *ops_pick(struct ops_eval *ev, uint32_t axis, int64_t ignored, struct ops_value *x,
                           struct ops_value *index)
{
    struct ops_pick_attr attr = {axis, ignored};
    struct ops_value *in[] = {x, index};
    return index ? ops_value_new(ev, 0, &ops_pick_kernel, index->n_dims, index->dims, in, 2, &attr,
                                 sizeof attr)
                 : NULL;
}
