/*
 * Reductions of one row. Values are summed in float64, whose own error is 2^-29 of what float32 is
 * granted. Bounds hold for any order of summation.
 */
#include "ops.h"

#include <float.h>
#include <math.h>

/* What every sum of terms needs to know. */
struct total {
    double sum, size, error; /* sum v, sum |v|, sum e */
    uint64_t terms;          /* that are not exactly zero: adding zero rounds nothing */
};

static struct total add_up(const struct ops_row *row)
{
    struct total t = {0, 0, 0, 0};
    for (uint64_t i = 0; i < row->n; i++) {
        t.sum += row->v[i];
        t.size += fabs(row->v[i]);
        t.error += row->e[i];
        t.terms += row->v[i] != 0 || row->e[i] != 0;
    }
    return t;
}

/*
 * |error| <= (n - 1) u sum |x_i| for any order (Higham, section 4.2), here with the errors that the
 * terms bring. Partial sums may leave the range where the sum does not.
 */
static struct ops_num total_num(const struct total *t, double extra, const struct ops_arith *ar)
{
    if (isnan(t->sum) || isinf(t->size))
        return isinf(t->error) ? (struct ops_num){0, INFINITY} : (struct ops_num){t->sum, 0};
    double steps = t->terms > 1 ? (double)(t->terms - 1) + extra : 0;
    double e = t->error + steps * (ar->sum * (t->size + t->error) + ar->tiny);
    if (ar->u > ar->sum)
        e += ar->u * fabs(t->sum);
    if (t->size + e > ar->max && fabs(t->sum) <= ar->max)
        e = INFINITY;
    return ops_settle(t->sum, e);
}

struct ops_num ops_row_sum(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    (void)opt;
    struct total t = add_up(row);
    return total_num(&t, 0, ar);
}

/*
 * As the sum, over n. A running mean (Welford) errs with u sum |x| (1 + 2 (1 + ln n)/n) as well,
 * and rounds at zeros too.
 */
static struct ops_num mean_of(const struct total *t, uint64_t n, const struct ops_arith *ar)
{
    struct total all = *t;
    all.terms = n;
    struct ops_num s = total_num(&all, 2 * (1 + log((double)n)), ar);
    return n == 1 ? s : ops_apply2(ops_div, s, (struct ops_num){(double)n, 0}, ar);
}

struct ops_num ops_row_mean(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    struct total t = add_up(row);
    return mean_of(&t, row->n, ar);
}

/* A row whose extreme is `sign` times the largest of sign * v. NaN anywhere stays. */
static struct ops_num extreme(const struct ops_row *row, double sign)
{
    double v = -INFINITY, up = -INFINITY, down = -INFINITY;
    for (uint64_t i = 0; i < row->n; i++) {
        double x = sign * row->v[i], e = row->e[i];
        if (isnan(x))
            return (struct ops_num){x, isinf(e) ? e : 0};
        v = x > v ? x : v;
        up = x + e > up ? x + e : up;
        down = x - e > down ? x - e : down;
    }
    return (struct ops_num){sign * v, isfinite(v) ? fmax(up - v, v - down) : 0};
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

/*
 * prod (|x| + e) - prod |x|, and a rounding a step. In some order the partial products may run to
 * the product of the factors above 1, or to that of the factors below 1: beyond the range they
 * overflow or flush.
 */
struct ops_num ops_row_prod(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    double v = 1, log_size = 0, log_high = 0, big = 0, small = 0, e = 0;
    for (uint64_t i = 0; i < row->n; i++) {
        double size = fabs(row->v[i]), l = log(size);
        v *= row->v[i];
        e += row->e[i];
        log_size += l;
        log_high += log(size + row->e[i]);
        big += l > 0 ? l : 0;
        small += l < 0 ? l : 0;
    }
    if (isinf(e) || isnan(v))
        return (struct ops_num){isnan(v) ? v : 0, isinf(e) ? INFINITY : 0};
    if (isinf(v)) /* an infinite factor, or overflow */
        return (struct ops_num){isinf(log_size) ? v : copysign(DBL_MAX, v), 0};
    if ((v == 0 && e == 0 && exp(big) <= ar->max) || row->n == 1)
        return (struct ops_num){v, e};
    double grown = ops_growth(log_high - log_size + (double)row->n * 2 * ar->u);
    e = log_size == -INFINITY ? exp(log_high) : fabs(v) * grown;
    if (ar->tiny > 0 && exp(small) < ar->tiny)
        e += fabs(v) + ar->tiny * exp(big);
    if (exp(big) > ar->max && fabs(v) <= ar->max)
        e = INFINITY;
    return ops_settle(v, e);
}

/* Error that a float32 running sum of the row in index order really makes, over n. */
static double running_error(const struct ops_row *row, double sum)
{
    float s = 0;
    for (uint64_t i = 0; i < row->n; i++)
        s += (float)row->v[i];
    return isfinite(s) ? fabs((double)s - sum) / (double)row->n : INFINITY;
}

/*
 * Roundings of long sums behave like random walks: with probability above 1 - 2 exp(-32) the error
 * is below 8 sqrt(n) u sum |x| (N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41 (2019) A2815,
 * theorem 2.4). Sums of equal terms drift instead; four times the drift of the plain running sum
 * covers those. The rigorous n u sum |x| stays the upper end.
 */
static double mean_error(const struct ops_row *row, const struct total *t,
                         const struct ops_arith *ar)
{
    double n = (double)row->n, step = ar->sum * t->size / n;
    double rigorous = (n + 8) * step;
    if (!ar->running32)
        return rigorous;
    return fmin(rigorous, fmax((8 * sqrt(n) + 8) * step, 4 * running_error(row, t->sum)));
}

struct ops_num ops_row_centre(const struct ops_row *row, const struct ops_row_options *opt,
                              const struct ops_arith *ar)
{
    (void)opt;
    struct total t = add_up(row);
    struct ops_num mean = mean_of(&t, row->n, ar);
    if (!isfinite(mean.v) || isinf(mean.e))
        return mean;
    return (struct ops_num){mean.v, mean_error(row, &t, ar) + t.error / (double)row->n};
}

/*
 * Variance as two passes or Welford's updates compute it. With d_i = x_i - mean and a mean that is
 * off by m: sum (d_i - m)^2 = sum d_i^2 + n m^2, for sum d_i = 0 (two passes); a running mean pairs
 * its errors with d_i, which adds at most 2 m sum |d_i| and, as their signs are random, about
 * 2 m sqrt(sum d_i^2) (T. F. Chan, G. H. Golub, R. J. LeVeque, Am. Stat. 37 (1983) 242, give the
 * classes). E[x^2] - mean^2 errs with u sum x_i^2 instead and is not granted.
 */
struct ops_num ops_row_var(const struct ops_row *row, const struct ops_row_options *opt,
                           const struct ops_arith *ar)
{
    struct total t = add_up(row);
    double n = (double)row->n, divisor = n - opt->unbiased, mean = t.sum / n;
    if (isnan(t.sum) || isinf(t.size) || divisor <= 0)
        return isinf(t.error) ? (struct ops_num){0, INFINITY} : (struct ops_num){NAN, 0};
    double square = 0, size = 0, brought = 0;
    for (uint64_t i = 0; i < row->n; i++) {
        double d = row->v[i] - mean;
        square += d * d;
        size += fabs(d);
        brought += row->e[i] * (2 * fabs(d) + row->e[i]);
    }
    double m = ar->sum > 0 ? mean_error(row, &t, ar) : 0;
    double e = (n + 32) * ar->sum * square + n * m * m + 2 * m * fmin(size, 8 * sqrt(square));
    e = (e + brought + 4 * ar->u * square) / divisor;
    double v = square / divisor;
    if (t.size > ar->max || square > ar->max)
        return (struct ops_num){v > ar->max ? DBL_MAX : v, v > ar->max ? 0 : INFINITY};
    return ops_settle(v, e + ar->div * v + ar->tiny);
}

/* Euclidean norm: sqrt of the sum of squares. */
struct ops_num ops_row_norm(const struct ops_row *row, const struct ops_row_options *opt,
                            const struct ops_arith *ar)
{
    (void)opt;
    struct total t = {0, 0, 0, 0};
    for (uint64_t i = 0; i < row->n; i++) {
        double size = fabs(row->v[i]), e = row->e[i];
        t.sum += size * size;
        t.error += e * (2 * size + e) + ar->u * size * size + (size > 0 ? ar->tiny : 0);
        t.terms += size > 0 || e > 0;
    }
    t.size = t.sum;
    struct ops_num s = total_num(&t, 0, ar);
    if (ops_beyond(s, ar) && sqrt(s.v) <= ar->max)
        return (struct ops_num){sqrt(s.v), INFINITY};
    return ops_apply1(ops_sqrt, s, ar);
}
