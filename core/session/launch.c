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
    if (!rung_plan_allows(spec->plan, spec->task, run->dims, &spec->point, spec->info->sm_count)) {
        fault_set(&run->pub.fault, "plan.error", "", 0,
                  "a `where` line of the plan excludes these dims (%s) at %s",
                  rung_task_dims_text(run->arena, spec->task, run->dims),
                  spec->point.n ? rung_point_text(run->arena, spec->plan, &spec->point)
                                : "any point");
        return RUNG_OK;
    }
    run->plan = rung_plan_resolve(run->arena, spec->plan, spec->task, run->dims, &spec->point,
                                  spec->info->sm_count, &problem);
    if (!run->plan)
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

/* The parameter block of a launch, or NULL with a fault. */
static void *pack(struct run *run, const struct rung_resolved_step *step,
                  const struct rung_kernel *k)
{
    const struct rung_session_spec *spec = &run->session->spec;
    const char *problem = NULL;
    void *block = rung_arena_alloc(run->arena, k->param_bytes ? k->param_bytes : 1, 16);
    if (block &&
        rung_plan_pack(step, k, spec->task, spec->plan, run->addresses,
                       run->addresses + spec->task->n_tensors, block, run->arena, &problem))
        return block;
    fault_set(&run->pub.fault, "plan.error", step->expression, step->line, "%s",
              problem ? problem : "no room for the parameters");
    return NULL;
}

/* A fault of the device becomes the run's; launch faults are put down to the plan's line. */
static void take_fault(struct run *run, struct rung_fault *fault,
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
        take_fault(run, &fault, step);
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
    run->facts[index] = (struct rung_launch_facts){
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
    launch_moves(run, index, 0, s->bytes);
    if (!s->bytes)
        return RUNG_OK;
    return device_fill(run->session, call, s->buffer, s->guard, s->bytes, &step->pattern,
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
        take_fault(run, &fault, step);
    /* A fault at a later sync could not be put down to a kernel, so each launch is waited for. */
    if (status == RUNG_OK && !fault_is(&run->pub.fault) && !(run->flags & RUNG_RUN_TIMED))
        status = launch_sync(run, call, step);
    return status;
}

/* The kernel of a launch and its parameters, or a fault. */
static const char *prepare_launch(struct run *run, const struct rung_resolved_step *step,
                                  struct ready *ready, struct rung_launch_facts *facts)
{
    const struct rung_kernel *k = find_kernel(run->session->spec.artifact, step->expression);
    if (!k) {
        fault_set(&run->pub.fault, "plan.error", step->expression, step->line,
                  "the compiled code has no kernel %s", step->expression);
        return NULL;
    }
    if (!within_limits(run, step, k) || !(ready->params = pack(run, step, k)))
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

int32_t launch_prepare(struct run *run, struct rung_call *call, const struct ready **out)
{
    const struct rung_resolved_plan *plan = run->plan;
    struct ready *ready = RUNG_ARENA_NEW(run->arena, struct ready, plan->n_steps + 1);
    const char **names = RUNG_ARENA_NEW(run->arena, const char *, plan->n_steps + 1);
    struct rung_launch_facts *facts =
        RUNG_ARENA_NEW(run->arena, struct rung_launch_facts, plan->n_steps + 1);
    int32_t status = RUNG_OK;
    *out = NULL;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct rung_resolved_step *step = &plan->steps[i];
        names[i] = step->kind == RUNG_STEP_SYMBOL ? "memcpy symbol" : "memset";
        if (step->kind == RUNG_STEP_LAUNCH)
            names[i] = prepare_launch(run, step, &ready[i], &facts[i]);
        else if (step->kind == RUNG_STEP_SYMBOL)
            status = symbol_prepare(run, call, step, &ready[i]);
        if (status != RUNG_OK || fault_is(&run->pub.fault))
            return status;
    }
    run->pub.n_launches = plan->n_steps;
    run->pub.kernels = names;
    run->pub.facts = run->facts = facts;
    if (run->flags & RUNG_RUN_COUNTERS) {
        run->pub.n_counters = plan->n_steps;
        run->counters = RUNG_ARENA_NEW(run->arena, struct rung_counters, plan->n_steps + 1);
        run->pub.counters = run->counters;
    }
    *out = ready;
    return RUNG_OK;
}

int32_t launch_steps(struct run *run, struct rung_call *call, const struct ready *ready)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->plan->n_steps && status == RUNG_OK && !fault_is(&run->pub.fault);
         i++) {
        const struct rung_resolved_step *step = &run->plan->steps[i];
        if (step->kind == RUNG_STEP_LAUNCH)
            status = step_launch(run, call, step, &ready[i], i);
        else if (step->kind == RUNG_STEP_SYMBOL)
            status = symbol_copy(run, call, step, &ready[i], i);
        else
            status = step_set(run, call, step, i);
    }
    return status;
}
