/*
 * Plan lines: finding them in a source, joining continued ones, giving each to its directive. The
 * text is hostile; results live in the caller's arena.
 */
#include "task/plan_reader.h"

#include <ctype.h>
#include <rung/host.h>
#include <string.h>

enum { MAX_LINE = 8000, MAX_PROBLEMS = 4096 };

struct line {
    struct line *next;
    uint32_t number; /* of its first part, 1-based */
    const char *text;
};

void rung_plan_fault(struct plan_reader *r, const char *format, ...)
{
    va_list args;
    if (r->problems.len > MAX_PROBLEMS)
        return; /* a hostile plan must not fill a prompt */
    va_start(args, format);
    rung_buf_printf(&r->problems, "%s:%u: %s\n", r->file, r->line,
                    rung_arena_vprintf(r->arena, format, args));
    va_end(args);
}

static void trim_end(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = 0;
}

/* The text after //@ when line is a plan line, without blanks around it; else NULL. */
static char *plan_text(struct plan_reader *r, const char *line, size_t n)
{
    size_t i = 0;
    while (i < n && (line[i] == ' ' || line[i] == '\t'))
        i++;
    if (n - i < 3 || memcmp(line + i, "//@", 3) != 0)
        return NULL;
    if (n > MAX_LINE || memchr(line, 0, n)) {
        rung_plan_fault(r, "a plan line is plain text of at most 8000 characters");
        return rung_arena_strdup(r->arena, "");
    }
    i += 3;
    while (i < n && isspace((unsigned char)line[i]))
        i++;
    char *text = rung_arena_strndup(r->arena, line + i, n - i);
    trim_end(text);
    return text;
}

/* Whether the line asks for another one; the backslash is cut off. */
static bool continues(char *text)
{
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != '\\')
        return false;
    text[n - 1] = 0;
    trim_end(text);
    return true;
}

static struct line *collect(struct plan_reader *r, struct rung_text source)
{
    struct line *first = NULL, **end = &first;
    struct line *open = NULL; /* waits for its continuation */
    const char *s = source.ptr, *stop = source.ptr + source.len;
    for (r->line = 1; s < stop; r->line++) {
        const char *nl = memchr(s, '\n', (size_t)(stop - s));
        char *text = plan_text(r, s, (size_t)((nl ? nl : stop) - s));
        s = nl ? nl + 1 : stop;
        if (open && !text)
            rung_plan_fault(
                r, "the plan line above ends in '\\', but this line does not start with //@");
        bool more = text && continues(text);
        if (open && text) {
            open->text = rung_arena_printf(r->arena, "%s %s", open->text, text);
            if (strlen(open->text) > MAX_LINE) {
                rung_plan_fault(r,
                                "a plan line with its continuations has at most 8000 characters");
                return NULL;
            }
        } else if (text) {
            open = *end = RUNG_ARENA_NEW(r->arena, struct line, 1);
            *open = (struct line){.number = r->line, .text = text};
            end = &open->next;
        }
        open = more ? open : NULL;
    }
    if (open)
        rung_plan_fault(r, "the last plan line ends in '\\', but no //@ line follows");
    return first;
}

#define DIRECTIVES "tune, where, temp, zero, symbol, launch, tensormap"

/* Names first, so that a directive may use what a later line declares. */
static const struct directive {
    const char *name;
    int pass;
    void (*read)(struct plan_reader *, const char *);
} directives[] = {{"tune", 1, rung_plan_read_tune},          {"where", 2, rung_plan_read_where},
                  {"temp", 1, rung_plan_read_temp},          {"zero", 2, rung_plan_read_zero},
                  {"launch", 2, rung_plan_read_launch},      {"symbol", 2, rung_plan_read_symbol},
                  {"tensormap", 1, rung_plan_read_tensormap}};
enum { N_DIRECTIVES = sizeof directives / sizeof directives[0] };

/*
 * The text without a trailing `// comment`. In other languages // divides, so what could be an
 * expression or another key is left in, to be refused.
 */
static const char *without_comment(struct plan_reader *r, const char *text)
{
    struct plan_scope s = rung_plan_reader_scope(r, PLAN_ALL);
    struct rung_scope names = rung_plan_names(&s);
    const char *at = strstr(text, "//"), *problem;
    bool is_float;
    if (!at || strchr(at, '='))
        return text;
    const struct rung_expr *e = rung_expr_parse(r->arena, at + 2, &problem);
    if (e && rung_expr_check(e, &names, r->arena, &is_float, &problem))
        return text;
    char *kept = rung_arena_strndup(r->arena, text, (size_t)(at - text));
    trim_end(kept);
    return kept;
}

static void unknown_directive(struct plan_reader *r, const char *word)
{
    static const char *const known[] = {"tune",   "where",  "temp",     "zero",
                                        "symbol", "launch", "tensormap"};
    const char *near = rung_nearest(word, known, sizeof known / sizeof *known);
    if (strcmp(word, "cluster") == 0 || strcmp(word, "cooperative") == 0)
        rung_plan_fault(r,
                        "'%s' is no directive: it stands in the launch line, as in launch KERNEL "
                        "cluster=(2) cooperative grid=(...)",
                        word);
    else
        rung_plan_fault(r, "unknown directive '%.64s'%s%s%s; the directives are " DIRECTIVES, word,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void read_pass(struct plan_reader *r, const struct line *line, int pass)
{
    for (; line; line = line->next) {
        const char *rest;
        const char *word = rung_plan_word(r->arena, line->text, &rest);
        const struct directive *d = directives;
        r->line = line->number;
        while (d < directives + N_DIRECTIVES && strcmp(d->name, word) != 0)
            d++;
        if (d < directives + N_DIRECTIVES && d->pass == pass)
            d->read(r, without_comment(r, rest));
        else if (pass == 2 && d == directives + N_DIRECTIVES && *line->text)
            unknown_directive(r, word);
    }
}

static const void *keep(struct rung_arena *arena, const void *items, size_t bytes)
{
    void *copy = rung_arena_need(arena, bytes);
    if (bytes)
        memcpy(copy, items, bytes);
    return copy;
}

static const struct rung_plan *finish(struct plan_reader *r)
{
    struct rung_plan *plan = RUNG_ARENA_NEW(r->arena, struct rung_plan, 1);
    *plan = (struct rung_plan){
        .struct_size = sizeof *plan,
        .n_tunes = r->n_tunes,
        .n_where = r->n_where,
        .n_temps = r->n_temps,
        .n_steps = r->n_steps,
        .tunes = keep(r->arena, r->tunes, sizeof *r->tunes * r->n_tunes),
        .where = keep(r->arena, r->where, sizeof *r->where * r->n_where),
        .temps = keep(r->arena, r->temps, sizeof *r->temps * r->n_temps),
        .steps = keep(r->arena, r->steps, sizeof *r->steps * r->n_steps),
        .tensormaps = keep(r->arena, r->maps, sizeof *r->maps * r->n_maps),
        .n_tensormaps = r->n_maps,
    };
    return plan;
}

const struct rung_plan *rung_plan_parse(struct rung_arena *arena, const struct rung_task *task,
                                        const char *file, struct rung_text source,
                                        const char **problem)
{
    struct plan_reader *r = RUNG_ARENA_NEW(arena, struct plan_reader, 1);
    *r = (struct plan_reader){.arena = arena, .task = task, .file = file};
    const struct line *lines = collect(r, source);
    const struct rung_plan *plan = NULL;
    read_pass(r, lines, 1);
    rung_plan_check_temps(r);
    rung_plan_check_tensormaps(r);
    read_pass(r, lines, 2);
    bool launches = false;
    for (uint32_t i = 0; i < r->n_steps; i++)
        launches |= r->steps[i].kind == RUNG_STEP_LAUNCH;
    r->line = 1;
    if (!launches && r->problems.len == 0)
        rung_plan_fault(r, "the source has no launch; add a line such as //@ launch kernel "
                           "grid=(...) block=(...) args=(...)");
    if (r->problems.len == 0)
        plan = finish(r);
    *problem = plan ? NULL : rung_arena_strdup(arena, rung_buf_text(&r->problems));
    rung_buf_free(&r->problems);
    return plan;
}

static int32_t table_parse(const struct rung_host *host, struct rung_call *call,
                           const struct rung_task *task, const char *file, struct rung_text source,
                           const struct rung_plan **plan, struct rung_text *problem)
{
    const char *text = NULL;
    (void)host;
    *plan = rung_plan_parse(call->arena, task, file, source, &text);
    *problem = rung_text_of(text ? text : "");
    return RUNG_OK;
}

const struct rung_host_plan rung_plan_table = {.struct_size = sizeof(struct rung_host_plan),
                                               .parse = table_parse};
