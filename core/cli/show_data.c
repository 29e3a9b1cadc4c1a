#include "cli/show_data.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "task/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 10000000 };

static const char *copy(struct show_run *r, const cJSON *json, const char *name)
{
    return rung_arena_strdup(r->arena, rung_json_text(json, name, ""));
}

/* Room for number `n`; the journal is hostile, so a number is bounded. */
static void *room(struct rung_arena *arena, void *old, uint32_t used, uint32_t *cap, uint32_t n,
                  size_t size)
{
    if (n <= *cap)
        return old;
    uint32_t bigger = *cap ? *cap : 32;
    while (bigger < n)
        bigger *= 2;
    void *fresh = rung_arena_need(arena, (uint64_t)bigger * size);
    if (used)
        memcpy(fresh, old, used * size);
    *cap = bigger;
    return fresh;
}

static struct show_candidate *candidate_at(struct show_run *r, int64_t number)
{
    if (number < 1 || number > MAX_NUMBER)
        return NULL;
    r->candidates = room(r->arena, r->candidates, r->n_candidates, &r->cap_candidates,
                         (uint32_t)number, sizeof *r->candidates);
    while (r->n_candidates < (uint32_t)number) {
        struct show_candidate *c = RUNG_ARENA_NEW(r->arena, struct show_candidate, 1);
        r->candidates[r->n_candidates++] = c;
        *c = (struct show_candidate){.number = r->n_candidates,
                                     .code = "",
                                     .point = "",
                                     .note = "",
                                     .time_kind = "",
                                     .last = &c->variants};
    }
    return r->candidates[number - 1];
}

static void take_idea(struct show_run *r, const cJSON *json)
{
    int64_t number = rung_json_i64(json, "number", 0);
    if (number < 1 || number > MAX_NUMBER)
        return;
    r->ideas =
        room(r->arena, r->ideas, r->n_ideas, &r->cap_ideas, (uint32_t)number, sizeof *r->ideas);
    while (r->n_ideas < (uint32_t)number)
        r->ideas[r->n_ideas++] = (struct show_idea){.sentence = "", .category = ""};
    r->ideas[number - 1] = (struct show_idea){.parent = (uint32_t)rung_json_i64(json, "parent", 0),
                                              .round = (uint32_t)rung_json_i64(json, "round", 0),
                                              .sentence = copy(r, json, "sentence"),
                                              .category = copy(r, json, "category")};
}

static void take_candidate(struct show_run *r, const char *key, const cJSON *json)
{
    struct show_candidate *c = candidate_at(r, rung_json_i64(json, "number", 0));
    if (!c)
        return;
    c->idea = (uint32_t)rung_json_i64(json, "idea", 0);
    c->repair = rung_json_bool(json, "repair", false);
    c->note = copy(r, json, "note");
    c->attempts++;
    c->n_parents = 0;
    const cJSON *parent;
    cJSON_ArrayForEach(parent, rung_json_get(json, "parents")) if (c->n_parents < 4)
        c->parents[c->n_parents++] = (uint32_t)parent->valuedouble;
    c->source_key = rung_arena_strdup(r->arena, key);
}

/* Keys are CANDIDATE/ATTEMPT/POINT, with the occasion behind it for rungs that run later. */
static const char *occasion_of(const char *key)
{
    size_t n = strlen(key);
    return n > 5 && strcmp(key + n - 5, "/best") == 0    ? "best"
           : n > 6 && strcmp(key + n - 6, "/final") == 0 ? "final"
                                                         : "";
}

static struct show_variant *variant_of(struct show_run *r, const char *key, const cJSON *json)
{
    struct show_variant *v = RUNG_ARENA_NEW(r->arena, struct show_variant, 1);
    *v = (struct show_variant){.key = rung_arena_strdup(r->arena, key),
                               .occasion = occasion_of(key),
                               .point = copy(r, json, "point"),
                               .verdict = copy(r, json, "verdict"),
                               .code = copy(r, json, "code"),
                               .time_kind = copy(r, json, "time_kind"),
                               .time_ns = rung_json_number(json, "time_ns", 0)};
    return v;
}

static void take_best(struct show_candidate *c, const struct show_variant *v)
{
    c->accepted = true;
    c->told = v;
    c->code = "";
    c->point = v->point;
    c->time_ns = v->time_ns;
    c->time_kind = v->time_kind;
}

static void take_failure(struct show_candidate *c, const struct show_variant *v)
{
    c->accepted = false;
    c->told = v;
    c->code = v->code;
    c->point = c->time_kind = "";
    c->time_ns = 0;
}

/* A rung that runs later refused a point: the next best takes its place, as in the run itself. */
static void take_refusal(struct show_candidate *c, struct show_variant *later)
{
    const struct show_variant *best = NULL;
    for (struct show_variant *v = c->variants; v; v = v->next) {
        if (strcmp(v->point, later->point) == 0)
            v->refused = true;
        if (!v->refused && !v->occasion[0] && strcmp(v->verdict, "accepted") == 0 &&
            (!best || (v->time_ns > 0 && v->time_ns < best->time_ns)))
            best = v;
    }
    if (best)
        take_best(c, best);
    else
        take_failure(c, later);
}

static void take_variant(struct show_run *r, const char *key, const cJSON *json)
{
    struct show_candidate *c = candidate_at(r, strtol(key, NULL, 10));
    if (!c)
        return;
    struct show_variant *v = variant_of(r, key, json);
    *c->last = v;
    c->last = &v->next;
    bool good = strcmp(v->verdict, "accepted") == 0;
    if (v->occasion[0] && !good)
        take_refusal(c, v);
    else if (good && !v->occasion[0] &&
             (!c->accepted || (v->time_ns > 0 && v->time_ns < c->time_ns)))
        take_best(c, v);
    else if (!good && !c->accepted)
        take_failure(c, v);
}

/* A winner that did wrong when it was timed again is none, as one that a later rung refused. */
static void take_retiming(struct show_run *r, const char *key, const cJSON *json)
{
    struct show_candidate *c = candidate_at(r, strtol(key, NULL, 10));
    if (!c || strcmp(rung_json_text(json, "verdict", ""), "rejected") != 0)
        return;
    struct show_variant *v = variant_of(r, key, json);
    v->occasion = "final";
    *c->last = v;
    c->last = &v->next;
    take_refusal(c, v);
}

static void take_summary(struct show_run *r, const cJSON *json)
{
    int64_t winner = rung_json_i64(rung_json_get(json, "best"), "candidate", 0);
    const cJSON *final = rung_json_get(json, "final");
    r->stop = copy(r, json, "stop");
    r->winner = winner > 0 && winner <= r->n_candidates ? (uint32_t)winner : 0;

    r->final = NULL;
    if (!cJSON_IsObject(final))
        return;
    char *line = rung_json_line(final);
    r->final = rung_arena_strdup(r->arena, line);
    free(line);
}

static bool visit(void *ctx, const struct rung_record *record)
{
    struct show_run *r = ctx;
    const char *type = record->type;
    if (strcmp(type, "run") == 0) {
        const cJSON *name =
            rung_json_get(rung_json_get(rung_json_get(record->json, "task"), "group"), "name");
        r->task = copy(r, name, "text");
    } else if (strcmp(type, "idea") == 0) {
        take_idea(r, record->json);
    } else if (strcmp(type, "candidate") == 0) {
        take_candidate(r, record->key, record->json);
    } else if (strcmp(type, "variant") == 0) {
        take_variant(r, record->key, record->json);
    } else if (strcmp(type, "reply") == 0) {
        r->replies++;
    } else if (strcmp(type, "process") == 0) {
        r->stop = NULL;
    } else if (strcmp(type, "end") == 0) {
        take_summary(r, record->json);
    } else if (strcmp(type, "final") == 0) {
        take_retiming(r, record->key, record->json);
    }
    return true;
}

int32_t show_load(struct rung_journal *journal, struct rung_arena *arena, struct show_run *out,
                  struct rung_error *err)
{
    *out = (struct show_run){.journal = journal, .arena = arena, .task = ""};
    return rung_journal_each(journal, NULL, 0, visit, out, err);
}

const struct show_candidate *show_candidate(const struct show_run *run, const char *number)
{
    int64_t n;
    if (!rung_parse_i64(number, &n) || n < 1 || n > run->n_candidates)
        return NULL;
    return run->candidates[n - 1];
}

const char *show_sentence(const struct show_run *run, uint32_t idea)
{
    return idea && idea <= run->n_ideas ? run->ideas[idea - 1].sentence : "first kernel";
}

int32_t show_bundle(const struct show_run *run, const struct show_candidate *c,
                    const struct rung_bundle **out, struct rung_error *err)
{
    if (!c->source_key)
        return rung_fail(err, RUNG_ENOTFOUND, "", "candidate %u has no source", c->number);
    cJSON *json = rung_journal_find(run->journal, "candidate", c->source_key, NULL);
    struct rung_error why = rung_error_init();
    *out = json ? rung_bundle_from_json(run->arena, rung_json_get(json, "bundle"), &why) : NULL;
    cJSON_Delete(json);
    return *out ? RUNG_OK
                : rung_fail(err, RUNG_EIO, "journal.record",
                            "%s: the source of candidate %u in the journal is damaged; %.800s",
                            rung_journal_dir(run->journal), c->number, why.message);
}

cJSON *show_verdict(const struct show_run *run, const struct show_variant *v)
{
    cJSON *verdict = v ? rung_journal_find(run->journal, "variant", v->key, NULL) : NULL;
    return v && !verdict ? rung_journal_find(run->journal, "final", v->key, NULL) : verdict;
}
