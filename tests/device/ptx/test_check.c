/*
 * test_check.c - what no GPU tells: races, values that nothing wrote, missing waits of copies,
 * waits without an end; and launches of blocks that work together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "snippet.h"

static const struct px_option check_all[] = {{"checks", "all"}, {NULL, NULL}};

static int open_device(void **state)
{
    static struct px px;

    *state = &px;
    return px_open(&px, PTX_PLUGIN, check_all);
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

static struct px_launch threads(uint32_t n)
{
    return (struct px_launch){.block = {n, 1, 1}, .shared = 8192};
}

/* %x4: the thread's word of dynamic shared memory; %x5: that of thread 63 - t; %x3: of out. */
#define PLACES                                                                                     \
    "mul.wide.u32 %x4, %r2, 4; mov.u64 %x6, dyn; sub.u32 %r4, 63, %r2; mul.wide.u32 %x5, %r4, "    \
    "4; add.s64 %x3, %x1, %x4; add.s64 %x4, %x4, %x6; add.s64 %x5, %x5, %x6;\n"

/* ---- Races ----------------------------------------------------------------------------------- */

static void missing_barrier(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 256);

    assert_string_equal(
        run_snippet(px,
                    PLACES "st.shared.u32 [%x4], %r1;\nbar.sync 0;\nst.shared.u32 [%x4], %r2;\n"
                           "ld.shared.u32 %r3, [%x5];\nst.global.u32 [%x3], %r3;\n",
                    out, NULL, 7, threads(64)),
        "mem.race");
    assert_int_equal(px->fault.line, 4);
    assert_says(px, "is written by this thread and read by threads 32 to 63 (line 5)");
    /* The first to come reads what is not there yet. */
    assert_string_equal(run_snippet(px,
                                    PLACES "st.shared.u32 [%x4], %r2;\nld.shared.u32 %r3, [%x5];\n"
                                           "st.global.u32 [%x3], %r3;\n",
                                    out, NULL, 0, threads(64)),
                        "mem.uninitialised");
    assert_string_equal(run_snippet(px,
                                    PLACES "st.shared.u32 [%x4], %r2;\nbar.sync 0;\n"
                                           "ld.shared.u32 %r3, [%x5];\nst.global.u32 [%x3], %r3;\n",
                                    out, NULL, 0, threads(64)),
                        "");
    px_free(px, out);
}

/* Reading the old value and writing the next one without a barrier: the classic of reductions. */
static void write_after_read(void **state)
{
    struct px *px = *state;
    static const char body[] =
        PLACES "setp.eq.u32 %p1, %r2, 0;\nmov.u32 %r5, 7;\n@%p1 st.shared.u32 [%x6], %r5;\n"
               "bar.sync 0;\nld.shared.u32 %r3, [%x6];\n%s"
               "setp.eq.u32 %p2, %r2, 32;\n@%p2 st.shared.u32 [%x6], %r2;\n";
    char text[1024];

    snprintf(text, sizeof text, "%.*s%s", (int)(strstr(body, "%s") - body), body,
             strstr(body, "%s") + 2);
    assert_string_equal(run_snippet(px, text, NULL, NULL, 0, threads(64)), "mem.race");
    assert_int_equal(px->fault.line, 6);
    assert_says(px, "is read by this thread and written by threads 32 to 63 (line 8)");
    snprintf(text, sizeof text, "%.*sbar.sync 0;\n%s", (int)(strstr(body, "%s") - body), body,
             strstr(body, "%s") + 2);
    assert_string_equal(run_snippet(px, text, NULL, NULL, 0, threads(64)), "");
}

/* Sound: one warp alone, the same value from all, atomics, volatile flags, halves of a word. */
static void what_is_no_race(void **state)
{
    struct px *px = *state;

    assert_string_equal(run_snippet(px,
                                    PLACES "st.shared.u32 [%x4], %r2;\nbar.warp.sync -1;\n"
                                           "ld.shared.u32 %r3, [%x6];\n",
                                    NULL, NULL, 0, threads(32)),
                        "");
    assert_string_equal(
        run_snippet(
            px, PLACES "mov.u32 %r5, 3;\nst.shared.u32 [%x6], %r5;\nld.shared.u32 %r3, [%x6];\n",
            NULL, NULL, 0, threads(64)),
        "");
    assert_string_equal(
        run_snippet(px,
                    PLACES "setp.eq.u32 %p1, %r2, 0;\nmov.u32 %r5, 0;\n@%p1 st.shared.u32 [%x6], "
                           "%r5;\nbar.sync 0;\natom.shared.add.u32 %r3, [%x6], 1;\n",
                    NULL, NULL, 0, threads(64)),
        "");
    assert_string_equal(run_snippet(px,
                                    PLACES "st.volatile.shared.u32 [%x6], %r2;\n"
                                           "ld.volatile.shared.u32 %r3, [%x6];\n",
                                    NULL, NULL, 0, threads(64)),
                        "");
    assert_string_equal(
        run_snippet(px,
                    "mul.wide.u32 %x4, %r2, 2; mov.u64 %x6, dyn; sub.u32 %r4, %r2, 1; add.s64 "
                    "%x4, %x4, %x6;\nadd.s64 %x4, %x4, 2;\nst.shared.u16 [%x4], %r2;\n",
                    NULL, NULL, 0, threads(64)),
        "");
}

/* An atomic by one warp and a plain access by another do race. */
static void atomic_against_plain(void **state)
{
    struct px *px = *state;

    assert_string_equal(
        run_snippet(px,
                    PLACES "setp.eq.u32 %p1, %r2, 0;\nmov.u32 %r5, 0;\n@%p1 st.shared.u32 [%x6], "
                           "%r5;\nbar.sync 0;\natom.shared.add.u32 %r3, [%x6], 1;\n"
                           "ld.shared.u32 %r3, [%x6];\n",
                    NULL, NULL, 0, threads(64)),
        "mem.race");
    assert_says(px, "changed by an atomic");
}

/* Without checks a missing barrier shows in the result when the order of warps is another. */
static void seeded_order(void **state)
{
    static const char body[] =
        PLACES "st.shared.u32 [%x4], %r2;\nld.shared.u32 %r3, [%x5];\nst.global.u32 [%x3], %r3;\n";
    static const char *const seeds[] = {"0", "1", "2", "3", "4", "5"};
    uint32_t different = 0, first[64];

    (void)state;
    for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
        const struct px_option options[] = {
            {"checks", "off"}, {"order_seed", seeds[k]}, {NULL, NULL}};
        struct px px;

        assert_int_equal(px_open(&px, PTX_PLUGIN, options), 0);
        struct rung_buffer *out = px_buffer(&px, "out", NULL, 256);
        assert_string_equal(run_snippet(&px, body, out, NULL, 0, threads(64)), "");
        if (!k)
            memcpy(first, px_map(&px, out), sizeof first);
        different += memcmp(first, px_map(&px, out), sizeof first) != 0;
        px_close(&px);
    }
    assert_true(different > 0 && different < 6);
}

/* ---- Values that nothing wrote --------------------------------------------------------------- */

static void uninitialised_shared(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 256);

    assert_string_equal(run_snippet(px,
                                    PLACES "ld.shared.u32 %r3, [%x4];\nadd.u32 %r3, %r3, 1;\n"
                                           "st.global.u32 [%x3], %r3;\n",
                                    out, NULL, 0, threads(32)),
                        "mem.uninitialised");
    assert_int_equal(px->fault.line, 2);
    assert_says(px, "is stored to global memory at line 4");
    assert_string_equal(
        run_snippet(px, PLACES "ld.shared.u32 %r3, [%x4];\nsetp.gt.u32 %p1, %r3, 5;\n@%p1 trap;\n",
                    out, NULL, 0, threads(32)),
        "mem.uninitialised");
    assert_says(px, "decides a branch at line 4");
    px_free(px, out);
}

/* A value that is read and thrown away, or overruled, is no fault. */
static void unused_garbage(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 256);

    assert_string_equal(
        run_snippet(px,
                    PLACES "ld.shared.u32 %r3, [%x4];\nsetp.lt.u32 %p1, %r2, 99;\nselp.u32 %r3, "
                           "%r2, %r3, %p1;\nst.global.u32 [%x3], %r3;\n",
                    out, NULL, 0, threads(32)),
        "");
    assert_string_equal(
        run_snippet(px,
                    PLACES "ld.shared.u32 %r3, [%x4];\nsetp.gt.u32 %p1, %r3, 5;\nsetp.gt.u32 %p2, "
                           "%r2, 99;\nand.pred %p3, %p1, %p2;\n@%p3 trap;\nst.shared.u32 [%x4], "
                           "%r3;\nst.shared.u32 [%x4], %r2;\nld.shared.u32 %r3, [%x4];\n"
                           "st.global.u32 [%x3], %r3;\n",
                    out, NULL, 0, threads(32)),
        "");
    /* Half of a word is written, and only that half is used. */
    assert_string_equal(run_snippet(px,
                                    PLACES "st.shared.u16 [%x4], %r2;\nld.shared.u32 %r3, [%x4];\n"
                                           "and.b32 %r3, %r3, 65535;\nst.global.u32 [%x3], %r3;\n",
                                    out, NULL, 0, threads(32)),
                        "");
    /* Half of the lanes hold garbage, and the others read only theirs. */
    assert_string_equal(
        run_snippet(px,
                    PLACES "setp.lt.u32 %p1, %r2, 16;\n@%p1 st.shared.u32 [%x4], %r2;\n"
                           "ld.shared.u32 %r3, [%x4];\nshfl.sync.idx.b32 %r3, %r3, 3, 31, -1;\n"
                           "st.global.u32 [%x3], %r3;\n",
                    out, NULL, 0, threads(32)),
        "");
    px_free(px, out);
}

static void uninitialised_global(void **state)
{
    struct px *px = *state;
    struct rung_buffer *temp = px_buffer_unwritten(px, "temp", 256);
    static const char add[] = "red.global.add.u32 [%x1+16], 1;\n";
    static const uint32_t poison = 0xdeadbeef;

    assert_string_equal(run_snippet(px, add, temp, NULL, 0, threads(1)), "mem.uninitialised");
    assert_says(px, "byte 16 of 'temp'");
    px->ops->fill(px->self, &px->call, temp, 0, 256, &poison, 4, 1);
    assert_string_equal(run_snippet(px, add, temp, NULL, 0, threads(1)), "");
    px->ops->fill(px->self, &px->call, temp, 8, 240, &poison, 4, 0);
    assert_string_equal(run_snippet(px, add, temp, NULL, 0, threads(1)), "mem.uninitialised");
    assert_string_equal(run_snippet(px, "st.global.u32 [%x1+16], 7;\n", temp, NULL, 0, threads(1)),
                        "");
    assert_string_equal(run_snippet(px, add, temp, NULL, 0, threads(1)), "");
    assert_int_equal(((uint32_t *)px_map(px, temp))[4], 8);
    assert_string_equal(run_snippet(px,
                                    "ld.global.u32 %r3, [%x1+4];\nst.global.u32 [%x1+20], %r3;\n",
                                    temp, NULL, 0, threads(1)),
                        "");
    assert_string_equal(run_snippet(px,
                                    "ld.global.u16 %h1, [%x1+246];\nst.global.u16 [%x1], %h1;\n",
                                    temp, NULL, 0, threads(1)),
                        "mem.uninitialised");
    px_free(px, temp);
}

static void uninitialised_local(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 256);

    assert_string_equal(run_snippet(px,
                                    PLACES
                                    "mov.u64 %x7, own;\nst.local.u32 [%x7+4], %r2;\n"
                                    "ld.local.u32 %r3, [%x7+4];\nst.global.u32 [%x3], %r3;\n"
                                    "ld.local.u32 %r3, [%x7+8];\nst.global.u32 [%x3], %r3;\n",
                                    out, NULL, 0, threads(32)),
                        "mem.uninitialised");
    assert_int_equal(px->fault.line, 6);
    px_free(px, out);
}

/* ---- Asynchronous copies --------------------------------------------------------------------- */

#define COPY                                                                                       \
    PLACES "add.s64 %x8, %x2, 0; mul.wide.u32 %x9, %r2, 4; add.s64 %x8, %x8, %x9;\n"               \
           "cp.async.ca.shared.global [%x4], [%x8], 4;\ncp.async.commit_group;\n"

static void copies_need_a_wait(void **state)
{
    struct px *px = *state;
    const struct px_option off[] = {{"checks", "off"}, {NULL, NULL}};
    uint32_t data[64];
    struct px plain;

    for (uint32_t i = 0; i < 64; i++)
        data[i] = 100 + i;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 256), *in = px_buffer(px, "in", data, 256);
    static const char good[] =
        COPY "cp.async.wait_group 0;\nbar.sync 0;\nld.shared.u32 %r3, [%x5];\n"
             "st.global.u32 [%x3], %r3;\n";
    static const char no_wait[] =
        COPY "bar.sync 0;\nld.shared.u32 %r3, [%x5];\nst.global.u32 [%x3], %r3;\n";
    assert_string_equal(run_snippet(px, good, out, in, 0, threads(64)), "");
    assert_int_equal(((uint32_t *)px_map(px, out))[0], 163);
    assert_string_equal(run_snippet(px, no_wait, out, in, 0, threads(64)), "mem.race");
    assert_says(px, "while an asynchronous copy");
    assert_string_equal(run_snippet(px, COPY "cp.async.wait_group 1;\nld.shared.u32 %r3, [%x4];\n",
                                    out, in, 0, threads(64)),
                        "mem.race");
    assert_string_equal(
        run_snippet(
            px, COPY "cp.async.wait_all;\nld.shared.u32 %r3, [%x5];\nst.global.u32 [%x3], %r3;\n",
            out, in, 0, threads(32)),
        "mem.uninitialised");
    /* Unchecked, the result shows it. */
    assert_int_equal(px_open(&plain, PTX_PLUGIN, off), 0);
    struct rung_buffer *o = px_buffer(&plain, "out", NULL, 256),
                       *i = px_buffer(&plain, "in", data, 256);
    assert_string_equal(run_snippet(&plain, no_wait, o, i, 0, threads(64)), "");
    assert_int_equal(((uint32_t *)px_map(&plain, o))[0], 0xffffffff);
    px_close(&plain);
    px_free(px, out);
    px_free(px, in);
}

/* Three groups under way; the wait makes the two oldest ones. Sizes below the copy's give zeros. */
static void groups_of_copies(void **state)
{
    struct px *px = *state;
    static const uint32_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct rung_buffer *out = px_buffer(px, "out", NULL, 64), *in = px_buffer(px, "in", data, 32);

    assert_string_equal(
        run_snippet(px,
                    "mov.u64 %x4, dyn;\ncp.async.cg.shared.global [%x4], [%x2], 16, 8;\n"
                    "cp.async.commit_group;\ncp.async.ca.shared.global [%x4+16], [%x2+16], 4;\n"
                    "cp.async.commit_group;\ncp.async.ca.shared.global [%x4+20], [%x2+20], 4;\n"
                    "cp.async.commit_group;\ncp.async.wait_group 1;\n"
                    "ld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%x4];\nst.global.v4.u32 [%x1], "
                    "{%r3,%r4,%r5,%r6};\nld.shared.u32 %r3, [%x4+16];\nst.global.u32 [%x1+16], "
                    "%r3;\ncp.async.wait_group 0;\nld.shared.u32 %r3, [%x4+20];\nst.global.u32 "
                    "[%x1+20], %r3;\n",
                    out, in, 0, threads(1)),
        "");
    static const uint32_t want[6] = {1, 2, 0, 0, 5, 6};
    assert_memory_equal(px_map(px, out), want, sizeof want);
    px_free(px, out);
    px_free(px, in);
}

/* ---- Waits without an end -------------------------------------------------------------------- */

/* Half of a warp waits at a barrier for lanes that loop on a flag which is set behind it. */
static void barrier_against_a_loop(void **state)
{
    struct px *px = *state;
    static const char body[] =
        "mov.u64 %x4, fixed; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 1;\n"
        "st.volatile.shared.u32 [%x4], 0;\nbar.sync 0;\n@%p1 bra ODD;\nA:\n"
        "ld.volatile.shared.u32 %r4, [%x4];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra A;\n"
        "bar.sync 0;\nbra END;\nODD:\nbar.sync 0;\nst.volatile.shared.u32 [%x4], 1;\nEND:\n";

    assert_string_equal(run_snippet(px, body, NULL, NULL, 0, threads(64)), "sync.deadlock");
    assert_int_equal(px->fault.line, 12);
    assert_says(px, "loop for ever at line 8");
}

/* A loop that counts is not taken for one without an end, nor one that waits for another warp. */
static void long_loops(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 4);

    assert_string_equal(
        run_snippet(px,
                    "mov.u32 %r3, 0;\nA:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 3000000;\n"
                    "@%p1 bra A;\nst.global.u32 [%x1], %r3;\n",
                    out, NULL, 0, threads(32)),
        "");
    assert_int_equal(*(uint32_t *)px_map(px, out), 3000000);
    /* Memory alone counts: the registers are the same each time round. */
    *(uint32_t *)px_map(px, out) = 0;
    assert_string_equal(
        run_snippet(px,
                    "A:\nred.global.add.u32 [%x1], 1;\nld.volatile.global.u32 %r3, [%x1];\n"
                    "setp.lt.u32 %p1, %r3, 3000000;\nmov.u32 %r3, 0;\n@%p1 bra A;\n",
                    out, NULL, 0, threads(1)),
        "");
    px_free(px, out);
}

/* ---- Blocks that work together --------------------------------------------------------------- */

/* The grid-wide barrier of cooperative groups: a counter at the workspace that %envreg1/2 name. */
#define GRID_BARRIER                                                                               \
    "bar.sync 0;\n@%p7 bra WAITED;\nmov.u32 %r20, %envreg1; mov.u32 %r21, %envreg2; mov.b64 "      \
    "%x10, {%r21, %r20};\nmov.u32 %r22, %nctaid.x; atom.global.add.u32 %r23, [%x10+4], 1;\n"       \
    "SPIN:\nld.acquire.gpu.u32 %r24, [%x10+4];\nsetp.lt.u32 %p6, %r24, %r22;\n@%p6 bra SPIN;\n"    \
    "WAITED:\nbar.sync 0;\n"

static const char grid_body[] =
    "mov.u32 %r5, %ctaid.x; setp.ne.u32 %p7, %r2, 0; mul.wide.u32 %x4, %r5, 4; add.s64 %x3, %x1, "
    "%x4;\n@%p7 bra A;\nst.global.u32 [%x3], %r5;\nA:\n" GRID_BARRIER
    "mov.u32 %r6, %nctaid.x; sub.u32 %r6, %r6, 1; sub.u32 %r6, %r6, %r5; mul.wide.u32 %x5, %r6, 4; "
    "add.s64 %x5, %x5, %x1;\n@%p7 bra B;\nld.global.u32 %r7, [%x5];\nadd.u32 %r7, %r7, 1000;\n"
    "st.global.u32 [%x3+400], %r7;\nB:\n";

static void cooperative_grid(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 800);
    struct px_launch l = {
        .grid = {100, 1, 1}, .block = {64, 1, 1}, .flags = RUNG_LAUNCH_COOPERATIVE};

    assert_string_equal(run_snippet(px, grid_body, out, NULL, 0, l), "");
    for (uint32_t b = 0; b < 100; b++)
        assert_int_equal(((uint32_t *)px_map(px, out))[100 + b], 1099 - b);
    l.grid.x = 132 * 32 + 1;
    assert_string_equal(run_snippet(px, grid_body, out, NULL, 0, l), "launch.resources");
    assert_says(px, "all be resident at once: 4225, the limit is 4224");
    px_free(px, out);
}

/* A block that leaves before the barrier leaves the others waiting. */
static void cooperative_deadlock(void **state)
{
    struct px *px = *state;
    struct px_launch l = {.grid = {4, 1, 1}, .block = {64, 1, 1}, .flags = RUNG_LAUNCH_COOPERATIVE};

    assert_string_equal(run_snippet(px,
                                    "mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 2; setp.ne.u32 "
                                    "%p7, %r2, 0;\n@%p1 ret;\n" GRID_BARRIER,
                                    NULL, NULL, 0, l),
                        "sync.deadlock");
    assert_says(px, "loop for ever");
}

/* Blocks of a cluster pass a word on through each other's shared memory. */
static const char cluster_body[] =
    "mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank; mov.u64 %x4, dyn; mov.u32 %r7, "
    "%ctaid.x;\nst.shared.u32 [%x4], %r7;\nbarrier.cluster.arrive.release.aligned;\n"
    "barrier.cluster.wait.acquire.aligned;\nadd.u32 %r8, %r5, 1; rem.u32 %r8, %r8, %r6;\n"
    "cvt.u32.u64 %r10, %x4; mapa.shared::cluster.u32 %r9, %r10, %r8;\ncvt.u64.u32 %x5, %r9;\n"
    "ld.shared::cluster.u32 %r11, [%x5];\nbarrier.cluster.arrive.aligned;\n"
    "barrier.cluster.wait.aligned;\nmul.wide.u32 %x6, %r7, 4; add.s64 %x6, %x6, %x1;\n"
    "st.global.u32 [%x6], %r11;\n";

static void clusters(void **state)
{
    struct px *px = *state;
    struct rung_buffer *out = px_buffer(px, "out", NULL, 64);
    struct px_launch l = {
        .grid = {16, 1, 1}, .block = {64, 1, 1}, .cluster = {4, 1, 1}, .shared = 16};

    if (*run_snippet(px, cluster_body, out, NULL, 0, l))
        fail_msg("%s", px->fault.message);
    for (uint32_t b = 0; b < 16; b++)
        assert_int_equal(((uint32_t *)px_map(px, out))[b], b / 4 * 4 + (b + 1) % 4);
    l.grid.x = 14;
    assert_string_equal(run_snippet(px, cluster_body, out, NULL, 0, l), "launch.error");
    assert_says(px, "not a multiple of the cluster");
    /* Without a cluster each block is its own neighbour. */
    l.grid.x = 16;
    l.cluster = (struct rung_dim3){0, 0, 0};
    assert_string_equal(run_snippet(px, cluster_body, out, NULL, 0, l), "");
    assert_int_equal(((uint32_t *)px_map(px, out))[3], 3);
    /* Beyond the cluster there is nothing. */
    assert_string_equal(run_snippet(px,
                                    "mov.u32 %r4, 0; mapa.shared::cluster.u32 %r3, %r4, 3;\n"
                                    "cvt.u64.u32 %x4, %r3;\nld.shared::cluster.u32 %r5, [%x4];\n",
                                    out, NULL, 0, l),
                        "mem.out_of_bounds");
    px_free(px, out);
}

static void cluster_of_the_code(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n"
        ".explicitcluster\n.reqnctapercluster 2, 1, 1\n{\n.reg .b64 %x<4>; .reg .b32 %r<4>;\n"
        "ld.param.u64 %x1, [out];\nmov.u32 %r1, %cluster_nctarank;\nst.global.u32 [%x1], %r1;\n"
        "ret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct rung_buffer *out = px_buffer(px, "out", NULL, 4);
    uint64_t p = px_address(px, out);
    struct px_launch l = {.kernel = "k", .params = &p, .param_bytes = 8, .grid = {4, 1, 1}};

    assert_non_null(m);
    assert_string_equal(px_launch(px, m, &l), "");
    assert_int_equal(*(uint32_t *)px_map(px, out), 2);
    px_unload(px, m);
    px_free(px, out);
}

/* ---- Variables of module scope --------------------------------------------------------------- */

static void symbols(void **state)
{
    struct px *px = *state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 _ZN2ns5tableE[8] = "
        "{1,0,0,0,2};\n.global .align 4 .u32 count = 5;\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %x<4>; .reg .b32 %r<4>;\n"
        "ld.param.u64 %x1, [out];\nld.const.u32 %r1, [_ZN2ns5tableE+4];\nst.global.u32 [%x1], "
        "%r1;\n"
        "atom.global.add.u32 %r2, [count], 1;\nst.global.u32 [%x1+4], %r2;\nret;\n}\n";
    struct rung_module *m = px_load(px, text);
    struct rung_buffer *out = px_buffer(px, "out", NULL, 16), *table = NULL, *in;
    static const uint32_t values[2] = {30, 40};
    uint64_t p = px_address(px, out), bytes = 0;
    struct px_launch l = {.kernel = "k", .params = &p, .param_bytes = 8};
    const uint32_t *result = px_map(px, out);

    in = px_buffer(px, "in", values, 8);
    assert_int_equal(px->ops->symbol(px->self, &px->call, m, "ns::table", &table, &bytes), RUNG_OK);
    assert_int_equal(bytes, 8);
    assert_int_equal(px->ops->copy(px->self, &px->call, table, 0, in, 0, 8), RUNG_OK);
    assert_string_equal(px_launch(px, m, &l), "");
    assert_int_equal(result[0], 40);
    assert_int_equal(result[1], 5);
    assert_string_equal(px_launch(px, m, &l), "");
    assert_int_equal(result[1], 6);
    assert_int_equal(px->ops->reset(px->self, &px->call, m), RUNG_OK);
    assert_string_equal(px_launch(px, m, &l), "");
    assert_int_equal(result[0], 2);
    assert_int_equal(result[1], 5);
    assert_int_equal(px->ops->symbol(px->self, &px->call, m, "tabl", &table, &bytes),
                     RUNG_ENOTFOUND);
    assert_int_equal(px->ops->copy(px->self, &px->call, out, 8, in, 4, 8), RUNG_EINVAL);
    px_unload(px, m);
    px_free(px, out);
    px_free(px, in);
}

/* ---- Approximations -------------------------------------------------------------------------- */

/* The error of an .approx function is there, and within its documented bound. */
static void approximations(void **state)
{
    struct px *px = *state;
    static const struct {
        const char *insn;
        double (*exact)(double);
        double least, most; /* of the largest error over the inputs */
        int absolute;
    } cases[] = {
        {"tanh.approx.f32", tanh, 0x1p-13, 0x1p-11, 0},
        {"ex2.approx.f32", exp2, 0x1p-24, 0x1p-22, 0},
        {"lg2.approx.f32", log2, 0x1p-24, 0x1p-22, 1},
        {"sin.approx.f32", sin, 0x1p-24, 0x1p-20, 1},
        {"cos.approx.f32", cos, 0x1p-24, 0x1p-20, 1},
    };
    float data[256];
    struct rung_buffer *out = px_buffer(px, "out", NULL, sizeof data), *in;

    for (int i = 0; i < 256; i++)
        data[i] = 0.01f + 0.0113f * (float)i;
    in = px_buffer(px, "in", data, sizeof data);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char body[512];
        double worst = 0;

        snprintf(body, sizeof body,
                 "mul.wide.u32 %%x4, %%r2, 4; add.s64 %%x3, %%x1, %%x4; add.s64 %%x5, %%x2, %%x4;\n"
                 "ld.global.f32 %%f1, [%%x5];\n%s %%f2, %%f1;\nst.global.f32 [%%x3], %%f2;\n",
                 cases[k].insn);
        assert_string_equal(run_snippet(px, body, out, in, 0, threads(256)), "");
        for (int i = 0; i < 256; i++) {
            const double want = cases[k].exact((double)data[i]);
            const double error = fabs((double)((float *)px_map(px, out))[i] - want);

            worst =
                fmax(worst, cases[k].absolute ? error / fmax(1, fabs(want)) : error / fabs(want));
        }
        if (worst < cases[k].least || worst > cases[k].most)
            fail_msg("%s: error %g, not between %g and %g", cases[k].insn, worst, cases[k].least,
                     cases[k].most);
    }
    px_free(px, out);
    px_free(px, in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_barrier),      cmocka_unit_test(write_after_read),
        cmocka_unit_test(what_is_no_race),      cmocka_unit_test(atomic_against_plain),
        cmocka_unit_test(seeded_order),         cmocka_unit_test(uninitialised_shared),
        cmocka_unit_test(unused_garbage),       cmocka_unit_test(uninitialised_global),
        cmocka_unit_test(uninitialised_local),  cmocka_unit_test(copies_need_a_wait),
        cmocka_unit_test(groups_of_copies),     cmocka_unit_test(barrier_against_a_loop),
        cmocka_unit_test(long_loops),           cmocka_unit_test(cooperative_grid),
        cmocka_unit_test(cooperative_deadlock), cmocka_unit_test(clusters),
        cmocka_unit_test(cluster_of_the_code),  cmocka_unit_test(symbols),
        cmocka_unit_test(approximations),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
