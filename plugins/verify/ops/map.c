/*
 * Elementwise operators with broadcasting. Inner loops run over the last dimension with a step of 0
 * or 1 an operand.
 */
#include "ops.h"

#include <string.h>

static struct ops_num element(const struct ops_tensor *t, int64_t at)
{
    return (struct ops_num){t->v[at], t->e ? t->e[at] : 0};
}

struct job1 {
    ops_unary f;
    const struct ops_tensor *a;
    struct ops_tensor *r;
    const struct ops_arith *ar;
};

static void run_map1(void *ctx, uint64_t first, uint64_t end)
{
    const struct job1 *j = ctx;
    for (uint64_t i = first; i < end; i++) {
        struct ops_num x = ops_apply1(j->f, element(j->a, (int64_t)i), j->ar);
        j->r->v[i] = x.v;
        j->r->e[i] = x.e;
    }
}

int32_t ops_map1(struct ops_eval *ev, ops_unary f, double flops, struct ops_tensor *a,
                 struct ops_tensor **out)
{
    struct ops_tensor *r = a;
    int32_t status = RUNG_OK;
    ev->flops += flops * (double)a->n;
    if (a->refs > 1)
        status = ops_tensor_new(ev, a->n_dims, a->dims, 1, &r);
    else
        status = ops_tensor_need_errors(ev, a);
    if (status) {
        ops_tensor_drop(a);
        return status;
    }
    struct job1 job = {f, a, r, &ev->arith};
    if (!ev->dry)
        ops_parallel(ev->threads, a->n, OPS_GRAIN, run_map1, &job);
    if (r != a)
        ops_tensor_drop(a);
    *out = r;
    return RUNG_OK;
}

/* Common shape, right-aligned; 0 when two extents differ and neither is 1. */
static int broadcast(const struct ops_tensor *a, const struct ops_tensor *b, uint32_t *n_dims,
                     int64_t *dims)
{
    *n_dims = a->n_dims > b->n_dims ? a->n_dims : b->n_dims;
    for (uint32_t i = 1; i <= *n_dims; i++) {
        int64_t x = i <= a->n_dims ? a->dims[a->n_dims - i] : 1;
        int64_t y = i <= b->n_dims ? b->dims[b->n_dims - i] : 1;
        if (x != y && x != 1 && y != 1)
            return 0;
        dims[*n_dims - i] = x == 1 ? y : x;
    }
    return 1;
}

/* Strides of t in the common shape; 0 along dimensions that it repeats. */
static void strides_in(const struct ops_tensor *t, uint32_t n_dims, int64_t *strides)
{
    int64_t stride = 1;
    memset(strides, 0, n_dims * sizeof *strides);
    for (uint32_t i = 1; i <= t->n_dims; i++) {
        int64_t extent = t->dims[t->n_dims - i];
        strides[n_dims - i] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

struct job2 {
    ops_binary f;
    const struct ops_tensor *a, *b;
    struct ops_tensor *r;
    const struct ops_arith *ar;
    int64_t step_a[RUNG_MAX_DIMS + 1], step_b[RUNG_MAX_DIMS + 1];
};

/* n results from `to` on, along the last dimension. */
static void run_row(const struct job2 *j, uint64_t to, int64_t at_a, int64_t at_b, uint64_t n)
{
    uint32_t last = j->r->n_dims ? j->r->n_dims - 1 : 0;
    int64_t step_a = j->step_a[last], step_b = j->step_b[last];
    for (uint64_t i = 0; i < n; i++) {
        struct ops_num x = ops_apply2(j->f, element(j->a, at_a), element(j->b, at_b), j->ar);
        j->r->v[to + i] = x.v;
        j->r->e[to + i] = x.e;
        at_a += step_a;
        at_b += step_b;
    }
}

/* Offset in an operand of flat index i of the result. */
static int64_t offset_of(const struct ops_tensor *r, const int64_t *steps, uint64_t i)
{
    int64_t at = 0;
    for (uint32_t d = r->n_dims; d-- > 0; i /= (uint64_t)r->dims[d])
        at += (int64_t)(i % (uint64_t)r->dims[d]) * steps[d];
    return at;
}

static void run_map2(void *ctx, uint64_t first, uint64_t end)
{
    const struct job2 *j = ctx;
    uint64_t row = j->r->n_dims ? (uint64_t)j->r->dims[j->r->n_dims - 1] : 1;
    for (uint64_t i = first; i < end;) {
        uint64_t left = row - i % row, n = left < end - i ? left : end - i;
        run_row(j, i, offset_of(j->r, j->step_a, i), offset_of(j->r, j->step_b, i), n);
        i += n;
    }
}

/* An operand whose memory the result may take: ours alone, and of the same shape. */
static struct ops_tensor *reusable(struct ops_tensor *t, uint32_t n_dims, const int64_t *dims)
{
    if (t->refs > 1 || t->n_dims != n_dims)
        return NULL;
    return n_dims && memcmp(t->dims, dims, n_dims * sizeof *dims) ? NULL : t;
}

int32_t ops_map2(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                 struct ops_tensor *a, struct ops_tensor *b, struct ops_tensor **out)
{
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n_dims;
    char text_a[256], text_b[256];
    int32_t status;
    struct ops_tensor *r = NULL;
    if (!broadcast(a, b, &n_dims, dims)) {
        status = ops_fail(&ev->who, RUNG_ECONFIG, column, "shapes %s and %s do not broadcast",
                          ops_shape_text(a->n_dims, a->dims, text_a, sizeof text_a),
                          ops_shape_text(b->n_dims, b->dims, text_b, sizeof text_b));
    } else if ((r = reusable(a, n_dims, dims)) || (r = reusable(b, n_dims, dims))) {
        r->refs++;
        status = ops_tensor_need_errors(ev, r);
    } else {
        status = ops_tensor_new(ev, n_dims, dims, 1, &r);
    }
    if (!status && !ev->dry) {
        struct job2 job = {.f = f, .a = a, .b = b, .r = r, .ar = &ev->arith};
        strides_in(a, n_dims, job.step_a);
        strides_in(b, n_dims, job.step_b);
        ops_parallel(ev->threads, r->n, OPS_GRAIN, run_map2, &job);
    }
    if (!status)
        ev->flops += flops * (double)r->n;
    ops_tensor_drop(a);
    ops_tensor_drop(b);
    if (status)
        ops_tensor_drop(r);
    *out = status ? NULL : r;
    return status;
}
