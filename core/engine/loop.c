/*
 * The loop: the policy decides, a crew of threads carries out all actions of the decision side by
 * side, and at the barrier what came of them is put in order and goes back. Everything that the
 * next decision can depend on is numbered before the crew starts or after it ended.
 */
#include "base/die.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 64, MAX_ACTIONS = 256, MAX_CREW = 64 };

struct work {
    const struct rung_action *action;
    uint32_t index;                     /* of the action in its decision */
    struct engine_candidate *candidate; /* IMPLEMENT, REPAIR, TUNE */
    const char *prompt;
    const char *reply; /* IDEAS */
    int32_t status;
    struct rung_error error;
};

struct barrier {
    struct engine *e;
    struct rung_arena *arena; /* of the step */
    const struct rung_action *actions;
    uint32_t n_actions;
    struct work *work;
    uint32_t n_work;
    _Atomic uint32_t next;
    struct rung_event *events;
    uint32_t n_events;
};

/* ---- What a decision must look like -------------------------------------------------------------
 */

static int32_t breach(const struct engine *e, struct rung_error *err, uint32_t index,
                      const char *what)
{
    return rung_fail(err, RUNG_EMISUSE, "search.action", "search '%s': action %u %s",
                     e->search->factory->name, index + 1, what);
}

static int32_t check_action(const struct engine *e, const struct rung_action *a, uint32_t index,
                            struct rung_error *err)
{
    if (a->struct_size < sizeof *a || a->kind < RUNG_ACTION_IDEAS || a->kind > RUNG_ACTION_STOP)
        return breach(e, err, index, "has an unknown kind or size");
    if (a->kind == RUNG_ACTION_STOP)
        return RUNG_OK;
    if (a->count < 1 || a->count > MAX_COUNT)
        return breach(e, err, index, "has a count outside 1..64");
    if (a->n_parents > RUNG_MAX_PARENTS)
        return breach(e, err, index, "has too many parents");
    for (uint32_t i = 0; i < a->n_parents; i++)
        if (!engine_candidate_get(&e->state, a->parents[i]))
            return breach(e, err, index, "names a parent that does not exist");
    if (a->kind == RUNG_ACTION_IMPLEMENT && a->idea && !engine_idea_get(&e->state, a->idea))
        return breach(e, err, index, "names an idea that does not exist");
    if ((a->kind == RUNG_ACTION_REPAIR || a->kind == RUNG_ACTION_TUNE) && a->n_parents != 1)
        return breach(e, err, index, "needs exactly one parent");
    return RUNG_OK;
}

static int32_t check_decision(struct engine *e, const struct rung_action *actions, uint32_t n,
                              struct rung_error *err)
{
    if (n == 0 || n > MAX_ACTIONS || !actions)
        return rung_fail(err, RUNG_EMISUSE, "search.action",
                         "search '%s': decided %u actions; it must decide 1 to %d, or STOP",
                         e->search->factory->name, n, MAX_ACTIONS);
    for (uint32_t i = 0; i < n; i++) {
        int32_t status = check_action(e, &actions[i], i, err);
        if (status)
            return status;
        /* Two at once would race for the candidate's best point. */
        for (uint32_t j = 0; j < i && actions[i].kind == RUNG_ACTION_TUNE; j++)
            if (actions[j].kind == RUNG_ACTION_TUNE &&
                actions[j].parents[0] == actions[i].parents[0])
                return breach(e, err, i, "tunes a candidate that another action tunes already");
    }
    return RUNG_OK;
}

/* ---- The decision in the journal ---- */

static cJSON *action_json(const struct rung_action *a)
{
    static const char *const kinds[] = {"", "ideas", "implement", "repair", "tune", "stop"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", kinds[a->kind]);
    cJSON_AddNumberToObject(json, "count", a->count);
    cJSON_AddNumberToObject(json, "idea", a->idea);
    cJSON *parents = cJSON_AddArrayToObject(json, "parents");
    for (uint32_t i = 0; i < a->n_parents; i++)
        cJSON_AddItemToArray(parents, cJSON_CreateNumber(a->parents[i]));
    if (a->avoid)
        rung_json_add_text(json, "avoid", rung_text_of(a->avoid));
    if (a->note)
        rung_json_add_text(json, "note", rung_text_of(a->note));
    if (a->role)
        rung_json_add_text(json, "role", rung_text_of(a->role));
    if (a->tune_point)
        rung_json_add_text(json, "point", rung_text_of(a->tune_point));
    return json;
}

/* A resumed run must decide what it decided before, or its numbers would mean other things. */
static int32_t record_decision(struct engine *e, const struct rung_action *actions, uint32_t n,
                               struct rung_error *err)
{
    char key[16];
    int32_t status = RUNG_OK;
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "actions");
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, action_json(&actions[i]));
    snprintf(key, sizeof key, "%u", e->decisions);
    cJSON *known = rung_journal_find(e->journal, "decision", key, NULL);
    if (!known)
        status = rung_journal_append(e->journal, "decision", key, json, NULL, err);
    else if (!cJSON_Compare(known, json, true))
        status = rung_fail(
            err, RUNG_EMISUSE, "search.resume",
            "search '%s' decides otherwise than before the run was cut (decision %s): the "
            "run can't be resumed with this policy",
            e->search->factory->name, key);
    cJSON_Delete(known);
    cJSON_Delete(json);
    return status;
}

/* ---- From actions to work ---- */

static struct work *work_add(struct barrier *b, uint32_t index)
{
    struct work *w = &b->work[b->n_work++];
    *w = (struct work){.action = &b->actions[index], .index = index, .error = rung_error_init()};
    return w;
}

static struct engine_candidate *new_candidate(struct engine *e, const struct rung_action *a)
{
    struct engine_candidate *c = engine_candidate_add(&e->state);
    c->round = e->decisions;
    c->idea = a->idea;
    c->n_parents = a->n_parents;
    memcpy(c->parents, a->parents, sizeof c->parents);
    if (a->kind == RUNG_ACTION_REPAIR) {
        c->is_repair = true;
        c->idea = engine_candidate_get(&e->state, a->parents[0])->idea;
    }
    return c;
}

static const char *repair_prompt(struct barrier *b, const struct rung_action *a)
{
    const struct engine_candidate *failed = engine_candidate_get(&b->e->state, a->parents[0]);
    struct engine_source source;
    struct rung_error err = rung_error_init();
    bool known = !engine_recall(b->e, failed, b->arena, &source, &err);
    return engine_prompt_repair(b->e, b->arena, known ? engine_entry_text(source.bundle) : NULL,
                                failed->code, engine_words(b->e, failed->seq, b->arena).message,
                                a->note);
}

static void expand(struct barrier *b, uint32_t index)
{
    const struct rung_action *a = &b->actions[index];
    if (a->kind == RUNG_ACTION_IDEAS) {
        work_add(b, index)->prompt = engine_prompt_ideas(b->e, b->arena, a);
        return;
    }
    if (a->kind == RUNG_ACTION_TUNE) {
        work_add(b, index)->candidate = engine_candidate_get(&b->e->state, a->parents[0]);
        return;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        struct work *w = work_add(b, index);
        w->candidate = new_candidate(b->e, a);
        w->prompt = a->kind == RUNG_ACTION_REPAIR
                        ? repair_prompt(b, a)
                        : engine_prompt_code(b->e, b->arena, w->candidate, a->note);
    }
}

/* ---- The crew ---- */

static void ask_ideas(struct barrier *b, struct work *w)
{
    struct engine *e = b->e;
    const char *role = w->action->role ? w->action->role : "ideas";
    struct rung_arena *arena = rung_arena_new();
    struct engine_reply reply;
    char key[40];
    if (!arena)
        rung_die("out of memory");
    snprintf(key, sizeof key, "ideas/%u/%u", e->decisions, w->index);
    struct rung_message messages[2];
    engine_open_talk(e, arena, w->prompt, messages);
    w->status = engine_ask(e, key, role, messages, 2, arena, &reply, &w->error);
    w->reply = w->status ? NULL : rung_xstrdup(reply.text);
    rung_arena_free(arena);
}

static void do_work(struct barrier *b, struct work *w)
{
    if (w->action->kind == RUNG_ACTION_IDEAS)
        ask_ideas(b, w);
    else if (w->action->kind == RUNG_ACTION_TUNE)
        w->status = engine_tune(b->e, w->candidate, w->action, &w->error);
    else
        w->status = engine_implement(b->e, w->candidate, w->action->role, w->prompt, &w->error);
    /* Out of disk or workers: nothing else will work either. */
    if (w->status && (w->error.code == RUNG_EIO || w->error.code == RUNG_EMISUSE ||
                      strncmp(w->error.symbol, "pool.", 5) == 0))
        engine_give_up(b->e, &w->error);
}

static void *crew_main(void *ctx)
{
    struct barrier *b = ctx;
    for (;;) {
        uint32_t i = atomic_fetch_add(&b->next, 1);
        if (i >= b->n_work)
            return NULL;
        if (rung_cancel_requested(b->e->cancel))
            b->work[i].status = rung_fail(&b->work[i].error, RUNG_ECANCELLED, "", "interrupted");
        else
            do_work(b, &b->work[i]);
    }
}

static void run_crew(struct barrier *b)
{
    pthread_t threads[MAX_CREW];
    uint32_t n = b->e->pipeline->limits.llm_parallel + rung_pool_size(b->e->pool), started = 0;
    if (n > b->n_work)
        n = b->n_work;
    if (n > MAX_CREW)
        n = MAX_CREW;
    while (started + 1 < n && pthread_create(&threads[started], NULL, crew_main, b) == 0)
        started++;
    crew_main(b);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Events ---- */

static void event_add(struct barrier *b, uint32_t kind, uint64_t seq, uint32_t subject,
                      const char *text)
{
    b->events[b->n_events++] = (struct rung_event){.struct_size = sizeof(struct rung_event),
                                                   .kind = kind,
                                                   .seq = seq,
                                                   .subject = subject,
                                                   .text = text ? text : ""};
}

static void idea_events(struct barrier *b, const struct work *w)
{
    struct engine *e = b->e;
    uint32_t before = e->state.n_ideas;
    uint32_t parent = w->action->n_parents ? w->action->parents[0] : 0;
    if (!engine_ideas_take(e, w->reply, w->action->count, parent))
        event_add(b, RUNG_EVENT_FAILED, 0, 0, "the reply held no new idea");
    for (uint32_t i = before; i < e->state.n_ideas; i++) {
        const struct engine_idea *idea = e->state.ideas[i];
        event_add(b, RUNG_EVENT_IDEA, idea->seq, idea->number, idea->sentence);
        engine_say(e, "idea %u [%s] %s", idea->number, idea->category, idea->sentence);
    }
}

/* In the order of the work list, which is that of the candidates' numbers: never of their ends. */
static void collect_events(struct barrier *b)
{
    for (uint32_t i = 0; i < b->n_work; i++) {
        struct work *w = &b->work[i];
        if (w->status == RUNG_EBUDGET || w->status == RUNG_ECANCELLED)
            continue;
        if (w->status)
            event_add(b, RUNG_EVENT_FAILED, 0, w->candidate ? w->candidate->number : 0,
                      rung_arena_strdup(b->arena, w->error.message));
        else if (w->action->kind == RUNG_ACTION_IDEAS)
            idea_events(b, w);
        else
            event_add(b,
                      w->action->kind == RUNG_ACTION_TUNE ? RUNG_EVENT_TUNED : RUNG_EVENT_CANDIDATE,
                      w->candidate->seq, w->candidate->number, w->candidate->code);
    }
}

/* When nothing of a decision could be carried out, the environment is at fault, not the kernels. */
static void note_failures(struct barrier *b)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < b->n_work; i++)
        failed += b->work[i].status != RUNG_OK && b->work[i].status != RUNG_EBUDGET;
    for (uint32_t i = 0; i < b->n_work; i++)
        if (b->work[i].status && b->work[i].status != RUNG_EBUDGET &&
            b->work[i].status != RUNG_ECANCELLED)
            engine_say(b->e, "failed: %s", b->work[i].error.message);
    if (failed == b->n_work && failed > 0 && !rung_cancel_requested(b->e->cancel))
        engine_give_up(b->e, &b->work[0].error);
}

/* What needs the best candidate alone; a fault of the environment ends the run like any other. */
static void confirm_best(struct barrier *b)
{
    struct rung_error err = rung_error_init();
    if (rung_cancel_requested(b->e->cancel) || atomic_load(&b->e->out_of_budget))
        return;
    int32_t status = engine_confirm(b->e, RUNG_WHEN_BEST, &err);
    if (status && status != RUNG_EBUDGET && status != RUNG_ECANCELLED)
        engine_give_up(b->e, &err);
}

static void carry_out(struct barrier *b)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->n_actions; i++)
        most += b->actions[i].count;
    b->work = RUNG_ARENA_NEW(b->arena, struct work, most);
    b->events = RUNG_ARENA_NEW(b->arena, struct rung_event, (uint64_t)most * (MAX_COUNT + 1));
    for (uint32_t i = 0; i < b->n_actions; i++)
        expand(b, i);
    run_crew(b);
    note_failures(b);
    confirm_best(b);
    collect_events(b);
    for (uint32_t i = 0; i < b->n_work; i++)
        free((void *)b->work[i].reply);
}

/* ---- The loop ---- */

static int32_t decide(struct barrier *b, const struct barrier *last, struct rung_error *err)
{
    struct engine *e = b->e;
    static const struct rung_event start = {
        .struct_size = sizeof start, .kind = RUNG_EVENT_START, .text = ""};
    const struct rung_event *events = last ? last->events : &start;
    uint32_t n_events = last ? last->n_events : 1;
    struct rung_call call = {
        .struct_size = sizeof call, .arena = b->arena, .cancel = e->cancel, .error = err};
    const struct rung_history *history =
        engine_history(&e->state, b->arena, e->decisions, e->seed, engine_budget_used(e));
    int32_t status;
    RUNG_INVOKE(status, e->search, struct rung_search_ops, decide, &call, history, events, n_events,
                &b->actions, &b->n_actions);
    if (!status)
        status = check_decision(e, b->actions, b->n_actions, err);
    return status ? status : record_decision(e, b->actions, b->n_actions, err);
}

static const struct rung_action *stop_action(const struct barrier *b)
{
    for (uint32_t i = 0; i < b->n_actions; i++)
        if (b->actions[i].kind == RUNG_ACTION_STOP)
            return &b->actions[i];
    return NULL;
}

static bool ended(struct engine *e)
{
    if (rung_cancel_requested(e->cancel))
        e->stop_reason = e->failure.code && e->failure.code != RUNG_ECANCELLED ? e->failure.message
                                                                               : "interrupted";
    else if (atomic_load(&e->out_of_budget))
        e->stop_reason = "the budget is used up";
    return e->stop_reason != NULL;
}

/* Whether a decision made kernels: only such a barrier counts as a round without progress. */
static bool implements(const struct barrier *b)
{
    for (uint32_t i = 0; i < b->n_actions; i++)
        if (b->actions[i].kind == RUNG_ACTION_IMPLEMENT)
            return true;
    return false;
}

/* One decision and its barrier; *last is replaced. */
static int32_t step(struct engine *e, struct barrier **last, struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    struct barrier *b = RUNG_ARENA_NEW(arena, struct barrier, 1);
    b->e = e;
    b->arena = arena;
    int32_t status = decide(b, *last, err);
    const struct rung_action *stop = status ? NULL : stop_action(b);
    if (stop)
        e->stop_reason =
            rung_arena_strdup(e->arena, stop->note ? stop->note : "the policy stopped");
    else if (!status)
        carry_out(b);
    if (!stop && !status && implements(b))
        e->stop_reason = engine_enough(e);
    e->decisions++;
    if (*last)
        rung_arena_free((*last)->arena);
    *last = b;
    return status;
}

int32_t engine_loop(struct engine *e, struct rung_error *err)
{
    struct barrier *last = NULL;
    int32_t status = RUNG_OK;
    while (!status && !ended(e))
        status = step(e, &last, err);
    if (last)
        rung_arena_free(last->arena);
    engine_tell_spent(e);
    if (status)
        return status;
    if (e->failure.code) {
        *err = e->failure;
        return err->code;
    }
    return RUNG_OK;
}
