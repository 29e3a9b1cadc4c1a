/*
 * Several processes' reports of one pair of kernels as one. Each process has its own allocation and
 * clock, so what differs between them counts: a number is the median over processes, its interval
 * spans all of theirs. Reports come from workers: nothing in them is believed without a look.
 */
#include "base/json.h"
#include "engine/engine.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

enum { PROCESSES_MAX = 128, BASELINES_MAX = 64 };

struct spread_sum {
    double middle[PROCESSES_MAX];
    double low, high;
    uint32_t n;
};

static bool positive(double v)
{
    return isfinite(v) && v > 0;
}

static void add(struct spread_sum *sum, double middle, const cJSON *ends)
{
    const cJSON *low = cJSON_GetArrayItem(ends, 0), *high = cJSON_GetArrayItem(ends, 1);
    if (!positive(middle) || !cJSON_IsNumber(low) || !cJSON_IsNumber(high) ||
        !positive(low->valuedouble) || !positive(high->valuedouble) ||
        low->valuedouble > high->valuedouble || sum->n == PROCESSES_MAX)
        return;
    sum->low = sum->n ? fmin(sum->low, low->valuedouble) : low->valuedouble;
    sum->high = sum->n ? fmax(sum->high, high->valuedouble) : high->valuedouble;
    sum->middle[sum->n++] = middle;
}

/* (largest - least) / median of the processes' numbers. */
static double spread_of(const struct spread_sum *sum)
{
    double low = sum->middle[0], high = low;
    for (uint32_t i = 1; i < sum->n; i++) {
        low = fmin(low, sum->middle[i]);
        high = fmax(high, sum->middle[i]);
    }
    return (high - low) / rung_stats_median(sum->middle, sum->n);
}

static void add_numbers(cJSON *json, const struct spread_sum *sum, const char *name,
                        const char *ends_name)
{
    const double ends[2] = {sum->low, sum->high};
    rung_json_add_f64(json, name, rung_stats_median(sum->middle, sum->n));
    cJSON_AddItemToObject(json, ends_name, cJSON_CreateDoubleArray(ends, 2));
}

static void add_time(cJSON *json, const struct spread_sum *time)
{
    add_numbers(json, time, "median_us", "ci_us");
    rung_json_add_f64(json, "spread", spread_of(time));
    rung_json_add_i64(json, "processes", time->n);
}

/* ---- One that took turns ---- */

static const cJSON *named(const cJSON *list, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (strcmp(rung_json_text(item, "name", ""), name) == 0)
            return item;
    }
    return NULL;
}

/* The entry of one report: a baseline by its name, or, for NULL, the rival. */
static const cJSON *entry_of(const cJSON *report, const char *name)
{
    return name ? named(rung_json_get(report, "baselines"), name) : rung_json_get(report, "rival");
}

static void copy_text(cJSON *into, const cJSON *from, const char *name)
{
    const char *text = rung_json_text(from, name, NULL);
    if (text)
        rung_json_add_text(into, name, rung_text_of(text));
}

/* Marks that hold when one process saw them. */
static void add_marks(cJSON *json, cJSON *const *reports, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *entry = entry_of(reports[i], name);
        if (cJSON_IsFalse(rung_json_get(entry, "within_tolerance")) &&
            !rung_json_get(json, "within_tolerance")) {
            cJSON_AddFalseToObject(json, "within_tolerance");
            copy_text(json, entry, "within_why");
        }
        if (rung_json_bool(entry, "below_floor", false) && !rung_json_get(json, "below_floor"))
            cJSON_AddTrueToObject(json, "below_floor");
    }
}

static void add_verdict(cJSON *json, const struct spread_sum *speedup, double delta)
{
    const struct rung_interval ratio = {1 / speedup->high, 1 / speedup->low};
    bool believed = !rung_json_get(json, "below_floor");
    enum rung_stats_verdict verdict =
        believed ? rung_stats_judge_interval(ratio, delta) : RUNG_STATS_UNKNOWN;
    cJSON_AddStringToObject(json, "verdict", rung_stats_verdict_name(verdict));
}

static cJSON *sum_turns(cJSON *const *reports, uint32_t n, const char *name, double delta)
{
    struct spread_sum time = {.n = 0}, speedup = {.n = 0};
    const cJSON *first = entry_of(reports[0], name), *told = first;
    cJSON *json = cJSON_CreateObject();
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *entry = entry_of(reports[i], name);
        if (!rung_json_bool(entry, "available", false))
            continue;
        told = entry;
        add(&time, rung_json_number(entry, "median_us", -1), rung_json_get(entry, "ci_us"));
        add(&speedup, rung_json_number(entry, "speedup", -1), rung_json_get(entry, "speedup_ci"));
    }
    copy_text(json, told, "name");
    copy_text(json, told, "label");
    copy_text(json, told, "math");
    bool available = time.n && speedup.n;
    cJSON_AddBoolToObject(json, "available", available);
    if (!available) {
        const char *why = rung_json_text(first, "why", "its numbers are none");
        rung_json_add_text(json, "why", rung_text_of(why));
        return json;
    }
    add_time(json, &time);
    add_numbers(json, &speedup, "speedup", "speedup_ci");
    add_marks(json, reports, n, name);
    add_verdict(json, &speedup, delta);
    return json;
}

cJSON *engine_final_sum(cJSON *const *reports, uint32_t n, double delta)
{
    struct spread_sum time = {.n = 0};
    uint32_t count = 0;
    const cJSON *item;
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *one = rung_json_get(reports[i], "time");
        if (strcmp(rung_json_text(one, "kind", ""), "measured") == 0)
            add(&time, rung_json_number(one, "median_us", -1), rung_json_get(one, "ci_us"));
    }
    if (!time.n)
        return NULL;
    cJSON *json = cJSON_CreateObject();
    add_time(json, &time);
    rung_json_add_f64(json, "delta", delta);
    cJSON *list = cJSON_AddArrayToObject(json, "baselines");
    cJSON_ArrayForEach(item, rung_json_get(reports[0], "baselines"))
    {
        const char *name = rung_json_text(item, "name", NULL);
        if (name && !named(list, name) && count++ < BASELINES_MAX)
            cJSON_AddItemToArray(list, sum_turns(reports, n, name, delta));
    }
    if (cJSON_IsObject(entry_of(reports[0], NULL)))
        cJSON_AddItemToObject(json, "rival", sum_turns(reports, n, NULL, delta));
    return json;
}
