/*
 * Arguments of the session's kernels, one struct a kernel, read by the host's compiler and by the
 * device's: the same layout in both. Addresses are of device memory.
 */
#ifndef SESSION_GPU_ARGS_H
#define SESSION_GPU_ARGS_H

#ifndef __CUDACC__
#include <stdint.h>
#endif

/* Fills, in the order of rung_fill_kinds. */
enum session_gpu_kind {
    SESSION_NORMAL,
    SESSION_UNIFORM,
    SESSION_SIGNED,
    SESSION_OFFSET,
    SESSION_LARGE,
    SESSION_SMALL,
    SESSION_ZEROS,
    SESSION_ONES,
    SESSION_EQUAL_ROWS,
    SESSION_ONEHOT_ROWS,
    SESSION_RAMP,
    SESSION_INTEGERS,
    SESSION_KINDS
};

/* Draws elements 0 .. n - 1 to `range`, or counts in *differs the threads that find others there.
 */
struct session_gpu_draw_args {
    uint64_t range, differs;
    uint64_t n, seed, stream, last;
    double scale, shift;
    uint32_t kind, dtype;
};

/* Sets *differs unless a[i * stride .. + bytes) equals b[0 .. bytes) for all i < count. */
struct session_gpu_bytes_args {
    uint64_t a, b, stride, bytes, differs;
    uint32_t width; /* 16, 4 or 1 bytes at once: addresses, stride and bytes are multiples */
    uint32_t reserved;
};

struct session_gpu_compare_args {
    uint64_t range, value, bound, parts;
    uint64_t poison; /* 0: the output held none */
    uint64_t poison_bytes, n;
    /* Powers of two in the sums of errors, of what the output holds, and of the reference. */
    double scale_error, scale_got, scale_want;
    uint32_t dtype, reserved;
};

/* A sum and what its roundings lost. */
struct session_gpu_sum {
    double sum, lost;
};

/* What one block found of an output. */
struct session_gpu_part {
    struct session_gpu_sum error2, got_want, got2, want2;
    double peak, worst, max_abs, max_rel;
    uint64_t max_abs_at, max_rel_at, first_bad;
    uint64_t n_bad, n_poison, n_nan, n_inf, n_missing, n_finite;
};

enum { SESSION_GPU_THREADS = 256 };

#endif
