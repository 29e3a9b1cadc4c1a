/* The end of a run: the winner in a file, the table, the summary record, and the JSON object. */
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/bundle_write.h"
#include "engine/engine.h"
#include "engine/report_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 10, SENTENCE = 78 };

/* ---- The winner's file ---- */

/* The value that a point gives a tune, or false. */
static bool point_value(const struct rung_plan *plan, const char *text, const char *name, size_t n,
                        int64_t *value)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_point point;
    const char *problem;
    bool found = false;
    if (arena && rung_point_parse(arena, plan, text, &point, &problem))
        for (uint32_t i = 0; i < plan->n_tunes && !found; i++)
            if (strlen(plan->tunes[i].name) == n && memcmp(plan->tunes[i].name, name, n) == 0) {
                *value = point.values[i];
                found = true;
            }
    rung_arena_free(arena);
    return found;
}

/* A `//@ tune NAME = ...` line keeps only the value that won; all other lines stay as they are. */
static void add_line(struct rung_buf *out, const struct rung_plan *plan, const char *point,
                     const char *line, size_t n)
{
    const char *p = line;
    int64_t value;
    while (p < line + n && (*p == ' ' || *p == '\t'))
        p++;
    if ((size_t)(line + n - p) > 3 && memcmp(p, "//@", 3) == 0) {
        p += 3 + strspn(p + 3, " \t");
        const char *name = strncmp(p, "tune", 4) == 0 ? p + 4 + strspn(p + 4, " \t") : NULL;
        size_t len = name ? strcspn(name, " \t=\n") : 0;
        if (name && len && point_value(plan, point, name, len, &value)) {
            rung_buf_printf(out, "//@ tune %.*s = %lld", (int)len, name, (long long)value);
            return;
        }
    }
    rung_buf_add(out, line, n);
}

static char *tuned_source(struct rung_arena *arena, const struct engine_source *source,
                          const char *point)
{
    struct rung_buf out = {0};
    const char *line = engine_entry_text(source->bundle);
    while (*line) {
        size_t n = strcspn(line, "\n");
        add_line(&out, source->plan, point, line, n);
        rung_buf_putc(&out, '\n');
        line += n + (line[n] == '\n');
    }
    char *copy = rung_arena_strdup(arena, rung_buf_text(&out));
    rung_buf_free(&out);
    return copy;
}

/* Writes best.cu and the bundle's other files beside it. NULL when that fails. */
static const char *write_winner(struct engine *e, struct rung_arena *arena,
                                const struct engine_candidate *best)
{
    struct rung_error err = rung_error_init();
    const char *dir = rung_journal_dir(e->journal);
    struct engine_source source;
    if (!engine_recall(e, best, arena, &source, &err) &&
        !rung_bundle_write(source.bundle, dir, "best.cu", tuned_source(arena, &source, best->point),
                           &err))
        return rung_arena_printf(arena, "%s/best.cu", dir);
    rung_log(RUNG_LOG_ERROR, "engine", "%s", err.message);
    return NULL;
}

/* ---- The table ---- */

/* The first accepted kernel that came from no idea: what the search is measured against. */
static const struct engine_candidate *first_kernel(const struct engine_state *s)
{
    for (uint32_t i = 0; i < s->n_candidates; i++)
        if (s->candidates[i]->state == RUNG_CANDIDATE_ACCEPTED && !s->candidates[i]->idea)
            return s->candidates[i];
    return NULL;
}

static double speedup(const struct engine_candidate *of, const struct engine_candidate *over)
{
    bool comparable =
        of && over && of->time_kind && of->time_kind == over->time_kind && of->time_ns > 0;
    return comparable ? over->time_ns / of->time_ns : 0;
}

static void print_row(const struct engine *e, struct rung_arena *arena,
                      const struct engine_candidate *c, const struct engine_candidate *best,
                      const struct engine_candidate *first)
{
    const struct engine_idea *idea = engine_idea_get(&e->state, c->idea);
    const char *sentence = idea ? idea->sentence : "first kernel";
    size_t n = rung_utf8_cut(sentence, strlen(sentence), SENTENCE);
    double times = speedup(c, first);
    printf("%5u  %10s %c ", c->number, c->time_kind ? engine_time_text(arena, c->time_ns) : "-",
           c != best && engine_tie(c, best) ? '~' : ' ');
    if (times > 0)
        printf("%6.2fx", times);
    else
        printf("%7s", "");
    printf("  %-18s %.*s%s\n", c->point, (int)n, sentence, sentence[n] ? "..." : "");
}

static void print_table(const struct engine *e, struct rung_arena *arena,
                        const struct engine_candidate *best)
{
    uint32_t n, shown = 0;
    struct engine_candidate **list = engine_ranking(&e->state, arena, &n);
    const struct engine_candidate *first = first_kernel(&e->state);
    printf("\n%5s  %10s   %7s  %-18s %s\n", "cand.",
           best->time_kind == RUNG_TIME_MEASURED ? "measured" : "modelled", "vs 1st", "tuned to",
           "idea");
    for (uint32_t i = 0; i < n && shown < TABLE_ROWS; i++)
        if (list[i]->state == RUNG_CANDIDATE_ACCEPTED) {
            print_row(e, arena, list[i], best, first);
            shown++;
        }
    if (best->tie_band > 0)
        printf("\n~ within %.0f %% of the best: a modelled time can't order these.\n",
               best->tie_band * 100);
    else if (best->time_kind == RUNG_TIME_MEASURED)
        puts("\n~ within 1 % of the best or of its interval: not measured in turns with it, so not "
             "told apart.");
}

/* ---- Counts ---- */

static cJSON *verdict_counts(const struct engine_state *s)
{
    cJSON *json = cJSON_CreateObject();
    for (uint32_t i = 0; i < s->n_candidates; i++) {
        const struct engine_candidate *c = s->candidates[i];
        const char *code = c->state == RUNG_CANDIDATE_ACCEPTED ? "accepted"
                           : c->code[0]                        ? c->code
                                                               : "not_judged";
        cJSON *known = cJSON_GetObjectItemCaseSensitive(json, code);
        if (known)
            cJSON_SetNumberValue(known, known->valuedouble + 1);
        else
            cJSON_AddNumberToObject(json, code, 1);
    }
    return json;
}

static const cJSON *final_of(const struct engine *e, const struct engine_candidate *c)
{
    return e->final.winner == c ? e->final.json : NULL;
}

/* Of fresh processes where there were any, else of the search. */
static double time_of(const struct engine *e, const struct engine_candidate *c)
{
    double us = rung_json_number(final_of(e, c), "median_us", 0);
    return us > 0 ? us * 1e3 : c->time_ns;
}

static void add_median(const struct engine *e, const struct engine_candidate *c, cJSON *json)
{
    const cJSON *final = final_of(e, c);
    const double own[2] = {c->low_ns / 1e3, c->high_ns / 1e3};
    rung_json_add_f64(json, "median_us", rung_json_number(final, "median_us", c->time_ns / 1e3));
    if (final)
        cJSON_AddItemToObject(json, "ci_us", cJSON_Duplicate(rung_json_get(final, "ci_us"), true));
    else if (c->high_ns > 0)
        cJSON_AddItemToObject(json, "ci_us", cJSON_CreateDoubleArray(own, 2));
    else
        cJSON_AddNullToObject(json, "ci_us");
}

static cJSON *time_json(const struct engine *e, const struct engine_candidate *c)
{
    if (!c->time_kind)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind",
                            c->time_kind == RUNG_TIME_MEASURED ? "measured" : "modelled");
    add_median(e, c, json);
    rung_json_add_f64(json, "floor_us", c->floor_ns / 1e3);
    rung_json_add_f64(json, "tie_band", c->tie_band);
    cJSON_AddStringToObject(json, "device", e->pool ? rung_pool_device(e->pool) : "");
    return json;
}

static cJSON *best_json(struct engine *e, const struct engine_candidate *best, const char *file)
{
    if (!best)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    const struct engine_idea *idea = engine_idea_get(&e->state, best->idea);
    cJSON_AddNumberToObject(json, "candidate", best->number);
    cJSON_AddStringToObject(json, "point", best->point);
    cJSON_AddStringToObject(json, "idea", idea ? idea->sentence : "");
    cJSON_AddStringToObject(json, "source_sha256", best->source_sha);
    if (file)
        cJSON_AddStringToObject(json, "file", file);
    cJSON_AddItemToObject(json, "time", time_json(e, best));
    double times = speedup(best, first_kernel(&e->state));
    if (times > 0)
        rung_json_add_f64(json, "speedup_over_first", times);
    return json;
}

static cJSON *summary(struct engine *e, const struct engine_candidate *best, const char *file)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "run", rung_journal_dir(e->journal));
    cJSON_AddStringToObject(json, "task", e->task->name);
    cJSON_AddItemToObject(json, "best", best_json(e, best, file));
    if (e->final.json)
        cJSON_AddItemToObject(json, "final", cJSON_Duplicate(e->final.json, true));
    else
        cJSON_AddNullToObject(json, "final");
    const cJSON *speedups = rung_json_get(e->final.json, "baselines");
    cJSON_AddItemToObject(json, "speedups",
                          speedups ? cJSON_Duplicate(speedups, true) : cJSON_CreateArray());
    cJSON_AddNumberToObject(json, "ideas", e->state.n_ideas);
    cJSON_AddNumberToObject(json, "candidates", e->state.n_candidates);
    cJSON_AddItemToObject(json, "verdicts", verdict_counts(&e->state));
    rung_json_add_i64(json, "evaluations", (int64_t)e->spent.evaluations);
    cJSON *tokens = cJSON_AddObjectToObject(json, "tokens");
    rung_json_add_i64(tokens, "input", (int64_t)e->spent.tokens_in);
    rung_json_add_i64(tokens, "output", (int64_t)e->spent.tokens_out);
    rung_json_add_i64(json, "calls", (int64_t)e->spent.calls);
    if (e->spent.usd_gapped)
        cJSON_AddNullToObject(json, "cost_usd");
    else
        rung_json_add_f64(json, "cost_usd", e->spent.usd);
    cJSON_AddItemToObject(json, "spent", engine_spent_json(e));
    rung_json_add_f64(json, "wall_s", engine_wall_s(e));
    cJSON_AddStringToObject(json, "stop", e->stop_reason ? e->stop_reason : "");
    return json;
}

/* ---- The end ---- */

static void print_counts(const cJSON *counts)
{
    fputs("verdicts:", stdout);
    for (const cJSON *c = counts->child; c; c = c->next)
        printf(" %s %.0f%s", c->string, c->valuedouble, c->next ? "," : "");
    fputc('\n', stdout);
}

static void print_result(struct engine *e, struct rung_arena *arena,
                         const struct engine_candidate *best, const char *file, const cJSON *json)
{
    printf("%s: %u ideas, %u candidates, %llu verdicts in %.1f s; stopped: %s\n", e->task->name,
           e->state.n_ideas, e->state.n_candidates, (unsigned long long)e->spent.evaluations,
           engine_wall_s(e), e->stop_reason ? e->stop_reason : "");
    print_counts(rung_json_get(json, "verdicts"));
    if (best) {
        print_table(e, arena, best);
        if (final_of(e, best))
            putchar('\n');
        rung_report_final(stdout, final_of(e, best));
        if (best->time_kind && best->floor_ns > 0)
            printf("\nbest: #%u, %s; physical floor %s\n", best->number,
                   engine_time_text(arena, time_of(e, best)),
                   engine_time_text(arena, best->floor_ns));
        if (file)
            printf("winner: %s\n", file);
    } else {
        puts("no candidate was accepted");
    }
    printf("run: %s   (rung show %s)\n", rung_journal_dir(e->journal),
           rung_journal_dir(e->journal));
}

/* Each process of a run leaves its own summary; the last one counts. */
static void record_end(struct engine *e, const cJSON *json)
{
    char key[32];
    struct rung_error err = rung_error_init();
    snprintf(key, sizeof key, "%lld", (long long)rung_wall_ms());
    if (rung_journal_append(e->journal, "end", key, json, NULL, &err))
        rung_log(RUNG_LOG_ERROR, "engine", "%s", err.message);
}

int engine_finish(struct engine *e)
{
    struct rung_arena *arena = rung_arena_new();
    const struct engine_candidate *best =
        e->final.winner ? e->final.winner : engine_best(&e->state);
    const char *file = best ? write_winner(e, arena, best) : NULL;
    cJSON *json = summary(e, best, file);
    record_end(e, json);
    if (e->options->json) {
        char *line = rung_json_line(json);
        puts(line ? line : "{}");
        free(line);
    } else {
        print_result(e, arena, best, file, json);
    }
    fflush(stdout);
    cJSON_Delete(json);
    rung_arena_free(arena);
    return best ? 0 : 1;
}
