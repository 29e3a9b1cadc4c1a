/*
 * Replies of generateContent: {"candidates":[{"content":{"parts":[{"text","thought"}]},
 * "finishReason"}], "promptFeedback":{"blockReason"}, "usageMetadata":{...}}.
 */
#include "reply.h"
#include <string.h>

static bool read_parts(const cJSON *parts, struct llm_reply *reply)
{
    bool called = false;
    for (const cJSON *part = cJSON_IsArray(parts) ? parts->child : NULL; part; part = part->next) {
        const char *text = llm_json_text(part, "text");
        if (cJSON_IsTrue(llm_json_get(part, "thought")))
            reply->reasoned = true;
        else if (text)
            llm_text_puts(&reply->text, text);
        called |= llm_json_get(part, "functionCall") != NULL;
    }
    return called;
}

/* False for a reason that tells nothing ("OTHER"), is not known, or is absent. */
static bool finish_of(const char *reason, uint32_t *finish)
{
    static const struct {
        const char *word;
        uint32_t finish;
    } words[] = {{"STOP", RUNG_FINISH_STOP},
                 {"MAX_TOKENS", RUNG_FINISH_LENGTH},
                 {"SAFETY", RUNG_FINISH_REFUSED},
                 {"RECITATION", RUNG_FINISH_REFUSED},
                 {"LANGUAGE", RUNG_FINISH_REFUSED},
                 {"BLOCKLIST", RUNG_FINISH_REFUSED},
                 {"PROHIBITED_CONTENT", RUNG_FINISH_REFUSED},
                 {"SPII", RUNG_FINISH_REFUSED},
                 {"IMAGE_SAFETY", RUNG_FINISH_REFUSED},
                 {"MALFORMED_FUNCTION_CALL", RUNG_FINISH_TOOL_CALLS},
                 {"UNEXPECTED_TOOL_CALL", RUNG_FINISH_TOOL_CALLS},
                 {"TOO_MANY_TOOL_CALLS", RUNG_FINISH_TOOL_CALLS}};
    for (size_t i = 0; reason && i < sizeof words / sizeof *words; ++i)
        if (strcmp(reason, words[i].word) == 0) {
            *finish = words[i].finish;
            return true;
        }
    return false;
}

/* promptTokenCount holds the cached ones; candidatesTokenCount leaves out the thoughts. */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const int64_t prompt = llm_json_count(usage, "promptTokenCount");
    const int64_t tools = llm_json_count(usage, "toolUsePromptTokenCount");
    u->output = llm_json_count(usage, "candidatesTokenCount");
    if (prompt < 0 && u->output < 0)
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(usage, "cachedContentTokenCount");
    u->input = llm_tokens_less(prompt, u->cache_read) + (tools > 0 ? tools : 0);
    u->reasoning = llm_json_count(usage, "thoughtsTokenCount");
    if (u->output < 0)
        u->output = 0; /* left out when there are none */
}

static int32_t read_reply(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                          struct rung_error *error)
{
    const cJSON *candidates = llm_json_get(json, "candidates");
    const cJSON *candidate = cJSON_IsArray(candidates) ? candidates->child : NULL;
    const cJSON *feedback = llm_json_get(json, "promptFeedback");
    reply->model = llm_json_text(json, "modelVersion");
    reply->request_id = llm_json_text(json, "responseId");
    read_usage(llm_json_get(json, "usageMetadata"), &reply->usage);
    if (!cJSON_IsObject(candidate)) {
        if (!llm_json_text(feedback, "blockReason"))
            return llm_malformed(error, asker, "has neither candidates nor a blockReason");
        reply->finish = RUNG_FINISH_REFUSED;
        return RUNG_OK;
    }
    const cJSON *content = llm_json_get(candidate, "content");
    const bool called = read_parts(llm_json_get(content, "parts"), reply);
    const bool told = finish_of(llm_json_text(candidate, "finishReason"), &reply->finish);
    if (called)
        reply->finish = RUNG_FINISH_TOOL_CALLS;
    else if (!told && !reply->text.len)
        return llm_malformed(error, asker, "has neither text nor a finishReason that is known");
    return RUNG_OK;
}

const struct llm_dialect gemini_dialect = {.read = read_reply};
