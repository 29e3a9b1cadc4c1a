/*
 * Calls of normalisations and attention, put together from reductions, maps and products.
 */
#include "call.h"

#include <math.h>
#include <string.h>

/* (x - mean) / sqrt(var + eps) over the axes. */
static struct ops_value *normalise(struct ops_eval *ev, const struct ops_bound *b,
                                   uint32_t eps_slot, uint32_t axes, struct ops_value *x)
{
    struct ops_row_options biased = {0};
    uint32_t at = b->node->column;
    struct ops_value *eps = ops_number_arg(ev, b, eps_slot, 1e-5);
    struct ops_value *mean = ops_reduce(ev, ops_row_centre, NULL, 1, axes, 1, x);
    struct ops_value *var = ops_reduce(ev, ops_row_var, &biased, 3, axes, 1, x);
    struct ops_value *dev = ops_map1(ev, ops_sqrt, 1, ops_map2(ev, at, ops_add, 1, var, eps));
    return ops_map2(ev, at, ops_div, 1, ops_map2(ev, at, ops_sub, 1, x, mean), dev);
}

/* y * weight + bias, both over channels and optional. */
static struct ops_value *affine(struct ops_eval *ev, const struct ops_bound *b, struct ops_value *y)
{
    if (b->arg[1])
        y = ops_map2(ev, b->node->column, ops_mul, 1, y, ops_channels(ev, b, 1, y));
    if (b->arg[2] && y)
        y = ops_map2(ev, b->node->column, ops_add, 1, y, ops_channels(ev, b, 2, y));
    return y;
}

/* Axes from the one in the slot (the last when not given) to the last. */
static uint32_t trailing_axes(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                              const struct ops_value *x)
{
    uint32_t axis = ops_axis_arg(ev, b, slot, x->n_dims, -1);
    return ((1u << x->n_dims) - 1) & ~((1u << axis) - 1);
}

OPS_CALL(ops_call_layernorm)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!ops_has_dims(ev, b, 0, x, 1, RUNG_MAX_DIMS, "there is nothing to normalise over"))
        return NULL;
    x = normalise(ev, b, 4, trailing_axes(ev, b, 3, x), x);
    return ops_combine(ev, b, 2, ops_add, 1, ops_combine(ev, b, 1, ops_mul, 1, x));
}

/* x / sqrt(mean(x^2) + eps) weight; eps is 1e-6 when not given. */
OPS_CALL(ops_call_rmsnorm)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *eps = ops_number_arg(ev, b, 3, 1e-6);
    uint32_t at = b->node->column;
    if (!ops_has_dims(ev, b, 0, x, 1, RUNG_MAX_DIMS, "there is nothing to normalise over"))
        return NULL;
    struct ops_value *squares = ops_map2(ev, at, ops_mul, 1, x, x);
    struct ops_value *mean =
        ops_reduce(ev, ops_row_mean, NULL, 1, trailing_axes(ev, b, 2, x), 1, squares);
    struct ops_value *root = ops_map1(ev, ops_sqrt, 1, ops_map2(ev, at, ops_add, 1, mean, eps));
    return ops_combine(ev, b, 1, ops_mul, 1, ops_map2(ev, at, ops_div, 1, x, root));
}

/* x [batch, channels, ...]: over the channels of a group and all that follows. */
OPS_CALL(ops_call_groupnorm)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t groups = ops_int_arg(ev, b, 3, 1), dims[3];
    if (!ops_has_dims(ev, b, 0, x, 2, RUNG_MAX_DIMS, "[batch, channels, ...]"))
        return NULL;
    if (groups < 1 || x->dims[1] % groups)
        return ops_stop(ev, b->node->column, "groupnorm: groups=%lld does not divide %lld channels",
                        (long long)groups, (long long)x->dims[1]);
    dims[0] = x->dims[0];
    dims[1] = groups;
    dims[2] = (int64_t)(x->n / (uint64_t)dims[0] / (uint64_t)groups);
    struct ops_value *y = ops_reshape(ev, b->node->column, 3, dims, x);
    y = normalise(ev, b, 4, 1u << 2, y);
    return affine(ev, b, ops_reshape(ev, b->node->column, x->n_dims, x->dims, y));
}

/* With running statistics as in inference: what is fixed may be folded into x * scale + shift. */
static struct ops_value *running(struct ops_eval *ev, const struct ops_bound *b,
                                 struct ops_value *x)
{
    uint32_t at = b->node->column;
    struct ops_value *mean = ops_channels(ev, b, 3, x), *var = ops_channels(ev, b, 4, x);
    struct ops_value *eps = ops_number_arg(ev, b, 5, 1e-5);
    struct ops_value *dev = ops_map1(ev, ops_sqrt, 1, ops_map2(ev, at, ops_add, 1, var, eps));
    return ops_map2(ev, at, ops_div, 1, ops_map2(ev, at, ops_sub_in_exp, 1, x, mean), dev);
}

OPS_CALL(ops_call_batchnorm)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!ops_has_dims(ev, b, 0, x, 2, RUNG_MAX_DIMS, "[batch, channels, ...]"))
        return NULL;
    if (!b->arg[3] != !b->arg[4])
        return ops_stop(ev, b->node->column,
                        "batchnorm: give running_mean and running_var, or neither (statistics of "
                        "the batch)");
    uint32_t axes = ((1u << x->n_dims) - 1) & ~2u;
    return affine(ev, b, b->arg[3] ? running(ev, b, x) : normalise(ev, b, 5, axes, x));
}

/* Over all that follows the channels. */
OPS_CALL(ops_call_instancenorm)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!ops_has_dims(ev, b, 0, x, 3, RUNG_MAX_DIMS, "[batch, channels, space...]"))
        return NULL;
    return affine(ev, b, normalise(ev, b, 3, ((1u << x->n_dims) - 1) & ~3u, x));
}

/* ---- attention ---- */

/* Where a mask of dtype bool is false, and beyond the diagonal, scores are -infinity. */
static struct ops_value *masked(struct ops_eval *ev, const struct ops_bound *b, int causal,
                                struct ops_value *scores)
{
    uint32_t at = b->node->column;
    struct ops_value *mask = ops_tensor_arg(ev, b, 5);
    if (mask && mask->is_mask)
        scores = ops_map3(ev, at, ops_where, 0, mask, scores, ops_number(ev, -INFINITY));
    else if (b->arg[5])
        scores = ops_map2(ev, at, ops_add, 1, scores, mask);
    return causal ? ops_triangle(ev, 0, 0, -INFINITY, scores) : scores;
}

/* Share of the scores that a causal mask keeps. */
static double kept(const struct ops_value *scores)
{
    double rows = (double)scores->dims[scores->n_dims - 2];
    double columns = (double)scores->dims[scores->n_dims - 1];
    double square = rows < columns ? rows : columns;
    return (square * (square + 1) / 2 + (rows - square) * columns) / (rows * columns);
}

/* softmax(q k^T scale + mask) v over the last two dimensions. */
OPS_CALL(ops_call_attention)
{
    struct ops_value *in[3];
    uint32_t at = b->node->column;
    double before = ev->flops;
    int causal = ops_flag_arg(ev, b, 3, 0);
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = ops_tensor_arg(ev, b, i);
        if (!ops_has_dims(ev, b, i, in[i], 2, RUNG_MAX_DIMS, "[..., length, features]"))
            return NULL;
    }
    double width = (double)in[0]->dims[in[0]->n_dims - 1];
    struct ops_value *scale = ops_number_arg(ev, b, 4, 1 / sqrt(width));
    struct ops_value *k = ops_swap_axes(ev, in[1]->n_dims - 2, in[1]->n_dims - 1, in[1]);
    struct ops_value *scores = ops_map2(ev, at, ops_mul, 1, ops_matmul(ev, at, in[0], k), scale);
    scores = masked(ev, b, causal, scores);
    if (!scores)
        return NULL;
    struct ops_value *p =
        ops_scan(ev, ops_row_softmax_fused, 5, 1u << (scores->n_dims - 1), scores);
    struct ops_value *y = ops_matmul(ev, at, p, in[2]);
    if (causal)
        ev->flops = before + (ev->flops - before) * kept(scores);
    return y;
}
