/* Expressions of host code: operators. Operands are in operand.c. See host.h. */
#include "operand.h"
#include <string.h>

enum { MAX_NESTING = 200 };

static struct cg_value ternary(struct cg_host *h);

/* ---- Unary ---------------------------------------------------------------------------------- */

static struct cg_value logical_not(struct cg_host *h, struct cg_value v)
{
    if (v.kind == CG_NUM)
        return cg_number(cg_sym(h->pool, SYM_NOT, v.sym, NULL));
    if (v.kind == CG_POINTER)
        return cg_int(h, v.buffer == NULL);
    return v.kind == CG_UNKNOWN ? v : cg_unknown(h, "a condition");
}

static struct cg_operand address_of(struct cg_host *h)
{
    struct cg_operand o = cg_unary(h);
    if (!o.path) /* &x[k] is a pointer already */
        return cg_operand_of(o.value);
    struct cg_value v = cg_read_variable(h, o.path);
    if (v.kind == CG_CALLEE)
        return cg_operand_of(v);
    return cg_operand_of((struct cg_value){.kind = CG_ADDRESS, .text = o.path, .frame = h->frame});
}

static struct cg_operand prefix(struct cg_host *h, const struct cg_token *t)
{
    struct cg_value v;
    if (cg_is(t, "&"))
        return address_of(h);
    struct cg_operand o = cg_unary(h);
    if (cg_is(t, "*")) {
        v = cg_load(h, o);
        return v.kind == CG_ADDRESS ? (struct cg_operand){.path = v.text} : cg_operand_of(v);
    }
    v = cg_load(h, o);
    if (cg_is(t, "!") || cg_is(t, "not"))
        return cg_operand_of(logical_not(h, v));
    if (cg_is(t, "+"))
        return cg_operand_of(v);
    if (cg_is(t, "-"))
        return cg_operand_of(cg_binary(h, t, cg_int(h, 0), v));
    if (cg_is(t, "~")) {
        int64_t k;
        return cg_operand_of(v.kind == CG_NUM && cg_sym_constant(v.sym, &k) ? cg_int(h, ~k)
                                                                            : cg_unknown(h, "`~`"));
    }
    struct cg_token op = {.s = t->s, .n = 1, .kind = CG_OP}; /* ++ -- */
    v = cg_binary(h, &op, v, cg_int(h, 1));
    if (o.path)
        cg_assign(h, o.path, v);
    return cg_operand_of(v);
}

struct cg_operand cg_unary(struct cg_host *h)
{
    static const char *const signs[] = {"!", "-", "+", "~", "&", "*", "++", "--", "not", NULL};
    const struct cg_token *t = cg_peek(h);
    struct cg_operand o;
    if (++h->nesting > MAX_NESTING)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    const char *const *s = signs;
    while (*s && !cg_is(t, *s))
        s++;
    if (*s && h->i < h->end) {
        h->i++;
        o = prefix(h, t);
    } else {
        o = cg_postfix(h);
    }
    h->nesting--;
    return o;
}

/* ---- Binary --------------------------------------------------------------------------------- */

/* Precedence of the operator at h->i, 0 for none; *width is its number of tokens. */
static int operator_level(struct cg_host *h, uint32_t *width, struct cg_token *op)
{
    static const struct {
        const char *sign;
        int level;
    } table[] = {{"||", 1}, {"or", 1}, {"&&", 2}, {"and", 2}, {"|", 3},  {"^", 4},  {"&", 5},
                 {"==", 6}, {"!=", 6}, {"<", 7},  {"<=", 7},  {">=", 7}, {">", 7},  {"<<", 8},
                 {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10},  {"%", 10}, {"//", 10}};
    const struct cg_token *t = cg_peek(h);
    *width = 1;
    *op = *t;
    if (cg_is(t, ">") && h->i + 1 < h->end && cg_is(t + 1, ">") && t[1].glued) {
        bool third = h->i + 2 < h->end && cg_is(t + 2, ">") && t[2].glued;
        *width = 2;
        op->s = ">>";
        op->n = 2;
        return third ? 0 : 8;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (cg_is(t, table[i].sign) && h->i < h->end)
            return table[i].level;
    return 0;
}

static struct cg_value binary(struct cg_host *h, struct cg_value left, int min_level)
{
    uint32_t width;
    struct cg_token op;
    int level = operator_level(h, &width, &op);
    while (level >= min_level && level > 0) {
        h->i += width;
        struct cg_value right = cg_load(h, cg_unary(h));
        struct cg_token next;
        while (operator_level(h, &width, &next) > level)
            right = binary(h, right, level + 1);
        left = cg_binary(h, &op, left, right);
        level = operator_level(h, &width, &op);
    }
    return left;
}

/* Past an expression that does not count, up to one of the ends. */
static void skip_branch(struct cg_host *h, const char *ends)
{
    int questions = 0;
    while (h->i < h->end) {
        const struct cg_token *t = cg_peek(h);
        bool one = t->kind == CG_OP && t->n == 1;
        if (one && *t->s == '?')
            questions++;
        else if (one && *t->s == ':' && questions > 0)
            questions--;
        else if (one && strchr(ends, *t->s))
            return;
        h->i = h->code->partner[h->i] > h->i ? h->code->partner[h->i] + 1 : h->i + 1;
    }
}

const struct cg_sym *cg_min_max(struct cg_host *h, const struct cg_sym *c, const struct cg_sym *a,
                                const struct cg_sym *b)
{
    bool less = c->op == SYM_LT || c->op == SYM_LE, more = c->op == SYM_GT || c->op == SYM_GE;
    if (!less && !more)
        return NULL;
    if (cg_sym_same(c->a, a) && cg_sym_same(c->b, b))
        return cg_sym(h->pool, less ? SYM_MIN : SYM_MAX, a, b);
    if (cg_sym_same(c->a, b) && cg_sym_same(c->b, a))
        return cg_sym(h->pool, less ? SYM_MAX : SYM_MIN, b, a);
    return NULL;
}

static struct cg_value choose(struct cg_host *h, struct cg_value condition)
{
    int64_t constant;
    uint32_t start = h->i;
    if (condition.kind == CG_POINTER)
        condition = cg_int(h, condition.buffer != NULL);
    if (condition.kind == CG_NUM && !cg_sym_constant(condition.sym, &constant)) {
        uint32_t questions = 0;
        skip_branch(h, ":");
        uint32_t colon = h->i;
        skip_branch(h, ",;)");
        for (uint32_t k = start; k < h->i; k++)
            questions += cg_is(&h->code->t[k], "?") || cg_is(&h->code->t[k], "=");
        uint32_t end = h->i;
        if (!questions && colon < h->end) {
            struct cg_value a = cg_eval_range(h, start, colon);
            struct cg_value b = cg_eval_range(h, colon + 1, end);
            h->i = end;
            const struct cg_sym *m = a.kind == CG_NUM && b.kind == CG_NUM
                                         ? cg_min_max(h, condition.sym, a.sym, b.sym)
                                         : NULL;
            if (m)
                return cg_number(m);
        }
        h->i = start;
    }
    if (condition.kind != CG_NUM) {
        skip_branch(h, ":");
        h->i += h->i < h->end;
        skip_branch(h, ",;)");
        return condition.kind == CG_UNKNOWN ? condition : cg_unknown(h, "a choice");
    }
    bool yes = cg_decide(h, condition.sym);
    if (!yes) {
        skip_branch(h, ":");
        cg_take_token(h, ":");
        return ternary(h);
    }
    struct cg_value v = ternary(h);
    if (cg_is(cg_peek(h), ":")) {
        h->i++;
        skip_branch(h, ",;)");
    }
    return v;
}

static struct cg_value ternary(struct cg_host *h)
{
    static const char *const compound[] = {
        "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", NULL};
    struct cg_operand o = cg_unary(h);
    const struct cg_token *t = cg_peek(h);
    struct cg_value v;
    if (cg_is(t, "=") && o.path) {
        h->i++;
        v = ternary(h);
        cg_assign(h, o.path, v);
        return v;
    }
    for (const char *const *c = compound; *c && o.path; c++)
        if (cg_is(t, *c)) {
            struct cg_token op = {.s = t->s, .n = t->n - 1, .kind = CG_OP};
            h->i++;
            struct cg_value right = ternary(h);
            v = cg_binary(h, &op, cg_load(h, o), right);
            cg_assign(h, o.path, v);
            return v;
        }
    if (cg_is(t, ">") && h->i + 1 < h->end && cg_is(t + 1, ">=") && t[1].glued && o.path) {
        struct cg_token op = {.s = ">>", .n = 2, .kind = CG_OP};
        h->i += 2;
        v = cg_binary(h, &op, cg_load(h, o), ternary(h));
        cg_assign(h, o.path, v);
        return v;
    }
    v = binary(h, cg_load(h, o), 1);
    if (h->i < h->end && cg_take_token(h, "?"))
        return choose(h, v);
    return v;
}

struct cg_value cg_eval(struct cg_host *h)
{
    if (++h->nesting > MAX_NESTING)
        longjmp(*h->pool->out, CG_TOO_COMPLEX);
    struct cg_value v = ternary(h);
    h->nesting--;
    return v;
}

struct cg_value cg_eval_range(struct cg_host *h, uint32_t from, uint32_t to)
{
    uint32_t i = h->i, end = h->end;
    h->i = from;
    h->end = to;
    struct cg_value v = from < to ? cg_eval(h) : cg_unknown(h, "nothing");
    if (from < to && h->i < to && v.kind != CG_NOTHING)
        v = cg_unknown(h, "`%.100s`", cg_tokens_text(h->pool, &h->code->t[from], &h->code->t[to]));
    h->i = i;
    h->end = end;
    return v;
}
