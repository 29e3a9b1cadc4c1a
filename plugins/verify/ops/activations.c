/*
 * More functions with error bounds: roots, logarithms and powers beside those of functions.c,
 * steps, comparisons, activations and losses. Where PyTorch's documentation gives a formula, its
 * operations are granted.
 */
#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#include <math.h>
#endif

static struct ops_num open_to_all(double v)
{
    return ops_pair(isfinite(v) ? v : 0, INFINITY);
}

/* ---- elementary functions ---- */

struct ops_num ops_rsqrt(struct ops_num a, const struct ops_arith *ar)
{
    double v = 1 / sqrt(a.v), d = ops_shift(a, ar);
    if (a.v + a.e < 0 || isnan(a.v))
        return ops_exact(NAN);
    if ((a.v == 0 && a.e == 0) || isinf(a.v))
        return ops_exact(v);
    if (a.v <= d || a.v < ar->tiny)
        return open_to_all(v);
    return ops_with(v, 1 / sqrt(a.v - d) - v + ar->res * v + ar->tiny);
}

struct ops_num ops_reciprocal(struct ops_num a, const struct ops_arith *ar)
{
    return ops_div(ops_pair(1, 0), a, ar);
}

struct ops_num ops_square(struct ops_num a, const struct ops_arith *ar)
{
    return ops_mul(a, a, ar);
}

/* |log2(x-d) - log2 x| <= d/(x-d)/ln 2. */
struct ops_num ops_log2(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num r = ops_log(a, ar);
    double v = log2(a.v);
    if (!isfinite(r.v) || isinf(r.e))
        return isinf(r.e) ? open_to_all(v) : ops_exact(v);
    return ops_with(v, r.e * M_LOG2E + ar->res * fabs(v));
}

/* Accurate near 0: log(1 + x) in one precision is not granted. */
struct ops_num ops_log1p(struct ops_num a, const struct ops_arith *ar)
{
    double v = log1p(a.v), d = ops_shift(a, ar);
    if (a.e == 0 && (a.v <= -1 || !isfinite(a.v)))
        return ops_exact(v);
    if (a.v + a.e < -1)
        return ops_exact(NAN);
    if (1 + a.v <= d)
        return open_to_all(v);
    return ops_with(v, d / (1 + a.v - d) + ar->res * fabs(v) + ar->tiny);
}

struct ops_num ops_exp2(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num r = ops_exp(ops_pair(a.v * M_LN2, a.e * M_LN2), ar);
    double v = exp2(a.v);
    if (!isfinite(a.v) || (!isfinite(r.v) && isinf(v)))
        return ops_exact(v);
    return ops_with(isinf(v) ? DBL_MAX : v, r.e);
}

/* Accurate near 0, as ops_log1p. */
struct ops_num ops_expm1(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num r = ops_exp(a, ar);
    double v = expm1(a.v), d = ops_shift(a, ar);
    if (!isfinite(r.v))
        return ops_exact(v);
    if (fabs(a.v) > 0.5 || d > 0.1)
        return ops_with(isinf(v) ? DBL_MAX : v, r.e + ar->u * fabs(v));
    return ops_with(v, (1 + v) * ops_growth(d) + ar->res * fabs(v) + ar->tiny);
}

/* ---- steps ---- */

/* A function that only rises, in steps: its ends show how far it may be off. */
static struct ops_num steps(double (*f)(double), struct ops_num a)
{
    double v = f(a.v);
    if (a.e == 0 || !isfinite(a.v))
        return ops_exact(v);
    return ops_pair(v, fmax(f(a.v + a.e) - v, v - f(a.v - a.e)));
}

static double sign_of(double x)
{
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

struct ops_num ops_floor(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return steps(floor, a);
}

struct ops_num ops_ceil(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return steps(ceil, a);
}

/* To even at halves, as in PyTorch. */
struct ops_num ops_round(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return steps(rint, a);
}

struct ops_num ops_sign(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return steps(sign_of, a);
}

/* ---- comparisons ---- */

/* certain: 1 or 0, or -1 where errors leave both open. NaN compares as in IEEE arithmetic. */
static struct ops_num answer(int value, int certain)
{
    return ops_pair(value, certain ? 0 : 1);
}

static int apart(struct ops_num a, struct ops_num b)
{
    if ((a.e == 0 && b.e == 0) || isnan(a.v) || isnan(b.v))
        return 1;
    return isinf(a.v) || isinf(b.v) ? !(isinf(a.e) || isinf(b.e)) : fabs(a.v - b.v) > a.e + b.e;
}

struct ops_num ops_gt(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    return answer(a.v > b.v, apart(a, b));
}

struct ops_num ops_ge(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    return answer(a.v >= b.v, apart(a, b));
}

struct ops_num ops_lt(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    return ops_gt(b, a, ar);
}

struct ops_num ops_le(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    return ops_ge(b, a, ar);
}

struct ops_num ops_eq(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    return answer(a.v == b.v, apart(a, b));
}

struct ops_num ops_ne(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    (void)ar;
    return answer(a.v != b.v, apart(a, b));
}

struct ops_num ops_one_minus(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    if (a.v == b.v && a.e == 0 && b.e == 0)
        return ops_exact(0);
    return ops_apply2(ops_sub, a, b, ar);
}

/* A condition that may be 0 or not leaves both open. */
struct ops_num ops_where(struct ops_num a, struct ops_num b, struct ops_num c,
                         const struct ops_arith *ar)
{
    (void)ar;
    struct ops_num r = a.v != 0 ? b : c;
    if (a.e == 0 || fabs(a.v) > a.e || isnan(a.v))
        return r;
    double apart_by = fabs(b.v - c.v);
    return b.v == c.v ? ops_pair(b.v, fmax(b.e, c.e))
                      : ops_settle(isfinite(r.v) ? r.v : 0, apart_by + b.e + c.e);
}

/* ---- activations ---- */

struct ops_num ops_relu6(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num zero = {0, 0}, six = {6, 0};
    return ops_min(ops_max(a, zero, ar), six, ar);
}

/* x, or b (e^x - 1) below 0: the difference is taken as the formula has it. */
struct ops_num ops_elu(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    struct ops_num one = {1, 0};
    if (isnan(a.v) || (a.v >= 0 && a.v >= a.e))
        return a;
    struct ops_num r = ops_mul(b, ops_sub(ops_exp(a, ar), one, ar), ar);
    double v = a.v > 0 ? a.v : b.v * expm1(a.v);
    double open = a.v + a.e > 0 ? a.e * (1 + fabs(b.v)) : 0;
    return ops_with(v, r.e + (a.v > 0 ? 0 : fabs(v - r.v)) + open);
}

struct ops_num ops_selu(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num alpha = ops_constant(1.6732632423543772848170429916717, ar);
    struct ops_num scale = ops_constant(1.0507009873554804934193349852946, ar);
    return ops_mul(scale, ops_elu(a, alpha, ar), ar);
}

/* x/6 + 1/2 between 0 and 1. */
struct ops_num ops_hardsigmoid(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num zero = {0, 0}, one = {1, 0}, half = {0.5, 0}, six = {6, 0};
    struct ops_num r = ops_add(ops_div(a, six, ar), half, ar);
    return ops_min(ops_max(r, zero, ar), one, ar);
}

struct ops_num ops_softsign(struct ops_num a, const struct ops_arith *ar)
{
    if (isinf(a.v))
        return ops_exact(NAN);
    struct ops_num one = {1, 0};
    return ops_div(a, ops_add(one, ops_abs(a, ar), ar), ar);
}

/* log(1/(1 + e^-x)) = -softplus(-x). */
struct ops_num ops_logsigmoid(struct ops_num a, const struct ops_arith *ar)
{
    return ops_neg(ops_softplus(ops_neg(a, ar), ar), ar);
}

/* ---- losses ---- */

/* d^2/2 up to b, then b (|d| - b/2): slope min(|d|, b). Either branch rounds a few times. */
struct ops_num ops_huber(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    double size = fabs(a.v), v = size <= b.v ? 0.5 * a.v * a.v : b.v * (size - 0.5 * b.v);
    double slope = fmin(size + a.e, fabs(b.v) + b.e);
    return ops_with(v, a.e * slope + b.e * (size + a.e) + 8 * ar->u * fabs(v) + ar->tiny);
}

/* The same over b; |d| for b = 0. */
struct ops_num ops_smooth_l1(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    return b.v == 0 && b.e == 0 ? ops_abs(a, ar) : ops_div(ops_huber(a, b, ar), b, ar);
}

struct ops_num ops_xlogy(struct ops_num a, struct ops_num b, const struct ops_arith *ar)
{
    if (a.v == 0 && a.e == 0 && !isnan(b.v))
        return ops_exact(0);
    return ops_mul(a, ops_apply1(ops_log, b, ar), ar);
}
