/* Baselines: a small product, eval'd beside every baseline plugin that is installed. */
#include "base/text.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "plugin/instance.h"

#include <stdio.h>
#include <string.h>

enum { EVAL_S = 300 };

/* "timing.baselines=( "a", "b" )", or false when none is installed. */
static bool setting(const struct doctor *d, struct rung_buf *out)
{
    const cJSON *file, *f;
    size_t n = 0;
    rung_buf_printf(out, "timing.baselines=(");
    cJSON_ArrayForEach(file, d->plugins)
    {
        cJSON_ArrayForEach(f, rung_json_get(file, "factories"))
        {
            if (strcmp(rung_json_text(f, "kind", ""), "baseline") == 0)
                rung_buf_printf(out, "%s \"%s\"", n++ ? "," : "", rung_json_text(f, "name", ""));
        }
    }
    rung_buf_printf(out, " )");
    return n > 0;
}

static void say(struct doctor *d, const cJSON *baselines)
{
    const cJSON *b;
    cJSON_ArrayForEach(b, baselines)
    {
        double us = rung_json_number(b, "median_us", 0);
        const char *name = rung_json_text(b, "name", "");
        if (us > 0)
            doctor_row(d, name, "%s, %s: %.1f us on a small product",
                       rung_json_text(b, "label", ""), rung_json_text(b, "math", ""), us);
        else
            doctor_row(d, name, "not available: %s", rung_json_text(b, "why", ""));
    }
}

static bool gpu_here(const struct doctor *d)
{
    const cJSON *found;
    cJSON_ArrayForEach(found, rung_json_get(d->report, "devices"))
    {
        if (rung_json_bool(rung_json_get(found, "device"), "measures", false))
            return true;
    }
    return false;
}

void doctor_baselines(struct doctor *d)
{
    struct rung_buf sets = {0}, task = {0}, kernel = {0};
    doctor_say(d, "\nbaselines");
    if (!setting(d, &sets) || !gpu_here(d) || d->quick) {
        doctor_row(d, "", d->quick ? "left out (--quick)" : "none: no GPU answers");
        rung_buf_free(&sets);
        return;
    }
    rung_buf_printf(&task, "%s/tasks/matmul_small.cfg", rung_data_dir());
    rung_buf_printf(&kernel, "%s/doctor/product.cu", rung_data_dir());
    const char *const args[] = {"eval",
                                rung_buf_text(&task),
                                rung_buf_text(&kernel),
                                "--only",
                                "bench",
                                "--json",
                                "--set",
                                rung_buf_text(&sets),
                                NULL};
    cJSON *report = cli_child(args, "baselines", EVAL_S, true);
    cJSON *baselines = cJSON_DetachItemFromObject(report, "baselines");
    say(d, baselines);
    if (!cJSON_GetArraySize(baselines))
        doctor_row(d, "", "none was timed: %s",
                   rung_json_text(report, "message", rung_json_text(report, "error", "")));
    cJSON_AddItemToObject(d->report, "baselines", baselines ? baselines : cJSON_CreateArray());
    cJSON_Delete(report);
    rung_buf_free(&sets);
    rung_buf_free(&task);
    rung_buf_free(&kernel);
}
