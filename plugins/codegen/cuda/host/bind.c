/* Which value of the task a parameter's name stands for: see host.h. */
#include "host.h"
#include "names.h"
#include <string.h>

enum { MAX_TENSORS = 64 };

/* A tensor has at most 2^40 elements. */
#define MAX_ELEMENTS ((int64_t)1 << 40)

/* ---- The task's names ----------------------------------------------------------------------- */

const struct cg_sym *cg_dim(struct cg_host *h, uint32_t index)
{
    const struct rung_dim *d = &h->task->dims[index];
    int64_t lo = d->min, hi = d->max, divisor = d->multiple_of > 0 ? d->multiple_of : 1;
    if (d->derived && d->expr && h->calls < 8) {
        h->calls++;
        const struct cg_sym *e = cg_task_expr(h, d->expr);
        h->calls--;
        lo = e && e->lo > lo ? e->lo : lo;
        hi = e && e->hi < hi ? e->hi : hi;
        divisor = e && e->divisor > divisor ? e->divisor : divisor;
    }
    hi = hi < MAX_ELEMENTS ? hi : MAX_ELEMENTS;
    return cg_sym_name(h->pool, d->name, lo > 0 ? lo : 0, hi, divisor, false);
}

static const struct cg_sym *param_symbol(struct cg_host *h, uint32_t index)
{
    const struct rung_param *p = &h->task->params[index];
    bool real = p->dtype == RUNG_F64;
    return cg_sym_name(h->pool, p->name, real ? 0 : p->i64, real ? 0 : p->i64, 1, real);
}

static bool exact_symbol(struct cg_host *h, const char *name, struct cg_value *out)
{
    for (uint32_t i = 0; i < h->task->n_dims; i++)
        if (!strcmp(h->task->dims[i].name, name)) {
            *out = cg_number(cg_dim(h, i));
            return true;
        }
    for (uint32_t i = 0; i < h->task->n_params; i++)
        if (!strcmp(h->task->params[i].name, name)) {
            *out = cg_number(param_symbol(h, i));
            return true;
        }
    return false;
}

/* The task's own expressions are C but for "and", "or", "not" and ceil_div, which eval knows. */
const struct cg_sym *cg_task_expr(struct cg_host *h, const char *text)
{
    struct cg_tokens code = cg_lex(h->pool, text, CG_CPP, NULL);
    const struct cg_tokens *old = h->code;
    size_t frame = h->frame, n_vars = h->n_vars;
    h->frame = h->n_vars;
    for (uint32_t i = 0; i < code.n; i++) {
        struct cg_value v;
        const char *name = cg_token_text(h->pool, &code.t[i]);
        if (code.t[i].kind == CG_NAME && !cg_find_variable(h, name) && exact_symbol(h, name, &v))
            cg_declare(h, name, v, (struct cg_type){.text = ""});
    }
    h->code = &code;
    struct cg_value v = cg_eval_range(h, 0, code.n);
    h->code = old;
    h->frame = frame;
    h->n_vars = n_vars;
    return v.kind == CG_NUM ? v.sym : NULL;
}

/* ---- Dims and parameters by name ------------------------------------------------------------ */

/* The only dim whose name `fits` says is meant; -1 for none or several. */
static int only_dim(struct cg_host *h, const char *name,
                    bool (*fits)(struct cg_pool *, const char *, const char *))
{
    int found = -1;
    for (uint32_t i = 0; i < h->task->n_dims; i++)
        if (fits(h->pool, name, h->task->dims[i].name)) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
    return found;
}

static bool same_plain(struct cg_pool *p, const char *a, const char *b)
{
    return !strcmp(cg_plain_name(p, a), cg_plain_name(p, b));
}

static bool same_stem(struct cg_pool *p, const char *a, const char *b)
{
    return !strcmp(cg_stem(p, a), cg_stem(p, b));
}

static bool synonyms(struct cg_pool *p, const char *a, const char *b)
{
    return cg_dim_synonyms(cg_plain_name(p, a), cg_plain_name(p, b));
}

/* The tensor whose rows and columns the task is about: the first input. */
static const struct rung_tensor_spec *main_tensor(const struct rung_task *task)
{
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (task->tensors[i].role == RUNG_ROLE_INPUT || task->tensors[i].role == RUNG_ROLE_INOUT)
            return &task->tensors[i];
    return task->n_tensors ? &task->tensors[0] : NULL;
}

static const struct cg_sym *elements_of(struct cg_host *h, const struct rung_tensor_spec *t,
                                        uint32_t from, uint32_t to)
{
    const struct cg_sym *n = cg_sym_int(h->pool, 1);
    for (uint32_t d = from; d < to && d < RUNG_MAX_DIMS; d++)
        n = cg_sym(h->pool, SYM_MUL, n, cg_task_expr(h, t->shape[d]));
    return n;
}

/* rows, cols and numbers of elements, as the main tensor has them. */
static const struct cg_sym *by_shape(struct cg_host *h, const char *plain)
{
    const struct rung_tensor_spec *t = main_tensor(h->task);
    if (!t || !t->n_dims)
        return NULL;
    if (t->n_dims >= 2 && cg_names_rows(plain))
        return elements_of(h, t, 0, t->n_dims - 1);
    if (cg_names_total(plain))
        return elements_of(h, t, 0, t->n_dims);
    if (t->n_dims >= 2 && cg_names_columns(plain))
        return cg_task_expr(h, t->shape[t->n_dims - 1]);
    return NULL;
}

static int named_dim(struct cg_host *h, const char *name)
{
    int d = only_dim(h, name, same_plain);
    d = d < 0 ? only_dim(h, name, same_stem) : d;
    return d;
}

static int named_param(struct cg_host *h, const char *name)
{
    for (uint32_t i = 0; i < h->task->n_params; i++) {
        const char *a = cg_plain_name(h->pool, name);
        const char *b = cg_plain_name(h->pool, h->task->params[i].name);
        bool eps = !strncmp(a, "eps", 3) && !strncmp(b, "eps", 3);
        if (!strcmp(a, b) || eps)
            return (int)i;
    }
    return -1;
}

struct cg_value cg_bind_name(struct cg_host *h, const char *name)
{
    struct cg_value out = {.kind = CG_NOTHING};
    if (exact_symbol(h, name, &out))
        return out;
    int dim = named_dim(h, name), param = named_param(h, name);
    if (dim >= 0)
        return cg_number(cg_dim(h, (uint32_t)dim));
    if (param >= 0)
        return cg_number(param_symbol(h, (uint32_t)param));
    dim = only_dim(h, name, synonyms);
    const struct cg_sym *s =
        dim >= 0 ? cg_dim(h, (uint32_t)dim) : by_shape(h, cg_plain_name(h->pool, name));
    return s ? cg_number(s) : out;
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static bool is_output(const struct rung_task *task, uint32_t i)
{
    return task->tensors[i].role == RUNG_ROLE_OUTPUT || task->tensors[i].role == RUNG_ROLE_INOUT;
}

/* The only tensor that fits; -1 for none or several. taken may be NULL. */
static int only_tensor(struct cg_host *h, const char *plain, const bool *taken, int level)
{
    int found = -1;
    for (uint32_t i = 0; i < h->task->n_tensors && i < MAX_TENSORS; i++) {
        const char *own = cg_plain_name(h->pool, h->task->tensors[i].name);
        uint32_t role = h->task->tensors[i].role;
        bool fits = level == 0   ? !strcmp(own, plain)
                    : level == 1 ? cg_tensor_synonyms(own, plain)
                    : level == 2 ? cg_names_output(plain) && role == RUNG_ROLE_OUTPUT
                                 : cg_names_input(plain) && role == RUNG_ROLE_INPUT;
        if (!fits || (taken && taken[i]))
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

int cg_bind_tensor(struct cg_host *h, const char *name)
{
    const char *plain = cg_plain_name(h->pool, name);
    for (int level = 0; level < 4; level++) {
        int found = only_tensor(h, plain, NULL, level);
        if (found >= 0)
            return found;
    }
    return -1;
}

struct cg_value cg_bind_plain(struct cg_host *h, const char *name)
{
    int dim = only_dim(h, name, same_plain);
    int tensor = h->loose ? cg_bind_tensor(h, name) : -1;
    if (dim >= 0)
        return cg_number(cg_dim(h, (uint32_t)dim));
    if (tensor >= 0) {
        struct cg_value v = cg_task_tensor(h, (uint32_t)tensor);
        return cg_pointer(h, v.buffer, v.type);
    }
    if (h->loose)
        return cg_bind_name(h, name);
    int param = named_param(h, name);
    if (param >= 0)
        return cg_number(param_symbol(h, (uint32_t)param));
    return (struct cg_value){.kind = CG_NOTHING};
}

struct binding {
    struct cg_host *h;
    struct cg_slot *slots;
    uint32_t n;
    bool taken[MAX_TENSORS];
};

static bool is_memory(const struct cg_slot *s)
{
    return s->type.cls == CG_TYPE_POINTER || s->type.cls == CG_TYPE_TENSOR;
}

/* Whether the slot may hold the tensor: types, and what is written is no input. */
static bool may_hold(const struct binding *b, const struct cg_slot *s, uint32_t i)
{
    const struct rung_tensor_spec *t = &b->h->task->tensors[i];
    if (b->taken[i])
        return false;
    if (s->type.cls == CG_TYPE_POINTER && s->type.dtype && s->type.dtype != t->dtype)
        return false;
    if (s->type.is_const && s->type.cls == CG_TYPE_POINTER && t->role == RUNG_ROLE_OUTPUT)
        return false;
    return !(s->written && !is_output(b->h->task, i));
}

static void give(struct binding *b, struct cg_slot *s, uint32_t i)
{
    struct cg_value v = cg_task_tensor(b->h, i);
    b->taken[i] = true;
    if (s->type.cls == CG_TYPE_POINTER) {
        struct cg_type type = s->type;
        if (!type.dtype) { /* const T* of a template */
            type.text = v.type.text;
            type.dtype = v.type.dtype;
        }
        type.bytes = type.bytes > 0 && s->type.dtype ? type.bytes : v.type.bytes;
        v = cg_pointer(b->h, v.buffer, type);
    }
    s->value = v;
}

static void tensors_by_name(struct binding *b)
{
    for (int level = 0; level < 4; level++)
        for (uint32_t k = 0; k < b->n; k++) {
            struct cg_slot *s = &b->slots[k];
            if (!is_memory(s) || s->value.kind != CG_NOTHING)
                continue;
            int i = only_tensor(b->h, cg_plain_name(b->h->pool, s->name), b->taken, level);
            if (i >= 0 && may_hold(b, s, (uint32_t)i))
                give(b, s, (uint32_t)i);
        }
}

/* The next free tensor of the wanted side that the slot may hold; -1 for none. */
static int next_tensor(const struct binding *b, const struct cg_slot *s, bool output)
{
    for (uint32_t i = 0; i < b->h->task->n_tensors && i < MAX_TENSORS; i++)
        if (is_output(b->h->task, i) == output && may_hold(b, s, i))
            return (int)i;
    return -1;
}

static uint32_t free_tensors(const struct binding *b, bool output)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->h->task->n_tensors && i < MAX_TENSORS; i++)
        n += is_output(b->h->task, i) == output && !b->taken[i];
    return n;
}

static bool is_open(const struct cg_slot *s, bool is_const)
{
    bool fixed = s->type.is_const && s->type.cls == CG_TYPE_POINTER;
    return is_memory(s) && s->value.kind == CG_NOTHING && fixed == is_const;
}

/*
 * In order: pointers to const are inputs; of the others the last are outputs, and all that are
 * written are. Where there are more pointers to const than inputs, names decide alone.
 */
static void tensors_by_order(struct binding *b)
{
    uint32_t n_const = 0, n_open = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        n_const += is_open(&b->slots[k], true);
        n_open += is_open(&b->slots[k], false);
    }
    bool guess = n_const <= free_tensors(b, false);
    for (uint32_t k = 0; k < b->n && guess; k++)
        if (is_open(&b->slots[k], true)) {
            int i = next_tensor(b, &b->slots[k], false);
            if (i >= 0)
                give(b, &b->slots[k], (uint32_t)i);
        }
    uint32_t outputs = free_tensors(b, true), inputs = free_tensors(b, false);
    bool tensors = false;
    for (uint32_t k = 0; k < b->n; k++)
        tensors |= b->slots[k].type.cls == CG_TYPE_TENSOR;
    uint32_t as_inputs = n_open > outputs ? n_open - outputs : 0;
    if (tensors)
        as_inputs = n_open < inputs ? n_open : inputs;
    as_inputs = as_inputs < inputs ? as_inputs : inputs;
    for (uint32_t k = 0; k < b->n; k++) {
        struct cg_slot *s = &b->slots[k];
        if (!is_open(s, false))
            continue;
        bool input = !s->written && as_inputs > 0;
        int i = next_tensor(b, s, !input);
        as_inputs -= input;
        if (i >= 0)
            give(b, s, (uint32_t)i);
    }
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static bool has_value(const struct binding *b, const char *name)
{
    for (uint32_t k = 0; k < b->n; k++) {
        const struct cg_value *v = &b->slots[k].value;
        if (v->kind == CG_NUM && v->sym->op == SYM_NAME && !strcmp(v->sym->name, name))
            return true;
    }
    return false;
}

/* Whether a number's name says that it is no size. */
static bool is_setting(const char *name)
{
    static const char *const words[] = {"mode",  "flag", "version", "stride", "pad",     "axis",
                                        "seed",  "op",   "type",    "kind",   "level",   "stage",
                                        "alpha", "step", "offset",  "start",  "dilation"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* By name; then in order, where as many are open on both sides. */
static void integers(struct binding *b)
{
    struct cg_host *h = b->h;
    uint32_t open = 0, left = 0;
    for (int level = 0; level < 2; level++)
        for (uint32_t k = 0; k < b->n; k++) {
            struct cg_slot *s = &b->slots[k];
            if (s->type.cls != CG_TYPE_INT || s->value.kind != CG_NOTHING)
                continue;
            int d = level ? only_dim(h, s->name, synonyms) : named_dim(h, s->name);
            int p = level ? -1 : named_param(h, s->name);
            if (d >= 0 && !has_value(b, h->task->dims[d].name))
                s->value = cg_number(cg_dim(h, (uint32_t)d));
            else if (p >= 0)
                s->value = cg_number(param_symbol(h, (uint32_t)p));
        }
    uint32_t ints = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        ints += b->slots[k].type.cls == CG_TYPE_INT;
        open += b->slots[k].type.cls == CG_TYPE_INT && b->slots[k].value.kind == CG_NOTHING;
    }
    for (uint32_t i = 0; i < h->task->n_dims; i++)
        left += !h->task->dims[i].derived && !has_value(b, h->task->dims[i].name);
    uint32_t d = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        struct cg_slot *s = &b->slots[k];
        if (s->type.cls != CG_TYPE_INT || s->value.kind != CG_NOTHING)
            continue;
        while (d < h->task->n_dims &&
               (h->task->dims[d].derived || has_value(b, h->task->dims[d].name)))
            d++;
        const struct cg_sym *shape = by_shape(h, cg_plain_name(h->pool, s->name));
        bool lone = open == 1 && ints > 1 && !strcmp(cg_plain_name(h->pool, s->name), "n");
        if (open == left && (open > 1 || lone) && d < h->task->n_dims)
            s->value = cg_number(cg_dim(h, d));
        else if (shape)
            s->value = cg_number(shape);
        else if (open == left && d < h->task->n_dims &&
                 (left == h->task->n_dims || !is_setting(s->name)))
            s->value = cg_number(cg_dim(h, d));
    }
}

static void reals(struct binding *b)
{
    struct cg_host *h = b->h;
    uint32_t open = 0, params = 0, last = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        struct cg_slot *s = &b->slots[k];
        if (s->type.cls != CG_TYPE_REAL || s->value.kind != CG_NOTHING)
            continue;
        int p = named_param(h, s->name);
        if (p >= 0)
            s->value = cg_number(param_symbol(h, (uint32_t)p));
        open += p < 0;
    }
    for (uint32_t i = 0; i < h->task->n_params; i++)
        if (h->task->params[i].dtype == RUNG_F64 && !has_value(b, h->task->params[i].name)) {
            params++;
            last = i;
        }
    for (uint32_t k = 0; k < b->n && open == 1 && params == 1; k++)
        if (b->slots[k].type.cls == CG_TYPE_REAL && b->slots[k].value.kind == CG_NOTHING)
            b->slots[k].value = cg_number(param_symbol(h, last));
}

void cg_bind(struct cg_host *h, struct cg_slot *slots, uint32_t n)
{
    struct binding *b = cg_take(h->pool, sizeof(*b));
    *b = (struct binding){.h = h, .slots = slots, .n = n};
    for (uint32_t k = 0; k < n; k++)
        slots[k].value = (struct cg_value){.kind = CG_NOTHING};
    tensors_by_name(b);
    tensors_by_order(b);
    integers(b);
    reals(b);
}
