/*
 * The graph language as a tree: what `reference.graph` of a task says before any name is looked up.
 * Nodes live in the arena of the call that parses them and are never changed afterwards.
 */
#ifndef OPS_GRAPH_H
#define OPS_GRAPH_H

#include <rung/reference.h>

#define OPS_MAX_TEXT 65536u /* bytes of graph text */
#define OPS_MAX_DEPTH 64    /* nesting of expressions */
#define OPS_MAX_NODES 1024

enum ops_node_kind { OPS_NUMBER = 1, OPS_NAME, OPS_NEG, OPS_BINARY, OPS_CALL, OPS_LIST };

/* One argument of a call (name NULL: positional) or one item of a list. */
struct ops_arg {
    const char *name;
    uint32_t column;
    const struct ops_node *value;
    struct ops_arg *next;
};

struct ops_node {
    enum ops_node_kind kind;
    char op;                      /* BINARY: + - * / % and ^ for ** */
    uint32_t column;              /* 1-based byte in the text */
    double number;                /* NUMBER */
    const char *name;             /* NAME, CALL */
    const struct ops_arg *args;   /* CALL, LIST */
    const struct ops_node *a, *b; /* NEG has a; BINARY both */
};

struct ops_stmt {
    const char *name;
    uint32_t column;
    const struct ops_node *value;
    struct ops_stmt *next;
};

/* Who asks, and where results and errors go. */
struct ops_who {
    const struct rung_host *host;
    struct rung_call *call;
    const char *what; /* first word of messages: "graph", "shape of 'x'" */
};

/* Fills the call's error with "WHAT:COLUMN: message" (column 0: without) and returns `status`. */
int32_t ops_fail(const struct ops_who *who, int32_t status, uint32_t column, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/* The same as RUNG_ENOMEM. */
int32_t ops_no_memory(const struct ops_who *who);

/* Parses statements `name = expression` separated by `;`. At least one. RUNG_ECONFIG when wrong. */
int32_t ops_parse_graph(const struct ops_who *who, const char *text, const struct ops_stmt **out);
/* Parses expressions separated by `,`; an empty text has none. The list comes back as arguments. */
int32_t ops_parse_list(const struct ops_who *who, const char *text, const struct ops_arg **out);

/*
 * The value of an expression over whole numbers: dims, i64 params, + - * / % with C's division,
 * ceil_div, min, max. RUNG_ECONFIG for anything else, overflow and division by zero.
 */
int32_t ops_integer(const struct ops_who *who, const struct rung_task *task, const int64_t *dims,
                    const struct ops_node *node, int64_t *out);
/* Shape of a task tensor at some dims: RUNG_MAX_DIMS entries, every extent at least 1. */
int32_t ops_task_shape(const struct ops_who *who, const struct rung_task *task, const int64_t *dims,
                       uint32_t tensor, int64_t *shape);

/* Of the n names (may hold NULL), the one that `name` most likely means, or NULL. [pure] */
const char *ops_nearest(const char *name, const char *const *names, uint32_t n);

#endif
