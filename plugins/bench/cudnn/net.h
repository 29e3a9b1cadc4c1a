/* What of a graph cuDNN has: one layer, or a convolution with what may be fused behind it. */
#ifndef CUDNN_NET_H
#define CUDNN_NET_H

#include "../common/problem.h"

enum net_kind {
    NET_CONV = 1, /* conv1d..3d, bias, activation, pooling: all but the first may lack */
    NET_POOL,
    NET_SOFTMAX,
    NET_NORM, /* layernorm, rmsnorm */
    NET_BATCHNORM,
    NET_ATTENTION,
};

struct net_window {
    uint32_t n;    /* spatial dimensions */
    uint32_t mode; /* of a pool: DNN_POOL_... */
    int64_t kernel[3], stride[3], before[3], after[3], dilation[3];
};

struct net {
    uint32_t kind;      /* net_kind */
    int x, w, bias, y;  /* task tensors; -1: none. Norms: w is the weight. */
    int k, v;           /* ATTENTION; x is q */
    int mean, variance; /* BATCHNORM in inference; -1: of the batch */
    int activation;     /* CONV: a pointwise mode of api.h, or -1 */
    int has_pool;       /* CONV */
    struct net_window conv, pool;
    int64_t conv_out[RUNG_MAX_DIMS]; /* shape behind the convolution */
    int64_t rows, middle, inner;     /* SOFTMAX: along middle; NORM: rows of middle elements */
    int log, rms, causal;
    double scale, eps;
};

/* Recognises the problem's graph; else RUNG_EUNSUPPORTED with the reason. */
int32_t net_read(struct rung_call *call, const struct bench_problem *problem, struct net *out);

/* "convolution + bias + relu + pool", for labels and messages. */
const char *net_name(const struct net *net, char *text, size_t size);

#endif
