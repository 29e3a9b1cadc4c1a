/*
 * The parsed form of an expression; private to expr.c and expr_eval.c.
 */
#ifndef TASK_EXPR_AST_H
#define TASK_EXPR_AST_H

#include "task/expr.h"

enum rung_expr_op {
    EXPR_NUMBER,
    EXPR_NAME,
    EXPR_NEGATE,
    EXPR_NOT,
    EXPR_ADD,
    EXPR_SUBTRACT,
    EXPR_MULTIPLY,
    EXPR_DIVIDE,
    EXPR_REMAINDER,
    EXPR_EQUAL,
    EXPR_UNEQUAL,
    EXPR_LESS,
    EXPR_LESS_EQUAL,
    EXPR_GREATER,
    EXPR_GREATER_EQUAL,
    EXPR_AND,
    EXPR_OR,
    EXPR_CEIL_DIV,
    EXPR_MIN,
    EXPR_MAX,
};

/* Depth is bounded by the text's length, so that walking it by recursion is safe. */
struct rung_expr {
    enum rung_expr_op op;
    int column;              /* 1-based, of the operator or the operand itself */
    struct rung_value value; /* NUMBER */
    const char *name;        /* NAME */
    const struct rung_expr *a, *b;
};

#endif
