/*
 * Replies of Messages: {"content":[{"type":"text","text"}, {"type":"thinking"}], "stop_reason",
 * "usage":{...}}, and their streams, where blocks come by index: start, deltas, stop.
 */
#include "reply.h"
#include <string.h>

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* ---- Why it ended ---- */

static const struct llm_word words[] = {
    {"end_turn", RUNG_FINISH_STOP},
    {"stop_sequence", RUNG_FINISH_STOP},
    {"max_tokens", RUNG_FINISH_LENGTH},
    {"pause_turn", RUNG_FINISH_LENGTH}, /* more would come if it were asked to go on */
    {"tool_use", RUNG_FINISH_TOOL_CALLS},
    {"refusal", RUNG_FINISH_REFUSED},
    {"model_context_window_exceeded", RUNG_FINISH_CONTEXT},
    {NULL, 0}};

/* A reason that is not known ends like end_turn when there is something. */
static void read_end(const cJSON *object, struct llm_reply *reply)
{
    const char *reason = llm_json_text(object, "stop_reason");
    const uint32_t finish = llm_finish_of(words, reason);
    if (finish)
        llm_reply_end(reply, finish, reason);
    else if (reason && reason[0] && (!llm_reply_is_blank(reply) || llm_reply_has_calls(reply)))
        llm_reply_end(reply, RUNG_FINISH_STOP, reason);
}

/* ---- Tokens ---- */

/* Takes over what is told: a stream tells it in two parts, of which the second one is whole. */
static void take(int64_t *to, int64_t count)
{
    if (count >= 0)
        *to = count;
}

/* input_tokens leaves out what the cache read and wrote; output_tokens holds the thinking. */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const cJSON *written = llm_json_get(usage, "cache_creation");
    const int64_t made = llm_json_count(usage, "output_tokens");
    take(&u->input, llm_json_count(usage, "input_tokens"));
    if (u->input < 0 && made < 0)
        return;
    u->estimated = 0;
    take(&u->cache_read, llm_json_count(usage, "cache_read_input_tokens"));
    take(&u->cache_write_5m, llm_json_count(written, "ephemeral_5m_input_tokens"));
    take(&u->cache_write_1h, llm_json_count(written, "ephemeral_1h_input_tokens"));
    if (u->cache_write_5m < 0 && u->cache_write_1h < 0)
        take(&u->cache_write_5m, llm_json_count(usage, "cache_creation_input_tokens"));
    take(&u->reasoning,
         llm_json_count(llm_json_get(usage, "output_tokens_details"), "thinking_tokens"));
    if (made >= 0)
        u->output = llm_tokens_less(made, u->reasoning);
}

static void read_names(const cJSON *message, struct llm_reply *reply)
{
    llm_reply_note(&reply->model, llm_json_text(message, "model"));
    llm_reply_note(&reply->request_id, llm_json_text(message, "id"));
    read_usage(llm_json_get(message, "usage"), &reply->usage);
}

/* ---- Whole replies ---- */

static void read_block(const cJSON *block, struct llm_reply *reply)
{
    const char *type = llm_json_text(block, "type"), *text = llm_json_text(block, "text");
    const char *thinking = llm_json_text(block, "thinking");
    const char *signature = llm_json_text(block, "signature");
    if (is(type, "text") && text && text[0]) {
        llm_reply_quiet_text(reply, text);
    } else if (is(type, "thinking")) {
        llm_reply_reasoning(reply, thinking);
        if (signature && signature[0])
            llm_reply_echo(reply, "anthropic", block);
    } else if (is(type, "redacted_thinking")) {
        llm_reply_reasoning(reply, NULL);
        llm_reply_echo(reply, "anthropic", block);
    } else if (is(type, "tool_use")) {
        llm_reply_call(reply, llm_json_text(block, "id"), llm_json_text(block, "name"),
                       llm_json_get(block, "input"));
    }
}

int32_t anthropic_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error)
{
    const cJSON *content = llm_json_get(json, "content");
    read_names(json, reply);
    if (!cJSON_IsArray(content))
        return llm_malformed(error, asker, "has no list \"content\"");
    for (const cJSON *block = content->child; block; block = block->next)
        read_block(block, reply);
    read_end(json, reply);
    if (!reply->ended && llm_reply_is_blank(reply) && !llm_reply_has_calls(reply))
        return llm_malformed(error, asker, "has neither text nor a stop_reason that is known");
    return RUNG_OK;
}

/* ---- Streams ---- */

/* A block of thinking grows as a call without a name does: thoughts in text, its signature in id.
 */
static void begin_block(const cJSON *event, struct llm_reply *reply)
{
    const cJSON *block = llm_json_get(event, "content_block");
    const char *type = llm_json_text(block, "type"), *text = llm_json_text(block, "text");
    const int64_t index = llm_json_count(event, "index");
    struct llm_piece *piece = NULL;
    if (is(type, "text")) {
        llm_reply_text(reply, text ? text : "");
    } else if (is(type, "redacted_thinking")) {
        read_block(block, reply);
    } else if (is(type, "thinking")) {
        llm_reply_reasoning(reply, NULL);
        llm_reply_add(reply, RUNG_PART_OPAQUE, index);
    } else if (is(type, "tool_use")) {
        piece = llm_reply_add(reply, RUNG_PART_TOOL_CALL, index);
    }
    if (piece) {
        llm_reply_note(&piece->id, llm_json_text(block, "id"));
        llm_reply_note(&piece->name, llm_json_text(block, "name"));
    }
}

static void grow_block(const cJSON *event, struct llm_reply *reply)
{
    const cJSON *delta = llm_json_get(event, "delta");
    const char *type = llm_json_text(delta, "type"), *text = llm_json_text(delta, "text");
    const char *thinking = llm_json_text(delta, "thinking");
    const char *signature = llm_json_text(delta, "signature");
    const char *json = llm_json_text(delta, "partial_json");
    const int64_t index = llm_json_count(event, "index");
    struct llm_piece *echo = llm_reply_find(reply, RUNG_PART_OPAQUE, index);
    struct llm_piece *call = llm_reply_find(reply, RUNG_PART_TOOL_CALL, index);
    if (is(type, "text_delta") && text)
        llm_reply_text(reply, text);
    else if (is(type, "input_json_delta") && json && call)
        llm_text_puts(&call->text, json);
    else if (is(type, "thinking_delta") && thinking)
        llm_reply_reasoning(reply, thinking);
    if (thinking && echo)
        llm_text_puts(&echo->text, thinking);
    if (signature && echo)
        llm_text_puts(&echo->id, signature);
}

int32_t anthropic_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error)
{
    const char *type = llm_json_text(json, "type");
    (void)asker;
    (void)error;
    if (is(type, "message_start")) {
        read_names(llm_json_get(json, "message"), reply);
    } else if (is(type, "content_block_start")) {
        begin_block(json, reply);
    } else if (is(type, "content_block_delta")) {
        grow_block(json, reply);
    } else if (is(type, "message_delta")) {
        read_usage(llm_json_get(json, "usage"), &reply->usage);
        read_end(llm_json_get(json, "delta"), reply);
    } else if (is(type, "message_stop")) {
        reply->through = true;
    }
    return RUNG_OK; /* pings, and events that are not known */
}

/* ---- The end ---- */

/* {"type":"thinking","thinking","signature"} out of what grew; false when it isn't signed. */
static bool close_thinking(struct llm_piece *piece)
{
    cJSON *block = cJSON_CreateObject();
    struct llm_body body = {.root = block, .failed = !block};
    llm_body_text(&body, block, "type", "thinking");
    llm_body_text(&body, block, "thinking", piece->text.ptr ? piece->text.ptr : "");
    llm_body_text(&body, block, "signature", piece->id.ptr ? piece->id.ptr : "");
    char *text = body.failed ? NULL : cJSON_PrintUnformatted(block);
    const bool is_signed = piece->id.len > 0 && text;
    llm_text_free(&piece->text);
    llm_text_free(&piece->id);
    llm_text_puts(&piece->text, text ? text : "");
    llm_reply_note(&piece->name, "anthropic");
    cJSON_free(text);
    llm_body_free(&body);
    return is_signed;
}

static void drop_piece(struct llm_reply *reply, uint32_t at)
{
    llm_text_free(&reply->pieces[at].text);
    llm_text_free(&reply->pieces[at].id);
    llm_text_free(&reply->pieces[at].name);
    memmove(&reply->pieces[at], &reply->pieces[at + 1],
            (reply->n_pieces - at - 1) * sizeof *reply->pieces);
    --reply->n_pieces;
}

/* The API takes no thinking back that isn't signed. */
void anthropic_end(const struct llm_asker *asker, struct llm_reply *reply)
{
    (void)asker;
    for (uint32_t i = 0; i < reply->n_pieces;) {
        struct llm_piece *piece = &reply->pieces[i];
        if (piece->kind == RUNG_PART_TOOL_CALL && !piece->text.len)
            llm_text_puts(&piece->text, "{}"); /* a tool without arguments */
        if (piece->kind == RUNG_PART_OPAQUE && piece->index >= 0 && !close_thinking(piece))
            drop_piece(reply, i);
        else
            ++i;
    }
}
