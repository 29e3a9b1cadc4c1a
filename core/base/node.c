#include "base/node.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

struct rung_node *rung_node_new(struct rung_arena *arena, enum rung_node_type type,
                                const char *name, const char *file, int line)
{
    struct rung_node *node = RUNG_ARENA_NEW(arena, struct rung_node, 1);
    *node = (struct rung_node){.type = type, .file = file, .line = line, .s = ""};
    node->name = name ? rung_arena_strdup(arena, name) : NULL;
    return node;
}

struct rung_node *rung_node_get(const struct rung_node *group, const char *name)
{
    for (struct rung_node *c = group ? group->first : NULL; c; c = c->next)
        if (c->name && strcmp(c->name, name) == 0) {
            c->used = true;
            return c;
        }
    return NULL;
}

void rung_node_append(struct rung_node *parent, struct rung_node *child)
{
    struct rung_node **end = &parent->first;
    while (*end)
        end = &(*end)->next;
    *end = child;
}

size_t rung_node_count(const struct rung_node *node)
{
    size_t n = 0;
    for (const struct rung_node *c = node->first; c; c = c->next)
        n++;
    return n;
}

const char *rung_node_type_name(enum rung_node_type type)
{
    static const char *const names[] = {"a boolean", "an integer", "a number",
                                        "a string",  "a group",    "a list"};
    return names[type];
}

static void add_child(cJSON *json, const struct rung_node *child)
{
    cJSON *value = rung_node_to_json(child);
    if (cJSON_IsObject(json))
        cJSON_AddItemToObject(json, child->name, value);
    else
        cJSON_AddItemToArray(json, value);
}

static cJSON *raw_number(const struct rung_node *node)
{
    char text[40];
    if (node->type == RUNG_NODE_INT)
        snprintf(text, sizeof text, "%lld", (long long)node->i);
    else
        snprintf(text, sizeof text, "%.17g", node->f);
    if (node->type == RUNG_NODE_FLOAT && !strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", 3);
    return cJSON_CreateRaw(text);
}

cJSON *rung_node_to_json(const struct rung_node *node)
{
    if (node->type == RUNG_NODE_BOOL)
        return cJSON_CreateBool(node->b);
    if (node->type == RUNG_NODE_STRING)
        return cJSON_CreateString(node->s);
    if (node->type == RUNG_NODE_INT || node->type == RUNG_NODE_FLOAT)
        return raw_number(node);
    cJSON *json = node->type == RUNG_NODE_GROUP ? cJSON_CreateObject() : cJSON_CreateArray();
    for (const struct rung_node *c = node->first; c; c = c->next)
        add_child(json, c);
    return json;
}

/* cJSON keeps numbers as doubles: a whole one is an integer unless the text said otherwise. */
static void set_number(struct rung_node *node, double v)
{
    bool whole = v == floor(v) && fabs(v) <= 9007199254740992.0;
    node->type = whole ? RUNG_NODE_INT : RUNG_NODE_FLOAT;
    node->i = whole ? (int64_t)v : 0;
    node->f = v;
}

static struct rung_node *from_json(struct rung_arena *arena, const cJSON *json, const char *name,
                                   const char *file, int depth)
{
    if (depth > MAX_DEPTH)
        return NULL;
    struct rung_node *node = rung_node_new(arena, RUNG_NODE_GROUP, name, file, 0);
    if (cJSON_IsString(json)) {
        node->type = RUNG_NODE_STRING;
        node->s = rung_arena_strdup(arena, json->valuestring);
    } else if (cJSON_IsBool(json)) {
        node->type = RUNG_NODE_BOOL;
        node->b = cJSON_IsTrue(json);
    } else if (cJSON_IsNumber(json)) {
        set_number(node, json->valuedouble);
    } else if (cJSON_IsObject(json) || cJSON_IsArray(json)) {
        node->type = cJSON_IsObject(json) ? RUNG_NODE_GROUP : RUNG_NODE_LIST;
        struct rung_node **end = &node->first;
        for (const cJSON *c = json->child; c; c = c->next) {
            *end = from_json(arena, c, c->string, file, depth + 1);
            if (!*end)
                return NULL;
            end = &(*end)->next;
        }
    } else {
        return NULL;
    }
    return node;
}

struct rung_node *rung_node_from_json(struct rung_arena *arena, const cJSON *json, const char *name,
                                      const char *file)
{
    return from_json(arena, json, name, rung_arena_strdup(arena, file), 0);
}
