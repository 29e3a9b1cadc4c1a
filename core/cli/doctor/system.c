/* What lies outside plugins: rights to counters, and keys. */
#include "cli/doctor/doctor.h"
#include "config/config.h"
#include "plugin/instance.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Linux capabilities (capabilities(7)). */
enum { CAP_SYS_ADMIN = 21, CAP_PERFMON = 38 };

/* The value behind `name` in a file of "name: value" lines; false when there is none. */
static bool line_value(const char *path, const char *name, char *out, size_t n)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t len = strlen(name);
        if (strncmp(line, name, len) != 0 || line[len] != ':')
            continue;
        const char *value = line + len + 1;
        value += strspn(value, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(value, "\n"), value);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static bool has_capability(int bit)
{
    char hex[64];
    return line_value("/proc/self/status", "CapEff", hex, sizeof hex) &&
           (strtoull(hex, NULL, 16) >> bit & 1);
}

/*
 * Counters need root, CAP_SYS_ADMIN, CAP_PERFMON (driver R565 and newer), or the driver's option
 * NVreg_RestrictProfilingToAdminUsers=0, which the driver shows as RmProfilingAdminOnly.
 */
static void counters(struct doctor *d)
{
    char only[32] = "";
    bool told = line_value("/proc/driver/nvidia/params", "RmProfilingAdminOnly", only, sizeof only);
    bool open = told && strcmp(only, "0") == 0;
    bool may =
        open || geteuid() == 0 || has_capability(CAP_SYS_ADMIN) || has_capability(CAP_PERFMON);
    const char *state = !told  ? "no NVIDIA driver is loaded"
                        : open ? "open to every user"
                        : may  ? "open to this user"
                               : "for administrators only: run as root, give CAP_PERFMON, or load "
                                 "the driver with NVreg_RestrictProfilingToAdminUsers=0";
    cJSON *json = cJSON_AddObjectToObject(d->report, "counters");
    cJSON_AddBoolToObject(json, "allowed", told && may);
    cJSON_AddStringToObject(json, "state", state);
    doctor_row(d, "counters", "performance counters: %s", state);
}

/* A secret's reference: whether what it names is there. Never its value. */
static bool present(const char *reference)
{
    if (strncmp(reference, "env:", 4) == 0) {
        const char *value = getenv(reference + 4);
        return value && *value;
    }
    return strncmp(reference, "file:", 5) == 0 && access(reference + 5, R_OK) == 0;
}

static bool known(const cJSON *list, const char *reference)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list)
    {
        if (strcmp(rung_json_text(entry, "reference", ""), reference) == 0)
            return true;
    }
    return false;
}

/* Settings of a model that name a secret. */
static void keys_of(struct doctor *d, cJSON *list, const struct rung_stage *llm)
{
    const struct rung_node *c = llm->settings ? llm->settings->first : NULL;
    for (; c; c = c->next) {
        const char *text = c->type == RUNG_NODE_STRING ? c->s : "";
        if ((strncmp(text, "env:", 4) != 0 && strncmp(text, "file:", 5) != 0) || known(list, text))
            continue;
        cJSON *entry = cJSON_CreateObject();
        rung_json_add_text(entry, "plugin", rung_text_of(llm->plugin));
        rung_json_add_text(entry, "reference", rung_text_of(text));
        cJSON_AddBoolToObject(entry, "present", present(text));
        cJSON_AddItemToArray(list, entry);
        doctor_row(d, llm->plugin, "%s: %s", text, present(text) ? "present" : "not set");
    }
}

static void keys_in(struct doctor *d, struct rung_arena *arena, const char *path, cJSON *list)
{
    struct rung_diags diags = {0};
    struct rung_node *root = rung_config_pipeline(arena, path, rung_data_dir(), NULL, 0, &diags);
    const struct rung_pipeline *p = root ? rung_pipeline_read(arena, root, &diags) : NULL;
    for (uint32_t i = 0; p && i < p->n_llms; i++)
        keys_of(d, list, &p->llms[i]);
    rung_diags_free(&diags);
}

static int is_config(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && strcmp(e->d_name + n - 4, ".cfg") == 0;
}

/* The pipelines that come with rung name the usual variables. */
static void keys(struct doctor *d)
{
    struct dirent **names;
    struct rung_arena *arena = rung_arena_new();
    cJSON *list = cJSON_AddArrayToObject(d->report, "keys");
    const char *folder = rung_arena_printf(arena, "%s/pipelines", rung_data_dir());
    int n = scandir(folder, &names, is_config, alphasort);
    for (int i = 0; i < n; i++) {
        keys_in(d, arena, rung_arena_printf(arena, "%s/%s", folder, names[i]->d_name), list);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    rung_arena_free(arena);
}

void doctor_system(struct doctor *d)
{
    doctor_say(d, "\nsystem");
    counters(d);
    doctor_say(d, "\nkeys (whether they are there; they are never shown)");
    keys(d);
}
