/*
 * plugin.c - the device "ptx": the ABI around memory, modules and launches. One instance is used by
 * one thread at a time; all state is in the instance. Worker threads live only inside a launch.
 */
#include "launch.h"
#include "module.h"
#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SHARED 232448u /* 227 KiB, as compute capability 9.0 */

struct device {
    const struct rung_host *host;
    struct ptx_memory memory;
    struct ptx_optable table;
    struct ptx_isa isa;
    struct ptx_limits limits;
    uint64_t memory_bytes;
    char isa_option[8];
    char name[48];
};

static int32_t fail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
static int32_t fail(struct rung_error *error, int32_t code, const char *symbol, const char *format,
                    ...)
{
    va_list args;

    error->code = code;
    snprintf(error->symbol, sizeof error->symbol, "%s", symbol);
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

/* ---- Instruction-set levels ------------------------------------------------------------------ */

#define FILL(level, isa)                                                                           \
    do {                                                                                           \
        ptx_fill_lane_##level(isa);                                                                \
        ptx_fill_float_##level(isa);                                                               \
        ptx_fill_memory_##level(isa);                                                              \
        ptx_fill_atomic_##level(isa);                                                              \
        ptx_fill_tensor_##level(isa);                                                              \
        ptx_fill_warp_##level(isa);                                                                \
    } while (0)

/* The best level that the machine has, or the one that the option names; -1 when it lacks that. */
static int choose_isa(struct ptx_isa *isa, const char *wanted)
{
    const int automatic = !strcmp(wanted, "auto");

    memset(isa, 0, sizeof *isa);
    ptx_fill_control(isa);
    ptx_fill_async(isa);
#ifdef PTX_X86_LEVELS
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi2");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

    if (!strcmp(wanted, "v4") || (automatic && v4)) {
        isa->name = "avx512";
        FILL(v4, isa);
        return v4 ? 0 : -1;
    }
    if (!strcmp(wanted, "v3") || (automatic && v3)) {
        isa->name = "avx2";
        FILL(v3, isa);
        return v3 ? 0 : -1;
    }
#endif
    isa->name = "base";
    FILL(base, isa);
    return automatic || !strcmp(wanted, "v2") ? 0 : -1;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static uint32_t checks_of(const char *option)
{
    return !strcmp(option, "off")   ? PTX_CHECK_OFF
           : !strcmp(option, "all") ? PTX_CHECK_ALL
                                    : PTX_CHECK_SAMPLE;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct device *d = aligned_alloc(64, (sizeof *d + 63) / 64 * 64);

    if (!d)
        return fail(error, RUNG_ENOMEM, "ptx.memory", "no memory for the interpreter");
    memset(d, 0, sizeof *d);
    d->host = host;
    d->memory_bytes = (uint64_t)host->opt_int(host, options, "memory");
    d->limits.max_lane_instructions = (uint64_t)host->opt_int(host, options, "max_instructions");
    d->limits.n_threads = (uint32_t)host->opt_int(host, options, "threads");
    d->limits.sm_count = (uint32_t)host->opt_int(host, options, "sm_count");
    d->limits.seed = (uint64_t)host->opt_int(host, options, "order_seed");
    d->limits.checks = checks_of(host->opt_string(host, options, "checks"));
    d->limits.max_shared = MAX_SHARED;
    d->limits.max_threads = 1024;
    snprintf(d->isa_option, sizeof d->isa_option, "%s", host->opt_string(host, options, "isa"));
    *self = d;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct device *d = self;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (choose_isa(&d->isa, d->isa_option))
        return fail(error, RUNG_EUNAVAILABLE, "ptx.isa",
                    "this machine has no instruction-set level %s; use isa = \"auto\"",
                    d->isa_option);
    if (!d->limits.n_threads)
        d->limits.n_threads = cores > 0 ? (uint32_t)cores : 1;
    if (ptx_optable_init(&d->table)) {
        ptx_optable_end(&d->table);
        return fail(error, RUNG_ENOMEM, "ptx.memory", "no memory for the operation table");
    }
    ptx_memory_init(&d->memory, d->memory_bytes);
    snprintf(d->name, sizeof d->name, "ptx interpreter (%s)", d->isa.name);
    return RUNG_OK;
}

static void stop(void *self)
{
    struct device *d = self;

    ptx_memory_end(&d->memory);
    ptx_optable_end(&d->table);
}

static void destroy(void *self)
{
    free(self);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static struct ptx_buffer *own(struct rung_buffer *b)
{
    return (struct ptx_buffer *)(void *)b;
}

static int32_t info(void *self, struct rung_call *call, struct rung_device_info *out)
{
    const struct device *d = self;
    const uint32_t size = out->struct_size;
    struct rung_device_info filled = {
        .struct_size = size,
        .flags = RUNG_DEVICE_EXACT_BOUNDS | RUNG_DEVICE_COUNTERS | RUNG_DEVICE_HOST_MEMORY |
                 (d->limits.checks ? RUNG_DEVICE_UNINITIALISED : 0),
        .name = d->name,
        .id = "ptx",
        .format = RUNG_FORMAT_PTX,
        .sm_count = d->limits.sm_count,
        .arch = "compute_90",
        .memory_bytes = d->memory_bytes,
        .max_threads_per_block = d->limits.max_threads,
        .max_shared_bytes = MAX_SHARED,
        .l2_bytes = 50u << 20,
        .driver = "rung ptx 0",
    };

    (void)call;
    memcpy(out, &filled, size < sizeof filled ? size : sizeof filled);
    return RUNG_OK;
}

static int32_t alloc(void *self, struct rung_call *call, uint64_t bytes, uint64_t align,
                     const char *label, struct rung_buffer **out)
{
    struct device *d = self;

    if (!bytes || (align & (align - 1)) || align > 4096)
        return fail(call->error, RUNG_EINVAL, "ptx.alloc", "a buffer of %llu bytes aligned to %llu",
                    (unsigned long long)bytes, (unsigned long long)align);
    *out = (struct rung_buffer *)(void *)ptx_buffer_new(&d->memory, bytes, align, label);
    if (!*out)
        return fail(call->error, RUNG_ENOMEM, "ptx.memory",
                    "no room for %llu bytes: %llu of %llu are in use", (unsigned long long)bytes,
                    (unsigned long long)d->memory.used, (unsigned long long)d->memory.limit);
    if (d->limits.checks)
        ptx_buffer_track(own(*out));
    return RUNG_OK;
}

static void free_buffer(void *self, struct rung_buffer *b)
{
    (void)self;
    if (b)
        ptx_buffer_free(own(b));
}

static uint64_t address(void *self, struct rung_buffer *b)
{
    (void)self;
    return own(b)->segment.base;
}

static void *map(void *self, struct rung_buffer *b)
{
    (void)self;
    return own(b)->segment.host;
}

static int32_t check_range(struct rung_call *call, const struct ptx_buffer *b, uint64_t offset,
                           uint64_t bytes)
{
    if (offset <= b->segment.size && bytes <= b->segment.size - offset)
        return RUNG_OK;
    return fail(call->error, RUNG_EINVAL, "ptx.range",
                "bytes %llu + %llu lie outside '%s' of %llu bytes", (unsigned long long)offset,
                (unsigned long long)bytes, b->segment.label, (unsigned long long)b->segment.size);
}

static int32_t write_buffer(void *self, struct rung_call *call, struct rung_buffer *b,
                            uint64_t offset, const void *from, uint64_t bytes)
{
    int32_t status = check_range(call, own(b), offset, bytes);

    (void)self;
    if (!status && bytes) {
        memcpy(own(b)->segment.host + offset, from, bytes);
        ptx_buffer_written(own(b), offset, bytes, 1);
    }
    return status;
}

static int32_t read_buffer(void *self, struct rung_call *call, struct rung_buffer *b,
                           uint64_t offset, void *to, uint64_t bytes)
{
    int32_t status = check_range(call, own(b), offset, bytes);

    (void)self;
    if (!status && bytes)
        memcpy(to, own(b)->segment.host + offset, bytes);
    return status;
}

static int32_t fill(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                    uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    const struct device *d = self;
    int32_t status = check_range(call, own(b), offset, bytes);

    if (!status && !n)
        return fail(call->error, RUNG_EINVAL, "ptx.fill", "a pattern of no bytes");
    if (status || !bytes)
        return status;
    ptx_buffer_fill(own(b), offset, bytes, pattern, n);
    if (written || d->limits.checks)
        ptx_buffer_written(own(b), offset, bytes, written != 0);
    return RUNG_OK;
}

/* ---- Modules and launches -------------------------------------------------------------------- */

static void clear_fault(struct rung_fault *fault)
{
    const uint32_t size = fault->struct_size;

    memset(fault, 0, size < sizeof *fault ? size : sizeof *fault);
    fault->struct_size = size;
}

static int32_t load(void *self, struct rung_call *call, const struct rung_artifact *artifact,
                    struct rung_module **out, struct rung_fault *fault)
{
    struct device *d = self;

    clear_fault(fault);
    *out = (struct rung_module *)(void *)ptx_module_load(artifact, &d->table, &d->memory, fault);
    if (!*out && !fault->code[0])
        return fail(call->error, RUNG_ENOMEM, "ptx.memory",
                    "no memory for a module's variables or programs");
    return RUNG_OK;
}

static void unload(void *self, struct rung_module *m)
{
    (void)self;
    ptx_module_free((struct ptx_module *)(void *)m);
}

static int32_t launch(void *self, struct rung_call *call, const struct rung_launch *l,
                      struct rung_fault *fault)
{
    struct device *d = self;
    const struct ptx_kernel *k;

    clear_fault(fault);
    if (!l->module || !l->kernel || !l->kernel->symbol)
        return fail(call->error, RUNG_EINVAL, "ptx.launch", "a launch without module or kernel");
    k = ptx_module_kernel((const struct ptx_module *)(const void *)l->module, l->kernel->symbol);
    if (!k)
        return fail(call->error, RUNG_ENOTFOUND, "ptx.kernel", "the module has no kernel '%s'",
                    l->kernel->symbol);
    if (k->problem.message[0]) {
        ptx_kernel_fault(k, l->kernel->expression, fault);
        return RUNG_OK;
    }
    return ptx_launch(d->host, call, &d->memory, &d->isa, &d->limits, &k->program, l, fault);
}

/* Launches have ended when launch() returns. */
static int32_t sync_device(void *self, struct rung_call *call, struct rung_fault *fault)
{
    (void)self;
    (void)call;
    clear_fault(fault);
    return RUNG_OK;
}

/* ---- Descriptor ------------------------------------------------------------------------------ */

/* All queued work has ended before the copy. The ranges may overlap. */
static int32_t copy(void *self, struct rung_call *call, struct rung_buffer *to, uint64_t to_offset,
                    struct rung_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    int32_t status = check_range(call, own(to), to_offset, bytes);

    (void)self;
    if (!status)
        status = check_range(call, own(from), from_offset, bytes);
    if (status || !bytes)
        return status;
    memmove(own(to)->segment.host + to_offset, own(from)->segment.host + from_offset, bytes);
    for (uint64_t k = 0; k < bytes; k++)
        ptx_buffer_written(own(to), to_offset + k, 1,
                           ptx_is_written(&own(from)->segment, from_offset + k, 1));
    return RUNG_OK;
}

static int32_t reset(void *self, struct rung_call *call, struct rung_module *m)
{
    (void)self;
    (void)call;
    ptx_module_reset((struct ptx_module *)(void *)m);
    return RUNG_OK;
}

static int32_t symbol(void *self, struct rung_call *call, struct rung_module *m, const char *name,
                      struct rung_buffer **out, uint64_t *bytes)
{
    struct ptx_buffer *b = ptx_module_symbol((struct ptx_module *)(void *)m, name);

    (void)self;
    *out = (struct rung_buffer *)(void *)b;
    if (!b)
        return fail(call->error, RUNG_ENOTFOUND, "ptx.symbol",
                    "the module has no variable '%s' of global or constant memory", name);
    *bytes = b->segment.size;
    return RUNG_OK;
}

static const char *const isa_values[] = {"auto", "v2", "v3", "v4", NULL};
static const char *const checks_values[] = {"off", "sample", "all", NULL};

#define OPTION(id, kind, text, u, what, low, high, ...)                                            \
    static const struct rung_option option_##id = {.struct_size = sizeof option_##id,              \
                                                   .type = kind,                                   \
                                                   .name = #id,                                    \
                                                   .default_text = text,                           \
                                                   .unit = u,                                      \
                                                   .summary = what,                                \
                                                   .min = low,                                     \
                                                   .max = high,                                    \
                                                   __VA_ARGS__}

OPTION(memory, RUNG_OPT_BYTES, "8GiB", "bytes", "Memory that buffers may take.", 1 << 20, 1e15,
       .flags = 0);
OPTION(max_instructions, RUNG_OPT_INT, "60000000000", "thread instructions",
       "PTX instructions of a launch, 32 a warp however many lanes are on; more is run.timeout.", 1,
       1e18, .flags = RUNG_OPT_ADVANCED);
OPTION(
    threads, RUNG_OPT_INT, "1", "threads",
    "Host threads that run blocks side by side; 0: one a core. With 1, launches are deterministic.",
    0, 64, .flags = 0);
OPTION(sm_count, RUNG_OPT_INT, "132", "multiprocessors", "What sm_count means in plans.", 1, 1024,
       .flags = RUNG_OPT_AFFECTS_RESULT);
OPTION(isa, RUNG_OPT_ENUM, "auto", NULL,
       "Instruction-set level of the host: x86-64-v2, -v3 or -v4.", 0, 0,
       .flags = RUNG_OPT_ADVANCED, .values = isa_values);

OPTION(checks, RUNG_OPT_ENUM, "sample", NULL,
       "Blocks in which races in shared memory and values never written are looked for: none, "
       "about eight spread over the grid, or all (several times slower).",
       0, 0, .flags = RUNG_OPT_AFFECTS_RESULT, .values = checks_values);
OPTION(order_seed, RUNG_OPT_INT, "0", NULL,
       "Order in which warps and blocks have their turns; 0: by number, else one made from it.", 0,
       1e9, .flags = RUNG_OPT_AFFECTS_RESULT | RUNG_OPT_ADVANCED);

static const struct rung_option *const options[] = {
    &option_memory, &option_max_instructions, &option_threads,    &option_sm_count,
    &option_isa,    &option_checks,           &option_order_seed, NULL};

static const struct rung_device_ops ops = {
    .struct_size = sizeof ops,
    .info = info,
    .alloc = alloc,
    .free = free_buffer,
    .address = address,
    .map = map,
    .write = write_buffer,
    .read = read_buffer,
    .fill = fill,
    .load = load,
    .unload = unload,
    .launch = launch,
    .sync = sync_device,
    .reset = reset,
    .symbol = symbol,
    .copy = copy,
};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_DEVICE,
    .name = "ptx",
    .summary = "Runs PTX on the CPU, warp by warp, and catches what a GPU does not.",
    .doc =
        "An interpreter of the PTX that NVRTC emits: 32 lanes at a time in vector registers. Every "
        "access is checked "
        "against the exact bounds of its buffer; barriers that part of a warp misses, shuffles "
        "from absent lanes, "
        "deadlocks and endless loops are reported with source line, block and thread. In checked "
        "blocks "
        "races in shared memory and values that nothing has written are reported too. Counters of "
        "a launch feed "
        "timers that model a GPU. It measures nothing: its own speed says nothing about a GPU's.\n"
        "A kernel with an instruction that the interpreter lacks is device.unsupported, never "
        "wrong.",
    .options = options,
    .ops = &ops,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof plugin,
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.device.ptx",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
