#include "chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_WORKSPACE ((int64_t)1 << 30)

static int dnn_type(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
        return DNN_DOUBLE;
    case RUNG_F32:
        return DNN_FLOAT;
    case RUNG_F16:
        return DNN_HALF;
    case RUNG_BF16:
        return DNN_BFLOAT16;
    default:
        return -1;
    }
}

struct builder {
    struct chains *c;
    const struct bench_problem *p;
    int tf32, type, comp; /* of tensors; of arithmetic */
    int64_t next_id;
};

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static int64_t id_of(int tensor)
{
    return 1 + tensor;
}

/*
 * Engines that are left out: in f32 those that round the inputs, and, as long as TF32 is not
 * granted, tensor cores; always Winograd and FFT, whose errors are beyond what a kernel of the task
 * would be granted.
 */
static uint32_t avoided(const struct builder *b)
{
    uint32_t avoid = 1u << DNN_NOTE_FFT | 1u << DNN_NOTE_WINOGRAD;
    if (b->type == DNN_FLOAT)
        avoid |= 1u << DNN_NOTE_DOWN_CONVERT | (b->tf32 ? 0 : 1u << DNN_NOTE_TENSOR_CORE);
    return avoid;
}

/* ---- Steps ---- */

static struct step *new_step(struct chain *chain, uint32_t kind)
{
    struct step *s = &chain->steps[chain->n_steps++];
    *s = (struct step){.kind = kind};
    return s;
}

static void step_free(const struct dnn_api *api, struct step *s)
{
    plans_free(api, &s->plans);
    graph_free(&s->graph);
    if (s->x)
        api->tensor_destroy(s->x);
    if (s->y)
        api->tensor_destroy(s->y);
    if (s->param)
        api->tensor_destroy(s->param);
    if (s->pool)
        api->pooling_destroy(s->pool);
}

static void chain_free(const struct dnn_api *api, struct chain *chain)
{
    for (uint32_t i = 0; i < chain->n_steps; i++)
        step_free(api, &chain->steps[i]);
    *chain = (struct chain){0};
}

/* A tensor of the pack: data lie behind it when it runs. */
static dnn_desc bound(struct builder *b, struct step *s, int64_t id, int type,
                      const struct dnn_shape *shape, int kind)
{
    s->ids[s->n_ids++] = id;
    (void)b;
    return graph_tensor(&s->graph, id, type, shape, kind);
}

static dnn_desc inner(struct builder *b, struct step *s, int type, const struct dnn_shape *shape)
{
    return graph_tensor(&s->graph, b->next_id++, type, shape, DNN_VIRTUAL);
}

static struct step *graph_step(struct builder *b, struct chain *chain)
{
    struct step *s = new_step(chain, STEP_PLAN);
    graph_new(&s->graph, b->c->api, b->c->handle);
    return s;
}

/* Whether the step has a plan; else notes why. */
static int planned(struct builder *b, struct step *s)
{
    graph_plans(&s->graph, avoided(b), MOST_WORKSPACE, &s->plans);
    if (s->plans.n)
        return 1;
    snprintf(b->c->words, sizeof b->c->words, "%s", s->graph.words);
    return 0;
}

/* A shape with an extent of 1 put in before the last when it has only three. */
static struct dnn_shape flat(const int64_t *dims, uint32_t n)
{
    int64_t four[RUNG_MAX_DIMS];
    memcpy(four, dims, n * sizeof *dims);
    if (n == 3) {
        four[3] = dims[2];
        four[2] = 1;
        n = 4;
    }
    return dnn_packed(n, four);
}

static struct dnn_shape per_channel(const struct dnn_shape *like)
{
    int64_t dims[RUNG_MAX_DIMS] = {1, like->dims[1], 1, 1, 1, 1, 1, 1};
    return dnn_packed(like->n, dims);
}

static struct dnn_shape single(void)
{
    int64_t dims[4] = {1, 1, 1, 1};
    return dnn_packed(4, dims);
}

/* The bias and the activation of a convolution, behind x; the last result is `y`. */
static void add_tail(struct builder *b, struct step *s, dnn_desc x, dnn_desc y,
                     const struct dnn_shape *shape)
{
    const struct net *net = &b->c->net;
    if (net->bias >= 0) {
        struct dnn_shape channels = per_channel(shape);
        dnn_desc bias = bound(b, s, id_of(net->bias), b->type, &channels, DNN_REAL);
        dnn_desc sum = net->activation >= 0 ? inner(b, s, b->comp, shape) : y;
        graph_pointwise(&s->graph, DNN_ADD, b->comp, x, bias, NULL, sum, 0);
        x = sum;
    }
    if (net->activation >= 0)
        graph_pointwise(&s->graph, net->activation, b->comp, x, NULL, NULL, y, 0);
}

static int has_tail(const struct net *net)
{
    return net->bias >= 0 || net->activation >= 0;
}

/* The convolution, in one graph with its tail or alone; to: id of the result. */
static int add_conv(struct builder *b, struct chain *chain, int fused, int64_t to)
{
    const struct net *net = &b->c->net;
    const struct bench_tensor *x = &b->p->tensors[net->x], *w = &b->p->tensors[net->w];
    struct dnn_shape sx = flat(x->dims, x->n_dims), sw = flat(w->dims, w->n_dims);
    struct dnn_shape sy = flat(net->conv_out, x->n_dims);
    struct step *s = graph_step(b, chain);
    dnn_desc dx = bound(b, s, id_of(net->x), b->type, &sx, DNN_REAL);
    dnn_desc dw = bound(b, s, id_of(net->w), b->type, &sw, DNN_REAL);
    dnn_desc dy = bound(b, s, to, b->type, &sy, DNN_REAL);
    dnn_desc sum = fused ? inner(b, s, b->comp, &sy) : dy;
    graph_conv(&s->graph, dx, dw, sum, b->comp, net->conv.n, net->conv.stride, net->conv.before,
               net->conv.after, net->conv.dilation);
    if (fused)
        add_tail(b, s, sum, dy, &sy);
    return planned(b, s);
}

static int add_pointwise(struct builder *b, struct chain *chain, int64_t from, int64_t to)
{
    const struct net *net = &b->c->net;
    struct dnn_shape shape = flat(net->conv_out, b->p->tensors[net->x].n_dims);
    struct step *s = graph_step(b, chain);
    dnn_desc x = bound(b, s, from, b->type, &shape, DNN_REAL);
    dnn_desc y = bound(b, s, to, b->type, &shape, DNN_REAL);
    add_tail(b, s, x, y, &shape);
    return planned(b, s);
}

/* A descriptor of the older interface; at least four dimensions. */
static int old_tensor(const struct dnn_api *api, dnn_tensor *out, int type, uint32_t n,
                      const int64_t *from)
{
    int dims[RUNG_MAX_DIMS], strides[RUNG_MAX_DIMS];
    struct dnn_shape shape = flat(from, n);
    for (uint32_t d = 0; d < shape.n; d++) {
        if (shape.dims[d] > INT32_MAX || shape.strides[d] > INT32_MAX)
            return -1;
        dims[d] = (int)shape.dims[d];
        strides[d] = (int)shape.strides[d];
    }
    int status = api->tensor_create(out);
    return status ? status : api->tensor_set(*out, type, (int)shape.n, dims, strides);
}

/* Notes a failure of the older interface. */
static int old_good(struct builder *b, int status, const char *what)
{
    if (status)
        snprintf(b->c->words, sizeof b->c->words, "%s: %s", what,
                 status == -1 ? "an extent beyond 2^31" : b->c->api->status_text(status));
    return !status;
}

static int add_pool(struct builder *b, struct chain *chain, int64_t from, const int64_t *shape,
                    uint32_t n)
{
    const struct dnn_api *api = b->c->api;
    const struct net *net = &b->c->net;
    const struct net_window *w = &net->pool;
    const struct bench_tensor *y = &b->p->tensors[net->y];
    struct step *s = new_step(chain, STEP_POOL);
    int window[3], pad[3], stride[3];
    for (uint32_t d = 0; d < w->n; d++) {
        window[d] = (int)w->kernel[d];
        pad[d] = (int)w->before[d];
        stride[d] = (int)w->stride[d];
    }
    s->ids[0] = from;
    s->ids[1] = id_of(net->y);
    int status = old_tensor(api, &s->x, b->type, n, shape);
    if (!status)
        status = old_tensor(api, &s->y, b->type, y->n_dims, y->dims);
    if (!status)
        status = api->pooling_create(&s->pool);
    if (!status)
        status = api->pooling_set(s->pool, (int)w->mode, 1, (int)w->n, window, pad, stride);
    return old_good(b, status, "pool");
}

/* ---- Chains ---- */

static int build_conv(struct builder *b, struct chain *chain, int fused)
{
    struct net *net = &b->c->net;
    uint32_t n = b->p->tensors[net->x].n_dims;
    int64_t end = net->has_pool ? ID_TEMP_2 : id_of(net->y);
    int separate = !fused && has_tail(net);
    uint64_t bytes = rung_dtype_bits(b->p->tensors[net->x].dtype) / 8;
    for (uint32_t d = 0; d < n; d++)
        bytes *= (uint64_t)net->conv_out[d];
    chain->temp_bytes[0] = separate ? rounded(bytes) : 0;
    chain->temp_bytes[1] = net->has_pool ? rounded(bytes) : 0;
    chain->note = fused ? "fused" : separate ? "separate steps" : NULL;
    if (!add_conv(b, chain, fused, separate ? ID_TEMP : end))
        return 0;
    if (separate && !add_pointwise(b, chain, ID_TEMP, end))
        return 0;
    return !net->has_pool || add_pool(b, chain, ID_TEMP_2, net->conv_out, n);
}

static int build_rows(struct builder *b, struct chain *chain)
{
    const struct net *net = &b->c->net;
    const struct dnn_api *api = b->c->api;
    struct step *s = new_step(chain, STEP_SOFTMAX);
    int64_t dims[4] = {net->rows, net->middle, net->inner, 1};
    s->mode = net->log ? DNN_SOFTMAX_LOG : DNN_SOFTMAX_ACCURATE;
    s->ids[0] = id_of(net->x);
    s->ids[1] = id_of(net->y);
    int status = old_tensor(api, &s->x, b->type, 4, dims);
    if (!status)
        status = old_tensor(api, &s->y, b->type, 4, dims);
    return old_good(b, status, "softmax");
}

static int build_batchnorm(struct builder *b, struct chain *chain)
{
    const struct net *net = &b->c->net;
    const struct dnn_api *api = b->c->api;
    struct step *s = new_step(chain, STEP_BATCHNORM);
    int64_t dims[4] = {net->rows, net->middle, net->inner, 1}, one[4] = {1, net->middle, 1, 1};
    const int64_t ids[] = {id_of(net->x),    id_of(net->y),    id_of(net->w),
                           id_of(net->bias), id_of(net->mean), id_of(net->variance)};
    memcpy(s->ids, ids, sizeof ids);
    s->eps = net->eps > 1e-5 ? net->eps : 1e-5;
    int status = old_tensor(api, &s->x, b->type, 4, dims);
    if (!status)
        status = old_tensor(api, &s->y, b->type, 4, dims);
    if (!status)
        status = old_tensor(api, &s->param, b->type, 4, one);
    return old_good(b, status, "batchnorm");
}

static int build_norm(struct builder *b, struct chain *chain)
{
    const struct net *net = &b->c->net;
    struct step *s = graph_step(b, chain);
    int64_t dims[4] = {net->rows, net->middle, 1, 1}, row[4] = {1, net->middle, 1, 1};
    struct dnn_shape sx = dnn_packed(4, dims), sw = dnn_packed(4, row), s1 = single();
    b->c->epsilon = (float)net->eps;
    dnn_desc x = bound(b, s, id_of(net->x), b->type, &sx, DNN_REAL);
    dnn_desc w = bound(b, s, id_of(net->w), b->type, &sw, DNN_REAL);
    dnn_desc bias = net->bias >= 0 ? bound(b, s, id_of(net->bias), b->type, &sw, DNN_REAL) : NULL;
    dnn_desc epsilon = bound(b, s, ID_EPSILON, DNN_FLOAT, &s1, DNN_SCALAR);
    dnn_desc y = bound(b, s, id_of(net->y), b->type, &sx, DNN_REAL);
    graph_norm(&s->graph, net->rms ? DNN_RMS_NORM : DNN_LAYER_NORM, x, w, bias, epsilon, y);
    return planned(b, s);
}

/* [batch, heads, length, features] whatever is missing in front. */
static struct dnn_shape heads(const struct bench_tensor *t)
{
    int64_t dims[4] = {1, 1, 1, 1};
    for (uint32_t d = 0; d < t->n_dims; d++)
        dims[4 - t->n_dims + d] = t->dims[d];
    return dnn_packed(4, dims);
}

struct attention {
    struct dnn_shape q, k, v, o, scores, one_a_row, one;
    dnn_desc dq, dk, dv, dscale, dout;
};

static struct step *attention_step(struct builder *b, struct chain *chain, struct attention *a,
                                   int k_transposed)
{
    const struct net *net = &b->c->net;
    struct step *s = graph_step(b, chain);
    a->q = heads(&b->p->tensors[net->x]);
    a->k = heads(&b->p->tensors[net->k]);
    a->v = heads(&b->p->tensors[net->v]);
    a->o = heads(&b->p->tensors[net->y]);
    int64_t scores[4] = {a->q.dims[0], a->q.dims[1], a->q.dims[2], a->k.dims[2]};
    a->scores = dnn_packed(4, scores);
    scores[3] = 1;
    a->one_a_row = dnn_packed(4, scores);
    a->one = single();
    if (k_transposed) {
        struct dnn_shape k = a->k;
        a->k.dims[2] = k.dims[3], a->k.dims[3] = k.dims[2];
        a->k.strides[2] = k.strides[3], a->k.strides[3] = k.strides[2];
    }
    b->c->scale = (float)net->scale;
    a->dq = bound(b, s, id_of(net->x), b->type, &a->q, DNN_REAL);
    a->dk = bound(b, s, id_of(net->k), b->type, &a->k, DNN_REAL);
    a->dv = bound(b, s, id_of(net->v), b->type, &a->v, DNN_REAL);
    a->dscale = bound(b, s, ID_SCALE, DNN_FLOAT, &a->one, DNN_SCALAR);
    a->dout = bound(b, s, id_of(net->y), b->type, &a->o, DNN_REAL);
    return s;
}

/* One operation, of newer versions. */
static int build_attention(struct builder *b, struct chain *chain)
{
    struct attention a;
    if (b->c->net.causal) {
        snprintf(b->c->words, sizeof b->c->words, "no causal mask");
        return 0;
    }
    struct step *s = attention_step(b, chain, &a, 0);
    chain->note = "one operation";
    graph_sdpa(&s->graph, a.dq, a.dk, a.dv, a.dscale, a.dout);
    return planned(b, s);
}

/* Columns beyond the row's number become -infinity. */
static dnn_desc mask(struct builder *b, struct step *s, const struct attention *a, dnn_desc scores)
{
    struct dnn_graph *g = &s->graph;
    dnn_desc row = inner(b, s, DNN_INT32, &a->scores), col = inner(b, s, DNN_INT32, &a->scores);
    dnn_desc keep = inner(b, s, DNN_BOOLEAN, &a->scores);
    dnn_desc masked = inner(b, s, DNN_FLOAT, &a->scores);
    dnn_desc low = bound(b, s, ID_MINUS_INFINITY, DNN_FLOAT, &a->one, DNN_SCALAR);
    b->c->minus_infinity = -INFINITY;
    graph_pointwise(g, DNN_GEN_INDEX, DNN_FLOAT, scores, NULL, NULL, row, 2);
    graph_pointwise(g, DNN_GEN_INDEX, DNN_FLOAT, scores, NULL, NULL, col, 3);
    graph_pointwise(g, DNN_CMP_GE, DNN_INT32, row, col, NULL, keep, 0);
    graph_pointwise(g, DNN_BINARY_SELECT, DNN_FLOAT, scores, low, keep, masked, 0);
    return masked;
}

/* The pattern that cuDNN's own attention engines look for: product, softmax by parts, product. */
static int build_attention_parts(struct builder *b, struct chain *chain)
{
    struct attention a;
    struct step *s = attention_step(b, chain, &a, 1);
    struct dnn_graph *g = &s->graph;
    chain->note = "fused";
    dnn_desc scores = inner(b, s, DNN_FLOAT, &a.scores), scaled = inner(b, s, DNN_FLOAT, &a.scores);
    graph_matmul(g, a.dq, a.dk, scores);
    graph_pointwise(g, DNN_MUL, DNN_FLOAT, scores, a.dscale, NULL, scaled, 0);
    if (b->c->net.causal)
        scaled = mask(b, s, &a, scaled);
    dnn_desc top = inner(b, s, DNN_FLOAT, &a.one_a_row), sum = inner(b, s, DNN_FLOAT, &a.one_a_row);
    dnn_desc lower = inner(b, s, DNN_FLOAT, &a.scores), power = inner(b, s, DNN_FLOAT, &a.scores);
    dnn_desc share = inner(b, s, b->type, &a.scores);
    graph_reduce(g, DNN_REDUCE_MAX, scaled, top);
    graph_pointwise(g, DNN_SUB, DNN_FLOAT, scaled, top, NULL, lower, 0);
    graph_pointwise(g, DNN_EXP, DNN_FLOAT, lower, NULL, NULL, power, 0);
    graph_reduce(g, DNN_REDUCE_ADD, power, sum);
    graph_pointwise(g, DNN_DIV, DNN_FLOAT, power, sum, NULL, share, 0);
    graph_matmul(g, share, a.dv, a.dout);
    return planned(b, s);
}

static int build_one(struct builder *b, struct chain *chain, int second)
{
    const struct net *net = &b->c->net;
    if (net->kind == NET_CONV)
        return second && !has_tail(net) ? 0 : build_conv(b, chain, !second && has_tail(net));
    if (net->kind == NET_ATTENTION)
        return second ? build_attention_parts(b, chain) : build_attention(b, chain);
    if (second)
        return 0;
    const struct bench_tensor *x = &b->p->tensors[net->x];
    return net->kind == NET_SOFTMAX     ? build_rows(b, chain)
           : net->kind == NET_BATCHNORM ? build_batchnorm(b, chain)
           : net->kind == NET_POOL      ? add_pool(b, chain, id_of(net->x), x->dims, x->n_dims)
                                        : build_norm(b, chain);
}

void chains_build(struct chains *c, const struct bench_problem *problem, int tf32)
{
    const struct bench_tensor *x = &problem->tensors[c->net.x];
    struct builder b = {
        .c = c, .p = problem, .tf32 = tf32, .type = dnn_type(x->dtype), .next_id = ID_FREE};
    b.comp = b.type == DNN_DOUBLE ? DNN_DOUBLE : DNN_FLOAT;
    c->wide = b.type == DNN_DOUBLE;
    for (int i = 0; i < CHAINS; i++) {
        if (build_one(&b, &c->chains[c->n], i))
            c->n++;
        else
            chain_free(c->api, &c->chains[c->n]);
    }
}

void chains_free(struct chains *c)
{
    while (c->n)
        chain_free(c->api, &c->chains[--c->n]);
}

/* ---- Running ---- */

static uint32_t ways_of(const struct chain *chain)
{
    return chain->steps[0].kind == STEP_PLAN ? chain->steps[0].plans.n : 1;
}

uint32_t chains_ways(const struct chains *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += ways_of(&c->chains[i]);
    return n;
}

const struct chain *chains_of(const struct chains *c, uint32_t way, uint32_t *plan)
{
    uint32_t i = 0;
    while (way >= ways_of(&c->chains[i]))
        way -= ways_of(&c->chains[i++]);
    *plan = way;
    return &c->chains[i];
}

uint64_t chains_scratch(const struct chains *c, uint32_t way)
{
    uint32_t first;
    uint64_t most = 0;
    const struct chain *chain = chains_of(c, way, &first);
    for (uint32_t i = 0; i < chain->n_steps; i++) {
        const struct step *s = &chain->steps[i];
        uint64_t bytes =
            s->kind == STEP_PLAN ? (uint64_t)s->plans.plans[i ? 0 : first].workspace : 0;
        most = bytes > most ? bytes : most;
    }
    return chain->temp_bytes[0] + chain->temp_bytes[1] + most;
}

static void *data_of(struct chains *c, const struct chain *chain, int64_t id,
                     const uint64_t *addresses, uint64_t scratch)
{
    switch (id) {
    case ID_TEMP:
        return (void *)(uintptr_t)scratch;
    case ID_TEMP_2:
        return (void *)(uintptr_t)(scratch + chain->temp_bytes[0]);
    case ID_SCALE:
        return &c->scale;
    case ID_EPSILON:
        return &c->epsilon;
    case ID_MINUS_INFINITY:
        return &c->minus_infinity;
    default:
        return id > 0 ? (void *)(uintptr_t)addresses[id - 1] : NULL;
    }
}

static int run_old(struct chains *c, const struct step *s, void *const *at)
{
    static const float one_f = 1, zero_f = 0;
    static const double one_d = 1, zero_d = 0;
    const struct dnn_api *api = c->api;
    const void *one = c->wide ? (const void *)&one_d : (const void *)&one_f;
    const void *zero = c->wide ? (const void *)&zero_d : (const void *)&zero_f;
    if (s->kind == STEP_POOL)
        return api->pooling(c->handle, s->pool, one, s->x, at[0], zero, s->y, at[1]);
    if (s->kind == STEP_SOFTMAX)
        return api->softmax(c->handle, s->mode, DNN_SOFTMAX_CHANNEL, one, s->x, at[0], zero, s->y,
                            at[1]);
    if (at[4])
        return api->batchnorm_fixed(c->handle, DNN_BATCHNORM_SPATIAL, one, zero, s->x, at[0], s->y,
                                    at[1], s->param, at[2], at[3], at[4], at[5], s->eps);
    return api->batchnorm(c->handle, DNN_BATCHNORM_SPATIAL, one, zero, s->x, at[0], s->y, at[1],
                          s->param, at[2], at[3], 1, NULL, NULL, s->eps, NULL, NULL);
}

int chains_run(struct chains *c, uint32_t way, const uint64_t *addresses, uint64_t scratch)
{
    uint32_t first;
    const struct chain *chain = chains_of(c, way, &first);
    void *workspace = (void *)(uintptr_t)(scratch + chain->temp_bytes[0] + chain->temp_bytes[1]);
    int status = 0;
    for (uint32_t i = 0; i < chain->n_steps && !status; i++) {
        const struct step *s = &chain->steps[i];
        void *at[CHAIN_TENSORS];
        uint32_t n = s->kind == STEP_PLAN ? s->n_ids : CHAIN_TENSORS;
        for (uint32_t j = 0; j < n; j++)
            at[j] = data_of(c, chain, s->ids[j], addresses, scratch);
        status = s->kind == STEP_PLAN
                     ? plan_execute(c->api, c->handle, &s->plans.plans[i ? 0 : first], n, s->ids,
                                    at, workspace)
                     : run_old(c, s, at);
    }
    return status;
}
