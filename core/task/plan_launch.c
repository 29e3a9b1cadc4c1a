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

/* Length of "key" when s starts with `key =` (and not `key ==`), else 0. */
static size_t key_length(const char *s)
{
    size_t n = 0;
    if (isdigit((unsigned char)*s))
        return 0;
    while (is_word(s[n]))
        n++;
    size_t eq = n + strspn(s + n, " \t");
    return n && s[eq] == '=' && s[eq + 1] != '=' ? n : 0;
}

/* The one key that may stand alone. */
static bool is_cooperative(const char *s)
{
    const char *word = key_names[KEY_COOPERATIVE];
    size_t n = strlen(word);
    return strncmp(s, word, n) == 0 && !is_word(s[n]);
}

/* End of a value: the next key outside brackets, or the end of the text. */
static const char *value_end(const char *s)
{
    int depth = 0;
    for (const char *from = s; *s; s++) {
        depth += (strchr("([{", *s) != NULL) - (strchr(")]}", *s) != NULL);
        bool starts = depth == 0 && s > from && !is_word(s[-1]) && is_word(*s);
        if (starts && (key_length(s) || is_cooperative(s)))
            return s;
    }
    return s;
}

static char *trimmed(struct rung_arena *arena, const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && (isspace((unsigned char)to[-1]) || to[-1] == ','))
        to--;
    return rung_arena_strndup(arena, from, (size_t)(to - from));
}

static int find_key(const char *name)
{
    for (int k = 0; k < N_KEYS; k++)
        if (strcmp(key_names[k], name) == 0)
            return k;
    return -1;
}

static void unknown_key(struct plan_reader *r, const char *name)
{
    const char *near = rung_nearest(name, key_names, N_KEYS);
    rung_plan_fault(r,
                    "launch: unknown key '%.64s='%s%s%s; the keys are grid, block, shared, "
                    "cluster, args, when and the word cooperative",
                    name, near ? "; did you mean '" : "", near ? near : "", near ? "='?" : "");
}

/* Splits "grid=(a) block=(b) ..." into texts by key. false after a fault. */
static bool read_keys(struct plan_reader *r, const char *s, const char *values[N_KEYS])
{
    bool good = true;
    for (s += strspn(s, " \t,"); *s; s += strspn(s, " \t,")) {
        size_t n = key_length(s);
        if (n == 0 && is_cooperative(s)) {
            values[KEY_COOPERATIVE] = "1";
            s += strlen(key_names[KEY_COOPERATIVE]);
            continue;
        }
        if (n == 0) {
            rung_plan_fault(r, "launch: expected a key such as grid=(...) at \"%.40s\"", s);
            return false;
        }
        char *name = rung_arena_strndup(r->arena, s, n);
        s = strchr(s + n, '=') + 1;
        const char *end = value_end(s);
        int k = find_key(name);
        if (k < 0)
            unknown_key(r, name);
        else if (values[k])
            rung_plan_fault(r, "launch: '%s=' stands twice", name);
        else
            values[k] = trimmed(r->arena, s, end);
        good &= k >= 0;
        s = end;
    }
    return good;
}

/* Drops the brackets of "(a, b)", but not of "(a) * (b)". */
static const char *unwrap(struct rung_arena *arena, const char *text)
{
    int depth = 0;
    if (*text != '(')
        return text;
    for (const char *s = text; *s; s++) {
        depth += (*s == '(') - (*s == ')');
        if (depth == 0)
            return s[1] ? text : rung_arena_strndup(arena, text + 1, (size_t)(s - text - 1));
    }
    return text;
}

/* "cooperative" alone, or with = and 1, 0, true or false. */
static void read_cooperative(struct plan_reader *r, const char *text, struct rung_step *step)
{
    const char *value = unwrap(r->arena, text);
    if (strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
        step->flags |= RUNG_STEP_COOPERATIVE;
    else if (strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
        rung_plan_fault(r, "launch: cooperative=%.200s; write the word cooperative alone", text);
}

static void read_dim3(struct plan_reader *r, const char *what, const char *text,
                      struct rung_expr_text out[3])
{
    const char **items;
    size_t n;
    if (!rung_expr_split(r->arena, unwrap(r->arena, text), &items, &n) || n == 0 || n > 3) {
        rung_plan_fault(r, "launch: %s=%.200s must be one to three expressions, such as (rows, 4)",
                        what, text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        rung_plan_take_expr(r, what, items[i], NULL, &out[i]);
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
    if (rung_plan_take_pointer(r, "argument", text, arg) ||
        !rung_plan_take_expr(r, "argument", text, &is_float, &arg->expr))
        return;
    arg->kind = is_float ? RUNG_ARG_F64 : RUNG_ARG_I64;
}

static void read_args(struct plan_reader *r, const char *text, struct rung_step *step)
{
    const char **items;
    size_t n;
    if (*text != '(' || unwrap(r->arena, text) == text ||
        !rung_expr_split(r->arena, unwrap(r->arena, text), &items, &n)) {
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
    if (!read_keys(r, rest, values))
        return;
    if (!values[KEY_GRID] || !values[KEY_BLOCK] || !values[KEY_ARGS]) {
        rung_plan_fault(r, "launch %s lacks %s", step.kernel,
                        !values[KEY_GRID]    ? "grid=(...)"
                        : !values[KEY_BLOCK] ? "block=(...)"
                                             : "args=(...)");
        return;
    }
    read_dim3(r, "grid", values[KEY_GRID], step.grid);
    read_dim3(r, "block", values[KEY_BLOCK], step.block);
    read_args(r, values[KEY_ARGS], &step);
    if (values[KEY_SHARED])
        rung_plan_take_expr(r, "shared", values[KEY_SHARED], NULL, &step.shared);
    if (values[KEY_WHEN])
        rung_plan_take_expr(r, "when", values[KEY_WHEN], NULL, &step.when);
    if (values[KEY_CLUSTER])
        read_dim3(r, "cluster", values[KEY_CLUSTER], step.cluster);
    if (values[KEY_COOPERATIVE])
        read_cooperative(r, values[KEY_COOPERATIVE], &step);
    rung_plan_add_step(r, &step);
}
