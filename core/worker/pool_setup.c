/* The set-up message: task, plugins with their options and hashes, limits. */
#include "base/log.h"
#include "base/status.h"
#include "config/validate.h"
#include "plugin/instance.h"
#include "plugin/options.h"
#include "worker/pool_private.h"

#include <string.h>

struct builder {
    const struct rung_pool_spec *spec;
    struct rung_arena *arena;
    cJSON *setup, *plugins;
    struct rung_diags diags;
};

static void note_hash(struct builder *b, const char *kind, const char *name, const char *sha256)
{
    const cJSON *item;
    cJSON_ArrayForEach(
        item, b->plugins) if (strcmp(rung_json_text(item, "kind", ""), rung_kind_word(kind)) == 0 &&
                              strcmp(rung_json_text(item, "name", ""), name) == 0) return;
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "kind", rung_kind_word(kind));
    cJSON_AddStringToObject(entry, "name", name);
    cJSON_AddStringToObject(entry, "sha256", sha256);
    cJSON_AddItemToArray(b->plugins, entry);
}

/* One stage as it travels; NULL with err, or with faults in the list. */
static cJSON *stage_json(struct builder *b, const char *kind, const struct rung_stage *stage,
                         struct rung_error *err)
{
    const struct rung_loaded *loaded;
    if (rung_registry_load(b->spec->registry, kind, stage->plugin, &loaded, err) != RUNG_OK)
        return NULL;
    const struct rung_options *options = rung_options_read(
        b->arena, loaded->factory, stage->settings, stage->keys, b->spec->data_dir, &b->diags);
    if (!options) {
        rung_fail(err, RUNG_ECONFIG, "worker.options", "%s", rung_buf_text(&b->diags.text));
        return NULL;
    }
    note_hash(b, kind, stage->plugin, loaded->sha256);
    cJSON *json = cJSON_CreateObject();
    rung_json_add_text(json, "name",
                       rung_text_of(stage->name ? stage->name : loaded->factory->name));
    rung_json_add_text(json, "plugin", rung_text_of(stage->plugin));
    cJSON *on = stage->on_devices ? cJSON_AddArrayToObject(json, "on") : NULL;
    for (size_t i = 0; on && stage->on_devices[i]; i++)
        cJSON_AddItemToArray(on, cJSON_CreateString(stage->on_devices[i]));
    if (stage->when != RUNG_WHEN_ALWAYS)
        rung_json_add_i64(json, "when", (int64_t)stage->when);
    cJSON_AddItemToObject(json, "options", rung_options_to_json(options));
    return json;
}

static int32_t add_stage(struct builder *b, const char *key, const char *kind,
                         const struct rung_stage *stage, struct rung_error *err)
{
    cJSON *json = stage_json(b, kind, stage, err);
    if (!json)
        return err->code;
    cJSON_AddItemToObject(b->setup, key, json);
    return RUNG_OK;
}

static int32_t add_stages(struct builder *b, const char *key, const char *kind,
                          const struct rung_stage *stages, uint32_t n, struct rung_error *err)
{
    cJSON *list = cJSON_AddArrayToObject(b->setup, key);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *json = stage_json(b, kind, &stages[i], err);
        if (!json)
            return err->code;
        cJSON_AddItemToArray(list, json);
    }
    return RUNG_OK;
}

/* ---- Devices ---- */

static bool asked_by_name(const struct rung_pipeline *pipeline, const char *plugin)
{
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        if (pipeline->workers[i].device && strcmp(pipeline->workers[i].device, plugin) == 0)
            return true;
    return false;
}

static bool listed(const struct rung_pipeline *pipeline, const char *plugin)
{
    for (uint32_t i = 0; i < pipeline->n_devices; i++)
        if (strcmp(pipeline->devices[i].plugin, plugin) == 0)
            return true;
    return false;
}

/* "auto" does without a plugin that is not installed; a device asked for by name must be there. */
static int32_t add_device(struct builder *b, cJSON *list, const struct rung_stage *stage,
                          struct rung_error *err)
{
    cJSON *json = stage_json(b, RUNG_KIND_DEVICE, stage, err);
    if (json)
        cJSON_AddItemToArray(list, json);
    else if (err->code != RUNG_ENOTFOUND || asked_by_name(b->spec->pipeline, stage->plugin))
        return err->code;
    else
        rung_log(RUNG_LOG_INFO, "pool", "device %s is not installed: %s", stage->plugin,
                 err->message);
    *err = rung_error_init();
    return RUNG_OK;
}

static int32_t add_devices(struct builder *b, struct rung_error *err)
{
    const struct rung_pipeline *pipeline = b->spec->pipeline;
    cJSON *list = cJSON_AddArrayToObject(b->setup, "devices");
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; status == RUNG_OK && i < pipeline->n_devices; i++)
        status = add_device(b, list, &pipeline->devices[i], err);
    for (uint32_t i = 0; status == RUNG_OK && i < pipeline->n_workers; i++) {
        const char *name = pipeline->workers[i].device;
        const struct rung_stage plain = {.name = name, .plugin = name};
        if (name && strcmp(name, "auto") != 0 && !listed(pipeline, name))
            status = add_device(b, list, &plain, err);
    }
    return status;
}

/* ---- The rest ---- */

static int32_t add_reference(struct builder *b, struct rung_error *err)
{
    const struct rung_stage stage = rung_reference_stage(
        b->arena, b->spec->pipeline, rung_node_get(b->spec->task_node, "reference"));
    return add_stage(b, "reference", RUNG_KIND_REFERENCE, &stage, err);
}

static bool has_baseline(const struct rung_pipeline *pipeline, const char *name)
{
    for (uint32_t i = 0; i < pipeline->n_baselines; i++)
        if (strcmp(pipeline->baselines[i].plugin, name) == 0 ||
            strcmp(pipeline->baselines[i].name, name) == 0)
            return true;
    return false;
}

/* What a task wishes need not be there: the worker gets its name, and says why it is missing. */
static void add_wish(struct builder *b, cJSON *list, const char *name)
{
    struct rung_error err = rung_error_init();
    const struct rung_stage plain = {.name = name, .plugin = name};
    cJSON *json = stage_json(b, RUNG_KIND_BASELINE, &plain, &err);
    if (!json) {
        json = cJSON_CreateObject();
        rung_json_add_text(json, "name", rung_text_of(name));
        rung_json_add_text(json, "missing", rung_text_of(err.message));
    }
    cJSON_AddItemToArray(list, json);
}

/* The pipeline's, which are installed, then those that the task names besides. */
static int32_t add_baselines(struct builder *b, struct rung_error *err)
{
    const struct rung_pipeline *pipeline = b->spec->pipeline;
    int32_t status = add_stages(b, "baselines", RUNG_KIND_BASELINE, pipeline->baselines,
                                pipeline->n_baselines, err);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(b->setup, "baselines");
    const char *const *names = b->spec->baselines;
    for (; status == RUNG_OK && names && *names; names++)
        if (!has_baseline(pipeline, *names))
            add_wish(b, list, *names);
    return status;
}

static void add_timing(cJSON *setup, const struct rung_timing_settings *timing)
{
    cJSON *json = cJSON_AddObjectToObject(setup, "timing");
    rung_json_add_f64(json, "delta", timing->delta);
    rung_json_add_f64(json, "budget_s", timing->budget_s);
    rung_json_add_i64(json, "rounds", timing->rounds);
}

static void add_limits(cJSON *setup, const struct rung_limits *limits)
{
    cJSON *json = cJSON_AddObjectToObject(setup, "limits");
    rung_json_add_f64(json, "start_s", limits->start_s);
    rung_json_add_f64(json, "compile_s", limits->compile_s);
    rung_json_add_f64(json, "check_s", limits->check_s);
    rung_json_add_f64(json, "time_s", limits->time_s);
    rung_json_add_f64(setup, "silence_s", 30);
}

static void add_plugin_path(cJSON *setup, const char *const *dirs)
{
    cJSON *list = cJSON_AddArrayToObject(setup, "plugin_path");
    for (; dirs && *dirs; dirs++)
        cJSON_AddItemToArray(list, cJSON_CreateString(*dirs));
}

static int32_t add_all(struct builder *b, struct rung_error *err)
{
    const struct rung_pipeline *pipeline = b->spec->pipeline;
    rung_identity_add(b->setup);
    cJSON_AddItemToObject(b->setup, "task", rung_node_to_json(b->spec->task_node));
    add_limits(b->setup, &pipeline->limits);
    add_timing(b->setup, &pipeline->timing);
    add_plugin_path(b->setup, pipeline->plugin_path);
    cJSON_AddBoolToObject(b->setup, "insecure", rung_registry_insecure(b->spec->registry));
    b->plugins = cJSON_AddArrayToObject(b->setup, "plugins");
    int32_t status = add_devices(b, err);
    if (status == RUNG_OK)
        status = add_stage(b, "compiler", RUNG_KIND_COMPILER, &pipeline->compiler, err);
    if (status == RUNG_OK)
        status = add_reference(b, err);
    if (status == RUNG_OK)
        status =
            add_stages(b, "rungs", RUNG_KIND_VERIFIER, pipeline->rungs, pipeline->n_rungs, err);
    if (status == RUNG_OK)
        status =
            add_stages(b, "timers", RUNG_KIND_TIMER, pipeline->timers, pipeline->n_timers, err);
    return status == RUNG_OK ? add_baselines(b, err) : status;
}

int32_t pool_setup_build(const struct rung_pool_spec *spec, struct rung_arena *arena, cJSON **out,
                         struct rung_error *err)
{
    struct builder b = {.spec = spec, .arena = arena, .setup = rung_message_new(RUNG_MSG_SETUP)};
    int32_t status = add_all(&b, err);
    char *line = rung_json_line(b.setup);
    if (status == RUNG_OK && strlen(line) > RUNG_LINE_MAX - 256)
        status = rung_fail(err, RUNG_ECONFIG, "worker.setup",
                           "task and settings together pass 1 MiB: too large for a worker");
    cJSON_free(line);
    rung_diags_free(&b.diags);
    if (status == RUNG_OK)
        *out = b.setup;
    else
        cJSON_Delete(b.setup);
    return status;
}
