/*
 * Replies of generateContent: {"candidates":[{"content":{"parts":[{"text","thought"}]},
 * "finishReason"}], "promptFeedback":{"blockReason"}, "usageMetadata":{...}}. A stream is a row of
 * such objects, whose parts follow on each other.
 */
#include "reply.h"
#include <stdio.h>
#include <string.h>

/* ---- Parts ---- */

/* {"thoughtSignature"}, before the part that it came on. */
static void add_signature(const cJSON *part, struct llm_reply *reply)
{
    const char *signature = llm_json_text(part, "thoughtSignature");
    cJSON *echo = signature && signature[0] ? cJSON_CreateObject() : NULL;
    if (echo && cJSON_AddStringToObject(echo, "thoughtSignature", signature))
        llm_reply_echo(reply, "gemini", echo);
    cJSON_Delete(echo);
}

static void read_part(const cJSON *part, struct llm_reply *reply, bool show)
{
    const char *text = llm_json_text(part, "text");
    const cJSON *call = llm_json_get(part, "functionCall");
    if (cJSON_IsTrue(llm_json_get(part, "thought"))) {
        llm_reply_reasoning(reply, text);
        return;
    }
    add_signature(part, reply);
    if (text && text[0] && show)
        llm_reply_text(reply, text);
    else if (text && text[0])
        llm_reply_quiet_text(reply, text);
    if (cJSON_IsObject(call))
        llm_reply_call(reply, llm_json_text(call, "id"), llm_json_text(call, "name"),
                       llm_json_get(call, "args"));
}

/* ---- Why it ended ---- */

/* What is not here ("OTHER", "FINISH_REASON_UNSPECIFIED") tells nothing. */
static const struct llm_word words[] = {{"STOP", RUNG_FINISH_STOP},
                                        {"MAX_TOKENS", RUNG_FINISH_LENGTH},
                                        {"SAFETY", RUNG_FINISH_REFUSED},
                                        {"RECITATION", RUNG_FINISH_REFUSED},
                                        {"LANGUAGE", RUNG_FINISH_REFUSED},
                                        {"BLOCKLIST", RUNG_FINISH_REFUSED},
                                        {"PROHIBITED_CONTENT", RUNG_FINISH_REFUSED},
                                        {"SPII", RUNG_FINISH_REFUSED},
                                        {"MODEL_ARMOR", RUNG_FINISH_REFUSED},
                                        {"IMAGE_SAFETY", RUNG_FINISH_REFUSED},
                                        {"IMAGE_PROHIBITED_CONTENT", RUNG_FINISH_REFUSED},
                                        {"IMAGE_RECITATION", RUNG_FINISH_REFUSED},
                                        {"MALFORMED_FUNCTION_CALL", RUNG_FINISH_TOOL_CALLS},
                                        {"UNEXPECTED_TOOL_CALL", RUNG_FINISH_TOOL_CALLS},
                                        {"TOO_MANY_TOOL_CALLS", RUNG_FINISH_TOOL_CALLS},
                                        {NULL, 0}};

static void read_end(const cJSON *candidate, struct llm_reply *reply)
{
    const char *reason = llm_json_text(candidate, "finishReason");
    const uint32_t finish = llm_finish_of(words, reason);
    if (finish)
        llm_reply_end(reply, finish, reason);
    else if (reason && reason[0] && (!llm_reply_is_blank(reply) || llm_reply_has_calls(reply)))
        llm_reply_end(reply, RUNG_FINISH_STOP, reason);
}

/* ---- Tokens ---- */

/* promptTokenCount holds the cached ones; candidatesTokenCount leaves out the thoughts. */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const int64_t prompt = llm_json_count(usage, "promptTokenCount");
    const int64_t tools = llm_json_count(usage, "toolUsePromptTokenCount");
    const int64_t made = llm_json_count(usage, "candidatesTokenCount");
    if (prompt < 0 && made < 0)
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(usage, "cachedContentTokenCount");
    u->input = llm_tokens_less(prompt, u->cache_read) + (tools > 0 ? tools : 0);
    u->reasoning = llm_json_count(usage, "thoughtsTokenCount");
    u->output = made < 0 ? 0 : made; /* left out when there are none */
}

/* ---- Whole replies and pieces ---- */

static const cJSON *first_candidate(const cJSON *json)
{
    const cJSON *candidates = llm_json_get(json, "candidates");
    return cJSON_IsArray(candidates) ? candidates->child : NULL;
}

/* False when neither candidates nor a blocked prompt is there. */
static bool read_chunk(const cJSON *json, struct llm_reply *reply, bool show)
{
    const cJSON *candidate = first_candidate(json);
    const char *blocked = llm_json_text(llm_json_get(json, "promptFeedback"), "blockReason");
    llm_reply_note(&reply->model, llm_json_text(json, "modelVersion"));
    llm_reply_note(&reply->request_id, llm_json_text(json, "responseId"));
    read_usage(llm_json_get(json, "usageMetadata"), &reply->usage);
    if (!cJSON_IsObject(candidate)) {
        if (blocked)
            llm_reply_end(reply, RUNG_FINISH_REFUSED, blocked);
        return blocked != NULL;
    }
    const cJSON *parts = llm_json_get(llm_json_get(candidate, "content"), "parts");
    for (const cJSON *part = cJSON_IsArray(parts) ? parts->child : NULL; part; part = part->next)
        read_part(part, reply, show);
    read_end(candidate, reply);
    return true;
}

int32_t gemini_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error)
{
    if (!read_chunk(json, reply, false))
        return llm_malformed(error, asker, "has neither candidates nor a blockReason");
    if (!reply->ended && llm_reply_is_blank(reply) && !llm_reply_has_calls(reply))
        return llm_malformed(error, asker, "has neither text nor a finishReason that is known");
    return RUNG_OK;
}

int32_t gemini_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                     struct rung_error *error)
{
    (void)asker;
    (void)error;
    read_chunk(json, reply, true);
    return RUNG_OK;
}

/* Calls come without ids; results go back by name and order. */
void gemini_end(const struct llm_asker *asker, struct llm_reply *reply)
{
    char id[32];
    (void)asker;
    for (uint32_t i = 0; i < reply->n_pieces; ++i) {
        struct llm_piece *piece = &reply->pieces[i];
        snprintf(id, sizeof id, "call_%u", i);
        if (piece->kind == RUNG_PART_TOOL_CALL && !piece->id.len)
            llm_reply_note(&piece->id, id);
    }
}
