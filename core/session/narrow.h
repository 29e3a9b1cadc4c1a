/*
 * Between float64 and the narrower element types, for the host and for the session's kernels on the
 * device: the same text makes the same bits. Pure.
 */
#ifndef SESSION_NARROW_H
#define SESSION_NARROW_H

#ifndef __CUDACC__
#include <math.h>
#include <stdint.h>
#include <string.h>
#define NARROW_FN static inline
#endif

/* Binary formats: explicit bits of the significand, bits of the exponent (IEEE 754 layout). */
#define NARROW_HALF 10, 5
#define NARROW_BRAIN 7, 8

/* Nearest, ties to even, straight from float64: going through float32 would round twice. */
NARROW_FN uint16_t narrow_of(double v, int mantissa, int exponent)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int bias = (1 << (exponent - 1)) - 1;
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint16_t inf = (uint16_t)(((1 << exponent) - 1) << mantissa);
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t m = bits & (((uint64_t)1 << 52) - 1);
    if (e == 1024)
        return (uint16_t)(sign | inf | (m ? 1u << (mantissa - 1) : 0));
    if (e > bias)
        return (uint16_t)(sign | inf);
    int low = 1 - bias; /* exponent of the smallest normal number */
    if (e < low - mantissa - 1)
        return sign;
    m |= (uint64_t)1 << 52;
    int shift = 52 - mantissa + (e < low ? low - e : 0);
    uint64_t half = (uint64_t)1 << (shift - 1);
    uint64_t r = (m + half - 1 + (m >> shift & 1)) >> shift;
    if (e >= low) /* r holds the leading one, so a carry moves into the exponent by itself */
        r += (uint64_t)(e - low) << mantissa;
    return (uint16_t)(sign | r);
}

NARROW_FN double narrow_value(uint16_t h, int mantissa, int exponent)
{
    int bias = (1 << (exponent - 1)) - 1;
    int e = h >> mantissa & ((1 << exponent) - 1);
    int m = h & ((1 << mantissa) - 1);
    double v;
    if (e == (1 << exponent) - 1)
        v = m ? (double)NAN : (double)INFINITY;
    else if (e == 0)
        v = ldexp((double)m, 1 - bias - mantissa);
    else
        v = ldexp((double)(m | 1 << mantissa), e - bias - mantissa);
    return h & 0x8000 ? -v : v;
}

NARROW_FN double brain_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A float64 past FLT_MAX converts to inf under IEEE 754; C leaves it open, so it is spelled out. */
NARROW_FN float single_of(double v)
{
    if (fabs(v) >= 0x1.ffffffp127 && !isinf(v))
        return v > 0 ? (float)INFINITY : -(float)INFINITY;
    return (float)v;
}

/* Toward zero, held in [low, high); NaN gives 0. high == 2^63 stands for INT64_MAX. */
NARROW_FN int64_t whole_of(double v, double low, double high)
{
    if (!(v > low))
        return isnan(v) ? 0 : (int64_t)low;
    if (v >= high) /* high is one more than the largest value, exact in float64 */
        return high == 0x1p63 ? (int64_t)(~(uint64_t)0 >> 1) : (int64_t)high - 1;
    return (int64_t)v;
}

#endif
