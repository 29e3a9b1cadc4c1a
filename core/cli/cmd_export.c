#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "cli/cli.h"
#include "cli/show_data.h"
#include "engine/bundle_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Cassettes ---- */

struct cassette {
    struct rung_journal *journal;
    struct rung_buf lines;
    const char **keys;
    size_t n_keys, cap_keys;
    char through[256]; /* names of the models that were asked */
};

static bool note_key(void *ctx, const struct rung_record *record)
{
    struct cassette *c = ctx;
    if (c->n_keys == c->cap_keys) {
        c->cap_keys = c->cap_keys ? c->cap_keys * 2 : 64;
        c->keys = rung_xrealloc(c->keys, c->cap_keys * sizeof *c->keys);
    }
    c->keys[c->n_keys++] = rung_xstrdup(record->key);
    return true;
}

static void note_through(struct cassette *c, const char *llm)
{
    size_t used = strlen(c->through);
    if (!strstr(c->through, llm))
        snprintf(c->through + used, sizeof c->through - used, "%s%s", used ? ", " : "", llm);
}

/* One reply as a line; requests and replies share their key. */
static void add_reply(struct cassette *c, const char *key)
{
    cJSON *request = rung_journal_find(c->journal, "request", key, NULL);
    cJSON *reply = rung_journal_find(c->journal, "reply", key, NULL);
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "key", key);
    cJSON_AddStringToObject(line, "role", rung_json_text(request, "role", ""));
    cJSON_AddStringToObject(line, "prompt_sha256", rung_json_text(request, "prompt_sha256", ""));
    cJSON_AddStringToObject(line, "reply", rung_json_text(reply, "text", ""));
    cJSON_AddStringToObject(line, "finish", rung_json_text(reply, "finish", "stop"));
    cJSON_AddStringToObject(line, "model", rung_json_text(reply, "model", ""));
    cJSON_AddItemToObject(line, "usage", cJSON_Duplicate(rung_json_get(reply, "usage"), true));
    note_through(c, rung_json_text(request, "llm", ""));
    char *text = rung_json_line(line);
    rung_buf_printf(&c->lines, "%s\n", text ? text : "{}");
    free(text);
    cJSON_Delete(line);
    cJSON_Delete(reply);
    cJSON_Delete(request);
}

static char *header(const struct cassette *c)
{
    char day[16];
    struct tm tm;
    time_t now = time(NULL);
    strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&now, &tm));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "rung_cassette", 1);
    cJSON_AddStringToObject(json, "recorded", day);
    cJSON_AddStringToObject(json, "through", c->through);
    char *line = rung_json_line(json);
    cJSON_Delete(json);
    return line;
}

static int32_t export_cassette(struct rung_journal *journal, const char *path,
                               struct rung_error *err)
{
    struct cassette c = {.journal = journal};
    struct rung_buf all = {0};
    int32_t status = rung_journal_each(journal, "reply", 0, note_key, &c, err);
    for (size_t i = 0; i < c.n_keys; i++) {
        add_reply(&c, c.keys[i]);
        free((void *)c.keys[i]);
    }
    char *first = header(&c);
    rung_buf_printf(&all, "%s\n%s", first ? first : "{}", rung_buf_text(&c.lines));
    if (!status)
        status = rung_write_file(path, all.ptr, all.len, err);
    if (!status)
        fprintf(stderr, "%zu replies in %s\n", c.n_keys, path);
    free(first);
    free(c.keys);
    rung_buf_free(&all);
    rung_buf_free(&c.lines);
    return status;
}

/* ---- Candidates ---- */

static const struct show_candidate *best_of(const struct show_run *r)
{
    const struct show_candidate *best = NULL;
    if (r->winner && r->candidates[r->winner - 1]->accepted)
        return r->candidates[r->winner - 1];
    for (uint32_t i = 0; i < r->n_candidates; i++) {
        const struct show_candidate *c = r->candidates[i];
        if (c->accepted && (!best || (c->time_ns > 0 && c->time_ns < best->time_ns)))
            best = c;
    }
    return best;
}

static int32_t write_bundle(const struct show_run *run, const struct show_candidate *c,
                            const char *dir, struct rung_error *err)
{
    const struct rung_bundle *bundle;
    int32_t status = show_bundle(run, c, &bundle, err);
    if (!status)
        status = rung_bundle_write(bundle, dir, NULL, NULL, err);
    if (!status)
        fprintf(stderr, "%s/%s\n", dir, bundle->files[bundle->entry].path);
    return status;
}

static int32_t write_stored(const struct show_run *run, const cJSON *item, const char *dir,
                            struct rung_error *err)
{
    struct rung_text bytes;
    const char *name = rung_json_text(item, "name", "");
    if (!*name || strchr(name, '/') || name[0] == '.')
        return RUNG_OK;
    const char *path = rung_path_join(run->arena, dir, name);
    int32_t status = rung_journal_artifact(run->journal, rung_json_text(item, "sha256", ""),
                                           run->arena, &bytes, err);
    if (!status)
        status = rung_write_file(path, bytes.ptr, bytes.len, err);
    if (!status)
        fprintf(stderr, "%s\n", path);
    return status;
}

static int32_t export_candidate(struct rung_journal *journal, struct rung_arena *arena,
                                const char *number, const char *dir, struct rung_error *err)
{
    struct show_run run;
    int32_t status = show_load(journal, arena, &run, err);
    if (status)
        return status;
    const struct show_candidate *c = number ? show_candidate(&run, number) : best_of(&run);
    if (!c && number)
        return rung_fail(err, RUNG_ENOTFOUND, "", "there is no candidate '%s'; there are 1 to %u",
                         number, run.n_candidates);
    if (!c)
        return rung_fail(err, RUNG_ENOTFOUND, "", "no candidate was accepted");
    status = write_bundle(&run, c, dir, err);
    cJSON *verdict = show_verdict(&run, c->told);
    const cJSON *item;
    cJSON_ArrayForEach(item, rung_json_get(verdict, "stored")) if (!status) status =
        write_stored(&run, item, dir, err);
    cJSON_Delete(verdict);
    return status;
}

int cli_export(int argc, char **argv)
{
    const char *cassette = NULL, *dir = NULL, *args[2] = {NULL, NULL};
    int status = 0;
    const struct cli_option options[] = {{.name = "--cassette",
                                          .value = "FILE",
                                          .help = "all replies, as llm/replay reads them",
                                          .texts = &cassette},
                                         {.name = "-o",
                                          .value = "DIR",
                                          .help = "source, PTX and CUBIN of the candidate",
                                          .texts = &dir},
                                         {0}};
    const struct cli_command command = {.name = "export",
                                        .usage = "RUN [CANDIDATE] -o DIR  |  RUN --cassette FILE",
                                        .summary =
                                            "Writes the winner of a run (or another candidate) to "
                                            "a folder, or the run's replies to a cassette\n"
                                            "from which llm/replay serves them again.",
                                        .options = options,
                                        .min_args = 1,
                                        .max_args = 2};
    if (cli_parse(&command, argc, argv, args, &status) < 0)
        return status;
    if (!cassette == !dir) {
        fprintf(stderr, "rung export: give -o DIR or --cassette FILE\n");
        return CLI_USAGE;
    }
    struct rung_journal *journal = NULL;
    struct rung_error err = rung_error_init();
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    int32_t failed = rung_journal_open(args[0], RUNG_JOURNAL_READ, &journal, &err);
    if (!failed)
        failed = cassette ? export_cassette(journal, cassette, &err)
                          : export_candidate(journal, arena, args[1], dir, &err);
    status = failed ? cli_fail(&err) : CLI_OK;
    rung_journal_close(journal);
    rung_arena_free(arena);
    return status;
}
