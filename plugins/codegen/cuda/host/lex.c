/* Tokens: see lex.h. Macros are replaced in macro.c. */
#include "lex.h"
#include <ctype.h>
#include <string.h>

enum { MAX_NESTING = 64 };

struct lexer {
    struct cg_pool *pool;
    const char *s;
    size_t at;
    enum cg_language language;
    struct cg_macros *macros;
    struct cg_token *t;
    size_t n, cap;
    bool dead[MAX_NESTING]; /* of the #if nests: the branch is not kept */
    bool taken[MAX_NESTING];
    int nesting;
    size_t line_start;
    bool glued, first;
};

bool cg_is(const struct cg_token *t, const char *text)
{
    size_t n = strlen(text);
    return t->n == n && t->kind != CG_STRING && t->kind != CG_CHAR && !memcmp(t->s, text, n);
}

char *cg_token_text(struct cg_pool *pool, const struct cg_token *t)
{
    return cg_text(pool, t->s, t->n);
}

char *cg_tokens_text(struct cg_pool *pool, const struct cg_token *from, const struct cg_token *to)
{
    size_t n = 0;
    for (const struct cg_token *t = from; t < to; t++)
        n += t->n + 1;
    char *text = cg_take(pool, n + 1), *p = text;
    for (const struct cg_token *t = from; t < to; t++) {
        bool words = t > from && (t[-1].kind == CG_NAME || t[-1].kind == CG_NUMBER) &&
                     (t->kind == CG_NAME || t->kind == CG_NUMBER);
        if (words || (t > from && t[-1].n == 1 && t[-1].s[0] == ','))
            *p++ = ' ';
        memcpy(p, t->s, t->n);
        p += t->n;
    }
    return text;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct cg_token *push(struct lexer *l, enum cg_kind kind, size_t from, size_t to)
{
    l->t = cg_grow(l->pool, l->t, l->n, &l->cap, sizeof(*l->t));
    struct cg_token *t = &l->t[l->n++];
    *t = (struct cg_token){.s = l->s + from,
                           .n = (uint32_t)(to - from),
                           .at = (uint32_t)from,
                           .end = (uint32_t)to,
                           .column = (uint32_t)(from - l->line_start),
                           .kind = (uint8_t)kind,
                           .glued = l->glued,
                           .first = l->first};
    l->glued = true;
    l->first = false;
    return t;
}

/* Past blanks and comments; a backslash before a line's end joins lines. */
static void skip_blanks(struct lexer *l)
{
    for (;;) {
        const char *p = l->s + l->at;
        if (*p == '\n') {
            l->line_start = l->at + 1;
            l->first = true;
            l->at++;
        } else if (isspace((unsigned char)*p)) {
            l->at++;
        } else if (p[0] == '\\' && p[1] == '\n') {
            l->at += 2;
        } else if (l->language != CG_PYTHON ? p[0] == '/' && p[1] == '/' : *p == '#') {
            l->at += strcspn(p, "\n");
        } else if (l->language != CG_PYTHON && p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            l->at += end ? (size_t)(end - p) + 2 : strlen(p);
        } else {
            return;
        }
        l->glued = false;
    }
}

/* Inside of a literal: its end, and where the closing quote (of n characters) stands. */
static size_t close_literal(const char *s, size_t at, const char *quote, size_t n, bool raw,
                            size_t *end)
{
    while (s[at] && strncmp(s + at, quote, n) != 0 && (n > 1 || s[at] != '\n'))
        at += !raw && s[at] == '\\' && s[at + 1] ? 2 : 1;
    *end = at;
    return s[at] && s[at] != '\n' ? at + n : at;
}

/* The literal whose quote stands at l->at; its prefix starts at `from`. */
static void read_string(struct lexer *l, bool raw, size_t from)
{
    char quote[20] = {l->s[l->at]};
    size_t inside = l->at + 1, n = 1, end;
    const char *p = l->s + l->at;
    if (l->language == CG_PYTHON && p[1] == quote[0] && p[2] == quote[0]) {
        quote[1] = quote[2] = quote[0];
        inside += 2;
        n = 3;
    } else if (l->language != CG_PYTHON && raw && quote[0] == '"') {
        size_t d = strcspn(p + 1, "(\n\"\\ )");
        if (d <= 16 && p[1 + d] == '(') {
            quote[0] = ')';
            memcpy(quote + 1, p + 1, d);
            quote[d + 1] = '"';
            inside += d + 1;
            n = d + 2;
        }
    }
    l->at = close_literal(l->s, inside, quote, n, raw, &end);
    struct cg_token *t = push(l, CG_STRING, from, l->at);
    if (l->language != CG_PYTHON && quote[0] == '\'')
        t->kind = CG_CHAR;
    t->s = l->s + inside;
    t->n = (uint32_t)(end - inside);
}

static void read_number(struct lexer *l)
{
    size_t from = l->at;
    const char *s = l->s;
    while (is_word(s[l->at]) || s[l->at] == '.' ||
           (s[l->at] == '\'' && is_word(s[l->at + 1]) && l->language != CG_PYTHON) ||
           ((s[l->at] == '+' || s[l->at] == '-') && (s[l->at - 1] == 'e' || s[l->at - 1] == 'E') &&
            !(s[from] == '0' && (s[from + 1] == 'x' || s[from + 1] == 'X'))))
        l->at++;
    push(l, CG_NUMBER, from, l->at);
}

static void read_operator(struct lexer *l)
{
    static const char *const operators[] = {
        "<<<", "<<=", "...", "->*", "::", "->", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=",
        "|=",  "^=",  "==",  "!=",  "<=", ">=", "&&", "||", "<<", "##", "**", "//", ":="};
    size_t n = 1;
    const char *p = l->s + l->at;
    for (size_t i = 0; i < sizeof(operators) / sizeof(*operators) && n == 1; i++) {
        size_t k = strlen(operators[i]);
        bool python = k == 2 && (!strcmp(operators[i], "**") || !strcmp(operators[i], "//") ||
                                 !strcmp(operators[i], ":="));
        if (!strncmp(p, operators[i], k) && (!python || l->language == CG_PYTHON))
            n = k;
    }
    l->at += n;
    push(l, CG_OP, l->at - n, l->at);
}

static void read_token(struct lexer *l)
{
    const char *s = l->s;
    size_t from = l->at;
    if (isdigit((unsigned char)s[from]) ||
        (s[from] == '.' && isdigit((unsigned char)s[from + 1]))) {
        read_number(l);
    } else if (is_word(s[from])) {
        while (is_word(s[l->at]))
            l->at++;
        size_t n = l->at - from;
        bool quote = s[l->at] == '"' || s[l->at] == '\'';
        bool cpp = l->language != CG_PYTHON;
        if (quote && n <= 2 && strspn(s + from, cpp ? "LuUR8" : "rRfFbBuU") >= n)
            read_string(l, memchr(s + from, 'R', n) || (!cpp && memchr(s + from, 'r', n)), from);
        else
            push(l, CG_NAME, from, l->at);
    } else if (s[from] == '"' || s[from] == '\'') {
        read_string(l, false, from);
    } else {
        read_operator(l);
    }
}

/* ---- Directives ----------------------------------------------------------------------------- */

/* The end of a directive: the first line's end without a backslash before it. */
static size_t directive_end(const char *s, size_t at)
{
    for (; s[at]; at++) {
        if (s[at] == '\n')
            return at;
        if (s[at] == '/' && s[at + 1] == '*') {
            const char *end = strstr(s + at + 2, "*/");
            if (!end)
                return strlen(s);
            at = (size_t)(end - s) + 1;
        } else if (s[at] == '\\' && s[at + 1] == '\n') {
            at++;
        }
    }
    return at;
}

/* The parameters of "NAME(a, b, ...)"; returns how many tokens they take. */
static uint32_t macro_params(struct cg_pool *pool, struct cg_macro *m, const struct cg_tokens *t)
{
    uint32_t i = 1;
    m->n_params = -1;
    if (t->n < 2 || !cg_is(&t->t[1], "(") || !t->t[1].glued)
        return 1;
    m->n_params = 0;
    for (i = 2; i < t->n && !cg_is(&t->t[i], ")"); i++) {
        m->variadic |= cg_is(&t->t[i], "...");
        if (t->t[i].kind == CG_NAME && m->n_params < 16)
            m->params[m->n_params++] = cg_token_text(pool, &t->t[i]);
    }
    return i < t->n ? i + 1 : i;
}

static void define(struct lexer *l, const char *text, size_t n)
{
    char *copy = cg_text(l->pool, text, n);
    for (char *p = copy; *p; p++)
        if (p[0] == '\\' && p[1] == '\n')
            p[0] = p[1] = ' ';
    struct cg_tokens t = cg_lex(l->pool, copy, CG_CPP, NULL);
    if (!l->macros || !t.n || t.t[0].kind != CG_NAME || l->macros->n >= 4096)
        return;
    l->macros->list =
        cg_grow(l->pool, l->macros->list, l->macros->n, &l->macros->cap, sizeof(*l->macros->list));
    struct cg_macro *m = &l->macros->list[l->macros->n++];
    *m = (struct cg_macro){.name = cg_token_text(l->pool, &t.t[0])};
    uint32_t from = macro_params(l->pool, m, &t);
    for (uint32_t i = 0; i < t.n; i++)
        t.t[i].at = CG_NOWHERE;
    m->body = (struct cg_tokens){.t = t.t + from, .n = t.n - from};
}

static bool defined(struct lexer *l, const char *text, size_t n)
{
    struct cg_tokens t = cg_lex(l->pool, cg_text(l->pool, text, n), CG_CPP, NULL);
    return t.n && l->macros && cg_find_macro(l->macros, &t.t[0]);
}

/* Whether the branch behind #if, #ifdef or #ifndef is kept. */
static bool keeps(struct lexer *l, const char *word, size_t w, const char *rest, size_t n)
{
    while (n && isspace((unsigned char)*rest)) {
        rest++;
        n--;
    }
    if (w == 5) /* ifdef */
        return defined(l, rest, n);
    if (w == 6) /* ifndef */
        return !defined(l, rest, n);
    (void)word;
    bool device = n > 9 && memmem(rest, n, "__CUDA_ARCH__", 13);
    return !(n && rest[0] == '0' && (n == 1 || !is_word(rest[1]))) && !device;
}

static bool alive(const struct lexer *l)
{
    if (l->language == CG_CPP_ALL)
        return true;
    for (int i = 0; i < l->nesting; i++)
        if (l->dead[i])
            return false;
    return true;
}

static void read_directive(struct lexer *l)
{
    size_t end = directive_end(l->s, l->at), p = l->at + 1;
    p += strspn(l->s + p, " \t");
    const char *word = l->s + p;
    size_t w = 0;
    while (is_word(word[w]))
        w++;
    size_t rest = p + w;
    size_t n = end > rest ? end - rest : 0;
    int top = l->nesting - 1;
    if (w == 6 && !strncmp(word, "define", 6)) {
        if (alive(l))
            define(l, l->s + rest, n);
    } else if (w >= 2 && !strncmp(word, "if", 2)) {
        if (l->nesting < MAX_NESTING) {
            bool keep = keeps(l, word, w, l->s + rest, n);
            l->dead[l->nesting] = !keep;
            l->taken[l->nesting++] = keep;
        }
    } else if (w == 4 && (!strncmp(word, "else", 4) || !strncmp(word, "elif", 4)) && top >= 0) {
        l->dead[top] = l->taken[top];
        l->taken[top] = true;
    } else if (w == 5 && !strncmp(word, "endif", 5) && top >= 0) {
        l->nesting--;
    }
    l->at = end;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static bool opens(const struct cg_token *t)
{
    return t->kind == CG_OP && t->n == 1 && strchr("([{", t->s[0]);
}

static bool closes(const struct cg_token *t)
{
    return t->kind == CG_OP && t->n == 1 && strchr(")]}", t->s[0]);
}

static char partner_of(char c)
{
    return c == '(' ? ')' : c == '[' ? ']' : '}';
}

/* Pairs brackets; a closing one ends all that stand open inside its own. */
static struct cg_tokens pair(struct cg_pool *pool, struct cg_token *t, size_t n)
{
    struct cg_tokens out = {.t = t, .n = (uint32_t)n, .balanced = true};
    uint32_t *stack = cg_take(pool, (n + 1) * sizeof(*stack));
    size_t depth = 0;
    out.partner = cg_take(pool, (n + 1) * sizeof(*out.partner));
    for (uint32_t i = 0; i <= n; i++)
        out.partner[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        if (opens(&t[i]))
            stack[depth++] = i;
        if (!closes(&t[i]))
            continue;
        size_t d = depth;
        while (d && partner_of(t[stack[d - 1]].s[0]) != t[i].s[0] && t[i].s[0] == '}')
            d--;
        bool fits = d && partner_of(t[stack[d - 1]].s[0]) == t[i].s[0];
        out.balanced &= fits && d == depth;
        if (!fits)
            continue;
        out.partner[stack[d - 1]] = i;
        out.partner[i] = stack[d - 1];
        depth = d - 1;
    }
    out.balanced &= depth == 0;
    return out;
}

struct cg_tokens cg_lex(struct cg_pool *pool, const char *source, enum cg_language language,
                        struct cg_macros *macros)
{
    struct lexer l = {
        .pool = pool, .s = source, .language = language, .macros = macros, .first = true};
    for (skip_blanks(&l); source[l.at]; skip_blanks(&l)) {
        cg_step(pool);
        if (language != CG_PYTHON && source[l.at] == '#' && l.first) {
            read_directive(&l);
        } else if (!alive(&l)) {
            l.at += strcspn(source + l.at, "\n");
        } else {
            read_token(&l);
        }
    }
    push(&l, CG_END, l.at, l.at);
    return pair(pool, l.t, l.n - 1);
}

struct cg_tokens cg_pair(struct cg_pool *pool, struct cg_token *t, size_t n)
{
    t[n] = (struct cg_token){.s = "", .kind = CG_END, .at = CG_NOWHERE};
    return pair(pool, t, n);
}
