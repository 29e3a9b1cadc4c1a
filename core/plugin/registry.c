/*
 * Loading: RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, realpath first, never the current directory,
 * never a file or directory that others may write. The floating-point environment is compared
 * around dlopen, since a constructor of -ffast-math code would change it for the whole process.
 */
#include "plugin/registry.h"
#include "base/die.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "plugin/check.h"
#include "plugin/fpenv.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DIRS = 32, MAX_LOADED = 256 };

struct entry {
    char *path; /* resolved */
    const struct rung_plugin *plugin;
    struct rung_loaded *factories;
    size_t n_factories;
};

struct rung_registry {
    pthread_mutex_t lock;
    struct rung_arena *arena;
    const char *dirs[MAX_DIRS];
    size_t n_dirs;
    struct entry entries[MAX_LOADED];
    size_t n_entries;
    bool insecure;
};

static void add_default_dirs(struct rung_registry *r)
{
    const char *list = getenv("RUNG_PLUGIN_PATH");
    while (list && *list && r->n_dirs < MAX_DIRS - 1) {
        size_t n = strcspn(list, ":");
        if (n > 0 && list[0] == '/')
            r->dirs[r->n_dirs++] = rung_arena_strndup(r->arena, list, n);
        else if (n > 0)
            rung_log(RUNG_LOG_WARN, "plugins", "RUNG_PLUGIN_PATH: '%.*s' is not absolute; left out",
                     (int)n, list);
        list += n + (list[n] == ':');
    }
    const char *exe = rung_exe_path();
    if (!exe)
        return;
    char *dir = rung_path_beside(r->arena, exe, "../lib/rung/plugins");
    char *real = realpath(dir, NULL);
    if (real)
        r->dirs[r->n_dirs++] = rung_arena_strdup(r->arena, real);
    free(real);
}

struct rung_registry *rung_registry_new(void)
{
    struct rung_registry *r = rung_xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->arena = rung_arena_new();
    if (!r->arena)
        rung_die("out of memory");
    add_default_dirs(r);
    return r;
}

void rung_registry_free(struct rung_registry *r)
{
    if (!r)
        return;
    rung_arena_free(r->arena);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void rung_registry_add_dir(struct rung_registry *r, const char *dir)
{
    pthread_mutex_lock(&r->lock);
    if (r->n_dirs < MAX_DIRS) {
        memmove(r->dirs + 1, r->dirs, r->n_dirs * sizeof *r->dirs);
        r->dirs[0] = rung_arena_strdup(r->arena, dir);
        r->n_dirs++;
    }
    pthread_mutex_unlock(&r->lock);
}

void rung_registry_allow_insecure(struct rung_registry *r)
{
    r->insecure = true;
}

bool rung_registry_insecure(const struct rung_registry *r)
{
    return r->insecure;
}

static int32_t check_mode(const char *path, bool directory, struct rung_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return rung_fail(err, RUNG_EIO, "plugin.file", "%s: %s", path, strerror(errno));
    if (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
        return rung_fail(err, RUNG_EINVAL, "plugin.file", "%s: is no regular %s", path,
                         directory ? "directory" : "file");
    bool sticky = directory && (st.st_mode & S_ISVTX);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !sticky)
        return rung_fail(err, RUNG_EINVAL, "plugin.insecure",
                         "%s: refused, since group or others may write it; chmod go-w it, or pass "
                         "--allow-insecure-plugins",
                         path);
    return RUNG_OK;
}

static int32_t check_permissions(const struct rung_registry *r, const char *path,
                                 struct rung_error *err)
{
    if (r->insecure)
        return check_mode(path, false, NULL) == RUNG_EIO ? check_mode(path, false, err) : RUNG_OK;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash && slash != dir)
        *slash = 0;
    int32_t status = check_mode(path, false, err);
    return status ? status : check_mode(dir, true, err);
}

/* dlopen and the entry's answer. */
static int32_t open_file(const char *path, const struct rung_plugin **out, struct rung_error *err)
{
    struct rung_fpenv env = rung_fpenv_save();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (rung_fpenv_restore(&env))
        rung_log(RUNG_LOG_WARN, "plugins",
                 "API MISUSE: loading %s changed the floating-point environment (built with "
                 "-ffast-math?); restored",
                 path);
    if (!handle)
        return rung_fail(err, RUNG_EINVAL, "plugin.load",
                         "%s: can't be loaded: %s (try: ldd -r %s)", path, dlerror(), path);
    rung_plugin_entry entry = NULL;
    void *symbol = dlsym(handle, RUNG_ENTRY_NAME);
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry)
        return rung_fail(err, RUNG_EINVAL, "plugin.entry",
                         "%s: does not export %s, so it is no plugin of this rung", path,
                         RUNG_ENTRY_NAME);
    *out = entry(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);
    if (!*out)
        return rung_fail(err, RUNG_EINVAL, "plugin.abi",
                         "%s: does not serve plugin ABI %u draft %u; build it again against this "
                         "rung's headers",
                         path, RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);
    return rung_plugin_check(path, *out, err);
}

static struct entry *entry_find(struct rung_registry *r, const char *path)
{
    for (size_t i = 0; i < r->n_entries; i++)
        if (strcmp(r->entries[i].path, path) == 0)
            return &r->entries[i];
    return NULL;
}

static int32_t entry_add(struct rung_registry *r, const char *path, struct entry **out,
                         struct rung_error *err)
{
    char sha[RUNG_SHA256_HEX];
    const struct rung_plugin *plugin = NULL;
    if (r->n_entries == MAX_LOADED)
        return rung_fail(err, RUNG_ENOMEM, "plugin.many", "%s: more than %d plugins", path,
                         MAX_LOADED);
    int32_t status = check_permissions(r, path, err);
    if (!status)
        status = rung_sha256_file(path, sha, err);
    if (!status)
        status = open_file(path, &plugin, err);
    if (status)
        return status;
    struct entry *e = &r->entries[r->n_entries++];
    *e = (struct entry){.path = rung_arena_strdup(r->arena, path), .plugin = plugin};
    while (plugin->factories[e->n_factories])
        e->n_factories++;
    e->factories = RUNG_ARENA_NEW(r->arena, struct rung_loaded, e->n_factories);
    for (size_t i = 0; i < e->n_factories; i++) {
        e->factories[i] = (struct rung_loaded){
            .path = e->path, .plugin = plugin, .factory = plugin->factories[i]};
        memcpy(e->factories[i].sha256, sha, sizeof sha);
    }
    *out = e;
    return RUNG_OK;
}

static int32_t entry_get(struct rung_registry *r, const char *path, struct entry **out,
                         struct rung_error *err)
{
    char *real = realpath(path, NULL);
    if (!real)
        return rung_fail(err, RUNG_ENOTFOUND, "plugin.file", "%s: %s", path, strerror(errno));
    *out = entry_find(r, real);
    int32_t status = *out ? RUNG_OK : entry_add(r, real, out, err);
    free(real);
    return status;
}

/* Names of plugins of a kind in the search path, from file names alone. */
static size_t names_of_kind(struct rung_registry *r, struct rung_arena *arena, const char *word,
                            const char **names, size_t max)
{
    size_t n = 0, skip = strlen(word) + 1;
    for (size_t d = 0; d < r->n_dirs; d++) {
        DIR *dir = opendir(r->dirs[d]);
        for (struct dirent *f; dir && n < max && (f = readdir(dir));) {
            size_t len = strlen(f->d_name);
            if (len > skip + 3 && strncmp(f->d_name, word, skip - 1) == 0 &&
                f->d_name[skip - 1] == '_' && strcmp(f->d_name + len - 3, ".so") == 0)
                names[n++] = rung_arena_strndup(arena, f->d_name + skip, len - skip - 3);
        }
        if (dir)
            closedir(dir);
    }
    return n;
}

static int32_t not_found(struct rung_registry *r, struct rung_arena *arena, const char *word,
                         const char *name, struct rung_error *err)
{
    const char *names[64];
    size_t n = names_of_kind(r, arena, word, names, 64);
    struct rung_buf text = {0};
    const char *near = rung_nearest(name, names, n);
    rung_buf_printf(&text, "no %s plugin '%s'", word, name);
    if (near)
        rung_buf_printf(&text, "; did you mean '%s'?", near);
    for (size_t i = 0; i < n; i++)
        rung_buf_printf(&text, "%s%s", i ? ", " : " (there are: ", names[i]);
    rung_buf_printf(&text, "%slooked for %s_%s.so in", n ? "); " : "; ", word, name);
    for (size_t d = 0; d < r->n_dirs; d++)
        rung_buf_printf(&text, " %s", r->dirs[d]);
    int32_t status = rung_fail(err, RUNG_ENOTFOUND, "plugin.not_found", "%s", text.ptr);
    rung_buf_free(&text);
    return status;
}

/* Path of the file for kind and name, not yet resolved. */
static int32_t locate(struct rung_registry *r, struct rung_arena *arena, const char *kind,
                      const char *name, char **path, struct rung_error *err)
{
    const char *word = rung_kind_word(kind);
    if (!word)
        return rung_fail(err, RUNG_EINVAL, "plugin.kind", "unknown plugin kind '%s'", kind);
    if (strchr(name, '/')) {
        *path = rung_arena_strdup(arena, name);
        return RUNG_OK;
    }
    for (size_t d = 0; d < r->n_dirs; d++) {
        *path = rung_arena_printf(arena, "%s/%s_%s.so", r->dirs[d], word, name);
        struct stat st;
        if (stat(*path, &st) == 0)
            return RUNG_OK;
    }
    return not_found(r, arena, word, name, err);
}

static int32_t pick_factory(const struct entry *e, const char *kind, const char *name,
                            const struct rung_loaded **out, struct rung_error *err)
{
    const struct rung_loaded *of_kind = NULL;
    size_t n = 0;
    for (size_t i = 0; i < e->n_factories; i++) {
        const struct rung_factory *f = e->factories[i].factory;
        if (strcmp(f->kind, kind) != 0)
            continue;
        if (strcmp(f->name, name) == 0) {
            *out = &e->factories[i];
            return RUNG_OK;
        }
        of_kind = &e->factories[i];
        n++;
    }
    if (strchr(name, '/') && n == 1) {
        *out = of_kind;
        return RUNG_OK;
    }
    return rung_fail(err, RUNG_ENOTFOUND, "plugin.factory", "%s: holds no %s called '%s'", e->path,
                     rung_kind_word(kind), name);
}

int32_t rung_registry_load(struct rung_registry *r, const char *kind, const char *name,
                           const struct rung_loaded **out, struct rung_error *err)
{
    char *path;
    struct entry *entry = NULL;
    struct rung_arena *scratch = rung_arena_new();
    pthread_mutex_lock(&r->lock);
    int32_t status = locate(r, scratch, kind, name, &path, err);
    if (!status)
        status = entry_get(r, path, &entry, err);
    if (!status)
        status = pick_factory(entry, kind, name, out, err);
    pthread_mutex_unlock(&r->lock);
    rung_arena_free(scratch);
    return status;
}

int32_t rung_registry_locate(struct rung_registry *r, const char *kind, const char *name,
                             char **path, char sha256[RUNG_SHA256_HEX], struct rung_arena *arena,
                             struct rung_error *err)
{
    pthread_mutex_lock(&r->lock);
    int32_t status = locate(r, arena, kind, name, path, err);
    pthread_mutex_unlock(&r->lock);
    if (status)
        return status;
    char *real = realpath(*path, NULL);
    if (!real)
        return rung_fail(err, RUNG_ENOTFOUND, "plugin.file", "%s: %s", *path, strerror(errno));
    *path = rung_arena_strdup(arena, real);
    free(real);
    return rung_sha256_file(*path, sha256, err);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *rung_registry_files(struct rung_registry *r, struct rung_arena *arena, size_t *n)
{
    const char **files = RUNG_ARENA_NEW(arena, const char *, MAX_LOADED);
    *n = 0;
    for (size_t d = 0; d < r->n_dirs; d++) {
        size_t first = *n;
        DIR *dir = opendir(r->dirs[d]);
        for (struct dirent *f; dir && *n < MAX_LOADED && (f = readdir(dir));) {
            size_t len = strlen(f->d_name);
            if (len > 3 && strcmp(f->d_name + len - 3, ".so") == 0)
                files[(*n)++] = rung_arena_printf(arena, "%s/%s", r->dirs[d], f->d_name);
        }
        if (dir)
            closedir(dir);
        qsort(files + first, *n - first, sizeof *files, by_text);
    }
    return files;
}

int32_t rung_registry_open(struct rung_registry *r, const char *path,
                           const struct rung_plugin **out, struct rung_error *err)
{
    struct entry *entry = NULL;
    pthread_mutex_lock(&r->lock);
    int32_t status = entry_get(r, path, &entry, err);
    pthread_mutex_unlock(&r->lock);
    if (!status)
        *out = entry->plugin;
    return status;
}
