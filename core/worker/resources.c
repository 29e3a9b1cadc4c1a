/* What a compile and its kernels cost, for the report. */
#include "worker/trial.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

cJSON *rung_trial_compile_report(const struct rung_trial *trial)
{
    const struct rung_compile_result *compiled = &trial->compiled;
    cJSON *report = cJSON_CreateObject();
    rung_json_add_f64(report, "ms", (double)compiled->compile_ns / 1e6);
    cJSON_AddBoolToObject(report, "cached", trial->cached);
    if (compiled->artifact && compiled->artifact->compiler)
        rung_json_add_text(report, "compiler", rung_text_of(compiled->artifact->compiler));
    rung_json_add_cut(report, "log", compiled->log, RUNG_REPORT_TEXT);
    return report;
}

static cJSON *kernel_report(const struct rung_kernel *kernel)
{
    cJSON *report = cJSON_CreateObject();
    rung_json_add_text(report, "kernel",
                       rung_text_of(kernel->expression ? kernel->expression : ""));
    rung_json_add_i64(report, "registers", kernel->registers);
    rung_json_add_i64(report, "static_shared_bytes", kernel->static_shared);
    rung_json_add_i64(report, "local_bytes", kernel->local_bytes);
    rung_json_add_i64(report, "spill_bytes", kernel->spill_bytes);
    return report;
}

/* Largest of all kernels; shared memory with the dynamic part once a launch was seen. */
cJSON *rung_trial_resources(const struct rung_trial *trial)
{
    const struct rung_artifact *artifact = trial->compiled.artifact;
    uint32_t registers = 0, shared = trial->shared_bytes, spills = 0;
    if (!artifact)
        return NULL;
    cJSON *resources = cJSON_CreateObject(), *kernels = cJSON_CreateArray();
    for (uint32_t i = 0; i < artifact->n_kernels; i++) {
        const struct rung_kernel *kernel = &artifact->kernels[i];
        registers = larger(registers, kernel->registers);
        shared = larger(shared, kernel->static_shared);
        spills = larger(spills, kernel->spill_bytes);
        cJSON_AddItemToArray(kernels, kernel_report(kernel));
    }
    rung_json_add_i64(resources, "registers", registers);
    rung_json_add_i64(resources, "shared_bytes", shared);
    rung_json_add_i64(resources, "spill_bytes", spills);
    cJSON_AddItemToObject(resources, "kernels", kernels);
    return resources;
}
