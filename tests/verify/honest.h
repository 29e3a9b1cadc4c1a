/*
 * Honest float32 kernels, written as CUDA kernels are: sequential loops, 256 threads that stride
 * over a row and merge by a tree, online updates, base-2 exponentials, reciprocals. Each takes one
 * row.
 */
#ifndef TESTS_VERIFY_HONEST_H
#define TESTS_VERIFY_HONEST_H

#include <stdint.h>

typedef void (*row_kernel)(const float *x, int64_t n, float *y); /* y: n elements, or 1 */
typedef float (*point_kernel)(float x);

struct named_row {
    const char *name;
    row_kernel run;
};
struct named_point {
    const char *name;
    point_kernel run;
};

/* Lists end with a NULL name. */
extern const struct named_row honest_softmax[], honest_log_softmax[], honest_logsumexp[],
    honest_sum[], honest_mean[], honest_var[], honest_norm[], honest_cumsum[], honest_layernorm[],
    honest_prod[];
extern const struct named_point honest_gelu[], honest_gelu_tanh[], honest_silu[], honest_sigmoid[],
    honest_softplus[], honest_mish[], honest_tanh[], honest_hardswish[], honest_log[],
    honest_sqrt[], honest_exp[], honest_erf[], honest_cube[], honest_inverse[];

/* E[x^2] - mean^2: the variance that is not honest. */
void unstable_var(const float *x, int64_t n, float *y);
void unstable_var_tree(const float *x, int64_t n, float *y);

/* Rounding to nearest even of the narrow types, and to 10 explicit bits (tf32). */
float to_f16(float x);
float to_bf16(float x);

#endif
