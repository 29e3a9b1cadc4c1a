/* What the tests of the device share: see gpu.h. */
#include "device/cuda/gpu.h"

#include "base/status.h"
#include "plugin/options.h"

#include <dlfcn.h>
#include <string.h>

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
    " ld.param.u64 %d0, [y]; ld.const.f32 %f0, [c_w+4]; st.global.f32 [%d0], %f0; ret;\n}\n"
    /* the driver's double answers the launch with `code` */
    ".visible .entry answer(.param .u64 code) { ret; }\n"
    /* y[0] = word 1 of a parameter that is aligned as tensor maps are */
    ".visible .entry wide(.param .align 64 .b8 m[128], .param .u64 y) {\n"
    " .reg .b64 %d0; .reg .b32 %r0;\n"
    " ld.param.u64 %d0, [y]; ld.param.u32 %r0, [m+4]; st.global.u32 [%d0], %r0; ret;\n}\n";

static const struct rung_kernel_param params[3] = {
    {.struct_size = sizeof params[0], .offset = 0, .size = 8, .alignment = 8},
    {.struct_size = sizeof params[0], .offset = 8, .size = 8, .alignment = 8},
    {.struct_size = sizeof params[0], .offset = 16, .size = 4, .alignment = 4}};

static const struct rung_kernel_param wide[2] = {
    {.struct_size = sizeof wide[0], .offset = 0, .size = 128, .alignment = 64},
    {.struct_size = sizeof wide[0], .offset = 128, .size = 8, .alignment = 8}};

#define KERNEL(name, bytes)                                                                        \
    {                                                                                              \
        .struct_size = sizeof(struct rung_kernel), .expression = name, .symbol = name,             \
        .params = params, .param_bytes = bytes                                                     \
    }
const struct rung_kernel gpu_kernels[N_KERNELS] = {{.struct_size = sizeof(struct rung_kernel),
                                                    .expression = "twice",
                                                    .symbol = "twice",
                                                    .params = params,
                                                    .n_params = 3,
                                                    .param_bytes = 20},
                                                   KERNEL("poke", 16),
                                                   KERNEL("spin", 8),
                                                   KERNEL("stop", 0),
                                                   KERNEL("shared_user", 12),
                                                   KERNEL("count", 8),
                                                   KERNEL("read_const", 8),
                                                   KERNEL("answer", 8),
                                                   {.struct_size = sizeof(struct rung_kernel),
                                                    .expression = "wide",
                                                    .symbol = "wide",
                                                    .params = wide,
                                                    .n_params = 2,
                                                    .param_bytes = 136}};
static const struct rung_symbol symbols[] = {
    {.struct_size = sizeof symbols[0], .symbol = "counter", .bytes = 4},
    {.struct_size = sizeof symbols[0],
     .flags = RUNG_SYMBOL_CONST,
     .expression = "c_w",
     .symbol = "c_w",
     .bytes = 16}};

int32_t gpu_start(struct gpu *g)
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

void gpu_end(struct gpu *g)
{
    if (g->module)
        g->ops->unload(g->instance->self, g->module);
    rung_instance_free(g->instance);
    rung_registry_free(g->registry);
    rung_diags_free(&g->diags);
    rung_arena_free(g->arena);
}

/* Started with the kernels loaded, or the test is skipped. */
void gpu_need(struct gpu *g)
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
                                     .kernels = gpu_kernels,
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

struct rung_buffer *gpu_room(struct gpu *g, uint64_t bytes)
{
    struct rung_buffer *b;
    OK(g, g->ops->alloc(SELF(g), &g->call, bytes, 4096, "b", &b));
    assert_int_equal(g->ops->address(SELF(g), b) % 4096, 0);
    return b;
}

/* One block of 32 threads a kernel that stores one word at y; returns the word. */
uint32_t gpu_word(struct gpu *g, int kernel, struct rung_buffer *y)
{
    uint64_t at = g->ops->address(SELF(g), y);
    uint32_t word = 0;
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_launch l = {.struct_size = sizeof l,
                            .module = g->module,
                            .kernel = &gpu_kernels[kernel],
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
void gpu_launch_with(struct gpu *g, uint32_t grid, uint32_t cluster, uint32_t flags,
                     struct rung_fault *fault)
{
    struct {
        uint64_t x, y;
        uint32_t n;
    } args = {0, 0, 0};
    struct rung_launch l = {.struct_size = sizeof l,
                            .module = g->module,
                            .kernel = &gpu_kernels[TWICE],
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

void gpu_launch(struct gpu *g, int kernel, uint32_t grid, uint32_t block, uint32_t shared,
                const void *block_of, struct rung_fault *fault)
{
    struct rung_launch l = {.struct_size = sizeof l,
                            .shared_bytes = shared,
                            .module = g->module,
                            .kernel = &gpu_kernels[kernel],
                            .grid = {grid, 1, 1},
                            .block = {block, 1, 1},
                            .params = block_of,
                            .param_bytes = gpu_kernels[kernel].param_bytes};
    *fault = (struct rung_fault){.struct_size = sizeof *fault};
    OK(g, g->ops->launch(SELF(g), &g->call, &l, fault));
}

const struct fake_seen *gpu_seen(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, "fake_seen") : NULL;
}

int gpu_driver_has(const char *symbol)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver && dlsym(driver, symbol) != NULL;
}

struct rung_fault gpu_no_fault(void)
{
    return (struct rung_fault){.struct_size = sizeof(struct rung_fault)};
}

struct rung_graph *gpu_captured(struct gpu *g)
{
    struct rung_graph *graph;
    struct rung_fault fault = gpu_no_fault();
    OK(g, g->ops->captured(SELF(g), &g->call, &graph, &fault));
    if (!graph)
        fail_msg("%s: %s", fault.code, fault.message);
    assert_string_equal(fault.code, "");
    return graph;
}
