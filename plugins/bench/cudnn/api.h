/*
 * The part of cuDNN 9 that the baseline uses, with prototypes of our own (cudnn_graph.h and
 * cudnn_ops.h; tests/bench/test_headers.c compares them where the headers are).
 */
#ifndef CUDNN_API_H
#define CUDNN_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct dnn_context *dnn_handle;       /* cudnnHandle_t */
typedef void *dnn_desc;                       /* cudnnBackendDescriptor_t */
typedef struct dnn_tensor *dnn_tensor;        /* cudnnTensorDescriptor_t */
typedef struct dnn_pooling *dnn_pooling_desc; /* cudnnPoolingDescriptor_t */

enum { DNN_SUCCESS = 0, DNN_NOT_INITIALIZED = 1001 };
enum { /* cudnnDataType_t */
       DNN_FLOAT = 0,
       DNN_DOUBLE = 1,
       DNN_HALF = 2,
       DNN_INT32 = 4,
       DNN_BFLOAT16 = 9,
       DNN_BOOLEAN = 11,
};
enum { /* cudnnPointwiseMode_t */
       DNN_ADD = 0,
       DNN_MUL = 1,
       DNN_DIV = 6,
       DNN_SUB = 9,
       DNN_EXP = 13,
       DNN_RELU = 100,
       DNN_TANH = 101,
       DNN_SIGMOID = 102,
       DNN_GELU = 104,
       DNN_SWISH = 106,
       DNN_GELU_TANH = 107,
       DNN_CMP_GE = 303,
       DNN_GEN_INDEX = 501,
       DNN_BINARY_SELECT = 601,
};
enum { DNN_REDUCE_ADD = 0, DNN_REDUCE_MAX = 3 };
enum { DNN_CROSS_CORRELATION = 1 };
enum { DNN_LAYER_NORM = 0, DNN_RMS_NORM = 4 };
enum { DNN_NORM_INFERENCE = 0 };
enum { DNN_POOL_MAX = 0, DNN_POOL_MEAN_PADDED = 1, DNN_POOL_MEAN = 2 };
enum { DNN_SOFTMAX_ACCURATE = 1, DNN_SOFTMAX_LOG = 2, DNN_SOFTMAX_CHANNEL = 1 };
enum { DNN_BATCHNORM_SPATIAL = 1 };
enum { DNN_HEURISTICS_B = 1, DNN_HEURISTICS_FALLBACK = 2, DNN_HEURISTICS_A = 3 };
enum { /* cudnnBackendNumericalNote_t */
       DNN_NOTE_TENSOR_CORE = 0,
       DNN_NOTE_DOWN_CONVERT = 1,
       DNN_NOTE_REDUCED_REDUCTION = 2,
       DNN_NOTE_FFT = 3,
       DNN_NOTE_WINOGRAD = 5,
       DNN_NOTES = 10,
};
enum { /* cudnnBackendAttributeType_t */
       DNN_T_HANDLE = 0,
       DNN_T_DATA_TYPE = 1,
       DNN_T_BOOLEAN = 2,
       DNN_T_INT64 = 3,
       DNN_T_FLOAT = 4,
       DNN_T_DOUBLE = 5,
       DNN_T_POINTER = 6,
       DNN_T_CONV_MODE = 7,
       DNN_T_HEURISTICS = 8,
       DNN_T_NOTE = 11,
       DNN_T_POINTWISE = 14,
       DNN_T_DESC = 15,
       DNN_T_REDUCTION = 18,
       DNN_T_NORM_MODE = 27,
       DNN_T_NORM_PHASE = 28,
};
enum { /* cudnnBackendDescriptorType_t */
       DNN_POINTWISE = 0,
       DNN_CONVOLUTION = 1,
       DNN_ENGINE = 2,
       DNN_ENGINECFG = 3,
       DNN_ENGINEHEUR = 4,
       DNN_PLAN = 5,
       DNN_OP_CONV = 10,
       DNN_OP_POINTWISE = 13,
       DNN_GRAPH = 15,
       DNN_PACK = 16,
       DNN_TENSOR = 17,
       DNN_MATMUL = 18,
       DNN_OP_MATMUL = 19,
       DNN_REDUCTION = 21,
       DNN_OP_REDUCTION = 22,
       DNN_OP_NORM = 29,
       DNN_OP_SDPA = 41,
};
enum { /* cudnnBackendAttributeName_t */
       DNN_A_POINTWISE_MODE = 0,
       DNN_A_POINTWISE_PREC = 1,
       DNN_A_POINTWISE_AXIS = 9,
       DNN_A_CONV_COMP = 100,
       DNN_A_CONV_MODE = 101,
       DNN_A_CONV_DILATIONS = 102,
       DNN_A_CONV_STRIDES = 103,
       DNN_A_CONV_POST_PADS = 104,
       DNN_A_CONV_PRE_PADS = 105,
       DNN_A_CONV_SPATIAL = 106,
       DNN_A_HEUR_MODE = 200,
       DNN_A_HEUR_GRAPH = 201,
       DNN_A_HEUR_RESULTS = 202,
       DNN_A_CFG_ENGINE = 300,
       DNN_A_PLAN_HANDLE = 400,
       DNN_A_PLAN_CFG = 401,
       DNN_A_PLAN_WORKSPACE = 402,
       DNN_A_OP_CONV_ALPHA = 700,
       DNN_A_OP_CONV_BETA = 701,
       DNN_A_OP_CONV_DESC = 702,
       DNN_A_OP_CONV_W = 703,
       DNN_A_OP_CONV_X = 704,
       DNN_A_OP_CONV_Y = 705,
       DNN_A_OP_POINTWISE_DESC = 750,
       DNN_A_OP_POINTWISE_X = 751,
       DNN_A_OP_POINTWISE_B = 752,
       DNN_A_OP_POINTWISE_Y = 753,
       DNN_A_OP_POINTWISE_T = 758,
       DNN_A_GRAPH_HANDLE = 800,
       DNN_A_GRAPH_OPS = 801,
       DNN_A_TENSOR_ALIGNMENT = 900,
       DNN_A_TENSOR_TYPE = 901,
       DNN_A_TENSOR_DIMS = 902,
       DNN_A_TENSOR_STRIDES = 903,
       DNN_A_TENSOR_ID = 906,
       DNN_A_TENSOR_VIRTUAL = 907,
       DNN_A_TENSOR_BY_VALUE = 908,
       DNN_A_PACK_IDS = 1000,
       DNN_A_PACK_POINTERS = 1001,
       DNN_A_PACK_WORKSPACE = 1003,
       DNN_A_ENGINE_NOTE = 1303,
       DNN_A_MATMUL_COMP = 1500,
       DNN_A_OP_MATMUL_A = 1520,
       DNN_A_OP_MATMUL_B = 1521,
       DNN_A_OP_MATMUL_C = 1522,
       DNN_A_OP_MATMUL_DESC = 1523,
       DNN_A_REDUCTION_OPERATOR = 1600,
       DNN_A_REDUCTION_COMP = 1601,
       DNN_A_OP_REDUCTION_X = 1610,
       DNN_A_OP_REDUCTION_Y = 1611,
       DNN_A_OP_REDUCTION_DESC = 1612,
       DNN_A_OP_NORM_MODE = 2000,
       DNN_A_OP_NORM_PHASE = 2001,
       DNN_A_OP_NORM_X = 2002,
       DNN_A_OP_NORM_SCALE = 2005,
       DNN_A_OP_NORM_BIAS = 2006,
       DNN_A_OP_NORM_EPSILON = 2007,
       DNN_A_OP_NORM_Y = 2013,
       DNN_A_OP_SDPA_Q = 2800,
       DNN_A_OP_SDPA_K = 2801,
       DNN_A_OP_SDPA_V = 2802,
       DNN_A_OP_SDPA_O = 2803,
       DNN_A_OP_SDPA_SCALE = 2805,
};

/* X(member, exported symbol, parameters); all give a cudnnStatus_t. */
#define DNN_FUNCTIONS(X)                                                                           \
    X(create, cudnnCreate, (dnn_handle *))                                                         \
    X(destroy, cudnnDestroy, (dnn_handle))                                                         \
    X(set_stream, cudnnSetStream, (dnn_handle, void *stream))                                      \
    X(desc_create, cudnnBackendCreateDescriptor, (int type, dnn_desc *))                           \
    X(desc_destroy, cudnnBackendDestroyDescriptor, (dnn_desc))                                     \
    X(desc_finalize, cudnnBackendFinalize, (dnn_desc))                                             \
    X(desc_set, cudnnBackendSetAttribute,                                                          \
      (dnn_desc, int name, int type, int64_t n, const void *values))                               \
    X(desc_get, cudnnBackendGetAttribute,                                                          \
      (dnn_desc, int name, int type, int64_t wanted, int64_t *n, void *values))                    \
    X(execute, cudnnBackendExecute, (dnn_handle, dnn_desc plan, dnn_desc pack))                    \
    X(tensor_create, cudnnCreateTensorDescriptor, (dnn_tensor *))                                  \
    X(tensor_destroy, cudnnDestroyTensorDescriptor, (dnn_tensor))                                  \
    X(tensor_set, cudnnSetTensorNdDescriptor,                                                      \
      (dnn_tensor, int type, int n, const int *dims, const int *strides))                          \
    X(pooling_create, cudnnCreatePoolingDescriptor, (dnn_pooling_desc *))                          \
    X(pooling_destroy, cudnnDestroyPoolingDescriptor, (dnn_pooling_desc))                          \
    X(pooling_set, cudnnSetPoolingNdDescriptor,                                                    \
      (dnn_pooling_desc, int mode, int nan, int n, const int *window, const int *pad,              \
       const int *stride))                                                                         \
    X(pooling, cudnnPoolingForward,                                                                \
      (dnn_handle, dnn_pooling_desc, const void *alpha, dnn_tensor, const void *x,                 \
       const void *beta, dnn_tensor, void *y))                                                     \
    X(softmax, cudnnSoftmaxForward,                                                                \
      (dnn_handle, int algorithm, int mode, const void *alpha, dnn_tensor, const void *x,          \
       const void *beta, dnn_tensor, void *y))                                                     \
    X(batchnorm, cudnnBatchNormalizationForwardTraining,                                           \
      (dnn_handle, int mode, const void *alpha, const void *beta, dnn_tensor, const void *x,       \
       dnn_tensor, void *y, dnn_tensor, const void *scale, const void *bias, double factor,        \
       void *mean, void *variance, double epsilon, void *saved_mean, void *saved_variance))        \
    X(batchnorm_fixed, cudnnBatchNormalizationForwardInference,                                    \
      (dnn_handle, int mode, const void *alpha, const void *beta, dnn_tensor, const void *x,       \
       dnn_tensor, void *y, dnn_tensor, const void *scale, const void *bias, const void *mean,     \
       const void *variance, double epsilon))

struct dnn_api {
#define DNN_MEMBER(member, symbol, params) int(*member) params;
    DNN_FUNCTIONS(DNN_MEMBER)
#undef DNN_MEMBER
    const char *(*status_text)(int status);
    void (*last_error)(char *text, size_t size);
};

#endif
