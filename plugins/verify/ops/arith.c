/* What each precision is granted: see struct ops_arith. */
#include "num.h"

#include <float.h>

/* Unit roundoff of p significand bits: 2^-p. */
#define U(p) (1.0 / (double)(1ull << (p)))

static struct ops_arith full(double u, int bits, double tiny, double max)
{
    return (struct ops_arith){.u = u,
                              .sum = u,
                              .arg = 16 * u,
                              .res = 8 * u,
                              .div = 6 * u,
                              .tiny = tiny,
                              .max = max,
                              .bits = bits};
}

static struct ops_arith half(int bits)
{
    struct ops_arith ar = full(U(24), bits, FLT_MIN, FLT_MAX);
    ar.u = U(bits);
    ar.arg += 2 * ar.u;
    ar.res += 2 * ar.u;
    ar.div += 2 * ar.u;
    ar.running32 = 1;
    return ar;
}

struct ops_arith ops_arith_of(uint32_t precision)
{
    struct ops_arith ar = full(U(24), 24, FLT_MIN, FLT_MAX);
    ar.running32 = 1;
    ar.matmul = 8 * U(24); /* split products (3xTF32) are honest; 15 bits and less are not */
    switch (precision) {
    case RUNG_PRECISION_TF32:
        ar.matmul = U(11);
        return ar;
    case RUNG_PRECISION_FP16:
        return half(11);
    case RUNG_PRECISION_BF16:
        return half(8);
    case RUNG_PRECISION_FP64: /* twice: the reference itself rounds as well */
        return full(2 * U(53), 53, DBL_MIN, DBL_MAX);
    case RUNG_PRECISION_EXACT:
        return (struct ops_arith){.max = DBL_MAX, .bits = 64};
    default:
        return ar;
    }
}
