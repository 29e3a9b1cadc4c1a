/*
 * Expressions: checking names and types, and evaluating. Integer arithmetic never wraps: whatever
 * does not fit 64 bits is a fault. Pure; results in the caller's arena.
 */
#include "task/expr_ast.h"

#include <math.h>

struct context {
    const struct rung_scope *scope;
    struct rung_arena *arena;
    const char **problem;
};

static bool fault(const struct context *c, const struct rung_expr *e, const char *message)
{
    *c->problem = rung_arena_printf(c->arena, "column %d: %s", e->column, message);
    return false;
}

static bool unknown_name(const struct context *c, const struct rung_expr *e)
{
    const char *const *names = NULL;
    size_t n = 0;
    if (c->scope->names)
        c->scope->names(c->scope->ctx, c->arena, &names, &n);
    const char *near = rung_nearest(e->name, names, n);
    *c->problem =
        near ? rung_arena_printf(c->arena, "column %d: unknown name '%s'; did you mean '%s'?",
                                 e->column, e->name, near)
             : rung_arena_printf(c->arena, "column %d: unknown name '%s'", e->column, e->name);
    return false;
}

static bool lookup(const struct context *c, const struct rung_expr *e, struct rung_value *out)
{
    return (c->scope->lookup && c->scope->lookup(c->scope->ctx, e->name, out)) ||
           unknown_name(c, e);
}

static double as_float(struct rung_value v)
{
    return v.is_float ? v.f : (double)v.i;
}

static bool is_true(struct rung_value v)
{
    return v.is_float ? v.f != 0 : v.i != 0;
}

static bool yields_truth(enum rung_expr_op op)
{
    return op == EXPR_NOT || (op >= EXPR_EQUAL && op <= EXPR_OR);
}

static bool integers_only(enum rung_expr_op op)
{
    return op == EXPR_REMAINDER || op == EXPR_CEIL_DIV;
}

static bool check(const struct context *c, const struct rung_expr *e, bool *is_float)
{
    struct rung_value v = {0};
    if (e->op == EXPR_NUMBER || e->op == EXPR_NAME) {
        if (e->op == EXPR_NAME && !lookup(c, e, &v))
            return false;
        *is_float = e->op == EXPR_NUMBER ? e->value.is_float : v.is_float;
        return true;
    }
    bool a, b = false;
    if (!check(c, e->a, &a) || (e->b && !check(c, e->b, &b)))
        return false;
    if (integers_only(e->op) && (a || b))
        return fault(c, e, "'%' and ceil_div take integers only");
    *is_float = !yields_truth(e->op) && (a || b);
    return true;
}

bool rung_expr_check(const struct rung_expr *expr, const struct rung_scope *scope,
                     struct rung_arena *arena, bool *is_float, const char **problem)
{
    struct context c = {scope, arena, problem};
    *problem = NULL;
    return check(&c, expr, is_float);
}

static bool compare(enum rung_expr_op op, struct rung_value a, struct rung_value b)
{
    int order;
    if (a.is_float || b.is_float)
        order = (as_float(a) > as_float(b)) - (as_float(a) < as_float(b));
    else
        order = (a.i > b.i) - (a.i < b.i);
    switch (op) {
    case EXPR_EQUAL:
        return order == 0;
    case EXPR_UNEQUAL:
        return order != 0;
    case EXPR_LESS:
        return order < 0;
    case EXPR_LESS_EQUAL:
        return order <= 0;
    case EXPR_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool divide(const struct context *c, const struct rung_expr *e, int64_t a, int64_t b,
                   int64_t *out)
{
    if (b == 0)
        return fault(c, e, "division by zero");
    if (e->op == EXPR_DIVIDE) {
        if (a == INT64_MIN && b == -1)
            return fault(c, e, "the integer result does not fit 64 bits");
        *out = a / b;
        return true;
    }
    if (a < 0 || b < 0)
        return fault(c, e, "'%' and ceil_div take no negative numbers");
    *out = e->op == EXPR_REMAINDER ? a % b : a / b + (a % b != 0);
    return true;
}

static bool integer_op(const struct context *c, const struct rung_expr *e, int64_t a, int64_t b,
                       int64_t *out)
{
    bool overflow = false;
    switch (e->op) {
    case EXPR_NEGATE:
        overflow = __builtin_sub_overflow((int64_t)0, a, out);
        break;
    case EXPR_ADD:
        overflow = __builtin_add_overflow(a, b, out);
        break;
    case EXPR_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, out);
        break;
    case EXPR_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, out);
        break;
    case EXPR_MIN:
        *out = a < b ? a : b;
        break;
    case EXPR_MAX:
        *out = a > b ? a : b;
        break;
    default:
        return divide(c, e, a, b, out);
    }
    return !overflow || fault(c, e, "the integer result does not fit 64 bits");
}

static bool float_op(const struct context *c, const struct rung_expr *e, double a, double b,
                     double *out)
{
    switch (e->op) {
    case EXPR_NEGATE:
        *out = -a;
        break;
    case EXPR_ADD:
        *out = a + b;
        break;
    case EXPR_SUBTRACT:
        *out = a - b;
        break;
    case EXPR_MULTIPLY:
        *out = a * b;
        break;
    case EXPR_DIVIDE:
        *out = b != 0 ? a / b : NAN;
        break;
    case EXPR_MIN:
        *out = a < b ? a : b;
        break;
    case EXPR_MAX:
        *out = a > b ? a : b;
        break;
    default:
        return fault(c, e, "'%' and ceil_div take integers only");
    }
    return isfinite(*out) ||
           fault(c, e,
                 b == 0 && e->op == EXPR_DIVIDE ? "division by zero" : "the result is not finite");
}

static bool eval(const struct context *c, const struct rung_expr *e, struct rung_value *out);

/* and / or look at the right side only when the left one leaves it open, so that one can guard the
 * other. */
static bool eval_logic(const struct context *c, const struct rung_expr *e, struct rung_value *out)
{
    struct rung_value v;
    if (!eval(c, e->a, &v))
        return false;
    bool truth = is_true(v);
    if (e->op == EXPR_NOT) {
        truth = !truth;
    } else if (truth == (e->op == EXPR_AND)) {
        if (!eval(c, e->b, &v))
            return false;
        truth = is_true(v);
    }
    *out = (struct rung_value){.i = truth};
    return true;
}

static bool eval(const struct context *c, const struct rung_expr *e, struct rung_value *out)
{
    struct rung_value a, b = {0};
    if (e->op == EXPR_NAME)
        return lookup(c, e, out);
    if (e->op == EXPR_NUMBER) {
        *out = e->value;
        return true;
    }
    if (e->op == EXPR_AND || e->op == EXPR_OR || e->op == EXPR_NOT)
        return eval_logic(c, e, out);
    if (!eval(c, e->a, &a) || (e->b && !eval(c, e->b, &b)))
        return false;
    *out = (struct rung_value){.is_float = a.is_float || b.is_float};
    if (yields_truth(e->op)) {
        *out = (struct rung_value){.i = compare(e->op, a, b)};
        return true;
    }
    return out->is_float ? float_op(c, e, as_float(a), as_float(b), &out->f)
                         : integer_op(c, e, a.i, b.i, &out->i);
}

bool rung_expr_eval(const struct rung_expr *expr, const struct rung_scope *scope,
                    struct rung_arena *arena, struct rung_value *out, const char **problem)
{
    struct context c = {scope, arena, problem};
    *problem = NULL;
    return eval(&c, expr, out);
}

bool rung_expr_value(struct rung_arena *arena, const char *text, const struct rung_scope *scope,
                     struct rung_value *out, const char **problem)
{
    const struct rung_expr *expr = rung_expr_parse(arena, text, problem);
    return expr && rung_expr_eval(expr, scope, arena, out, problem);
}
