/* Verdicts: a job for the workers, or the journal's record of it; and outcomes as JSON. */
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static cJSON *stored_json(const struct rung_outcome *o)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < o->n_stored; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", o->stored[i].name);
        cJSON_AddStringToObject(item, "sha256", o->stored[i].sha256);
        rung_json_add_i64(item, "bytes", (int64_t)o->stored[i].bytes);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

static const char *const verdict_names[] = {"", "accepted", "rejected", "unsupported",
                                            "inconclusive"};

cJSON *engine_outcome_to_json(const struct rung_outcome *o)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "verdict", verdict_names[o->verdict]);
    cJSON_AddStringToObject(json, "code", o->code);
    cJSON_AddStringToObject(json, "message", o->message ? o->message : "");
    cJSON_AddStringToObject(json, "point", o->point ? o->point : "");
    rung_json_add_i64(json, "n_points", (int64_t)o->n_points);
    if (o->time_kind) {
        cJSON_AddStringToObject(json, "time_kind",
                                o->time_kind == RUNG_TIME_MEASURED ? "measured" : "modelled");
        rung_json_add_f64(json, "time_ns", o->time_ns);
        rung_json_add_f64(json, "low_ns", o->low_ns);
        rung_json_add_f64(json, "high_ns", o->high_ns);
        rung_json_add_f64(json, "tie_band", o->tie_band);
        rung_json_add_f64(json, "floor_ns", o->floor_ns);
    }
    cJSON_AddStringToObject(json, "advice", o->advice ? o->advice : "");
    cJSON_AddItemToObject(json, "stored", stored_json(o));
    if (o->report)
        cJSON_AddItemReferenceToObject(json, "report", o->report);
    return json;
}

bool engine_outcome_from_json(const cJSON *json, struct rung_arena *arena, struct rung_outcome *o)
{
    *o = (struct rung_outcome){0};
    const char *verdict = rung_json_text(json, "verdict", "");
    for (uint32_t i = RUNG_ACCEPTED; i <= RUNG_INCONCLUSIVE; i++)
        if (strcmp(verdict, verdict_names[i]) == 0)
            o->verdict = i;
    const char *code = rung_json_text(json, "code", ""),
               *kind = rung_json_text(json, "time_kind", "");
    memcpy(o->code, code, strnlen(code, sizeof o->code - 1));
    o->message = rung_arena_strdup(arena, rung_json_text(json, "message", ""));
    o->point = rung_arena_strdup(arena, rung_json_text(json, "point", ""));
    o->advice = rung_arena_strdup(arena, rung_json_text(json, "advice", ""));
    int64_t points = rung_json_i64(json, "n_points", 0);
    o->n_points = points > 0 ? (uint64_t)points : 0;
    o->time_kind = strcmp(kind, "measured") == 0   ? RUNG_TIME_MEASURED
                   : strcmp(kind, "modelled") == 0 ? RUNG_TIME_MODELLED
                                                   : 0;
    o->time_ns = rung_json_number(json, "time_ns", 0);
    o->low_ns = rung_json_number(json, "low_ns", 0);
    o->high_ns = rung_json_number(json, "high_ns", 0);
    o->tie_band = rung_json_number(json, "tie_band", 0);
    o->floor_ns = rung_json_number(json, "floor_ns", 0);
    return o->verdict != 0;
}

static void count_evaluation(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->spent.evaluations++;
    pthread_mutex_unlock(&e->lock);
}

/* An inconclusive verdict is kept apart: failed is not done, so a resume tries it again. */
static int32_t record(struct engine *e, const char *key, const struct rung_outcome *o,
                      uint64_t *seq, struct rung_error *err)
{
    cJSON *json = engine_outcome_to_json(o);
    int32_t status = RUNG_OK;
    if (o->verdict == RUNG_INCONCLUSIVE) {
        char again[200];
        snprintf(again, sizeof again, "%s@%lld", key, (long long)rung_wall_ms());
        status = rung_journal_append(e->journal, "attempt", again, json, seq, err);
    } else {
        status = rung_journal_append(e->journal, "variant", key, json, seq, err);
    }
    cJSON_Delete(json);
    return status;
}

/* Judges and records, or answers from the record. */
static int32_t evaluate(struct engine *e, const struct engine_candidate *c,
                        const struct rung_bundle *bundle, const char *key, const char *point,
                        uint32_t occasion, struct rung_arena *arena, struct rung_outcome *out,
                        uint64_t *seq, struct rung_error *err)
{
    cJSON *known = rung_journal_find(e->journal, "variant", key, seq);
    int32_t status = RUNG_OK;
    *out = (struct rung_outcome){0};
    if (known) {
        if (!engine_outcome_from_json(known, arena, out))
            status = rung_fail(err, RUNG_EIO, "journal.record",
                               "%s: the verdict '%s' in the journal is damaged",
                               rung_journal_dir(e->journal), key);
        cJSON_Delete(known);
    } else {
        /* The winner is confirmed whatever the budget says: an unproved winner is worth nothing. */
        status = occasion == RUNG_WHEN_FINAL ? RUNG_OK : engine_may_evaluate(e, err);
        if (!status)
            status = engine_climb(e, c, bundle, point, occasion, arena, out, err);
        if (!status)
            status = record(e, key, out, seq, err);
        cJSON_Delete(out->report);
        out->report = NULL;
    }
    if (!status)
        count_evaluation(e);
    return status;
}

int32_t engine_evaluate(struct engine *e, struct engine_candidate *c,
                        const struct rung_bundle *bundle, uint32_t attempt, const char *point,
                        struct rung_arena *arena, struct rung_outcome *out, uint64_t *seq,
                        struct rung_error *err)
{
    const char *key =
        rung_arena_printf(arena, "%u/%u/%s", c->number, attempt, point ? point : "first");
    return evaluate(e, c, bundle, key, point, RUNG_WHEN_ALWAYS, arena, out, seq, err);
}

int32_t engine_evaluate_later(struct engine *e, const struct engine_candidate *c,
                              const struct rung_bundle *bundle, const char *point,
                              uint32_t occasion, struct rung_arena *arena, struct rung_outcome *out,
                              uint64_t *seq, struct rung_error *err)
{
    const char *key = rung_arena_printf(arena, "%u/%u/%s/%s", c->number, c->attempt, point,
                                        occasion == RUNG_WHEN_BEST ? "best" : "final");
    return evaluate(e, c, bundle, key, point, occasion, arena, out, seq, err);
}
