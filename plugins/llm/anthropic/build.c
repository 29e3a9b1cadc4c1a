/* Requests of Messages; see build.h. */
#include "build.h"
#include <string.h>

enum { MAX_MARKS = 4 }; /* cache_control blocks that a request may hold */

struct builder {
    const struct anthropic *a;
    struct llm_ask *ask;
    struct llm_body *body;
    uint32_t surplus; /* marks that are passed over */
};

static bool is_blank(struct rung_text text)
{
    return llm_trim((struct llm_span){text.ptr, text.len}).len == 0; /* the API refuses it */
}

/* ---- Cache marks ---- */

/* Marks beyond those that the API takes: the earliest ones are passed over. */
static uint32_t surplus_marks(const struct rung_llm_request *request)
{
    uint32_t marks = 0;
    for (uint32_t m = 0; m < request->n_messages; ++m)
        for (uint32_t p = 0; p < request->messages[m].n_parts; ++p) {
            const struct rung_part *part = &request->messages[m].parts[p];
            marks += part->cache_mark == 1 && part->kind != RUNG_PART_OPAQUE &&
                     (part->kind != RUNG_PART_TEXT || !is_blank(part->text));
        }
    return marks > MAX_MARKS ? marks - MAX_MARKS : 0;
}

static void add_mark(struct builder *b, cJSON *block, const struct rung_part *part)
{
    if (part->cache_mark != 1)
        return;
    if (b->surplus) {
        --b->surplus;
        return;
    }
    if (!llm_may(b->ask, LLM_CACHE))
        return;
    cJSON *cache = llm_body_object(b->body, block, "cache_control");
    llm_body_text(b->body, cache, "type", "ephemeral");
    if (b->a->hour)
        llm_body_text(b->body, cache, "ttl", "1h");
}

/* ---- Blocks ---- */

static void add_block(struct builder *b, cJSON *list, const struct rung_part *part)
{
    struct llm_body *body = b->body;
    const struct llm_span text = {part->text.ptr, part->text.len};
    cJSON *block = llm_body_item(body, list);
    switch (part->kind) {
    case RUNG_PART_TOOL_CALL:
        llm_body_text(body, block, "type", "tool_use");
        llm_body_text(body, block, "id", part->id);
        llm_body_text(body, block, "name", part->name);
        llm_body_value(body, block, "input", llm_part_json(part));
        break;
    case RUNG_PART_TOOL_RESULT:
        llm_body_text(body, block, "type", "tool_result");
        llm_body_text(body, block, "tool_use_id", part->id);
        llm_body_bytes(body, block, "content", text);
        break;
    default:
        llm_body_text(body, block, "type", "text");
        llm_body_bytes(body, block, "text", text);
    }
    add_mark(b, block, part);
}

/* Thinking as it came, signed; another provider's echoes are passed over. */
static void add_echo(struct builder *b, cJSON *list, const struct rung_part *part)
{
    cJSON *json = llm_is_echo_of(part, "anthropic") ? llm_part_json(part) : NULL;
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return;
    }
    if (!list || !cJSON_AddItemToArray(list, json)) {
        cJSON_Delete(json);
        b->body->failed = true;
    }
}

static void add_part(struct builder *b, cJSON *list, const struct rung_part *part)
{
    if (part->kind == RUNG_PART_OPAQUE)
        add_echo(b, list, part);
    else if (part->kind != RUNG_PART_TEXT || !is_blank(part->text))
        add_block(b, list, part);
}

/* Results stand first in a message, as the API wants it. */
static void add_parts(struct builder *b, cJSON *list, const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].kind == RUNG_PART_TOOL_RESULT)
            add_part(b, list, &message->parts[p]);
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].kind != RUNG_PART_TOOL_RESULT)
            add_part(b, list, &message->parts[p]);
}

static bool holds_something(const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].kind == RUNG_PART_TEXT ? !is_blank(message->parts[p].text)
                                                     : message->parts[p].kind != RUNG_PART_OPAQUE)
            return true;
    return false;
}

/* System messages become the top-level "system"; the API joins neighbours of one role itself. */
static void add_conversation(struct builder *b)
{
    const struct rung_llm_request *request = b->ask->request;
    struct llm_body *body = b->body;
    cJSON *system = NULL, *messages = llm_body_list(body, body->root, "messages");
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        cJSON *list;
        if (!holds_something(message))
            continue;
        if (message->role == RUNG_MSG_SYSTEM) {
            list = system = system ? system : llm_body_list(body, body->root, "system");
        } else {
            cJSON *item = llm_body_item(body, messages);
            llm_body_text(body, item, "role",
                          message->role == RUNG_MSG_ASSISTANT ? "assistant" : "user");
            list = llm_body_list(body, item, "content");
        }
        add_parts(b, list, message);
    }
}

/* ---- The rest ---- */

static void add_tools(struct builder *b)
{
    const struct rung_llm_request *request = b->ask->request;
    cJSON *list = NULL;
    for (uint32_t t = 0; t < request->n_tools && llm_may(b->ask, LLM_TOOLS); ++t) {
        const struct rung_tool *tool = &request->tools[t];
        const char *why;
        list = list ? list : llm_body_list(b->body, b->body->root, "tools");
        cJSON *item = llm_body_item(b->body, list);
        llm_body_text(b->body, item, "name", tool->name);
        llm_body_text(b->body, item, "description", tool->summary ? tool->summary : "");
        llm_body_value(b->body, item, "input_schema",
                       llm_json_parse((struct llm_span){tool->schema.ptr, tool->schema.len}, &why));
    }
}

/* True when the model thinks, which forbids a temperature. */
static bool add_thinking(struct builder *b, int64_t cap)
{
    const char *type = b->a->thinking;
    int64_t budget = b->a->thinking_budget;
    if (!type[0]) {
        budget = llm_budget(b->ask);
        type = budget >= ANTHROPIC_LEAST_THINKING && budget < cap ? "enabled" : "";
    }
    if (strcmp(type, "enabled") == 0 && budget >= cap)
        budget = cap - 1; /* the request's cap may be lower than the setting's */
    const bool room = strcmp(type, "enabled") != 0 || budget >= ANTHROPIC_LEAST_THINKING;
    if (!type[0] || !room || !llm_may(b->ask, LLM_THINKING))
        return false;
    cJSON *thinking = llm_body_object(b->body, b->body->root, "thinking");
    llm_body_text(b->body, thinking, "type", type);
    if (strcmp(type, "enabled") == 0)
        llm_body_number(b->body, thinking, "budget_tokens", (double)budget);
    return strcmp(type, "disabled") != 0;
}

static void add_output_config(struct builder *b)
{
    static const char *const efforts[LLM_LEVELS] = {"low", "medium", "high", "xhigh", "max"};
    const bool by_number = b->a->base.model.n_budgets != 0;
    const char *effort = llm_effort(b->ask, by_number ? NULL : efforts);
    cJSON *schema = llm_schema(b->ask);
    if (!effort && !schema)
        return;
    cJSON *config = llm_body_object(b->body, b->body->root, "output_config");
    if (effort)
        llm_body_text(b->body, config, "effort", effort);
    if (schema) {
        cJSON *format = llm_body_object(b->body, config, "format");
        llm_body_text(b->body, format, "type", "json_schema");
        llm_body_value(b->body, format, "schema", schema);
    }
}

void anthropic_build(struct llm_ask *ask, struct llm_body *body)
{
    const struct anthropic *a = (const struct anthropic *)ask->provider;
    struct builder b = {a, ask, body, surplus_marks(ask->request)};
    const int64_t cap = llm_cap(ask);
    if (a->bedrock)
        llm_body_text(body, body->root, "anthropic_version", "bedrock-2023-05-31");
    else
        llm_body_text(body, body->root, "model", a->base.name);
    llm_body_number(body, body->root, "max_tokens", (double)cap);
    add_conversation(&b);
    add_tools(&b);
    const bool thinks = add_thinking(&b, cap);
    add_output_config(&b);
    if (!thinks)
        llm_add_temperature(ask, body, body->root);
    if (ask->stream)
        llm_body_bool(body, body->root, "stream", true);
}
