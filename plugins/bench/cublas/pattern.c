#include "pattern.h"

#include <string.h>

static const struct bench_call *product_call(const struct bench_graph *g,
                                             const struct bench_value *v)
{
    const struct bench_call *call = bench_call_of(g, v, "matmul");
    return call ? call : bench_call_of(g, v, "bmm");
}

/* Takes an activation off; v is what it is of. */
static const struct bench_value *take_activation(const struct bench_graph *g,
                                                 const struct bench_value *v, struct product *out)
{
    const struct bench_call *call = bench_call_of(g, v, "relu");
    const struct bench_value *form;
    if (call) {
        out->activation = PRODUCT_RELU;
        return bench_arg(call, "x", 0);
    }
    call = bench_call_of(g, v, "gelu");
    form = call ? bench_arg(call, "approximate", 1) : NULL;
    if (!form || strcmp(form->word, "tanh") != 0)
        return v;
    out->activation = PRODUCT_GELU_TANH;
    return bench_arg(call, "x", 0);
}

/* Takes `+ vector` off, on either side. */
static const struct bench_value *take_bias(const struct bench_problem *p,
                                           const struct bench_value *v, struct product *out)
{
    const struct bench_call *add = bench_call_of(&p->graph, v, "add");
    for (uint32_t side = 0; add && side < 2; side++) {
        const struct bench_value *x = &add->args[side].value, *y = &add->args[1 - side].value;
        if (y->kind != BENCH_TENSOR || p->tensors[y->index].n_dims != 1)
            continue;
        out->bias = (int)y->index;
        return x;
    }
    return v;
}

/* Rows, columns and leading batch of an operand; a vector is one row (a) or one column (b). */
static void matrix(const struct bench_tensor *t, int second, int flip, int64_t *rows, int64_t *cols,
                   int64_t *batch)
{
    uint32_t n = t->n_dims;
    int64_t r = n > 1 ? t->dims[n - 2] : second ? t->dims[0] : 1;
    int64_t c = n > 1 ? t->dims[n - 1] : second ? 1 : t->dims[0];
    *batch = 1;
    for (uint32_t d = 0; d + 2 < n; d++)
        *batch *= t->dims[d];
    *rows = flip ? c : r;
    *cols = flip ? r : c;
}

static int32_t shapes(struct rung_call *call, const struct bench_problem *p, struct product *out)
{
    const struct bench_tensor *a = &p->tensors[out->a], *b = &p->tensors[out->b];
    int64_t k, batch_a, batch_b;
    matrix(a, 0, out->transpose_a, &out->m, &out->k, &batch_a);
    matrix(b, 1, out->transpose_b, &k, &out->n, &batch_b);
    if (k != out->k || (batch_a != batch_b && batch_a != 1 && batch_b != 1))
        return bench_unsupported(call, "cuBLAS", "shapes that don't fit");
    out->batch = batch_a > batch_b ? batch_a : batch_b;
    out->stride_a = batch_a > 1 ? out->m * out->k : 0;
    out->stride_b = batch_b > 1 ? out->n * out->k : 0;
    out->stride_c = out->m * out->n;
    if (batch_b == 1 && batch_a > 1 && !out->transpose_a) { /* one tall product */
        out->m *= out->batch;
        out->batch = 1;
        out->stride_a = 0;
        out->stride_c = out->m * out->n;
    }
    if ((uint64_t)(out->m * out->n * out->batch) != p->tensors[out->c].elements)
        return bench_unsupported(call, "cuBLAS", "an output of another shape than the product");
    if (out->bias >= 0 && p->tensors[out->bias].dims[0] != out->n)
        return bench_unsupported(call, "cuBLAS", "a bias that is not along the columns");
    return RUNG_OK;
}

int32_t product_read(struct rung_call *call, const struct bench_problem *p, struct product *out)
{
    *out = (struct product){.bias = -1, .c = p->output};
    const struct bench_value *v = &p->graph.outputs[p->output];
    v = take_activation(&p->graph, v, out);
    v = take_bias(p, v, out);
    const struct bench_call *product = product_call(&p->graph, v);
    if (!product)
        return bench_unsupported(call, "cuBLAS",
                                 "only matmul and bmm, with a bias vector, relu or gelu(tanh)");
    out->a = bench_tensor_arg(product, "a", 0);
    out->b = bench_tensor_arg(product, "b", 1);
    if (out->a < 0 || out->b < 0 || !bench_flag(product, "transposea", 2, 0, &out->transpose_a) ||
        !bench_flag(product, "transposeb", 3, 0, &out->transpose_b))
        return bench_unsupported(call, "cuBLAS", "a product whose operands are no task tensors");
    return shapes(call, p, out);
}
