/*
 * The task in words, for prompts. Pure; the text lives in the caller's arena.
 */
#include "task/task.h"

static const char *role_name(uint32_t role)
{
    static const char *const names[] = {"", "input", "output", "inout", "weight"};
    return names[role];
}

static const char *precision_name(uint32_t precision)
{
    static const char *const names[] = {"", "fp32", "tf32", "fp16", "bf16", "fp64", "exact"};
    return names[precision];
}

static void add_dim(struct rung_buf *buf, const struct rung_dim *dim)
{
    rung_buf_printf(buf, "  %s", dim->name);
    if (dim->derived) {
        rung_buf_printf(buf, " = %s\n", dim->expr);
        return;
    }
    rung_buf_printf(buf, " (such as %lld", (long long)dim->value);
    rung_buf_printf(buf, "; at least %lld", (long long)dim->min);
    if (dim->max != INT64_MAX)
        rung_buf_printf(buf, ", at most %lld", (long long)dim->max);
    if (dim->multiple_of != 1)
        rung_buf_printf(buf, ", a multiple of %lld", (long long)dim->multiple_of);
    rung_buf_puts(buf, ")\n");
}

static void add_tensor(struct rung_buf *buf, const struct rung_tensor_spec *t)
{
    rung_buf_printf(buf, "  %s: %s %s [", t->name, role_name(t->role), rung_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->n_dims; i++)
        rung_buf_printf(buf, "%s%s", i ? ", " : "", t->shape[i]);
    rung_buf_puts(buf, t->stride[0] ? "], strides [" : "], row-major");
    for (uint32_t i = 0; t->stride[0] && i < t->n_dims; i++)
        rung_buf_printf(buf, "%s%s", i ? ", " : "", t->stride[i]);
    rung_buf_printf(buf, "%s, %llu-byte aligned\n",
                    t->stride[0] ? "] elements (never write between them)" : "",
                    (unsigned long long)t->alignment);
}

static void add_param(struct rung_buf *buf, const struct rung_param *p)
{
    if (p->dtype == RUNG_F64)
        rung_buf_printf(buf, "  %s: f64 = %.17g\n", p->name, p->f64);
    else
        rung_buf_printf(buf, "  %s: i64 = %lld\n", p->name, (long long)p->i64);
}

static void add_case(struct rung_buf *buf, struct rung_arena *arena, const struct rung_task *task,
                     const struct rung_shape_case *c)
{
    rung_buf_printf(buf, "  %s", rung_task_dims_text(arena, task, c->dims));
    if (task->n_bench > 1)
        rung_buf_printf(buf, " (weight %g)", c->weight);
    rung_buf_putc(buf, '\n');
}

char *rung_task_contract(struct rung_arena *arena, const struct rung_task *task)
{
    struct rung_buf buf = {0};
    rung_buf_printf(&buf, "Task %s: %s\n", task->name, task->summary);
    if (task->graph)
        rung_buf_printf(&buf, "Computes: %s\n", task->graph);
    if (task->n_dims)
        rung_buf_puts(&buf, "Dims:\n");
    for (uint32_t i = 0; i < task->n_dims; i++)
        add_dim(&buf, &task->dims[i]);
    rung_buf_puts(&buf, "Tensors:\n");
    for (uint32_t i = 0; i < task->n_tensors; i++)
        add_tensor(&buf, &task->tensors[i]);
    if (task->n_params)
        rung_buf_puts(&buf, "Parameters:\n");
    for (uint32_t i = 0; i < task->n_params; i++)
        add_param(&buf, &task->params[i]);
    rung_buf_printf(&buf, "Precision: %s. ", precision_name(task->precision));
    rung_buf_puts(&buf, task->shape_rule == RUNG_SHAPES_FIXED
                            ? "Only the shapes below count; specialising to them is allowed.\n"
                            : "It must be right for all values of the dims; speed counts at:\n");
    for (uint32_t i = 0; i < task->n_bench; i++)
        if (task->n_dims)
            add_case(&buf, arena, task, &task->bench[i]);
    char *text = rung_arena_strdup(arena, rung_buf_text(&buf));
    rung_buf_free(&buf);
    return text;
}
