/*
 * The integer and float expressions of task and plan files: numbers, names, + - * / % ( ),
 * ceil_div, min, max, comparisons (== != < <= > >=), and / or / not. Pure; results in the caller's
 * arena.
 *
 * An expression is integer unless it holds a float literal, an f64 name or `/` between floats.
 * Integer arithmetic is exact: overflow, division by zero and a remainder of a negative number are
 * faults, never wrapped. Integer `/` truncates like C.
 */
#ifndef TASK_EXPR_H
#define TASK_EXPR_H

#include "base/arena.h"
#include "base/text.h"

struct rung_value {
    bool is_float;
    int64_t i;
    double f;
};

/* Names to values. lookup returns false for an unknown name. */
struct rung_scope {
    bool (*lookup)(const void *ctx, const char *name, struct rung_value *out);
    void (*names)(const void *ctx, struct rung_arena *arena, const char *const **list, size_t *n);
    const void *ctx;
};

struct rung_expr; /* parsed */

/*
 * Parses the whole text (at most 1000 characters, nested at most 64 deep). On failure NULL and
 * *problem = "column N: what, remedy" in the arena.
 */
struct rung_expr *rung_expr_parse(struct rung_arena *arena, const char *text, const char **problem);
/* false and *problem when a name is unknown (with the nearest one) or arithmetic fails. */
bool rung_expr_eval(const struct rung_expr *expr, const struct rung_scope *scope,
                    struct rung_arena *arena, struct rung_value *out, const char **problem);
/*
 * Whether every name is known and every operator meets types that it takes, without evaluating;
 * lookup's values don't matter, their types do. *is_float tells the type of the result.
 */
bool rung_expr_check(const struct rung_expr *expr, const struct rung_scope *scope,
                     struct rung_arena *arena, bool *is_float, const char **problem);
/* Words that can't name a dim, tensor, parameter, tune or temp. NULL-terminated. */
extern const char *const rung_expr_reserved[];
/* Whether text is [A-Za-z_][A-Za-z0-9_]{0,62} and none of the reserved words. */
bool rung_expr_is_name(const char *text);
/* Parse and evaluate at once. */
bool rung_expr_value(struct rung_arena *arena, const char *text, const struct rung_scope *scope,
                     struct rung_value *out, const char **problem);
/* Splits "rows, cols*2" at top-level commas into trimmed items; false on unbalanced parentheses. */
bool rung_expr_split(struct rung_arena *arena, const char *text, const char ***items, size_t *n);

#endif
