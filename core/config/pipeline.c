/*
 * The typed pipeline out of a merged settings tree. Every fault of every key is told; options of
 * plugins are left to the caller.
 */
#include "config/reader.h"
#include "base/io.h"

#include <math.h>
#include <string.h>

enum { MAX_GROUPS = 64, MAX_WORKERS = 4096, MAX_PATIENCE = 100000 };

/* ---- Workers, limits, budget ---------------------------------------------------------------- */

/* No shell reads it: words stand apart. */
static void check_launch(struct pipeline_reader *r, const struct rung_node *node, const char *first)
{
    if (!*first)
        RUNG_DIAG_AT(r->diags, node, "the first word of 'launch' is empty; it is a command");
    else if (node->type == RUNG_NODE_STRING && strchr(first, ' '))
        RUNG_DIAG_AT(r->diags, node,
                     "'launch' is a list of words, such as [ \"srun\", \"-n1\" ]; no shell splits "
                     "a text");
}

static struct rung_worker_spec read_worker(struct pipeline_reader *r, const struct rung_node *group)
{
    static const char *const known[] = {"device", "count", "launch", "rung", NULL};
    static const char *const nothing[] = {NULL};
    struct rung_worker_spec w = {.settings = group};
    w.device = rung_config_string(group, "device", "auto", r->diags);
    w.count = (uint32_t)rung_config_int(group, "count", 1, 1, MAX_WORKERS, r->diags);
    w.launch = rung_config_strings(r->arena, group, "launch", r->diags);
    w.rung = rung_config_string(group, "rung", NULL, r->diags);
    if (w.device && !*w.device)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "device"),
                     "'device' is empty; it is \"auto\" or the name of a device plugin");
    if (w.rung && !*w.rung)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "rung"), "'rung' is empty");
    if (w.launch && w.launch[0])
        check_launch(r, rung_node_get(group, "launch"), w.launch[0]);
    if (!w.launch)
        w.launch = nothing;
    rung_diag_unknown(r->diags, group, "a worker", known);
    return w;
}

static void read_workers(struct pipeline_reader *r, struct rung_pipeline *p)
{
    uint32_t total = 0;
    const struct rung_node **groups = pipeline_groups(
        r, "workers", MAX_GROUPS, "{ device = \"auto\"; count = 1; }", &p->n_workers);
    struct rung_worker_spec *workers =
        RUNG_ARENA_NEW(r->arena, struct rung_worker_spec, p->n_workers);
    for (uint32_t i = 0; i < p->n_workers; i++)
        total += (workers[i] = read_worker(r, groups[i])).count;
    p->workers = workers;
    if (total > MAX_WORKERS)
        RUNG_DIAG_AT(r->diags, groups[0], "the pipeline has %u workers; %d are allowed", total,
                     MAX_WORKERS);
    if (p->n_workers == 0)
        RUNG_DIAG_AT(r->diags, r->root,
                     "the pipeline has no workers; give at least ( { device = \"auto\"; } )");
}

/* At most `most` seconds: what comes after counts nanoseconds in 64 bits. */
static double read_duration(struct pipeline_reader *r, const struct rung_node *group,
                            const char *key, double fallback, double most)
{
    double seconds = rung_config_duration(group, key, fallback, r->diags);
    if (seconds <= most)
        return seconds;
    RUNG_DIAG_AT(r->diags, rung_node_get(group, key), "'%s' must be at most %g s", key, most);
    return fallback;
}

static double read_limit(struct pipeline_reader *r, const struct rung_node *group, const char *key)
{
    const struct rung_node *node = rung_node_get(group, key);
    double seconds = read_duration(r, group, key, 1, 1e6);
    if (!node)
        RUNG_DIAG_AT(r->diags, group, "limits lacks '%s'", key);
    else if (seconds <= 0)
        RUNG_DIAG_AT(r->diags, node, "'%s' must be longer than 0 s", key);
    return seconds;
}

static int64_t read_count(struct pipeline_reader *r, const struct rung_node *group, const char *key,
                          int64_t min, int64_t max)
{
    if (!rung_node_get(group, key))
        RUNG_DIAG_AT(r->diags, group, "limits lacks '%s'", key);
    return rung_config_int(group, key, min, min, max, r->diags);
}

static void read_limits(struct pipeline_reader *r, struct rung_limits *out)
{
    static const char *const known[] = {
        "start",         "compile",      "check",     "time",     "compile_repairs",
        "check_repairs", "llm_parallel", "llm_tries", "llm_wait", NULL};
    const struct rung_node *group = rung_config_child(r->root, "limits", RUNG_NODE_GROUP, r->diags);
    if (!group) {
        if (!rung_node_get(r->root, "limits"))
            RUNG_DIAG_AT(r->diags, r->root, "the pipeline lacks 'limits'");
        return;
    }
    out->start_s = read_limit(r, group, "start");
    out->compile_s = read_limit(r, group, "compile");
    out->check_s = read_limit(r, group, "check");
    out->time_s = read_limit(r, group, "time");
    out->compile_repairs = (uint32_t)read_count(r, group, "compile_repairs", 0, 100);
    out->llm_parallel = (uint32_t)read_count(r, group, "llm_parallel", 1, 1024);
    /* Journals of older versions lack these. */
    out->check_repairs = (uint32_t)rung_config_int(group, "check_repairs", 0, 0, 100, r->diags);
    out->llm_tries = (uint32_t)rung_config_int(group, "llm_tries", 8, 1, 1000, r->diags);
    out->llm_wait_s = read_duration(r, group, "llm_wait", 600, 1e6);
    rung_diag_unknown(r->diags, group, "limits", known);
}

static void read_conversation(struct pipeline_reader *r, struct rung_conversation *out)
{
    static const char *const known[] = {"continues", "tool_calls", "tool_bytes", "log_bytes", NULL};
    static const struct rung_conversation usual = {3, 8, 64 << 10, 12000};
    const struct rung_node *group =
        rung_config_child(r->root, "conversation", RUNG_NODE_GROUP, r->diags);
    *out = usual;
    if (!group)
        return;
    out->continues = (uint32_t)rung_config_int(group, "continues", 3, 0, 32, r->diags);
    out->tool_calls = (uint32_t)rung_config_int(group, "tool_calls", 8, 0, 1000, r->diags);
    out->tool_bytes = rung_config_int(group, "tool_bytes", usual.tool_bytes, 0, 64 << 20, r->diags);
    out->log_bytes = rung_config_int(group, "log_bytes", usual.log_bytes, 256, 1 << 20, r->diags);
    rung_diag_unknown(r->diags, group, "conversation", known);
}

static void read_budget(struct pipeline_reader *r, struct rung_budget *out)
{
    static const char *const known[] = {
        "usd", "tokens", "calls", "evaluations", "wall", "allow_unknown_price", NULL};
    const struct rung_node *group = rung_config_child(r->root, "budget", RUNG_NODE_GROUP, r->diags);
    if (!group)
        return;
    out->evaluations = (uint64_t)rung_config_int(group, "evaluations", 0, 0, INT64_MAX, r->diags);
    out->calls = (uint64_t)rung_config_int(group, "calls", 0, 0, INT64_MAX, r->diags);
    out->tokens = (uint64_t)rung_config_int(group, "tokens", 0, 0, INT64_MAX, r->diags);
    out->wall_s = read_duration(r, group, "wall", 0, 1e9);
    out->usd = rung_config_float(group, "usd", 0, 0, 1e9, r->diags);
    const struct rung_node *unknown =
        rung_config_child(group, "allow_unknown_price", RUNG_NODE_BOOL, r->diags);
    out->allow_unknown_price = unknown && unknown->b;
    rung_diag_unknown(r->diags, group, "budget", known);
}

static void read_stop(struct pipeline_reader *r, struct rung_stop *out)
{
    static const char *const known[] = {"roofline", "patience", "target", NULL};
    const struct rung_node *group = rung_config_child(r->root, "stop", RUNG_NODE_GROUP, r->diags);
    if (!group)
        return;
    out->roofline = rung_config_float(group, "roofline", 0, 0, 1, r->diags);
    out->patience = (uint32_t)rung_config_int(group, "patience", 0, 0, MAX_PATIENCE, r->diags);
    out->target_s = read_duration(r, group, "target", 0, 1e9);
    rung_diag_unknown(r->diags, group, "stop", known);
}

/* ---- Paths ---------------------------------------------------------------------------------- */

static const char *read_task_path(struct pipeline_reader *r)
{
    const struct rung_node *node = rung_config_child(r->root, "task", RUNG_NODE_STRING, r->diags);
    if (!node)
        return NULL;
    if (!*node->s)
        RUNG_DIAG_AT(r->diags, node, "'task' is empty; it is the path of a task file");
    return rung_path_beside(r->arena, node->file, node->s);
}

static const char *const *read_plugin_path(struct pipeline_reader *r)
{
    const struct rung_node *node = rung_node_get(r->root, "plugin_path");
    const char *const *given = rung_config_strings(r->arena, r->root, "plugin_path", r->diags);
    size_t n = 0;
    while (given && given[n])
        n++;
    const char **paths = RUNG_ARENA_NEW(r->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!*given[i])
            RUNG_DIAG_AT(r->diags, node, "'plugin_path' holds an empty path");
        paths[i] = rung_path_absolute(r->arena, rung_path_beside(r->arena, node->file, given[i]));
    }
    return paths;
}

static void read_context(struct pipeline_reader *r, struct rung_pipeline *p)
{
    static const char *const known[] = {"path", NULL};
    const struct rung_node **groups =
        pipeline_groups(r, "context", MAX_GROUPS, "{ path = \"...\"; }", &p->n_contexts);
    struct rung_context_source *sources =
        RUNG_ARENA_NEW(r->arena, struct rung_context_source, p->n_contexts);
    for (uint32_t i = 0; i < p->n_contexts; i++) {
        const struct rung_node *path =
            rung_config_child(groups[i], "path", RUNG_NODE_STRING, r->diags);
        sources[i].settings = groups[i];
        if (!rung_node_get(groups[i], "path"))
            RUNG_DIAG_AT(r->diags, groups[i], "item %u of 'context' lacks 'path'", i);
        else if (path && !*path->s)
            RUNG_DIAG_AT(r->diags, path, "'path' is empty; it is a file or folder");
        else if (path)
            sources[i].path = rung_path_beside(r->arena, path->file, path->s);
        rung_diag_unknown(r->diags, groups[i], "a context", known);
    }
    p->contexts = sources;
}

const char *const rung_pipeline_keys[] = {
    "base",        "task",         "llm",      "codegen",    "compiler", "search",
    "devices",     "workers",      "rungs",    "references", "timers",   "timing",
    "profile",     "context",      "examples", "budget",     "stop",     "limits",
    "plugin_path", "conversation", "tools",    "http",       NULL};

static void read_stages(struct pipeline_reader *r, struct rung_pipeline *p)
{
    p->llms = pipeline_stages(r, "llm", STAGE_LLM, &p->n_llms);
    pipeline_stage(r, "codegen", &p->codegen);
    pipeline_stage(r, "compiler", &p->compiler);
    pipeline_stage(r, "search", &p->search);
    p->devices = pipeline_stages(r, "devices", STAGE_PLAIN, &p->n_devices);
    p->timers = pipeline_stages(r, "timers", STAGE_PLAIN, &p->n_timers);
    p->references = pipeline_stages(r, "references", STAGE_PLAIN, &p->n_references);
    p->rungs = pipeline_stages(r, "rungs", STAGE_RUNG, &p->n_rungs);
    p->profiles = pipeline_stages(r, "profile", STAGE_PROFILE, &p->n_profiles);
    p->examples = pipeline_stages(r, "examples", STAGE_EXAMPLES, &p->n_examples);
    pipeline_timing(r, p);
}

const struct rung_pipeline *
rung_pipeline_read(struct rung_arena *arena, const struct rung_node *root, struct rung_diags *diags)
{
    struct pipeline_reader r = {.arena = arena, .diags = diags, .root = root};
    struct rung_pipeline *p = RUNG_ARENA_NEW(arena, struct rung_pipeline, 1);
    size_t before = diags->n;
    *p = (struct rung_pipeline){.file = root->file, .root = root};
    if (rung_node_get(root, "base"))
        RUNG_DIAG_AT(diags, rung_node_get(root, "base"), "'base' can stand in a file only");
    p->task = read_task_path(&r);
    read_stages(&r, p);
    if (!p->n_rungs && diags->n == before)
        RUNG_DIAG_AT(diags, root, "'rungs' is empty: every kernel would pass; name a verifier");
    read_workers(&r, p);
    read_limits(&r, &p->limits);
    read_conversation(&r, &p->conversation);
    p->tools = pipeline_tools(&r, root);
    read_budget(&r, &p->budget);
    read_stop(&r, &p->stop);
    pipeline_http(&r, &p->http);
    read_context(&r, p);
    p->plugin_path = read_plugin_path(&r);
    rung_diag_unknown(diags, root, "a pipeline", rung_pipeline_keys);
    return diags->n == before ? p : NULL;
}
