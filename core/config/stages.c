/*
 * The stages of a pipeline: which plugin, under which name, and the core's own settings of each
 * kind. All other settings are the plugin's and checked against its table of options elsewhere.
 */
#include "config/load.h"
#include "config/reader.h"
#include "base/io.h"

#include <string.h>

enum { MAX_STAGES = 64, MAX_EXAMPLES = 16, DEFAULT_EXAMPLES = 2 };

static const char *const plain_keys[] = {"name", "plugin", NULL};
static const char *const llm_keys[] = {"name",     "plugin",     "roles", "weight", "price",
                                       "parallel", "output_cap", "tools", NULL};
static const char *const rung_keys[] = {"name", "plugin", "on", "when", NULL};
static const char *const profile_keys[] = {"name", "plugin", "when", NULL};
static const char *const examples_keys[] = {"name", "plugin", "count", NULL};
static const char *const *const keys_of[] = {plain_keys, llm_keys, rung_keys, profile_keys,
                                             examples_keys};

/* ---- The core's settings of each kind ------------------------------------------------------- */

static const char *const *read_roles(struct pipeline_reader *r, const struct rung_node *group)
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

static void read_price(struct pipeline_reader *r, const struct rung_node *llm,
                       struct rung_price *out)
{
    static const char *const known[] = {
        "input", "output", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", NULL};
    const struct rung_node *group = rung_config_child(llm, "price", RUNG_NODE_GROUP, r->diags);
    if (!group)
        return;
    pipeline_price(r->diags, group, out);
    rung_diag_unknown(r->diags, group, "price", known);
}

const char *const rung_tool_names[] = {"compile", NULL};

const char *const *pipeline_tools(struct pipeline_reader *r, const struct rung_node *group)
{
    const char *const *tools = rung_config_strings(r->arena, group, "tools", r->diags);
    for (size_t i = 0; tools && tools[i]; i++) {
        bool good = false;
        for (size_t k = 0; rung_tool_names[k]; k++)
            good |= strcmp(tools[i], rung_tool_names[k]) == 0;
        if (!good)
            RUNG_DIAG_AT(r->diags, rung_node_get(group, "tools"),
                         "there is no tool \"%s\"; there is: compile", tools[i]);
    }
    return tools;
}

static void read_devices(struct pipeline_reader *r, const struct rung_node *group,
                         struct rung_stage *stage)
{
    stage->on_devices = rung_config_strings(r->arena, group, "on", r->diags);
    if (stage->on_devices && !stage->on_devices[0])
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "on"),
                     "'on' is empty; leave it out for every device, or name some");
    for (size_t i = 0; stage->on_devices && stage->on_devices[i]; i++)
        if (!*stage->on_devices[i] || strcmp(stage->on_devices[i], "auto") == 0)
            RUNG_DIAG_AT(r->diags, rung_node_get(group, "on"),
                         "'on' names device plugins, such as \"cuda\"; not \"%s\"",
                         stage->on_devices[i]);
}

static enum rung_when read_when(struct pipeline_reader *r, const struct rung_node *group,
                                enum rung_when fallback)
{
    static const char *const words[] = {"always", "best", "final"};
    const struct rung_node *node = rung_config_child(group, "when", RUNG_NODE_STRING, r->diags);
    for (int i = 0; node && i < 3; i++)
        if (strcmp(words[i], node->s) == 0)
            return (enum rung_when)i;
    if (node)
        RUNG_DIAG_AT(r->diags, node, "'when' can't be \"%s\"; it is one of always, best, final",
                     node->s);
    return fallback;
}

/* Without a model for code nothing can be implemented. */
static void check_roles(struct pipeline_reader *r, const struct rung_stage *llms, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *const *roles = llms[i].roles;
        if (!roles || !roles[0])
            return;
        for (; *roles; roles++)
            if (strcmp(*roles, "code") == 0)
                return;
    }
    if (n > 0)
        RUNG_DIAG_AT(r->diags, llms[0].place, "no llm has the role \"code\"; one must");
}

static void read_own(struct pipeline_reader *r, const struct rung_node *group, enum stage_kind kind,
                     struct rung_stage *stage)
{
    switch (kind) {
    case STAGE_LLM:
        stage->roles = read_roles(r, group);
        stage->weight = rung_config_float(group, "weight", 1, 0, 1e6, r->diags);
        read_price(r, group, &stage->price);
        stage->parallel = (uint32_t)rung_config_int(group, "parallel", 0, 1, 1024, r->diags);
        stage->output_cap =
            (uint32_t)rung_config_int(group, "output_cap", 0, 1, 10000000, r->diags);
        stage->tools = pipeline_tools(r, group);
        return;
    case STAGE_RUNG:
        read_devices(r, group, stage);
        stage->when = read_when(r, group, RUNG_WHEN_ALWAYS);
        return;
    case STAGE_PROFILE:
        stage->when = read_when(r, group, RUNG_WHEN_BEST);
        return;
    case STAGE_EXAMPLES:
        stage->count =
            (uint32_t)rung_config_int(group, "count", DEFAULT_EXAMPLES, 1, MAX_EXAMPLES, r->diags);
        return;
    case STAGE_PLAIN:
        return;
    }
}

/* ---- One stage, lists of them --------------------------------------------------------------- */

const char *rung_plugin_file(struct rung_arena *arena, const struct rung_node *name)
{
    if (!strchr(name->s, '/'))
        return name->s;
    return rung_path_absolute(arena, rung_path_beside(arena, name->file, name->s));
}

static struct rung_stage read_stage(struct pipeline_reader *r, const struct rung_node *group,
                                    const char *what, enum stage_kind kind)
{
    struct rung_stage stage = {
        .settings = group, .place = group, .weight = 1, .keys = keys_of[kind]};
    stage.plugin = rung_config_string(group, "plugin", NULL, r->diags);
    stage.name = rung_config_string(group, "name", stage.plugin, r->diags);
    if (!rung_node_get(group, "plugin"))
        RUNG_DIAG_AT(r->diags, group, "%s lacks 'plugin'", what);
    else if (stage.plugin && !*stage.plugin)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "plugin"), "'plugin' is empty");
    if (stage.name && !*stage.name && stage.name != stage.plugin)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "name"), "'name' is empty");
    if (stage.plugin)
        stage.plugin = rung_plugin_file(r->arena, rung_node_get(group, "plugin"));
    read_own(r, group, kind, &stage);
    return stage;
}

void pipeline_stage(struct pipeline_reader *r, const char *key, struct rung_stage *out)
{
    const struct rung_node *group = rung_config_child(r->root, key, RUNG_NODE_GROUP, r->diags);
    if (group)
        *out = read_stage(r, group, key, STAGE_PLAIN);
    else if (!rung_node_get(r->root, key))
        RUNG_DIAG_AT(r->diags, r->root, "the pipeline lacks '%s'", key);
}

const struct rung_node **pipeline_groups(struct pipeline_reader *r, const char *key, size_t most,
                                         const char *such, uint32_t *n)
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
            RUNG_DIAG_AT(r->diags, c, "'%s' must hold groups such as %s, but this is %s", key, such,
                         rung_node_type_name(c->type));
    }
    return groups;
}

static void check_names(struct pipeline_reader *r, const char *key, const struct rung_stage *stages,
                        uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (stages[i].name && stages[k].name && strcmp(stages[i].name, stages[k].name) == 0) {
                RUNG_DIAG_AT(r->diags, stages[i].place,
                             "'%s' has two items named '%s'; give one another 'name'", key,
                             stages[i].name);
                break;
            }
}

const struct rung_stage *pipeline_stages(struct pipeline_reader *r, const char *key,
                                         enum stage_kind kind, uint32_t *n)
{
    const struct rung_node **groups =
        pipeline_groups(r, key, MAX_STAGES, "{ plugin = \"...\"; }", n);
    struct rung_stage *stages = RUNG_ARENA_NEW(r->arena, struct rung_stage, *n);
    for (uint32_t i = 0; i < *n; i++)
        stages[i] =
            read_stage(r, groups[i], rung_arena_printf(r->arena, "item %u of '%s'", i, key), kind);
    check_names(r, key, stages, *n);
    if (kind == STAGE_LLM)
        check_roles(r, stages, *n);
    return stages;
}

/* ---- Timing --------------------------------------------------------------------------------- */

/* A plugin named by a text alone. */
static struct rung_stage bare_stage(struct pipeline_reader *r, const struct rung_node *name)
{
    return (struct rung_stage){.name = name->s,
                               .plugin = rung_plugin_file(r->arena, name),
                               .weight = 1,
                               .keys = plain_keys,
                               .place = name};
}

/* Only that timer is left: one of `timers`, or a plugin without settings. */
static void choose_timer(struct pipeline_reader *r, const struct rung_node *timing,
                         struct rung_pipeline *p)
{
    const struct rung_node *name = rung_config_child(timing, "timer", RUNG_NODE_STRING, r->diags);
    if (!name)
        return;
    if (!*name->s)
        RUNG_DIAG_AT(r->diags, name, "'timer' is empty");
    struct rung_stage *chosen = RUNG_ARENA_NEW(r->arena, struct rung_stage, 1);
    *chosen = bare_stage(r, name);
    for (uint32_t i = 0; i < p->n_timers; i++)
        if (p->timers[i].name && strcmp(p->timers[i].name, name->s) == 0)
            *chosen = p->timers[i];
    p->timers = chosen;
    p->n_timers = 1;
}

/* Names, or groups where a baseline has settings. */
static void read_baselines(struct pipeline_reader *r, const struct rung_node *timing,
                           struct rung_pipeline *p)
{
    const struct rung_node *list = rung_config_child(timing, "baselines", RUNG_NODE_LIST, r->diags);
    size_t n = list ? rung_node_count(list) : 0;
    struct rung_stage *stages = RUNG_ARENA_NEW(r->arena, struct rung_stage, n);
    p->baselines = stages;
    if (n > MAX_STAGES)
        RUNG_DIAG_AT(r->diags, list, "'baselines' has %zu items; %d are allowed", n, MAX_STAGES);
    for (struct rung_node *c = n && n <= MAX_STAGES ? list->first : NULL; c; c = c->next) {
        c->used = true;
        if (c->type == RUNG_NODE_STRING && *c->s)
            stages[p->n_baselines++] = bare_stage(r, c);
        else if (c->type == RUNG_NODE_GROUP)
            stages[p->n_baselines++] = read_stage(r, c, "an item of 'baselines'", STAGE_PLAIN);
        else
            RUNG_DIAG_AT(r->diags, c,
                         "'baselines' must hold names of plugins, such as \"cublas\", or groups "
                         "such as { plugin = \"cublas\"; }, but this is %s",
                         c->type == RUNG_NODE_STRING ? "an empty text"
                                                     : rung_node_type_name(c->type));
    }
    check_names(r, "baselines", stages, p->n_baselines);
}

static void read_comparing(struct pipeline_reader *r, const struct rung_node *timing,
                           struct rung_timing_settings *out)
{
    const double most = 3600;
    out->delta = rung_config_float(timing, "delta", out->delta, 0.0001, 0.5, r->diags);
    out->rounds = (uint32_t)rung_config_int(timing, "rounds", out->rounds, 6, 200, r->diags);
    out->processes =
        (uint32_t)rung_config_int(timing, "processes", out->processes, 1, 100, r->diags);
    double budget = rung_config_duration(timing, "budget", out->budget_s, r->diags);
    if (budget > 0 && budget <= most)
        out->budget_s = budget;
    else
        RUNG_DIAG_AT(r->diags, rung_node_get(timing, "budget"),
                     "'budget' must be longer than 0 s and at most %g s", most);
}

void pipeline_timing(struct pipeline_reader *r, struct rung_pipeline *p)
{
    static const char *const known[] = {"timer",  "baselines", "delta", "rounds",
                                        "budget", "processes", NULL};
    const struct rung_node *group = rung_config_child(r->root, "timing", RUNG_NODE_GROUP, r->diags);
    p->timing = (struct rung_timing_settings)RUNG_TIMING_DEFAULTS;
    if (!group)
        return;
    choose_timer(r, group, p);
    read_baselines(r, group, p);
    read_comparing(r, group, &p->timing);
    rung_diag_unknown(r->diags, group, "timing", known);
}
