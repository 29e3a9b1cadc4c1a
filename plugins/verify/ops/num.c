/*
 * Arithmetic with error bounds: the four operations, powers, and what happens at the edges of the
 * range. Elementary and activation functions are in functions.c.
 */
#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#include <math.h>
#endif

int ops_beyond(struct ops_num a, const struct ops_arith *ar)
{
    return isfinite(a.v) && !(fabs(a.v) + a.e <= ar->max);
}

struct ops_num ops_settle(double v, double e)
{
    struct ops_num r = {v, e};
    if (isinf(v))
        r.v = copysign(DBL_MAX, v);
    if (!(e >= 0))
        r.e = INFINITY;
    return r;
}

struct ops_num ops_constant(double v, const struct ops_arith *ar)
{
    return ops_pair(v, ops_fits(v, ar->bits) ? 0 : ar->u * fabs(v));
}

double ops_growth(double d)
{
    return d < 0.5 ? d * (1 + d) : expm1(d); /* e^d - 1 <= d + d^2 for d <= 1 */
}

/*
 * Results at operands that are not plain. Genuine infinities and NaN give exactly what IEEE
 * arithmetic gives. Where a finite operand is beyond the range, an honest kernel may hold an
 * infinity instead: the answer may be either, so the error spans both.
 */
static struct ops_num reconcile(struct ops_num as_is, struct ops_num at_inf,
                                const struct ops_arith *ar)
{
    if ((fabs(as_is.v) > ar->max && !isnan(at_inf.v)) || (isnan(as_is.v) && isnan(at_inf.v)))
        return ops_pair(as_is.v, 0);
    as_is.e += fabs(as_is.v - at_inf.v) + at_inf.e;
    if (!(as_is.e >= 0))
        as_is.e = INFINITY;
    return as_is;
}

/* v from a genuine infinity or NaN; a finite answer has rounded once. */
static struct ops_num exact_edge(double v, double e, const struct ops_arith *ar)
{
    if (!isfinite(v))
        return ops_pair(v, 0);
    return ops_pair(v, e + ar->res * fabs(v) + ar->tiny);
}

struct ops_num ops_edge1(ops_unary f, struct ops_num a, const struct ops_arith *ar)
{
    if (isinf(a.e))
        return ops_pair(f(ops_pair(a.v, 0), ar).v, INFINITY);
    if (!isfinite(a.v))
        return exact_edge(f(a, ar).v, 0, ar);
    struct ops_num inf = {copysign(INFINITY, a.v), 0};
    return reconcile(f(a, ar), exact_edge(f(inf, ar).v, 0, ar), ar);
}

static struct ops_num to_inf(struct ops_num a, const struct ops_arith *ar)
{
    return ops_beyond(a, ar) ? ops_pair(copysign(INFINITY, a.v), 0) : a;
}

struct ops_num ops_edge2(ops_binary f, struct ops_num a, struct ops_num b,
                         const struct ops_arith *ar)
{
    struct ops_num r = f(a, b, ar);
    if (isinf(a.e) || isinf(b.e))
        return ops_pair(r.v, INFINITY);
    if (ops_beyond(a, ar) || ops_beyond(b, ar)) {
        struct ops_num s = f(to_inf(a, ar), to_inf(b, ar), ar);
        return reconcile(r, exact_edge(s.v, 0, ar), ar);
    }
    return exact_edge(r.v, (isfinite(a.v) ? a.e : 0) + (isfinite(b.v) ? b.e : 0), ar);
}

/* An operation's result; an infinity out of finite operands is an overflow. */
static struct ops_num result(double v, double e, struct ops_num a, struct ops_num b)
{
    if (isfinite(v) || (isfinite(a.v) && isfinite(b.v) && isinf(v)))
        return ops_settle(v, e);
    return ops_pair(v, 0);
}

struct ops_num ops_add(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double v = a.v + b.v;
    return result(v, a.e + b.e + ar->u * fabs(v) + ar->tiny, a, b);
}

struct ops_num ops_sub(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double v = a.v - b.v;
    return result(v, a.e + b.e + ar->u * fabs(v) + ar->tiny, a, b);
}

/*
 * exp2(a * c - b * c) with c = log2(e): the products round to u|ac| and u|bc|, or one of them when
 * contracted; over c that is u(|a| + |b|). 4 leaves room for chains of rescaling.
 */
static double fused_exp(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    return 4 * ar->sum * (fabs(a.v) + fabs(b.v));
}

struct ops_num ops_sub_in_exp(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    struct ops_num r = ops_sub(a, b, ar);
    r.e += isfinite(r.v) ? fused_exp(a, b, ar) : 0;
    return r;
}

struct ops_num ops_add_in_exp(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    struct ops_num r = ops_add(a, b, ar);
    r.e += isfinite(r.v) ? fused_exp(a, b, ar) : 0;
    return r;
}

struct ops_num ops_mul(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double v = a.v * b.v;
    double e = fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e + ar->u * fabs(v) + ar->tiny;
    return result(v, e, a, b);
}

/*
 * a/b = v: |(a + ea)/(b + eb) - v| <= (ea + |v| eb)/(|b| - eb). A divisor that may be zero leaves
 * nothing to ask. Division by reciprocal flushes to zero where 1/b is subnormal.
 */
struct ops_num ops_div(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double v = a.v / b.v;
    if (b.v == 0 && b.e == 0)
        return ops_pair(v, a.e > 0 && fabs(a.v) <= a.e ? INFINITY : 0);
    if (fabs(b.v) <= b.e)
        return ops_pair(isfinite(v) ? v : 0, INFINITY);
    double e = (a.e + fabs(v) * b.e) / (fabs(b.v) - b.e) + ar->div * fabs(v) + ar->tiny;
    if (fabs(b.v) * ar->tiny > 1)
        e += fabs(v);
    return result(v, e, a, b);
}

/* Whole powers from 2 to 8 by multiplication. */
static struct ops_num whole_power(struct ops_num a, int n, const struct ops_arith *ar)
{
    double v = a.v, size = fabs(a.v), high = size + a.e, p = 1, q = 1;
    for (int i = 1; i < n; i++)
        v *= a.v;
    for (int i = 0; i < n; i++) {
        p *= size;
        q *= high;
    }
    return result(v, q - p + (n - 1) * (ar->u * q + ar->tiny * (1 + q)), a, a);
}

/*
 * exp(b log a): the argument b log a errs by |b| (d/(a - d)) + eb |log a| + arg |b log a|, with d
 * the error of a, perturbed as the argument of log.
 */
static struct ops_num general_power(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double v = pow(a.v, b.v), size = fabs(a.v), d = a.e + ar->arg * size;
    if ((size == 0 && a.e == 0 && b.e == 0) || !isfinite(a.v) || !isfinite(b.v))
        return ops_pair(v, 0);
    if (size <= d) /* NaN on one side of 0, perhaps */
        return ops_pair(isfinite(v) ? v : 0,
                        b.v > 0 && isfinite(v) ? pow(size + d, b.v) + fabs(v) : INFINITY);
    double log_size = fabs(log(size));
    double k = fabs(b.v) * d / (size - d) + b.e * log_size + 2 * ar->arg * fabs(b.v) * log_size;
    return result(v, fabs(v) * (ops_growth(k) + ar->res) + ar->tiny, a, b);
}

struct ops_num ops_pow(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    if (b.e == 0 && b.v == floor(b.v) && b.v >= 2 && b.v <= 8)
        return whole_power(a, (int)b.v, ar);
    if (b.e == 0 && b.v == 1)
        return a;
    if (b.e == 0 && b.v == 0)
        return ops_pair(1, 0);
    if (b.e == 0 && b.v == 0.5)
        return ops_sqrt(a, ar);
    return general_power(a, b, ar);
}

/* Both ends of the interval move like the value: the error is that of the larger (smaller) end. */
struct ops_num ops_max(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    if (isnan(a.v) || isnan(b.v))
        return ops_pair(NAN, 0);
    double v = fmax(a.v, b.v);
    double up = fmax(a.v + a.e, b.v + b.e) - v, down = v - fmax(a.v - a.e, b.v - b.e);
    return ops_pair(v, isfinite(v) ? fmax(up, down) : 0);
}

struct ops_num ops_min(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    if (isnan(a.v) || isnan(b.v))
        return ops_pair(NAN, 0);
    double v = fmin(a.v, b.v);
    double up = fmin(a.v + a.e, b.v + b.e) - v, down = v - fmin(a.v - a.e, b.v - b.e);
    return ops_pair(v, isfinite(v) ? fmax(up, down) : 0);
}

struct ops_num ops_leaky_relu(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    if (a.v >= 0 && a.v >= a.e)
        return a;
    struct ops_num r = ops_mul(a, b, ar);
    if (a.v + a.e > 0 && isfinite(a.v)) /* the sign is open */
        r.e += a.e * (1 + fabs(b.v));
    if (a.v >= 0)
        r.v = a.v;
    return r;
}
