/*
 * Where the elements of a tensor lie: row-major without gaps, or by the strides that the task
 * states. Pure.
 */
#include "task/task.h"
#include "base/status.h"

static const int64_t MAX_EXTENT = INT64_C(1) << 40;

static void lay_dense(uint32_t n_dims, struct rung_layout *l)
{
    int64_t stride = 1;
    for (uint32_t d = n_dims; d-- > 0;) {
        l->strides[d] = stride;
        if (l->shape[d] > 0 && l->elements > 0)
            stride *= l->shape[d];
    }
    l->extent = l->elements;
}

static int32_t read_strides(const struct rung_task *task, const struct rung_tensor_spec *t,
                            const int64_t *dims, struct rung_layout *l, struct rung_error *err)
{
    for (uint32_t d = 0; d < t->n_dims; d++) {
        int32_t status = rung_task_integer(task, dims, t->stride[d], t->name, &l->strides[d], err);
        if (status != RUNG_OK)
            return status;
        if (l->strides[d] < 1 || l->strides[d] > MAX_EXTENT)
            return rung_fail(err, RUNG_EINVAL, "",
                             "tensor '%s': stride \"%s\" is %lld, but it must lie between 1 and "
                             "2^40 elements",
                             t->name, t->stride[d], (long long)l->strides[d]);
    }
    return RUNG_OK;
}

/* The axis of the next larger stride, of those with more than one element; n_dims when done. */
static uint32_t next_axis(const struct rung_layout *l, uint32_t n_dims, const bool *done)
{
    uint32_t next = n_dims;
    for (uint32_t d = 0; d < n_dims; d++)
        if (!done[d] && l->shape[d] > 1 && (next == n_dims || l->strides[d] < l->strides[next]))
            next = d;
    return next;
}

/*
 * From the smallest stride up, each must pass all that the axes before it reach. That is a little
 * more than that no two elements share a place, and holds of every layout with padded axes.
 */
static int32_t check_apart(const struct rung_tensor_spec *t, struct rung_layout *l,
                           struct rung_error *err)
{
    bool done[RUNG_MAX_DIMS] = {false};
    int64_t reach = 0, step;
    for (uint32_t d; (d = next_axis(l, t->n_dims, done)) < t->n_dims; done[d] = true) {
        if (l->strides[d] <= reach)
            return rung_fail(err, RUNG_EINVAL, "",
                             "tensor '%s': stride \"%s\" is %lld, but the axes with smaller "
                             "strides reach %lld elements: it must be at least as many, or "
                             "elements overlap",
                             t->name, t->stride[d], (long long)l->strides[d], (long long)reach + 1);
        if (__builtin_mul_overflow(l->strides[d], l->shape[d] - 1, &step) ||
            __builtin_add_overflow(reach, step, &reach) || reach >= MAX_EXTENT)
            return rung_fail(err, RUNG_EINVAL, "",
                             "tensor '%s' reaches more than 2^40 elements by its strides; make "
                             "them smaller",
                             t->name);
    }
    l->extent = reach + 1;
    return RUNG_OK;
}

int32_t rung_task_layout(const struct rung_task *task, uint32_t tensor, const int64_t *dims,
                         struct rung_layout *out, struct rung_error *err)
{
    const struct rung_tensor_spec *t = &task->tensors[tensor];
    *out = (struct rung_layout){0};
    int32_t status = rung_task_shape(task, tensor, dims, out->shape, err);
    if (status != RUNG_OK)
        return status;
    out->elements = rung_shape_elements(out->shape, t->n_dims);
    if (!t->stride[0]) {
        lay_dense(t->n_dims, out);
        return RUNG_OK;
    }
    status = read_strides(task, t, dims, out, err);
    return status == RUNG_OK && out->elements ? check_apart(t, out, err) : status;
}
