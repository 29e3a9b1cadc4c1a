#include "worker/block.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

enum { WARMUPS_MAX = 5, SAMPLES_MIN = 3, SAMPLES_MAX = 50 };

static const double block_ns = 20e6;

/* Inputs that no other variant was timed on, and the same again when the same variant comes again.
 */
static uint64_t seed_of(const struct rung_trial *trial, const struct rung_block *block)
{
    char word[17] = "";
    memcpy(word, trial->bundle_sha256, 16);
    return strtoull(word, NULL, 16) + block->shape + UINT64_C(0x9e3779b97f4a7c15) * block->number;
}

struct rung_timing_recipe rung_block_recipe(const struct rung_trial *trial,
                                            const struct rung_block *block)
{
    const struct rung_track *track = block->track;
    return (struct rung_timing_recipe){
        .struct_size = sizeof(struct rung_timing_recipe),
        .warmups = block->warmups,
        .samples = block->samples,
        .cold = 1,
        .dims = trial->ex->task->bench[block->shape].dims,
        .seed = seed_of(trial, block),
        .sets = track->sets,
        .batch = track->batch,
        .verify = block->verify,
        .budget_s = block->budget_s,
    };
}

void rung_block_size(struct rung_block *block)
{
    const struct rung_track *track = block->track;
    double each = track->n_turns ? track->turns[track->n_turns - 1].median_ns : track->hint_ns;
    double wanted = each > 0 ? block_ns / (each * (track->batch ? track->batch : 1)) : SAMPLES_MAX;
    block->samples = wanted > SAMPLES_MAX   ? SAMPLES_MAX
                     : wanted < SAMPLES_MIN ? SAMPLES_MIN
                                            : (uint32_t)wanted;
    block->warmups = block->samples / 2 < WARMUPS_MAX ? block->samples / 2 : WARMUPS_MAX;
}

void rung_timing_clear(struct rung_timing *timing)
{
    *timing = (struct rung_timing){.struct_size = sizeof *timing,
                                   .fault = {.struct_size = sizeof timing->fault},
                                   .measured = {.struct_size = sizeof timing->measured},
                                   .modelled = {.struct_size = sizeof timing->modelled}};
}

int32_t rung_block_run(struct rung_trial *trial, const struct rung_session *session,
                       const struct rung_block *block, struct rung_timing *out,
                       struct rung_error *err)
{
    const struct rung_timing_recipe recipe = rung_block_recipe(trial, block);
    struct rung_call call = rung_trial_call(trial, err);
    int32_t status;
    rung_timing_clear(out);
    RUNG_INVOKE(status, trial->ex->timer, struct rung_timer_ops, measure, &call, session, &recipe,
                out);
    trial->sticky |= out->fault.sticky != 0;
    return status;
}

static void timer_failed(struct rung_trial *trial, int32_t status, const struct rung_error *err)
{
    const char *code = status == RUNG_ETIMEOUT       ? "run.timeout"
                       : status == RUNG_ENOMEM       ? "device.memory"
                       : status == RUNG_EUNSUPPORTED ? "device.unsupported"
                                                     : "internal";
    rung_trial_settlef(trial, code, "the timer failed: %s", err->message);
}

const char *rung_block_fault(struct rung_trial *trial, const struct rung_timing *timing,
                             struct rung_text *message)
{
    const char *text = timing->fault.message;
    *message = rung_text_of(
        rung_arena_strndup(trial->arena, text, strnlen(text, sizeof timing->fault.message)));
    return rung_trial_code(trial, timing->fault.code);
}

bool rung_block_good(struct rung_trial *trial, int32_t status, const struct rung_timing *timing,
                     const struct rung_error *err)
{
    struct rung_text message;
    if (status != RUNG_OK) {
        timer_failed(trial, status, err);
        return false;
    }
    const char *fault = rung_block_fault(trial, timing, &message);
    if (!fault || *fault)
        rung_trial_settle(trial, fault ? fault : "internal", message);
    return fault && !*fault;
}
