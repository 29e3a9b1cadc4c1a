#include "gpu.h"

#include <libconfig.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct field {
    const char *name;
    size_t offset;
};
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct gpu, name)                                                          \
    }
static const struct field fields[] = {
    FIELD(sm_count),         FIELD(clock_hz),        FIELD(fp32_flops),
    FIELD(fp64_flops),       FIELD(tf32_flops),      FIELD(fp16_flops),
    FIELD(dram_bytes_per_s), FIELD(dram_efficiency), FIELD(l2_bytes),
    FIELD(l2_bytes_per_s),   FIELD(l1_bytes),        FIELD(shared_per_sm),
    FIELD(shared_reserved),  FIELD(warps_per_sm),    FIELD(blocks_per_sm),
    FIELD(registers_per_sm), FIELD(schedulers),      FIELD(fp64_lanes),
    FIELD(special_lanes),    FIELD(tensor_cycles),   FIELD(sm_bytes_per_cycle),
    FIELD(dram_latency_s),   FIELD(loads_in_flight), FIELD(launch_s)};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static int32_t problem(struct rung_error *err, const char *path, unsigned line, const char *what,
                       const char *name)
{
    err->code = RUNG_ECONFIG;
    snprintf(err->symbol, sizeof err->symbol, "model.gpu");
    snprintf(err->message, sizeof err->message, "%s:%u: %s%s%s", path, line, what, *name ? " " : "",
             name);
    return RUNG_ECONFIG;
}

static const struct field *find(const char *name)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static int32_t read_number(const char *path, config_setting_t *setting, double *out,
                           struct rung_error *err)
{
    unsigned line = config_setting_source_line(setting);
    const char *name = config_setting_name(setting);
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_INT:
        *out = config_setting_get_int(setting);
        break;
    case CONFIG_TYPE_INT64:
        *out = (double)config_setting_get_int64(setting);
        break;
    case CONFIG_TYPE_FLOAT:
        *out = config_setting_get_float(setting);
        break;
    default:
        return problem(err, path, line, "a number is needed for", name);
    }
    if (!(*out > 0) || !isfinite(*out))
        return problem(err, path, line, "a positive number is needed for", name);
    return RUNG_OK;
}

static int32_t read_setting(const char *path, config_setting_t *setting, struct gpu *gpu,
                            char *seen, struct rung_error *err)
{
    const char *name = config_setting_name(setting);
    const struct field *field = find(name);
    if (strcmp(name, "name") == 0) {
        const char *text = config_setting_get_string(setting);
        if (!text || !*text)
            return problem(err, path, config_setting_source_line(setting), "a text is needed for",
                           name);
        snprintf(gpu->name, sizeof gpu->name, "%s", text);
        return RUNG_OK;
    }
    if (!field)
        return problem(err, path, config_setting_source_line(setting), "unknown setting", name);
    seen[field - fields] = 1;
    return read_number(path, setting, (double *)(void *)((char *)gpu + field->offset), err);
}

static int32_t read_all(const char *path, config_t *config, struct gpu *gpu, struct rung_error *err)
{
    char seen[N_FIELDS] = {0};
    config_setting_t *root = config_root_setting(config);
    for (int i = 0; i < config_setting_length(root); i++) {
        int32_t status =
            read_setting(path, config_setting_get_elem(root, (unsigned)i), gpu, seen, err);
        if (status != RUNG_OK)
            return status;
    }
    for (size_t i = 0; i < N_FIELDS; i++)
        if (!seen[i])
            return problem(err, path, 1, "missing setting", fields[i].name);
    if (!gpu->name[0])
        return problem(err, path, 1, "missing setting", "name");
    if (gpu->dram_efficiency > 1)
        return problem(err, path, 1, "dram_efficiency is a share of at most", "1");
    return RUNG_OK;
}

int32_t gpu_read(const char *path, struct gpu *out, struct rung_error *err)
{
    config_t config;
    memset(out, 0, sizeof *out);
    config_init(&config);
    int32_t status;
    if (config_read_file(&config, path) == CONFIG_TRUE)
        status = read_all(path, &config, out, err);
    else
        status = problem(err, path, (unsigned)config_error_line(&config),
                         config_error_text(&config), "");
    config_destroy(&config);
    return status;
}
