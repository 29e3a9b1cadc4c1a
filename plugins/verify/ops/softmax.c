/*
 * Rows through exponentials: softmax, log_softmax, logsumexp; and running sums and products.
 */
#include "ops.h"

#include <float.h>
#include <math.h>

/*
 * The denominator s = sum exp(x_j - m) of a row. `error` is the relative error of s in an honest
 * kernel, online ones included.
 *
 * An exponent x - m may be computed as x log2e - m log2e, rounded at |x| and |m|; later rescaling
 * uses exponents of the same kind. So the argument of every exponential is granted
 * d_j = arg |x_j - m| + 4 u (|x_j| + |m|), and each term e^{d_j} - 1 relative, weighted with its
 * share. An online kernel multiplies what it has of s by an exponential at each new maximum: the
 * errors of those factors are weighted with the share of s that came before the record, in index
 * order. Parallel kernels merge partial sums the same way: log2 n levels, and 8 more.
 */
struct shares {
    double max, log_sum, sum;
    double fuse;  /* 4 u (|m| + log s): the part of an exponent's error that all share */
    double error; /* of s, relative */
    int plain;    /* 0: NaN, infinities or unconstrained elements: `edge` says the answer */
    struct ops_num edge;
};

static double exponent_error(const struct ops_row *row, uint64_t j, const struct shares *s,
                             const struct ops_arith *ar)
{
    double x = row->v[j];
    return row->e[j] + ar->arg * fabs(x - s->max) + 4 * ar->sum * fabs(x) + s->fuse;
}

/* The maximum; returns 0 when the row is not plain. */
static int scan_max(const struct ops_row *row, const struct ops_arith *ar, struct shares *s)
{
    double max = -INFINITY, brought = 0;
    int nan = 0;
    for (uint64_t j = 0; j < row->n; j++) {
        double x = row->v[j];
        nan |= isnan(x);
        brought += row->e[j];
        max = x > max ? x : max;
    }
    s->max = max;
    if (isinf(brought))
        s->edge = (struct ops_num){0, INFINITY};
    else if (nan)
        s->edge = (struct ops_num){NAN, 0};
    else if (fabs(max) > ar->max)
        s->edge = isinf(max) ? (struct ops_num){max, 0} : (struct ops_num){max, INFINITY};
    else
        return 1;
    return 0;
}

/* v[j] = exp(x_j - max) and e[j] its relative error before rounding; both may be NULL. */
static struct shares shares_of(const struct ops_row *row, double *v, double *e,
                               const struct ops_arith *ar)
{
    struct shares s = {0};
    s.plain = scan_max(row, ar, &s);
    if (!s.plain)
        return s;
    double weighted = 0, rescaled = 0, record = -INFINITY;
    s.fuse = 4 * ar->sum * (fabs(s.max) + log((double)row->n));
    for (uint64_t j = 0; j < row->n; j++) {
        double p = exp(row->v[j] - s.max), growth = ops_growth(exponent_error(row, j, &s, ar));
        if (v) {
            v[j] = p;
            e[j] = growth;
        }
        if (row->v[j] > record) {
            record = row->v[j];
            rescaled += s.sum;
        }
        s.sum += p;
        if (p > 0)
            weighted += p * growth;
    }
    double n = (double)row->n, merges = rescaled / s.sum + fmin(n, log2(n) + 8);
    s.log_sum = log(s.sum);
    s.error = weighted / s.sum + ar->res + 4 * s.fuse + merges * (ar->res + ar->u) + n * ar->sum +
              n * ar->tiny / s.sum;
    return s;
}

static void fill(const struct ops_row *row, double *v, double *e, struct ops_num x)
{
    for (uint64_t j = 0; j < row->n; j++) {
        v[j] = x.v;
        e[j] = x.e;
    }
}

/*
 * exp(x - m)/s: the errors of both and of the division. A flushed exponential costs tiny/s. Rows
 * with an infinite maximum are NaN, as in PyTorch (inf - inf).
 */
void ops_row_softmax(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    struct shares s = shares_of(row, v, e, ar);
    if (!s.plain) {
        fill(row, v, e, isinf(s.edge.e) ? s.edge : (struct ops_num){NAN, 0});
        return;
    }
    double factor = (1 + ar->res) / (1 - s.error);
    for (uint64_t j = 0; j < row->n; j++) {
        double p = v[j] / s.sum, relative = (1 + e[j]) * factor - 1;
        v[j] = p;
        e[j] = p > 0 ? p * (relative + ar->div) + 2 * ar->tiny : 2 * ar->tiny;
        if (s.error > 0.5 || e[j] > 1)
            e[j] = 1;
    }
}

/* A kernel that multiplies before it divides rescales its sums as it does s. */
void ops_row_softmax_fused(const struct ops_row *row, double *v, double *e,
                           const struct ops_arith *ar)
{
    struct shares s = shares_of(row, NULL, NULL, ar);
    ops_row_softmax(row, v, e, ar);
    for (uint64_t j = 0; s.plain && j < row->n; j++)
        e[j] = fmin(1, e[j] + 2 * s.error * v[j]);
}

/* (x - m) - log s; log passes on the relative error of s. */
void ops_row_log_softmax(const struct ops_row *row, double *v, double *e,
                         const struct ops_arith *ar)
{
    struct shares s = shares_of(row, NULL, NULL, ar);
    if (!s.plain) {
        fill(row, v, e, isinf(s.edge.e) ? s.edge : (struct ops_num){NAN, 0});
        return;
    }
    double common = s.error + ar->arg + ar->res * fabs(s.log_sum) + s.fuse;
    for (uint64_t j = 0; j < row->n; j++) {
        double x = row->v[j];
        v[j] = x - s.max - s.log_sum;
        e[j] =
            row->e[j] + common + 4 * ar->sum * fabs(x) + 2 * ar->u * (fabs(v[j]) + fabs(x - s.max));
        if (!isfinite(v[j]))
            e[j] = 0;
    }
}

/* m + log s. An infinite maximum is the answer. */
struct ops_num ops_row_logsumexp(const struct ops_row *row, const struct ops_row_options *opt,
                                 const struct ops_arith *ar)
{
    (void)opt;
    struct shares s = shares_of(row, NULL, NULL, ar);
    if (!s.plain)
        return s.edge;
    double v = s.max + s.log_sum;
    return ops_settle(v, s.error + ar->arg + ar->res * fabs(s.log_sum) + s.fuse +
                             2 * ar->u * (fabs(v) + fabs(s.max)));
}

/* Prefix sums: each as a sum of its terms in any order (scans by trees are honest). */
void ops_row_cumsum(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    double sum = 0, size = 0, brought = 0, terms = 0;
    for (uint64_t i = 0; i < row->n; i++) {
        double x = row->v[i];
        sum += x;
        size += fabs(x);
        brought += row->e[i];
        terms += x != 0;
        v[i] = sum;
        e[i] = isinf(brought) ? INFINITY : 0;
        if (!isfinite(sum) || isinf(brought))
            continue;
        double steps = terms > 1 ? terms - 1 : 0;
        e[i] = brought + steps * (ar->sum * (size + brought) + ar->tiny);
        if (ar->u > ar->sum)
            e[i] += ar->u * fabs(sum);
        if (size > ar->max && fabs(sum) <= ar->max)
            e[i] = INFINITY;
    }
}

/*
 * Prefix products: each as a product of its factors in any order. Relative errors add up as
 * logarithms: of (|x| + e)/|x|, and 2u a step. Partial products may leave the range where the
 * product does not (see ops_row_prod).
 */
void ops_row_cumprod(const struct ops_row *row, double *v, double *e, const struct ops_arith *ar)
{
    double product = 1, grown = 0, high = 0, big = 0, small = 0, brought = 0;
    int zero = 0;
    for (uint64_t i = 0; i < row->n; i++) {
        double size = fabs(row->v[i]), more = row->e[i], l = log(size);
        product *= row->v[i];
        brought += more;
        zero |= size == 0;
        grown += log1p(more / size) + 2 * ar->u;
        high += log(size + more) + 2 * ar->u;
        big += l > 0 ? l : 0;
        small += l < 0 ? l : 0;
        v[i] = product;
        e[i] = i == 0 ? brought : 0;
        if (isinf(brought) || (isfinite(product) && exp(big) > ar->max && fabs(product) <= ar->max))
            e[i] = INFINITY;
        else if (isfinite(product) && i > 0 && !(zero && brought == 0))
            e[i] = zero ? exp(high) : fabs(product) * ops_growth(grown);
        if (isfinite(product) && i > 0 && !zero && ar->tiny > 0 && exp(small) < ar->tiny)
            e[i] += fabs(product) + ar->tiny * exp(big);
        if (!(e[i] >= 0))
            e[i] = INFINITY;
    }
}
