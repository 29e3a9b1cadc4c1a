/*
 * Expressions: from text to tree. A recursive descent over at most 1000 characters; nesting is
 * counted, so hostile text can't exhaust the stack. Pure; results in the caller's arena.
 */
#include "task/expr_ast.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TEXT = 1000, MAX_NESTING = 64, MAX_NAME = 63 };

const char *const rung_expr_reserved[] = {"sm_count", "and",    "or",   "not",   "min", "max",
                                          "ceil_div", "sizeof", "true", "false", NULL};

struct parser {
    struct rung_arena *arena;
    const char *text;
    const char *at;
    int nesting;
    const char *problem; /* the first one; the parse unwinds with NULL */
};

static struct rung_expr *parse_or(struct parser *p);
static struct rung_expr *parse_unary(struct parser *p);

static struct rung_expr *fail(struct parser *p, const char *at, const char *message)
{
    if (!p->problem)
        p->problem = rung_arena_printf(p->arena, "column %d: %s", (int)(at - p->text) + 1, message);
    return NULL;
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool is_word_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_word_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    if (is_word_start(*s))
        while (is_word_part(s[n]))
            n++;
    return n;
}

static bool word_is(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

bool rung_expr_is_name(const char *text)
{
    size_t n = word_length(text);
    if (n == 0 || text[n] || n > MAX_NAME)
        return false;
    for (const char *const *r = rung_expr_reserved; *r; r++)
        if (strcmp(text, *r) == 0)
            return false;
    return true;
}

/* Takes the operator or word when it is next. A word must end where it ends. */
static bool take(struct parser *p, const char *token)
{
    skip_space(p);
    size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0 || (is_word_start(*token) && is_word_part(p->at[n])))
        return false;
    p->at += n;
    return true;
}

static struct rung_expr *node(struct parser *p, enum rung_expr_op op, const char *at,
                              const struct rung_expr *a, const struct rung_expr *b)
{
    struct rung_expr *e = RUNG_ARENA_NEW(p->arena, struct rung_expr, 1);
    *e = (struct rung_expr){.op = op, .column = (int)(at - p->text) + 1, .a = a, .b = b};
    return e;
}

static struct rung_expr *integer(struct parser *p, const char *at, int64_t value)
{
    struct rung_expr *e = node(p, EXPR_NUMBER, at, NULL, NULL);
    e->value.i = value;
    return e;
}

/* Digits, then an exponent or a fraction make a float. C's suffixes (1.0f, 4u, 4ull) are let
 * through. */
static struct rung_expr *parse_number(struct parser *p)
{
    const char *start = p->at, *s = start;
    bool is_float = false;
    while (isdigit((unsigned char)*s))
        s++;
    if (*s == '.') {
        is_float = true;
        for (s++; isdigit((unsigned char)*s);)
            s++;
    }
    if ((*s == 'e' || *s == 'E') && isdigit((unsigned char)s[s[1] == '+' || s[1] == '-' ? 2 : 1])) {
        is_float = true;
        for (s += 2; isdigit((unsigned char)*s);)
            s++;
    }
    char *digits = rung_arena_strndup(p->arena, start, (size_t)(s - start));
    s += is_float ? (*s == 'f' || *s == 'F') : (long)strspn(s, "uUlL");
    if (is_word_part(*s) || *s == '.')
        return fail(p, start, "this is no number; numbers are decimal, such as 128 or 1e-5");
    p->at = s;
    struct rung_expr *e = integer(p, start, 0);
    e->value.is_float = is_float;
    if (is_float && !rung_parse_f64(digits, &e->value.f))
        return fail(p, start, "the number is too large");
    if (!is_float && !rung_parse_i64(digits, &e->value.i))
        return fail(p, start, "the integer does not fit 64 bits");
    return e;
}

/* sizeof(float): in bytes, for shared=; types as kernels name them. */
static struct rung_expr *parse_sizeof(struct parser *p, const char *at)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {{"float", 4},         {"double", 8},        {"half", 2},     {"__half", 2},
                 {"int", 4},           {"unsigned", 4},      {"char", 1},     {"short", 2},
                 {"bool", 1},          {"float2", 8},        {"float4", 16},  {"int4", 16},
                 {"int2", 8},          {"int8_t", 1},        {"uint8_t", 1},  {"int16_t", 2},
                 {"uint16_t", 2},      {"int32_t", 4},       {"uint32_t", 4}, {"int64_t", 8},
                 {"uint64_t", 8},      {"half2", 4},         {"__half2", 4},  {"size_t", 8},
                 {"__nv_bfloat16", 2}, {"__nv_bfloat162", 4}};
    if (!take(p, "("))
        return fail(p, at, "sizeof needs a type in parentheses, such as sizeof(float)");
    skip_space(p);
    size_t n = word_length(p->at);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (word_is(p->at, n, types[i].name)) {
            p->at += n;
            return take(p, ")") ? integer(p, at, types[i].bytes)
                                : fail(p, p->at, "expected ')' after the type");
        }
    return fail(p, p->at, "sizeof knows plain types only, such as float or int; write the bytes");
}

static struct rung_expr *parse_call(struct parser *p, const char *at, size_t n)
{
    static const struct {
        const char *name;
        enum rung_expr_op op;
    } functions[] = {{"ceil_div", EXPR_CEIL_DIV}, {"min", EXPR_MIN}, {"max", EXPR_MAX}};
    enum rung_expr_op op = EXPR_NAME;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (word_is(at, n, functions[i].name))
            op = functions[i].op;
    if (op == EXPR_NAME)
        return fail(p, at, "there is no such function; there are ceil_div, min, max and sizeof");
    if (!take(p, "("))
        return fail(p, at, "ceil_div, min and max need arguments in parentheses");
    struct rung_expr *e = parse_or(p);
    int count = 1;
    while (e && take(p, ",")) {
        struct rung_expr *next = parse_or(p);
        e = next ? node(p, op, at, e, next) : NULL;
        count++;
    }
    if (e && !take(p, ")"))
        return fail(p, p->at, "expected ',' or ')'");
    if (e && (count < 2 || (op == EXPR_CEIL_DIV && count > 2)))
        return fail(p, at, "ceil_div takes two arguments, min and max two or more");
    return e;
}

static struct rung_expr *parse_word(struct parser *p)
{
    const char *at = p->at;
    size_t n = word_length(at);
    p->at += n;
    if (word_is(at, n, "sizeof"))
        return parse_sizeof(p, at);
    if (word_is(at, n, "true") || word_is(at, n, "false"))
        return integer(p, at, *at == 't');
    if (word_is(at, n, "and") || word_is(at, n, "or"))
        return fail(p, at, "expected a value before this word");
    skip_space(p);
    if (*p->at == '(' || word_is(at, n, "min") || word_is(at, n, "max") ||
        word_is(at, n, "ceil_div"))
        return parse_call(p, at, n);
    if (n > MAX_NAME)
        return fail(p, at, "the name is longer than 63 characters");
    struct rung_expr *e = node(p, EXPR_NAME, at, NULL, NULL);
    e->name = rung_arena_strndup(p->arena, at, n);
    return e;
}

static struct rung_expr *parse_primary(struct parser *p)
{
    skip_space(p);
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
        return parse_number(p);
    if (is_word_start(*p->at))
        return parse_word(p);
    if (take(p, "(")) {
        struct rung_expr *e = parse_or(p);
        return !e || take(p, ")") ? e : fail(p, p->at, "expected ')'");
    }
    return fail(p, p->at,
                *p->at ? "expected a number, a name or '('"
                       : "the expression ends where a value is missing");
}

/*
 * `not a == b` means not (a == b) to one reader and (not a) == b to another, so it is refused.
 */
static struct rung_expr *parse_not(struct parser *p, const char *at)
{
    skip_space(p);
    bool closed = *p->at == '(';
    struct rung_expr *a = parse_unary(p);
    if (!a)
        return NULL;
    skip_space(p);
    if (*p->at && strchr("=!<>+-*/%", *p->at))
        return fail(p, at,
                    closed ? "put 'not (...)' in parentheses of its own here"
                           : "write 'not (...)' around what it negates");
    return node(p, EXPR_NOT, at, a, NULL);
}

static struct rung_expr *parse_unary(struct parser *p)
{
    skip_space(p);
    const char *at = p->at;
    if (++p->nesting > MAX_NESTING)
        return fail(p, at, "nested more than 64 deep");
    struct rung_expr *e;
    if (take(p, "-")) {
        struct rung_expr *a = parse_unary(p);
        e = a ? node(p, EXPR_NEGATE, at, a, NULL) : NULL;
    } else if (take(p, "+")) {
        e = parse_unary(p);
    } else if (take(p, "not") || (at[0] == '!' && at[1] != '=' && take(p, "!"))) {
        e = parse_not(p, at);
    } else {
        e = parse_primary(p);
    }
    p->nesting--;
    return e;
}

static struct rung_expr *parse_product(struct parser *p)
{
    struct rung_expr *e = parse_unary(p);
    while (e) {
        skip_space(p);
        const char *at = p->at;
        if (at[0] == '/' && at[1] == '/')
            return fail(p, at, "write '/': it divides integers as C does");
        if (at[0] == '*' && at[1] == '*')
            return fail(p, at, "there is no power; write a product");
        enum rung_expr_op op = take(p, "*")   ? EXPR_MULTIPLY
                               : take(p, "/") ? EXPR_DIVIDE
                               : take(p, "%") ? EXPR_REMAINDER
                                              : EXPR_NUMBER;
        if (op == EXPR_NUMBER)
            return e;
        struct rung_expr *b = parse_unary(p);
        e = b ? node(p, op, at, e, b) : NULL;
    }
    return NULL;
}

static struct rung_expr *parse_sum(struct parser *p)
{
    struct rung_expr *e = parse_product(p);
    while (e) {
        skip_space(p);
        const char *at = p->at;
        bool add = take(p, "+");
        if (!add && !take(p, "-"))
            return e;
        struct rung_expr *b = parse_product(p);
        e = b ? node(p, add ? EXPR_ADD : EXPR_SUBTRACT, at, e, b) : NULL;
    }
    return NULL;
}

static bool take_comparison(struct parser *p, enum rung_expr_op *op)
{
    static const struct {
        const char *token;
        enum rung_expr_op op;
    } table[] = {{"==", EXPR_EQUAL},         {"!=", EXPR_UNEQUAL}, {"<=", EXPR_LESS_EQUAL},
                 {">=", EXPR_GREATER_EQUAL}, {"<", EXPR_LESS},     {">", EXPR_GREATER}};
    skip_space(p);
    if (strncmp(p->at, "<<", 2) == 0 || strncmp(p->at, ">>", 2) == 0) {
        fail(p, p->at, "there are no shifts; write * or / by a power of two");
        return false;
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (take(p, table[i].token)) {
            *op = table[i].op;
            return true;
        }
    return false;
}

static struct rung_expr *parse_comparison(struct parser *p)
{
    struct rung_expr *e = parse_sum(p);
    enum rung_expr_op op, again;
    skip_space(p);
    const char *at = p->at;
    if (!e || !take_comparison(p, &op))
        return p->problem ? NULL : e;
    struct rung_expr *b = parse_sum(p);
    if (!b)
        return NULL;
    at = p->at;
    if (take_comparison(p, &again))
        return fail(p, at, "comparisons can't be chained; write 'a < b and b < c'");
    return p->problem ? NULL : node(p, op, at, e, b);
}

static struct rung_expr *parse_and(struct parser *p)
{
    struct rung_expr *e = parse_comparison(p);
    while (e) {
        skip_space(p);
        const char *at = p->at;
        if (!take(p, "and") && !take(p, "&&"))
            return e;
        struct rung_expr *b = parse_comparison(p);
        e = b ? node(p, EXPR_AND, at, e, b) : NULL;
    }
    return NULL;
}

static struct rung_expr *parse_or(struct parser *p)
{
    struct rung_expr *e = parse_and(p);
    while (e) {
        skip_space(p);
        const char *at = p->at;
        if (!take(p, "or") && !take(p, "||"))
            return e;
        struct rung_expr *b = parse_and(p);
        e = b ? node(p, EXPR_OR, at, e, b) : NULL;
    }
    return NULL;
}

struct rung_expr *rung_expr_parse(struct rung_arena *arena, const char *text, const char **problem)
{
    struct parser p = {.arena = arena, .text = text, .at = text};
    struct rung_expr *e = NULL;
    *problem = NULL;
    if (strnlen(text, MAX_TEXT + 1) > MAX_TEXT) {
        fail(&p, text, "the expression is longer than 1000 characters");
    } else {
        e = parse_or(&p);
        skip_space(&p);
        if (e && *p.at == '?')
            e = fail(&p, p.at, "there is no '?:'; write two launches with when=");
        else if (e && *p.at)
            e = fail(&p, p.at, "expected an operator or the end of the expression");
    }
    *problem = p.problem;
    return e;
}

static const char *item_end(const char *s, int *depth)
{
    for (; *s && (*depth > 0 || *s != ','); s++) {
        if (strchr("([{", *s))
            ++*depth;
        else if (strchr(")]}", *s) && --*depth < 0)
            return s;
    }
    return s;
}

static char *trimmed(struct rung_arena *arena, const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    return rung_arena_strndup(arena, from, (size_t)(to - from));
}

bool rung_expr_split(struct rung_arena *arena, const char *text, const char ***items, size_t *n)
{
    size_t most = 1;
    for (const char *s = text; *s; s++)
        most += *s == ',';
    const char **list = RUNG_ARENA_NEW(arena, const char *, most);
    *items = list;
    *n = 0;
    if (text[strspn(text, " \t\r\n")] == 0)
        return true;
    for (const char *s = text;; s++) {
        int depth = 0;
        const char *end = item_end(s, &depth);
        if (depth != 0)
            return false;
        list[(*n)++] = trimmed(arena, s, end);
        s = end;
        if (!*s)
            return true;
    }
}
