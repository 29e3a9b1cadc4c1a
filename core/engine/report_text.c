#include "engine/report_text.h"
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

static void print_rungs(FILE *out, const cJSON *report)
{
    const cJSON *rung;
    cJSON_ArrayForEach(rung, rung_json_get(report, "rungs"))
    {
        const char *code = rung_json_text(rung, "code", ""),
                   *detail = rung_json_text(rung, "detail", "");
        fprintf(out, "  %-10s %-11s %s\n", rung_json_text(rung, "rung", "?"),
                rung_json_text(rung, "status", "?"), code);
        if (detail[0])
            fprintf(out, "    %s\n", detail);
    }
}

static bool ends_of(const cJSON *object, const char *name, double ends[2])
{
    const cJSON *list = rung_json_get(object, name);
    for (int i = 0; i < 2; i++) {
        const cJSON *end = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(end))
            return false;
        ends[i] = end->valuedouble;
    }
    return true;
}

/* Four digits for people, and as many as the interval needs to be seen: "[785.1, 787.4]". */
static void print_interval(FILE *out, const cJSON *time)
{
    double ends[2];
    if (ends_of(time, "ci_us", ends))
        fprintf(out, " [%.4g, %.4g]", ends[0], ends[1]);
}

/* ", cold (flush), n = 60": how it was measured. */
static void print_mode(FILE *out, const cJSON *time)
{
    const cJSON *mode = rung_json_get(time, "mode");
    const char *cold = rung_json_text(mode, "cold", "");
    double batch = rung_json_number(mode, "batch", 1);
    if (!cJSON_IsObject(mode))
        return;
    if (strcmp(cold, "warm") == 0)
        fputs(", warm", out);
    else
        fprintf(out, ", cold (%s)", cold);
    if (batch > 1)
        fprintf(out, ", batches of %.0f", batch);
    fprintf(out, ", n = %.0f", rung_json_number(time, "n", 0));
}

static void print_shapes(FILE *out, const cJSON *time)
{
    const cJSON *shapes = rung_json_get(time, "shapes"), *shape;
    if (cJSON_GetArraySize(shapes) < 2)
        return;
    cJSON_ArrayForEach(shape, shapes)
    {
        fprintf(out, "    %-32s %.4g us", rung_json_text(shape, "dims", "?"),
                rung_json_number(shape, "median_us", 0));
        print_interval(out, shape);
        fprintf(out, ", weight %.3g\n", rung_json_number(shape, "weight", 0));
    }
}

/* Clocks that were held down, and samples that lie far apart. */
static void print_doubts(FILE *out, const cJSON *time)
{
    const cJSON *why, *clocks = rung_json_get(time, "clocks");
    double q1 = rung_json_number(time, "q1_us", 0), q3 = rung_json_number(time, "q3_us", 0);
    double median = rung_json_number(time, "median_us", 0);
    const char *between = "; held down: ";
    if (rung_json_bool(time, "launch_bound", false))
        fprintf(out, "  note       launch-bound: an empty measurement reads %.4g us\n",
                rung_json_number(time, "event_floor_us", 0));
    if (median > 0 && (q3 - q1) / median > 0.2)
        fprintf(out, "  note       half of the samples lie outside %.4g to %.4g us\n", q1, q3);
    if (!cJSON_GetArraySize(rung_json_get(time, "throttle")))
        return;
    fprintf(out, "  clock      at least %.0f of %.0f MHz",
            rung_json_number(clocks, "sm_mhz_least", 0), rung_json_number(clocks, "sm_mhz_max", 0));
    cJSON_ArrayForEach(why, rung_json_get(time, "throttle"))
    {
        fprintf(out, "%s%s", between, cJSON_IsString(why) ? why->valuestring : "?");
        between = ", ";
    }
    fputc('\n', out);
}

static void print_time(FILE *out, const cJSON *time)
{
    if (!cJSON_IsObject(time))
        return;
    const char *gpu = rung_json_text(time, "gpu", NULL);
    double floor_us = rung_json_number(time, "floor_us", 0);
    fprintf(out, "  time       %.4g us", rung_json_number(time, "median_us", 0));
    print_interval(out, time);
    fprintf(out, " %s", rung_json_text(time, "kind", ""));
    if (gpu)
        fprintf(out, " for %s", gpu);
    print_mode(out, time);
    if (floor_us > 0)
        fprintf(out, "%s floor %.4g us", gpu ? "," : ";", floor_us);
    fputc('\n', out);
    print_shapes(out, time);
    print_doubts(out, time);
}

/* ---- Those that took turns ---- */

/* A speedup in words: slower ones the other way round, since "0.8x faster" is read wrongly. */
static void print_speedup(FILE *out, const cJSON *entry)
{
    const char *verdict = rung_json_text(entry, "verdict", "unknown");
    double times = rung_json_number(entry, "speedup", 0), ends[2];
    if (!(times > 0) || !ends_of(entry, "speedup_ci", ends) || !(ends[0] > 0))
        return;
    if (strcmp(verdict, "faster") == 0)
        fprintf(out, "%.3gx faster [%.4g, %.4g]", times, ends[0], ends[1]);
    else if (strcmp(verdict, "slower") == 0)
        fprintf(out, "%.3gx slower [%.4g, %.4g]", 1 / times, 1 / ends[1], 1 / ends[0]);
    else
        fprintf(out, "%s, %.4gx [%.4g, %.4g]",
                strcmp(verdict, "same") == 0 ? "the same" : "no verdict", times, ends[0], ends[1]);
}

static void print_entry(FILE *out, const cJSON *entry)
{
    const char *label = rung_json_text(entry, "label", ""),
               *math = rung_json_text(entry, "math", "");
    fprintf(out, "  vs %-7s ", rung_json_text(entry, "name", "?"));
    if (!rung_json_bool(entry, "available", false)) {
        fprintf(out, "not available: %s\n", rung_json_text(entry, "why", "?"));
        return;
    }
    print_speedup(out, entry);
    fprintf(out, "; %s%s%.4g us", label, label[0] ? ", " : "",
            rung_json_number(entry, "median_us", 0));
    if (math[0])
        fprintf(out, ", %s", math);
    if (cJSON_IsFalse(rung_json_get(entry, "within_tolerance")))
        fprintf(out, "; its results leave the task's tolerance%s%s", math[0] ? ": " : "", math);
    if (rung_json_bool(entry, "below_floor", false))
        fputs("; less than its work can take, so it did not do all of it", out);
    fputc('\n', out);
}

static void print_turns(FILE *out, const cJSON *report)
{
    const cJSON *entry, *rival = rung_json_get(report, "rival");
    cJSON_ArrayForEach(entry, rung_json_get(report, "baselines")) print_entry(out, entry);
    if (cJSON_IsObject(rival))
        print_entry(out, rival);
}

void rung_report_final(FILE *out, const cJSON *json)
{
    if (!cJSON_IsObject(json))
        return;
    double processes = rung_json_number(json, "processes", 0);
    fprintf(out, "final: %.4g us", rung_json_number(json, "median_us", 0));
    print_interval(out, json);
    fprintf(out, " measured in %.0f fresh process%s, which differ by %.2g %%\n", processes,
            processes == 1 ? "" : "es", 100 * rung_json_number(json, "spread", 0));
    print_turns(out, json);
}

static void print_kernels(FILE *out, const cJSON *report)
{
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, rung_json_get(rung_json_get(report, "resources"), "kernels"))
        fprintf(out, "  kernel     %s: %.0f registers, %.0f bytes of static shared memory%s\n",
                rung_json_text(kernel, "kernel", "?"), rung_json_number(kernel, "registers", 0),
                rung_json_number(kernel, "static_shared_bytes", 0),
                rung_json_number(kernel, "spill_bytes", 0) > 0 ? ", spills" : "");
}

void rung_report_print(FILE *out, const cJSON *report)
{
    const char *device = rung_json_text(rung_json_get(report, "device"), "name", NULL);
    if (device)
        fprintf(out, "  device     %s\n", device);
    print_rungs(out, report);
    print_time(out, rung_json_get(report, "time"));
    print_turns(out, report);
    print_kernels(out, report);
}
