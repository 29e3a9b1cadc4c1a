/* Reading the catalog's folder: bounded, every fault with its file and line. */
#include "store.h"
#include "match.h"
#include "render.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_FILE = 64 << 10, /* bytes */
    MAX_PATH = 4096,
    MAX_IDEA = 300, /* bytes */
};

struct place {
    const char *path;
    uint32_t line;
    struct rung_error *error;
};

static int32_t fault(const struct place *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int32_t fault(const struct place *at, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return llm_fail(at->error, RUNG_ECONFIG, "catalog.file", "%s:%u: %s", at->path, at->line, what);
}

static int32_t no_memory(struct rung_error *error)
{
    return llm_fail(error, RUNG_ENOMEM, "catalog.memory", "no memory for the catalog");
}

static bool is_word(struct llm_span span)
{
    if (span.len == 0 || span.len > 63 || !islower((unsigned char)span.ptr[0]))
        return false;
    for (size_t i = 0; i < span.len; ++i)
        if (!islower((unsigned char)span.ptr[i]) && !isdigit((unsigned char)span.ptr[i]) &&
            span.ptr[i] != '_')
            return false;
    return true;
}

static int32_t set(char **field, struct llm_span value, const char *name, const struct place *at)
{
    if (*field)
        return fault(at, "a second '%s'", name);
    *field = strndup(value.ptr, value.len);
    return *field ? RUNG_OK : no_memory(at->error);
}

static int32_t read_unroll(struct kernel *kernel, struct llm_span value, const struct place *at)
{
    uint32_t number = 0;
    bool digits = false;
    for (size_t i = 0; i <= value.len; ++i) {
        const char c = i < value.len ? value.ptr[i] : ',';
        if (isdigit((unsigned char)c) && number < 100) {
            number = number * 10 + (uint32_t)(c - '0');
            digits = true;
        } else if (c == ',' && digits && number >= 1 && number <= 64 &&
                   kernel->n_unroll < STORE_MAX_UNROLL) {
            kernel->unroll[kernel->n_unroll++] = number;
            number = 0;
            digits = false;
        } else if (c != ' ') {
            return fault(at, "'unroll' takes 1 to %d numbers from 1 to 64, with commas",
                         STORE_MAX_UNROLL);
        }
    }
    return RUNG_OK;
}

/* A `graph` line begins a form, `tensors` and `let` belong to the last one. */
static int32_t read_form(struct kernel *kernel, struct llm_span name, struct llm_span value,
                         const struct place *at)
{
    if (llm_span_is(name, "graph")) {
        if (kernel->n_forms == STORE_MAX_FORMS)
            return fault(at, "more than %d 'graph' lines", STORE_MAX_FORMS);
        return set(&kernel->forms[kernel->n_forms++].graph, value, "graph", at);
    }
    if (kernel->n_forms == 0)
        return fault(at, "'%.*s' before any 'graph'", (int)name.len, name.ptr);
    struct form *form = &kernel->forms[kernel->n_forms - 1];
    return llm_span_is(name, "let") ? set(&form->let, value, "let", at)
                                    : set(&form->tensors, value, "tensors", at);
}

/* One "// name: value" line of the header. */
static int32_t read_field(struct kernel *kernel, struct llm_span name, struct llm_span value,
                          const struct place *at)
{
    if (llm_span_is(name, "operator"))
        return llm_span_is(value, kernel->family)
                   ? RUNG_OK
                   : fault(at, "operator '%.*s' in folder '%s'", (int)value.len, value.ptr,
                           kernel->family);
    if (llm_span_is(name, "idea")) {
        if (value.len < 10 || value.len > MAX_IDEA || value.ptr[value.len - 1] != '.')
            return fault(at, "'idea' is one sentence of 10 to %d bytes that ends with a full stop",
                         MAX_IDEA);
        return set(&kernel->idea, value, "idea", at);
    }
    if (llm_span_is(name, "category"))
        return is_word(value) ? set(&kernel->category, value, "category", at)
                              : fault(at, "'category' is one word in lower case");
    if (llm_span_is(name, "after"))
        return is_word(value) ? set(&kernel->after, value, "after", at)
                              : fault(at, "'after' is a file of this folder without .cu, or none");
    if (llm_span_is(name, "unroll"))
        return kernel->n_unroll ? fault(at, "a second 'unroll'") : read_unroll(kernel, value, at);
    if (llm_span_is(name, "graph") || llm_span_is(name, "tensors") || llm_span_is(name, "let"))
        return read_form(kernel, name, value, at);
    return fault(at,
                 "unknown header field '%.*s'; known: operator, idea, category, after, unroll, "
                 "graph, tensors, let",
                 (int)(name.len < 40 ? name.len : 40), name.ptr);
}

/* The header ends at the first line that is no "// " comment. */
static int32_t read_text(struct kernel *kernel, struct llm_span rest, struct place *at)
{
    struct llm_span line, body = rest;
    bool operator_seen = false;
    while (llm_next_line(&rest, &line) && llm_span_starts(line, "// ")) {
        at->line++;
        line = llm_trim((struct llm_span){line.ptr + 3, line.len - 3});
        const char *colon = memchr(line.ptr, ':', line.len);
        if (!colon)
            return fault(at, "a header line reads '// name: value'");
        const struct llm_span name = {line.ptr, (size_t)(colon - line.ptr)};
        const struct llm_span value = {colon + 1, line.len - name.len - 1};
        operator_seen |= llm_span_is(name, "operator");
        const int32_t status = read_field(kernel, name, llm_trim(value), at);
        if (status != RUNG_OK)
            return status;
        body = rest;
    }
    if (!operator_seen || !kernel->idea || !kernel->category || !kernel->after)
        return fault(at, "the header lacks one of operator, idea, category, after");
    if (strcmp(kernel->after, "none") == 0) {
        free(kernel->after);
        kernel->after = NULL;
    }
    if (!kernel->n_unroll)
        kernel->unroll[kernel->n_unroll++] = 1;
    if (!kernel->after && !kernel->n_forms)
        return fault(at, "a first kernel says in 'graph' which tasks it serves");
    char problem[256];
    for (uint32_t i = 0; i < kernel->n_forms; ++i)
        if (!match_check(&kernel->forms[i], problem, sizeof problem))
            return fault(at, "form %u: %s", i + 1, problem);
    kernel->n_header = at->line;
    kernel->body = strndup(body.ptr, body.len);
    return kernel->body ? RUNG_OK : no_memory(at->error);
}

static int32_t read_bytes(const char *path, char *bytes, size_t *n, struct rung_error *error)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        const int32_t status = llm_fail(error, RUNG_EIO, "catalog.read", "%s: %s", path,
                                        fd < 0 ? strerror(errno) : "not a plain file");
        if (fd >= 0)
            close(fd);
        return status;
    }
    ssize_t got = 1;
    *n = 0;
    while (*n <= MAX_FILE && got > 0) {
        got = read(fd, bytes + *n, MAX_FILE + 1 - *n);
        *n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (got < 0 || *n > MAX_FILE || memchr(bytes, 0, *n))
        return llm_fail(error, RUNG_EIO, "catalog.read",
                        "%s: unreadable, binary or larger than %d KiB", path, MAX_FILE >> 10);
    return RUNG_OK;
}

static void kernel_free(struct kernel *kernel)
{
    free(kernel->family);
    free(kernel->stem);
    free(kernel->idea);
    free(kernel->category);
    free(kernel->after);
    free(kernel->body);
    for (uint32_t i = 0; i < kernel->n_forms; ++i) {
        free(kernel->forms[i].graph);
        free(kernel->forms[i].tensors);
        free(kernel->forms[i].let);
    }
}

static int32_t add_kernel(struct store *store, const struct kernel *kernel,
                          struct rung_error *error)
{
    if (store->n == STORE_MAX_KERNELS)
        return llm_fail(error, RUNG_ECONFIG, "catalog.file", "more than %d kernels in the catalog",
                        STORE_MAX_KERNELS);
    if (store->n == store->cap) {
        const uint32_t cap = store->cap ? store->cap * 2 : 32;
        struct kernel *kernels = realloc(store->kernels, cap * sizeof *kernels);
        if (!kernels)
            return no_memory(error);
        store->kernels = kernels;
        store->cap = cap;
    }
    store->kernels[store->n++] = *kernel;
    return RUNG_OK;
}

static int32_t read_kernel(struct store *store, const char *path, const char *family,
                           struct llm_span stem, struct rung_error *error)
{
    struct place at = {path, 0, error};
    struct kernel kernel = {.family = strdup(family), .stem = strndup(stem.ptr, stem.len)};
    char *bytes = malloc(MAX_FILE + 1);
    size_t n = 0;
    int32_t status = bytes && kernel.family && kernel.stem ? RUNG_OK : no_memory(error);
    if (status == RUNG_OK)
        status = read_bytes(path, bytes, &n, error);
    if (status == RUNG_OK)
        status = read_text(&kernel, (struct llm_span){bytes, n}, &at);
    if (status == RUNG_OK)
        status = add_kernel(store, &kernel, error);
    if (status != RUNG_OK)
        kernel_free(&kernel);
    free(bytes);
    return status;
}

/* Calls one of read_family or read_kernel for each entry, in the order of names. */
static int32_t read_dir(struct store *store, const char *dir, const char *family,
                        struct rung_error *error)
{
    struct dirent **names = NULL;
    const int n = scandir(dir, &names, NULL, alphasort);
    if (n < 0)
        return llm_fail(error, RUNG_EIO, "catalog.dir", "%s: %s", dir, strerror(errno));
    int32_t status = RUNG_OK;
    for (int i = 0; i < n; ++i) {
        const char *name = names[i]->d_name;
        const size_t len = strlen(name);
        const bool source = family && len > 3 && strcmp(name + len - 3, ".cu") == 0;
        const struct llm_span word = {name, source ? len - 3 : len};
        char path[MAX_PATH];
        const bool fits = snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path;
        struct stat st;
        if (status == RUNG_OK && fits && is_word(word)) {
            if (source)
                status = read_kernel(store, path, family, word, error);
            else if (!family && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                status = read_dir(store, path, name, error);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

/* Every `after` names a kernel of its family, and following them ends. */
static int32_t check_after(const struct store *store, struct rung_error *error)
{
    for (uint32_t i = 0; i < store->n; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        const struct kernel *first = kernel;
        uint32_t steps = 0;
        while (first && first->after && steps++ <= store->n) {
            const struct llm_span family = {first->family, strlen(first->family)};
            first =
                store_find(store, family, (struct llm_span){first->after, strlen(first->after)});
        }
        if (!first || steps > store->n)
            return llm_fail(error, RUNG_ECONFIG, "catalog.file",
                            "catalog kernel %s/%s: 'after: %s' %s", kernel->family, kernel->stem,
                            kernel->after,
                            first ? "leads back to itself" : "leads to no kernel of this folder");
    }
    return RUNG_OK;
}

/* Every placeholder of a body is one of each form that the kernel serves. */
static int32_t check_body(const struct store *store, const struct kernel *kernel, const char *dir,
                          struct match *scratch, struct rung_error *error)
{
    const struct kernel *owner = store_forms(store, kernel);
    for (uint32_t i = 0; i < owner->n_forms; ++i) {
        char path[MAX_PATH], problem[256];
        uint32_t line = 0;
        match_itself(&owner->forms[i], scratch);
        if (render_check((struct llm_span){kernel->body, strlen(kernel->body)}, scratch, problem,
                         sizeof problem, &line))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s.cu", dir, kernel->family, kernel->stem);
        const struct place at = {path, kernel->n_header + line, error};
        return fault(&at, "%s", problem);
    }
    return RUNG_OK;
}

static int32_t check_bodies(const struct store *store, const char *dir, struct rung_error *error)
{
    struct match *scratch = malloc(sizeof *scratch);
    int32_t status = scratch ? RUNG_OK : no_memory(error);
    for (uint32_t i = 0; status == RUNG_OK && i < store->n; ++i)
        status = check_body(store, &store->kernels[i], dir, scratch, error);
    free(scratch);
    return status;
}

int32_t store_open(const char *dir, struct store *store, struct rung_error *error)
{
    *store = (struct store){0};
    int32_t status = read_dir(store, dir, NULL, error);
    if (status == RUNG_OK && store->n == 0)
        status = llm_fail(error, RUNG_ECONFIG, "catalog.dir", "%s holds no OPERATOR/NAME.cu", dir);
    if (status == RUNG_OK)
        status = check_after(store, error);
    if (status == RUNG_OK)
        status = check_bodies(store, dir, error);
    if (status != RUNG_OK)
        store_close(store);
    return status;
}

void store_close(struct store *store)
{
    for (uint32_t i = 0; i < store->n; ++i)
        kernel_free(&store->kernels[i]);
    free(store->kernels);
    *store = (struct store){0};
}

const struct kernel *store_find(const struct store *store, struct llm_span family,
                                struct llm_span stem)
{
    for (uint32_t i = 0; i < store->n; ++i)
        if (llm_span_is(family, store->kernels[i].family) &&
            llm_span_is(stem, store->kernels[i].stem))
            return &store->kernels[i];
    return NULL;
}

const struct kernel *store_forms(const struct store *store, const struct kernel *kernel)
{
    while (kernel->n_forms == 0 && kernel->after) {
        const struct llm_span family = {kernel->family, strlen(kernel->family)};
        kernel = store_find(store, family, (struct llm_span){kernel->after, strlen(kernel->after)});
    }
    return kernel;
}
