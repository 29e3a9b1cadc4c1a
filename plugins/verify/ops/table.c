/*
 * The operators by name: their parameters, and the binding of a call's arguments to them. Names and
 * meaning are PyTorch's.
 */
#include "ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMS 6

struct op;

/* A call with its arguments in the order of the operator's parameters; NULL where not given. */
struct bound {
    const struct op *op;
    const struct ops_node *node;
    const struct ops_node *arg[MAX_PARAMS];
    uint32_t column[MAX_PARAMS];
};

struct op {
    const char *name;
    const char *params[MAX_PARAMS]; /* the first `required` must be given */
    uint32_t required;
    double flops; /* an element; an elementary function is 1 */
    int32_t (*call)(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out);
    ops_unary unary;
    ops_binary binary;
    ops_reduce_fn reduce;
    ops_scan_fn scan;
};

/* ---- arguments ---- */

static int32_t wrong(struct ops_eval *ev, const struct bound *b, uint32_t slot, const char *what)
{
    return ops_fail(&ev->who, RUNG_ECONFIG, b->column[slot], "%s: %s %s", b->op->name,
                    b->op->params[slot], what);
}

static int32_t int_arg(struct ops_eval *ev, const struct bound *b, uint32_t slot, int64_t standard,
                       int64_t *out)
{
    *out = standard;
    return b->arg[slot] ? ops_integer(&ev->who, ev->task, ev->dims, b->arg[slot], out) : RUNG_OK;
}

static int32_t flag_arg(struct ops_eval *ev, const struct bound *b, uint32_t slot, int standard,
                        int *out)
{
    static const char *const words[] = {"false", "False", "true", "True"};
    const struct ops_node *node = b->arg[slot];
    int64_t value;
    for (int i = 0; node && node->kind == OPS_NAME && i < 4; i++)
        if (!strcmp(node->name, words[i])) {
            *out = i >= 2;
            return RUNG_OK;
        }
    int32_t status = int_arg(ev, b, slot, standard, &value);
    if (!status && value != 0 && value != 1)
        return wrong(ev, b, slot, "must be 0 or 1");
    *out = (int)value;
    return status;
}

static int32_t one_axis(struct ops_eval *ev, const struct bound *b, uint32_t slot,
                        const struct ops_node *node, uint32_t n_dims, uint32_t *out)
{
    int64_t axis;
    char text[96];
    int32_t status = ops_integer(&ev->who, ev->task, ev->dims, node, &axis);
    if (status)
        return status;
    if (axis < -(int64_t)n_dims || axis >= (int64_t)n_dims) {
        snprintf(text, sizeof text, "%lld is outside a tensor of %u dimensions", (long long)axis,
                 n_dims);
        return wrong(ev, b, slot, text);
    }
    *out = (uint32_t)(axis < 0 ? axis + n_dims : axis);
    return RUNG_OK;
}

/* An axis or a list of axes, as a mask; all when not given. */
static int32_t axes_arg(struct ops_eval *ev, const struct bound *b, uint32_t slot, uint32_t n_dims,
                        uint32_t *mask)
{
    const struct ops_node *node = b->arg[slot];
    uint32_t axis;
    *mask = node ? 0 : (1u << n_dims) - 1;
    if (node && node->kind != OPS_LIST) {
        int32_t status = one_axis(ev, b, slot, node, n_dims, &axis);
        *mask = status ? 0 : 1u << axis;
        return status;
    }
    for (const struct ops_arg *a = node ? node->args : NULL; a; a = a->next) {
        int32_t status = one_axis(ev, b, slot, a->value, n_dims, &axis);
        if (status)
            return status;
        if (*mask >> axis & 1)
            return wrong(ev, b, slot, "names a dimension twice");
        *mask |= 1u << axis;
    }
    return *mask || !n_dims ? RUNG_OK : wrong(ev, b, slot, "is an empty list");
}

static int32_t tensor_arg(struct ops_eval *ev, const struct bound *b, uint32_t slot,
                          struct ops_tensor **out)
{
    return ops_expression(ev, b->arg[slot], out);
}

/* ---- calls ---- */

static int32_t call_unary(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    int32_t status =
        b->op->unary == ops_exp ? ops_exponent(ev, b->arg[0], &x) : tensor_arg(ev, b, 0, &x);
    return status ? status : ops_map1(ev, b->op->unary, b->op->flops, x, out);
}

static int32_t call_gelu(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    const struct ops_node *word = b->arg[1];
    int known = !word || (word->kind == OPS_NAME &&
                          (!strcmp(word->name, "tanh") || !strcmp(word->name, "none")));
    if (!known)
        return wrong(ev, b, 1, "must be tanh or none");
    int tanh_form = word && !strcmp(word->name, "tanh");
    struct ops_tensor *x;
    int32_t status = tensor_arg(ev, b, 0, &x);
    return status ? status
                  : ops_map1(ev, tanh_form ? ops_gelu_tanh : ops_gelu, tanh_form ? 9 : 5, x, out);
}

/* x combined with the argument in a slot; x passes through when it is not given. */
static int32_t combine(struct ops_eval *ev, const struct bound *b, uint32_t slot, ops_binary f,
                       double flops, struct ops_tensor *x, struct ops_tensor **out)
{
    struct ops_tensor *y;
    *out = x;
    if (!b->arg[slot])
        return RUNG_OK;
    int32_t status = tensor_arg(ev, b, slot, &y);
    if (status) {
        ops_tensor_drop(x);
        *out = NULL;
        return status;
    }
    return ops_map2(ev, b->node->column, f, flops, x, y, out);
}

static int32_t call_binary(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    int32_t status = tensor_arg(ev, b, 0, &x);
    return status ? status : combine(ev, b, 1, b->op->binary, b->op->flops, x, out);
}

static int32_t call_clamp(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    if (!b->arg[1] && !b->arg[2])
        return ops_fail(&ev->who, RUNG_ECONFIG, b->node->column, "clamp: give min, max or both");
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (!status)
        status = combine(ev, b, 1, ops_max, 1, x, &x);
    return status ? status : combine(ev, b, 2, ops_min, 1, x, out);
}

static int32_t call_leaky_relu(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x, *slope;
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (status || b->arg[1])
        return status ? status : combine(ev, b, 1, ops_leaky_relu, 1, x, out);
    status = ops_scalar(ev, ops_constant(0.01, &ev->arith), &slope);
    if (!status)
        return ops_map2(ev, b->node->column, ops_leaky_relu, 1, x, slope, out);
    ops_tensor_drop(x);
    return status;
}

/* (x, axis, keepdim, unbiased | p); norm takes p = 1 or 2. */
static int32_t call_reduce(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_row_options opt = {1};
    ops_reduce_fn f = b->op->reduce;
    struct ops_tensor *x;
    uint32_t axes = 0;
    int64_t p = 2;
    int keepdim = 0, norm = f == ops_row_norm;
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (status)
        return status;
    status = axes_arg(ev, b, 1, x->n_dims, &axes);
    if (!status)
        status = flag_arg(ev, b, 2, 0, &keepdim);
    if (!status && b->op->params[3])
        status = norm ? int_arg(ev, b, 3, 2, &p) : flag_arg(ev, b, 3, 1, &opt.unbiased);
    if (!status && p != 1 && p != 2)
        status = wrong(ev, b, 3, "must be 1 or 2");
    if (!status && p == 1) {
        f = ops_row_sum;
        status = ops_map1(ev, ops_abs, 0, x, &x);
        x = status ? NULL : x;
    }
    if (!status)
        return ops_reduce(ev, f, &opt, b->op->flops, axes, keepdim, x, out);
    ops_tensor_drop(x);
    return status;
}

static int32_t call_scan(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    uint32_t axes;
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (status)
        return status;
    status = axes_arg(ev, b, 1, x->n_dims, &axes);
    if (!status && axes & (axes - 1))
        status = wrong(ev, b, 1, "must name one dimension");
    if (!status)
        return ops_scan(ev, b->op->scan, b->op->flops, axes, x, out);
    ops_tensor_drop(x);
    return status;
}

static int32_t call_transpose(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (status)
        return status;
    uint32_t d[2] = {x->n_dims - 2, x->n_dims - 1};
    if (x->n_dims < 2)
        status =
            ops_fail(&ev->who, RUNG_ECONFIG, b->node->column, "transpose: fewer than 2 dimensions");
    for (uint32_t i = 0; !status && i < 2; i++)
        if (b->arg[i + 1])
            status = one_axis(ev, b, i + 1, b->arg[i + 1], x->n_dims, &d[i]);
    if (!status)
        return ops_transpose(ev, d[0], d[1], x, out);
    ops_tensor_drop(x);
    return status;
}

/* An operand of a product, transposed when the flag in `slot` says so. */
static int32_t operand(struct ops_eval *ev, const struct bound *b, uint32_t index,
                       struct ops_tensor **out)
{
    int flip = 0, batched = !strcmp(b->op->name, "bmm");
    int32_t status = flag_arg(ev, b, index + 2, 0, &flip);
    if (!status)
        status = tensor_arg(ev, b, index, out);
    if (status)
        return status;
    uint32_t n_dims = (*out)->n_dims;
    if (n_dims < 2 || (batched && n_dims != 3)) {
        ops_tensor_drop(*out);
        return wrong(ev, b, index,
                     batched ? "must have 3 dimensions" : "must have at least 2 dimensions");
    }
    return flip ? ops_transpose(ev, n_dims - 2, n_dims - 1, *out, out) : RUNG_OK;
}

static int32_t call_matmul(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x, *y;
    int32_t status = operand(ev, b, 0, &x);
    if (status)
        return status;
    status = operand(ev, b, 1, &y);
    if (!status)
        return ops_matmul(ev, b->node->column, x, y, out);
    ops_tensor_drop(x);
    return status;
}

/* sqrt(var(x) + eps) over the normalised dimensions; x stays the caller's. */
static int32_t deviation(struct ops_eval *ev, const struct bound *b, uint32_t axes,
                         struct ops_tensor *x, struct ops_tensor **out)
{
    struct ops_row_options biased = {0};
    struct ops_tensor *var, *eps;
    x->refs++;
    int32_t status = ops_reduce(ev, ops_row_var, &biased, 3, axes, 1, x, &var);
    if (status)
        return status;
    status = b->arg[4] ? tensor_arg(ev, b, 4, &eps)
                       : ops_scalar(ev, ops_constant(1e-5, &ev->arith), &eps);
    if (status) {
        ops_tensor_drop(var);
        return status;
    }
    status = ops_map2(ev, b->node->column, ops_add, 1, var, eps, &var);
    return status ? status : ops_map1(ev, ops_sqrt, 1, var, out);
}

/* (x - mean) / sqrt(var + eps) over dimensions axis.. to the last. Consumes x. */
static int32_t normalise(struct ops_eval *ev, const struct bound *b, uint32_t axes,
                         struct ops_tensor *x, struct ops_tensor **out)
{
    struct ops_tensor *mean = NULL, *dev = NULL;
    x->refs++;
    int32_t status = ops_reduce(ev, ops_row_centre, NULL, 1, axes, 1, x, &mean);
    if (!status)
        status = deviation(ev, b, axes, x, &dev);
    if (status) {
        ops_tensor_drop(mean);
        ops_tensor_drop(x);
        return status;
    }
    status = ops_map2(ev, b->node->column, ops_sub, 1, x, mean, &x);
    if (!status)
        return ops_map2(ev, b->node->column, ops_div, 1, x, dev, out);
    ops_tensor_drop(dev);
    return status;
}

static int32_t call_layernorm(struct ops_eval *ev, const struct bound *b, struct ops_tensor **out)
{
    struct ops_tensor *x;
    uint32_t axis;
    int32_t status = tensor_arg(ev, b, 0, &x);
    if (status)
        return status;
    axis = x->n_dims - 1;
    if (!x->n_dims)
        status =
            ops_fail(&ev->who, RUNG_ECONFIG, b->node->column, "layernorm: x has no dimensions");
    else if (b->arg[3])
        status = one_axis(ev, b, 3, b->arg[3], x->n_dims, &axis);
    if (status) {
        ops_tensor_drop(x);
        return status;
    }
    uint32_t axes = ((1u << x->n_dims) - 1) & ~((1u << axis) - 1);
    status = normalise(ev, b, axes, x, &x);
    if (!status)
        status = combine(ev, b, 1, ops_mul, 1, x, &x);
    return status ? status : combine(ev, b, 2, ops_add, 1, x, out);
}

/* ---- the table ---- */

#define UNARY(n, f, cost)                                                                          \
    {                                                                                              \
        .name = n, .params = {"x"}, .required = 1, .flops = cost, .call = call_unary, .unary = f   \
    }
#define BINARY(n, p, q, f)                                                                         \
    {                                                                                              \
        .name = n, .params = {p, q}, .required = 2, .flops = 1, .call = call_binary, .binary = f   \
    }
#define REDUCE(n, f, cost)                                                                         \
    {                                                                                              \
        .name = n, .params = {"x", "axis", "keepdim"}, .required = 1, .flops = cost,               \
        .call = call_reduce, .reduce = f                                                           \
    }
#define SCAN(n, f, cost)                                                                           \
    {                                                                                              \
        .name = n, .params = {"x", "axis"}, .required = 2, .flops = cost, .call = call_scan,       \
        .scan = f                                                                                  \
    }

/* Sorted by name. */
static const struct op ops[] = {
    UNARY("abs", ops_abs, 1),
    {.name = "bmm",
     .params = {"a", "b", "transpose_a", "transpose_b"},
     .required = 2,
     .call = call_matmul},
    {.name = "clamp", .params = {"x", "min", "max"}, .required = 1, .call = call_clamp},
    UNARY("cos", ops_cos, 1),
    SCAN("cumsum", ops_row_cumsum, 1),
    UNARY("erf", ops_erf, 1),
    UNARY("exp", ops_exp, 1),
    {.name = "gelu", .params = {"x", "approximate"}, .required = 1, .call = call_gelu},
    UNARY("hardswish", ops_hardswish, 5),
    {.name = "layernorm",
     .params = {"x", "weight", "bias", "axis", "eps"},
     .required = 1,
     .call = call_layernorm},
    {.name = "leaky_relu", .params = {"x", "slope"}, .required = 1, .call = call_leaky_relu},
    UNARY("log", ops_log, 1),
    SCAN("log_softmax", ops_row_log_softmax, 5),
    REDUCE("logsumexp", ops_row_logsumexp, 4),
    {.name = "matmul",
     .params = {"a", "b", "transpose_a", "transpose_b"},
     .required = 2,
     .call = call_matmul},
    REDUCE("max", ops_row_max, 1),
    BINARY("maximum", "x", "y", ops_max),
    REDUCE("mean", ops_row_mean, 1),
    REDUCE("min", ops_row_min, 1),
    BINARY("minimum", "x", "y", ops_min),
    UNARY("mish", ops_mish, 5),
    {.name = "norm",
     .params = {"x", "axis", "keepdim", "p"},
     .required = 1,
     .flops = 2,
     .call = call_reduce,
     .reduce = ops_row_norm},
    BINARY("pow", "x", "exponent", ops_pow),
    REDUCE("prod", ops_row_prod, 1),
    UNARY("relu", ops_relu, 1),
    UNARY("sigmoid", ops_sigmoid, 3),
    UNARY("silu", ops_silu, 4),
    UNARY("sin", ops_sin, 1),
    SCAN("softmax", ops_row_softmax, 5),
    UNARY("softplus", ops_softplus, 3),
    UNARY("sqrt", ops_sqrt, 1),
    REDUCE("sum", ops_row_sum, 1),
    UNARY("tanh", ops_tanh, 1),
    {.name = "transpose", .params = {"x", "dim0", "dim1"}, .required = 1, .call = call_transpose},
    {.name = "var",
     .params = {"x", "axis", "keepdim", "unbiased"},
     .required = 1,
     .flops = 4,
     .call = call_reduce,
     .reduce = ops_row_var},
};

#define N_OPS ((uint32_t)(sizeof ops / sizeof ops[0]))

static int32_t unknown_op(struct ops_eval *ev, const struct ops_node *node)
{
    const char *names[N_OPS];
    char list[600];
    size_t at = 0;
    for (uint32_t i = 0; i < N_OPS; i++) {
        names[i] = ops[i].name;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = ops_nearest(node->name, names, N_OPS);
    return ops_fail(&ev->who, RUNG_ECONFIG, node->column, "unknown operator '%s'%s%s%s; known: %s",
                    node->name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                    list);
}

static int32_t unknown_param(struct ops_eval *ev, const struct op *op, const struct ops_arg *arg)
{
    char list[160];
    size_t at = 0;
    uint32_t n = 0;
    list[0] = 0;
    for (; n < MAX_PARAMS && op->params[n]; n++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", n ? ", " : "", op->params[n]);
    const char *near = ops_nearest(arg->name, op->params, n);
    return ops_fail(&ev->who, RUNG_ECONFIG, arg->column,
                    "%s has no parameter '%s'%s%s%s; known: %s", op->name, arg->name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

/* The slot of an argument: by name (PyTorch's dim is axis), or the next position. */
static int32_t slot_of(struct ops_eval *ev, const struct op *op, const struct ops_arg *arg,
                       uint32_t position, uint32_t *slot)
{
    const char *name = arg->name;
    if (name && !strcmp(name, "dim"))
        name = "axis";
    for (*slot = name ? 0 : position; *slot < MAX_PARAMS && op->params[*slot]; ++*slot)
        if (!name || !strcmp(op->params[*slot], name))
            return RUNG_OK;
    if (name)
        return unknown_param(ev, op, arg);
    return ops_fail(&ev->who, RUNG_ECONFIG, arg->column, "%s takes %u arguments at most", op->name,
                    position);
}

static int32_t bind(struct ops_eval *ev, struct bound *b)
{
    uint32_t position = 0, slot;
    for (const struct ops_arg *arg = b->node->args; arg; arg = arg->next) {
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

int32_t ops_call(struct ops_eval *ev, const struct ops_node *node, struct ops_tensor **out)
{
    struct bound b = {.node = node};
    for (uint32_t i = 0; i < N_OPS && !b.op; i++)
        if (!strcmp(ops[i].name, node->name))
            b.op = &ops[i];
    if (!b.op)
        return unknown_op(ev, node);
    int32_t status = bind(ev, &b);
    return status ? status : b.op->call(ev, &b, out);
}
