/* A conversation as the standard input of a program; see render.h. */
#include "render.h"
#include <string.h>

static const char *role_word(uint32_t role)
{
    return role == RUNG_MSG_SYSTEM ? "system" : role == RUNG_MSG_ASSISTANT ? "assistant" : "user";
}

static struct llm_span span_of(struct rung_text text)
{
    return (struct llm_span){text.ptr, text.len};
}

/* ---- Text ---- */

static void add_part(struct llm_text *out, const struct rung_part *part)
{
    const bool call = part->kind == RUNG_PART_TOOL_CALL;
    if (part->kind == RUNG_PART_OPAQUE)
        return;
    if (part->kind != RUNG_PART_TEXT) {
        if (out->len && out->ptr[out->len - 1] != '\n')
            llm_text_puts(out, "\n");
        llm_text_printf(out, "[%s %s %s] ", call ? "call" : "result", part->name, part->id);
    }
    llm_text_add_utf8(out, part->text.ptr, part->text.len);
    if (part->kind != RUNG_PART_TEXT)
        llm_text_puts(out, "\n");
}

void command_render_text(const struct rung_llm_request *request, struct llm_text *out)
{
    const bool bare = request->n_messages == 1 && request->messages[0].role == RUNG_MSG_USER;
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        if (!bare)
            llm_text_printf(out, "%s# %s\n\n", m ? "\n" : "", role_word(message->role));
        for (uint32_t p = 0; p < message->n_parts; ++p)
            add_part(out, &message->parts[p]);
        if (out->len && out->ptr[out->len - 1] != '\n')
            llm_text_puts(out, "\n");
    }
}

/* ---- JSON ---- */

static void add_content(struct llm_body *body, cJSON *item, const struct rung_message *message)
{
    struct llm_text text = {0};
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].kind == RUNG_PART_TEXT)
            llm_text_add_utf8(&text, message->parts[p].text.ptr, message->parts[p].text.len);
    body->failed |= text.failed;
    llm_body_text(body, item, "content", text.ptr ? text.ptr : "");
    llm_text_free(&text);
}

static void add_tool_parts(struct llm_body *body, cJSON *item, const struct rung_message *message,
                           uint32_t kind, const char *list_name, const char *text_name)
{
    cJSON *list = NULL;
    for (uint32_t p = 0; p < message->n_parts; ++p) {
        const struct rung_part *part = &message->parts[p];
        if (part->kind != kind)
            continue;
        list = list ? list : llm_body_list(body, item, list_name);
        cJSON *one = llm_body_item(body, list);
        llm_body_text(body, one, "id", part->id);
        llm_body_text(body, one, "name", part->name);
        llm_body_bytes(body, one, text_name, span_of(part->text));
    }
}

static void add_message(struct llm_body *body, cJSON *list, const struct rung_message *message)
{
    cJSON *item = llm_body_item(body, list);
    llm_body_text(body, item, "role", role_word(message->role));
    add_content(body, item, message);
    add_tool_parts(body, item, message, RUNG_PART_TOOL_CALL, "tool_calls", "arguments");
    add_tool_parts(body, item, message, RUNG_PART_TOOL_RESULT, "tool_results", "text");
}

static void add_schema(struct llm_body *body, cJSON *object, const char *name,
                       struct rung_text schema)
{
    const char *why;
    llm_body_value(body, object, name, llm_json_parse(span_of(schema), &why));
}

static void add_settings(struct llm_body *body, const struct rung_llm_request *request)
{
    cJSON *tools = request->n_tools ? llm_body_list(body, body->root, "tools") : NULL;
    for (uint32_t t = 0; t < request->n_tools; ++t) {
        cJSON *tool = llm_body_item(body, tools);
        llm_body_text(body, tool, "name", request->tools[t].name);
        llm_body_text(body, tool, "summary",
                      request->tools[t].summary ? request->tools[t].summary : "");
        add_schema(body, tool, "schema", request->tools[t].schema);
    }
    if (request->schema.len)
        add_schema(body, body->root, "schema", request->schema);
    if (request->max_output_tokens)
        llm_body_number(body, body->root, "max_output_tokens", request->max_output_tokens);
    if (request->temperature >= 0)
        llm_body_number(body, body->root, "temperature", request->temperature);
    if (request->effort)
        llm_body_number(body, body->root, "effort", request->effort);
}

void command_render_json(const struct rung_llm_request *request, struct llm_text *out)
{
    struct llm_body body = llm_body_new();
    llm_body_text(&body, body.root, "key", request->key);
    llm_body_text(&body, body.root, "role", request->role);
    llm_body_number(&body, body.root, "seed", (double)(request->seed & 0x1fffffffffffff));
    cJSON *list = llm_body_list(&body, body.root, "messages");
    for (uint32_t m = 0; m < request->n_messages; ++m)
        add_message(&body, list, &request->messages[m]);
    add_settings(&body, request);
    char *text = body.failed ? NULL : cJSON_PrintUnformatted(body.root);
    llm_text_puts(out, text ? text : "");
    llm_text_puts(out, "\n");
    out->failed |= !text;
    cJSON_free(text);
    llm_body_free(&body);
}
