/* libFuzzer: any text as an expression is parsed, checked and evaluated without a fault of ours. */
#include "task/expr.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lookup(const void *ctx, const char *name, struct rung_value *out)
{
    (void)ctx;
    *out = (struct rung_value){.is_float = name[0] == 'f', .i = INT64_MAX, .f = 1e300};
    return name[1] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rung_scope scope = {.lookup = lookup};
    struct rung_arena *arena = rung_arena_new();
    char *text = rung_arena_strndup(arena, (const char *)data, size);
    const char *problem = NULL, **items;
    bool is_float;
    size_t n;
    struct rung_value v;
    struct rung_expr *e = rung_expr_parse(arena, text, &problem);
    if (!e != !!problem)
        __builtin_trap();
    if (e && rung_expr_check(e, &scope, arena, &is_float, &problem) &&
        rung_expr_eval(e, &scope, arena, &v, &problem) && v.is_float != is_float)
        __builtin_trap();
    rung_expr_split(arena, text, &items, &n);
    rung_arena_free(arena);
    return 0;
}
