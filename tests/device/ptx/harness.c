/*
 * harness.c - see harness.h.
 */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what, const char *why)
{
    fprintf(stderr, "harness: %s: %s\n", what, why);
    exit(2);
}

uint64_t px_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- The host -------------------------------------------------------------------------------- */

static void host_log(const struct rung_host *host, uint32_t level, const char *message)
{
    struct px *px = host->ctx;
    size_t n = strlen(px->log);

    (void)level;
    snprintf(px->log + n, sizeof px->log - n, "%s\n", message);
}

static uint64_t host_now(const struct rung_host *host)
{
    (void)host;
    return px_now();
}

static int32_t host_cancelled(const struct rung_host *host, const struct rung_cancel *cancel)
{
    const struct px *px = host->ctx;

    (void)cancel;
    return __atomic_load_n(&px->cancel, __ATOMIC_RELAXED) != 0;
}

static const char *option_text(const struct px *px, const char *name)
{
    for (const struct px_option *o = px->options; o && o->name; o++)
        if (!strcmp(o->name, name))
            return o->value;
    for (const struct rung_option *const *o = px->factory->options; *o; o++)
        if (!strcmp((*o)->name, name))
            return (*o)->default_text;
    die("unknown option", name);
    return NULL;
}

static int64_t host_int(const struct rung_host *host, const struct rung_options *options,
                        const char *name)
{
    const char *text = option_text(host->ctx, name);
    char *end;
    long long v = strtoll(text, &end, 10);

    (void)options;
    if (!strcmp(end, "GiB"))
        v <<= 30;
    else if (!strcmp(end, "MiB"))
        v <<= 20;
    return v;
}

static const char *host_string(const struct rung_host *host, const struct rung_options *options,
                               const char *name)
{
    (void)options;
    return option_text(host->ctx, name);
}

/* ---- Plugin ---------------------------------------------------------------------------------- */

int px_open(struct px *px, const char *file, const struct px_option *options)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    rung_plugin_entry entry;
    const struct rung_plugin *plugin;
    int32_t status;

    if (!library)
        die("dlopen", dlerror());
    *(void **)&entry = dlsym(library, RUNG_ENTRY_NAME);
    plugin = entry ? entry(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT) : NULL;
    if (!plugin)
        die(file, "no plugin entry");
    memset(px, 0, sizeof *px);
    px->options = options;
    px->factory = plugin->factories[0];
    px->ops = px->factory->ops;
    px->host = (struct rung_host){.struct_size = sizeof px->host,
                                  .abi_draft = RUNG_ABI_DRAFT,
                                  .name = "harness",
                                  .version = "0",
                                  .ctx = px,
                                  .log = host_log,
                                  .now_ns = host_now,
                                  .is_cancelled = host_cancelled,
                                  .opt_int = host_int,
                                  .opt_string = host_string};
    px->error.struct_size = sizeof px->error;
    px->call = (struct rung_call){.struct_size = sizeof px->call,
                                  .error = &px->error,
                                  .cancel = (struct rung_cancel *)(void *)px};
    status = px->factory->create(&px->host, NULL, &px->error, &px->self);
    return status ? status : px->factory->start(px->self, &px->error);
}

void px_close(struct px *px)
{
    px->factory->stop(px->self);
    px->factory->destroy(px->self);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

struct rung_buffer *px_buffer(struct px *px, const char *label, const void *from, size_t n)
{
    struct rung_buffer *b = px_buffer_unwritten(px, label, n);
    const uint8_t zero = 0;

    if (from ? px->ops->write(px->self, &px->call, b, 0, from, n)
             : px->ops->fill(px->self, &px->call, b, 0, n, &zero, 1, 1))
        die("write", px->error.message);
    return b;
}

struct rung_buffer *px_buffer_unwritten(struct px *px, const char *label, size_t n)
{
    struct rung_buffer *b = NULL;

    if (px->ops->alloc(px->self, &px->call, n, 256, label, &b))
        die("alloc", px->error.message);
    return b;
}

uint64_t px_address(struct px *px, struct rung_buffer *b)
{
    return px->ops->address(px->self, b);
}

void *px_map(struct px *px, struct rung_buffer *b)
{
    return px->ops->map(px->self, b);
}

void px_free(struct px *px, struct rung_buffer *b)
{
    px->ops->free(px->self, b);
}

/* ---- Modules --------------------------------------------------------------------------------- */

struct rung_module *px_load(struct px *px, const char *ptx)
{
    struct rung_code code = {.struct_size = sizeof code,
                             .format = RUNG_FORMAT_PTX,
                             .arch = "compute_90",
                             .bytes = ptx,
                             .n_bytes = strlen(ptx)};
    struct rung_artifact artifact = {.struct_size = sizeof artifact, .n_codes = 1, .codes = &code};
    struct rung_module *m = NULL;

    px->fault = (struct rung_fault){.struct_size = sizeof px->fault};
    if (px->ops->load(px->self, &px->call, &artifact, &m, &px->fault))
        die("load", px->error.message);
    return m;
}

void px_unload(struct px *px, struct rung_module *m)
{
    px->ops->unload(px->self, m);
}

static struct rung_dim3 at_least_one(struct rung_dim3 d)
{
    return (struct rung_dim3){d.x ? d.x : 1, d.y ? d.y : 1, d.z ? d.z : 1};
}

const char *px_launch(struct px *px, struct rung_module *m, const struct px_launch *l)
{
    struct rung_kernel kernel = {.struct_size = sizeof kernel,
                                 .symbol = l->kernel,
                                 .expression = l->expression,
                                 .param_bytes = l->param_bytes};
    struct rung_launch launch = {.struct_size = sizeof launch,
                                 .shared_bytes = l->shared,
                                 .module = m,
                                 .kernel = &kernel,
                                 .grid = at_least_one(l->grid),
                                 .block = at_least_one(l->block),
                                 .params = l->params,
                                 .param_bytes = l->param_bytes,
                                 .sample_blocks = l->sample,
                                 .max_lane_instructions = l->max_instructions,
                                 .counters = l->counters,
                                 .cluster = l->cluster,
                                 .flags = l->flags};

    px->fault = (struct rung_fault){.struct_size = sizeof px->fault};
    if (l->counters)
        *l->counters = (struct rung_counters){.struct_size = sizeof *l->counters};
    px->error.code = 0;
    if (px->ops->launch(px->self, &px->call, &launch, &px->fault))
        snprintf(px->fault.code, sizeof px->fault.code, "status %d", px->error.code);
    return px->fault.code;
}

/* ---- NVRTC ----------------------------------------------------------------------------------- */

struct nvrtc {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
};

static int nvrtc_open(struct nvrtc *n)
{
    static const char *const files[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so",
                                        "libnvrtc.so.12"};
    static const char *const names[] = {
        "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcGetPTXSize",    "nvrtcGetPTX",         "nvrtcDestroyProgram"};
    void **slots = (void **)n;
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof files / sizeof files[0]; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof names / sizeof names[0]; i++)
        if (!(slots[i] = dlsym(library, names[i])))
            return -1;
    return library ? 0 : -1;
}

char *px_compile(const char *source, const char *arch)
{
    char arch_option[48];
    const char *const options[] = {arch_option, "-default-device", "-lineinfo"};
    struct nvrtc n;
    void *program = NULL;
    size_t size = 0;
    char *text;

    if (nvrtc_open(&n))
        return NULL;
    snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
    if (n.create(&program, source, "kernel.cu", 0, NULL, NULL))
        die("nvrtc", "no program");
    if (n.compile(program, 3, options)) {
        n.log_size(program, &size);
        text = malloc(size + 1);
        if (text)
            n.log(program, text);
        die("nvrtc", text ? text : "");
    }
    n.ptx_size(program, &size);
    text = malloc(size + 1);
    if (!text)
        die("nvrtc", "no memory");
    n.ptx(program, text);
    n.destroy(&program);
    return text;
}
