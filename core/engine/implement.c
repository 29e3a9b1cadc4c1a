/* One candidate: the conversation until something compiles, then its verdict; and its tune points.
 */
#include "base/die.h"
#include "base/status.h"
#include "engine/engine.h"

#include <string.h>

enum { MAX_MESSAGES = 64 };

/* What has been said so far, and the code that stands: all in one arena that ends with the
 * candidate's last verdict. */
struct conversation {
    struct rung_arena *arena;
    struct rung_message messages[MAX_MESSAGES];
    uint32_t n;
    const char *role;               /* of the first request */
    const struct rung_bundle *last; /* the newest code: of a reply, else of the parent; or NULL */
    const struct rung_bundle *no_plan; /* code that waits for its plan lines, or NULL */
};

/* What a further reply to the same conversation can mend: the code did not get as far as running.
 */
static bool repairable(const char *code)
{
    return rung_starts_with(code, "reply.") || rung_starts_with(code, "compile.") ||
           strcmp(code, "plan.error") == 0;
}

/* What it can mend when the code ran and failed; times can't be mended by asking. */
static bool failed_check(const char *code)
{
    static const char *const prefixes[] = {"launch.", "run.",   "mem.",     "sync.",
                                           "output.", "input.", "numeric.", NULL};
    for (size_t i = 0; prefixes[i]; i++)
        if (rung_starts_with(code, prefixes[i]))
            return true;
    return false;
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

static bool holds_entry(const struct rung_bundle *bundle)
{
    return bundle && bundle->entry < bundle->n_files;
}

static int32_t read_reply(struct engine *e, struct conversation *talk, const char *text,
                          struct rung_reply_result *out, struct rung_error *err)
{
    struct rung_call call = {
        .struct_size = sizeof call, .arena = talk->arena, .cancel = e->cancel, .error = err};
    struct rung_reply_request req = {.struct_size = sizeof req,
                                     .flags = talk->no_plan ? RUNG_REPLY_PLAN_ONLY : 0,
                                     .task = e->task,
                                     .reply = rung_text_of(text),
                                     .parent = talk->last,
                                     .base = talk->no_plan};
    int32_t status;
    *out = (struct rung_reply_result){.struct_size = sizeof *out};
    RUNG_INVOKE(status, e->codegen, struct rung_codegen_ops, read_reply, &call, &req, out);
    if (!status && !out->code[0] && (!holds_entry(out->bundle) || !out->plan))
        return rung_fail(err, RUNG_EMISUSE, "codegen.result",
                         "codegen '%s' accepted a reply without a bundle",
                         e->codegen->factory->name);
    return status;
}

static int32_t record_candidate(struct engine *e, const struct engine_candidate *c,
                                uint32_t attempt, const struct rung_reply_result *read,
                                struct rung_arena *arena, struct rung_error *err)
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
        cJSON_AddStringToObject(json, "note", read->note.ptr ? read->note.ptr : "");
        cJSON_AddItemToObject(json, "bundle", rung_bundle_to_json(read->bundle));
        status = rung_journal_append(e->journal, "candidate", key, json, NULL, err);
        cJSON_Delete(json);
    }
    cJSON_Delete(known);
    return status;
}

/* The code of a reply becomes the candidate's; verdicts on an earlier reply no longer count. */
static void take_source(struct engine *e, struct engine_candidate *c, uint32_t attempt,
                        const struct rung_reply_result *r)
{
    const struct rung_text source = r->bundle->files[r->bundle->entry].text;
    pthread_mutex_lock(&e->lock);
    c->has_source = true;
    c->attempt = attempt;
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
    const char *role = attempt == 0 && talk->role ? talk->role : repair ? "repair" : "code";
    const char *key =
        rung_arena_printf(talk->arena, "%s/%u/%u", repair ? "repair" : "code", c->number, attempt);
    int32_t status = engine_ask(e, key, role, talk->messages, talk->n, talk->arena, reply, err);
    if (!status) {
        pthread_mutex_lock(&e->lock);
        c->replies++;
        pthread_mutex_unlock(&e->lock);
    }
    return status;
}

/* A reply without a candidate: the verdict, and what the next request can stand on. */
static void refuse_reply(struct conversation *talk, const struct engine_reply *reply,
                         const struct rung_reply_result *read, struct rung_outcome *out)
{
    if (reply->finish == RUNG_FINISH_REFUSED) {
        reject(out, talk->arena, "reply.refused",
               "The reply was a refusal. Send the kernel that the task asks for.");
        return;
    }
    if (reply->finish == RUNG_FINISH_REASONING || reply->finish == RUNG_FINISH_CONTEXT) {
        reject(out, talk->arena, "reply.none",
               reply->finish == RUNG_FINISH_CONTEXT
                   ? "The conversation was too long for the model, shortened too."
                   : "All tokens of the reply went into reasoning, and none into the kernel.");
        return;
    }
    reject(out, talk->arena, read->code, read->message.ptr ? read->message.ptr : "");
    if (strcmp(read->code, "plan.error") == 0)
        talk->no_plan = holds_entry(read->bundle) ? read->bundle : NULL;
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
    /* Providers take no empty turns. */
    talk->messages[talk->n++] =
        engine_message(talk->arena, RUNG_MSG_ASSISTANT, reply.text[0] ? reply.text : "(no text)");
    status = read_reply(e, talk, reply.text, &read, err);
    if (status)
        return status;
    if (reply.finish == RUNG_FINISH_REFUSED || read.code[0]) {
        refuse_reply(talk, &reply, &read, out);
        status = record_reply_fault(e, c, attempt, out, talk->arena, &seq, err);
    } else {
        talk->last = read.bundle;
        talk->no_plan = NULL;
        take_source(e, c, attempt, &read);
        status = record_candidate(e, c, attempt, &read, talk->arena, err);
        if (!status)
            status = engine_evaluate(e, c, read.bundle, attempt, NULL, talk->arena, out, &seq, err);
    }
    if (!status)
        judged(e, c, out, seq);
    return status;
}

static const char *next_prompt(struct engine *e, const struct engine_candidate *c,
                               const struct conversation *talk, const struct rung_outcome *o)
{
    if (talk->no_plan)
        return engine_prompt_plan(e, talk->arena, engine_entry_text(talk->no_plan), o->message);
    const char *source = c->has_source ? engine_entry_text(talk->last) : NULL;
    return engine_prompt_repair(e, talk->arena, source, o->code, o->message, NULL);
}

static const struct rung_bundle *parent_code(struct engine *e, const struct engine_candidate *c,
                                             struct rung_arena *arena)
{
    struct engine_source source;
    struct rung_error err = rung_error_init();
    const struct engine_candidate *parent =
        c->n_parents ? engine_candidate_get(&e->state, c->parents[0]) : NULL;
    return parent && !engine_recall(e, parent, arena, &source, &err) ? source.bundle : NULL;
}

/* Further replies that a candidate may have. */
struct repairs {
    uint32_t compile, check;
};

static bool may_repair(const struct rung_outcome *o, struct repairs *left)
{
    uint32_t *of = repairable(o->code)     ? &left->compile
                   : failed_check(o->code) ? &left->check
                                           : NULL;
    if (!of || !*of)
        return false;
    --*of;
    return true;
}

int32_t engine_implement(struct engine *e, struct engine_candidate *c, const char *role,
                         const char *prompt, struct rung_error *err)
{
    struct conversation talk = {.arena = rung_arena_new(), .role = role};
    struct repairs left = {e->pipeline->limits.compile_repairs, e->pipeline->limits.check_repairs};
    struct rung_outcome outcome;
    int32_t status = RUNG_OK;
    if (!talk.arena)
        rung_die("out of memory");
    talk.last = parent_code(e, c, talk.arena);
    engine_open_talk(e, talk.arena, prompt, talk.messages);
    talk.n = 2;
    for (uint32_t attempt = 0;; attempt++) {
        status = try_reply(e, c, attempt, &talk, &outcome, err);
        if (status || outcome.verdict != RUNG_REJECTED || !may_repair(&outcome, &left) ||
            talk.n + 2 > MAX_MESSAGES)
            break;
        talk.messages[talk.n++] =
            engine_message(talk.arena, RUNG_MSG_USER, next_prompt(e, c, &talk, &outcome));
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

static bool allowed(const struct engine *e, const struct rung_plan *plan,
                    const struct rung_point *point)
{
    for (uint32_t i = 0; i < e->task->n_bench; i++)
        if (!rung_plan_allows(plan, e->task, e->task->bench[i].dims, point,
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

static int32_t tune_point(struct engine *e, struct engine_candidate *c,
                          const struct rung_bundle *bundle, const char *point,
                          struct rung_arena *arena, struct rung_error *err)
{
    struct rung_outcome outcome;
    uint64_t seq = 0;
    int32_t status = engine_evaluate(e, c, bundle, c->attempt, point, arena, &outcome, &seq, err);
    if (!status)
        judged(e, c, &outcome, seq);
    return status;
}

static int32_t tune_some(struct engine *e, struct engine_candidate *c,
                         const struct engine_source *source, uint32_t count,
                         struct rung_arena *arena, struct rung_error *err)
{
    uint64_t total = rung_plan_points(source->plan), stride = stride_of(total);
    int32_t status = RUNG_OK;
    for (uint64_t k = 0; k < total && count > 0 && !status; k++) {
        struct rung_point point = rung_plan_point(source->plan, (k + 1) * stride % total);
        const char *text = rung_point_text(arena, source->plan, &point);
        if (tried(c, text) || !allowed(e, source->plan, &point))
            continue;
        status = tune_point(e, c, source->bundle, text, arena, err);
        count--;
    }
    return status;
}

static int32_t tune(struct engine *e, struct engine_candidate *c, const struct rung_action *action,
                    struct rung_arena *arena, struct rung_error *err)
{
    struct engine_source source;
    struct rung_point point;
    const char *problem = NULL;
    int32_t status = engine_recall(e, c, arena, &source, err);
    if (status)
        return status;
    if (!action->tune_point)
        return tune_some(e, c, &source, action->count, arena, err);
    if (!rung_point_parse(arena, source.plan, action->tune_point, &point, &problem))
        return rung_fail(err, RUNG_EINVAL, "", "candidate %u: %s", c->number, problem);
    if (tried(c, action->tune_point))
        return RUNG_OK;
    return tune_point(e, c, source.bundle, action->tune_point, arena, err);
}

int32_t engine_tune(struct engine *e, struct engine_candidate *c, const struct rung_action *action,
                    struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    int32_t status = tune(e, c, action, arena, err);
    rung_arena_free(arena);
    return status;
}
