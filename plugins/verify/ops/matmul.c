/*
 * Matrix products and the exchange of two dimensions.
 */
#include "ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Batched row-major product: C[b] (m x n) = A[b] (m x k) B[b] (k x n). */
struct shape3 {
    int64_t batch, m, k, n;
    int repeat_a, repeat_b; /* one matrix serves all batches */
};

/* Sums of one row of C: values, |a||b|, and (|a| + ea)(|b| + eb). */
struct sums {
    double *v, *size, *high;
};

static uint64_t nonzero(const double *x, int64_t n, int64_t step)
{
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += x[i * step] != 0;
    return count;
}

static void row_sums(const struct ops_tensor *a, const struct ops_tensor *b, int64_t at_a,
                     int64_t at_b, const struct shape3 *s, const struct sums *r)
{
    memset(r->v, 0, (size_t)s->n * sizeof *r->v);
    memset(r->size, 0, (size_t)s->n * sizeof *r->v);
    memset(r->high, 0, (size_t)s->n * sizeof *r->v);
    for (int64_t k = 0; k < s->k; k++) {
        double x = a->v[at_a + k], size = fabs(x), high = size + (a->e ? a->e[at_a + k] : 0);
        const double *y = b->v + at_b + k * s->n, *ye = b->e ? b->e + at_b + k * s->n : NULL;
        for (int64_t j = 0; j < s->n; j++) {
            r->v[j] += x * y[j];
            r->size[j] += size * fabs(y[j]);
        }
        for (int64_t j = 0; (a->e || ye) && j < s->n; j++)
            r->high[j] += high * (fabs(y[j]) + (ye ? ye[j] : 0));
    }
    if (!a->e && !b->e)
        memcpy(r->high, r->size, (size_t)s->n * sizeof *r->v);
}

/*
 * A dot product of n nonzero terms in any order, fused or not: n u sum |a||b| (Higham,
 * section 3.1), the operands' rounding (tf32, split products), and the errors that they bring. One
 * nonzero term is nearly exact, which makes one-hot rows a probe of the precision of products.
 */
static struct ops_num dot(double v, double size, double high, uint64_t terms,
                          const struct ops_arith *ar)
{
    if (isnan(v) || isinf(size))
        return (struct ops_num){v, 0};
    double steps = terms > 1 ? (double)(terms - 1) : 0;
    double e = (steps * ar->sum + 2 * ar->matmul) * high + (high - size) + (double)terms * ar->tiny;
    if (ar->u > 0)
        e += ar->u * fabs(v);
    if (high + e > ar->max && fabs(v) <= ar->max)
        e = INFINITY;
    return ops_settle(v, e);
}

/* All rows of all products; parts of it run at once. */
struct job {
    const struct ops_tensor *a, *b;
    struct ops_tensor *c;
    const struct ops_arith *ar;
    struct shape3 s;
    uint64_t *columns;  /* nonzero elements of each column of each B */
    _Atomic int failed; /* a part had no memory */
};

/* Row `row` of C, counted over all batches. */
static void one_row(const struct job *j, int64_t row, const struct sums *r)
{
    const struct shape3 *s = &j->s;
    int64_t batch_a = s->repeat_a ? 0 : row / s->m, batch_b = s->repeat_b ? 0 : row / s->m;
    int64_t at_a = (batch_a * s->m + row % s->m) * s->k;
    uint64_t in_row = nonzero(j->a->v + at_a, s->k, 1);
    row_sums(j->a, j->b, at_a, batch_b * s->k * s->n, s, r);
    for (int64_t i = 0; i < s->n; i++) {
        uint64_t in_column = j->columns[batch_b * s->n + i];
        uint64_t terms = in_row < in_column ? in_row : in_column;
        if (j->a->e || j->b->e)
            terms = (uint64_t)s->k;
        struct ops_num x = dot(r->v[i], r->size[i], r->high[i], terms, j->ar);
        j->c->v[row * s->n + i] = x.v;
        j->c->e[row * s->n + i] = x.e;
    }
}

static void run_rows(void *ctx, uint64_t first, uint64_t end)
{
    struct job *j = ctx;
    double *work = malloc(3 * (size_t)j->s.n * sizeof *work);
    struct sums r = {work, work + j->s.n, work + 2 * j->s.n};
    j->failed |= !work;
    for (uint64_t row = first; work && row < end; row++)
        one_row(j, (int64_t)row, &r);
    free(work);
}

static int32_t all_products(struct ops_eval *ev, const struct ops_tensor *a,
                            const struct ops_tensor *b, const struct shape3 *s,
                            struct ops_tensor *c)
{
    struct job job = {.a = a, .b = b, .c = c, .ar = &ev->arith, .s = *s};
    int64_t n_columns = s->n * (s->repeat_b ? 1 : s->batch);
    job.columns = malloc((size_t)n_columns * sizeof *job.columns);
    if (!job.columns)
        return ops_no_memory(&ev->who);
    for (int64_t i = 0; i < n_columns; i++)
        job.columns[i] = nonzero(b->v + i / s->n * s->k * s->n + i % s->n, s->k, s->n);
    uint64_t grain = OPS_GRAIN / (uint64_t)s->n / (uint64_t)s->k + 1;
    ops_parallel(ev->threads, (uint64_t)(s->batch * s->m), grain, run_rows, &job);
    free(job.columns);
    return job.failed ? ops_no_memory(&ev->who) : RUNG_OK;
}

/* Batch dimensions must agree, or one operand have none. Fills the product's shape. */
static int shapes(const struct ops_tensor *a, const struct ops_tensor *b, struct shape3 *s,
                  uint32_t *n_dims, int64_t *dims)
{
    const struct ops_tensor *big = a->n_dims >= b->n_dims ? a : b;
    if (a->n_dims < 2 || b->n_dims < 2)
        return 0;
    *s = (struct shape3){.batch = 1,
                         .m = a->dims[a->n_dims - 2],
                         .k = a->dims[a->n_dims - 1],
                         .n = b->dims[b->n_dims - 1],
                         .repeat_a = a->n_dims == 2,
                         .repeat_b = b->n_dims == 2};
    if (b->dims[b->n_dims - 2] != s->k)
        return 0;
    if (!s->repeat_a && !s->repeat_b &&
        (a->n_dims != b->n_dims || memcmp(a->dims, b->dims, (a->n_dims - 2) * sizeof *dims)))
        return 0;
    for (uint32_t i = 0; i + 2 < big->n_dims; i++) {
        dims[i] = big->dims[i];
        s->batch *= dims[i];
    }
    *n_dims = big->n_dims;
    dims[*n_dims - 2] = s->m;
    dims[*n_dims - 1] = s->n;
    return 1;
}

int32_t ops_matmul(struct ops_eval *ev, uint32_t column, struct ops_tensor *a, struct ops_tensor *b,
                   struct ops_tensor **out)
{
    struct shape3 s = {0};
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n_dims;
    char text_a[256], text_b[256];
    int32_t status;
    *out = NULL;
    if (shapes(a, b, &s, &n_dims, dims))
        status = ops_tensor_new(ev, n_dims, dims, 1, out);
    else
        status = ops_fail(&ev->who, RUNG_ECONFIG, column, "no matrix product of shapes %s and %s",
                          ops_shape_text(a->n_dims, a->dims, text_a, sizeof text_a),
                          ops_shape_text(b->n_dims, b->dims, text_b, sizeof text_b));
    if (!status)
        ev->flops += 2 * (double)(*out)->n * (double)s.k;
    if (!status && !ev->dry)
        status = all_products(ev, a, b, &s, *out);
    if (status) {
        ops_tensor_drop(*out);
        *out = NULL;
    }
    ops_tensor_drop(a);
    ops_tensor_drop(b);
    return status;
}

static void copy_transposed(const struct ops_tensor *a, uint32_t d0, uint32_t d1,
                            const double *from, double *to)
{
    int64_t strides[RUNG_MAX_DIMS], index[RUNG_MAX_DIMS] = {0}, stride = 1, at = 0;
    for (uint32_t d = a->n_dims; d-- > 0; stride *= a->dims[d])
        strides[d] = stride;
    int64_t dims[RUNG_MAX_DIMS];
    memcpy(dims, a->dims, sizeof dims);
    dims[d0] = a->dims[d1];
    dims[d1] = a->dims[d0];
    stride = strides[d0];
    strides[d0] = strides[d1];
    strides[d1] = stride;
    for (uint64_t i = 0; i < a->n; i++) {
        to[i] = from[at];
        for (uint32_t d = a->n_dims; d-- > 0;) {
            at += strides[d];
            if (++index[d] < dims[d])
                break;
            at -= strides[d] * dims[d];
            index[d] = 0;
        }
    }
}

int32_t ops_transpose(struct ops_eval *ev, uint32_t d0, uint32_t d1, struct ops_tensor *a,
                      struct ops_tensor **out)
{
    int64_t dims[RUNG_MAX_DIMS];
    memcpy(dims, a->dims, sizeof dims);
    dims[d0] = a->dims[d1];
    dims[d1] = a->dims[d0];
    int32_t status = ops_tensor_new(ev, a->n_dims, dims, a->e != NULL, out);
    if (!status && !ev->dry) {
        copy_transposed(a, d0, d1, a->v, (*out)->v);
        if (a->e)
            copy_transposed(a, d0, d1, a->e, (*out)->e);
    }
    ops_tensor_drop(a);
    return status;
}
