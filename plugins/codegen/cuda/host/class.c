/* Classes around launches: members as global variables, set by the constructor. See host.h. */
#include "host.h"
#include <string.h>

static void add_member(struct cg_host *h, const struct cg_token *name, struct cg_type type)
{
    const char *text = cg_token_text(h->pool, name);
    for (size_t i = 0; i < h->n_globals; i++)
        if (!strcmp(h->globals[i].name, text))
            return;
    struct cg_value nothing = {.kind = CG_NOTHING};
    h->globals = cg_grow(h->pool, h->globals, h->n_globals, &h->cap_globals, sizeof(*h->globals));
    h->globals[h->n_globals++] = (struct cg_variable){.name = text, .value = nothing, .type = type};
}

/* The variables among a class's declarations: `int n_, blocks_;` and `float *scratch = nullptr;`.
 */
static void declare_members(struct cg_host *h, const struct cg_item *it)
{
    const struct cg_tokens *c = h->tokens;
    for (uint32_t i = it->open + 1; i < it->close;) {
        struct cg_type type;
        uint32_t end = i, names = cg_read_type(h, c, i, it->close, &type);
        bool function = false;
        while (end < it->close && !cg_is(&c->t[end], ";") && !cg_is(&c->t[end], "{")) {
            function |= cg_is(&c->t[end], "(");
            end = c->partner[end] > end ? c->partner[end] + 1 : end + 1;
        }
        for (uint32_t k = names; !function && names > i && k < end; k++)
            if (c->t[k].kind == CG_NAME &&
                (k == names || cg_is(&c->t[k - 1], ",") || cg_is(&c->t[k - 1], "*")))
                add_member(h, &c->t[k], type);
        if (cg_is(&c->t[i], "public") || cg_is(&c->t[i], "private") || cg_is(&c->t[i], "protected"))
            end = i + 1;
        else if (end < it->close && cg_is(&c->t[end], "{"))
            end = c->partner[end];
        i = end > i ? end + 1 : i + 1;
    }
}

/* `: n_(n), blocks_((n + 255) / 256)` behind the constructor's parameters. */
static void run_initializers(struct cg_host *h, const struct cg_item *it)
{
    const struct cg_tokens *c = h->tokens;
    h->code = c;
    for (uint32_t i = it->from; i + 1 < it->open; i++) {
        const struct cg_token *t = &c->t[i];
        bool listed = i > it->from && (cg_is(t - 1, ":") || cg_is(t - 1, ","));
        bool opens = cg_is(t + 1, "(") || cg_is(t + 1, "{");
        if (c->partner[i] > i) {
            i = c->partner[i];
        } else if (listed && t->kind == CG_NAME && opens && c->partner[i + 1] > i + 1) {
            struct cg_value v = cg_eval_range(h, i + 2, c->partner[i + 1]);
            cg_assign(h, cg_token_text(h->pool, t), v);
            i = c->partner[i + 1];
        }
    }
}

static void run_constructor(struct cg_host *h, const struct cg_item *it)
{
    struct cg_slot slots[CG_MAX_ARGS];
    uint32_t n = it->n_params < CG_MAX_ARGS ? it->n_params : CG_MAX_ARGS;
    size_t n_vars = h->n_vars, frame = h->frame;
    for (uint32_t k = 0; k < n; k++)
        slots[k] = (struct cg_slot){.name = it->params[k].name,
                                    .type = cg_param_type(h, h->tokens, &it->params[k])};
    cg_bind(h, slots, n);
    h->frame = h->n_vars;
    for (uint32_t k = 0; k < n; k++)
        if (slots[k].value.kind != CG_NOTHING)
            cg_declare(h, slots[k].name, slots[k].value, slots[k].type);
    run_initializers(h, it);
    struct cg_tokens body =
        cg_expand(h->pool, h->macros, &h->tokens->t[it->open + 1], &h->tokens->t[it->close]);
    h->code = &body;
    h->i = 0;
    h->end = body.n;
    cg_walk(h, body.n);
    h->flow = CG_NEXT;
    h->problem = NULL; /* what it does besides does not matter */
    h->code = h->tokens;
    h->n_vars = n_vars;
    h->frame = frame;
}

void cg_enter_class(struct cg_host *h, const struct cg_item *method)
{
    const struct cg_item *type = NULL;
    for (size_t k = 0; k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        if (it->kind == CG_TYPE && it->open < method->from && method->to <= it->close)
            type = it;
    }
    if (!type)
        return;
    declare_members(h, type);
    for (size_t k = 0; k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        bool inside = it->from > type->open && it->to <= type->close;
        bool own = !strcmp(it->name, type->name) && it->open && it->n_params;
        if (inside && own && !(it->from && cg_is(&h->tokens->t[it->from], "~"))) {
            run_constructor(h, it);
            return;
        }
    }
}
