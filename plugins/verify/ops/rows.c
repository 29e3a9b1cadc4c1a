/*
 * Rows of a tensor along a set of dimensions: gathers each into contiguous memory (or points at it
 * where it already is), for operators that see one row at a time.
 */
#include "attr.h"

#include <stdlib.h>
#include <string.h>

/* How the elements of a tensor split into rows. */
struct lanes {
    uint32_t n_kept, n_reduced;
    int64_t kept[RUNG_MAX_DIMS], kept_stride[RUNG_MAX_DIMS];
    int64_t reduced[RUNG_MAX_DIMS], reduced_stride[RUNG_MAX_DIMS];
    uint64_t n_rows, n; /* n: elements of a row */
    int64_t *offset;    /* of each element from the row's first; NULL: contiguous */
};

/* All rows of one operator; parts of it run at once. */
struct job {
    struct lanes lanes;
    const struct ops_tensor *a;
    struct ops_tensor *r;
    const struct ops_arith *ar;
    const struct ops_rows_attr *attr;
    _Atomic int failed; /* a part had no memory */
};

static void split(const struct ops_tensor *a, uint32_t axes, struct lanes *l)
{
    int64_t strides[RUNG_MAX_DIMS];
    *l = (struct lanes){.n_rows = 1, .n = 1};
    ops_strides(a->n_dims, a->dims, strides);
    for (uint32_t d = 0; d < a->n_dims; d++) {
        if (axes >> d & 1) {
            l->reduced[l->n_reduced] = a->dims[d];
            l->reduced_stride[l->n_reduced++] = strides[d];
            l->n *= (uint64_t)a->dims[d];
        } else {
            l->kept[l->n_kept] = a->dims[d];
            l->kept_stride[l->n_kept++] = strides[d];
            l->n_rows *= (uint64_t)a->dims[d];
        }
    }
}

static int32_t lanes_open(struct ops_eval *ev, const struct ops_tensor *a, uint32_t axes,
                          struct lanes *l)
{
    int64_t index[RUNG_MAX_DIMS] = {0}, at = 0;
    split(a, axes, l);
    if (axes >> (a->n_dims - l->n_reduced) == (1u << l->n_reduced) - 1)
        return RUNG_OK;
    l->offset = malloc(l->n * sizeof *l->offset);
    if (!l->offset)
        return ops_no_memory(&ev->who);
    for (uint64_t i = 0; i < l->n; i++) {
        l->offset[i] = at;
        ops_advance(l->n_reduced, l->reduced, l->reduced_stride, index, &at);
    }
    return RUNG_OK;
}

/* The row that starts at `at`; v and e hold gathered elements, e zeros where there are no errors.
 */
static struct ops_row gather(const struct job *j, int64_t at, double *v, double *e)
{
    const struct ops_tensor *a = j->a;
    const int64_t *offset = j->lanes.offset;
    struct ops_row row = {.n = j->lanes.n, .v = a->v + at, .e = a->e ? a->e + at : e};
    if (!offset)
        return row;
    for (uint64_t i = 0; i < row.n; i++)
        v[i] = a->v[at + offset[i]];
    for (uint64_t i = 0; a->e && i < row.n; i++)
        e[i] = a->e[at + offset[i]];
    row.v = v;
    row.e = e;
    return row;
}

static void scan_row(const struct job *j, const struct ops_row *row, int64_t at, double *v,
                     double *e)
{
    const int64_t *offset = j->lanes.offset;
    if (!offset) {
        j->attr->scan(row, j->r->v + at, j->r->e + at, j->ar);
        return;
    }
    j->attr->scan(row, v, e, j->ar);
    for (uint64_t i = 0; i < row->n; i++) {
        j->r->v[at + offset[i]] = v[i];
        j->r->e[at + offset[i]] = e[i];
    }
}

static int64_t row_start(const struct lanes *l, uint64_t row, int64_t *index)
{
    int64_t at = 0;
    for (uint32_t d = l->n_kept; d-- > 0; row /= (uint64_t)l->kept[d]) {
        index[d] = (int64_t)(row % (uint64_t)l->kept[d]);
        at += index[d] * l->kept_stride[d];
    }
    return at;
}

/* Rows [first, end), with buffers of its own: a gathered row, and a result that is scattered. */
static void run_rows(void *ctx, uint64_t first, uint64_t end)
{
    struct job *j = ctx;
    uint64_t n = j->lanes.n;
    int64_t index[RUNG_MAX_DIMS] = {0}, at = row_start(&j->lanes, first, index);
    double *buffer = calloc(j->lanes.offset ? 4 * n : n, sizeof *buffer);
    if (!buffer) {
        j->failed = 1;
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        struct ops_row row = gather(j, at, buffer + n, buffer);
        if (j->attr->scan) {
            scan_row(j, &row, at, buffer + 2 * n, buffer + 3 * n);
        } else {
            struct ops_num x = j->attr->reduce(&row, &j->attr->opt, j->ar);
            j->r->v[i] = x.v;
            j->r->e[i] = x.e;
        }
        ops_advance(j->lanes.n_kept, j->lanes.kept, j->lanes.kept_stride, index, &at);
    }
    free(buffer);
}

static int32_t run_job(const struct ops_step *step)
{
    struct ops_eval *ev = step->ev;
    struct job j = {.a = step->in[0], .r = step->out, .ar = &ev->arith, .attr = step->value->attr};
    int32_t status = lanes_open(ev, j.a, j.attr->axes, &j.lanes);
    if (!status)
        ops_parallel(ev->threads, j.lanes.n_rows, OPS_GRAIN / j.lanes.n + 1, run_rows, &j);
    free(j.lanes.offset);
    return j.failed ? ops_no_memory(&ev->who) : status;
}

/* Whole rows: reduced dimensions stay whole. */
static void need_rows(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                      struct ops_box *out)
{
    const struct ops_rows_attr *attr = v->attr;
    uint32_t from = 0;
    for (uint32_t d = 0; d < v->in[input]->n_dims; d++) {
        int reduced = attr->axes >> d & 1;
        if (!reduced) {
            out->start[d] = want->start[from];
            out->count[d] = want->count[from];
        }
        from += !reduced || attr->keepdim;
    }
}

/* A scan computes whole rows; what is not wanted of them is left out. */
static int32_t run_scan(const struct ops_step *step)
{
    struct ops_eval *ev = step->ev;
    struct ops_step whole = *step;
    const struct ops_tensor *a = step->in[0];
    if (a->n == step->out->n)
        return run_job(step);
    int32_t status = ops_tensor_new(ev, a->n_dims, a->dims, 1, &whole.out);
    if (!status)
        status = run_job(&whole);
    for (int e = 0; e < 2 && !status; e++)
        ops_copy_box(e ? whole.out->e : whole.out->v, e ? step->out->e : step->out->v, a->n_dims,
                     step->from, step->box);
    ops_tensor_drop(whole.out);
    return status;
}

const struct ops_kernel ops_reduce_kernel = {need_rows, run_job, 0};
const struct ops_kernel ops_scan_kernel = {need_rows, run_scan, 0};

struct ops_value *ops_reduce(struct ops_eval *ev, ops_reduce_fn f,
                             const struct ops_row_options *opt, double flops, uint32_t axes,
                             int keepdim, struct ops_value *a)
{
    struct ops_rows_attr attr = {.axes = axes, .keepdim = keepdim, .reduce = f};
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n_dims = 0;
    if (!a)
        return NULL;
    if (opt)
        attr.opt = *opt;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (keepdim || !(axes >> d & 1))
            dims[n_dims++] = axes >> d & 1 ? 1 : a->dims[d];
    ev->flops += flops * (double)a->n;
    struct ops_value *v =
        ops_value_new(ev, 0, &ops_reduce_kernel, n_dims, dims, &a, 1, &attr, sizeof attr);
    if (v && f == ops_row_sum && v->n)
        v->terms = a->n / v->n;
    return v;
}

struct ops_value *ops_scan(struct ops_eval *ev, ops_scan_fn f, double flops, uint32_t axes,
                           struct ops_value *a)
{
    struct ops_rows_attr attr = {.axes = axes, .keepdim = 1, .scan = f};
    if (!a)
        return NULL;
    ev->flops += flops * (double)a->n;
    return ops_value_new(ev, 0, &ops_scan_kernel, a->n_dims, a->dims, &a, 1, &attr, sizeof attr);
}
