/*
 * What reductions of a row sum up and the bounds that follow from the sums, for code that goes
 * through a row in order (reduce.c) and for kernels that do it side by side (gpu/): parts of a row
 * are added up apart and joined. All functions are pure but for what they are told to change.
 */
#ifndef OPS_ROW_SUM_H
#define OPS_ROW_SUM_H

#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#endif

/* What every sum of terms needs to know. */
struct ops_total {
    double sum, size, error; /* sum v, sum |v|, sum e */
    uint64_t terms;          /* that are not exactly zero: adding zero rounds nothing */
};

static inline void ops_total_add(struct ops_total *t, double v, double e)
{
    t->sum += v;
    t->size += fabs(v);
    t->error += e;
    t->terms += v != 0 || e != 0;
}

static inline void ops_total_join(struct ops_total *t, const struct ops_total *u)
{
    t->sum += u->sum;
    t->size += u->size;
    t->error += u->error;
    t->terms += u->terms;
}

/*
 * |error| <= (n - 1) u sum |x_i| for any order (Higham, section 4.2), here with the errors that the
 * terms bring. Partial sums may leave the range where the sum does not.
 */
static inline struct ops_num ops_total_num(const struct ops_total *t, double extra,
                                           const struct ops_arith *ar)
{
    if (isnan(t->sum) || isinf(t->size))
        return isinf(t->error) ? ops_pair(0, INFINITY) : ops_pair(t->sum, 0);
    double steps = t->terms > 1 ? (double)(t->terms - 1) + extra : 0;
    double e = t->error + steps * (ar->sum * (t->size + t->error) + ar->tiny);
    if (ar->u > ar->sum)
        e += ar->u * fabs(t->sum);
    if (t->size + e > ar->max && fabs(t->sum) <= ar->max)
        e = INFINITY;
    return ops_settle(t->sum, e);
}

/*
 * As the sum, over n. A running mean (Welford) errs with u sum |x| (1 + 2 (1 + ln n)/n) as well,
 * and rounds at zeros too.
 */
static inline struct ops_num ops_mean_num(const struct ops_total *t, uint64_t n,
                                          const struct ops_arith *ar)
{
    struct ops_total all = *t;
    all.terms = n;
    struct ops_num s = ops_total_num(&all, 2 * (1 + log((double)n)), ar);
    return n == 1 ? s : ops_apply2(ops_div, s, ops_pair((double)n, 0), ar);
}

/* The extreme of a row: the largest of what is added. */
struct ops_extreme {
    double v, up, down; /* all start at -infinity */
    double nan_e;       /* of the first NaN */
    uint64_t nan_at;    /* UINT64_MAX: there is none */
};

static inline void ops_extreme_open(struct ops_extreme *x)
{
    x->v = x->up = x->down = -(double)INFINITY;
    x->nan_e = 0;
    x->nan_at = ~(uint64_t)0;
}

static inline void ops_extreme_add(struct ops_extreme *x, uint64_t at, double v, double e)
{
    if (isnan(v) && at < x->nan_at) {
        x->nan_at = at;
        x->nan_e = e;
    }
    x->v = v > x->v ? v : x->v;
    x->up = v + e > x->up ? v + e : x->up;
    x->down = v - e > x->down ? v - e : x->down;
}

static inline void ops_extreme_join(struct ops_extreme *x, const struct ops_extreme *y)
{
    x->v = y->v > x->v ? y->v : x->v;
    x->up = y->up > x->up ? y->up : x->up;
    x->down = y->down > x->down ? y->down : x->down;
    if (y->nan_at < x->nan_at) {
        x->nan_at = y->nan_at;
        x->nan_e = y->nan_e;
    }
}

/* sign: 1, or -1 where negated elements were added. NaN anywhere stays. */
static inline struct ops_num ops_extreme_num(const struct ops_extreme *x, double sign)
{
    if (x->nan_at != ~(uint64_t)0)
        return ops_pair((double)NAN, isinf(x->nan_e) ? x->nan_e : 0);
    return ops_pair(sign * x->v, isfinite(x->v) ? fmax(x->up - x->v, x->v - x->down) : 0);
}

struct ops_product {
    double v, log_size, log_high, big, small, e; /* v starts at 1, the rest at 0 */
};

static inline void ops_product_add(struct ops_product *p, double v, double e)
{
    double size = fabs(v), l = log(size);
    p->v *= v;
    p->e += e;
    p->log_size += l;
    p->log_high += log(size + e);
    p->big += l > 0 ? l : 0;
    p->small += l < 0 ? l : 0;
}

static inline void ops_product_join(struct ops_product *p, const struct ops_product *q)
{
    p->v *= q->v;
    p->e += q->e;
    p->log_size += q->log_size;
    p->log_high += q->log_high;
    p->big += q->big;
    p->small += q->small;
}

/*
 * prod (|x| + e) - prod |x|, and a rounding a step. In some order the partial products may run to
 * the product of the factors above 1, or to that of the factors below 1: beyond the range they
 * overflow or flush.
 */
static inline struct ops_num ops_product_num(const struct ops_product *p, uint64_t n,
                                             const struct ops_arith *ar)
{
    double v = p->v, e = p->e;
    if (isinf(e) || isnan(v))
        return ops_pair(isnan(v) ? v : 0, isinf(e) ? (double)INFINITY : 0);
    if (isinf(v)) /* an infinite factor, or overflow */
        return ops_pair(isinf(p->log_size) ? v : copysign(DBL_MAX, v), 0);
    if ((v == 0 && e == 0 && exp(p->big) <= ar->max) || n == 1)
        return ops_pair(v, e);
    double grown = ops_growth(p->log_high - p->log_size + (double)n * 2 * ar->u);
    e = p->log_size == -(double)INFINITY ? exp(p->log_high) : fabs(v) * grown;
    if (ar->tiny > 0 && exp(p->small) < ar->tiny)
        e += fabs(v) + ar->tiny * exp(p->big);
    if (exp(p->big) > ar->max && fabs(v) <= ar->max)
        e = INFINITY;
    return ops_settle(v, e);
}

/*
 * Roundings of long sums behave like random walks: with probability above 1 - 2 exp(-32) the error
 * is below 8 sqrt(n) u sum |x| (N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41 (2019) A2815,
 * theorem 2.4). Sums of equal terms drift instead; four times the drift of the plain running sum
 * covers those. The rigorous n u sum |x| stays the upper end.
 * running: the error over n that a float32 running sum of the row in index order really makes.
 */
static inline double ops_mean_error(const struct ops_total *t, uint64_t count, double running,
                                    const struct ops_arith *ar)
{
    double n = (double)count, step = ar->sum * t->size / n;
    double rigorous = (n + 8) * step;
    if (!ar->running32)
        return rigorous;
    return fmin(rigorous, fmax((8 * sqrt(n) + 8) * step, 4 * running));
}

/* s: that float32 sum; total: the same in float64. */
static inline double ops_running_error(float s, double total, uint64_t n)
{
    return isfinite(s) ? fabs((double)s - total) / (double)n : (double)INFINITY;
}

/* Mean of a row with the error that enters second order only (see ops_var_num). */
static inline struct ops_num ops_centre_num(const struct ops_total *t, uint64_t n, double running,
                                            const struct ops_arith *ar)
{
    struct ops_num mean = ops_mean_num(t, n, ar);
    if (!isfinite(mean.v) || isinf(mean.e))
        return mean;
    return ops_pair(mean.v, ops_mean_error(t, n, running, ar) + t->error / (double)n);
}

/* Sums about the mean: of squares, of distances, of the errors that the elements bring. */
struct ops_spread {
    double square, size, brought;
};

static inline void ops_spread_add(struct ops_spread *s, double mean, double v, double e)
{
    double d = v - mean;
    s->square += d * d;
    s->size += fabs(d);
    s->brought += e * (2 * fabs(d) + e);
}

static inline void ops_spread_join(struct ops_spread *s, const struct ops_spread *t)
{
    s->square += t->square;
    s->size += t->size;
    s->brought += t->brought;
}

/* Whether the row has no variance that can be computed; *out is the answer then. */
static inline int ops_var_edge(const struct ops_total *t, double divisor, struct ops_num *out)
{
    if (!isnan(t->sum) && !isinf(t->size) && !(divisor <= 0))
        return 0;
    *out = isinf(t->error) ? ops_pair(0, (double)INFINITY) : ops_pair((double)NAN, 0);
    return 1;
}

/*
 * Variance as two passes or Welford's updates compute it. With d_i = x_i - mean and a mean that is
 * off by m: sum (d_i - m)^2 = sum d_i^2 + n m^2, for sum d_i = 0 (two passes); a running mean pairs
 * its errors with d_i, which adds at most 2 m sum |d_i| and, as their signs are random, about
 * 2 m sqrt(sum d_i^2) (T. F. Chan, G. H. Golub, R. J. LeVeque, Am. Stat. 37 (1983) 242, give the
 * classes). E[x^2] - mean^2 errs with u sum x_i^2 instead and is not granted.
 */
static inline struct ops_num ops_var_num(const struct ops_total *t, const struct ops_spread *s,
                                         uint64_t count, double divisor, double running,
                                         const struct ops_arith *ar)
{
    double n = (double)count, m = ar->sum > 0 ? ops_mean_error(t, count, running, ar) : 0;
    double e =
        (n + 32) * ar->sum * s->square + n * m * m + 2 * m * fmin(s->size, 8 * sqrt(s->square));
    e = (e + s->brought + 4 * ar->u * s->square) / divisor;
    double v = s->square / divisor;
    if (t->size > ar->max || s->square > ar->max)
        return ops_pair(v > ar->max ? DBL_MAX : v, v > ar->max ? 0 : (double)INFINITY);
    return ops_settle(v, e + ar->div * v + ar->tiny);
}

/* A square as a term; size equals sum. */
static inline void ops_norm_add(struct ops_total *t, double v, double e, const struct ops_arith *ar)
{
    double size = fabs(v);
    t->sum += size * size;
    t->error += e * (2 * size + e) + ar->u * size * size + (size > 0 ? ar->tiny : 0);
    t->terms += size > 0 || e > 0;
}

/* Euclidean norm: sqrt of the sum of squares. */
static inline struct ops_num ops_norm_num(const struct ops_total *squares,
                                          const struct ops_arith *ar)
{
    struct ops_total t = *squares;
    t.size = t.sum;
    struct ops_num s = ops_total_num(&t, 0, ar);
    if (ops_beyond(s, ar) && sqrt(s.v) <= ar->max)
        return ops_pair(sqrt(s.v), (double)INFINITY);
    return ops_apply1(ops_sqrt, s, ar);
}

#endif
