/* cuDNN's graph interface: operations on tensors, the library's plans for them. */
#ifndef CUDNN_GRAPH_H
#define CUDNN_GRAPH_H

#include "api.h"

#include <rung/tensor.h>

enum { GRAPH_DESCS = 160, GRAPH_OPS = 16, GRAPH_PLANS = 8, GRAPH_WORDS = 400 };

/* A graph under construction. After a failure all that follows does nothing. */
struct dnn_graph {
    const struct dnn_api *api;
    dnn_handle handle;
    int failed; /* cudnnStatus_t */
    uint32_t n_descs, n_ops;
    dnn_desc descs[GRAPH_DESCS], ops[GRAPH_OPS];
    char words[GRAPH_WORDS]; /* what failed, in cuDNN's words */
};

struct dnn_plan {
    dnn_desc plan;
    int64_t workspace;
};

/* Plans of one graph; the graph must live as long. */
struct dnn_plans {
    uint32_t n;
    struct dnn_plan plans[GRAPH_PLANS];
};

enum { /* kinds of tensors */
       DNN_REAL = 0,
       DNN_VIRTUAL = 1,
       DNN_SCALAR = 2, /* a host value that the pack points at */
};
struct dnn_shape {
    uint32_t n;
    int64_t dims[RUNG_MAX_DIMS], strides[RUNG_MAX_DIMS];
};

void graph_new(struct dnn_graph *g, const struct dnn_api *api, dnn_handle handle);
void graph_free(struct dnn_graph *g);

/* Packed, row-major. */
struct dnn_shape dnn_packed(uint32_t n, const int64_t *dims);

dnn_desc graph_tensor(struct dnn_graph *g, int64_t id, int type, const struct dnn_shape *shape,
                      int kind);
void graph_conv(struct dnn_graph *g, dnn_desc x, dnn_desc w, dnn_desc y, int comp, uint32_t n,
                const int64_t *stride, const int64_t *before, const int64_t *after,
                const int64_t *dilation);
/* b, t: NULL where the mode has none. axis: of GEN_INDEX. */
void graph_pointwise(struct dnn_graph *g, int mode, int comp, dnn_desc x, dnn_desc b, dnn_desc t,
                     dnn_desc y, int64_t axis);
void graph_matmul(struct dnn_graph *g, dnn_desc a, dnn_desc b, dnn_desc c);
void graph_reduce(struct dnn_graph *g, int operator, dnn_desc x, dnn_desc y);
/* bias NULL: none. */
void graph_norm(struct dnn_graph *g, int mode, dnn_desc x, dnn_desc scale, dnn_desc bias,
                dnn_desc epsilon, dnn_desc y);
void graph_sdpa(struct dnn_graph *g, dnn_desc q, dnn_desc k, dnn_desc v, dnn_desc scale,
                dnn_desc o);

/*
 * Asks the heuristics (modes A, B, fallback) for up to 8 engines, leaves out those whose numerical
 * notes hold a bit of `avoid` (1 << note) or that want more workspace than `most`, and builds their
 * plans. None: g->failed and g->words say why.
 */
void graph_plans(struct dnn_graph *g, uint32_t avoid, int64_t most, struct dnn_plans *out);
void plans_free(const struct dnn_api *api, struct dnn_plans *plans);

/* Queues a plan: pointers[i] is the data of the tensor ids[i]. A cudnnStatus_t. */
int plan_execute(const struct dnn_api *api, dnn_handle handle, const struct dnn_plan *plan,
                 uint32_t n, const int64_t *ids, void *const *pointers, void *workspace);

#endif
