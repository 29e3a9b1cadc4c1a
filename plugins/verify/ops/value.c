/*
 * Values of a graph: building them, the boxes that are wanted of each, and running them in order.
 */
#include "attr.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ops_stop(struct ops_eval *ev, uint32_t column, const char *format, ...)
{
    char text[900];
    va_list args;
    if (ev->status)
        return NULL;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ev->status = ops_fail(&ev->who, RUNG_ECONFIG, column, "%s", text);
    return NULL;
}

const char *ops_shape_text(uint32_t n_dims, const int64_t *dims, char *buf, uint64_t size)
{
    uint64_t at = (uint64_t)snprintf(buf, size, "[");
    for (uint32_t i = 0; i < n_dims && at + 24 < size; i++)
        at += (uint64_t)snprintf(buf + at, size - at, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(buf + at, size - at, "]");
    return buf;
}

/* ---- building ---- */

static void *copy(struct ops_eval *ev, const void *from, uint64_t size)
{
    void *to = ev->who.host->alloc(ev->who.host, ev->who.call->arena, size ? size : 1, 8);
    if (!to && !ev->status)
        ev->status = ops_no_memory(&ev->who);
    if (to && size)
        memcpy(to, from, size);
    return to;
}

static int shape_of(struct ops_eval *ev, uint32_t column, uint32_t n_dims, const int64_t *dims,
                    struct ops_value *v)
{
    char text[256];
    v->n = 1;
    v->n_dims = n_dims;
    if (n_dims > RUNG_MAX_DIMS)
        return !!ops_stop(ev, column, "more than %d dimensions", RUNG_MAX_DIMS);
    for (uint32_t i = 0; i < n_dims; i++) {
        v->dims[i] = dims[i];
        if (dims[i] < 1 || __builtin_mul_overflow(v->n, (uint64_t)dims[i], &v->n) ||
            v->n > UINT64_MAX / 64)
            return !!ops_stop(ev, column, "a tensor of shape %s can't be had",
                              ops_shape_text(n_dims, dims, text, sizeof text));
    }
    return 1;
}

struct ops_value *ops_value_new(struct ops_eval *ev, uint32_t column,
                                const struct ops_kernel *kernel, uint32_t n_dims,
                                const int64_t *dims, struct ops_value *const *in, uint32_t n_in,
                                const void *attr, uint64_t attr_size)
{
    struct ops_value v = {.kernel = kernel, .n_in = n_in};
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i])
            return NULL;
    if (ev->status || !shape_of(ev, column, n_dims, dims, &v))
        return NULL;
    v.attr = copy(ev, attr, attr_size);
    v.in = copy(ev, in, n_in * sizeof(struct ops_value *));
    struct ops_value *out = copy(ev, &v, sizeof v);
    if (!v.attr || !v.in || !out)
        return NULL;
    *ev->end = out;
    ev->end = &out->next;
    return out;
}

static int32_t run_input(const struct ops_step *step)
{
    (void)step; /* decoded by the driver, which owns the tensor */
    return RUNG_OK;
}

const struct ops_kernel ops_input_kernel = {.run = run_input};

struct ops_value *ops_input(struct ops_eval *ev, uint32_t tensor,
                            const struct rung_tensor_view *view)
{
    int64_t shape[RUNG_MAX_DIMS];
    const struct rung_tensor_spec *spec = &ev->task->tensors[tensor];
    struct rung_tensor_view none = {0};
    ev->status = ops_task_shape(&ev->who, ev->task, ev->dims, tensor, shape);
    struct ops_value *v = ops_value_new(ev, 0, &ops_input_kernel, spec->n_dims, shape, NULL, 0,
                                        view ? view : &none, sizeof *view);
    if (v)
        v->is_mask = spec->dtype == RUNG_BOOL;
    return v;
}

static int32_t run_scalar(const struct ops_step *step)
{
    const struct ops_num *x = step->value->attr;
    step->out->v[0] = x->v;
    step->out->e[0] = x->e;
    return RUNG_OK;
}

const struct ops_kernel ops_scalar_kernel = {.run = run_scalar};

struct ops_value *ops_scalar(struct ops_eval *ev, struct ops_num number)
{
    return ops_value_new(ev, 0, &ops_scalar_kernel, 0, NULL, NULL, 0, &number, sizeof number);
}

/* ---- boxes ---- */

struct ops_box ops_whole(const struct ops_value *v)
{
    struct ops_box box = {{0}, {0}};
    memcpy(box.count, v->dims, sizeof box.count);
    return box;
}

int ops_box_empty(const struct ops_box *box, uint32_t n_dims)
{
    for (uint32_t d = 0; d < n_dims; d++)
        if (box->count[d] < 1)
            return 1;
    return 0;
}

void ops_box_join(struct ops_box *box, const struct ops_box *other, uint32_t n_dims)
{
    for (uint32_t d = 0; d < n_dims; d++) {
        int64_t end = box->start[d] + box->count[d], more = other->start[d] + other->count[d];
        box->start[d] = box->start[d] < other->start[d] ? box->start[d] : other->start[d];
        box->count[d] = (end > more ? end : more) - box->start[d];
    }
}

void ops_want(struct ops_value *v, const struct ops_box *box)
{
    if (v->readers++)
        ops_box_join(&v->want, box, v->n_dims);
    else
        v->want = *box;
}

static struct ops_box need_of(const struct ops_value *v, const struct ops_box *want, uint32_t input)
{
    struct ops_box box = ops_whole(v->in[input]);
    if (v->kernel->need)
        v->kernel->need(v, want, input, &box);
    return box;
}

/* From the last value to the first: readers come after what they read. */
static int32_t spread_wants(struct ops_eval *ev)
{
    uint64_t n = 0, at = 0;
    for (struct ops_value *v = ev->first; v; v = v->next)
        n++;
    struct ops_value **all = calloc(n + 1, sizeof *all);
    if (!all)
        return ops_no_memory(&ev->who);
    for (struct ops_value *v = ev->first; v; v = v->next)
        all[at++] = v;
    while (at-- > 0) {
        struct ops_value *v = all[at];
        for (uint32_t i = 0; v->readers && i < v->n_in; i++) {
            struct ops_box box = need_of(v, &v->want, i);
            if (!ops_box_empty(&box, v->in[i]->n_dims))
                ops_want(v->in[i], &box);
        }
    }
    free(all);
    return RUNG_OK;
}

/* ---- running ---- */

void ops_copy_box(const double *from, double *to, uint32_t n_dims, const struct ops_box *in,
                  const struct ops_box *box)
{
    int64_t strides[RUNG_MAX_DIMS], index[RUNG_MAX_DIMS] = {0}, at = 0;
    uint64_t n = 1, run = n_dims ? (uint64_t)box->count[n_dims - 1] : 1;
    ops_strides(n_dims, in->count, strides);
    for (uint32_t d = 0; d < n_dims; d++) {
        at += (box->start[d] - in->start[d]) * strides[d];
        n *= d + 1 < n_dims ? (uint64_t)box->count[d] : 1;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(to + i * run, from + at, run * sizeof *to);
        if (n_dims)
            ops_advance(n_dims - 1, box->count, strides, index, &at);
    }
}

static int32_t crop(struct ops_eval *ev, const struct ops_value *v, const struct ops_box *box,
                    struct ops_tensor **out)
{
    uint64_t bytes = v->n_dims * sizeof box->start[0];
    if (!memcmp(box->start, v->want.start, bytes) && !memcmp(box->count, v->want.count, bytes)) {
        *out = v->data;
        v->data->refs++;
        return RUNG_OK;
    }
    int32_t status = ops_tensor_new(ev, v->n_dims, box->count, v->data->e != NULL, out);
    if (status)
        return status;
    ops_copy_box(v->data->v, (*out)->v, v->n_dims, &v->want, box);
    if (v->data->e)
        ops_copy_box(v->data->e, (*out)->e, v->n_dims, &v->want, box);
    return RUNG_OK;
}

int32_t ops_take(struct ops_eval *ev, struct ops_value *v, const struct ops_box *box,
                 struct ops_tensor **out)
{
    int32_t status = crop(ev, v, box, out);
    if (--v->readers == 0) {
        ops_tensor_drop(v->data);
        v->data = NULL;
    }
    return status;
}

/* The operand whose memory the result may take: nobody else's, and of the same extents. */
static struct ops_tensor *reusable(const struct ops_value *v, struct ops_tensor **in)
{
    for (uint32_t i = 0; v->kernel->in_place && i < v->n_in; i++)
        if (in[i] && in[i]->refs == 1 && in[i]->n_dims == v->n_dims &&
            !memcmp(in[i]->dims, v->want.count, v->n_dims * sizeof in[i]->dims[0]))
            return in[i];
    return NULL;
}

static int32_t result(struct ops_eval *ev, struct ops_value *v, struct ops_tensor **in)
{
    v->data = reusable(v, in);
    if (!v->data)
        return ops_tensor_new(ev, v->n_dims, v->want.count, 1, &v->data);
    v->data->refs++;
    return ops_tensor_need_errors(ev, v->data);
}

static int32_t operands(struct ops_eval *ev, struct ops_value *v, struct ops_box *from,
                        struct ops_tensor **in)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < v->n_in && !status; i++) {
        from[i] = need_of(v, &v->want, i);
        if (!ops_box_empty(&from[i], v->in[i]->n_dims))
            status = ops_take(ev, v->in[i], &from[i], &in[i]);
    }
    return status;
}

/* Errors that are all 0 (moved or clipped inputs) would cost products a third sum. */
static void forget_zero_errors(struct ops_tensor *t)
{
    uint64_t i = 0;
    while (t->e && i < t->n && t->e[i] == 0)
        i++;
    if (t->e && i == t->n)
        ops_tensor_drop_errors(t);
}

static int32_t compute(struct ops_eval *ev, struct ops_value *v)
{
    if (v->kernel == &ops_input_kernel)
        return ops_decode(ev, v->attr, &v->want, &v->data);
    struct ops_tensor **in = calloc(v->n_in + 1, sizeof *in);
    struct ops_box *from = calloc(v->n_in + 1, sizeof *from);
    int32_t status = in && from ? operands(ev, v, from, in) : ops_no_memory(&ev->who);
    if (!status)
        status = result(ev, v, in);
    if (!status) {
        struct ops_step step = {ev, v, &v->want, from, in, v->data};
        status = v->kernel->run(&step);
        if (!status)
            forget_zero_errors(v->data);
    }
    for (uint32_t i = 0; in && i < v->n_in; i++)
        ops_tensor_drop(in[i]);
    free(from);
    free(in);
    return status;
}

static int32_t cancelled(struct ops_eval *ev)
{
    if (!ev->who.call->cancel || !ev->who.host->is_cancelled(ev->who.host, ev->who.call->cancel))
        return RUNG_OK;
    return ops_fail(&ev->who, RUNG_ECANCELLED, 0, "cancelled");
}

int32_t ops_run(struct ops_eval *ev)
{
    int32_t status = spread_wants(ev);
    for (struct ops_value *v = ev->first; v && !status; v = v->next)
        if (v->readers) {
            status = cancelled(ev);
            if (!status)
                status = compute(ev, v);
        }
    return status;
}

void ops_values_end(struct ops_eval *ev)
{
    for (struct ops_value *v = ev->first; v; v = v->next) {
        ops_tensor_drop(v->data);
        v->data = NULL;
    }
    ev->first = NULL;
    ev->end = &ev->first;
}
