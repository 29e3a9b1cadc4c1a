/* NVRTC through dlopen; see nvrtc.h. */
#include "nvrtc.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *program;

static int (*create)(program *, const char *, const char *, int, const char *const *,
                     const char *const *);
static int (*destroy)(program *);
static int (*compile)(program, int, const char *const *);
static int (*log_size)(program, size_t *);
static int (*get_log)(program, char *);
static int (*add_name)(program, const char *);
static int (*lowered_name)(program, const char *, const char **);

static void *open_in(const char *folder)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < 2 && !library; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

bool nvrtc_open(void)
{
    char folder[4000] = "";
    const char *home = getenv("RUNG_CUDA_HOME");
    void *library = NULL;
    if (home) {
        snprintf(folder, sizeof folder, "%s/lib64/", home);
        library = open_in(folder);
    }
    if (!library)
        library = open_in("");
    if (!library)
        library = open_in("/usr/local/cuda/lib64/");
    if (!library)
        return false;
    *(void **)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&destroy = dlsym(library, "nvrtcDestroyProgram");
    *(void **)&compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&log_size = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)&get_log = dlsym(library, "nvrtcGetProgramLog");
    *(void **)&add_name = dlsym(library, "nvrtcAddNameExpression");
    *(void **)&lowered_name = dlsym(library, "nvrtcGetLoweredName");
    return create && destroy && compile && log_size && get_log && add_name && lowered_name;
}

static char *take_log(program p)
{
    size_t n = 0;
    if (log_size(p, &n) != 0)
        return strdup("NVRTC failed without a log");
    char *text = calloc(1, n + 1);
    if (text)
        get_log(p, text);
    return text;
}

char *nvrtc_compile(const char *source, const char *const *expressions, uint32_t n)
{
    static const char *const flags[] = {"--gpu-architecture=compute_90", "--std=c++17"};
    program p = NULL;
    char *log = NULL;
    if (create(&p, source, "candidate.cu", 0, NULL, NULL) != 0)
        return strdup("nvrtcCreateProgram failed");
    for (uint32_t i = 0; i < n; ++i)
        add_name(p, expressions[i]);
    const bool fine = compile(p, 2, flags) == 0;
    if (!fine)
        log = take_log(p);
    for (uint32_t i = 0; i < n && !log; ++i) {
        const char *symbol = NULL;
        if (lowered_name(p, expressions[i], &symbol) != 0 || !symbol)
            log = strdup(expressions[i]);
    }
    destroy(&p);
    return log;
}
