/*
 * Elementary functions and activations with error bounds. Each takes an argument that is off by
 * d = e + arg |x| (the error that it brings, and the grant of DESIGN section 10), and adds the
 * grant on the result. Activations follow the formula that their PyTorch documentation gives,
 * operation by operation; only the value is computed in a form that is accurate in float64.
 */
#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#include <math.h>
#endif

struct ops_num ops_neg(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return ops_pair(-a.v, a.e);
}

struct ops_num ops_abs(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return ops_pair(fabs(a.v), a.e);
}

struct ops_num ops_relu(struct ops_num a, const struct ops_arith *ar)
{
    (void)ar;
    return ops_pair(a.v > 0 || isnan(a.v) ? a.v : 0, a.v + a.e <= 0 ? 0 : a.e);
}

/* The larger of the two ways that f moves over [x - d, x + d], for f that rises throughout. */
static double span(double (*f)(double), double x, double v, double d)
{
    return fmax(f(x + d) - v, v - f(x - d));
}

/* |e^(x+d) - e^x| = e^x (e^d - 1). Certain overflow is a certain infinity. */
struct ops_num ops_exp(struct ops_num a, const struct ops_arith *ar)
{
    double v = exp(a.v), d = ops_shift(a, ar);
    if (isinf(a.v) || isnan(a.v))
        return ops_exact(v);
    if (isinf(v))
        v = DBL_MAX;
    if (v > ar->max && exp(a.v - d) > ar->max)
        return ops_exact(v);
    double moved = d < 0.5 ? v * ops_growth(d) : exp(a.v + d) - v;
    return ops_settle(v, moved + ar->res * (v + moved) + ar->tiny);
}

/* |log(x-d) - log x| <= d/(x-d). */
struct ops_num ops_log(struct ops_num a, const struct ops_arith *ar)
{
    double v = log(a.v), d = ops_shift(a, ar);
    if (a.e == 0 && (a.v <= 0 || !isfinite(a.v)))
        return ops_exact(v);
    if (a.v + a.e < 0)
        return ops_exact(NAN);
    if (a.v <= d || a.v < ar->tiny)
        return ops_pair(isfinite(v) ? v : 0, INFINITY);
    return ops_with(v, d / (a.v - d) + ar->res * fabs(v));
}

struct ops_num ops_sqrt(struct ops_num a, const struct ops_arith *ar)
{
    double v = sqrt(a.v), d = ops_shift(a, ar);
    if (a.v + a.e < 0)
        return ops_exact(NAN);
    if (a.v < 0)
        return ops_pair(0, INFINITY);
    if (a.v == 0 && a.e == 0)
        return ops_exact(v);
    double up = sqrt(a.v + d) - v, down = v - sqrt(a.v > d ? a.v - d : 0);
    return ops_with(v, fmax(up, down) + ar->res * v + ar->tiny);
}

/* Derivative at most |cos x| + d over the interval; never off by more than the whole range. */
static struct ops_num wave(double v, double slope, double d, const struct ops_arith *ar)
{
    return ops_with(v, fmin(2, d * (fabs(slope) + d)) + ar->res * fabs(v) + ar->tiny);
}

struct ops_num ops_sin(struct ops_num a, const struct ops_arith *ar)
{
    return a.v == 0 && a.e == 0 ? a : wave(sin(a.v), cos(a.v), ops_shift(a, ar), ar);
}

struct ops_num ops_cos(struct ops_num a, const struct ops_arith *ar)
{
    return wave(cos(a.v), sin(a.v), ops_shift(a, ar), ar);
}

struct ops_num ops_erf(struct ops_num a, const struct ops_arith *ar)
{
    double v = erf(a.v), d = ops_shift(a, ar), x = fmax(0, fabs(a.v) - d);
    if (a.v == 0 && a.e == 0)
        return a;
    return ops_with(v, M_2_SQRTPI * exp(-x * x) * d + ar->res * fabs(v) + ar->tiny);
}

/*
 * tanh' = 1 - tanh^2, at most e^(2d) times that over the interval. (e^x - e^-x)/(e^x + e^-x) loses
 * the leading digits near 0: a few units of 1, absolute.
 */
struct ops_num ops_tanh(struct ops_num a, const struct ops_arith *ar)
{
    double v = tanh(a.v), d = ops_shift(a, ar), slope = (1 - v) * (1 + v);
    double moved = d < 0.25 ? slope * d * (1 + 4 * d) : span(tanh, a.v, v, d);
    return ops_with(v, moved + ar->res * fabs(v) + 8 * ar->sum + ar->tiny);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* 1/(1 + e^-x): slope s (1 - s), at most e^d times that nearby; one exp, one sum, one division. */
struct ops_num ops_sigmoid(struct ops_num a, const struct ops_arith *ar)
{
    double v = logistic(a.v), d = ops_shift(a, ar), growth = ops_growth(d);
    double moved = d < 0.25 ? v * (1 - v) * growth * (1 + growth) : span(logistic, a.v, v, d);
    return ops_with(v, moved + v * ((1 - v) * ar->res + ar->u + ar->div) + ar->tiny);
}

struct ops_num ops_silu(struct ops_num a, const struct ops_arith *ar)
{
    if (isinf(a.v)) /* inf, and -inf * 0 */
        return ops_exact(a.v > 0 ? a.v : NAN);
    return ops_mul(a, ops_sigmoid(a, ar), ar);
}

static double log_one_exp(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* log(1 + e^x), derivative sigmoid(x). 1 + e^x rounds, and log near 1 passes that on: absolute. */
struct ops_num ops_softplus(struct ops_num a, const struct ops_arith *ar)
{
    double v = log_one_exp(a.v), d = ops_shift(a, ar), growth = ops_growth(d),
           slope = logistic(a.v);
    double moved = d < 0.25 ? slope * growth * (1 + growth) : span(log_one_exp, a.v, v, d);
    return ops_with(v, moved + ar->res * (slope + v) + 8 * ar->sum);
}

struct ops_num ops_mish(struct ops_num a, const struct ops_arith *ar)
{
    if (isinf(a.v))
        return ops_exact(a.v > 0 ? a.v : NAN);
    return ops_mul(a, ops_tanh(ops_softplus(a, ar), ar), ar);
}

/* x/2 (1 + erf(x/sqrt 2)); for negative x the sum cancels, in the kernel but not in v. */
struct ops_num ops_gelu(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num one = {1, 0}, half = {0.5, 0};
    struct ops_num z = ops_mul(a, ops_constant(M_SQRT1_2, ar), ar);
    struct ops_num r = ops_mul(ops_mul(half, a, ar), ops_add(one, ops_erf(z, ar), ar), ar);
    double v = 0.5 * a.v * erfc(-a.v * M_SQRT1_2);
    return ops_with(v, r.e + fabs(v - r.v));
}

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
struct ops_num ops_gelu_tanh(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num one = {1, 0}, half = {0.5, 0}, cubic = ops_constant(0.044715, ar);
    struct ops_num root = ops_constant(M_SQRT1_2 * M_2_SQRTPI, ar);
    struct ops_num x3 = ops_mul(ops_mul(a, a, ar), a, ar);
    struct ops_num z = ops_mul(root, ops_add(a, ops_mul(cubic, x3, ar), ar), ar);
    struct ops_num r = ops_mul(ops_mul(half, a, ar), ops_add(one, ops_tanh(z, ar), ar), ar);
    double v = a.v / (1 + exp(-2 * z.v)); /* (1 + tanh z)/2 = sigmoid(2z) */
    return ops_with(v, r.e + fabs(v - r.v));
}

/* x min(max(x + 3, 0), 6)/6. */
struct ops_num ops_hardswish(struct ops_num a, const struct ops_arith *ar)
{
    struct ops_num three = {3, 0}, zero = {0, 0}, six = {6, 0};
    struct ops_num gate = ops_min(ops_max(ops_add(a, three, ar), zero, ar), six, ar);
    return ops_div(ops_mul(a, gate, ar), six, ar);
}
