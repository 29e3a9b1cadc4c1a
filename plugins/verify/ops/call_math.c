/*
 * Calls of elementwise operators, reductions, scans and matrix products.
 */
#include "call.h"

#include <string.h>

OPS_CALL(ops_call_unary)
{
    struct ops_value *x =
        b->op->unary == ops_exp ? ops_exponent(ev, b->arg[0]) : ops_tensor_arg(ev, b, 0);
    return ops_map1(ev, b->op->unary, b->op->flops, x);
}

OPS_CALL(ops_call_gelu)
{
    static const char *const forms[] = {"none", "tanh", NULL};
    uint32_t form = ops_word_arg(ev, b, 1, forms);
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    return ops_map1(ev, form ? ops_gelu_tanh : ops_gelu, form ? 9 : 5, x);
}

OPS_CALL(ops_call_binary)
{
    return ops_combine(ev, b, 1, b->op->binary, b->op->flops, ops_tensor_arg(ev, b, 0));
}

OPS_CALL(ops_call_compare)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *y = ops_tensor_arg(ev, b, 1);
    return ops_map2_exact(ev, b->node->column, b->op->binary, b->op->flops, x, y);
}

OPS_CALL(ops_call_clamp)
{
    if (!b->arg[1] && !b->arg[2])
        return ops_stop(ev, b->node->column, "clamp: give min, max or both");
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    return ops_combine(ev, b, 2, ops_min, 1, ops_combine(ev, b, 1, ops_max, 1, x));
}

OPS_CALL(ops_call_hardtanh)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    struct ops_value *low = ops_number_arg(ev, b, 1, -1), *high = ops_number_arg(ev, b, 2, 1);
    x = ops_map2(ev, b->node->column, ops_max, 1, x, low);
    return ops_map2(ev, b->node->column, ops_min, 1, x, high);
}

/* leaky_relu and elu: x and a number with a standard value. */
OPS_CALL(ops_call_slope)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    struct ops_value *slope = ops_number_arg(ev, b, 1, b->op->binary == ops_elu ? 1 : 0.01);
    return ops_map2(ev, b->node->column, b->op->binary, b->op->flops, x, slope);
}

OPS_CALL(ops_call_where)
{
    struct ops_value *condition = ops_tensor_arg(ev, b, 0);
    struct ops_value *x = ops_tensor_arg(ev, b, 1), *y = ops_tensor_arg(ev, b, 2);
    return ops_map3(ev, b->node->column, ops_where, 0, condition, x, y);
}

/* (x, axis, keepdim, unbiased | p); norm takes p = 1 or 2. */
OPS_CALL(ops_call_reduce)
{
    struct ops_row_options opt = {1};
    ops_reduce_fn f = b->op->reduce;
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!x)
        return NULL;
    uint32_t axes = ops_axes_arg(ev, b, 1, x->n_dims);
    int keepdim = ops_flag_arg(ev, b, 2, 0);
    if (f == ops_row_var)
        opt.unbiased = ops_flag_arg(ev, b, 3, 1);
    int64_t p = f == ops_row_norm ? ops_int_arg(ev, b, 3, 2) : 2;
    if (p != 1 && p != 2)
        return ops_wrong(ev, b, 3, "must be 1 or 2");
    if (p == 1)
        return ops_reduce(ev, ops_row_sum, NULL, b->op->flops, axes, keepdim,
                          ops_map1(ev, ops_abs, 0, x));
    return ops_reduce(ev, f, &opt, b->op->flops, axes, keepdim, x);
}

/* Along one axis; without, over all elements in row-major order. */
OPS_CALL(ops_call_arg)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!x)
        return NULL;
    int keepdim = ops_flag_arg(ev, b, 2, 0);
    uint32_t axes = ops_axes_arg(ev, b, 1, x->n_dims);
    if (b->arg[1] && axes & (axes - 1))
        return ops_wrong(ev, b, 1, "must name one dimension");
    return ops_reduce(ev, b->op->reduce, NULL, b->op->flops, axes, keepdim, x);
}

OPS_CALL(ops_call_scan)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!x)
        return NULL;
    uint32_t axes = ops_axes_arg(ev, b, 1, x->n_dims);
    if (axes & (axes - 1))
        return ops_wrong(ev, b, 1, "must name one dimension");
    return ops_scan(ev, b->op->scan, b->op->flops, axes, x);
}

/* An operand of a product, transposed when the flag in its slot says so. */
static struct ops_value *operand(struct ops_eval *ev, const struct ops_bound *b, uint32_t index)
{
    int flip = ops_flag_arg(ev, b, index + 2, 0), batched = !strcmp(b->op->name, "bmm");
    struct ops_value *x = ops_tensor_arg(ev, b, index);
    uint32_t least = batched ? 3 : flip ? 2 : 1;
    if (!ops_has_dims(ev, b, index, x, least, batched ? 3 : RUNG_MAX_DIMS,
                      batched ? "use matmul" : "reshape it"))
        return NULL;
    return flip ? ops_swap_axes(ev, x->n_dims - 2, x->n_dims - 1, x) : x;
}

OPS_CALL(ops_call_matmul)
{
    struct ops_value *x = operand(ev, b, 0), *y = operand(ev, b, 1);
    return ops_matmul(ev, b->node->column, x, y);
}
