/* Parameter blocks: conversions by declared type, and every mismatch with its remedy. */
#include "task/task_common.h"

#include "base/philox.h"
#include "task/plan.h"

#include <math.h>
#include <string.h>

static struct rung_arena *arena;
static const struct rung_task *task;
static const uint64_t tensors[] = {0x1000, 0x2000}, temps[] = {0x7f0000000000};
static unsigned char blobs[2 * RUNG_TENSORMAP_BYTES];

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    task = softmax_task(arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_arena_free(arena);
    return 0;
}

/* Packs the arguments of "args=(...)" into a kernel whose parameters lie at multiples of 8. */
static bool pack(const char *args, const struct rung_kernel_param *params, uint32_t n, void *block,
                 const char **problem)
{
    struct rung_kernel_param placed[8];
    struct rung_kernel kernel = {.n_params = n, .params = placed, .param_bytes = 8 * n};
    for (uint32_t i = 0; i < n; i++) {
        placed[i] = params[i];
        placed[i].offset += 8 * i;
    }
    char *source =
        rung_arena_printf(arena,
                          "//@ temp t f16 [64]\n//@ tensormap unused = x box=(4, 4)\n//@ tensormap "
                          "m = x box=(4, 4)\n//@ launch k grid=(1) block=(1) args=(%s)\n",
                          args);
    const struct rung_plan *p = rung_plan_parse(arena, task, "k.cu", rung_text_of(source), problem);
    if (!p)
        fail_msg("%s", *problem);
    struct rung_point point = rung_plan_default_point(p);
    const struct rung_resolved_plan *r =
        rung_plan_resolve(arena, p, task, task->bench[0].dims, &point, 1, problem);
    if (!r)
        fail_msg("%s", *problem);
    return rung_plan_pack(r->steps, &kernel, task, p, tensors, temps, blobs, block, arena, problem);
}

static const struct rung_kernel_param U64 = {.type = RUNG_PARAM_INT, .size = 8},
                                      U32 = {.type = RUNG_PARAM_INT, .size = 4},
                                      U8 = {.type = RUNG_PARAM_INT, .size = 1},
                                      F32 = {.type = RUNG_PARAM_FLOAT, .size = 4},
                                      F64 = {.type = RUNG_PARAM_FLOAT, .size = 8},
                                      B32 = {.type = RUNG_PARAM_BITS, .size = 4},
                                      B64 = {.type = RUNG_PARAM_BITS, .size = 8},
                                      HALF = {.type = RUNG_PARAM_BYTES, .size = 2};

static void values_take_the_declared_type(void **state)
{
    (void)state;
    const struct rung_kernel_param params[] = {U64, U64, U32, U64, F32, F64, U8, F32};
    unsigned char block[64];
    const char *problem;
    if (!pack("y + 3, t + 4, 0 - 5, 0 - 5, scale, 1 / 3.0, 200, 7", params, 8, block, &problem))
        fail_msg("%s", problem);
    uint64_t u;
    int32_t i;
    int64_t l;
    float f;
    double d;
    memcpy(&u, block, 8);
    assert_int_equal(u, 0x2000 + 12);
    memcpy(&u, block + 8, 8);
    assert_true(u == 0x7f0000000000 + 8);
    memcpy(&i, block + 16, 4);
    assert_int_equal(i, -5);
    memcpy(&l, block + 24, 8);
    assert_int_equal(l, -5);
    memcpy(&f, block + 32, 4);
    assert_true(f == 1.5f);
    memcpy(&d, block + 40, 8);
    assert_true(d == 1 / 3.0);
    assert_int_equal(block[48], 200);
    memcpy(&f, block + 56, 4);
    assert_true(f == 7.0f);
    const struct rung_kernel_param untyped[] = {B64, B32, B32};
    assert_true(pack("x, 1.0, 9", untyped, 3, block, &problem));
    memcpy(&f, block + 8, 4);
    assert_true(f == 1.0f);
    memcpy(&i, block + 16, 4);
    assert_int_equal(i, 9);
}

static void mismatches_name_argument_type_and_remedy(void **state)
{
    (void)state;
    static const struct rung_kernel_param outside = {.type = RUNG_PARAM_INT,
                                                     .size = 8,
                                                     .offset = 1},
                                          far = {.type = RUNG_PARAM_INT,
                                                 .size = 8,
                                                 .offset = 0xfffffff0},
                                          odd = {.type = RUNG_PARAM_INT, .size = 3},
                                          none = {.type = RUNG_PARAM_INT, .size = 0},
                                          wild = {.type = 99, .size = 8};
    const struct {
        const char *args;
        struct rung_kernel_param param;
        const char *want;
    } cases[] = {
        {"x", U32, "argument 1: 'x' is a pointer, but the kernel declares a 4-byte integer"},
        {"x", F64, "'x' is a pointer, but the kernel declares a 8-byte float"},
        {"4294967296", U32, "4294967296 does not fit a 4-byte integer; declare it long long"},
        {"0 - 2147483649", U32, "does not fit"},
        {"256", U8, "does not fit"},
        {"0 - 129", U8, "does not fit"},
        {"1.5", U32, "a float, but the kernel declares a 4-byte integer"},
        {"1e300", F32, "does not fit a float"},
        {"1.5", HALF, "a number meets a 2-byte struct or array"},
        {"x", outside, "outside its 8 parameter bytes"},
        {"x", far, "outside its 8 parameter bytes"},
        {"1", none, "outside its 8 parameter bytes"},
        {"1", odd, "a number meets"},
        {"x", wild, "is a pointer"},
        {"m", U64, "'m' is a tensormap, but the kernel declares a 8-byte integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char block[8];
        const char *problem = NULL;
        if (pack(cases[i].args, &cases[i].param, 1, block, &problem))
            fail_msg("accepted: %s", cases[i].args);
        support_contains(problem, "line 4: launch k");
        support_contains(problem, cases[i].want);
    }
}

static void tensormaps_go_by_value(void **state)
{
    (void)state;
    struct rung_kernel_param map = {
        .type = RUNG_PARAM_BYTES, .size = 128, .alignment = 64, .offset = 0};
    struct rung_kernel_param params[] = {U64, map};
    const char *source = "//@ tensormap first = x box=(4, 4)\n//@ tensormap m = y box=(4, 4)\n"
                         "//@ launch k grid=(1) block=(1) args=(x, m)\n";
    struct rung_kernel kernel = {.n_params = 2, .params = params, .param_bytes = 192};
    unsigned char block[192];
    const char *problem;
    const struct rung_plan *p =
        rung_plan_parse(arena, task, "k.cu", rung_text_of(source), &problem);
    struct rung_point point = rung_plan_default_point(p);
    const struct rung_resolved_plan *r =
        rung_plan_resolve(arena, p, task, task->bench[0].dims, &point, 1, &problem);
    assert_non_null(r);
    for (size_t i = 0; i < sizeof blobs; i++)
        blobs[i] = (unsigned char)(i % 251);
    params[1].offset = 64;
    assert_true(
        rung_plan_pack(r->steps, &kernel, task, p, tensors, temps, blobs, block, arena, &problem));
    assert_memory_equal(block + 64, blobs + 128, 128);
    assert_false(
        rung_plan_pack(r->steps, &kernel, task, p, tensors, temps, NULL, block, arena, &problem));
    support_contains(problem, "nothing has encoded it");
    static const struct {
        uint32_t type, size, offset;
        const char *want;
    } cases[] = {
        {RUNG_PARAM_INT, 8, 64, "'m' is a tensormap, but the kernel declares a 8-byte integer"},
        {RUNG_PARAM_BYTES, 64, 64, "a 64-byte struct or array"},
        {RUNG_PARAM_BYTES, 128, 32, "declare it const __grid_constant__ CUtensorMap m"},
        {RUNG_PARAM_BYTES, 128, 128, "outside its 192 parameter bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        params[1].type = cases[i].type;
        params[1].size = cases[i].size;
        params[1].offset = cases[i].offset;
        assert_false(rung_plan_pack(r->steps, &kernel, task, p, tensors, temps, blobs, block, arena,
                                    &problem));
        support_contains(problem, "line 3: launch k: argument 2");
        support_contains(problem, cases[i].want);
    }
}

static void the_number_of_arguments_must_match(void **state)
{
    (void)state;
    unsigned char block[16];
    const char *problem;
    const struct rung_kernel_param params[] = {U64, U32};
    assert_false(pack("x", params, 2, block, &problem));
    support_contains(problem, "passes 1 arguments, but the kernel declares 2");
    assert_false(pack("x, 1, 2", params, 2, block, &problem));
}

/* Every integer either comes back as the same number, read signed or unsigned, or is refused. */
static void integers_survive_or_are_refused(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 4, 8};
    uint32_t words[4];
    for (uint64_t i = 0; i < 3000; i++) {
        rung_philox4(9, 9, i, words);
        int64_t v = (int64_t)(((uint64_t)words[0] << 32 | words[1]) >> (words[2] % 64));
        v = words[3] & 4 ? v : -v;
        uint32_t size = sizes[words[3] & 3];
        struct rung_kernel_param param = {.type = RUNG_PARAM_INT, .size = size};
        struct rung_kernel kernel = {.n_params = 1, .params = &param, .param_bytes = 8};
        struct rung_resolved_arg arg = {.kind = RUNG_ARG_I64, .i = v};
        struct rung_resolved_step step = {.expression = "k", .args = &arg, .n_args = 1};
        uint64_t block = 0;
        const char *problem;
        bool good = rung_plan_pack(&step, &kernel, task, NULL, tensors, temps, NULL, &block, arena,
                                   &problem);
        uint32_t shift = 64 - 8 * size;
        bool same =
            (int64_t)(block << shift) >> shift == v || (block << shift >> shift) == (uint64_t)v;
        assert_true(!good || same);
        bool small = v >= -128 && v <= 255;
        assert_true(good || !small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_take_the_declared_type, setup, teardown),
        cmocka_unit_test_setup_teardown(mismatches_name_argument_type_and_remedy, setup, teardown),
        cmocka_unit_test_setup_teardown(tensormaps_go_by_value, setup, teardown),
        cmocka_unit_test_setup_teardown(the_number_of_arguments_must_match, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_survive_or_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
