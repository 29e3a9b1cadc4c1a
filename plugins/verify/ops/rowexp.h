/*
 * Softmax and its like, running sums and products: what an element adds to the state of its row,
 * and what comes of it. For code that goes through a row in order (softmax.c) and for kernels
 * (gpu/).
 */
#ifndef OPS_ROW_EXP_H
#define OPS_ROW_EXP_H

#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#endif

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
struct ops_shares {
    double max, log_sum, sum;
    double fuse;  /* 4 u (|m| + log s): the part of an exponent's error that all share */
    double error; /* of s, relative */
    int plain;    /* 0: NaN, infinities or unconstrained elements: `edge` says the answer */
    struct ops_num edge;
};

/* The largest element, the sum of errors, and whether there is a NaN. */
struct ops_peak {
    double max, brought; /* max starts at -infinity */
    int nan;
};

static inline void ops_peak_add(struct ops_peak *p, double v, double e)
{
    p->nan |= isnan(v) != 0;
    p->brought += e;
    p->max = v > p->max ? v : p->max;
}

static inline void ops_peak_join(struct ops_peak *p, const struct ops_peak *q)
{
    p->nan |= q->nan;
    p->brought += q->brought;
    p->max = q->max > p->max ? q->max : p->max;
}

static inline struct ops_shares ops_shares_open(const struct ops_peak *p, uint64_t n,
                                                const struct ops_arith *ar)
{
    struct ops_shares s = {p->max, 0, 0, 0, 0, 0, {0, 0}};
    if (isinf(p->brought))
        s.edge = ops_pair(0, (double)INFINITY);
    else if (p->nan)
        s.edge = ops_pair((double)NAN, 0);
    else if (fabs(p->max) > ar->max)
        s.edge = isinf(p->max) ? ops_pair(p->max, 0) : ops_pair(p->max, (double)INFINITY);
    else
        s.plain = 1;
    s.fuse = 4 * ar->sum * (fabs(s.max) + log((double)n));
    return s;
}

/* Error of the exponent x - m of an element. */
static inline double ops_exponent_error(double x, double e, const struct ops_shares *s,
                                        const struct ops_arith *ar)
{
    return e + ar->arg * fabs(x - s->max) + 4 * ar->sum * fabs(x) + s->fuse;
}

/* Sums over the row in index order; they start at 0, record at -infinity. */
struct ops_exp_sums {
    double sum, weighted, rescaled, record;
};

/* p: exp(x - max); growth: its relative error before rounding. */
static inline void ops_exp_add(struct ops_exp_sums *k, double x, double p, double growth)
{
    if (x > k->record) {
        k->record = x;
        k->rescaled += k->sum;
    }
    k->sum += p;
    if (p > 0)
        k->weighted += p * growth;
}

static inline void ops_shares_close(struct ops_shares *s, const struct ops_exp_sums *k,
                                    uint64_t count, const struct ops_arith *ar)
{
    double n = (double)count, merges = k->rescaled / k->sum + fmin(n, log2(n) + 8);
    s->sum = k->sum;
    s->log_sum = log(s->sum);
    s->error = k->weighted / s->sum + ar->res + 4 * s->fuse + merges * (ar->res + ar->u) +
               n * ar->sum + n * ar->tiny / s->sum;
}

/*
 * exp(x - m)/s: the errors of both and of the division. A flushed exponential costs tiny/s. Rows
 * with an infinite maximum are NaN, as in PyTorch (inf - inf).
 */
static inline struct ops_num ops_softmax_num(const struct ops_shares *s, double size, double growth,
                                             const struct ops_arith *ar)
{
    double factor = (1 + ar->res) / (1 - s->error);
    double p = size / s->sum, relative = (1 + growth) * factor - 1;
    double e = p > 0 ? p * (relative + ar->div) + 2 * ar->tiny : 2 * ar->tiny;
    return ops_pair(p, s->error > 0.5 || e > 1 ? 1 : e);
}

/* What softmax gives a row that is not plain. */
static inline struct ops_num ops_softmax_edge(const struct ops_shares *s)
{
    return isinf(s->edge.e) ? s->edge : ops_pair((double)NAN, 0);
}

/* A kernel that multiplies before it divides rescales its sums as it does s. */
static inline struct ops_num ops_softmax_fused_num(const struct ops_shares *s, struct ops_num p)
{
    return ops_pair(p.v, fmin(1, p.e + 2 * s->error * p.v));
}

/* (x - m) - log s; log passes on the relative error of s. */
static inline struct ops_num ops_log_softmax_num(const struct ops_shares *s, double x, double e,
                                                 const struct ops_arith *ar)
{
    double common = s->error + ar->arg + ar->res * fabs(s->log_sum) + s->fuse;
    double v = x - s->max - s->log_sum;
    double bound = e + common + 4 * ar->sum * fabs(x) + 2 * ar->u * (fabs(v) + fabs(x - s->max));
    return ops_pair(v, isfinite(v) ? bound : 0);
}

/* m + log s. An infinite maximum is the answer. */
static inline struct ops_num ops_logsumexp_num(const struct ops_shares *s,
                                               const struct ops_arith *ar)
{
    double v = s->max + s->log_sum;
    if (!s->plain)
        return s->edge;
    return ops_settle(v, s->error + ar->arg + ar->res * fabs(s->log_sum) + s->fuse +
                             2 * ar->u * (fabs(v) + fabs(s->max)));
}

/* Prefix sums: each as a sum of its terms in any order (scans by trees are honest). */
struct ops_prefix {
    double sum, size, brought, terms;
};

static inline void ops_prefix_add(struct ops_prefix *p, double v, double e)
{
    p->sum += v;
    p->size += fabs(v);
    p->brought += e;
    p->terms += v != 0;
}

static inline void ops_prefix_join(struct ops_prefix *p, const struct ops_prefix *q)
{
    p->sum += q->sum;
    p->size += q->size;
    p->brought += q->brought;
    p->terms += q->terms;
}

static inline struct ops_num ops_prefix_num(const struct ops_prefix *p, const struct ops_arith *ar)
{
    if (!isfinite(p->sum) || isinf(p->brought))
        return ops_pair(p->sum, isinf(p->brought) ? (double)INFINITY : 0);
    double steps = p->terms > 1 ? p->terms - 1 : 0;
    double e = p->brought + steps * (ar->sum * (p->size + p->brought) + ar->tiny);
    if (ar->u > ar->sum)
        e += ar->u * fabs(p->sum);
    if (p->size > ar->max && fabs(p->sum) <= ar->max)
        e = INFINITY;
    return ops_pair(p->sum, e);
}

/*
 * Prefix products: each as a product of its factors in any order. Relative errors add up as
 * logarithms: of (|x| + e)/|x|, and 2u a step. Partial products may leave the range where the
 * product does not (see ops_row_prod).
 */
struct ops_chain {
    double product, grown, high, big, small, brought; /* product starts at 1, the rest at 0 */
    int zero;
};

static inline void ops_chain_add(struct ops_chain *c, double v, double e,
                                 const struct ops_arith *ar)
{
    double size = fabs(v), l = log(size);
    c->product *= v;
    c->brought += e;
    c->zero |= size == 0;
    c->grown += log1p(e / size) + 2 * ar->u;
    c->high += log(size + e) + 2 * ar->u;
    c->big += l > 0 ? l : 0;
    c->small += l < 0 ? l : 0;
}

static inline void ops_chain_join(struct ops_chain *c, const struct ops_chain *d)
{
    c->product *= d->product;
    c->brought += d->brought;
    c->zero |= d->zero;
    c->grown += d->grown;
    c->high += d->high;
    c->big += d->big;
    c->small += d->small;
}

/* first: whether the chain has one factor. */
static inline struct ops_num ops_chain_num(const struct ops_chain *c, int first,
                                           const struct ops_arith *ar)
{
    double v = c->product, e = first ? c->brought : 0;
    if (isinf(c->brought) || (isfinite(v) && exp(c->big) > ar->max && fabs(v) <= ar->max))
        e = INFINITY;
    else if (isfinite(v) && !first && !(c->zero && c->brought == 0))
        e = c->zero ? exp(c->high) : fabs(v) * ops_growth(c->grown);
    if (isfinite(v) && !first && !c->zero && ar->tiny > 0 && exp(c->small) < ar->tiny)
        e += fabs(v) + ar->tiny * exp(c->big);
    return ops_pair(v, e >= 0 ? e : (double)INFINITY);
}

#endif
