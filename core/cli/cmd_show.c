#include "base/die.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/show_data.h"
#include "cli/show_spend.h"
#include "engine/report_text.h"
#include "task/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 80 };

static void print_time(double ns, const char *kind)
{
    if (ns > 0)
        printf("%.4g us %s", ns / 1e3, kind);
}

/* ---- The whole run ---- */

static void print_row(const struct show_run *r, const struct show_candidate *c)
{
    const char *sentence = show_sentence(r, c->idea);
    size_t n = rung_utf8_cut(sentence, strlen(sentence), SENTENCE);
    char time[64] = "";
    if (c->time_ns > 0)
        snprintf(time, sizeof time, "%.4g us %s", c->time_ns / 1e3, c->time_kind);
    const char *verdict = c->accepted ? "accepted" : c->code[0] ? c->code : "not judged";
    printf("%5u  %5u  %-20s %17s  %.*s%s\n", c->number, c->n_parents ? c->parents[0] : 0, verdict,
           time, (int)n, sentence, sentence[n] ? "..." : "");
}

static void print_run(const struct show_run *r, const char *dir)
{
    printf("%s: task %s, %u ideas, %u candidates, %llu replies; %s%s\n\n", dir, r->task, r->n_ideas,
           r->n_candidates, (unsigned long long)r->replies,
           r->stop ? "stopped: " : "running, or cut", r->stop ? r->stop : "");
    printf("%5s  %5s  %-20s %17s  %s\n", "cand.", "from", "verdict", "time", "idea");
    for (uint32_t i = 0; i < r->n_candidates; i++)
        print_row(r, r->candidates[i]);
    struct show_spend spend = show_spend_read(r->journal);
    show_spend_print(&spend);
    if (!r->final)
        return;
    cJSON *final = rung_json_parse(r->final, strlen(r->final));
    putchar('\n');
    rung_report_final(stdout, final);
    cJSON_Delete(final);
}

static cJSON *candidate_json(const struct show_run *r, const struct show_candidate *c)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "number", c->number);
    cJSON_AddNumberToObject(json, "idea", c->idea);
    cJSON_AddStringToObject(json, "sentence", show_sentence(r, c->idea));
    cJSON *parents = cJSON_AddArrayToObject(json, "parents");
    for (uint32_t i = 0; i < c->n_parents; i++)
        cJSON_AddItemToArray(parents, cJSON_CreateNumber(c->parents[i]));
    cJSON_AddBoolToObject(json, "accepted", c->accepted);
    cJSON_AddStringToObject(json, "code", c->code);
    cJSON_AddStringToObject(json, "point", c->point);
    if (c->time_ns > 0) {
        cJSON *time = cJSON_AddObjectToObject(json, "time");
        cJSON_AddStringToObject(time, "kind", c->time_kind);
        rung_json_add_f64(time, "median_us", c->time_ns / 1e3);
    }
    cJSON_AddNumberToObject(json, "attempts", c->attempts);
    return json;
}

static cJSON *run_json(const struct show_run *r)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "task", r->task);
    if (r->stop)
        cJSON_AddStringToObject(json, "stop", r->stop);
    else
        cJSON_AddNullToObject(json, "stop");
    struct show_spend spend = show_spend_read(r->journal);
    cJSON_AddItemToObject(json, "spent", show_spend_json(&spend));
    cJSON *final = r->final ? rung_json_parse(r->final, strlen(r->final)) : NULL;
    cJSON_AddItemToObject(json, "final", final ? final : cJSON_CreateNull());
    cJSON *ideas = cJSON_AddArrayToObject(json, "ideas"),
          *list = cJSON_AddArrayToObject(json, "candidates");
    for (uint32_t i = 0; i < r->n_ideas; i++) {
        cJSON *idea = cJSON_CreateObject();
        cJSON_AddNumberToObject(idea, "number", i + 1);
        cJSON_AddNumberToObject(idea, "parent", r->ideas[i].parent);
        cJSON_AddStringToObject(idea, "category", r->ideas[i].category);
        cJSON_AddStringToObject(idea, "sentence", r->ideas[i].sentence);
        cJSON_AddItemToArray(ideas, idea);
    }
    for (uint32_t i = 0; i < r->n_candidates; i++)
        cJSON_AddItemToArray(list, candidate_json(r, r->candidates[i]));
    return json;
}

/* ---- One candidate ---- */

static void print_variants(const struct show_candidate *c)
{
    for (const struct show_variant *v = c->variants; v; v = v->next) {
        printf("  %-24s %-12s %-20s ", v->point[0] ? v->point : "-", v->verdict, v->code);
        print_time(v->time_ns, v->time_kind);
        printf("%s%s\n", v->occasion[0] ? "rungs for the " : "",
               strcmp(v->occasion, "final") == 0 ? "winner" : v->occasion);
    }
}

/* What changed since the parent, file by file; NULL when there is no parent to compare with. */
static char *diff_of(const struct show_run *r, const struct show_candidate *c,
                     const struct rung_bundle *bundle)
{
    const struct rung_bundle *old;
    struct rung_error err = rung_error_init();
    if (!c->n_parents || c->parents[0] < 1 || c->parents[0] > r->n_candidates ||
        show_bundle(r, r->candidates[c->parents[0] - 1], &old, &err))
        return NULL;
    const struct rung_file *from = &old->files[old->entry], *to = &bundle->files[bundle->entry];
    return cli_diff(rung_arena_printf(r->arena, "candidate %u", c->parents[0]), from->text,
                    rung_arena_printf(r->arena, "candidate %u", c->number), to->text);
}

static void print_source(const struct show_run *r, const struct show_candidate *c)
{
    const struct rung_bundle *bundle;
    struct rung_error err = rung_error_init();
    int32_t status = show_bundle(r, c, &bundle, &err);
    if (status) {
        printf("\n%s\n", err.message);
        return;
    }
    char *diff = diff_of(r, c, bundle);
    if (diff && *diff)
        printf("\n---- changes since candidate %u ----\n%s", c->parents[0], diff);
    else if (diff)
        printf("\nthe same text as candidate %u\n", c->parents[0]);
    free(diff);
    for (uint32_t i = 0; i < bundle->n_files; i++)
        printf("\n---- %s ----\n%s\n", bundle->files[i].path, bundle->files[i].text.ptr);
}

static void print_verdict(const struct show_run *r, const struct show_candidate *c)
{
    cJSON *json = show_verdict(r, c->told);
    const char *message = rung_json_text(json, "message", ""),
               *advice = rung_json_text(json, "advice", "");
    rung_report_print(stdout, rung_json_get(json, "report"));
    if (message[0])
        printf("\n%s\n", message);
    if (advice[0])
        printf("\n%s", advice);
    cJSON_Delete(json);
}

static void print_candidate(const struct show_run *r, const struct show_candidate *c)
{
    const char *verdict = c->accepted ? "accepted" : c->told ? c->code : "not judged";
    printf("candidate %u: %s%s", c->number, verdict, c->time_ns > 0 ? ", " : "");
    print_time(c->time_ns, c->time_kind);
    printf("%s%s\n", c->point[0] ? ", tuned to " : "", c->point);
    printf("idea:    %s\n", show_sentence(r, c->idea));
    if (c->n_parents)
        printf("from:    candidate %u%s\n", c->parents[0], c->repair ? " (a repair of it)" : "");
    if (c->note[0])
        printf("reader:  %s\n", c->note);
    puts("verdicts (tune point, verdict, code, time):");
    print_variants(c);
    print_verdict(r, c);
    print_source(r, c);
}

static cJSON *variant_json(const struct show_variant *v)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "point", v->point);
    cJSON_AddStringToObject(item, "verdict", v->verdict);
    cJSON_AddStringToObject(item, "code", v->code);
    if (v->occasion[0])
        cJSON_AddStringToObject(item, "occasion", v->occasion);
    if (v->time_ns > 0)
        rung_json_add_f64(item, "time_us", v->time_ns / 1e3);
    return item;
}

static cJSON *full_candidate_json(const struct show_run *r, const struct show_candidate *c)
{
    cJSON *json = candidate_json(r, c), *list = cJSON_AddArrayToObject(json, "variants");
    cJSON *verdict = show_verdict(r, c->told),
          *report = cJSON_DetachItemFromObject(verdict, "report");
    const struct rung_bundle *bundle;
    struct rung_error err = rung_error_init();
    for (const struct show_variant *v = c->variants; v; v = v->next)
        cJSON_AddItemToArray(list, variant_json(v));
    cJSON_AddStringToObject(json, "message", rung_json_text(verdict, "message", ""));
    cJSON_AddStringToObject(json, "advice", rung_json_text(verdict, "advice", ""));
    cJSON_AddItemToObject(json, "report", report ? report : cJSON_CreateNull());
    cJSON_Delete(verdict);
    bool known = show_bundle(r, c, &bundle, &err) == RUNG_OK;
    char *diff = known ? diff_of(r, c, bundle) : NULL;
    if (diff)
        rung_json_add_text(json, "diff", rung_text_of(diff));
    free(diff);
    cJSON_AddItemToObject(json, "bundle", known ? rung_bundle_to_json(bundle) : cJSON_CreateNull());
    return json;
}

static int print_json(cJSON *json)
{
    char *line = rung_json_line(json);
    puts(line ? line : "{}");
    free(line);
    cJSON_Delete(json);
    return CLI_OK;
}

static int show(const struct show_run *r, const char *dir, const char *number, bool json)
{
    if (!number) {
        if (json)
            return print_json(run_json(r));
        print_run(r, dir);
        return CLI_OK;
    }
    const struct show_candidate *c = show_candidate(r, number);
    if (!c) {
        fprintf(stderr, "rung show: %s has no candidate '%s'; there are 1 to %u\n", dir, number,
                r->n_candidates);
        return CLI_USAGE;
    }
    if (json)
        return print_json(full_candidate_json(r, c));
    print_candidate(r, c);
    return CLI_OK;
}

int cli_show(int argc, char **argv)
{
    bool json = false;
    const char *args[2] = {NULL, NULL};
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--json", .help = "one JSON object on standard output", .flag = &json}, {0}};
    const struct cli_command command = {
        .name = "show",
        .usage = "RUN [CANDIDATE] [--json]",
        .summary = "Tells what a run did, from its journal: every candidate with its idea, verdict "
                   "and time; or one\n"
                   "candidate with its verdicts, numbers, changes since its parent, and source. "
                   "Works while the run goes on.",
        .options = options,
        .min_args = 1,
        .max_args = 2};
    if (cli_parse(&command, argc, argv, args, &status) < 0)
        return status;
    struct rung_journal *journal = NULL;
    struct rung_error err = rung_error_init();
    struct show_run run;
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    int32_t failed = rung_journal_open(args[0], RUNG_JOURNAL_READ, &journal, &err);
    bool opened = !failed;
    if (opened)
        failed = show_load(journal, arena, &run, &err);
    /* What stands before the damage is still worth reading. */
    bool rest = failed == RUNG_EIO && opened && run.n_candidates > 0;
    status = failed ? cli_fail(&err) : CLI_OK;
    if (!failed || rest)
        status = show(&run, args[0], args[1], json) + (failed ? status : 0);
    rung_journal_close(journal);
    rung_arena_free(arena);
    return status;
}
