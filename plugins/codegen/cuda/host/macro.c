/* Replacing macros: see lex.h. */
#include "lex.h"
#include <string.h>

enum { MAX_DEPTH = 16, MAX_TOKENS = 50000 };

struct list {
    struct cg_pool *pool;
    struct cg_token *t;
    size_t n, cap;
};

/* One argument of a macro's call. */
struct piece {
    const struct cg_token *from, *to;
};

static void append(struct list *l, const struct cg_token *t)
{
    cg_step(l->pool);
    if (l->n >= MAX_TOKENS)
        longjmp(*l->pool->out, CG_TOO_COMPLEX);
    l->t = cg_grow(l->pool, l->t, l->n, &l->cap, sizeof(*l->t));
    l->t[l->n++] = *t;
}

const struct cg_macro *cg_find_macro(const struct cg_macros *macros, const struct cg_token *name)
{
    for (size_t i = macros->n; name->kind == CG_NAME && i > 0; i--)
        if (cg_is(name, macros->list[i - 1].name))
            return &macros->list[i - 1];
    return NULL;
}

/* Splits the arguments behind the '(' at `at`; returns the ')' or NULL. */
static const struct cg_token *split_call(const struct cg_token *at, const struct cg_token *end,
                                         struct piece *args, int *n)
{
    int depth = 0;
    const struct cg_token *from = at + 1;
    *n = 0;
    for (const struct cg_token *t = at; t < end; t++) {
        bool one = t->kind == CG_OP && t->n == 1;
        depth += (one && strchr("([{", *t->s)) - (one && strchr(")]}", *t->s));
        if ((depth == 1 && cg_is(t, ",") && *n < 31) || (depth == 0 && t > at)) {
            args[(*n)++] = (struct piece){from, t};
            from = t + 1;
        }
        if (depth == 0)
            return t;
    }
    return NULL;
}

static int param_of(const struct cg_macro *m, const struct cg_token *t)
{
    for (int i = 0; i < m->n_params; i++)
        if (t->kind == CG_NAME && cg_is(t, m->params[i]))
            return i;
    return m->variadic && cg_is(t, "__VA_ARGS__") ? m->n_params : -1;
}

/* The macro's body with its parameters replaced; # and ## done. */
static void substitute(struct list *out, const struct cg_macro *m, const struct piece *args, int n)
{
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct cg_token *t = &m->body.t[i];
        int p = param_of(m, t);
        bool paste = i > 0 && cg_is(&m->body.t[i - 1], "##") && out->n > 0;
        if (cg_is(t, "##"))
            continue;
        if (cg_is(t, "#") && i + 1 < m->body.n && param_of(m, t + 1) >= 0) {
            struct cg_token text = {.s = "", .kind = CG_STRING, .at = CG_NOWHERE};
            append(out, &text);
            i++;
            continue;
        }
        size_t first = out->n;
        if (p < 0)
            append(out, t);
        for (int k = p; p >= 0 && k < n && (k == p || p == m->n_params); k++) {
            for (const struct cg_token *a = args[k].from; a < args[k].to; a++)
                append(out, a);
            if (p == m->n_params && k + 1 < n)
                append(out, args[k].to);
        }
        if (paste && out->n > first) {
            struct cg_token *left = &out->t[first - 1], *right = &out->t[first];
            left->s =
                cg_format(out->pool, "%.*s%.*s", (int)left->n, left->s, (int)right->n, right->s);
            left->n += right->n;
            memmove(right, right + 1, (out->n - first - 1) * sizeof(*right));
            out->n--;
        }
    }
}

static void expand(struct list *out, const struct cg_macros *macros, const struct cg_token *from,
                   const struct cg_token *to, const char *const *busy, int depth)
{
    for (const struct cg_token *t = from; t < to; t++) {
        for (size_t i = 0; i <= macros->n / 4; i++) /* what the search for the name costs */
            cg_step(out->pool);
        const struct cg_macro *m = depth < MAX_DEPTH ? cg_find_macro(macros, t) : NULL;
        struct piece args[32];
        int n = 0;
        for (int i = 0; m && i < depth; i++)
            if (!strcmp(busy[i], m->name))
                m = NULL;
        const struct cg_token *close = t;
        if (m && m->n_params >= 0)
            close = t + 1 < to && cg_is(t + 1, "(") ? split_call(t + 1, to, args, &n) : NULL;
        if (!m || !close) {
            append(out, t);
            continue;
        }
        struct list body = {.pool = out->pool};
        const char *now[MAX_DEPTH + 1];
        if (depth)
            memcpy(now, busy, (size_t)depth * sizeof(*now));
        now[depth] = m->name;
        substitute(&body, m, args, n);
        if (body.n)
            expand(out, macros, body.t, body.t + body.n, now, depth + 1);
        t = close;
    }
}

struct cg_tokens cg_expand(struct cg_pool *pool, const struct cg_macros *macros,
                           const struct cg_token *from, const struct cg_token *to)
{
    struct list out = {.pool = pool};
    struct cg_token end = {.s = "", .kind = CG_END, .at = CG_NOWHERE};
    expand(&out, macros, from, to, NULL, 0);
    append(&out, &end);
    return cg_pair(pool, out.t, out.n - 1);
}
