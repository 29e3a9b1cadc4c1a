/*
 * A list of faults in files of the user, each with file and line, so that all are told at once.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/node.h"
#include "base/text.h"

struct rung_diag_item {
    char *file; /* NULL: no place */
    int line;   /* 0: no line */
    char *message;
};

struct rung_diags {
    struct rung_buf text; /* "file:line: message\n" each */
    size_t n;
    struct rung_diag_item *items; /* n of them, the same faults in parts */
};

/* Adds one fault. file may be NULL (no place), line 0 (no line). */
void rung_diag(struct rung_diags *diags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same at a node. */
#define RUNG_DIAG_AT(diags, node, ...) rung_diag((diags), (node)->file, (node)->line, __VA_ARGS__)

/*
 * One fault a child of `group` that no reader has used: the name, the nearest of `known`
 * (NULL-terminated), and all of them.
 */
void rung_diag_unknown(struct rung_diags *diags, const struct rung_node *group, const char *what,
                       const char *const *known);
void rung_diags_free(struct rung_diags *diags);

#endif
