#include "net.h"

#include "api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int32_t no(struct rung_call *call, const char *what)
{
    return bench_unsupported(call, "cuDNN", "%s", what);
}

/* ---- Windows ---- */

/* The number of spatial dimensions when op is PREFIXnd, else 0. */
static uint32_t spatial(const char *op, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(op, prefix, n) != 0 || op[n] < '1' || op[n] > '3' || strcmp(op + n + 1, "d") != 0)
        return 0;
    return (uint32_t)(op[n] - '0');
}

static const struct bench_call *any_call(const struct bench_graph *g, const struct bench_value *v)
{
    return v && v->kind == BENCH_CALL && v->index < g->n_calls ? &g->calls[v->index] : NULL;
}

static int64_t extent(const struct net_window *w, uint32_t d, int64_t size)
{
    int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    int64_t room = size + w->before[d] + w->after[d] - reach;
    return room < 0 ? 0 : room / w->stride[d] + 1;
}

/* Padding "same" keeps the shape at stride 1; where it is uneven there is more behind. */
static int read_pads(const struct bench_call *call, uint32_t position, struct net_window *w)
{
    const struct bench_value *pad = bench_arg(call, "pad", position);
    if (!pad || pad->kind != BENCH_WORD) {
        int good = bench_ints(call, "pad", position, w->n, 0, w->before);
        memcpy(w->after, w->before, sizeof w->after);
        return good;
    }
    for (uint32_t d = 0; d < w->n; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d];
        w->before[d] = reach / 2;
        w->after[d] = reach - reach / 2;
    }
    return !strcmp(pad->word, "same");
}

static int32_t read_pool(struct rung_call *call, const struct bench_call *op, uint32_t n, int max,
                         struct net_window *w)
{
    const struct bench_value *stride = bench_arg(op, "stride", 2);
    int ceil_mode, padded = 1, good;
    w->n = n;
    good = bench_ints(op, "kernel", 1, n, 1, w->kernel);
    memcpy(w->stride, w->kernel, sizeof w->stride);
    if (stride)
        good = good && bench_ints(op, "stride", 2, n, 1, w->stride);
    good = good && bench_ints(op, "pad", 3, n, 0, w->before);
    memcpy(w->after, w->before, sizeof w->after);
    for (uint32_t d = 0; d < 3; d++)
        w->dilation[d] = 1;
    if (max)
        good = good && bench_ints(op, "dilation", 4, n, 1, w->dilation);
    else
        good = good && bench_flag(op, "countincludepad", 4, 1, &padded);
    good = good && bench_flag(op, "ceilmode", 5, 0, &ceil_mode);
    for (uint32_t d = 0; d < n; d++)
        good = good && w->dilation[d] == 1 && w->kernel[d] > 0 && w->stride[d] > 0 &&
               w->before[d] >= 0;
    w->mode = max ? DNN_POOL_MAX : padded ? DNN_POOL_MEAN_PADDED : DNN_POOL_MEAN;
    return good && !ceil_mode ? RUNG_OK : no(call, "a pool with ceil_mode or dilation");
}

/* The same in two dimensions when there is one. */
static void widen(struct net_window *w)
{
    if (w->n != 1)
        return;
    w->n = 2;
    int64_t *const lists[] = {w->kernel, w->stride, w->before, w->after, w->dilation};
    const int64_t standard[] = {1, 1, 0, 0, 1};
    for (int i = 0; i < 5; i++) {
        lists[i][1] = lists[i][0];
        lists[i][0] = standard[i];
    }
}

/* ---- Convolutions ---- */

static const struct bench_value *take_pool(struct rung_call *call, const struct bench_problem *p,
                                           const struct bench_value *v, struct net *out,
                                           int32_t *status)
{
    const struct bench_call *op = any_call(&p->graph, v);
    uint32_t max = op ? spatial(op->op, "maxpool") : 0;
    uint32_t n = max ? max : op ? spatial(op->op, "avgpool") : 0;
    if (!n)
        return v;
    out->has_pool = 1;
    *status = read_pool(call, op, n, max > 0, &out->pool);
    return bench_arg(op, "x", 0);
}

static const struct bench_value *take_activation(const struct bench_problem *p,
                                                 const struct bench_value *v, struct net *out)
{
    static const struct {
        const char *op;
        int mode;
    } known[] = {{"relu", DNN_RELU},
                 {"tanh", DNN_TANH},
                 {"sigmoid", DNN_SIGMOID},
                 {"silu", DNN_SWISH},
                 {"gelu", DNN_GELU}};
    const struct bench_call *op = any_call(&p->graph, v);
    for (size_t i = 0; op && i < sizeof known / sizeof *known; i++)
        if (!strcmp(op->op, known[i].op)) {
            const struct bench_value *form = bench_arg(op, "approximate", 1);
            out->activation = known[i].mode;
            if (form && out->activation == DNN_GELU && !strcmp(form->word, "tanh"))
                out->activation = DNN_GELU_TANH;
            return bench_arg(op, "x", 0);
        }
    return v;
}

static int32_t read_conv(struct rung_call *call, const struct bench_problem *p,
                         const struct bench_call *op, uint32_t n, struct net *out)
{
    int64_t groups;
    const struct bench_value *bias = bench_arg(op, "bias", 2);
    struct net_window *w = &out->conv;
    out->x = bench_tensor_arg(op, "x", 0);
    out->w = bench_tensor_arg(op, "w", 1);
    out->bias = bench_tensor_arg(op, "bias", 2);
    if (out->x < 0 || out->w < 0 || (bias && out->bias < 0))
        return no(call, "a convolution whose operands are no task tensors");
    const struct bench_tensor *x = &p->tensors[out->x], *f = &p->tensors[out->w];
    if (x->n_dims != n + 2 || f->n_dims != n + 2)
        return no(call, "a convolution of other dimensions than its name says");
    w->n = n;
    memcpy(w->kernel, f->dims + 2, n * sizeof *w->kernel);
    if (!bench_ints(op, "stride", 3, n, 1, w->stride) ||
        !bench_ints(op, "dilation", 5, n, 1, w->dilation) || !read_pads(op, 4, w) ||
        !bench_int(op, "groups", 6, 1, &groups) || groups < 1 || f->dims[1] * groups != x->dims[1])
        return no(call, "the convolution's arguments");
    out->conv_out[0] = x->dims[0];
    out->conv_out[1] = f->dims[0];
    for (uint32_t d = 0; d < n; d++) {
        if (w->kernel[d] > INT32_MAX || x->dims[2 + d] > INT32_MAX || w->stride[d] < 1 ||
            w->dilation[d] < 1 || w->before[d] < 0)
            return no(call, "the convolution's arguments");
        out->conv_out[2 + d] = extent(w, d, x->dims[2 + d]);
        if (out->conv_out[2 + d] < 1)
            return no(call, "a convolution without results");
    }
    return RUNG_OK;
}

static int32_t read_convolution(struct rung_call *call, const struct bench_problem *p,
                                struct net *out)
{
    int32_t status = RUNG_OK;
    const struct bench_value *v = take_pool(call, p, &p->graph.outputs[p->output], out, &status);
    v = take_activation(p, v, out);
    const struct bench_call *op = any_call(&p->graph, v);
    uint32_t n = op ? spatial(op->op, "conv") : 0;
    if (status)
        return status;
    if (n) {
        out->kind = NET_CONV;
        status = read_conv(call, p, op, n, out);
    } else if (out->has_pool && out->activation < 0 && v && v->kind == BENCH_TENSOR) {
        out->kind = NET_POOL;
        out->x = (int)v->index;
    } else {
        return no(call, "only convolutions (with bias, activation, pool), pools, softmax, "
                        "layernorm, rmsnorm, batchnorm and attention");
    }
    if (out->has_pool && out->kind == NET_CONV && out->pool.n != out->conv.n)
        return no(call, "a pool of other dimensions than the convolution");
    return status;
}

/* ---- Rows ---- */

static int64_t product(const int64_t *dims, uint32_t from, uint32_t to)
{
    int64_t n = 1;
    for (uint32_t d = from; d < to; d++)
        n *= dims[d];
    return n;
}

/* The axis of an operator in 0 .. n_dims - 1, or -1. */
static int64_t axis_of(const struct bench_call *op, uint32_t position, const struct bench_tensor *x,
                       int64_t standard)
{
    const struct bench_value *v = bench_arg(op, "axis", position);
    int64_t axis = standard;
    if (v && v->kind == BENCH_LIST)
        axis = v->n == 1 ? v->list[0] : INT64_MIN;
    else if (!bench_int(op, "axis", position, standard, &axis))
        return -1;
    if (axis < 0)
        axis += x->n_dims;
    return axis >= 0 && axis < (int64_t)x->n_dims ? axis : -1;
}

static int32_t read_softmax(struct rung_call *call, const struct bench_problem *p,
                            const struct bench_call *op, struct net *out)
{
    out->kind = NET_SOFTMAX;
    out->log = op->op[0] == 'l';
    out->x = bench_tensor_arg(op, "x", 0);
    if (out->x < 0)
        return no(call, "a softmax of something that is no task tensor");
    const struct bench_tensor *x = &p->tensors[out->x];
    int64_t axis = axis_of(op, 1, x, -1);
    if (axis < 0)
        return no(call, "the softmax's axis");
    out->rows = product(x->dims, 0, (uint32_t)axis);
    out->middle = x->dims[axis];
    out->inner = product(x->dims, (uint32_t)axis + 1, x->n_dims);
    return RUNG_OK;
}

static int32_t read_norm(struct rung_call *call, const struct bench_problem *p,
                         const struct bench_call *op, struct net *out)
{
    out->kind = NET_NORM;
    out->rms = op->op[0] == 'r';
    out->x = bench_tensor_arg(op, "x", 0);
    out->w = bench_tensor_arg(op, "weight", 1);
    out->bias = out->rms ? -1 : bench_tensor_arg(op, "bias", 2);
    out->eps = bench_number(op, "eps", out->rms ? 3 : 4, out->rms ? 1e-6 : 1e-5);
    if (out->x < 0 || out->w < 0 || (!out->rms && out->bias < 0) || !(out->eps >= 0))
        return no(call, "a normalisation without weight and bias");
    const struct bench_tensor *x = &p->tensors[out->x];
    int64_t axis = axis_of(op, out->rms ? 2 : 3, x, -1);
    if (axis < 0)
        return no(call, "the normalisation's axis");
    out->rows = product(x->dims, 0, (uint32_t)axis);
    out->middle = product(x->dims, (uint32_t)axis, x->n_dims);
    if (p->tensors[out->w].elements != (uint64_t)out->middle ||
        (out->bias >= 0 && p->tensors[out->bias].elements != (uint64_t)out->middle))
        return no(call, "a weight that is not one number an element of a row");
    return RUNG_OK;
}

static int32_t read_batchnorm(struct rung_call *call, const struct bench_problem *p,
                              const struct bench_call *op, struct net *out)
{
    out->kind = NET_BATCHNORM;
    out->x = bench_tensor_arg(op, "x", 0);
    out->w = bench_tensor_arg(op, "weight", 1);
    out->bias = bench_tensor_arg(op, "bias", 2);
    out->mean = bench_tensor_arg(op, "runningmean", 3);
    out->variance = bench_tensor_arg(op, "runningvar", 4);
    out->eps = bench_number(op, "eps", 5, 1e-5);
    if (out->x < 0 || out->w < 0 || out->bias < 0 || !(out->eps >= 1e-5 * 0.999) ||
        (out->mean < 0) != (out->variance < 0))
        return no(call, "a batchnorm without weight and bias, or an eps below 1e-5");
    const struct bench_tensor *x = &p->tensors[out->x];
    if (x->n_dims < 2 || x->dtype == RUNG_F16 || x->dtype == RUNG_BF16)
        return no(call, "a batchnorm of halves, whose parameters would be f32");
    out->rows = x->dims[0];
    out->middle = x->dims[1];
    out->inner = product(x->dims, 2, x->n_dims);
    return RUNG_OK;
}

static int32_t read_attention(struct rung_call *call, const struct bench_problem *p,
                              const struct bench_call *op, struct net *out)
{
    out->kind = NET_ATTENTION;
    out->x = bench_tensor_arg(op, "q", 0);
    out->k = bench_tensor_arg(op, "k", 1);
    out->v = bench_tensor_arg(op, "v", 2);
    if (out->x < 0 || out->k < 0 || out->v < 0 || bench_arg(op, "mask", 5) ||
        !bench_flag(op, "causal", 3, 0, &out->causal))
        return no(call, "attention with a mask, or of something that is no task tensor");
    const struct bench_tensor *q = &p->tensors[out->x];
    if (q->n_dims < 2 || q->n_dims > 4 || (q->dtype != RUNG_F16 && q->dtype != RUNG_BF16))
        return no(call, "attention of another dtype than f16 and bf16, or of 5 dimensions");
    out->scale = bench_number(op, "scale", 4, 1 / sqrt((double)q->dims[q->n_dims - 1]));
    return isfinite(out->scale) ? RUNG_OK : no(call, "attention with a scale that is a tensor");
}

int32_t net_read(struct rung_call *call, const struct bench_problem *p, struct net *out)
{
    const struct bench_call *op = any_call(&p->graph, &p->graph.outputs[p->output]);
    int32_t status;
    *out = (struct net){
        .y = p->output, .w = -1, .bias = -1, .mean = -1, .variance = -1, .activation = -1};
    if (!op)
        return no(call, "a graph that is no operator");
    if (!strcmp(op->op, "softmax") || !strcmp(op->op, "logsoftmax"))
        return read_softmax(call, p, op, out);
    if (!strcmp(op->op, "layernorm") || !strcmp(op->op, "rmsnorm"))
        return read_norm(call, p, op, out);
    if (!strcmp(op->op, "batchnorm"))
        return read_batchnorm(call, p, op, out);
    if (!strcmp(op->op, "attention") || !strcmp(op->op, "scaleddotproductattention"))
        return read_attention(call, p, op, out);
    status = read_convolution(call, p, out);
    if (status)
        return status;
    int64_t shape[RUNG_MAX_DIMS];
    const struct bench_tensor *y = &p->tensors[out->y], *x = &p->tensors[out->x];
    memcpy(shape, out->kind == NET_CONV ? out->conv_out : x->dims, sizeof shape);
    for (uint32_t d = 0; out->has_pool && d < out->pool.n; d++)
        shape[2 + d] = extent(&out->pool, d, shape[2 + d]);
    if (x->n_dims != y->n_dims || memcmp(shape, y->dims, y->n_dims * sizeof *shape) != 0)
        return no(call, "an output of another shape than the graph's");
    widen(&out->conv);
    widen(&out->pool);
    return RUNG_OK;
}

const char *net_name(const struct net *net, char *text, size_t size)
{
    static const char *const names[] = {"",          "convolution", "pool",     "softmax",
                                        "layernorm", "batchnorm",   "attention"};
    const char *name = net->rms ? "rmsnorm" : net->log ? "log_softmax" : names[net->kind];
    snprintf(text, size, "%s%s%s%s", name, net->kind == NET_CONV && net->bias >= 0 ? " + bias" : "",
             net->activation < 0           ? ""
             : net->activation == DNN_RELU ? " + relu"
                                           : " + activation",
             net->kind == NET_CONV && net->has_pool ? " + pool" : "");
    return text;
}
