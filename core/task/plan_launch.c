/*
 * The directive launch: kernel, template arguments, then grid=, block=, shared=, cluster=, args=,
 * when= and cooperative. The text is hostile; results live in the reader's arena.
 */
#include "task/plan_reader.h"

#include <ctype.h>
#include <string.h>

enum key {
    KEY_GRID,
    KEY_BLOCK,
    KEY_SHARED,
    KEY_ARGS,
    KEY_WHEN,
    KEY_CLUSTER,
    KEY_COOPERATIVE,
    N_KEYS
};

static const char *const key_names[N_KEYS] = {"grid", "block",   "shared",     "args",
                                              "when", "cluster", "cooperative"};
static const struct plan_keys launch_keys = {
    .directive = "launch",
    .names = key_names,
    .n = N_KEYS,
    .word = KEY_COOPERATIVE,
    .list = "grid, block, shared, cluster, args, when and the word cooperative"};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- Kernel and template arguments ---------------------------------------------------------- */

size_t rung_plan_qualified(const char *s)
{
    size_t n = 0;
    for (;;) {
        if (!is_word(s[n]) || isdigit((unsigned char)s[n]))
            return 0;
        while (is_word(s[n]))
            n++;
        if (s[n] != ':' || s[n + 1] != ':')
            return n;
        n += 2;
    }
}

/* The '>' that closes the '<' at s[0]; comparisons inside must stand in parentheses. NULL: none. */
static const char *template_end(const char *s)
{
    int angle = 0, round = 0;
    for (; *s; s++) {
        round += (*s == '(') - (*s == ')');
        if (round > 0)
            continue;
        angle += (*s == '<') - (*s == '>');
        if (angle == 0)
            return s;
    }
    return NULL;
}

/* Text that may be a C++ type or constant: names, ::, <>, pointers, blanks. Never code. */
static bool is_type_text(const char *s)
{
    return *s &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:<>, *") ==
               strlen(s);
}

/* Commas inside <> belong to a nested template; the splitter knows only brackets. */
static bool split_template(struct rung_arena *arena, const char *text, const char ***items,
                           size_t *n)
{
    size_t len = strlen(text), k = 0;
    const char **parts;
    if (!rung_expr_split(arena, text, &parts, n))
        return false;
    const char **list = RUNG_ARENA_NEW(arena, const char *, len + 1);
    for (size_t i = 0, depth = 0; i < *n; i++) {
        list[k] = depth ? rung_arena_printf(arena, "%s, %s", list[k], parts[i]) : parts[i];
        for (const char *s = parts[i]; *s; s++) {
            depth += *s == '<' && *parts[i] != '(';
            depth -= depth && *s == '>' && *parts[i] != '(';
        }
        k += depth == 0;
    }
    *items = list;
    *n = k;
    return true;
}

static bool template_arg(struct plan_reader *r, const char *text, struct rung_expr_text *out)
{
    struct plan_scope all = rung_plan_reader_scope(r, PLAN_ALL);
    uint32_t allowed = PLAN_PARAMS | PLAN_TUNES;
    if (r->task->shape_rule == RUNG_SHAPES_FIXED)
        allowed |= PLAN_DIMS;
    struct plan_scope usable = rung_plan_reader_scope(r, allowed);
    *out = (struct rung_expr_text){.struct_size = sizeof *out, .line = r->line, .text = text};
    if (rung_plan_is_value(r->arena, &usable, text))
        return rung_plan_take_expr(r, "template argument", text, NULL, out);
    if (rung_plan_is_value(r->arena, &all, text))
        rung_plan_fault(
            r,
            "template argument \"%s\" is not known when the kernel is compiled: it must be "
            "right for all dims and devices. Pass it in args=, or declare a tune",
            text);
    else if (!is_type_text(text))
        rung_plan_fault(
            r,
            "template argument \"%.200s\" is neither an integer expression over tunes nor a "
            "type",
            text);
    else
        return true;
    return false;
}

/* Reads "<...>" at s into the step. Returns what follows, or NULL after a fault. */
static const char *read_template(struct plan_reader *r, const char *s, struct rung_step *step)
{
    const char *end = template_end(s);
    const char **items;
    size_t n;
    if (!end ||
        !split_template(r->arena, rung_arena_strndup(r->arena, s + 1, (size_t)(end - s - 1)),
                        &items, &n) ||
        n == 0 || n > PLAN_MAX) {
        rung_plan_fault(r, "launch %s: the template arguments must be 1 to 64 items in <...>",
                        step->kernel);
        return NULL;
    }
    struct rung_expr_text *args = RUNG_ARENA_NEW(r->arena, struct rung_expr_text, n);
    for (size_t i = 0; i < n; i++)
        if (!template_arg(r, items[i], &args[i]))
            return NULL;
    step->template_args = args;
    step->n_template_args = (uint32_t)n;
    return end + 1;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

/* "cooperative" alone, or with = and 1, 0, true or false. */
static void read_cooperative(struct plan_reader *r, const char *text, struct rung_step *step)
{
    const char *value = rung_plan_unwrap(r->arena, text);
    if (strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
        step->flags |= RUNG_STEP_COOPERATIVE;
    else if (strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
        rung_plan_fault(r, "launch: cooperative=%.200s; write the word cooperative alone", text);
}

/* ---- Arguments ------------------------------------------------------------------------------ */

bool rung_plan_take_pointer(struct plan_reader *r, const char *what, const char *text,
                            struct rung_arg *arg)
{
    size_t n = 0;
    while (is_word(text[n]))
        n++;
    const char *name = rung_arena_strndup(r->arena, text, n);
    int temp = rung_plan_temp(r, name), tensor = rung_task_tensor(r->task, name);
    if (temp < 0 && tensor < 0)
        return false;
    arg->kind = temp >= 0 ? RUNG_ARG_TEMP : RUNG_ARG_TENSOR;
    arg->index = (uint32_t)(temp >= 0 ? temp : tensor);
    const char *rest = text + n + strspn(text + n, " \t");
    if (!*rest)
        return true;
    if (*rest != '+' || strpbrk(rest, "<>=!&|"))
        rung_plan_fault(r,
                        "%s \"%.200s\": a pointer is a tensor or temp, or one plus an offset in "
                        "elements: %s + rows * 4",
                        what, text, name);
    else
        rung_plan_take_expr(r, "offset", rest + 1 + strspn(rest + 1, " \t"), NULL, &arg->expr);
    return true;
}

static void read_arg(struct plan_reader *r, const char *text, struct rung_arg *arg)
{
    bool is_float = false;
    *arg = (struct rung_arg){.struct_size = sizeof *arg};
    int map = rung_plan_map(r, text);
    if (map >= 0) {
        arg->kind = RUNG_ARG_TENSORMAP;
        arg->index = (uint32_t)map;
        return;
    }
    if (rung_plan_take_pointer(r, "argument", text, arg) ||
        !rung_plan_take_expr(r, "argument", text, &is_float, &arg->expr))
        return;
    arg->kind = is_float ? RUNG_ARG_F64 : RUNG_ARG_I64;
}

static void read_args(struct plan_reader *r, const char *text, struct rung_step *step)
{
    const char **items;
    size_t n;
    if (*text != '(' || rung_plan_unwrap(r->arena, text) == text ||
        !rung_expr_split(r->arena, rung_plan_unwrap(r->arena, text), &items, &n)) {
        rung_plan_fault(
            r, "launch: args=%.200s must be a list in parentheses, such as args=(x, y, rows)",
            text);
        return;
    }
    if (n > PLAN_MAX) {
        rung_plan_fault(r, "launch: args takes at most 64 items");
        return;
    }
    struct rung_arg *args = RUNG_ARENA_NEW(r->arena, struct rung_arg, n);
    for (size_t i = 0; i < n; i++)
        read_arg(r, items[i], &args[i]);
    step->args = args;
    step->n_args = (uint32_t)n;
}

void rung_plan_read_launch(struct plan_reader *r, const char *rest)
{
    const char *values[N_KEYS] = {0};
    struct rung_step step = {.struct_size = sizeof step, .kind = RUNG_STEP_LAUNCH, .line = r->line};
    size_t n = rung_plan_qualified(rest);
    if (n == 0 || n > 256) {
        rung_plan_fault(
            r, "write launch KERNEL grid=(...) block=(...) args=(...); the kernel is a name "
               "such as row_sum or ns::row_sum<TPB>");
        return;
    }
    step.kernel = rung_arena_strndup(r->arena, rest, n);
    rest += n + strspn(rest + n, " \t");
    if (*rest == '<' && (rest = read_template(r, rest, &step)) == NULL)
        return;
    if (!rung_plan_take_keys(r, &launch_keys, rest, values))
        return;
    if (!values[KEY_GRID] || !values[KEY_BLOCK] || !values[KEY_ARGS]) {
        rung_plan_fault(r, "launch %s lacks %s", step.kernel,
                        !values[KEY_GRID]    ? "grid=(...)"
                        : !values[KEY_BLOCK] ? "block=(...)"
                                             : "args=(...)");
        return;
    }
    rung_plan_take_list(r, "launch", "grid", values[KEY_GRID], 3, step.grid);
    rung_plan_take_list(r, "launch", "block", values[KEY_BLOCK], 3, step.block);
    read_args(r, values[KEY_ARGS], &step);
    if (values[KEY_SHARED])
        rung_plan_take_expr(r, "shared", values[KEY_SHARED], NULL, &step.shared);
    if (values[KEY_WHEN])
        rung_plan_take_expr(r, "when", values[KEY_WHEN], NULL, &step.when);
    if (values[KEY_CLUSTER])
        rung_plan_take_list(r, "launch", "cluster", values[KEY_CLUSTER], 3, step.cluster);
    if (values[KEY_COOPERATIVE])
        read_cooperative(r, values[KEY_COOPERATIVE], &step);
    rung_plan_add_step(r, &step);
}
