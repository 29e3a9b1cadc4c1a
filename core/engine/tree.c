/*
 * Settings trees in the journal. A relative path means something only beside the file that it
 * stands in, and after merging one tree holds texts of several files; so a text is kept as
 * {"text": ..., "file": ...} and everything else as plain JSON.
 */
#include "base/json.h"
#include "engine/engine.h"

enum { MAX_DEPTH = 32 };

cJSON *engine_tree_save(const struct rung_node *node)
{
    if (node->type == RUNG_NODE_STRING) {
        cJSON *text = cJSON_CreateObject();
        cJSON_AddStringToObject(text, "text", node->s);
        cJSON_AddStringToObject(text, "file", node->file);
        cJSON_AddNumberToObject(text, "line", node->line);
        return text;
    }
    if (node->type != RUNG_NODE_GROUP && node->type != RUNG_NODE_LIST)
        return rung_node_to_json(node);
    cJSON *all = cJSON_CreateObject();
    cJSON *items = node->type == RUNG_NODE_GROUP ? cJSON_AddObjectToObject(all, "group")
                                                 : cJSON_AddArrayToObject(all, "list");
    for (const struct rung_node *c = node->first; c; c = c->next) {
        if (node->type == RUNG_NODE_GROUP)
            cJSON_AddItemToObject(items, c->name, engine_tree_save(c));
        else
            cJSON_AddItemToArray(items, engine_tree_save(c));
    }
    return all;
}

static struct rung_node *load(struct rung_arena *arena, const cJSON *json, const char *name,
                              int depth);

static struct rung_node *load_children(struct rung_arena *arena, const cJSON *items,
                                       const char *name, int depth)
{
    struct rung_node *node = rung_node_new(
        arena, cJSON_IsObject(items) ? RUNG_NODE_GROUP : RUNG_NODE_LIST, name, "journal", 0);
    struct rung_node **end = &node->first;
    for (const cJSON *c = items->child; c; c = c->next) {
        *end = load(arena, c, c->string, depth + 1);
        if (!*end)
            return NULL;
        end = &(*end)->next;
    }
    return node;
}

static struct rung_node *load(struct rung_arena *arena, const cJSON *json, const char *name,
                              int depth)
{
    const cJSON *group = rung_json_get(json, "group"), *list = rung_json_get(json, "list");
    if (depth > MAX_DEPTH)
        return NULL;
    if (!cJSON_IsObject(json))
        return rung_node_from_json(arena, json, name, "journal");
    if (cJSON_IsObject(group) || cJSON_IsArray(list))
        return load_children(arena, cJSON_IsObject(group) ? group : list, name, depth);
    const char *text = rung_json_text(json, "text", NULL);
    if (!text)
        return NULL;
    const char *file = rung_arena_strdup(arena, rung_json_text(json, "file", "journal"));
    struct rung_node *node =
        rung_node_new(arena, RUNG_NODE_STRING, name, file, (int)rung_json_i64(json, "line", 0));
    node->s = rung_arena_strdup(arena, text);
    return node;
}

struct rung_node *engine_tree_load(struct rung_arena *arena, const cJSON *json)
{
    return json ? load(arena, json, NULL, 0) : NULL;
}
