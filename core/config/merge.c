/*
 * Merging settings trees. Pure.
 */
#include "config/config.h"
#include "config/load.h"

#include <string.h>

struct rung_node *rung_config_copy(struct rung_arena *arena, const struct rung_node *node)
{
    struct rung_node *copy = RUNG_ARENA_NEW(arena, struct rung_node, 1);
    *copy = *node;
    copy->next = copy->first = NULL;
    copy->used = false;
    struct rung_node **end = &copy->first;
    for (const struct rung_node *c = node->first; c; c = c->next) {
        *end = rung_config_copy(arena, c);
        end = &(*end)->next;
    }
    return copy;
}

static struct rung_node *child_of(const struct rung_node *group, const char *name)
{
    for (struct rung_node *c = group->first; c; c = c->next)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static const char *plugin_of(const struct rung_node *group)
{
    const struct rung_node *plugin = child_of(group, "plugin");
    return plugin && plugin->type == RUNG_NODE_STRING ? plugin->s : NULL;
}

/* Another plugin's options mean nothing to the one that takes its place. */
static bool names_other_plugin(const struct rung_node *base, const struct rung_node *over)
{
    const char *was = plugin_of(base), *is = plugin_of(over);
    return was && is && strcmp(was, is) != 0;
}

void rung_config_assign(struct rung_arena *arena, struct rung_node *place,
                        const struct rung_node *over)
{
    bool groups = place->type == RUNG_NODE_GROUP && over->type == RUNG_NODE_GROUP;
    if (groups && !names_other_plugin(place, over)) {
        rung_config_merge(arena, place, over);
        return;
    }
    struct rung_node *next = place->next;
    *place = *rung_config_copy(arena, over);
    place->next = next;
}

struct rung_node *rung_config_merge(struct rung_arena *arena, struct rung_node *base,
                                    const struct rung_node *over)
{
    base->file = over->file;
    base->line = over->line;
    for (const struct rung_node *c = over->first; c; c = c->next) {
        struct rung_node *place = child_of(base, c->name);
        if (place)
            rung_config_assign(arena, place, c);
        else
            rung_node_append(base, rung_config_copy(arena, c));
    }
    return base;
}
