#include "session/convert.h"

#include "session/narrow.h"

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
        LOAD(uint16_t, narrow_value(e, NARROW_HALF));
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

bool rung_convert_store(uint32_t dtype, const double *from, uint64_t n, void *to)
{
    switch (dtype) {
    case RUNG_F64:
        STORE(double, v);
    case RUNG_F32:
        STORE(float, single_of(v));
    case RUNG_F16:
        STORE(uint16_t, narrow_of(v, NARROW_HALF));
    case RUNG_BF16:
        STORE(uint16_t, narrow_of(v, NARROW_BRAIN));
    case RUNG_I8:
        STORE(int8_t, whole_of(v, -128, 128));
    case RUNG_U8:
        STORE(uint8_t, whole_of(v, 0, 256));
    case RUNG_BOOL:
        STORE(uint8_t, v != 0);
    case RUNG_I32:
        STORE(int32_t, whole_of(v, -0x1p31, 0x1p31));
    case RUNG_I64:
        STORE(int64_t, whole_of(v, -0x1p63, 0x1p63));
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
        return narrow_value(narrow_of(v, NARROW_HALF), NARROW_HALF);
    case RUNG_BF16:
        return brain_value(narrow_of(v, NARROW_BRAIN));
    default:
        return v;
    }
}

bool rung_dtype_is_float(uint32_t dtype)
{
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}
