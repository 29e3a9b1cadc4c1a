/*
 * Replies of Chat Completions: {"choices":[{"message":{"content","reasoning..."},"finish_reason"}],
 * "usage":{...}}, and their streams, where "delta" stands for "message". Where servers differ, all
 * the forms that are known are read.
 */
#include "reply.h"
#include "calls.h"
#include <string.h>

/* ---- Text and reasoning ---- */

/* The one text of the reply, wherever calls stand. */
static void add_text(struct llm_reply *reply, const char *text)
{
    struct llm_piece *piece = llm_reply_find(reply, RUNG_PART_TEXT, -1);
    if (!text[0])
        return;
    if (!piece)
        piece = llm_reply_add(reply, RUNG_PART_TEXT, -1);
    if (piece)
        llm_text_puts(&piece->text, text);
}

/* A text, or Mistral's list of {"type":"thinking","thinking":[{"type":"text","text"}]}. */
static void add_thinking(struct llm_reply *reply, const cJSON *thinking)
{
    if (cJSON_IsString(thinking))
        llm_reply_reasoning(reply, thinking->valuestring);
    else
        llm_reply_reasoning(reply, NULL);
}

/* content is a text, or a list of {"type":"text","text"} beside other types. */
static void read_content(const cJSON *content, struct llm_reply *reply)
{
    if (cJSON_IsString(content))
        add_text(reply, content->valuestring);
    if (!cJSON_IsArray(content))
        return;
    for (const cJSON *part = content->child; part; part = part->next) {
        const char *type = llm_json_text(part, "type"), *text = llm_json_text(part, "text");
        if (text && (!type || strcmp(type, "text") == 0 || strcmp(type, "output_text") == 0))
            add_text(reply, text);
        else if (type && (strcmp(type, "thinking") == 0 || strcmp(type, "reasoning") == 0))
            add_thinking(reply, llm_json_get(part, "thinking"));
    }
}

static bool is_filled(const cJSON *item)
{
    if (cJSON_IsString(item))
        return item->valuestring[0] != 0;
    return cJSON_IsArray(item) && item->child;
}

/* One of these, by server; where there are two of them they say the same. */
static void read_reasoning(const cJSON *message, const struct llm_asker *asker,
                           struct llm_reply *reply)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking",
                                        "reasoning_details"};
    bool told = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const cJSON *item = llm_json_get(message, names[i]);
        if (!is_filled(item))
            continue;
        if (!told)
            add_thinking(reply, item);
        told = true;
        if (asker->echo && strcmp(asker->echo, names[i]) == 0)
            openai_hold(reply, item);
    }
}

static void read_message(const cJSON *message, const struct llm_asker *asker,
                         struct llm_reply *reply)
{
    read_reasoning(message, asker, reply);
    read_content(llm_json_get(message, "content"), reply);
    openai_add_calls(reply, llm_json_get(message, "tool_calls"));
    openai_add_function(reply, llm_json_get(message, "function_call"));
}

/* ---- Why it ended ---- */

/* Words of all servers; one that is not known ends like "stop". */
static const struct llm_word words[] = {
    {"stop", RUNG_FINISH_STOP},
    {"length", RUNG_FINISH_LENGTH},
    {"max_tokens", RUNG_FINISH_LENGTH},
    {"max_output_tokens", RUNG_FINISH_LENGTH},
    {"model_length", RUNG_FINISH_LENGTH}, /* Mistral */
    {"content_filter", RUNG_FINISH_REFUSED},
    {"refusal", RUNG_FINISH_REFUSED},
    {"sensitive", RUNG_FINISH_REFUSED}, /* Z.ai */
    {"safety", RUNG_FINISH_REFUSED},    /* Gemini's own, through gateways */
    {"recitation", RUNG_FINISH_REFUSED},
    {"prohibited_content", RUNG_FINISH_REFUSED},
    {"tool_calls", RUNG_FINISH_TOOL_CALLS},
    {"tool_use", RUNG_FINISH_TOOL_CALLS},
    {"function_call", RUNG_FINISH_TOOL_CALLS},
    {"model_context_window_exceeded", RUNG_FINISH_CONTEXT},
    {"context_length_exceeded", RUNG_FINISH_CONTEXT},
    {NULL, 0}};

static bool is_failure(const char *reason)
{
    static const char *const failures[] = {
        "error", "insufficient_system_resource", "network_error", "abort", "cancelled", NULL};
    for (size_t i = 0; failures[i]; ++i)
        if (strcmp(reason, failures[i]) == 0)
            return true;
    return false;
}

static int32_t read_finish(const cJSON *choice, const cJSON *message, const struct llm_asker *asker,
                           struct llm_reply *reply, struct rung_error *error)
{
    const char *reason = llm_json_text(choice, "finish_reason");
    const char *refusal = llm_json_text(message, "refusal");
    const cJSON *inner = llm_json_get(choice, "error");
    if (inner || (reason && is_failure(reason)))
        return llm_failed_midway(error, asker, reason ? reason : "error",
                                 cJSON_IsString(inner) ? inner->valuestring
                                                       : llm_json_text(inner, "message"));
    if (refusal && refusal[0] && llm_reply_is_blank(reply) && !llm_reply_has_calls(reply))
        llm_reply_end(reply, RUNG_FINISH_REFUSED, "refusal");
    else if (reason && reason[0])
        llm_reply_end(reply,
                      llm_finish_of(words, reason) ? llm_finish_of(words, reason)
                                                   : (uint32_t)RUNG_FINISH_STOP,
                      reason);
    return RUNG_OK;
}

/* ---- Tokens ---- */

/*
 * prompt_tokens holds the cached ones, completion_tokens the reasoning; but some servers (xAI)
 * count reasoning beside it, which their total_tokens tells.
 */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const cJSON *in = llm_json_get(usage, "prompt_tokens_details");
    const cJSON *out = llm_json_get(usage, "completion_tokens_details");
    const int64_t prompt = llm_json_count(usage, "prompt_tokens");
    const int64_t made = llm_json_count(usage, "completion_tokens");
    const int64_t total = llm_json_count(usage, "total_tokens");
    if (!usage || (prompt < 0 && made < 0))
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(in, "cached_tokens");
    if (u->cache_read < 0)
        u->cache_read = llm_json_count(usage, "prompt_cache_hit_tokens"); /* DeepSeek */
    u->cache_write_5m = llm_json_count(in, "cache_write_tokens");
    u->input = llm_tokens_less(llm_tokens_less(prompt, u->cache_read), u->cache_write_5m);
    u->reasoning = llm_json_count(out, "reasoning_tokens");
    const bool beside =
        u->reasoning > 0 && prompt >= 0 && made >= 0 && total == prompt + made + u->reasoning;
    u->output = beside ? made : llm_tokens_less(made, u->reasoning);
}

/* ---- Whole replies and pieces ---- */

static const cJSON *first_choice(const cJSON *json)
{
    const cJSON *choices = llm_json_get(json, "choices");
    return cJSON_IsArray(choices) ? choices->child : NULL;
}

static void read_names(const cJSON *json, struct llm_reply *reply)
{
    if (!reply->model.len)
        llm_reply_note(&reply->model, llm_json_text(json, "model"));
    if (!reply->request_id.len)
        llm_reply_note(&reply->request_id, llm_json_text(json, "id"));
    read_usage(llm_json_get(json, "usage"), &reply->usage);
}

int32_t openai_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error)
{
    const cJSON *choice = first_choice(json), *message = llm_json_get(choice, "message");
    read_names(json, reply);
    if (!cJSON_IsObject(message)) {
        if (llm_json_get(choice, "error"))
            return read_finish(choice, NULL, asker, reply, error);
        return llm_malformed(error, asker, "has no choices[0].message");
    }
    read_message(message, asker, reply);
    const int32_t status = read_finish(choice, message, asker, reply, error);
    const bool nothing = !reply->ended && llm_reply_is_blank(reply) && !llm_reply_has_calls(reply);
    if (status == RUNG_OK && nothing)
        return llm_malformed(error, asker, "has neither text nor a finish_reason");
    return status;
}

int32_t openai_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                     struct rung_error *error)
{
    const cJSON *choice = first_choice(json), *delta = llm_json_get(choice, "delta");
    read_names(json, reply);
    if (!cJSON_IsObject(choice) || llm_json_count(choice, "index") > 0)
        return RUNG_OK; /* usage only, or a choice that was not asked for */
    if (!cJSON_IsObject(delta))
        delta = llm_json_get(choice, "message");
    read_message(delta, asker, reply);
    llm_hide_thoughts(reply);
    return read_finish(choice, delta, asker, reply, error);
}

void openai_end(const struct llm_asker *asker, struct llm_reply *reply)
{
    llm_drop_thoughts(reply);
    openai_name_calls(reply);
    if (asker->echo)
        openai_release(reply, asker->provider, asker->echo);
}
