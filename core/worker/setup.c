/* From the set-up message to started instances. */
#include "base/diag.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "plugin/options.h"
#include "session/gpu/gpu.h"
#include "worker/process/program.h"
#include "worker/process/service.h"
#include "worker/spawn.h"
#include "worker/supervisor.h"
#include "worker/trial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STAGES_MAX = 64 };

/* The hash that the orchestrator sees for a plugin, or NULL. */
static const char *expected_hash(const cJSON *setup, const char *kind, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(
        item, rung_json_get(setup, "plugins")) if (strcmp(rung_json_text(item, "kind", ""),
                                                          rung_kind_word(kind)) == 0 &&
                                                   strcmp(rung_json_text(item, "name", ""), name) ==
                                                       0) return rung_message_sha(item, "sha256");
    return NULL;
}

static int32_t check_hash(const struct rung_executor *ex, const char *kind, const char *name,
                          const struct rung_loaded *loaded, struct rung_error *err)
{
    const char *theirs = expected_hash(ex->setup, kind, name);
    if (theirs && strcmp(theirs, loaded->sha256) == 0)
        return RUNG_OK;
    return rung_fail(
        err, RUNG_ECONFIG, "worker.hash",
        "%s %s: the worker's file %s has the hash %.12s..., the orchestrator's %.12s...: "
        "install the same plugin on both",
        rung_kind_word(kind), name, loaded->path, loaded->sha256, theirs ? theirs : "none");
}

static const struct rung_options *read_options(struct rung_executor *ex,
                                               const struct rung_loaded *loaded, const cJSON *stage,
                                               const char *name, struct rung_error *err)
{
    struct rung_diags diags = {0};
    const cJSON *json = rung_json_get(stage, "options");
    struct rung_node *group = json ? rung_node_from_json(ex->arena, json, NULL, name) : NULL;
    const struct rung_options *options = NULL;
    if (json && (!group || group->type != RUNG_NODE_GROUP))
        rung_diag(&diags, name, 0, "the options are no group");
    else
        options =
            rung_options_read(ex->arena, loaded->factory, group, NULL, rung_data_dir(), &diags);
    if (!options)
        rung_fail(err, RUNG_ECONFIG, "worker.options", "%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return options;
}

static int32_t load(struct rung_executor *ex, const char *kind, const cJSON *stage,
                    const struct rung_loaded **out, struct rung_error *err)
{
    const char *plugin = rung_json_text(stage, "plugin", NULL);
    if (!plugin)
        return rung_fail(err, RUNG_EMISUSE, "worker.setup", "a set-up that names no %s plugin",
                         rung_kind_word(kind));
    int32_t status = rung_registry_load(ex->registry, kind, plugin, out, err);
    return status == RUNG_OK ? check_hash(ex, kind, plugin, *out, err) : status;
}

/* The process service finds this program by itself, unless this root folder has no /proc. */
static char *helper_path(void)
{
    return rung_exe_path() ? NULL : (char *)(uintptr_t)rung_self_path();
}

static int32_t make(struct rung_executor *ex, const struct rung_loaded *loaded, const cJSON *stage,
                    struct rung_instance **out, struct rung_error *err)
{
    const struct rung_service services[] = {
        {RUNG_HOST_PLAN, &rung_plan_table, NULL},
        {RUNG_HOST_PROCESS, &rung_process_table, helper_path()},
        {RUNG_HOST_PROGRAM, &rung_program_table, helper_path()},
        {RUNG_HOST_COMPILE, &rung_compile_table, ex},
        {RUNG_HOST_DEVICE, &rung_device_table, &ex->kernels},
        {RUNG_HOST_ARTIFACT, &rung_artifact_table, ex},
        {NULL, NULL, NULL},
    };
    const char *name =
        rung_arena_strdup(ex->arena, rung_json_text(stage, "name", loaded->factory->name));
    const struct rung_options *options = read_options(ex, loaded, stage, name, err);
    if (!options)
        return err->code;
    struct rung_instance *instance;
    dprintf(STDERR_FILENO, RUNG_STEP_PREFIX "%s '%s' (%s)\n", rung_kind_word(loaded->factory->kind),
            name, loaded->path);
    int32_t status =
        rung_instance_new(loaded, options, name, rung_data_dir(), services, &instance, err);
    if (status != RUNG_OK)
        return status;
    status = rung_instance_start(instance, err);
    if (status != RUNG_OK) {
        rung_instance_free(instance);
        return status;
    }
    *out = instance;
    return RUNG_OK;
}

int32_t rung_executor_make(struct rung_executor *ex, const char *kind, const cJSON *stage,
                           struct rung_instance **out, struct rung_error *err)
{
    const struct rung_loaded *loaded;
    int32_t status = load(ex, kind, stage, &loaded, err);
    return status == RUNG_OK ? make(ex, loaded, stage, out, err) : status;
}

/* ---- Device ---- */

static int32_t ask_device(struct rung_executor *ex, struct rung_error *err)
{
    struct rung_call call = {.struct_size = sizeof call, .arena = ex->arena, .error = err};
    int32_t status;
    ex->info = (struct rung_device_info){.struct_size = sizeof ex->info};
    RUNG_INVOKE(status, ex->device, struct rung_device_ops, info, &call, &ex->info);
    if (status == RUNG_OK && (!ex->info.name || !ex->info.id || !ex->info.arch || !ex->info.driver))
        return rung_fail(err, RUNG_EMISUSE, "worker.device", "device %s does not say what it is",
                         ex->device_plugin);
    if (status == RUNG_OK && ex->info.flags & RUNG_DEVICE_MEASURES &&
        !rung_device_lock_open(&ex->lock, ex->info.id))
        rung_log(RUNG_LOG_WARN, "executor",
                 "no lock for %s (%s): other executors may disturb its times", ex->info.name,
                 strerror(errno));
    return status;
}

/*
 * "auto" takes the first device that starts. Only "it is not there" passes on to the next: a wrong
 * option or a differing file must not turn silently into another device.
 */
static int32_t pick_device(struct rung_executor *ex, const char *wanted, struct rung_error *err)
{
    bool any = strcmp(wanted, "auto") == 0;
    struct rung_buf tried = {0};
    const cJSON *stage;
    int32_t status = RUNG_ENOTFOUND;
    cJSON_ArrayForEach(stage, rung_json_get(ex->setup, "devices"))
    {
        const char *plugin = rung_json_text(stage, "plugin", "");
        if (!any && strcmp(plugin, wanted) != 0)
            continue;
        *err = rung_error_init();
        status = rung_executor_make(ex, RUNG_KIND_DEVICE, stage, &ex->device, err);
        if (status == RUNG_OK)
            ex->device_plugin = rung_arena_strdup(ex->arena, plugin);
        if (status != RUNG_EUNAVAILABLE)
            break;
        rung_buf_printf(&tried, "%s%s: %s", tried.len ? "; " : "", plugin, err->message);
    }
    if (status == RUNG_ENOTFOUND && !ex->device && !err->message[0])
        rung_fail(err, status, "worker.device", "device \"%s\" is not among the set-up's devices",
                  wanted);
    else if (status == RUNG_EUNAVAILABLE)
        rung_fail(err, status, "worker.device", "no device answers: %s", rung_buf_text(&tried));
    rung_buf_free(&tried);
    return status == RUNG_OK ? ask_device(ex, err) : status;
}

/*
 * The session's own kernels, where the host can't read the device's memory in place. Compiled here,
 * before any candidate, unless an earlier process did. Without them the host does the same, slowly.
 */
static void make_gpu(struct rung_executor *ex)
{
    struct rung_error err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof call, .arena = ex->arena, .error = &err};
    const struct session_gpu_spec spec = {
        .device = ex->device, .info = &ex->info, .load = rung_kernels_load, .ctx = &ex->kernels};
    rung_kernels_open(&ex->kernels);
    ex->kernels.device = ex->device;
    ex->kernels.compiler = ex->compiler;
    ex->kernels.info = &ex->info;
    if (ex->info.flags & RUNG_DEVICE_HOST_MEMORY)
        return;
    if (session_gpu_new(&spec, &call, &ex->gpu) != RUNG_OK)
        rung_log(RUNG_LOG_WARN, "executor",
                 "no kernels of rung's own on %s, checks take longer: %s", ex->info.name,
                 err.message);
}

/* ---- The rest ---- */

static int32_t read_task(struct rung_executor *ex, struct rung_error *err)
{
    struct rung_diags diags = {0};
    struct rung_node *root =
        rung_node_from_json(ex->arena, rung_json_get(ex->setup, "task"), NULL, "task");
    ex->task = root ? rung_task_read_all(ex->arena, root, &ex->task_rest, &diags) : NULL;
    if (!ex->task)
        rung_fail(err, RUNG_ECONFIG, "worker.task", "%s",
                  diags.n ? rung_buf_text(&diags.text) : "a set-up without a task");
    rung_diags_free(&diags);
    return ex->task ? RUNG_OK : err->code;
}

static int32_t make_reference(struct rung_executor *ex, struct rung_error *err)
{
    struct rung_call call = {.struct_size = sizeof call, .arena = ex->arena, .error = err};
    int32_t status = rung_executor_make(ex, RUNG_KIND_REFERENCE,
                                        rung_json_get(ex->setup, "reference"), &ex->reference, err);
    if (status == RUNG_OK)
        RUNG_INVOKE(status, ex->reference, struct rung_reference_ops, check, &call, ex->task);
    return status;
}

/* Whether a rung's list of devices holds this one; no list holds all. */
static bool runs_here(struct rung_executor *ex, const cJSON *on, const char **text)
{
    struct rung_buf names = {0};
    const cJSON *name;
    bool here = !on;
    cJSON_ArrayForEach(name, on)
    {
        const char *word = cJSON_IsString(name) ? name->valuestring : "?";
        rung_buf_printf(&names, "%s%s", names.len ? ", " : "", word);
        here |= strcmp(word, ex->device_plugin) == 0;
    }
    *text = on ? rung_arena_strdup(ex->arena, rung_buf_text(&names)) : NULL;
    rung_buf_free(&names);
    return here;
}

static int32_t make_rungs(struct rung_executor *ex, struct rung_error *err)
{
    const cJSON *list = rung_json_get(ex->setup, "rungs"), *stage;
    int n = cJSON_GetArraySize(list);
    int32_t status = n <= STAGES_MAX
                         ? RUNG_OK
                         : rung_fail(err, RUNG_EMISUSE, "worker.setup", "more than 64 rungs");
    ex->rungs = RUNG_ARENA_NEW(ex->arena, struct rung_executor_rung, STAGES_MAX);
    cJSON_ArrayForEach(stage, list)
    {
        if (status != RUNG_OK)
            return status;
        struct rung_executor_rung *rung = &ex->rungs[ex->n_rungs++];
        rung->name = rung_arena_strdup(ex->arena, rung_json_text(stage, "name", "rung"));
        rung->when = (uint32_t)rung_json_i64(stage, "when", RUNG_WHEN_ALWAYS);
        if (rung->when > RUNG_WHEN_FINAL)
            status = rung_fail(err, RUNG_EMISUSE, "worker.setup", "a rung of an unknown occasion");
        else if (runs_here(ex, rung_json_get(stage, "on"), &rung->on))
            status = rung_executor_make(ex, RUNG_KIND_VERIFIER, stage, &rung->instance, err);
    }
    return status;
}

static bool device_meets(const struct rung_executor *ex, const struct rung_loaded *timer)
{
    uint64_t needs = timer->factory->capabilities;
    return (!(needs & RUNG_TIMER_COUNTERS) || ex->info.flags & RUNG_DEVICE_COUNTERS) &&
           (!(needs & RUNG_TIMER_MEASURES) || ex->info.flags & RUNG_DEVICE_MEASURES);
}

/* The first timer whose needs the device meets; there may be none. */
static int32_t make_timer(struct rung_executor *ex, struct rung_error *err)
{
    const cJSON *stage;
    cJSON_ArrayForEach(stage, rung_json_get(ex->setup, "timers"))
    {
        const struct rung_loaded *loaded;
        int32_t status = load(ex, RUNG_KIND_TIMER, stage, &loaded, err);
        if (status != RUNG_OK)
            return status;
        if (device_meets(ex, loaded))
            return make(ex, loaded, stage, &ex->timer, err);
    }
    return RUNG_OK;
}

static int32_t read_limits(struct rung_executor *ex, struct rung_error *err)
{
    const cJSON *limits = rung_json_get(ex->setup, "limits");
    ex->compile_s = rung_json_number(limits, "compile_s", -1);
    ex->check_s = rung_json_number(limits, "check_s", -1);
    ex->time_s = rung_json_number(limits, "time_s", -1);
    bool good = ex->compile_s > 0 && ex->check_s > 0 && ex->time_s > 0 && ex->compile_s <= 1e6 &&
                ex->check_s <= 1e6 && ex->time_s <= 1e6;
    return good ? RUNG_OK : rung_fail(err, RUNG_EMISUSE, "worker.setup", "a set-up without limits");
}

/* Baselines are only listed: starting one may take long, and few jobs want any. */
static int32_t list_baselines(struct rung_executor *ex, struct rung_error *err)
{
    const cJSON *list = rung_json_get(ex->setup, "baselines"), *stage;
    int n = cJSON_GetArraySize(list);
    if (n > STAGES_MAX)
        return rung_fail(err, RUNG_EMISUSE, "worker.setup", "more than 64 baselines");
    ex->baselines = RUNG_ARENA_NEW(ex->arena, struct rung_executor_baseline, STAGES_MAX);
    cJSON_ArrayForEach(stage, list)
    {
        struct rung_executor_baseline *baseline = &ex->baselines[ex->n_baselines++];
        const char *missing = rung_json_text(stage, "missing", NULL);
        baseline->name = rung_arena_strdup(ex->arena, rung_json_text(stage, "name", "baseline"));
        baseline->stage = stage;
        baseline->problem = missing ? rung_arena_strdup(ex->arena, missing) : NULL;
    }
    return RUNG_OK;
}

static int32_t read_timing(struct rung_executor *ex, struct rung_error *err)
{
    const struct rung_timing_settings usual = RUNG_TIMING_DEFAULTS;
    const cJSON *timing = rung_json_get(ex->setup, "timing");
    int64_t rounds = rung_json_i64(timing, "rounds", usual.rounds);
    ex->timing.delta = rung_json_number(timing, "delta", usual.delta);
    ex->timing.budget_s = rung_json_number(timing, "budget_s", usual.budget_s);
    ex->timing.rounds = rounds > 0 && rounds <= 200 ? (uint32_t)rounds : 0;
    bool good = ex->timing.delta > 0 && ex->timing.delta < 1 && ex->timing.budget_s > 0 &&
                ex->timing.budget_s <= 1e6 && ex->timing.rounds > 0;
    return good ? RUNG_OK
                : rung_fail(err, RUNG_EMISUSE, "worker.setup", "timing settings out of range");
}

/* add_dir puts a directory before the others, so the list is added from its end. */
static void add_dirs(struct rung_executor *ex)
{
    const cJSON *list = rung_json_get(ex->setup, "plugin_path");
    for (int i = cJSON_GetArraySize(list); i-- > 0;) {
        const cJSON *dir = cJSON_GetArrayItem(list, i);
        if (cJSON_IsString(dir) && dir->valuestring[0] == '/')
            rung_registry_add_dir(ex->registry, dir->valuestring);
    }
}

int32_t rung_executor_setup(struct rung_executor *ex, const cJSON *setup, struct rung_error *err)
{
    ex->setup = cJSON_Duplicate(setup, true);
    ex->registry = rung_registry_new();
    add_dirs(ex);
    if (rung_json_bool(setup, "insecure", false))
        rung_registry_allow_insecure(ex->registry);
    int32_t status = read_limits(ex, err);
    if (status == RUNG_OK)
        status = read_timing(ex, err);
    if (status == RUNG_OK)
        status = list_baselines(ex, err);
    if (status == RUNG_OK)
        status = read_task(ex, err);
    if (status == RUNG_OK)
        status = pick_device(ex, rung_json_text(setup, "device", "auto"), err);
    if (status == RUNG_OK)
        status = rung_executor_make(ex, RUNG_KIND_COMPILER, rung_json_get(setup, "compiler"),
                                    &ex->compiler, err);
    if (status == RUNG_OK)
        make_gpu(ex);
    if (status == RUNG_OK)
        status = make_reference(ex, err);
    if (status == RUNG_OK)
        status = make_rungs(ex, err);
    return status == RUNG_OK ? make_timer(ex, err) : status;
}

void rung_executor_release(struct rung_executor *ex)
{
    rung_cache_clear(ex);
    rung_blob_clear(&ex->blobs);
    for (uint32_t i = 0; i < ex->n_baselines; i++)
        rung_instance_free(ex->baselines[i].instance);
    rung_instance_free(ex->timer);
    for (uint32_t i = 0; i < ex->n_rungs; i++)
        rung_instance_free(ex->rungs[i].instance);
    rung_instance_free(ex->reference);
    session_gpu_free(ex->gpu);
    rung_instance_free(ex->compiler);
    rung_instance_free(ex->device);
    rung_kernels_close(&ex->kernels);
    rung_device_lock_close(&ex->lock);
    rung_registry_free(ex->registry);
    cJSON_Delete(ex->setup);
}

cJSON *rung_executor_device(const struct rung_executor *ex)
{
    cJSON *device = cJSON_CreateObject();
    rung_json_add_text(device, "plugin", rung_text_of(ex->device_plugin));
    rung_json_add_text(device, "name", rung_text_of(ex->info.name));
    rung_json_add_text(device, "id", rung_text_of(ex->info.id));
    rung_json_add_text(device, "arch", rung_text_of(ex->info.arch));
    rung_json_add_text(device, "driver", rung_text_of(ex->info.driver));
    rung_json_add_i64(device, "sm_count", ex->info.sm_count);
    rung_json_add_i64(device, "memory_bytes", (int64_t)ex->info.memory_bytes);
    return device;
}

static void add_loaded(cJSON *list, const struct rung_instance *instance)
{
    if (!instance)
        return;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "kind", rung_kind_word(instance->factory->kind));
    cJSON_AddStringToObject(item, "name", instance->factory->name);
    cJSON_AddStringToObject(item, "sha256", instance->loaded->sha256);
    cJSON_AddItemToArray(list, item);
}

cJSON *rung_executor_ready(const struct rung_executor *ex)
{
    cJSON *message = rung_message_new(RUNG_MSG_READY);
    cJSON_AddItemToObject(message, "device", rung_executor_device(ex));
    cJSON *list = cJSON_AddArrayToObject(message, "plugins");
    add_loaded(list, ex->device);
    add_loaded(list, ex->compiler);
    add_loaded(list, ex->reference);
    for (uint32_t i = 0; i < ex->n_rungs; i++)
        add_loaded(list, ex->rungs[i].instance);
    add_loaded(list, ex->timer);
    return message;
}
