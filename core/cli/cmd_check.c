/*
 * `rung check`: everything that can be said of task and pipeline files before anything runs.
 * Plugins are loaded for their tables of options and the reference for the graph; nothing is
 * started.
 */
#include "base/die.h"
#include "base/json.h"
#include "cli/cli.h"
#include "config/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 256, MAX_SETS = 64 };

struct check {
    const char *const *sets;
    size_t n_sets;
    bool insecure;
    cJSON *files, *faults, *notes; /* NULL: for people */
    size_t n_faults;
};

/* One file on its way through the readers. */
struct subject {
    const struct check *check;
    struct rung_arena *arena;
    struct rung_registry *registry;
    struct rung_diags diags, notes;
    const struct rung_pipeline *pipeline;
    const struct rung_task *task;
};

static struct rung_validation validation(struct subject *s)
{
    return (struct rung_validation){.arena = s->arena,
                                    .registry = s->registry,
                                    .data_dir = rung_data_dir(),
                                    .diags = &s->diags,
                                    .notes = &s->notes};
}

/* path NULL: what every pipeline stands on. */
static void read_pipeline(struct subject *s, const char *path)
{
    const struct rung_node *root = rung_config_pipeline(
        s->arena, path, rung_data_dir(), s->check->sets, s->check->n_sets, &s->diags);
    if (root)
        s->pipeline = rung_pipeline_read(s->arena, root, &s->diags);
    if (s->pipeline)
        rung_pipeline_add_path(s->pipeline, s->registry);
}

static void check_task(struct subject *s, const char *path)
{
    const struct rung_node *root = rung_config_task(s->arena, path, &s->diags);
    struct rung_validation v = validation(s);
    struct rung_task_rest rest;
    if (root)
        s->task = rung_task_read_all(s->arena, root, &rest, &s->diags);
    if (s->task && s->pipeline)
        rung_validate_task(&v, s->pipeline, s->task, &rest);
}

static void check_pipeline(struct subject *s, const char *path)
{
    read_pipeline(s, path);
    if (!s->pipeline)
        return;
    struct rung_validation v = validation(s);
    rung_validate_search(&v, s->pipeline);
    rung_validate_ladder(&v, s->pipeline);
    if (s->pipeline->task)
        check_task(s, s->pipeline->task);
}

static enum rung_file_kind check_file(struct subject *s, const char *path)
{
    const struct rung_node *root = rung_config_file(s->arena, path, &s->diags);
    enum rung_file_kind kind = root ? rung_config_kind(root) : RUNG_FILE_OTHER;
    if (root && kind == RUNG_FILE_OTHER)
        rung_diag(&s->diags, path, 0,
                  "is neither a task, which has tensors and a reference, nor a pipeline, which has "
                  "for example llm, search or task");
    if (kind == RUNG_FILE_PIPELINE)
        check_pipeline(s, path);
    if (kind == RUNG_FILE_TASK) {
        read_pipeline(s, NULL);
        check_task(s, path);
    }
    return kind;
}

/* ---- What is told --------------------------------------------------------------------------- */

static void add_count(struct rung_buf *out, uint32_t n, const char *what)
{
    rung_buf_printf(out, "%s%u %s%s", out->len ? ", " : "", n, what, n == 1 ? "" : "s");
}

static void describe_task(struct rung_buf *out, const struct rung_task *t)
{
    struct rung_buf parts = {0};
    add_count(&parts, t->n_dims, "dim");
    add_count(&parts, t->n_tensors, "tensor");
    add_count(&parts, t->n_bench, "bench shape");
    add_count(&parts, t->n_extra, "extra check shape");
    rung_buf_printf(out, "task '%s' (%s; %s by reference %s)", t->name, rung_buf_text(&parts),
                    t->graph ? "graph computed" : "computed", t->reference);
    rung_buf_free(&parts);
}

static void add_stages(struct rung_buf *out, const char *what, const struct rung_stage *stages,
                       uint32_t n)
{
    rung_buf_printf(out, "; %s", what);
    for (uint32_t i = 0; i < n; i++)
        rung_buf_printf(out, "%s%s", i ? ", " : " ", stages[i].name);
    if (n == 0)
        rung_buf_puts(out, " none yet");
}

static char *describe(struct subject *s, enum rung_file_kind kind)
{
    struct rung_buf out = {0};
    const struct rung_pipeline *p = s->pipeline;
    if (kind == RUNG_FILE_PIPELINE) {
        rung_buf_printf(&out, "pipeline (search %s", p->search.name);
        add_stages(&out, "llm", p->llms, p->n_llms);
        add_stages(&out, "rungs", p->rungs, p->n_rungs);
        rung_buf_puts(&out, s->task ? ") on " : "; task none yet)");
    }
    if (s->task)
        describe_task(&out, s->task);
    char *text = rung_arena_strdup(s->arena, rung_buf_text(&out));
    rung_buf_free(&out);
    return text;
}

static void list_json(cJSON *list, const struct rung_diags *diags)
{
    for (size_t i = 0; i < diags->n; i++) {
        const struct rung_diag_item *item = &diags->items[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToObject(json, "file",
                              item->file ? cJSON_CreateString(item->file) : cJSON_CreateNull());
        cJSON_AddItemToObject(json, "line",
                              item->line > 0 ? cJSON_CreateNumber(item->line) : cJSON_CreateNull());
        rung_json_add_text(json, "message", rung_text_of(item->message));
        cJSON_AddItemToArray(list, json);
    }
}

static void tell_json(struct check *c, struct subject *s, const char *path,
                      enum rung_file_kind kind)
{
    static const char *const kinds[] = {NULL, "task", "pipeline"};
    cJSON *file = cJSON_CreateObject();
    cJSON_AddStringToObject(file, "file", path);
    cJSON_AddItemToObject(file, "kind",
                          kinds[kind] ? cJSON_CreateString(kinds[kind]) : cJSON_CreateNull());
    cJSON_AddBoolToObject(file, "ok", s->diags.n == 0);
    if (s->diags.n == 0)
        cJSON_AddStringToObject(file, "checked", describe(s, kind));
    cJSON_AddItemToArray(c->files, file);
    list_json(c->faults, &s->diags);
    list_json(c->notes, &s->notes);
}

static void tell_people(struct subject *s, const char *path, enum rung_file_kind kind)
{
    fputs(rung_buf_text(&s->diags.text), stderr);
    for (size_t i = 0; i < s->notes.n; i++) {
        const struct rung_diag_item *note = &s->notes.items[i];
        fprintf(stderr, "%s:%d: note: %s\n", note->file, note->line, note->message);
    }
    if (s->diags.n == 0)
        printf("%s: good: %s\n", path, describe(s, kind));
}

static void check_one(struct check *c, const char *path)
{
    struct subject s = {.check = c, .arena = rung_arena_new(), .registry = rung_registry_new()};
    if (!s.arena)
        rung_die("out of memory");
    if (c->insecure)
        rung_registry_allow_insecure(s.registry);
    enum rung_file_kind kind = check_file(&s, path);
    c->n_faults += s.diags.n;
    if (c->files)
        tell_json(c, &s, path, kind);
    else
        tell_people(&s, path, kind);
    rung_diags_free(&s.diags);
    rung_diags_free(&s.notes);
    rung_registry_free(s.registry);
    rung_arena_free(s.arena);
}

static int check_all(struct check *c, const char *const *files, size_t n, bool as_json)
{
    cJSON *report = as_json ? cJSON_CreateObject() : NULL;
    if (as_json) {
        c->files = cJSON_AddArrayToObject(report, "files");
        c->faults = cJSON_AddArrayToObject(report, "faults");
        c->notes = cJSON_AddArrayToObject(report, "notes");
    }
    for (size_t i = 0; i < n; i++)
        check_one(c, files[i]);
    if (as_json) {
        cJSON_AddBoolToObject(report, "ok", c->n_faults == 0);
        char *line = rung_json_line(report);
        puts(line ? line : "{}");
        free(line);
    }
    cJSON_Delete(report);
    return c->n_faults ? CLI_USAGE : CLI_OK;
}

int cli_check(int argc, char **argv)
{
    struct check c = {0};
    const char *sets[MAX_SETS], *files[MAX_FILES];
    bool json = false;
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--set",
         .value = "PATH=VALUE",
         .help = "a setting of the pipeline, such as search.rounds=3",
         .repeat = true,
         .texts = sets,
         .count = &c.n_sets},
        {.name = "--json", .help = "one JSON object on standard output", .flag = &json},
        {.name = "--allow-insecure-plugins",
         .help = "load plugin files that others may write",
         .flag = &c.insecure},
        {0}};
    const struct cli_command command = {
        .name = "check",
        .usage = "FILE... [options]",
        .summary = "Checks task and pipeline files, and the task that a pipeline names: every key, "
                   "every\n"
                   "option of every plugin, every shape, and the graph. Tells all faults at once, "
                   "each with\n"
                   "file and line. Nothing is run. Exit status: 0 good, 2 not.",
        .options = options,
        .min_args = 1,
        .max_args = MAX_FILES};
    int n = cli_parse(&command, argc, argv, files, &status);
    if (n < 0)
        return status;
    c.sets = sets;
    return check_all(&c, files, (size_t)n, json);
}
