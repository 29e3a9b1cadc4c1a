/* Comparing plans and launches with what a reply's .cfg says: see corpus_plan.h. */
#include "codegen/corpus_plan.h"
#include "base/status.h"
#include "task/expr_ast.h"
#include <math.h>
#include <string.h>

/* ---- Plans as texts ------------------------------------------------------------------------- */

/* In prefix form, so that parentheses and blanks do not matter. */
static bool no_name(const void *ctx, const char *name, struct rung_value *out)
{
    (void)ctx;
    (void)name;
    (void)out;
    return false;
}

static void no_names(const void *ctx, struct rung_arena *arena, const char *const **list, size_t *n)
{
    (void)ctx;
    (void)arena;
    *list = NULL;
    *n = 0;
}

/* The number of an expression without names, such as 256 * sizeof(float). */
static bool is_constant(struct rung_arena *arena, const struct rung_expr *e, struct rung_value *out)
{
    const struct rung_scope none = {.lookup = no_name, .names = no_names};
    const char *problem;
    return rung_expr_eval(e, &none, arena, out, &problem);
}

static void print_expr(struct rung_buf *out, struct rung_arena *arena, const struct rung_expr *e)
{
    struct rung_value value;
    if (e->op > EXPR_NAME && is_constant(arena, e, &value)) {
        rung_buf_printf(out, value.is_float ? "%.9g" : "%.0f",
                        value.is_float ? value.f : (double)value.i);
    } else if (e->op == EXPR_NAME) {
        rung_buf_puts(out, e->name);
    } else if (e->op == EXPR_NUMBER && e->value.is_float) {
        rung_buf_printf(out, "%.9g", e->value.f);
    } else if (e->op == EXPR_NUMBER) {
        rung_buf_printf(out, "%lld", (long long)e->value.i);
    } else {
        rung_buf_printf(out, "(%d ", (int)e->op);
        if (e->a)
            print_expr(out, arena, e->a);
        rung_buf_putc(out, ' ');
        if (e->b)
            print_expr(out, arena, e->b);
        rung_buf_putc(out, ')');
    }
}

static void print_text(struct rung_buf *out, struct rung_arena *arena, const char *text,
                       const char *absent)
{
    const char *problem;
    const struct rung_expr *e = rung_expr_parse(arena, text ? text : absent, &problem);
    if (e)
        print_expr(out, arena, e);
    else
        rung_buf_puts(out, text);
    rung_buf_putc(out, ';');
}

static void print_step(struct rung_buf *out, struct rung_arena *arena, const struct rung_step *s)
{
    rung_buf_printf(out, "\nstep %u %s %u %u %u %s ", s->kind, s->kernel ? s->kernel : "",
                    s->target_kind, s->target_index, s->flags, s->symbol ? s->symbol : "");
    for (uint32_t i = 0; i < s->n_template_args; i++)
        print_text(out, arena, s->template_args[i].text, "");
    for (int i = 0; i < 3 && s->kind == RUNG_STEP_LAUNCH; i++) {
        print_text(out, arena, s->grid[i].text, "1");
        print_text(out, arena, s->block[i].text, "1");
        print_text(out, arena, s->cluster[i].text, "1");
    }
    print_text(out, arena, s->shared.text, "0");
    print_text(out, arena, s->when.text, "1");
    for (uint32_t i = 0; i < s->n_args; i++) {
        rung_buf_printf(out, " arg %u %u ", s->args[i].kind, s->args[i].index);
        print_text(out, arena, s->args[i].expr.text, "0");
    }
}

static char *plan_text(struct rung_arena *arena, const struct rung_plan *plan)
{
    struct rung_buf out = {0};
    for (uint32_t i = 0; i < plan->n_tunes; i++) {
        rung_buf_printf(&out, "tune %s", plan->tunes[i].name);
        for (uint32_t k = 0; k < plan->tunes[i].n_values; k++)
            rung_buf_printf(&out, " %lld", (long long)plan->tunes[i].values[k]);
        rung_buf_putc(&out, '\n');
    }
    for (uint32_t i = 0; i < plan->n_where; i++)
        print_text(&out, arena, plan->where[i].text, "1");
    for (uint32_t i = 0; i < plan->n_temps; i++) {
        rung_buf_printf(&out, "temp %u ", plan->temps[i].dtype);
        print_text(&out, arena, plan->temps[i].count.text, "0");
    }
    for (uint32_t i = 0; i < plan->n_steps; i++)
        print_step(&out, arena, &plan->steps[i]);
    char *text = rung_arena_strdup(arena, rung_buf_text(&out));
    rung_buf_free(&out);
    return text;
}

bool corpus_same_plan(struct rung_arena *arena, const struct rung_task *task,
                      const struct rung_plan *plan, const struct rung_node *lines,
                      struct rung_buf *why)
{
    const char *source = "", *problem;
    for (const struct rung_node *line = lines->first; line; line = line->next)
        source = rung_arena_printf(arena, "%s//@ %s\n", source, line->s);
    const struct rung_plan *wanted =
        rung_plan_parse(arena, task, "cfg", rung_text_of(source), &problem);
    if (!wanted) {
        rung_buf_printf(why, "the .cfg's plan is wrong: %s", problem);
        return false;
    }
    const char *a = plan_text(arena, wanted), *b = plan_text(arena, plan);
    if (!strcmp(a, b))
        return true;
    rung_buf_printf(why, "plan differs:\n%s\n--- got\n%s", a, b);
    return false;
}

/* ---- Launches ------------------------------------------------------------------------------- */

struct comparison {
    struct rung_arena *arena;
    const struct rung_task *task;
    const struct rung_plan *plan;
    const struct rung_resolved_plan *got;
    uint32_t order[64], n_order; /* temps as they are first named */
    struct rung_buf *why;
};

static uint32_t temp_number(struct comparison *c, uint32_t index)
{
    for (uint32_t i = 0; i < c->n_order; i++)
        if (c->order[i] == index)
            return i;
    if (c->n_order < 64)
        c->order[c->n_order++] = index;
    return c->n_order - 1;
}

static const char *memory_text(struct comparison *c, uint32_t kind, uint32_t index, int64_t offset)
{
    const char *name = kind == RUNG_ARG_TENSOR
                           ? c->task->tensors[index].name
                           : rung_arena_printf(c->arena, "$%u", temp_number(c, index));
    return offset ? rung_arena_printf(c->arena, "%s + %lld", name, (long long)offset) : name;
}

static bool same_arg(struct comparison *c, const struct rung_resolved_arg *arg,
                     const struct rung_node *want)
{
    bool memory = arg->kind == RUNG_ARG_TENSOR || arg->kind == RUNG_ARG_TEMP;
    const char *got = memory ? memory_text(c, arg->kind, arg->index, arg->i)
                      : arg->kind == RUNG_ARG_I64
                          ? rung_arena_printf(c->arena, "%lld", (long long)arg->i)
                          : rung_arena_printf(c->arena, "%.9g", arg->f);
    double value = arg->kind == RUNG_ARG_I64 ? (double)arg->i : arg->f;
    bool same = false;
    if (want->type == RUNG_NODE_STRING)
        same = memory && !strcmp(want->s, got);
    else if (want->type == RUNG_NODE_INT)
        same = !memory && value == (double)want->i;
    else if (want->type == RUNG_NODE_FLOAT)
        same = !memory && (float)value == (float)want->f;
    if (!same)
        rung_buf_printf(c->why, "argument %s; ", got);
    return same;
}

static bool same_dim3(struct comparison *c, const struct rung_node *item, const char *key,
                      struct rung_dim3 got)
{
    const struct rung_node *want = rung_node_get(item, key);
    const struct rung_node *n = want ? want->first : NULL;
    uint32_t values[3] = {got.x, got.y, got.z};
    for (int i = 0; n && i < 3; i++, n = n->next)
        if (n->i != values[i]) {
            rung_buf_printf(c->why, "%s (%u, %u, %u); ", key, got.x, got.y, got.z);
            return false;
        }
    return true;
}

static bool same_kernel(struct comparison *c, const struct rung_node *item,
                        const struct rung_resolved_step *s)
{
    const struct rung_node *args = rung_node_get(item, "args"), *covers;
    const struct rung_node *shared = rung_node_get(item, "shared");
    const struct rung_node *cooperative = rung_node_get(item, "cooperative");
    const struct rung_node *kernel = rung_node_get(item, "kernel");
    bool same = s->kind == RUNG_STEP_LAUNCH && !strcmp(s->expression, kernel->s);
    if (!same)
        rung_buf_printf(c->why, "kernel %s; ",
                        s->kind == RUNG_STEP_LAUNCH ? s->expression : "(no launch)");
    if (s->kind != RUNG_STEP_LAUNCH)
        return false;
    same = same_dim3(c, item, "grid", s->grid) && same_dim3(c, item, "block", s->block) && same;
    same &= same_dim3(c, item, "cluster", s->cluster);
    if (shared && shared->i != s->shared) {
        rung_buf_printf(c->why, "shared %u; ", s->shared);
        same = false;
    }
    same &= !cooperative || cooperative->b == ((s->flags & RUNG_STEP_COOPERATIVE) != 0);
    covers = rung_node_get(item, "covers");
    uint64_t total[3] = {(uint64_t)s->grid.x * s->block.x, (uint64_t)s->grid.y * s->block.y,
                         (uint64_t)s->grid.z * s->block.z};
    int i = 0;
    for (const struct rung_node *n = covers ? covers->first : NULL; n && i < 3; n = n->next, i++)
        same &= total[i] >= (uint64_t)n->i;
    uint32_t k = 0;
    for (const struct rung_node *n = args ? args->first : NULL; n; n = n->next, k++)
        same = k < s->n_args && same_arg(c, &s->args[k], n) && same;
    if (args && k != s->n_args) {
        rung_buf_printf(c->why, "%u arguments; ", s->n_args);
        same = false;
    }
    return same;
}

static bool same_step(struct comparison *c, const struct rung_node *item,
                      const struct rung_resolved_step *s)
{
    const struct rung_node *zero = rung_node_get(item, "zero");
    const struct rung_node *symbol = rung_node_get(item, "symbol");
    if (rung_node_get(item, "kernel"))
        return same_kernel(c, item, s);
    const char *memory = s->kind == RUNG_STEP_LAUNCH
                             ? "(a launch)"
                             : memory_text(c, s->target_kind, s->target_index, s->offset);
    bool same = false;
    if (zero)
        same = s->kind == RUNG_STEP_SET && !strcmp(zero->s, memory);
    else if (symbol)
        same = s->kind == RUNG_STEP_SYMBOL && !strcmp(symbol->s, s->symbol) &&
               !strcmp(rung_node_get(item, "from")->s, memory);
    if (!same)
        rung_buf_printf(c->why, "%s of %s; ", s->kind == RUNG_STEP_SET ? "zero" : "step", memory);
    return same;
}

static bool same_temps(struct comparison *c, const struct rung_node *temps)
{
    uint32_t i = 0;
    for (const struct rung_node *n = temps ? temps->first : NULL; n; n = n->next, i++) {
        uint32_t k = i < c->n_order ? c->order[i] : 0;
        int64_t bytes = i < c->n_order ? c->got->temp_elements[k] *
                                             (int64_t)rung_dtype_bits(c->plan->temps[k].dtype) / 8
                                       : -1;
        if (bytes != n->i) {
            rung_buf_printf(c->why, "temp %u has %lld bytes; ", i, (long long)bytes);
            return false;
        }
    }
    return true;
}

static bool read_dims(struct comparison *c, const struct rung_node *item, int64_t *dims)
{
    struct rung_error err = rung_error_init();
    for (uint32_t i = 0; i < c->task->n_dims; i++) {
        const struct rung_node *n =
            rung_node_get(rung_node_get(item, "dims"), c->task->dims[i].name);
        dims[i] = n ? n->i : c->task->dims[i].value;
    }
    if (rung_task_complete(c->task, dims, &err) == RUNG_OK)
        return true;
    rung_buf_printf(c->why, "dims: %s", err.message);
    return false;
}

bool corpus_launches(struct rung_arena *arena, const struct rung_task *task,
                     const struct rung_plan *plan, const struct rung_node *item,
                     struct rung_buf *why)
{
    struct comparison c = {.arena = arena, .task = task, .plan = plan, .why = why};
    const struct rung_node *sms = rung_node_get(item, "sm_count");
    struct rung_point point = rung_plan_default_point(plan);
    int64_t dims[64];
    const char *problem;
    if (!read_dims(&c, item, dims))
        return false;
    c.got =
        rung_plan_resolve(arena, plan, task, dims, &point, sms ? (uint32_t)sms->i : 132, &problem);
    if (!c.got) {
        rung_buf_printf(why, "%s", problem);
        return false;
    }
    const struct rung_node *n = rung_node_get(item, "launches")->first;
    bool same = true;
    uint32_t k = 0;
    for (; n && k < c.got->n_steps; n = n->next, k++)
        same &= same_step(&c, n, &c.got->steps[k]);
    if (n || k < c.got->n_steps) {
        rung_buf_printf(why, "%u steps; ", c.got->n_steps);
        same = false;
    }
    return same_temps(&c, rung_node_get(item, "temps")) && same;
}
