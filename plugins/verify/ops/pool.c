/*
 * Pooling: windows of each channel, reduced like rows.
 */
#include "attr.h"

#include <stdlib.h>

struct job {
    const struct ops_step *step;
    const struct ops_pool_attr *attr;
    int64_t most; /* elements of a window */
    _Atomic int failed;
};

/* Gathers the window into v and e; returns its elements. */
static uint64_t gather(const struct job *j, int64_t plane, const struct ops_reach *r, double *v,
                       double *e)
{
    const struct ops_tensor *x = j->step->in[0];
    const struct ops_box *box = &j->step->from[0];
    uint32_t n = j->attr->win.n;
    int64_t strides[OPS_MAX_SPACE], counts[OPS_MAX_SPACE], index[OPS_MAX_SPACE] = {0}, size = 1;
    ops_strides(n, box->count + 2, strides);
    int64_t at = plane * box->count[2] * strides[0];
    for (uint32_t d = 0; d < n; d++) {
        at += (r[d].first - box->start[2 + d]) * strides[d];
        strides[d] *= r[d].step;
        counts[d] = r[d].count;
        size *= r[d].count;
    }
    int64_t run = counts[n - 1], stride = strides[n - 1];
    for (int64_t i = 0; i < size; i += run) {
        for (int64_t k = 0; k < run; k++) {
            v[i + k] = x->v[at + k * stride];
            e[i + k] = x->e ? x->e[at + k * stride] : 0;
        }
        ops_advance(n - 1, counts, strides, index, &at);
    }
    return (uint64_t)size;
}

static struct ops_num reduce(const struct job *j, const struct ops_row *row, int64_t padded)
{
    const struct ops_arith *ar = &j->step->ev->arith;
    if (j->attr->kind == OPS_POOL_MAX)
        return ops_row_max(row, NULL, ar);
    struct ops_num divisor = {0, 0};
    divisor.v = j->attr->kind == OPS_POOL_MEAN ? (double)row->n : (double)padded;
    if (!row->n)
        return (struct ops_num){0, 0};
    struct ops_num sum = ops_row_sum(row, NULL, ar);
    return divisor.v == 1 ? sum : ops_apply2(ops_div, sum, divisor, ar);
}

static void run_part(void *ctx, uint64_t first, uint64_t end)
{
    struct job *j = ctx;
    const struct ops_value *x = j->step->value->in[0];
    struct ops_tensor *out = j->step->out;
    const struct ops_box *box = j->step->box;
    uint32_t n = j->attr->win.n;
    double *v = malloc(2 * (size_t)j->most * sizeof *v), *e = v ? v + j->most : NULL;
    j->failed |= !v;
    for (uint64_t i = first; v && i < end; i++) {
        struct ops_reach r[OPS_MAX_SPACE];
        int64_t padded = 1;
        uint64_t rest = i;
        for (uint32_t d = n; d-- > 0; rest /= (uint64_t)out->dims[2 + d]) {
            int64_t at = box->start[2 + d] + (int64_t)(rest % (uint64_t)out->dims[2 + d]);
            r[d] = ops_reach_of(j->attr, d, at, x->dims[2 + d]);
            padded *= r[d].padded;
        }
        struct ops_row row = {gather(j, (int64_t)rest, r, v, e), v, e};
        struct ops_num y = reduce(j, &row, padded);
        out->v[i] = y.v;
        out->e[i] = y.e;
    }
    free(v);
}

static int32_t run_pool(const struct ops_step *step)
{
    struct job job = {.step = step, .attr = step->value->attr, .most = 1};
    for (uint32_t d = 0; d < job.attr->win.n; d++) {
        int64_t extent = step->value->in[0]->dims[2 + d], out = step->value->dims[2 + d];
        int64_t count = job.attr->adaptive ? extent / out + 2 : job.attr->win.kernel[d];
        job.most *= count < extent ? count : extent;
    }
    ops_parallel(step->ev->threads, step->out->n, OPS_GRAIN / (uint64_t)job.most + 1, run_part,
                 &job);
    return job.failed ? ops_no_memory(&step->ev->who) : RUNG_OK;
}

/* From the first element of the first window to the last of the last. */
static void need_pool(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                      struct ops_box *out)
{
    const struct ops_pool_attr *a = v->attr;
    for (uint32_t d = 0; d < 2; d++) {
        out->start[d] = want->start[d];
        out->count[d] = want->count[d];
    }
    for (uint32_t d = 0; d < a->win.n; d++) {
        int64_t extent = v->in[input]->dims[2 + d], first = extent, end = 0;
        for (int64_t i = 0; i < want->count[2 + d]; i++) {
            struct ops_reach r = ops_reach_of(a, d, want->start[2 + d] + i, extent);
            int64_t stop = r.first + (r.count - 1) * r.step + 1;
            if (r.count > 0) {
                first = r.first < first ? r.first : first;
                end = stop > end ? stop : end;
            }
        }
        out->start[2 + d] = first < end ? first : 0;
        out->count[2 + d] = first < end ? end - first : 1;
    }
}

const struct ops_kernel ops_pool_kernel = {need_pool, run_pool, 0};

struct ops_value *ops_pool(struct ops_eval *ev, const struct ops_window *win,
                           enum ops_pool_kind kind, int adaptive, struct ops_value *x)
{
    struct ops_pool_attr attr = {*win, kind, adaptive};
    int64_t dims[RUNG_MAX_DIMS] = {0};
    double each = 1;
    if (!x)
        return NULL;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t d = 0; d < win->n; d++) {
        dims[2 + d] = win->out[d];
        each *= adaptive ? (double)x->dims[2 + d] / (double)win->out[d] : (double)win->kernel[d];
    }
    struct ops_value *v =
        ops_value_new(ev, 0, &ops_pool_kernel, 2 + win->n, dims, &x, 1, &attr, sizeof attr);
    ev->flops += v ? each * (double)v->n : 0;
    return v;
}
