/* The ways in which cuDNN computes a net: steps one after another, ready to be queued. */
#ifndef CUDNN_CHAIN_H
#define CUDNN_CHAIN_H

#include "graph.h"
#include "net.h"

enum { CHAIN_STEPS = 3, CHAIN_TENSORS = 8, CHAINS = 2 };

/* Ids of tensors beside the task's own, which are 1 + their index. */
enum {
    ID_TEMP = 100, /* behind the convolution */
    ID_TEMP_2 = 101,
    ID_SCALE = 110, /* host values */
    ID_EPSILON = 111,
    ID_MINUS_INFINITY = 112,
    ID_FREE = 200, /* virtual ones, from here on */
};

enum step_kind { STEP_PLAN = 1, STEP_POOL, STEP_SOFTMAX, STEP_BATCHNORM };

struct step {
    uint32_t kind; /* step_kind */
    uint32_t n_ids;
    int64_t ids[CHAIN_TENSORS]; /* PLAN: of the pack; else x, y, then parameters */
    struct dnn_graph graph;
    struct dnn_plans plans;
    dnn_tensor x, y, param; /* descriptors of the older interface */
    dnn_pooling_desc pool;
    int mode; /* SOFTMAX: algorithm */
    double eps;
};

struct chain {
    uint32_t n_steps;
    const char *note;       /* "fused", "separate steps": for the label */
    uint64_t temp_bytes[2]; /* that it wants for ID_TEMP and ID_TEMP_2, rounded */
    struct step steps[CHAIN_STEPS];
};

/* All that is known of one prepared problem. */
struct chains {
    const struct dnn_api *api;
    dnn_handle handle;
    struct net net;
    int wide; /* f64: scalars of the older interface are doubles */
    uint32_t n;
    struct chain chains[CHAINS];
    float scale, epsilon, minus_infinity;
    char words[GRAPH_WORDS]; /* of the last chain that could not be built */
};

/*
 * Builds what cuDNN has for c->net; c->api, handle and net are set. tf32: engines with TF32 may be
 * taken for f32. n = 0: nothing, with the reason in c->words.
 */
void chains_build(struct chains *c, const struct bench_problem *problem, int tf32);
void chains_free(struct chains *c);

/* Ways are numbered through: plans of the first step of each chain. */
uint32_t chains_ways(const struct chains *c);
const struct chain *chains_of(const struct chains *c, uint32_t way, uint32_t *plan);
/* Scratch that a way wants: temps and workspace. */
uint64_t chains_scratch(const struct chains *c, uint32_t way);
/* Queues a way. A cudnnStatus_t. */
int chains_run(struct chains *c, uint32_t way, const uint64_t *addresses, uint64_t scratch);

#endif
