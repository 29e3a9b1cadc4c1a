/*
 * Matrix products with batch dimensions.
 */
#include "attr.h"
#include "gemm.h"

#include <string.h>

/* Row-major operands of one product; a batch step of 0 repeats one matrix. */
struct product {
    const struct ops_tensor *a, *b;
    struct ops_tensor *c;
    int64_t m, n, k, batch_a, batch_b;
};

static struct ops_run run_at(const struct ops_tensor *t, int64_t at)
{
    return (struct ops_run){t->v + at, t->e ? t->e + at : NULL};
}

static struct ops_run row(const void *ctx, int64_t batch, int64_t i, int64_t k0, int64_t count,
                          double *v, double *e)
{
    const struct product *p = ctx;
    (void)count, (void)v, (void)e;
    return run_at(p->a, batch * p->batch_a + i * p->k + k0);
}

static struct ops_run line(const void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t count,
                           double *v, double *e)
{
    const struct product *p = ctx;
    (void)count, (void)v, (void)e;
    return run_at(p->b, batch * p->batch_b + k * p->n + j0);
}

static void store(const void *ctx, int64_t batch, int64_t i, int64_t j0, int64_t count,
                  const struct ops_num *c)
{
    const struct product *p = ctx;
    int64_t at = (batch * p->m + i) * p->n + j0;
    for (int64_t x = 0; x < count; x++) {
        p->c->v[at + x] = c[x].v;
        p->c->e[at + x] = c[x].e;
    }
}

static int32_t run_matmul(const struct ops_step *step)
{
    const struct ops_tensor *a = step->in[0], *b = step->in[1], *c = step->out;
    struct product p = {.a = a,
                        .b = b,
                        .c = step->out,
                        .m = a->dims[a->n_dims - 2],
                        .k = a->dims[a->n_dims - 1],
                        .n = b->dims[b->n_dims - 1]};
    p.batch_a = a->n_dims > 2 ? p.m * p.k : 0;
    p.batch_b = b->n_dims > 2 ? p.n * p.k : 0;
    struct ops_gemm g = {.batch = (int64_t)c->n / p.m / p.n,
                         .m = p.m,
                         .n = p.n,
                         .k = p.k,
                         .with_errors = a->e || b->e,
                         .ctx = &p,
                         .row = row,
                         .line = line,
                         .store = store};
    return ops_gemm_run(step->ev, &g);
}

/* Batches as wanted; rows of a, columns of b. */
static void need_matmul(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                        struct ops_box *out)
{
    uint32_t n_dims = v->in[input]->n_dims, skip = input ? n_dims - 2 : n_dims - 1;
    for (uint32_t d = 0; d < n_dims; d++)
        if (d != skip && (n_dims > 2 || d >= n_dims - 2)) {
            out->start[d] = want->start[v->n_dims - n_dims + d];
            out->count[d] = want->count[v->n_dims - n_dims + d];
        }
}

const struct ops_kernel ops_matmul_kernel = {need_matmul, run_matmul, 0};

/* Both with matrices: batch dimensions agree, or one operand has none. */
static struct ops_value *product_of(struct ops_eval *ev, uint32_t column, struct ops_value *a,
                                    struct ops_value *b)
{
    struct ops_value *in[] = {a, b}, *big = a->n_dims >= b->n_dims ? a : b;
    int64_t dims[RUNG_MAX_DIMS], k = a->dims[a->n_dims - 1];
    char text_a[256], text_b[256];
    int good = b->dims[b->n_dims - 2] == k;
    if (a->n_dims > 2 && b->n_dims > 2)
        good = good && a->n_dims == b->n_dims &&
               !memcmp(a->dims, b->dims, (a->n_dims - 2) * sizeof *dims);
    if (!good)
        return ops_stop(ev, column,
                        "no matrix product of shapes %s and %s: the last extent of the first and "
                        "the last but one of the second must agree (transpose_a=1 or "
                        "transpose_b=1 exchanges them), and batches be equal or absent",
                        ops_shape_text(a->n_dims, a->dims, text_a, sizeof text_a),
                        ops_shape_text(b->n_dims, b->dims, text_b, sizeof text_b));
    memcpy(dims, big->dims, sizeof dims);
    dims[big->n_dims - 2] = a->dims[a->n_dims - 2];
    dims[big->n_dims - 1] = b->dims[b->n_dims - 1];
    struct ops_value *v =
        ops_value_new(ev, column, &ops_matmul_kernel, big->n_dims, dims, in, 2, NULL, 0);
    if (v) {
        ev->flops += 2 * (double)v->n * (double)k;
        v->terms = (uint64_t)k;
    }
    return v;
}

/* A vector is a matrix of one row (on the left) or one column (on the right). */
static struct ops_value *as_matrix(struct ops_eval *ev, uint32_t column, int right,
                                   struct ops_value *x)
{
    int64_t dims[2] = {right ? x->dims[0] : 1, right ? 1 : x->dims[0]};
    return x->n_dims == 1 ? ops_reshape(ev, column, 2, dims, x) : x;
}

struct ops_value *ops_matmul(struct ops_eval *ev, uint32_t column, struct ops_value *a,
                             struct ops_value *b)
{
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n = 0;
    if (!a || !b)
        return NULL;
    if (!a->n_dims || !b->n_dims)
        return ops_stop(ev, column, "a matrix product of a single number: use *");
    struct ops_value *x = as_matrix(ev, column, 0, a), *y = as_matrix(ev, column, 1, b);
    struct ops_value *v = x && y ? product_of(ev, column, x, y) : NULL;
    if (!v || (a->n_dims > 1 && b->n_dims > 1))
        return v;
    for (uint32_t d = 0; d < v->n_dims; d++)
        if (!(d + 2 == v->n_dims && a->n_dims == 1) && !(d + 1 == v->n_dims && b->n_dims == 1))
            dims[n++] = v->dims[d];
    return ops_reshape(ev, column, n, dims, v);
}
