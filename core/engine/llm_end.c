/* How a sending ended: what it means, and its record. */
#include "engine/llm.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

/* ---- Meaning ---- */

static bool is(const struct rung_error *error, const char *symbol)
{
    return strcmp(error->symbol, symbol) == 0;
}

static bool is_silence(const struct rung_error *error)
{
    static const char *const symbols[] = {"http.first_byte",     "http.stalled",
                                          "http.deadline",       "http.first_event",
                                          "http.between_events", NULL};
    for (size_t i = 0; symbols[i]; i++)
        if (is(error, symbols[i]))
            return true;
    return false;
}

uint32_t llm_kind_of(int32_t status, const struct rung_error *error, bool cut)
{
    if (status == RUNG_OK)
        return LLM_ANSWERED;
    if (cut)
        return LLM_CUT;
    if (is(error, "llm.key") ||
        (status == RUNG_ECONFIG && rung_starts_with(error->symbol, "http.")))
        return LLM_NO_KEY;
    if (is(error, "llm.quota") || is(error, "llm.model"))
        return LLM_OUT;
    if (is_silence(error) || is(error, "http.broken") || is(error, "http.too_large"))
        return LLM_UNSURE;
    if (status == RUNG_ERATELIMIT || status == RUNG_EUNAVAILABLE || status == RUNG_EIO)
        return LLM_TURNED_AWAY;
    if (status == RUNG_ETIMEOUT)
        return is(error, "http.connect_timeout") ? LLM_TURNED_AWAY : LLM_UNSURE;
    return LLM_UNFIT;
}

bool llm_may_repeat(uint32_t kind)
{
    return kind == LLM_CUT || kind == LLM_UNSURE || kind == LLM_TURNED_AWAY;
}

bool llm_is_guess(uint32_t kind)
{
    return kind == LLM_CUT || kind == LLM_UNSURE || kind == LLM_LOST;
}

/* ---- Words ---- */

static const char *const finish_names[] = {"",        "stop",      "length", "tool_calls",
                                           "refused", "reasoning", "context"};
static const char *const kind_names[] = {"",      "answered", "cut",    "unsure", "turned_away",
                                         "unfit", "out",      "no_key", "lost"};
static const char *const part_names[] = {"", "text", "tool_call", "tool_result", "opaque"};

static uint32_t index_of(const char *const *names, uint32_t n, const char *name, uint32_t fallback)
{
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return fallback;
}

const char *llm_finish_name(uint32_t finish)
{
    return finish < sizeof finish_names / sizeof *finish_names ? finish_names[finish] : "";
}

uint32_t llm_finish_of(const char *name)
{
    return index_of(finish_names, sizeof finish_names / sizeof *finish_names, name,
                    RUNG_FINISH_STOP);
}

const char *llm_parts_text(const struct rung_part *parts, uint32_t n, struct rung_arena *arena)
{
    struct rung_buf text = {0};
    for (uint32_t i = 0; i < n; i++)
        if (parts[i].kind == RUNG_PART_TEXT)
            rung_buf_add(&text, parts[i].text.ptr, parts[i].text.len);
    const char *copy = rung_arena_strndup(arena, rung_buf_text(&text), text.len);
    rung_buf_free(&text);
    return copy;
}

/* ---- The record ---- */

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

static cJSON *parts_to_json(const struct rung_part *parts, uint32_t n)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        const struct rung_part *p = &parts[i];
        if (p->kind < RUNG_PART_TEXT || p->kind > RUNG_PART_OPAQUE)
            continue;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", part_names[p->kind]);
        rung_json_add_text(item, "text", p->text);
        if (p->id)
            cJSON_AddStringToObject(item, "id", p->id);
        if (p->name)
            cJSON_AddStringToObject(item, "name", p->name);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

/* What is free has no bill that could be guessed wrongly. */
static const char *billed(const struct llm_end *end, const struct engine_llm *llm)
{
    bool silent = end->kind == LLM_ANSWERED && end->usage.estimated && !llm->free;
    if (llm_is_guess(end->kind) || silent)
        return "guessed";
    return end->kind == LLM_ANSWERED ? "said" : "no";
}

static uint64_t known(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

/* At the price of today; nothing where it is not known. */
static void add_cost(cJSON *json, const struct llm_end *end, const struct engine_llm *llm)
{
    const struct rung_usage *u = &end->usage;
    const struct engine_tokens tokens = {known(u->input),          known(u->cache_read),
                                         known(u->cache_write_5m), known(u->cache_write_1h),
                                         known(u->output),         known(u->reasoning)};
    if (llm->price.given || llm->free)
        rung_json_add_f64(json, "usd", engine_cost(&llm->price, &tokens));
}

cJSON *llm_end_to_json(const struct llm_end *end, const struct engine_llm *llm)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "llm", llm->stage->name);
    cJSON_AddStringToObject(json, "end", kind_names[end->kind]);
    const char *bill = billed(end, llm);
    if (strcmp(bill, "said") != 0)
        cJSON_AddStringToObject(json, "billed", bill);
    if (end->kind == LLM_ANSWERED)
        cJSON_AddStringToObject(json, "finish", llm_finish_name(end->finish));
    if (end->kind != LLM_ANSWERED && end->error.code) {
        cJSON_AddStringToObject(json, "symbol", end->error.symbol);
        rung_json_add_text(json, "message", rung_text_of(end->error.message));
    }
    if (end->finish_word)
        cJSON_AddStringToObject(json, "finish_word", end->finish_word);
    if (end->repaired)
        cJSON_AddStringToObject(json, "repaired", end->repaired);
    if (end->model)
        cJSON_AddStringToObject(json, "model", end->model);
    if (end->request_id)
        cJSON_AddStringToObject(json, "request_id", end->request_id);
    add_cost(json, end, llm);
    rung_json_add_f64(json, "seconds", (double)end->ns * 1e-9);
    if (end->first_token_ns)
        rung_json_add_f64(json, "first_token_s", (double)end->first_token_ns * 1e-9);
    add_usage(json, &end->usage);
    if (end->kind == LLM_ANSWERED)
        cJSON_AddItemToObject(json, "parts", parts_to_json(end->parts, end->n_parts));
    return json;
}

static const char *copy(struct rung_arena *arena, const cJSON *json, const char *name)
{
    const char *text = rung_json_text(json, name, NULL);
    return text ? rung_arena_strdup(arena, text) : NULL;
}

/* A journal may be damaged: a part of no kind becomes an empty text. */
static void parts_from_json(const cJSON *list, struct rung_arena *arena, struct llm_end *end)
{
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    struct rung_part *parts = RUNG_ARENA_NEW(arena, struct rung_part, n);
    const cJSON *item;
    end->parts = parts;
    cJSON_ArrayForEach(item, list)
    {
        struct rung_part *p = &parts[end->n_parts++];
        *p = (struct rung_part){
            .struct_size = sizeof *p,
            .kind = index_of(part_names, sizeof part_names / sizeof *part_names,
                             rung_json_text(item, "kind", ""), RUNG_PART_TEXT),
            .text = rung_text_of(rung_arena_strdup(arena, rung_json_text(item, "text", ""))),
            .id = copy(arena, item, "id"),
            .name = copy(arena, item, "name")};
    }
}

void llm_end_from_json(const cJSON *json, struct rung_arena *arena, struct llm_end *end)
{
    *end = (struct llm_end){.error = rung_error_init()};
    end->kind = index_of(kind_names, sizeof kind_names / sizeof *kind_names,
                         rung_json_text(json, "end", ""), LLM_LOST);
    end->finish = llm_finish_of(rung_json_text(json, "finish", ""));
    parts_from_json(rung_json_get(json, "parts"), arena, end);
}
