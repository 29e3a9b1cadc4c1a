/* Choosing the headers of one program out of the store: see headers.h. */
#include "headers.h"
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

static const struct nv_header *find(const struct nv_store *store, const char *name)
{
    size_t low = 0, high = store->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(name, store->items[mid].name);
        if (order == 0)
            return &store->items[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
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
    serve(c, name, text);
    push(c, name, text);
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
    char *copy = strdup(written);
    char *text = malloc(size);
    if (!copy || !text) {
        c->out->failed = true;
        return;
    }
    snprintf(text, size, "#include \"%s\"\n", name);
    serve(c, copy, text);
}

/* One candidate meaning of an include; true when there is such a text. */
static bool try_name(struct collect *c, const char *written, const char *name)
{
    const struct nv_file *file = find_file(c->request, name);
    const struct nv_header *header = file ? NULL : find(c->store, name);
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
    }
}

/* Reading NV_STD takes longer than reading a small kernel. */
static bool mentions_std(const struct nv_request *request)
{
    for (uint32_t i = 0; i < request->n_files; i++)
        if (strstr(request->files[i].text.ptr, "std::") ||
            strstr(request->files[i].text.ptr, "namespace std"))
            return true;
    return false;
}

void nv_includes_collect(const struct nv_store *store, const struct nv_request *request,
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
    out->std = mentions_std(request);
    if (out->std)
        resolve(&c, "", NV_STD, false);
    push(&c, request->files[request->entry].path, request->files[request->entry].text.ptr);
    while (c.n_stack && !out->failed) {
        struct pending next = c.stack[--c.n_stack];
        scan(&c, next.path, next.text, "include");
    }
    free(c.stack);
    free(c.seen);
}
