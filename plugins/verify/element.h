/*
 * Elements of tensors as float64, for the plugins of this folder. Pure.
 */
#ifndef VERIFY_ELEMENT_H
#define VERIFY_ELEMENT_H

#ifndef __CUDACC__
#include <rung/tensor.h>

#include <math.h>
#include <string.h>
#endif

/* IEEE binary16. */
static inline double verify_from_half(uint16_t h)
{
    int exponent = (h >> 10) & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp((double)(1024 + mantissa), exponent - 25)
                              : ldexp((double)mantissa, -24);
    return h & 0x8000 ? -v : v;
}

/* The upper half of a binary32. */
static inline double verify_from_bfloat(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Element i of dense data. Integers beyond 2^53 round. */
static inline double verify_element(uint32_t dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case RUNG_F64:
        return ((const double *)data)[i];
    case RUNG_F32:
        return ((const float *)data)[i];
    case RUNG_F16:
        return verify_from_half(((const uint16_t *)data)[i]);
    case RUNG_BF16:
        return verify_from_bfloat(((const uint16_t *)data)[i]);
    case RUNG_I8:
        return ((const int8_t *)data)[i];
    case RUNG_U8:
        return ((const uint8_t *)data)[i];
    case RUNG_I32:
        return ((const int32_t *)data)[i];
    case RUNG_I64:
        return (double)((const int64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i] != 0;
    }
}

#endif
