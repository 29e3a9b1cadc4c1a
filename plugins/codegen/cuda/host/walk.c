/* Statements of host code: see host.h. Loops and switches are in loops.c. */
#include "walk.h"
#include <string.h>

static const struct cg_token *at(const struct cg_host *h, uint32_t i)
{
    return &h->code->t[i < h->code->n ? i : h->code->n];
}

static uint32_t to_semicolon(const struct cg_host *h, uint32_t i, uint32_t end)
{
    while (i < end && !cg_is(at(h, i), ";")) {
        cg_step(h->pool);
        i = h->code->partner[i] > i ? h->code->partner[i] + 1 : i + 1;
    }
    return i < end ? i + 1 : end;
}

/* Behind "(...)" at i, or i when there is none. */
static uint32_t past_brackets(const struct cg_host *h, uint32_t i)
{
    return cg_is(at(h, i), "(") && h->code->partner[i] > i ? h->code->partner[i] + 1 : i;
}

uint32_t cg_skip_statement(struct cg_host *h, uint32_t i, uint32_t end)
{
    const struct cg_token *t = at(h, i);
    cg_step(h->pool);
    if (++h->nesting > 200)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    if (i >= end) {
        i = end;
    } else if (cg_is(t, "{")) {
        i = h->code->partner[i] > i ? h->code->partner[i] + 1 : end;
    } else if (cg_is(t, "if")) {
        i += cg_is(at(h, i + 1), "constexpr") ? 2 : 1;
        i = cg_skip_statement(h, past_brackets(h, i), end);
        if (i < end && cg_is(at(h, i), "else"))
            i = cg_skip_statement(h, i + 1, end);
    } else if (cg_is(t, "for") || cg_is(t, "while") || cg_is(t, "switch")) {
        i = cg_skip_statement(h, past_brackets(h, i + 1), end);
    } else if (cg_is(t, "do")) {
        i = to_semicolon(h, cg_skip_statement(h, i + 1, end), end);
    } else {
        i = to_semicolon(h, i, end);
    }
    h->nesting--;
    return i;
}

bool cg_has_effect(struct cg_host *h, uint32_t from, uint32_t to)
{
    static const char *const starts[] = {"cudaLaunch", "cudaMalloc", "cudaMemset", "cudaMemcpyTo",
                                         "AT_DISPATCH"};
    for (uint32_t i = from; i < to; i++) {
        const struct cg_token *t = at(h, i);
        cg_step(h->pool);
        if (cg_is(t, "<<<"))
            return true;
        if (t->kind != CG_NAME)
            continue;
        for (size_t k = 0; k < sizeof(starts) / sizeof(*starts); k++)
            if (t->n >= strlen(starts[k]) && !memcmp(t->s, starts[k], strlen(starts[k])))
                return true;
        for (size_t k = 0; cg_is(at(h, i + 1), "(") && h->items && k < h->items->n; k++)
            if (h->reaches[k] && cg_is(t, h->items->list[k].name))
                return true;
        struct cg_variable *v =
            cg_is(at(h, i + 1), "(") ? cg_find_variable(h, cg_token_text(h->pool, t)) : NULL;
        if (v && v->value.kind == CG_LAMBDA)
            return true;
    }
    return false;
}

/* ---- Declarations --------------------------------------------------------------------------- */

/* std::vector<float> h(n), thrust::device_vector<float> d(n): memory. */
static bool container(struct cg_host *h, struct cg_type type, const struct cg_value *args,
                      uint32_t n, struct cg_value *out)
{
    const char *open = strchr(type.text, '<');
    bool device = strstr(type.text, "device_vector") != NULL;
    if (!open || !strstr(type.text, "vector"))
        return false;
    struct cg_type element = {.text = ""};
    struct cg_tokens code =
        cg_lex(h->pool, cg_text(h->pool, open + 1, strcspn(open + 1, ">,")), CG_CPP, NULL);
    cg_read_type(h, &code, 0, code.n, &element);
    struct cg_buffer *b = cg_new_buffer(h, "");
    b->host = !device;
    b->dtype = element.dtype;
    if (n && args[0].kind == CG_NUM)
        b->bytes = cg_sym(h->pool, SYM_MUL, args[0].sym, cg_sym_int(h->pool, element.bytes));
    *out = cg_pointer(h, b, element);
    return true;
}

static struct cg_value construct(struct cg_host *h, struct cg_type type,
                                 const struct cg_value *args, uint32_t n)
{
    struct cg_value out;
    if (type.cls == CG_TYPE_DIM3)
        return cg_dim3(h, args, n);
    if (container(h, type, args, n, &out))
        return out;
    if (type.cls != CG_TYPE_OTHER && n == 1)
        return cg_cast(h, type, args[0]);
    if (type.cls != CG_TYPE_OTHER && n == 0)
        return cg_cast(h, type, cg_int(h, 0));
    return cg_opaque(type.text);
}

static void name_buffer(struct cg_value value, const char *name)
{
    if ((value.kind == CG_POINTER || value.kind == CG_TENSOR) && value.buffer &&
        !value.buffer->name[0])
        value.buffer->name = name;
}

/* In main, numbers that are named like the task's dims stand for these. */
static struct cg_value in_terms_of_task(struct cg_host *h, const char *name, struct cg_type type,
                                        struct cg_value value)
{
    bool number = type.cls == CG_TYPE_INT || type.cls == CG_TYPE_REAL || type.cls == CG_TYPE_AUTO;
    bool open = value.kind == CG_UNKNOWN ||
                (value.kind == CG_NUM && (value.sym->op == SYM_INT || value.sym->op == SYM_REAL));
    if (!h->in_main || h->calls || !number || !open)
        return value;
    struct cg_value named = cg_bind_name(h, name);
    bool fits = named.kind == CG_NUM && (named.sym->real || type.cls != CG_TYPE_REAL);
    return fits ? named : value;
}

/* auto [a, b] = list; h->i stands behind the '['. */
static void structured(struct cg_host *h, uint32_t close, uint32_t end)
{
    uint32_t names = h->i, k = 0;
    h->i = close + 2;
    h->end = end;
    struct cg_value v = cg_eval(h);
    for (uint32_t i = names; i < close; i++)
        if (at(h, i)->kind == CG_NAME) {
            struct cg_value part =
                v.kind == CG_LIST && k < v.n ? v.list[k] : cg_unknown(h, "a part");
            cg_declare(h, cg_token_text(h->pool, at(h, i)), part, (struct cg_type){.text = ""});
            k++;
        }
}

/* One declarator at h->i; false when it is none. */
static bool declarator(struct cg_host *h, struct cg_type type)
{
    struct cg_value value = {.kind = CG_NOTHING};
    uint32_t n;
    bool array = false;
    if (cg_is(at(h, h->i), "(") && cg_is(at(h, h->i + 1), "*")) { /* void (*f)(int) = g */
        const struct cg_token *name = at(h, h->i + 2);
        uint32_t i = past_brackets(h, past_brackets(h, h->i));
        if (name->kind != CG_NAME || i <= h->i)
            return false;
        h->i = cg_is(at(h, i), "=") ? i + 1 : i;
        if (cg_is(at(h, i), "="))
            value = cg_eval(h);
        cg_declare(h, cg_token_text(h->pool, name), value, (struct cg_type){.text = ""});
        return true;
    }
    for (; cg_is(at(h, h->i), "*") || cg_is(at(h, h->i), "&") || cg_is(at(h, h->i), "const");
         h->i++)
        if (cg_is(at(h, h->i), "*"))
            type.cls = CG_TYPE_POINTER;
    if (at(h, h->i)->kind != CG_NAME)
        return false;
    const char *name = cg_token_text(h->pool, at(h, h->i++));
    for (; cg_is(at(h, h->i), "[") && h->code->partner[h->i] > h->i; array = true)
        h->i = h->code->partner[h->i] + 1;
    if (cg_is(at(h, h->i), "=")) {
        h->i++;
        value = cg_eval(h);
    } else if (cg_is(at(h, h->i), "(") || cg_is(at(h, h->i), "{")) {
        const struct cg_value *args = cg_eval_list(h, &n);
        value = array ? (struct cg_value){.kind = CG_LIST, .list = args, .n = n}
                      : construct(h, type, args, n);
    } else if (type.cls == CG_TYPE_DIM3 && !array) {
        value = cg_dim3(h, NULL, 0);
    } else if (type.cls == CG_TYPE_OTHER && !container(h, type, NULL, 0, &value)) {
        value = (struct cg_value){.kind = CG_NOTHING};
    }
    struct cg_value record;
    bool aggregate = !array && type.cls == CG_TYPE_OTHER &&
                     (value.kind == CG_LIST || value.kind == CG_NOTHING || value.kind == CG_OPAQUE);
    if (aggregate && cg_struct_value(h, type.text, value.kind == CG_LIST ? value.list : NULL,
                                     value.kind == CG_LIST ? value.n : 0, &record))
        value = record;
    if (!array) {
        value = in_terms_of_task(h, name, type, value);
        value = value.kind == CG_NOTHING ? value : cg_cast(h, type, value);
    } else {
        type.cls = CG_TYPE_OTHER;
    }
    if (value.kind == CG_LIST && !value.n && type.cls == CG_TYPE_OTHER)
        value = (struct cg_value){.kind = CG_NOTHING}; /* config = {} */
    name_buffer(value, name);
    cg_declare(h, name, value, type);
    return true;
}

static bool is_declaration(struct cg_host *h, uint32_t end, struct cg_type *type, uint32_t *behind)
{
    const struct cg_token *t = at(h, h->i);
    struct cg_variable *v;
    if (t->kind != CG_NAME)
        return false;
    v = cg_find_variable(h, cg_token_text(h->pool, t));
    if ((v && v->value.kind != CG_A_TYPE) || cg_is(t, "return") || cg_is(t, "delete"))
        return false;
    *behind = cg_read_type(h, h->code, h->i, end, type);
    if (*behind <= h->i || *behind >= end)
        return false;
    const struct cg_token *name = at(h, *behind), *next = at(h, *behind + 1);
    if (cg_is(name, "(") && cg_is(next, "*"))
        return true;
    if (cg_is(name, "[") && type->cls == CG_TYPE_AUTO)
        return true;
    return name->kind == CG_NAME &&
           (cg_is(next, "=") || cg_is(next, ";") || cg_is(next, "(") || cg_is(next, "{") ||
            cg_is(next, "[") || cg_is(next, ",") || cg_is(next, ":"));
}

/* The type of further names: in `float *a, b` the '*' belongs to a alone. */
static struct cg_type first_base(struct cg_host *h, struct cg_type type, uint32_t from,
                                 uint32_t behind)
{
    struct cg_type base = type;
    uint32_t star = behind;
    while (star > from && !cg_is(at(h, star - 1), ">") && at(h, star - 1)->kind == CG_OP)
        star--;
    if (type.cls == CG_TYPE_POINTER && star < behind)
        cg_read_type(h, h->code, from, star, &base);
    return base.cls == CG_TYPE_POINTER || star == from ? type : base;
}

bool cg_declaration(struct cg_host *h, uint32_t end)
{
    struct cg_type type;
    uint32_t behind, old = h->end, start = h->i;
    if (!is_declaration(h, end, &type, &behind))
        return false;
    h->i = behind;
    h->end = end;
    if (cg_is(at(h, h->i), "[") && h->code->partner[h->i] > h->i) {
        uint32_t close = h->code->partner[h->i++];
        structured(h, close, end);
    } else {
        struct cg_type base = first_base(h, type, start, behind);
        bool more = declarator(h, type);
        while (more && h->i < h->end && cg_is(at(h, h->i), ",")) {
            h->i++;
            more = declarator(h, base);
        }
    }
    h->end = old;
    return true;
}

/* using T = float; typedef float T; */
static void alias(struct cg_host *h, uint32_t end)
{
    struct cg_type type;
    bool is_using = cg_is(at(h, h->i), "using");
    uint32_t name = is_using ? h->i + 1 : end - 2, from = is_using ? h->i + 3 : h->i + 1;
    uint32_t behind = from < end ? cg_read_type(h, h->code, from, end - 1, &type) : from;
    if (behind > from && at(h, name)->kind == CG_NAME)
        cg_declare(h, cg_token_text(h->pool, at(h, name)),
                   (struct cg_value){.kind = CG_A_TYPE, .type = type},
                   (struct cg_type){.text = ""});
}

/* ---- Control -------------------------------------------------------------------------------- */

void cg_run_statement(struct cg_host *h, uint32_t from, uint32_t to)
{
    uint32_t i = h->i, end = h->end;
    size_t n_vars = h->n_vars;
    h->i = from;
    cg_walk(h, to);
    h->n_vars = n_vars;
    h->i = i;
    h->end = end;
}

/* Whether the statement ends the function: an error's way out. */
static bool ends(struct cg_host *h, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (cg_is(at(h, i), "return") || cg_is(at(h, i), "throw") || cg_is(at(h, i), "exit") ||
            cg_is(at(h, i), "abort"))
            return true;
    return false;
}

/* A condition that is nothing of the task: only what has no effect may hang on it. */
static void unclear(struct cg_host *h, struct cg_value condition, uint32_t then, uint32_t other,
                    uint32_t end)
{
    bool first = cg_has_effect(h, then, other), second = cg_has_effect(h, other, end);
    if (first && ends(h, other, end) && !second) {
        cg_run_statement(h, then, other);
        return;
    }
    if (first) {
        cg_problem(h, "whether a launch happens depends on %s",
                   condition.kind == CG_UNKNOWN ? condition.text : "a condition");
        return;
    }
    const char *why = condition.kind == CG_UNKNOWN ? condition.text : "a condition";
    cg_forget(h, then, other, why);
    if (other < end && ends(h, then, other))
        cg_run_statement(h, other, end);
    else if (second)
        cg_problem(h, "whether a launch happens depends on %s",
                   condition.kind == CG_UNKNOWN ? condition.text : "a condition");
    else
        cg_forget(h, other, end, why);
}

/* if (x > c) x = c; is x = min(x, c) and no choice between two walks. */
static bool clamp(struct cg_host *h, struct cg_value c, uint32_t from, uint32_t to)
{
    if (cg_is(at(h, from), "{") && h->code->partner[from] == to - 1) {
        from++;
        to--;
    }
    if (c.kind != CG_NUM || to < from + 4 || at(h, from)->kind != CG_NAME ||
        !cg_is(at(h, from + 1), "=") || to_semicolon(h, from, to) != to)
        return false;
    const char *name = cg_token_text(h->pool, at(h, from));
    const struct cg_variable *v = cg_find_variable(h, name);
    if (!v || v->value.kind != CG_NUM || cg_has_effect(h, from, to))
        return false;
    for (uint32_t i = from; i < to; i++)
        if (cg_is(at(h, i), "?"))
            return false;
    struct cg_value old = v->value, next = cg_eval_range(h, from + 2, to - 1);
    const struct cg_sym *both =
        next.kind == CG_NUM ? cg_min_max(h, c.sym, next.sym, old.sym) : NULL;
    if (both)
        cg_assign(h, name, cg_number(both));
    return both != NULL;
}

static void if_statement(struct cg_host *h, uint32_t end)
{
    uint32_t open = h->i + (cg_is(at(h, h->i + 1), "constexpr") ? 2 : 1);
    uint32_t then = past_brackets(h, open), other, behind, from = open + 1;
    size_t n_vars = h->n_vars;
    if (then == open) {
        h->i = cg_skip_statement(h, h->i, end);
        return;
    }
    other = behind = cg_skip_statement(h, then, end);
    if (behind < end && cg_is(at(h, behind), "else")) {
        other = behind + 1;
        behind = cg_skip_statement(h, other, end);
    }
    uint32_t semicolon = to_semicolon(h, from, then - 1); /* if (int n = f(); n > 1) */
    if (semicolon < then - 1) {
        cg_run_statement(h, from, semicolon);
        from = semicolon;
    }
    struct cg_value c = cg_eval_range(h, from, then - 1);
    if (c.kind == CG_POINTER || c.kind == CG_TENSOR)
        c = cg_int(h, c.buffer != NULL);
    uint32_t then_end = other == behind ? other : other - 1;
    if (other == behind && clamp(h, c, then, then_end))
        ;
    else if (c.kind != CG_NUM)
        unclear(h, c, then, other == behind ? behind : other, behind);
    else if (cg_decide(h, c.sym))
        cg_run_statement(h, then, then_end);
    else if (other < behind)
        cg_run_statement(h, other, behind);
    h->n_vars = n_vars;
    h->i = behind;
}

static void return_statement(struct cg_host *h, uint32_t end)
{
    uint32_t behind = to_semicolon(h, h->i, end), stop = behind > h->i + 1 ? behind - 1 : behind;
    struct cg_value v = {.kind = CG_NOTHING};
    if (stop > h->i + 1)
        v = cg_eval_range(h, h->i + 1, stop);
    h->result = v;
    h->flow = CG_RETURN;
    h->i = behind;
}

static void expression_statement(struct cg_host *h, uint32_t end)
{
    uint32_t behind = to_semicolon(h, h->i, end), old = h->end;
    bool closed = behind > h->i && cg_is(at(h, behind - 1), ";");
    uint32_t stop = closed ? behind - 1 : behind;
    h->end = stop;
    while (h->i < stop && h->flow == CG_NEXT) { /* a, b; and what was not understood */
        uint32_t before = h->i;
        cg_eval(h);
        if (h->i < stop && cg_has_effect(h, h->i, stop) && !cg_is(at(h, h->i), ","))
            cg_problem(h, "`%.100s` is not understood",
                       cg_tokens_text(h->pool, at(h, before), at(h, stop)));
        if (h->i < stop && cg_is(at(h, h->i), ","))
            h->i++;
        else
            break;
    }
    h->end = old;
    h->i = behind;
}

static void statement(struct cg_host *h, uint32_t end)
{
    const struct cg_token *t = at(h, h->i);
    cg_step(h->pool);
    if (cg_is(t, "{")) {
        uint32_t close = h->code->partner[h->i];
        cg_run_statement(h, h->i + 1, close > h->i ? close : end);
        h->i = close > h->i ? close + 1 : end;
    } else if (cg_is(t, ";") || cg_is(t, "}") || cg_is(t, "else") || cg_is(t, "try")) {
        h->i++;
    } else if (cg_is(t, "catch")) {
        h->i = cg_skip_statement(h, past_brackets(h, h->i + 1), end);
    } else if (cg_is(t, "if")) {
        if_statement(h, end);
    } else if (cg_loop(h, end)) {
        return;
    } else if (cg_is(t, "return")) {
        return_statement(h, end);
    } else if (cg_is(t, "throw")) {
        h->flow = CG_RETURN;
        h->result = (struct cg_value){.kind = CG_NOTHING};
    } else if (cg_is(t, "break") || cg_is(t, "continue")) {
        h->flow = cg_is(t, "break") ? CG_BREAK : CG_CONTINUE;
        h->i = to_semicolon(h, h->i, end);
    } else if (cg_is(t, "case") || cg_is(t, "default")) {
        while (h->i < end && !cg_is(at(h, h->i), ":"))
            h->i++;
        h->i++;
    } else if (cg_is(t, "using") || cg_is(t, "typedef")) {
        uint32_t behind = to_semicolon(h, h->i, end);
        alias(h, behind);
        h->i = behind;
    } else {
        uint32_t behind = to_semicolon(h, h->i, end);
        if (cg_declaration(h, behind))
            h->i = behind;
        else
            expression_statement(h, end);
    }
}

void cg_walk(struct cg_host *h, uint32_t end)
{
    if (++h->nesting > 200)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    h->end = end;
    while (h->i < end && h->flow == CG_NEXT && !h->problem) {
        uint32_t before = h->i;
        statement(h, end);
        h->end = end;
        if (h->i <= before && h->flow == CG_NEXT)
            h->i = before + 1;
    }
    h->nesting--;
}
