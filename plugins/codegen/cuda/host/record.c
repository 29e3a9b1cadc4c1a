/* Structs and global variables of host code: see host.h. */
#include "host.h"
#include <string.h>

enum { MAX_MEMBERS = 48 };

struct member {
    const char *name;
    uint32_t from, to; /* its initializer; from == to: none */
};

static const struct cg_item *struct_of(const struct cg_host *h, const char *type)
{
    for (size_t k = 0; h->items && k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        if (it->kind == CG_TYPE && it->open && !strcmp(it->name, type))
            return it;
    }
    return NULL;
}

/* The members of one declaration [from, to): `int a, b = 2`. */
static uint32_t read_members(struct cg_host *h, uint32_t from, uint32_t to, struct member *list,
                             uint32_t n)
{
    const struct cg_tokens *c = h->tokens;
    for (uint32_t i = from; i < to && n < MAX_MEMBERS;) {
        uint32_t name = 0, start = 0;
        for (; i < to && !cg_is(&c->t[i], ","); i = c->partner[i] > i ? c->partner[i] + 1 : i + 1) {
            if (cg_is(&c->t[i], "(") || cg_is(&c->t[i], "static") || cg_is(&c->t[i], "using"))
                return n; /* a function */
            bool starts = cg_is(&c->t[i], "=") || cg_is(&c->t[i], "{");
            if (starts && !start)
                start = i + (cg_is(&c->t[i], "=") ? 1 : 0);
            if (c->t[i].kind == CG_NAME && !start)
                name = i;
        }
        if (name)
            list[n++] = (struct member){cg_token_text(h->pool, &c->t[name]), start ? start : i, i};
        i++;
    }
    return n;
}

static uint32_t members_of(struct cg_host *h, const struct cg_item *it, struct member *list)
{
    const struct cg_tokens *c = h->tokens;
    uint32_t n = 0;
    for (uint32_t i = it->open + 1; i < it->close;) {
        uint32_t from = i;
        bool body = false;
        while (i < it->close && !cg_is(&c->t[i], ";") && !body) {
            body = cg_is(&c->t[i], "{") && i > from && cg_is(&c->t[i - 1], ")");
            i = c->partner[i] > i ? c->partner[i] + 1 : i + 1;
        }
        if (!body)
            n = read_members(h, from, i, list, n);
        i += !body;
    }
    return n;
}

bool cg_struct_value(struct cg_host *h, const char *type, const struct cg_value *args, uint32_t n,
                     struct cg_value *out)
{
    struct member members[MAX_MEMBERS];
    const struct cg_item *it = struct_of(h, type);
    uint32_t count = it ? members_of(h, it, members) : 0;
    if (!count || n > count || h->calls > 16)
        return false;
    struct cg_value *list = cg_take(h->pool, count * sizeof(*list));
    const char **names = cg_take(h->pool, count * sizeof(*names));
    const struct cg_tokens *old = h->code;
    h->code = h->tokens;
    h->calls++;
    for (uint32_t k = 0; k < count; k++) {
        names[k] = members[k].name;
        list[k] = (struct cg_value){.kind = CG_NOTHING};
        if (k < n)
            list[k] = args[k];
        else if (members[k].from < members[k].to)
            list[k] = cg_eval_range(h, members[k].from, members[k].to);
    }
    h->calls--;
    h->code = old;
    *out = (struct cg_value){.kind = CG_RECORD, .list = list, .n = count, .names = names};
    return true;
}

bool cg_gather_record(struct cg_host *h, const char *name, struct cg_value *out)
{
    struct cg_value list[MAX_MEMBERS];
    const char *names[MAX_MEMBERS];
    size_t len = strlen(name);
    uint32_t n = 0;
    for (size_t i = h->frame; i < h->n_vars && n < MAX_MEMBERS; i++) {
        const struct cg_variable *v = &h->vars[i];
        if (strncmp(v->name, name, len) != 0 || v->name[len] != '.')
            continue;
        names[n] = v->name + len + 1;
        list[n++] = v->value;
    }
    if (!n)
        return false;
    struct cg_value *values = cg_take(h->pool, n * sizeof(*values));
    const char **kept = cg_take(h->pool, n * sizeof(*kept));
    memcpy(values, list, n * sizeof(*values));
    memcpy(kept, names, n * sizeof(*kept));
    *out = (struct cg_value){.kind = CG_RECORD, .list = values, .n = n, .names = kept};
    return true;
}

void cg_import_global(struct cg_host *h, const char *name)
{
    for (size_t k = 0; h->items && k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        struct cg_type type;
        if (it->kind != CG_VARIABLE || it->constant || it->device || strcmp(it->name, name) != 0 ||
            cg_find_variable(h, name) || h->calls > 16)
            continue;
        struct cg_value v = {.kind = CG_NOTHING};
        const struct cg_tokens *old = h->code;
        h->code = h->tokens;
        cg_read_type(h, h->tokens, it->from, it->to, &type);
        for (uint32_t i = it->from; i < it->to && v.kind == CG_NOTHING; i++)
            if (cg_is(&h->tokens->t[i], "="))
                v = cg_eval_range(h, i + 1, it->to - 1);
        if (v.kind == CG_NOTHING && type.cls == CG_TYPE_POINTER)
            v = cg_pointer(h, NULL, type);
        h->code = old;
        if (v.kind == CG_NOTHING) /* a member that some constructor sets */
            return;
        h->globals =
            cg_grow(h->pool, h->globals, h->n_globals, &h->cap_globals, sizeof(*h->globals));
        h->globals[h->n_globals++] = (struct cg_variable){.name = name, .value = v, .type = type};
        return;
    }
}
