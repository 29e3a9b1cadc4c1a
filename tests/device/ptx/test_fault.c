/*
 * test_fault.c - what wrong kernels get to hear: code, line, thread, and words a model can use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "snippet.h"

#define WARP                                                                                       \
    {                                                                                              \
        .block = { 32, 1, 1 }                                                                      \
    }

static int open_device(void **state)
{
    static struct px px;

    *state = &px;
    return px_open(&px, PTX_PLUGIN, NULL);
}

static int close_device(void **state)
{
    px_close(*state);
    return 0;
}

static void assert_says(const struct px *px, const char *what)
{
    if (!strstr(px->fault.message, what))
        fail_msg("'%s' is not in '%s'", what, px->fault.message);
}

/* Thread t writes 4 bytes at out + 4 * (t + n): one past the end for n = 1 and 32 words. */
#define STORE                                                                                      \
    "add.u32 %r3, %r2, %r1; mul.wide.u32 %x3, %r3, 4;\nadd.s64 %x3, %x1, %x3;\nst.global.u32 "     \
    "[%x3], %r2;\n"

static void one_element_past_the_end(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "x", NULL, 128);

    assert_string_equal(run_snippet(px, STORE, x, NULL, 0, (struct px_launch)WARP), "");
    assert_string_equal(run_snippet(px, STORE, x, NULL, 1, (struct px_launch)WARP),
                        "mem.out_of_bounds");
    assert_int_equal(px->fault.line, 3);
    assert_int_equal(px->fault.thread[0], 31);
    assert_int_equal(px->fault.address, px_address(px, x) + 128);
    assert_string_equal(px->fault.kernel, "k");
    assert_says(px, "global store of 4 bytes");
    assert_says(px, "0 bytes past the end of 'x' (128 bytes at 0x");
    assert_says(px, "), block (0,0,0), thread (31,0,0)");
    if (strstr(px->fault.message, "line"))
        fail_msg("the line stands twice: %s", px->fault.message);
    px_free(px, x);
}

/* A kernel goes by the name that the plan has for it. */
static void names_as_asked(void **state)
{
    struct px *px = *state;
    struct px_launch l = WARP;

    l.expression = "scale<4>";
    assert_string_equal(run_snippet(px, "trap;\n", NULL, NULL, 0, l), "run.crash");
    assert_string_equal(px->fault.kernel, "scale<4>");
    l.block.x = 2000;
    assert_string_equal(run_snippet(px, "", NULL, NULL, 0, l), "launch.error");
    assert_string_equal(px->fault.kernel, "scale<4>");
}

static void before_the_start(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "x", NULL, 128);

    assert_string_equal(
        run_snippet(px, "ld.global.f32 %f1, [%x1+-4];\n", x, NULL, 0, (struct px_launch)WARP),
        "mem.out_of_bounds");
    assert_says(px, "global load of 4 bytes");
    assert_says(px, "4 bytes before 'x'");
    px_free(px, x);
}

/* A vector access whose last element is outside is outside. */
static void vector_over_the_end(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "x", NULL, 120);

    assert_string_equal(run_snippet(px, "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%x1+112];\n", x, NULL,
                                    0, (struct px_launch)WARP),
                        "mem.out_of_bounds");
    assert_says(px, "load of 16 bytes");
    assert_says(px, "ends 8 bytes past the end of 'x'");
    px_free(px, x);
}

static void misaligned(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "x", NULL, 256);

    assert_string_equal(
        run_snippet(px, "ld.global.u32 %r3, [%x1+2];\n", x, NULL, 0, (struct px_launch)WARP),
        "mem.misaligned");
    assert_string_equal(run_snippet(px, "\nld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%x1+8];\n", x, NULL,
                                    0, (struct px_launch)WARP),
                        "mem.misaligned");
    assert_int_equal(px->fault.line, 2);
    assert_says(px, "not a multiple of 16");
    px_free(px, x);
}

static void null_and_freed(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "gone", NULL, 256);
    struct rung_module *m = px_load(px, snippet("ld.global.u32 %r3, [%x1+8];\n"));
    struct snippet_params p = {px_address(px, x), 0, 0, 0};
    struct px_launch l = {.kernel = "k", .params = &p, .param_bytes = sizeof p};

    assert_string_equal(px_launch(px, m, &l), "");
    px_free(px, x);
    assert_string_equal(px_launch(px, m, &l), "mem.out_of_bounds");
    assert_says(px, "'gone', which was freed");
    p.out = 0;
    assert_string_equal(px_launch(px, m, &l), "mem.out_of_bounds");
    assert_says(px, "null pointer");
    px_unload(px, m);
}

static void shared_and_local_bounds(void **state)
{
    struct px *px = *state;

    assert_string_equal(run_snippet(px, "mov.u64 %x3, fixed;\nld.shared.u32 %r3, [%x3+252];\n",
                                    NULL, NULL, 0, (struct px_launch)WARP),
                        "");
    assert_string_equal(run_snippet(px, "mov.u64 %x3, fixed;\nld.shared.u32 %r3, [%x3+256];\n",
                                    NULL, NULL, 0, (struct px_launch)WARP),
                        "mem.out_of_bounds");
    assert_says(px, "0 bytes past the end of the 256 bytes of shared memory");
    assert_string_equal(run_snippet(px, "mov.u64 %x3, dyn;\nst.shared.u32 [%x3+60], %r2;\n", NULL,
                                    NULL, 0, (struct px_launch){.shared = 64}),
                        "");
    assert_string_equal(run_snippet(px, "mov.u64 %x3, dyn;\nst.shared.u32 [%x3+64], %r2;\n", NULL,
                                    NULL, 0, (struct px_launch){.shared = 64}),
                        "mem.out_of_bounds");
    assert_string_equal(run_snippet(px, "mov.u64 %x3, own;\nst.local.u32 [%x3+64], %r2;\n", NULL,
                                    NULL, 0, (struct px_launch)WARP),
                        "mem.out_of_bounds");
    assert_says(px, "local memory");
    /* The same through generic addresses. */
    assert_string_equal(
        run_snippet(px, "mov.u64 %x3, fixed; cvta.shared.u64 %x3, %x3;\nst.u32 [%x3+256], %r2;\n",
                    NULL, NULL, 0, (struct px_launch)WARP),
        "mem.out_of_bounds");
    assert_says(px, "shared store");
    assert_string_equal(run_snippet(px, "ld.shared.u32 %r3, [%x1];\n", px_buffer(px, "x", NULL, 4),
                                    NULL, 0, (struct px_launch)WARP),
                        "mem.out_of_bounds");
}

static void divergent_barriers(void **state)
{
    struct px *px = *state;
    static const char *const both =
        "setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:\n";

    assert_string_equal(run_snippet(px, both, NULL, NULL, 0, (struct px_launch)WARP),
                        "sync.divergent_barrier");
    assert_says(px, "only some threads of a warp");
    /* Lanes that have left count as arrived. */
    assert_string_equal(run_snippet(px, "setp.lt.u32 %p1, %r2, 16;\n@%p1 exit;\nbar.sync 0;\n",
                                    NULL, NULL, 0, (struct px_launch)WARP),
                        "");
    assert_string_equal(run_snippet(px, "setp.lt.u32 %p1, %r2, 40;\n@%p1 exit;\nbar.sync 0;\n",
                                    NULL, NULL, 0, (struct px_launch){.block = {96, 1, 1}}),
                        "");
    /* A barrier behind a join is no divergence. */
    assert_string_equal(
        run_snippet(
            px, "setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nadd.u32 %r3, %r2, 1;\nA:\nbar.sync 0;\n",
            NULL, NULL, 0, (struct px_launch)WARP),
        "");
}

static void deadlocks(void **state)
{
    struct px *px = *state;

    /* Warp 0 waits at barrier 0, warp 1 at barrier 1, each for all. */
    assert_string_equal(
        run_snippet(
            px,
            "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA:\nbar.sync 0;\nB:\n",
            NULL, NULL, 0, (struct px_launch){.block = {64, 1, 1}}),
        "sync.deadlock");
    assert_says(px, "32 of 64 threads");
    /* A barrier for more threads than the block has. */
    assert_string_equal(run_snippet(px, "bar.sync 1, 128;\n", NULL, NULL, 0,
                                    (struct px_launch){.block = {64, 1, 1}}),
                        "sync.deadlock");
}

static void inactive_lanes(void **state)
{
    struct px *px = *state;
    static const char *const xor_half =
        "setp.ge.u32 %p1, %r2, 16;\n@%p1 exit;\nshfl.sync.bfly.b32 %r3, %r2, 16, 31, 65535;\n";

    assert_string_equal(run_snippet(px, xor_half, NULL, NULL, 0, (struct px_launch)WARP),
                        "sync.inactive_lane");
    assert_int_equal(px->fault.line, 3);
    assert_says(px, "reads lane 16");
    /* The tail of a tree reduction over the first 16 lanes is sound, too wide a first step is not.
     */
    assert_string_equal(
        run_snippet(
            px,
            "setp.ge.u32 %p1, %r2, 16;\n@%p1 exit;\nshfl.sync.down.b32 %r3, %r2, 8, 31, 65535;\n",
            NULL, NULL, 0, (struct px_launch)WARP),
        "");
    assert_string_equal(
        run_snippet(
            px, "setp.ge.u32 %p1, %r2, 8;\n@%p1 exit;\nshfl.sync.down.b32 %r3, %r2, 16, 31, 255;\n",
            NULL, NULL, 0, (struct px_launch)WARP),
        "sync.inactive_lane");
    /* The mask does not name the lane itself. */
    assert_string_equal(run_snippet(px, "shfl.sync.idx.b32 %r3, %r2, 0, 31, 1;\n", NULL, NULL, 0,
                                    (struct px_launch)WARP),
                        "sync.inactive_lane");
    /* Two different shuffles on two sides of a branch, both for the whole warp. */
    assert_string_equal(run_snippet(px,
                                    "setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nshfl.sync.idx.b32 "
                                    "%r3, %r2, 0, 31, -1;\nbra B;\n"
                                    "A:\nshfl.sync.idx.b32 %r3, %r2, 1, 31, -1;\nB:\n",
                                    NULL, NULL, 0, (struct px_launch)WARP),
                        "sync.inactive_lane");
}

static void endless_loops(void **state)
{
    struct px *px = *state;
    struct px_launch few = {.block = {32, 1, 1}, .max_instructions = 50000000};

    assert_string_equal(run_snippet(px, "\nA:\nadd.u32 %r3, %r3, 1;\nbra A;\n", NULL, NULL, 0, few),
                        "run.timeout");
    assert_int_equal(px->fault.line, 4);
    /* A block that waits for the next one gets its flag: that one is started beside it. */
    struct rung_buffer *x = px_buffer(px, "flag", NULL, 4);
    few.grid.x = 2;
    assert_string_equal(
        run_snippet(
            px,
            "mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 st.global.u32 [%x1], 1;\nA:\n"
            "ld.volatile.global.u32 %r4, [%x1];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra A;\n",
            x, NULL, 0, few),
        "");
    /* One that waits for a flag that nobody sets: found out long before the limit. */
    const uint64_t start = px_now();
    few.max_instructions = 0;
    assert_string_equal(run_snippet(px,
                                    "A:\nld.volatile.global.u32 %r4, [%x1];\nsetp.ne.u32 %p2, "
                                    "%r4, 7;\n@%p2 bra A;\n",
                                    x, NULL, 0, few),
                        "run.timeout");
    assert_says(px, "the loop has no end");
    assert_int_equal(px->fault.line, 4);
    assert_true(px_now() - start < 20000000000u);
    px->call.deadline_ns = px_now() + 50000000;
    few.max_instructions = 0;
    assert_string_equal(run_snippet(px, "A:\nbra A;\n", NULL, NULL, 0, few), "run.timeout");
    px->call.deadline_ns = 0;
    px->cancel = 1;
    assert_string_equal(run_snippet(px, "A:\nbra A;\n", NULL, NULL, 0, few), "status 8");
    px->cancel = 0;
    px_free(px, x);
}

static void crashes(void **state)
{
    struct px *px = *state;

    assert_string_equal(run_snippet(px, "\ntrap;\n", NULL, NULL, 0, (struct px_launch)WARP),
                        "run.crash");
    assert_int_equal(px->fault.line, 2);
}

static void unsupported_instructions(void **state)
{
    struct px *px = *state;

    assert_string_equal(
        run_snippet(px, "\n\nwgmma.fence.sync.aligned;\n", NULL, NULL, 0, (struct px_launch)WARP),
        "device.unsupported");
    assert_int_equal(px->fault.line, 3);
    assert_says(px, "'wgmma.fence.sync.aligned'");
    assert_string_equal(run_snippet(px, "frobnicate.u32 %r1, [%x1, {%r1, %r2}];\n", NULL, NULL, 0,
                                    (struct px_launch)WARP),
                        "device.unsupported");
    assert_says(px, "'frobnicate.u32'");
    assert_string_equal(
        run_snippet(px, "add.u32 %r1, %x1, %r2;\n", NULL, NULL, 0, (struct px_launch)WARP),
        "device.unsupported");
    assert_string_equal(
        run_snippet(px, "}\n{ this is not PTX\n", NULL, NULL, 0, (struct px_launch)WARP),
        "device.unsupported");
}

/* One kernel that can't run does not take its neighbour along. */
static void unsupported_is_per_kernel(void **state)
{
    struct px *px = *state;
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry bad()\n{\ntcgen05.wait::ld.sync.aligned;\nret;\n}\n"
                               ".visible .entry good()\n{\nret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct px_launch l = {.kernel = "good"};

    assert_non_null(m);
    assert_string_equal(px_launch(px, m, &l), "");
    l.kernel = "bad";
    assert_string_equal(px_launch(px, m, &l), "device.unsupported");
    assert_string_equal(px->fault.kernel, "bad");
    l.expression = "ns::bad<1>";
    assert_string_equal(px_launch(px, m, &l), "device.unsupported");
    assert_string_equal(px->fault.kernel, "ns::bad<1>");
    l.kernel = "missing";
    assert_string_equal(px_launch(px, m, &l), "status 3");
    px_unload(px, m);
}

static void launch_limits(void **state)
{
    struct px *px = *state;

    assert_string_equal(
        run_snippet(px, "", NULL, NULL, 0, (struct px_launch){.block = {1025, 1, 1}}),
        "launch.error");
    assert_string_equal(
        run_snippet(px, "", NULL, NULL, 0, (struct px_launch){.grid = {1, 70000, 1}}),
        "launch.error");
    assert_string_equal(run_snippet(px, "", NULL, NULL, 0, (struct px_launch){.shared = 232448}),
                        "launch.resources");
    assert_says(px, "232704, the limit is 232448");
}

static void constants_are_read_only(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 table[8] = "
        "{1,0,0,0,2};\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %x<4>; .reg .b32 %r<4>;\n"
        "ld.param.u64 %x1, [out];\nld.const.u32 %r1, [table+4];\nst.global.u32 [%x1], %r1;\n"
        "mov.u64 %x2, table;\nst.u32 [%x2], %r1;\nret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct rung_buffer *out = px_buffer(px, "out", NULL, 4);
    uint64_t p = px_address(px, out);
    struct px_launch l = {.kernel = "k", .params = &p, .param_bytes = 8};

    assert_string_equal(px_launch(px, m, &l), "mem.out_of_bounds");
    assert_says(px, "writes to the constant 'table'");
    assert_int_equal(*(uint32_t *)px_map(px, out), 2);
    px_unload(px, m);
    px_free(px, out);
}

static void memory_has_a_limit(void **state)
{
    struct px *px = *state;
    struct rung_buffer *b = NULL;

    assert_int_equal(px->ops->alloc(px->self, &px->call, (uint64_t)1 << 40, 256, "huge", &b),
                     RUNG_ENOMEM);
    assert_int_equal(px->ops->alloc(px->self, &px->call, 0, 256, "none", &b), RUNG_EINVAL);
    b = px_buffer(px, "b", NULL, 100);
    assert_int_equal(px->ops->write(px->self, &px->call, b, 96, "12345", 5), RUNG_EINVAL);
    assert_int_equal(px->ops->fill(px->self, &px->call, b, 0, 100, "abc", 3, 1), RUNG_OK);
    assert_memory_equal((char *)px_map(px, b) + 96, "abca", 4);
    px_free(px, b);
}

/* Pages of a large repeated pattern are shared, and private once written. */
static void large_fill(void **state)
{
    struct px *px = *state;
    struct rung_buffer *b = px_buffer(px, "b", NULL, (64u << 20) + 100);
    static uint8_t pattern[65536];

    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + (i >> 8));
    assert_int_equal(
        px->ops->fill(px->self, &px->call, b, 0, (64u << 20) + 100, pattern, sizeof pattern, 1),
        RUNG_OK);
    uint8_t *at = px_map(px, b);
    assert_memory_equal(at + 65536 * 17, pattern, sizeof pattern);
    assert_memory_equal(at + (64u << 20), pattern, 100);
    at[65536 * 3] ^= 255;
    assert_memory_equal(at + 65536 * 4, pattern, sizeof pattern);
    px_free(px, b);
}

/* Where data may stay in caches changes nothing of what a kernel computes. */
static void cache_policies(void **state)
{
    struct px *px = *state;
    uint32_t words[32];
    for (uint32_t i = 0; i < 32; i++)
        words[i] = 3 * i;
    struct rung_buffer *out = px_buffer(px, "out", words, sizeof words);
    assert_string_equal(
        run_snippet(px,
                    "mul.wide.u32 %x3, %r2, 4; add.s64 %x3, %x1, %x3;\n"
                    "createpolicy.fractional.L2::evict_last.b64 %x6, 1.0;\n"
                    "ld.global.nc.L2::cache_hint.u32 %r3, [%x3], %x6;\nadd.u32 %r3, %r3, 1;\n"
                    "st.global.L2::cache_hint.u32 [%x3], %r3, %x6;\n",
                    out, NULL, 0, (struct px_launch)WARP),
        "");
    assert_int_equal(px->ops->read(px->self, &px->call, out, 0, words, sizeof words), RUNG_OK);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(words[i], 3 * i + 1);
    px_free(px, out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_element_past_the_end),
        cmocka_unit_test(names_as_asked),
        cmocka_unit_test(before_the_start),
        cmocka_unit_test(vector_over_the_end),
        cmocka_unit_test(misaligned),
        cmocka_unit_test(null_and_freed),
        cmocka_unit_test(shared_and_local_bounds),
        cmocka_unit_test(divergent_barriers),
        cmocka_unit_test(deadlocks),
        cmocka_unit_test(inactive_lanes),
        cmocka_unit_test(endless_loops),
        cmocka_unit_test(crashes),
        cmocka_unit_test(unsupported_instructions),
        cmocka_unit_test(unsupported_is_per_kernel),
        cmocka_unit_test(cache_policies),
        cmocka_unit_test(launch_limits),
        cmocka_unit_test(constants_are_read_only),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(large_fill),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
