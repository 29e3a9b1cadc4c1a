/* Operators and casts on values of host code: see host.h. */
#include "host.h"
#include <math.h>
#include <string.h>

static bool is_power(int64_t k, int *bits)
{
    *bits = 0;
    while (k > 1 && k % 2 == 0) {
        k /= 2;
        ++*bits;
    }
    return k == 1;
}

/* a << k, a >> k, a & (2^k - 1), a & ~(2^k - 1); and all of them on constants. */
static const struct cg_sym *bits(struct cg_host *h, char op, const struct cg_sym *a,
                                 const struct cg_sym *b)
{
    int64_t x, k;
    int n;
    struct cg_pool *p = h->pool;
    if (!cg_sym_constant(b, &k))
        return cg_sym_constant(a, &k) && (op == '&' || op == '|') ? bits(h, op, b, a) : NULL;
    if (op == '<' || op == '>') {
        if (k < 0 || k > 62 || (op == '>' && a->lo < 0))
            return NULL;
        return cg_sym(p, op == '<' ? SYM_MUL : SYM_DIV, a, cg_sym_int(p, (int64_t)1 << k));
    }
    if (cg_sym_constant(a, &x))
        return cg_sym_int(p, op == '&' ? x & k : op == '|' ? x | k : x ^ k);
    if (op != '&' || a->lo < 0)
        return NULL;
    if (k >= 0 && k < INT64_MAX && is_power(k + 1, &n))
        return cg_sym(p, SYM_MOD, a, cg_sym_int(p, k + 1));
    if (k < 0 && k > INT64_MIN && is_power(-k, &n)) {
        const struct cg_sym *step = cg_sym_int(p, -k);
        return cg_sym(p, SYM_MUL, cg_sym(p, SYM_DIV, a, step), step);
    }
    return NULL;
}

static bool operator_of(const struct cg_token *t, enum cg_op *op)
{
    static const struct {
        const char *sign;
        enum cg_op op;
    } table[] = {{"+", SYM_ADD},  {"-", SYM_SUB},   {"*", SYM_MUL}, {"/", SYM_DIV},
                 {"//", SYM_DIV}, {"%", SYM_MOD},   {"==", SYM_EQ}, {"!=", SYM_NE},
                 {"<", SYM_LT},   {"<=", SYM_LE},   {">", SYM_GT},  {">=", SYM_GE},
                 {"&&", SYM_AND}, {"and", SYM_AND}, {"||", SYM_OR}, {"or", SYM_OR}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (t->n == strlen(table[i].sign) && !memcmp(t->s, table[i].sign, t->n)) {
            *op = table[i].op;
            return true;
        }
    return false;
}

/* Alignment in bytes that the pointer surely has. */
static int64_t alignment(const struct cg_host *h, const struct cg_value *v)
{
    int64_t a = 256;
    const struct cg_buffer *b = cg_real_buffer(v->buffer);
    if (b && b->tensor >= 0) {
        uint64_t stated = h->task->tensors[b->tensor].alignment;
        a = stated && stated <= 4096 ? (int64_t)stated : 256;
    }
    while (a > 1 && (!v->sym || (v->sym->op == SYM_INT ? v->sym->i : v->sym->divisor) % a))
        a /= 2;
    return a;
}

/* Tests of a pointer's alignment, and steps of it. */
static struct cg_value pointer_binary(struct cg_host *h, const struct cg_token *op,
                                      struct cg_value a, struct cg_value b)
{
    int64_t k;
    bool steps = op->n == 1 && (*op->s == '+' || *op->s == '-');
    if (op->n == 1 && (*op->s == '|' || *op->s == '&') && b.kind == CG_POINTER)
        return alignment(h, &a) <= alignment(h, &b) ? a : b;
    if (cg_is(op, "==") || cg_is(op, "!=")) {
        bool same = b.kind == CG_POINTER && cg_real_buffer(a.buffer) == cg_real_buffer(b.buffer);
        bool apart = same && a.buffer && !cg_sym_same(a.sym, b.sym);
        if (b.kind == CG_POINTER && !apart)
            return cg_int(h, same == (*op->s == '='));
    }
    if (b.kind == CG_NUM && cg_sym_constant(b.sym, &k) && op->n == 1 && k > 0) {
        int64_t step = *op->s == '%' ? k : *op->s == '&' ? k + 1 : 0;
        if (step > 0 && alignment(h, &a) % step == 0)
            return cg_int(h, 0);
    }
    if (steps && b.kind == CG_NUM && a.type.bytes > 0 && a.buffer) {
        const struct cg_sym *bytes =
            cg_sym(h->pool, SYM_MUL, b.sym, cg_sym_int(h->pool, a.type.bytes));
        a.sym = cg_sym(h->pool, *op->s == '+' ? SYM_ADD : SYM_SUB, a.sym, bytes);
        return a.sym ? a : cg_unknown(h, "a pointer's offset");
    }
    return cg_unknown(h, "`%.*s` on a pointer", (int)op->n, op->s);
}

/* A condition as a number. */
static struct cg_value truth(struct cg_host *h, struct cg_value v)
{
    if (v.kind == CG_POINTER)
        return cg_int(h, v.buffer != NULL);
    return v;
}

/* Logic that one known side decides; true when it did. */
static bool short_cut(struct cg_host *h, enum cg_op op, struct cg_value a, struct cg_value b,
                      struct cg_value *out)
{
    const struct cg_value *known = a.kind == CG_NUM ? &a : &b, *other = a.kind == CG_NUM ? &b : &a;
    int64_t k;
    if (known->kind != CG_NUM || other->kind == CG_NUM || !cg_sym_constant(known->sym, &k))
        return false;
    bool decides = (op == SYM_AND && !k) || (op == SYM_OR && k);
    *out = decides ? cg_int(h, k != 0) : *other;
    return true;
}

struct cg_value cg_binary(struct cg_host *h, const struct cg_token *op, struct cg_value a,
                          struct cg_value b)
{
    enum cg_op sym = SYM_ADD;
    struct cg_value out;
    bool known = operator_of(op, &sym);
    bool logic = known && (sym == SYM_AND || sym == SYM_OR);
    if (logic) {
        a = truth(h, a);
        b = truth(h, b);
        if (short_cut(h, sym, a, b, &out))
            return out;
    }
    if (a.kind == CG_POINTER)
        return pointer_binary(h, op, a, b);
    if (b.kind == CG_POINTER && op->n == 1 && *op->s == '+')
        return pointer_binary(h, op, b, a);
    if (a.kind == CG_UNKNOWN || b.kind == CG_UNKNOWN)
        return a.kind == CG_UNKNOWN ? a : b;
    if ((a.kind == CG_A_TYPE || a.kind == CG_OPAQUE) && a.kind == b.kind && known &&
        (sym == SYM_EQ || sym == SYM_NE)) {
        bool same = a.kind == CG_A_TYPE ? a.type.dtype == b.type.dtype : !strcmp(a.text, b.text);
        return cg_int(h, same == (sym == SYM_EQ));
    }
    if (a.kind != CG_NUM || b.kind != CG_NUM)
        return cg_unknown(h, "`%.*s` on something that is no number", (int)op->n, op->s);
    if (known)
        return cg_number(cg_sym(h->pool, sym, a.sym, b.sym));
    return cg_number(a.sym->real || b.sym->real ? NULL : bits(h, *op->s, a.sym, b.sym));
}

/* Truncation: exact for constants and for quotients of integers that are not negative. */
static const struct cg_sym *to_int(struct cg_host *h, const struct cg_sym *s)
{
    if (!s->real)
        return s;
    if (s->op == SYM_REAL)
        return fabs(s->f) < 9e15 ? cg_sym_int(h->pool, (int64_t)s->f) : NULL;
    return NULL;
}

struct cg_value cg_cast(struct cg_host *h, struct cg_type type, struct cg_value v)
{
    if (v.kind == CG_LIST && v.n == 1 && (type.cls == CG_TYPE_INT || type.cls == CG_TYPE_REAL))
        v = v.list[0];
    switch (type.cls) {
    case CG_TYPE_INT:
        if (v.kind == CG_NUM && v.sym->real) {
            const struct cg_sym *s = to_int(h, v.sym);
            return s ? cg_number(s) : cg_unknown(h, "a float that becomes an integer");
        }
        return v.kind == CG_LIST && !v.n ? cg_int(h, 0) : v;
    case CG_TYPE_REAL:
        return v.kind == CG_NUM ? cg_number(cg_sym_to_real(h->pool, v.sym)) : v;
    case CG_TYPE_POINTER:
        if (v.kind == CG_POINTER && (type.dtype || type.bytes))
            v.type = type;
        if (v.kind == CG_NUM && v.sym->op == SYM_INT && v.sym->i == 0)
            return cg_pointer(h, NULL, type);
        return v;
    case CG_TYPE_DIM3:
        return v.kind == CG_NUM || v.kind == CG_LIST ? cg_dim3(h, &v, 1) : v;
    default:
        return v;
    }
}

bool cg_fixed(const struct cg_value *v, int64_t *out)
{
    if (v->kind != CG_NUM || v->sym->real)
        return false;
    if (v->sym->op != SYM_INT && v->sym->lo != v->sym->hi)
        return false;
    *out = v->sym->lo;
    return true;
}
