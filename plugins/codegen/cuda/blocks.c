/* The code blocks of a markdown text, found by libcmark: see blocks.h. */
#include "blocks.h"
#include "source.h"
#include "text.h"
#include <cmark.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Tags of blocks that are no CUDA source whatever stands in them. */
static const char *const other_languages[] = {
    "python", "py",   "diff",  "patch", "bash",     "sh",       "shell", "console",
    "json",   "yaml", "cmake", "make",  "makefile", "markdown", "md",    "ptx",
    "asm",    "sass", "rust",  "julia", "html",     "mermaid",
};

bool cg_path_ok(const char *path)
{
    size_t n = strlen(path);
    if (!n || n >= CG_MAX_PATH || path[0] == '/' || path[n - 1] == '/')
        return false;
    if (strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") != n)
        return false;
    return !strstr(path, "..") && !strstr(path, "//") && !strstr(path, "./");
}

/* Takes the word of n bytes at p as a path when it looks like a source file's name. */
static bool take_path(struct cg_block *b, const char *p, size_t n)
{
    static const char *const endings[] = {".cu", ".cuh", ".h", ".hpp", ".inl", ".cpp"};
    char path[CG_MAX_PATH];
    while (n && strchr("`*\"':,()", p[n - 1]))
        n--;
    while (n && strchr("`*\"'(", *p)) {
        p++;
        n--;
    }
    if (n < 3 || n >= sizeof(path))
        return false;
    memcpy(path, p, n);
    path[n] = '\0';
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof(endings) / sizeof(*endings); i++)
        if (!strcmp(dot, endings[i]) && cg_path_ok(path)) {
            memcpy(b->path, path, n + 1);
            return true;
        }
    return false;
}

/* The first file name among the words of the line at p. */
static bool find_path(struct cg_block *b, const char *p)
{
    while (*p && *p != '\n') {
        size_t skip = strspn(p, " \t/#={}:");
        p += skip;
        size_t n = strcspn(p, " \t\n={}");
        if (n && take_path(b, p, n))
            return true;
        if (!n && !skip)
            break;
        p += n;
    }
    return false;
}

/* `// file: x.cuh` or `// x.cuh` in the first line of the code. */
static void path_of_comment(struct cg_block *b)
{
    const char *p = b->code + strspn(b->code, " \t\n");
    if (!strncmp(p, "//", 2) && p[2] != '@')
        find_path(b, p + 2);
}

/* "```cuda x.cuh", "```cuda title=x.cuh", "```cuda:x.cuh". */
static void read_info(struct cg_block *b, const char *info)
{
    size_t n = strcspn(info, " \t:{,");
    for (size_t i = 0; i < n && i + 1 < sizeof(b->language); i++)
        b->language[i] = (char)tolower((unsigned char)info[i]);
    find_path(b, info + n);
}

/* All text of a paragraph or heading, as one line. */
static void path_of_text(struct cg_block *b, cmark_node *node)
{
    cmark_iter *iter = cmark_iter_new(node);
    cmark_event_type event;
    while (!b->path[0] && iter && (event = cmark_iter_next(iter)) != CMARK_EVENT_DONE) {
        cmark_node *at = cmark_iter_get_node(iter);
        cmark_node_type type = cmark_node_get_type(at);
        const char *text =
            type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE ? cmark_node_get_literal(at) : NULL;
        if (event == CMARK_EVENT_ENTER && text)
            find_path(b, text);
    }
    cmark_iter_free(iter);
}

static const char *line_at(const char *text, int number)
{
    for (int i = 1; i < number && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* Whether the block starts with a fence, and not with four blanks. */
static bool is_fenced(const char *text, cmark_node *node)
{
    const char *line = line_at(text, cmark_node_get_start_line(node));
    size_t column = (size_t)cmark_node_get_start_column(node) - 1;
    if (!line || strcspn(line, "\n") < column)
        return false;
    line += column + strspn(line + column, " ");
    return !strncmp(line, "```", 3) || !strncmp(line, "~~~", 3);
}

/* Whether the line that cmark calls the block's last is a closing fence and not its opening one. */
static bool is_closed(const char *text, cmark_node *node)
{
    int first = cmark_node_get_start_line(node), last = cmark_node_get_end_line(node);
    const char *line = last > first ? line_at(text, last) : NULL;
    if (!line)
        return false;
    line += strspn(line, " \t>");
    size_t n = strspn(line, "`"), m = strspn(line, "~");
    n = n > m ? n : m;
    return n >= 3 &&
           (line[n + strspn(line + n, " \t")] == '\n' || !line[n + strspn(line + n, " \t")]);
}

bool cg_looks_like_python(const char *text)
{
    static const char *const starts[] = {"import ", "from ", "def ", "class ", "@triton", "@torch"};
    if (strstr(text, "\"\"\"") || strstr(text, "'''"))
        return true;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
            bool head = i == 2 || i == 3; /* def and class end in a colon somewhere */
            if (!strncmp(line, starts[i], strlen(starts[i])) &&
                (head ? memchr(line, ':', n) && memchr(line, '(', n) && !memchr(line, ';', n)
                      : !memchr(line, ';', n)))
                return true;
        }
        line += n + (line[n] != '\0');
    }
    return false;
}

static void classify(struct cg_block *b)
{
    struct cg_kernel kernel;
    size_t at = 0;
    b->kernels = cg_next_kernel(b->mask, &at, &kernel);
    b->plan = cg_has_plan(b->code);
    b->device_language = true;
    for (size_t i = 0; i < sizeof(other_languages) / sizeof(*other_languages); i++)
        b->device_language &= strcmp(b->language, other_languages[i]) != 0;
    b->python = cg_looks_like_python(b->code);
    bool change = !strcmp(b->language, "diff") || !strcmp(b->language, "patch");
    b->device_language |= b->kernels && !change; /* under a wrong tag */
    b->device_language &= !b->python;
}

static struct cg_block *new_block(struct cg_blocks *blocks, const char *code)
{
    struct cg_block *b = &blocks->list[blocks->n];
    *b = (struct cg_block){.code = strdup(code)};
    b->mask = b->code ? cg_mask(b->code) : NULL;
    if (!b->mask) {
        free(b->code);
        blocks->failed = true;
        return NULL;
    }
    blocks->n++;
    return b;
}

static void add_block(struct cg_blocks *blocks, const char *text, cmark_node *node)
{
    const char *info = cmark_node_get_fence_info(node);
    cmark_node *before = cmark_node_previous(node);
    struct cg_block *b = new_block(blocks, cmark_node_get_literal(node));
    if (!b)
        return;
    b->closed = !is_fenced(text, node) || is_closed(text, node);
    read_info(b, info ? info : "");
    if (!b->path[0])
        path_of_comment(b);
    if (!b->path[0] && before && cmark_node_get_type(before) != CMARK_NODE_CODE_BLOCK)
        path_of_text(b, before);
    classify(b);
}

static void read_document(struct cg_blocks *blocks, const char *text)
{
    cmark_node *document = cmark_parse_document(text, strlen(text), CMARK_OPT_DEFAULT);
    cmark_iter *iter = document ? cmark_iter_new(document) : NULL;
    cmark_event_type event;
    blocks->failed |= !iter;
    while (iter && (event = cmark_iter_next(iter)) != CMARK_EVENT_DONE &&
           blocks->n < CG_MAX_BLOCKS && !blocks->failed) {
        cmark_node *node = cmark_iter_get_node(iter);
        if (event == CMARK_EVENT_ENTER && cmark_node_get_type(node) == CMARK_NODE_CODE_BLOCK)
            add_block(blocks, text, node);
    }
    cmark_iter_free(iter);
    cmark_node_free(document);
}

/* A fence inside of the block, as where the whole answer stands in a block of markdown. */
static bool holds_fence(const struct cg_block *b)
{
    const char *fence = strncmp(b->code, "```", 3) ? strstr(b->code, "\n```") : b->code;
    bool markdown = !strcmp(b->language, "markdown") || !strcmp(b->language, "md") ||
                    !strcmp(b->language, "text") || !b->language[0];
    return fence && markdown && strstr(fence, "__global__");
}

void cg_blocks_read(struct cg_blocks *blocks, const char *text)
{
    read_document(blocks, text);
    size_t n = blocks->n;
    for (size_t i = 0; i < n && !blocks->failed; i++) {
        struct cg_block *b = &blocks->list[i];
        if (!holds_fence(b))
            continue;
        read_document(blocks, b->code);
        b->device_language = b->kernels = b->plan = false;
    }
}

void cg_blocks_whole(struct cg_blocks *blocks, const char *text)
{
    struct cg_block *b = new_block(blocks, text);
    if (b)
        classify(b);
}

void cg_blocks_free(struct cg_blocks *blocks)
{
    for (size_t i = 0; i < blocks->n; i++) {
        free(blocks->list[i].code);
        free(blocks->list[i].mask);
    }
    blocks->n = 0;
}
