#include "engine/report_text.h"
#include "base/json.h"

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

static void print_interval(FILE *out, const cJSON *time)
{
    const cJSON *ends = rung_json_get(time, "ci_us");
    if (cJSON_GetArraySize(ends) == 2)
        fprintf(out, " (95 %% interval %.4g to %.4g)", cJSON_GetArrayItem(ends, 0)->valuedouble,
                cJSON_GetArrayItem(ends, 1)->valuedouble);
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

static void print_time(FILE *out, const cJSON *time)
{
    if (!cJSON_IsObject(time))
        return;
    const char *gpu = rung_json_text(time, "gpu", NULL);
    double floor_us = rung_json_number(time, "floor_us", 0);
    fprintf(out, "  time       %.4g us %s", rung_json_number(time, "median_us", 0),
            rung_json_text(time, "kind", ""));
    print_interval(out, time);
    if (gpu)
        fprintf(out, " for %s", gpu);
    if (floor_us > 0)
        fprintf(out, ", floor %.4g us", floor_us);
    fputc('\n', out);
    print_shapes(out, time);
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
    print_kernels(out, report);
}
