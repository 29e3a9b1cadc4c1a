/*
 * The directive symbol: what of a tensor or temp goes into a __constant__ or __device__ variable.
 * The text is hostile; results live in the reader's arena.
 */
#include "task/plan_reader.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/*
 * Cuts text before the first `word` outside brackets. Returns what stands behind it, without a
 * leading '='; NULL when the word does not occur.
 */
static const char *cut_at_word(char *text, const char *word)
{
    size_t n = strlen(word);
    int depth = 0;
    for (char *s = text; *s; s++) {
        depth += (strchr("([{", *s) != NULL) - (strchr(")]}", *s) != NULL);
        bool starts = depth == 0 && s > text && !is_word(s[-1]);
        if (!starts || strncmp(s, word, n) != 0 || is_word(s[n]))
            continue;
        const char *value = s + n + strspn(s + n, " \t");
        if (*value == '=')
            value += 1 + strspn(value + 1, " \t");
        while (s > text && isspace((unsigned char)s[-1]))
            s--;
        *s = 0;
        return value;
    }
    return NULL;
}

static void usage(struct plan_reader *r)
{
    rung_plan_fault(r,
                    "write symbol NAME = TENSOR or symbol NAME = TENSOR + OFFSET count ELEMENTS; "
                    "NAME is a __constant__ or __device__ variable of the source, such as c_w");
}

/* "w + cols count 64 when=(rows > 4)" */
static bool read_source(struct plan_reader *r, const char *rest, struct rung_step *step)
{
    char *text = rung_arena_strdup(r->arena, rest);
    char *what = rung_arena_printf(r->arena, "symbol %s", step->symbol);
    const char *when = cut_at_word(text, "when"), *count = cut_at_word(text, "count");
    struct rung_arg arg = {.struct_size = sizeof arg};
    if (!*text) {
        usage(r);
        return false;
    }
    if (!rung_plan_take_pointer(r, what, text, &arg)) {
        rung_plan_fault(r, "%s: \"%.200s\" is no tensor or temp; only these can be copied", what,
                        text);
        return false;
    }
    step->target_kind = arg.kind;
    step->target_index = arg.index;
    step->offset = arg.expr;
    return (!count || rung_plan_take_expr(r, "count", count, NULL, &step->count)) &&
           (!when || rung_plan_take_expr(r, "when", when, NULL, &step->when));
}

void rung_plan_read_symbol(struct plan_reader *r, const char *rest)
{
    struct rung_step step = {.struct_size = sizeof step, .kind = RUNG_STEP_SYMBOL, .line = r->line};
    size_t n = rung_plan_qualified(rest);
    const char *equals = rest + n + strspn(rest + n, " \t");
    if (n == 0 || n > 256 || *equals != '=') {
        usage(r);
        return;
    }
    step.symbol = rung_arena_strndup(r->arena, rest, n);
    if (read_source(r, equals + 1 + strspn(equals + 1, " \t"), &step))
        rung_plan_add_step(r, &step);
}
