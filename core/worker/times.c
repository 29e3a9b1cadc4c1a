/* Times at several shapes as one, and as JSON. */
#include "worker/times.h"

#include <math.h>
#include <string.h>

struct rung_shape_time rung_shape_time_of(const struct rung_track *track)
{
    const struct rung_quartiles *q = &track->quartiles;
    return (struct rung_shape_time){.kind = RUNG_TIME_MEASURED,
                                    .time_ns = q->median,
                                    .low_ns = track->interval.low,
                                    .high_ns = track->interval.high,
                                    .min_ns = q->min,
                                    .q1_ns = q->q1,
                                    .q3_ns = q->q3,
                                    .floor_ns = track->physical_floor_ns,
                                    .gpu = "",
                                    .limiter = "",
                                    .track = track};
}

static void add_part(struct rung_shape_time *sum, const struct rung_shape_time *one, double part)
{
    sum->time_ns += part * one->time_ns;
    sum->low_ns += part * one->low_ns;
    sum->high_ns += part * one->high_ns;
    sum->min_ns += part * one->min_ns;
    sum->q1_ns += part * one->q1_ns;
    sum->q3_ns += part * one->q3_ns;
    sum->floor_ns += part * one->floor_ns;
    sum->tie_band = fmax(sum->tie_band, one->tie_band);
}

struct rung_shape_time rung_times_weighted(const struct rung_task *task,
                                           const struct rung_shape_time *times)
{
    struct rung_shape_time sum = {.kind = times[0].kind,
                                  .gpu = times[0].gpu,
                                  .limiter = times[0].limiter,
                                  .track = times[0].track};
    double total = rung_task_weight_sum(task), heaviest = 0;
    bool floors = true;
    for (uint32_t i = 0; i < task->n_bench; i++) {
        double part = task->bench[i].weight / total;
        add_part(&sum, &times[i], part);
        floors = floors && times[i].floor_ns > 0;
        if (part * times[i].time_ns > heaviest) {
            heaviest = part * times[i].time_ns;
            sum.limiter = times[i].limiter;
            sum.track = times[i].track;
        }
    }
    if (!floors)
        sum.floor_ns = 0;
    return sum;
}

/* ---- JSON ---- */

static void add_us(cJSON *object, const char *name, double ns)
{
    if (ns > 0)
        rung_json_add_f64(object, name, ns / 1e3);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_interval(cJSON *object, const struct rung_shape_time *time)
{
    if (time->kind != RUNG_TIME_MEASURED) {
        cJSON_AddNullToObject(object, "ci_us");
        return;
    }
    const double ends[2] = {time->low_ns / 1e3, time->high_ns / 1e3};
    cJSON_AddItemToObject(object, "ci_us", cJSON_CreateDoubleArray(ends, 2));
}

void rung_times_add(cJSON *object, const struct rung_shape_time *time)
{
    rung_json_add_f64(object, "median_us", time->time_ns / 1e3);
    add_interval(object, time);
    if (time->kind != RUNG_TIME_MEASURED)
        return;
    rung_json_add_f64(object, "min_us", time->min_ns / 1e3);
    rung_json_add_f64(object, "q1_us", time->q1_ns / 1e3);
    rung_json_add_f64(object, "q3_us", time->q3_ns / 1e3);
}

static cJSON *condition_json(const struct rung_device_condition *c)
{
    cJSON *json = cJSON_CreateObject();
    rung_json_add_i64(json, "sm_mhz", c->sm_mhz);
    rung_json_add_i64(json, "memory_mhz", c->memory_mhz);
    rung_json_add_i64(json, "celsius", c->celsius);
    rung_json_add_f64(json, "watt", c->milliwatt / 1e3);
    rung_json_add_i64(json, "other_processes", c->other_processes);
    return json;
}

static void add_clocks(cJSON *object, const struct rung_track *t)
{
    if (!t->has_condition) {
        cJSON_AddNullToObject(object, "clocks");
        return;
    }
    cJSON *clocks = cJSON_AddObjectToObject(object, "clocks");
    rung_json_add_i64(clocks, "sm_mhz_max", t->before.sm_mhz_max);
    rung_json_add_i64(clocks, "sm_mhz_least", t->sm_mhz_min);
    cJSON_AddItemToObject(clocks, "before", condition_json(&t->before));
    cJSON_AddItemToObject(clocks, "after", condition_json(&t->after));
}

static void add_throttle(cJSON *object, uint32_t bits)
{
    static const char *const names[] = {"power", "thermal", "hardware", "setting"};
    cJSON *list = cJSON_AddArrayToObject(object, "throttle");
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bits & 1u << i)
            cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
}

void rung_track_describe(cJSON *object, const struct rung_track *t)
{
    static const char *const colds[] = {"warm", "flush", "rotate"};
    rung_json_add_i64(object, "n", t->n);
    rung_json_add_i64(object, "blocks", t->n_turns);
    cJSON *mode = cJSON_AddObjectToObject(object, "mode");
    rung_json_add_i64(mode, "batch", t->batch ? t->batch : 1);
    rung_json_add_i64(mode, "sets", t->sets ? t->sets : 1);
    cJSON_AddStringToObject(mode, "cold", colds[t->cold <= RUNG_COLD_ROTATE ? t->cold : 0]);
    add_us(object, "event_floor_us", t->event_floor_ns);
    cJSON_AddBoolToObject(object, "launch_bound", t->launch_bound);
    rung_json_add_i64(object, "verified", t->n_verified);
    rung_json_add_i64(object, "dropped", t->n_dropped);
    add_clocks(object, t);
    add_throttle(object, t->throttle);
}

static void add_time(cJSON *object, const struct rung_shape_time *time)
{
    rung_times_add(object, time);
    add_us(object, "floor_us", time->floor_ns);
}

static void add_shapes(cJSON *report, struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    cJSON *shapes = cJSON_AddArrayToObject(report, "shapes");
    for (uint32_t i = 0; i < task->n_bench; i++) {
        const struct rung_shape_time *time = &trial->times[i];
        cJSON *shape = cJSON_CreateObject();
        const char *dims = rung_task_dims_text(trial->arena, task, task->bench[i].dims);
        rung_json_add_text(shape, "dims", rung_text_of(dims));
        rung_json_add_f64(shape, "weight", task->bench[i].weight);
        add_time(shape, time);
        if (time->track && task->n_bench > 1)
            rung_track_describe(shape, time->track);
        cJSON_AddItemToArray(shapes, shape);
    }
}

static cJSON *time_report(struct rung_trial *trial, const struct rung_shape_time *sum)
{
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
    if (sum->track)
        rung_track_describe(report, sum->track);
    add_shapes(report, trial);
    return report;
}

static cJSON *score_of(const struct rung_shape_time *sum, struct rung_text advice)
{
    bool measured = sum->kind == RUNG_TIME_MEASURED;
    cJSON *score = cJSON_CreateObject();
    rung_json_add_cut(score, "advice", advice, RUNG_REPORT_TEXT);
    rung_json_add_i64(score, "kind", sum->kind);
    rung_json_add_f64(score, "time_ns", sum->time_ns);
    rung_json_add_f64(score, "low_ns", measured ? sum->low_ns : 0);
    rung_json_add_f64(score, "high_ns", measured ? sum->high_ns : 0);
    rung_json_add_f64(score, "tie_band", sum->tie_band);
    rung_json_add_f64(score, "floor_ns", sum->floor_ns);
    return score;
}

void rung_times_publish(struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    for (uint32_t i = 0; i < task->n_bench; i++)
        if (trial->times[i].track)
            trial->times[i] = rung_shape_time_of(trial->times[i].track);
    struct rung_shape_time sum = rung_times_weighted(task, trial->times);
    cJSON_Delete(trial->score);
    cJSON_Delete(trial->time);
    trial->score = score_of(&sum, trial->advice);
    trial->time = time_report(trial, &sum);
}
