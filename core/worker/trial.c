/* A job from its plan to its result. */
#include "worker/trial.h"
#include "base/io.h"
#include "base/status.h"
#include "worker/times.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void rung_trial_settle(struct rung_trial *trial, const char *code, struct rung_text text)
{
    uint32_t verdict = rung_verdict_of_code(code);
    bool rejects = verdict == RUNG_REJECTED;
    if (trial->verdict == RUNG_REJECTED || (trial->verdict != RUNG_ACCEPTED && !rejects))
        return;
    trial->verdict = verdict;
    snprintf(trial->code, sizeof trial->code, "%s", code);
    trial->message =
        rung_text_of(rung_arena_strndup(trial->arena, text.ptr ? text.ptr : "", text.len));
    trial->message.len = text.ptr ? text.len : 0;
}

void rung_trial_settlef(struct rung_trial *trial, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = rung_arena_vprintf(trial->arena, format, args);
    va_end(args);
    rung_trial_settle(trial, code, rung_text_of(text));
}

static void announce(struct rung_trial *trial)
{
    rung_executor_send(trial->ex, rung_stage_write(&trial->stage));
}

void rung_trial_enter(struct rung_trial *trial, uint32_t kind, const char *stage, const char *text,
                      double limit_s)
{
    trial->stage.id = trial->id;
    trial->stage.kind = trial->guest ? RUNG_AT_GUEST : kind;
    trial->stage.limit_s = limit_s;
    snprintf(trial->stage.stage, sizeof trial->stage.stage, "%s", stage);
    snprintf(trial->stage.text, sizeof trial->stage.text, "%s", text);
    snprintf(trial->stage.where, sizeof trial->stage.where, "%s", trial->guest ? trial->guest : "");
    trial->deadline_ns = rung_now_ns() + (uint64_t)(limit_s * 1e9);
    announce(trial);
}

void rung_trial_enter_guest(struct rung_trial *trial, const char *name, const char *text,
                            double limit_s)
{
    const char *own = trial->guest;
    trial->guest = name;
    rung_trial_enter(trial, RUNG_AT_GUEST, "turns", text, limit_s);
    trial->guest = own;
}

void rung_trial_at(struct rung_trial *trial, const char *where)
{
    uint64_t now = rung_now_ns();
    if (trial->stage.kind == RUNG_AT_GUEST) /* its name stands there */
        return;
    trial->stage.limit_s = now < trial->deadline_ns ? (double)(trial->deadline_ns - now) / 1e9 : 0;
    snprintf(trial->stage.where, sizeof trial->stage.where, "%s", where);
    announce(trial);
}

struct rung_call rung_trial_call(struct rung_trial *trial, struct rung_error *err)
{
    *err = rung_error_init();
    return (struct rung_call){.struct_size = sizeof(struct rung_call),
                              .arena = trial->arena,
                              .deadline_ns = trial->deadline_ns,
                              .error = err};
}

const char *rung_trial_code(struct rung_trial *trial, const char code[32])
{
    size_t n = strnlen(code, 32);
    if (n == 32)
        return NULL;
    const char *copy = rung_arena_strndup(trial->arena, code, n);
    return strspn(copy, "abcdefghijklmnopqrstuvwxyz0123456789_.") == n ? copy : NULL;
}

/* ---- Plan ---- */

static bool read_plan(struct rung_trial *trial)
{
    const char *problem = "";
    if (!trial->bundle) {
        rung_trial_settlef(trial, "internal", "the bundle can't be read: %s",
                           trial->bundle_problem);
        return false;
    }
    const struct rung_file *entry = &trial->bundle->files[trial->bundle->entry];
    trial->plan =
        rung_plan_parse(trial->arena, trial->ex->task, entry->path, entry->text, &problem);
    if (!trial->plan)
        rung_trial_settle(trial, "plan.error", rung_text_of(problem));
    return trial->plan != NULL;
}

/* A point that was asked for must be allowed wherever the candidate is judged. */
static bool check_point(struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    for (uint32_t i = 0; i < task->n_bench; i++) {
        const int64_t *dims = task->bench[i].dims;
        if (rung_plan_allows(trial->plan, task, dims, &trial->point, trial->ex->info.sm_count))
            continue;
        rung_trial_settlef(trial, "plan.error", "the `where` lines do not allow the point %s at %s",
                           trial->asked_point, rung_task_dims_text(trial->arena, task, dims));
        return false;
    }
    return true;
}

static bool choose_point(struct rung_trial *trial)
{
    const char *problem = "";
    uint32_t sm_count = trial->ex->info.sm_count;
    trial->stage.points = rung_plan_points(trial->plan);
    if (!trial->asked_point) {
        if (rung_plan_first_point(trial->plan, trial->ex->task, sm_count, &trial->point))
            return true;
        rung_trial_settlef(trial, "plan.error",
                           "no tune point is allowed at all bench shapes: "
                           "the `where` lines exclude every one");
        return false;
    }
    if (rung_point_parse(trial->arena, trial->plan, trial->asked_point, &trial->point, &problem))
        return check_point(trial);
    rung_trial_settle(trial, "plan.error", rung_text_of(problem));
    return false;
}

static bool list_expressions(struct rung_trial *trial)
{
    const char *problem = "";
    const char *point = rung_point_text(trial->arena, trial->plan, &trial->point);
    snprintf(trial->stage.point, sizeof trial->stage.point, "%s", point);
    trial->expressions = rung_plan_expressions(trial->arena, trial->plan, trial->ex->task,
                                               &trial->point, &trial->n_expressions, &problem);
    trial->symbols = rung_plan_symbols(trial->arena, trial->plan, &trial->n_symbols);
    if (!trial->expressions)
        rung_trial_settle(trial, "plan.error", rung_text_of(problem));
    return trial->expressions != NULL;
}

/* ---- Session ---- */

static bool open_session(struct rung_trial *trial)
{
    struct rung_executor *ex = trial->ex;
    struct rung_error err;
    struct rung_fault fault = {.struct_size = sizeof fault};
    const struct rung_artifact *artifact = trial->compiled.artifact;
    const struct rung_session_spec spec = {
        .device = ex->device,
        .reference = ex->reference,
        .info = &ex->info,
        .task = ex->task,
        .stated = &ex->task_rest,
        .plan = artifact->plan ? artifact->plan : trial->plan,
        .artifact = artifact,
        .point = trial->point,
        .gpu = ex->gpu,
    };
    rung_trial_enter(trial, RUNG_AT_CHECK, "load", "load", ex->check_s);
    struct rung_call call = rung_trial_call(trial, &err);
    int32_t status = rung_session_open(&spec, &call, &trial->session, &fault);
    if (status != RUNG_OK)
        rung_trial_settlef(trial, status == RUNG_ENOMEM ? "device.memory" : "internal",
                           "the device can't load the code: %s", err.message);
    else if (!trial->session)
        rung_trial_settle(trial, fault.code, rung_text_of(fault.message));
    trial->sticky |= fault.sticky != 0;
    return trial->session != NULL;
}

/*
 * Takes the device for checks, or for timing alone. Waiting is nobody's time: as long as it lasts
 * the supervisor is told so anew.
 */
static void take_device(struct rung_trial *trial, bool alone)
{
    static const struct timespec pause = {0, 5000000};
    uint64_t told = 0;
    rung_device_lock_release(&trial->ex->lock);
    while (!rung_device_lock_try(&trial->ex->lock, alone)) {
        if (rung_now_ns() > told + UINT64_C(5000000000)) {
            rung_trial_enter(trial, alone ? RUNG_AT_TIME : RUNG_AT_CHECK, "wait",
                             "wait for the device", 30);
            told = rung_now_ns();
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- The whole ---- */

static void use_session(struct rung_trial *trial)
{
    if (trial->stages & RUNG_STAGE_CHECK)
        rung_trial_check(trial);
    if (!(trial->stages & RUNG_STAGE_TIME) || trial->verdict != RUNG_ACCEPTED)
        return;
    take_device(trial, true);
    rung_trial_time(trial);
    if (trial->verdict == RUNG_ACCEPTED && !trial->sticky && trial->times &&
        trial->stages & RUNG_STAGE_BASELINES)
        rung_trial_race(trial);
    if (trial->tracks)
        rung_trial_store_samples(trial);
}

bool rung_trial_load(struct rung_trial *trial)
{
    return read_plan(trial) && choose_point(trial) && list_expressions(trial) &&
           rung_trial_compile(trial) && open_session(trial);
}

static void judge(struct rung_trial *trial)
{
    if (!read_plan(trial) || !choose_point(trial) || !list_expressions(trial))
        return;
    if (!rung_trial_compile(trial) || !(trial->stages & (RUNG_STAGE_CHECK | RUNG_STAGE_TIME)))
        return;
    take_device(trial, false);
    if (open_session(trial))
        use_session(trial);
    rung_session_close(trial->session);
    trial->session = NULL;
    rung_device_lock_release(&trial->ex->lock);
}

/* Rungs that were not reached, so that the report always has all of them. */
static void fill_rungs(struct rung_trial *trial)
{
    const char *why = trial->stages & RUNG_STAGE_CHECK ? "not reached" : "not asked for";
    if (!trial->rungs)
        trial->rungs = cJSON_CreateArray();
    for (uint32_t i = (uint32_t)cJSON_GetArraySize(trial->rungs); i < trial->ex->n_rungs; i++)
        cJSON_AddItemToArray(trial->rungs, rung_report_rung(trial->ex->rungs[i].name, RUNG_SKIPPED,
                                                            "", rung_text_of(why), NULL));
}

static struct rung_result result_of(const struct rung_trial *trial)
{
    return (struct rung_result){
        .id = trial->id,
        .verdict = trial->verdict,
        .code = trial->code,
        .message = trial->message,
        .point = trial->stage.point,
        .points = trial->stage.points,
        .last = trial->sticky,
        .rungs = trial->rungs,
        .time = trial->time,
        .score = trial->score,
        .resources = rung_trial_resources(trial),
        .compile = trial->expressions ? rung_trial_compile_report(trial) : NULL,
        .device = rung_executor_device(trial->ex),
        .stored = trial->stored,
        .baselines = trial->baselines,
        .turned = trial->turned,
    };
}

static void send_result(struct rung_trial *trial, struct rung_result *result)
{
    char *line = rung_result_line(result);
    rung_executor_send_line(trial->ex, line);
    free(line);
}

void rung_trial_draft(struct rung_trial *trial)
{
    fill_rungs(trial);
    struct rung_result result = result_of(trial);
    cJSON **const shared[] = {&result.rungs,  &result.time,      &result.score,
                              &result.stored, &result.baselines, &result.turned};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        *shared[i] = cJSON_Duplicate(*shared[i], true);
    result.draft = true;
    send_result(trial, &result);
}

void rung_trial_run(struct rung_trial *trial)
{
    trial->message = rung_text_of("");
    judge(trial);
    fill_rungs(trial);
    if (trial->verdict != RUNG_ACCEPTED) { /* what came of the way there is no time */
        cJSON_Delete(trial->score);
        cJSON_Delete(trial->time);
        trial->score = trial->time = NULL;
    }
    struct rung_result result = result_of(trial);
    send_result(trial, &result);
}
