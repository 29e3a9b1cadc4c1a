/* Filling placeholders; see render.h. */
#include "render.h"
#include <stdio.h>
#include <string.h>

struct job {
    const struct kernel *kernel;
    const struct target *target;
    uint32_t variant;
    bool drop_guard, drop_tail;
};

static void put_span(struct llm_text *out, struct llm_span span)
{
    llm_text_add(out, span.ptr, span.len);
}

static void put_text(struct llm_text *out, const struct llm_text *text)
{
    llm_text_add(out, text->ptr ? text->ptr : "", text->len);
}

static void put_unroll(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    llm_text_printf(out, "%u", job->kernel->unroll[job->variant % job->kernel->n_unroll]);
}

static void put_n(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    put_text(out, &job->target->elements);
}

static void put_helpers(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    put_text(out, &job->target->helpers);
}

static void put_lets(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    put_text(out, &job->target->lets);
}

static void put_expr(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    put_text(out, &job->target->expr);
}

static void put_args(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    const struct target *target = job->target;
    (void)arg;
    for (uint32_t i = 0; i < target->n_inputs; ++i) {
        put_span(out, target->inputs[i]);
        llm_text_puts(out, ", ");
    }
    put_span(out, target->output);
    for (uint32_t i = 0; i < target->n_scalars; ++i) {
        llm_text_puts(out, ", ");
        put_span(out, target->scalars[i]);
    }
}

static void put_pointers(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    for (uint32_t i = 0; i < job->target->n_inputs; ++i)
        llm_text_printf(out, "const float *__restrict__ in%u, ", i);
    llm_text_puts(out, "float *__restrict__ out");
    for (uint32_t i = 0; i < job->target->n_scalars; ++i)
        llm_text_printf(out, ", float s%u", i);
}

static void put_values(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    const bool core = job->target->match.n > 0;
    if (core)
        llm_text_puts(out, "float v0");
    for (uint32_t i = 0; i < job->target->n_inputs; ++i)
        llm_text_printf(out, core ? "%sfloat c%u" : "%sfloat v%u", core || i ? ", " : "", i);
    for (uint32_t i = 0; i < job->target->n_scalars; ++i)
        llm_text_printf(out, ", float s%u", i);
}

/* apply(...) of values that `format` makes out of an input's number and arg. */
static void put_apply(const struct job *job, struct llm_span arg, bool quad, struct llm_text *out)
{
    llm_text_puts(out, "apply(");
    for (uint32_t i = 0; i < job->target->n_inputs; ++i)
        llm_text_printf(out, quad ? "%sq%u.%.*s" : "%sin%u[%.*s]", i ? ", " : "", i, (int)arg.len,
                        arg.ptr);
    for (uint32_t i = 0; i < job->target->n_scalars; ++i)
        llm_text_printf(out, ", s%u", i);
    llm_text_puts(out, ")");
}

static void put_at(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    put_apply(job, arg, false, out);
}

static void put_at4(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    put_apply(job, arg, true, out);
}

static void put_load4(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    for (uint32_t i = 0; i < job->target->n_inputs; ++i)
        llm_text_printf(out, "%sconst float4 q%u = reinterpret_cast<const float4 *>(in%u)[%.*s];",
                        i ? " " : "", i, i, (int)arg.len, arg.ptr);
}

static void put_more_args(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    const struct target *target = job->target;
    (void)arg;
    for (uint32_t i = 0; i < target->n_inputs; ++i) {
        llm_text_puts(out, ", ");
        put_span(out, target->inputs[i]);
    }
    for (uint32_t i = 0; i < target->n_scalars; ++i) {
        llm_text_puts(out, ", ");
        put_span(out, target->scalars[i]);
    }
}

static void put_more_pointers(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    (void)arg;
    for (uint32_t i = 0; i < job->target->n_inputs; ++i)
        llm_text_printf(out, ", const %s *__restrict__ col%u", job->target->element, i);
    for (uint32_t i = 0; i < job->target->n_scalars; ++i)
        llm_text_printf(out, ", float s%u", i);
}

/* "value|column" */
static void put_finish(const struct job *job, struct llm_span arg, struct llm_text *out)
{
    const char *bar = memchr(arg.ptr, '|', arg.len);
    const size_t n = bar ? (size_t)(bar - arg.ptr) : arg.len;
    llm_text_printf(out, "apply(%.*s", (int)n, arg.ptr);
    for (uint32_t i = 0; bar && i < job->target->n_inputs; ++i)
        llm_text_printf(out, ", float(col%u[%.*s])", i, (int)(arg.len - n - 1), bar + 1);
    for (uint32_t i = 0; i < job->target->n_scalars; ++i)
        llm_text_printf(out, ", s%u", i);
    llm_text_puts(out, ")");
}

struct placeholder {
    const char *name;
    bool takes_arg;
    void (*put)(const struct job *, struct llm_span arg, struct llm_text *out);
};

static const struct placeholder placeholders[] = {
    {"n", false, put_n},
    {"UNROLL", false, put_unroll},
    {"ARGS", false, put_args},
    {"LETS", false, put_lets},
    {"POINTERS", false, put_pointers},
    {"VALUES", false, put_values},
    {"EXPR", false, put_expr},
    {"HELPERS", false, put_helpers},
    {"MORE_ARGS", false, put_more_args},
    {"MORE_POINTERS", false, put_more_pointers},
    {"finish", true, put_finish},
    {"at", true, put_at},
    {"at4", true, put_at4},
    {"load4", true, put_load4},
};

/* One placeholder: a name of the form, or one of the table. */
struct found {
    const char *text;
    const struct placeholder *placeholder;
    struct llm_span arg;
};

/* Takes "{{name:arg}}" off the front of rest; false when there is none that is known. */
static bool take_placeholder(const struct match *names, struct llm_span *rest, struct found *found)
{
    const char *close = memmem(rest->ptr, rest->len, "}}", 2);
    if (!close)
        return false;
    struct llm_span name = {rest->ptr + 2, (size_t)(close - rest->ptr) - 2};
    const char *colon = memchr(name.ptr, ':', name.len);
    *found = (struct found){.arg = {"", 0}};
    if (colon) {
        found->arg = (struct llm_span){colon + 1, name.len - (size_t)(colon + 1 - name.ptr)};
        name.len = (size_t)(colon - name.ptr);
    } else {
        found->text = match_text(names, name);
    }
    for (size_t i = 0; !found->text && i < sizeof placeholders / sizeof *placeholders; ++i)
        if (llm_span_is(name, placeholders[i].name) &&
            placeholders[i].takes_arg == (found->arg.len > 0))
            found->placeholder = &placeholders[i];
    rest->len -= (size_t)(close + 2 - rest->ptr);
    rest->ptr = close + 2;
    return found->text || found->placeholder;
}

bool render_check(struct llm_span body, const struct match *names, char *problem, size_t size,
                  uint32_t *line)
{
    struct llm_span text;
    bool launches = false;
    for (*line = 1; llm_next_line(&body, &text); ++*line) {
        launches |= llm_span_starts(text, "//@ launch ");
        const char *open;
        while ((open = memmem(text.ptr, text.len, "{{", 2))) {
            const struct llm_span all = {open, text.len - (size_t)(open - text.ptr)};
            struct llm_span rest = all;
            struct found found;
            if (!take_placeholder(names, &rest, &found)) {
                snprintf(problem, size, "unknown placeholder %.*s",
                         (int)(all.len < 40 ? all.len : 40), all.ptr);
                return false;
            }
            text = rest;
        }
    }
    if (!launches)
        snprintf(problem, size, "the file has no //@ launch line");
    return launches;
}

static void put_filled(const struct job *job, struct llm_span text, struct llm_text *out)
{
    const char *open;
    while ((open = memmem(text.ptr, text.len, "{{", 2))) {
        struct llm_span rest = {open, text.len - (size_t)(open - text.ptr)};
        struct found found;
        llm_text_add(out, text.ptr, (size_t)(open - text.ptr));
        if (!take_placeholder(&job->target->match, &rest, &found))
            return; /* render_check refused such a body */
        if (found.text)
            llm_text_puts(out, found.text);
        else
            found.placeholder->put(job, found.arg, out);
        text = rest;
    }
    put_span(out, text);
}

/* "//@ tune NAME = a, b, c" with its values turned round by the variant. */
static void put_tune(const struct job *job, struct llm_span line, struct llm_text *out)
{
    struct llm_span values[64];
    uint32_t n = 0;
    const char *equals = memchr(line.ptr, '=', line.len);
    struct llm_span list = {equals + 1, line.len - (size_t)(equals + 1 - line.ptr)};
    while (n < 64) {
        const char *comma = memchr(list.ptr, ',', list.len);
        const size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        values[n++] = llm_trim((struct llm_span){list.ptr, len});
        if (!comma)
            break;
        list.ptr += len + 1;
        list.len -= len + 1;
    }
    llm_text_add(out, line.ptr, (size_t)(equals + 1 - line.ptr));
    for (uint32_t i = 0; i < n; ++i) {
        const struct llm_span value = values[(i + job->variant) % n];
        llm_text_printf(out, "%s%.*s", i ? ", " : " ", (int)value.len, value.ptr);
    }
}

/* A line of the body. "//! guard" and "//! tail" mark what a mistake leaves out; the marks never
 * show. */
static void put_line(const struct job *job, struct llm_span line, struct llm_text *out)
{
    const char *mark = memmem(line.ptr, line.len, " //! ", 5);
    if (mark) {
        const struct llm_span what = {mark + 5, line.len - (size_t)(mark + 5 - line.ptr)};
        if ((job->drop_guard && llm_span_is(what, "guard")) ||
            (job->drop_tail && llm_span_is(what, "tail")))
            return;
        line.len = (size_t)(mark - line.ptr);
    }
    if (llm_span_starts(line, "//@ tune ") && memchr(line.ptr, '=', line.len))
        put_tune(job, line, out);
    else
        put_filled(job, line, out);
    llm_text_puts(out, "\n");
}

/* Takes the last semicolon out of a source. */
static void drop_semicolon(struct llm_text *out)
{
    for (size_t i = out->len; i-- > 0;) {
        if (out->ptr[i] != ';')
            continue;
        memmove(out->ptr + i, out->ptr + i + 1, out->len - i);
        out->len--;
        return;
    }
}

void render_kernel(const struct kernel *kernel, const struct target *target, uint32_t variant,
                   enum mistake mistake, struct llm_text *out)
{
    const bool guard = mistake == MISTAKE_GUARD && strstr(kernel->body, " //! guard");
    const bool tail = mistake == MISTAKE_TAIL && strstr(kernel->body, " //! tail");
    const struct job job = {kernel, target, variant, guard, tail};
    struct llm_span rest = {kernel->body, strlen(kernel->body)}, line;
    llm_text_printf(out, "// catalog: %s/%s variant %u\n// %s\n", kernel->family, kernel->stem,
                    variant, kernel->idea);
    while (llm_next_line(&rest, &line))
        put_line(&job, line, out);
    if (mistake != MISTAKE_NONE && !guard && !tail)
        drop_semicolon(out);
}
