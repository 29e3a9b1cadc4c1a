#include "task/plan_scope.h"

#include <string.h>

static bool lookup_tune(const struct plan_scope *s, const char *name, struct rung_value *out)
{
    for (uint32_t i = 0; i < s->n_tunes; i++)
        if (strcmp(s->tunes[i].name, name) == 0) {
            *out = (struct rung_value){.i = s->point ? s->point->values[i] : s->tunes[i].values[0]};
            return true;
        }
    return false;
}

static bool lookup(const void *ctx, const char *name, struct rung_value *out)
{
    const struct plan_scope *s = ctx;
    int i;
    if ((s->names & PLAN_TUNES) && lookup_tune(s, name, out))
        return true;
    if ((s->names & PLAN_DIMS) && (i = rung_task_dim(s->task, name)) >= 0) {
        *out = (struct rung_value){.i = s->dims ? s->dims[i] : s->task->dims[i].value};
        return true;
    }
    if ((s->names & PLAN_PARAMS) && (i = rung_task_param(s->task, name)) >= 0) {
        const struct rung_param *p = &s->task->params[i];
        *out = (struct rung_value){.is_float = p->dtype == RUNG_F64, .i = p->i64, .f = p->f64};
        return true;
    }
    if (!(s->names & PLAN_SM_COUNT) || strcmp(name, "sm_count") != 0)
        return false;
    *out = (struct rung_value){.i = s->sm_count};
    return true;
}

static void names(const void *ctx, struct rung_arena *arena, const char *const **list, size_t *n)
{
    const struct plan_scope *s = ctx;
    size_t k = 0;
    const char **all =
        RUNG_ARENA_NEW(arena, const char *, s->n_tunes + s->task->n_dims + s->task->n_params + 1);
    for (uint32_t i = 0; (s->names & PLAN_TUNES) && i < s->n_tunes; i++)
        all[k++] = s->tunes[i].name;
    for (uint32_t i = 0; (s->names & PLAN_DIMS) && i < s->task->n_dims; i++)
        all[k++] = s->task->dims[i].name;
    for (uint32_t i = 0; (s->names & PLAN_PARAMS) && i < s->task->n_params; i++)
        all[k++] = s->task->params[i].name;
    if (s->names & PLAN_SM_COUNT)
        all[k++] = "sm_count";
    *list = all;
    *n = k;
}

struct rung_scope rung_plan_names(const struct plan_scope *scope)
{
    return (struct rung_scope){.lookup = lookup, .names = names, .ctx = scope};
}

bool rung_plan_integer(struct rung_arena *arena, const struct plan_scope *scope,
                       const struct rung_expr_text *expr, const char *what, int64_t fallback,
                       int64_t *out, const char **problem)
{
    struct rung_scope values = rung_plan_names(scope);
    struct rung_value v;
    *out = fallback;
    if (!expr->text)
        return true;
    if (!rung_expr_value(arena, expr->text, &values, &v, problem)) {
        *problem = rung_arena_printf(arena, "line %u: %s \"%s\": %s", expr->line, what, expr->text,
                                     *problem);
        return false;
    }
    if (v.is_float) {
        *problem = rung_arena_printf(arena, "line %u: %s \"%s\" must be an integer", expr->line,
                                     what, expr->text);
        return false;
    }
    *out = v.i;
    return true;
}

bool rung_plan_is_value(struct rung_arena *arena, const struct plan_scope *scope, const char *text)
{
    struct rung_scope values = rung_plan_names(scope);
    const char *problem;
    bool is_float;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return false; /* C++ takes 1 for a bool parameter only with a cast */
    const struct rung_expr *e = rung_expr_parse(arena, text, &problem);
    return e && rung_expr_check(e, &values, arena, &is_float, &problem);
}

const char *rung_plan_expression(struct rung_arena *arena, const struct plan_scope *scope,
                                 const struct rung_step *step, const char **problem)
{
    struct rung_buf buf = {0};
    rung_buf_puts(&buf, step->kernel);
    for (uint32_t i = 0; i < step->n_template_args; i++) {
        const struct rung_expr_text *arg = &step->template_args[i];
        int64_t v;
        rung_buf_puts(&buf, i ? ", " : "<");
        if (!rung_plan_is_value(arena, scope, arg->text)) {
            rung_buf_puts(&buf, arg->text);
        } else if (rung_plan_integer(arena, scope, arg, "template argument", 0, &v, problem)) {
            rung_buf_printf(&buf, "%lld", (long long)v);
        } else {
            rung_buf_free(&buf);
            return NULL;
        }
    }
    if (step->n_template_args)
        rung_buf_putc(&buf, '>');
    const char *text = rung_arena_strdup(arena, rung_buf_text(&buf));
    rung_buf_free(&buf);
    return text;
}
