#include "session/gpu/rig.h"

#include "base/io.h"
#include "base/status.h"
#include "worker/process/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS(rig) ((const struct rung_device_ops *)(rig)->device->ops)

void rig_good(struct rig *rig, int32_t status)
{
    if (status != RUNG_OK)
        fail_msg("%s: %s", rig->error.symbol, rig->error.message);
}

static const char *setting(const char *name, const char *standard)
{
    const char *value = getenv(name);
    return value && value[0] ? value : standard;
}

static const struct rung_options *options_of(struct rig *rig, const struct rung_loaded *loaded,
                                             const char *text)
{
    struct rung_diags diags = {0};
    cJSON *json = cJSON_Parse(text);
    struct rung_node *group = rung_node_from_json(rig->arena, json, NULL, "test");
    const struct rung_options *set =
        rung_options_read(rig->arena, loaded->factory, group, NULL, rung_data_dir(), &diags);
    cJSON_Delete(json);
    if (!set)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    return set;
}

struct rung_instance *rig_make(struct rig *rig, const char *kind, const char *name,
                               const char *options)
{
    const struct rung_loaded *loaded;
    struct rung_instance *instance;
    const struct rung_service services[] = {{RUNG_HOST_PROCESS, &rung_process_table,
                                             (char *)(uintptr_t)setting("RUNG_TEST_EXE", RUNG_EXE)},
                                            {RUNG_HOST_DEVICE, &rung_device_table, &rig->kernels},
                                            {NULL, NULL, NULL}};
    rig_good(rig, rung_registry_load(rig->registry, kind, name, &loaded, &rig->error));
    rig_good(rig, rung_instance_new(loaded, options_of(rig, loaded, options), name, rung_data_dir(),
                                    services, &instance, &rig->error));
    rig_good(rig, rung_instance_start(instance, &rig->error));
    return instance;
}

/* NVRTC is found by the compiler's own start. */
static bool start_compiler(struct rig *rig)
{
    const struct rung_service services[] = {{RUNG_HOST_PROCESS, &rung_process_table,
                                             (char *)(uintptr_t)setting("RUNG_TEST_EXE", RUNG_EXE)},
                                            {NULL, NULL, NULL}};
    const struct rung_loaded *loaded;
    rig_good(rig,
             rung_registry_load(rig->registry, RUNG_KIND_COMPILER, "nvrtc", &loaded, &rig->error));
    rig_good(rig,
             rung_instance_new(loaded, options_of(rig, loaded, "{\"time_limit\":\"120s\"}"),
                               "nvrtc", rung_data_dir(), services, &rig->compiler, &rig->error));
    if (rung_instance_start(rig->compiler, &rig->error) == RUNG_OK)
        return true;
    print_message("SKIPPED: %s\n", rig->error.message);
    return false;
}

bool rig_open(struct rig *rig)
{
    const char *name = setting("RUNG_TEST_DEVICE", "ptx");
    *rig = (struct rig){.registry = rung_registry_new(),
                        .arena = rung_arena_new(),
                        .error = rung_error_init(),
                        .cache = support_folder()};
    rig->call = (struct rung_call){
        .struct_size = sizeof rig->call, .arena = rig->arena, .error = &rig->error};
    setenv("XDG_CACHE_HOME", setting("RUNG_TEST_CACHE", rig->cache), 1);
    rung_registry_allow_insecure(rig->registry);
    rung_registry_add_dir(rig->registry, setting("RUNG_TEST_PLUGINS", TREE_PLUGINS));
    rung_kernels_open(&rig->kernels);
    rig->device = rig_make(rig, RUNG_KIND_DEVICE, name,
                           strcmp(name, "ptx") == 0 ? "{\"checks\":\"all\"}" : "{}");
    rig->info = (struct rung_device_info){.struct_size = sizeof rig->info};
    rig_good(rig, OPS(rig)->info(rig->device->self, &rig->call, &rig->info));
    if (!start_compiler(rig)) {
        rig_close(rig);
        return false;
    }
    rig->kernels.device = rig->device;
    rig->kernels.compiler = rig->compiler;
    rig->kernels.info = &rig->info;
    return true;
}

void rig_close(struct rig *rig)
{
    rung_instance_free(rig->compiler);
    rung_instance_free(rig->device);
    rung_kernels_close(&rig->kernels);
    rung_arena_free(rig->arena);
    rung_registry_free(rig->registry);
    support_remove(rig->cache);
}

struct session_gpu *rig_session(struct rig *rig)
{
    const struct session_gpu_spec spec = {
        .device = rig->device, .info = &rig->info, .load = rung_kernels_load, .ctx = &rig->kernels};
    struct session_gpu *gpu;
    rig_good(rig, session_gpu_new(&spec, &rig->call, &gpu));
    return gpu;
}

struct rung_buffer *rig_buffer(struct rig *rig, const void *from, uint64_t bytes)
{
    struct rung_buffer *buffer;
    rig_good(rig, OPS(rig)->alloc(rig->device->self, &rig->call, bytes, 256, "test", &buffer));
    if (from)
        rig_good(rig, OPS(rig)->write(rig->device->self, &rig->call, buffer, 0, from, bytes));
    return buffer;
}

void rig_read(struct rig *rig, struct rung_buffer *buffer, void *to, uint64_t bytes)
{
    rig_good(rig, OPS(rig)->read(rig->device->self, &rig->call, buffer, 0, to, bytes));
}

void rig_free(struct rig *rig, struct rung_buffer *buffer)
{
    OPS(rig)->free(rig->device->self, buffer);
}

double rig_ms(struct rig *rig)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    rig_good(rig, OPS(rig)->sync(rig->device->self, &rig->call, &fault));
    if (fault.code[0])
        fail_msg("%s: %s", fault.code, fault.message);
    return (double)rung_now_ns() / 1e6;
}
