/*
 * A libcudnn whose graphs are interpreted on the CPU in double. Each graph has three engines: one
 * on tensor cores, one whose plan can't be built, and one that is fine.
 */
#include "bench/fake_cudnn.h"
#include "../../plugins/bench/cudnn/api.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ATTRIBUTES = 24, MOST_VALUES = 16, MOST_TENSORS = 64, NOT_SUPPORTED = 3000 };

struct fake_cudnn_seen fake_cudnn_seen;

struct attribute {
    int name, type;
    int64_t n;
    union {
        int64_t i[MOST_VALUES];
        double d;
        float f;
        int e;
        void *p[MOST_VALUES];
    } v;
};
struct desc {
    int type, n, engine; /* engine: of ENGINE, ENGINECFG and PLAN */
    struct attribute a[MOST_ATTRIBUTES];
};

/* ---- Descriptors ---- */

int cudnnCreate(dnn_handle *out)
{
    *out = (dnn_handle)(uintptr_t)1;
    if (fake_cudnn_seen.start_fails)
        return DNN_NOT_INITIALIZED;
    fake_cudnn_seen.handles++;
    return DNN_SUCCESS;
}

int cudnnDestroy(dnn_handle handle)
{
    (void)handle;
    fake_cudnn_seen.handles--;
    return DNN_SUCCESS;
}

int cudnnSetStream(dnn_handle handle, void *stream)
{
    (void)handle, (void)stream;
    return DNN_SUCCESS;
}

const char *cudnnGetErrorString(int status)
{
    return status == DNN_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED" : "CUDNN_STATUS_OTHER";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "the fake says no");
}

int cudnnBackendCreateDescriptor(int type, dnn_desc *out)
{
    struct desc *d = calloc(1, sizeof *d);
    d->type = type;
    *out = d;
    fake_cudnn_seen.live++;
    return DNN_SUCCESS;
}

int cudnnBackendDestroyDescriptor(dnn_desc desc)
{
    free(desc);
    fake_cudnn_seen.live--;
    return DNN_SUCCESS;
}

static size_t width(int type)
{
    if (type == DNN_T_BOOLEAN)
        return 1;
    return type == DNN_T_INT64 || type == DNN_T_DOUBLE || type == DNN_T_POINTER ||
                   type == DNN_T_DESC || type == DNN_T_HANDLE
               ? 8
               : 4;
}

int cudnnBackendSetAttribute(dnn_desc desc, int name, int type, int64_t n, const void *values)
{
    struct desc *d = desc;
    if (d->n == MOST_ATTRIBUTES || n > MOST_VALUES)
        return NOT_SUPPORTED;
    struct attribute *a = &d->a[d->n++];
    *a = (struct attribute){.name = name, .type = type, .n = n};
    memcpy(&a->v, values, (size_t)n * width(type));
    return DNN_SUCCESS;
}

static struct attribute *get(struct desc *d, int name)
{
    for (int i = 0; d && i < d->n; i++)
        if (d->a[i].name == name)
            return &d->a[i];
    return NULL;
}

static struct desc *linked(struct desc *d, int name)
{
    struct attribute *a = get(d, name);
    return a ? a->v.p[0] : NULL;
}

int cudnnBackendFinalize(dnn_desc desc)
{
    struct desc *d = desc;
    if (d->type == DNN_ENGINEHEUR && fake_cudnn_seen.fusion_fails) {
        struct attribute *list = get(linked(d, DNN_A_HEUR_GRAPH), DNN_A_GRAPH_OPS);
        if (list->n > 1 && ((struct desc *)list->v.p[0])->type == DNN_OP_CONV)
            return NOT_SUPPORTED;
    }
    if (d->type == DNN_PLAN) {
        d->engine = linked(d, DNN_A_PLAN_CFG)->engine;
        if (d->engine == 1)
            return NOT_SUPPORTED;
    }
    return DNN_SUCCESS;
}

static struct desc *graph_of; /* of the heuristics asked last */

int cudnnBackendGetAttribute(dnn_desc desc, int name, int type, int64_t wanted, int64_t *n,
                             void *values)
{
    struct desc *d = desc;
    (void)type;
    *n = 1;
    if (name == DNN_A_HEUR_RESULTS) {
        *n = 3;
        graph_of = linked(d, DNN_A_HEUR_GRAPH);
        for (int64_t i = 0; i < wanted; i++)
            ((struct desc **)values)[i]->engine = (int)i;
        for (int64_t i = 0; i < wanted; i++)
            cudnnBackendSetAttribute(((struct desc **)values)[i], DNN_A_HEUR_GRAPH, DNN_T_DESC, 1,
                                     &graph_of);
    } else if (name == DNN_A_CFG_ENGINE) {
        (*(struct desc **)values)->engine = d->engine;
    } else if (name == DNN_A_ENGINE_NOTE) {
        *n = d->engine == 0 ? 1 : 0;
        *(int *)values = DNN_NOTE_TENSOR_CORE;
    } else if (name == DNN_A_PLAN_WORKSPACE) {
        *(int64_t *)values = 1000;
    } else {
        return NOT_SUPPORTED;
    }
    return DNN_SUCCESS;
}

/* ---- Values ---- */

struct value {
    int64_t id, n, dims[5], strides[5];
    int type, kind; /* kind as in graph.h: 1 virtual, 2 a scalar of the host */
    double *data;   /* dense */
    void *at;
};

static struct value values[MOST_TENSORS];
static int n_values;

static double load(const struct value *v, int64_t at)
{
    const void *p = v->at;
    if (v->type == DNN_FLOAT)
        return (double)((const float *)p)[at];
    if (v->type == DNN_DOUBLE)
        return ((const double *)p)[at];
    uint16_t h = ((const uint16_t *)p)[at];
    int e = h >> 10 & 31;
    double x = e ? ldexp(1024 + (h & 1023), e - 25) : ldexp(h & 1023, -24);
    return h & 0x8000 ? -x : x;
}

static void store(const struct value *v, int64_t at, double x)
{
    int e;
    double m = frexp(fabs(x), &e);
    unsigned h = x == 0 || e < -13
                     ? 0
                     : ((unsigned)(e + 14) << 10) + (unsigned)nearbyint((m * 2 - 1) * 1024);
    if (v->type == DNN_FLOAT)
        ((float *)v->at)[at] = (float)x;
    else if (v->type == DNN_DOUBLE)
        ((double *)v->at)[at] = x;
    else
        ((uint16_t *)v->at)[at] = (uint16_t)(h | (x < 0 ? 0x8000 : 0));
}

static int64_t count(const struct value *v)
{
    int64_t n = 1;
    for (int64_t d = 0; d < v->n; d++)
        n *= v->dims[d];
    return n;
}

/* Place in memory of a dense index. */
static int64_t place(const struct value *v, int64_t index)
{
    int64_t at = 0;
    for (int64_t d = v->n; d-- > 0;) {
        at += index % v->dims[d] * v->strides[d];
        index /= v->dims[d];
    }
    return at;
}

/* Dense index in `to` of the element at a dense index of `of`; extents of 1 broadcast. */
static int64_t broadcast(const struct value *to, const struct value *of, int64_t index)
{
    int64_t at = 0, unit = 1;
    for (int64_t d = of->n; d-- > 0;) {
        int64_t i = index % of->dims[d];
        index /= of->dims[d];
        at += to->dims[d] == 1 ? 0 : i * unit;
        unit *= to->dims[d];
    }
    return at;
}

static struct value *tensor(struct desc *d, struct desc *pack)
{
    if (!d)
        return NULL;
    int64_t id = get(d, DNN_A_TENSOR_ID)->v.i[0];
    struct attribute *ids = get(pack, DNN_A_PACK_IDS), *at = get(pack, DNN_A_PACK_POINTERS);
    for (int i = 0; i < n_values; i++)
        if (values[i].id == id)
            return &values[i];
    struct value *v = &values[n_values++];
    *v = (struct value){.id = id, .n = get(d, DNN_A_TENSOR_DIMS)->n};
    memcpy(v->dims, get(d, DNN_A_TENSOR_DIMS)->v.i, (size_t)v->n * 8);
    memcpy(v->strides, get(d, DNN_A_TENSOR_STRIDES)->v.i, (size_t)v->n * 8);
    v->type = get(d, DNN_A_TENSOR_TYPE)->v.e;
    v->kind = get(d, DNN_A_TENSOR_VIRTUAL) ? 1 : get(d, DNN_A_TENSOR_BY_VALUE) ? 2 : 0;
    v->data = calloc((size_t)count(v), sizeof(double));
    for (int64_t i = 0; i < ids->n; i++)
        if (ids->v.i[i] == id)
            v->at = at->v.p[i];
    for (int64_t i = 0; v->at && i < count(v); i++)
        v->data[i] = load(v, place(v, i));
    return v;
}

/* ---- Operations ---- */

static double pointwise(int mode, double x, double b, double t)
{
    switch (mode) {
    case DNN_ADD:
        return x + b;
    case DNN_MUL:
        return x * b;
    case DNN_SUB:
        return x - b;
    case DNN_DIV:
        return x / b;
    case DNN_EXP:
        return exp(x);
    case DNN_RELU:
        return x > 0 ? x : 0;
    case DNN_CMP_GE:
        return x >= b;
    case DNN_BINARY_SELECT:
        return t != 0 ? x : b;
    default:
        return tanh(x);
    }
}

static void run_pointwise(struct desc *op, struct desc *pack)
{
    struct desc *p = linked(op, DNN_A_OP_POINTWISE_DESC);
    struct value *x = tensor(linked(op, DNN_A_OP_POINTWISE_X), pack);
    struct value *b = tensor(linked(op, DNN_A_OP_POINTWISE_B), pack);
    struct value *t = tensor(linked(op, DNN_A_OP_POINTWISE_T), pack);
    struct value *y = tensor(linked(op, DNN_A_OP_POINTWISE_Y), pack);
    int mode = get(p, DNN_A_POINTWISE_MODE)->v.e;
    for (int64_t i = 0; i < count(y); i++) {
        if (mode == DNN_GEN_INDEX) {
            int64_t axis = get(p, DNN_A_POINTWISE_AXIS)->v.i[0], rest = i;
            for (int64_t d = y->n - 1; d > axis; d--)
                rest /= y->dims[d];
            y->data[i] = (double)(rest % y->dims[axis]);
            continue;
        }
        y->data[i] =
            pointwise(mode, x->data[broadcast(x, y, i)], b ? b->data[broadcast(b, y, i)] : 0,
                      t ? t->data[broadcast(t, y, i)] : 0);
    }
}

static void run_conv(struct desc *op, struct desc *pack)
{
    struct desc *c = linked(op, DNN_A_OP_CONV_DESC);
    struct value *x = tensor(linked(op, DNN_A_OP_CONV_X), pack);
    struct value *w = tensor(linked(op, DNN_A_OP_CONV_W), pack);
    struct value *y = tensor(linked(op, DNN_A_OP_CONV_Y), pack);
    const int64_t *s = get(c, DNN_A_CONV_STRIDES)->v.i, *pad = get(c, DNN_A_CONV_PRE_PADS)->v.i;
    const int64_t *dil = get(c, DNN_A_CONV_DILATIONS)->v.i, *xd = x->dims, *wd = w->dims;
    int64_t groups = xd[1] / wd[1], each = wd[0] / groups;
    for (int64_t i = 0; i < count(y); i++) {
        int64_t q = i % y->dims[3], p = i / y->dims[3] % y->dims[2];
        int64_t k = i / y->dims[3] / y->dims[2] % y->dims[1];
        int64_t n = i / y->dims[3] / y->dims[2] / y->dims[1];
        double sum = 0;
        for (int64_t j = 0; j < wd[1] * wd[2] * wd[3]; j++) {
            int64_t e = j % wd[3], r = j / wd[3] % wd[2], ch = j / wd[3] / wd[2];
            int64_t h = p * s[0] - pad[0] + r * dil[0], v = q * s[1] - pad[1] + e * dil[1];
            if (h < 0 || v < 0 || h >= xd[2] || v >= xd[3])
                continue;
            int64_t channel = k / each * wd[1] + ch;
            sum += x->data[((n * xd[1] + channel) * xd[2] + h) * xd[3] + v] *
                   w->data[((k * wd[1] + ch) * wd[2] + r) * wd[3] + e];
        }
        y->data[i] = sum;
    }
}

static void run_matmul(struct desc *op, struct desc *pack)
{
    struct value *a = tensor(linked(op, DNN_A_OP_MATMUL_A), pack);
    struct value *b = tensor(linked(op, DNN_A_OP_MATMUL_B), pack);
    struct value *c = tensor(linked(op, DNN_A_OP_MATMUL_C), pack);
    int64_t k = a->dims[3], n = c->dims[3], m = c->dims[2];
    for (int64_t i = 0; i < count(c); i++) {
        int64_t col = i % n, row = i / n % m, batch = i / n / m;
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += a->data[(batch * m + row) * k + p] * b->data[(batch * k + p) * n + col];
        c->data[i] = sum;
    }
}

static void run_reduction(struct desc *op, struct desc *pack)
{
    int max =
        get(linked(op, DNN_A_OP_REDUCTION_DESC), DNN_A_REDUCTION_OPERATOR)->v.e == DNN_REDUCE_MAX;
    struct value *x = tensor(linked(op, DNN_A_OP_REDUCTION_X), pack);
    struct value *y = tensor(linked(op, DNN_A_OP_REDUCTION_Y), pack);
    for (int64_t i = 0; i < count(y); i++)
        y->data[i] = max ? -INFINITY : 0;
    for (int64_t i = 0; i < count(x); i++) {
        double *to = &y->data[broadcast(y, x, i)];
        *to = max ? fmax(*to, x->data[i]) : *to + x->data[i];
    }
}

static void run_norm(struct desc *op, struct desc *pack)
{
    int rms = get(op, DNN_A_OP_NORM_MODE)->v.e == DNN_RMS_NORM;
    struct value *x = tensor(linked(op, DNN_A_OP_NORM_X), pack);
    struct value *w = tensor(linked(op, DNN_A_OP_NORM_SCALE), pack);
    struct value *b = tensor(linked(op, DNN_A_OP_NORM_BIAS), pack);
    struct value *eps = tensor(linked(op, DNN_A_OP_NORM_EPSILON), pack);
    struct value *y = tensor(linked(op, DNN_A_OP_NORM_Y), pack);
    int64_t n = count(x) / x->dims[0];
    for (int64_t row = 0; row < x->dims[0]; row++) {
        const double *in = x->data + row * n;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n && !rms; i++)
            mean += in[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            square += (in[i] - mean) * (in[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            y->data[row * n + i] =
                (in[i] - mean) / sqrt(square + eps->data[0]) * w->data[i] + (b ? b->data[i] : 0);
    }
}

static int run_op(struct desc *op, struct desc *pack)
{
    if (op->type == DNN_OP_POINTWISE)
        run_pointwise(op, pack);
    else if (op->type == DNN_OP_CONV)
        run_conv(op, pack);
    else if (op->type == DNN_OP_MATMUL)
        run_matmul(op, pack);
    else if (op->type == DNN_OP_REDUCTION)
        run_reduction(op, pack);
    else if (op->type == DNN_OP_NORM)
        run_norm(op, pack);
    else
        return NOT_SUPPORTED;
    return DNN_SUCCESS;
}

int cudnnBackendExecute(dnn_handle handle, dnn_desc plan, dnn_desc pack)
{
    struct desc *p = plan;
    struct attribute *list =
        get(linked(linked(p, DNN_A_PLAN_CFG), DNN_A_HEUR_GRAPH), DNN_A_GRAPH_OPS);
    int status = DNN_SUCCESS;
    (void)handle;
    n_values = 0;
    for (int64_t i = 0; i < list->n && !status; i++)
        status = run_op(list->v.p[i], pack);
    for (int i = 0; i < n_values; i++) {
        struct value *v = &values[i];
        for (int64_t j = 0; !status && !v->kind && v->at && j < count(v); j++)
            store(v, place(v, j), v->data[j]);
        free(v->data);
    }
    fake_cudnn_seen.executed++;
    fake_cudnn_seen.engine = p->engine;
    fake_cudnn_seen.operations = (int)list->n;
    return status;
}

/* ---- The older interface ---- */

struct dnn_tensor {
    int type, n, dims[8];
};
struct dnn_pooling {
    int mode, window[3], pad[3], stride[3];
};

int cudnnCreateTensorDescriptor(dnn_tensor *out)
{
    *out = calloc(1, sizeof **out);
    fake_cudnn_seen.live++;
    return DNN_SUCCESS;
}

int cudnnDestroyTensorDescriptor(dnn_tensor t)
{
    free(t);
    fake_cudnn_seen.live--;
    return DNN_SUCCESS;
}

int cudnnSetTensorNdDescriptor(dnn_tensor t, int type, int n, const int *dims, const int *strides)
{
    t->type = type;
    t->n = n;
    memcpy(t->dims, dims, (size_t)n * sizeof *dims);
    return n >= 4 && strides[n - 1] == 1 ? DNN_SUCCESS : NOT_SUPPORTED;
}

int cudnnCreatePoolingDescriptor(dnn_pooling_desc *out)
{
    *out = calloc(1, sizeof **out);
    fake_cudnn_seen.live++;
    return DNN_SUCCESS;
}

int cudnnDestroyPoolingDescriptor(dnn_pooling_desc p)
{
    free(p);
    fake_cudnn_seen.live--;
    return DNN_SUCCESS;
}

int cudnnSetPoolingNdDescriptor(dnn_pooling_desc p, int mode, int nan, int n, const int *window,
                                const int *pad, const int *stride)
{
    (void)nan;
    p->mode = mode;
    memcpy(p->window, window, (size_t)n * sizeof *window);
    memcpy(p->pad, pad, (size_t)n * sizeof *pad);
    memcpy(p->stride, stride, (size_t)n * sizeof *stride);
    return DNN_SUCCESS;
}

static float pooled(const struct dnn_pooling *p, const float *x, const int *xd, int oh, int ow)
{
    double sum = 0, most = -INFINITY;
    int n = 0;
    for (int r = 0; r < p->window[0]; r++)
        for (int s = 0; s < p->window[1]; s++) {
            int h = oh * p->stride[0] - p->pad[0] + r, w = ow * p->stride[1] - p->pad[1] + s;
            if (h < 0 || w < 0 || h >= xd[2] || w >= xd[3])
                continue;
            n++;
            sum += (double)x[h * xd[3] + w];
            most = fmax(most, (double)x[h * xd[3] + w]);
        }
    if (p->mode == DNN_POOL_MAX)
        return (float)most;
    return (float)(sum / (p->mode == DNN_POOL_MEAN ? n : p->window[0] * p->window[1]));
}

int cudnnPoolingForward(dnn_handle handle, dnn_pooling_desc p, const void *alpha, dnn_tensor tx,
                        const void *x, const void *beta, dnn_tensor ty, void *y)
{
    const int *yd = ty->dims, *xd = tx->dims;
    (void)handle, (void)alpha, (void)beta;
    for (int c = 0; c < yd[0] * yd[1]; c++)
        for (int h = 0; h < yd[2]; h++)
            for (int w = 0; w < yd[3]; w++)
                ((float *)y)[(c * yd[2] + h) * yd[3] + w] =
                    pooled(p, (const float *)x + c * xd[2] * xd[3], xd, h, w);
    return DNN_SUCCESS;
}

int cudnnSoftmaxForward(dnn_handle handle, int algorithm, int mode, const void *alpha,
                        dnn_tensor tx, const void *x, const void *beta, dnn_tensor ty, void *y)
{
    const int *d = tx->dims;
    (void)handle, (void)alpha, (void)beta, (void)ty;
    if (mode != DNN_SOFTMAX_CHANNEL)
        return NOT_SUPPORTED;
    for (int n = 0; n < d[0]; n++)
        for (int i = 0; i < d[2] * d[3]; i++) {
            const float *from = (const float *)x + n * d[1] * d[2] * d[3] + i;
            float *to = (float *)y + n * d[1] * d[2] * d[3] + i;
            double sum = 0;
            for (int c = 0; c < d[1]; c++)
                sum += exp((double)from[c * d[2] * d[3]]);
            for (int c = 0; c < d[1]; c++) {
                double v = (double)from[c * d[2] * d[3]];
                to[c * d[2] * d[3]] =
                    (float)(algorithm == DNN_SOFTMAX_LOG ? v - log(sum) : exp(v) / sum);
            }
        }
    return DNN_SUCCESS;
}

int cudnnBatchNormalizationForwardInference(dnn_handle handle, int mode, const void *alpha,
                                            const void *beta, dnn_tensor tx, const void *x,
                                            dnn_tensor ty, void *y, dnn_tensor tp,
                                            const void *scale, const void *bias, const void *mean,
                                            const void *variance, double epsilon)
{
    int inner = tx->dims[2] * tx->dims[3];
    (void)handle, (void)mode, (void)alpha, (void)beta, (void)ty, (void)tp;
    for (int i = 0; i < tx->dims[0] * tx->dims[1] * inner; i++) {
        int c = i / inner % tx->dims[1];
        double m = (double)((const float *)mean)[c], v = (double)((const float *)variance)[c];
        ((float *)y)[i] = (float)(((double)((const float *)x)[i] - m) / sqrt(v + epsilon) *
                                      (double)((const float *)scale)[c] +
                                  (double)((const float *)bias)[c]);
    }
    return DNN_SUCCESS;
}

int cudnnBatchNormalizationForwardTraining(dnn_handle handle, int mode, const void *alpha,
                                           const void *beta, dnn_tensor tx, const void *x,
                                           dnn_tensor ty, void *y, dnn_tensor tp, const void *scale,
                                           const void *bias, double factor, void *mean,
                                           void *variance, double epsilon, void *saved_mean,
                                           void *saved_variance)
{
    int inner = tx->dims[2] * tx->dims[3], channels = tx->dims[1], n = tx->dims[0] * inner;
    float m[64] = {0}, v[64] = {0};
    (void)factor;
    if (mean || variance || saved_mean || saved_variance || channels > 64)
        return NOT_SUPPORTED;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n * channels; i++) {
            int c = i / inner % channels;
            float f = ((const float *)x)[i];
            if (pass)
                v[c] += (f - m[c]) * (f - m[c]) / (float)n;
            else
                m[c] += f / (float)n;
        }
    return cudnnBatchNormalizationForwardInference(handle, mode, alpha, beta, tx, x, ty, y, tp,
                                                   scale, bias, m, v, epsilon);
}
