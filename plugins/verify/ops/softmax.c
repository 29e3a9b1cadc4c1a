/*
 * Rows through exponentials: softmax, log_softmax, logsumexp; and running sums and products. The
 * formulas are those of rowexp.h.
 */
#include "ops.h"
#include "rowexp.h"

#include <math.h>

/* v[j] = exp(x_j - max) and e[j] its relative error before rounding; both may be NULL. */
static struct ops_shares shares_of(const struct ops_row *row, double *v, double *e,
                                   const struct ops_arith *ar)
{
    struct ops_peak peak = {-INFINITY, 0, 0};
    struct ops_exp_sums sums = {0, 0, 0, -INFINITY};
    for (uint64_t j = 0; j < row->n; j++)
        ops_peak_add(&peak, row->v[j], row->e[j]);
    struct ops_shares s = ops_shares_open(&peak, row->n, ar);
    if (!s.plain)
        return s;
    for (uint64_t j = 0; j < row->n; j++) {
        double x = row->v[j], p = exp(x - s.max);
        double growth = ops_growth(ops_exponent_error(x, row->e[j], &s, ar));
        if (v) {
            v[j] = p;
            e[j] = growth;
        }
        ops_exp_add(&sums, x, p, growth);
    }
    ops_shares_close(&s, &sums, row->n, ar);
    return s;
}

static void fill(const struct ops_row *row, double *v, double *e, struct ops_num x)
{
    for (uint64_t j = 0; j < row->n; j++) {
        v[j] = x.v;
        e[j] = x.e;
    }
}

static void softmax(const struct ops_row *row, int fused, double *v, double *e,
                    const struct ops_arith *ar)
{
    struct ops_shares s = shares_of(row, v, e, ar);
    if (!s.plain)
        fill(row, v, e, ops_softmax_edge(&s));
    for (uint64_t j = 0; s.plain && j < row->n; j++) {
        struct ops_num p = ops_softmax_num(&s, v[j], e[j], ar);
        p = fused ? ops_softmax_fused_num(&s, p) : p;
        v[j] = p.v;
        e[j] = p.e;
    }
}

void ops_row_softmax(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    softmax(row, 0, v, e, ar);
}

void ops_row_softmax_fused(const struct ops_row *row, double *v, double *e,
                           const struct ops_arith *ar)
{
    softmax(row, 1, v, e, ar);
}

void ops_row_log_softmax(const struct ops_row *row, double *v, double *e,
                         const struct ops_arith *ar)
{
    struct ops_shares s = shares_of(row, NULL, NULL, ar);
    if (!s.plain)
        fill(row, v, e, ops_softmax_edge(&s));
    for (uint64_t j = 0; s.plain && j < row->n; j++) {
        struct ops_num y = ops_log_softmax_num(&s, row->v[j], row->e[j], ar);
        v[j] = y.v;
        e[j] = y.e;
    }
}

struct ops_num ops_row_logsumexp(const struct ops_row *row, const struct ops_row_options *opt,
                                 const struct ops_arith *ar)
{
    (void)opt;
    struct ops_shares s = shares_of(row, NULL, NULL, ar);
    return ops_logsumexp_num(&s, ar);
}

void ops_row_cumsum(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    struct ops_prefix p = {0, 0, 0, 0};
    for (uint64_t i = 0; i < row->n; i++) {
        ops_prefix_add(&p, row->v[i], row->e[i]);
        struct ops_num y = ops_prefix_num(&p, ar);
        v[i] = y.v;
        e[i] = y.e;
    }
}

void ops_row_cumprod(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    struct ops_chain c = {.product = 1};
    for (uint64_t i = 0; i < row->n; i++) {
        ops_chain_add(&c, row->v[i], row->e[i], ar);
        struct ops_num y = ops_chain_num(&c, i == 0, ar);
        v[i] = y.v;
        e[i] = y.e;
    }
}
