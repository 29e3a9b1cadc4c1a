/* Launches and other steps that host code makes: see host.h. */
#include "host.h"
#include <string.h>

static struct cg_launch *new_step(struct cg_host *h, enum cg_step_kind kind)
{
    if (h->n_steps == CG_MAX_STEPS) {
        cg_problem(h, "more than %d launches", CG_MAX_STEPS);
        return NULL;
    }
    if (!h->steps)
        h->steps = cg_take(h->pool, CG_MAX_STEPS * sizeof(*h->steps));
    struct cg_launch *s = &h->steps[h->n_steps++];
    memset(s, 0, sizeof(*s));
    s->kind = kind;
    return s;
}

static const char *why(const struct cg_value *v)
{
    return v->kind == CG_UNKNOWN ? v->text : "no number";
}

/* Three numbers out of a number or a dim3. */
static void sizes(struct cg_host *h, const char *kernel, const char *what, struct cg_value v,
                  const struct cg_sym *out[3])
{
    struct cg_value d = v.kind == CG_NUM || v.kind == CG_LIST ? cg_dim3(h, &v, 1) : v;
    if (d.kind != CG_DIM3) {
        cg_problem(h, "the %s of `%s` depends on %s", what, kernel, why(&d));
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (d.list[i].kind != CG_NUM || d.list[i].sym->real)
            cg_problem(h, "the %s of `%s` depends on %s", what, kernel,
                       d.list[i].kind == CG_NUM ? "a float" : why(&d.list[i]));
        else
            out[i] = d.list[i].sym;
    }
}

/* One template argument as the plan writes it. */
static const char *template_text(struct cg_host *h, const struct cg_item *item,
                                 const struct cg_value *v)
{
    int64_t k;
    if (cg_fixed(v, &k))
        return cg_format(h->pool, "%lld", (long long)k);
    if (v->kind == CG_NUM) {
        const char *text = cg_sym_text(h->pool, v->sym);
        return strpbrk(text, "<>=") ? cg_format(h->pool, "(%s)", text) : text;
    }
    if (v->kind == CG_A_TYPE)
        return v->type.cls == CG_TYPE_POINTER ? cg_format(h->pool, "%s*", v->type.text)
                                              : v->type.text;
    if (v->kind == CG_CALLEE && v->item)
        return cg_full_name(h->pool, v->item);
    if (v->kind == CG_UNKNOWN && v->text[0] && !strchr(v->text, '`'))
        return v->text; /* as it stands: true, Op::Sum, a struct */
    cg_problem(h, "a template argument of `%s` is %s", item->name, why(v));
    return "";
}

/* The kernel's name as a launch line writes it. */
static const char *kernel_name(struct cg_host *h, const struct cg_value *kernel,
                               const struct cg_value *args, uint32_t n)
{
    struct cg_value values[CG_MAX_ARGS];
    const struct cg_item *item = kernel->item;
    const char *name = cg_full_name(h->pool, item);
    if (!item->is_template)
        return name;
    uint32_t count = cg_template_args(h, item, kernel->text, args, n, values);
    if (count < item->n_template_params)
        cg_problem(h, "the template argument `%s` of `%s` is not known",
                   item->template_params[count].name, item->name);
    for (uint32_t i = 0; i < count; i++)
        name =
            cg_format(h->pool, "%s%s%s", name, i ? ", " : "<", template_text(h, item, &values[i]));
    return count ? cg_format(h->pool, "%s>", name) : name;
}

/* Whether the kernel's body only loads through the parameter, as far as that is plain. */
static bool only_loads(struct cg_host *h, const struct cg_item *item, const char *name)
{
    const struct cg_tokens *c = h->tokens;
    for (uint32_t i = item->open; *name && i < item->close; i++) {
        const struct cg_token *t = &c->t[i];
        cg_step(h->pool);
        if (t->kind != CG_NAME || !cg_is(t, name))
            continue;
        uint32_t k = i + 1, call = i;
        bool element = cg_is(&c->t[k], "[") && c->partner[k] > k;
        k = element ? c->partner[k] + 1 : k;
        bool store = cg_is(&c->t[k], "=") || cg_is(&c->t[k], "++") ||
                     (c->t[k].n == 2 && c->t[k].s[1] == '=' && strchr("+-*/|&^", c->t[k].s[0]));
        while (call > item->open && !cg_is(&c->t[call - 1], ";") && call + 12 > i &&
               !cg_is(&c->t[call - 1], "load_matrix_sync"))
            call--;
        bool loaded = call > item->open && cg_is(&c->t[call - 1], "load_matrix_sync");
        if ((!element && !loaded) || store || cg_is(t - 1, "&"))
            return false;
    }
    return true;
}

static void take_args(struct cg_host *h, struct cg_launch *s, const struct cg_value *args,
                      uint32_t n)
{
    const struct cg_item *item = s->item;
    if (n != item->n_params) {
        uint32_t needed = 0;
        while (needed < item->n_params && item->params[needed].value == item->params[needed].behind)
            needed++;
        if (n > item->n_params || n < needed)
            cg_problem(h, "`%s` takes %u arguments and is given %u", item->name, item->n_params, n);
    }
    for (uint32_t k = 0; k < n && k < CG_MAX_ARGS; k++) {
        const char *param = k < item->n_params ? item->params[k].name : "";
        struct cg_value v = args[k];
        if (v.kind == CG_TENSOR)
            v = cg_pointer(h, v.buffer, v.type);
        if (v.kind == CG_POINTER && v.buffer && k < item->n_params) {
            struct cg_type type = cg_param_type(h, h->tokens, &item->params[k]);
            struct cg_buffer *b = cg_real_buffer(v.buffer);
            bool loads = type.is_const || only_loads(h, item, param);
            b->read_only |= loads;
            b->written |= !loads;
        }
        if (v.kind == CG_POINTER && !v.buffer) {
            struct cg_type type = {0};
            if (k < item->n_params)
                type = cg_param_type(h, h->tokens, &item->params[k]);
            if (!type.is_const && !only_loads(h, item, param))
                cg_problem(h, "`%s` of `%s`, which it writes to, is a null pointer", param,
                           item->name);
            v = cg_int(h, 0);
        }
        if (v.kind != CG_NUM && v.kind != CG_POINTER)
            cg_problem(h, "the argument `%s` of `%s` is %s", param, item->name,
                       v.kind == CG_UNKNOWN ? v.text
                       : v.kind == CG_LIST || v.kind == CG_RECORD || v.kind == CG_NOTHING
                           ? "a struct, which a plan can't pass"
                           : "no number and no pointer");
        s->args[k] = v;
    }
    s->n_args = n < CG_MAX_ARGS ? n : CG_MAX_ARGS;
    for (uint32_t k = n; k < item->n_params && k < CG_MAX_ARGS; k++) {
        const struct cg_tokens *code = h->code; /* default arguments */
        h->code = h->tokens;
        s->args[k] = cg_eval_range(h, item->params[k].value, item->params[k].behind);
        h->code = code;
        if (s->args[k].kind != CG_NUM)
            cg_problem(h, "the argument `%s` of `%s` is missing", item->params[k].name, item->name);
        s->n_args = k + 1;
    }
}

void cg_add_launch(struct cg_host *h, const struct cg_launch_spec *spec,
                   const struct cg_value *args, uint32_t n)
{
    if (spec->kernel.kind != CG_CALLEE || !spec->kernel.item || !spec->kernel.item->global) {
        cg_problem(h, "a launch of %s, which is no kernel of the reply",
                   spec->kernel.text && spec->kernel.text[0] ? spec->kernel.text : "something");
        return;
    }
    struct cg_launch *s = new_step(h, CG_LAUNCH);
    if (!s)
        return;
    s->item = spec->kernel.item;
    const char *kernel = s->item->name;
    s->name = kernel_name(h, &spec->kernel, args, n);
    sizes(h, kernel, "grid", spec->grid, s->grid);
    sizes(h, kernel, "block", spec->block, s->block);
    if (spec->cluster.kind == CG_DIM3)
        sizes(h, kernel, "cluster", spec->cluster, s->cluster);
    s->cooperative = spec->cooperative;
    if (spec->shared.kind == CG_NUM && !spec->shared.sym->real)
        s->shared = spec->shared.sym;
    else
        cg_problem(h, "the shared memory of `%s` depends on %s", kernel, why(&spec->shared));
    take_args(h, s, args, n);
    bool memory = false;
    for (uint32_t k = 0; k < s->n_args; k++)
        memory |= s->args[k].kind == CG_POINTER;
    if (!memory)
        cg_problem(h, "`%s` is given no memory", kernel);
}

void cg_add_zero(struct cg_host *h, struct cg_value pointer, const struct cg_sym *bytes)
{
    struct cg_launch *s = new_step(h, CG_ZERO);
    if (!s)
        return;
    s->args[0] = pointer;
    s->n_args = 1;
    s->bytes = bytes;
    cg_real_buffer(pointer.buffer)->written = true;
}

void cg_add_symbol(struct cg_host *h, const char *name, struct cg_value pointer,
                   const struct cg_sym *bytes)
{
    struct cg_launch *s = new_step(h, CG_SYMBOL);
    if (!s)
        return;
    s->name = name;
    s->args[0] = pointer;
    s->n_args = 1;
    s->bytes = bytes;
}
