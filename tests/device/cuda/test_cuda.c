/*
 * The device "cuda". Without a driver or GPU: it says so and nothing else is tried. With one:
 * memory, launches, events, and each fault in a process of its own, since a fault ends the context.
 * Kernels are PTX that the driver compiles.
 */
#include "support/support.h"

#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"
#include "plugin/options.h"
#include "plugin/registry.h"
#include <rung/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char code[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    /* y[i] = 2 x[i], n threads */
    ".visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n) {\n"
    " .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<2>; .reg .pred %p;\n"
    " ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; ld.param.u32 %r0, [n];\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, "
    "%r3;\n"
    " setp.ge.u32 %p, %r4, %r0; @%p ret;\n"
    " mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;\n"
    " ld.global.f32 %f0, [%d3]; add.f32 %f0, %f0, %f0; st.global.f32 [%d4], %f0; ret;\n}\n"
    /* y[offset / 4] = 0 */
    ".visible .entry poke(.param .u64 y, .param .u64 offset) {\n"
    " .reg .b64 %d<3>; .reg .b32 %r0;\n"
    " ld.param.u64 %d0, [y]; ld.param.u64 %d1, [offset]; add.s64 %d2, %d0, %d1; mov.u32 %r0, 0;\n"
    " st.global.u32 [%d2], %r0; ret;\n}\n"
    /* never ends */
    ".visible .entry spin(.param .u64 y) {\n"
    " .reg .b64 %d0; .reg .b32 %r0; .reg .pred %p;\n"
    " ld.param.u64 %d0, [y];\nAGAIN: ld.volatile.global.u32 %r0, [%d0]; setp.ne.u32 %p, %r0, 77; "
    "@%p bra AGAIN;\n"
    " ret;\n}\n"
    ".visible .entry stop() { trap; ret; }\n"
    /* dynamic shared memory */
    ".extern .shared .align 4 .b8 pool[];\n"
    ".visible .entry shared_user(.param .u64 y, .param .u32 last) {\n"
    " .reg .b64 %d0; .reg .b32 %r<4>;\n"
    " ld.param.u64 %d0, [y]; ld.param.u32 %r0, [last]; mov.u32 %r1, pool; add.u32 %r2, %r1, %r0;\n"
    " mov.u32 %r3, 1234; st.shared.u32 [%r2], %r3; ld.shared.u32 %r0, [%r2]; st.global.u32 [%d0], "
    "%r0; ret;\n}\n"
    /* y[0] = ++counter */
    ".visible .global .align 4 .u32 counter;\n"
    ".visible .entry count(.param .u64 y) {\n"
    " .reg .b64 %d<2>; .reg .b32 %r0;\n"
    " ld.param.u64 %d0, [y]; ld.global.u32 %r0, [counter]; add.u32 %r0, %r0, 1;\n"
    " st.global.u32 [counter], %r0; st.global.u32 [%d0], %r0; ret;\n}\n"
    /* y[0] = c_w[1] */
    ".visible .const .align 4 .f32 c_w[4] = {0f40E00000, 0f40E00000, 0f40E00000, 0f40E00000};\n"
    ".visible .entry read_const(.param .u64 y) {\n"
    " .reg .b64 %d0; .reg .f32 %f0;\n"
    " ld.param.u64 %d0, [y]; ld.const.f32 %f0, [c_w+4]; st.global.f32 [%d0], %f0; ret;\n}\n";

static const struct rung_kernel_param params[3] = {
    {.struct_size = sizeof params[0], .offset = 0, .size = 8, .alignment = 8},
    {.struct_size = sizeof params[0], .offset = 8, .size = 8, .alignment = 8},
    {.struct_size = sizeof params[0], .offset = 16, .size = 4, .alignment = 4}};

#define KERNEL(name, bytes)                                                                        \
    {                                                                                              \
        .struct_size = sizeof(struct rung_kernel), .expression = name, .symbol = name,             \
        .params = params, .param_bytes = bytes                                                     \
    }
static const struct rung_kernel kernels[] = {
    KERNEL("twice", 20),       KERNEL("poke", 16), KERNEL("spin", 8),      KERNEL("stop", 0),
    KERNEL("shared_user", 12), KERNEL("count", 8), KERNEL("read_const", 8)};
enum { TWICE, POKE, SPIN, STOP, SHARED_USER, COUNT, READ_CONST, N_KERNELS };
static const struct rung_symbol symbols[] = {
    {.struct_size = sizeof symbols[0], .symbol = "counter", .bytes = 4},
    {.struct_size = sizeof symbols[0],
     .flags = RUNG_SYMBOL_CONST,
     .expression = "c_w",
     .symbol = "c_w",
     .bytes = 16}};

struct gpu {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_diags diags;
    struct rung_instance *instance;
    const struct rung_device_ops *ops;
    struct rung_device_info info;
    struct rung_module *module;
};

static int32_t gpu_start(struct gpu *g)
{
    const struct rung_loaded *loaded;
    memset(g, 0, sizeof *g);
    g->arena = rung_arena_new();
    g->error = rung_error_init();
    g->call =
        (struct rung_call){.struct_size = sizeof g->call, .arena = g->arena, .error = &g->error};
    g->registry = rung_registry_new();
    rung_registry_allow_insecure(g->registry);
    rung_registry_add_dir(g->registry, PLUGIN_DIR);
    if (rung_registry_load(g->registry, RUNG_KIND_DEVICE, "cuda", &loaded, &g->error))
        fail_msg("%s", g->error.message);
    struct rung_options *options =
        rung_options_read(g->arena, loaded->factory, NULL, NULL, "/", &g->diags);
    assert_non_null(options);
    assert_int_equal(rung_instance_new(loaded, options, "cuda", "/", NULL, &g->instance, &g->error),
                     RUNG_OK);
    int32_t status = rung_instance_start(g->instance, &g->error);
    g->ops = g->instance->ops;
    return status;
}

static void gpu_end(struct gpu *g)
{
    if (g->module)
        g->ops->unload(g->instance->self, g->module);
    rung_instance_free(g->instance);
    rung_registry_free(g->registry);
    rung_diags_free(&g->diags);
    rung_arena_free(g->arena);
}

#define SELF(g) ((g)->instance->self)
#define OK(g, expression)                                                                          \
    do {                                                                                           \
        if ((expression) != RUNG_OK)                                                               \
            fail_msg("%s: %s", #expression, (g)->error.message);                                   \
    } while (0)

/* Started with the kernels loaded, or the test is skipped. */
static void gpu_need(struct gpu *g)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_code ptx = {.struct_size = sizeof ptx,
                            .format = RUNG_FORMAT_PTX,
                            .arch = "compute_80",
                            .bytes = code,
                            .n_bytes = sizeof code - 1};
    struct rung_artifact artifact = {.struct_size = sizeof artifact,
                                     .n_codes = 1,
                                     .n_kernels = N_KERNELS,
                                     .codes = &ptx,
                                     .kernels = kernels,
                                     .symbols = symbols,
                                     .n_symbols = sizeof symbols / sizeof *symbols};
    if (gpu_start(g) != RUNG_OK) {
        gpu_end(g);
        skip();
    }
    OK(g, g->ops->info(SELF(g), &g->call, &g->info));
    OK(g, g->ops->load(SELF(g), &g->call, &artifact, &g->module, &fault));
    if (fault.code[0])
        fail_msg("%s: %s", fault.code, fault.message);
}

static struct rung_buffer *room(struct gpu *g, uint64_t bytes)
{
    struct rung_buffer *b;
    OK(g, g->ops->alloc(SELF(g), &g->call, bytes, 4096, "b", &b));
    assert_int_equal(g->ops->address(SELF(g), b) % 4096, 0);
    return b;
}

/* One block of 32 threads a kernel that stores one word at y; returns the word. */
static uint32_t word_of(struct gpu *g, int kernel, struct rung_buffer *y)
{
    uint64_t at = g->ops->address(SELF(g), y);
    uint32_t word = 0;
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_launch l = {.struct_size = sizeof l,
                            .module = g->module,
                            .kernel = &kernels[kernel],
                            .grid = {1, 1, 1},
                            .block = {1, 1, 1},
                            .params = &at,
                            .param_bytes = sizeof at};
    OK(g, g->ops->launch(SELF(g), &g->call, &l, &fault));
    OK(g, g->ops->sync(SELF(g), &g->call, &fault));
    assert_string_equal(fault.code, "");
    OK(g, g->ops->read(SELF(g), &g->call, y, 0, &word, sizeof word));
    return word;
}

/* `twice` over nothing, as a cluster or cooperative launch. */
static void launch_with(struct gpu *g, uint32_t grid, uint32_t cluster, uint32_t flags,
                        struct rung_fault *fault)
{
    struct {
        uint64_t x, y;
        uint32_t n;
    } args = {0, 0, 0};
    struct rung_launch l = {.struct_size = sizeof l,
                            .module = g->module,
                            .kernel = &kernels[TWICE],
                            .grid = {grid, 1, 1},
                            .block = {64, 1, 1},
                            .params = &args,
                            .param_bytes = 20,
                            .cluster = {cluster, cluster != 0, cluster != 0},
                            .flags = flags};
    *fault = (struct rung_fault){.struct_size = sizeof *fault};
    OK(g, g->ops->launch(SELF(g), &g->call, &l, fault));
    if (!fault->code[0])
        OK(g, g->ops->sync(SELF(g), &g->call, fault));
}

static void launch(struct gpu *g, int kernel, uint32_t grid, uint32_t block, uint32_t shared,
                   const void *block_of, struct rung_fault *fault)
{
    struct rung_launch l = {.struct_size = sizeof l,
                            .shared_bytes = shared,
                            .module = g->module,
                            .kernel = &kernels[kernel],
                            .grid = {grid, 1, 1},
                            .block = {block, 1, 1},
                            .params = block_of,
                            .param_bytes = kernels[kernel].param_bytes};
    *fault = (struct rung_fault){.struct_size = sizeof *fault};
    OK(g, g->ops->launch(SELF(g), &g->call, &l, fault));
}

/* ---- Without a GPU ---- */

static void a_missing_gpu_is_unavailable(void **state)
{
    struct gpu g;
    (void)state;
    int32_t status = gpu_start(&g);
    if (status != RUNG_OK) {
        assert_int_equal(status, RUNG_EUNAVAILABLE);
        assert_int_equal(g.error.code, RUNG_EUNAVAILABLE);
        assert_true(strlen(g.error.message) > 10);
    }
    gpu_end(&g);
}

/* ---- With one ---- */

static void it_describes_itself(void **state)
{
    struct gpu g;
    (void)state;
    gpu_need(&g);
    assert_int_equal(g.info.flags, RUNG_DEVICE_MEASURES);
    assert_int_equal(g.info.format, RUNG_FORMAT_CUBIN);
    assert_int_equal(strncmp(g.info.arch, "sm_", 3), 0);
    assert_int_equal(strncmp(g.info.id, "GPU-", 4), 0);
    assert_int_equal(strlen(g.info.id), 40);
    assert_true(g.info.sm_count > 0 && g.info.max_threads_per_block >= 1024);
    assert_true(g.info.max_shared_bytes >= 48 << 10 && g.info.l2_bytes > 0);
    assert_true(g.info.memory_bytes > 1 << 28);
    print_message("%s, %s, %s, %u SMs, L2 %u, shared %u, %s\n", g.info.name, g.info.id, g.info.arch,
                  g.info.sm_count, g.info.l2_bytes, g.info.max_shared_bytes, g.info.driver);
    gpu_end(&g);
}

static void fills_repeat_patterns_at_any_offset(void **state)
{
    static const struct {
        uint64_t offset, bytes, n;
        int kind;
    } cases[] = {{0, 1 << 20, 4096, 0}, {3, 1000, 1, 0},        {4, 4000, 4, 0},
                 {5, 4001, 4, 0},       {256, 100000, 4096, 1}, {1, 777, 64, 0},
                 {0, 10, 4096, 0},      {128, 1 << 16, 8, 2},   {7, 1, 3, 0}};
    static unsigned char pattern[4096], got[(1 << 20) + 16];
    struct gpu g;
    (void)state;
    gpu_need(&g);
    struct rung_buffer *b = room(&g, sizeof got);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char mark = 0xee;
        for (size_t k = 0; k < sizeof pattern; k++)
            pattern[k] = cases[i].kind == 0   ? (unsigned char)(k * 7 + 1)
                         : cases[i].kind == 1 ? 0
                                              : "abcd"[k % 4];
        OK(&g, g.ops->fill(SELF(&g), &g.call, b, 0, sizeof got, &mark, 1, 1));
        OK(&g, g.ops->fill(SELF(&g), &g.call, b, cases[i].offset, cases[i].bytes, pattern,
                           cases[i].n, 1));
        OK(&g, g.ops->read(SELF(&g), &g.call, b, 0, got, sizeof got));
        for (uint64_t k = 0; k < sizeof got; k++) {
            int in = k >= cases[i].offset && k < cases[i].offset + cases[i].bytes;
            unsigned char want = in ? pattern[(k - cases[i].offset) % cases[i].n] : mark;
            if (got[k] != want)
                fail_msg("case %zu, byte %lu: %02x, not %02x", i, (unsigned long)k, got[k], want);
        }
    }
    assert_int_equal(g.ops->write(SELF(&g), &g.call, b, sizeof got, got, 1), RUNG_EINVAL);
    assert_int_equal(g.ops->read(SELF(&g), &g.call, b, UINT64_MAX, got, 2), RUNG_EINVAL);
    g.ops->free(SELF(&g), b);
    gpu_end(&g);
}

static void kernels_run_and_are_timed(void **state)
{
    enum { N = 1 << 22 };
    struct gpu g;
    struct rung_fault fault;
    struct rung_device_event *from, *to;
    (void)state;
    gpu_need(&g);
    float *host = malloc(N * sizeof *host);
    struct rung_buffer *x = room(&g, N * sizeof *host), *y = room(&g, N * sizeof *host);
    for (int i = 0; i < N; i++)
        host[i] = (float)(i % 1000);
    OK(&g, g.ops->write(SELF(&g), &g.call, x, 0, host, N * sizeof *host));
    OK(&g, g.ops->event_new(SELF(&g), &g.call, &from));
    OK(&g, g.ops->event_new(SELF(&g), &g.call, &to));
    struct {
        uint64_t x, y;
        uint32_t n;
    } args = {g.ops->address(SELF(&g), x), g.ops->address(SELF(&g), y), N};
    launch(&g, TWICE, N / 256, 256, 0, &args, &fault);
    OK(&g, g.ops->event_record(SELF(&g), &g.call, from));
    launch(&g, TWICE, N / 256, 256, 0, &args, &fault);
    OK(&g, g.ops->event_record(SELF(&g), &g.call, to));
    OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    assert_string_equal(fault.code, "");
    double ns;
    OK(&g, g.ops->event_elapsed(SELF(&g), &g.call, from, to, &ns));
    print_message("32 MiB in %.1f us\n", ns / 1e3);
    assert_true(ns > 1000 && ns < 1e7);
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, host, N * sizeof *host));
    for (int i = 0; i < N; i++)
        assert_true(host[i] == 2.0f * (float)(i % 1000));
    g.ops->event_free(SELF(&g), from);
    g.ops->event_free(SELF(&g), to);
    g.ops->free(SELF(&g), x);
    g.ops->free(SELF(&g), y);
    free(host);
    gpu_end(&g);
}

static void variables_are_filled_and_restored(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    struct gpu g;
    struct rung_buffer *from, *y, *c_w, *again;
    uint64_t bytes = 0;
    float got;
    (void)state;
    gpu_need(&g);
    from = room(&g, sizeof x);
    y = room(&g, 16);
    OK(&g, g.ops->write(SELF(&g), &g.call, from, 0, x, sizeof x));
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    assert_int_equal(word_of(&g, COUNT, y), 1);
    assert_int_equal(word_of(&g, COUNT, y), 2);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    assert_int_equal(word_of(&g, COUNT, y), 1);
    OK(&g, g.ops->symbol(SELF(&g), &g.call, g.module, "c_w", &c_w, &bytes));
    assert_int_equal(bytes, 16);
    OK(&g, g.ops->copy(SELF(&g), &g.call, c_w, 4, from, 8, 8));
    uint32_t word = word_of(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 3);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    word = word_of(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 7);
    OK(&g, g.ops->symbol(SELF(&g), &g.call, g.module, "c_w", &again, &bytes));
    OK(&g, g.ops->copy(SELF(&g), &g.call, again, 0, from, 0, 16));
    word = word_of(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 2);
    assert_int_equal(g.ops->copy(SELF(&g), &g.call, again, 4, from, 0, 16), RUNG_EINVAL);
    assert_int_equal(g.ops->copy(SELF(&g), &g.call, again, 0, from, UINT64_MAX, 1), RUNG_EINVAL);
    assert_int_equal(g.ops->symbol(SELF(&g), &g.call, g.module, "c_v", &again, &bytes),
                     RUNG_ENOTFOUND);
    g.ops->free(SELF(&g), from);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

static void clusters_and_cooperative_launches(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    (void)state;
    gpu_need(&g);
    launch_with(&g, g.info.sm_count, 0, RUNG_LAUNCH_COOPERATIVE, &fault);
    assert_string_equal(fault.code, "");
    launch_with(&g, 1 << 20, 0, RUNG_LAUNCH_COOPERATIVE, &fault);
    assert_string_equal(fault.code, "launch.resources");
    support_contains(fault.message, "fit at once");
    assert_int_equal(fault.sticky, 0);
    launch_with(&g, 64, 2, 0, &fault);
    if (atoi(g.info.arch + 3) < 90) {
        assert_string_equal(fault.code, "device.unsupported");
    } else {
        assert_string_equal(fault.code, "");
        launch_with(&g, 64, 16, 0, &fault);
        assert_string_equal(fault.code, "");
        launch_with(&g, 64, 2, RUNG_LAUNCH_COOPERATIVE, &fault);
        assert_string_equal(fault.code, "");
    }
    launch_with(&g, 64, 64, 0, &fault);
    assert_true(strcmp(fault.code, "") != 0);
    print_message("a cluster of 64: %s: %s\n", fault.code, fault.message);
    assert_int_equal(fault.sticky, 0);
    gpu_end(&g);
}

static void bad_launches_leave_the_device_whole(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    (void)state;
    gpu_need(&g);
    struct rung_buffer *y = room(&g, 4096), *huge;
    struct {
        uint64_t y;
        uint32_t last;
    } args = {g.ops->address(SELF(&g), y), 0};
    launch(&g, SHARED_USER, 1, 2048, 0, &args, &fault);
    assert_string_equal(fault.code, "launch.error");
    assert_int_equal(fault.sticky, 0);
    launch(&g, SHARED_USER, 1, 32, g.info.max_shared_bytes + 1024, &args, &fault);
    assert_string_equal(fault.code, "launch.resources");
    assert_int_equal(g.ops->alloc(SELF(&g), &g.call, UINT64_C(1) << 50, 256, "huge", &huge),
                     RUNG_ENOMEM);
    args.last = g.info.max_shared_bytes - 4;
    launch(&g, SHARED_USER, 1, 1, g.info.max_shared_bytes, &args, &fault);
    assert_string_equal(fault.code, "");
    OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    assert_string_equal(fault.code, "");
    uint32_t got;
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, &got, 4));
    assert_int_equal(got, 1234);
    struct rung_code bad = {
        .struct_size = sizeof bad, .format = RUNG_FORMAT_PTX, .bytes = "nonsense", .n_bytes = 8};
    struct rung_artifact artifact = {.struct_size = sizeof artifact, .n_codes = 1, .codes = &bad};
    struct rung_module *module;
    fault = (struct rung_fault){.struct_size = sizeof fault};
    OK(&g, g.ops->load(SELF(&g), &g.call, &artifact, &module, &fault));
    assert_string_equal(fault.code, "device.unsupported");
    bad.format = RUNG_FORMAT_CUBIN;
    fault = (struct rung_fault){.struct_size = sizeof fault};
    OK(&g, g.ops->load(SELF(&g), &g.call, &artifact, &module, &fault));
    assert_string_equal(fault.code, "device.unsupported");
    assert_null(module);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

/* ---- Faults: this program again, with the fault's name; it prints the code that it met. ---- */

static int fault_child(const char *which)
{
    struct gpu g;
    struct rung_fault fault = {.struct_size = sizeof fault};
    int32_t status = gpu_start(&g);
    gpu_end(&g);
    if (status != RUNG_OK)
        return 77;
    gpu_need(&g);
    struct rung_buffer *y = room(&g, 4096);
    struct {
        uint64_t y, offset;
    } args = {g.ops->address(SELF(&g), y), 0};
    int kernel = POKE;
    if (strcmp(which, "mem.out_of_bounds") == 0)
        args.offset = UINT64_C(1) << 40;
    else if (strcmp(which, "mem.misaligned") == 0)
        args.offset = 2;
    else if (strcmp(which, "run.timeout") == 0)
        kernel = SPIN;
    else
        kernel = STOP;
    launch(&g, kernel, 1, 1, 0, &args, &fault);
    g.call.deadline_ns = rung_now_ns() + 500000000u;
    if (!fault.code[0])
        OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    printf("%s sticky=%u: %s\n", fault.code, fault.sticky, fault.message);
    fflush(stdout);
    int right = strcmp(fault.code, which) == 0 && fault.sticky == 1;
    /* Nothing may wait for the GPU from here on. */
    struct rung_buffer *more;
    right &= g.ops->alloc(SELF(&g), &g.call, 16, 16, "more", &more) == RUNG_EUNAVAILABLE;
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
    _exit(right ? 0 : 1);
}

static char *self_path;

static void meets(const char *which)
{
    pid_t pid = fork(); /* this process has no context: every test before ended its own */
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(self_path, self_path, which, (char *)NULL);
        _exit(126);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void an_illegal_address_is_out_of_bounds(void **state)
{
    (void)state;
    meets("mem.out_of_bounds");
}

static void a_misaligned_access_is_told(void **state)
{
    (void)state;
    meets("mem.misaligned");
}

static void a_kernel_without_end_meets_the_deadline(void **state)
{
    (void)state;
    meets("run.timeout");
}

static void a_trap_is_a_crash(void **state)
{
    (void)state;
    meets("run.crash");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return fault_child(argv[1]);
    self_path = argv[0];
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_gpu_is_unavailable),
                                       cmocka_unit_test(it_describes_itself),
                                       cmocka_unit_test(fills_repeat_patterns_at_any_offset),
                                       cmocka_unit_test(kernels_run_and_are_timed),
                                       cmocka_unit_test(variables_are_filled_and_restored),
                                       cmocka_unit_test(clusters_and_cooperative_launches),
                                       cmocka_unit_test(bad_launches_leave_the_device_whole),
                                       cmocka_unit_test(an_illegal_address_is_out_of_bounds),
                                       cmocka_unit_test(a_misaligned_access_is_told),
                                       cmocka_unit_test(a_kernel_without_end_meets_the_deadline),
                                       cmocka_unit_test(a_trap_is_a_crash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
