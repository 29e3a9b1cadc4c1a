/*
 * Finding libnvrtc: the user's word first, then the folder that rung's own installation brings,
 * then the usual place of a toolkit, then the loader's path.
 */
#include "api.h"
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const file_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
/* Toolkits, and the layouts of the Python wheels. */
static const char *const sub_dirs[] = {
    "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "."};

int32_t nv_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    snprintf(err->symbol, sizeof(err->symbol), "%s", symbol);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return code;
}

/*
 * libnvrtc opens libnvrtc-builtins by bare name when it first compiles; loading it here by path
 * makes that name known to the loader wherever the library lies.
 */
static void load_builtins(const char *library)
{
    char pattern[PATH_MAX];
    glob_t found;
    const char *slash = strrchr(library, '/');
    if (!slash)
        return;
    snprintf(pattern, sizeof(pattern), "%.*s/libnvrtc-builtins.so.*", (int)(slash - library),
             library);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
        globfree(&found);
    }
}

static void *open_file(struct nv_api *api, const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (lib) {
        Dl_info info;
        void *symbol = dlsym(lib, "nvrtcVersion");
        bool known = symbol && dladdr(symbol, &info) && info.dli_fname;
        char resolved[PATH_MAX];
        const char *name = known ? info.dli_fname : path;
        snprintf(api->path, sizeof(api->path), "%s", realpath(name, resolved) ? resolved : name);
        load_builtins(api->path);
    }
    return lib;
}

static void *open_dir(struct nv_api *api, const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    for (size_t d = 0; d < sizeof(sub_dirs) / sizeof(*sub_dirs); d++)
        for (size_t f = 0; f < sizeof(file_names) / sizeof(*file_names); f++) {
            snprintf(path, sizeof(path), "%s/%s/%s", dir, sub_dirs[d], file_names[f]);
            void *lib = stat(path, &st) == 0 ? open_file(api, path) : NULL;
            if (lib)
                return lib;
        }
    return NULL;
}

/* <prefix>/lib/rung/plugins/compiler_nvrtc.so -> <prefix>/lib/rung/cuda. */
static void own_dir(char *dir, size_t size)
{
    Dl_info info;
    dir[0] = '\0';
    if (dladdr((void *)(uintptr_t)nv_api_load, &info) && info.dli_fname &&
        strrchr(info.dli_fname, '/'))
        snprintf(dir, size, "%.*s/../cuda", (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
                 info.dli_fname);
}

static void *search(struct nv_api *api)
{
    char dir[PATH_MAX];
    own_dir(dir, sizeof(dir));
    void *lib = dir[0] ? open_dir(api, dir) : NULL;
    if (!lib)
        lib = open_dir(api, "/usr/local/cuda");
    for (size_t f = 0; !lib && f < sizeof(file_names) / sizeof(*file_names); f++)
        lib = open_file(api, file_names[f]);
    return lib;
}

static int32_t open_library(struct nv_api *api, const char *library, void **lib,
                            struct rung_error *err)
{
    const char *home = getenv("RUNG_CUDA_HOME");
    struct stat st;
    if (library[0]) {
        bool dir = stat(library, &st) == 0 && S_ISDIR(st.st_mode);
        *lib = dir ? open_dir(api, library) : open_file(api, library);
        if (!*lib)
            return nv_fail(
                err, RUNG_EUNAVAILABLE, "nvrtc.not_found",
                "option library: no NVRTC at %s (%s); name libnvrtc.so.13 or .12, or a toolkit's "
                "directory, or leave the option out",
                library, dir ? "no libnvrtc.so.* in its lib64, lib or nvidia/*/lib" : dlerror());
        return RUNG_OK;
    }
    if (home && home[0]) {
        *lib = open_dir(api, home);
        if (!*lib)
            return nv_fail(
                err, RUNG_EUNAVAILABLE, "nvrtc.not_found",
                "RUNG_CUDA_HOME: no NVRTC under %s (looked in lib64, lib and nvidia/*/lib); "
                "point it at a CUDA toolkit or unset it",
                home);
        return RUNG_OK;
    }
    *lib = search(api);
    if (!*lib)
        return nv_fail(
            err, RUNG_EUNAVAILABLE, "nvrtc.not_found",
            "no NVRTC (libnvrtc.so.13 or .12) in lib/rung/cuda, /usr/local/cuda or the loader's "
            "path; install a CUDA 12 or 13 toolkit (its NVRTC part is enough, no GPU needed), then "
            "set "
            "RUNG_CUDA_HOME or the compiler's option `library` to it");
    return RUNG_OK;
}

/* What newer ones have; the slots stay NULL otherwise. */
static void load_optional(struct nv_api *api, void *lib)
{
    void *status = dlsym(lib, "nvrtcGetPCHCreateStatus");
    void *heap = dlsym(lib, "nvrtcGetPCHHeapSize");
    if (status && heap) {
        memcpy(&api->pch_status, &status, sizeof(status));
        memcpy(&api->pch_heap, &heap, sizeof(heap));
    }
}

int32_t nv_api_load(struct nv_api *api, const char *library, struct rung_error *err)
{
    void *lib;
    int32_t status = open_library(api, library, &lib, err);
    if (status != RUNG_OK)
        return status;
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"nvrtcGetErrorString", &api->error_string},
        {"nvrtcVersion", &api->version},
        {"nvrtcGetNumSupportedArchs", &api->n_archs},
        {"nvrtcGetSupportedArchs", &api->archs},
        {"nvrtcCreateProgram", &api->create},
        {"nvrtcDestroyProgram", &api->destroy},
        {"nvrtcCompileProgram", &api->compile},
        {"nvrtcGetPTXSize", &api->ptx_size},
        {"nvrtcGetPTX", &api->ptx},
        {"nvrtcGetCUBINSize", &api->cubin_size},
        {"nvrtcGetCUBIN", &api->cubin},
        {"nvrtcGetProgramLogSize", &api->log_size},
        {"nvrtcGetProgramLog", &api->log},
        {"nvrtcAddNameExpression", &api->add_name},
        {"nvrtcGetLoweredName", &api->lowered_name},
    };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(lib, symbols[i].name);
        if (!symbol)
            return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.too_old",
                           "%s has no %s: CUDA 12 or newer is needed", api->path, symbols[i].name);
        memcpy(symbols[i].slot, &symbol, sizeof(symbol));
    }
    load_optional(api, lib);
    if (api->version(&api->major, &api->minor) != NV_SUCCESS || api->major < 12)
        return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.too_old",
                       "%s is NVRTC %d.%d: CUDA 12 or newer is needed", api->path, api->major,
                       api->minor);
    return RUNG_OK;
}
