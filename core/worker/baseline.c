/* A baseline on its way into the race: loaded, started, prepared for a shape, and its blocks. */
#include "base/status.h"
#include "worker/race.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 120, TRY_SAMPLES = 3, WHY_MAX = 400 };

/* Longest sample of another kernel that is measured as the candidate is. */
static const double sample_max_ns = 50e6;

void rung_racer_drop(struct rung_race *race, struct rung_racer *racer, const char *format, ...)
{
    char text[WHY_MAX + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    racer->out =
        rung_arena_strndup(race->trial->arena, text, rung_utf8_cut(text, strlen(text), WHY_MAX));
}

/* The instance lives as long as the executor; what can't be had once is not asked for again. */
static bool start(struct rung_race *race, struct rung_racer *racer)
{
    struct rung_executor *ex = race->trial->ex;
    struct rung_executor_baseline *baseline = racer->baseline;
    struct rung_error err = rung_error_init();
    if (baseline->problem) {
        racer->out = baseline->problem;
        return false;
    }
    if (baseline->instance)
        return true;
    if (rung_executor_make(ex, RUNG_KIND_BASELINE, baseline->stage, &baseline->instance, &err) ==
        RUNG_OK)
        return true;
    baseline->problem = rung_arena_strndup(
        ex->arena, err.message, rung_utf8_cut(err.message, strlen(err.message), WHY_MAX));
    racer->out = baseline->problem;
    return false;
}

static const char *short_text(struct rung_race *race, const char *text)
{
    size_t n = text ? strnlen(text, LABEL_MAX + 1) : 0;
    return rung_arena_strndup(race->trial->arena, n ? text : "", rung_utf8_cut(text, n, LABEL_MAX));
}

static bool prepare(struct rung_race *race, struct rung_racer *racer, uint32_t shape)
{
    struct rung_trial *trial = race->trial;
    struct rung_error err;
    struct rung_call call = rung_trial_call(trial, &err);
    const struct rung_session *session = rung_trial_watch(trial, false);
    int32_t status;
    racer->prepared = (struct rung_baseline_case){.struct_size = sizeof racer->prepared};
    RUNG_INVOKE(status, racer->baseline->instance, struct rung_baseline_ops, prepare, &call,
                session, trial->ex->task->bench[shape].dims, &racer->prepared);
    if (status != RUNG_OK) {
        rung_racer_drop(race, racer, "%s", err.message);
        return false;
    }
    racer->is_prepared = true;
    racer->label = short_text(race, racer->prepared.label);
    racer->math = short_text(race, racer->prepared.math);
    return true;
}

static const struct rung_baseline_ops *ops_of(const struct rung_racer *racer)
{
    return racer->baseline->instance->ops;
}

/* A session whose one execution is one call of the baseline. */
static bool open_session(struct rung_race *race, struct rung_racer *racer)
{
    struct rung_trial *trial = race->trial;
    struct rung_executor *ex = trial->ex;
    struct rung_error err;
    struct rung_call call = rung_trial_call(trial, &err);
    struct rung_fault fault = {.struct_size = sizeof fault};
    const struct rung_session_spec spec = {
        .device = ex->device,
        .reference = ex->reference,
        .info = &ex->info,
        .task = ex->task,
        .stated = &ex->task_rest,
        .baseline = racer->baseline->instance,
        .baseline_case = &racer->prepared,
        .gpu = ex->gpu,
    };
    int32_t status = rung_session_open(&spec, &call, &racer->open, &fault);
    if (status != RUNG_OK || !racer->open) {
        rung_racer_drop(race, racer, "%s", status != RUNG_OK ? err.message : fault.message);
        return false;
    }
    racer->session = rung_watch_init(&racer->watch, trial, rung_session_table(racer->open), false);
    return true;
}

int32_t rung_racer_block(struct rung_race *race, struct rung_racer *racer,
                         const struct rung_block *block, struct rung_timing *out,
                         struct rung_error *err)
{
    struct rung_trial *trial = race->trial;
    if (racer->session)
        return rung_block_run(trial, racer->session, block, out, err);
    const struct rung_timing_recipe recipe = rung_block_recipe(trial, block);
    struct rung_call call = rung_trial_call(trial, err);
    int32_t status;
    rung_timing_clear(out);
    RUNG_INVOKE(status, racer->baseline->instance, struct rung_baseline_ops, measure, &call,
                &racer->prepared, &recipe, out);
    return status;
}

/* Results of another precision are no failure of a baseline, but whoever reads its time must know.
 */
static bool is_tolerance(const char *code)
{
    return strncmp(code, "numeric.", 8) == 0 || strncmp(code, "output.", 7) == 0;
}

void rung_racer_match(const struct rung_race *race, struct rung_racer *racer, uint32_t shape,
                      double ns)
{
    const struct rung_track *own = race->racers[0].tracks[shape];
    struct rung_track *track = racer->tracks[shape];
    track->hint_ns = ns;
    if (ns * own->batch > sample_max_ns)
        return;
    track->sets = own->sets;
    track->batch = own->batch;
}

/* One short block, for a first idea of its time and of its results. */
static bool try_block(struct rung_race *race, struct rung_racer *racer, uint32_t shape, bool verify,
                      struct rung_timing *timing)
{
    struct rung_block block = {.shape = shape,
                               .warmups = 1,
                               .samples = TRY_SAMPLES,
                               .verify = verify,
                               .track = racer->tracks[shape]};
    struct rung_error err;
    int32_t status = rung_racer_block(race, racer, &block, timing, &err);
    if (status != RUNG_OK)
        rung_racer_drop(race, racer, "%s", err.message);
    return status == RUNG_OK;
}

/* Whether its results are the task's; whatever else goes wrong ends its part. */
static bool read_results(struct rung_race *race, struct rung_racer *racer,
                         const struct rung_timing *timing)
{
    struct rung_text message;
    const char *code = rung_block_fault(race->trial, timing, &message);
    if (code && is_tolerance(code)) {
        racer->within = RUNG_WITHIN_NO;
        racer->within_why = short_text(race, message.ptr);
    } else if (!code || *code) {
        rung_racer_drop(race, racer, "it failed: %s", message.ptr);
    } else if (timing->measured.n_verified && racer->within == RUNG_WITHIN_UNKNOWN) {
        racer->within = RUNG_WITHIN_YES;
    }
    return !racer->out;
}

static void try_out(struct rung_race *race, struct rung_racer *racer, uint32_t shape)
{
    struct rung_track *scratch = rung_track_new(race->trial->arena);
    struct rung_timing timing;
    double ns = 0;
    if (!try_block(race, racer, shape, true, &timing) || !read_results(race, racer, &timing))
        return;
    if (timing.fault.code[0] && !try_block(race, racer, shape, false, &timing))
        return; /* a fault comes without samples */
    if (rung_track_add(scratch, &timing, true, &ns))
        rung_racer_match(race, racer, shape, ns);
    else
        rung_racer_drop(race, racer, "its samples are no times");
}

void rung_racer_prepare(struct rung_race *race, struct rung_racer *racer, uint32_t shape)
{
    struct rung_trial *trial = race->trial;
    rung_trial_enter_guest(trial, racer->name,
                           rung_arena_printf(trial->arena, "baseline %s", racer->name),
                           trial->ex->time_s);
    if (!start(race, racer) || !prepare(race, racer, shape))
        return;
    bool enqueues = ops_of(racer)->enqueue != NULL;
    if (!enqueues && !ops_of(racer)->measure)
        rung_racer_drop(race, racer, "it can neither be queued nor measured");
    else if (!enqueues || open_session(race, racer))
        try_out(race, racer, shape);
}

void rung_racer_release(struct rung_racer *racer)
{
    rung_session_close(racer->open);
    if (racer->kind == RUNG_RACER_BASELINE)
        racer->session = NULL;
    racer->open = NULL;
    if (racer->is_prepared)
        ops_of(racer)->release(racer->baseline->instance->self, &racer->prepared);
    racer->is_prepared = false;
}
