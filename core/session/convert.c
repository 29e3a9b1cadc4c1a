#include "session/convert.h"

#include <math.h>
#include <string.h>

/* A binary format: explicit bits of the significand and bits of the exponent (IEEE 754 layout). */
struct narrow {
    int mantissa, exponent;
};
static const struct narrow HALF = {10, 5}, BRAIN = {7, 8};

/* Nearest, ties to even, straight from float64: going through float32 would round twice. */
static uint16_t narrow_of(double v, struct narrow f)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int bias = (1 << (f.exponent - 1)) - 1;
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint16_t inf = (uint16_t)(((1 << f.exponent) - 1) << f.mantissa);
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    if (e == 1024)
        return (uint16_t)(sign | inf | (m ? 1u << (f.mantissa - 1) : 0));
    if (e > bias)
        return (uint16_t)(sign | inf);
    int low = 1 - bias; /* exponent of the smallest normal number */
    if (e < low - f.mantissa - 1)
        return sign;
    m |= UINT64_C(1) << 52;
    int shift = 52 - f.mantissa + (e < low ? low - e : 0);
    uint64_t half = UINT64_C(1) << (shift - 1);
    uint64_t r = (m + half - 1 + (m >> shift & 1)) >> shift;
    if (e >= low) /* r holds the leading one, so a carry moves into the exponent by itself */
        r += (uint64_t)(e - low) << f.mantissa;
    return (uint16_t)(sign | r);
}

static double narrow_value(uint16_t h, struct narrow f)
{
    int bias = (1 << (f.exponent - 1)) - 1;
    int e = h >> f.mantissa & ((1 << f.exponent) - 1);
    int m = h & ((1 << f.mantissa) - 1);
    double v;
    if (e == (1 << f.exponent) - 1)
        v = m ? NAN : INFINITY;
    else if (e == 0)
        v = ldexp(m, 1 - bias - f.mantissa);
    else
        v = ldexp(m | 1 << f.mantissa, e - bias - f.mantissa);
    return h & 0x8000 ? -v : v;
}

static double brain_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int64_t whole(double v, double low, double high)
{
    if (!(v > low))
        return isnan(v) ? 0 : (int64_t)low;
    if (v >= high) /* high is one more than the largest value, exact in float64 */
        return high == 0x1p63 ? INT64_MAX : (int64_t)high - 1;
    return (int64_t)v;
}

#define LOAD(type, value)                                                                          \
    for (uint64_t i = 0; i < n; i++) {                                                             \
        type e;                                                                                    \
        memcpy(&e, (const char *)from + i * sizeof e, sizeof e);                                   \
        to[i] = (value);                                                                           \
    }                                                                                              \
    return true

bool rung_convert_load(uint32_t dtype, const void *from, uint64_t n, double *to)
{
    switch (dtype) {
    case RUNG_F64:
        LOAD(double, e);
    case RUNG_F32:
        LOAD(float, (double)e);
    case RUNG_F16:
        LOAD(uint16_t, narrow_value(e, HALF));
    case RUNG_BF16:
        LOAD(uint16_t, brain_value(e));
    case RUNG_I8:
        LOAD(int8_t, e);
    case RUNG_U8:
        LOAD(uint8_t, e);
    case RUNG_BOOL:
        LOAD(uint8_t, e);
    case RUNG_I32:
        LOAD(int32_t, e);
    case RUNG_I64:
        LOAD(int64_t, (double)e);
    default:
        return false;
    }
}

#define STORE(type, value)                                                                         \
    for (uint64_t i = 0; i < n; i++) {                                                             \
        double v = from[i];                                                                        \
        type e = (type)(value);                                                                    \
        memcpy((char *)to + i * sizeof e, &e, sizeof e);                                           \
    }                                                                                              \
    return true

/* A float64 past FLT_MAX converts to inf under IEEE 754; C leaves it open, so it is spelled out. */
static float single_of(double v)
{
    if (fabs(v) >= 0x1.ffffffp127 && isfinite(v))
        return v > 0 ? INFINITY : -INFINITY;
    return (float)v;
}

bool rung_convert_store(uint32_t dtype, const double *from, uint64_t n, void *to)
{
    switch (dtype) {
    case RUNG_F64:
        STORE(double, v);
    case RUNG_F32:
        STORE(float, single_of(v));
    case RUNG_F16:
        STORE(uint16_t, narrow_of(v, HALF));
    case RUNG_BF16:
        STORE(uint16_t, narrow_of(v, BRAIN));
    case RUNG_I8:
        STORE(int8_t, whole(v, -128, 128));
    case RUNG_U8:
        STORE(uint8_t, whole(v, 0, 256));
    case RUNG_BOOL:
        STORE(uint8_t, v != 0);
    case RUNG_I32:
        STORE(int32_t, whole(v, -0x1p31, 0x1p31));
    case RUNG_I64:
        STORE(int64_t, whole(v, -0x1p63, 0x1p63));
    default:
        return false;
    }
}

double rung_convert_round(uint32_t dtype, double v)
{
    switch (dtype) {
    case RUNG_F32:
        return single_of(v);
    case RUNG_F16:
        return narrow_value(narrow_of(v, HALF), HALF);
    case RUNG_BF16:
        return brain_value(narrow_of(v, BRAIN));
    default:
        return v;
    }
}

bool rung_dtype_is_float(uint32_t dtype)
{
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}
