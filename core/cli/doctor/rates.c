/* Measured rates: kernels whose work their tasks state, timed by an ordinary `rung eval`. */
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "config/config.h"
#include "plugin/instance.h"
#include "task/task.h"

#include <rung/reference.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_S = 180, MAX_KERNELS = 64 };

/* A file of config/doctor without its ending. */
struct probe {
    const char *stem;
    const struct rung_task *task;
    struct rung_work work;
};

static int is_task(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && strcmp(e->d_name + n - 4, ".cfg") == 0;
}

static bool read_probe(struct rung_arena *arena, const char *stem, struct probe *p)
{
    struct rung_diags diags = {0};
    struct rung_task_rest rest;
    struct rung_node *root =
        rung_config_task(arena, rung_arena_printf(arena, "%s.cfg", stem), &diags);
    *p = (struct probe){.stem = stem, .work = {.struct_size = sizeof p->work}};
    p->task = root ? rung_task_read_all(arena, root, &rest, &diags) : NULL;
    if (p->task)
        rung_task_work_at(p->task, &rest, p->task->bench[0].dims, &p->work);
    else
        fputs(rung_buf_text(&diags.text), stderr);
    rung_diags_free(&diags);
    return p->task != NULL;
}

static void say_rate(const struct doctor *d, const struct probe *p, const cJSON *device,
                     double rate)
{
    double most = rung_json_number(device, "memory_bytes_per_s", 0);
    if (p->work.flops > 0)
        doctor_row(d, "", "%-28s %8.2f TFLOP/s", p->task->summary, rate / 1e12);
    else if (most > 0)
        doctor_row(d, "", "%-28s %8.2f TB/s, %.0f %% of the %.2f of its clock and bus",
                   p->task->summary, rate / 1e12, 100 * rate / most, most / 1e12);
    else
        doctor_row(d, "", "%-28s %8.2f TB/s", p->task->summary, rate / 1e12);
}

static void time_probe(struct doctor *d, const struct probe *p, const char *plugin,
                       const cJSON *device, cJSON *list)
{
    char task[4096], kernel[4096], which[512];
    snprintf(task, sizeof task, "%s.cfg", p->stem);
    snprintf(kernel, sizeof kernel, "%s.cu", p->stem);
    snprintf(which, sizeof which, "devices=( { plugin = \"%s\"; index = %lld; } )", plugin,
             (long long)rung_json_i64(device, "ordinal", 0));
    const char *const args[] = {"eval",  task,     kernel,  "--device", plugin, "--only",
                                "bench", "--json", "--set", which,      NULL};
    cJSON *report = cli_child(args, p->task->name, EVAL_S, true);
    const cJSON *time = rung_json_get(report, "time");
    double us = rung_json_number(time, "median_us", 0);
    if (us > 0 && strcmp(rung_json_text(time, "kind", ""), "measured") == 0) {
        double rate = (p->work.flops > 0 ? p->work.flops : p->work.min_bytes) / us * 1e6;
        cJSON *entry = cJSON_CreateObject();
        rung_json_add_text(entry, "name", rung_text_of(p->task->name));
        rung_json_add_text(entry, "device", rung_text_of(rung_json_text(device, "id", "")));
        cJSON_AddStringToObject(entry, "unit", p->work.flops > 0 ? "FLOP/s" : "B/s");
        rung_json_add_f64(entry, "rate", rate);
        cJSON_AddItemToArray(list, entry);
        say_rate(d, p, device, rate);
    } else {
        doctor_row(d, "", "%-28s not timed: %s", p->task->summary,
                   rung_json_text(report, "message", rung_json_text(report, "error", "no time")));
        d->faults++;
    }
    cJSON_Delete(report);
}

static void time_all(struct doctor *d, const struct probe *probes, size_t n, cJSON *list)
{
    const cJSON *found;
    cJSON_ArrayForEach(found, rung_json_get(d->report, "devices"))
    {
        const cJSON *device = rung_json_get(found, "device");
        const char *plugin = rung_json_text(found, "name", "");
        if (!rung_json_bool(device, "measures", false))
            continue;
        doctor_row(d, plugin, "%s", rung_json_text(device, "name", ""));
        for (size_t i = 0; i < n; i++)
            time_probe(d, &probes[i], plugin, device, list);
    }
}

static bool any_measures(const struct doctor *d)
{
    const cJSON *found;
    cJSON_ArrayForEach(found, rung_json_get(d->report, "devices"))
    {
        if (rung_json_bool(rung_json_get(found, "device"), "measures", false))
            return true;
    }
    return false;
}

void doctor_rates(struct doctor *d)
{
    struct dirent **names;
    struct probe probes[MAX_KERNELS];
    size_t n = 0;
    cJSON *list = cJSON_AddArrayToObject(d->report, "rates");
    struct rung_arena *arena = rung_arena_new();
    const char *folder = rung_arena_printf(arena, "%s/doctor", rung_data_dir());
    doctor_say(d, "\nrates, measured");
    if (!any_measures(d) || d->quick) {
        doctor_row(d, "", d->quick ? "left out (--quick)" : "none: no GPU answers");
        rung_arena_free(arena);
        return;
    }
    int found = scandir(folder, &names, is_task, alphasort);
    for (int i = 0; i < found; i++) {
        size_t stem = strlen(names[i]->d_name) - 4;
        const char *path = rung_arena_printf(arena, "%s/%.*s", folder, (int)stem, names[i]->d_name);
        n += n < MAX_KERNELS && read_probe(arena, path, &probes[n]);
        free(names[i]);
    }
    if (found >= 0)
        free(names);
    time_all(d, probes, n, list);
    rung_arena_free(arena);
}
