/*
 * The task's graph line as a tree: `t = x * a + b; y = relu(t)`. Statements, infix + - * / ** and
 * minus, calls with keyword arguments, lists in brackets. Bounded: 256 nodes, nested 48 deep. Pure.
 */
#ifndef LLM_CATALOG_GRAPH_H
#define LLM_CATALOG_GRAPH_H

#include "../common/text.h"

enum { GRAPH_MAX_NODES = 256, GRAPH_MAX_STATEMENTS = 32, GRAPH_MAX_ARGS = 8 };

enum graph_kind { GRAPH_NUMBER, GRAPH_NAME, GRAPH_CALL, GRAPH_BINARY, GRAPH_MINUS, GRAPH_LIST };

struct graph_node {
    enum graph_kind kind;
    struct llm_span name;                     /* NAME, CALL */
    double number;                            /* NUMBER */
    char op;                                  /* BINARY: + - * / and ^ for ** */
    uint32_t n_args;                          /* BINARY 2, MINUS 1, CALL and LIST as written */
    uint16_t args[GRAPH_MAX_ARGS];            /* node numbers */
    struct llm_span keywords[GRAPH_MAX_ARGS]; /* CALL: empty for a positional argument */
};

struct graph_statement {
    struct llm_span target;
    uint16_t root;
};

struct graph {
    struct graph_node nodes[GRAPH_MAX_NODES];
    uint32_t n_nodes;
    struct graph_statement statements[GRAPH_MAX_STATEMENTS];
    uint32_t n_statements;
};

/* false with *problem (static text) when it does not parse or passes a bound. */
bool graph_parse(struct llm_span text, struct graph *graph, const char **problem);

/* Argument of a call by keyword, else by position (-1: only by keyword); NULL when it is not given.
 */
const struct graph_node *graph_arg(const struct graph *graph, const struct graph_node *call,
                                   int position, const char *keyword);

#endif
