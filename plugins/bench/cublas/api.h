/*
 * The part of cuBLASLt that the baseline uses, with prototypes of our own (cublasLt.h of CUDA 12
 * and 13; tests/bench/test_headers.c compares them where the toolkit is).
 */
#ifndef CUBLAS_API_H
#define CUBLAS_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct lt_context *lt_handle;     /* cublasLtHandle_t */
typedef struct lt_matmul_desc *lt_desc;   /* cublasLtMatmulDesc_t */
typedef struct lt_layout_desc *lt_layout; /* cublasLtMatrixLayout_t */
typedef struct lt_preference *lt_pref;    /* cublasLtMatmulPreference_t */

enum { /* cudaDataType */
       LT_R_32F = 0,
       LT_R_64F = 1,
       LT_R_16F = 2,
       LT_R_16BF = 14,
};
enum { /* cublasComputeType_t */
       LT_COMPUTE_32F = 68,
       LT_COMPUTE_64F = 70,
       LT_COMPUTE_32F_FAST_TF32 = 77,
};
enum { /* cublasLtMatmulDescAttributes_t */
       LT_DESC_TRANSA = 3,
       LT_DESC_TRANSB = 4,
       LT_DESC_EPILOGUE = 7,
       LT_DESC_BIAS_POINTER = 8,
};
enum { /* cublasLtEpilogue_t */
       LT_EPILOGUE_DEFAULT = 1,
       LT_EPILOGUE_RELU = 2,
       LT_EPILOGUE_BIAS = 4,
       LT_EPILOGUE_GELU = 32, /* the form with tanh */
};
enum { /* cublasLtMatrixLayoutAttribute_t */
       LT_LAYOUT_BATCH_COUNT = 5,
       LT_LAYOUT_BATCH_STRIDE = 6,
};
enum { /* cublasLtMatmulPreferenceAttributes_t */
       LT_PREF_MAX_WORKSPACE = 1,
       LT_PREF_ALIGNMENT_A = 5,
       LT_PREF_ALIGNMENT_B = 6,
       LT_PREF_ALIGNMENT_C = 7,
       LT_PREF_ALIGNMENT_D = 8,
};
enum { LT_OP_N = 0, LT_OP_T = 1 }; /* cublasOperation_t */
enum { LT_SUCCESS = 0, LT_NOT_INITIALIZED = 1, LT_NOT_SUPPORTED = 15 };

struct lt_algo { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
};
struct lt_result { /* cublasLtMatmulHeuristicResult_t */
    struct lt_algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

/* X(member, exported symbol, parameters) */
#define LT_FUNCTIONS(X)                                                                            \
    X(create, cublasLtCreate, (lt_handle *))                                                       \
    X(destroy, cublasLtDestroy, (lt_handle))                                                       \
    X(desc_create, cublasLtMatmulDescCreate, (lt_desc *, int compute, int scale))                  \
    X(desc_destroy, cublasLtMatmulDescDestroy, (lt_desc))                                          \
    X(desc_set, cublasLtMatmulDescSetAttribute, (lt_desc, int, const void *, size_t))              \
    X(layout_create, cublasLtMatrixLayoutCreate,                                                   \
      (lt_layout *, int type, uint64_t rows, uint64_t columns, int64_t ld))                        \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, (lt_layout))                                    \
    X(layout_set, cublasLtMatrixLayoutSetAttribute, (lt_layout, int, const void *, size_t))        \
    X(pref_create, cublasLtMatmulPreferenceCreate, (lt_pref *))                                    \
    X(pref_destroy, cublasLtMatmulPreferenceDestroy, (lt_pref))                                    \
    X(pref_set, cublasLtMatmulPreferenceSetAttribute, (lt_pref, int, const void *, size_t))        \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                   \
      (lt_handle, lt_desc, lt_layout a, lt_layout b, lt_layout c, lt_layout d, lt_pref, int most,  \
       struct lt_result *, int *n))                                                                \
    X(matmul, cublasLtMatmul,                                                                      \
      (lt_handle, lt_desc, const void *alpha, const void *a, lt_layout, const void *b, lt_layout,  \
       const void *beta, const void *c, lt_layout, void *d, lt_layout, const struct lt_algo *,     \
       void *workspace, size_t, void *stream))

struct lt_api {
#define LT_MEMBER(member, symbol, params) int(*member) params;
    LT_FUNCTIONS(LT_MEMBER)
#undef LT_MEMBER
    const char *(*status_text)(int status);
};

#endif
