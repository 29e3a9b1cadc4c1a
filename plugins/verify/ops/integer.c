/*
 * Whole-number expressions: shapes of task tensors, and attributes such as axis. Also the choice of
 * the nearest name for messages.
 */
#include "graph.h"

#include <math.h>
#include <string.h>

struct scope {
    const struct ops_who *who;
    const struct rung_task *task;
    const int64_t *dims;
};

static int32_t eval(const struct scope *s, const struct ops_node *node, int64_t *out);

static int32_t eval_name(const struct scope *s, const struct ops_node *node, int64_t *out)
{
    for (uint32_t i = 0; i < s->task->n_dims; i++)
        if (!strcmp(s->task->dims[i].name, node->name)) {
            *out = s->dims[i];
            return RUNG_OK;
        }
    for (uint32_t i = 0; i < s->task->n_params; i++)
        if (!strcmp(s->task->params[i].name, node->name) && s->task->params[i].dtype == RUNG_I64) {
            *out = s->task->params[i].i64;
            return RUNG_OK;
        }
    return ops_fail(s->who, RUNG_ECONFIG, node->column,
                    "'%s' is no dimension and no whole-number parameter", node->name);
}

static int32_t overflow(const struct scope *s, const struct ops_node *node)
{
    return ops_fail(s->who, RUNG_ECONFIG, node->column, "the value does not fit 64 bits");
}

static int32_t divide(const struct scope *s, const struct ops_node *node, int64_t a, int64_t b,
                      int64_t *out)
{
    if (b == 0)
        return ops_fail(s->who, RUNG_ECONFIG, node->column, "division by zero");
    if (a == INT64_MIN && b == -1)
        return overflow(s, node);
    *out = node->kind == OPS_BINARY && node->op == '%' ? a % b : a / b;
    return RUNG_OK;
}

static int32_t eval_binary(const struct scope *s, const struct ops_node *node, int64_t *out)
{
    int64_t a, b;
    int32_t status = eval(s, node->a, &a);
    if (!status)
        status = eval(s, node->b, &b);
    if (status)
        return status;
    switch (node->op) {
    case '+':
        return __builtin_add_overflow(a, b, out) ? overflow(s, node) : RUNG_OK;
    case '-':
        return __builtin_sub_overflow(a, b, out) ? overflow(s, node) : RUNG_OK;
    case '*':
        return __builtin_mul_overflow(a, b, out) ? overflow(s, node) : RUNG_OK;
    case '/':
    case '%':
        return divide(s, node, a, b, out);
    default:
        return ops_fail(s->who, RUNG_ECONFIG, node->column, "** is not for whole numbers");
    }
}

static int32_t eval_call(const struct scope *s, const struct ops_node *node, int64_t *out)
{
    int64_t v[2];
    const struct ops_arg *arg = node->args;
    for (int i = 0; i < 2; i++, arg = arg->next) {
        if (!arg || arg->name)
            return ops_fail(s->who, RUNG_ECONFIG, node->column, "%s takes two values", node->name);
        int32_t status = eval(s, arg->value, &v[i]);
        if (status)
            return status;
    }
    if (arg)
        return ops_fail(s->who, RUNG_ECONFIG, arg->column, "%s takes two values", node->name);
    if (!strcmp(node->name, "min"))
        *out = v[0] < v[1] ? v[0] : v[1];
    else if (!strcmp(node->name, "max"))
        *out = v[0] > v[1] ? v[0] : v[1];
    else if (strcmp(node->name, "ceil_div"))
        return ops_fail(s->who, RUNG_ECONFIG, node->column,
                        "'%s' is not for whole numbers; known: ceil_div, max, min", node->name);
    else if (__builtin_sub_overflow(v[1], 1, out) || __builtin_add_overflow(v[0], *out, &v[0]))
        return overflow(s, node);
    else
        return divide(s, node, v[0], v[1], out);
    return RUNG_OK;
}

static int32_t eval(const struct scope *s, const struct ops_node *node, int64_t *out)
{
    int32_t status;
    switch (node->kind) {
    case OPS_NUMBER:
        if (node->number != floor(node->number) || fabs(node->number) > 9e15)
            return ops_fail(s->who, RUNG_ECONFIG, node->column, "expected a whole number");
        *out = (int64_t)node->number;
        return RUNG_OK;
    case OPS_NAME:
        return eval_name(s, node, out);
    case OPS_NEG:
        status = eval(s, node->a, out);
        if (!status && __builtin_sub_overflow(0, *out, out))
            return overflow(s, node);
        return status;
    case OPS_BINARY:
        return eval_binary(s, node, out);
    case OPS_CALL:
        return eval_call(s, node, out);
    default:
        return ops_fail(s->who, RUNG_ECONFIG, node->column, "expected a whole number, not a list");
    }
}

int32_t ops_integer(const struct ops_who *who, const struct rung_task *task, const int64_t *dims,
                    const struct ops_node *node, int64_t *out)
{
    struct scope s = {.who = who, .task = task, .dims = dims};
    return eval(&s, node, out);
}

int32_t ops_task_shape(const struct ops_who *who, const struct rung_task *task, const int64_t *dims,
                       uint32_t tensor, int64_t *shape)
{
    const struct rung_tensor_spec *spec = &task->tensors[tensor];
    if (spec->n_dims > RUNG_MAX_DIMS)
        return ops_fail(who, RUNG_ECONFIG, 0, "'%s' has more than %d dimensions", spec->name,
                        RUNG_MAX_DIMS);
    for (uint32_t i = 0; i < RUNG_MAX_DIMS; i++) {
        const struct ops_arg *list = NULL;
        shape[i] = 1;
        if (i >= spec->n_dims)
            continue;
        int32_t status = ops_parse_list(who, spec->shape[i], &list);
        if (!status && (!list || list->next || list->name))
            status = ops_fail(who, RUNG_ECONFIG, 0, "'%s': expected one extent", spec->name);
        if (!status)
            status = ops_integer(who, task, dims, list->value, &shape[i]);
        if (!status && shape[i] < 1)
            status = ops_fail(who, RUNG_ECONFIG, 0, "'%s': an extent of %lld", spec->name,
                              (long long)shape[i]);
        if (status)
            return status;
    }
    return RUNG_OK;
}

/* Levenshtein distance of two names of at most 63 letters. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t n = strlen(b) < 63 ? strlen(b) : 63;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[n];
}

const char *ops_nearest(const char *name, const char *const *names, uint32_t n)
{
    const char *best = NULL;
    unsigned least = (unsigned)strlen(name) / 3 + 2;
    for (uint32_t i = 0; i < n; i++) {
        unsigned d = names[i] ? distance(name, names[i]) : least;
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}
