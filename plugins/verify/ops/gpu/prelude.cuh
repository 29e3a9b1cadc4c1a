/*
 * What the kernels need before the headers and sources that they share with the host. Compilers for
 * rung take every function for one of the device.
 */
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#undef INFINITY
#undef NAN
#undef DBL_MAX
#undef DBL_MIN
#undef FLT_MAX
#undef FLT_MIN
#undef M_SQRT1_2
#undef M_2_SQRTPI
#undef M_LOG2E
#undef M_LN2
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1p-1022
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942

/* rung_dtype and RUNG_MAX_DIMS; run.c checks that these are its numbers. */
enum {
    RUNG_F64 = 1,
    RUNG_F32 = 2,
    RUNG_F16 = 3,
    RUNG_BF16 = 4,
    RUNG_I8 = 16,
    RUNG_U8 = 17,
    RUNG_I32 = 18,
    RUNG_I64 = 19,
    RUNG_BOOL = 20
};
#define RUNG_MAX_DIMS 8
