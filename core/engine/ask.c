/* Logical requests to models: picked by role, journaled before and after, answered once. */
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TRIES = 4, FIRST_WAIT_MS = 500, MAX_WAIT_MS = 60000 };

static const char *message_role(uint32_t role)
{
    static const char *const names[] = {"unknown", "system", "user", "assistant"};
    return names[role <= RUNG_MSG_ASSISTANT ? role : 0];
}

void engine_prompt_hash(const char *role, const struct rung_message *messages, uint32_t n,
                        char hex[RUNG_SHA256_HEX])
{
    struct rung_buf text = {0};
    rung_buf_puts(&text, role);
    for (uint32_t i = 0; i < n; i++) {
        rung_buf_printf(&text, "\n%s", message_role(messages[i].role));
        for (uint32_t p = 0; p < messages[i].n_parts; p++)
            if (messages[i].parts[p].kind == RUNG_PART_TEXT) {
                rung_buf_putc(&text, '\n');
                rung_buf_add(&text, messages[i].parts[p].text.ptr, messages[i].parts[p].text.len);
            }
    }
    rung_sha256(text.ptr, text.len, hex);
    rung_buf_free(&text);
}

static bool serves(const struct rung_stage *stage, const char *role)
{
    for (size_t i = 0; stage->roles && stage->roles[i]; i++)
        if (strcmp(stage->roles[i], role) == 0)
            return true;
    return !stage->roles || !stage->roles[0];
}

/* By weight, from a hash of the key: the same request goes to the same model after a resume. */
static const struct engine_llm *pick(const struct engine *e, const char *role, const char *key)
{
    char hex[RUNG_SHA256_HEX];
    double total = 0, at;
    const struct engine_llm *last = NULL;
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        total += serves(e->llms[i].stage, role) ? e->llms[i].stage->weight : 0;
    rung_sha256(key, strlen(key), hex);
    hex[13] = 0;
    at = (double)strtoull(hex, NULL, 16) / (double)(UINT64_C(1) << 52) * total;
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++) {
        if (!serves(e->llms[i].stage, role))
            continue;
        last = &e->llms[i];
        at -= last->stage->weight;
        if (at < 0)
            return last;
    }
    return last;
}

static cJSON *messages_json(const struct rung_message *messages, uint32_t n)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        cJSON *m = cJSON_CreateObject();
        struct rung_buf text = {0};
        for (uint32_t p = 0; p < messages[i].n_parts; p++)
            rung_buf_add(&text, messages[i].parts[p].text.ptr, messages[i].parts[p].text.len);
        cJSON_AddStringToObject(m, "role", message_role(messages[i].role));
        rung_json_add_text(m, "text", (struct rung_text){rung_buf_text(&text), text.len});
        cJSON_AddItemToArray(list, m);
        rung_buf_free(&text);
    }
    return list;
}

/* Written before the request is sent, so that a crash leaves a trace of what was paid for. */
static int32_t record_request(struct engine *e, const char *key, const char *role, const char *llm,
                              const struct rung_message *messages, uint32_t n,
                              struct rung_error *err)
{
    cJSON *known = rung_journal_find(e->journal, "request", key, NULL);
    if (known) {
        cJSON_Delete(known);
        rung_log(RUNG_LOG_INFO, "engine", "request %s was sent before the run was cut; sent again",
                 key);
        return RUNG_OK;
    }
    char hash[RUNG_SHA256_HEX];
    engine_prompt_hash(role, messages, n, hash);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "role", role);
    cJSON_AddStringToObject(json, "llm", llm);
    cJSON_AddStringToObject(json, "prompt_sha256", hash);
    cJSON_AddItemToObject(json, "messages", messages_json(messages, n));
    int32_t status = rung_journal_append(e->journal, "request", key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

static const char *finish_name(uint32_t finish)
{
    static const char *const names[] = {"",        "stop",      "length", "tool_calls",
                                        "refused", "reasoning", "context"};
    return finish < sizeof names / sizeof *names ? names[finish] : "";
}

static uint32_t finish_of(const char *name)
{
    for (uint32_t f = RUNG_FINISH_STOP; f <= RUNG_FINISH_CONTEXT; f++)
        if (strcmp(finish_name(f), name) == 0)
            return f;
    return RUNG_FINISH_STOP;
}

static const char *response_text(const struct rung_llm_response *r, struct rung_arena *arena)
{
    struct rung_buf text = {0};
    for (uint32_t i = 0; i < r->n_parts; i++)
        if (r->parts[i].kind == RUNG_PART_TEXT)
            rung_buf_add(&text, r->parts[i].text.ptr, r->parts[i].text.len);
    const char *copy = rung_arena_strndup(arena, rung_buf_text(&text), text.len);
    rung_buf_free(&text);
    return copy;
}

static void add_usage(cJSON *json, const struct rung_usage *u)
{
    cJSON *usage = cJSON_AddObjectToObject(json, "usage");
    rung_json_add_i64(usage, "input", u->input);
    rung_json_add_i64(usage, "cache_read", u->cache_read);
    rung_json_add_i64(usage, "cache_write_5m", u->cache_write_5m);
    rung_json_add_i64(usage, "cache_write_1h", u->cache_write_1h);
    rung_json_add_i64(usage, "output", u->output);
    rung_json_add_i64(usage, "reasoning", u->reasoning);
    cJSON_AddBoolToObject(usage, "estimated", u->estimated != 0);
}

static cJSON *reply_json(const struct rung_llm_response *r, const char *llm, const char *text,
                         uint64_t ns)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "llm", llm);
    cJSON_AddStringToObject(json, "finish", finish_name(r->finish));
    rung_json_add_text(json, "text", rung_text_of(text));
    cJSON_AddStringToObject(json, "model", r->model ? r->model : "");
    if (r->request_id)
        cJSON_AddStringToObject(json, "request_id", r->request_id);
    rung_json_add_f64(json, "seconds", (double)ns * 1e-9);
    add_usage(json, &r->usage);
    return json;
}

/* Counts a reply, new or from the journal, and hands it out. */
static void take_reply(struct engine *e, const cJSON *json, struct rung_arena *arena,
                       struct engine_reply *out)
{
    const cJSON *usage = rung_json_get(json, "usage");
    int64_t in = rung_json_i64(usage, "input", 0), cached = rung_json_i64(usage, "cache_read", 0);
    int64_t made = rung_json_i64(usage, "output", 0),
            thought = rung_json_i64(usage, "reasoning", 0);
    pthread_mutex_lock(&e->lock);
    e->spent.calls++;
    engine_spend(e, rung_json_text(json, "llm", ""), usage);
    e->spent.tokens_in += (uint64_t)(in > 0 ? in : 0) + (uint64_t)(cached > 0 ? cached : 0);
    e->spent.tokens_out += (uint64_t)(made > 0 ? made : 0) + (uint64_t)(thought > 0 ? thought : 0);
    pthread_mutex_unlock(&e->lock);
    out->text = rung_arena_strdup(arena, rung_json_text(json, "text", ""));
    out->finish = finish_of(rung_json_text(json, "finish", "stop"));
}

static bool worth_a_retry(int32_t status)
{
    return status == RUNG_ERATELIMIT || status == RUNG_EUNAVAILABLE || status == RUNG_EIO;
}

static void wait_ms(struct engine *e, uint64_t ms)
{
    for (uint64_t slept = 0; slept < ms && !rung_cancel_requested(e->cancel); slept += 50)
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
}

static int32_t complete(struct engine *e, const struct engine_llm *llm,
                        const struct rung_llm_request *req, struct rung_arena *arena,
                        struct rung_llm_response *out, struct rung_error *err)
{
    uint64_t wait = FIRST_WAIT_MS;
    int32_t status = RUNG_OK;
    for (int try = 0; try < MAX_TRIES; try++) {
        *err = rung_error_init();
        *out = (struct rung_llm_response){.struct_size = sizeof *out};
        struct rung_call call = {
            .struct_size = sizeof call, .arena = arena, .cancel = e->cancel, .error = err};
        RUNG_INVOKE(status, llm->instance, struct rung_llm_ops, complete, &call, req, out);
        if (!worth_a_retry(status) || try + 1 == MAX_TRIES)
            return status;
        uint64_t hinted = err->retry_after_ms ? err->retry_after_ms : wait;
        rung_log(RUNG_LOG_WARN, llm->stage->name, "%s; trying again in %llu ms", err->message,
                 (unsigned long long)hinted);
        wait_ms(e, hinted < MAX_WAIT_MS ? hinted : MAX_WAIT_MS);
        wait *= 2;
    }
    return status;
}

static int32_t ask_model(struct engine *e, const char *key, const char *role,
                         const struct rung_message *messages, uint32_t n, struct rung_arena *arena,
                         struct engine_reply *out, struct rung_error *err)
{
    const struct engine_llm *llm = pick(e, role, key);
    if (!llm)
        return rung_fail(err, RUNG_ECONFIG, "llm.role",
                         "%s: no llm of the pipeline has the role '%s'", e->pipeline->file, role);
    int32_t status = engine_may_call(e, err);
    if (!status)
        status = record_request(e, key, role, llm->stage->name, messages, n, err);
    if (status)
        return status;
    struct rung_llm_response response;
    struct rung_llm_request request = {.struct_size = sizeof request,
                                       .n_messages = n,
                                       .key = key,
                                       .role = role,
                                       .messages = messages,
                                       .temperature = -1,
                                       .seed = e->seed};
    uint64_t start = rung_now_ns();
    status = complete(e, llm, &request, arena, &response, err);
    if (status)
        return status;
    const char *text = response_text(&response, arena);
    cJSON *json = reply_json(&response, llm->stage->name, text, rung_now_ns() - start);
    status = rung_journal_append(e->journal, "reply", key, json, NULL, err);
    if (!status)
        take_reply(e, json, arena, out);
    cJSON_Delete(json);
    return status;
}

int32_t engine_ask(struct engine *e, const char *key, const char *role,
                   const struct rung_message *messages, uint32_t n, struct rung_arena *arena,
                   struct engine_reply *out, struct rung_error *err)
{
    cJSON *known = rung_journal_find(e->journal, "reply", key, NULL);
    if (!known)
        return ask_model(e, key, role, messages, n, arena, out, err);
    take_reply(e, known, arena, out);
    cJSON_Delete(known);
    return RUNG_OK;
}
