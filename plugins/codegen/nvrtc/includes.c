/* Choosing the headers of one program out of the store: see headers.h. */
#include "headers.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 512 };

/* A text whose includes are still to be looked at; path is what relative names are relative to. */
struct pending {
    const char *path, *text;
};

struct collect {
    const struct nv_store *store;
    const struct nv_request *request;
    struct nv_includes *out;
    unsigned char *seen,
        *seen_files; /* one a store item and one a file: served under its own name */
    struct pending *stack;
    size_t n_stack, cap_stack;
};

static void *grow(void *array, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 128;
    void *bigger = realloc(array, more * size);
    if (bigger)
        *cap = more;
    return bigger;
}

static void push(struct collect *c, const char *path, const char *text)
{
    if (c->n_stack == c->cap_stack) {
        void *bigger = grow(c->stack, &c->cap_stack, sizeof(*c->stack));
        if (!bigger) {
            c->out->failed = true;
            return;
        }
        c->stack = bigger;
    }
    c->stack[c->n_stack++] = (struct pending){path, text};
}

static void serve(struct collect *c, const char *name, const char *text)
{
    struct nv_includes *out = c->out;
    if (out->n == out->cap) {
        size_t cap = (size_t)out->cap, again = cap;
        const char **names = grow(out->names, &cap, sizeof(*names));
        if (names)
            out->names = names;
        const char **texts = grow(out->texts, &again, sizeof(*texts));
        if (texts)
            out->texts = texts;
        if (!names || !texts) {
            out->failed = true;
            return;
        }
        out->cap = (int)cap;
    }
    out->names[out->n] = name;
    out->texts[out->n++] = text;
}

/* `name` as seen from the file `path`, without . and ..; false when it leads out or is too long. */
static bool join(const char *path, const char *name, char out[MAX_NAME])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n + strlen(name) + 2 > MAX_NAME)
        return false;
    memcpy(out, path, n);
    while (*name) {
        size_t part = strcspn(name, "/");
        if (part == 2 && !memcmp(name, "..", 2)) {
            if (!n)
                return false;
            while (n && out[n - 1] != '/')
                n--;
            n -= n > 0;
        } else if (part && !(part == 1 && *name == '.')) {
            if (n)
                out[n++] = '/';
            memcpy(out + n, name, part);
            n += part;
        }
        name += part + (name[part] == '/');
    }
    out[n] = '\0';
    return n > 0;
}

static const struct nv_file *find_file(const struct nv_request *request, const char *name)
{
    for (uint32_t i = 0; i < request->n_files; i++)
        if (!strcmp(request->files[i].path, name))
            return &request->files[i];
    return NULL;
}

static bool served(const struct nv_includes *out, const char *name)
{
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->names[i], name))
            return true;
    return false;
}

/* Aliases stand in `made` as name, text, name, text. */
static bool is_alias(const struct nv_includes *out, const char *name)
{
    for (int i = 0; i < out->n_made; i += 2)
        if (!strcmp(out->made[i], name))
            return true;
    return false;
}

/* Serves a header's or file's text under its own name, once, and looks through it later. */
static void serve_own(struct collect *c, const struct nv_file *file, const struct nv_header *header)
{
    const char *name = file ? file->path : header->name;
    const char *text = file ? file->text.ptr : header->text;
    unsigned char *seen =
        file ? &c->seen_files[file - c->request->files] : &c->seen[header - c->store->items];
    if (*seen)
        return;
    *seen = 1;
    if (!is_alias(c->out, name)) /* NVRTC 12 refuses one name twice */
        serve(c, name, text);
    push(c, name, text);
}

/* Keeps an allocation for nv_includes_free; NULL when memory is out. */
static char *own(struct nv_includes *out, char *allocated)
{
    if (allocated && out->n_made == out->cap_made) {
        size_t cap = (size_t)out->cap_made;
        char **made = grow(out->made, &cap, sizeof(*made));
        if (made) {
            out->made = made;
            out->cap_made = (int)cap;
        }
    }
    if (!allocated || out->n_made == out->cap_made) {
        free(allocated);
        out->failed = true;
        return NULL;
    }
    return out->made[out->n_made++] = allocated;
}

/*
 * Under another name, as in `#include "../b.h"`, a text is served as an include of its own name, so
 * that it is one file to `#pragma once` and to messages.
 */
static void serve_alias(struct collect *c, const char *written, const char *name)
{
    size_t size = strlen(name) + sizeof("#include \"\"\n");
    if (served(c->out, written))
        return;
    char *copy = own(c->out, strdup(written));
    char *text = own(c->out, malloc(size));
    if (!copy || !text)
        return;
    snprintf(text, size, "#include \"%s\"\n", name);
    serve(c, copy, text);
}

/* One candidate meaning of an include; true when there is such a text. */
static bool try_name(struct collect *c, const char *written, const char *name)
{
    const struct nv_file *file = find_file(c->request, name);
    const struct nv_header *header = file ? NULL : nv_store_find(c->store, name);
    if (!file && !header)
        return false;
    if (strcmp(written, name))
        serve_alias(c, written, name);
    serve_own(c, file, header);
    return true;
}

static void resolve(struct collect *c, const char *from, const char *written, bool quoted)
{
    char name[MAX_NAME];
    if (quoted && join(from, written, name) && try_name(c, written, name))
        return;
    if (try_name(c, written, written))
        return;
    if (join("", written, name))
        try_name(c, written, name);
}

/* A <name> or "name" at p (blanks and one parenthesis before it are skipped); NULL when none. */
static bool read_name(const char *p, char out[MAX_NAME], bool *quoted)
{
    p += strspn(p, " \t(");
    *quoted = *p == '"';
    if (*p != '"' && *p != '<')
        return false;
    size_t n = strcspn(++p, *quoted ? "\"\n" : ">\n");
    if (!n || n >= MAX_NAME || p[n] == '\n' || !p[n])
        return false;
    memcpy(out, p, n);
    out[n] = '\0';
    return true;
}

/*
 * `#include NAME`, with `#define NAME <MACRO/rest>` in the same text, as Thrust has it: all of the
 * store's headers that end with /rest, since what MACRO stands for is not known here.
 */
static void resolve_macro(struct collect *c, const char *text, const char *at)
{
    char define[MAX_NAME], name[MAX_NAME];
    bool quoted;
    at += strspn(at, " \t");
    size_t n = strcspn(at, " \t\r\n");
    if (!n || n > MAX_NAME - 16 || !(isalpha((unsigned char)*at) || *at == '_'))
        return;
    snprintf(define, sizeof(define), "define %.*s", (int)n, at);
    const char *value = strstr(text, define);
    if (!value || !read_name(value + strlen(define), name, &quoted) || quoted)
        return;
    const char *rest = strchr(name, '/');
    size_t length = rest ? strlen(rest) : 0;
    for (size_t i = 0; rest && i < c->store->n; i++) {
        size_t all = strlen(c->store->items[i].name);
        if (all > length && !strcmp(c->store->items[i].name + all - length, rest))
            serve_own(c, NULL, &c->store->items[i]);
    }
}

static void scan(struct collect *c, const char *path, const char *text, const char *word)
{
    char name[MAX_NAME];
    bool quoted;
    size_t n = strlen(word);
    for (const char *p = text; !c->out->failed && (p = strstr(p, word)); p += n) {
        const char *after = p + n;
        if (!strncmp(after, "_next", 5))
            after += 5;
        if (read_name(after, name, &quoted))
            resolve(c, path, name, quoted);
        else if (p > text && p[-1] == '#')
            resolve_macro(c, text, after);
    }
}

void nv_includes_collect(const struct nv_store *store, const struct nv_request *request, bool std,
                         struct nv_includes *out)
{
    struct collect c = {.store = store, .request = request, .out = out};
    c.seen = calloc(store->n + request->n_files + 1, 1);
    if (!c.seen) {
        out->failed = true;
        return;
    }
    c.seen_files = c.seen + store->n;
    resolve(&c, "", NV_PRELUDE, false);
    if (std)
        resolve(&c, "", NV_STD, false);
    push(&c, request->files[request->entry].path, request->files[request->entry].text.ptr);
    while (c.n_stack && !out->failed) {
        struct pending next = c.stack[--c.n_stack];
        scan(&c, next.path, next.text, "include");
    }
    free(c.stack);
    free(c.seen);
}

void nv_includes_free(struct nv_includes *includes)
{
    for (int i = 0; i < includes->n_made; i++)
        free(includes->made[i]);
    free(includes->made);
    free(includes->names);
    free(includes->texts);
    *includes = (struct nv_includes){0};
}

void nv_includes_tell_host(const struct nv_request *request, struct nv_buffer *out)
{
    char name[MAX_NAME];
    bool quoted;
    int n = 0;
    for (uint32_t i = 0; i < request->n_files; i++)
        for (const char *p = request->files[i].text.ptr; (p = strstr(p, "#include")) && n < 8; p++)
            if (read_name(p + 8, name, &quoted) && !find_file(request, name) &&
                nv_stub_is_host(name))
                nv_printf(out, "%s<%s>", n++ ? ", " : "", name);
    if (n)
        nv_printf(
            out,
            " %s empty here, since only device code is compiled: leave host functions out; the "
            "launch lines start the kernels.\n",
            n == 1 ? "is" : "are");
}

/* ---- The head ------------------------------------------------------------------------------- */

/* The name in the #include line at p; returns the line's end, or NULL when it is another line. */
static const char *read_include(const char *p, char name[MAX_NAME], bool *quoted)
{
    if (*p++ != '#')
        return NULL;
    p += strspn(p, " \t");
    if (strncmp(p, "include", 7))
        return NULL;
    p += 7 + strspn(p + 7, " \t");
    if (*p == '(' || !read_name(p, name, quoted))
        return NULL;
    p += strlen(name) + 2;
    p += strspn(p, " \t\r");
    if (p[0] == '/' && p[1] == '/')
        p += strcspn(p, "\n");
    return *p == '\n' || !*p ? p : NULL;
}

/* Behind blanks and comments; NULL when the compiler would have a word to say about a comment. */
static const char *skip_plain(const char *p)
{
    const char *end = nv_skip_blank(p);
    while (p < end) {
        const char *close = p[0] == '/' && p[1] == '*' ? strstr(p + 2, "*/") : NULL;
        if (close) {
            if (memmem(p + 2, (size_t)(close - p - 2), "/*", 2))
                return NULL;
            p = close + 2;
        } else if (p[0] == '/') {
            p += strcspn(p, "\n");
            if (p[-1] == '\\' || (p[-1] == '\r' && p[-2] == '\\'))
                return NULL;
        } else {
            p++;
        }
    }
    return end;
}

/* Whether another file of the request takes the name of a header that others may include. */
static bool shadows(const struct nv_store *store, const struct nv_request *request)
{
    for (uint32_t i = 0; i < request->n_files; i++)
        if (i != request->entry && nv_store_find(store, request->files[i].path))
            return true;
    return false;
}

/* The store's header that `name` means in the entry file; NULL when a file of the request may be
 * meant. */
static const struct nv_header *plain_header(const struct nv_store *store,
                                            const struct nv_request *request, const char *name)
{
    char joined[MAX_NAME];
    if (find_file(request, name) ||
        (join(request->files[request->entry].path, name, joined) && find_file(request, joined)))
        return NULL;
    return nv_store_find(store, name);
}

size_t nv_includes_head(const struct nv_store *store, const struct nv_request *request, char *out,
                        size_t size)
{
    char name[MAX_NAME];
    bool quoted;
    size_t n = 0, worth = 0;
    const char *p = request->files[request->entry].text.ptr;
    if (shadows(store, request))
        return 0;
    while ((p = skip_plain(p)) && (p = read_include(p, name, &quoted))) {
        const struct nv_header *header = plain_header(store, request, name);
        if (!header)
            break;
        int added = snprintf(out + n, size - n, "#include %s%s%s\n", quoted ? "\"" : "<", name,
                             quoted ? "\"" : ">");
        if ((size_t)added >= size - n)
            break;
        n += (size_t)added;
        worth = header->rank ? n : worth;
    }
    out[worth] = '\0';
    return worth;
}
