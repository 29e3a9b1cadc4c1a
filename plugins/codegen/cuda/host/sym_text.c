/* Symbolic numbers in the plan language: see sym.h. */
#include "sym.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_WORD };

static const struct {
    const char *sign;
    int level;
} forms[] = {
    [SYM_ADD] = {" + ", LEVEL_SUM},     [SYM_SUB] = {" - ", LEVEL_SUM},
    [SYM_MUL] = {" * ", LEVEL_PRODUCT}, [SYM_DIV] = {" / ", LEVEL_PRODUCT},
    [SYM_MOD] = {" % ", LEVEL_PRODUCT}, [SYM_CEIL_DIV] = {"ceil_div(", LEVEL_WORD},
    [SYM_MIN] = {"min(", LEVEL_WORD},   [SYM_MAX] = {"max(", LEVEL_WORD},
    [SYM_EQ] = {" == ", LEVEL_COMPARE}, [SYM_NE] = {" != ", LEVEL_COMPARE},
    [SYM_LT] = {" < ", LEVEL_COMPARE},  [SYM_LE] = {" <= ", LEVEL_COMPARE},
    [SYM_GT] = {" > ", LEVEL_COMPARE},  [SYM_GE] = {" >= ", LEVEL_COMPARE},
    [SYM_AND] = {" and ", LEVEL_AND},   [SYM_OR] = {" or ", LEVEL_OR},
    [SYM_NOT] = {"not (", LEVEL_NOT},
};

static const char *real_text(struct cg_pool *p, double f)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, f);
        if (strtod(text, NULL) == f)
            break;
    }
    return strpbrk(text, ".e") ? cg_format(p, "%s", text) : cg_format(p, "%s.0", text);
}

static const char *print(struct cg_pool *p, const struct cg_sym *s, int level);

static const char *print_binary(struct cg_pool *p, const struct cg_sym *s)
{
    int level = forms[s->op].level;
    const char *sign = forms[s->op].sign;
    if (level == LEVEL_WORD)
        return cg_format(p, "%s%s, %s)", sign, print(p, s->a, LEVEL_OR), print(p, s->b, LEVEL_OR));
    if (s->op == SYM_ADD && s->b->op == SYM_INT && s->b->i < 0 && s->b->i > INT64_MIN)
        return cg_format(p, "%s - %lld", print(p, s->a, level), (long long)-s->b->i);
    bool compare = level == LEVEL_COMPARE;
    return cg_format(p, "%s%s%s", print(p, s->a, compare ? LEVEL_SUM : level), sign,
                     print(p, s->b, level + 1));
}

static const char *print(struct cg_pool *p, const struct cg_sym *s, int level)
{
    const char *text;
    int own = s->op < SYM_ADD ? LEVEL_WORD : forms[s->op].level;
    cg_step(p);
    if (s->op == SYM_NAME) {
        return s->name;
    } else if (s->op == SYM_INT || s->op == SYM_REAL) {
        text = s->op == SYM_INT ? cg_format(p, "%lld", (long long)s->i) : real_text(p, s->f);
        own = text[0] == '-' ? LEVEL_SUM : LEVEL_WORD;
    } else if (s->op == SYM_NOT) {
        text = cg_format(p, "not (%s)", print(p, s->a, LEVEL_OR));
    } else {
        text = print_binary(p, s);
    }
    return own < level ? cg_format(p, "(%s)", text) : text;
}

const char *cg_sym_text(struct cg_pool *p, const struct cg_sym *s)
{
    return print(p, s, LEVEL_OR);
}
