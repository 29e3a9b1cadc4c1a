/* Calls in host code: functions of the source, lambdas, arithmetic of the library. See host.h. */
#include "host.h"
#include <math.h>
#include <string.h>

enum { MAX_CALLS = 24 };

/* ---- Functions of the library --------------------------------------------------------------- */

/* The integers of a quotient: a/b as an expression of ints or of floats that were ints. */
static bool quotient(struct cg_host *h, const struct cg_sym *s, const struct cg_sym **a,
                     const struct cg_sym **b)
{
    if (s->op != SYM_DIV || !s->real)
        return false;
    const struct cg_sym *side[2] = {s->a, s->b};
    for (int i = 0; i < 2; i++) {
        if (side[i]->op == SYM_MUL && side[i]->a->op == SYM_REAL && side[i]->a->f == 1.0)
            side[i] = side[i]->b;
        else if (side[i]->op == SYM_REAL && side[i]->f == floor(side[i]->f) &&
                 fabs(side[i]->f) < 9e15)
            side[i] = cg_sym_int(h->pool, (int64_t)side[i]->f);
        if (side[i]->real)
            return false;
    }
    *a = side[0];
    *b = side[1];
    return true;
}

static struct cg_value rounded(struct cg_host *h, const struct cg_sym *s, bool up)
{
    const struct cg_sym *a, *b;
    if (!s->real)
        return cg_number(s);
    if (s->op == SYM_REAL)
        return cg_number(cg_sym_real(h->pool, up ? ceil(s->f) : floor(s->f)));
    if (quotient(h, s, &a, &b))
        return cg_number(cg_sym(h->pool, up ? SYM_CEIL_DIV : SYM_DIV, a, b));
    return cg_unknown(h, "a rounded float");
}

static bool constant_real(const struct cg_value *v, double *f)
{
    int64_t i;
    if (v->kind == CG_NUM && v->sym->op == SYM_REAL) {
        *f = v->sym->f;
        return true;
    }
    struct cg_value inner = *v;
    if (v->kind == CG_NUM && v->sym->op == SYM_MUL && v->sym->a->op == SYM_REAL &&
        v->sym->a->f == 1.0)
        inner.sym = v->sym->b;
    if (!cg_fixed(&inner, &i))
        return false;
    *f = (double)i;
    return true;
}

/* Functions that plans lack, on constants. */
static bool constant_function(struct cg_host *h, const char *name, const struct cg_value *args,
                              uint32_t n, struct cg_value *out)
{
    static const struct {
        const char *name;
        double (*f)(double);
    } table[] = {{"sqrt", sqrt}, {"sqrtf", sqrt}, {"log2", log2}, {"log2f", log2}, {"exp", exp},
                 {"expf", exp},  {"log", log},    {"logf", log},  {"fabs", fabs},  {"fabsf", fabs}};
    double x, y;
    if (n == 2 && (!strcmp(name, "pow") || !strcmp(name, "powf")) && constant_real(&args[0], &x) &&
        constant_real(&args[1], &y)) {
        *out = cg_number(cg_sym_real(h->pool, pow(x, y)));
        return true;
    }
    if (n == 1 && (!strcmp(name, "rsqrt") || !strcmp(name, "rsqrtf")) &&
        constant_real(&args[0], &x)) {
        *out = cg_number(cg_sym_real(h->pool, 1.0 / sqrt(x)));
        return true;
    }
    for (size_t i = 0; n == 1 && i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(name, table[i].name) && constant_real(&args[0], &x)) {
            *out = cg_number(cg_sym_real(h->pool, table[i].f(x)));
            return true;
        }
    return false;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

static bool call_math(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n,
                      struct cg_value *out)
{
    static const char *const minima[] = {"min", "fminf", "fmin", NULL};
    static const char *const maxima[] = {"max", "fmaxf", "fmax", NULL};
    static const char *const ups[] = {"ceil", "ceilf", NULL};
    static const char *const downs[] = {"floor", "floorf", "int", NULL};
    static const char *const divisions[] = {
        "ceil_div", "cdiv",  "div_up",      "ceildiv", "CeilDiv", "CEIL_DIV", "DIV_UP", "divUp",
        "ceilDiv",  "DivUp", "ceil_divide", "divup",   "iDivUp",  "div_ceil", NULL};
    bool least = is_one_of(name, minima), most = is_one_of(name, maxima);
    const struct cg_value *list = args;
    if ((least || most) && n == 1 && args[0].kind == CG_LIST) {
        list = args[0].list;
        n = args[0].n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (list[i].kind != CG_NUM)
            return false;
    if ((least || most) && n >= 2) {
        const struct cg_sym *s = list[0].sym;
        for (uint32_t i = 1; i < n; i++)
            s = cg_sym(h->pool, least ? SYM_MIN : SYM_MAX, s, list[i].sym);
        *out = cg_number(s);
        return true;
    }
    if (n == 1 && (is_one_of(name, ups) || is_one_of(name, downs))) {
        *out = rounded(h, args[0].sym, is_one_of(name, ups));
        return true;
    }
    if (n == 2 && is_one_of(name, divisions)) {
        *out = cg_number(cg_sym(h->pool, SYM_CEIL_DIV, args[0].sym, args[1].sym));
        return true;
    }
    return constant_function(h, name, args, n, out);
}

/* ---- Functions of the source ---------------------------------------------------------------- */

static const struct cg_tokens *body_of(struct cg_host *h, const struct cg_item *item)
{
    size_t k = (size_t)(item - h->items->list);
    if (!h->bodies[k]) {
        struct cg_tokens *body = cg_take(h->pool, sizeof(*body));
        *body = cg_expand(h->pool, h->macros, &h->tokens->t[item->open + 1],
                          &h->tokens->t[item->close]);
        h->bodies[k] = body;
    }
    return h->bodies[k];
}

struct saved {
    const struct cg_tokens *code;
    uint32_t i, end;
    size_t n_vars, frame;
    int nesting;
};

static struct saved enter(struct cg_host *h)
{
    struct saved s = {h->code, h->i, h->end, h->n_vars, h->frame, h->nesting};
    if (++h->calls > MAX_CALLS)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    return s;
}

static struct cg_value leave(struct cg_host *h, const struct saved *s)
{
    struct cg_value result =
        h->flow == CG_RETURN ? h->result : (struct cg_value){.kind = CG_NOTHING};
    h->code = s->code;
    h->i = s->i;
    h->end = s->end;
    h->n_vars = s->n_vars;
    h->frame = s->frame;
    h->nesting = s->nesting;
    h->calls--;
    h->flow = CG_NEXT;
    return result;
}

uint32_t cg_template_values(struct cg_host *h, const char *text, struct cg_value *values,
                            uint32_t max)
{
    size_t len = strlen(text);
    uint32_t starts[CG_MAX_ARGS], ends[CG_MAX_ARGS];
    if (len < 2)
        return 0;
    struct cg_tokens code = cg_lex(h->pool, cg_text(h->pool, text + 1, len - 2), CG_CPP, NULL);
    uint32_t n =
        cg_split_list(&code, 0, code.n, starts, ends, max < CG_MAX_ARGS ? max : CG_MAX_ARGS);
    const struct cg_tokens *old = h->code;
    h->code = &code;
    for (uint32_t k = 0; k < n; k++) {
        struct cg_type type;
        uint32_t behind = cg_read_type(h, &code, starts[k], ends[k], &type);
        values[k] = cg_eval_range(h, starts[k], ends[k]);
        if (values[k].kind != CG_NUM && values[k].kind != CG_CALLEE && behind == ends[k])
            values[k] = (struct cg_value){.kind = CG_A_TYPE, .type = type};
        else if (values[k].kind == CG_UNKNOWN)
            values[k].text = cg_tokens_text(h->pool, &code.t[starts[k]], &code.t[ends[k]]);
    }
    h->code = old;
    return n;
}

/* What a template's type is by the argument of a parameter that names it. */
static struct cg_value deduced(struct cg_host *h, const struct cg_item *item, const char *name,
                               const struct cg_value *args, uint32_t n)
{
    for (uint32_t k = 0; k < item->n_params && k < n; k++)
        for (uint32_t i = item->params[k].from; i < item->params[k].to; i++) {
            if (!cg_is(&h->tokens->t[i], name))
                continue;
            struct cg_type type = args[k].type;
            if (args[k].kind == CG_POINTER && (type.dtype || type.bytes)) {
                type.cls = CG_TYPE_REAL;
                if (!type.text || !type.text[0])
                    type.text = cg_c_type(type.dtype);
                return (struct cg_value){.kind = CG_A_TYPE, .type = type};
            }
            if (args[k].kind == CG_NUM) {
                type = (struct cg_type){.cls = args[k].sym->real ? CG_TYPE_REAL : CG_TYPE_INT,
                                        .dtype = args[k].sym->real ? RUNG_F32 : RUNG_I32,
                                        .bytes = 4};
                type.text = cg_c_type(type.dtype);
                return (struct cg_value){.kind = CG_A_TYPE, .type = type};
            }
        }
    return (struct cg_value){.kind = CG_NOTHING};
}

uint32_t cg_template_args(struct cg_host *h, const struct cg_item *item, const char *templates,
                          const struct cg_value *args, uint32_t n, struct cg_value *values)
{
    uint32_t given = cg_template_values(h, templates, values, CG_MAX_ARGS);
    for (uint32_t k = given; k < item->n_template_params && k < CG_MAX_ARGS; k++) {
        const struct cg_parameter *p = &item->template_params[k];
        values[k] = deduced(h, item, p->name, args, n);
        if (values[k].kind == CG_NOTHING && p->behind > p->value) {
            const char *text = cg_format(
                h->pool, "<%s>",
                cg_tokens_text(h->pool, &h->tokens->t[p->value], &h->tokens->t[p->behind]));
            cg_template_values(h, text, &values[k], 1);
        }
        if (values[k].kind == CG_NOTHING)
            return k;
    }
    return given > item->n_template_params ? given : item->n_template_params;
}

struct cg_value cg_call_item(struct cg_host *h, const struct cg_item *item, const char *templates,
                             const struct cg_value *args, uint32_t n)
{
    struct cg_value types[CG_MAX_ARGS];
    if (item->kind != CG_FUNCTION || item->global)
        return cg_unknown(h, "`%.80s()`", item->name);
    uint32_t n_types = cg_template_args(h, item, templates, args, n, types);
    struct saved s = enter(h);
    h->frame = h->n_vars;
    for (uint32_t k = 0; k < n_types && k < item->n_template_params; k++)
        cg_declare(h, item->template_params[k].name, types[k], (struct cg_type){.text = ""});
    for (uint32_t k = 0; k < item->n_params; k++) {
        const struct cg_parameter *p = &item->params[k];
        struct cg_type type = cg_param_type(h, h->tokens, p);
        struct cg_value v = cg_unknown(h, "`%.80s`", p->name);
        if (k < n) {
            v = args[k];
        } else if (p->behind > p->value) {
            const struct cg_tokens *code = h->code;
            h->code = h->tokens;
            v = cg_eval_range(h, p->value, p->behind);
            h->code = code;
        }
        cg_declare(h, p->name, cg_cast(h, type, v), type);
    }
    h->code = body_of(h, item);
    h->i = 0;
    h->end = h->code->n;
    h->nesting = 0;
    cg_walk(h, h->code->n);
    struct cg_value result = leave(h, &s), record;
    struct cg_type type;
    uint32_t from = item->from;
    while (from < item->open &&
           (cg_is(&h->tokens->t[from], "static") || cg_is(&h->tokens->t[from], "inline")))
        from++;
    if (result.kind == CG_LIST && cg_read_type(h, h->tokens, from, item->open, &type) > from &&
        cg_struct_value(h, type.text, result.list, result.n, &record))
        return record;
    return result;
}

struct cg_value cg_call_lambda(struct cg_host *h, struct cg_value lambda,
                               const struct cg_value *args, uint32_t n)
{
    struct saved s = enter(h);
    uint32_t starts[CG_MAX_ARGS], ends[CG_MAX_ARGS], i = lambda.code->partner[lambda.i] + 1;
    h->code = lambda.code;
    h->frame = lambda.frame;
    if (cg_is(&h->code->t[i], "(")) {
        uint32_t close = h->code->partner[i];
        uint32_t k = cg_split_list(h->code, i + 1, close, starts, ends, CG_MAX_ARGS);
        for (uint32_t p = 0; p < k; p++) {
            const struct cg_token *name = &h->code->t[ends[p] - 1];
            struct cg_type type;
            cg_read_type(h, h->code, starts[p], ends[p] - 1, &type);
            if (name->kind == CG_NAME && p < n)
                cg_declare(h, cg_token_text(h->pool, name), args[p], type);
        }
        i = close + 1;
    }
    while (!cg_is(&h->code->t[i], "{"))
        i++;
    h->end = h->code->partner[i];
    h->i = i + 1;
    h->nesting = 0;
    cg_walk(h, h->end);
    return leave(h, &s);
}

/* AT_DISPATCH_FLOATING_TYPES(type, "name", [&] { ... }): scalar_t is the type of the task. */
static struct cg_value dispatch(struct cg_host *h, const struct cg_value *args, uint32_t n)
{
    struct cg_type type = {.cls = CG_TYPE_REAL, .dtype = RUNG_F32, .bytes = 4, .text = "float"};
    const struct cg_value *lambda = NULL;
    bool found = false;
    for (uint32_t k = 0; k < n; k++) {
        if (args[k].kind == CG_A_TYPE && args[k].type.dtype)
            type = args[k].type; /* the tensor's type stands behind the extra ones */
        found |= args[k].kind == CG_A_TYPE;
        if (args[k].kind == CG_LAMBDA)
            lambda = &args[k];
    }
    if (!found && h->task->n_tensors) {
        type.dtype = h->task->tensors[0].dtype;
        type.bytes = cg_dtype_bytes(type.dtype);
        type.text = cg_c_type(type.dtype);
    }
    if (!lambda)
        return cg_unknown(h, "a dispatch without a lambda");
    size_t n_vars = h->n_vars;
    cg_declare(h, "scalar_t", (struct cg_value){.kind = CG_A_TYPE, .type = type},
               (struct cg_type){.text = ""});
    struct cg_value v = cg_call_lambda(h, *lambda, NULL, 0);
    h->n_vars = n_vars;
    return v;
}

static bool is_check(const char *name)
{
    static const char *const starts[] = {"TORCH_", "AT_ASSERT", "C10_",    "assert", "AT_CUDA",
                                         "CHECK",  "printf",    "fprintf", "std::",  "GPU_"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

static struct cg_value call_name(struct cg_host *h, const char *name, const struct cg_value *args,
                                 uint32_t n)
{
    struct cg_value out;
    const char *bare = strncmp(name, "torch::", 7) ? name : name + 7;
    if (!strncmp(bare, "AT_DISPATCH", 11))
        return dispatch(h, args, n);
    if (!strcmp(bare, "exit") || !strcmp(bare, "abort")) {
        h->flow = CG_RETURN;
        h->result = (struct cg_value){.kind = CG_NOTHING};
        return h->result;
    }
    if (!strcmp(bare, "make_tuple") || !strcmp(bare, "tuple") || !strcmp(bare, "tie")) {
        struct cg_value *list = cg_take(h->pool, (n + 1) * sizeof(*list));
        memcpy(list, args, n * sizeof(*list));
        return (struct cg_value){.kind = CG_LIST, .list = list, .n = n};
    }
    if (!strcmp(bare, "move") && n == 1)
        return args[0];
    if (call_math(h, bare, args, n, &out) || cg_call_cuda(h, bare, args, n, &out) ||
        cg_call_torch(h, name, args, n, &out))
        return out;
    for (uint32_t k = 0; k < n && !is_check(bare); k++)
        if ((args[k].kind == CG_POINTER || args[k].kind == CG_TENSOR) && args[k].buffer &&
            !cg_real_buffer(args[k].buffer)->host)
            cg_problem(h, "`%.80s()` works on device memory, and plans only launch kernels", name);
    if (!is_check(bare))
        for (uint32_t k = 0; k < n; k++)
            if (args[k].kind == CG_ADDRESS)
                cg_assign(h, args[k].text, cg_unknown(h, "what `%.80s()` writes", name));
    return cg_unknown(h, "`%.80s()`", name);
}

struct cg_value cg_call(struct cg_host *h, struct cg_value callee, const struct cg_value *args,
                        uint32_t n)
{
    if (callee.kind == CG_LAMBDA)
        return cg_call_lambda(h, callee, args, n);
    if (callee.kind != CG_CALLEE)
        return cg_unknown(h, "a call");
    if (callee.item)
        return cg_call_item(h, callee.item, callee.text, args, n);
    return call_name(h, callee.text, args, n);
}
