/*
 * From a symbolic plan to launches at some dims and a tune point. Pure; results in the caller's
 * arena.
 */
#include "task/plan_scope.h"
#include "base/status.h"

#include <string.h>

static const int64_t MAX_TEMP_BYTES = INT64_C(1) << 38;
static const int64_t MAX_SHARED = INT64_C(1) << 24;

struct resolver {
    struct rung_arena *arena;
    const struct rung_plan *plan;
    struct plan_scope scope;
    int64_t *temp_elements;
    struct rung_resolved_map *maps; /* room for each of the plan's */
    uint32_t n_maps;
    const char **problem;
};

static bool fail(struct resolver *r, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct resolver *r, uint32_t line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *r->problem = rung_arena_printf(r->arena, "line %u: %s", line,
                                    rung_arena_vprintf(r->arena, format, args));
    va_end(args);
    return false;
}

static bool resolve_temps(struct resolver *r)
{
    int64_t total = 0;
    r->temp_elements = RUNG_ARENA_NEW(r->arena, int64_t, r->plan->n_temps);
    for (uint32_t i = 0; i < r->plan->n_temps; i++) {
        const struct rung_temp *t = &r->plan->temps[i];
        int64_t n, bytes = rung_dtype_bits(t->dtype) / 8;
        if (!rung_plan_integer(r->arena, &r->scope, &t->count, "temp count", 0, &n, r->problem))
            return false;
        if (n < 0)
            return fail(r, t->count.line, "temp %s has %lld elements; a count can't be negative",
                        t->name, (long long)n);
        if (__builtin_mul_overflow(n, bytes, &bytes) ||
            __builtin_add_overflow(total, bytes, &total) || total > MAX_TEMP_BYTES)
            return fail(r, t->count.line, "the temps up to %s pass 2^38 bytes", t->name);
        r->temp_elements[i] = n;
    }
    return true;
}

/* One of grid and block: three sizes between 0 and their limits. */
static bool resolve_dim3(struct resolver *r, const struct rung_expr_text exprs[3], const char *what,
                         const int64_t most[3], uint32_t line, struct rung_dim3 *out)
{
    int64_t v[3];
    for (int i = 0; i < 3; i++) {
        if (!rung_plan_integer(r->arena, &r->scope, &exprs[i], what, 1, &v[i], r->problem))
            return false;
        if (v[i] < 0 || v[i] > most[i])
            return fail(r, line, "%s.%c = \"%s\" is %lld, but it must lie between 0 and %lld", what,
                        "xyz"[i], exprs[i].text, (long long)v[i], (long long)most[i]);
    }
    *out = (struct rung_dim3){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
    return true;
}

/* Blocks a cluster: at most 16, the most that any GPU takes, and they must tile the grid. */
static bool resolve_cluster(struct resolver *r, const struct rung_step *step,
                            struct rung_resolved_step *out)
{
    static const int64_t most[3] = {16, 16, 16};
    struct rung_dim3 *c = &out->cluster;
    if (!step->cluster[0].text)
        return true;
    if (!resolve_dim3(r, step->cluster, "cluster", most, step->line, c))
        return false;
    uint32_t blocks = c->x * c->y * c->z;
    if (blocks == 0 || blocks > 16)
        return fail(r, step->line,
                    "the cluster (%u, %u, %u) has %u blocks, but it must have 1 to 16, and 8 is "
                    "the most that every GPU with clusters takes",
                    c->x, c->y, c->z, blocks);
    if (out->grid.x % c->x || out->grid.y % c->y || out->grid.z % c->z)
        return fail(r, step->line,
                    "the grid (%u, %u, %u) is no multiple of the cluster (%u, %u, %u): round the "
                    "grid up and let the blocks beyond the end return",
                    out->grid.x, out->grid.y, out->grid.z, c->x, c->y, c->z);
    return true;
}

static bool resolve_shape(struct resolver *r, const struct rung_step *step,
                          struct rung_resolved_step *out)
{
    static const int64_t most_grid[3] = {INT32_MAX, 65535, 65535}, most_block[3] = {1024, 1024, 64};
    int64_t shared;
    if (!resolve_dim3(r, step->grid, "grid", most_grid, step->line, &out->grid) ||
        !resolve_dim3(r, step->block, "block", most_block, step->line, &out->block) ||
        !rung_plan_integer(r->arena, &r->scope, &step->shared, "shared", 0, &shared, r->problem))
        return false;
    uint64_t threads = (uint64_t)out->block.x * out->block.y * out->block.z;
    if (threads == 0 || threads > 1024)
        return fail(r, step->line,
                    "the block (%u, %u, %u) has %llu threads, but it must have 1 to 1024",
                    out->block.x, out->block.y, out->block.z, (unsigned long long)threads);
    if (shared < 0 || shared > MAX_SHARED)
        return fail(r, step->line, "shared is %lld bytes, but it must lie between 0 and 2^24",
                    (long long)shared);
    out->shared = (uint32_t)shared;
    return true;
}

/* Elements that the tensor or temp of an argument takes, gaps included; a tensor's layout too. */
static bool target_layout(struct resolver *r, const struct rung_arg *arg, uint32_t line,
                          struct rung_layout *layout, int64_t *n)
{
    struct rung_error err = rung_error_init();
    if (arg->kind == RUNG_ARG_TEMP) {
        *n = r->temp_elements[arg->index];
        return true;
    }
    if (rung_task_layout(r->scope.task, arg->index, r->scope.dims, layout, &err) != RUNG_OK)
        return fail(r, line, "%s", err.message);
    *n = layout->extent;
    return true;
}

static bool target_elements(struct resolver *r, const struct rung_arg *arg, uint32_t line,
                            int64_t *n)
{
    struct rung_layout layout;
    return target_layout(r, arg, line, &layout, n);
}

/* The part of a tensor or temp that a symbol takes. */
static bool resolve_symbol(struct resolver *r, const struct rung_step *step,
                           struct rung_resolved_step *out)
{
    const struct rung_arg target = {.kind = step->target_kind, .index = step->target_index};
    int64_t n;
    *out = (struct rung_resolved_step){.kind = RUNG_STEP_SYMBOL,
                                       .line = step->line,
                                       .target_kind = step->target_kind,
                                       .target_index = step->target_index,
                                       .symbol = step->symbol};
    if (!target_elements(r, &target, step->line, &n) ||
        !rung_plan_integer(r->arena, &r->scope, &step->offset, "offset", 0, &out->offset,
                           r->problem))
        return false;
    if (out->offset < 0 || out->offset > n)
        return fail(r, step->line, "symbol %s: offset \"%s\" is %lld, outside the %lld elements",
                    step->symbol, step->offset.text, (long long)out->offset, (long long)n);
    if (!rung_plan_integer(r->arena, &r->scope, &step->count, "count", n - out->offset, &out->count,
                           r->problem))
        return false;
    if (out->count < 0 || out->count > n - out->offset)
        return fail(r, step->line,
                    "symbol %s: count \"%s\" is %lld, but %lld of the %lld elements follow the "
                    "offset",
                    step->symbol, step->count.text, (long long)out->count,
                    (long long)(n - out->offset), (long long)n);
    return true;
}

static bool resolve_pointer(struct resolver *r, const struct rung_arg *arg, uint32_t line,
                            struct rung_resolved_arg *out)
{
    int64_t n;
    if (!arg->expr.text)
        return true;
    if (!rung_plan_integer(r->arena, &r->scope, &arg->expr, "offset", 0, &out->i, r->problem) ||
        !target_elements(r, arg, line, &n))
        return false;
    if (out->i < 0 || out->i > n)
        return fail(r, line, "offset \"%s\" is %lld, outside the %lld elements", arg->expr.text,
                    (long long)out->i, (long long)n);
    return true;
}

/* A tensor map counts only where a launch takes it: shapes that it can't have may go without. */
static bool resolve_map(struct resolver *r, uint32_t index, uint32_t line)
{
    struct rung_layout layout;
    int64_t n;
    for (uint32_t i = 0; i < r->n_maps; i++)
        if (r->maps[i].index == index)
            return true;
    if (index >= r->plan->n_tensormaps)
        return fail(r, line, "there is no tensormap %u", index);
    const struct rung_tensormap_spec *spec = &r->plan->tensormaps[index];
    const struct rung_arg target = {.kind = spec->target_kind, .index = spec->target_index};
    bool temp = spec->target_kind == RUNG_ARG_TEMP;
    uint32_t dtype = temp ? r->plan->temps[spec->target_index].dtype
                          : r->scope.task->tensors[spec->target_index].dtype;
    if (!target_layout(r, &target, spec->line, &layout, &n) ||
        !rung_plan_resolve_map(r->arena, &r->scope, spec, dtype, temp ? NULL : &layout, n,
                               &r->maps[r->n_maps], r->problem))
        return false;
    r->maps[r->n_maps++].index = index;
    return true;
}

static bool resolve_arg(struct resolver *r, const struct rung_arg *arg, uint32_t line,
                        struct rung_resolved_arg *out)
{
    struct rung_scope names = rung_plan_names(&r->scope);
    struct rung_value v;
    *out = (struct rung_resolved_arg){.kind = arg->kind, .index = arg->index};
    if (arg->kind == RUNG_ARG_TENSOR || arg->kind == RUNG_ARG_TEMP)
        return resolve_pointer(r, arg, line, out);
    if (arg->kind == RUNG_ARG_TENSORMAP)
        return resolve_map(r, arg->index, line);
    if (!rung_expr_value(r->arena, arg->expr.text, &names, &v, r->problem))
        return fail(r, line, "argument \"%s\": %s", arg->expr.text, *r->problem);
    out->i = v.i;
    out->f = v.f;
    return true;
}

/* Whether the step's `when` holds. */
static bool resolve_when(struct resolver *r, const struct rung_step *step, bool *runs)
{
    int64_t v;
    if (!rung_plan_integer(r->arena, &r->scope, &step->when, "when", 1, &v, r->problem))
        return false;
    *runs = v != 0;
    return true;
}

/* Names whose values a template argument may hold. */
static uint32_t compile_names(const struct rung_task *task)
{
    return PLAN_PARAMS | PLAN_TUNES | (task->shape_rule == RUNG_SHAPES_FIXED ? PLAN_DIMS : 0);
}

/* *runs = false when the grid is empty. */
static bool resolve_launch(struct resolver *r, const struct rung_step *step,
                           struct rung_resolved_step *out, bool *runs)
{
    *out = (struct rung_resolved_step){
        .kind = RUNG_STEP_LAUNCH, .line = step->line, .flags = step->flags};
    if (!resolve_shape(r, step, out))
        return false;
    *runs = out->grid.x && out->grid.y && out->grid.z;
    if (!*runs)
        return true;
    if (!resolve_cluster(r, step, out))
        return false;
    struct plan_scope compile_time = r->scope;
    compile_time.names = compile_names(r->scope.task);
    out->expression = rung_plan_expression(r->arena, &compile_time, step, r->problem);
    struct rung_resolved_arg *args =
        RUNG_ARENA_NEW(r->arena, struct rung_resolved_arg, step->n_args);
    out->args = args;
    out->n_args = step->n_args;
    for (uint32_t i = 0; out->expression && i < step->n_args; i++)
        if (!resolve_arg(r, &step->args[i], step->line, &args[i]))
            return false;
    return out->expression != NULL;
}

static bool resolve_step(struct resolver *r, const struct rung_step *step,
                         struct rung_resolved_step *out, bool *runs)
{
    if (!resolve_when(r, step, runs))
        return false;
    if (!*runs)
        return true;
    if (step->kind == RUNG_STEP_LAUNCH)
        return resolve_launch(r, step, out, runs);
    if (step->kind == RUNG_STEP_SYMBOL)
        return resolve_symbol(r, step, out);
    if (step->kind != RUNG_STEP_SET)
        return fail(r, step->line, "steps of kind %u are not supported by this version",
                    step->kind);
    *out = (struct rung_resolved_step){.kind = RUNG_STEP_SET,
                                       .line = step->line,
                                       .target_kind = step->target_kind,
                                       .target_index = step->target_index,
                                       .pattern = step->pattern};
    return true;
}

const struct rung_resolved_plan *
rung_plan_resolve(struct rung_arena *arena, const struct rung_plan *plan,
                  const struct rung_task *task, const int64_t *dims, const struct rung_point *point,
                  uint32_t sm_count, const char **problem)
{
    struct resolver r = {.arena = arena,
                         .plan = plan,
                         .maps =
                             RUNG_ARENA_NEW(arena, struct rung_resolved_map, plan->n_tensormaps),
                         .problem = problem};
    r.scope = (struct plan_scope){.task = task,
                                  .tunes = plan->tunes,
                                  .n_tunes = plan->n_tunes,
                                  .names = PLAN_ALL,
                                  .dims = dims,
                                  .point = point,
                                  .sm_count = sm_count};
    *problem = NULL;
    if (!resolve_temps(&r))
        return NULL;
    struct rung_resolved_plan *out = RUNG_ARENA_NEW(arena, struct rung_resolved_plan, 1);
    struct rung_resolved_step *steps =
        RUNG_ARENA_NEW(arena, struct rung_resolved_step, plan->n_steps);
    *out = (struct rung_resolved_plan){
        .temp_elements = r.temp_elements, .maps = r.maps, .steps = steps};
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        bool runs;
        if (!resolve_step(&r, &plan->steps[i], &steps[out->n_steps], &runs))
            return NULL;
        out->n_steps += runs;
    }
    out->n_maps = r.n_maps;
    return out;
}

/* ---- Kernel instances ----------------------------------------------------------------------- */

/* Whether `when` is surely false at dims; what needs the device's sm_count is left open. */
static bool never_runs(struct rung_arena *arena, struct plan_scope scope,
                       const struct rung_step *step)
{
    const char *problem;
    int64_t v;
    scope.names = PLAN_DIMS | PLAN_PARAMS | PLAN_TUNES;
    return rung_plan_integer(arena, &scope, &step->when, "when", 1, &v, &problem) && v == 0;
}

static void add_once(const char **list, uint32_t *n, const char *text)
{
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return;
    list[(*n)++] = text;
}

/* The dims of case i: bench shapes, then the author's check shapes. */
static const int64_t *case_dims(const struct rung_task *task, uint32_t i)
{
    return i < task->n_bench ? task->bench[i].dims : task->extra[i - task->n_bench].dims;
}

const char *const *rung_plan_expressions(struct rung_arena *arena, const struct rung_plan *plan,
                                         const struct rung_task *task,
                                         const struct rung_point *point, uint32_t *n,
                                         const char **problem)
{
    bool fixed = task->shape_rule == RUNG_SHAPES_FIXED;
    uint32_t n_cases = fixed ? task->n_bench + task->n_extra : 1;
    const char **list = RUNG_ARENA_NEW(arena, const char *, (uint64_t)plan->n_steps *n_cases);
    *n = 0;
    *problem = NULL;
    for (uint32_t c = 0; c < n_cases; c++) {
        struct plan_scope scope = {.task = task,
                                   .tunes = plan->tunes,
                                   .n_tunes = plan->n_tunes,
                                   .names = compile_names(task),
                                   .dims = case_dims(task, c),
                                   .point = point};
        for (uint32_t i = 0; i < plan->n_steps; i++) {
            const struct rung_step *step = &plan->steps[i];
            if (step->kind != RUNG_STEP_LAUNCH || (fixed && never_runs(arena, scope, step)))
                continue;
            const char *text = rung_plan_expression(arena, &scope, step, problem);
            if (!text)
                return NULL;
            add_once(list, n, text);
        }
    }
    return list;
}

const char *const *rung_plan_symbols(struct rung_arena *arena, const struct rung_plan *plan,
                                     uint32_t *n)
{
    const char **list = RUNG_ARENA_NEW(arena, const char *, plan->n_steps);
    *n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == RUNG_STEP_SYMBOL)
            add_once(list, n, plan->steps[i].symbol);
    return list;
}
