/*
 * The directives tune, where, temp and zero, and what all directives share. The text is hostile;
 * results live in the reader's arena.
 */
#include "task/plan_reader.h"

#include <ctype.h>
#include <string.h>

int rung_plan_temp(const struct plan_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_temps; i++)
        if (strcmp(r->temps[i].name, name) == 0)
            return (int)i;
    return -1;
}

int rung_plan_map(const struct plan_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_maps; i++)
        if (strcmp(r->maps[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int find_tune(const struct plan_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_tunes; i++)
        if (strcmp(r->tunes[i].name, name) == 0)
            return (int)i;
    return -1;
}

void rung_plan_add_step(struct plan_reader *r, const struct rung_step *step)
{
    if (r->n_steps == PLAN_MAX)
        rung_plan_fault(r, "a plan has at most 64 steps (zero, symbol and launch)");
    else
        r->steps[r->n_steps++] = *step;
}

struct plan_scope rung_plan_reader_scope(const struct plan_reader *r, uint32_t names)
{
    return (struct plan_scope){
        .task = r->task, .tunes = r->tunes, .n_tunes = r->n_tunes, .names = names};
}

/* The first word of text that names a tensor, temp or tensor map: these are no numbers. */
static const char *memory_name(const struct plan_reader *r, const char *text)
{
    for (const char *s = text; *s;) {
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
        if (n == 0) {
            s++;
            continue;
        }
        const char *word = rung_arena_strndup(r->arena, s, n);
        if (rung_task_tensor(r->task, word) >= 0 || rung_plan_temp(r, word) >= 0 ||
            rung_plan_map(r, word) >= 0)
            return word;
        s += n;
    }
    return NULL;
}

bool rung_plan_take_expr(struct plan_reader *r, const char *what, const char *text, bool *is_float,
                         struct rung_expr_text *out)
{
    struct plan_scope s = rung_plan_reader_scope(r, PLAN_ALL);
    struct rung_scope names = rung_plan_names(&s);
    const char *problem, *memory;
    bool is_f = false;
    const struct rung_expr *e = rung_expr_parse(r->arena, text, &problem);
    if (e && (memory = memory_name(r, text)) != NULL)
        rung_plan_fault(r, "%s \"%s\": '%s' is a %s, not a number", what, text, memory,
                        rung_plan_map(r, memory) >= 0 ? "tensormap" : "tensor or temp");
    else if (!e || !rung_expr_check(e, &names, r->arena, &is_f, &problem))
        rung_plan_fault(r, "%s \"%s\": %s", what, text, problem);
    else if (is_f && !is_float)
        rung_plan_fault(r, "%s \"%s\" must be an integer, but it holds a float", what, text);
    else {
        if (is_float)
            *is_float = is_f;
        *out = (struct rung_expr_text){
            .struct_size = sizeof *out, .line = r->line, .text = rung_arena_strdup(r->arena, text)};
        return true;
    }
    return false;
}

char *rung_plan_word(struct rung_arena *arena, const char *text, const char **rest)
{
    size_t n = strcspn(text, " \t([{<=");
    char *word = rung_arena_strndup(arena, text, n);
    *rest = text + n + strspn(text + n, " \t");
    return word;
}

bool rung_plan_new_name(struct plan_reader *r, const char *what, const char *name)
{
    const char *taken = rung_task_dim(r->task, name) >= 0      ? "a dim of the task"
                        : rung_task_tensor(r->task, name) >= 0 ? "a tensor of the task"
                        : rung_task_param(r->task, name) >= 0  ? "a parameter of the task"
                        : find_tune(r, name) >= 0              ? "a tune"
                        : rung_plan_temp(r, name) >= 0         ? "a temp"
                        : rung_plan_map(r, name) >= 0          ? "a tensormap"
                                                               : NULL;
    if (!rung_expr_is_name(name))
        rung_plan_fault(r, "'%s' can't name a %s; take letters, digits and _", name, what);
    else if (taken)
        rung_plan_fault(r, "'%s' is already %s; take another name for the %s", name, taken, what);
    else
        return true;
    return false;
}

/* Drops one pair of brackets around the whole, if there is one. */
static const char *unbracket(struct rung_arena *arena, const char *text)
{
    size_t n = strlen(text);
    if (n < 2 || !strchr("([{", text[0]) || !strchr(")]}", text[n - 1]))
        return text;
    return rung_arena_strndup(arena, text + 1, n - 2);
}

static bool tune_value(struct plan_reader *r, const char *text, struct rung_tune *tune,
                       int64_t *values)
{
    static const struct rung_scope nothing = {0};
    struct rung_value v;
    const char *problem;
    if (!rung_expr_value(r->arena, text, &nothing, &v, &problem)) {
        rung_plan_fault(r, "tune %s: value \"%s\": %s", tune->name, text, problem);
        return false;
    }
    if (v.is_float) {
        rung_plan_fault(r, "tune %s: value \"%s\" must be an integer", tune->name, text);
        return false;
    }
    for (uint32_t i = 0; i < tune->n_values; i++)
        if (values[i] == v.i) {
            rung_plan_fault(r, "tune %s: %lld stands twice", tune->name, (long long)v.i);
            return false;
        }
    values[tune->n_values++] = v.i;
    return true;
}

void rung_plan_read_tune(struct plan_reader *r, const char *rest)
{
    const char *list;
    const char **items;
    size_t n;
    char *name = rung_plan_word(r->arena, rest, &list);
    if (!rung_plan_new_name(r, "tune", name))
        return;
    if (*list != '=' || r->n_tunes == PLAN_MAX) {
        rung_plan_fault(r, *list == '=' ? "a plan has at most 64 tunes"
                                        : "write tune NAME = 128, 256, 512");
        return;
    }
    list += 1 + strspn(list + 1, " \t");
    if (!rung_expr_split(r->arena, unbracket(r->arena, list), &items, &n) || n == 0 ||
        n > PLAN_MAX) {
        rung_plan_fault(r, "tune %s needs 1 to 64 integers, such as 128, 256", name);
        return;
    }
    int64_t *values = RUNG_ARENA_NEW(r->arena, int64_t, n);
    struct rung_tune tune = {.struct_size = sizeof tune, .name = name, .values = values};
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good &= tune_value(r, items[i], &tune, values);
    if (good)
        r->tunes[r->n_tunes++] = tune;
}

static uint32_t dtype_of(const char *name)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } spoken[] = {{"float", RUNG_F32}, {"double", RUNG_F64}, {"half", RUNG_F16}, {"int", RUNG_I32}};
    for (uint32_t d = RUNG_F64; d <= RUNG_BOOL; d++)
        if (rung_dtype_name(d) && strcmp(rung_dtype_name(d), name) == 0)
            return d;
    for (size_t i = 0; i < sizeof spoken / sizeof spoken[0]; i++)
        if (strcmp(spoken[i].name, name) == 0)
            return spoken[i].dtype;
    return 0;
}

/* "[rows, 2]" counts rows * 2 elements. */
static char *temp_count(struct plan_reader *r, const char *brackets)
{
    const char **items;
    size_t n, len = strlen(brackets);
    if (len < 2 || brackets[0] != '[' || brackets[len - 1] != ']' ||
        !rung_expr_split(r->arena, unbracket(r->arena, brackets), &items, &n) || n == 0)
        return NULL;
    char *count = rung_arena_strdup(r->arena, items[0]);
    for (size_t i = 1; i < n; i++)
        count = rung_arena_printf(r->arena, i == 1 ? "(%s) * (%s)" : "%s * (%s)", count, items[i]);
    return count;
}

/* The name and type, in the first pass; the count follows when all tunes are known. */
void rung_plan_read_temp(struct plan_reader *r, const char *rest)
{
    const char *type_text, *brackets;
    char *name = rung_plan_word(r->arena, rest, &type_text);
    char *type = rung_plan_word(r->arena, type_text, &brackets);
    if (!rung_plan_new_name(r, "temp", name))
        return;
    struct rung_temp temp = {.struct_size = sizeof temp, .name = name, .dtype = dtype_of(type)};
    temp.count = (struct rung_expr_text){
        .struct_size = sizeof temp.count, .line = r->line, .text = temp_count(r, brackets)};
    if (!temp.dtype)
        rung_plan_fault(
            r, "temp %s: there is no type '%s'; types are f64 f32 f16 bf16 i8 u8 i32 i64 bool",
            name, type);
    else if (!temp.count.text)
        rung_plan_fault(r, "write temp NAME TYPE [COUNT], such as temp %s f32 [1024]", name);
    else if (r->n_temps == PLAN_MAX)
        rung_plan_fault(r, "a plan has at most 64 temps");
    else
        r->temps[r->n_temps++] = temp;
}

void rung_plan_check_temps(struct plan_reader *r)
{
    for (uint32_t i = 0; i < r->n_temps; i++) {
        struct rung_expr_text *count = &r->temps[i].count;
        r->line = count->line;
        rung_plan_take_expr(r, "temp count", count->text, NULL, count);
    }
}

void rung_plan_read_where(struct plan_reader *r, const char *rest)
{
    if (r->n_where == PLAN_MAX)
        rung_plan_fault(r, "a plan has at most 64 where lines");
    else if (rung_plan_take_expr(r, "where", rest, NULL, &r->where[r->n_where]))
        r->n_where++;
}

static bool zero_target(struct plan_reader *r, const char *name, struct rung_step *step)
{
    int temp = rung_plan_temp(r, name), tensor = rung_task_tensor(r->task, name);
    if (temp >= 0) {
        step->target_kind = RUNG_ARG_TEMP;
        step->target_index = (uint32_t)temp;
        return true;
    }
    if (tensor < 0)
        rung_plan_fault(r, "zero: there is no temp or output '%s'", name);
    else if (r->task->tensors[tensor].role != RUNG_ROLE_OUTPUT)
        rung_plan_fault(r, "zero: '%s' is no output; only temps and outputs can be zeroed", name);
    else if (r->task->tensors[tensor].stride[0])
        rung_plan_fault(r,
                        "zero: '%s' has strides, and what lies between its elements must stay; "
                        "zero it in a kernel",
                        name);
    step->target_kind = RUNG_ARG_TENSOR;
    step->target_index = (uint32_t)tensor;
    return tensor >= 0 && r->task->tensors[tensor].role == RUNG_ROLE_OUTPUT &&
           !r->task->tensors[tensor].stride[0];
}

void rung_plan_read_zero(struct plan_reader *r, const char *rest)
{
    const char **items;
    size_t n;
    if (!rung_expr_split(r->arena, unbracket(r->arena, rest), &items, &n) || n == 0) {
        rung_plan_fault(r, "write zero NAME or zero NAME, NAME");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct rung_step step = {
            .struct_size = sizeof step, .kind = RUNG_STEP_SET, .line = r->line};
        if (!zero_target(r, items[i], &step))
            continue;
        rung_plan_add_step(r, &step);
    }
}
