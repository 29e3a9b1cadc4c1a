/*
 * Walks the statements of a graph and builds its values: names, infix operators, assignments.
 */
#include "ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static struct ops_binding *find(struct ops_eval *ev, const char *name)
{
    for (struct ops_binding *b = ev->bindings; b; b = b->next)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

static void *unknown_name(struct ops_eval *ev, const struct ops_node *node)
{
    const char *names[256];
    uint32_t n = 0;
    char list[600];
    size_t at = 0;
    for (struct ops_binding *b = ev->bindings; b && n < 200; b = b->next)
        if (b->value)
            names[n++] = b->name;
    for (uint32_t i = 0; i < ev->task->n_params && n < 228; i++)
        names[n++] = ev->task->params[i].name;
    for (uint32_t i = 0; i < ev->task->n_dims && n < 256; i++)
        names[n++] = ev->task->dims[i].name;
    list[0] = 0;
    for (uint32_t i = 0; i < n && at + 70 < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%.63s", i ? ", " : "", names[i]);
    const char *near = ops_nearest(node->name, names, n);
    return ops_stop(ev, node->column, "unknown name '%s'%s%.63s%s; known: %s", node->name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static struct ops_value *name_value(struct ops_eval *ev, const struct ops_node *node)
{
    struct ops_binding *b = find(ev, node->name);
    if (b && b->value)
        return b->value;
    for (uint32_t i = 0; i < ev->task->n_params; i++) {
        const struct rung_param *p = &ev->task->params[i];
        double v = p->dtype == RUNG_I64 ? (double)p->i64 : p->f64;
        if (!strcmp(p->name, node->name))
            return ops_scalar(ev, ops_constant(v, &ev->arith));
    }
    for (uint32_t i = 0; i < ev->task->n_dims; i++)
        if (!strcmp(ev->task->dims[i].name, node->name))
            return ops_scalar(ev, ops_constant((double)ev->dims[i], &ev->arith));
    return unknown_name(ev, node);
}

/* ---- expressions ---- */

static ops_binary infix(char op, int in_exp)
{
    switch (op) {
    case '+':
        return in_exp ? ops_add_in_exp : ops_add;
    case '-':
        return in_exp ? ops_sub_in_exp : ops_sub;
    case '*':
        return ops_mul;
    case '/':
        return ops_div;
    case '^':
        return ops_pow;
    default:
        return NULL;
    }
}

static struct ops_value *binary(struct ops_eval *ev, const struct ops_node *node, int in_exp)
{
    ops_binary f = infix(node->op, in_exp);
    if (!f)
        return ops_stop(ev, node->column, "%% is only for shapes and attributes");
    struct ops_value *a = ops_expression(ev, node->a);
    return ops_map2(ev, node->column, f, 1, a, ops_expression(ev, node->b));
}

struct ops_value *ops_expression(struct ops_eval *ev, const struct ops_node *node)
{
    if (ev->status)
        return NULL;
    switch (node->kind) {
    case OPS_NUMBER:
        return ops_scalar(ev, ops_constant(node->number, &ev->arith));
    case OPS_NAME:
        return name_value(ev, node);
    case OPS_NEG:
        return ops_map1(ev, ops_neg, 0, ops_expression(ev, node->a));
    case OPS_BINARY:
        return binary(ev, node, 0);
    case OPS_CALL:
        return ops_call(ev, node);
    default:
        return ops_stop(ev, node->column, "a list is no tensor; lists are for attributes");
    }
}

struct ops_value *ops_exponent(struct ops_eval *ev, const struct ops_node *node)
{
    if (node->kind == OPS_BINARY && (node->op == '-' || node->op == '+'))
        return binary(ev, node, 1);
    return ops_expression(ev, node);
}

/* ---- statements ---- */

static void mark_use(struct ops_eval *ev, const struct ops_node *node, uint32_t at)
{
    if (node->kind == OPS_NAME) {
        struct ops_binding *b = find(ev, node->name);
        if (b)
            b->last_use = at;
    }
    if (node->a)
        mark_use(ev, node->a, at);
    if (node->b)
        mark_use(ev, node->b, at);
    for (const struct ops_arg *arg = node->args; arg; arg = arg->next)
        mark_use(ev, arg->value, at);
}

static int32_t add_binding(struct ops_eval *ev, const char *name, struct ops_value *value,
                           uint32_t tensor)
{
    struct ops_binding *b = ev->who.host->alloc(ev->who.host, ev->who.call->arena, sizeof *b, 8);
    if (!b)
        return ops_no_memory(&ev->who);
    *b = (struct ops_binding){.name = name, .value = value, .tensor = tensor, .next = ev->bindings};
    ev->bindings = b;
    return RUNG_OK;
}

/* A name that a statement may assign gets a binding; inputs, parameters and dims are refused. */
static int32_t declare(struct ops_eval *ev, const struct ops_stmt *stmt)
{
    struct ops_binding *b = find(ev, stmt->name);
    const char *what = NULL;
    if (b && b->tensor && ev->task->tensors[b->tensor - 1].role != RUNG_ROLE_OUTPUT &&
        ev->task->tensors[b->tensor - 1].role != RUNG_ROLE_INOUT)
        what = "an input";
    for (uint32_t i = 0; i < ev->task->n_params; i++)
        what = strcmp(ev->task->params[i].name, stmt->name) ? what : "a parameter";
    for (uint32_t i = 0; i < ev->task->n_dims; i++)
        what = strcmp(ev->task->dims[i].name, stmt->name) ? what : "a dimension";
    if (what)
        return ops_fail(&ev->who, RUNG_ECONFIG, stmt->column, "'%s' is %s and can't be assigned",
                        stmt->name, what);
    return b ? RUNG_OK : add_binding(ev, stmt->name, NULL, 0);
}

/* Shape as declared; a single element stands for any shape of one element. */
static int32_t check_shape(struct ops_eval *ev, const struct ops_stmt *stmt, uint32_t tensor,
                           const struct ops_value *t)
{
    int64_t shape[RUNG_MAX_DIMS];
    uint32_t n_dims = ev->task->tensors[tensor].n_dims;
    char got[256], want[256];
    int32_t status = ops_task_shape(&ev->who, ev->task, ev->dims, tensor, shape);
    if (status)
        return status;
    uint64_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++)
        n = n > UINT64_MAX / (uint64_t)shape[i] ? UINT64_MAX : n * (uint64_t)shape[i];
    int same = t->n_dims == n_dims && !memcmp(t->dims, shape, n_dims * sizeof *shape);
    if (same || (n == 1 && t->n == 1))
        return RUNG_OK;
    return ops_fail(&ev->who, RUNG_ECONFIG, stmt->column,
                    "'%s' has shape %s, but the task declares %s", stmt->name,
                    ops_shape_text(t->n_dims, t->dims, got, sizeof got),
                    ops_shape_text(n_dims, shape, want, sizeof want));
}

/* What later statements read of an output may have been rounded to its dtype. */
static struct ops_value *as_stored(struct ops_eval *ev, uint32_t dtype, struct ops_value *v)
{
    double u = dtype == RUNG_F16 ? 0x1p-11 : dtype == RUNG_BF16 ? 0x1p-8 : 0;
    return u <= ev->arith.u || ev->arith.u == 0 ? v : ops_stored(ev, u, v);
}

static int32_t build_stmt(struct ops_eval *ev, const struct ops_stmt *stmt, uint32_t index)
{
    struct ops_value *v = ops_expression(ev, stmt->value);
    if (!v)
        return ev->status;
    struct ops_binding *b = find(ev, stmt->name);
    b->value = v;
    if (!b->tensor)
        return RUNG_OK;
    uint32_t tensor = b->tensor - 1;
    ev->status = check_shape(ev, stmt, tensor, v);
    ev->outputs[tensor] = v;
    if (!ev->status && b->last_use > index)
        b->value = as_stored(ev, ev->task->tensors[tensor].dtype, v);
    return ev->status;
}

static int32_t bind_tensors(struct ops_eval *ev, const struct rung_tensor_view *views)
{
    for (uint32_t i = 0; i < ev->task->n_tensors; i++) {
        struct ops_value *value = NULL;
        if (ev->task->tensors[i].role != RUNG_ROLE_OUTPUT)
            value = ops_input(ev, i, views ? &views[i] : NULL);
        int32_t status =
            ev->status ? ev->status : add_binding(ev, ev->task->tensors[i].name, value, i + 1);
        if (status)
            return status;
    }
    return RUNG_OK;
}

static int32_t build_all(struct ops_eval *ev, const struct ops_stmt *first)
{
    uint32_t index = 1;
    int32_t status = RUNG_OK;
    for (const struct ops_stmt *s = first; s && !status; s = s->next)
        status = declare(ev, s);
    for (const struct ops_stmt *s = first; s; s = s->next)
        mark_use(ev, s->value, index++);
    index = 1;
    for (const struct ops_stmt *s = first; s && !status; s = s->next, index++)
        status = build_stmt(ev, s, index);
    return status;
}

int32_t ops_eval_build(struct ops_eval *ev, const struct rung_tensor_view *views)
{
    const struct ops_stmt *first;
    ev->end = &ev->first;
    if (!ev->task->graph)
        return ops_fail(&ev->who, RUNG_ECONFIG, 0, "the task has no graph");
    int32_t status = ops_parse_graph(&ev->who, ev->task->graph, &first);
    ev->outputs = calloc(ev->task->n_tensors + 1, sizeof(struct ops_value *));
    if (!status && !ev->outputs)
        status = ops_no_memory(&ev->who);
    if (!status)
        status = bind_tensors(ev, views);
    if (!status)
        status = build_all(ev, first);
    for (uint32_t i = 0; i < ev->task->n_tensors && !status; i++) {
        const struct rung_tensor_spec *spec = &ev->task->tensors[i];
        if ((spec->role == RUNG_ROLE_OUTPUT || spec->role == RUNG_ROLE_INOUT) && !ev->outputs[i])
            status =
                ops_fail(&ev->who, RUNG_ECONFIG, 0, "no statement gives output '%s'", spec->name);
    }
    return status;
}

void ops_eval_end(struct ops_eval *ev)
{
    ops_values_end(ev);
    free(ev->outputs);
    ev->outputs = NULL;
    ev->bindings = NULL;
}
