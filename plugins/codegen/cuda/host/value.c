/* Values and variables of host code: see host.h. */
#include "host.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VARIABLES = 4096, MAX_NOTE = 600 };

struct cg_value cg_unknown(struct cg_host *h, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return (struct cg_value){.kind = CG_UNKNOWN, .text = cg_text(h->pool, text, strlen(text))};
}

struct cg_value cg_number(const struct cg_sym *sym)
{
    if (!sym)
        return (struct cg_value){.kind = CG_UNKNOWN, .text = "a number that plans can't express"};
    return (struct cg_value){.kind = CG_NUM, .sym = sym};
}

struct cg_value cg_int(struct cg_host *h, int64_t value)
{
    return cg_number(cg_sym_int(h->pool, value));
}

struct cg_value cg_opaque(const char *what)
{
    return (struct cg_value){.kind = CG_OPAQUE, .text = what};
}

struct cg_value cg_pointer(struct cg_host *h, struct cg_buffer *buffer, struct cg_type type)
{
    type.cls = CG_TYPE_POINTER;
    return (struct cg_value){
        .kind = CG_POINTER, .buffer = buffer, .type = type, .sym = cg_sym_int(h->pool, 0)};
}

struct cg_value cg_dim3(struct cg_host *h, const struct cg_value *parts, uint32_t n)
{
    struct cg_value *list = cg_take(h->pool, 3 * sizeof(*list));
    for (uint32_t i = 0; i < 3; i++)
        list[i] = i < n ? parts[i] : cg_int(h, 1);
    if (n == 1 && parts[0].kind == CG_DIM3)
        return parts[0];
    if (n == 1 && parts[0].kind == CG_LIST && parts[0].n >= 1)
        return cg_dim3(h, parts[0].list, parts[0].n < 3 ? parts[0].n : 3);
    return (struct cg_value){.kind = CG_DIM3, .list = list, .n = 3};
}

struct cg_buffer *cg_new_buffer(struct cg_host *h, const char *name)
{
    struct cg_buffer *b = cg_take(h->pool, sizeof(*b)), **end = &h->buffers;
    *b = (struct cg_buffer){.name = name, .tensor = -1};
    while (*end)
        end = &(*end)->next;
    *end = b;
    return b;
}

struct cg_buffer *cg_real_buffer(struct cg_buffer *buffer)
{
    for (int i = 0; buffer && buffer->same && i < 64; i++)
        buffer = buffer->same;
    return buffer;
}

const struct cg_sym *cg_product(struct cg_host *h, const struct cg_value *list, uint32_t n)
{
    const struct cg_sym *product = cg_sym_int(h->pool, 1);
    for (uint32_t i = 0; i < n; i++)
        product = cg_sym(h->pool, SYM_MUL, product, list[i].kind == CG_NUM ? list[i].sym : NULL);
    return product;
}

struct cg_buffer *cg_tensor_buffer(struct cg_host *h, uint32_t index)
{
    const struct rung_tensor_spec *t = &h->task->tensors[index];
    for (struct cg_buffer *b = h->buffers; b; b = b->next)
        if (b->tensor == (int)index)
            return b;
    struct cg_buffer *b = cg_new_buffer(h, t->name);
    const struct cg_sym *elements = cg_sym_int(h->pool, 1);
    for (uint32_t d = 0; d < t->n_dims && d < RUNG_MAX_DIMS; d++)
        elements = cg_sym(h->pool, SYM_MUL, elements, cg_task_expr(h, t->shape[d]));
    b->tensor = (int)index;
    b->dtype = t->dtype;
    b->bytes = cg_sym(h->pool, SYM_MUL, elements, cg_sym_int(h->pool, cg_dtype_bytes(t->dtype)));
    return b;
}

struct cg_value cg_task_tensor(struct cg_host *h, uint32_t index)
{
    const struct rung_tensor_spec *t = &h->task->tensors[index];
    struct cg_value *shape = cg_take(h->pool, (RUNG_MAX_DIMS + 1) * sizeof(*shape));
    struct cg_type type = {.cls = CG_TYPE_REAL,
                           .dtype = t->dtype,
                           .bytes = cg_dtype_bytes(t->dtype),
                           .text = cg_c_type(t->dtype)};
    uint32_t n = t->n_dims < RUNG_MAX_DIMS ? t->n_dims : RUNG_MAX_DIMS;
    for (uint32_t d = 0; d < n; d++)
        shape[d] = cg_number(cg_task_expr(h, t->shape[d]));
    return (struct cg_value){.kind = CG_TENSOR,
                             .buffer = cg_tensor_buffer(h, index),
                             .type = type,
                             .list = shape,
                             .n = n,
                             .sym = cg_sym_int(h->pool, 0)};
}

/* ---- Variables ------------------------------------------------------------------------------ */

struct cg_variable *cg_find_variable(struct cg_host *h, const char *name)
{
    cg_step(h->pool);
    for (size_t i = h->n_vars; i > h->frame; i--)
        if (!strcmp(h->vars[i - 1].name, name))
            return &h->vars[i - 1];
    for (size_t i = 0; i < h->n_globals; i++)
        if (!strcmp(h->globals[i].name, name))
            return &h->globals[i];
    return NULL;
}

static struct cg_variable *add_variable(struct cg_host *h, const char *name, struct cg_value value,
                                        struct cg_type type)
{
    if (h->n_vars >= MAX_VARIABLES)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    h->vars = cg_grow(h->pool, h->vars, h->n_vars, &h->cap_vars, sizeof(*h->vars));
    h->vars[h->n_vars] = (struct cg_variable){.name = name, .value = value, .type = type};
    return &h->vars[h->n_vars++];
}

/* A struct is kept as its members. */
static void add_members(struct cg_host *h, const char *name, struct cg_value record)
{
    for (uint32_t k = 0; k < record.n; k++)
        if (record.list[k].kind != CG_NOTHING)
            add_variable(h, cg_format(h->pool, "%.200s.%s", name, record.names[k]), record.list[k],
                         (struct cg_type){.text = ""});
}

void cg_declare(struct cg_host *h, const char *name, struct cg_value value, struct cg_type type)
{
    if (value.kind != CG_RECORD) {
        add_variable(h, name, value, type);
        return;
    }
    add_variable(h, name, (struct cg_value){.kind = CG_NOTHING}, type);
    add_members(h, name, value);
}

/* "grid.x" of a variable grid that holds a dim3; true when it was one. */
static bool assign_component(struct cg_host *h, const char *name, struct cg_value value)
{
    size_t n = strlen(name);
    if (n < 3 || name[n - 2] != '.' || name[n - 1] < 'x' || name[n - 1] > 'z')
        return false;
    struct cg_variable *base = cg_find_variable(h, cg_text(h->pool, name, n - 2));
    if (!base || (base->value.kind != CG_DIM3 && base->type.cls != CG_TYPE_DIM3))
        return false;
    struct cg_value whole = base->value.kind == CG_DIM3 ? base->value : cg_dim3(h, NULL, 0);
    struct cg_value *list = cg_take(h->pool, 3 * sizeof(*list));
    memcpy(list, whole.list, 3 * sizeof(*list));
    list[name[n - 1] - 'x'] = value;
    base->value = whole;
    base->value.list = list;
    return true;
}

void cg_assign(struct cg_host *h, const char *name, struct cg_value value)
{
    struct cg_variable *v = cg_find_variable(h, name);
    size_t n = strlen(name);
    if (v) {
        /* An assignment to the whole replaces what its members held. */
        for (size_t i = h->frame; i < h->n_vars; i++)
            if (!strncmp(h->vars[i].name, name, n) &&
                (h->vars[i].name[n] == '.' || h->vars[i].name[n] == '['))
                h->vars[i].name = "";
        if (value.kind == CG_RECORD) {
            v->value = (struct cg_value){.kind = CG_NOTHING};
            add_members(h, name, value);
            return;
        }
        v->value = v->type.cls == CG_TYPE_AUTO || v->type.cls == CG_TYPE_OTHER
                       ? value
                       : cg_cast(h, v->type, value);
    } else if (!assign_component(h, name, value)) {
        cg_declare(h, name, value, (struct cg_type){.text = ""});
    }
}

static uint32_t initializer_end(const struct cg_host *h, uint32_t i, uint32_t to)
{
    while (i < to && !cg_is(&h->tokens->t[i], ",") && !cg_is(&h->tokens->t[i], ";"))
        i = h->tokens->partner[i] > i ? h->tokens->partner[i] + 1 : i + 1;
    return i;
}

/* enum { A = 1 } and static constexpr members: `NAME = value` in the source's types. */
static bool constant_of_types(struct cg_host *h, const char *name, uint32_t *from, uint32_t *to)
{
    for (size_t k = 0; h->items && k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        if (it->kind != CG_TYPE || !it->open)
            continue;
        for (uint32_t i = it->open + 1; i + 1 < it->close; i++) {
            if (!cg_is(&h->tokens->t[i], name) || !cg_is(&h->tokens->t[i + 1], "="))
                continue;
            *from = i + 2;
            *to = initializer_end(h, *from, it->close);
            return true;
        }
    }
    return false;
}

static bool constant_of_source(struct cg_host *h, const char *name, uint32_t *from, uint32_t *to)
{
    for (size_t k = 0; h->items && k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        if (it->kind != CG_VARIABLE || !it->constant || it->device)
            continue;
        for (uint32_t i = it->from; i + 1 < it->to; i++) {
            const struct cg_token *t = &h->tokens->t[i];
            bool brace = cg_is(t + 1, "{");
            if (h->tokens->partner[i] > i)
                i = h->tokens->partner[i];
            if (!cg_is(t, name) || (!cg_is(t + 1, "=") && !brace))
                continue;
            *from = i + 2;
            *to = brace ? h->tokens->partner[i + 1] : initializer_end(h, i + 2, it->to - 1);
            return true;
        }
    }
    return constant_of_types(h, name, from, to);
}

bool cg_read_constant(struct cg_host *h, const char *name, struct cg_value *out)
{
    uint32_t from, to;
    if (h->calls > 16 || !constant_of_source(h, name, &from, &to))
        return false;
    struct cg_tokens code = cg_expand(h->pool, h->macros, &h->tokens->t[from], &h->tokens->t[to]);
    const struct cg_tokens *old = h->code;
    uint32_t i = h->i, end = h->end;
    size_t frame = h->frame;
    h->calls++;
    h->code = &code;
    h->frame = h->n_vars;
    *out = cg_eval_range(h, 0, code.n);
    h->calls--;
    h->frame = frame;
    h->code = old;
    h->i = i;
    h->end = end;
    return true;
}

/* An array whose elements were assigned one by one. */
static bool gather_list(struct cg_host *h, const char *name, struct cg_value *out)
{
    struct cg_value list[CG_MAX_ARGS];
    uint32_t n = 0;
    for (; n < CG_MAX_ARGS; n++) {
        struct cg_variable *v = cg_find_variable(h, cg_format(h->pool, "%s[%u]", name, n));
        if (!v)
            break;
        list[n] = v->value;
    }
    if (!n)
        return false;
    struct cg_value *kept = cg_take(h->pool, n * sizeof(*kept));
    memcpy(kept, list, n * sizeof(*kept));
    *out = (struct cg_value){.kind = CG_LIST, .list = kept, .n = n};
    return true;
}

/* torch.float32 of Python. */
static bool torch_type(const char *name, uint32_t *dtype)
{
    *dtype = strncmp(name, "torch.", 6) ? 0 : cg_dtype_of_name(name + 6);
    return *dtype != 0;
}

/* A __constant__ or __device__ variable of the source. */
static const struct cg_item *device_variable(const struct cg_host *h, const char *name)
{
    for (size_t k = 0; h->items && k < h->items->n; k++)
        if (h->items->list[k].kind == CG_VARIABLE && h->items->list[k].device &&
            !strcmp(h->items->list[k].name, name))
            return &h->items->list[k];
    return NULL;
}

struct cg_value cg_read_variable(struct cg_host *h, const char *name)
{
    struct cg_value out;
    struct cg_variable *v = cg_find_variable(h, name);
    if (v && v->value.kind != CG_NOTHING)
        return v->value;
    if (gather_list(h, name, &out) || cg_gather_record(h, name, &out))
        return out;
    if (v && v->value.kind == CG_NOTHING && h->n_globals && v >= h->globals &&
        v < h->globals + h->n_globals)
        v = NULL; /* a member that nothing has set: its name may tell */
    if (v)
        return v->value;
    if (h->python && !strncmp(name, "self.", 5))
        return cg_python_attribute(h, name);
    if (!strncmp(name, "cuda", 4))
        return !strcmp(name, "cudaSuccess") ? cg_int(h, 0) : cg_opaque(name);
    uint32_t dtype = strncmp(name, "torch::k", 8) ? 0 : cg_dtype_of_name(name + 7);
    if (dtype || (name[0] == 'k' && (dtype = cg_dtype_of_name(name))) || torch_type(name, &dtype))
        return (struct cg_value){.kind = CG_A_TYPE,
                                 .type = {.cls = CG_TYPE_REAL,
                                          .dtype = dtype,
                                          .bytes = cg_dtype_bytes(dtype),
                                          .text = cg_c_type(dtype)}};
    const char *last = strrchr(name, '.');
    if (last && last[1] != '\0') {
        struct cg_value self = cg_read_variable(h, cg_text(h->pool, name, (size_t)(last - name)));
        return cg_member(h, self, last + 1);
    }
    if (cg_read_constant(h, name, &out))
        return out;
    const struct cg_item *item = device_variable(h, name);
    if (item)
        return cg_opaque(cg_full_name(h->pool, item));
    item = h->items ? cg_find_function(h->items, name) : NULL;
    if (item)
        return (struct cg_value){.kind = CG_CALLEE, .item = item, .text = ""};
    struct cg_value named = cg_bind_plain(h, name);
    return named.kind != CG_NOTHING ? named : cg_unknown(h, "`%s`", name);
}

void cg_forget(struct cg_host *h, uint32_t from, uint32_t to, const char *why)
{
    static const char *const assigning[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "++", "--", "|=", "&=", "<<=", NULL};
    for (uint32_t i = from; i < to; i++) {
        const struct cg_token *t = &h->code->t[i];
        bool hit = false;
        for (const char *const *a = assigning; *a && t->kind == CG_NAME; a++)
            hit |= (i + 1 < to && cg_is(t + 1, *a)) ||
                   (i > from && a[0][1] == a[0][0] && cg_is(t - 1, *a));
        struct cg_variable *v = hit ? cg_find_variable(h, cg_token_text(h->pool, t)) : NULL;
        if (v)
            v->value = cg_unknown(h, "`%s`, which depends on %s", v->name, why);
    }
}

/* ---- Answers -------------------------------------------------------------------------------- */

void cg_problem(struct cg_host *h, const char *format, ...)
{
    char text[400];
    va_list args;
    if (h->problem)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    h->problem = cg_text(h->pool, text, strlen(text));
}

void cg_note(struct cg_host *h, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (strlen(h->note) < MAX_NOTE && !strstr(h->note, text))
        h->note = cg_format(h->pool, "%s%s ", h->note, text);
}

/* ---- Decisions ------------------------------------------------------------------------------ */

void cg_narrow(const struct cg_decision *d, const struct cg_sym *a, int64_t *lo, int64_t *hi)
{
    const struct cg_sym *c = d->condition;
    int64_t k;
    if (c->op == SYM_AND && d->value) {
        struct cg_decision left = {c->a, true}, right = {c->b, true};
        cg_narrow(&left, a, lo, hi);
        cg_narrow(&right, a, lo, hi);
        return;
    }
    if (c->op < SYM_EQ || c->op > SYM_GE || !cg_sym_same(c->a, a) || !cg_sym_constant(c->b, &k) ||
        k <= INT64_MIN + 1 || k >= INT64_MAX - 1)
        return;
    bool below = (c->op == SYM_LT && d->value) || (c->op == SYM_GE && !d->value);
    bool not_above = (c->op == SYM_LE && d->value) || (c->op == SYM_GT && !d->value);
    bool above = (c->op == SYM_GT && d->value) || (c->op == SYM_LE && !d->value);
    bool not_below = (c->op == SYM_GE && d->value) || (c->op == SYM_LT && !d->value);
    bool equal = (c->op == SYM_EQ && d->value) || (c->op == SYM_NE && !d->value);
    int64_t top = below ? k - 1 : k, bottom = above ? k + 1 : k;
    if ((below || not_above || equal) && top < *hi)
        *hi = top;
    if ((above || not_below || equal) && bottom > *lo)
        *lo = bottom;
}

/* What the decisions so far say about a condition; false when they leave it open. */
static bool implied(struct cg_host *h, const struct cg_sym *c, bool *value)
{
    int64_t k;
    for (int i = 0; i < h->at_path; i++) {
        const struct cg_sym *d = h->path[i].condition;
        bool same = cg_sym_same(d, c);
        if (same || cg_sym_same(cg_sym(h->pool, SYM_NOT, d, NULL), c)) {
            *value = h->path[i].value == same;
            return true;
        }
    }
    if (c->op < SYM_EQ || c->op > SYM_GE || c->a->real || !cg_sym_constant(c->b, &k))
        return false;
    int64_t lo = c->a->lo, hi = c->a->hi;
    for (int i = 0; i < h->at_path; i++)
        cg_narrow(&h->path[i], c->a, &lo, &hi);
    const struct cg_sym *range = cg_sym_name(h->pool, "", lo, hi, 1, false);
    const struct cg_sym *known = cg_sym(h->pool, c->op, range, c->b);
    *value = known && known->op == SYM_INT && known->i;
    return known && known->op == SYM_INT;
}

bool cg_decide(struct cg_host *h, const struct cg_sym *condition)
{
    int64_t constant;
    bool value;
    if (cg_sym_constant(condition, &constant))
        return constant != 0;
    if (condition->op < SYM_EQ)
        condition = cg_sym(h->pool, SYM_NE, condition, cg_sym_int(h->pool, 0));
    if (!condition || condition->op < SYM_EQ)
        return condition && condition->op == SYM_INT && condition->i;
    if (condition->op == SYM_NOT)
        return !cg_decide(h, condition->a);
    if (implied(h, condition, &value))
        return value;
    if (h->at_path == CG_MAX_PATH_DECISIONS)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    if (h->at_path == h->n_path) {
        h->path[h->n_path++] = (struct cg_decision){condition, true};
    }
    return h->path[h->at_path++].value;
}
