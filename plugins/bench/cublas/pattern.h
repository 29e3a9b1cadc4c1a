/* Which product a graph is: one matmul or bmm, perhaps with a bias vector and an activation. */
#ifndef CUBLAS_PATTERN_H
#define CUBLAS_PATTERN_H

#include "../common/problem.h"

enum product_activation { PRODUCT_PLAIN = 0, PRODUCT_RELU, PRODUCT_GELU_TANH };

/* c[batch][m][n] = activation(a b + bias), row-major; a is [m][k] or, transposed, [k][m]. */
struct product {
    int a, b, c, bias; /* task tensors; bias -1: none */
    int transpose_a, transpose_b;
    uint32_t activation; /* product_activation */
    int64_t m, n, k, batch;
    int64_t stride_a, stride_b,
        stride_c; /* elements from one of the batch to the next; 0: shared */
};

/* Recognises the problem's graph; else RUNG_EUNSUPPORTED with the reason. */
int32_t product_read(struct rung_call *call, const struct bench_problem *problem,
                     struct product *out);

#endif
