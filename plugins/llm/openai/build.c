/* Requests of Chat Completions; see build.h. */
#include "build.h"
#include <string.h>

/* ---- Messages ---- */

static void add_call(struct llm_body *body, cJSON *list, const struct rung_part *part)
{
    cJSON *call = llm_body_item(body, list);
    llm_body_text(body, call, "id", part->id);
    llm_body_text(body, call, "type", "function");
    cJSON *function = llm_body_object(body, call, "function");
    llm_body_text(body, function, "name", part->name);
    /* Templates parse what stands here, so that it must be an object. */
    cJSON *arguments = llm_part_json(part);
    char *text = arguments ? cJSON_PrintUnformatted(arguments) : NULL;
    body->failed |= !text;
    llm_body_text(body, function, "arguments", text ? text : "");
    cJSON_free(text);
    cJSON_Delete(arguments);
}

/* The members of an echo, such as "reasoning_details", stand beside the content. */
static void add_echo(struct llm_body *body, cJSON *message, const struct rung_part *part)
{
    cJSON *json = llm_part_json(part);
    for (cJSON *item = cJSON_IsObject(json) ? json->child : NULL, *next; item; item = next) {
        next = item->next;
        cJSON *member = cJSON_DetachItemViaPointer(json, item);
        char *name = member->string;
        member->string = NULL;
        if (strncmp(name, "reasoning", 9) == 0)
            llm_body_value(body, message, name, member);
        else
            cJSON_Delete(member);
        cJSON_free(name);
    }
    cJSON_Delete(json);
}

static void add_assistant(const struct openai *o, struct llm_ask *ask, struct llm_body *body,
                          cJSON *message, const struct llm_turn *turn)
{
    struct llm_walk walk = {0}, calls = {0};
    const struct rung_part *part;
    cJSON *list = NULL;
    while ((part = llm_turn_part(ask->request, turn, RUNG_PART_TOOL_CALL, &calls))) {
        list = list ? list : llm_body_list(body, message, "tool_calls");
        add_call(body, list, part);
    }
    while (list && (part = llm_turn_part(ask->request, turn, RUNG_PART_OPAQUE, &walk)))
        if (llm_is_echo_of(part, o->dialect->name))
            add_echo(body, message, part);
}

/* Results stand before what the user says, right behind the calls. */
static void add_results(struct llm_ask *ask, struct llm_body *body, cJSON *list,
                        const struct llm_turn *turn)
{
    struct llm_walk walk = {0};
    const struct rung_part *part;
    while ((part = llm_turn_part(ask->request, turn, RUNG_PART_TOOL_RESULT, &walk))) {
        cJSON *message = llm_body_item(body, list);
        llm_body_text(body, message, "role", "tool");
        llm_body_text(body, message, "tool_call_id", part->id);
        llm_body_bytes(body, message, "content", (struct llm_span){part->text.ptr, part->text.len});
    }
}

/* Contents are texts, and roles alternate: some chat templates take nothing else. */
static void add_turn(const struct openai *o, struct llm_ask *ask, struct llm_body *body,
                     cJSON *list, const struct llm_turn *turn, const char *system)
{
    struct llm_walk walk = {0};
    const bool assistant = turn->role == RUNG_MSG_ASSISTANT;
    const bool calls = assistant && llm_turn_part(ask->request, turn, RUNG_PART_TOOL_CALL, &walk);
    body->failed |= turn->text.failed;
    add_results(ask, body, list, turn);
    if (!turn->text.len && !calls)
        return;
    cJSON *message = llm_body_item(body, list);
    llm_body_text(body, message, "role",
                  turn->role == RUNG_MSG_SYSTEM ? system
                  : assistant                   ? "assistant"
                                                : "user");
    if (turn->text.len)
        llm_body_text(body, message, "content", turn->text.ptr);
    else
        llm_body_value(body, message, "content", cJSON_CreateNull());
    if (assistant)
        add_assistant(o, ask, body, message, turn);
}

static void add_messages(const struct openai *o, struct llm_ask *ask, struct llm_body *body)
{
    cJSON *list = llm_body_list(body, body->root, "messages");
    const char *system = llm_system_word(ask);
    struct llm_turn turn;
    uint32_t at = 0;
    while (llm_turn_next(ask->request, !system, &at, &turn)) {
        if (turn.role == RUNG_MSG_SYSTEM)
            llm_may(ask, LLM_ROLE);
        add_turn(o, ask, body, list, &turn, system);
        llm_text_free(&turn.text);
    }
}

/* ---- The rest ---- */

static void add_tools(struct llm_ask *ask, struct llm_body *body)
{
    const struct rung_llm_request *request = ask->request;
    cJSON *list = NULL;
    for (uint32_t t = 0; t < request->n_tools && llm_may(ask, LLM_TOOLS); ++t) {
        const struct rung_tool *tool = &request->tools[t];
        const char *why;
        list = list ? list : llm_body_list(body, body->root, "tools");
        cJSON *item = llm_body_item(body, list);
        llm_body_text(body, item, "type", "function");
        cJSON *function = llm_body_object(body, item, "function");
        llm_body_text(body, function, "name", tool->name);
        llm_body_text(body, function, "description", tool->summary ? tool->summary : "");
        llm_body_value(body, function, "parameters",
                       llm_json_parse((struct llm_span){tool->schema.ptr, tool->schema.len}, &why));
    }
}

static void add_schema(const struct openai *o, struct llm_ask *ask, struct llm_body *body)
{
    cJSON *schema = o->dialect->schema ? llm_schema(ask) : NULL;
    if (!schema)
        return;
    cJSON *format = llm_body_object(body, body->root, "response_format");
    if (o->dialect->schema == OPENAI_SCHEMA_OBJECT) {
        llm_body_text(body, format, "type", "json_object");
        llm_body_value(body, format, "schema", schema);
        return;
    }
    llm_body_text(body, format, "type", "json_schema");
    cJSON *wrap = llm_body_object(body, format, "json_schema");
    llm_body_text(body, wrap, "name", ask->request->schema_name);
    llm_body_bool(body, wrap, "strict", true);
    llm_body_value(body, wrap, "schema", schema);
}

/* A user who sets the effort gets it sent, whatever the dialect knows. */
static void add_effort(const struct openai *o, struct llm_ask *ask, struct llm_body *body)
{
    static const char *const efforts[LLM_LEVELS] = {"low", "medium", "high", "xhigh", "max"};
    const char *word = llm_effort(ask, o->dialect->effort ? efforts : NULL);
    if (!word)
        return;
    if (o->dialect->effort == OPENAI_EFFORT_OBJECT)
        llm_body_text(body, llm_body_object(body, body->root, "reasoning"), "effort", word);
    else
        llm_body_text(body, body->root, "reasoning_effort", word);
}

void openai_build(struct llm_ask *ask, struct llm_body *body)
{
    const struct openai *o = (const struct openai *)ask->provider;
    llm_body_text(body, body->root, "model", o->base.name);
    add_messages(o, ask, body);
    const int64_t cap = llm_cap(ask);
    if (cap > 0) {
        llm_body_number(body, body->root, llm_cap_name(ask), (double)cap);
        ask->sent |= LLM_CAP;
    }
    add_effort(o, ask, body);
    llm_add_temperature(ask, body, body->root);
    if (o->dialect->seed && llm_may(ask, LLM_SEED))
        llm_body_number(body, body->root, o->dialect->seed, llm_seed(ask->request));
    add_tools(ask, body);
    add_schema(o, ask, body);
    if (ask->stream) {
        llm_body_bool(body, body->root, "stream", true);
        if (o->dialect->usage && llm_may(ask, LLM_USAGE))
            llm_body_bool(body, llm_body_object(body, body->root, "stream_options"),
                          "include_usage", true);
    }
}
