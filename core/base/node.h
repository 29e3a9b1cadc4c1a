/*
 * A tree of settings with the place where each stands: what configuration files, `--set`, and JSON
 * from other processes become before anything typed is made of them. Lives in an arena.
 */
#ifndef BASE_NODE_H
#define BASE_NODE_H

#include "base/arena.h"
#include <cjson/cJSON.h>
#include <stdbool.h>

enum rung_node_type {
    RUNG_NODE_BOOL,
    RUNG_NODE_INT,
    RUNG_NODE_FLOAT,
    RUNG_NODE_STRING,
    RUNG_NODE_GROUP,
    RUNG_NODE_LIST,
};

struct rung_node {
    enum rung_node_type type;
    const char *name; /* NULL for list items and the root */
    const char *file; /* never NULL; "--set" or "job" where no file is */
    int line;         /* 0: not known */
    bool b;
    int64_t i;
    double f;
    const char *s;
    struct rung_node *first; /* children of groups and lists, in order */
    struct rung_node *next;  /* sibling */
    bool used;               /* set by the readers, so that unknown keys can be named */
};

/* A new node with a copied name (may be NULL). */
struct rung_node *rung_node_new(struct rung_arena *arena, enum rung_node_type type,
                                const char *name, const char *file, int line);
/* Child of a group by name, or NULL; marks it used. */
struct rung_node *rung_node_get(const struct rung_node *group, const char *name);
/* Appends a child. */
void rung_node_append(struct rung_node *parent, struct rung_node *child);
/* Number of children. */
size_t rung_node_count(const struct rung_node *node);
/* "a string", "an integer", ... for messages. */
const char *rung_node_type_name(enum rung_node_type type);

/* JSON without loss of types (floats keep a fraction or exponent). The caller deletes the result.
 */
cJSON *rung_node_to_json(const struct rung_node *node);
/* The tree of a JSON value; file names the origin in messages. NULL when nested deeper than 32. */
struct rung_node *rung_node_from_json(struct rung_arena *arena, const cJSON *json, const char *name,
                                      const char *file);

#endif
