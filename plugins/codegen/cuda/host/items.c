/* Namespace level of a source: see items.h. */
#include "items.h"
#include <string.h>

enum { MAX_PARAMS = 64, MAX_NESTING = 32 };

struct scan {
    struct cg_pool *pool;
    const struct cg_tokens *tokens;
    struct cg_items items;
};

uint32_t cg_close_angle(const struct cg_tokens *tokens, uint32_t i, uint32_t to)
{
    int depth = 0;
    for (uint32_t j = i; j < to; j++) {
        const struct cg_token *t = &tokens->t[j];
        if (cg_is(t, "<"))
            depth++;
        else if (cg_is(t, ">"))
            depth--;
        else if (cg_is(t, ";") || cg_is(t, "{") || cg_is(t, "&&") || cg_is(t, "||") ||
                 cg_is(t, "?") || (tokens->partner[j] < j && t->kind == CG_OP) || cg_is(t, ")"))
            return i;
        else if (tokens->partner[j] > j)
            j = tokens->partner[j];
        if (depth == 0)
            return j + 1;
    }
    return i;
}

uint32_t cg_split_list(const struct cg_tokens *tokens, uint32_t from, uint32_t to, uint32_t *starts,
                       uint32_t *ends, uint32_t max)
{
    uint32_t n = 0, start = from;
    for (uint32_t i = from; i <= to && n < max; i++) {
        if (i == to || cg_is(&tokens->t[i], ",")) {
            if (i > start) {
                starts[n] = start;
                ends[n++] = i;
            }
            start = i + 1;
        } else if (cg_is(&tokens->t[i], "<")) {
            uint32_t close = cg_close_angle(tokens, i, to);
            i = close > i ? close - 1 : i;
        } else if (tokens->partner[i] > i && tokens->partner[i] < to) {
            i = tokens->partner[i];
        }
    }
    return n;
}

static bool is_type_word(const struct cg_token *t)
{
    static const char *const words[] = {"int",    "float",    "double", "char",  "bool",
                                        "long",   "short",    "const",  "void",  "unsigned",
                                        "signed", "typename", "class",  "size_t"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (cg_is(t, words[i]))
            return true;
    return false;
}

static struct cg_parameter read_param(struct scan *s, uint32_t from, uint32_t to)
{
    struct cg_parameter p = {.name = "", .from = from, .to = to};
    const struct cg_token *t = s->tokens->t;
    for (uint32_t i = from; i < to; i++)
        if (cg_is(&t[i], "=")) {
            p.value = i + 1;
            p.behind = to;
            p.to = i;
            break;
        }
    p.is_type = cg_is(&t[from], "typename") || cg_is(&t[from], "class");
    uint32_t end = p.to;
    for (uint32_t i = from; i < end; i++)
        if (cg_is(&t[i], "["))
            end = i;
    for (uint32_t i = end; i > from && !p.name[0]; i--)
        if (t[i - 1].kind == CG_NAME) {
            bool alone = i - 1 == from && !p.is_type;
            if (!is_type_word(&t[i - 1]) && !alone)
                p.name = cg_token_text(s->pool, &t[i - 1]);
            break;
        }
    return p;
}

static const struct cg_parameter *read_params(struct scan *s, uint32_t from, uint32_t to,
                                              uint32_t *n)
{
    uint32_t starts[MAX_PARAMS], ends[MAX_PARAMS];
    *n = cg_split_list(s->tokens, from, to, starts, ends, MAX_PARAMS);
    if (*n == 1 && ends[0] == starts[0] + 1 && cg_is(&s->tokens->t[starts[0]], "void"))
        *n = 0;
    struct cg_parameter *list = cg_take(s->pool, (*n + 1) * sizeof(*list));
    for (uint32_t i = 0; i < *n; i++)
        list[i] = read_param(s, starts[i], ends[i]);
    return list;
}

static void add(struct scan *s, const struct cg_item *item)
{
    s->items.list = cg_grow(s->pool, s->items.list, s->items.n, &s->items.cap, sizeof(*item));
    s->items.list[s->items.n++] = *item;
}

/* The ';' at or behind i, past brackets; `to` when there is none. */
static uint32_t find_end(const struct cg_tokens *t, uint32_t i, uint32_t to)
{
    while (i < to && !cg_is(&t->t[i], ";"))
        i = t->partner[i] > i ? t->partner[i] + 1 : i + 1;
    return i < to ? i : to;
}

static uint32_t finish(struct scan *s, struct cg_item *item, enum cg_item_kind kind, uint32_t end)
{
    item->kind = kind;
    item->to = end;
    add(s, item);
    return end;
}

/* A name, its parameters at `open` and what follows. Returns the item's end. */
static uint32_t read_function(struct scan *s, struct cg_item *item, uint32_t open, uint32_t to)
{
    const struct cg_token *t = s->tokens->t;
    uint32_t close = s->tokens->partner[open], i = close + 1;
    bool bare = open == item->from + 1;
    if (open > item->from && t[open - 1].kind == CG_NAME)
        item->name = cg_token_text(s->pool, &t[open - 1]);
    else if (open > item->from + 2 && cg_is(&t[open - 3], "operator"))
        item->name = "operator()";
    item->params = read_params(s, open + 1, close, &item->n_params);
    while (i < to && !cg_is(&t[i], "{") && !cg_is(&t[i], ";") && !cg_is(&t[i], "=") &&
           (!bare || i == close + 1) && i < close + 24)
        i = s->tokens->partner[i] > i ? s->tokens->partner[i] + 1 : i + 1;
    if (i < to && cg_is(&t[i], "{") && s->tokens->partner[i] > i) {
        item->open = i;
        item->close = s->tokens->partner[i];
        return finish(s, item, bare ? CG_INVOKED : CG_FUNCTION, item->close + 1);
    }
    if (bare && !(i < to && cg_is(&t[i], ";")))
        return finish(s, item, CG_INVOKED, close + 1);
    i = find_end(s->tokens, i, to);
    return finish(s, item, bare ? CG_INVOKED : CG_PROTOTYPE, i < to ? i + 1 : to);
}

static void scan_level(struct scan *s, uint32_t from, uint32_t to, const char *space, int depth);

static bool is_attribute(const struct cg_token *t)
{
    return (t->n > 2 && t->s[0] == '_' && t->s[1] == '_' && t->kind == CG_NAME) ||
           cg_is(t, "alignas") || cg_is(t, "decltype") || cg_is(t, "explicit");
}

static uint32_t read_type(struct scan *s, struct cg_item *item, uint32_t i, uint32_t to)
{
    const struct cg_token *t = s->tokens->t;
    uint32_t brace = i;
    while (brace < to && !cg_is(&t[brace], "{") && !cg_is(&t[brace], ";")) {
        if (t[brace].kind == CG_NAME && !item->name[0] && brace > i && !is_attribute(&t[brace]) &&
            !cg_is(&t[brace], "class") && !cg_is(&t[brace], "struct"))
            item->name = cg_token_text(s->pool, &t[brace]);
        brace = s->tokens->partner[brace] > brace ? s->tokens->partner[brace] + 1 : brace + 1;
    }
    if (brace < to && cg_is(&t[brace], "{") && s->tokens->partner[brace] > brace) {
        item->open = brace;
        item->close = s->tokens->partner[brace];
    }
    uint32_t end = find_end(s->tokens, brace, to);
    finish(s, item, CG_TYPE, end < to ? end + 1 : to);
    for (uint32_t k = item->open; k < item->close; k++)
        if (cg_is(&t[k], "<<<")) { /* methods that launch */
            scan_level(s, item->open + 1, item->close, item->space, MAX_NESTING);
            break;
        }
    return end < to ? end + 1 : to;
}

static uint32_t read_variable(struct scan *s, struct cg_item *item, uint32_t i, uint32_t to)
{
    const struct cg_token *t = s->tokens->t;
    for (uint32_t j = i; j > item->from && !item->name[0]; j--)
        if (t[j - 1].kind == CG_NAME)
            item->name = cg_token_text(s->pool, &t[j - 1]);
        else if (cg_is(&t[j - 1], "]") && s->tokens->partner[j - 1] > item->from)
            j = s->tokens->partner[j - 1] + 1;
    uint32_t end = find_end(s->tokens, i, to);
    return finish(s, item, CG_VARIABLE, end < to ? end + 1 : to);
}

/* One declaration at item->from. Returns its end. */
static uint32_t read_item(struct scan *s, struct cg_item *item, uint32_t to)
{
    const struct cg_tokens *tk = s->tokens;
    uint32_t i = item->from;
    while (i < to) {
        const struct cg_token *t = &tk->t[i];
        cg_step(s->pool);
        item->global |= cg_is(t, "__global__");
        item->device |= cg_is(t, "__device__") || cg_is(t, "__global__") ||
                        cg_is(t, "__constant__") || cg_is(t, "__shared__");
        item->constant |= cg_is(t, "constexpr") || cg_is(t, "const");
        if (cg_is(t, "template") && i + 1 < to && cg_is(t + 1, "<")) {
            uint32_t end = cg_close_angle(tk, i + 1, to);
            if (end > i + 1)
                item->template_params = read_params(s, i + 2, end - 1, &item->n_template_params);
            item->is_template = true;
            i = end > i + 1 ? end : i + 2;
        } else if (cg_is(t, "struct") || cg_is(t, "class") || cg_is(t, "union") ||
                   cg_is(t, "enum")) {
            return read_type(s, item, i, to);
        } else if (cg_is(t, "using") || cg_is(t, "typedef") || cg_is(t, "static_assert")) {
            uint32_t end = find_end(tk, i, to);
            return finish(s, item, CG_USING, end < to ? end + 1 : to);
        } else if (cg_is(t, "(") && i > item->from && is_attribute(t - 1) && tk->partner[i] > i) {
            i = tk->partner[i] + 1;
        } else if (cg_is(t, "(") && i > item->from && cg_is(t - 1, "operator") && i + 2 < to &&
                   cg_is(t + 2, "(")) {
            return read_function(s, item, i + 2, to);
        } else if (cg_is(t, "(") && tk->partner[i] > i) {
            return read_function(s, item, i, to);
        } else if (cg_is(t, "<")) {
            uint32_t end = cg_close_angle(tk, i, to);
            i = end > i ? end : i + 1;
        } else if (cg_is(t, "=") || cg_is(t, ";") || cg_is(t, "{")) {
            return read_variable(s, item, i, to);
        } else if (cg_is(t, "[") && tk->partner[i] > i) {
            i = tk->partner[i] + 1;
        } else {
            i++;
        }
    }
    return finish(s, item, CG_VARIABLE, to);
}

/* namespace a::b { }, namespace { }, namespace a = b;. Returns the end. */
static uint32_t read_namespace(struct scan *s, uint32_t i, uint32_t to, const char *space,
                               int depth)
{
    const struct cg_token *t = s->tokens->t;
    struct cg_item item = {.from = i, .name = "", .space = space};
    const char *inner = space;
    uint32_t j = i + 1;
    for (; j < to && !cg_is(&t[j], "{") && !cg_is(&t[j], ";"); j++)
        if (t[j].kind == CG_NAME && !cg_is(&t[j], "namespace"))
            inner = cg_format(s->pool, "%s%s%.*s", inner, *inner ? "::" : "", (int)t[j].n, t[j].s);
    if (j >= to || !cg_is(&t[j], "{") || s->tokens->partner[j] <= j)
        return finish(s, &item, CG_USING, j < to ? j + 1 : to);
    scan_level(s, j + 1, s->tokens->partner[j], inner, depth + 1);
    return s->tokens->partner[j] + 1;
}

static void scan_level(struct scan *s, uint32_t from, uint32_t to, const char *space, int depth)
{
    const struct cg_token *t = s->tokens->t;
    uint32_t i = from;
    if (depth > MAX_NESTING)
        return;
    while (i < to) {
        cg_step(s->pool);
        bool c_block = i + 2 < to && cg_is(&t[i], "extern") && t[i + 1].kind == CG_STRING &&
                       cg_is(&t[i + 2], "{") && s->tokens->partner[i + 2] > i;
        bool named = cg_is(&t[i], "namespace") ||
                     (cg_is(&t[i], "inline") && i + 1 < to && cg_is(&t[i + 1], "namespace"));
        struct cg_item item = {.from = i, .name = "", .space = space};
        if (cg_is(&t[i], ";") || cg_is(&t[i], "}")) {
            i++;
        } else if (named) {
            i = read_namespace(s, i + (cg_is(&t[i], "inline") ? 1 : 0), to, space, depth);
        } else if (c_block) {
            scan_level(s, i + 3, s->tokens->partner[i + 2], space, depth + 1);
            i = s->tokens->partner[i + 2] + 1;
        } else {
            uint32_t end = read_item(s, &item, to);
            i = end > i ? end : i + 1;
        }
    }
}

struct cg_items cg_items_scan(struct cg_pool *pool, const struct cg_tokens *tokens)
{
    struct scan s = {.pool = pool, .tokens = tokens};
    scan_level(&s, 0, tokens->n, "", 0);
    return s.items;
}

const struct cg_item *cg_find_function(const struct cg_items *items, const char *name)
{
    const struct cg_item *found = NULL;
    for (size_t i = 0; i < items->n; i++) {
        const struct cg_item *it = &items->list[i];
        if (it->kind == CG_FUNCTION && !strcmp(it->name, name))
            return it;
        if (it->kind == CG_PROTOTYPE && it->global && !strcmp(it->name, name))
            found = it;
    }
    return found;
}

const char *cg_full_name(struct cg_pool *pool, const struct cg_item *item)
{
    return *item->space ? cg_format(pool, "%s::%s", item->space, item->name) : item->name;
}
