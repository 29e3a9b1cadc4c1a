#include "cli/plugin_try.h"
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "cli/cli.h"
#include "config/config.h"
#include "http/http.h"
#include "plugin/instance.h"
#include "task/plan.h"
#include "worker/process/service.h"

#include <rung/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t read_options(struct rung_arena *arena, const struct cli_plugin_try *t,
                            const struct rung_loaded *loaded, const struct rung_options **out,
                            struct rung_error *err)
{
    struct rung_diags diags = {0};
    struct rung_node *root = rung_config_parse(arena, "", "--set", &diags);
    for (size_t i = 0; root && i < t->n_sets; i++)
        rung_config_set(arena, root, t->sets[i], &diags);
    *out = root && !diags.n
               ? rung_options_read(arena, loaded->factory, root, NULL, rung_data_dir(), &diags)
               : NULL;
    int32_t status =
        *out ? RUNG_OK
             : rung_fail(err, RUNG_ECONFIG, "plugin.options", "%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return status;
}

/* ---- What a device says of itself ---- */

static const char *throttle_text(struct rung_arena *arena, uint32_t bits)
{
    static const char *const words[] = {"power cap", "thermal", "hardware", "clocks set"};
    struct rung_buf text = {0};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bits & 1u << i)
            rung_buf_printf(&text, "%s%s", text.len ? ", " : "", words[i]);
    const char *copy = rung_arena_strdup(arena, rung_buf_text(&text));
    rung_buf_free(&text);
    return copy;
}

static void add_condition(cJSON *device, struct rung_arena *arena,
                          const struct rung_device_condition *c)
{
    cJSON_AddBoolToObject(device, "management_library", c->known != 0);
    rung_json_add_i64(device, "sm_mhz", c->sm_mhz);
    rung_json_add_i64(device, "sm_mhz_max", c->sm_mhz_max);
    rung_json_add_i64(device, "memory_mhz", c->memory_mhz);
    rung_json_add_i64(device, "celsius", c->celsius);
    rung_json_add_f64(device, "watt", c->milliwatt / 1e3);
    rung_json_add_f64(device, "watt_cap", c->milliwatt_cap / 1e3);
    rung_json_add_i64(device, "other_processes", c->other_processes);
    rung_json_add_text(device, "throttle", rung_text_of(throttle_text(arena, c->throttle)));
}

static void add_info(cJSON *device, const struct rung_device_info *i)
{
    rung_json_add_text(device, "name", rung_text_of(i->name ? i->name : ""));
    rung_json_add_text(device, "id", rung_text_of(i->id ? i->id : ""));
    rung_json_add_text(device, "arch", rung_text_of(i->arch ? i->arch : ""));
    rung_json_add_text(device, "driver", rung_text_of(i->driver ? i->driver : ""));
    cJSON_AddBoolToObject(device, "measures", (i->flags & RUNG_DEVICE_MEASURES) != 0);
    rung_json_add_i64(device, "sm_count", i->sm_count);
    rung_json_add_i64(device, "memory_bytes", (int64_t)i->memory_bytes);
    rung_json_add_i64(device, "l2_bytes", i->l2_bytes);
    rung_json_add_i64(device, "shared_bytes", i->max_shared_bytes);
    rung_json_add_i64(device, "ordinal", i->ordinal);
    if (i->compute_major) {
        rung_json_add_f64(device, "compute_capability", i->compute_major + i->compute_minor / 10.0);
        /* Two transfers a clock (CUDA device properties, memoryClockRate and memoryBusWidth). */
        rung_json_add_f64(device, "memory_bytes_per_s",
                          2e3 * i->memory_khz * i->memory_bus_bits / 8);
    }
}

static int32_t ask_device(struct rung_instance *instance, struct rung_arena *arena, cJSON *json,
                          struct rung_error *err)
{
    const struct rung_device_ops *ops = instance->ops;
    struct rung_call call = {.struct_size = sizeof call, .arena = arena, .error = err};
    struct rung_device_info info = {.struct_size = sizeof info};
    struct rung_device_condition condition = {.struct_size = sizeof condition};
    int32_t status;
    RUNG_INVOKE(status, instance, struct rung_device_ops, info, &call, &info);
    if (status)
        return status;
    cJSON *device = cJSON_AddObjectToObject(json, "device");
    add_info(device, &info);
    if (!RUNG_HAS(ops, condition) || !ops->condition)
        return RUNG_OK;
    RUNG_INVOKE(status, instance, struct rung_device_ops, condition, &call, &condition);
    if (!status)
        add_condition(device, arena, &condition);
    return status;
}

/* ---- The try ---- */

static int32_t start(struct rung_registry *registry, struct rung_arena *arena,
                     const struct cli_plugin_try *t, cJSON *json, struct rung_error *err)
{
    static const struct rung_service services[] = {{RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                                   {RUNG_HOST_PROCESS, &rung_process_table, NULL},
                                                   {RUNG_HOST_HTTP, &rung_http_table, NULL},
                                                   {NULL, NULL, NULL}};
    const char *kind = rung_kind_of_word(t->kind);
    const struct rung_loaded *loaded;
    const struct rung_options *options;
    struct rung_instance *instance = NULL;
    if (!kind)
        return rung_fail(err, RUNG_ENOTFOUND, "plugin.kind", "there is no kind '%s'", t->kind);
    int32_t status = rung_registry_load(registry, kind, t->name, &loaded, err);
    if (!status)
        status = read_options(arena, t, loaded, &options, err);
    if (!status)
        status =
            rung_instance_new(loaded, options, t->name, rung_data_dir(), services, &instance, err);
    if (!status)
        status = rung_instance_start(instance, err);
    if (!status && strcmp(kind, RUNG_KIND_DEVICE) == 0)
        status = ask_device(instance, arena, json, err);
    rung_instance_free(instance);
    return status;
}

static const char *state_of(int32_t status)
{
    return !status ? "ready" : status == RUNG_EUNAVAILABLE ? "unavailable" : "refused";
}

int cli_plugin_try(const struct cli_plugin_try *t)
{
    struct rung_error err = rung_error_init();
    struct rung_arena *arena = rung_arena_new();
    struct rung_registry *registry = rung_registry_new();
    cJSON *json = cJSON_CreateObject();
    if (!arena)
        rung_die("out of memory");
    if (t->insecure)
        rung_registry_allow_insecure(registry);
    uint64_t begun = rung_now_ns();
    int32_t status = start(registry, arena, t, json, &err);
    rung_json_add_text(json, "kind", rung_text_of(t->kind));
    rung_json_add_text(json, "name", rung_text_of(t->name));
    cJSON_AddStringToObject(json, "state", state_of(status));
    rung_json_add_text(json, "message", rung_text_of(err.message));
    rung_json_add_f64(json, "start_s", (double)(rung_now_ns() - begun) / 1e9);
    char *line = t->json ? rung_json_line(json) : NULL;
    if (line)
        puts(line);
    else if (!status)
        printf("%s %s: ready (%.3f s)\n", t->kind, t->name, (double)(rung_now_ns() - begun) / 1e9);
    free(line);
    cJSON_Delete(json);
    rung_registry_free(registry);
    rung_arena_free(arena);
    return status ? (t->json ? CLI_ENVIRONMENT : cli_fail(&err)) : CLI_OK;
}
