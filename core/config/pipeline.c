/*
 * The typed pipeline out of a merged settings tree. Every fault of every key is told; options of
 * plugins are left to the caller.
 */
#include "config/config.h"
#include "base/io.h"

#include <math.h>
#include <string.h>

enum { MAX_STAGES = 64, MAX_WORKERS = 4096 };

const char *const rung_stage_keys[] = {"name", "plugin", "roles", "weight", "on", NULL};

/* Which of the core's keys a kind of stage takes besides name and plugin. */
enum extra { EXTRA_NONE, EXTRA_LLM, EXTRA_RUNG };

struct reader {
    struct rung_arena *arena;
    struct rung_diags *diags;
    const struct rung_node *root;
};

/* ---- Stages --------------------------------------------------------------------------------- */

static void refuse_key(struct reader *r, const struct rung_node *group, const char *key,
                       const char *of)
{
    const struct rung_node *node = rung_node_get(group, key);
    if (node)
        RUNG_DIAG_AT(r->diags, node, "'%s' is a setting of %s only", key, of);
}

static const char *const *read_roles(struct reader *r, const struct rung_node *group)
{
    static const char *const known[] = {"ideas", "code", "repair"};
    const char *const *roles = rung_config_strings(r->arena, group, "roles", r->diags);
    for (size_t i = 0; roles && roles[i]; i++) {
        bool good = false;
        for (size_t k = 0; k < 3; k++)
            good |= strcmp(roles[i], known[k]) == 0;
        if (!good)
            RUNG_DIAG_AT(r->diags, rung_node_get(group, "roles"),
                         "there is no role \"%s\"; roles are ideas, code, repair", roles[i]);
    }
    if (roles && !roles[0])
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "roles"),
                     "'roles' is empty; leave it out for all, or name some of ideas, code, repair");
    return roles;
}

static struct rung_stage read_stage(struct reader *r, const struct rung_node *group,
                                    const char *what, enum extra extra)
{
    struct rung_stage stage = {.settings = group, .weight = 1};
    stage.plugin = rung_config_string(group, "plugin", NULL, r->diags);
    stage.name = rung_config_string(group, "name", stage.plugin, r->diags);
    if (!rung_node_get(group, "plugin"))
        RUNG_DIAG_AT(r->diags, group, "%s lacks 'plugin'", what);
    else if (stage.plugin && !*stage.plugin)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "plugin"), "'plugin' is empty");
    if (stage.name && !*stage.name && stage.name != stage.plugin)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "name"), "'name' is empty");
    if (extra == EXTRA_LLM) {
        stage.roles = read_roles(r, group);
        stage.weight = rung_config_float(group, "weight", 1, 0, 1e6, r->diags);
    } else {
        refuse_key(r, group, "roles", "llm");
        refuse_key(r, group, "weight", "llm");
    }
    if (extra == EXTRA_RUNG)
        stage.on = rung_config_string(group, "on", NULL, r->diags);
    else
        refuse_key(r, group, "on", "rungs");
    return stage;
}

static void read_one(struct reader *r, const char *key, struct rung_stage *out)
{
    const struct rung_node *group = rung_config_child(r->root, key, RUNG_NODE_GROUP, r->diags);
    if (group)
        *out = read_stage(r, group, key, EXTRA_NONE);
    else if (!rung_node_get(r->root, key))
        RUNG_DIAG_AT(r->diags, r->root, "the pipeline lacks '%s'", key);
}

/* The groups of a list; other items are faults and left out. */
static const struct rung_node **read_groups(struct reader *r, const char *key, size_t most,
                                            uint32_t *n)
{
    const struct rung_node *list = rung_config_child(r->root, key, RUNG_NODE_LIST, r->diags);
    size_t count = list ? rung_node_count(list) : 0;
    const struct rung_node **groups = RUNG_ARENA_NEW(r->arena, const struct rung_node *, count);
    *n = 0;
    if (count > most) {
        RUNG_DIAG_AT(r->diags, list, "'%s' has %zu items; %zu are allowed", key, count, most);
        return groups;
    }
    for (struct rung_node *c = list ? list->first : NULL; c; c = c->next) {
        c->used = true;
        if (c->type == RUNG_NODE_GROUP)
            groups[(*n)++] = c;
        else
            RUNG_DIAG_AT(r->diags, c,
                         "'%s' must hold groups such as { plugin = \"...\"; }, but this is %s", key,
                         rung_node_type_name(c->type));
    }
    return groups;
}

static void check_names(struct reader *r, const char *key, const struct rung_stage *stages,
                        uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (stages[i].name && stages[k].name && strcmp(stages[i].name, stages[k].name) == 0) {
                RUNG_DIAG_AT(r->diags, stages[i].settings,
                             "'%s' has two items named '%s'; give one another 'name'", key,
                             stages[i].name);
                break;
            }
}

static const struct rung_stage *read_list(struct reader *r, const char *key, enum extra extra,
                                          uint32_t *n)
{
    const struct rung_node **groups = read_groups(r, key, MAX_STAGES, n);
    struct rung_stage *stages = RUNG_ARENA_NEW(r->arena, struct rung_stage, *n);
    for (uint32_t i = 0; i < *n; i++)
        stages[i] =
            read_stage(r, groups[i], rung_arena_printf(r->arena, "item %u of '%s'", i, key), extra);
    check_names(r, key, stages, *n);
    return stages;
}

/* timing = { timer = "NAME"; } leaves only that timer: one of `timers`, or a plugin without
 * settings. */
static void choose_timer(struct reader *r, struct rung_pipeline *p)
{
    static const char *const known[] = {"timer", NULL};
    const struct rung_node *group = rung_config_child(r->root, "timing", RUNG_NODE_GROUP, r->diags);
    const char *name = rung_config_string(group, "timer", NULL, r->diags);
    if (group)
        rung_diag_unknown(r->diags, group, "timing", known);
    if (!name)
        return;
    struct rung_stage *chosen = RUNG_ARENA_NEW(r->arena, struct rung_stage, 1);
    *chosen = (struct rung_stage){.name = name, .plugin = name, .weight = 1};
    for (uint32_t i = 0; i < p->n_timers; i++)
        if (p->timers[i].name && strcmp(p->timers[i].name, name) == 0)
            *chosen = p->timers[i];
    p->timers = chosen;
    p->n_timers = 1;
}

/* ---- Workers, limits, budget ---------------------------------------------------------------- */

static struct rung_worker_spec read_worker(struct reader *r, const struct rung_node *group)
{
    static const char *const known[] = {"device", "count", "launch", "rung", NULL};
    static const char *const nothing[] = {NULL};
    struct rung_worker_spec w = {.settings = group};
    w.device = rung_config_string(group, "device", "auto", r->diags);
    w.count = (uint32_t)rung_config_int(group, "count", 1, 1, MAX_WORKERS, r->diags);
    w.launch = rung_config_strings(r->arena, group, "launch", r->diags);
    w.rung = rung_config_string(group, "rung", NULL, r->diags);
    if (!w.launch)
        w.launch = nothing;
    rung_diag_unknown(r->diags, group, "a worker", known);
    return w;
}

static void read_workers(struct reader *r, struct rung_pipeline *p)
{
    const struct rung_node **groups = read_groups(r, "workers", MAX_STAGES, &p->n_workers);
    struct rung_worker_spec *workers =
        RUNG_ARENA_NEW(r->arena, struct rung_worker_spec, p->n_workers);
    for (uint32_t i = 0; i < p->n_workers; i++)
        workers[i] = read_worker(r, groups[i]);
    p->workers = workers;
    if (p->n_workers == 0)
        RUNG_DIAG_AT(r->diags, r->root,
                     "the pipeline has no workers; give at least ( { device = \"auto\"; } )");
}

static double read_limit(struct reader *r, const struct rung_node *group, const char *key)
{
    const struct rung_node *node = rung_node_get(group, key);
    double seconds = rung_config_duration(group, key, 1, r->diags);
    if (!node)
        RUNG_DIAG_AT(r->diags, group, "limits lacks '%s'", key);
    else if (seconds <= 0)
        RUNG_DIAG_AT(r->diags, node, "'%s' must be longer than 0 s", key);
    return seconds;
}

static int64_t read_count(struct reader *r, const struct rung_node *group, const char *key,
                          int64_t min, int64_t max)
{
    if (!rung_node_get(group, key))
        RUNG_DIAG_AT(r->diags, group, "limits lacks '%s'", key);
    return rung_config_int(group, key, min, min, max, r->diags);
}

static void read_limits(struct reader *r, struct rung_limits *out)
{
    static const char *const known[] = {"start",           "compile",      "check", "time",
                                        "compile_repairs", "llm_parallel", NULL};
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
    rung_diag_unknown(r->diags, group, "limits", known);
}

static void read_budget(struct reader *r, struct rung_budget *out)
{
    static const char *const known[] = {"evaluations", "calls", "tokens", "wall", NULL};
    const struct rung_node *group = rung_config_child(r->root, "budget", RUNG_NODE_GROUP, r->diags);
    if (!group)
        return;
    out->evaluations = (uint64_t)rung_config_int(group, "evaluations", 0, 0, INT64_MAX, r->diags);
    out->calls = (uint64_t)rung_config_int(group, "calls", 0, 0, INT64_MAX, r->diags);
    out->tokens = (uint64_t)rung_config_int(group, "tokens", 0, 0, INT64_MAX, r->diags);
    out->wall_s = rung_config_duration(group, "wall", 0, r->diags);
    rung_diag_unknown(r->diags, group, "budget", known);
}

/* ---- Paths ---------------------------------------------------------------------------------- */

static const char *read_task_path(struct reader *r)
{
    const struct rung_node *node = rung_config_child(r->root, "task", RUNG_NODE_STRING, r->diags);
    if (!node)
        return NULL;
    if (!*node->s)
        RUNG_DIAG_AT(r->diags, node, "'task' is empty; it is the path of a task file");
    return rung_path_beside(r->arena, node->file, node->s);
}

static const char *const *read_plugin_path(struct reader *r)
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
        paths[i] = rung_path_beside(r->arena, node->file, given[i]);
    }
    return paths;
}

static const char *const pipeline_keys[] = {
    "base",  "task",   "llm",    "codegen",    "compiler", "search", "workers",     "devices",
    "rungs", "timers", "timing", "references", "limits",   "budget", "plugin_path", NULL};

const struct rung_pipeline *
rung_pipeline_read(struct rung_arena *arena, const struct rung_node *root, struct rung_diags *diags)
{
    struct reader r = {.arena = arena, .diags = diags, .root = root};
    struct rung_pipeline *p = RUNG_ARENA_NEW(arena, struct rung_pipeline, 1);
    size_t before = diags->n;
    *p = (struct rung_pipeline){.file = root->file, .root = root};
    p->task = read_task_path(&r);
    p->llms = read_list(&r, "llm", EXTRA_LLM, &p->n_llms);
    read_one(&r, "codegen", &p->codegen);
    read_one(&r, "compiler", &p->compiler);
    read_one(&r, "search", &p->search);
    p->devices = read_list(&r, "devices", EXTRA_NONE, &p->n_devices);
    p->timers = read_list(&r, "timers", EXTRA_NONE, &p->n_timers);
    p->references = read_list(&r, "references", EXTRA_NONE, &p->n_references);
    p->rungs = read_list(&r, "rungs", EXTRA_RUNG, &p->n_rungs);
    if (!p->n_rungs && diags->n == before)
        RUNG_DIAG_AT(diags, root, "'rungs' is empty: every kernel would pass; name a verifier");
    choose_timer(&r, p);
    read_workers(&r, p);
    read_limits(&r, &p->limits);
    read_budget(&r, &p->budget);
    p->plugin_path = read_plugin_path(&r);
    rung_diag_unknown(diags, root, "a pipeline", pipeline_keys);
    return diags->n == before ? p : NULL;
}
