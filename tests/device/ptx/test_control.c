/*
 * test_control.c - how lanes part and meet again, barriers, warp-wide operations, atomics,
 * variables, launch geometry and counters.
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
#define STORE_R3 "mul.wide.u32 %x3, %r2, 4;\nadd.s64 %x3, %x1, %x3;\nst.global.u32 [%x3], %r3;\n"

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

/* Runs a body that leaves its result in %r3 and returns the threads' results. */
static const uint32_t *results(struct px *px, const char *body, struct px_launch launch)
{
    static uint32_t copy[1024];
    char text[8192];
    struct rung_buffer *out = px_buffer(px, "out", NULL, sizeof copy);

    snprintf(text, sizeof text, "%s%s", body, STORE_R3);
    if (*run_snippet(px, text, out, NULL, 5, launch))
        fail_msg("%s: %s", px->fault.code, px->fault.message);
    memcpy(copy, px_map(px, out), sizeof copy);
    px_free(px, out);
    return copy;
}

static void nested_divergence(void **state)
{
    const uint32_t *r =
        results(*state,
                "and.b32 %r4, %r2, 1; and.b32 %r5, %r2, 2; setp.eq.u32 %p1, %r4, 0; setp.eq.u32 "
                "%p2, %r5, 0;\n"
                "mov.u32 %r3, 0;\n@%p1 bra EVEN;\nadd.u32 %r3, %r3, 1;\n@%p2 bra JOIN;\nadd.u32 "
                "%r3, %r3, 10;\n"
                "bra JOIN;\nEVEN:\nadd.u32 %r3, %r3, 100;\n@!%p2 bra JOIN;\nadd.u32 %r3, %r3, "
                "1000;\nJOIN:\n"
                "activemask.b32 %r6;\nsetp.ne.u32 %p3, %r6, -1;\n@%p3 add.u32 %r3, %r3, 100000;\n",
                (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t & 1 ? (t & 2 ? 11 : 1) : (t & 2 ? 100 : 1100));
}

/* Trip counts differ by lane; behind the loop all 32 shuffle together. */
static void divergent_loop_then_shuffle(void **state)
{
    const uint32_t *r = results(
        *state,
        "mov.u32 %r3, 0; mov.u32 %r4, %r2;\nLOOP:\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra DONE;\n"
        "add.u32 %r3, %r3, %r4; sub.u32 %r4, %r4, 1;\nbra LOOP;\nDONE:\n"
        "shfl.sync.down.b32 %r3|%p2, %r3, 1, 31, -1;\n",
        (struct px_launch)WARP);

    for (uint32_t t = 0; t < 31; t++)
        assert_int_equal(r[t], (t + 1) * (t + 2) / 2);
    assert_int_equal(r[31], 31 * 32 / 2);
}

/* Loop exits laid out in front of the loop's own body must not run before lanes still inside. */
static void exit_stands_before_the_body(void **state)
{
    const uint32_t *r = results(
        *state,
        "mov.u32 %r4, %r2; mov.u32 %r3, 0;\nbra TEST;\nOUT:\nactivemask.b32 %r3;\nbra END;\nTEST:\n"
        "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra OUT;\nsub.u32 %r4, %r4, 1;\nbra TEST;\nEND:\n",
        (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], 0xffffffff);
}

/* A lock taken lane by lane: lanes spin until the holder, further down, lets go. */
static void spin_lock_within_a_warp(void **state)
{
    struct px *px = *state;
    struct rung_buffer *lock = px_buffer(px, "lock", NULL, 8);

    assert_string_equal(
        run_snippet(
            px,
            "LOOP:\natom.global.cas.b32 %r3, [%x1], 0, 1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra "
            "LOOP;\n"
            "ld.global.u32 %r4, [%x1+4];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%x1+4], %r4;\n"
            "atom.global.exch.b32 %r3, [%x1], 0;\n",
            lock, NULL, 0, (struct px_launch){.block = {64, 1, 1}, .grid = {3, 1, 1}}),
        "");
    assert_int_equal(((uint32_t *)px_map(px, lock))[1], 192);
    px_free(px, lock);
}

/* Warp 0 spins on shared memory that warp 1 writes. */
static void spin_between_warps(void **state)
{
    const uint32_t *r = results(*state,
                                "mov.u64 %x4, fixed; mov.u32 %r3, 0;\nsetp.eq.u32 %p3, %r2, "
                                "0;\n@%p3 st.shared.u32 [%x4], 0;\n"
                                "bar.sync 0;\nsetp.ge.u32 %p1, %r2, 32;\n@%p1 bra "
                                "WRITE;\nSPIN:\nld.volatile.shared.u32 %r3, [%x4];\n"
                                "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra SPIN;\nbra "
                                "END;\nWRITE:\nst.shared.u32 [%x4], 7;\nEND:\n",
                                (struct px_launch){.block = {64, 1, 1}});

    assert_int_equal(r[0], 7);
    assert_int_equal(r[40], 0);
}

static void barrier_orders_shared_memory(void **state)
{
    const uint32_t *r = results(
        *state,
        "mul.wide.u32 %x4, %r2, 4; mov.u64 %x5, dyn; add.s64 %x4, %x4, %x5;\nst.shared.u32 [%x4], "
        "%r2;\n"
        "bar.sync 0;\nsub.u32 %r4, 1023, %r2; mul.wide.u32 %x4, %r4, 4; add.s64 %x4, %x4, %x5;\n"
        "ld.shared.u32 %r3, [%x4];\n",
        (struct px_launch){.block = {1024, 1, 1}, .shared = 4096});

    for (uint32_t t = 0; t < 1024; t++)
        assert_int_equal(r[t], 1023 - t);
}

static void barrier_reductions(void **state)
{
    const uint32_t *r = results(
        *state,
        "setp.lt.u32 %p1, %r2, 40;\nbar.red.popc.u32 %r3, 0, %p1;\nbar.red.or.pred %p2, 0, %p1;\n"
        "bar.red.and.pred %p3, 0, !%p1;\nselp.u32 %r4, 1000, 0, %p2; selp.u32 %r5, 10000, 0, %p3;\n"
        "add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;\n",
        (struct px_launch){.block = {96, 1, 1}});

    for (uint32_t t = 0; t < 96; t++)
        assert_int_equal(r[t], 1040);
}

/* Named barriers: one warp arrives, another waits. */
static void producer_and_consumer(void **state)
{
    const uint32_t *r = results(*state,
                                "mov.u64 %x4, fixed; mov.u32 %r3, 1; setp.ge.u32 %p1, %r2, "
                                "32;\n@%p1 bra MAKE;\nbar.sync 3, 64;\n"
                                "ld.shared.u32 %r3, [%x4];\nbra END;\nMAKE:\nst.shared.u32 [%x4], "
                                "9;\nbar.arrive 3, 64;\nEND:\n",
                                (struct px_launch){.block = {64, 1, 1}});

    assert_int_equal(r[5], 9);
    assert_int_equal(r[35], 1);
}

/* __syncwarp on two sides of a branch is one meeting. */
static void warp_sync_on_two_paths(void **state)
{
    results(*state,
            "setp.lt.u32 %p1, %r2, 7;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nbar.warp.sync "
            "-1;\nB:\nmov.u32 %r3, 1;\n",
            (struct px_launch)WARP);
}

/* A half-warp shuffle waits for its own members only. */
static void partial_masks(void **state)
{
    const uint32_t *r = results(*state,
                                "setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nshfl.sync.idx.b32 %r3, "
                                "%r2, 20, 31, 0xffff0000;\nbra B;\n"
                                "A:\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, 0xffff;\nB:\n",
                                (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t < 16 ? t ^ 1 : 20);
}

static void shuffle_modes(void **state)
{
    const uint32_t *r =
        results(*state, "shfl.sync.up.b32 %r3|%p1, %r2, 3, 0, -1;\n@!%p1 add.u32 %r3, %r3, 100;\n",
                (struct px_launch)WARP);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t < 3 ? t + 100 : t - 3);
    /* width 8: segment mask 0b11000, clamp 31 */
    r = results(*state,
                "shfl.sync.down.b32 %r3|%p1, %r2, 2, 0x181f, -1;\n@!%p1 add.u32 %r3, %r3, 100;\n",
                (struct px_launch)WARP);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t % 8 < 6 ? t + 2 : t + 100);
    r = results(*state, "shfl.sync.idx.b32 %r3, %r2, 5, 0x101f, -1;\n", (struct px_launch)WARP);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t / 16 * 16 + 5);
    /* each lane its own source */
    r = results(*state, "sub.u32 %r4, 31, %r2;\nshfl.sync.idx.b32 %r3, %r2, %r4, 31, -1;\n",
                (struct px_launch)WARP);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], 31 - t);
}

static void votes_and_matches(void **state)
{
    const uint32_t *r = results(*state,
                                "setp.lt.u32 %p1, %r2, 9;\nvote.sync.ballot.b32 %r3, %p1, "
                                "-1;\nvote.sync.any.pred %p2, %p1, -1;\n"
                                "vote.sync.all.pred %p3, %p1, -1;\n@!%p2 trap;\n@%p3 trap;\n",
                                (struct px_launch)WARP);
    assert_int_equal(r[17], 0x1ff);
    r = results(*state, "shr.u32 %r4, %r2, 3;\nmatch.any.sync.b32 %r3, %r4, -1;\n",
                (struct px_launch)WARP);
    assert_int_equal(r[9], 0xff00);
    r = results(*state, "redux.sync.add.s32 %r3, %r2, -1;\n", (struct px_launch)WARP);
    assert_int_equal(r[0], 496);
    r = results(*state, "sub.u32 %r4, %r2, 5;\nredux.sync.min.s32 %r3, %r4, -1;\n",
                (struct px_launch)WARP);
    assert_int_equal((int32_t)r[0], -5);
    r = results(*state, "mov.u32 %r4, 6;\nmatch.all.sync.b32 %r3|%p1, %r4, -1;\n@!%p1 trap;\n",
                (struct px_launch)WARP);
    assert_int_equal(r[3], 0xffffffff);
}

static void atomics(void **state)
{
    struct px *px = *state;
    static const uint32_t start[10] = {0, 0, 100, 0, 0xffffffff, 0, 0, 0, 3, 0};
    struct rung_buffer *x = px_buffer(px, "x", start, sizeof start);
    struct rung_buffer *d = px_buffer(px, "d", NULL, 16);

    assert_string_equal(
        run_snippet(px,
                    "mov.u32 %r4, %r2;\natom.global.add.u32 %r3, [%x1], 2;\nred.global.max.s32 "
                    "[%x1+4], %r4;\n"
                    "red.global.min.u32 [%x1+8], %r4;\nred.global.or.b32 [%x1+12], %r4;\n"
                    "red.global.and.b32 [%x1+16], 240;\nred.global.add.f32 [%x1+20], 0f3F000000;\n"
                    "atom.global.inc.u32 %r3, [%x1+24], 9;\natom.global.dec.u32 %r3, [%x1+32], 7;\n"
                    "red.relaxed.gpu.global.add.f64 [%x2], 0d3FF8000000000000;\nred.global.add.u64 "
                    "[%x2+8], 5;\n",
                    x, d, 0, (struct px_launch){.block = {64, 1, 1}}),
        "");
    const uint32_t *r = px_map(px, x);
    float half_sum;
    memcpy(&half_sum, &r[5], 4);
    assert_int_equal(r[0], 128);
    assert_int_equal(r[1], 63);
    assert_int_equal(r[2], 0);
    assert_int_equal(r[3], 63);
    assert_int_equal(r[4], 240);
    assert_true(half_sum == 32.0f);
    assert_int_equal(r[6], 64 % 10);
    assert_int_equal(r[8], 3); /* 3 steps to 0, wraps to 7 every 8 */
    assert_true(((double *)px_map(px, d))[0] == 96.0);
    assert_int_equal(((uint64_t *)px_map(px, d))[1], 320);
    px_free(px, x);
    px_free(px, d);
}

static void shared_atomics_and_generic(void **state)
{
    const uint32_t *r = results(
        *state,
        "mov.u64 %x4, fixed; cvta.shared.u64 %x5, %x4; setp.eq.u32 %p1, %r2, 0;\n@%p1 st.u32 "
        "[%x5+8], 0;\n"
        "bar.sync 0;\natom.shared.add.u32 %r3, [%x4+8], 1;\nbar.sync 0;\nld.u32 %r3, [%x5+8];\n"
        "isspacep.shared %p2, %x5;\n@!%p2 trap;\nisspacep.global %p2, %x5;\n@%p2 trap;\n",
        (struct px_launch){.block = {64, 1, 1}});

    assert_int_equal(r[3], 64);
}

static void local_memory_is_a_threads_own(void **state)
{
    const uint32_t *r =
        results(*state,
                "mov.u64 %x4, own; cvta.local.u64 %x5, %x4;\nst.local.u32 [%x4+12], "
                "%r2;\nst.local.v2.u32 [%x4+16], {%r2, %r1};\n"
                "ld.u32 %r3, [%x5+12];\nld.local.u32 %r4, [%x4+20];\nadd.u32 %r3, %r3, %r4;\n",
                (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], t + 5);
}

static void carries(void **state)
{
    const uint32_t *r = results(
        *state,
        "mov.u32 %r4, -1; mov.u32 %r5, 7;\nadd.cc.u32 %r6, %r4, 1;\naddc.u32 %r3, %r5, 0;\n"
        "sub.cc.u32 %r6, 0, 1;\nsubc.u32 %r7, 20, 0;\nadd.u32 %r3, %r3, %r7;\n"
        "mad.lo.cc.u32 %r6, -1, -1, -1;\nmadc.hi.u32 %r7, -1, -1, 0;\nadd.u32 %r3, %r3, %r7;\n",
        (struct px_launch)WARP);
    /* 8 + 19 + hi((2^32-1)^2 + 2^32-1) = hi(2^64 - 2^32) = 2^32 - 1 */
    assert_int_equal(r[0], 8 + 19 - 1);
}

static void packing(void **state)
{
    const uint32_t *r = results(
        *state,
        "mov.b64 %x4, {%r2, %r1}; mov.b64 {%r4, %r5}, %x4; mov.b32 {%h1, %h2}, %r5;\n"
        "mov.b32 %r3, {%h1, %h2}; bfi.b32 %r3, %r4, %r3, 8, 8; lop3.b32 %r3, %r3, 0, 0, 0xf0;\n",
        (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r[t], 5 | t << 8);
}

/* setp with two results and a condition; logic on predicates. */
static void predicates(void **state)
{
    const uint32_t *r = results(*state,
                                "setp.lt.u32 %p1, %r2, 8;\nsetp.ge.and.u32 %p2|%p3, %r2, 4, "
                                "%p1;\nselp.u32 %r3, 1, 0, %p2;\n"
                                "@%p3 add.u32 %r3, %r3, 10;\nxor.pred %p4, %p1, %p2;\nnot.pred "
                                "%p4, %p4;\n@%p4 add.u32 %r3, %r3, 100;\n",
                                (struct px_launch)WARP);

    for (uint32_t t = 0; t < 32; t++) {
        uint32_t p1 = t < 8, p2 = t >= 4 && p1, p3 = t < 4 && p1;

        assert_int_equal(r[t], p2 + 10 * p3 + 100 * !(p1 ^ p2));
    }
}

static void special_registers(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 4 * 4 * 60);
    struct px_launch l = {.grid = {1, 2, 2}, .block = {5, 3, 1}};

    assert_string_equal(
        run_snippet(
            px,
            "mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;\n"
            "mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.y; mad.lo.u32 %r6, "
            "%r7, %r8, %r6;\n"
            "mad.lo.u32 %r6, %r6, 15, %r5;\nmul.wide.u32 %x3, %r6, 16; add.s64 %x3, %x1, %x3;\n"
            "mov.u32 %r9, %laneid; mov.u32 %r10, %lanemask_lt; mov.u32 %r11, %warpid; mov.u32 "
            "%r12, %ntid.y;\n"
            "st.global.v4.u32 [%x3], {%r9, %r10, %r11, %r12};\n",
            out, NULL, 0, l),
        "");
    const uint32_t *r = px_map(px, out);
    for (uint32_t i = 0; i < 60; i++) {
        assert_int_equal(r[4 * i], i % 15);
        assert_int_equal(r[4 * i + 1], (1u << i % 15) - 1);
        assert_int_equal(r[4 * i + 2], 0);
        assert_int_equal(r[4 * i + 3], 3);
    }
    px_free(px, out);
}

/* A device function with a struct parameter, called from two places. */
static void calls(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".func (.param .b32 ret) twice(.param .align 4 .b8 s[8])\n{\n.reg .b32 %r<4>; .reg .pred "
        "%p;\n"
        "ld.param.u32 %r1, [s]; ld.param.u32 %r2, [s+4]; setp.gt.u32 %p, %r1, 15;\n@%p bra "
        "BIG;\nadd.u32 %r3, %r1, %r2;\n"
        "st.param.b32 [ret], %r3;\nret;\nBIG:\nst.param.b32 [ret], 7;\nret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<8>; .reg .b64 %x<4>;\nld.param.u64 "
        "%x1, [out]; mov.u32 %r1, %tid.x;\n"
        "{ .param .align 4 .b8 a[8]; .param .b32 b; st.param.b32 [a], %r1; st.param.b32 [a+4], "
        "100;\n"
        "call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }\n"
        "{ .param .align 4 .b8 a[8]; .param .b32 b; st.param.b32 [a], %r2; st.param.b32 [a+4], 1;\n"
        "call.uni (b), twice, (a); ld.param.b32 %r3, [b]; }\n"
        "add.u32 %r2, %r2, %r3; mul.wide.u32 %x2, %r1, 4; add.s64 %x2, %x1, %x2; st.global.u32 "
        "[%x2], %r2; ret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct rung_buffer *out = px_buffer(px, "out", NULL, 128);
    uint64_t p = px_address(px, out);
    struct px_launch l = {.kernel = "k", .block = {32, 1, 1}, .params = &p, .param_bytes = 8};

    if (!m || *px_launch(px, m, &l))
        fail_msg("%s", px->fault.message);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(((uint32_t *)px_map(px, out))[t], t > 15 ? 7 + 8 : t + 100 + 7);
    px_unload(px, m);
    px_free(px, out);
}

/* A global variable with an initialiser and a pointer to another. */
static void module_variables(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .u32 counter = 41;\n"
        ".global .align 8 .u64 link = generic(counter);\n.global .align 4 .f32 f[2] = {0f3F800000, "
        "2.5};\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<8>; .reg .b64 %x<8>;\nld.param.u64 "
        "%x1, [out];\n"
        "ld.global.u64 %x2, [link]; atom.global.add.u32 %r1, [%x2], 1; ld.global.u32 %r2, "
        "[counter]; ld.global.u32 %r3, [f+4];\n"
        "st.global.v2.u32 [%x1], {%r2, %r3}; ret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct rung_buffer *out = px_buffer(px, "out", NULL, 8);
    uint64_t p = px_address(px, out);
    struct px_launch l = {.kernel = "k", .params = &p, .param_bytes = 8};

    if (!m || *px_launch(px, m, &l))
        fail_msg("%s", px->fault.message);
    assert_int_equal(((uint32_t *)px_map(px, out))[0], 42);
    assert_int_equal(((uint32_t *)px_map(px, out))[1], 0x40200000);
    px_unload(px, m);
    px_free(px, out);
}

static void counters(void **state)
{
    struct px *px = *state;
    struct rung_buffer *x = px_buffer(px, "x", NULL, 1 << 16);
    struct rung_counters c;
    struct px_launch l = {.block = {64, 1, 1}, .grid = {10, 1, 1}, .counters = &c};

    /* 10 instructions before, 8 here, ret: coalesced load, strided load (8 bytes apart), conflicts
     * of 2 in shared memory */
    assert_string_equal(
        run_snippet(
            px,
            "mul.wide.u32 %x3, %r2, 4; add.s64 %x4, %x1, %x3; ld.global.f32 %f1, [%x4];\n"
            "add.s64 %x5, %x4, %x3; ld.global.f32 %f2, [%x5]; fma.rn.f32 %f3, %f1, %f2, %f1;\n"
            "mul.wide.u32 %x6, %r2, 8; and.b64 %x6, %x6, 255; st.shared.f32 [%x6], %f3;\n",
            x, NULL, 0, l),
        "");
    assert_int_equal(c.grid_blocks, 10);
    assert_int_equal(c.blocks, 10);
    assert_int_equal(c.threads_per_block, 64);
    assert_int_equal(c.warp_instructions, 20 * (4 + 9 + 1));
    assert_int_equal(c.lane_instructions, 32 * c.warp_instructions);
    assert_int_equal(c.lane_flops_fp32, 640 * 2);
    assert_int_equal(c.global_loads, 40);
    assert_int_equal(c.global_sectors_read, 20 * (4 + 8));
    assert_int_equal(c.global_lines, 20 * (1 + 2));
    assert_int_equal(c.unique_sectors_read, 10 * 16);
    assert_int_equal(c.shared_stores, 20);
    assert_int_equal(c.shared_wavefronts, 20 * 2);
    l.sample = 3;
    assert_string_equal(run_snippet(px, "ld.global.f32 %f1, [%x1];\n", x, NULL, 0, l), "");
    assert_int_equal(c.grid_blocks, 10);
    assert_int_equal(c.blocks, 3);
    px_free(px, x);
}

static void bank_conflicts(void **state)
{
    struct px *px = *state;
    struct rung_counters c;
    struct px_launch l = {.block = {32, 1, 1}, .shared = 4096, .counters = &c};

    assert_string_equal(run_snippet(px,
                                    "mov.u64 %x4, dyn; mul.wide.u32 %x3, %r2, 128; add.s64 %x3, "
                                    "%x3, %x4;\nld.shared.u32 %r3, [%x3];\n",
                                    NULL, NULL, 0, l),
                        "");
    assert_int_equal(c.shared_wavefronts, 32);
    assert_string_equal(
        run_snippet(px,
                    "mov.u64 %x4, dyn; mul.wide.u32 %x3, %r2, 16; add.s64 %x3, %x3, %x4;\n"
                    "ld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%x3];\n",
                    NULL, NULL, 0, l),
        "");
    assert_int_equal(c.shared_wavefronts, 4);
    assert_string_equal(
        run_snippet(px, "mov.u64 %x4, dyn;\nld.shared.u32 %r3, [%x4];\n", NULL, NULL, 0, l), "");
    assert_int_equal(c.shared_wavefronts, 1);
}

/* printf goes to the log. */
static void prints(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) "
        "vprintf(.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 form[24] = {120, 61, 37, 100, 32, 37, 46, 50, 102, 10, 0};\n"
        ".visible .entry k()\n{\n.local .align 8 .b8 args[16];\n.reg .b64 %x<8>; .reg .b32 %r<4>;\n"
        "mov.u64 %x1, args; st.local.u32 [%x1], -5; mov.u64 %x4, 0x400921FB54442D18; st.local.u64 "
        "[%x1+8], %x4;\n"
        "cvta.local.u64 %x1, %x1; mov.u64 %x2, form; cvta.global.u64 %x2, %x2;\n"
        "{ .param .b64 p0; st.param.b64 [p0], %x2; .param .b64 p1; st.param.b64 [p1], %x1; .param "
        ".b32 rv;\n"
        "call.uni (rv), vprintf, (p0, p1); ld.param.b32 %r1, [rv]; }\nret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct px_launch l = {.kernel = "k"};

    if (!m || *px_launch(px, m, &l))
        fail_msg("%s", px->fault.message);
    assert_non_null(strstr(px->log, "x=-5 3.14\n"));
    px_unload(px, m);
}

/* Blocks on two host threads give what one gives. */
static void two_workers(void **state)
{
    const struct px_option options[] = {{"threads", "2"}, {NULL, NULL}};
    struct px px;

    (void)state;
    assert_int_equal(px_open(&px, PTX_PLUGIN, options), 0);
    struct rung_buffer *x = px_buffer(&px, "x", NULL, 4);
    assert_string_equal(run_snippet(&px, "red.global.add.u32 [%x1], 1;\n", x, NULL, 0,
                                    (struct px_launch){.block = {64, 1, 1}, .grid = {1000, 1, 1}}),
                        "");
    assert_int_equal(*(uint32_t *)px_map(&px, x), 64000);
    px_close(&px);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_divergence),
        cmocka_unit_test(divergent_loop_then_shuffle),
        cmocka_unit_test(exit_stands_before_the_body),
        cmocka_unit_test(spin_lock_within_a_warp),
        cmocka_unit_test(spin_between_warps),
        cmocka_unit_test(barrier_orders_shared_memory),
        cmocka_unit_test(barrier_reductions),
        cmocka_unit_test(producer_and_consumer),
        cmocka_unit_test(warp_sync_on_two_paths),
        cmocka_unit_test(partial_masks),
        cmocka_unit_test(shuffle_modes),
        cmocka_unit_test(votes_and_matches),
        cmocka_unit_test(atomics),
        cmocka_unit_test(shared_atomics_and_generic),
        cmocka_unit_test(local_memory_is_a_threads_own),
        cmocka_unit_test(carries),
        cmocka_unit_test(packing),
        cmocka_unit_test(predicates),
        cmocka_unit_test(special_registers),
        cmocka_unit_test(calls),
        cmocka_unit_test(module_variables),
        cmocka_unit_test(counters),
        cmocka_unit_test(bank_conflicts),
        cmocka_unit_test(prints),
        cmocka_unit_test(two_workers),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
