/*
 * The operators by name: their parameters, and the binding of a call's arguments to them.
 */
#include "call.h"

#include <stdio.h>
#include <string.h>

#define UNARY(n, f, cost)                                                                          \
    {                                                                                              \
        .name = n, .params = {"x"}, .required = 1, .flops = cost, .call = ops_call_unary,          \
        .unary = f                                                                                 \
    }
#define BINARY(n, p, q, f)                                                                         \
    {                                                                                              \
        .name = n, .params = {p, q}, .required = 2, .flops = 1, .call = ops_call_binary,           \
        .binary = f                                                                                \
    }
#define COMPARE(n, f)                                                                              \
    {                                                                                              \
        .name = n, .params = {"x", "y"}, .required = 2, .flops = 1, .call = ops_call_compare,      \
        .binary = f                                                                                \
    }
#define REDUCE(n, f, cost)                                                                         \
    {                                                                                              \
        .name = n, .params = {"x", "axis", "keepdim"}, .required = 1, .flops = cost,               \
        .call = ops_call_reduce, .reduce = f                                                       \
    }
#define ARG(n, f)                                                                                  \
    {                                                                                              \
        .name = n, .params = {"x", "axis", "keepdim"}, .required = 1, .flops = 1,                  \
        .call = ops_call_arg, .reduce = f                                                          \
    }
#define SCAN(n, f, cost)                                                                           \
    {                                                                                              \
        .name = n, .params = {"x", "axis"}, .required = 2, .flops = cost, .call = ops_call_scan,   \
        .scan = f                                                                                  \
    }
#define CONV(n, dims)                                                                              \
    {                                                                                              \
        .name = n, .params = {"x", "w", "bias", "stride", "pad", "dilation", "groups"},            \
        .required = 2, .call = ops_call_conv, .variant = dims                                      \
    }
#define CONV_TRANSPOSE(n, dims)                                                                    \
    {                                                                                              \
        .name = n,                                                                                 \
        .params = {"x", "w", "bias", "stride", "pad", "dilation", "groups", "output_pad"},         \
        .required = 2, .call = ops_call_conv_transpose, .variant = dims                            \
    }
#define MAX_POOL(n, dims)                                                                          \
    {                                                                                              \
        .name = n, .params = {"x", "kernel", "stride", "pad", "dilation", "ceil_mode"},            \
        .required = 2, .call = ops_call_pool, .reduce = ops_row_max, .variant = dims               \
    }
#define MEAN_POOL(n, dims)                                                                         \
    {                                                                                              \
        .name = n, .params = {"x", "kernel", "stride", "pad", "count_include_pad", "ceil_mode"},   \
        .required = 2, .call = ops_call_pool, .variant = dims                                      \
    }
#define ADAPTIVE(n, f, dims)                                                                       \
    {                                                                                              \
        .name = n, .params = {"x", "output_size"}, .required = 2, .call = ops_call_adaptive_pool,  \
        .reduce = f, .variant = dims                                                               \
    }
#define LOSS(n, f, cost)                                                                           \
    {                                                                                              \
        .name = n, .params = {"input", "target", "reduction"}, .required = 2, .flops = cost,       \
        .call = ops_call_difference_loss, .unary = f                                               \
    }
#define EDGE_LOSS(n, p, f)                                                                         \
    {                                                                                              \
        .name = n, .params = {"input", "target", "reduction", p}, .required = 2, .flops = 4,       \
        .call = ops_call_difference_loss, .binary = f                                              \
    }
#define NLL(n, f)                                                                                  \
    {                                                                                              \
        .name = n, .params = {"input", "target", "reduction", "ignore_index"}, .required = 2,      \
        .call = ops_call_nll_loss, .scan = f                                                       \
    }
#define NORM(n, at_3, at_4, at_5, f)                                                               \
    {                                                                                              \
        .name = n, .params = {"x", "weight", "bias", at_3, at_4, at_5}, .required = 1, .call = f   \
    }
#define SHAPE(n, need, f, ...)                                                                     \
    {                                                                                              \
        .name = n, .params = {"x", __VA_ARGS__}, .required = need, .call = f                       \
    }

/* Sorted by name. */
static const struct ops_op ops[] = {
    UNARY("abs", ops_abs, 1),
    ADAPTIVE("adaptive_avgpool1d", NULL, 1),
    ADAPTIVE("adaptive_avgpool2d", NULL, 2),
    ADAPTIVE("adaptive_avgpool3d", NULL, 3),
    ADAPTIVE("adaptive_maxpool1d", ops_row_max, 1),
    ADAPTIVE("adaptive_maxpool2d", ops_row_max, 2),
    ADAPTIVE("adaptive_maxpool3d", ops_row_max, 3),
    ARG("argmax", ops_row_argmax),
    ARG("argmin", ops_row_argmin),
    {.name = "attention",
     .params = {"q", "k", "v", "causal", "scale", "mask"},
     .required = 3,
     .call = ops_call_attention},
    MEAN_POOL("avgpool1d", 1),
    MEAN_POOL("avgpool2d", 2),
    MEAN_POOL("avgpool3d", 3),
    NORM("batchnorm", "running_mean", "running_var", "eps", ops_call_batchnorm),
    {.name = "binary_cross_entropy",
     .params = {"input", "target", "reduction"},
     .required = 2,
     .call = ops_call_binary_cross_entropy},
    {.name = "bmm",
     .params = {"a", "b", "transpose_a", "transpose_b"},
     .required = 2,
     .call = ops_call_matmul},
    UNARY("ceil", ops_ceil, 1),
    SHAPE("clamp", 1, ops_call_clamp, "min", "max"),
    {.name = "concat", .params = {"axis"}, .call = ops_call_concat, .variadic = 1},
    CONV("conv1d", 1),
    CONV("conv2d", 2),
    CONV("conv3d", 3),
    CONV_TRANSPOSE("conv_transpose1d", 1),
    CONV_TRANSPOSE("conv_transpose2d", 2),
    CONV_TRANSPOSE("conv_transpose3d", 3),
    UNARY("cos", ops_cos, 1),
    NLL("cross_entropy", ops_row_log_softmax),
    SCAN("cumprod", ops_row_cumprod, 1),
    SCAN("cumsum", ops_row_cumsum, 1),
    {.name = "elu",
     .params = {"x", "alpha"},
     .required = 1,
     .flops = 3,
     .call = ops_call_slope,
     .binary = ops_elu},
    COMPARE("eq", ops_eq),
    UNARY("erf", ops_erf, 1),
    UNARY("exp", ops_exp, 1),
    UNARY("exp2", ops_exp2, 1),
    UNARY("expm1", ops_expm1, 1),
    SHAPE("flatten", 1, ops_call_flatten, "start", "end"),
    SHAPE("flip", 2, ops_call_flip, "axis"),
    UNARY("floor", ops_floor, 1),
    COMPARE("ge", ops_ge),
    SHAPE("gelu", 1, ops_call_gelu, "approximate"),
    NORM("groupnorm", "groups", "eps", NULL, ops_call_groupnorm),
    COMPARE("gt", ops_gt),
    UNARY("hardsigmoid", ops_hardsigmoid, 4),
    UNARY("hardswish", ops_hardswish, 5),
    SHAPE("hardtanh", 1, ops_call_hardtanh, "min", "max"),
    EDGE_LOSS("huber_loss", "delta", ops_huber),
    NORM("instancenorm", "eps", NULL, NULL, ops_call_instancenorm),
    {.name = "kl_div",
     .params = {"input", "target", "reduction", "log_target"},
     .required = 2,
     .call = ops_call_kl_div},
    LOSS("l1_loss", ops_abs, 1),
    NORM("layernorm", "axis", "eps", NULL, ops_call_layernorm),
    COMPARE("le", ops_le),
    {.name = "leaky_relu",
     .params = {"x", "slope"},
     .required = 1,
     .flops = 1,
     .call = ops_call_slope,
     .binary = ops_leaky_relu},
    UNARY("log", ops_log, 1),
    UNARY("log1p", ops_log1p, 1),
    UNARY("log2", ops_log2, 1),
    SCAN("log_softmax", ops_row_log_softmax, 5),
    UNARY("logsigmoid", ops_logsigmoid, 3),
    REDUCE("logsumexp", ops_row_logsumexp, 4),
    COMPARE("lt", ops_lt),
    {.name = "matmul",
     .params = {"a", "b", "transpose_a", "transpose_b"},
     .required = 2,
     .call = ops_call_matmul},
    REDUCE("max", ops_row_max, 1),
    BINARY("maximum", "x", "y", ops_max),
    MAX_POOL("maxpool1d", 1),
    MAX_POOL("maxpool2d", 2),
    MAX_POOL("maxpool3d", 3),
    REDUCE("mean", ops_row_mean, 1),
    REDUCE("min", ops_row_min, 1),
    BINARY("minimum", "x", "y", ops_min),
    UNARY("mish", ops_mish, 5),
    LOSS("mse_loss", ops_square, 1),
    SHAPE("narrow", 4, ops_call_narrow, "axis", "start", "length"),
    COMPARE("ne", ops_ne),
    NLL("nll_loss", NULL),
    {.name = "norm",
     .params = {"x", "axis", "keepdim", "p"},
     .required = 1,
     .flops = 2,
     .call = ops_call_reduce,
     .reduce = ops_row_norm},
    SHAPE("permute", 2, ops_call_permute, "axes"),
    BINARY("pow", "x", "exponent", ops_pow),
    REDUCE("prod", ops_row_prod, 1),
    UNARY("reciprocal", ops_reciprocal, 1),
    UNARY("relu", ops_relu, 1),
    UNARY("relu6", ops_relu6, 2),
    SHAPE("reshape", 2, ops_call_reshape, "shape"),
    SHAPE("rmsnorm", 1, ops_call_rmsnorm, "weight", "axis", "eps"),
    UNARY("round", ops_round, 1),
    UNARY("rsqrt", ops_rsqrt, 1),
    SHAPE("select", 3, ops_call_select, "axis", "index"),
    UNARY("selu", ops_selu, 4),
    UNARY("sigmoid", ops_sigmoid, 3),
    UNARY("sign", ops_sign, 1),
    UNARY("silu", ops_silu, 4),
    UNARY("sin", ops_sin, 1),
    SHAPE("slice", 2, ops_call_slice, "axis", "start", "end", "step"),
    EDGE_LOSS("smooth_l1_loss", "beta", ops_smooth_l1),
    SCAN("softmax", ops_row_softmax, 5),
    UNARY("softplus", ops_softplus, 3),
    UNARY("softsign", ops_softsign, 3),
    UNARY("sqrt", ops_sqrt, 1),
    UNARY("square", ops_square, 1),
    SHAPE("squeeze", 1, ops_call_squeeze, "axis"),
    REDUCE("sum", ops_row_sum, 1),
    UNARY("tanh", ops_tanh, 1),
    SHAPE("transpose", 1, ops_call_transpose, "dim0", "dim1"),
    {.name = "tril",
     .params = {"x", "diagonal"},
     .required = 1,
     .call = ops_call_triangle,
     .variant = 0},
    {.name = "triu",
     .params = {"x", "diagonal"},
     .required = 1,
     .call = ops_call_triangle,
     .variant = 1},
    SHAPE("unsqueeze", 2, ops_call_unsqueeze, "axis"),
    {.name = "var",
     .params = {"x", "axis", "keepdim", "unbiased"},
     .required = 1,
     .flops = 4,
     .call = ops_call_reduce,
     .reduce = ops_row_var},
    {.name = "where", .params = {"condition", "x", "y"}, .required = 3, .call = ops_call_where},
};

#define N_OPS ((uint32_t)(sizeof ops / sizeof ops[0]))

/* Names that other libraries give; underscores never count, so layer_norm is layernorm. */
static const struct {
    const char *other, *name;
} aliases[] = {{"cat", "concat"},
               {"huber", "huber_loss"},
               {"smoothl1", "smooth_l1_loss"},
               {"dim", "axis"},
               {"dims", "axes"},
               {"kernelsize", "kernel"},
               {"padding", "pad"},
               {"outputpadding", "output_pad"},
               {"numgroups", "groups"},
               {"negativeslope", "slope"},
               {"iscausal", "causal"},
               {"attnmask", "mask"},
               {"b", "bias"},
               {"scaleddotproductattention", "attention"}};

/* Whether two names are one but for underscores. */
static int same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "_");
        b += strspn(b, "_");
        if (*a != *b)
            return 0;
        if (!*a)
            return 1;
    }
}

static int means(const char *given, const char *name)
{
    if (same_name(given, name))
        return 1;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (same_name(given, aliases[i].other) && !strcmp(aliases[i].name, name))
            return 1;
    return 0;
}

static void *unknown_op(struct ops_eval *ev, const struct ops_node *node)
{
    const char *names[N_OPS];
    char list[700];
    size_t at = 0;
    for (uint32_t i = 0; i < N_OPS; i++) {
        names[i] = ops[i].name;
        if (at + strlen(names[i]) + 8 < sizeof list)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = ops_nearest(node->name, names, N_OPS);
    return ops_stop(ev, node->column, "unknown operator '%s'%s%s%s; known: %s, ...", node->name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static int32_t unknown_param(struct ops_eval *ev, const struct ops_op *op,
                             const struct ops_arg *arg)
{
    char list[160];
    size_t at = 0;
    uint32_t n = 0;
    list[0] = 0;
    for (; n < OPS_MAX_PARAMS && op->params[n]; n++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", n ? ", " : "", op->params[n]);
    const char *near = ops_nearest(arg->name, op->params, n);
    return ops_fail(&ev->who, RUNG_ECONFIG, arg->column,
                    "%s has no parameter '%s'%s%s%s; known: %s", op->name, arg->name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

/* The slot of an argument: by name, or the next position. */
static int32_t slot_of(struct ops_eval *ev, const struct ops_op *op, const struct ops_arg *arg,
                       uint32_t position, uint32_t *slot)
{
    const char *name = arg->name;
    for (*slot = name ? 0 : position; *slot < OPS_MAX_PARAMS && op->params[*slot]; ++*slot)
        if (!name || means(name, op->params[*slot]))
            return RUNG_OK;
    if (name)
        return unknown_param(ev, op, arg);
    return ops_fail(&ev->who, RUNG_ECONFIG, arg->column, "%s takes %u arguments at most", op->name,
                    position);
}

static int32_t bind(struct ops_eval *ev, struct ops_bound *b)
{
    uint32_t position = 0, slot;
    for (const struct ops_arg *arg = b->node->args; arg; arg = arg->next) {
        if (b->op->variadic && !arg->name)
            continue;
        int32_t status = slot_of(ev, b->op, arg, position, &slot);
        if (status)
            return status;
        if (b->arg[slot])
            return ops_fail(&ev->who, RUNG_ECONFIG, arg->column, "%s: %s is given twice",
                            b->op->name, b->op->params[slot]);
        b->arg[slot] = arg->value;
        b->column[slot] = arg->column;
        position += !arg->name;
    }
    for (slot = 0; slot < b->op->required; slot++)
        if (!b->arg[slot])
            return ops_fail(&ev->who, RUNG_ECONFIG, b->node->column, "%s: %s is missing",
                            b->op->name, b->op->params[slot]);
    return RUNG_OK;
}

struct ops_value *ops_call(struct ops_eval *ev, const struct ops_node *node)
{
    struct ops_bound b = {.node = node};
    for (uint32_t i = 0; i < N_OPS && !b.op; i++)
        if (means(node->name, ops[i].name))
            b.op = &ops[i];
    if (!b.op)
        return unknown_op(ev, node);
    ev->status = bind(ev, &b);
    return ev->status ? NULL : b.op->call(ev, &b);
}
