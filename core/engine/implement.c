/* One candidate: the conversation until something compiles, then its verdict; and its tune points.
 */
#include "base/die.h"
#include "base/status.h"
#include "engine/engine.h"

#include <string.h>

enum { MAX_MESSAGES = 64, MAX_CODE = 32 };

struct conversation {
    struct rung_arena *arena;
    struct rung_message messages[MAX_MESSAGES];
    uint32_t n;
    const char *note; /* what the reader did with the last reply */
};

/* What a further reply to the same conversation can mend: the code did not get as far as running.
 */
static bool repairable(const char *code)
{
    return rung_starts_with(code, "reply.") || rung_starts_with(code, "compile.") ||
           strcmp(code, "plan.error") == 0;
}

static void reject(struct rung_outcome *o, struct rung_arena *arena, const char *code,
                   const char *message)
{
    *o = (struct rung_outcome){
        .verdict = RUNG_REJECTED, .message = rung_arena_strdup(arena, message), .point = ""};
    memcpy(o->code, code, strnlen(code, sizeof o->code - 1));
}

/* A verdict on a reply that held no candidate; journaled like any other, so that `show` tells it.
 */
static int32_t record_reply_fault(struct engine *e, const struct engine_candidate *c,
                                  uint32_t attempt, const struct rung_outcome *o,
                                  struct rung_arena *arena, uint64_t *seq, struct rung_error *err)
{
    const char *key = rung_arena_printf(arena, "%u/%u/reply", c->number, attempt);
    cJSON *known = rung_journal_find(e->journal, "variant", key, seq);
    int32_t status = RUNG_OK;
    if (!known) {
        cJSON *json = engine_outcome_to_json(o);
        status = rung_journal_append(e->journal, "variant", key, json, seq, err);
        cJSON_Delete(json);
    }
    cJSON_Delete(known);
    return status;
}

static int32_t read_reply(struct engine *e, struct engine_candidate *c,
                          const struct engine_reply *reply, struct rung_reply_result *out,
                          struct rung_error *err)
{
    struct rung_call call = {
        .struct_size = sizeof call, .arena = c->arena, .cancel = e->cancel, .error = err};
    struct rung_reply_request req = {
        .struct_size = sizeof req, .task = e->task, .reply = rung_text_of(reply->text)};
    int32_t status;
    *out = (struct rung_reply_result){.struct_size = sizeof *out};
    RUNG_INVOKE(status, e->codegen, struct rung_codegen_ops, read_reply, &call, &req, out);
    if (!status && !out->code[0] &&
        (!out->bundle || !out->plan || out->bundle->entry >= out->bundle->n_files))
        return rung_fail(err, RUNG_EMISUSE, "codegen.result",
                         "codegen '%s' accepted a reply without a bundle",
                         e->codegen->factory->name);
    return status;
}

static int32_t record_candidate(struct engine *e, struct engine_candidate *c, uint32_t attempt,
                                const char *note, struct rung_arena *arena, struct rung_error *err)
{
    const char *key = rung_arena_printf(arena, "%u/%u", c->number, attempt);
    cJSON *known = rung_journal_find(e->journal, "candidate", key, NULL);
    int32_t status = RUNG_OK;
    if (!known) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "number", c->number);
        cJSON_AddNumberToObject(json, "idea", c->idea);
        cJSON_AddNumberToObject(json, "round", c->round);
        cJSON *parents = cJSON_AddArrayToObject(json, "parents");
        for (uint32_t i = 0; i < c->n_parents; i++)
            cJSON_AddItemToArray(parents, cJSON_CreateNumber(c->parents[i]));
        cJSON_AddBoolToObject(json, "repair", c->is_repair);
        cJSON_AddStringToObject(json, "note", note);
        cJSON_AddItemToObject(json, "bundle", rung_bundle_to_json(c->bundle));
        status = rung_journal_append(e->journal, "candidate", key, json, NULL, err);
        cJSON_Delete(json);
    }
    cJSON_Delete(known);
    return status;
}

/* The bundle of a reply becomes the candidate's; verdicts on an earlier reply no longer count. */
static void take_bundle(struct engine *e, struct engine_candidate *c,
                        const struct rung_reply_result *r)
{
    const struct rung_text source = r->bundle->files[r->bundle->entry].text;
    pthread_mutex_lock(&e->lock);
    c->bundle = r->bundle;
    c->plan = r->plan;
    c->variants = NULL;
    c->n_tried = 0;
    c->n_points = rung_plan_points(r->plan);
    rung_sha256(source.ptr, source.len, c->source_sha);
    pthread_mutex_unlock(&e->lock);
}

static void judged(struct engine *e, struct engine_candidate *c, const struct rung_outcome *o,
                   uint64_t seq)
{
    pthread_mutex_lock(&e->lock);
    engine_candidate_judge(&e->state, c, o, seq);
    pthread_mutex_unlock(&e->lock);
    engine_tell(e, c, o);
}

static int32_t ask(struct engine *e, struct engine_candidate *c, uint32_t attempt,
                   struct conversation *talk, struct engine_reply *reply, struct rung_error *err)
{
    bool repair = c->is_repair || attempt > 0;
    const char *key =
        rung_arena_printf(talk->arena, "%s/%u/%u", repair ? "repair" : "code", c->number, attempt);
    int32_t status = engine_ask(e, key, repair ? "repair" : "code", talk->messages, talk->n,
                                talk->arena, reply, err);
    if (!status) {
        pthread_mutex_lock(&e->lock);
        c->replies++;
        pthread_mutex_unlock(&e->lock);
    }
    return status;
}

/* One reply and what becomes of it. */
static int32_t try_reply(struct engine *e, struct engine_candidate *c, uint32_t attempt,
                         struct conversation *talk, struct rung_outcome *out,
                         struct rung_error *err)
{
    struct engine_reply reply;
    struct rung_reply_result read;
    uint64_t seq = 0;
    int32_t status = ask(e, c, attempt, talk, &reply, err);
    if (status)
        return status;
    talk->messages[talk->n++] = engine_message(talk->arena, RUNG_MSG_ASSISTANT, reply.text);
    status = read_reply(e, c, &reply, &read, err);
    if (status)
        return status;
    if (reply.finish == RUNG_FINISH_REFUSED)
        reject(out, talk->arena, "reply.refused",
               "The reply was a refusal. Send the kernel that the task asks for.");
    else if (read.code[0])
        reject(out, talk->arena, read.code, read.message.ptr ? read.message.ptr : "");
    if (reply.finish == RUNG_FINISH_REFUSED || read.code[0]) {
        status = record_reply_fault(e, c, attempt, out, talk->arena, &seq, err);
    } else {
        take_bundle(e, c, &read);
        status =
            record_candidate(e, c, attempt, read.note.ptr ? read.note.ptr : "", talk->arena, err);
        if (!status)
            status = engine_evaluate(e, c, attempt, NULL, talk->arena, out, &seq, err);
    }
    if (!status)
        judged(e, c, out, seq);
    return status;
}

static const char *entry_source(const struct engine_candidate *c)
{
    return c->bundle ? c->bundle->files[c->bundle->entry].text.ptr : NULL;
}

int32_t engine_implement(struct engine *e, struct engine_candidate *c, const char *prompt,
                         struct rung_error *err)
{
    struct conversation talk = {.arena = rung_arena_new()};
    struct rung_outcome outcome;
    int32_t status = RUNG_OK;
    if (!talk.arena)
        rung_die("out of memory");
    talk.messages[talk.n++] =
        engine_message(talk.arena, RUNG_MSG_SYSTEM, engine_prompt_system(e, talk.arena));
    talk.messages[talk.n++] = engine_message(talk.arena, RUNG_MSG_USER, prompt);
    for (uint32_t attempt = 0; attempt <= e->pipeline->limits.compile_repairs; attempt++) {
        status = try_reply(e, c, attempt, &talk, &outcome, err);
        if (status || outcome.verdict != RUNG_REJECTED || !repairable(outcome.code) ||
            talk.n + 2 > MAX_MESSAGES)
            break;
        talk.messages[talk.n++] =
            engine_message(talk.arena, RUNG_MSG_USER,
                           engine_prompt_repair(e, talk.arena, entry_source(c), outcome.code,
                                                outcome.message, NULL));
    }
    rung_arena_free(talk.arena);
    return status;
}

/* ---- Tune points ---- */

static bool tried(const struct engine_candidate *c, const char *point)
{
    for (const struct engine_variant *v = c->variants; v; v = v->next)
        if (strcmp(v->point, point) == 0)
            return true;
    return false;
}

static bool allowed(const struct engine *e, const struct engine_candidate *c,
                    const struct rung_point *point)
{
    for (uint32_t i = 0; i < e->task->n_bench; i++)
        if (!rung_plan_allows(c->plan, e->task, e->task->bench[i].dims, point,
                              rung_pool_sm_count(e->pool)))
            return false;
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* A step that visits every point once, far from its neighbours: near the golden section, coprime.
 */
static uint64_t stride_of(uint64_t total)
{
    uint64_t stride = (uint64_t)((double)total * 0.618) | 1;
    while (gcd(stride, total) != 1)
        stride += 2;
    return stride;
}

static int32_t tune_point(struct engine *e, struct engine_candidate *c, const char *point,
                          struct rung_arena *arena, struct rung_error *err)
{
    struct rung_outcome outcome;
    uint64_t seq = 0;
    uint32_t attempt = c->replies ? c->replies - 1 : 0;
    int32_t status = engine_evaluate(e, c, attempt, point, arena, &outcome, &seq, err);
    if (!status)
        judged(e, c, &outcome, seq);
    return status;
}

static int32_t tune_some(struct engine *e, struct engine_candidate *c, uint32_t count,
                         struct rung_arena *arena, struct rung_error *err)
{
    uint64_t total = rung_plan_points(c->plan), stride = stride_of(total);
    int32_t status = RUNG_OK;
    for (uint64_t k = 0; k < total && count > 0 && !status; k++) {
        struct rung_point point = rung_plan_point(c->plan, (k + 1) * stride % total);
        const char *text = rung_point_text(arena, c->plan, &point);
        if (tried(c, text) || !allowed(e, c, &point))
            continue;
        status = tune_point(e, c, text, arena, err);
        count--;
    }
    return status;
}

int32_t engine_tune(struct engine *e, struct engine_candidate *c, const struct rung_action *action,
                    struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_point point;
    const char *problem = NULL;
    int32_t status;
    if (!arena)
        rung_die("out of memory");
    if (!c->plan)
        status = rung_fail(err, RUNG_EINVAL, "", "candidate %u has no plan to tune", c->number);
    else if (!action->tune_point)
        status = tune_some(e, c, action->count, arena, err);
    else if (!rung_point_parse(arena, c->plan, action->tune_point, &point, &problem))
        status = rung_fail(err, RUNG_EINVAL, "", "candidate %u: %s", c->number, problem);
    else if (tried(c, action->tune_point))
        status = RUNG_OK;
    else
        status = tune_point(e, c, action->tune_point, arena, err);
    rung_arena_free(arena);
    return status;
}
