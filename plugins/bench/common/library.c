#include "library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* Toolkits and distributions. */
static const char *const toolkit_dirs[] = {
    "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", ".", NULL};

int32_t bench_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

static void *open_file(const char *file, char *path)
{
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (lib)
        snprintf(path, PATH_BYTES, "%s", file);
    return lib;
}

static void *open_in(const struct bench_library *l, const char *dir, const char *const *subs,
                     char *path)
{
    char file[PATH_BYTES];
    struct stat st;
    for (size_t d = 0; subs[d]; d++)
        for (size_t f = 0; l->files[f]; f++) {
            int n = snprintf(file, sizeof file, "%s/%s/%s", dir, subs[d], l->files[f]);
            void *lib = n < (int)sizeof file && stat(file, &st) == 0 ? open_file(file, path) : NULL;
            if (lib)
                return lib;
        }
    return NULL;
}

static void *open_dir(const struct bench_library *l, const char *dir, char *path)
{
    void *lib = open_in(l, dir, toolkit_dirs, path);
    return lib ? lib : open_in(l, dir, l->wheel_dirs, path);
}

/* <prefix>/lib/rung/plugins/baseline_x.so -> <prefix>/lib/rung/cuda */
static void *open_own(const struct bench_library *l, char *path)
{
    char dir[PATH_BYTES];
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)bench_library_open, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return NULL;
    int n =
        snprintf(dir, sizeof dir, "%.*s/../cuda", (int)(slash - info.dli_fname), info.dli_fname);
    return n < (int)sizeof dir ? open_dir(l, dir, path) : NULL;
}

static void *search(const struct bench_library *l, char *path)
{
    const char *home = getenv("RUNG_CUDA_HOME");
    void *lib = home && home[0] ? open_dir(l, home, path) : NULL;
    for (size_t f = 0; !lib && l->files[f]; f++)
        lib = open_file(l->files[f], path);
    if (!lib)
        lib = open_own(l, path);
    return lib ? lib : open_dir(l, "/usr/local/cuda", path);
}

int32_t bench_library_open(const struct bench_library *l, const char *given,
                           const struct bench_symbol *symbols, char *path, struct rung_error *err)
{
    struct stat st;
    void *lib;
    if (given[0] && stat(given, &st) == 0 && S_ISDIR(st.st_mode))
        lib = open_dir(l, given, path);
    else
        lib = given[0] ? open_file(given, path) : search(l, path);
    if (!lib && given[0])
        return bench_fail(err, RUNG_EUNAVAILABLE, "library.not_found",
                          "option library: no %s at %s; name %s or its folder, or leave the option "
                          "out",
                          l->title, given, l->files[0]);
    if (!lib)
        return bench_fail(err, RUNG_EUNAVAILABLE, "library.not_found",
                          "no %s (%s) in RUNG_CUDA_HOME, the loader's path or /usr/local/cuda; %s",
                          l->title, l->files[0], l->remedy);
    for (; symbols->name; symbols++) {
        void *found = dlsym(lib, symbols->name);
        if (!found)
            return bench_fail(err, RUNG_EUNAVAILABLE, "library.too_old", "%s has no %s; %s", path,
                              symbols->name, l->remedy);
        memcpy(symbols->slot, &found, sizeof found);
    }
    return RUNG_OK;
}
