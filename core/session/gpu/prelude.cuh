/* What the session's kernels need before the headers that they share with the host. */
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#define NARROW_FN static __device__ inline

/* rung_dtype; gpu.c checks that these are its numbers. */
enum { F64 = 1, F32 = 2, F16 = 3, BF16 = 4, I8 = 16, U8 = 17, I32 = 18, I64 = 19, BOOL = 20 };
