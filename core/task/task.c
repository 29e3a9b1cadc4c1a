/*
 * What follows from a task and a dims vector: derived dims, constraints, shapes, texts. Pure.
 */
#include "task/task.h"
#include "base/status.h"

#include <math.h>
#include <rung/reference.h>
#include <string.h>

static const int64_t MAX_ELEMENTS = INT64_C(1) << 40;

const char *const rung_task_fill_kinds[] = {
    "normal", "uniform",    "signed",      "offset", "large",    "small", "zeros",
    "ones",   "equal_rows", "onehot_rows", "ramp",   "integers", NULL};

int rung_task_dim(const struct rung_task *task, const char *name)
{
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (strcmp(task->dims[i].name, name) == 0)
            return (int)i;
    return -1;
}

int rung_task_tensor(const struct rung_task *task, const char *name)
{
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (strcmp(task->tensors[i].name, name) == 0)
            return (int)i;
    return -1;
}

int rung_task_param(const struct rung_task *task, const char *name)
{
    for (uint32_t i = 0; i < task->n_params; i++)
        if (strcmp(task->params[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool scope_lookup(const void *ctx, const char *name, struct rung_value *out)
{
    const struct rung_task_values *v = ctx;
    int i = rung_task_dim(v->task, name);
    if (i >= 0 && (uint32_t)i < v->n_dims) {
        *out = (struct rung_value){.i = v->dims[i]};
        return true;
    }
    i = v->params ? rung_task_param(v->task, name) : -1;
    if (i < 0)
        return false;
    const struct rung_param *p = &v->task->params[i];
    *out = (struct rung_value){.is_float = p->dtype == RUNG_F64, .i = p->i64, .f = p->f64};
    return true;
}

static void scope_names(const void *ctx, struct rung_arena *arena, const char *const **list,
                        size_t *n)
{
    const struct rung_task_values *v = ctx;
    const char **names = RUNG_ARENA_NEW(arena, const char *, v->n_dims + v->task->n_params);
    *n = 0;
    for (uint32_t i = 0; i < v->n_dims; i++)
        names[(*n)++] = v->task->dims[i].name;
    for (uint32_t i = 0; v->params && i < v->task->n_params; i++)
        names[(*n)++] = v->task->params[i].name;
    *list = names;
}

struct rung_scope rung_task_scope(const struct rung_task_values *values)
{
    return (struct rung_scope){.lookup = scope_lookup, .names = scope_names, .ctx = values};
}

/* An expression over the first n_dims dims. */
static int32_t value_of(const struct rung_task *task, uint32_t n_dims, const int64_t *dims,
                        const char *text, const char *what, struct rung_value *out,
                        struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        return rung_fail(err, RUNG_ENOMEM, "", "out of memory");
    struct rung_task_values values = {task, dims, n_dims, false};
    struct rung_scope scope = rung_task_scope(&values);
    const char *problem;
    int32_t status = RUNG_OK;
    if (!rung_expr_value(arena, text, &scope, out, &problem))
        status = rung_fail(err, RUNG_EINVAL, "", "%s = \"%s\": %s", what, text, problem);
    rung_arena_free(arena);
    return status;
}

/* An integer expression over the first n_dims dims. */
static int32_t size_of(const struct rung_task *task, uint32_t n_dims, const int64_t *dims,
                       const char *text, const char *what, int64_t *out, struct rung_error *err)
{
    struct rung_value v;
    int32_t status = value_of(task, n_dims, dims, text, what, &v, err);
    if (status == RUNG_OK && v.is_float)
        return rung_fail(err, RUNG_EINVAL, "", "%s = \"%s\" is not an integer", what, text);
    if (status == RUNG_OK)
        *out = v.i;
    return status;
}

static int32_t check_dim(const struct rung_dim *dim, int64_t v, struct rung_error *err)
{
    if (v < dim->min || v > dim->max)
        return dim->max == INT64_MAX
                   ? rung_fail(err, RUNG_EINVAL, "",
                               "dim '%s' is %lld, but it must be at least %lld", dim->name,
                               (long long)v, (long long)dim->min)
                   : rung_fail(err, RUNG_EINVAL, "",
                               "dim '%s' is %lld, but it must lie between %lld and %lld", dim->name,
                               (long long)v, (long long)dim->min, (long long)dim->max);
    if (v % dim->multiple_of)
        return rung_fail(err, RUNG_EINVAL, "",
                         "dim '%s' is %lld, but it must be a multiple of %lld", dim->name,
                         (long long)v, (long long)dim->multiple_of);
    return RUNG_OK;
}

int32_t rung_task_complete_dim(const struct rung_task *task, uint32_t i, int64_t *dims,
                               struct rung_error *err)
{
    const struct rung_dim *dim = &task->dims[i];
    int32_t status = RUNG_OK;
    if (dim->derived)
        status = size_of(task, i, dims, dim->expr, dim->name, &dims[i], err);
    return status == RUNG_OK ? check_dim(dim, dims[i], err) : status;
}

int32_t rung_task_complete(const struct rung_task *task, int64_t *dims, struct rung_error *err)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < task->n_dims && status == RUNG_OK; i++)
        status = rung_task_complete_dim(task, i, dims, err);
    return status;
}

int32_t rung_task_integer(const struct rung_task *task, const int64_t *dims, const char *text,
                          const char *what, int64_t *out, struct rung_error *err)
{
    return size_of(task, task->n_dims, dims, text, what, out, err);
}

int32_t rung_task_shape(const struct rung_task *task, uint32_t tensor, const int64_t *dims,
                        int64_t *shape, struct rung_error *err)
{
    const struct rung_tensor_spec *t = &task->tensors[tensor];
    bool too_large = false;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        int32_t status = size_of(task, task->n_dims, dims, t->shape[i], t->name, &shape[i], err);
        if (status != RUNG_OK)
            return status;
        if (shape[i] < 0)
            return rung_fail(err, RUNG_EINVAL, "", "tensor '%s': size \"%s\" is %lld, below zero",
                             t->name, t->shape[i], (long long)shape[i]);
        too_large |= shape[i] > MAX_ELEMENTS;
    }
    if (too_large || rung_shape_elements(shape, t->n_dims) > MAX_ELEMENTS)
        return rung_fail(err, RUNG_EINVAL, "", "tensor '%s' has more than 2^40 elements", t->name);
    return RUNG_OK;
}

int32_t rung_task_amount_at(const struct rung_task *task, const struct rung_task_amount *amount,
                            const int64_t *dims, double *out, struct rung_error *err)
{
    struct rung_value v = {.is_float = true, .f = amount->value};
    if (!amount->given)
        return RUNG_OK;
    int32_t status =
        amount->expr ? value_of(task, task->n_dims, dims, amount->expr, "the expression", &v, err)
                     : RUNG_OK;
    double amount_there = v.is_float ? v.f : (double)v.i;
    if (status == RUNG_OK && !(isfinite(amount_there) && amount_there > 0))
        return rung_fail(err, RUNG_EINVAL, "", "it is %g, but it must be above 0", amount_there);
    if (status == RUNG_OK)
        *out = amount_there;
    return status;
}

void rung_task_work_at(const struct rung_task *task, const struct rung_task_rest *rest,
                       const int64_t *dims, struct rung_work *work)
{
    rung_task_amount_at(task, &rest->flops, dims, &work->flops, NULL);
    rung_task_amount_at(task, &rest->bytes, dims, &work->min_bytes, NULL);
}

int64_t rung_shape_elements(const int64_t *shape, uint32_t n_dims)
{
    int64_t n = 1;
    bool overflow = false;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (shape[i] == 0)
            return 0;
        overflow |= __builtin_mul_overflow(n, shape[i], &n);
    }
    return overflow ? INT64_MAX : n;
}

int64_t rung_task_elements(const struct rung_task *task, const int64_t *dims)
{
    int64_t sum = 0;
    struct rung_layout layout;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        if (rung_task_layout(task, i, dims, &layout, NULL) != RUNG_OK)
            return -1;
        sum += layout.elements;
    }
    return sum;
}

char *rung_task_dims_text(struct rung_arena *arena, const struct rung_task *task,
                          const int64_t *dims)
{
    struct rung_buf buf = {0};
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (!task->dims[i].derived)
            rung_buf_printf(&buf, "%s%s=%lld", buf.len ? " " : "", task->dims[i].name,
                            (long long)dims[i]);
    char *text = rung_arena_strdup(arena, rung_buf_text(&buf));
    rung_buf_free(&buf);
    return text;
}

double rung_task_weight_sum(const struct rung_task *task)
{
    double sum = 0;
    for (uint32_t i = 0; i < task->n_bench; i++)
        sum += task->bench[i].weight;
    return sum;
}
