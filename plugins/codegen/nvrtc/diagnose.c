/* From NVRTC's log to what a model is told: see diagnose.h. */
#include "diagnose.h"
#include "names.h"
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

static void add_kernels(const struct nv_request *request, struct nv_buffer *out)
{
    struct nv_buffer names = {0};
    int count = 0;
    for (uint32_t i = 0; i < request->n_files; i++)
        nv_list_kernels(request->files[i].text.ptr, &names, &count);
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

/* The variables that the plan may upload to, with the one that was probably meant. */
static void add_variables(const char *wanted, const struct nv_request *request,
                          struct nv_buffer *out)
{
    struct nv_names names = {.n = 0};
    for (uint32_t i = 0; i < request->n_files; i++)
        nv_list_variables(request->files[i].text.ptr, &names);
    const struct rung_text *nearest = nv_nearest(&names, wanted);
    if (nearest)
        nv_printf(out, "Did you mean `%.*s`? ", (int)nearest->len, nearest->ptr);
    for (uint32_t i = 0; i < names.n; i++)
        nv_printf(out, "%s%.*s", i ? ", " : "__constant__ and __device__ variables in the source: ",
                  (int)names.items[i].len, names.items[i].ptr);
    nv_puts(out, names.n ? ". Name one with its namespace (ns::name).\n"
                         : "The source has no __constant__ or __device__ variable.\n");
}

void nv_diagnose_symbol(const char *expression, const char *why, const struct nv_request *request,
                        struct nv_buffer *out)
{
    nv_printf(out, "The plan uploads to `%s`, which %s.\n", expression, why);
    add_variables(expression, request, out);
}

/* Where the expression stands that a block about a name is about; its length, 0 when none does. */
static const char *block_expression(const char *block, size_t n, size_t *length)
{
    static const char mark[] = "nv_mangled_name ";
    const char *at = memmem(block, n, mark, sizeof(mark) - 1);
    const char *text = at ? at + sizeof(mark) - 1 : block;
    const char *end = at ? memchr(text, '\n', (size_t)(block + n - text)) : text;
    *length = (size_t)((end ? end : block + n) - text);
    return text;
}

static const char *asked_symbol(const struct nv_request *request, const char *text, size_t n)
{
    for (uint32_t i = 0; i < request->n_symbols && n && text[0] == '&'; i++)
        if (strlen(request->symbols[i]) == n - 1 && !memcmp(request->symbols[i], text + 1, n - 1))
            return request->symbols[i];
    return NULL;
}

static size_t block_length(const char *block)
{
    const char *next = strstr(block + 1, "\n" NAME_MAP);
    return next ? (size_t)(next + 1 - block) : strlen(block);
}

/* The compiler's first words about each wrong expression: of kernels, or of variables. */
static int tell_blocks(const char *names, const struct nv_request *request, bool variables,
                       struct nv_buffer *out)
{
    int told = 0;
    size_t n, length;
    const char *last = NULL; /* the expression told last: NVRTC has two errors for one */
    size_t n_last = 0;
    for (const char *block = names; *block; block += n) {
        n = block_length(block);
        size_t line = strcspn(block, "\n");
        const char *text = block_expression(block, n, &length);
        const char *message = memmem(block, line, "error: ", 7);
        const char *symbol = asked_symbol(request, text, length);
        bool again = last && length == n_last && !memcmp(text, last, n_last);
        if (variables != (symbol != NULL) || !message || again)
            continue;
        last = text;
        n_last = length;
        if (!told++)
            nv_puts(out, variables
                             ? "The plan uploads to variables that the source does not have:\n"
                             : "The launch lines name kernels that the source does not have in "
                               "that form:\n");
        nv_printf(out, "  %.*s\n", (int)(block + line - message - 7), message + 7);
        if (length)
            nv_printf(out, "    in: %.*s\n", (int)length, text);
        if (symbol)
            add_variables(symbol, request, out);
    }
    return told;
}

static void tell_names(const char *names, const struct nv_request *request, struct nv_buffer *out)
{
    if (tell_blocks(names, request, false, out))
        add_kernels(request, out);
    tell_blocks(names, request, true, out);
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

void nv_diagnose(const char *log, const struct nv_request *request, const char *offer,
                 char code[32], struct nv_buffer *out)
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
            nv_printf(out,
                      "Only the files of this answer, %s can be included; host libraries and other "
                      "files can't.\n",
                      offer);
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
