/* Requests of generateContent; see build.h. */
#include "build.h"
#include <ctype.h>
#include <string.h>

/* ---- Contents ---- */

static void add_text(struct llm_body *body, cJSON *parts, const struct llm_text *text)
{
    llm_body_text(body, llm_body_item(body, parts), "text", text->ptr);
    body->failed |= text->failed;
}

/* What the system says comes as one instruction, wherever it stands. */
static void add_system(struct llm_ask *ask, struct llm_body *body)
{
    struct llm_text all = llm_system_text(ask->request);
    if (all.len) {
        cJSON *system = llm_body_object(body, body->root, "systemInstruction");
        add_text(body, llm_body_list(body, system, "parts"), &all);
    }
    body->failed |= all.failed;
    llm_text_free(&all);
}

static void add_call(struct llm_body *body, cJSON *item, const struct rung_part *part)
{
    cJSON *call = llm_body_object(body, item, "functionCall");
    llm_body_text(body, call, "name", part->name);
    llm_body_value(body, call, "args", llm_part_json(part));
}

/* The response must be an object: another text stands in one under "result". */
static void add_result(struct llm_body *body, cJSON *item, const struct rung_part *part)
{
    const char *why;
    cJSON *answer = llm_body_object(body, item, "functionResponse");
    llm_body_text(body, answer, "name", part->name);
    cJSON *json = llm_json_parse((struct llm_span){part->text.ptr, part->text.len}, &why);
    if (cJSON_IsObject(json)) {
        llm_body_value(body, answer, "response", json);
        return;
    }
    cJSON_Delete(json);
    llm_body_bytes(body, llm_body_object(body, answer, "response"), "result",
                   (struct llm_span){part->text.ptr, part->text.len});
}

/* A signature goes back on the part that follows it, where it came from. */
static void add_signature(struct llm_body *body, cJSON *item, const struct rung_part *echo)
{
    cJSON *json = echo ? llm_part_json(echo) : NULL;
    const char *signature = llm_json_text(json, "thoughtSignature");
    if (signature)
        llm_body_text(body, item, "thoughtSignature", signature);
    cJSON_Delete(json);
}

static void add_part(struct llm_body *body, cJSON *parts, const struct rung_part *part,
                     const struct rung_part *echo)
{
    if (part->kind == RUNG_PART_TEXT && !part->text.len && !echo)
        return;
    cJSON *item = llm_body_item(body, parts);
    if (part->kind == RUNG_PART_TOOL_CALL)
        add_call(body, item, part);
    else if (part->kind == RUNG_PART_TOOL_RESULT)
        add_result(body, item, part);
    else
        llm_body_bytes(body, item, "text", (struct llm_span){part->text.ptr, part->text.len});
    add_signature(body, item, echo);
}

/* A turn with signatures: its parts stand apart, as they came. */
static void add_parts(struct llm_ask *ask, struct llm_body *body, cJSON *parts,
                      const struct llm_turn *turn)
{
    static const struct rung_part nothing = {
        .struct_size = sizeof nothing, .kind = RUNG_PART_TEXT, .text = {"", 0}};
    const struct rung_part *echo = NULL;
    for (uint32_t m = turn->first; m < turn->end; ++m)
        for (uint32_t p = 0; p < ask->request->messages[m].n_parts; ++p) {
            const struct rung_part *part = &ask->request->messages[m].parts[p];
            if (part->kind == RUNG_PART_OPAQUE) {
                echo = llm_is_echo_of(part, "gemini") ? part : echo;
                continue;
            }
            add_part(body, parts, part, echo);
            echo = NULL;
        }
    if (echo)
        add_part(body, parts, &nothing, echo); /* it came on an empty text at the end */
}

static void add_contents(struct llm_ask *ask, struct llm_body *body)
{
    cJSON *list = llm_body_list(body, body->root, "contents");
    struct llm_turn turn;
    uint32_t at = 0;
    while (llm_turn_next(ask->request, false, &at, &turn)) {
        struct llm_walk walk = {0};
        const bool plain = !llm_turn_part(ask->request, &turn, 0, &walk);
        if (turn.role != RUNG_MSG_SYSTEM) {
            cJSON *item = llm_body_item(body, list);
            llm_body_text(body, item, "role", turn.role == RUNG_MSG_ASSISTANT ? "model" : "user");
            cJSON *parts = llm_body_list(body, item, "parts");
            if (plain)
                add_text(body, parts, &turn.text);
            else
                add_parts(ask, body, parts, &turn);
        }
        llm_text_free(&turn.text);
    }
}

/* ---- The rest ---- */

static void add_tools(struct llm_ask *ask, struct llm_body *body)
{
    const struct rung_llm_request *request = ask->request;
    if (!request->n_tools || !llm_may(ask, LLM_TOOLS))
        return;
    cJSON *tool = llm_body_item(body, llm_body_list(body, body->root, "tools"));
    cJSON *list = llm_body_list(body, tool, "functionDeclarations");
    for (uint32_t t = 0; t < request->n_tools; ++t) {
        const struct rung_tool *from = &request->tools[t];
        const char *why;
        cJSON *item = llm_body_item(body, list);
        llm_body_text(body, item, "name", from->name);
        llm_body_text(body, item, "description", from->summary ? from->summary : "");
        llm_body_value(body, item, "parametersJsonSchema",
                       llm_json_parse((struct llm_span){from->schema.ptr, from->schema.len}, &why));
    }
}

static void add_thinking(struct llm_ask *ask, struct llm_body *body, cJSON *config)
{
    static const char *const levels[LLM_LEVELS] = {"low", "medium", "high", "high", "high"};
    const struct gemini *g = (const struct gemini *)ask->provider;
    const bool by_number = g->base.model.n_budgets != 0;
    int64_t budget = g->thinking_budget;
    if (budget == GEMINI_UNSENT && llm_budget(ask) >= 0)
        budget = llm_budget(ask);
    if (budget != GEMINI_UNSENT) {
        if (llm_may(ask, LLM_THINKING))
            llm_body_number(body, llm_body_object(body, config, "thinkingConfig"), "thinkingBudget",
                            (double)budget);
        return;
    }
    const char *effort = llm_effort(ask, by_number ? NULL : levels);
    if (effort) {
        char level[16] = "";
        for (size_t i = 0; effort[i] && i < sizeof level - 1; ++i)
            level[i] = (char)toupper((unsigned char)effort[i]);
        llm_body_text(body, llm_body_object(body, config, "thinkingConfig"), "thinkingLevel",
                      level);
    }
}

void gemini_build(struct llm_ask *ask, struct llm_body *body)
{
    add_system(ask, body);
    add_contents(ask, body);
    add_tools(ask, body);
    cJSON *config = llm_body_object(body, body->root, "generationConfig");
    const int64_t cap = llm_cap(ask);
    if (cap > 0)
        llm_body_number(body, config, "maxOutputTokens", (double)cap);
    llm_add_temperature(ask, body, config);
    add_thinking(ask, body, config);
    cJSON *schema = llm_schema(ask);
    if (schema) {
        llm_body_text(body, config, "responseMimeType", "application/json");
        llm_body_value(body, config, "responseJsonSchema", schema);
    }
}
