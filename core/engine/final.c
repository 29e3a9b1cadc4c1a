/* The winner, timed again in processes that have done nothing else. */
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

/* One pair that takes turns, in several processes. */
struct retiming {
    struct engine *e;
    struct rung_arena *arena;
    struct engine_candidate *winner, *rival; /* rival NULL: none */
    struct engine_source source, rival_source;
    cJSON **reports;
    uint32_t n;
    bool refused; /* the winner did wrong in a timed launch, and is no winner any more */
};

/* The key follows from what is timed, so that a resumed run finds what is done. */
static const char *key_of(const struct retiming *r, uint32_t process)
{
    const struct engine_candidate *w = r->winner, *o = r->rival;
    const char *against =
        o ? rung_arena_printf(r->arena, "/%u/%u/%s", o->number, o->attempt, o->point) : "";
    return rung_arena_printf(r->arena, "%u/%u/%s%s#%u", w->number, w->attempt, w->point, against,
                             process);
}

static struct rung_job job_of(const struct retiming *r)
{
    struct rung_job job = {
        .label = rung_arena_printf(r->arena, "candidate %u, final", r->winner->number),
        .bundle = r->source.bundle,
        .point = r->winner->point,
        .stages = RUNG_STAGE_COMPILE | RUNG_STAGE_TIME | RUNG_STAGE_BASELINES,
        .fresh = true,
        .delta = r->e->pipeline->timing.delta / 2,
    };
    if (r->rival) {
        job.rival = r->rival_source.bundle;
        job.rival_point = r->rival->point;
        job.rival_label = rung_arena_printf(r->arena, "candidate %u", r->rival->number);
    }
    return job;
}

/* What no try decided is not done: it is kept under another key. */
static int32_t record(struct retiming *r, const char *key, const struct rung_outcome *o,
                      struct rung_error *err)
{
    bool done = o->verdict == RUNG_ACCEPTED || o->verdict == RUNG_REJECTED;
    cJSON *json = engine_outcome_to_json(o);
    const char *again = rung_arena_printf(r->arena, "%s@%lld", key, (long long)rung_wall_ms());
    int32_t status = rung_journal_append(r->e->journal, done ? "final" : "attempt",
                                         done ? key : again, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

static void demote(struct retiming *r, const struct rung_outcome *o)
{
    struct engine *e = r->e;
    r->refused = true;
    engine_tell(e, r->winner, o);
    pthread_mutex_lock(&e->lock);
    engine_candidate_demote(r->winner, o, r->winner->seq);
    pthread_mutex_unlock(&e->lock);
}

/* The journal's word of a process, if it has one: what a resumed run would read. */
static int32_t recorded(struct retiming *r, const char *key, bool *found, struct rung_outcome *o,
                        struct rung_error *err)
{
    cJSON *known = rung_journal_find(r->e->journal, "final", key, NULL);
    *found = known != NULL;
    bool good = !known || engine_outcome_from_json(known, r->arena, o);
    o->report = cJSON_DetachItemFromObjectCaseSensitive(known, "report");
    cJSON_Delete(known);
    return good ? RUNG_OK
                : rung_fail(err, RUNG_EIO, "journal.record",
                            "%s: the final time '%s' in the journal is damaged",
                            rung_journal_dir(r->e->journal), key);
}

/* Done now, or before. */
static int32_t outcome_of(struct retiming *r, uint32_t process, struct rung_outcome *o,
                          struct rung_error *err)
{
    const char *key = key_of(r, process);
    bool found;
    int32_t status = recorded(r, key, &found, o, err);
    if (status || found)
        return status;
    const struct rung_job job = job_of(r);
    status = rung_pool_run(r->e->pool, &job, r->arena, o, err);
    if (!status)
        status = record(r, key, o, err);
    if (!status && (o->verdict == RUNG_ACCEPTED || o->verdict == RUNG_REJECTED)) {
        cJSON_Delete(o->report);
        status = recorded(r, key, &found, o, err);
    }
    return status;
}

/* One more process; its report is kept or deleted. */
static int32_t one_process(struct retiming *r, uint32_t process, struct rung_error *err)
{
    struct rung_outcome o = {0};
    int32_t status = outcome_of(r, process, &o, err);
    if (!status && o.verdict == RUNG_ACCEPTED && o.report)
        r->reports[r->n++] = o.report;
    else
        cJSON_Delete(o.report);
    if (!status && o.verdict == RUNG_REJECTED)
        demote(r, &o);
    else if (!status && o.verdict != RUNG_ACCEPTED)
        engine_say(r->e, "final: process %u of #%u decided nothing: %s", process + 1,
                   r->winner->number, o.message);
    return status;
}

/* Told once a run: what the winner is not compared with, and why. */
static void tell_missing(struct retiming *r)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, rung_json_get(r->reports[0], "baselines"))
    {
        if (!rung_json_bool(entry, "available", false))
            engine_say(r->e, "baseline %s is not available: %s", rung_json_text(entry, "name", "?"),
                       rung_json_text(entry, "why", ""));
    }
}

static void conclude(struct retiming *r)
{
    struct engine_final *final = &r->e->final;
    cJSON *sum = engine_final_sum(r->reports, r->n, r->e->pipeline->timing.delta / 2);
    if (!sum)
        return;
    if (!final->json)
        tell_missing(r);
    cJSON_Delete(final->json);
    final->json = sum;
    final->winner = r->winner;
}

static int32_t retime(struct retiming *r, struct rung_error *err)
{
    uint32_t processes = r->e->pipeline->timing.processes;
    int32_t status = engine_recall(r->e, r->winner, r->arena, &r->source, err);
    if (!status && r->rival)
        status = engine_recall(r->e, r->rival, r->arena, &r->rival_source, err);
    r->reports = RUNG_ARENA_NEW(r->arena, cJSON *, processes);
    if (!status && r->rival)
        engine_say(r->e, "final: timing #%u and #%u again, in %u fresh process%s",
                   r->winner->number, r->rival->number, processes, processes == 1 ? "" : "es");
    else if (!status)
        engine_say(r->e, "final: timing #%u again, in %u fresh process%s", r->winner->number,
                   processes, processes == 1 ? "" : "es");
    for (uint32_t i = 0; i < processes && !status && !r->refused; i++)
        status = one_process(r, i, err);
    if (!status && !r->refused && r->n)
        conclude(r);
    for (uint32_t i = 0; i < r->n; i++)
        cJSON_Delete(r->reports[i]);
    return status;
}

static int32_t retime_pair(struct engine *e, struct engine_candidate *winner,
                           struct engine_candidate *rival, bool *refused, struct rung_error *err)
{
    struct retiming r = {.e = e, .arena = rung_arena_new(), .winner = winner, .rival = rival};
    if (!r.arena)
        rung_die("out of memory");
    int32_t status = retime(&r, err);
    *refused = r.refused;
    rung_arena_free(r.arena);
    return status;
}

/* The second, where the search's times say no more than that it is near. */
static struct engine_candidate *runner_up(struct engine *e, const struct engine_candidate *best)
{
    struct engine_candidate *second = NULL;
    for (uint32_t i = 0; i < e->state.n_candidates; i++) {
        struct engine_candidate *c = e->state.candidates[i];
        if (c != best && c->state == RUNG_CANDIDATE_ACCEPTED && c->time_kind &&
            engine_tie(c, best) && (!second || engine_ahead(c, second)))
            second = c;
    }
    return second;
}

/*
 * The rival was faster in the same rounds. It wins if it passes what the winner had to pass, and is
 * then timed in its place, so that its speedups are its own.
 */
static int32_t crown(struct engine *e, struct engine_candidate *winner,
                     struct engine_candidate *rival, bool *refused, struct rung_error *err)
{
    const struct engine_variant *timed = rival->best;
    int32_t status = engine_confirm_one(e, rival, RUNG_WHEN_FINAL, err);
    if (status || rival->best != timed)
        return status;
    engine_say(e, "final: #%u is faster than #%u in turns with it", rival->number, winner->number);
    return retime_pair(e, rival, winner, refused, err);
}

static bool rival_won(const struct engine *e)
{
    const cJSON *rival = rung_json_get(e->final.json, "rival");
    return strcmp(rung_json_text(rival, "verdict", ""), "slower") == 0;
}

int32_t engine_final(struct engine *e, struct rung_error *err)
{
    bool refused = true;
    int32_t status = RUNG_OK;
    while (!status && refused) {
        refused = false;
        cJSON_Delete(e->final.json);
        e->final = (struct engine_final){0};
        status = engine_confirm(e, RUNG_WHEN_FINAL, err);
        struct engine_candidate *best = status ? NULL : engine_best(&e->state);
        if (!best || best->time_kind != RUNG_TIME_MEASURED || rung_cancel_requested(e->cancel))
            return status;
        struct engine_candidate *rival = runner_up(e, best);
        status = retime_pair(e, best, rival, &refused, err);
        if (!status && !refused && rival && e->final.winner == best && rival_won(e))
            status = crown(e, best, rival, &refused, err);
    }
    return status;
}
