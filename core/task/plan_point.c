/*
 * Tune points: counting, walking, naming them, and the `where` conditions. Pure.
 */
#include "task/plan_scope.h"

#include <string.h>

static const uint64_t MAX_POINTS = 1000000;
/* A hostile plan may have a million points that all fail: the search for the first allowed one
 * stops here. */
static const uint64_t MAX_SEARCH = 65536;

struct rung_point rung_plan_default_point(const struct rung_plan *plan)
{
    return rung_plan_point(plan, 0);
}

uint64_t rung_plan_points(const struct rung_plan *plan)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < plan->n_tunes; i++) {
        n *= plan->tunes[i].n_values;
        if (n > MAX_POINTS)
            return MAX_POINTS;
    }
    return n;
}

struct rung_point rung_plan_point(const struct rung_plan *plan, uint64_t index)
{
    struct rung_point point = {.n = plan->n_tunes};
    for (uint32_t i = plan->n_tunes; i-- > 0;) {
        point.values[i] = plan->tunes[i].values[index % plan->tunes[i].n_values];
        index /= plan->tunes[i].n_values;
    }
    return point;
}

char *rung_point_text(struct rung_arena *arena, const struct rung_plan *plan,
                      const struct rung_point *point)
{
    struct rung_buf buf = {0};
    for (uint32_t i = 0; i < plan->n_tunes; i++)
        rung_buf_printf(&buf, "%s%s=%lld", i ? " " : "", plan->tunes[i].name,
                        (long long)point->values[i]);
    char *text = rung_arena_strdup(arena, rung_buf_text(&buf));
    rung_buf_free(&buf);
    return text;
}

static bool tune_has(const struct rung_tune *tune, int64_t value)
{
    for (uint32_t i = 0; i < tune->n_values; i++)
        if (tune->values[i] == value)
            return true;
    return false;
}

/* One "NAME=VALUE" into the point. */
static bool set_tune(struct rung_arena *arena, const struct rung_plan *plan, char *item,
                     uint64_t *seen, struct rung_point *out, const char **problem)
{
    char *eq = strchr(item, '=');
    uint32_t i = 0;
    int64_t v;
    if (eq)
        *eq = 0;
    while (i < plan->n_tunes && strcmp(plan->tunes[i].name, item) != 0)
        i++;
    if (!eq || !rung_parse_i64(eq + 1, &v))
        *problem = rung_arena_printf(arena, "'%s' is not NAME=INTEGER", item);
    else if (i == plan->n_tunes)
        *problem = rung_arena_printf(arena, "the plan has no tune '%s'", item);
    else if (!tune_has(&plan->tunes[i], v))
        *problem = rung_arena_printf(arena, "%lld is no value of tune '%s'", (long long)v, item);
    else if (*seen & (1ull << i))
        *problem = rung_arena_printf(arena, "tune '%s' stands twice", item);
    else {
        *seen |= 1ull << i;
        out->values[i] = v;
        return true;
    }
    return false;
}

bool rung_point_parse(struct rung_arena *arena, const struct rung_plan *plan, const char *text,
                      struct rung_point *out, const char **problem)
{
    char *copy = rung_arena_strdup(arena, text), *save = NULL;
    uint64_t seen = 0;
    *out = rung_plan_default_point(plan);
    for (char *item = strtok_r(copy, " ,", &save); item; item = strtok_r(NULL, " ,", &save))
        if (!set_tune(arena, plan, item, &seen, out, problem))
            return false;
    for (uint32_t i = 0; i < plan->n_tunes; i++)
        if (!(seen & (1ull << i))) {
            *problem = rung_arena_printf(arena, "the point lacks tune '%s'", plan->tunes[i].name);
            return false;
        }
    return true;
}

/* The conditions of a plan, parsed once. scratch is reset between points: only faults fill it. */
struct conditions {
    const struct rung_plan *plan;
    const struct rung_task *task;
    struct rung_expr **exprs;
    struct rung_arena *arena, *scratch;
    uint32_t sm_count;
};

static bool conditions_new(struct conditions *c, const struct rung_plan *plan,
                           const struct rung_task *task, uint32_t sm_count)
{
    const char *problem;
    *c = (struct conditions){.plan = plan, .task = task, .sm_count = sm_count};
    c->arena = rung_arena_new();
    c->scratch = rung_arena_new();
    if (!c->arena || !c->scratch)
        return false;
    c->exprs = RUNG_ARENA_NEW(c->arena, struct rung_expr *, plan->n_where);
    for (uint32_t i = 0; i < plan->n_where; i++)
        if (!(c->exprs[i] = rung_expr_parse(c->arena, plan->where[i].text, &problem)))
            return false;
    return true;
}

static void conditions_free(struct conditions *c)
{
    rung_arena_free(c->arena);
    rung_arena_free(c->scratch);
}

static bool hold(struct conditions *c, const int64_t *dims, const struct rung_point *point)
{
    struct plan_scope s = {.task = c->task,
                           .tunes = c->plan->tunes,
                           .n_tunes = c->plan->n_tunes,
                           .names = PLAN_ALL,
                           .dims = dims,
                           .point = point,
                           .sm_count = c->sm_count};
    struct rung_scope names = rung_plan_names(&s);
    for (uint32_t i = 0; i < c->plan->n_where; i++) {
        struct rung_value v;
        const char *problem;
        bool good = rung_expr_eval(c->exprs[i], &names, c->scratch, &v, &problem);
        if (!good)
            rung_arena_reset(c->scratch);
        if (!good || (v.is_float ? v.f == 0 : v.i == 0))
            return false;
    }
    return true;
}

bool rung_plan_allows(const struct rung_plan *plan, const struct rung_task *task,
                      const int64_t *dims, const struct rung_point *point, uint32_t sm_count)
{
    struct conditions c;
    bool good = conditions_new(&c, plan, task, sm_count) && hold(&c, dims, point);
    conditions_free(&c);
    return good;
}

bool rung_plan_first_point(const struct rung_plan *plan, const struct rung_task *task,
                           uint32_t sm_count, struct rung_point *out)
{
    struct conditions c;
    bool found = false, usable = conditions_new(&c, plan, task, sm_count);
    uint64_t n = rung_plan_points(plan);
    for (uint64_t i = 0; usable && !found && i < n && i < MAX_SEARCH; i++) {
        *out = rung_plan_point(plan, i);
        found = true;
        for (uint32_t k = 0; k < task->n_bench && found; k++)
            found = hold(&c, task->bench[k].dims, out);
    }
    conditions_free(&c);
    return found;
}
