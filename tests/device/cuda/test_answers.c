/*
 * The device "cuda": tensor maps, parameters that are aligned as they are, and what each answer of
 * the driver means. On a GPU, and over stand-ins of the driver (fake.h), new and old.
 */
#include "device/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tensor maps ---- */

static const struct rung_tensormap right = {.struct_size = sizeof right,
                                            .dtype = RUNG_F16,
                                            .n_dims = 3,
                                            .swizzle = 64,
                                            .l2_promotion = 256,
                                            .fill_nan = 1,
                                            .address = 0x1000,
                                            .dims = {100, 50, 7},
                                            .strides = {0, 208, 10400},
                                            .box = {32, 8, 1},
                                            .elements = {1, 2, 1}};

#define WITH(change)                                                                               \
    do {                                                                                           \
        m = right;                                                                                 \
        change;                                                                                    \
        fault = gpu_no_fault();                                                                    \
        OK(&g, g.ops->tensormap(SELF(&g), &g.call, &m, out, &fault));                              \
    } while (0)
#define REFUSED(want, change)                                                                      \
    do {                                                                                           \
        WITH(change);                                                                              \
        assert_string_equal(fault.code, "plan.error");                                             \
        support_contains(fault.message, want);                                                     \
        assert_int_equal(fault.sticky, 0);                                                         \
    } while (0)

static void limits_of_tensor_maps_are_told(struct gpu *device)
{
    struct gpu g = *device;
    struct rung_tensormap m;
    struct rung_fault fault;
    char out[RUNG_TENSORMAP_BYTES];
    REFUSED("no elements of type 99", m.dtype = 99);
    REFUSED("1 to 5", m.n_dims = 0);
    REFUSED("1 to 5", m.n_dims = 6);
    REFUSED("the offset must be a multiple of 8 elements", m.address += 2);
    REFUSED("dims[1] is 0", m.dims[1] = 0);
    REFUSED("between 1 and 2^32", m.dims[0] = (UINT64_C(1) << 32) + 1);
    REFUSED("stride of dimension 1 is 200 bytes, no multiple of 16", m.strides[1] = 200);
    REFUSED("must be below 2^40", m.strides[2] = UINT64_C(1) << 40);
    REFUSED("box[2] is 257", m.box[2] = 257);
    REFUSED("box[0] is 0", m.box[0] = 0);
    REFUSED("elements[1] is 9", m.elements[1] = 9);
    REFUSED("elements[0] is 0", m.elements[0] = 0);
    REFUSED("60 bytes in all, no multiple of 16: take a multiple of 8 elements", m.box[0] = 30);
    REFUSED("swizzle is 48 bytes", m.swizzle = 48);
    REFUSED("with swizzle=32 it must not pass 32 bytes: take at most 16 elements", m.swizzle = 32);
    REFUSED("l2 is 32 bytes", m.l2_promotion = 32);
    REFUSED("oob=nan needs elements that are floats, but these are i32",
            (m.dtype = RUNG_I32, m.box[0] = 16));
}

static void tensor_maps_are_encoded_or_refused(void **state)
{
    static const uint32_t types[][2] = {{RUNG_F64, 8},  {RUNG_F32, 7}, {RUNG_F16, 6},
                                        {RUNG_BF16, 9}, {RUNG_I8, 0},  {RUNG_U8, 0},
                                        {RUNG_I32, 3},  {RUNG_I64, 5}, {RUNG_BOOL, 0}};
    static const uint32_t want[27] = {6,     3, 0, 2, 3,  1, 0x1000, 100, 50, 7, 0, 0, 208,
                                      10400, 0, 0, 0, 32, 8, 1,      0,   0,  1, 2, 1};
    struct gpu g;
    struct rung_tensormap m;
    struct rung_fault fault;
    char out[RUNG_TENSORMAP_BYTES + 1];
    uint32_t words[32];
    (void)state;
    gpu_need(&g);
    WITH((void)0);
    if (g.info.compute_major < 9) {
        assert_string_equal(fault.code, "device.unsupported");
        support_contains(fault.message, "has no tensor maps");
        gpu_end(&g);
        return;
    }
    assert_string_equal(fault.code, "");
    memcpy(words, out, sizeof words);
    if (gpu_seen())
        assert_memory_equal(words, want, sizeof want);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        WITH((m.dtype = types[i][0], m.swizzle = 0, m.fill_nan = 0, m.box[0] = 16));
        assert_string_equal(fault.code, "");
        memcpy(words, out, sizeof words);
        if (gpu_seen())
            assert_int_equal(words[0], types[i][1]);
    }
    limits_of_tensor_maps_are_told(&g);
    if (gpu_seen()) /* what only the driver knows */
        REFUSED("CUDA_ERROR_", {
            m.n_dims = 5;
            m.dims[3] = m.box[3] = m.box[4] = m.elements[3] = m.elements[4] = 1;
            m.dims[4] = 13;
        });
    gpu_end(&g);
}

static void wide_parameters_lie_where_the_driver_says(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    uint32_t word = 0;
    struct {
        uint32_t map[32];
        uint64_t y;
    } args = {.map = {1, 4321, 3}};
    (void)state;
    gpu_need(&g);
    struct rung_buffer *y = gpu_room(&g, 16);
    args.y = g.ops->address(SELF(&g), y);
    gpu_launch(&g, WIDE, 1, 1, 0, &args, &fault);
    assert_string_equal(fault.code, "");
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, &word, sizeof word));
    assert_int_equal(word, 4321);
    /* The same in a graph, which copies the parameters. */
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    args.map[1] = 999;
    gpu_launch(&g, WIDE, 1, 1, 0, &args, &fault);
    struct rung_graph *graph = gpu_captured(&g);
    memset(&args, 0, sizeof args);
    OK(&g, g.ops->replay(SELF(&g), &g.call, graph, &fault));
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, &word, sizeof word));
    assert_int_equal(word, 999);
    g.ops->graph_free(SELF(&g), graph);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

static void parameters_that_the_code_has_not_are_refused(void **state)
{
    struct gpu g;
    struct rung_fault fault = gpu_no_fault();
    struct rung_kernel_param params[2] = {gpu_kernels[WIDE].params[0], gpu_kernels[WIDE].params[1]};
    struct rung_kernel kernel = gpu_kernels[WIDE];
    char block[136] = {0};
    (void)state;
    if (!gpu_driver_has("cuFuncGetParamInfo"))
        skip();
    gpu_need(&g);
    kernel.params = params;
    struct rung_launch l = {.struct_size = sizeof l,
                            .module = g.module,
                            .kernel = &kernel,
                            .grid = {1, 1, 1},
                            .block = {1, 1, 1},
                            .params = block,
                            .param_bytes = sizeof block};
    kernel.n_params = 1; /* the code has two */
    OK(&g, g.ops->launch(SELF(&g), &g.call, &l, &fault));
    assert_string_equal(fault.code, "launch.error");
    kernel.n_params = 2;
    params[1].size = 4; /* the code reads eight bytes */
    fault = gpu_no_fault();
    OK(&g, g.ops->launch(SELF(&g), &g.call, &l, &fault));
    assert_string_equal(fault.code, "launch.error");
    assert_int_equal(fault.sticky, 0);
    gpu_end(&g);
}

/* ---- What the driver's answers mean ---- */

static void each_answer_of_the_driver_has_its_code(void **state)
{
    static const struct {
        int result;
        const char *code;
        uint32_t sticky;
    } answers[] = {{1, "launch.error", 0},         {2, "device.memory", 0},
                   {3, "device.lost", 1},          {4, "device.lost", 1},
                   {46, "device.lost", 1},         {201, "device.lost", 1},
                   {200, "device.unsupported", 0}, {209, "device.unsupported", 0},
                   {214, "device.lost", 1},        {218, "device.unsupported", 0},
                   {220, "device.lost", 1},        {221, "device.unsupported", 0},
                   {223, "device.unsupported", 0}, {226, "device.lost", 1},
                   {500, "launch.error", 0},       {700, "mem.out_of_bounds", 1},
                   {701, "launch.resources", 0},   {702, "run.timeout", 1},
                   {709, "device.lost", 1},        {710, "run.crash", 1},
                   {714, "run.crash", 1},          {715, "run.crash", 1},
                   {716, "mem.misaligned", 1},     {717, "mem.out_of_bounds", 1},
                   {718, "run.crash", 1},          {719, "run.crash", 1},
                   {720, "launch.resources", 0},   {721, "run.crash", 1},
                   {801, "device.unsupported", 0}, {802, "device.lost", 1},
                   {805, "device.lost", 1},        {807, "device.lost", 1},
                   {810, "device.lost", 1},        {900, "device.unsupported", 0},
                   {908, "device.unsupported", 0}, {911, "device.lost", 1},
                   {912, "launch.resources", 0},   {916, "device.lost", 1},
                   {999, "run.crash", 0}};
    (void)state;
    if (!gpu_seen())
        skip();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct gpu g;
        struct rung_fault fault;
        struct rung_buffer *b;
        uint64_t answer = (uint64_t)answers[i].result;
        gpu_need(&g);
        gpu_launch(&g, ANSWER, 1, 1, 0, &answer, &fault);
        if (strcmp(fault.code, answers[i].code) != 0 || fault.sticky != answers[i].sticky)
            fail_msg("%d: %s, sticky %u", answers[i].result, fault.code, fault.sticky);
        assert_int_equal(g.ops->alloc(SELF(&g), &g.call, 16, 16, "b", &b),
                         fault.sticky ? RUNG_EUNAVAILABLE : RUNG_OK);
        g.ops->free(SELF(&g), b);
        assert_int_equal(g.ops->native(SELF(&g), RUNG_NATIVE_STREAM) == 0, fault.sticky);
        gpu_end(&g);
    }
}

static void code_for_other_gpus_is_unsupported(void **state)
{
    static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [58] = 64};
    struct gpu g;
    struct rung_code cubin = {
        .struct_size = sizeof cubin, .format = RUNG_FORMAT_CUBIN, .bytes = elf, .n_bytes = 64};
    struct rung_artifact artifact = {.struct_size = sizeof artifact, .n_codes = 1, .codes = &cubin};
    struct rung_module *module;
    struct rung_fault fault = gpu_no_fault();
    (void)state;
    gpu_need(&g);
    OK(&g, g.ops->load(SELF(&g), &g.call, &artifact, &module, &fault));
    assert_null(module);
    assert_string_equal(fault.code, "device.unsupported");
    if (gpu_seen())
        support_contains(fault.message, "compiled for other GPUs");
    assert_int_equal(fault.sticky, 0);
    gpu_end(&g);
}

static void a_driver_that_does_not_start_is_unavailable(void **state)
{
    static const struct {
        const char *answer, *want;
    } cases[] = {{"100", "no GPU here"}, {"999", "does not start"}, {"803", "does not start"}};
    (void)state;
    if (!gpu_seen())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gpu g;
        setenv("FAKE_CUDA_INIT", cases[i].answer, 1);
        assert_int_equal(gpu_start(&g), RUNG_EUNAVAILABLE);
        support_contains(g.error.message, cases[i].want);
        gpu_end(&g);
        unsetenv("FAKE_CUDA_INIT");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_maps_are_encoded_or_refused),
        cmocka_unit_test(wide_parameters_lie_where_the_driver_says),
        cmocka_unit_test(parameters_that_the_code_has_not_are_refused),
        cmocka_unit_test(each_answer_of_the_driver_has_its_code),
        cmocka_unit_test(code_for_other_gpus_is_unsupported),
        cmocka_unit_test(a_driver_that_does_not_start_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
