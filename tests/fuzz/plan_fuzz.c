/*
 * libFuzzer: any text as a source is read for plan lines; what is accepted resolves at some dims to
 * launches within CUDA's limits, or says why not.
 */
#include "task/plan.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t dims[] = {7, 1000};
static const struct rung_dim dim_list[] = {
    {.name = "rows", .value = 7, .min = 1, .max = INT64_MAX, .multiple_of = 1},
    {.name = "cols", .value = 1000, .min = 1, .max = INT64_MAX, .multiple_of = 1}};
static const struct rung_param params[] = {{.name = "scale", .dtype = RUNG_F64, .f64 = 0.5}};
static const struct rung_tensor_spec tensors[] = {
    {.role = RUNG_ROLE_INPUT,
     .dtype = RUNG_F32,
     .n_dims = 2,
     .name = "x",
     .shape = {"rows", "cols"}},
    {.role = RUNG_ROLE_OUTPUT, .dtype = RUNG_F32, .n_dims = 1, .name = "y", .shape = {"rows"}}};
static const struct rung_shape_case cases[] = {{.dims = dims, .weight = 1}};

static void check_symbol(const struct rung_resolved_step *step)
{
    int64_t elements = step->target_kind == RUNG_ARG_TENSOR ? 7 * 1000 : INT64_MAX;
    if (!step->symbol || step->offset < 0 || step->count < 0 ||
        step->count > elements - step->offset)
        __builtin_trap();
}

static void check_step(const struct rung_resolved_step *step)
{
    if (step->kind == RUNG_STEP_SYMBOL)
        check_symbol(step);
    if (step->kind != RUNG_STEP_LAUNCH)
        return;
    uint64_t threads = (uint64_t)step->block.x * step->block.y * step->block.z;
    if (!threads || threads > 1024 || !step->grid.x || step->grid.x > INT32_MAX ||
        !step->expression)
        __builtin_trap();
    const struct rung_dim3 *c = &step->cluster;
    uint32_t blocks = c->x * c->y * c->z;
    if ((c->x || c->y || c->z) &&
        (!blocks || blocks > 16 || step->grid.x % c->x || step->grid.y % c->y))
        __builtin_trap();
}

/* A map must not reach beyond its tensor, whatever its dims and strides. */
static void check_map(const struct rung_resolved_map *m)
{
    unsigned __int128 end = m->offset + 4;
    for (uint32_t i = 0; i < m->map.n_dims; i++) {
        if (!m->map.dims[i])
            return;
        end += (unsigned __int128)(m->map.dims[i] - 1) * (i ? m->map.strides[i] : 4);
    }
    if (m->map.n_dims < 1 || m->map.n_dims > RUNG_TENSORMAP_DIMS ||
        (m->target_kind == RUNG_ARG_TENSOR && end > (m->target_index ? 7 : 7000) * 4))
        __builtin_trap();
}

static void use(struct rung_arena *arena, const struct rung_task *task,
                const struct rung_plan *plan)
{
    struct rung_point point = rung_plan_default_point(plan), back;
    const char *problem;
    uint32_t n;
    if (!rung_point_parse(arena, plan, rung_point_text(arena, plan, &point), &back, &problem))
        __builtin_trap();
    rung_plan_allows(plan, task, dims, &point, 132);
    rung_plan_expressions(arena, plan, task, &point, &n, &problem);
    rung_plan_symbols(arena, plan, &n);
    const struct rung_resolved_plan *r =
        rung_plan_resolve(arena, plan, task, dims, &point, 132, &problem);
    for (uint32_t i = 0; r && i < r->n_steps; i++)
        check_step(&r->steps[i]);
    for (uint32_t i = 0; r && i < r->n_maps; i++)
        check_map(&r->maps[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rung_task task = {.n_dims = 2,
                             .n_params = 1,
                             .n_tensors = 2,
                             .n_bench = 1,
                             .dims = dim_list,
                             .params = params,
                             .tensors = tensors,
                             .bench = cases,
                             .shape_rule = size % 2 ? RUNG_SHAPES_FIXED : RUNG_SHAPES_RANGE};
    struct rung_arena *arena = rung_arena_new();
    struct rung_text source = {rung_arena_strndup(arena, (const char *)data, size), size};
    const char *problem = NULL;
    const struct rung_plan *plan = rung_plan_parse(arena, &task, "f.cu", source, &problem);
    if (!plan != !!problem)
        __builtin_trap();
    if (plan)
        use(arena, &task, plan);
    rung_arena_free(arena);
    return 0;
}
