/* What came of the turns, as the report has it. */
#include "worker/race.h"

#include <math.h>

/* What a racer took in one round, over all shapes by their weights. */
static double round_of(const struct rung_race *race, const struct rung_racer *racer, uint32_t round)
{
    const struct rung_task *task = race->trial->ex->task;
    double sum = 0, total = rung_task_weight_sum(task);
    for (uint32_t i = 0; i < task->n_bench; i++)
        sum += task->bench[i].weight / total * racer->tracks[i]->rounds_ns[round];
    return sum;
}

static uint32_t rounds_of(const struct rung_race *race, const struct rung_racer *racer)
{
    uint32_t least = RUNG_TRACK_ROUNDS;
    for (uint32_t i = 0; i < race->trial->ex->task->n_bench; i++)
        if (racer->tracks[i]->n_rounds < least)
            least = racer->tracks[i]->n_rounds;
    return least;
}

bool rung_race_ratio(const struct rung_race *race, const struct rung_racer *other,
                     struct rung_ratio *out)
{
    double own[RUNG_TRACK_ROUNDS], theirs[RUNG_TRACK_ROUNDS];
    uint32_t n = rounds_of(race, other), mine = rounds_of(race, &race->racers[0]);
    n = n < mine ? n : mine;
    for (uint32_t i = 0; i < n; i++) {
        own[i] = round_of(race, &race->racers[0], i);
        theirs[i] = round_of(race, other, i);
    }
    return rung_stats_ratio(own, theirs, n, out);
}

static void add_unavailable(cJSON *entry, const char *why)
{
    cJSON_AddFalseToObject(entry, "available");
    rung_json_add_text(entry, "why", rung_text_of(why));
}

static void add_within(cJSON *entry, const struct rung_racer *racer)
{
    if (racer->within == RUNG_WITHIN_UNKNOWN)
        cJSON_AddNullToObject(entry, "within_tolerance");
    else
        cJSON_AddBoolToObject(entry, "within_tolerance", racer->within == RUNG_WITHIN_YES);
    if (racer->within == RUNG_WITHIN_NO)
        rung_json_add_text(entry, "within_why", rung_text_of(racer->within_why));
}

/* The time that the other took over the candidate's: above 1 the candidate is faster. */
static void add_speedup(cJSON *entry, const struct rung_ratio *ratio, double delta, bool believed)
{
    const double ends[2] = {1 / ratio->interval.high, 1 / ratio->interval.low};
    enum rung_stats_verdict verdict =
        believed ? rung_stats_judge(ratio, delta) : RUNG_STATS_UNKNOWN;
    rung_json_add_f64(entry, "speedup", 1 / ratio->ratio);
    cJSON_AddItemToObject(entry, "speedup_ci", cJSON_CreateDoubleArray(ends, 2));
    cJSON_AddStringToObject(entry, "verdict", rung_stats_verdict_name(verdict));
    rung_json_add_i64(entry, "rounds", ratio->rounds);
    rung_json_add_f64(entry, "delta", delta);
}

/* false when a shape was not measured. */
static bool times_of(const struct rung_race *race, const struct rung_racer *racer,
                     struct rung_shape_time *sum)
{
    const struct rung_task *task = race->trial->ex->task;
    struct rung_shape_time *times =
        RUNG_ARENA_NEW(race->trial->arena, struct rung_shape_time, task->n_bench);
    for (uint32_t i = 0; i < task->n_bench; i++) {
        if (!rung_track_settle(racer->tracks[i]))
            return false;
        times[i] = rung_shape_time_of(racer->tracks[i]);
    }
    *sum = rung_times_weighted(task, times);
    return true;
}

/* Less than physics allows at any shape: whatever was measured, it was not the whole task. */
static bool below_floor(const struct rung_race *race, const struct rung_racer *racer)
{
    for (uint32_t i = 0; i < race->trial->ex->task->n_bench; i++)
        if (racer->tracks[i]->quartiles.median < race->racers[0].tracks[i]->physical_floor_ns)
            return true;
    return false;
}

static void add_turns(cJSON *entry, const struct rung_race *race, const struct rung_racer *racer)
{
    struct rung_shape_time sum;
    struct rung_ratio ratio;
    if (!times_of(race, racer, &sum) || !rung_race_ratio(race, racer, &ratio)) {
        add_unavailable(entry, "there was no whole round of turns");
        return;
    }
    bool low = below_floor(race, racer);
    cJSON_AddTrueToObject(entry, "available");
    rung_times_add(entry, &sum);
    rung_track_describe(entry, sum.track);
    add_speedup(entry, &ratio, race->delta, !low);
    cJSON_AddBoolToObject(entry, "below_floor", low);
}

static cJSON *entry_of(const struct rung_race *race, const struct rung_racer *racer,
                       const char *reason)
{
    cJSON *entry = cJSON_CreateObject();
    const char *out = racer->out ? racer->out : reason;
    rung_json_add_text(entry, "name", rung_text_of(racer->name));
    if (racer->kind == RUNG_RACER_BASELINE && racer->label[0]) {
        rung_json_add_text(entry, "label", rung_text_of(racer->label));
        rung_json_add_text(entry, "math", rung_text_of(racer->math));
    }
    if (out) {
        add_unavailable(entry, out);
        return entry;
    }
    add_turns(entry, race, racer);
    if (racer->kind == RUNG_RACER_BASELINE)
        add_within(entry, racer);
    return entry;
}

void rung_race_publish(struct rung_race *race, const char *reason)
{
    struct rung_trial *trial = race->trial;
    cJSON_Delete(trial->baselines);
    cJSON_Delete(trial->turned);
    trial->baselines = cJSON_CreateArray();
    trial->turned = NULL;
    for (uint32_t i = 1; i < race->n; i++) {
        cJSON *entry = entry_of(race, &race->racers[i], reason);
        if (race->racers[i].kind == RUNG_RACER_RIVAL)
            trial->turned = entry;
        else
            cJSON_AddItemToArray(trial->baselines, entry);
    }
}
