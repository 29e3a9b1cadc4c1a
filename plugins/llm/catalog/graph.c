/* Recursive descent over the graph language; see graph.h. */
#include "graph.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 48, MAX_TEXT = 4096, NO_NODE = 0xffff };

struct parser {
    struct llm_span rest;
    struct graph *graph;
    const char *problem; /* first one */
    int depth;
};

static uint16_t parse_sum(struct parser *p);

static uint16_t refuse(struct parser *p, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
    return NO_NODE;
}

static char peek(struct parser *p)
{
    p->rest = llm_trim(p->rest);
    return p->rest.len ? p->rest.ptr[0] : 0;
}

static void skip(struct parser *p, size_t n)
{
    p->rest.ptr += n;
    p->rest.len -= n;
}

static bool take(struct parser *p, const char *token)
{
    peek(p);
    if (!llm_span_starts(p->rest, token))
        return false;
    skip(p, strlen(token));
    return true;
}

static uint16_t new_node(struct parser *p, const struct graph_node *node)
{
    if (p->graph->n_nodes == GRAPH_MAX_NODES)
        return refuse(p, "the graph is too large");
    p->graph->nodes[p->graph->n_nodes] = *node;
    return (uint16_t)p->graph->n_nodes++;
}

static bool take_name(struct parser *p, struct llm_span *name)
{
    const char c = peek(p);
    size_t n = 0;
    if (!isalpha((unsigned char)c) && c != '_')
        return false;
    while (n < p->rest.len && (isalnum((unsigned char)p->rest.ptr[n]) || p->rest.ptr[n] == '_'))
        ++n;
    *name = (struct llm_span){p->rest.ptr, n};
    skip(p, n);
    return n < 64;
}

static bool part_of_number(char c, char before)
{
    const bool sign = c == '+' || c == '-';
    return isdigit((unsigned char)c) || c == '.' || c == 'e' || c == 'E' ||
           (sign && (before == 'e' || before == 'E'));
}

static uint16_t parse_number(struct parser *p)
{
    char digits[64];
    const size_t most = p->rest.len < sizeof digits - 1 ? p->rest.len : sizeof digits - 1;
    size_t n = 0;
    while (n < most && part_of_number(p->rest.ptr[n], n ? p->rest.ptr[n - 1] : 0))
        ++n;
    memcpy(digits, p->rest.ptr, n);
    digits[n] = 0;
    char *end = NULL;
    const double number = strtod(digits, &end);
    if (end == digits || *end || !(number < 1e38))
        return refuse(p, "a number of the graph can't be read");
    skip(p, n);
    return new_node(p, &(struct graph_node){.kind = GRAPH_NUMBER, .number = number});
}

/* The arguments up to the closing parenthesis or bracket. */
static bool parse_args(struct parser *p, const char *close, struct graph_node *call)
{
    if (take(p, close))
        return true;
    do {
        if (call->n_args == GRAPH_MAX_ARGS) {
            refuse(p, "a call of the graph has too many arguments");
            return false;
        }
        const struct llm_span before = p->rest;
        struct llm_span keyword = {"", 0};
        if (!take_name(p, &keyword) || peek(p) != '=') {
            p->rest = before;
            keyword = (struct llm_span){"", 0};
        } else {
            skip(p, 1);
        }
        call->keywords[call->n_args] = keyword;
        call->args[call->n_args] = parse_sum(p);
        if (call->args[call->n_args++] == NO_NODE)
            return false;
    } while (take(p, ","));
    if (take(p, close))
        return true;
    refuse(p, *close == ')' ? "a call of the graph lacks its ')'"
                            : "a list of the graph lacks its ']'");
    return false;
}

static uint16_t parse_primary(struct parser *p)
{
    struct llm_span name;
    const char c = peek(p);
    if (take(p, "(")) {
        const uint16_t inner = parse_sum(p);
        if (inner != NO_NODE && !take(p, ")"))
            return refuse(p, "the graph lacks a ')'");
        return inner;
    }
    if (take(p, "[")) {
        struct graph_node list = {.kind = GRAPH_LIST};
        return parse_args(p, "]", &list) ? new_node(p, &list) : NO_NODE;
    }
    if (isdigit((unsigned char)c) || c == '.')
        return parse_number(p);
    if (!take_name(p, &name))
        return refuse(p, "the graph has something that is no name, number or '('");
    struct graph_node node = {.kind = GRAPH_NAME, .name = name};
    if (take(p, "(")) {
        node.kind = GRAPH_CALL;
        if (!parse_args(p, ")", &node))
            return NO_NODE;
    }
    return new_node(p, &node);
}

static uint16_t pair(struct parser *p, char op, uint16_t left, uint16_t right)
{
    if (left == NO_NODE || right == NO_NODE)
        return NO_NODE;
    return new_node(p, &(struct graph_node){
                           .kind = GRAPH_BINARY, .op = op, .n_args = 2, .args = {left, right}});
}

/* Minus binds weaker than **, and ** to the right: -x ** 2 ** y is -(x ** (2 ** y)). */
static uint16_t parse_unary(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return refuse(p, "the graph is nested too deeply");
    uint16_t node;
    if (take(p, "-")) {
        const uint16_t inner = parse_unary(p);
        node =
            inner == NO_NODE
                ? inner
                : new_node(p,
                           &(struct graph_node){.kind = GRAPH_MINUS, .n_args = 1, .args = {inner}});
    } else {
        node = parse_primary(p);
        if (node != NO_NODE && take(p, "**"))
            node = pair(p, '^', node, parse_unary(p));
    }
    p->depth--;
    return node;
}

static uint16_t parse_product(struct parser *p)
{
    uint16_t left = parse_unary(p);
    while (left != NO_NODE && (peek(p) == '*' || peek(p) == '/')) {
        const char op = p->rest.ptr[0];
        skip(p, 1);
        left = pair(p, op, left, parse_unary(p));
    }
    return left;
}

static uint16_t parse_sum(struct parser *p)
{
    uint16_t left = parse_product(p);
    while (left != NO_NODE && (peek(p) == '+' || peek(p) == '-')) {
        const char op = p->rest.ptr[0];
        skip(p, 1);
        left = pair(p, op, left, parse_product(p));
    }
    return left;
}

static void parse_statement(struct parser *p)
{
    struct graph *graph = p->graph;
    struct graph_statement statement;
    if (graph->n_statements == GRAPH_MAX_STATEMENTS) {
        refuse(p, "the graph has too many statements");
        return;
    }
    if (!take_name(p, &statement.target) || !take(p, "=")) {
        refuse(p, "a statement of the graph reads 'name = expression'");
        return;
    }
    statement.root = parse_sum(p);
    graph->statements[graph->n_statements++] = statement;
}

bool graph_parse(struct llm_span text, struct graph *graph, const char **problem)
{
    struct parser p = {.rest = text, .graph = graph};
    graph->n_nodes = 0;
    graph->n_statements = 0;
    if (text.len > MAX_TEXT)
        refuse(&p, "the graph is too long");
    if (!peek(&p))
        refuse(&p, "the task has no graph");
    while (!p.problem && peek(&p)) {
        parse_statement(&p);
        if (!p.problem && peek(&p) && !take(&p, ";"))
            refuse(&p, "something follows a statement of the graph");
    }
    *problem = p.problem;
    return p.problem == NULL;
}

const struct graph_node *graph_arg(const struct graph *graph, const struct graph_node *call,
                                   int position, const char *keyword)
{
    int seen = 0;
    for (uint32_t i = 0; i < call->n_args; ++i) {
        const bool positional = call->keywords[i].len == 0;
        if (positional ? seen++ == position : llm_span_is(call->keywords[i], keyword))
            return &graph->nodes[call->args[i]];
    }
    return NULL;
}
