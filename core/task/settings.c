#include "task/settings.h"

#include <math.h>
#include <string.h>

static void wrong_type(struct rung_diags *diags, const struct rung_node *node, const char *want)
{
    RUNG_DIAG_AT(diags, node, "'%s' must be %s, but it is %s", node->name ? node->name : "item",
                 want, rung_node_type_name(node->type));
}

const struct rung_node *rung_config_child(const struct rung_node *group, const char *key,
                                          enum rung_node_type type, struct rung_diags *diags)
{
    const struct rung_node *node = rung_node_get(group, key);
    if (!node || node->type == type)
        return node;
    wrong_type(diags, node, rung_node_type_name(type));
    return NULL;
}

const char *rung_config_string(const struct rung_node *group, const char *key, const char *fallback,
                               struct rung_diags *diags)
{
    const struct rung_node *node = rung_config_child(group, key, RUNG_NODE_STRING, diags);
    return node ? node->s : fallback;
}

int64_t rung_config_int(const struct rung_node *group, const char *key, int64_t fallback,
                        int64_t min, int64_t max, struct rung_diags *diags)
{
    const struct rung_node *node = rung_config_child(group, key, RUNG_NODE_INT, diags);
    if (!node)
        return fallback;
    if (node->i >= min && node->i <= max)
        return node->i;
    if (max == INT64_MAX)
        RUNG_DIAG_AT(diags, node, "'%s' is %lld, but it must be at least %lld", key,
                     (long long)node->i, (long long)min);
    else
        RUNG_DIAG_AT(diags, node, "'%s' is %lld, but it must lie between %lld and %lld", key,
                     (long long)node->i, (long long)min, (long long)max);
    return fallback;
}

/* An integer stands for a float, as libconfig tells 10 from 10.0. */
static bool number_of(const struct rung_node *node, double *out)
{
    *out = node->type == RUNG_NODE_INT ? (double)node->i : node->f;
    return (node->type == RUNG_NODE_INT || node->type == RUNG_NODE_FLOAT) && isfinite(*out);
}

double rung_config_float(const struct rung_node *group, const char *key, double fallback,
                         double min, double max, struct rung_diags *diags)
{
    const struct rung_node *node = rung_node_get(group, key);
    double v;
    if (!node)
        return fallback;
    if (!number_of(node, &v)) {
        wrong_type(diags, node, "a finite number");
        return fallback;
    }
    if (v >= min && v <= max)
        return v;
    if (isinf(max))
        RUNG_DIAG_AT(diags, node, "'%s' is %g, but it must be at least %g", key, v, min);
    else
        RUNG_DIAG_AT(diags, node, "'%s' is %g, but it must lie between %g and %g", key, v, min,
                     max);
    return fallback;
}

double rung_config_duration(const struct rung_node *group, const char *key, double fallback,
                            struct rung_diags *diags)
{
    const struct rung_node *node = rung_node_get(group, key);
    double v;
    if (!node)
        return fallback;
    if (node->type == RUNG_NODE_STRING && rung_parse_duration(node->s, &v))
        return v;
    if (number_of(node, &v) && v >= 0)
        return v;
    RUNG_DIAG_AT(diags, node,
                 "'%s' must be a duration, such as \"90s\", \"5m\" or \"2h\", or seconds", key);
    return fallback;
}

const char *const *rung_config_strings(struct rung_arena *arena, const struct rung_node *group,
                                       const char *key, struct rung_diags *diags)
{
    const struct rung_node *node = rung_node_get(group, key);
    if (!node)
        return NULL;
    if (node->type != RUNG_NODE_LIST && node->type != RUNG_NODE_STRING) {
        wrong_type(diags, node, "a list of strings");
        return NULL;
    }
    const char **list = RUNG_ARENA_NEW(arena, const char *, rung_node_count(node) + 2);
    if (node->type == RUNG_NODE_STRING) {
        list[0] = node->s;
        return list;
    }
    size_t n = 0;
    for (struct rung_node *c = node->first; c; c = c->next) {
        if (c->type != RUNG_NODE_STRING) {
            RUNG_DIAG_AT(diags, c, "'%s' must hold strings, but item %zu is %s", key, n,
                         rung_node_type_name(c->type));
            return NULL;
        }
        c->used = true;
        list[n++] = c->s;
    }
    return list;
}
