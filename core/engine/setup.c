/* From files (or the journal's copy of them) to loaded plugins, an open journal, and workers. */
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "config/validate.h"
#include "engine/engine.h"
#include "http/http.h"
#include "worker/process/program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* All faults at once, as one error: the text may be longer than a rung_error, so it is printed. */
static int32_t config_fail(struct rung_diags *diags, struct rung_error *err)
{
    fprintf(stderr, "%s", rung_buf_text(&diags->text));
    size_t n = diags->n;
    rung_diags_free(diags);
    return rung_fail(err, RUNG_ECONFIG, "config", "%zu fault%s in the configuration", n,
                     n == 1 ? "" : "s");
}

static int32_t read_trees(struct engine *e, struct rung_diags *diags)
{
    const struct rung_run_options *o = e->options;
    if (!e->pipeline_node)
        e->pipeline_node =
            rung_config_pipeline(e->arena, o->pipeline, e->data_dir, o->sets, o->n_sets, diags);
    else
        for (size_t i = 0; i < o->n_sets; i++)
            rung_config_set(e->arena, e->pipeline_node, o->sets[i], diags);
    if (e->pipeline_node)
        e->pipeline = rung_pipeline_read(e->arena, e->pipeline_node, diags);
    if (!e->pipeline)
        return RUNG_ECONFIG;
    const char *task = o->task ? o->task : e->pipeline->task;
    if (!e->task_node && task)
        e->task_node = rung_config_task(e->arena, task, diags);
    else if (!e->task_node)
        rung_diag(diags, e->pipeline->file, 0,
                  "names no task; add task = \"FILE\" or give --task FILE");
    if (e->task_node)
        e->task = rung_task_read_all(e->arena, e->task_node, &e->task_rest, diags);
    if (!e->pipeline->n_llms)
        rung_diag(diags, e->pipeline->file, 0,
                  "names no llm; add for example: llm = ( { plugin = \"catalog\"; } );");
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

struct rung_instance *engine_make_instance(struct engine *e, const char *kind,
                                           const struct rung_stage *stage, struct rung_diags *diags)
{
    static const struct rung_service services[] = {{RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                                   {RUNG_HOST_HTTP, &rung_http_table, NULL},
                                                   {RUNG_HOST_PROGRAM, &rung_program_table, NULL},
                                                   {NULL, NULL, NULL}};
    const struct rung_loaded *loaded;
    struct rung_instance *instance = NULL;
    struct rung_error err = rung_error_init();
    const char *file = stage->settings ? stage->settings->file : NULL;
    int line = stage->settings ? stage->settings->line : 0;
    if (rung_registry_load(e->registry, kind, stage->plugin, &loaded, &err)) {
        rung_diag(diags, file, line, "%s", err.message);
        return NULL;
    }
    const struct rung_options *options = rung_options_read(
        e->arena, loaded->factory, stage->settings, stage->keys, e->data_dir, diags);
    if (options &&
        rung_instance_new(loaded, options, stage->name, e->data_dir, services, &instance, &err))
        rung_diag(diags, file, line, "%s", err.message);
    return instance;
}

/* All that plugins find wrong with the files, at once and before anything is started. */
static int32_t validate(struct engine *e, struct rung_diags *diags)
{
    struct rung_diags notes = {0};
    const struct rung_validation v = {e->arena, e->registry, e->data_dir, diags, &notes};
    rung_validate_search(&v, e->pipeline);
    rung_validate_ladder(&v, e->pipeline);
    rung_validate_task(&v, e->pipeline, e->task, &e->task_rest);
    if (!e->options->quiet)
        fputs(rung_buf_text(&notes.text), stderr);
    rung_diags_free(&notes);
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

static int32_t load_plugins(struct engine *e, struct rung_diags *diags)
{
    const struct rung_pipeline *p = e->pipeline;
    rung_pipeline_add_path(p, e->registry);
    if (e->options->insecure_plugins)
        rung_registry_allow_insecure(e->registry);
    if (validate(e, diags))
        return RUNG_ECONFIG;
    rung_http_configure(
        &(struct rung_http_settings){p->http.version, p->http.proxy, p->http.ca});
    e->llms = RUNG_ARENA_NEW(e->arena, struct engine_llm, p->n_llms);
    for (uint32_t i = 0; i < p->n_llms; i++)
        e->llms[i] = (struct engine_llm){
            .stage = &p->llms[i],
            .instance = engine_make_instance(e, RUNG_KIND_LLM, &p->llms[i], diags)};
    e->codegen = engine_make_instance(e, RUNG_KIND_CODEGEN, &p->codegen, diags);
    e->search = engine_make_instance(e, RUNG_KIND_SEARCH, &p->search, diags);
    e->example_sources = RUNG_ARENA_NEW(e->arena, struct rung_instance *, p->n_examples);
    for (uint32_t i = 0; i < p->n_examples; i++)
        e->example_sources[i] = engine_make_instance(e, RUNG_KIND_EXAMPLES, &p->examples[i], diags);
    return diags->n ? RUNG_ECONFIG : RUNG_OK;
}

static int32_t start_plugins(struct engine *e, struct rung_error *err)
{
    int32_t status = rung_instance_start(e->codegen, err);
    if (!status)
        status = rung_instance_start(e->search, err);
    for (uint32_t i = 0; i < e->pipeline->n_llms && !status; i++)
        status = rung_instance_start(e->llms[i].instance, err);
    if (!status)
        status = engine_llms_open(e, err);
    for (uint32_t i = 0; i < e->pipeline->n_examples && !status; i++)
        status = rung_instance_start(e->example_sources[i], err);
    return status;
}

static int32_t read_contract(struct engine *e, struct rung_error *err)
{
    struct rung_text text = {"", 0};
    struct rung_call call = {
        .struct_size = sizeof call, .arena = e->arena, .cancel = e->cancel, .error = err};
    int32_t status;
    RUNG_INVOKE(status, e->codegen, struct rung_codegen_ops, contract, &call, e->task, &text);
    e->contract = text.ptr;
    if (!status)
        status = engine_examples_read(e, err);
    return status ? status : engine_prompts_load(e, err);
}

/* ---- The journal ---- */

static void plugin_json(cJSON *list, const struct rung_instance *instance)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "kind", instance->factory->kind);
    cJSON_AddStringToObject(item, "name", instance->factory->name);
    cJSON_AddStringToObject(item, "path", instance->loaded->path);
    cJSON_AddStringToObject(item, "sha256", instance->loaded->sha256);
    cJSON_AddItemToArray(list, item);
}

static int32_t record_run(struct engine *e, struct rung_error *err)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "version", RUNG_VERSION);
    cJSON_AddItemToObject(json, "pipeline", engine_tree_save(e->pipeline_node));
    cJSON_AddItemToObject(json, "task", engine_tree_save(e->task_node));
    cJSON *plugins = cJSON_AddArrayToObject(json, "plugins");
    plugin_json(plugins, e->codegen);
    plugin_json(plugins, e->search);
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        plugin_json(plugins, e->llms[i].instance);
    int32_t status = rung_journal_append(e->journal, "run", "run", json, NULL, err);
    cJSON_Delete(json);
    return status;
}

/* Wall time of earlier processes: from each start to the last record before the next one. */
struct clock {
    double total_s;
    int64_t begun, last;
};

static bool clock_visit(void *ctx, const struct rung_record *r)
{
    struct clock *c = ctx;
    if (!c->begun) /* the run's own record comes before its first process's */
        c->begun = r->wall_ms;
    if (strcmp(r->type, "process") == 0) {
        c->total_s += (double)(c->last > c->begun ? c->last - c->begun : 0) * 1e-3;
        c->begun = r->wall_ms;
    }
    c->last = r->wall_ms;
    return true;
}

static int32_t read_journal(struct engine *e, struct rung_error *err)
{
    struct clock clock = {0, 0, 0};
    cJSON *json = rung_journal_find(e->journal, "run", "run", NULL);
    if (!json)
        return rung_fail(err, RUNG_EINVAL, "journal.empty",
                         "%s: the run was cut before it began; start a new one",
                         e->options->resume);
    e->pipeline_node = engine_tree_load(e->arena, rung_json_get(json, "pipeline"));
    e->task_node = engine_tree_load(e->arena, rung_json_get(json, "task"));
    cJSON_Delete(json);
    if (!e->pipeline_node || !e->task_node)
        return rung_fail(err, RUNG_EIO, "journal.record", "%s: the run's record is damaged",
                         e->options->resume);
    int32_t status = rung_journal_each(e->journal, NULL, 0, clock_visit, &clock, err);
    e->spent.wall_s_before = clock.total_s + (double)(clock.last - clock.begun) * 1e-3;
    return status;
}

static char *new_run_dir(struct engine *e)
{
    char stamp[32];
    struct stat st;
    struct tm tm;
    time_t now = time(NULL);
    if (e->options->out)
        return rung_arena_strdup(e->arena, e->options->out);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
    char *dir = rung_arena_printf(e->arena, "runs/%s-%s", e->task->name, stamp);
    for (int i = 2; stat(dir, &st) == 0; i++)
        dir = rung_arena_printf(e->arena, "runs/%s-%s-%d", e->task->name, stamp, i);
    return dir;
}

static int32_t record_process(struct engine *e, struct rung_error *err)
{
    char key[48];
    cJSON *json = cJSON_CreateObject();
    snprintf(key, sizeof key, "%lld-%d", (long long)rung_wall_ms(), (int)getpid());
    cJSON_AddStringToObject(json, "version", RUNG_VERSION);
    int32_t status = rung_journal_append(e->journal, "process", key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

static uint64_t seed_of(const struct rung_stage *search)
{
    const struct rung_node *n = search->settings ? rung_node_get(search->settings, "seed") : NULL;
    return n && n->type == RUNG_NODE_INT ? (uint64_t)n->i : 1;
}

int32_t engine_open(struct engine *e, struct rung_error *err)
{
    struct rung_diags diags = {0};
    int32_t status = RUNG_OK;
    e->start_ns = rung_now_ns();
    if (e->options->resume) {
        status = rung_journal_open(e->options->resume, RUNG_JOURNAL_RESUME, &e->journal, err);
        if (!status)
            status = read_journal(e, err);
        if (status)
            return status;
    }
    if (read_trees(e, &diags) || load_plugins(e, &diags))
        return config_fail(&diags, err);
    rung_diags_free(&diags);
    e->seed = seed_of(&e->pipeline->search);
    status = start_plugins(e, err);
    if (!status)
        status = read_contract(e, err);
    if (!status && !e->options->resume) {
        status = rung_journal_open(new_run_dir(e), RUNG_JOURNAL_CREATE, &e->journal, err);
        if (!status)
            status = record_run(e, err);
    }
    return status ? status : record_process(e, err);
}

/* ---- Workers ---- */

static void on_artifact(void *ctx, const char *sha256, const void *bytes, uint64_t n)
{
    struct engine *e = ctx;
    struct rung_error err = rung_error_init();
    if (rung_journal_store(e->journal, sha256, bytes, n, &err))
        engine_give_up(e, &err);
}

static void on_progress(void *ctx, const char *label, const char *text)
{
    engine_doing(ctx, label, text);
}

int32_t engine_start(struct engine *e, struct rung_error *err)
{
    struct rung_pool_spec spec = {.registry = e->registry,
                                  .pipeline = e->pipeline,
                                  .task = e->task,
                                  .task_node = e->task_node,
                                  .baselines = e->task_rest.baselines,
                                  .data_dir = e->data_dir,
                                  .store = on_artifact,
                                  .progress = on_progress,
                                  .ctx = e};
    struct rung_pool *pool = NULL;
    int32_t status = rung_pool_new(&spec, &pool, err);
    pthread_mutex_lock(&e->lock);
    e->pool = pool;
    pthread_mutex_unlock(&e->lock);
    return status;
}

void engine_close(struct engine *e)
{
    rung_pool_free(e->pool);
    engine_llms_close(e);
    for (uint32_t i = 0; e->llms && i < e->pipeline->n_llms; i++)
        rung_instance_free(e->llms[i].instance);
    for (uint32_t i = 0; e->example_sources && i < e->pipeline->n_examples; i++)
        rung_instance_free(e->example_sources[i]);
    rung_instance_free(e->codegen);
    rung_instance_free(e->search);
    rung_journal_close(e->journal);
    engine_progress_free(e->progress);
}
