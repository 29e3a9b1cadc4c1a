/*
 * Calls of operators that move elements.
 */
#include "call.h"

#include <string.h>

OPS_CALL(ops_call_transpose)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!ops_has_dims(ev, b, 0, x, 2, RUNG_MAX_DIMS, "reshape it"))
        return NULL;
    uint32_t d0 = ops_axis_arg(ev, b, 1, x->n_dims, -2);
    return ops_swap_axes(ev, d0, ops_axis_arg(ev, b, 2, x->n_dims, -1), x);
}

OPS_CALL(ops_call_permute)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t list[RUNG_MAX_DIMS];
    uint32_t perm[RUNG_MAX_DIMS] = {0}, seen = 0, n = ops_list_arg(ev, b, 1, list);
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = list[i] < 0 ? list[i] + x->n_dims : list[i];
        if (axis >= 0 && axis < x->n_dims) {
            perm[i] = (uint32_t)axis;
            seen |= 1u << axis;
        }
    }
    if (n != x->n_dims || seen != (1u << n) - 1)
        return ops_wrong(ev, b, 1, "must name every dimension once");
    return ops_permute(ev, perm, x);
}

/* One extent may be -1: what is left. */
OPS_CALL(ops_call_reshape)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t dims[RUNG_MAX_DIMS];
    uint64_t known = 1;
    uint32_t n = ops_list_arg(ev, b, 1, dims), open = RUNG_MAX_DIMS;
    if (!x || ev->status)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (dims[i] == -1 && open == RUNG_MAX_DIMS)
            open = i;
        else if (dims[i] < 1 || __builtin_mul_overflow(known, (uint64_t)dims[i], &known))
            return ops_wrong(ev, b, 1, "must be extents from 1 on, one of them perhaps -1");
    }
    if (open < RUNG_MAX_DIMS)
        dims[open] = x->n % known ? 1 : (int64_t)(x->n / known);
    return ops_reshape(ev, b->node->column, n, dims, x);
}

OPS_CALL(ops_call_flatten)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t dims[RUNG_MAX_DIMS] = {1};
    uint32_t n = 0;
    if (!x)
        return NULL;
    if (!x->n_dims)
        return ops_reshape(ev, b->node->column, 1, dims, x);
    uint32_t first = ops_axis_arg(ev, b, 1, x->n_dims, 0);
    uint32_t last = ops_axis_arg(ev, b, 2, x->n_dims, -1);
    if (first > last)
        return ops_wrong(ev, b, 1, "must not come after end");
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (d > first && d <= last)
            dims[n - 1] *= x->dims[d];
        else
            dims[n++] = x->dims[d];
    return ops_reshape(ev, b->node->column, n, dims, x);
}

OPS_CALL(ops_call_squeeze)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n = 0;
    if (!x)
        return NULL;
    uint32_t axes = ops_axes_arg(ev, b, 1, x->n_dims);
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (!(axes >> d & 1) || x->dims[d] != 1)
            dims[n++] = x->dims[d];
    return ops_reshape(ev, b->node->column, n, dims, x);
}

OPS_CALL(ops_call_unsqueeze)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t dims[RUNG_MAX_DIMS];
    if (!ops_has_dims(ev, b, 0, x, 0, RUNG_MAX_DIMS - 1, "no more than that"))
        return NULL;
    uint32_t axis = ops_axis_arg(ev, b, 1, x->n_dims + 1, 0);
    for (uint32_t d = 0; d <= x->n_dims; d++)
        dims[d] = d == axis ? 1 : x->dims[d < axis ? d : d - 1];
    return ops_reshape(ev, b->node->column, x->n_dims + 1, dims, x);
}

/* ---- parts ---- */

static int has_axes(struct ops_eval *ev, const struct ops_bound *b, const struct ops_value *x)
{
    return ops_has_dims(ev, b, 0, x, 1, RUNG_MAX_DIMS, "a single number has no parts");
}

/* As Python's x[start:end:step] along an axis; start and end are cut to the tensor. */
OPS_CALL(ops_call_slice)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!has_axes(ev, b, x))
        return NULL;
    uint32_t axis = ops_axis_arg(ev, b, 1, x->n_dims, 0);
    int64_t extent = x->dims[axis], start = ops_int_arg(ev, b, 2, 0);
    int64_t end = ops_int_arg(ev, b, 3, extent), step = ops_int_arg(ev, b, 4, 1);
    if (step < 1)
        return ops_wrong(ev, b, 4, "must be at least 1; use flip to go backwards");
    start = start < -extent ? 0 : start < 0 ? start + extent : start;
    end = end < 0 ? end + extent : end > extent ? extent : end;
    if (start >= end)
        return ops_stop(ev, b->node->column, "slice: no elements from %lld to %lld of %lld",
                        (long long)start, (long long)end, (long long)extent);
    return ops_slice(ev, axis, start, step, (end - start - 1) / step + 1, x);
}

OPS_CALL(ops_call_narrow)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!has_axes(ev, b, x))
        return NULL;
    uint32_t axis = ops_axis_arg(ev, b, 1, x->n_dims, 0);
    int64_t extent = x->dims[axis], start = ops_int_arg(ev, b, 2, 0);
    int64_t length = ops_int_arg(ev, b, 3, 1);
    start += start < 0 && start >= -extent ? extent : 0;
    if (start < 0 || start >= extent || length < 1 || length > extent - start)
        return ops_stop(ev, b->node->column, "narrow: %lld elements from %lld on of %lld",
                        (long long)length, (long long)start, (long long)extent);
    return ops_slice(ev, axis, start, 1, length, x);
}

OPS_CALL(ops_call_select)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int64_t dims[RUNG_MAX_DIMS];
    uint32_t n = 0;
    if (!has_axes(ev, b, x))
        return NULL;
    uint32_t axis = ops_axis_arg(ev, b, 1, x->n_dims, 0);
    int64_t extent = x->dims[axis], index = ops_int_arg(ev, b, 2, 0);
    index += index < 0 && index >= -extent ? extent : 0;
    if (index < 0 || index >= extent)
        return ops_wrong(ev, b, 2, "is outside the dimension");
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (d != axis)
            dims[n++] = x->dims[d];
    return ops_reshape(ev, b->node->column, n, dims, ops_slice(ev, axis, index, 1, 1, x));
}

OPS_CALL(ops_call_flip)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!has_axes(ev, b, x))
        return NULL;
    uint32_t axes = ops_axes_arg(ev, b, 1, x->n_dims);
    for (uint32_t d = 0; x && d < x->n_dims; d++)
        if (axes >> d & 1)
            x = ops_slice(ev, d, x->dims[d] - 1, -1, x->dims[d], x);
    return x;
}

OPS_CALL(ops_call_triangle)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!ops_has_dims(ev, b, 0, x, 2, RUNG_MAX_DIMS, "the last two are rows and columns"))
        return NULL;
    return ops_triangle(ev, (int)b->op->variant, ops_int_arg(ev, b, 1, 0), 0, x);
}

/* concat(a, b, ..., axis=) or concat([a, b, ...], axis=). */
OPS_CALL(ops_call_concat)
{
    enum { MOST = 64 };
    struct ops_value *in[MOST] = {NULL};
    uint32_t n = 0;
    const struct ops_arg *arg = b->node->args;
    if (arg && !arg->name && arg->value->kind == OPS_LIST)
        arg = arg->value->args;
    for (; arg; arg = arg->next) {
        if (arg->name)
            continue;
        if (n == MOST)
            return ops_stop(ev, arg->column, "concat: more than %d tensors", MOST);
        in[n++] = ops_expression(ev, arg->value);
    }
    if (!n)
        return ops_stop(ev, b->node->column, "concat: no tensors");
    if (!in[0])
        return NULL;
    if (!in[0]->n_dims)
        return ops_stop(ev, b->node->column, "concat: single numbers; reshape them to [1]");
    return ops_concat(ev, b->node->column, ops_axis_arg(ev, b, 0, in[0]->n_dims, 0), in, n);
}
