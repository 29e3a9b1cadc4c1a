/* Taking host code out of a source: see translate.h. What kernels use is kept. */
#include "items.h"
#include "translate.h"
#include <string.h>

struct stripping {
    struct cg_pool *pool;
    struct cg_tokens tokens;
    struct cg_macros macros;
    struct cg_items items;
    bool *keep;
};

static bool starts_with(const struct cg_token *t, const char *text)
{
    size_t n = strlen(text);
    return t->kind == CG_NAME && t->n >= n && !memcmp(t->s, text, n);
}

/* Whether a token is a macro that launches. */
static bool launches(const struct stripping *s, const struct cg_token *t)
{
    const struct cg_macro *m = cg_find_macro(&s->macros, t);
    for (uint32_t i = 0; m && i < m->body.n; i++)
        if (cg_is(&m->body.t[i], "<<<"))
            return true;
    return false;
}

/* Names of the standard library that have no meaning on a device; min, is_same and so on have. */
static bool is_host_name(const struct cg_token *t)
{
    static const char *const names[] = {"vector",        "string",
                                        "cout",          "cerr",
                                        "endl",          "chrono",
                                        "unique_ptr",    "shared_ptr",
                                        "thread",        "random_device",
                                        "mt19937",       "runtime_error",
                                        "ofstream",      "ifstream",
                                        "map",           "function",
                                        "cin",           "printf",
                                        "unordered_map", "mutex",
                                        "stringstream",  "ostream",
                                        "exception",     "invalid_argument",
                                        "optional",      "default_random_engine",
                                        "exit",          "malloc"};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
        if (cg_is(t, names[k]))
            return true;
    return false;
}

/* Whether [from, to) has what no device compiler takes. */
static bool is_hostile(const struct stripping *s, uint32_t from, uint32_t to)
{
    static const char *const names[] = {"torch", "c10",  "main",    "thrust", "pybind11",
                                        "cout",  "cerr", "fprintf", "Tensor"};
    for (uint32_t i = from; i < to; i++) {
        const struct cg_token *t = &s->tokens.t[i], *next = t + 1;
        bool api = starts_with(t, "cuda") && t->n > 4 && t->s[4] >= 'A' && t->s[4] <= 'Z';
        bool scoped = i + 2 < to && cg_is(next, "::");
        bool space = scoped &&
                     (cg_is(t, "at") || cg_is(t, "py") || (cg_is(t, "std") && is_host_name(t + 2)));
        bool vector = cg_is(t, "vector") && cg_is(next, "<");
        if (cg_is(t, "<<<") || launches(s, t) || api || space || vector)
            return true;
        for (size_t k = 0; t->kind == CG_NAME && k < sizeof(names) / sizeof(*names); k++)
            if (cg_is(t, names[k]))
                return true;
    }
    return false;
}

static bool is_host(const struct stripping *s, const struct cg_item *it)
{
    switch (it->kind) {
    case CG_FUNCTION:
    case CG_PROTOTYPE:
    case CG_VARIABLE:
        return !it->device && is_hostile(s, it->from, it->to);
    case CG_INVOKED:
        return starts_with(&s->tokens.t[it->from], "PYBIND11") ||
               starts_with(&s->tokens.t[it->from], "TORCH_LIBRARY");
    case CG_TYPE:
        return is_hostile(s, it->from, it->to);
    default:
        return false;
    }
}

static bool is_foreign_namespace(const struct stripping *s, const struct cg_item *it)
{
    static const char *const names[] = {"std", "torch", "at", "c10", "thrust", "py"};
    for (uint32_t i = it->from; i < it->to; i++)
        for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
            if (cg_is(&s->tokens.t[i], names[k]))
                return true;
    return false;
}

/* Whether the item stays whoever uses it. */
static bool stays(const struct stripping *s, const struct cg_item *it)
{
    if (it->kind == CG_USING)
        return !is_foreign_namespace(s, it);
    if (it->kind == CG_INVOKED)
        return !is_host(s, it);
    return it->device;
}

static bool names_item(const struct stripping *s, uint32_t from, uint32_t to, const char *name)
{
    for (uint32_t i = from; i < to; i++) {
        const struct cg_token *t = &s->tokens.t[i];
        cg_step(s->pool);
        if (t->kind != CG_NAME)
            continue;
        if (cg_is(t, name))
            return true;
        const struct cg_macro *m = cg_find_macro(&s->macros, t);
        for (uint32_t k = 0; m && k < m->body.n; k++)
            if (cg_is(&m->body.t[k], name))
                return true;
    }
    return false;
}

/* An enum without a name, or one whose name is not used, may still give constants. */
static bool is_used(const struct stripping *s, const struct cg_item *it)
{
    for (size_t k = 0; k < s->items.n; k++) {
        const struct cg_item *user = &s->items.list[k];
        if (!s->keep[k] || user == it)
            continue;
        if (it->name[0] && names_item(s, user->from, user->to, it->name))
            return true;
        bool is_enum = it->kind == CG_TYPE && cg_is(&s->tokens.t[it->from], "enum");
        for (uint32_t i = it->open; is_enum && i < it->close; i++)
            if (s->tokens.t[i].kind == CG_NAME &&
                names_item(s, user->from, user->to, cg_token_text(s->pool, &s->tokens.t[i])))
                return true;
    }
    return false;
}

static void choose(struct stripping *s)
{
    bool more = true;
    for (size_t k = 0; k < s->items.n; k++)
        s->keep[k] = stays(s, &s->items.list[k]);
    while (more) {
        more = false;
        for (size_t k = 0; k < s->items.n; k++) {
            const struct cg_item *it = &s->items.list[k];
            if (s->keep[k] || is_host(s, it) || it->kind == CG_INVOKED || it->kind == CG_USING)
                continue;
            if (is_used(s, it))
                s->keep[k] = more = true;
        }
    }
}

static bool open(struct cg_pool *pool, const char *source, struct stripping *s)
{
    *s = (struct stripping){.pool = pool};
    s->tokens = cg_lex(pool, source, CG_CPP_ALL, &s->macros);
    if (!s->tokens.balanced) { /* branches that are no code together */
        s->macros.n = 0;
        s->tokens = cg_lex(pool, source, CG_CPP, &s->macros);
    }
    s->items = cg_items_scan(pool, &s->tokens);
    s->keep = cg_take(pool, s->items.n + 1);
    return s->tokens.balanced;
}

/* ---- Headers -------------------------------------------------------------------------------- */

/* Whether a line includes a header that only hosts have. */
static bool is_host_include(const char *line, size_t n)
{
    static const char *const headers[] = {"torch/",
                                          "ATen/",
                                          "c10/",
                                          "pybind11",
                                          "cuda_runtime",
                                          "iostream",
                                          "vector",
                                          "cstdio",
                                          "stdio.h",
                                          "cstdlib",
                                          "stdlib.h",
                                          "chrono",
                                          "random",
                                          "string>",
                                          "memory>",
                                          "iomanip",
                                          "fstream",
                                          "sstream",
                                          "algorithm",
                                          "numeric",
                                          "map>",
                                          "thrust/",
                                          "cuda.h",
                                          "tuple>",
                                          "helper_cuda",
                                          "time.h",
                                          "ctime",
                                          "stdexcept",
                                          "cassert>",
                                          "cublas",
                                          "curand.h",
                                          "functional",
                                          "Python.h",
                                          "string.h",
                                          "cstring",
                                          "driver_types",
                                          "device_launch_parameters",
                                          "utility>",
                                          "thread>",
                                          "optional>"};
    char text[128];
    size_t from = strspn(line, " \t");
    if (from >= n || line[from] != '#')
        return false;
    const char *p = line + from + 1 + strspn(line + from + 1, " \t");
    if (strncmp(p, "include", 7) != 0)
        return false;
    p += 7 + strspn(p + 7, " \t<\"");
    if (p >= line + n)
        return false;
    size_t k = (size_t)(line + n - p);
    k = k < sizeof(text) - 1 ? k : sizeof(text) - 1;
    memcpy(text, p, k);
    text[k] = '\0';
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        if (!strncmp(text, headers[i], strlen(headers[i])))
            return true;
    return false;
}

/* ---- Text ----------------------------------------------------------------------------------- */

struct output {
    const struct stripping *s;
    char *text;
    size_t n;
    int newlines; /* at the end */
};

static void put(struct output *o, char c)
{
    if (c == '\n' && o->newlines >= 2)
        return;
    o->newlines = c == '\n' ? o->newlines + 1 : 0;
    o->text[o->n++] = c;
}

static bool used_macro(const struct stripping *s, const char *name, int depth)
{
    for (size_t k = 0; k < s->items.n; k++)
        if (s->keep[k] && names_item(s, s->items.list[k].from, s->items.list[k].to, name))
            return true;
    for (size_t k = 0; depth < 4 && k < s->macros.n; k++) {
        const struct cg_macro *m = &s->macros.list[k];
        bool names = false;
        for (uint32_t i = 0; i < m->body.n; i++)
            names |= cg_is(&m->body.t[i], name) && strcmp(m->name, name) != 0;
        if (names && used_macro(s, m->name, depth + 1))
            return true;
    }
    return false;
}

/*
 * Bytes of a #define with all its lines, when it is for host code: a macro of functions that only
 * hosts have, which nothing that stays uses. 0 else.
 */
static size_t host_macro(const struct stripping *s, const char *from, const char *to)
{
    const char *p = from + strspn(from, " \t");
    if (*p != '#')
        return 0;
    p += 1 + strspn(p + 1, " \t");
    if (strncmp(p, "define", 6) != 0)
        return 0;
    p += 6 + strspn(p + 6, " \t");
    for (size_t k = 0; k < s->macros.n; k++) {
        const struct cg_macro *m = &s->macros.list[k];
        size_t n = strlen(m->name);
        if (strncmp(p, m->name, n) != 0 || (p[n] != '(' && p[n] != ' ' && p[n] != '\t'))
            continue;
        bool hostile = false;
        for (uint32_t i = 0; i < m->body.n; i++)
            hostile |= starts_with(&m->body.t[i], "TORCH_") || starts_with(&m->body.t[i], "cuda") ||
                       cg_is(&m->body.t[i], "std") || cg_is(&m->body.t[i], "fprintf") ||
                       cg_is(&m->body.t[i], "<<<");
        if (!hostile || used_macro(s, m->name, 0))
            return 0;
        const char *end = from;
        while (end < to && *end != '\n')
            end += end[0] == '\\' && end + 1 < to ? 2 : 1;
        return (size_t)(end - from);
    }
    return 0;
}

/* Copies a part without includes of host headers and macros of host code. */
static void copy(struct output *o, const char *from, const char *to)
{
    while (from < to) {
        size_t macro = host_macro(o->s, from, to);
        const char *end = memchr(from + macro, '\n', (size_t)(to - from) - macro);
        size_t n = (size_t)((end ? end : to) - from);
        if (!macro && !is_host_include(from, n)) {
            for (size_t i = 0; i < n; i++)
                put(o, from[i]);
            if (end)
                put(o, '\n');
        }
        from += n + (end != NULL);
    }
}

/* Of a part that goes, the plan lines stay. */
static void copy_plan_lines(struct output *o, const char *from, const char *to)
{
    while (from < to) {
        const char *end = memchr(from, '\n', (size_t)(to - from));
        size_t n = (size_t)((end ? end : to) - from), skip = strspn(from, " \t");
        if (skip + 3 <= n && !strncmp(from + skip, "//@", 3)) {
            if (o->newlines == 0 && o->n)
                put(o, '\n');
            for (size_t i = skip; i < n; i++)
                put(o, from[i]);
            put(o, '\n');
        }
        from += n + (end != NULL);
    }
}

const char *cg_strip(struct cg_pool *pool, const char *source)
{
    struct stripping s;
    struct output o = {.s = &s, .text = cg_take(pool, strlen(source) * 2 + 2)};
    const char *at = source;
    open(pool, source, &s);
    choose(&s);
    for (size_t k = 0; k < s.items.n; k++) {
        const struct cg_item *it = &s.items.list[k];
        if (s.keep[k] || it->to <= it->from)
            continue;
        const char *from = source + s.tokens.t[it->from].at;
        const char *to = source + s.tokens.t[it->to - 1].end;
        if (from < at)
            continue;
        copy(&o, at, from);
        copy_plan_lines(&o, from, to);
        at = to;
    }
    copy(&o, at, source + strlen(source));
    o.text[o.n] = '\0';
    return o.text;
}

bool cg_has_host_code(struct cg_pool *pool, const char *source)
{
    struct stripping s;
    if (!open(pool, source, &s))
        return false;
    for (size_t k = 0; k < s.items.n; k++)
        if (is_host(&s, &s.items.list[k]))
            return true;
    for (const char *line = source; *line;) {
        size_t n = strcspn(line, "\n"), quote = strcspn(line, "\"<\n");
        if (is_host_include(line, n) && quote < n && !strncmp(line + quote + 1, "torch/", 6))
            return true;
        line += n + (line[n] != '\0');
    }
    return false;
}
