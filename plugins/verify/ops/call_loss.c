/*
 * Calls of losses. Without `reduction`, the mean over all elements, as in PyTorch.
 */
#include "call.h"

#include <stdint.h>
#include <string.h>

static const char *const reductions[] = {"mean", "sum", "none", NULL};

static struct ops_value *reduced(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                                 struct ops_value *x)
{
    uint32_t how = ops_word_arg(ev, b, slot, reductions);
    if (how == 2 || !x)
        return x;
    uint32_t all = (1u << x->n_dims) - 1;
    return ops_reduce(ev, how ? ops_row_sum : ops_row_mean, NULL, 1, all, 0, x);
}

/* Broadcasting between input and target is refused: it is hardly ever meant. */
static int same_shape(struct ops_eval *ev, const struct ops_bound *b, const struct ops_value *x,
                      const struct ops_value *y)
{
    char text_x[256], text_y[256];
    if (!x || !y)
        return 0;
    if (x->n_dims == y->n_dims && !memcmp(x->dims, y->dims, x->n_dims * sizeof x->dims[0]))
        return 1;
    ops_stop(ev, b->node->column, "%s: input %s and target %s must have one shape", b->op->name,
             ops_shape_text(x->n_dims, x->dims, text_x, sizeof text_x),
             ops_shape_text(y->n_dims, y->dims, text_y, sizeof text_y));
    return 0;
}

/* Functions of input - target: mse, l1, smooth_l1 (beta), huber (delta). */
OPS_CALL(ops_call_difference_loss)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *y = ops_tensor_arg(ev, b, 1);
    uint32_t at = b->node->column;
    if (!same_shape(ev, b, x, y))
        return NULL;
    struct ops_value *d = ops_map2(ev, at, ops_sub, 1, x, y);
    if (b->op->unary)
        return reduced(ev, b, 2, ops_map1(ev, b->op->unary, b->op->flops, d));
    struct ops_value *edge = ops_number_arg(ev, b, 3, 1);
    return reduced(ev, b, 2, ops_map2(ev, at, b->op->binary, b->op->flops, d, edge));
}

/* max(log x, -100), as PyTorch clamps it. */
static struct ops_value *clamped_log(struct ops_eval *ev, uint32_t at, struct ops_value *x)
{
    return ops_map2(ev, at, ops_max, 1, ops_map1(ev, ops_log, 1, x), ops_number(ev, -100));
}

/* -(t log x + (1 - t) log(1 - x)). */
OPS_CALL(ops_call_binary_cross_entropy)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *t = ops_tensor_arg(ev, b, 1);
    struct ops_value *one = ops_number(ev, 1);
    uint32_t at = b->node->column;
    if (!same_shape(ev, b, x, t))
        return NULL;
    struct ops_value *not_x = ops_map2_exact(ev, at, ops_one_minus, 1, one, x);
    struct ops_value *yes = ops_map2(ev, at, ops_mul, 1, t, clamped_log(ev, at, x));
    struct ops_value *no = ops_map2(ev, at, ops_mul, 1, ops_map2(ev, at, ops_sub, 1, one, t),
                                    clamped_log(ev, at, not_x));
    struct ops_value *sum = ops_map2(ev, at, ops_add, 1, yes, no);
    return reduced(ev, b, 2, ops_map1(ev, ops_neg, 0, sum));
}

/* t (log t - x), 0 where t is 0; with log_target, e^t (t - x). */
OPS_CALL(ops_call_kl_div)
{
    static const char *const words[] = {"mean", "batchmean", "sum", "none", NULL};
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *t = ops_tensor_arg(ev, b, 1), *y;
    uint32_t at = b->node->column, how = ops_word_arg(ev, b, 2, words);
    int logs = ops_flag_arg(ev, b, 3, 0);
    if (!same_shape(ev, b, x, t))
        return NULL;
    if (logs)
        y = ops_map2(ev, at, ops_mul, 1, ops_map1(ev, ops_exp, 1, t),
                     ops_map2(ev, at, ops_sub, 1, t, x));
    else
        y = ops_map2(ev, at, ops_sub, 1, ops_map2(ev, at, ops_xlogy, 2, t, t),
                     ops_map2(ev, at, ops_mul, 1, t, x));
    if (how == 3)
        return y;
    uint32_t all = (1u << x->n_dims) - 1;
    struct ops_value *sum =
        ops_reduce(ev, how == 0 ? ops_row_mean : ops_row_sum, NULL, 1, all, 0, y);
    if (how != 1 || !x->n_dims)
        return sum;
    return ops_map2(ev, at, ops_div, 1, sum, ops_number(ev, (double)x->dims[0]));
}

/* x [batch, classes, ...] without its classes, or [classes] without any. */
static int targets_fit(struct ops_eval *ev, const struct ops_bound *b, uint32_t axis,
                       const struct ops_value *x, const struct ops_value *target)
{
    char text_x[256], text_t[256];
    int good = target->n_dims + 1 == x->n_dims;
    for (uint32_t d = 0; good && d < target->n_dims; d++)
        good = target->dims[d] == x->dims[d < axis ? d : d + 1];
    if (!good)
        ops_stop(ev, b->node->column,
                 "%s: target %s does not fit input %s; it needs the input's shape without the "
                 "classes (dimension %u)",
                 b->op->name, ops_shape_text(target->n_dims, target->dims, text_t, sizeof text_t),
                 ops_shape_text(x->n_dims, x->dims, text_x, sizeof text_x), axis);
    return good;
}

/* Of losses with ignored targets, the mean is over the others. */
static struct ops_value *mean_of_rest(struct ops_eval *ev, const struct ops_bound *b,
                                      int64_t ignored, struct ops_value *loss,
                                      struct ops_value *target)
{
    uint32_t at = b->node->column, all = (1u << loss->n_dims) - 1;
    if (!b->arg[3] || ops_word_arg(ev, b, 2, reductions) != 0)
        return reduced(ev, b, 2, loss);
    struct ops_value *counted =
        ops_map2_exact(ev, at, ops_ne, 0, target, ops_number(ev, (double)ignored));
    return ops_map2(ev, at, ops_div, 1, ops_reduce(ev, ops_row_sum, NULL, 1, all, 0, loss),
                    ops_reduce(ev, ops_row_sum, NULL, 0, all, 0, counted));
}

/* nll_loss, and cross_entropy, which takes log_softmax first and knows targets of probabilities. */
OPS_CALL(ops_call_nll_loss)
{
    struct ops_value *x = ops_tensor_arg(ev, b, 0), *target = ops_tensor_arg(ev, b, 1);
    int64_t ignored = ops_int_arg(ev, b, 3, INT64_MIN);
    uint32_t at = b->node->column;
    if (!target || !ops_has_dims(ev, b, 0, x, 1, RUNG_MAX_DIMS, "[batch, classes, ...]"))
        return NULL;
    uint32_t axis = x->n_dims > 1;
    if (b->op->scan)
        x = ops_scan(ev, b->op->scan, 5, 1u << axis, x);
    if (b->op->scan && x && target->n_dims == x->n_dims && same_shape(ev, b, x, target)) {
        struct ops_value *y = ops_map2(ev, at, ops_mul, 1, x, target);
        y = ops_reduce(ev, ops_row_sum, NULL, 1, 1u << axis, 0, y);
        return reduced(ev, b, 2, ops_map1(ev, ops_neg, 0, y));
    }
    if (!x || ev->status || !targets_fit(ev, b, axis, x, target))
        return NULL;
    struct ops_value *loss = ops_map1(ev, ops_neg, 0, ops_pick(ev, axis, ignored, x, target));
    return loss ? mean_of_rest(ev, b, ignored, loss, target) : NULL;
}
