/*
 * Arguments of calls: numbers, flags, words, axes, lists, tensors.
 */
#include "call.h"

#include <stdio.h>
#include <string.h>

void *ops_wrong(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, const char *what)
{
    return ops_stop(ev, b->column[slot] ? b->column[slot] : b->node->column, "%s: %s %s",
                    b->op->name, b->op->params[slot], what);
}

static int64_t integer(struct ops_eval *ev, const struct ops_node *node)
{
    int64_t value = 0;
    if (!ev->status)
        ev->status = ops_integer(&ev->who, ev->task, ev->dims, node, &value);
    return ev->status ? 0 : value;
}

int64_t ops_int_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, int64_t standard)
{
    return b->arg[slot] ? integer(ev, b->arg[slot]) : standard;
}

int ops_flag_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, int standard)
{
    static const char *const words[] = {"false", "False", "true", "True"};
    const struct ops_node *node = b->arg[slot];
    for (int i = 0; node && node->kind == OPS_NAME && i < 4; i++)
        if (!strcmp(node->name, words[i]))
            return i >= 2;
    int64_t value = ops_int_arg(ev, b, slot, standard);
    if (value != 0 && value != 1)
        ops_wrong(ev, b, slot, "must be 0 or 1");
    return value == 1;
}

uint32_t ops_word_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      const char *const *words)
{
    const struct ops_node *node = b->arg[slot];
    char list[160] = "must be ";
    size_t at = strlen(list);
    for (uint32_t i = 0; words[i]; i++) {
        if (!node || (node->kind == OPS_NAME && !strcmp(node->name, words[i])))
            return i;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                               i == 0         ? ""
                               : words[i + 1] ? ", "
                                              : " or ",
                               words[i]);
    }
    ops_wrong(ev, b, slot, list);
    return 0;
}

static uint32_t one_axis(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                         int64_t axis, uint32_t n_dims)
{
    char text[96];
    if (axis >= -(int64_t)n_dims && axis < (int64_t)n_dims)
        return (uint32_t)(axis < 0 ? axis + n_dims : axis);
    snprintf(text, sizeof text, "%lld is outside a tensor of %u dimensions", (long long)axis,
             n_dims);
    ops_wrong(ev, b, slot, text);
    return 0;
}

uint32_t ops_axis_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      uint32_t n_dims, int64_t standard)
{
    return one_axis(ev, b, slot, ops_int_arg(ev, b, slot, standard), n_dims);
}

uint32_t ops_axes_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      uint32_t n_dims)
{
    const struct ops_node *node = b->arg[slot];
    if (!node)
        return (1u << n_dims) - 1;
    if (node->kind != OPS_LIST)
        return 1u << one_axis(ev, b, slot, integer(ev, node), n_dims);
    uint32_t mask = 0;
    for (const struct ops_arg *a = node->args; a && !ev->status; a = a->next) {
        uint32_t axis = one_axis(ev, b, slot, integer(ev, a->value), n_dims);
        if (mask >> axis & 1)
            ops_wrong(ev, b, slot, "names a dimension twice");
        mask |= 1u << axis;
    }
    if (!mask)
        ops_wrong(ev, b, slot, "is an empty list");
    return mask;
}

uint32_t ops_list_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, int64_t *out)
{
    const struct ops_node *node = b->arg[slot];
    uint32_t n = 0;
    char text[64];
    if (node->kind != OPS_LIST) {
        out[0] = integer(ev, node);
        return 1;
    }
    snprintf(text, sizeof text, "has more than %d entries", RUNG_MAX_DIMS);
    for (const struct ops_arg *a = node->args; a; a = a->next) {
        if (n == RUNG_MAX_DIMS) {
            ops_wrong(ev, b, slot, text);
            break;
        }
        out[n++] = integer(ev, a->value);
    }
    return n;
}

void ops_each_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, uint32_t n,
                  int64_t standard, int64_t least, int64_t *out)
{
    int64_t list[RUNG_MAX_DIMS] = {standard};
    uint32_t count = b->arg[slot] ? ops_list_arg(ev, b, slot, list) : 1;
    char text[96];
    for (uint32_t d = 0; d < n; d++) {
        out[d] = count == n ? list[d] : list[0];
        if (out[d] >= least && out[d] <= INT32_MAX && (count == n || count == 1))
            continue;
        snprintf(text, sizeof text, "must be one number or %u, each from %lld to %d", n,
                 (long long)least, INT32_MAX);
        ops_wrong(ev, b, slot, text);
        out[d] = least > 0 ? least : 1;
    }
}

struct ops_value *ops_tensor_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot)
{
    return b->arg[slot] ? ops_expression(ev, b->arg[slot]) : NULL;
}

struct ops_value *ops_number(struct ops_eval *ev, double v)
{
    return ops_scalar(ev, ops_constant(v, &ev->arith));
}

struct ops_value *ops_number_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                                 double standard)
{
    return b->arg[slot] ? ops_expression(ev, b->arg[slot]) : ops_number(ev, standard);
}

int ops_has_dims(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                 const struct ops_value *x, uint32_t least, uint32_t most, const char *remedy)
{
    char shape[256], text[640];
    if (!x || (x->n_dims >= least && x->n_dims <= most))
        return x != NULL;
    ops_shape_text(x->n_dims, x->dims, shape, sizeof shape);
    if (least == most)
        snprintf(text, sizeof text, "has shape %s, but must have %u dimensions: %s", shape, least,
                 remedy);
    else
        snprintf(text, sizeof text, "has shape %s, but must have at least %u dimensions: %s", shape,
                 least, remedy);
    ops_wrong(ev, b, slot, text);
    return 0;
}

struct ops_value *ops_combine(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                              ops_binary f, double flops, struct ops_value *x)
{
    if (!b->arg[slot] || !x)
        return x;
    return ops_map2(ev, b->node->column, f, flops, x, ops_tensor_arg(ev, b, slot));
}

struct ops_value *ops_channels(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                               const struct ops_value *x)
{
    struct ops_value *w = ops_tensor_arg(ev, b, slot);
    int64_t dims[RUNG_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    char shape[256], whole[256], text[640];
    if (!w || !x)
        return NULL;
    if (w->n_dims != 1 || w->dims[0] != x->dims[1]) {
        snprintf(text, sizeof text,
                 "has shape %s, but must be a vector of the %lld channels (dimension 1 of %s)",
                 ops_shape_text(w->n_dims, w->dims, shape, sizeof shape), (long long)x->dims[1],
                 ops_shape_text(x->n_dims, x->dims, whole, sizeof whole));
        return ops_wrong(ev, b, slot, text);
    }
    dims[0] = w->dims[0];
    return ops_reshape(ev, b->node->column, x->n_dims - 1, dims, w);
}
