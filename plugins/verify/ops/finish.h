/*
 * Elements at the edges of a graph: the errors that inputs have, and what an output is asked for.
 * For tensor.c and for kernels (gpu/). Pure.
 */
#ifndef OPS_FINISH_H
#define OPS_FINISH_H

#ifndef __CUDACC__
#include "num.h"

#include <float.h>
#endif

/* Bits of the significand that values of a dtype need. */
static inline int ops_significand_bits(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F32:
        return 24;
    case RUNG_F16:
        return 11;
    case RUNG_BF16:
        return 8;
    case RUNG_I8:
    case RUNG_U8:
    case RUNG_BOOL:
        return 8;
    case RUNG_I32:
        return 31;
    default:
        return 53;
    }
}

static inline int ops_input_narrows(uint32_t dtype, const struct ops_arith *ar)
{
    return ops_significand_bits(dtype) > ar->bits;
}

static inline int ops_input_flushes(uint32_t dtype, const struct ops_arith *ar)
{
    return ar->tiny > 0 && (dtype == RUNG_F32 || dtype == RUNG_BF16 || dtype == RUNG_F64);
}

/* Whether elements of a dtype can have errors at all. */
static inline int ops_input_errs(uint32_t dtype, const struct ops_arith *ar)
{
    return ops_input_narrows(dtype, ar) || ops_input_flushes(dtype, ar);
}

/* Rounding to a narrower precision, and float32 subnormals that an honest kernel reads as zero. */
static inline double ops_input_error(uint32_t dtype, double v, const struct ops_arith *ar)
{
    double size = fabs(v), e = ops_input_narrows(dtype, ar) ? ops_constant(v, ar).e : 0;
    if (ops_input_flushes(dtype, ar) && size < ar->tiny)
        e = size;
    return isfinite(e) ? e : 0;
}

struct ops_format {
    double u;      /* rounding */
    double limit;  /* at and beyond it, rounding gives infinity */
    double normal; /* below it, `under` is the absolute error */
    double under;
    int bits;
};

static inline struct ops_format ops_format_new(double u, double limit, double normal, double under,
                                               int bits)
{
    struct ops_format f = {u, limit, normal, under, bits};
    return f;
}

static inline struct ops_format ops_format_of(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
        return ops_format_new(0x1p-53, INFINITY, DBL_MIN, DBL_MIN, 53);
    case RUNG_F16: /* conversions keep half subnormals */
        return ops_format_new(0x1p-11, 65520, 0x1p-14, 0x1p-25, 11);
    case RUNG_BF16:
        return ops_format_new(0x1p-8, 0x1.ffp127, FLT_MIN, FLT_MIN, 8);
    default:
        return ops_format_new(0x1p-24, 0x1.ffffffp127, FLT_MIN, FLT_MIN, 24);
    }
}

static inline void ops_finish_float(struct ops_num x, const struct ops_format *f,
                                    const struct ops_arith *ar, double *value, double *bound)
{
    double size = fabs(x.v);
    int exact = ops_fits(x.v, f->bits);
    *value = x.v;
    *bound = x.e;
    if (size - x.e >= f->limit) {
        *value = copysign((double)INFINITY, x.v);
        *bound = 0;
        return;
    }
    if (!exact)
        *bound += f->u * (size + x.e);
    if (size - x.e < f->normal && (x.e > 0 || x.v != 0) && (ar->tiny > 0 || !exact))
        *bound += f->under;
}

/* Conversions to integers truncate, and keep the low bits of what does not fit. */
static inline double ops_to_integer(double v, uint32_t dtype)
{
    double t = trunc(v), range = dtype == RUNG_I32 ? 0x1p32 : 0x1p8;
    if (dtype == RUNG_BOOL)
        return v != 0;
    if (dtype == RUNG_I64 || fabs(t) >= 0x1p63)
        return t;
    t = fmod(t, range);
    if (dtype == RUNG_U8)
        return t < 0 ? t + range : t;
    return t >= range / 2 ? t - range : t < -range / 2 ? t + range : t;
}

static inline void ops_finish_integer(struct ops_num x, uint32_t dtype, double *value,
                                      double *bound)
{
    *value = ops_to_integer(x.v, dtype);
    *bound = fabs(x.v) > 0x1p53 ? fabs(x.v) * 0x1p-52 : 0;
    if (x.e > 0)
        *bound += fmax(fabs(ops_to_integer(x.v + x.e, dtype) - *value),
                       fabs(ops_to_integer(x.v - x.e, dtype) - *value));
    if (dtype == RUNG_BOOL && fabs(x.v) <= x.e)
        *bound = x.e > 0;
}

static inline void ops_finish_element(struct ops_num x, uint32_t dtype, const struct ops_format *f,
                                      const struct ops_arith *ar, double *value, double *bound)
{
    int integer = dtype >= RUNG_I8;
    if (isinf(x.e) || (integer && !isfinite(x.v))) { /* nothing to ask for */
        *value = isfinite(x.v) ? x.v : 0;
        *bound = INFINITY;
    } else if (!isfinite(x.v)) {
        *value = x.v;
        *bound = 0;
    } else if (integer) {
        ops_finish_integer(x, dtype, value, bound);
    } else {
        ops_finish_float(x, f, ar, value, bound);
    }
}

#endif
