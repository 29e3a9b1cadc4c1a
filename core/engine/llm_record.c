/* Logical requests in the journal: before anything is sent, at their end, and read back. */
#include "engine/ask.h"
#include "base/json.h"
#include "base/status.h"

#include <string.h>

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

int32_t ask_record_request(struct ask *a, struct rung_error *err)
{
    char hash[RUNG_SHA256_HEX];
    cJSON *known = rung_journal_find(a->e->journal, "request", a->key, NULL);
    a->known = known != NULL;
    cJSON_Delete(known);
    if (a->known)
        return RUNG_OK;
    engine_prompt_hash(a->role, a->talk.messages, a->talk.n, hash);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "role", a->role);
    cJSON_AddStringToObject(json, "llm", a->llm->stage->name);
    cJSON_AddStringToObject(json, "prompt_sha256", hash);
    cJSON_AddItemToObject(json, "messages", messages_json(a->talk.messages, a->talk.n));
    int32_t status = rung_journal_append(a->e->journal, "request", a->key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

bool ask_ends_all(const struct ask *a, const struct llm_end *end)
{
    return end->kind == LLM_ANSWERED && (end->finish == RUNG_FINISH_STOP || a->llm->free);
}

static void set_text(cJSON *json, const char *name, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(json, name);
    cJSON_AddStringToObject(json, name, text);
}

int32_t ask_record_reply(struct ask *a, struct rung_error *err)
{
    cJSON *json = llm_end_to_json(&a->last, a->llm);
    /* The texts of its sendings are in their own records, and so is what these cost. */
    if (!ask_ends_all(a, &a->last))
        set_text(json, "billed", "no");
    cJSON_DeleteItemFromObjectCaseSensitive(json, "parts");
    cJSON_DeleteItemFromObjectCaseSensitive(json, "end");
    set_text(json, "finish", llm_finish_name(a->finish));
    if (!a->last.model)
        cJSON_AddStringToObject(json, "model", "");
    if (a->attempt > 1)
        cJSON_AddNumberToObject(json, "sendings", a->attempt);
    rung_json_add_text(json, "text", (struct rung_text){rung_buf_text(&a->text), a->text.len});
    int32_t status = rung_journal_append(a->e->journal, "reply", a->key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}

void ask_record_failure(struct ask *a, const struct rung_error *why)
{
    struct rung_error err = rung_error_init();
    if (why->code == RUNG_EBUDGET || why->code == RUNG_ECANCELLED)
        return;
    cJSON *known = rung_journal_find(a->e->journal, "failure", a->key, NULL);
    if (!known) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "code", why->code);
        cJSON_AddStringToObject(json, "symbol", why->symbol);
        rung_json_add_text(json, "message", rung_text_of(why->message));
        if (rung_journal_append(a->e->journal, "failure", a->key, json, NULL, &err))
            engine_give_up(a->e, &err);
        cJSON_Delete(json);
    }
    cJSON_Delete(known);
}

/* ---- What the journal holds already ---- */

/* Sendings with a record of their own, up to `most` of them; the others cost what the reply says.
 */
static void count_sendings(struct ask *a, int64_t most)
{
    struct rung_error err = rung_error_init();
    for (int64_t i = 0; i < most && i < UINT32_MAX; i++)
        if (llm_recall_end(a->e, a->key, (uint32_t)i, a->role, a->arena, &a->llm, &a->last, &err) ||
            !a->last.kind)
            return;
}

void ask_take_reply(struct ask *a, const cJSON *json, struct engine_reply *out)
{
    bool whole = strcmp(rung_json_text(json, "billed", "said"), "no") != 0;
    count_sendings(a, rung_json_i64(json, "sendings", 1) - whole);
    pthread_mutex_lock(&a->e->lock);
    engine_spend(a->e, rung_json_text(json, "llm", ""), json);
    pthread_mutex_unlock(&a->e->lock);
    out->text = rung_arena_strdup(a->arena, rung_json_text(json, "text", ""));
    out->finish = llm_finish_of(rung_json_text(json, "finish", "stop"));
}

/* The decision after it was made with it. */
int32_t ask_known_failure(struct ask *a, struct rung_error *err)
{
    const char *next = rung_arena_printf(a->arena, "%u", a->e->decisions + 1);
    cJSON *failure = rung_journal_find(a->e->journal, "failure", a->key, NULL);
    cJSON *decision = failure ? rung_journal_find(a->e->journal, "decision", next, NULL) : NULL;
    int32_t status = RUNG_OK;
    if (decision) {
        count_sendings(a, UINT32_MAX);
        status = rung_fail(err, (int32_t)rung_json_i64(failure, "code", RUNG_EUNAVAILABLE),
                           rung_json_text(failure, "symbol", ""), "%s",
                           rung_json_text(failure, "message", ""));
    }
    cJSON_Delete(failure);
    cJSON_Delete(decision);
    return status;
}
