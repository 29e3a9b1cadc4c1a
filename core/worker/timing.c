/* The time stage: every bench shape through the timer, then statistics and the physical floor. */
#include "base/status.h"
#include "worker/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUPS = 5, SAMPLES = 50, SAMPLES_MAX = 1 << 20 };

struct shape_time {
    uint32_t kind; /* rung_time_kind */
    double time_ns, low_ns, high_ns;
    double floor_ns; /* 0: not known */
    double tie_band;
    const char *gpu, *limiter;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * Median of the samples and its 95 % interval from order statistics (normal approximation of the
 * binomial ranks; Conover, Practical Nonparametric Statistics, section 3.2).
 */
static bool median_of(struct rung_trial *trial, const struct rung_measured *measured,
                      struct shape_time *out)
{
    uint32_t n = measured->n_samples;
    if (n == 0 || n > SAMPLES_MAX || !measured->samples_ns)
        return false;
    double *sorted = RUNG_ARENA_NEW(trial->arena, double, n);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = measured->samples_ns[i];
        if (!isfinite(sorted[i]) || sorted[i] < 0)
            return false;
    }
    qsort(sorted, n, sizeof *sorted, compare);
    double reach = 0.98 * sqrt(n), middle = (n - 1) / 2.0;
    double low = floor(middle - reach), high = ceil(middle + reach);
    out->time_ns = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    out->low_ns = sorted[low < 0 ? 0 : (uint32_t)low];
    out->high_ns = sorted[high > n - 1 ? n - 1 : (uint32_t)high];
    return true;
}

static bool modelled_of(struct rung_trial *trial, const struct rung_modelled *modelled,
                        struct shape_time *out)
{
    out->time_ns = modelled->time_ns;
    out->tie_band = modelled->tie_band;
    out->gpu = rung_arena_strdup(trial->arena, modelled->gpu ? modelled->gpu : "");
    out->limiter = rung_arena_strdup(trial->arena, modelled->limiter ? modelled->limiter : "");
    return isfinite(out->time_ns) && out->time_ns >= 0 && isfinite(out->tie_band) &&
           out->tie_band >= 0;
}

/* Inputs that no other variant was timed on, and the same again when the same variant comes again.
 */
static uint64_t seed_of(const struct rung_trial *trial, uint32_t shape)
{
    char word[17] = "";
    memcpy(word, trial->bundle_sha256, 16);
    return strtoull(word, NULL, 16) + shape;
}

static int32_t call_timer(struct rung_trial *trial, uint32_t shape, struct rung_timing *timing,
                          struct rung_error *err)
{
    const struct rung_timing_recipe recipe = {
        .struct_size = sizeof recipe,
        .warmups = WARMUPS,
        .samples = SAMPLES,
        .cold = 1,
        .dims = trial->ex->task->bench[shape].dims,
        .seed = seed_of(trial, shape),
    };
    struct rung_call call = rung_trial_call(trial, err);
    const struct rung_session *session = rung_trial_watch(trial, false);
    int32_t status;
    *timing = (struct rung_timing){.struct_size = sizeof *timing,
                                   .fault = {.struct_size = sizeof timing->fault},
                                   .measured = {.struct_size = sizeof timing->measured},
                                   .modelled = {.struct_size = sizeof timing->modelled}};
    RUNG_INVOKE(status, trial->ex->timer, struct rung_timer_ops, measure, &call, session, &recipe,
                timing);
    trial->sticky |= timing->fault.sticky != 0;
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

/* false when something was settled. */
static bool read_timing(struct rung_trial *trial, const struct rung_timing *timing,
                        struct shape_time *out)
{
    const char *fault = rung_trial_code(trial, timing->fault.code);
    *out = (struct shape_time){.kind = timing->kind, .gpu = "", .limiter = ""};
    if (!fault || *fault) {
        rung_trial_settle(trial, fault ? fault : "internal",
                          rung_text_of(rung_arena_strndup(
                              trial->arena, timing->fault.message,
                              strnlen(timing->fault.message, sizeof timing->fault.message))));
        return false;
    }
    bool good = timing->kind == RUNG_TIME_MEASURED   ? median_of(trial, &timing->measured, out)
                : timing->kind == RUNG_TIME_MODELLED ? modelled_of(trial, &timing->modelled, out)
                                                     : false;
    out->floor_ns = isfinite(timing->physical_floor_ns) && timing->physical_floor_ns > 0
                        ? timing->physical_floor_ns
                        : 0;
    if (!good)
        rung_trial_settlef(trial, "internal", "the timer gave no time");
    return good;
}

/* A measured time that physics excludes: the work was not done, whatever the outputs say. */
static bool above_floor(struct rung_trial *trial, uint32_t shape, const struct shape_time *time)
{
    const struct rung_task *task = trial->ex->task;
    if (time->kind != RUNG_TIME_MEASURED || time->time_ns >= time->floor_ns)
        return true;
    rung_trial_settlef(
        trial, "time.below_floor",
        "%.3f us at %s is less than the %.3f us that this work takes at the peak rates of %s",
        time->time_ns / 1e3, rung_task_dims_text(trial->arena, task, task->bench[shape].dims),
        time->floor_ns / 1e3, trial->ex->info.name);
    return false;
}

static bool time_shape(struct rung_trial *trial, uint32_t shape, struct shape_time *out)
{
    const struct rung_task *task = trial->ex->task;
    struct rung_timing timing;
    struct rung_error err;
    const char *text = rung_arena_printf(trial->arena, "time %u/%u", shape + 1, task->n_bench);
    rung_trial_enter(trial, RUNG_AT_TIME, "time", text, trial->ex->time_s);
    rung_trial_at(trial, rung_task_dims_text(trial->arena, task, task->bench[shape].dims));
    int32_t status = call_timer(trial, shape, &timing, &err);
    if (status != RUNG_OK) {
        timer_failed(trial, status, &err);
        return false;
    }
    if (!read_timing(trial, &timing, out) || !above_floor(trial, shape, out))
        return false;
    if (!trial->score) { /* the first shape's words stand for all */
        trial->score = cJSON_CreateObject();
        rung_json_add_cut(trial->score, "advice", timing.advice, RUNG_REPORT_TEXT);
    }
    return true;
}

/* ---- All shapes together ---- */

static struct shape_time weighted(const struct rung_task *task, const struct shape_time *times)
{
    struct shape_time sum = times[0];
    double total = rung_task_weight_sum(task), heaviest = 0;
    bool floors = true;
    sum.time_ns = sum.low_ns = sum.high_ns = sum.floor_ns = 0;
    for (uint32_t i = 0; i < task->n_bench; i++) {
        double part = task->bench[i].weight / total;
        sum.time_ns += part * times[i].time_ns;
        sum.low_ns += part * times[i].low_ns;
        sum.high_ns += part * times[i].high_ns;
        sum.floor_ns += part * times[i].floor_ns;
        floors = floors && times[i].floor_ns > 0;
        sum.tie_band = fmax(sum.tie_band, times[i].tie_band);
        if (part * times[i].time_ns > heaviest) {
            heaviest = part * times[i].time_ns;
            sum.limiter = times[i].limiter;
        }
    }
    if (!floors)
        sum.floor_ns = 0;
    return sum;
}

static void add_us(cJSON *object, const char *name, double ns)
{
    if (ns > 0)
        rung_json_add_f64(object, name, ns / 1e3);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_interval(cJSON *object, const struct shape_time *time)
{
    if (time->kind != RUNG_TIME_MEASURED) {
        cJSON_AddNullToObject(object, "ci_us");
        return;
    }
    const double ends[2] = {time->low_ns / 1e3, time->high_ns / 1e3};
    cJSON_AddItemToObject(object, "ci_us", cJSON_CreateDoubleArray(ends, 2));
}

static void add_time(cJSON *object, const struct shape_time *time)
{
    rung_json_add_f64(object, "median_us", time->time_ns / 1e3);
    add_interval(object, time);
    add_us(object, "floor_us", time->floor_ns);
}

static cJSON *time_report(struct rung_trial *trial, const struct shape_time *sum,
                          const struct shape_time *times)
{
    const struct rung_task *task = trial->ex->task;
    bool modelled = sum->kind == RUNG_TIME_MODELLED;
    cJSON *report = cJSON_CreateObject();
    cJSON_AddStringToObject(report, "kind", modelled ? "modelled" : "measured");
    add_time(report, sum);
    rung_json_add_text(report, "device", rung_text_of(trial->ex->info.name));
    if (modelled) {
        rung_json_add_text(report, "gpu", rung_text_of(sum->gpu));
        rung_json_add_text(report, "limiter", rung_text_of(sum->limiter));
        rung_json_add_f64(report, "tie_band", sum->tie_band);
    }
    cJSON *shapes = cJSON_AddArrayToObject(report, "shapes");
    for (uint32_t i = 0; i < task->n_bench; i++) {
        cJSON *shape = cJSON_CreateObject();
        const char *dims = rung_task_dims_text(trial->arena, task, task->bench[i].dims);
        rung_json_add_text(shape, "dims", rung_text_of(dims));
        rung_json_add_f64(shape, "weight", task->bench[i].weight);
        add_time(shape, &times[i]);
        cJSON_AddItemToArray(shapes, shape);
    }
    return report;
}

void rung_trial_time(struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    struct shape_time *times = RUNG_ARENA_NEW(trial->arena, struct shape_time, task->n_bench);
    if (!trial->ex->timer)
        return;
    for (uint32_t i = 0; i < task->n_bench; i++)
        if (!time_shape(trial, i, &times[i])) {
            cJSON_Delete(trial->score);
            trial->score = NULL;
            return;
        }
    struct shape_time sum = weighted(task, times);
    rung_json_add_i64(trial->score, "kind", sum.kind);
    rung_json_add_f64(trial->score, "time_ns", sum.time_ns);
    rung_json_add_f64(trial->score, "tie_band", sum.tie_band);
    rung_json_add_f64(trial->score, "floor_ns", sum.floor_ns);
    trial->time = time_report(trial, &sum, times);
}
