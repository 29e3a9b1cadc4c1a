/*
 * Arguments of the kernels, one struct a kernel: the same layout for the host's compiler and the
 * device's. Tensors are dense and row-major.
 */
#ifndef OPS_GPU_ARGS_H
#define OPS_GPU_ARGS_H

#ifndef __CUDACC__
#include "../ops.h"
#endif

enum { OPS_GPU_THREADS = 256, OPS_GPU_OPERANDS = 3 };

/* Device addresses of values and errors; e is 0 where all errors are. */
struct ops_gpu_tensor {
    uint64_t v, e;
};

/* Inputs: raw elements of a dtype to out. Without out.e, *flag becomes 1 when one has an error. */
struct ops_gpu_decode_args {
    struct ops_arith ar;
    struct ops_gpu_tensor out;
    uint64_t data, flag, n;
    uint32_t dtype, reserved;
};

/* in to value and bound of what a kernel stores as dtype. */
struct ops_gpu_finish_args {
    struct ops_arith ar;
    struct ops_gpu_tensor in, out;
    uint64_t n;
    uint32_t dtype, reserved;
};

/* *flag becomes 1 when an element of e is not 0. */
struct ops_gpu_any_args {
    uint64_t e, flag, n;
};

struct ops_gpu_map_args {
    struct ops_arith ar;
    struct ops_gpu_tensor in[OPS_GPU_OPERANDS], out;
    uint64_t n;
    /* How flat indices of out turn into places in the operands: dims of out, and an operand's step
     * along each. direct: the places are the same. */
    int64_t dims[RUNG_MAX_DIMS], steps[OPS_GPU_OPERANDS][RUNG_MAX_DIMS];
    uint32_t n_dims, n_in, direct[OPS_GPU_OPERANDS], reserved;
    double stored, carried[2];
    struct ops_num number; /* of a scalar */
};

/* out[i] = in[base + index of i . steps] */
struct ops_gpu_move_args {
    struct ops_gpu_tensor in, out;
    uint64_t n;
    int64_t base, dims[RUNG_MAX_DIMS], steps[RUNG_MAX_DIMS];
    uint32_t n_dims, reserved;
};

/* Runs of `run` elements of in to places `stride` apart in out, from `to` on. */
struct ops_gpu_put_args {
    struct ops_gpu_tensor in, out;
    uint64_t n, run, stride, to;
};

struct ops_gpu_triangle_args {
    struct ops_gpu_tensor in, out;
    uint64_t n, rows, cols;
    int64_t diagonal;
    double fill;
    uint32_t upper, reserved;
};

struct ops_gpu_pick_args {
    struct ops_gpu_tensor in, index, out;
    uint64_t n, inner, extent;
    int64_t ignored;
};

/* Rows of `length` elements; a row starts where its index along the kept dimensions says. */
struct ops_gpu_rows_args {
    struct ops_arith ar;
    struct ops_gpu_tensor in, out;
    uint64_t rows, length, states; /* states: of parts of rows */
    uint64_t segments;             /* parts of a row that are added up apart */
    int64_t kept[RUNG_MAX_DIMS], kept_step[RUNG_MAX_DIMS];
    int64_t reduced[RUNG_MAX_DIMS], reduced_step[RUNG_MAX_DIMS];
    uint32_t n_kept, n_reduced, contiguous;
    uint32_t unbiased; /* var */
    double sign;       /* max and min, argmax and argmin */
};

struct ops_gpu_pool_args {
    struct ops_arith ar;
    struct ops_pool_attr attr;
    struct ops_gpu_tensor in, out;
    uint64_t n;
    int64_t extent[OPS_MAX_SPACE];
};

/* One phase of a convolution (conv.c). */
struct ops_gpu_conv {
    uint64_t flat, offset; /* int32_t: n_taps of the first, OPS_MAX_SPACE x n_taps of the second */
    int64_t channels, group_in, rows, width, volume, groups;
    int32_t n, n_taps, transposed, reserved;
    int32_t extent[OPS_MAX_SPACE], out[OPS_MAX_SPACE], q[OPS_MAX_SPACE];
    int32_t in_step[OPS_MAX_SPACE], out_step[OPS_MAX_SPACE], out_at[OPS_MAX_SPACE];
    int32_t reserved2[2];
};

/* batch products C (m x n) = A (m x k) B (k x n). */
struct ops_gpu_product_args {
    struct ops_arith ar;
    struct ops_gpu_tensor a, b, c;
    int64_t batch, m, n, k;
    int64_t tiles_m, tiles_n;
    int64_t batch_a, batch_b; /* elements between matrices of a batch; 0: one for all */
    struct ops_gpu_conv conv;
};

enum { OPS_GPU_TILE = 64 };

#endif
