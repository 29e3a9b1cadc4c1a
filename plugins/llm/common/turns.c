/* A conversation as servers want it; see turns.h. */
#include "turns.h"
#include <string.h>

/* An echo alone is nothing. */
static bool holds_something(const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (message->parts[p].kind == RUNG_PART_TEXT ? message->parts[p].text.len > 0
                                                     : message->parts[p].kind != RUNG_PART_OPAQUE)
            return true;
    return false;
}

static void add_message(struct llm_text *text, const struct rung_message *message)
{
    bool begun = text->len == 0;
    for (uint32_t p = 0; p < message->n_parts; ++p) {
        const struct rung_part *part = &message->parts[p];
        if (part->kind != RUNG_PART_TEXT || !part->text.len)
            continue;
        llm_text_puts(text, begun ? "" : "\n\n");
        llm_text_add_utf8(text, part->text.ptr, part->text.len);
        begun = true;
    }
}

static uint32_t role_of(const struct rung_message *message, bool fold)
{
    return fold && message->role == RUNG_MSG_SYSTEM ? (uint32_t)RUNG_MSG_USER : message->role;
}

bool llm_turn_next(const struct rung_llm_request *request, bool fold, uint32_t *at,
                   struct llm_turn *turn)
{
    *turn = (struct llm_turn){0};
    for (; *at < request->n_messages; ++*at) {
        const struct rung_message *message = &request->messages[*at];
        if (!holds_something(message))
            continue;
        if (turn->role && role_of(message, fold) != turn->role)
            return true;
        if (!turn->role)
            turn->first = *at;
        turn->role = role_of(message, fold);
        turn->end = *at + 1;
        add_message(&turn->text, message);
    }
    return turn->role != 0;
}

const struct rung_part *llm_turn_part(const struct rung_llm_request *request,
                                      const struct llm_turn *turn, uint32_t kind,
                                      struct llm_walk *walk)
{
    if (!walk->begun)
        *walk = (struct llm_walk){turn->first, 0, true};
    for (; walk->message < turn->end; ++walk->message, walk->part = 0) {
        const struct rung_message *message = &request->messages[walk->message];
        while (walk->part < message->n_parts) {
            const struct rung_part *part = &message->parts[walk->part++];
            if (kind ? part->kind == kind : part->kind != RUNG_PART_TEXT)
                return part;
        }
    }
    return NULL;
}

struct llm_text llm_system_text(const struct rung_llm_request *request)
{
    struct llm_text all = {0};
    for (uint32_t m = 0; m < request->n_messages; ++m)
        if (request->messages[m].role == RUNG_MSG_SYSTEM)
            add_message(&all, &request->messages[m]);
    return all;
}

static cJSON *parse(struct rung_text text)
{
    const char *why;
    return llm_json_parse((struct llm_span){text.ptr, text.len}, &why);
}

cJSON *llm_part_json(const struct rung_part *part)
{
    cJSON *json = parse(part->text);
    if (part->kind == RUNG_PART_TOOL_CALL && !cJSON_IsObject(json)) {
        cJSON_Delete(json);
        json = cJSON_CreateObject(); /* arguments that the model got wrong */
    }
    return json;
}

bool llm_is_echo_of(const struct rung_part *part, const char *plugin)
{
    return part->kind == RUNG_PART_OPAQUE && (!part->name || strcmp(part->name, plugin) == 0);
}

/* ---- What can be sent ---- */

static bool is_object(struct rung_text text)
{
    cJSON *json = text.len ? parse(text) : NULL;
    const bool is = cJSON_IsObject(json);
    cJSON_Delete(json);
    return is;
}

static bool is_name(const char *name)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= 64 && strspn(name, set) == n;
}

static int32_t check_part(const struct rung_llm_request *request, const struct rung_part *part,
                          struct rung_error *error)
{
    switch (part->kind) {
    case RUNG_PART_TEXT:
    case RUNG_PART_OPAQUE:
        return RUNG_OK;
    case RUNG_PART_TOOL_CALL:
    case RUNG_PART_TOOL_RESULT:
        if (part->id && part->id[0] && part->name && part->name[0])
            return RUNG_OK;
        return llm_fail(error, RUNG_EINVAL, "llm.request",
                        "request %s holds a tool's call or result without id or name",
                        request->key);
    default:
        return llm_fail(error, RUNG_EINVAL, "llm.request",
                        "request %s holds a part of an unknown kind (%u)", request->key,
                        part->kind);
    }
}

static int32_t check_tools(const struct rung_llm_request *request, struct rung_error *error)
{
    for (uint32_t t = 0; t < request->n_tools; ++t)
        if (!is_name(request->tools[t].name) || !is_object(request->tools[t].schema))
            return llm_fail(error, RUNG_EINVAL, "llm.request",
                            "request %s: tool %u needs a name of [A-Za-z0-9_-]{1,64} and a schema "
                            "that is a JSON object",
                            request->key, t);
    if (request->schema.len && (!is_object(request->schema) || !is_name(request->schema_name)))
        return llm_fail(error, RUNG_EINVAL, "llm.request",
                        "request %s: the reply's schema needs a name and must be a JSON object",
                        request->key);
    return RUNG_OK;
}

int32_t llm_turns_check(const struct rung_llm_request *request, struct rung_error *error)
{
    int32_t status = llm_check_request(request, error);
    bool something = false;
    for (uint32_t m = 0; m < request->n_messages && status == RUNG_OK; ++m) {
        const struct rung_message *message = &request->messages[m];
        something |= message->role != RUNG_MSG_SYSTEM && holds_something(message);
        for (uint32_t p = 0; p < message->n_parts && status == RUNG_OK; ++p)
            status = check_part(request, &message->parts[p], error);
    }
    if (status == RUNG_OK && !something)
        status =
            llm_fail(error, RUNG_EINVAL, "llm.request", "request %s holds no text", request->key);
    return status == RUNG_OK ? check_tools(request, error) : status;
}
