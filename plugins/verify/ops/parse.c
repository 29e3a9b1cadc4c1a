/*
 * Recursive descent over the graph text. The text is the user's file and may be anything: depth,
 * length and number of nodes are bounded, and every fault carries its column.
 */
#include "graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct parser {
    const struct ops_who *who;
    const char *text, *at;
    uint32_t depth, n_nodes;
};

int32_t ops_fail(const struct ops_who *who, int32_t status, uint32_t column, const char *format,
                 ...)
{
    struct rung_error *err = who->call->error;
    int at = column ? snprintf(err->message, sizeof err->message, "%s:%u: ", who->what, column)
                    : snprintf(err->message, sizeof err->message, "%s: ", who->what);
    if (at < 0 || (size_t)at >= sizeof err->message)
        at = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message + at, sizeof err->message - (size_t)at, format, args);
    va_end(args);
    snprintf(err->symbol, sizeof err->symbol, "ops.graph");
    err->code = status;
    return status;
}

int32_t ops_no_memory(const struct ops_who *who)
{
    return ops_fail(who, RUNG_ENOMEM, 0, "out of memory");
}

static uint32_t column(const struct parser *p)
{
    return (uint32_t)(p->at - p->text) + 1;
}

static void skip_space(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int32_t unexpected(const struct parser *p, const char *wanted)
{
    if (!*p->at)
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "the text ends; expected %s", wanted);
    if (*p->at < ' ' || *p->at > '~')
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "unexpected byte 0x%02x; expected %s",
                        (unsigned char)*p->at, wanted);
    return ops_fail(p->who, RUNG_ECONFIG, column(p), "unexpected '%c'; expected %s", *p->at,
                    wanted);
}

/* Skips space and, when the text goes on with `c`, takes it. */
static int take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c)
        return 0;
    p->at++;
    return 1;
}

static void *new_block(struct parser *p, uint64_t size)
{
    return p->who->host->alloc(p->who->host, p->who->call->arena, size, 8);
}

static int32_t new_node(struct parser *p, enum ops_node_kind kind, struct ops_node **out)
{
    if (++p->n_nodes > OPS_MAX_NODES)
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "more than %d operations", OPS_MAX_NODES);
    *out = new_block(p, sizeof **out);
    if (!*out)
        return ops_no_memory(p->who);
    (*out)->kind = kind;
    (*out)->column = column(p);
    return RUNG_OK;
}

static int32_t read_name(struct parser *p, const char **out)
{
    const char *start = p->at;
    while (is_letter(*p->at) || is_digit(*p->at))
        p->at++;
    size_t n = (size_t)(p->at - start);
    if (n > 63) {
        p->at = start;
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "a name of more than 63 letters");
    }
    char *name = new_block(p, n + 1);
    if (!name)
        return ops_no_memory(p->who);
    memcpy(name, start, n);
    *out = name;
    return RUNG_OK;
}

/*
 * Digits, point, exponent. The C library's reader obeys the locale, so the value is put together
 * here: up to 19 digits in an integer, one scaling in long double (error below 2^-62).
 */
static int32_t read_number(struct parser *p, double *out)
{
    uint64_t digits = 0;
    int scale = 0, seen = 0, point = 0;
    for (; is_digit(*p->at) || (*p->at == '.' && !point); p->at++) {
        if (*p->at == '.') {
            point = 1;
            continue;
        }
        seen = 1;
        if (digits < 900000000000000000u) {
            digits = digits * 10 + (uint64_t)(*p->at - '0');
            scale -= point;
        } else {
            scale += !point;
        }
    }
    if (!seen)
        return unexpected(p, "a digit");
    if (*p->at == 'e' || *p->at == 'E') {
        int negative = p->at[1] == '-', exponent = 0;
        p->at += p->at[1] == '-' || p->at[1] == '+' ? 2 : 1;
        if (!is_digit(*p->at))
            return unexpected(p, "the digits of an exponent");
        for (; is_digit(*p->at); p->at++)
            exponent = exponent > 9999 ? exponent : exponent * 10 + (*p->at - '0');
        scale += negative ? -exponent : exponent;
    }
    long double value = digits ? (long double)digits * powl(10.0L, scale) : 0.0L;
    if (scale < -4900 && digits)
        value = 0.0L;
    *out = (double)value;
    if (!isfinite(*out))
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "a number beyond the range of float64");
    return RUNG_OK;
}

static int32_t read_sum(struct parser *p, const struct ops_node **out);

/* One argument: `name = value`, an expression, or (values only) a list in brackets. */
static int32_t read_arg(struct parser *p, struct ops_arg **out)
{
    struct ops_arg *arg = new_block(p, sizeof *arg);
    if (!arg)
        return ops_no_memory(p->who);
    skip_space(p);
    arg->column = column(p);
    const char *start = p->at;
    if (is_letter(*p->at)) {
        int32_t status = read_name(p, &arg->name);
        if (status)
            return status;
        if (!take(p, '=')) {
            p->at = start;
            arg->name = NULL;
        }
    }
    *out = arg;
    return read_sum(p, &arg->value);
}

/* Arguments up to `close`, which is taken. */
static int32_t read_args(struct parser *p, char close, struct ops_arg **out)
{
    struct ops_arg **end = out;
    char wanted[] = "',' or 'x'";
    wanted[8] = close;
    if (!take(p, close)) {
        do {
            int32_t status = read_arg(p, end);
            if (status)
                return status;
            end = &(*end)->next;
        } while (take(p, ','));
        if (!take(p, close))
            return unexpected(p, wanted);
    }
    return RUNG_OK;
}

static int32_t read_name_or_call(struct parser *p, const struct ops_node **out)
{
    struct ops_node *node;
    int32_t status = new_node(p, OPS_NAME, &node);
    if (!status)
        status = read_name(p, &node->name);
    if (!status && take(p, '(')) {
        struct ops_arg *args = NULL;
        node->kind = OPS_CALL;
        status = read_args(p, ')', &args);
        node->args = args;
    }
    *out = node;
    return status;
}

/* After '(': an expression in brackets, or with a comma a list as in Python, (a, b) or (a,). */
static int32_t read_group(struct parser *p, const struct ops_node **out)
{
    uint32_t at = column(p);
    struct ops_node *list;
    int32_t status = read_sum(p, out);
    if (status || take(p, ')'))
        return status;
    if (!take(p, ','))
        return unexpected(p, "')'");
    status = new_node(p, OPS_LIST, &list);
    struct ops_arg *first = status ? NULL : new_block(p, sizeof *first);
    if (!first)
        return status ? status : ops_no_memory(p->who);
    *first = (struct ops_arg){.column = at, .value = *out};
    list->column = at;
    list->args = first;
    *out = list;
    return read_args(p, ')', &first->next);
}

static int32_t read_primary(struct parser *p, const struct ops_node **out)
{
    struct ops_node *node;
    int32_t status;
    skip_space(p);
    if (is_letter(*p->at))
        return read_name_or_call(p, out);
    if (take(p, '('))
        return read_group(p, out);
    if (*p->at == '[' || is_digit(*p->at) || *p->at == '.') {
        status = new_node(p, *p->at == '[' ? OPS_LIST : OPS_NUMBER, &node);
        if (status)
            return status;
        *out = node;
        if (!take(p, '['))
            return read_number(p, &node->number);
        struct ops_arg *args = NULL;
        status = read_args(p, ']', &args);
        node->args = args;
        return status;
    }
    return unexpected(p, "a name, a number or '('");
}

static int32_t binary(struct parser *p, char op, const struct ops_node *a, uint32_t at,
                      struct ops_node **out)
{
    int32_t status = new_node(p, OPS_BINARY, out);
    if (status)
        return status;
    (*out)->op = op;
    (*out)->a = a;
    (*out)->column = at;
    return RUNG_OK;
}

static int32_t read_unary(struct parser *p, const struct ops_node **out);

/* As in Python, ** binds tighter than a sign on its left, and to the right. */
static int32_t read_power(struct parser *p, const struct ops_node **out)
{
    int32_t status = read_primary(p, out);
    skip_space(p);
    if (status || p->at[0] != '*' || p->at[1] != '*')
        return status;
    struct ops_node *node;
    status = binary(p, '^', *out, column(p), &node);
    p->at += 2;
    if (!status)
        status = read_unary(p, &node->b);
    *out = node;
    return status;
}

static int32_t read_unary(struct parser *p, const struct ops_node **out)
{
    if (++p->depth > OPS_MAX_DEPTH)
        return ops_fail(p->who, RUNG_ECONFIG, column(p), "nested deeper than %d", OPS_MAX_DEPTH);
    int32_t status;
    if (take(p, '-')) {
        struct ops_node *node;
        status = new_node(p, OPS_NEG, &node);
        if (!status)
            status = read_unary(p, &node->a);
        *out = node;
    } else if (take(p, '+')) {
        status = read_unary(p, out);
    } else {
        status = read_power(p, out);
    }
    p->depth--;
    return status;
}

static int32_t read_product(struct parser *p, const struct ops_node **out)
{
    int32_t status = read_unary(p, out);
    for (skip_space(p); !status && *p->at && strchr("*/%", *p->at); skip_space(p)) {
        struct ops_node *node;
        status = binary(p, *p->at, *out, column(p), &node);
        p->at++;
        if (!status)
            status = read_unary(p, &node->b);
        *out = node;
    }
    return status;
}

static int32_t read_sum(struct parser *p, const struct ops_node **out)
{
    int32_t status = read_product(p, out);
    for (skip_space(p); !status && (*p->at == '+' || *p->at == '-'); skip_space(p)) {
        struct ops_node *node;
        status = binary(p, *p->at, *out, column(p), &node);
        p->at++;
        if (!status)
            status = read_product(p, &node->b);
        *out = node;
    }
    return status;
}

static int32_t read_stmt(struct parser *p, struct ops_stmt **out)
{
    struct ops_stmt *stmt = new_block(p, sizeof *stmt);
    if (!stmt)
        return ops_no_memory(p->who);
    *out = stmt;
    stmt->column = column(p);
    if (!is_letter(*p->at))
        return unexpected(p, "the name of a tensor and '='");
    int32_t status = read_name(p, &stmt->name);
    if (status)
        return status;
    if (!take(p, '='))
        return unexpected(p, "'='");
    return read_sum(p, &stmt->value);
}

static int32_t too_long(const struct ops_who *who, const char *text)
{
    if (strnlen(text, OPS_MAX_TEXT + 1) <= OPS_MAX_TEXT)
        return RUNG_OK;
    return ops_fail(who, RUNG_ECONFIG, 0, "the text is longer than %u bytes", OPS_MAX_TEXT);
}

int32_t ops_parse_graph(const struct ops_who *who, const char *text, const struct ops_stmt **out)
{
    struct parser p = {.who = who, .text = text, .at = text};
    struct ops_stmt *first = NULL, **end = &first;
    int32_t status = too_long(who, text);
    for (skip_space(&p); !status && (*p.at || !first); skip_space(&p)) {
        status = read_stmt(&p, end);
        if (status)
            return status;
        end = &(*end)->next;
        if (!take(&p, ';') && *p.at)
            return unexpected(&p, "an operator or ';'");
    }
    *out = first;
    return status;
}

int32_t ops_parse_list(const struct ops_who *who, const char *text, const struct ops_arg **out)
{
    struct parser p = {.who = who, .text = text, .at = text};
    struct ops_arg *first = NULL, **end = &first;
    int32_t status = too_long(who, text);
    skip_space(&p);
    *out = NULL;
    if (status || !*p.at)
        return status;
    do {
        status = read_arg(&p, end);
        if (status)
            return status;
        end = &(*end)->next;
    } while (take(&p, ','));
    skip_space(&p);
    *out = first;
    return *p.at ? unexpected(&p, "an operator or ','") : RUNG_OK;
}
