#include "engine/eval.h"
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "config/validate.h"
#include "engine/report_text.h"
#include "plugin/instance.h"
#include "worker/pool.h"

#include <rung/codegen.h>
#include <rung/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 4 << 20 };

struct eval {
    const struct rung_eval_options *options;
    struct rung_arena *arena;
    struct rung_registry *registry;
    const struct rung_pipeline *pipeline;
    struct rung_node *task_node;
    const struct rung_task *task;
    struct rung_task_rest task_rest;
    struct rung_instance *codegen;
    struct rung_pool *pool;
};

static int32_t read_config(struct eval *v, struct rung_diags *diags)
{
    const struct rung_eval_options *o = v->options;
    struct rung_node *root =
        rung_config_pipeline(v->arena, o->pipeline, rung_data_dir(), o->sets, o->n_sets, diags);
    if (root && o->device) {
        const char *set =
            rung_arena_printf(v->arena, "workers=( { device = \"%s\"; count = 1; } )", o->device);
        rung_config_set(v->arena, root, set, diags);
    } else if (root) {
        rung_config_set(v->arena, root, "workers.0.count=1", diags);
    }
    if (root)
        v->pipeline = rung_pipeline_read(v->arena, root, diags);
    v->task_node = rung_config_task(v->arena, o->task, diags);
    if (v->task_node)
        v->task = rung_task_read_all(v->arena, v->task_node, &v->task_rest, diags);
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

/* All that the plugins which judge find wrong with the files. */
static int32_t validate(struct eval *v, struct rung_diags *diags)
{
    struct rung_diags notes = {0};
    const struct rung_validation check = {v->arena, v->registry, rung_data_dir(), diags, &notes};
    rung_validate_ladder(&check, v->pipeline);
    rung_validate_task(&check, v->pipeline, v->task, &v->task_rest);
    if (!v->options->json)
        fputs(rung_buf_text(&notes.text), stderr);
    rung_diags_free(&notes);
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

static int32_t load_codegen(struct eval *v, struct rung_diags *diags, struct rung_error *err)
{
    static const struct rung_service services[] = {{RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                                   {NULL, NULL, NULL}};
    const struct rung_loaded *loaded;
    const struct rung_stage *stage = &v->pipeline->codegen;
    rung_pipeline_add_path(v->pipeline, v->registry);
    if (v->options->insecure_plugins)
        rung_registry_allow_insecure(v->registry);
    if (validate(v, diags))
        return RUNG_ECONFIG;
    int32_t status =
        rung_registry_load(v->registry, RUNG_KIND_CODEGEN, stage->plugin, &loaded, err);
    if (status)
        return status;
    const struct rung_options *options = rung_options_read(
        v->arena, loaded->factory, stage->settings, stage->keys, rung_data_dir(), diags);
    if (!options)
        return rung_fail(err, RUNG_ECONFIG, "config", "the codegen's options are wrong");
    status = rung_instance_new(loaded, options, stage->name, rung_data_dir(), services, &v->codegen,
                               err);
    return status ? status : rung_instance_start(v->codegen, err);
}

static int32_t read_kernel(struct eval *v, struct rung_reply_result *out, struct rung_error *err)
{
    struct rung_text source;
    struct rung_call call = {.struct_size = sizeof call, .arena = v->arena, .error = err};
    int32_t status = rung_read_file(v->arena, v->options->kernel, MAX_SOURCE, &source, err);
    if (status)
        return status;
    *out = (struct rung_reply_result){.struct_size = sizeof *out};
    RUNG_INVOKE(status, v->codegen, struct rung_codegen_ops, read_source, &call, v->task,
                v->options->kernel, source, out);
    return status;
}

/* ---- Output ---- */

static const char *const verdicts[] = {"", "accepted", "rejected", "unsupported", "inconclusive"};

/* Whether a failing rung's detail has said it all. */
static bool told_by_rung(const cJSON *report)
{
    const cJSON *rung;
    cJSON_ArrayForEach(rung, rung_json_get(report, "rungs"))
    {
        const char *status = rung_json_text(rung, "status", "");
        bool judged = strcmp(status, "skipped") != 0 && strcmp(status, "pass") != 0;
        if (judged && rung_json_text(rung, "detail", "")[0])
            return true;
    }
    return false;
}

/* A kernel that was not checked is not called accepted to a person. */
static const char *verdict_words(const struct eval *v, const struct rung_outcome *o)
{
    const char *only = v->options->only;
    if (o->verdict != RUNG_ACCEPTED || !only || strcmp(only, "check") == 0)
        return verdicts[o->verdict];
    return strcmp(only, "compile") == 0 ? "compiles (not checked)" : "timed (not checked)";
}

static void print_report(const struct eval *v, const struct rung_outcome *o)
{
    fprintf(stderr, "%s%s%s: %s on task %s%s%s\n", verdict_words(v, o), o->code[0] ? ", " : "",
            o->code, v->options->kernel, v->task->name, o->point && o->point[0] ? ", " : "",
            o->point ? o->point : "");
    rung_report_print(stderr, o->report);
    bool told = told_by_rung(o->report);
    if (o->verdict != RUNG_ACCEPTED && !told && o->message && o->message[0])
        fprintf(stderr, "%s\n", o->message);
    else if (o->advice && o->advice[0])
        fprintf(stderr, "%s\n", o->advice);
}

static void print_json(const struct rung_outcome *o)
{
    char *line = o->report ? rung_json_line(o->report) : NULL;
    if (line)
        puts(line);
    free(line);
}

static int exit_of(const struct rung_outcome *o)
{
    return o->verdict == RUNG_ACCEPTED ? 0 : o->verdict == RUNG_NOT_SUPPORTED ? 3 : 1;
}

/* A report for a source that never reached a worker (plan.error). */
static cJSON *early_report(const struct rung_outcome *o)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "verdict", "rejected");
    cJSON_AddStringToObject(json, "code", o->code);
    cJSON_AddStringToObject(json, "message", o->message);
    cJSON_AddArrayToObject(json, "rungs");
    cJSON_AddNullToObject(json, "time");
    cJSON_AddArrayToObject(json, "baselines");
    cJSON_AddObjectToObject(json, "resources");
    return json;
}

/* ---- The way ---- */

static uint32_t stages_of(const struct rung_eval_options *o)
{
    const char *only = o->only;
    uint32_t time = RUNG_STAGE_TIME | (o->no_baselines ? 0 : RUNG_STAGE_BASELINES);
    if (!only)
        return RUNG_STAGE_COMPILE | RUNG_STAGE_CHECK | time;
    if (strcmp(only, "compile") == 0)
        return RUNG_STAGE_COMPILE;
    return RUNG_STAGE_COMPILE | (strcmp(only, "check") == 0 ? RUNG_STAGE_CHECK : time);
}

static void save_artifact(void *ctx, const char *sha256, const void *bytes, uint64_t n)
{
    const struct eval *v = ctx;
    struct rung_error err = rung_error_init();
    char path[4200];
    if (!v->options->save)
        return;
    snprintf(path, sizeof path, "%s/%s", v->options->save, sha256);
    if (rung_make_dirs(v->options->save, &err) || rung_write_file(path, bytes, n, &err))
        rung_log(RUNG_LOG_ERROR, "eval", "%s", err.message);
}

/* Artifacts came under their hashes; they end under their names. */
static void name_artifacts(const struct eval *v, const struct rung_outcome *o)
{
    for (uint32_t i = 0; v->options->save && i < o->n_stored; i++) {
        const char *from = rung_path_join(v->arena, v->options->save, o->stored[i].sha256);
        const char *to = rung_path_join(v->arena, v->options->save, o->stored[i].name);
        if (rename(from, to) == 0)
            fprintf(stderr, "  saved      %s\n", to);
    }
}

static int32_t judge(struct eval *v, const struct rung_bundle *bundle, struct rung_outcome *out,
                     struct rung_error *err)
{
    struct rung_pool_spec spec = {.registry = v->registry,
                                  .pipeline = v->pipeline,
                                  .task = v->task,
                                  .task_node = v->task_node,
                                  .baselines = v->task_rest.baselines,
                                  .data_dir = rung_data_dir(),
                                  .store = save_artifact,
                                  .ctx = v};
    struct rung_job job = {.label = v->options->kernel,
                           .bundle = bundle,
                           .point = v->options->point,
                           .stages = stages_of(v->options)};
    int32_t status = rung_pool_new(&spec, &v->pool, err);
    return status ? status : rung_pool_run(v->pool, &job, v->arena, out, err);
}

/* A point that the plan has not is a mistake of the command line, not the kernel's. */
static int32_t check_point(struct eval *v, const struct rung_bundle *bundle, struct rung_error *err)
{
    const struct rung_file *entry = &bundle->files[bundle->entry];
    struct rung_point point;
    const char *problem = "";
    const struct rung_plan *plan =
        v->options->point ? rung_plan_parse(v->arena, v->task, entry->path, entry->text, &problem)
                          : NULL;
    if (!plan || rung_point_parse(v->arena, plan, v->options->point, &point, &problem))
        return RUNG_OK; /* no plan lines: only the compiler knows the plan */
    return rung_fail(err, RUNG_EINVAL, "eval.point", "--point %s: %s", v->options->point, problem);
}

static int32_t evaluate(struct eval *v, struct rung_outcome *out, struct rung_error *err)
{
    struct rung_diags diags = {0};
    struct rung_reply_result source;
    int32_t status = read_config(v, &diags);
    if (!status)
        status = load_codegen(v, &diags, err);
    if (diags.n) {
        fprintf(stderr, "%s", rung_buf_text(&diags.text));
        status = rung_fail(err, RUNG_ECONFIG, "config", "%zu fault%s in the configuration", diags.n,
                           diags.n == 1 ? "" : "s");
    }
    rung_diags_free(&diags);
    if (!status)
        status = read_kernel(v, &source, err);
    if (!status && !source.code[0])
        status = check_point(v, source.bundle, err);
    if (status || !source.code[0])
        return status ? status : judge(v, source.bundle, out, err);
    *out = (struct rung_outcome){.verdict = RUNG_REJECTED, .message = source.message.ptr};
    memcpy(out->code, source.code, sizeof out->code);
    out->report = early_report(out);
    return RUNG_OK;
}

static int report(struct eval *v, struct rung_outcome *out)
{
    const char *only = v->options->only;
    name_artifacts(v, out);
    if (out->report)
        cJSON_AddBoolToObject(out->report, "checked", !only || strcmp(only, "check") == 0);
    if (v->options->json)
        print_json(out);
    else
        print_report(v, out);
    cJSON_Delete(out->report);
    return exit_of(out);
}

int rung_eval_main(const struct rung_eval_options *options)
{
    struct eval v = {
        .options = options, .arena = rung_arena_new(), .registry = rung_registry_new()};
    struct rung_outcome out = {0};
    struct rung_error err = rung_error_init();
    if (!v.arena)
        rung_die("out of memory");
    int32_t status = evaluate(&v, &out, &err);
    int code = status ? 0 : report(&v, &out);
    if (status) {
        fprintf(stderr, "rung: %s\n", err.message);
        bool user = status == RUNG_ECONFIG || status == RUNG_EINVAL || status == RUNG_ENOTFOUND ||
                    status == RUNG_EMISUSE || status == RUNG_EIO;
        code = user ? 2 : 3;
    }
    rung_pool_free(v.pool);
    rung_instance_free(v.codegen);
    rung_registry_free(v.registry);
    rung_arena_free(v.arena);
    return code;
}
