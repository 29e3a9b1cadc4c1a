/*
 * Variables of module scope: what the plan's `symbol` lines copy into them. The artifact came from
 * a compiler, perhaps on another machine: sizes are the device's.
 */
#include "session/private.h"

#include <inttypes.h>
#include <string.h>

static const struct rung_symbol *find_symbol(const struct rung_artifact *artifact,
                                             const char *expression)
{
    for (uint32_t i = 0; i < artifact->n_symbols; i++)
        if (artifact->symbols[i].expression &&
            strcmp(artifact->symbols[i].expression, expression) == 0)
            return &artifact->symbols[i];
    return NULL;
}

static uint64_t step_bytes(const struct slot *s, const struct rung_resolved_step *step)
{
    return (uint64_t)step->count * (rung_dtype_bits(s->dtype) / 8);
}

int32_t symbol_prepare(struct run *run, struct rung_call *call,
                       const struct rung_resolved_step *step, struct ready *out)
{
    struct rung_fault *fault = &run->pub.fault;
    const struct rung_symbol *symbol = find_symbol(run->session->spec.artifact, step->symbol);
    struct slot *s = launch_target(run, step);
    uint64_t room = 0;
    int32_t status = RUNG_ENOTFOUND;
    if (!device_has_symbols(run->session)) {
        fault_set(fault, "device.unsupported", "", step->line,
                  "%s can't copy into variables of module scope, as the plan's symbol %s asks",
                  run->session->spec.info->name, step->symbol);
        return RUNG_OK;
    }
    if (symbol && s)
        status = device_symbol(run->session, call, symbol->symbol, &out->variable, &room);
    if (status == RUNG_ENOTFOUND) {
        *call->error = rung_error_init();
        fault_set(fault, "plan.error", "", step->line,
                  "the compiled code has no variable %s; declare it __constant__ or __device__ at "
                  "namespace scope and use it in a kernel",
                  step->symbol);
        return RUNG_OK;
    }
    if (status == RUNG_OK && step_bytes(s, step) > room)
        fault_set(fault, "plan.error", "", step->line,
                  "symbol %s: %lld elements of %s are %" PRIu64
                  " bytes, but the variable %s holds %" PRIu64
                  "; declare it larger, or copy less with `count`",
                  step->symbol, (long long)step->count, s->name, step_bytes(s, step), step->symbol,
                  room);
    return status;
}

int32_t symbol_copy(struct run *run, struct rung_call *call, const struct rung_resolved_step *step,
                    const struct ready *ready, uint32_t index)
{
    struct slot *s = launch_target(run, step);
    uint64_t bytes = step_bytes(s, step), size = rung_dtype_bits(s->dtype) / 8;
    launch_moves(run, index, bytes, bytes);
    if (!bytes)
        return RUNG_OK;
    return device_copy(run->session, call, ready->variable, 0, s->buffer,
                       s->offset + (uint64_t)step->offset * size, bytes);
}
