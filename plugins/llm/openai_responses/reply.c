/*
 * Replies of Responses: {"status","output":[{"type":"message","content":[{"type":"output_text",
 * "text"}]}, {"type":"function_call"}, {"type":"reasoning"}],"incomplete_details","usage"}. A
 * stream is a row of typed events; pieces are known by their item's place, "output_index".
 */
#include "reply.h"
#include <string.h>

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* ---- Items ---- */

static void read_content(const cJSON *content, struct llm_reply *reply)
{
    for (const cJSON *part = cJSON_IsArray(content) ? content->child : NULL; part;
         part = part->next) {
        const char *type = llm_json_text(part, "type"), *text = llm_json_text(part, "text");
        if (is(type, "output_text") && text)
            llm_reply_quiet_text(reply, text);
        else if (is(type, "refusal") && llm_reply_is_blank(reply))
            llm_reply_end(reply, RUNG_FINISH_REFUSED, "refusal");
    }
}

/* A call that its deltas have begun is made whole by its item. */
static void read_call(const cJSON *item, int64_t index, struct llm_reply *reply)
{
    const char *arguments = llm_json_text(item, "arguments"), *id = llm_json_text(item, "call_id");
    struct llm_piece *call = index >= 0 ? llm_reply_find(reply, RUNG_PART_TOOL_CALL, index) : NULL;
    if (!call)
        call = llm_reply_add(reply, RUNG_PART_TOOL_CALL, index);
    if (!call)
        return;
    llm_reply_note(&call->id, id ? id : llm_json_text(item, "id"));
    llm_reply_note(&call->name, llm_json_text(item, "name"));
    if (arguments && arguments[0]) {
        llm_text_free(&call->text);
        llm_text_puts(&call->text, arguments);
    }
}

static void read_reasoning(const cJSON *item, struct llm_reply *reply)
{
    const char *sealed = llm_json_text(item, "encrypted_content");
    llm_reply_reasoning(reply, NULL);
    if (sealed && sealed[0])
        llm_reply_echo(reply, "openai_responses", item);
}

static void read_item(const cJSON *item, int64_t index, bool texts, struct llm_reply *reply)
{
    const char *type = llm_json_text(item, "type");
    if (is(type, "message") && texts)
        read_content(llm_json_get(item, "content"), reply);
    else if (is(type, "function_call"))
        read_call(item, index, reply);
    else if (is(type, "reasoning"))
        read_reasoning(item, reply);
}

/* ---- Tokens and the end ---- */

/* input_tokens holds what the cache read and wrote, output_tokens the reasoning. */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const cJSON *in = llm_json_get(usage, "input_tokens_details");
    const int64_t prompt = llm_json_count(usage, "input_tokens");
    const int64_t made = llm_json_count(usage, "output_tokens");
    if (prompt < 0 && made < 0)
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(in, "cached_tokens");
    u->cache_write_5m = llm_json_count(in, "cache_write_tokens");
    u->input = llm_tokens_less(llm_tokens_less(prompt, u->cache_read), u->cache_write_5m);
    u->reasoning = llm_json_count(llm_json_get(usage, "output_tokens_details"), "reasoning_tokens");
    u->output = llm_tokens_less(made, u->reasoning);
}

static int32_t read_end(const cJSON *response, const struct llm_asker *asker,
                        struct llm_reply *reply, struct rung_error *error)
{
    static const struct llm_word words[] = {{"max_output_tokens", RUNG_FINISH_LENGTH},
                                            {"max_tokens", RUNG_FINISH_LENGTH},
                                            {"content_filter", RUNG_FINISH_REFUSED},
                                            {NULL, 0}};
    const char *status = llm_json_text(response, "status");
    const char *reason = llm_json_text(llm_json_get(response, "incomplete_details"), "reason");
    llm_reply_note(&reply->model, llm_json_text(response, "model"));
    llm_reply_note(&reply->request_id, llm_json_text(response, "id"));
    read_usage(llm_json_get(response, "usage"), &reply->usage);
    if (is(status, "failed") || is(status, "cancelled"))
        return llm_failed_midway(error, asker, status, NULL);
    if (is(status, "incomplete")) {
        const uint32_t finish = llm_finish_of(words, reason);
        llm_reply_end(reply, finish ? finish : (uint32_t)RUNG_FINISH_LENGTH,
                      reason ? reason : status);
    } else if (is(status, "completed")) {
        llm_reply_end(reply, RUNG_FINISH_STOP, status);
    }
    return RUNG_OK;
}

/* ---- Whole replies ---- */

int32_t responses_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error)
{
    const cJSON *output = llm_json_get(json, "output");
    if (!cJSON_IsArray(output))
        return llm_malformed(error, asker, "has no list \"output\"");
    for (const cJSON *item = output->child; item; item = item->next)
        read_item(item, -1, true, reply);
    const int32_t status = read_end(json, asker, reply, error);
    if (status == RUNG_OK && !reply->ended && llm_reply_is_blank(reply) &&
        !llm_reply_has_calls(reply))
        return llm_malformed(error, asker, "has neither text nor a status that is known");
    return status;
}

/* ---- Streams ---- */

static void grow_call(const cJSON *event, struct llm_reply *reply)
{
    const int64_t index = llm_json_count(event, "output_index");
    const char *delta = llm_json_text(event, "delta");
    struct llm_piece *call = llm_reply_find(reply, RUNG_PART_TOOL_CALL, index);
    if (!call)
        call = llm_reply_add(reply, RUNG_PART_TOOL_CALL, index);
    if (call && delta)
        llm_text_puts(&call->text, delta);
}

/* The last event holds the whole reply: its texts and calls count where none came before. */
static int32_t read_last(const cJSON *response, const struct llm_asker *asker,
                         struct llm_reply *reply, struct rung_error *error)
{
    const cJSON *output = llm_json_get(response, "output");
    const bool empty = llm_reply_is_blank(reply) && !llm_reply_has_calls(reply);
    const bool fresh = reply->n_pieces == 0;
    for (const cJSON *item = empty && cJSON_IsArray(output) ? output->child : NULL; item;
         item = item->next)
        if (fresh || !is(llm_json_text(item, "type"), "reasoning"))
            read_item(item, -1, true, reply);
    reply->through = true;
    return read_end(response, asker, reply, error);
}

int32_t responses_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error)
{
    const char *type = llm_json_text(json, "type"), *delta = llm_json_text(json, "delta");
    const cJSON *response = llm_json_get(json, "response"), *item = llm_json_get(json, "item");
    if (is(type, "response.created") || is(type, "response.in_progress")) {
        llm_reply_note(&reply->model, llm_json_text(response, "model"));
        llm_reply_note(&reply->request_id, llm_json_text(response, "id"));
    } else if (is(type, "response.output_text.delta") && delta) {
        llm_reply_text(reply, delta);
    } else if (is(type, "response.refusal.delta") && llm_reply_is_blank(reply)) {
        llm_reply_end(reply, RUNG_FINISH_REFUSED, "refusal");
    } else if (is(type, "response.function_call_arguments.delta")) {
        grow_call(json, reply);
    } else if (is(type, "response.output_item.added") &&
               is(llm_json_text(item, "type"), "function_call")) {
        read_call(item, llm_json_count(json, "output_index"), reply);
    } else if (is(type, "response.output_item.done")) {
        read_item(item, llm_json_count(json, "output_index"), false, reply);
    } else if ((is(type, "response.reasoning_text.delta") ||
                is(type, "response.reasoning_summary_text.delta")) &&
               delta) {
        llm_reply_reasoning(reply, delta);
    } else if (is(type, "response.completed") || is(type, "response.incomplete") ||
               is(type, "response.failed")) {
        return read_last(response, asker, reply, error);
    }
    return RUNG_OK; /* events that tell nothing new */
}
