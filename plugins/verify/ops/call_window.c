/*
 * Calls of convolutions and pooling: windows, their shapes and what can be wrong with them.
 */
#include "call.h"

#include <stdio.h>
#include <string.h>

/* x must be [batch, channels, space...]. */
static int spatial(struct ops_eval *ev, const struct ops_bound *b, const struct ops_value *x)
{
    uint32_t n = b->op->variant;
    static const char *const forms[] = {"", "[batch, channels, length]",
                                        "[batch, channels, height, width]",
                                        "[batch, channels, depth, height, width]"};
    return ops_has_dims(ev, b, 0, x, n + 2, n + 2, forms[n]);
}

/* Stride, padding and dilation from slots `first` on; "same" pads so that the shape stays. */
static void strides_of(struct ops_eval *ev, const struct ops_bound *b, uint32_t first,
                       struct ops_window *w)
{
    const struct ops_node *pad = b->arg[first + 1];
    int same = pad && pad->kind == OPS_NAME && !strcmp(pad->name, "same");
    ops_each_arg(ev, b, first, w->n, 1, 1, w->stride);
    ops_each_arg(ev, b, first + 2, w->n, 1, 1, w->dilation);
    if (!same)
        ops_each_arg(ev, b, first + 1, w->n, 0, 0, w->before);
    for (uint32_t d = 0; d < w->n; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d];
        if (same && w->stride[d] != 1)
            ops_wrong(ev, b, first + 1, "same needs stride=1");
        w->before[d] = same ? reach / 2 : w->before[d];
        w->after[d] = same ? reach - reach / 2 : w->before[d];
    }
}

static void *too_wide(struct ops_eval *ev, const struct ops_bound *b, const struct ops_window *w,
                      const struct ops_value *x)
{
    char shape[256], kernel[128];
    return ops_stop(ev, b->node->column,
                    "%s: a kernel of %s (with its dilation) is wider than the padded input %s; "
                    "raise pad or use a smaller kernel",
                    b->op->name, ops_shape_text(w->n, w->kernel, kernel, sizeof kernel),
                    ops_shape_text(x->n_dims, x->dims, shape, sizeof shape));
}

/* Extents of what slides over x. All numbers are below 2^31, kernels of pools too. */
static int slide(struct ops_eval *ev, const struct ops_bound *b, const struct ops_value *x,
                 int ceil_mode, struct ops_window *w)
{
    for (uint32_t d = 0; d < w->n && !ev->status; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
        int64_t room = x->dims[2 + d] + w->before[d] + w->after[d] - reach;
        if (x->dims[2 + d] > INT32_MAX || room < 0)
            return too_wide(ev, b, w, x) != NULL;
        w->out[d] = (room + (ceil_mode ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
        if (ceil_mode && (w->out[d] - 1) * w->stride[d] >= x->dims[2 + d] + w->before[d])
            w->out[d]--; /* a last window must start inside, or in the padding before */
    }
    return !ev->status;
}

/* Weights against input: dimension `at` of w holds the channels of a group (or all of them). */
static int weights_fit(struct ops_eval *ev, const struct ops_bound *b, int transposed,
                       int64_t groups, const struct ops_value *x, const struct ops_value *w)
{
    char shape[256], weights[256];
    ops_shape_text(x->n_dims, x->dims, shape, sizeof shape);
    ops_shape_text(w->n_dims, w->dims, weights, sizeof weights);
    int64_t channels = x->dims[1], has = transposed ? w->dims[0] : w->dims[1];
    if (groups < 1 || channels % groups || (!transposed && w->dims[0] % groups)) {
        ops_stop(ev, b->node->column,
                 "%s: groups=%lld must divide the channels of input %s and weights %s", b->op->name,
                 (long long)groups, shape, weights);
        return 0;
    }
    if (has == (transposed ? channels : channels / groups))
        return 1;
    ops_stop(ev, b->node->column,
             "%s: input %s has %lld channels, weights %s are for %lld; weights are %s", b->op->name,
             shape, (long long)channels, weights, (long long)(transposed ? has : has * groups),
             transposed ? "[channels, out / groups, kernel...]"
                        : "[out, channels / groups, kernel...]");
    return 0;
}

static struct ops_value *with_bias(struct ops_eval *ev, const struct ops_bound *b,
                                   struct ops_value *y)
{
    if (!b->arg[2] || !y)
        return y;
    return ops_map2(ev, b->node->column, ops_add, 1, y, ops_channels(ev, b, 2, y));
}

/* Input and weights; 0 when they are no good. */
static int conv_operands(struct ops_eval *ev, const struct ops_bound *b, struct ops_value **x,
                         struct ops_value **w, struct ops_window *win)
{
    win->n = b->op->variant;
    *x = ops_tensor_arg(ev, b, 0);
    *w = ops_tensor_arg(ev, b, 1);
    if (!*w || !spatial(ev, b, *x) ||
        !ops_has_dims(ev, b, 1, *w, win->n + 2, win->n + 2, "channels, channels and the kernel"))
        return 0;
    for (uint32_t d = 0; d < win->n; d++) {
        win->kernel[d] = (*w)->dims[2 + d];
        if (win->kernel[d] > INT32_MAX)
            return too_wide(ev, b, win, *x) != NULL;
    }
    return 1;
}

/* (x, w, bias, stride, pad, dilation, groups) */
OPS_CALL(ops_call_conv)
{
    struct ops_window win = {0};
    struct ops_value *x, *w;
    int64_t groups = ops_int_arg(ev, b, 6, 1);
    if (!conv_operands(ev, b, &x, &w, &win))
        return NULL;
    strides_of(ev, b, 3, &win);
    if (ev->status || !weights_fit(ev, b, 0, groups, x, w) || !slide(ev, b, x, 0, &win))
        return NULL;
    return with_bias(ev, b, ops_conv(ev, &win, groups, 0, x, w));
}

/* (x, w, bias, stride, pad, dilation, groups, output_pad) */
OPS_CALL(ops_call_conv_transpose)
{
    struct ops_window win = {0};
    struct ops_value *x, *w;
    int64_t more[OPS_MAX_SPACE], groups = ops_int_arg(ev, b, 6, 1);
    if (!conv_operands(ev, b, &x, &w, &win))
        return NULL;
    strides_of(ev, b, 3, &win);
    ops_each_arg(ev, b, 7, win.n, 0, 0, more);
    if (ev->status || !weights_fit(ev, b, 1, groups, x, w))
        return NULL;
    for (uint32_t d = 0; d < win.n; d++) {
        int64_t reach = (win.kernel[d] - 1) * win.dilation[d] + 1;
        if (x->dims[2 + d] > INT32_MAX)
            return too_wide(ev, b, &win, x);
        win.out[d] =
            (x->dims[2 + d] - 1) * win.stride[d] - win.before[d] - win.after[d] + reach + more[d];
        if (more[d] >= win.stride[d] && more[d] >= win.dilation[d])
            return ops_wrong(ev, b, 7, "must be smaller than stride or dilation");
        if (win.out[d] < 1)
            return ops_wrong(ev, b, 4, "leaves nothing of the result; make it smaller");
    }
    return with_bias(ev, b, ops_conv(ev, &win, groups, 1, x, w));
}

/* (x, kernel, stride, pad, then dilation | count_include_pad, ceil_mode); op->reduce: maximum. */
OPS_CALL(ops_call_pool)
{
    struct ops_window win = {.n = b->op->variant, .dilation = {1, 1, 1}};
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    int largest = b->op->reduce == ops_row_max;
    enum ops_pool_kind kind = OPS_POOL_MAX;
    if (!spatial(ev, b, x))
        return NULL;
    ops_each_arg(ev, b, 1, win.n, 1, 1, win.kernel);
    memcpy(win.stride, win.kernel, sizeof win.stride);
    if (b->arg[2])
        ops_each_arg(ev, b, 2, win.n, 1, 1, win.stride);
    ops_each_arg(ev, b, 3, win.n, 0, 0, win.before);
    memcpy(win.after, win.before, sizeof win.after);
    if (largest)
        ops_each_arg(ev, b, 4, win.n, 1, 1, win.dilation);
    else
        kind = ops_flag_arg(ev, b, 4, 1) ? OPS_POOL_MEAN_PADDED : OPS_POOL_MEAN;
    for (uint32_t d = 0; d < win.n; d++)
        if (win.before[d] > win.kernel[d] / 2)
            return ops_wrong(ev, b, 3, "must be at most half the kernel");
    if (!slide(ev, b, x, ops_flag_arg(ev, b, 5, 0), &win))
        return NULL;
    return ops_pool(ev, &win, kind, 0, x);
}

/* (x, output_size) */
OPS_CALL(ops_call_adaptive_pool)
{
    struct ops_window win = {.n = b->op->variant, .dilation = {1, 1, 1}};
    struct ops_value *x = ops_tensor_arg(ev, b, 0);
    if (!spatial(ev, b, x))
        return NULL;
    ops_each_arg(ev, b, 1, win.n, 1, 1, win.out);
    for (uint32_t d = 0; d < win.n; d++)
        if (x->dims[2 + d] > INT32_MAX)
            return too_wide(ev, b, &win, x);
    return ops_pool(ev, &win, b->op->reduce == ops_row_max ? OPS_POOL_MAX : OPS_POOL_MEAN, 1, x);
}
