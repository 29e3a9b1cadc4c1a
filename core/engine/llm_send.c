/* One sending: budget and gate, the record before it, the call, what it cost. */
#include "engine/llm.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"

#include <string.h>

enum {
    BYTES_A_TOKEN = 4,     /* of English and code, about */
    MIN_BYTES_A_TOKEN = 2, /* for upper estimates */
    OVERHEAD = 64,         /* tokens of roles and templates */
    UNKNOWN_CAP = 32768,   /* output tokens where nothing says how many there can be */
    USUAL_OUTPUT = 2000,   /* before there was a reply to go by */
};

/* ---- Estimates ---- */

static uint64_t request_bytes(const struct rung_llm_request *request)
{
    uint64_t bytes = llm_talk_bytes(request->messages, request->n_messages);
    for (uint32_t i = 0; i < request->n_tools; i++)
        bytes += request->tools[i].schema.len + strlen(request->tools[i].summary);
    return bytes;
}

static uint64_t usual_output(struct engine_llm *llm)
{
    uint64_t replies = atomic_load(&llm->replies);
    return replies ? atomic_load(&llm->made) / replies : USUAL_OUTPUT;
}

static double highest(double a, double b)
{
    return a > b ? a : b;
}

/* The most that a request can cost. What is free costs nothing, whatever its price says. */
static struct engine_hold need_of(const struct engine_llm *llm,
                                  const struct rung_llm_request *request)
{
    const struct rung_price *p = &llm->price;
    struct engine_hold need = {.calls = 1};
    if (llm->free)
        return need;
    uint64_t in = request_bytes(request) / MIN_BYTES_A_TOKEN + OVERHEAD;
    uint64_t out = request->max_output_tokens ? request->max_output_tokens
                   : llm->cap                 ? llm->cap
                   : llm->stage->output_cap   ? llm->stage->output_cap
                                              : UNKNOWN_CAP;
    need.tokens = in + out;
    if (p->given)
        need.usd = ((double)in * highest(p->input, highest(p->cache_write_5m, p->cache_write_1h)) +
                    (double)out * p->output) *
                   1e-6;
    return need;
}

/* What a server may have billed for a sending of which it said nothing. */
static struct rung_usage guess(struct engine_llm *llm, uint64_t in, const struct llm_end *end)
{
    uint64_t came = 0;
    for (uint32_t i = 0; i < end->n_parts; i++)
        came += end->parts[i].text.len;
    uint64_t out = end->kind == LLM_CUT    ? (came + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN
                   : end->kind == LLM_LOST ? usual_output(llm)
                                           : 0;
    const struct rung_usage *told = &end->usage;
    return (struct rung_usage){.struct_size = sizeof *told,
                               .estimated = 1,
                               .input = told->input >= 0 ? told->input : (int64_t)in,
                               .cache_read = told->cache_read,
                               .cache_write_5m = told->cache_write_5m,
                               .cache_write_1h = told->cache_write_1h,
                               .output = told->output > 0 ? told->output : (int64_t)out,
                               .reasoning = told->reasoning};
}

static struct rung_usage no_usage(void)
{
    return (struct rung_usage){sizeof(struct rung_usage), 0, -1, -1, -1, -1, -1, -1};
}

/* ---- Records ---- */

static const char *end_key(struct rung_arena *arena, const char *key, uint32_t attempt)
{
    return rung_arena_printf(arena, "%s@%u", key, attempt);
}

static int32_t record_send(struct engine *e, const struct engine_llm *llm,
                           const struct rung_llm_request *request, const char *key, const char *why,
                           struct rung_error *err)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "llm", llm->stage->name);
    cJSON_AddStringToObject(json, "why", why);
    rung_json_add_i64(json, "input_estimate", (int64_t)(request_bytes(request) / BYTES_A_TOKEN));
    cJSON_AddNumberToObject(json, "messages", request->n_messages);
    if (request->max_output_tokens)
        cJSON_AddNumberToObject(json, "max_output_tokens", request->max_output_tokens);
    if (request->effort)
        cJSON_AddNumberToObject(json, "effort", request->effort);
    int32_t status = rung_journal_append(e->journal, "send", key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

static void spend(struct engine *e, const char *llm, const cJSON *json,
                  const struct engine_hold *hold)
{
    pthread_mutex_lock(&e->lock);
    if (hold) {
        e->spent.held_calls -= hold->calls;
        e->spent.held_tokens -= hold->tokens;
        e->spent.held_usd -= hold->usd;
    }
    engine_spend(e, llm, json);
    pthread_mutex_unlock(&e->lock);
}

int32_t llm_record_end(struct engine *e, const struct engine_llm *llm, const char *key,
                       uint32_t attempt, const struct llm_end *end, struct rung_error *err)
{
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        return rung_fail(err, RUNG_ENOMEM, "", "out of memory");
    cJSON *json = llm_end_to_json(end, llm);
    int32_t status =
        rung_journal_append(e->journal, "sent", end_key(arena, key, attempt), json, NULL, err);
    cJSON_Delete(json);
    rung_arena_free(arena);
    return status;
}

/* ---- The call ---- */

static void call_plugin(struct engine *e, struct engine_llm *llm,
                        const struct rung_llm_request *request, struct rung_arena *arena,
                        struct llm_end *end)
{
    struct rung_llm_response out = {.struct_size = sizeof out, .usage = no_usage()};
    struct rung_call call = {
        .struct_size = sizeof call, .arena = arena, .cancel = e->cancel, .error = &end->error};
    uint64_t begun = rung_now_ns();
    int32_t status;
    RUNG_INVOKE(status, llm->instance, struct rung_llm_ops, complete, &call, request, &out);
    *end = (struct llm_end){.kind = llm_kind_of(status, &end->error, out.cut != 0),
                            .finish = out.finish,
                            .error = end->error,
                            .parts = out.parts,
                            .n_parts = out.parts ? out.n_parts : 0,
                            .usage = out.usage,
                            .limits = out.limits,
                            .model = out.model,
                            .request_id = out.request_id,
                            .finish_word = out.finish_word,
                            .repaired = out.repaired,
                            .ns = rung_now_ns() - begun,
                            .first_token_ns = out.first_token_ns};
    if (!end->usage.struct_size)
        end->usage = no_usage();
}

static void leave(struct engine_llm *llm, const struct llm_pass *pass, const struct llm_end *end)
{
    bool busy =
        end->error.code == RUNG_ERATELIMIT || strcmp(end->error.symbol, "llm.overloaded") == 0;
    enum llm_gate_end how = end->kind == LLM_ANSWERED              ? LLM_GATE_GOOD
                            : end->kind == LLM_TURNED_AWAY && busy ? LLM_GATE_BUSY
                                                                   : LLM_GATE_OTHER;
    uint64_t hold = end->error.code == RUNG_ERATELIMIT ? end->error.retry_after_ms : 0;
    if (llm->gate)
        llm_gate_leave(llm->gate, pass, how, end->limits.struct_size ? &end->limits : NULL, hold);
    if (end->kind != LLM_ANSWERED)
        return;
    int64_t made = (end->usage.output > 0 ? end->usage.output : 0) +
                   (end->usage.reasoning > 0 ? end->usage.reasoning : 0);
    atomic_fetch_add(&llm->made, (uint64_t)made);
    atomic_fetch_add(&llm->replies, 1);
}

static void count(struct engine *e, const struct engine_llm *llm, const struct llm_end *end,
                  const struct engine_hold *hold)
{
    cJSON *json = llm_end_to_json(end, llm);
    spend(e, llm->stage->name, json, hold);
    cJSON_Delete(json);
}

int32_t llm_send(struct engine *e, struct engine_llm *llm, const struct rung_llm_request *request,
                 const char *key, uint32_t attempt, const char *why, struct rung_arena *arena,
                 struct llm_end *end, struct rung_error *err)
{
    struct engine_hold hold = need_of(llm, request);
    struct llm_pass pass = {0};
    uint64_t in = request_bytes(request) / BYTES_A_TOKEN;
    *end = (struct llm_end){.error = rung_error_init()};
    if (llm->gate && !llm_gate_enter(llm->gate, in + usual_output(llm), e->cancel, &pass))
        return rung_fail(err, RUNG_ECANCELLED, "", "interrupted");
    int32_t status = engine_hold(e, &hold, err);
    bool held = !status;
    /* What is free can be lost and asked again at no cost: the request's record is enough. */
    if (!status && !llm->free)
        status = record_send(e, llm, request, end_key(arena, key, attempt), why, err);
    if (status) {
        if (held)
            engine_release(e, &hold);
        if (llm->gate)
            llm_gate_leave(llm->gate, &pass, LLM_GATE_OTHER, NULL, 0);
        return status;
    }
    call_plugin(e, llm, request, arena, end);
    leave(llm, &pass, end);
    if (llm_is_guess(end->kind))
        end->usage = guess(llm, in, end);
    count(e, llm, end, &hold);
    if (end->kind == LLM_UNFIT &&
        (end->error.code == RUNG_ECANCELLED || end->error.code == RUNG_EMISUSE)) {
        *err = end->error;
        return err->code;
    }
    return RUNG_OK;
}

/* ---- Earlier processes ---- */

static int32_t lose(struct engine *e, const char *key, uint32_t attempt, const cJSON *sent,
                    struct engine_llm *llm, struct llm_end *end, struct rung_error *err)
{
    int64_t in = rung_json_i64(sent, "input_estimate", 0);
    *end = (struct llm_end){.kind = LLM_LOST, .error = rung_error_init(), .usage = no_usage()};
    end->usage = guess(llm, in > 0 ? (uint64_t)in : 0, end);
    rung_log(RUNG_LOG_INFO, "engine",
             "request %s was under way when the run was cut: it may have been billed, and is sent "
             "again",
             key);
    int32_t status = llm_record_end(e, llm, key, attempt, end, err);
    if (!status)
        count(e, llm, end, NULL);
    return status;
}

int32_t llm_recall_end(struct engine *e, const char *key, uint32_t attempt, const char *role,
                       struct rung_arena *arena, struct engine_llm **llm, struct llm_end *end,
                       struct rung_error *err)
{
    const char *name = end_key(arena, key, attempt);
    cJSON *ended = rung_journal_find(e->journal, "sent", name, NULL);
    cJSON *begun = ended ? NULL : rung_journal_find(e->journal, "send", name, NULL);
    int32_t status = RUNG_OK;
    *end = (struct llm_end){.error = rung_error_init()};
    if (ended || begun) {
        struct engine_llm *then =
            engine_llm_named(e, rung_json_text(ended ? ended : begun, "llm", ""));
        *llm = then ? then : llm_pick(e, role, key);
    }
    if (ended) {
        llm_end_from_json(ended, arena, end);
        spend(e, rung_json_text(ended, "llm", ""), ended, NULL);
    } else if (begun && *llm) {
        status = lose(e, key, attempt, begun, *llm, end, err);
    }
    cJSON_Delete(ended);
    cJSON_Delete(begun);
    return status;
}
