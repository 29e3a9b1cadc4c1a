/*
 * Replies of Messages: {"content":[{"type":"text","text"}, {"type":"thinking"}], "stop_reason",
 * "usage":{...}}.
 */
#include "reply.h"
#include <string.h>

static void read_content(const cJSON *content, struct llm_reply *reply)
{
    for (const cJSON *block = content->child; block; block = block->next) {
        const char *type = llm_json_text(block, "type"), *text = llm_json_text(block, "text");
        if (type && strcmp(type, "text") == 0 && text)
            llm_text_puts(&reply->text, text);
        else if (type && (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0))
            reply->reasoned = true;
    }
}

/* False for a reason that is not known, or none. */
static bool finish_of(const char *reason, uint32_t *finish)
{
    static const struct {
        const char *word;
        uint32_t finish;
    } words[] = {{"end_turn", RUNG_FINISH_STOP},
                 {"stop_sequence", RUNG_FINISH_STOP},
                 {"max_tokens", RUNG_FINISH_LENGTH},
                 {"pause_turn", RUNG_FINISH_LENGTH}, /* more would come if it were asked to go on */
                 {"tool_use", RUNG_FINISH_TOOL_CALLS},
                 {"refusal", RUNG_FINISH_REFUSED},
                 {"model_context_window_exceeded", RUNG_FINISH_CONTEXT}};
    for (size_t i = 0; reason && i < sizeof words / sizeof *words; ++i)
        if (strcmp(reason, words[i].word) == 0) {
            *finish = words[i].finish;
            return true;
        }
    return false;
}

/* input_tokens leaves out what the cache read and wrote; output_tokens holds the thinking. */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const cJSON *written = llm_json_get(usage, "cache_creation");
    const int64_t made = llm_json_count(usage, "output_tokens");
    u->input = llm_json_count(usage, "input_tokens");
    if (u->input < 0 && made < 0)
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(usage, "cache_read_input_tokens");
    u->cache_write_5m = llm_json_count(written, "ephemeral_5m_input_tokens");
    u->cache_write_1h = llm_json_count(written, "ephemeral_1h_input_tokens");
    if (u->cache_write_5m < 0 && u->cache_write_1h < 0)
        u->cache_write_5m = llm_json_count(usage, "cache_creation_input_tokens");
    u->reasoning = llm_json_count(llm_json_get(usage, "output_tokens_details"), "thinking_tokens");
    u->output = llm_tokens_less(made, u->reasoning);
}

static int32_t read_reply(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                          struct rung_error *error)
{
    const cJSON *content = llm_json_get(json, "content");
    reply->model = llm_json_text(json, "model");
    reply->request_id = llm_json_text(json, "id");
    read_usage(llm_json_get(json, "usage"), &reply->usage);
    if (!cJSON_IsArray(content))
        return llm_malformed(error, asker, "has no list \"content\"");
    read_content(content, reply);
    if (!finish_of(llm_json_text(json, "stop_reason"), &reply->finish) && !reply->text.len)
        return llm_malformed(error, asker, "has neither text nor a stop_reason that is known");
    return RUNG_OK;
}

const struct llm_dialect anthropic_dialect = {.read = read_reply};
