/* Installed plugins, each started in a child. */
#include "cli/child.h"
#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

enum { START_S = 60, MAX_GPUS = 64 };

static cJSON *try(const struct doctor *d, const char *kind, const char *name, int index)
{
    char set[32], subject[160];
    const char *args[12] = {"plugin", "try", kind, name, "--json"};
    size_t n = 5;
    snprintf(subject, sizeof subject, "%s %s", kind, name);
    snprintf(set, sizeof set, "index=%d", index);
    if (index) {
        args[n++] = "--set";
        args[n++] = set;
    }
    if (d->insecure)
        args[n++] = "--allow-insecure-plugins";
    return cli_child(args, subject, START_S, true);
}

static bool ready(const cJSON *found)
{
    return strcmp(rung_json_text(found, "state", ""), "ready") == 0;
}

static const char *why(const cJSON *found)
{
    return rung_json_text(found, "message", rung_json_text(found, "error", "no answer"));
}

/* ---- Devices ---- */

static void say_condition(const struct doctor *d, const cJSON *v)
{
    if (!rung_json_bool(v, "management_library", false)) {
        if (rung_json_bool(v, "measures", false))
            doctor_row(d, "",
                       "clocks, temperature and throttling are not known: no libnvidia-ml.so.1");
        return;
    }
    int64_t others = rung_json_i64(v, "other_processes", 0);
    const char *throttle = rung_json_text(v, "throttle", "");
    doctor_row(d, "", "SM clock %lld of %lld MHz, memory %lld MHz, %lld C, %.0f of %.0f W%s%s",
               (long long)rung_json_i64(v, "sm_mhz", 0),
               (long long)rung_json_i64(v, "sm_mhz_max", 0),
               (long long)rung_json_i64(v, "memory_mhz", 0),
               (long long)rung_json_i64(v, "celsius", 0), rung_json_number(v, "watt", 0),
               rung_json_number(v, "watt_cap", 0), *throttle ? "; held down: " : "", throttle);
    if (others)
        doctor_row(d, "", "%lld other process%s compute%s on it: times will be disturbed",
                   (long long)others, others == 1 ? "" : "es", others == 1 ? "s" : "");
}

static void say_device(const struct doctor *d, const char *name, const cJSON *v)
{
    bool measures = rung_json_bool(v, "measures", false);
    char word[96];
    snprintf(word, sizeof word, measures ? "%s %lld" : "%s", name,
             (long long)rung_json_i64(v, "ordinal", 0));
    if (!measures) {
        doctor_row(d, word, "%s: no clock of a GPU here, so its times are modelled",
                   rung_json_text(v, "name", ""));
        return;
    }
    doctor_row(d, word, "%s, %s, %lld SMs, %.1f GiB free, L2 %.0f MiB, driver %s",
               rung_json_text(v, "name", ""), rung_json_text(v, "arch", ""),
               (long long)rung_json_i64(v, "sm_count", 0),
               rung_json_number(v, "memory_bytes", 0) / 0x1p30,
               rung_json_number(v, "l2_bytes", 0) / 0x1p20, rung_json_text(v, "driver", ""));
    say_condition(d, v);
}

/* Every device that the plugin could take: index 0, 1, ... until there is none. */
static unsigned try_devices(struct doctor *d, cJSON *list, const char *name)
{
    unsigned n = 0;
    for (int index = 0; index < MAX_GPUS; index++) {
        cJSON *found = try(d, "device", name, index);
        const cJSON *v = rung_json_get(found, "device");
        bool good = ready(found) && v, measures = rung_json_bool(v, "measures", false);
        if (good)
            say_device(d, name, v);
        else if (index == 0)
            doctor_row(d, name, "not here: %s", why(found));
        if (good || index == 0)
            cJSON_AddItemToArray(list, found);
        else
            cJSON_Delete(found);
        n += good;
        if (!good || !measures)
            break;
    }
    return n;
}

/* ---- All others ---- */

static bool judges(const char *kind)
{
    static const char *const kinds[] = {"compiler", "reference", "verifier", "timer",
                                        "codegen",  "search",    NULL};
    for (size_t i = 0; kinds[i]; i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

/* The first option that only a task or a pipeline can give; NULL: it starts without. */
static const char *required(const cJSON *factory)
{
    const cJSON *o;
    cJSON_ArrayForEach(o, rung_json_get(factory, "options"))
    {
        if (rung_json_bool(o, "required", false))
            return rung_json_text(o, "name", "");
    }
    return NULL;
}

static void try_other(struct doctor *d, cJSON *list, const cJSON *factory)
{
    const char *kind = rung_json_text(factory, "kind", "");
    const char *name = rung_json_text(factory, "name", ""), *option = required(factory);
    if (option) {
        doctor_row(d, kind, "%s: installed; wants its option '%s'", name, option);
        return;
    }
    cJSON *found = try(d, kind, name, 0);
    cJSON_AddItemToArray(list, found);
    if (ready(found)) {
        doctor_row(d, kind, "%s: ready", name);
        return;
    }
    doctor_row(d, kind, "%s: %s", name, why(found));
    d->faults += strcmp(kind, "compiler") == 0;
}

static void each(struct doctor *d, cJSON *list, bool devices, unsigned *n_devices)
{
    const cJSON *file, *f;
    cJSON_ArrayForEach(file, d->plugins)
    {
        if (!devices && rung_json_get(file, "error"))
            doctor_row(d, "refused", "%s", rung_json_text(file, "error", ""));
        cJSON_ArrayForEach(f, rung_json_get(file, "factories"))
        {
            const char *kind = rung_json_text(f, "kind", ""), *name = rung_json_text(f, "name", "");
            if (devices && strcmp(kind, "device") == 0)
                *n_devices += try_devices(d, list, name);
            else if (!devices && judges(kind))
                try_other(d, list, f);
        }
    }
}

void doctor_plugins(struct doctor *d)
{
    unsigned n = 0;
    doctor_say(d, "\ndevices");
    each(d, cJSON_AddArrayToObject(d->report, "devices"), true, &n);
    if (!n) {
        doctor_row(d, "", "no device starts: kernels can't be judged here");
        d->faults++;
    }
    doctor_say(d, "\nplugins that judge");
    each(d, cJSON_AddArrayToObject(d->report, "plugins"), false, NULL);
}
