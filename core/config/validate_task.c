/* A task as its reference sees it: settings, graph, shapes. */
#include "config/load.h"
#include "config/validate.h"
#include "base/status.h"
#include "task/plan.h"

#include <rung/host.h>
#include <rung/reference.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_keys[] = {"name", "plugin", "graph", NULL};

struct rung_stage rung_reference_stage(struct rung_arena *arena,
                                       const struct rung_pipeline *pipeline,
                                       const struct rung_node *reference)
{
    const struct rung_node *name = rung_node_get(reference, "plugin");
    const char *plugin = rung_plugin_file(arena, name);
    struct rung_stage stage = {.name = name->s,
                               .plugin = plugin,
                               .weight = 1,
                               .settings = reference,
                               .place = reference,
                               .keys = stage_keys};
    for (uint32_t i = 0; i < pipeline->n_references; i++) {
        const struct rung_stage *given = &pipeline->references[i];
        if (strcmp(given->plugin, plugin) != 0)
            continue;
        stage.name = given->name;
        stage.settings =
            rung_config_merge(arena, rung_config_copy(arena, given->settings), reference);
        break;
    }
    return stage;
}

/* ---- The graph ------------------------------------------------------------------------------ */

struct graph_check {
    const struct rung_validation *v;
    struct rung_instance *instance;
    const struct rung_task *task;
    const struct rung_node *place; /* the graph's text, or the reference's group */
};

/* What the plugin says of the task at some dims, in place of their own values. */
static int32_t ask(const struct graph_check *g, const int64_t *dims, struct rung_error *err)
{
    struct rung_task there = *g->task;
    struct rung_dim *own = RUNG_ARENA_NEW(g->v->arena, struct rung_dim, there.n_dims);
    for (uint32_t i = 0; i < there.n_dims; i++) {
        own[i] = g->task->dims[i];
        own[i].value = dims[i];
    }
    there.dims = own;
    *err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof call, .arena = g->v->arena, .error = err};
    int32_t status;
    RUNG_INVOKE(status, g->instance, struct rung_reference_ops, check, &call, &there);
    return status;
}

/* "graph:12: what" of the plugin as "graph, column 12: what"; anything else stays. */
static const char *placed(struct rung_arena *arena, const char *message)
{
    char *end;
    if (!rung_starts_with(message, "graph:"))
        return message;
    unsigned long column = strtoul(message + 6, &end, 10);
    return *end == ':' ? rung_arena_printf(arena, "graph, column %lu%s", column, end) : message;
}

/* False after a fault. What is no fault of the task's, such as a missing library, is a note. */
static bool check_at(const struct graph_check *g, const int64_t *dims, const char *where)
{
    struct rung_error err;
    int32_t status = ask(g, dims, &err);
    bool wrong = status == RUNG_ECONFIG || status == RUNG_EINVAL || status == RUNG_EUNSUPPORTED;
    if (status)
        RUNG_DIAG_AT(wrong ? g->v->diags : g->v->notes, g->place, "%s%s",
                     placed(g->v->arena, err.message), where);
    return status == RUNG_OK;
}

static bool check_cases(const struct graph_check *g, const struct rung_shape_case *cases,
                        uint32_t n, const char *list)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *where =
            rung_arena_printf(g->v->arena, " (at %s of %s)",
                              rung_task_dims_text(g->v->arena, g->task, cases[i].dims), list);
        if (!check_at(g, cases[i].dims, where))
            return false;
    }
    return true;
}

/* Another allowed value of a dim, near its own; its own where there is none. */
static int64_t beside(const struct rung_dim *dim, int64_t step)
{
    int64_t m = dim->multiple_of, most = INT64_C(1) << 40;
    if (dim->value > most || m > most)
        return dim->value;
    int64_t up = (dim->value + step + m - 1) / m * m, down = (dim->value - step) / m * m;
    return up <= dim->max ? up : dim->value > step && down >= dim->min ? down : dim->value;
}

/* The least value that a dim allows. */
static int64_t least(const struct rung_dim *dim)
{
    int64_t m = dim->multiple_of;
    return (dim->min + m - 1) / m * m;
}

/* Whether the graph has a meaning at these dims; where it has none that is noted. */
static bool probe_at(const struct graph_check *g, int64_t *dims)
{
    const struct rung_task *t = g->task;
    struct rung_layout layout;
    struct rung_error err = rung_error_init();
    if (rung_task_complete(t, dims, &err))
        return true;
    for (uint32_t i = 0; i < t->n_tensors; i++)
        if (rung_task_layout(t, i, dims, &layout, &err))
            return true;
    if (!ask(g, dims, &err))
        return true;
    RUNG_DIAG_AT(g->v->notes, g->place,
                 "at other dims, such as %s, it fails: %s; state min, max or multiple_of of a "
                 "dim, or check.shapes = \"fixed\"",
                 rung_task_dims_text(g->v->arena, t, dims), placed(g->v->arena, err.message));
    return false;
}

/*
 * Dims that equal each other by chance, or that happen to divide, hide a graph that is wrong for
 * others: asks at values beside the task's own, all different steps away, and at the least ones.
 */
static void probe(const struct graph_check *g)
{
    static const int64_t steps[] = {1, 2, 3, 5, 7, 11, 13, 17};
    const struct rung_task *t = g->task;
    int64_t *dims = RUNG_ARENA_NEW(g->v->arena, int64_t, t->n_dims);
    for (uint32_t i = 0, k = 0; i < t->n_dims; i++)
        dims[i] = t->dims[i].derived ? 0 : beside(&t->dims[i], steps[k++ % 8]);
    if (!probe_at(g, dims))
        return;
    for (uint32_t i = 0; i < t->n_dims; i++)
        dims[i] = t->dims[i].derived ? 0 : least(&t->dims[i]);
    probe_at(g, dims);
}

static void check_graph(const struct graph_check *g)
{
    int64_t *own = RUNG_ARENA_NEW(g->v->arena, int64_t, g->task->n_dims);
    for (uint32_t i = 0; i < g->task->n_dims; i++)
        own[i] = g->task->dims[i].value;
    bool good = check_at(g, own, "") &&
                check_cases(g, g->task->bench, g->task->n_bench, "bench.shapes") &&
                check_cases(g, g->task->extra, g->task->n_extra, "check.extra");
    if (good && g->task->shape_rule == RUNG_SHAPES_RANGE)
        probe(g);
}

/* ---- The whole ------------------------------------------------------------------------------ */

/* Baselines are wishes: which are there differs from machine to machine. */
static void note_baselines(const struct rung_validation *v, const struct rung_task_rest *rest)
{
    struct rung_buf missing = {0};
    const char *kind = rung_kind_of_word("baseline");
    for (size_t i = 0; rest->baselines[i]; i++) {
        char *path, sha256[RUNG_SHA256_HEX];
        if (!kind || rung_registry_locate(v->registry, kind, rest->baselines[i], &path, sha256,
                                          v->arena, NULL) != RUNG_OK)
            rung_buf_printf(&missing, "%s%s", missing.len ? ", " : "", rest->baselines[i]);
    }
    if (missing.len)
        RUNG_DIAG_AT(v->notes, rest->baselines_node,
                     "baselines not available here, since no such plugin is installed: %s",
                     rung_buf_text(&missing));
    rung_buf_free(&missing);
}

static bool is_told(const struct rung_diags *diags, size_t n, const struct rung_diag_item *item)
{
    for (size_t i = 0; i < n; i++) {
        const struct rung_diag_item *told = &diags->items[i];
        bool same_file = told->file && item->file ? strcmp(told->file, item->file) == 0
                                                  : told->file == item->file;
        if (same_file && told->line == item->line && strcmp(told->message, item->message) == 0)
            return true;
    }
    return false;
}

/* The pipeline's own settings of the plugin are among these; what was told of them is not again. */
static const struct rung_options *reference_options(const struct rung_validation *v,
                                                    const struct rung_stage *stage,
                                                    const struct rung_loaded **loaded)
{
    struct rung_diags found = {0};
    struct rung_validation quiet = *v;
    size_t before = v->diags->n;
    quiet.diags = &found;
    const struct rung_options *options =
        rung_stage_options(&quiet, RUNG_KIND_REFERENCE, stage, loaded);
    for (size_t i = 0; i < found.n; i++)
        if (!is_told(v->diags, before, &found.items[i]))
            rung_diag(v->diags, found.items[i].file, found.items[i].line, "%s",
                      found.items[i].message);
    rung_diags_free(&found);
    return options;
}

void rung_validate_task(const struct rung_validation *v, const struct rung_pipeline *pipeline,
                        const struct rung_task *task, const struct rung_task_rest *rest)
{
    static const struct rung_service services[] = {{RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                                   {NULL, NULL, NULL}};
    const struct rung_stage stage = rung_reference_stage(v->arena, pipeline, rest->reference);
    const struct rung_node *graph = rung_node_get(rest->reference, "graph");
    struct graph_check g = {.v = v, .task = task, .place = graph ? graph : rest->reference};
    const struct rung_loaded *loaded = NULL;
    struct rung_error err = rung_error_init();
    note_baselines(v, rest);
    const struct rung_options *options = reference_options(v, &stage, &loaded);
    if (!options && loaded) { /* the graph is judged even so */
        struct rung_diags told = {0};
        options = rung_options_read(v->arena, loaded->factory, NULL, NULL, v->data_dir, &told);
        rung_diags_free(&told);
    }
    if (!options)
        return;
    if (rung_instance_new(loaded, options, stage.name, v->data_dir, services, &g.instance, &err) ||
        rung_instance_start(g.instance, &err))
        RUNG_DIAG_AT(v->notes, g.place, "the graph can't be checked here: %s", err.message);
    else
        check_graph(&g);
    rung_instance_free(g.instance);
}
