/*
 * From a plan at some dims to launches: resolve, pack, launch in order, watch for faults, count. A
 * memset of the plan counts as a launch named "memset", with the traffic that it causes.
 */
#include "session/private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault_set(struct rung_fault *fault, const char *code, const char *kernel, uint32_t line,
               const char *format, ...)
{
    if (fault_is(fault))
        return;
    snprintf(fault->code, sizeof fault->code, "%s", code);
    snprintf(fault->kernel, sizeof fault->kernel, "%s", kernel);
    fault->line = line;
    va_list args;
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
}

int32_t launch_resolve(struct run *run, struct rung_call *call)
{
    const struct rung_session_spec *spec = &run->session->spec;
    const char *problem = NULL;
    (void)call;
    if (!rung_plan_allows(spec->plan, spec->task, run->memory->dims, &spec->point,
                          spec->info->sm_count)) {
        fault_set(&run->pub.fault, "plan.error", "", 0,
                  "a `where` line of the plan excludes these dims (%s) at %s",
                  rung_task_dims_text(run->arena, spec->task, run->memory->dims),
                  spec->point.n ? rung_point_text(run->arena, spec->plan, &spec->point)
                                : "any point");
        return RUNG_OK;
    }
    run->memory->plan =
        rung_plan_resolve(run->memory->arena, spec->plan, spec->task, run->memory->dims,
                          &spec->point, spec->info->sm_count, &problem);
    if (!run->memory->plan)
        fault_set(&run->pub.fault, "plan.error", "", 0, "%s", problem);
    return RUNG_OK;
}

static const struct rung_kernel *find_kernel(const struct rung_artifact *artifact,
                                             const char *expression)
{
    for (uint32_t i = 0; i < artifact->n_kernels; i++)
        if (strcmp(artifact->kernels[i].expression, expression) == 0)
            return &artifact->kernels[i];
    return NULL;
}

/* Limits that hold on the device whatever the kernel does. */
static bool within_limits(struct run *run, const struct rung_resolved_step *step,
                          const struct rung_kernel *k)
{
    const struct rung_device_info *info = run->session->spec.info;
    uint64_t threads = (uint64_t)step->block.x * step->block.y * step->block.z;
    uint64_t most = info->max_threads_per_block, shared = (uint64_t)step->shared + k->static_shared;
    if (k->max_threads && k->max_threads < most)
        most = k->max_threads;
    if (threads > most)
        fault_set(&run->pub.fault, "launch.resources", step->expression, step->line,
                  "a block of %" PRIu64 " threads; %" PRIu64
                  " is the most that this kernel can have here",
                  threads, most);
    else if (shared > info->max_shared_bytes)
        fault_set(&run->pub.fault, "launch.resources", step->expression, step->line,
                  "%" PRIu64 " bytes of shared memory a block (%u static, %u dynamic); at most %u",
                  shared, k->static_shared, step->shared, info->max_shared_bytes);
    return !fault_is(&run->pub.fault);
}

/* The parameter block of a launch, or NULL with a fault. maps: as rung_plan_pack has them. */
static void *pack(struct run *run, const struct rung_resolved_step *step,
                  const struct rung_kernel *k, const void *maps)
{
    const struct rung_session_spec *spec = &run->session->spec;
    const char *problem = NULL;
    struct rung_arena *arena = run->memory->arena;
    void *block = rung_arena_alloc(arena, k->param_bytes ? k->param_bytes : 1, 16);
    if (block &&
        rung_plan_pack(step, k, spec->task, spec->plan, run->addresses,
                       run->addresses + spec->task->n_tensors, maps, block, arena, &problem))
        return block;
    fault_set(&run->pub.fault, "plan.error", step->expression, step->line, "%s",
              problem ? problem : "no room for the parameters");
    return NULL;
}

void launch_take_fault(struct run *run, struct rung_fault *fault,
                       const struct rung_resolved_step *step)
{
    fault->code[sizeof fault->code - 1] = 0;
    fault->kernel[sizeof fault->kernel - 1] = 0;
    fault->message[sizeof fault->message - 1] = 0;
    if (!fault_is(fault) || fault_is(&run->pub.fault))
        return;
    if (!fault->kernel[0] && step)
        snprintf(fault->kernel, sizeof fault->kernel, "%s", step->expression);
    if (!fault->line && step && strncmp(fault->code, "launch.", 7) == 0)
        fault->line = step->line;
    run->pub.fault = *fault;
    if (fault->sticky)
        run->session->lost = *fault;
}

int32_t launch_sync(struct run *run, struct rung_call *call, const struct rung_resolved_step *step)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    int32_t status = device_sync(run->session, call, &fault);
    if (status == RUNG_OK)
        launch_take_fault(run, &fault, step);
    return status;
}

struct slot *launch_target(struct run *run, const struct rung_resolved_step *step)
{
    uint32_t n_tensors = run->session->spec.task->n_tensors, at = step->target_index;
    bool temp = step->target_kind == RUNG_ARG_TEMP;
    if (at >= (temp ? run->n_slots - n_tensors : n_tensors))
        return NULL;
    return &run->slots[temp ? n_tensors + at : at];
}

void launch_moves(struct run *run, uint32_t index, uint64_t bytes_read, uint64_t bytes_written)
{
    uint64_t from = (bytes_read + 31) / 32, to = (bytes_written + 31) / 32;
    uint64_t sectors = from > to ? from : to, blocks = (sectors + 127) / 128;
    run->memory->facts[index] = (struct rung_launch_facts){
        .struct_size = sizeof(struct rung_launch_facts),
        .grid = {blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX, 1, 1},
        .block = {256, 1, 1},
        .registers = 16};
    if (!run->counters)
        return;
    run->counters[index] = (struct rung_counters){.struct_size = sizeof(struct rung_counters),
                                                  .grid_blocks = blocks,
                                                  .blocks = blocks,
                                                  .threads_per_block = 256,
                                                  .warp_instructions = sectors / 4,
                                                  .lane_instructions = sectors * 8,
                                                  .global_loads = (from + 15) / 16,
                                                  .global_stores = (to + 15) / 16,
                                                  .global_sectors_read = from,
                                                  .global_sectors_written = to,
                                                  .global_lines = (from + 3) / 4 + (to + 3) / 4,
                                                  .unique_sectors_read = from,
                                                  .unique_sectors_written = to};
}

static int32_t step_set(struct run *run, struct rung_call *call,
                        const struct rung_resolved_step *step, uint32_t index)
{
    struct slot *s = launch_target(run, step);
    if (!s || s->role == RUNG_ROLE_INPUT || s->role == RUNG_ROLE_WEIGHT) {
        fault_set(&run->pub.fault, "plan.error", "", step->line,
                  "only outputs and temps can be set by the plan");
        return RUNG_OK;
    }
    if (s->strided) {
        fault_set(&run->pub.fault, "plan.error", "", step->line,
                  "zero would write between the elements of %s, which has strides; zero it in a "
                  "kernel",
                  s->name);
        return RUNG_OK;
    }
    launch_moves(run, index, 0, s->bytes);
    if (!s->bytes)
        return RUNG_OK;
    return device_fill(run->session, call, s->buffer, s->offset, s->bytes, &step->pattern,
                       sizeof step->pattern, 1);
}

static int32_t step_launch(struct run *run, struct rung_call *call,
                           const struct rung_resolved_step *step, const struct ready *ready,
                           uint32_t index)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_counters *counters = NULL;
    if (run->counters) {
        counters = run->counters + index;
        *counters = (struct rung_counters){.struct_size = sizeof *counters};
    }
    struct rung_launch launch = {
        .struct_size = sizeof launch,
        .shared_bytes = step->shared,
        .module = run->session->module,
        .kernel = ready->kernel,
        .grid = step->grid,
        .block = step->block,
        .params = ready->params,
        .param_bytes = ready->kernel->param_bytes,
        .counters = counters,
        .cluster = step->cluster,
        .flags = step->flags & RUNG_STEP_COOPERATIVE ? (uint32_t)RUNG_LAUNCH_COOPERATIVE : 0,
        .sample_blocks = run->flags & RUNG_RUN_SAMPLED ? run->sample_blocks : 0};
    int32_t status = device_launch(run->session, call, &launch, &fault);
    if (status == RUNG_OK)
        launch_take_fault(run, &fault, step);
    /* A fault at a later sync could not be put down to a kernel, so each launch is waited for. */
    if (status == RUNG_OK && !fault_is(&run->pub.fault) && !(run->flags & RUNG_RUN_TIMED))
        status = launch_sync(run, call, step);
    return status;
}

/* The kernel of a launch and its parameters, or a fault. */
static const char *prepare_launch(struct run *run, const struct rung_resolved_step *step,
                                  const void *maps, struct ready *ready,
                                  struct rung_launch_facts *facts)
{
    const struct rung_kernel *k = find_kernel(run->session->spec.artifact, step->expression);
    if (!k) {
        fault_set(&run->pub.fault, "plan.error", step->expression, step->line,
                  "the compiled code has no kernel %s", step->expression);
        return NULL;
    }
    if (!within_limits(run, step, k) || !(ready->params = pack(run, step, k, maps)))
        return NULL;
    ready->kernel = k;
    *facts = (struct rung_launch_facts){.struct_size = sizeof *facts,
                                        .shared_bytes = step->shared + k->static_shared,
                                        .grid = step->grid,
                                        .block = step->block,
                                        .registers = k->registers,
                                        .spill_bytes = k->spill_bytes};
    return k->expression;
}

static int32_t encode_map(struct run *run, struct rung_call *call,
                          const struct rung_resolved_map *m, uint8_t *maps)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_tensormap map = m->map;
    uint32_t temps = m->target_kind == RUNG_ARG_TEMP ? run->session->spec.task->n_tensors : 0;
    if (!device_has_tensormaps(run->session)) {
        fault_set(&run->pub.fault, "device.unsupported", "", m->line, "%s has no tensor maps",
                  run->session->spec.info->name);
        return RUNG_OK;
    }
    map.struct_size = sizeof map;
    map.address = run->addresses[temps + m->target_index] + m->offset;
    int32_t status = device_tensormap(run->session, call, &map,
                                      maps + (uint64_t)m->index * RUNG_TENSORMAP_BYTES, &fault);
    if (status == RUNG_OK && fault_is(&fault) && !fault.line)
        fault.line = m->line;
    if (status == RUNG_OK)
        launch_take_fault(run, &fault, NULL);
    return status;
}

/* All tensor maps of the plan on the set in use; *out NULL without any. */
static int32_t encode_maps(struct run *run, struct rung_call *call, const void **out)
{
    const struct rung_resolved_plan *plan = run->memory->plan;
    uint64_t n = 0;
    int32_t status = RUNG_OK;
    *out = NULL;
    for (uint32_t i = 0; i < plan->n_maps; i++)
        n = plan->maps[i].index >= n ? (uint64_t)plan->maps[i].index + 1 : n;
    if (!n)
        return RUNG_OK;
    uint8_t *maps = rung_arena_alloc(run->memory->arena, n * RUNG_TENSORMAP_BYTES, 64);
    if (!maps)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory", "no room for the maps");
    for (uint32_t i = 0; i < plan->n_maps && status == RUNG_OK && !fault_is(&run->pub.fault); i++)
        status = encode_map(run, call, &plan->maps[i], maps);
    *out = maps;
    return status;
}

/* Every step on the set in use; names and facts are the same in all sets. */
static int32_t prepare_set(struct run *run, struct rung_call *call, struct set *set,
                           const char **names, struct rung_launch_facts *facts)
{
    const struct rung_resolved_plan *plan = run->memory->plan;
    struct ready *ready = RUNG_ARENA_NEW(run->memory->arena, struct ready, plan->n_steps + 1);
    const void *maps;
    int32_t status = encode_maps(run, call, &maps);
    if (status != RUNG_OK || fault_is(&run->pub.fault))
        return status;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct rung_resolved_step *step = &plan->steps[i];
        names[i] = step->kind == RUNG_STEP_SYMBOL ? "memcpy symbol" : "memset";
        if (step->kind == RUNG_STEP_LAUNCH)
            names[i] = prepare_launch(run, step, maps, &ready[i], &facts[i]);
        else if (step->kind == RUNG_STEP_SYMBOL)
            status = symbol_prepare(run, call, step, &ready[i]);
        if (status != RUNG_OK || fault_is(&run->pub.fault))
            return status;
    }
    set->ready = ready;
    return RUNG_OK;
}

static uint32_t steps_of(const struct memory *m)
{
    return m->plan ? m->plan->n_steps : 1;
}

static int32_t prepare_all(struct run *run, struct rung_call *call)
{
    struct memory *m = run->memory;
    const char **names = RUNG_ARENA_NEW(m->arena, const char *, steps_of(m) + 1);
    struct rung_launch_facts *facts =
        RUNG_ARENA_NEW(m->arena, struct rung_launch_facts, steps_of(m) + 1);
    int32_t status = RUNG_OK;
    if (!m->plan) {
        const char *label = run->session->spec.baseline_case->label;
        names[0] = rung_arena_strdup(m->arena, label ? label : "baseline");
        facts[0].struct_size = sizeof facts[0];
    }
    for (uint32_t i = 0; m->plan && i < m->n_sets; i++) {
        run_use(run, i);
        status = prepare_set(run, call, &m->sets[i], names, facts);
        if (status != RUNG_OK || fault_is(&run->pub.fault))
            return status;
    }
    m->facts = facts;
    m->kernels = names;
    run_use(run, 0);
    return RUNG_OK;
}

int32_t launch_prepare(struct run *run, struct rung_call *call)
{
    struct memory *m = run->memory;
    int32_t status = m->kernels ? RUNG_OK : prepare_all(run, call);
    if (status != RUNG_OK || fault_is(&run->pub.fault))
        return status;
    run->pub.n_launches = steps_of(m);
    run->pub.kernels = m->kernels;
    run->pub.facts = m->facts;
    if (run->flags & RUNG_RUN_COUNTERS) {
        run->pub.n_counters = steps_of(m);
        run->counters = RUNG_ARENA_NEW(run->arena, struct rung_counters, steps_of(m) + 1);
        run->pub.counters = run->counters;
    }
    return RUNG_OK;
}

/* One execution of a baseline. */
static int32_t enqueue(struct run *run, struct rung_call *call)
{
    const struct rung_session_spec *spec = &run->session->spec;
    struct rung_buffer *scratch = run->memory->scratch;
    uint64_t address = scratch ? device_address(run->session, scratch) : 0;
    int32_t status;
    RUNG_INVOKE(status, spec->baseline, struct rung_baseline_ops, enqueue, call,
                spec->baseline_case, run->addresses, address);
    return status;
}

int32_t launch_steps(struct run *run, struct rung_call *call)
{
    const struct rung_resolved_plan *plan = run->memory->plan;
    int32_t status = RUNG_OK;
    if (!plan)
        return enqueue(run, call);
    for (uint32_t i = 0; i < plan->n_steps && status == RUNG_OK && !fault_is(&run->pub.fault);
         i++) {
        const struct rung_resolved_step *step = &plan->steps[i];
        if (step->kind == RUNG_STEP_LAUNCH)
            status = step_launch(run, call, step, &run->ready[i], i);
        else if (step->kind == RUNG_STEP_SYMBOL)
            status = symbol_copy(run, call, step, &run->ready[i], i);
        else
            status = step_set(run, call, step, i);
    }
    return status;
}
