/*
 * A number and how far an honest kernel may be from it: v is the float64 value, e >= 0 the largest
 * absolute error. The functions carry e forward by first-order running error analysis (N. J.
 * Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.3 and 4.2), made
 * rigorous where a derivative changes over the interval.
 *
 *   e = INFINITY   nothing can be asked of the element: honest kernels may differ without limit
 *   v inf or NaN   with e = 0: the kernel must have exactly that
 *   |v| > max      a finite value beyond the precision's range: an honest kernel has an infinity
 *                  there. Finite operands never give an infinite v by overflow (it is held at
 *                  DBL_MAX), so that infinities of poles and of inputs stay apart.
 * All functions are pure. This file, num.c, functions.c and activations.c are also part of the
 * kernels' source (gpu/): they are written in what C and CUDA C++ have in common.
 */
#ifndef OPS_NUM_H
#define OPS_NUM_H

#ifndef __CUDACC__
#include <rung/task.h>

#include <math.h>
#include <string.h>
#endif

struct ops_num {
    double v, e;
};

static inline struct ops_num ops_pair(double v, double e)
{
    struct ops_num a = {v, e};
    return a;
}

/*
 * What arithmetic of a precision is granted, as relative errors. DESIGN section 10 gives 8 units in
 * the last place of an argument and 4 of a result for float32 and float64; one unit is at most 2u.
 * Half precisions compute with float32 inside and round at operations: 8 of their own units would
 * excuse anything, so they get one (argument, result) on top of the float32 grant.
 */
struct ops_arith {
    double u;      /* one operation, rounded */
    double sum;    /* one step of an accumulation */
    double matmul; /* each operand of a matrix product */
    double arg;    /* argument of an elementary function */
    double res;    /* its result */
    double div;    /* a quotient, by reciprocal and multiplication or approximate */
    double tiny;   /* absolute: a subnormal result may flush to zero */
    double max;    /* finite range of intermediate results */
    int bits;      /* of the significand */
    int running32; /* accumulates in float32 */
};

/* Arithmetic of a rung_precision. */
struct ops_arith ops_arith_of(uint32_t precision);

typedef struct ops_num (*ops_unary)(struct ops_num a, const struct ops_arith *ar);
typedef struct ops_num (*ops_binary)(struct ops_num a, struct ops_num b,
                                     const struct ops_arith *ar);

/* Takes operands as they are, infinite and unconstrained ones too. */
typedef struct ops_num (*ops_ternary)(struct ops_num a, struct ops_num b, struct ops_num c,
                                      const struct ops_arith *ar);

/* Whether a is finite, within the range with its error, and not unconstrained. */
static inline int ops_plain(struct ops_num a, const struct ops_arith *ar)
{
    return fabs(a.v) + a.e <= ar->max;
}

/* What ops_apply1 and ops_apply2 do where an operand is not plain. */
struct ops_num ops_edge1(ops_unary f, struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_edge2(ops_binary f, struct ops_num a, struct ops_num b,
                         const struct ops_arith *ar);

/*
 * Apply f to operands that may be NaN, infinite, out of range or unconstrained. The functions below
 * are only ever called through these (or by each other), so they see plain operands, or compute a
 * value for ops_edge to judge.
 */
static inline struct ops_num ops_apply1(ops_unary f, struct ops_num a, const struct ops_arith *ar)
{
    return ops_plain(a, ar) ? f(a, ar) : ops_edge1(f, a, ar);
}

static inline struct ops_num ops_apply2(ops_binary f, struct ops_num a, struct ops_num b,
                                        const struct ops_arith *ar)
{
    return ops_plain(a, ar) && ops_plain(b, ar) ? f(a, b, ar) : ops_edge2(f, a, b, ar);
}

/* Whether |v| leaves the range by overflow, not as a genuine infinity. */
int ops_beyond(struct ops_num a, const struct ops_arith *ar);
/* v and e made consistent: an overflow of float64 is held at DBL_MAX, an undefined e is no limit.
 */
struct ops_num ops_settle(double v, double e);
/* Whether a float64 needs no more than `bits` significand bits. */
static inline int ops_fits(double v, int bits)
{
    uint64_t word;
    memcpy(&word, &v, sizeof word);
    return bits >= 53 || !(word & ((1ull << (53 - bits)) - 1));
}
/* A literal or parameter as the kernel holds it: rounded to the precision. */
struct ops_num ops_constant(double v, const struct ops_arith *ar);
/* Relative error e^d - 1 of exp for an absolute error d >= 0 of its argument. */
double ops_growth(double d);

/* How far the argument of an elementary function may be off. */
static inline double ops_shift(struct ops_num a, const struct ops_arith *ar)
{
    return a.e + ar->arg * fabs(a.v);
}

/* A result: consistent when v is finite, exactly that otherwise. */
static inline struct ops_num ops_with(double v, double e)
{
    return isfinite(v) ? ops_settle(v, e) : ops_pair(v, 0);
}

static inline struct ops_num ops_exact(double v)
{
    return ops_pair(v, 0);
}

struct ops_num ops_add(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_sub(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* a - b and a + b as arguments of exp: exp2(a * log2e - b * log2e) is honest, and errs with |a| +
 * |b|. */
struct ops_num ops_sub_in_exp(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_add_in_exp(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_mul(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_div(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_pow(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* NaN in either operand stays, as in torch.maximum. */
struct ops_num ops_max(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_min(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* torch.nn.LeakyReLU; b is the slope. */
struct ops_num ops_leaky_relu(struct ops_num a, struct ops_num b, const struct ops_arith *ar);

struct ops_num ops_neg(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_abs(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_exp(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_log(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_sqrt(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_sin(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_cos(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_erf(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_tanh(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_relu(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_sigmoid(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_silu(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_softplus(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_mish(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_gelu(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_gelu_tanh(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_hardswish(struct ops_num a, const struct ops_arith *ar);

/* activations.c */
struct ops_num ops_rsqrt(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_reciprocal(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_square(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_log2(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_log1p(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_exp2(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_expm1(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_floor(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_ceil(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_round(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_sign(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_relu6(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_selu(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_hardsigmoid(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_softsign(struct ops_num a, const struct ops_arith *ar);
struct ops_num ops_logsigmoid(struct ops_num a, const struct ops_arith *ar);
/* torch.nn.ELU; b is alpha. */
struct ops_num ops_elu(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* Of a difference a; b is delta or beta. */
struct ops_num ops_huber(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_smooth_l1(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* a log b, 0 where a is 0. */
struct ops_num ops_xlogy(struct ops_num a, struct ops_num b, const struct ops_arith *ar);

/* These take operands as they are. Comparisons give 0 or 1; where errors overlap, either. */
struct ops_num ops_gt(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_ge(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_lt(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_le(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_eq(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
struct ops_num ops_ne(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* a - b that is exactly 0 where both are the same exact number. */
struct ops_num ops_one_minus(struct ops_num a, struct ops_num b, const struct ops_arith *ar);
/* b where the condition a is not 0, else c. */
struct ops_num ops_where(struct ops_num a, struct ops_num b, struct ops_num c,
                         const struct ops_arith *ar);

#endif
