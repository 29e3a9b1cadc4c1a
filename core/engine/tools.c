/* The table of tools, and one call of one of them; see tools.h. */
#include "engine/tools.h"
#include "base/json.h"
#include "base/status.h"

#include <string.h>

enum { MAX_ARGUMENTS = 1 << 20 };

static const struct engine_tool *const tools[] = {&engine_tool_compile};
enum { N_TOOLS = sizeof tools / sizeof *tools };

const struct engine_tool *engine_tool_find(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    return NULL;
}

static const char *const *names_for(const struct engine *e, const struct engine_llm *llm)
{
    static const char *const none[] = {NULL};
    const char *const *names = llm->stage->tools ? llm->stage->tools : e->pipeline->tools;
    return names && !llm->free && e->pipeline->conversation.tool_calls ? names : none;
}

static bool is_offered(const struct engine *e, const struct engine_llm *llm, const char *name)
{
    for (const char *const *names = names_for(e, llm); *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

const struct rung_tool *engine_tools_offered(const struct engine *e, const struct engine_llm *llm,
                                             struct rung_arena *arena, uint32_t *n)
{
    const char *const *names = names_for(e, llm);
    struct rung_tool *list = RUNG_ARENA_NEW(arena, struct rung_tool, N_TOOLS);
    *n = 0;
    for (size_t i = 0; i < N_TOOLS; i++)
        if (is_offered(e, llm, tools[i]->name))
            list[(*n)++] = (struct rung_tool){.struct_size = sizeof *list,
                                              .name = tools[i]->name,
                                              .summary = tools[i]->summary,
                                              .schema = rung_text_of(tools[i]->schema)};
    return *names ? list : NULL;
}

static const char *list_text(const struct engine *e, const struct engine_llm *llm,
                             struct rung_arena *arena)
{
    const char *text = "";
    for (const char *const *names = names_for(e, llm); *names; names++)
        text = rung_arena_printf(arena, "%s%s%s", text, text[0] ? ", " : "", *names);
    return text[0] ? text : "none";
}

/* The arguments as an object, or NULL with what is wrong. Some models send "" for no arguments. */
static cJSON *parse(const struct rung_part *call, struct rung_arena *arena, const char **problem)
{
    struct rung_text text = call->text.len ? call->text : rung_text_of("{}");
    if (text.len > MAX_ARGUMENTS) {
        *problem = rung_arena_printf(arena, "The arguments are %llu bytes; at most %d are read.",
                                     (unsigned long long)text.len, MAX_ARGUMENTS);
        return NULL;
    }
    cJSON *json = rung_json_parse(text.ptr, text.len);
    if (cJSON_IsObject(json))
        return json;
    cJSON_Delete(json);
    *problem = "The arguments are not one JSON object. Send them again as the schema says.";
    return NULL;
}

static int32_t carry_out(struct engine *e, const struct engine_llm *llm,
                         const struct rung_part *call, struct rung_arena *arena,
                         const char **result, struct rung_error *err)
{
    const char *name = call->name ? call->name : "";
    const struct engine_tool *tool = is_offered(e, llm, name) ? engine_tool_find(name) : NULL;
    if (!tool) {
        *result = rung_arena_printf(arena, "There is no tool '%.64s'; there is: %s.", name,
                                    list_text(e, llm, arena));
        return RUNG_OK;
    }
    cJSON *arguments = parse(call, arena, result);
    int32_t status = arguments ? tool->run(e, arguments, arena, result, err) : RUNG_OK;
    cJSON_Delete(arguments);
    return status;
}

int32_t engine_tool_call(struct engine *e, const struct engine_llm *llm,
                         const struct rung_part *call, const char *key, struct rung_arena *arena,
                         const char **result, struct rung_error *err)
{
    cJSON *known = rung_journal_find(e->journal, "tool", key, NULL);
    if (known) {
        *result = rung_arena_strdup(arena, rung_json_text(known, "result", ""));
        cJSON_Delete(known);
        return RUNG_OK;
    }
    int32_t status = carry_out(e, llm, call, arena, result, err);
    if (status)
        return status;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", call->name ? call->name : "");
    rung_json_add_text(json, "arguments", call->text);
    rung_json_add_text(json, "result", rung_text_of(*result));
    status = rung_journal_append(e->journal, "tool", key, json, NULL, err);
    cJSON_Delete(json);
    return status;
}
