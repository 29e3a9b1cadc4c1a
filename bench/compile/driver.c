/*
 * Measures compiling through rung's helper process against a bare call of NVRTC in this process:
 * the same source and options, one after the other in turn, medians. Usage:
 *   driver LIBNVRTC INCLUDE_DIR REPEATS GAP_MS FILE.cu... [-- FILE.cu...]
 * The files behind -- are compiled by two helpers instead, without and with precompiled headers,
 * after one compile that lets the helper see them; their code must not differ.
 * Both return PTX (and CUBIN) with the lowered name of `kernel`. The bare call reads the toolkit's
 * headers with -I; the helper serves them from memory and includes rung's prelude. GAP_MS is slept
 * before each compile: in a run, checks and timing stand between two compiles.
 */
#include "base/arena.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"
#include "plugin/options.h"
#include "worker/process/helper.h"
#include "worker/process/service.h"
#include <dlfcn.h>
#include <rung/compiler.h>
#include <rung/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPEATS = 1000 };

struct bare {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*add)(void *, const char *);
    int (*compile)(void *, int, const char *const *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*cubin_size)(void *, size_t *);
    int (*cubin)(void *, char *);
    int (*lowered)(void *, const char *, const char **);
    int (*destroy)(void **);
};

static void *symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return p;
}

static struct bare load_bare(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return (struct bare){symbol(lib, "nvrtcCreateProgram"),  symbol(lib, "nvrtcAddNameExpression"),
                         symbol(lib, "nvrtcCompileProgram"), symbol(lib, "nvrtcGetPTXSize"),
                         symbol(lib, "nvrtcGetPTX"),         symbol(lib, "nvrtcGetCUBINSize"),
                         symbol(lib, "nvrtcGetCUBIN"),       symbol(lib, "nvrtcGetLoweredName"),
                         symbol(lib, "nvrtcDestroyProgram")};
}

static double bare_ms(const struct bare *n, const char *source, const char *include, int both)
{
    char path[4096];
    const char *options[] = {both ? "--gpu-architecture=sm_90" : "--gpu-architecture=compute_90",
                             "-std=c++17",
                             "-default-device",
                             "-lineinfo",
                             path,
                             "-Xptxas=-v"};
    void *program;
    const char *name;
    size_t size = 0;
    snprintf(path, sizeof(path), "-I%s", include);
    uint64_t start = rung_now_ns();
    int bad = n->create(&program, source, "kernel.cu", 0, NULL, NULL) ||
              n->add(program, "kernel") || n->compile(program, both ? 6 : 5, options) ||
              n->ptx_size(program, &size);
    char *ptx = malloc(size + 1);
    bad = bad || n->ptx(program, ptx) || n->lowered(program, "kernel", &name);
    if (both && !bad) {
        n->cubin_size(program, &size);
        char *cubin = malloc(size + 1);
        bad = n->cubin(program, cubin);
        free(cubin);
    }
    n->destroy(&program);
    free(ptx);
    uint64_t end = rung_now_ns();
    if (bad) {
        fprintf(stderr, "the bare compile failed\n");
        exit(1);
    }
    return (double)(end - start) / 1e6;
}

/* The last helper's code, for comparing. */
static struct rung_arena *code_arena;
static struct rung_text code;

static double helper_ms(struct rung_instance *compiler, struct rung_text source, int both)
{
    struct rung_error err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof(call), .arena = rung_arena_new(), .error = &err};
    struct rung_file file = {.struct_size = sizeof(file), .path = "kernel.cu", .text = source};
    struct rung_bundle bundle = {
        .struct_size = sizeof(bundle), .n_files = 1, .language = "cuda", .files = &file};
    const char *expression = "kernel";
    struct rung_compile_request q = {.struct_size = sizeof(q),
                                     .n_expressions = 1,
                                     .bundle = &bundle,
                                     .expressions = &expression,
                                     .arch = "compute_90",
                                     .format = RUNG_FORMAT_PTX,
                                     .want_all = (uint32_t)both};
    struct rung_compile_result r = {.struct_size = sizeof(r)};
    int32_t status;
    uint64_t start = rung_now_ns();
    RUNG_INVOKE(status, compiler, struct rung_compiler_ops, compile, &call, &q, &r);
    uint64_t end = rung_now_ns();
    if (status != RUNG_OK || !r.artifact) {
        fprintf(stderr, "%s\n", status != RUNG_OK ? err.message : r.log.ptr);
        exit(1);
    }
    rung_arena_free(code_arena);
    code_arena = call.arena;
    code = (struct rung_text){r.artifact->codes[0].bytes, r.artifact->codes[0].n_bytes};
    return (double)(end - start) / 1e6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static struct rung_instance *open_compiler(struct rung_arena *arena)
{
    struct rung_error err = rung_error_init();
    struct rung_registry *registry = rung_registry_new();
    struct rung_diags diags = {0};
    const struct rung_loaded *loaded;
    struct rung_instance *instance = NULL;
    const struct rung_service services[] = {{RUNG_HOST_PROCESS, &rung_process_table, NULL},
                                            {NULL, NULL, NULL}};
    rung_registry_allow_insecure(registry);
    int32_t status = rung_registry_load(registry, RUNG_KIND_COMPILER, "nvrtc", &loaded, &err);
    if (status == RUNG_OK) {
        struct rung_options *options =
            rung_options_read(arena, loaded->factory, NULL, NULL, rung_data_dir(), &diags);
        status =
            rung_instance_new(loaded, options, "nvrtc", rung_data_dir(), services, &instance, &err);
    }
    if (status == RUNG_OK)
        status = rung_instance_start(instance, &err);
    if (status != RUNG_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(3);
    }
    return instance;
}

static double values[2][MAX_REPEATS];

static void row(const char *path, int both, double first, double second)
{
    const char *name = strrchr(path, '/');
    printf("%-14s %-10s %10.2f %10.2f %8.3f\n", name ? name + 1 : path, both ? "ptx+cubin" : "ptx",
           first, second, second / first);
}

/* One source against the bare call; returns the worse ratio of both forms. */
static double compare_bare(const struct bare *nvrtc, struct rung_instance *compiler,
                           const char *path, struct rung_text source, const char *include,
                           int repeats, useconds_t gap)
{
    double worst = 0;
    for (int both = 0; both < 2; both++) {
        bare_ms(nvrtc, source.ptr, include, both);
        helper_ms(compiler, source, both);
        for (int r = 0; r < repeats; r++) {
            usleep(gap);
            values[0][r] = bare_ms(nvrtc, source.ptr, include, both);
            usleep(gap);
            values[1][r] = helper_ms(compiler, source, both);
        }
        double b = median(values[0], repeats), h = median(values[1], repeats);
        worst = h / b > worst ? h / b : worst;
        row(path, both, b, h);
    }
    return worst;
}

/* One source without and with precompiled headers; ends the process when the code differs. */
static void compare_headers(struct rung_instance *const compilers[2], const char *path,
                            struct rung_text source, int repeats, useconds_t gap)
{
    for (int both = 0; both < 2; both++) {
        struct rung_arena *arena = rung_arena_new();
        struct rung_text expected = {"", 0};
        for (int c = 0; c < 2; c++)
            helper_ms(compilers[c], source, both);
        for (int r = 0; r < repeats * 2; r++) {
            usleep(gap);
            values[r % 2][r / 2] = helper_ms(compilers[r % 2], source, both);
            if (!expected.len)
                expected =
                    (struct rung_text){rung_arena_strndup(arena, code.ptr, code.len), code.len};
            if (code.len != expected.len || memcmp(code.ptr, expected.ptr, code.len)) {
                fprintf(stderr, "%s: a precompiled header changes the code\n", path);
                exit(1);
            }
        }
        row(path, both, median(values[0], repeats), median(values[1], repeats));
        rung_arena_free(arena);
    }
}

static struct rung_text read_source(struct rung_arena *arena, const char *path)
{
    struct rung_text source;
    if (rung_read_file(arena, path, 1 << 20, &source, NULL) != RUNG_OK) {
        fprintf(stderr, "can't read %s\n", path);
        exit(2);
    }
    return source;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "helper"))
        return rung_helper_command(argc - 1, argv + 1);
    int repeats = argc > 5 ? atoi(argv[3]) : 0;
    if (repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr,
                "usage: driver LIBNVRTC INCLUDE_DIR REPEATS GAP_MS FILE.cu... [-- FILE.cu...]\n");
        return 2;
    }
    useconds_t gap = (useconds_t)atoi(argv[4]) * 1000;
    struct rung_arena *arena = rung_arena_new();
    struct bare nvrtc = load_bare(argv[1]);
    setenv("NVRTC_DISABLE_PCH", "1", 1);
    struct rung_instance *plain = open_compiler(arena);
    unsetenv("NVRTC_DISABLE_PCH");
    struct rung_instance *compilers[] = {plain, open_compiler(arena)};
    double worst = 0;
    int i = 5;
    printf("%-14s %-10s %10s %10s %8s\n", "source", "form", "bare ms", "helper ms", "ratio");
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        double ratio = compare_bare(&nvrtc, plain, argv[i], read_source(arena, argv[i]), argv[2],
                                    repeats, gap);
        worst = ratio > worst ? ratio : worst;
    }
    printf("worst ratio %.3f\n", worst);
    if (i < argc)
        printf("%-14s %-10s %10s %10s %8s\n", "source", "form", "without", "with PCH", "ratio");
    for (i++; i < argc; i++)
        compare_headers(compilers, argv[i], read_source(arena, argv[i]), repeats, gap);
    for (int c = 0; c < 2; c++)
        rung_instance_free(compilers[c]);
    rung_arena_free(code_arena);
    rung_arena_free(arena);
    return 0;
}
