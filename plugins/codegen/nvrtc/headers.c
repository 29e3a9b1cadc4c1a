/* Filling the store: see headers.h. Choosing out of it is in includes.c; texts of ours in stubs.c.
 */
#include "headers.h"
#include "api.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 12, MAX_FILES = 40000, MAX_FILE_BYTES = 2 << 20 };
#define MAX_BYTES ((size_t)256 << 20)

/* Of a toolkit's include directory only what concerns device code: the rest is megabytes of
 * libraries. */
static const char *const toolkit_prefixes[] = {
    "cuda_",         "cudart",   "cuComplex",
    "curand",        "mma",      "cooperative_groups",
    "math_",         "vector_",  "builtin_types",
    "device_",       "host_",    "sm_",
    "surface_",      "texture_", "driver_types",
    "library_types", "channel_", "common_functions",
    "nvfunctional",  "crt",      "nv",
    "cuda",          "cub",      "thrust",
};
static const char *const toolkit_dirs[] = {"crt", "nv",     "cuda",
                                           "cub", "thrust", "cooperative_groups"};

/* A file that will be read. */
struct found {
    char *path;
    char *name;
    size_t size;
    uint32_t rank;
};

struct walk {
    struct found *files;
    size_t n, cap;
    size_t bytes;
    bool failed; /* memory is out, or a limit is passed */
};

static bool listed(const char *const *list, size_t n, const char *name, bool prefix)
{
    for (size_t i = 0; i < n; i++)
        if (prefix ? !strncmp(name, list[i], strlen(list[i])) : !strcmp(name, list[i]))
            return true;
    return false;
}
#define LISTED(list, name, prefix) listed((list), sizeof(list) / sizeof(*(list)), (name), (prefix))

static void add_file(struct walk *w, const char *path, const char *name, size_t size, uint32_t rank)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 1024;
        struct found *files = realloc(w->files, cap * sizeof(*files));
        if (!files) {
            w->failed = true;
            return;
        }
        w->files = files;
        w->cap = cap;
    }
    struct found f = {strdup(path), strdup(name), size, rank};
    w->bytes += size + 1;
    w->files[w->n++] = f;
    if (!f.path || !f.name || w->n > MAX_FILES || w->bytes > MAX_BYTES)
        w->failed = true;
}

/* All files below root/sub; `toolkit` keeps to the lists above in the topmost directory. */
static bool walk_dir(struct walk *w, const char *root, const char *sub, uint32_t rank, bool toolkit,
                     int depth)
{
    char path[PATH_MAX], name[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", root, sub);
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    struct dirent *entry;
    struct stat st;
    while (!w->failed && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' ||
            (toolkit && !sub[0] && !LISTED(toolkit_prefixes, entry->d_name, true)))
            continue;
        int a = snprintf(name, sizeof(name), "%s%s%s", sub, sub[0] ? "/" : "", entry->d_name);
        int b = snprintf(path, sizeof(path), "%s/%s", root, name);
        if (a >= PATH_MAX || b >= PATH_MAX || stat(path, &st))
            continue;
        if (S_ISREG(st.st_mode) && st.st_size <= MAX_FILE_BYTES)
            add_file(w, path, name, (size_t)st.st_size, rank);
        else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH &&
                 (!toolkit || sub[0] || LISTED(toolkit_dirs, entry->d_name, false)))
            walk_dir(w, root, name, rank, toolkit, depth + 1);
    }
    closedir(dir);
    return true;
}

/* Where headers lie as seen from the library's directory: toolkits, then wheels. */
static void walk_toolkit(struct walk *w, const char *library, uint32_t rank)
{
    static const char *const places[] = {"../include", "../../include", "../../../include",
                                         "../../cuda_runtime/include", "../../cuda_cccl/include"};
    char root[PATH_MAX], probe[PATH_MAX + 32];
    struct stat st;
    const char *slash = strrchr(library, '/');
    if (!slash)
        return;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        snprintf(root, sizeof(root), "%.*s/%s", (int)(slash - library), library, places[i]);
        snprintf(probe, sizeof(probe), "%s/cuda_fp16.h", root);
        bool toolkit = stat(probe, &st) == 0;
        snprintf(probe, sizeof(probe), "%s/cuda/std", root);
        if (!toolkit && stat(probe, &st))
            continue;
        walk_dir(w, root, "", rank, true, 0);
        snprintf(probe, sizeof(probe), "%s/cccl", root);
        walk_dir(w, probe, "", rank, true, 0);
        if (i < 3)
            return;
    }
}

bool nv_store_add(struct nv_store *store, const char *name, const char *text, uint32_t rank)
{
    if (store->n == store->cap) {
        size_t cap = store->cap ? store->cap * 2 : 256;
        struct nv_header *items = realloc(store->items, cap * sizeof(*items));
        if (!items)
            return false;
        store->items = items;
        store->cap = cap;
    }
    store->items[store->n++] = (struct nv_header){name, text, rank};
    return true;
}

/* The whole file at `to`, which has room for size + 1 bytes. false when it changed or can't be
 * read. */
static bool read_into(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    ssize_t n = 1;
    while (fd >= 0 && got < size && (n = read(fd, to + got, size - got)) > 0)
        got += (size_t)n;
    if (fd >= 0)
        close(fd);
    to[got] = '\0';
    return fd >= 0 && got == size && !memchr(to, '\0', size);
}

/* One mapping for all texts, read-only afterwards: forked children then never copy it. */
static int32_t read_files(struct nv_store *store, struct walk *w, struct rung_error *err)
{
    if (!w->n)
        return RUNG_OK;
    char *texts = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (texts == MAP_FAILED)
        return nv_fail(err, RUNG_ENOMEM, "", "no memory for %zu MiB of headers", w->bytes >> 20);
    char *at = texts;
    for (size_t i = 0; i < w->n; i++) {
        struct found *f = &w->files[i];
        bool ok = read_into(f->path, at, f->size);
        if (ok && !nv_store_add(store, f->name, at, f->rank))
            return nv_fail(err, RUNG_ENOMEM, "", "no memory for headers");
        at += f->size + 1;
    }
    mprotect(texts, w->bytes, PROT_READ);
    return RUNG_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct nv_header *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static void sort_unique(struct nv_store *store)
{
    size_t kept = 0;
    qsort(store->items, store->n, sizeof(*store->items), by_name);
    for (size_t i = 0; i < store->n; i++)
        if (!kept || strcmp(store->items[kept - 1].name, store->items[i].name))
            store->items[kept++] = store->items[i];
    store->n = kept;
}

const struct nv_header *nv_store_find(const struct nv_store *store, const char *name)
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

static void free_walk(struct walk *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->files[i].path); /* the names live on in the store */
    free(w->files);
}

int32_t nv_store_fill(struct nv_store *store, const char *library, const char *const *dirs,
                      uint32_t n_dirs, struct rung_error *err)
{
    struct walk w = {0};
    bool ok = nv_stubs_add(store);
    int32_t status = ok ? RUNG_OK : nv_fail(err, RUNG_ENOMEM, "", "no memory for headers");
    for (uint32_t i = 0; i < n_dirs && status == RUNG_OK; i++)
        if (!walk_dir(&w, dirs[i], "", i + 1, false, 0))
            status = nv_fail(err, RUNG_ECONFIG, "nvrtc.headers",
                             "option headers: can't read %s: %s", dirs[i], strerror(errno));
    if (status == RUNG_OK)
        walk_toolkit(&w, library, n_dirs + 1);
    if (status == RUNG_OK && w.failed)
        status = nv_fail(err, RUNG_ECONFIG, "nvrtc.headers",
                         "option headers: more than %d files or %zu MiB; name smaller directories",
                         MAX_FILES, MAX_BYTES >> 20);
    if (status == RUNG_OK)
        status = read_files(store, &w, err);
    if (status == RUNG_OK) {
        sort_unique(store);
        if (!nv_stubs_trim(store))
            status = nv_fail(err, RUNG_ENOMEM, "", "no memory for headers");
    }
    free_walk(&w);
    return status;
}
