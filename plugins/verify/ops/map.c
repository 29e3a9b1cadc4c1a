/*
 * Elementwise operators with broadcasting. Inner loops run over the last dimension with a step of 0
 * or 1 an operand.
 */
#include "attr.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_OPERANDS = 3 };

struct job {
    const struct ops_map_attr *attr;
    const struct ops_arith *ar;
    const struct ops_tensor *in[MAX_OPERANDS];
    struct ops_tensor *out;
    int64_t steps[MAX_OPERANDS][RUNG_MAX_DIMS];
    uint32_t n_in;
};

static struct ops_num apply2(const struct job *j, struct ops_num a, struct ops_num b)
{
    struct ops_num r = ops_apply2(j->attr->two, a, b, j->ar);
    if (isfinite(a.v) && isfinite(b.v))
        r.e += j->attr->carried[0] * fabs(a.v) + j->attr->carried[1] * fabs(b.v);
    return r;
}

static struct ops_num apply(const struct job *j, const int64_t *at)
{
    struct ops_num a = ops_at(j->in[0], at[0]);
    if (j->n_in == 1 && j->attr->one)
        return ops_apply1(j->attr->one, a, j->ar);
    if (j->n_in == 2 && j->attr->exact)
        return j->attr->two(a, ops_at(j->in[1], at[1]), j->ar);
    if (j->n_in == 2)
        return apply2(j, a, ops_at(j->in[1], at[1]));
    if (j->n_in == 3)
        return j->attr->three(a, ops_at(j->in[1], at[1]), ops_at(j->in[2], at[2]), j->ar);
    a.e += isfinite(a.v) ? j->attr->stored * fabs(a.v) : 0;
    return a;
}

/* Offset in an operand of flat index i of the result. */
static int64_t offset_of(const struct ops_tensor *r, const int64_t *steps, uint64_t i)
{
    int64_t at = 0;
    for (uint32_t d = r->n_dims; d-- > 0; i /= (uint64_t)r->dims[d])
        at += (int64_t)(i % (uint64_t)r->dims[d]) * steps[d];
    return at;
}

static void run_part(void *ctx, uint64_t first, uint64_t end)
{
    const struct job *j = ctx;
    uint32_t last = j->out->n_dims ? j->out->n_dims - 1 : 0;
    uint64_t row = j->out->n_dims ? (uint64_t)j->out->dims[last] : 1, left = 0;
    int64_t at[MAX_OPERANDS];
    for (uint64_t i = first; i < end; i++, left--) {
        if (left == 0) {
            for (uint32_t k = 0; k < j->n_in; k++)
                at[k] = offset_of(j->out, j->steps[k], i);
            left = row - i % row;
        }
        struct ops_num x = apply(j, at);
        j->out->v[i] = x.v;
        j->out->e[i] = x.e;
        for (uint32_t k = 0; k < j->n_in; k++)
            at[k] += j->steps[k][last];
    }
}

/* Strides of t in the result's shape; 0 along dimensions that it repeats. */
static void steps_in(const struct ops_tensor *t, const struct ops_tensor *out, int64_t *steps)
{
    int64_t stride = 1;
    for (uint32_t i = 1; i <= t->n_dims; i++) {
        int64_t extent = t->dims[t->n_dims - i];
        steps[out->n_dims - i] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

static int32_t run_map(const struct ops_step *step)
{
    struct job job = {.attr = step->value->attr,
                      .ar = &step->ev->arith,
                      .out = step->out,
                      .n_in = step->value->n_in};
    for (uint32_t k = 0; k < job.n_in; k++) {
        job.in[k] = step->in[k];
        steps_in(step->in[k], step->out, job.steps[k]);
    }
    ops_parallel(step->ev->threads, step->out->n, OPS_GRAIN, run_part, &job);
    return RUNG_OK;
}

static void need_map(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                     struct ops_box *out)
{
    const struct ops_value *x = v->in[input];
    for (uint32_t i = 1; i <= x->n_dims; i++) {
        if (x->dims[x->n_dims - i] == 1)
            continue;
        out->start[x->n_dims - i] = want->start[v->n_dims - i];
        out->count[x->n_dims - i] = want->count[v->n_dims - i];
    }
}

const struct ops_kernel ops_map_kernel = {need_map, run_map, 1};

int ops_broadcast(uint32_t n_a, const int64_t *a, uint32_t n_b, const int64_t *b, uint32_t *n_dims,
                  int64_t *dims)
{
    int64_t common[RUNG_MAX_DIMS];
    *n_dims = n_a > n_b ? n_a : n_b;
    for (uint32_t i = 1; i <= *n_dims; i++) {
        int64_t x = i <= n_a ? a[n_a - i] : 1, y = i <= n_b ? b[n_b - i] : 1;
        if (x != y && x != 1 && y != 1)
            return 0;
        common[*n_dims - i] = x == 1 ? y : x;
    }
    memcpy(dims, common, *n_dims * sizeof *dims);
    return 1;
}

static struct ops_value *map(struct ops_eval *ev, uint32_t column, const struct ops_map_attr *attr,
                             double flops, struct ops_value *const *in, uint32_t n_in)
{
    int64_t dims[RUNG_MAX_DIMS] = {0};
    uint32_t n_dims = 0;
    char text_a[256], text_b[256];
    for (uint32_t k = 0; k < n_in; k++) {
        if (!in[k])
            return NULL;
        if (!ops_broadcast(n_dims, dims, in[k]->n_dims, in[k]->dims, &n_dims, dims))
            return ops_stop(ev, column,
                            "shapes %s and %s do not broadcast: from the right, extents must be "
                            "equal or 1",
                            ops_shape_text(in[0]->n_dims, in[0]->dims, text_a, sizeof text_a),
                            ops_shape_text(in[k]->n_dims, in[k]->dims, text_b, sizeof text_b));
    }
    struct ops_value *v =
        ops_value_new(ev, column, &ops_map_kernel, n_dims, dims, in, n_in, attr, sizeof *attr);
    ev->flops += v ? flops * (double)v->n : 0;
    return v;
}

struct ops_value *ops_map1(struct ops_eval *ev, ops_unary f, double flops, struct ops_value *a)
{
    struct ops_map_attr attr = {.one = f};
    return map(ev, 0, &attr, flops, &a, 1);
}

struct ops_value *ops_map2(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                           struct ops_value *a, struct ops_value *b)
{
    struct ops_map_attr attr = {.two = f};
    struct ops_value *in[] = {a, b};
    bool joins = a && b && (f == ops_add || f == ops_sub);
    if (joins) {
        attr.carried[0] = (double)b->terms * ev->arith.sum;
        attr.carried[1] = (double)a->terms * ev->arith.sum;
    }
    struct ops_value *v = map(ev, column, &attr, flops, in, 2);
    if (v && joins && a->terms + b->terms)
        v->terms = a->terms + b->terms + 1;
    return v;
}

struct ops_value *ops_map2_exact(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                                 struct ops_value *a, struct ops_value *b)
{
    struct ops_map_attr attr = {.two = f, .exact = 1};
    struct ops_value *in[] = {a, b};
    return map(ev, column, &attr, flops, in, 2);
}

struct ops_value *ops_map3(struct ops_eval *ev, uint32_t column, ops_ternary f, double flops,
                           struct ops_value *a, struct ops_value *b, struct ops_value *c)
{
    struct ops_map_attr attr = {.three = f};
    struct ops_value *in[] = {a, b, c};
    return map(ev, column, &attr, flops, in, 3);
}

struct ops_value *ops_stored(struct ops_eval *ev, double u, struct ops_value *a)
{
    struct ops_map_attr attr = {.stored = u};
    return map(ev, 0, &attr, 0, &a, 1);
}
