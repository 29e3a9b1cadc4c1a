/*
 * Logical requests to models. An outcome is a state: each end of a sending leads to the next
 * sending, to another model, or to the reply. docs/llm.md tells the states.
 */
#include "engine/ask.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/llm_join.h"
#include "engine/tools.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOW_EFFORT = 1, OVERDUE_ROUNDS = 2, POLL_MS = 50 };

/* ---- Waiting, and going to another model ---- */

static uint64_t random_of(const struct ask *a)
{
    char hex[RUNG_SHA256_HEX];
    const char *text = rung_arena_printf(a->arena, "%s@%u", a->key, a->attempt);
    rung_sha256(text, strlen(text), hex);
    hex[15] = 0;
    return strtoull(hex, NULL, 16);
}

static void wait_ms(const struct ask *a, uint64_t ms)
{
    uint64_t end = rung_now_ns() + ms * 1000000;
    for (uint64_t now = rung_now_ns(); now < end && !rung_cancel_requested(a->e->cancel);
         now = rung_now_ns()) {
        uint64_t left = end - now, step = POLL_MS * UINT64_C(1000000);
        nanosleep(&(struct timespec){.tv_nsec = (long)(left < step ? left : step)}, NULL);
    }
}

/* A fault that belongs to one model, so that the loop does not take it for one of the workers. */
static int32_t blame(const struct llm_end *end, struct rung_error *err)
{
    *err = end->error;
    if (err->code == RUNG_EIO || err->code == RUNG_EBUDGET || err->code == RUNG_ETIMEOUT)
        err->code = RUNG_EUNAVAILABLE;
    return err->code;
}

/* The next model in the pipeline's order; an error when none is left. */
static int32_t switch_llm(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    struct engine *e = a->e;
    a->given_up |= UINT64_C(1) << (a->llm - e->llms);
    struct engine_llm *next = llm_pick_other(e, a->role, a->given_up);
    const char *what =
        end->kind == LLM_ANSWERED ? llm_finish_name(end->finish) : end->error.message;
    if (next) {
        rung_log(RUNG_LOG_WARN, a->llm->stage->name, "%s: %s; llm '%s' takes the request over",
                 a->key, what, next->stage->name);
        a->llm = next;
        a->why = "switch";
        a->tries = a->shrunk = 0;
        a->waited_ms = 0;
        return RUNG_OK;
    }
    if (end->kind == LLM_ANSWERED)
        return rung_fail(err, RUNG_EUNAVAILABLE, "llm.none", "%s: no other llm is left", a->key);
    return blame(end, err);
}

static int32_t stop_llm(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    struct engine *e = a->e;
    if (!atomic_exchange(&a->llm->stopped, 1))
        rung_log(RUNG_LOG_WARN, a->llm->stage->name,
                 "%s; no more is asked of it for the rest of the run", end->error.message);
    int32_t status = switch_llm(a, end, err);
    if (!status || !llm_all_stopped(e, a->role))
        return status;
    struct rung_error none = rung_error_init();
    rung_fail(&none, err->code, err->symbol, "no llm is left for the role '%s': %s", a->role,
              err->message);
    engine_give_up(e, &none);
    *err = none;
    return status;
}

/* Turned away, silent or cut off: once more after a while, else another model. */
static int32_t again(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    const struct rung_limits *limits = &a->e->pipeline->limits;
    uint64_t wait = llm_backoff_ms(a->tries, end->error.retry_after_ms, random_of(a));
    double waited = (double)(a->waited_ms + wait) * 1e-3;
    if (++a->tries >= limits->llm_tries || waited > limits->llm_wait_s) {
        rung_log(RUNG_LOG_WARN, a->llm->stage->name, "%s: given up after %u tries and %.1f s",
                 a->key, a->tries, (double)a->waited_ms * 1e-3);
        return switch_llm(a, end, err);
    }
    rung_log(RUNG_LOG_WARN, a->llm->stage->name, "%s; trying again in %llu ms", end->error.message,
             (unsigned long long)wait);
    wait_ms(a, wait);
    a->waited_ms += wait;
    a->why = "again";
    return RUNG_OK;
}

/* ---- Answers that are not yet the reply ---- */

static int32_t finish(struct ask *a, uint32_t how)
{
    a->done = true;
    a->finish = how;
    return RUNG_OK;
}

static void raise_cap(struct ask *a)
{
    uint64_t now = a->cap ? a->cap : a->llm->cap, most = a->llm->stage->output_cap;
    if (most && now && now < most)
        a->cap = (uint32_t)(now * 2 < most ? now * 2 : most);
}

static int32_t on_length(struct ask *a, const struct llm_end *end)
{
    const char *piece = llm_parts_text(end->parts, end->n_parts, a->arena);
    llm_join(&a->text, piece, strlen(piece));
    if (!*piece || a->continues >= a->e->pipeline->conversation.continues)
        return finish(a, RUNG_FINISH_LENGTH);
    a->continues++;
    raise_cap(a);
    llm_talk_add_reply(&a->talk, end, false);
    llm_talk_add(&a->talk,
                 engine_message(a->arena, RUNG_MSG_USER,
                                engine_prompt_go_on(a->e, a->arena, rung_buf_text(&a->text))));
    a->why = "go_on";
    return RUNG_OK;
}

static int32_t on_reasoning(struct ask *a)
{
    if (a->reasoned)
        return finish(a, RUNG_FINISH_REASONING);
    uint32_t before = a->cap;
    a->reasoned = true;
    raise_cap(a);
    if (a->cap == before)
        a->effort = LOW_EFFORT;
    a->why = "reasoning";
    return RUNG_OK;
}

/* A model that won't even so is left for the next one; the last one's refusal is the reply. */
static int32_t on_refusal(struct ask *a, const struct llm_end *end)
{
    struct rung_error none = rung_error_init();
    if (!a->rephrased) {
        a->rephrased = true;
        llm_talk_append(&a->talk, engine_prompt_rephrase(a->e));
        a->why = "rephrase";
        return RUNG_OK;
    }
    return switch_llm(a, end, &none) ? finish(a, RUNG_FINISH_REFUSED) : RUNG_OK;
}

static int32_t on_context(struct ask *a, const struct llm_end *end)
{
    struct rung_error none = rung_error_init();
    if (llm_talk_shrink(&a->talk, &a->shrunk)) {
        rung_log(RUNG_LOG_WARN, a->llm->stage->name,
                 "%s: the prompt is too long; sent again, cut to %llu bytes", a->key,
                 (unsigned long long)llm_talk_bytes(a->talk.messages, a->talk.n));
        a->why = "shrink";
        return RUNG_OK;
    }
    return switch_llm(a, end, &none) ? finish(a, RUNG_FINISH_CONTEXT) : RUNG_OK;
}

/* ---- Tools ---- */

static const char *bounded(struct ask *a, const char *result)
{
    int64_t left = a->e->pipeline->conversation.tool_bytes - a->tool_bytes;
    if (left < 256)
        return "No more results are given in this conversation. Send the final answer now.";
    result = engine_cut_middle(a->arena, result, (size_t)left);
    a->tool_bytes += (int64_t)strlen(result);
    return result;
}

static int32_t answer_call(struct ask *a, const struct rung_part *call, uint32_t index,
                           struct rung_part *out, struct rung_error *err)
{
    const char *key = rung_arena_printf(a->arena, "%s@%u/%u", a->key, a->attempt - 1, index);
    const char *result = "The limit of tool calls is reached. Send the final answer now.";
    int32_t status = RUNG_OK;
    if (a->tool_calls < a->e->pipeline->conversation.tool_calls) {
        a->tool_calls++;
        status = engine_tool_call(a->e, a->llm, call, key, a->arena, &result, err);
        result = status ? "" : bounded(a, result);
    }
    *out = (struct rung_part){.struct_size = sizeof *out,
                              .kind = RUNG_PART_TOOL_RESULT,
                              .text = rung_text_of(result),
                              .id = call->id,
                              .name = call->name};
    return status;
}

static int32_t on_tools(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    struct rung_part *results = RUNG_ARENA_NEW(a->arena, struct rung_part, end->n_parts);
    uint32_t n = 0, before = a->tool_calls;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < end->n_parts && !status; i++)
        if (end->parts[i].kind == RUNG_PART_TOOL_CALL) {
            status = answer_call(a, &end->parts[i], n, &results[n], err);
            n++;
        }
    if (status)
        return status;
    a->overdue += a->tool_calls == before;
    if (!n || a->overdue > OVERDUE_ROUNDS) {
        const char *text = llm_parts_text(end->parts, end->n_parts, a->arena);
        llm_join(&a->text, text, strlen(text));
        return finish(a, n ? RUNG_FINISH_TOOL_CALLS : RUNG_FINISH_STOP);
    }
    llm_talk_add_reply(&a->talk, end, true);
    llm_talk_add(&a->talk, (struct rung_message){.struct_size = sizeof(struct rung_message),
                                                 .role = RUNG_MSG_USER,
                                                 .parts = results,
                                                 .n_parts = n});
    a->why = "tool";
    return RUNG_OK;
}

/* ---- The states ---- */

static int32_t on_answer(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    bool last = end->finish == RUNG_FINISH_STOP || a->llm->free;
    a->tries = 0;
    a->waited_ms = 0;
    if (last) {
        const char *text = llm_parts_text(end->parts, end->n_parts, a->arena);
        llm_join(&a->text, text, strlen(text));
        return finish(a, end->finish);
    }
    switch (end->finish) {
    case RUNG_FINISH_LENGTH:
        return on_length(a, end);
    case RUNG_FINISH_TOOL_CALLS:
        return on_tools(a, end, err);
    case RUNG_FINISH_REFUSED:
        return on_refusal(a, end);
    case RUNG_FINISH_REASONING:
        return on_reasoning(a);
    case RUNG_FINISH_CONTEXT:
        return on_context(a, end);
    default:
        return rung_fail(err, RUNG_EMISUSE, "llm.finish", "llm '%s' ended a reply with %u",
                         a->llm->stage->name, end->finish);
    }
}

static int32_t act(struct ask *a, const struct llm_end *end, struct rung_error *err)
{
    switch (end->kind) {
    case LLM_ANSWERED:
        return on_answer(a, end, err);
    case LLM_NO_KEY:
        engine_give_up(a->e, &end->error);
        return blame(end, err);
    case LLM_OUT:
        return stop_llm(a, end, err);
    case LLM_UNFIT:
        return switch_llm(a, end, err);
    default:
        return again(a, end, err);
    }
}

static int32_t send(struct ask *a, struct rung_error *err)
{
    uint32_t n_tools = 0;
    const struct rung_tool *tools = engine_tools_offered(a->e, a->llm, a->arena, &n_tools);
    struct rung_llm_request request = {.struct_size = sizeof request,
                                       .n_messages = a->talk.n,
                                       .key = a->key,
                                       .role = a->role,
                                       .messages = a->talk.messages,
                                       .tools = tools,
                                       .n_tools = n_tools,
                                       .effort = a->effort,
                                       .max_output_tokens = a->cap,
                                       .temperature = -1,
                                       .seed = a->e->seed};
    int32_t status =
        llm_send(a->e, a->llm, &request, a->key, a->attempt, a->why, a->arena, &a->last, err);
    if (!status && !ask_ends_all(a, &a->last))
        status = llm_record_end(a->e, a->llm, a->key, a->attempt, &a->last, err);
    return status;
}

/* The next sending, of an earlier process or now, and what follows from it. */
static int32_t step(struct ask *a, struct rung_error *err)
{
    struct engine_llm *llm = a->llm;
    int32_t status = RUNG_OK;
    a->last = (struct llm_end){0};
    if (a->known)
        status = llm_recall_end(a->e, a->key, a->attempt, a->role, a->arena, &llm, &a->last, err);
    bool recalled = a->last.kind != 0;
    if (!status && !recalled)
        status = send(a, err);
    if (status)
        return status;
    a->attempt++;
    a->known = recalled;
    if (!recalled)
        return act(a, &a->last, err);
    /* An answer led on then and does so now; a failure says nothing of today. */
    a->llm = llm ? llm : a->llm;
    a->why = "resumed";
    return a->last.kind == LLM_ANSWERED ? act(a, &a->last, err) : RUNG_OK;
}

/* ---- The logical request ---- */

static int32_t ask_models(struct ask *a, const struct rung_message *messages, uint32_t n,
                          struct engine_reply *out, struct rung_error *err)
{
    llm_talk_open(&a->talk, a->arena, messages, n);
    a->llm = llm_pick(a->e, a->role, a->key);
    if (!a->llm)
        return rung_fail(err, RUNG_ECONFIG, "llm.role",
                         "%s: no llm of the pipeline is left for the role '%s'",
                         a->e->pipeline->file, a->role);
    int32_t status = ask_record_request(a, err);
    while (!status && !a->done)
        status = step(a, err);
    if (!status)
        status = ask_record_reply(a, err);
    else
        ask_record_failure(a, err);
    out->text = rung_arena_strndup(a->arena, rung_buf_text(&a->text), a->text.len);
    out->finish = a->finish;
    return status;
}

int32_t engine_ask(struct engine *e, const char *key, const char *role,
                   const struct rung_message *messages, uint32_t n, struct rung_arena *arena,
                   struct engine_reply *out, struct rung_error *err)
{
    struct ask a = {.e = e, .key = key, .role = role, .arena = arena, .why = "first"};
    cJSON *known = rung_journal_find(e->journal, "reply", key, NULL);
    int32_t status = RUNG_OK;
    if (known)
        ask_take_reply(&a, known, out);
    else
        status = ask_known_failure(&a, err);
    if (!known && !status)
        status = ask_models(&a, messages, n, out, err);
    rung_buf_free(&a.text);
    cJSON_Delete(known);
    return status;
}
