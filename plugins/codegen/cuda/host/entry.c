/* Which functions launch, and where reading starts: see entry.h. */
#include "entry.h"
#include <string.h>

static bool starts_with(const struct cg_token *t, const char *text)
{
    size_t n = strlen(text);
    return t->kind == CG_NAME && t->n >= n && !memcmp(t->s, text, n);
}

static bool launches(const struct cg_token *t)
{
    return cg_is(t, "<<<") || starts_with(t, "cudaLaunchKernel") ||
           starts_with(t, "cudaLaunchCooperativeKernel");
}

static bool macro_launches(const struct cg_macros *macros, const struct cg_token *t)
{
    const struct cg_macro *m = cg_find_macro(macros, t);
    for (uint32_t i = 0; m && i < m->body.n; i++)
        if (launches(&m->body.t[i]))
            return true;
    return false;
}

static bool is_host(const struct cg_item *it)
{
    return it->kind == CG_FUNCTION && !it->global;
}

const bool *cg_find_reaching(struct cg_pool *pool, const struct cg_tokens *tokens,
                             const struct cg_items *items, const struct cg_macros *macros)
{
    bool *reaches = cg_take(pool, items->n + 1), more = true;
    for (size_t k = 0; k < items->n; k++)
        for (uint32_t i = items->list[k].open; is_host(&items->list[k]) && i < items->list[k].close;
             i++)
            reaches[k] |= launches(&tokens->t[i]) || macro_launches(macros, &tokens->t[i]);
    while (more) {
        more = false;
        for (size_t k = 0; k < items->n; k++) {
            const struct cg_item *it = &items->list[k];
            for (uint32_t i = it->open; is_host(it) && !reaches[k] && i < it->close; i++)
                for (size_t j = 0; tokens->t[i].kind == CG_NAME && j < items->n; j++) {
                    cg_step(pool);
                    if (reaches[j] && cg_is(&tokens->t[i], items->list[j].name)) {
                        reaches[k] = more = true;
                        break;
                    }
                }
        }
    }
    return reaches;
}

static bool mentions(const struct cg_tokens *t, uint32_t from, uint32_t to, const char *name)
{
    for (uint32_t i = from; i < to; i++)
        if (t->t[i].kind == CG_NAME && cg_is(&t->t[i], name))
            return true;
    return false;
}

/* How likely the function is the one to start from. */
static int likelihood(struct cg_host *h, size_t k)
{
    static const char *const names[] = {"forward", "launch", "solve", "run", NULL};
    const struct cg_item *it = &h->items->list[k];
    int score = 0;
    if (!strcmp(it->name, "main"))
        return -1000;
    for (size_t j = 0; j < h->items->n; j++) {
        const struct cg_item *other = &h->items->list[j];
        bool binding = other->kind == CG_INVOKED && other->open;
        bool is_main = other->kind == CG_FUNCTION && !strcmp(other->name, "main");
        if (j == k || (!binding && !is_main && !(is_host(other) && h->reaches[j])))
            continue;
        if (!mentions(h->tokens, other->open, other->close, it->name))
            continue;
        score += binding ? 100 : is_main ? 10 : -200;
    }
    for (const char *const *n = names; *n; n++)
        score += strstr(it->name, *n) ? 1 : 0;
    if (strstr(it->name, "bench") || strstr(it->name, "test") || strstr(it->name, "time"))
        score -= 50;
    return score;
}

uint32_t cg_find_entries(struct cg_host *h, const struct cg_item **entries)
{
    int scores[CG_MAX_ENTRIES];
    uint32_t n = 0;
    for (size_t k = h->items->n; k > 0; k--) { /* later ones first among equals */
        if (!h->reaches[k - 1] || !is_host(&h->items->list[k - 1]))
            continue;
        int score = likelihood(h, k - 1);
        if (score < -150 && score > -900) /* another one calls it */
            continue;
        uint32_t at = n < CG_MAX_ENTRIES ? n++ : CG_MAX_ENTRIES - 1;
        while (at > 0 && scores[at - 1] < score) {
            scores[at] = scores[at - 1];
            entries[at] = entries[at - 1];
            at--;
        }
        scores[at] = score;
        entries[at] = &h->items->list[k - 1];
    }
    return n;
}

/* A parameter's default value where the task has nothing for it. */
static struct cg_value fallback(struct cg_host *h, const struct cg_parameter *p,
                                const struct cg_type *type)
{
    if (p->behind > p->value) {
        const struct cg_tokens *code = h->code;
        h->code = h->tokens;
        struct cg_value v = cg_eval_range(h, p->value, p->behind);
        h->code = code;
        return v;
    }
    if (type->cls == CG_TYPE_OTHER || type->cls == CG_TYPE_AUTO)
        return cg_opaque(type->text);
    return cg_unknown(h, "`%.80s`, which is nothing of the task", p->name);
}

static bool is_tuning(const char *name)
{
    static const char *const words[] = {"thread", "block",  "grid",   "tile",   "iter", "warp",
                                        "tpb",    "repeat", "device", "stream", "smem", "shared"};
    char lower[64];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof(lower); n++)
        lower[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] + 32 : name[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

struct cg_value cg_run_entry(struct cg_host *h, const struct cg_item *item)
{
    struct cg_slot slots[CG_MAX_ARGS];
    struct cg_value args[CG_MAX_ARGS];
    uint32_t n = item->n_params < CG_MAX_ARGS ? item->n_params : CG_MAX_ARGS;
    cg_enter_class(h, item);
    for (uint32_t k = 0; k < n; k++) {
        const struct cg_parameter *p = &item->params[k];
        slots[k] = (struct cg_slot){.name = p->name, .type = cg_param_type(h, h->tokens, p)};
        bool named = cg_bind_name(h, p->name).kind == CG_NUM;
        bool flag = slots[k].type.dtype == RUNG_BOOL && slots[k].type.cls == CG_TYPE_INT;
        if (flag || is_tuning(p->name) || (p->behind > p->value && !named))
            if (slots[k].type.cls != CG_TYPE_POINTER && slots[k].type.cls != CG_TYPE_TENSOR)
                slots[k].type.cls = CG_TYPE_VOID;
    }
    cg_bind(h, slots, n);
    for (uint32_t k = 0; k < n; k++) {
        struct cg_type type = slots[k].type;
        args[k] = slots[k].value.kind == CG_NOTHING ? fallback(h, &item->params[k], &type)
                                                    : slots[k].value;
    }
    return cg_call_item(h, item, "", args, n);
}
