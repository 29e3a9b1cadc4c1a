/*
 * Attributes of the kinds of values: what ops_value.attr points at. For the files that compute them
 * on the host and on the device (gpu/). Those of inputs are a struct rung_tensor_view, of scalars a
 * struct ops_num, of permutations the uint32_t of each dimension, of concatenations the uint32_t
 * axis, of pooling a struct ops_pool_attr; reshapes and matrix products have none.
 */
#ifndef OPS_ATTR_H
#define OPS_ATTR_H

#include "ops.h"

/* What one map does; the function that fits the number of operands is set. */
struct ops_map_attr {
    ops_unary one;
    ops_binary two;
    ops_ternary three;
    int exact;     /* `two` takes operands as they are */
    double stored; /* relative error of being stored, for ops_stored */
    /* Relative to each operand of a sum: what it loses when it is the first term of the other's
     * running sum, one rounding a further term (a bias that the accumulator starts at). */
    double carried[2];
};

/* What one operator does with rows; reduce or scan is set. */
struct ops_rows_attr {
    uint32_t axes;
    int keepdim;
    ops_reduce_fn reduce;
    struct ops_row_options opt;
    ops_scan_fn scan;
};

struct ops_conv_attr {
    struct ops_window win;
    int64_t groups;
    int transposed;
};

/* Elements start, start + step, ... along an axis. */
struct ops_slice_attr {
    uint32_t axis;
    int64_t start, step;
};

struct ops_triangle_attr {
    int upper;
    int64_t diagonal;
    double fill;
};

struct ops_pick_attr {
    uint32_t axis;
    int64_t ignored;
};

extern const struct ops_kernel ops_input_kernel, ops_scalar_kernel, ops_map_kernel,
    ops_reduce_kernel, ops_scan_kernel, ops_permute_kernel, ops_reshape_kernel, ops_slice_kernel,
    ops_concat_kernel, ops_triangle_kernel, ops_pick_kernel, ops_matmul_kernel, ops_conv_kernel,
    ops_pool_kernel;

#endif
