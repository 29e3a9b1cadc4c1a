/* The bound of a dot product: for gemm.c and for kernels (gpu/). Pure. */
#ifndef OPS_DOT_H
#define OPS_DOT_H

#ifndef __CUDACC__
#include "num.h"
#endif

/*
 * A dot product of n nonzero terms in any order, fused or not: n u sum |a||b| (Higham,
 * section 3.1), the operands' rounding (tf32, split products), and the errors that they bring. One
 * nonzero term is nearly exact, which makes one-hot rows a probe of the precision of products.
 */
static inline struct ops_num ops_dot(double v, double size, double high, double terms,
                                     const struct ops_arith *ar)
{
    if (isnan(v) || isinf(size))
        return ops_pair(v, isinf(high) && !isinf(size) ? (double)INFINITY : 0);
    double steps = terms > 1 ? terms - 1 : 0;
    double e = (steps * ar->sum + 2 * ar->matmul) * high + (high - size) + terms * ar->tiny;
    if (ar->u > 0)
        e += ar->u * fabs(v);
    if (high + e > ar->max && fabs(v) <= ar->max)
        e = INFINITY;
    return ops_settle(v, e);
}

#endif
