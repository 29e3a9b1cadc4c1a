/*
 * Reductions of one row. Values are summed in float64, whose own error is 2^-29 of what float32 is
 * granted. Bounds hold for any order of summation (rowsum.h).
 */
#include "ops.h"
#include "rowsum.h"

#include <math.h>

static struct ops_total add_up(const struct ops_row *row)
{
    struct ops_total t = {0, 0, 0, 0};
    for (uint64_t i = 0; i < row->n; i++)
        ops_total_add(&t, row->v[i], row->e[i]);
    return t;
}

struct ops_num ops_row_sum(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    (void)opt;
    struct ops_total t = add_up(row);
    return ops_total_num(&t, 0, ar);
}

struct ops_num ops_row_mean(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    struct ops_total t = add_up(row);
    return ops_mean_num(&t, row->n, ar);
}

/* A row whose extreme is `sign` times the largest of sign * v. */
static struct ops_num extreme(const struct ops_row *row, double sign)
{
    struct ops_extreme x;
    ops_extreme_open(&x);
    for (uint64_t i = 0; i < row->n; i++)
        ops_extreme_add(&x, i, sign * row->v[i], row->e[i]);
    return ops_extreme_num(&x, sign);
}

struct ops_num ops_row_max(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    (void)opt;
    (void)ar;
    return extreme(row, 1);
}

struct ops_num ops_row_min(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    (void)opt;
    (void)ar;
    return extreme(row, -1);
}

struct ops_num ops_row_prod(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    struct ops_product p = {.v = 1};
    for (uint64_t i = 0; i < row->n; i++)
        ops_product_add(&p, row->v[i], row->e[i]);
    return ops_product_num(&p, row->n, ar);
}

/* Error that a float32 running sum of the row in index order really makes, over n. */
static double running_error(const struct ops_row *row, double sum, const struct ops_arith *ar)
{
    float s = 0;
    for (uint64_t i = 0; ar->running32 && i < row->n; i++)
        s += (float)row->v[i];
    return ops_running_error(s, sum, row->n);
}

struct ops_num ops_row_centre(const struct ops_row *row, const struct ops_row_options *opt,
                              const struct ops_arith *ar)
{
    (void)opt;
    struct ops_total t = add_up(row);
    return ops_centre_num(&t, row->n, running_error(row, t.sum, ar), ar);
}

struct ops_num ops_row_var(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    struct ops_total t = add_up(row);
    struct ops_spread s = {0, 0, 0};
    struct ops_num edge;
    double n = (double)row->n, divisor = n - opt->unbiased, mean = t.sum / n;
    if (ops_var_edge(&t, divisor, &edge))
        return edge;
    for (uint64_t i = 0; i < row->n; i++)
        ops_spread_add(&s, mean, row->v[i], row->e[i]);
    return ops_var_num(&t, &s, row->n, divisor, running_error(row, t.sum, ar), ar);
}

struct ops_num ops_row_norm(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    struct ops_total t = {0, 0, 0, 0};
    for (uint64_t i = 0; i < row->n; i++)
        ops_norm_add(&t, row->v[i], row->e[i], ar);
    return ops_norm_num(&t, ar);
}
