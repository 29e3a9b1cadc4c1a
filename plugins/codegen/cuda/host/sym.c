/* Symbolic numbers: see sym.h. Printing is in sym_text.c. */
#include "sym.h"
#include <math.h>
#include <string.h>

enum { MAX_SIZE = 120 };

static struct cg_sym *node(struct cg_pool *pool, enum cg_op op, const struct cg_sym *a,
                           const struct cg_sym *b)
{
    struct cg_sym *s = cg_take(pool, sizeof(*s));
    *s = (struct cg_sym){.op = op, .a = a, .b = b, .lo = INT64_MIN, .hi = INT64_MAX, .divisor = 1};
    s->real = (a && a->real) || (b && b->real);
    s->size = 1 + (a ? a->size : 0) + (b ? b->size : 0);
    return s;
}

const struct cg_sym *cg_sym_int(struct cg_pool *pool, int64_t value)
{
    struct cg_sym *s = node(pool, SYM_INT, NULL, NULL);
    s->i = s->lo = s->hi = value;
    s->divisor = value > 0 ? value : value < 0 && value > INT64_MIN ? -value : 0;
    return s;
}

const struct cg_sym *cg_sym_real(struct cg_pool *pool, double value)
{
    struct cg_sym *s = node(pool, SYM_REAL, NULL, NULL);
    s->f = value;
    s->real = true;
    return isfinite(value) ? s : NULL;
}

const struct cg_sym *cg_sym_name(struct cg_pool *pool, const char *name, int64_t lo, int64_t hi,
                                 int64_t divisor, bool real)
{
    struct cg_sym *s = node(pool, SYM_NAME, NULL, NULL);
    s->name = name;
    s->lo = lo;
    s->hi = hi;
    s->divisor = divisor;
    s->real = real;
    return s;
}

bool cg_sym_constant(const struct cg_sym *a, int64_t *value)
{
    if (!a || a->op != SYM_INT)
        return false;
    *value = a->i;
    return true;
}

bool cg_sym_same(const struct cg_sym *a, const struct cg_sym *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->op != b->op || a->size != b->size)
        return false;
    switch (a->op) {
    case SYM_INT:
        return a->i == b->i;
    case SYM_REAL:
        return a->f == b->f;
    case SYM_NAME:
        return !strcmp(a->name, b->name);
    default:
        return cg_sym_same(a->a, b->a) && cg_sym_same(a->b, b->b);
    }
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int64_t saturated(int64_t a, int64_t b, bool product, int64_t fallback)
{
    int64_t r;
    return (product ? __builtin_mul_overflow(a, b, &r) : __builtin_add_overflow(a, b, &r))
               ? fallback
               : r;
}

static void range_of(struct cg_sym *s)
{
    const struct cg_sym *a = s->a, *b = s->b;
    bool positive = a->lo >= 0 && b && b->lo >= 0;
    switch (s->op) {
    case SYM_ADD:
        s->lo = a->lo == INT64_MIN || b->lo == INT64_MIN
                    ? INT64_MIN
                    : saturated(a->lo, b->lo, false, INT64_MIN);
        s->hi = a->hi == INT64_MAX || b->hi == INT64_MAX
                    ? INT64_MAX
                    : saturated(a->hi, b->hi, false, INT64_MAX);
        s->divisor = gcd(a->divisor, b->divisor);
        break;
    case SYM_SUB:
        s->lo = a->lo == INT64_MIN || b->hi == INT64_MAX || b->hi == INT64_MIN
                    ? INT64_MIN
                    : saturated(a->lo, -b->hi, false, INT64_MIN);
        s->divisor = gcd(a->divisor, b->divisor);
        break;
    case SYM_MUL:
        if (positive) {
            s->lo = saturated(a->lo, b->lo, true, INT64_MAX);
            s->hi = saturated(a->hi, b->hi, true, INT64_MAX);
        }
        s->divisor = saturated(a->divisor, b->divisor, true, 1);
        break;
    case SYM_DIV:
    case SYM_CEIL_DIV:
        if (positive && b->hi > 0) {
            int64_t up = s->op == SYM_CEIL_DIV;
            s->lo = a->lo / b->hi + (up && a->lo % b->hi != 0);
            s->hi = b->lo > 0 ? a->hi / b->lo + (up && a->hi % b->lo != 0) : a->hi;
        }
        break;
    case SYM_MOD:
        if (positive) {
            s->lo = 0;
            s->hi = b->hi == INT64_MAX ? a->hi : b->hi - 1;
        }
        break;
    case SYM_MIN:
        s->lo = a->lo < b->lo ? a->lo : b->lo;
        s->hi = a->hi < b->hi ? a->hi : b->hi;
        s->divisor = gcd(a->divisor, b->divisor);
        break;
    case SYM_MAX:
        s->lo = a->lo > b->lo ? a->lo : b->lo;
        s->hi = a->hi > b->hi ? a->hi : b->hi;
        s->divisor = gcd(a->divisor, b->divisor);
        break;
    default:
        s->lo = 0;
        s->hi = 1;
    }
    s->divisor = s->divisor ? s->divisor : 1;
}

/* ---- Folding -------------------------------------------------------------------------------- */

static const struct cg_sym *fold_int(struct cg_pool *p, enum cg_op op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool bad = false;
    switch (op) {
    case SYM_ADD:
        bad = __builtin_add_overflow(a, b, &r);
        break;
    case SYM_SUB:
        bad = __builtin_sub_overflow(a, b, &r);
        break;
    case SYM_MUL:
        bad = __builtin_mul_overflow(a, b, &r);
        break;
    case SYM_DIV:
    case SYM_MOD:
    case SYM_CEIL_DIV:
        bad = b == 0 || (a == INT64_MIN && b == -1) || (op == SYM_CEIL_DIV && (a < 0 || b < 0));
        if (!bad)
            r = op == SYM_MOD ? a % b : a / b + (op == SYM_CEIL_DIV && a % b != 0);
        break;
    case SYM_MIN:
        r = a < b ? a : b;
        break;
    case SYM_MAX:
        r = a > b ? a : b;
        break;
    case SYM_EQ:
        r = a == b;
        break;
    case SYM_NE:
        r = a != b;
        break;
    case SYM_LT:
        r = a < b;
        break;
    case SYM_LE:
        r = a <= b;
        break;
    case SYM_GT:
        r = a > b;
        break;
    case SYM_GE:
        r = a >= b;
        break;
    case SYM_AND:
        r = a && b;
        break;
    case SYM_OR:
        r = a || b;
        break;
    default:
        bad = true;
    }
    return bad ? NULL : cg_sym_int(p, r);
}

static const struct cg_sym *fold_real(struct cg_pool *p, enum cg_op op, double a, double b)
{
    switch (op) {
    case SYM_ADD:
        return cg_sym_real(p, a + b);
    case SYM_SUB:
        return cg_sym_real(p, a - b);
    case SYM_MUL:
        return cg_sym_real(p, a * b);
    case SYM_DIV:
        return b == 0 ? NULL : cg_sym_real(p, a / b);
    case SYM_MIN:
        return cg_sym_real(p, a < b ? a : b);
    case SYM_MAX:
        return cg_sym_real(p, a > b ? a : b);
    case SYM_EQ:
        return cg_sym_int(p, a == b);
    case SYM_NE:
        return cg_sym_int(p, a != b);
    case SYM_LT:
        return cg_sym_int(p, a < b);
    case SYM_LE:
        return cg_sym_int(p, a <= b);
    case SYM_GT:
        return cg_sym_int(p, a > b);
    case SYM_GE:
        return cg_sym_int(p, a >= b);
    default:
        return NULL;
    }
}

static bool is_constant(const struct cg_sym *s)
{
    return s->op == SYM_INT || s->op == SYM_REAL;
}

static double as_real(const struct cg_sym *s)
{
    return s->op == SYM_INT ? (double)s->i : s->f;
}

/* Sums keep their constant at the end: (x + 3) + 4, x - 2. */
static const struct cg_sym *simplify_sum(struct cg_pool *p, enum cg_op op, const struct cg_sym *a,
                                         const struct cg_sym *b)
{
    int64_t c, d;
    if (op == SYM_ADD && cg_sym_constant(a, &c))
        return cg_sym(p, SYM_ADD, b, a);
    if (cg_sym_constant(b, &d)) {
        if (d == 0)
            return a;
        if (op == SYM_SUB)
            return d == INT64_MIN ? NULL : cg_sym(p, SYM_ADD, a, cg_sym_int(p, -d));
        if (a->op == SYM_ADD && cg_sym_constant(a->b, &c))
            return cg_sym(p, SYM_ADD, a->a, fold_int(p, SYM_ADD, c, d));
        return NULL;
    }
    if (a->op == SYM_ADD && cg_sym_constant(a->b, &c))
        return cg_sym(p, SYM_ADD, cg_sym(p, op, a->a, b), a->b);
    if (b->op == SYM_ADD && cg_sym_constant(b->b, &c) && c != INT64_MIN)
        return cg_sym(p, SYM_ADD, cg_sym(p, op, a, b->a), cg_sym_int(p, op == SYM_SUB ? -c : c));
    if (op == SYM_SUB && cg_sym_same(a, b))
        return cg_sym_int(p, 0);
    if (op == SYM_SUB && a->op == SYM_ADD && cg_sym_same(a->b, b))
        return a->a;
    if (op == SYM_SUB && a->op == SYM_ADD && cg_sym_same(a->a, b))
        return a->b;
    return NULL;
}

/* Products keep their constant at the end. */
static const struct cg_sym *simplify_product(struct cg_pool *p, const struct cg_sym *a,
                                             const struct cg_sym *b)
{
    int64_t c, d;
    if (cg_sym_constant(a, &c))
        return cg_sym(p, SYM_MUL, b, a);
    if (cg_sym_constant(b, &d)) {
        if (d == 1)
            return a;
        if (d == 0)
            return b;
        if (a->op == SYM_MUL && cg_sym_constant(a->b, &c))
            return cg_sym(p, SYM_MUL, a->a, fold_int(p, SYM_MUL, c, d));
        return NULL;
    }
    if (a->op == SYM_MUL && cg_sym_constant(a->b, &c))
        return cg_sym(p, SYM_MUL, cg_sym(p, SYM_MUL, a->a, b), a->b);
    if (b->op == SYM_MUL && cg_sym_constant(b->b, &c))
        return cg_sym(p, SYM_MUL, cg_sym(p, SYM_MUL, a, b->a), b->b);
    return NULL;
}

/* (a + b - 1) / b, (a - 1) / b + 1 is left, a * 8 / 4, (a * b) / b. */
static const struct cg_sym *simplify_division(struct cg_pool *p, const struct cg_sym *a,
                                              const struct cg_sym *b)
{
    int64_t c, d;
    bool constant = cg_sym_constant(b, &d);
    if (constant && d == 1)
        return a;
    if (constant && d > 1 && a->op == SYM_ADD && cg_sym_constant(a->b, &c) && c == d - 1 &&
        a->a->lo >= 0)
        return cg_sym(p, SYM_CEIL_DIV, a->a, b);
    if (a->op == SYM_ADD && cg_sym_constant(a->b, &c) && c == -1 && a->a->op == SYM_ADD) {
        if (cg_sym_same(a->a->b, b) && a->a->a->lo >= 0)
            return cg_sym(p, SYM_CEIL_DIV, a->a->a, b);
        if (cg_sym_same(a->a->a, b) && a->a->b->lo >= 0)
            return cg_sym(p, SYM_CEIL_DIV, a->a->b, b);
    }
    if (a->op == SYM_MUL && constant && d > 0 && cg_sym_constant(a->b, &c) && c % d == 0)
        return cg_sym(p, SYM_MUL, a->a, cg_sym_int(p, c / d));
    if (a->op == SYM_MUL && constant && d > 0 && cg_sym_constant(a->b, &c) && c > 0 && d % c == 0)
        return cg_sym(p, SYM_DIV, a->a, cg_sym_int(p, d / c));
    if (a->op == SYM_MUL && b->lo > 0 && cg_sym_same(a->b, b))
        return a->a;
    if (a->op == SYM_MUL && b->lo > 0 && cg_sym_same(a->a, b))
        return a->b;
    if (b->lo > 0 && cg_sym_same(a, b))
        return cg_sym_int(p, 1);
    return NULL;
}

/* Constants stand on the right; min(x, 1024) > 1 is x > 1. */
static const struct cg_sym *simplify_compare(struct cg_pool *p, enum cg_op op,
                                             const struct cg_sym *a, const struct cg_sym *b)
{
    static const enum cg_op mirrored[] = {[SYM_EQ] = SYM_EQ, [SYM_NE] = SYM_NE, [SYM_LT] = SYM_GT,
                                          [SYM_LE] = SYM_GE, [SYM_GT] = SYM_LT, [SYM_GE] = SYM_LE};
    int64_t k, c;
    if (op < SYM_LT || op > SYM_GE)
        return NULL;
    if (a->op == SYM_INT && b->op != SYM_INT)
        return cg_sym(p, mirrored[op], b, a);
    if (!cg_sym_constant(b, &k) || (a->op != SYM_MIN && a->op != SYM_MAX))
        return NULL;
    bool right = cg_sym_constant(a->b, &c), left = !right && cg_sym_constant(a->a, &c);
    if (!right && !left)
        return NULL;
    const struct cg_sym *x = right ? a->a : a->b;
    bool open = a->op == SYM_MIN ? c > k : c < k; /* the constant does not decide */
    return open ? cg_sym(p, op, x, b) : NULL;
}

/* What ranges and divisors decide. */
static const struct cg_sym *simplify_order(struct cg_pool *p, enum cg_op op, const struct cg_sym *a,
                                           const struct cg_sym *b)
{
    bool below = a->hi<b->lo, above = a->lo> b->hi;
    bool not_above = a->hi <= b->lo, not_below = a->lo >= b->hi;
    bool same = cg_sym_same(a, b) || (not_above && not_below);
    switch (op) {
    case SYM_MIN:
        return not_above || same ? a : not_below ? b : NULL;
    case SYM_MAX:
        return not_below || same ? a : not_above ? b : NULL;
    case SYM_EQ:
    case SYM_NE:
        return below || above ? cg_sym_int(p, op == SYM_NE)
               : same         ? cg_sym_int(p, op == SYM_EQ)
                              : NULL;
    case SYM_LT:
        return below ? cg_sym_int(p, 1) : not_below || same ? cg_sym_int(p, 0) : NULL;
    case SYM_LE:
        return not_above || same ? cg_sym_int(p, 1) : above ? cg_sym_int(p, 0) : NULL;
    case SYM_GT:
        return above ? cg_sym_int(p, 1) : not_above || same ? cg_sym_int(p, 0) : NULL;
    case SYM_GE:
        return not_below || same ? cg_sym_int(p, 1) : below ? cg_sym_int(p, 0) : NULL;
    default:
        return NULL;
    }
}

static bool truth(const struct cg_sym *a, bool *value)
{
    if (a->real || (a->lo <= 0 && a->hi >= 0 && a->op != SYM_INT))
        return false;
    *value = a->lo > 0 || a->hi < 0;
    return true;
}

static const struct cg_sym *to_bool(struct cg_pool *p, const struct cg_sym *a)
{
    return a->op >= SYM_EQ ? a : cg_sym(p, SYM_NE, a, cg_sym_int(p, 0));
}

static const struct cg_sym *simplify_logic(struct cg_pool *p, enum cg_op op, const struct cg_sym *a,
                                           const struct cg_sym *b)
{
    bool known, is_and = op == SYM_AND;
    if (truth(a, &known))
        return known == is_and ? to_bool(p, b) : cg_sym_int(p, !is_and);
    if (truth(b, &known))
        return known == is_and ? to_bool(p, a) : cg_sym_int(p, !is_and);
    return cg_sym_same(a, b) ? a : NULL;
}

static const struct cg_sym *negated(struct cg_pool *p, const struct cg_sym *a)
{
    static const enum cg_op opposite[] = {[SYM_EQ] = SYM_NE, [SYM_NE] = SYM_EQ, [SYM_LT] = SYM_GE,
                                          [SYM_LE] = SYM_GT, [SYM_GT] = SYM_LE, [SYM_GE] = SYM_LT};
    bool known;
    if (truth(a, &known))
        return cg_sym_int(p, !known);
    if (a->op >= SYM_EQ && a->op <= SYM_GE)
        return cg_sym(p, opposite[a->op], a->a, a->b);
    if (a->op == SYM_NOT)
        return to_bool(p, a->a);
    if (a->op < SYM_EQ)
        return cg_sym(p, SYM_EQ, a, cg_sym_int(p, 0));
    struct cg_sym *s = node(p, SYM_NOT, a, NULL);
    s->lo = 0;
    s->hi = 1;
    s->real = false;
    return s;
}

static const struct cg_sym *simplify(struct cg_pool *p, enum cg_op op, const struct cg_sym *a,
                                     const struct cg_sym *b)
{
    int64_t c;
    switch (op) {
    case SYM_ADD:
    case SYM_SUB:
        return simplify_sum(p, op, a, b);
    case SYM_MUL:
        return simplify_product(p, a, b);
    case SYM_DIV:
        return simplify_division(p, a, b);
    case SYM_CEIL_DIV:
        if (cg_sym_constant(b, &c) && c == 1)
            return a;
        if (a->op == SYM_CEIL_DIV && a->b->op == SYM_INT && b->op == SYM_INT && a->b->i > 0 &&
            b->i > 0)
            return cg_sym(p, SYM_CEIL_DIV, a->a, fold_int(p, SYM_MUL, a->b->i, b->i));
        return b->op == SYM_INT && b->i > 0 && a->divisor % b->i == 0 ? cg_sym(p, SYM_DIV, a, b)
                                                                      : NULL;
    case SYM_MOD:
        return b->op == SYM_INT && b->i > 0 && a->divisor % b->i == 0 ? cg_sym_int(p, 0) : NULL;
    case SYM_AND:
    case SYM_OR:
        return simplify_logic(p, op, a, b);
    default:
        break;
    }
    const struct cg_sym *known = simplify_order(p, op, a, b);
    return known ? known : simplify_compare(p, op, a, b);
}

const struct cg_sym *cg_sym(struct cg_pool *p, enum cg_op op, const struct cg_sym *a,
                            const struct cg_sym *b)
{
    cg_step(p);
    if (!a || (!b && op != SYM_NOT) || a->size + (b ? b->size : 0) > MAX_SIZE)
        return NULL;
    if (op == SYM_NOT)
        return negated(p, a);
    if (is_constant(a) && is_constant(b))
        return a->op == SYM_INT && b->op == SYM_INT ? fold_int(p, op, a->i, b->i)
                                                    : fold_real(p, op, as_real(a), as_real(b));
    bool real = a->real || b->real;
    if (real && (op == SYM_MOD || op == SYM_CEIL_DIV))
        return NULL;
    if ((op == SYM_DIV || op == SYM_MOD) && b->op == SYM_INT && b->i == 0)
        return NULL;
    const struct cg_sym *simple = real ? NULL : simplify(p, op, a, b);
    if (simple)
        return simple;
    struct cg_sym *s = node(p, op, a, b);
    if (op >= SYM_EQ)
        s->real = false;
    if (!s->real)
        range_of(s);
    return s;
}

const struct cg_sym *cg_sym_to_real(struct cg_pool *p, const struct cg_sym *a)
{
    if (!a || a->real)
        return a;
    return a->op == SYM_INT ? cg_sym_real(p, (double)a->i)
                            : cg_sym(p, SYM_MUL, cg_sym_real(p, 1.0), a);
}
