/* Expressions of host code: literals, names and what follows them. See operand.h. */
#include "operand.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct cg_token *cg_peek(const struct cg_host *h)
{
    return &h->code->t[h->i < h->end ? h->i : h->code->n];
}

bool cg_take_token(struct cg_host *h, const char *text)
{
    if (h->i >= h->end || !cg_is(&h->code->t[h->i], text))
        return false;
    h->i++;
    return true;
}

struct cg_value cg_load(struct cg_host *h, struct cg_operand o)
{
    return o.path ? cg_read_variable(h, o.path) : o.value;
}

/* ---- Primary -------------------------------------------------------------------------------- */

static struct cg_value number(struct cg_host *h, const struct cg_token *t)
{
    char text[80];
    size_t n = 0;
    for (uint32_t i = 0; i < t->n && n + 1 < sizeof(text); i++)
        if (t->s[i] != '\'')
            text[n++] = t->s[i];
    text[n] = '\0';
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (!hex && strpbrk(text, ".eE"))
        return cg_number(cg_sym_real(h->pool, strtod(text, NULL)));
    if (!hex && n && (text[n - 1] == 'f' || text[n - 1] == 'F'))
        return cg_number(cg_sym_real(h->pool, strtod(text, NULL)));
    errno = 0;
    bool binary = text[0] == '0' && (text[1] == 'b' || text[1] == 'B');
    unsigned long long v = strtoull(binary ? text + 2 : text, NULL, binary ? 2 : 0);
    if (errno || v > INT64_MAX)
        return v == UINT64_MAX && !errno ? cg_int(h, -1) : cg_unknown(h, "the number %.40s", text);
    return cg_int(h, (int64_t)v);
}

/* Whether the brackets at h->i hold a type and nothing else, and a value follows: a cast. */
static bool is_cast(struct cg_host *h, struct cg_type *type)
{
    uint32_t close = h->code->partner[h->i];
    if (close <= h->i || close >= h->end)
        return false;
    uint32_t behind = cg_read_type(h, h->code, h->i + 1, close, type);
    if (behind != close || behind == h->i + 1)
        return false;
    const struct cg_token *next = &h->code->t[close + 1 < h->end ? close + 1 : h->code->n];
    return next->kind == CG_NAME || next->kind == CG_NUMBER || cg_is(next, "(") ||
           cg_is(next, "&") || cg_is(next, "-") || cg_is(next, "*") || cg_is(next, "!") ||
           cg_is(next, "~");
}

static struct cg_value parenthesised(struct cg_host *h)
{
    uint32_t close = h->code->partner[h->i];
    struct cg_type type;
    if (is_cast(h, &type)) {
        h->i = close + 1;
        return cg_cast(h, type, cg_load(h, cg_unary(h)));
    }
    if (close <= h->i)
        return cg_unknown(h, "an open bracket");
    uint32_t n;
    const struct cg_value *list = cg_eval_list(h, &n);
    return n ? list[n - 1] : (struct cg_value){.kind = CG_LIST};
}

const struct cg_value *cg_eval_list(struct cg_host *h, uint32_t *n)
{
    uint32_t close = h->code->partner[h->i], end = h->end, count = 0;
    struct cg_value list[CG_MAX_ARGS];
    bool good = close > h->i && close < h->end;
    h->i++;
    h->end = good ? close : h->end;
    while (good && h->i < h->end && count < CG_MAX_ARGS) {
        uint32_t before = h->i;
        /* A keyword argument is its value. */
        if (cg_peek(h)->kind == CG_NAME && h->i + 1 < h->end && cg_is(cg_peek(h) + 1, "=") &&
            !cg_find_variable(h, cg_token_text(h->pool, cg_peek(h))))
            h->i += 2;
        list[count++] = cg_eval(h);
        while (h->i < h->end && !cg_is(cg_peek(h), ",")) /* past what was not understood */
            h->i = h->code->partner[h->i] > h->i ? h->code->partner[h->i] + 1 : h->i + 1;
        h->i += h->i < h->end;
        if (h->i == before)
            break;
    }
    h->end = end;
    h->i = good ? close + 1 : h->i;
    struct cg_value *kept = cg_take(h->pool, (count + 1) * sizeof(*kept));
    memcpy(kept, list, count * sizeof(*kept));
    *n = count;
    return kept;
}

static struct cg_value brace_list(struct cg_host *h)
{
    struct cg_value v = {.kind = CG_LIST};
    v.list = cg_eval_list(h, &v.n);
    return v;
}

/* [captures](params) -> type { body }, or in Python a list. */
static struct cg_value lambda_or_list(struct cg_host *h)
{
    uint32_t at = h->i, i = h->code->partner[at] + 1;
    const struct cg_tokens *c = h->code;
    if (c->partner[at] <= at)
        return cg_unknown(h, "an open bracket");
    uint32_t body = i;
    if (body < h->end && cg_is(&c->t[body], "("))
        body = c->partner[body] + 1;
    for (uint32_t k = 0; body < h->end && !cg_is(&c->t[body], "{") && k < 16; k++)
        body++;
    bool is_lambda = i < h->end && (cg_is(&c->t[i], "(") || cg_is(&c->t[i], "{")) &&
                     body < h->end && cg_is(&c->t[body], "{") && c->partner[body] > body;
    if (!is_lambda)
        return brace_list(h);
    h->i = c->partner[body] + 1;
    return (struct cg_value){.kind = CG_LAMBDA, .code = c, .i = at, .frame = h->frame};
}

/* static_cast<T>(x) and its kin; the name is behind. */
static struct cg_value named_cast(struct cg_host *h)
{
    struct cg_type type;
    uint32_t close = cg_close_angle(h->code, h->i, h->end), n;
    if (close == h->i)
        return cg_unknown(h, "a cast");
    cg_read_type(h, h->code, h->i + 1, close - 1, &type);
    h->i = close;
    if (!cg_is(cg_peek(h), "("))
        return cg_unknown(h, "a cast");
    const struct cg_value *args = cg_eval_list(h, &n);
    return n ? cg_cast(h, type, args[0]) : cg_unknown(h, "a cast");
}

static struct cg_value size_of(struct cg_host *h)
{
    struct cg_type type;
    uint32_t n;
    if (!cg_is(cg_peek(h), "("))
        return cg_unknown(h, "sizeof");
    uint32_t close = h->code->partner[h->i];
    uint32_t behind = cg_read_type(h, h->code, h->i + 1, close, &type);
    if (behind == close && behind > h->i + 1) {
        h->i = close + 1;
        int64_t bytes = type.cls == CG_TYPE_POINTER ? 8 : type.bytes;
        return bytes ? cg_int(h, bytes) : cg_unknown(h, "sizeof(%.60s)", type.text);
    }
    const struct cg_token *inside = &h->code->t[h->i + 1];
    bool pointed = cg_is(inside, "*") && close == h->i + 3; /* sizeof(*p), p unset */
    const struct cg_variable *p =
        pointed ? cg_find_variable(h, cg_token_text(h->pool, inside + 1)) : NULL;
    if (p && p->type.cls == CG_TYPE_POINTER && p->type.bytes > 0) {
        h->i = close + 1;
        return cg_int(h, p->type.bytes);
    }
    const struct cg_value *args = cg_eval_list(h, &n);
    if (n && args[0].kind == CG_NUM)
        return cg_int(h, args[0].sym->real ? 4 : 8);
    if (n && args[0].kind == CG_POINTER && args[0].type.bytes > 0) /* sizeof(*p) */
        return cg_int(h, args[0].type.bytes);
    return n && args[0].kind == CG_LIST ? cg_int(h, 8 * (int64_t)args[0].n)
                                        : cg_unknown(h, "sizeof");
}

/* Whether <...> at h->i belongs to the name before it. */
static uint32_t template_end(struct cg_host *h, const char *name)
{
    if (!cg_is(cg_peek(h), "<"))
        return h->i;
    const struct cg_variable *v = cg_find_variable(h, name);
    uint32_t close = cg_close_angle(h->code, h->i, h->end);
    if (close == h->i || (v && v->value.kind != CG_LAMBDA && v->value.kind != CG_A_TYPE))
        return h->i;
    const struct cg_token *next = &h->code->t[close < h->end ? close : h->code->n];
    bool called = cg_is(next, "(") || cg_is(next, "<<<") || cg_is(next, "::") || cg_is(next, "{");
    bool callee = h->items && cg_find_function(h->items, name);
    return called || callee ? close : h->i;
}

/* a::b<c>::d: the last name, qualified by torch only; template arguments' text to *templates. */
static const char *qualified_name(struct cg_host *h, const char **templates)
{
    bool torch = false;
    const char *name = "";
    *templates = "";
    cg_take_token(h, "::");
    while (cg_peek(h)->kind == CG_NAME) {
        name = cg_token_text(h->pool, cg_peek(h));
        h->i++;
        uint32_t close = template_end(h, name);
        if (close > h->i) {
            *templates = cg_tokens_text(h->pool, &h->code->t[h->i], &h->code->t[close]);
            h->i = close;
        }
        if (!cg_is(cg_peek(h), "::"))
            break;
        torch |= !strcmp(name, "torch") || !strcmp(name, "at");
        h->i++;
    }
    return torch ? cg_format(h->pool, "torch::%s", name) : name;
}

static struct cg_operand name_operand(struct cg_host *h)
{
    struct cg_type type;
    const char *templates;
    const struct cg_token *t = cg_peek(h);
    if (cg_is(t, "nullptr") || cg_is(t, "NULL") || cg_is(t, "None")) {
        h->i++;
        return cg_operand_of(cg_pointer(h, NULL, (struct cg_type){.text = ""}));
    }
    if (cg_is(t, "true") || cg_is(t, "True") || cg_is(t, "false") || cg_is(t, "False")) {
        h->i++;
        return cg_operand_of(cg_int(h, t->s[0] == 't' || t->s[0] == 'T'));
    }
    if (cg_is(t, "static_cast") || cg_is(t, "reinterpret_cast") || cg_is(t, "const_cast")) {
        h->i++;
        return cg_operand_of(named_cast(h));
    }
    if (cg_is(t, "sizeof")) {
        h->i++;
        return cg_operand_of(size_of(h));
    }
    if (cg_is(t, "new") || cg_is(t, "delete") || cg_is(t, "throw")) {
        h->i = h->end;
        return cg_operand_of(cg_unknown(h, "`%.*s`", (int)t->n, t->s));
    }
    uint32_t behind = cg_read_type(h, h->code, h->i, h->end, &type);
    const struct cg_token *next = &h->code->t[behind < h->end ? behind : h->code->n];
    bool constructs =
        type.cls == CG_TYPE_INT || type.cls == CG_TYPE_REAL || type.cls == CG_TYPE_DIM3;
    if (behind > h->i && constructs && (cg_is(next, "(") || cg_is(next, "{")) &&
        !cg_find_variable(h, cg_token_text(h->pool, t))) {
        uint32_t n;
        h->i = behind;
        const struct cg_value *args = cg_eval_list(h, &n);
        return cg_operand_of(type.cls == CG_TYPE_DIM3 ? cg_dim3(h, args, n)
                             : n                      ? cg_cast(h, type, args[0])
                                                      : cg_int(h, 0));
    }
    const char *name = qualified_name(h, &templates);
    if (!templates[0] && cg_is(cg_peek(h), "{") && h->code->partner[h->i] > h->i) {
        uint32_t n;
        struct cg_value record;
        const struct cg_value *args = cg_eval_list(h, &n);
        return cg_operand_of(
            cg_struct_value(h, name, args, n, &record) ? record : cg_unknown(h, "`%.80s{}`", name));
    }
    if (!templates[0]) {
        cg_import_global(h, name);
        return (struct cg_operand){.path = name};
    }
    const struct cg_item *item = h->items ? cg_find_function(h->items, name) : NULL;
    struct cg_value callee = {.kind = CG_CALLEE, .item = item, .text = templates};
    if (!item)
        callee.text = name;
    return cg_operand_of(callee);
}

static struct cg_operand primary(struct cg_host *h)
{
    const struct cg_token *t = cg_peek(h);
    cg_step(h->pool);
    if (t->kind == CG_NUMBER) {
        h->i++;
        return cg_operand_of(number(h, t));
    }
    if (t->kind == CG_STRING) {
        const char *text = cg_token_text(h->pool, t);
        for (h->i++; cg_peek(h)->kind == CG_STRING; h->i++)
            text = cg_format(h->pool, "%s%.*s", text, (int)cg_peek(h)->n, cg_peek(h)->s);
        return cg_operand_of(cg_opaque(text));
    }
    if (t->kind == CG_NAME || cg_is(t, "::"))
        return name_operand(h);
    if (cg_is(t, "("))
        return cg_operand_of(parenthesised(h));
    if (cg_is(t, "{"))
        return cg_operand_of(brace_list(h));
    if (cg_is(t, "["))
        return cg_operand_of(lambda_or_list(h));
    h->i += h->i < h->end;
    return cg_operand_of(cg_unknown(h, "`%.*s`", (int)t->n, t->s));
}

/* ---- What follows a primary ----------------------------------------------------------------- */

/* kernel<<<grid, block, shared, stream>>>(args). h->i stands at <<<. */
static struct cg_value chevrons(struct cg_host *h, struct cg_value kernel)
{
    struct cg_launch_spec spec = {.kernel = kernel, .shared = cg_int(h, 0)};
    struct cg_value *parts[] = {&spec.grid, &spec.block, &spec.shared, NULL};
    uint32_t n;
    spec.grid = spec.block = cg_unknown(h, "nothing");
    h->i++;
    for (uint32_t k = 0; h->i < h->end && !cg_is(cg_peek(h), ">") && k < 4; k++) {
        struct cg_value v = cg_eval(h);
        if (parts[k])
            *parts[k] = v;
        if (!cg_take_token(h, ","))
            break;
    }
    while (cg_take_token(h, ">"))
        ;
    if (!cg_is(cg_peek(h), "(")) {
        cg_problem(h, "a <<<...>>> that is not followed by arguments");
        return (struct cg_value){.kind = CG_NOTHING};
    }
    const struct cg_value *args = cg_eval_list(h, &n);
    cg_add_launch(h, &spec, args, n);
    return (struct cg_value){.kind = CG_NOTHING};
}

/* std::swap(a, b) of two variables at h->i. */
static bool swap(struct cg_host *h)
{
    uint32_t i = h->i;
    if (i + 5 > h->end || h->code->partner[i] != i + 4 || !cg_is(&h->code->t[i + 2], ",") ||
        h->code->t[i + 1].kind != CG_NAME || h->code->t[i + 3].kind != CG_NAME)
        return false;
    const char *a = cg_token_text(h->pool, &h->code->t[i + 1]);
    const char *b = cg_token_text(h->pool, &h->code->t[i + 3]);
    struct cg_value x = cg_read_variable(h, a), y = cg_read_variable(h, b);
    cg_assign(h, a, y);
    cg_assign(h, b, x);
    h->i = i + 5;
    return true;
}

static struct cg_value call(struct cg_host *h, struct cg_operand f)
{
    uint32_t n;
    if (f.path && !strcmp(f.path, "swap") && swap(h))
        return (struct cg_value){.kind = CG_NOTHING};
    struct cg_value callee = f.value;
    if (f.path) {
        const struct cg_variable *v = cg_find_variable(h, f.path);
        const struct cg_item *item = h->items ? cg_find_function(h->items, f.path) : NULL;
        callee = v ? v->value
                   : (struct cg_value){.kind = CG_CALLEE, .item = item, .text = item ? "" : f.path};
        if (v && callee.kind != CG_LAMBDA && callee.kind != CG_CALLEE)
            callee = (struct cg_value){.kind = CG_CALLEE, .text = f.path};
    }
    const struct cg_value *args = cg_eval_list(h, &n);
    return cg_call(h, callee, args, n);
}

static struct cg_operand member(struct cg_host *h, struct cg_operand o)
{
    const struct cg_token *t = cg_peek(h);
    struct cg_value out;
    uint32_t n;
    if (t->kind != CG_NAME)
        return cg_operand_of(cg_unknown(h, "a member"));
    const char *name = cg_token_text(h->pool, t);
    h->i++;
    if (cg_is(cg_peek(h), "<")) { /* x.data_ptr<float>() */
        uint32_t close = cg_close_angle(h->code, h->i, h->end);
        if (close > h->i && close < h->end && cg_is(&h->code->t[close], "("))
            h->i = close;
    }
    struct cg_value self = o.value;
    if (o.path) {
        struct cg_variable *v = cg_find_variable(h, o.path);
        if (v && v->value.kind == CG_ADDRESS)
            o.path = v->value.text;
        else if (!v && cg_is(cg_peek(h), "("))
            self = cg_read_variable(h, o.path);
        if (v)
            self = v->value;
        if (!cg_is(cg_peek(h), "("))
            return (struct cg_operand){.path = cg_format(h->pool, "%.200s.%s", o.path, name)};
    } else if (!cg_is(cg_peek(h), "(")) {
        return cg_operand_of(cg_member(h, self, name));
    }
    const struct cg_value *args = cg_eval_list(h, &n);
    if (cg_call_method(h, self, name, args, n, &out))
        return cg_operand_of(out);
    if (self.kind == CG_UNKNOWN || self.kind == CG_NOTHING || self.kind == CG_OPAQUE) {
        /* torch.empty_like(x) of Python, F.relu(x), self.module.run(x) */
        const char *full = cg_format(h->pool, "torch::%s", name);
        if (o.path && !strcmp(o.path, "torch") && cg_call_torch(h, full, args, n, &out))
            return cg_operand_of(out);
        if (o.path && (!strcmp(o.path, "math") || !strcmp(o.path, "np")))
            return cg_operand_of(
                cg_call(h, (struct cg_value){.kind = CG_CALLEE, .text = name}, args, n));
        if (!o.path || strcmp(o.path, "torch") != 0) {
            const struct cg_item *item = h->items ? cg_find_function(h->items, name) : NULL;
            if (item && !item->global)
                return cg_operand_of(cg_call_item(h, item, "", args, n));
        }
    }
    if (self.kind == CG_UNKNOWN && o.path && cg_find_variable(h, o.path))
        return cg_operand_of(self); /* why the object is not known says more */
    return cg_operand_of(
        cg_unknown(h, "`%.80s%s%s()`", o.path ? o.path : "", o.path ? "." : "", name));
}

static struct cg_operand subscript(struct cg_host *h, struct cg_operand o)
{
    uint32_t n;
    int64_t k;
    const struct cg_value *index = cg_eval_list(h, &n);
    bool constant = n == 1 && index[0].kind == CG_NUM && cg_sym_constant(index[0].sym, &k);
    struct cg_value base = o.value;
    if (o.path) {
        struct cg_variable *v = cg_find_variable(h, o.path);
        base = v ? v->value : cg_read_variable(h, o.path);
    }
    if (constant && base.kind == CG_LIST) {
        k = k < 0 ? k + base.n : k;
        if (k >= 0 && k < base.n)
            return cg_operand_of(base.list[k]);
    }
    if (base.kind == CG_TENSOR && base.n && n == 1 && index[0].kind == CG_NUM && !base.transposed) {
        const struct cg_sym *step = cg_product(h, base.list + 1, base.n - 1);
        step = cg_sym(h->pool, SYM_MUL, step, cg_sym_int(h->pool, base.type.bytes));
        base.sym = cg_sym(h->pool, SYM_ADD, base.sym, cg_sym(h->pool, SYM_MUL, index[0].sym, step));
        base.list++;
        base.n--;
        return cg_operand_of(base.sym ? base : cg_unknown(h, "a part of a tensor"));
    }
    if (base.kind == CG_POINTER && base.buffer && n == 1) /* &x[k] */
        return cg_operand_of(
            cg_binary(h, &(struct cg_token){.s = "+", .n = 1, .kind = CG_OP}, base, index[0]));
    if (constant && o.path)
        return (struct cg_operand){.path =
                                       cg_format(h->pool, "%.200s[%lld]", o.path, (long long)k)};
    return cg_operand_of(cg_unknown(h, "an element of `%.80s`", o.path ? o.path : "a list"));
}

struct cg_operand cg_postfix(struct cg_host *h)
{
    struct cg_operand o = primary(h);
    for (int i = 0; i < 64; i++) {
        const struct cg_token *t = cg_peek(h);
        if (cg_is(t, "(")) {
            o = cg_operand_of(call(h, o));
        } else if (cg_is(t, "<<<")) {
            o = cg_operand_of(chevrons(h, cg_load(h, o)));
        } else if (cg_is(t, ".") || cg_is(t, "->")) {
            h->i++;
            o = member(h, o);
        } else if (cg_is(t, "[")) {
            o = subscript(h, o);
        } else if ((cg_is(t, "++") || cg_is(t, "--")) && o.path) {
            struct cg_value old = cg_load(h, o);
            struct cg_token op = {.s = t->s, .n = 1, .kind = CG_OP};
            h->i++;
            cg_assign(h, o.path, cg_binary(h, &op, old, cg_int(h, 1)));
            o = cg_operand_of(old);
        } else {
            break;
        }
    }
    return o;
}
