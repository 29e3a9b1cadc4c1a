#include "graph.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void graph_new(struct dnn_graph *g, const struct dnn_api *api, dnn_handle handle)
{
    *g = (struct dnn_graph){.api = api, .handle = handle};
}

void graph_free(struct dnn_graph *g)
{
    while (g->n_descs)
        g->api->desc_destroy(g->descs[--g->n_descs]);
}

/* Notes the first failure. */
static void check(struct dnn_graph *g, int status, const char *what)
{
    char last[300] = "";
    if (!status || g->failed)
        return;
    g->failed = status;
    g->api->last_error(last, sizeof last);
    last[sizeof last - 1] = '\0';
    snprintf(g->words, sizeof g->words, "%s: %s%s%.250s", what, g->api->status_text(status),
             last[0] ? ": " : "", last);
}

static dnn_desc create(struct dnn_graph *g, int type)
{
    dnn_desc desc = NULL;
    if (g->failed)
        return NULL;
    if (g->n_descs == GRAPH_DESCS) {
        g->failed = -1;
        snprintf(g->words, sizeof g->words, "more than %d descriptors", GRAPH_DESCS);
        return NULL;
    }
    check(g, g->api->desc_create(type, &desc), "a descriptor");
    if (desc)
        g->descs[g->n_descs++] = desc;
    return desc;
}

static void set(struct dnn_graph *g, dnn_desc desc, int name, int type, int64_t n,
                const void *values, const char *what)
{
    if (!g->failed)
        check(g, g->api->desc_set(desc, name, type, n, values), what);
}

static void set_desc(struct dnn_graph *g, dnn_desc desc, int name, dnn_desc value, const char *what)
{
    if (value)
        set(g, desc, name, DNN_T_DESC, 1, &value, what);
}

static void finalize(struct dnn_graph *g, dnn_desc desc, const char *what)
{
    if (!g->failed)
        check(g, g->api->desc_finalize(desc), what);
}

static void add_op(struct dnn_graph *g, dnn_desc op, const char *what)
{
    finalize(g, op, what);
    if (g->failed)
        return;
    if (g->n_ops == GRAPH_OPS) {
        g->failed = -1;
        snprintf(g->words, sizeof g->words, "more than %d operations", GRAPH_OPS);
        return;
    }
    g->ops[g->n_ops++] = op;
}

/* ---- Tensors and operations ---- */

struct dnn_shape dnn_packed(uint32_t n, const int64_t *dims)
{
    struct dnn_shape shape = {.n = n};
    int64_t stride = 1;
    for (uint32_t d = n; d-- > 0;) {
        shape.dims[d] = dims[d];
        shape.strides[d] = stride;
        stride *= dims[d];
    }
    return shape;
}

dnn_desc graph_tensor(struct dnn_graph *g, int64_t id, int type, const struct dnn_shape *shape,
                      int kind)
{
    int64_t alignment = 16;
    bool yes = true;
    dnn_desc t = create(g, DNN_TENSOR);
    set(g, t, DNN_A_TENSOR_ID, DNN_T_INT64, 1, &id, "tensor");
    set(g, t, DNN_A_TENSOR_TYPE, DNN_T_DATA_TYPE, 1, &type, "tensor");
    set(g, t, DNN_A_TENSOR_ALIGNMENT, DNN_T_INT64, 1, &alignment, "tensor");
    set(g, t, DNN_A_TENSOR_DIMS, DNN_T_INT64, shape->n, shape->dims, "tensor");
    set(g, t, DNN_A_TENSOR_STRIDES, DNN_T_INT64, shape->n, shape->strides, "tensor");
    if (kind == DNN_VIRTUAL)
        set(g, t, DNN_A_TENSOR_VIRTUAL, DNN_T_BOOLEAN, 1, &yes, "tensor");
    if (kind == DNN_SCALAR)
        set(g, t, DNN_A_TENSOR_BY_VALUE, DNN_T_BOOLEAN, 1, &yes, "tensor");
    finalize(g, t, "tensor");
    return t;
}

void graph_conv(struct dnn_graph *g, dnn_desc x, dnn_desc w, dnn_desc y, int comp, uint32_t n,
                const int64_t *stride, const int64_t *before, const int64_t *after,
                const int64_t *dilation)
{
    int64_t spatial = n;
    int mode = DNN_CROSS_CORRELATION;
    float one_f = 1, zero_f = 0;
    double one_d = 1, zero_d = 0;
    bool wide = comp == DNN_DOUBLE;
    int scalar = wide ? DNN_T_DOUBLE : DNN_T_FLOAT;
    dnn_desc c = create(g, DNN_CONVOLUTION);
    set(g, c, DNN_A_CONV_SPATIAL, DNN_T_INT64, 1, &spatial, "convolution");
    set(g, c, DNN_A_CONV_COMP, DNN_T_DATA_TYPE, 1, &comp, "convolution");
    set(g, c, DNN_A_CONV_MODE, DNN_T_CONV_MODE, 1, &mode, "convolution");
    set(g, c, DNN_A_CONV_STRIDES, DNN_T_INT64, n, stride, "convolution");
    set(g, c, DNN_A_CONV_PRE_PADS, DNN_T_INT64, n, before, "convolution");
    set(g, c, DNN_A_CONV_POST_PADS, DNN_T_INT64, n, after, "convolution");
    set(g, c, DNN_A_CONV_DILATIONS, DNN_T_INT64, n, dilation, "convolution");
    finalize(g, c, "convolution");
    dnn_desc op = create(g, DNN_OP_CONV);
    set_desc(g, op, DNN_A_OP_CONV_X, x, "convolution");
    set_desc(g, op, DNN_A_OP_CONV_W, w, "convolution");
    set_desc(g, op, DNN_A_OP_CONV_Y, y, "convolution");
    set_desc(g, op, DNN_A_OP_CONV_DESC, c, "convolution");
    set(g, op, DNN_A_OP_CONV_ALPHA, scalar, 1, wide ? (void *)&one_d : (void *)&one_f, "alpha");
    set(g, op, DNN_A_OP_CONV_BETA, scalar, 1, wide ? (void *)&zero_d : (void *)&zero_f, "beta");
    add_op(g, op, "convolution");
}

void graph_pointwise(struct dnn_graph *g, int mode, int comp, dnn_desc x, dnn_desc b, dnn_desc t,
                     dnn_desc y, int64_t axis)
{
    dnn_desc p = create(g, DNN_POINTWISE);
    set(g, p, DNN_A_POINTWISE_MODE, DNN_T_POINTWISE, 1, &mode, "pointwise");
    set(g, p, DNN_A_POINTWISE_PREC, DNN_T_DATA_TYPE, 1, &comp, "pointwise");
    if (mode == DNN_GEN_INDEX)
        set(g, p, DNN_A_POINTWISE_AXIS, DNN_T_INT64, 1, &axis, "pointwise");
    finalize(g, p, "pointwise");
    dnn_desc op = create(g, DNN_OP_POINTWISE);
    set_desc(g, op, DNN_A_OP_POINTWISE_DESC, p, "pointwise");
    set_desc(g, op, DNN_A_OP_POINTWISE_X, x, "pointwise");
    set_desc(g, op, DNN_A_OP_POINTWISE_B, b, "pointwise");
    set_desc(g, op, DNN_A_OP_POINTWISE_T, t, "pointwise");
    set_desc(g, op, DNN_A_OP_POINTWISE_Y, y, "pointwise");
    add_op(g, op, "pointwise");
}

void graph_matmul(struct dnn_graph *g, dnn_desc a, dnn_desc b, dnn_desc c)
{
    int comp = DNN_FLOAT;
    dnn_desc m = create(g, DNN_MATMUL);
    set(g, m, DNN_A_MATMUL_COMP, DNN_T_DATA_TYPE, 1, &comp, "product");
    finalize(g, m, "product");
    dnn_desc op = create(g, DNN_OP_MATMUL);
    set_desc(g, op, DNN_A_OP_MATMUL_A, a, "product");
    set_desc(g, op, DNN_A_OP_MATMUL_B, b, "product");
    set_desc(g, op, DNN_A_OP_MATMUL_C, c, "product");
    set_desc(g, op, DNN_A_OP_MATMUL_DESC, m, "product");
    add_op(g, op, "product");
}

void graph_reduce(struct dnn_graph *g, int operator, dnn_desc x, dnn_desc y)
{
    int comp = DNN_FLOAT;
    dnn_desc r = create(g, DNN_REDUCTION);
    set(g, r, DNN_A_REDUCTION_OPERATOR, DNN_T_REDUCTION, 1, &operator, "reduction");
    set(g, r, DNN_A_REDUCTION_COMP, DNN_T_DATA_TYPE, 1, &comp, "reduction");
    finalize(g, r, "reduction");
    dnn_desc op = create(g, DNN_OP_REDUCTION);
    set_desc(g, op, DNN_A_OP_REDUCTION_X, x, "reduction");
    set_desc(g, op, DNN_A_OP_REDUCTION_Y, y, "reduction");
    set_desc(g, op, DNN_A_OP_REDUCTION_DESC, r, "reduction");
    add_op(g, op, "reduction");
}

void graph_norm(struct dnn_graph *g, int mode, dnn_desc x, dnn_desc scale, dnn_desc bias,
                dnn_desc epsilon, dnn_desc y)
{
    int phase = DNN_NORM_INFERENCE;
    dnn_desc op = create(g, DNN_OP_NORM);
    set(g, op, DNN_A_OP_NORM_MODE, DNN_T_NORM_MODE, 1, &mode, "normalisation");
    set(g, op, DNN_A_OP_NORM_PHASE, DNN_T_NORM_PHASE, 1, &phase, "normalisation");
    set_desc(g, op, DNN_A_OP_NORM_X, x, "normalisation");
    set_desc(g, op, DNN_A_OP_NORM_SCALE, scale, "normalisation");
    set_desc(g, op, DNN_A_OP_NORM_BIAS, bias, "normalisation");
    set_desc(g, op, DNN_A_OP_NORM_EPSILON, epsilon, "normalisation");
    set_desc(g, op, DNN_A_OP_NORM_Y, y, "normalisation");
    add_op(g, op, "normalisation");
}

void graph_sdpa(struct dnn_graph *g, dnn_desc q, dnn_desc k, dnn_desc v, dnn_desc scale, dnn_desc o)
{
    dnn_desc op = create(g, DNN_OP_SDPA);
    set_desc(g, op, DNN_A_OP_SDPA_Q, q, "attention");
    set_desc(g, op, DNN_A_OP_SDPA_K, k, "attention");
    set_desc(g, op, DNN_A_OP_SDPA_V, v, "attention");
    set_desc(g, op, DNN_A_OP_SDPA_SCALE, scale, "attention");
    set_desc(g, op, DNN_A_OP_SDPA_O, o, "attention");
    add_op(g, op, "attention");
}

/* ---- Plans ---- */

static bool has_note(struct dnn_graph *g, dnn_desc cfg, uint32_t avoid)
{
    int notes[DNN_NOTES];
    int64_t n = 0, one = 0;
    bool found = false;
    dnn_desc engine = NULL;
    if (g->api->desc_create(DNN_ENGINE, &engine))
        return false;
    if (!g->api->desc_get(cfg, DNN_A_CFG_ENGINE, DNN_T_DESC, 1, &one, &engine) &&
        !g->api->desc_get(engine, DNN_A_ENGINE_NOTE, DNN_T_NOTE, DNN_NOTES, &n, notes))
        for (int64_t i = 0; i < n && i < DNN_NOTES; i++)
            found |= notes[i] >= 0 && notes[i] < 32 && (avoid >> notes[i] & 1);
    g->api->desc_destroy(engine);
    return found;
}

static void build_plan(struct dnn_graph *g, dnn_desc cfg, int64_t most, struct dnn_plans *out)
{
    const struct dnn_api *api = g->api;
    struct dnn_plan plan = {0};
    int64_t n = 0;
    int status = api->desc_create(DNN_PLAN, &plan.plan);
    if (status)
        return;
    status = api->desc_set(plan.plan, DNN_A_PLAN_HANDLE, DNN_T_HANDLE, 1, &g->handle);
    if (!status)
        status = api->desc_set(plan.plan, DNN_A_PLAN_CFG, DNN_T_DESC, 1, &cfg);
    if (!status)
        status = api->desc_finalize(plan.plan);
    if (!status)
        status =
            api->desc_get(plan.plan, DNN_A_PLAN_WORKSPACE, DNN_T_INT64, 1, &n, &plan.workspace);
    if (!status && plan.workspace >= 0 && plan.workspace <= most)
        out->plans[out->n++] = plan;
    else
        api->desc_destroy(plan.plan);
}

/* Engine configurations of one mode; those that were built stay with the graph. */
static void ask(struct dnn_graph *g, dnn_desc graph, int mode, uint32_t avoid, int64_t most,
                struct dnn_plans *out)
{
    const struct dnn_api *api = g->api;
    dnn_desc heuristics = NULL, cfgs[GRAPH_PLANS * 2];
    int64_t n = 0, got = 0, made = 0;
    int status = api->desc_create(DNN_ENGINEHEUR, &heuristics);
    if (status)
        return;
    status = api->desc_set(heuristics, DNN_A_HEUR_GRAPH, DNN_T_DESC, 1, &graph);
    if (!status)
        status = api->desc_set(heuristics, DNN_A_HEUR_MODE, DNN_T_HEURISTICS, 1, &mode);
    if (!status)
        status = api->desc_finalize(heuristics);
    if (!status)
        status = api->desc_get(heuristics, DNN_A_HEUR_RESULTS, DNN_T_DESC, 0, &n, NULL);
    n = n > GRAPH_PLANS * 2 ? GRAPH_PLANS * 2 : n;
    while (!status && made < n && !api->desc_create(DNN_ENGINECFG, &cfgs[made]))
        made++;
    if (!status && made)
        status = api->desc_get(heuristics, DNN_A_HEUR_RESULTS, DNN_T_DESC, made, &got, cfgs);
    for (int64_t i = 0; i < made; i++) {
        uint32_t before = out->n;
        if (!status && i < got && out->n < GRAPH_PLANS && g->n_descs < GRAPH_DESCS &&
            !has_note(g, cfgs[i], avoid))
            build_plan(g, cfgs[i], most, out);
        if (out->n > before)
            g->descs[g->n_descs++] = cfgs[i];
        else
            api->desc_destroy(cfgs[i]);
    }
    api->desc_destroy(heuristics);
}

void graph_plans(struct dnn_graph *g, uint32_t avoid, int64_t most, struct dnn_plans *out)
{
    static const int modes[] = {DNN_HEURISTICS_A, DNN_HEURISTICS_B, DNN_HEURISTICS_FALLBACK};
    *out = (struct dnn_plans){0};
    dnn_desc graph = create(g, DNN_GRAPH);
    set(g, graph, DNN_A_GRAPH_HANDLE, DNN_T_HANDLE, 1, &g->handle, "graph");
    set(g, graph, DNN_A_GRAPH_OPS, DNN_T_DESC, g->n_ops, g->ops, "graph");
    finalize(g, graph, "graph");
    for (int i = 0; i < 3 && !g->failed && (i < 2 || !out->n); i++)
        ask(g, graph, modes[i], avoid, most, out);
    if (g->failed || out->n)
        return;
    g->failed = -1;
    snprintf(g->words, sizeof g->words, "no engine for this graph in this math");
}

void plans_free(const struct dnn_api *api, struct dnn_plans *plans)
{
    while (plans->n)
        api->desc_destroy(plans->plans[--plans->n].plan);
}

int plan_execute(const struct dnn_api *api, dnn_handle handle, const struct dnn_plan *plan,
                 uint32_t n, const int64_t *ids, void *const *pointers, void *workspace)
{
    dnn_desc pack = NULL;
    int status = api->desc_create(DNN_PACK, &pack);
    if (status)
        return status;
    status = api->desc_set(pack, DNN_A_PACK_IDS, DNN_T_INT64, n, ids);
    if (!status)
        status = api->desc_set(pack, DNN_A_PACK_POINTERS, DNN_T_POINTER, n, pointers);
    if (!status)
        status = api->desc_set(pack, DNN_A_PACK_WORKSPACE, DNN_T_POINTER, 1, &workspace);
    if (!status)
        status = api->desc_finalize(pack);
    if (!status)
        status = api->execute(handle, plan->plan, pack);
    api->desc_destroy(pack);
    return status;
}
