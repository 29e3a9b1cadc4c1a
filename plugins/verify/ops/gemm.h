/*
 * Blocked matrix products in float64 with the sums that error bounds need. The operands come from
 * callbacks, so that convolutions need no matrix of windows in memory.
 */
#ifndef OPS_GEMM_H
#define OPS_GEMM_H

#include "ops.h"

/* Values of a run of elements, and their errors (NULL: all 0). */
struct ops_run {
    const double *v, *e;
};

/*
 * batch products C (m x n) = A (m x k) B (k x n). Callbacks are called from several threads at
 * once. row and line point at elements where they lie together, else they gather them in the
 * buffers v and e, which have room for count.
 */
struct ops_gemm {
    int64_t batch, m, n, k;
    int with_errors; /* an element of A or B may have an error */
    const void *ctx;
    /* Elements [k0, k0 + count) of row i of A. */
    struct ops_run (*row)(const void *ctx, int64_t batch, int64_t i, int64_t k0, int64_t count,
                          double *v, double *e);
    /* Elements [j0, j0 + count) of row k of B. */
    struct ops_run (*line)(const void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t count,
                           double *v, double *e);
    /* Takes elements [j0, j0 + count) of row i of C. */
    void (*store)(const void *ctx, int64_t batch, int64_t i, int64_t j0, int64_t count,
                  const struct ops_num *c);
};

/*
 * Each element of C is a sum in order of k, with the bound of a dot product in any order. Its bits
 * depend on its row of A and column of B only. RUNG_ENOMEM.
 */
int32_t ops_gemm_run(struct ops_eval *ev, const struct ops_gemm *g);

/*
 * The innermost loop. a: k columns of `rows` elements; b: k rows of `columns` elements; adds the
 * product to c, whose rows are `stride` apart. `single` is the same for one row of A.
 */
struct ops_micro {
    const char *name;
    int64_t rows, columns;
    void (*full)(int64_t k, const double *a, const double *b, double *c, int64_t stride);
    void (*single)(int64_t k, const double *a, const double *b, double *c, int64_t stride);
};

/* Those that this processor can run, the fastest first. All round alike that use fused
 * multiply-add; "generic" rounds products as well. */
const struct ops_micro *ops_micro_list(uint32_t *n);

#endif
