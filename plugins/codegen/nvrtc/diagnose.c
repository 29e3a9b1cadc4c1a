/* From NVRTC's log to what a model is told: see diagnose.h. */
#include "diagnose.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAP "__nv_name_map("

/* Whether a line starts a diagnostic: it is not indented and speaks of an error, warning or remark.
 */
static bool starts_block(const char *line, size_t n)
{
    static const char *const words[] = {" error", " warning",  " remark",
                                        "error:", "error   :", "warning :"};
    if (!n || line[0] == ' ' || line[0] == '\t')
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (memmem(line, n, words[i], strlen(words[i])))
            return true;
    return false;
}

static bool contains(const char *text, size_t n, const char *word)
{
    return memmem(text, n, word, strlen(word)) != NULL;
}

/* "3 errors detected in the compilation of ...": wrong once blocks are dropped. */
static bool is_summary(const char *line, size_t n)
{
    return isdigit((unsigned char)line[0]) && contains(line, n, "detected in the compilation of");
}

struct split {
    struct nv_buffer source; /* blocks about the source */
    struct nv_buffer names;  /* first lines of the blocks about kernel names */
    bool source_errors;
};

static void take_block(struct split *s, const char *block, size_t n)
{
    size_t line = strcspn(block, "\n");
    if (!strncmp(block, NAME_MAP, strlen(NAME_MAP))) {
        nv_add(&s->names, block, n);
        return;
    }
    if (starts_block(block, line) && contains(block, line, "error"))
        s->source_errors = true;
    nv_add(&s->source, block, n);
}

static void split_log(const char *log, struct split *s)
{
    const char *block = log;
    const char *line = log;
    while (*line) {
        size_t n = strcspn(line, "\n");
        const char *next = line + n + (line[n] == '\n');
        bool summary = is_summary(line, n);
        if (summary || starts_block(line, n)) {
            take_block(s, block, (size_t)(line - block));
            block = summary ? next : line;
        }
        line = next;
    }
    take_block(s, block, (size_t)(line - block));
}

/* ---- Kernels in a source -------------------------------------------------------------------- */

static const char *skip_blank(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (p[0] == '/' && p[1] == '/')
            p += strcspn(p, "\n");
        else if (p[0] == '/' && p[1] == '*' && strstr(p + 2, "*/"))
            p = strstr(p + 2, "*/") + 2;
        else
            return p;
    }
}

static size_t identifier(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return isdigit((unsigned char)p[0]) ? 0 : n;
}

static const char *skip_parentheses(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += *p == '(';
        depth -= *p == ')';
        if (!depth)
            return p + 1;
    }
    return p;
}

/*
 * The name in a declaration behind __global__: the last identifier before a parenthesis, where
 * __launch_bounds__ and its like have parentheses of their own. Length 0 when there is none.
 */
static const char *kernel_name(const char *p, size_t *length)
{
    *length = 0;
    for (int words = 0; words < 16; words++) {
        p = skip_blank(p);
        size_t n = identifier(p);
        if (!n)
            return p;
        const char *after = skip_blank(p + n);
        if (*after == '(' && p[0] == '_' && p[1] == '_') {
            p = skip_parentheses(after);
        } else if (*after == '(') {
            *length = n;
            return p;
        } else {
            p = after;
        }
    }
    return p;
}

static void list_kernels(const char *source, struct nv_buffer *out, int *count)
{
    for (const char *p = source; (p = strstr(p, "__global__")) && *count < 32; p += 10) {
        size_t n;
        const char *name = kernel_name(p + 10, &n);
        if (!n || n > 200)
            continue;
        const char *before = p;
        while (before > source && before[-1] != ';' && before[-1] != '}' && before[-1] != '{')
            before--;
        bool templated = contains(before, (size_t)(p - before), "template");
        nv_printf(out, "%s%.*s%s", *count ? ", " : "", (int)n, name, templated ? "<...>" : "");
        ++*count;
    }
}

static void add_kernels(const struct nv_request *request, struct nv_buffer *out)
{
    struct nv_buffer names = {0};
    int count = 0;
    for (uint32_t i = 0; i < request->n_files; i++)
        list_kernels(request->files[i].text.ptr, &names, &count);
    if (count)
        nv_printf(out,
                  "__global__ functions in the source: %s. Use one of these names in the launch "
                  "line, with its "
                  "namespace (ns::name) and with all template arguments that can't be deduced.\n",
                  nv_text(&names));
    else
        nv_puts(out, "The source has no __global__ function.\n");
    nv_free(&names);
}

void nv_diagnose_name(const char *expression, const char *why, const struct nv_request *request,
                      struct nv_buffer *out)
{
    nv_printf(out, "The launch line's kernel `%s` %s.\n", expression, why);
    add_kernels(request, out);
}

/* The compiler's first words about each wrong expression. */
static void tell_names(const char *names, const struct nv_request *request, struct nv_buffer *out)
{
    nv_puts(out, "The launch lines name kernels that the source does not have in that form:\n");
    for (const char *line = names; *line;) {
        size_t n = strcspn(line, "\n");
        const char *message = memmem(line, n, "error: ", 7);
        const char *pragma = memmem(line, n, "nv_mangled_name ", 16);
        if (!strncmp(line, NAME_MAP, strlen(NAME_MAP)) && message)
            nv_printf(out, "  %.*s\n", (int)(line + n - message - 7), message + 7);
        else if (pragma)
            nv_printf(out, "    in: %.*s\n", (int)(line + n - pragma - 16), pragma + 16);
        line += n + (line[n] == '\n');
    }
    add_kernels(request, out);
}

static void add_without(struct nv_buffer *out, const char *text, const char *word)
{
    const char *at;
    while ((at = strstr(text, word))) {
        nv_add(out, text, (size_t)(at - text));
        text = at + strlen(word);
    }
    nv_puts(out, text);
}

void nv_diagnose(const char *log, const struct nv_request *request, char code[32],
                 struct nv_buffer *out)
{
    struct split s = {0};
    split_log(log, &s);
    if (s.names.len && !s.source_errors) {
        snprintf(code, 32, "plan.error");
        tell_names(nv_text(&s.names), request, out);
    } else {
        snprintf(code, 32, "compile.error");
        /* The descriptor limit is how nothing outside can be read; the words mislead. */
        add_without(out, nv_text(&s.source), ": Too many open files");
        if (strstr(nv_text(&s.source), "open source file"))
            nv_puts(out,
                    "Only the files of this answer, CUDA's device headers (cuda_fp16.h, mma.h, "
                    "cooperative_groups.h, cub, cuda/std/...) and the usual C headers can be "
                    "included; host "
                    "libraries and other files can't.\n");
    }
    out->failed |= s.source.failed | s.names.failed;
    nv_free(&s.source);
    nv_free(&s.names);
}

void nv_add_cut(struct nv_buffer *out, const char *text, size_t n, size_t limit)
{
    if (n <= limit) {
        nv_add(out, text, n);
        return;
    }
    size_t head = limit / 4 * 3, tail = limit / 8;
    while (head && text[head - 1] != '\n' && head > limit / 2)
        head--;
    while (head && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    const char *end = text + n - tail;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++;
    const char *newline = memchr(end, '\n', (size_t)(text + n - end));
    if (newline)
        end = newline + 1;
    nv_add(out, text, head);
    nv_printf(out, "%s[%zu bytes cut here]\n", head && text[head - 1] == '\n' ? "" : "\n",
              (size_t)(end - text) - head);
    nv_add(out, end, (size_t)(text + n - end));
}
