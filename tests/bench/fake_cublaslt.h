/* What fake_cublaslt.c saw and is told; exported as `fake_seen`. */
#ifndef TESTS_BENCH_FAKE_CUBLASLT_H
#define TESTS_BENCH_FAKE_CUBLASLT_H

#include <stdint.h>

struct fake_seen {
    int handles, live; /* open handles; descriptors, layouts and preferences not destroyed */
    int calls, compute, algorithm; /* of the last cublasLtMatmul that ran */
    int start_fails;
    uint32_t alignment[4]; /* assumed of A, B, C, D */
};

#endif
