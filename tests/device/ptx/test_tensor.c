/*
 * test_tensor.c - mma, ldmatrix and wmma: whole products from matrices in their natural order, so
 * that loads, layouts and sums are checked together. Values are small integers: every sum is exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "snippet.h"

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

static int value(uint32_t i, uint32_t salt)
{
    return (int)((i * 2654435761u * (2 * salt + 1)) >> 27) % 13 - 6;
}

static uint16_t half_of(int v)
{
    uint32_t bits, exponent;
    float f = (float)v;

    memcpy(&bits, &f, 4);
    exponent = (bits >> 23 & 255) - 127 + 15;
    return v ? (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 1023)) : 0;
}

static uint16_t bf16_of(int v)
{
    uint32_t bits;
    float f = (float)v;

    memcpy(&bits, &f, 4);
    return (uint16_t)(bits >> 16);
}

/* Inputs: a of 16 x k, then b of k x n (or its columns), as 16-bit words; result f32, 16 x n,
 * row-major. */
static void check_product(struct px *px, const char *body, uint32_t k, uint32_t n, int b_columns,
                          uint16_t (*narrow)(int))
{
    uint16_t in[512] = {0};

    for (uint32_t i = 0; i < 16 * k; i++)
        in[i] = narrow(value(i, 1));
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < n; j++)
            in[16 * k + (b_columns ? j * k + i : i * n + j)] = narrow(value(i * n + j, 2));
    struct rung_buffer *x = px_buffer(px, "in", in, sizeof in),
                       *y = px_buffer(px, "out", NULL, 16 * n * 4);
    if (*run_snippet(px, body, y, x, 0, (struct px_launch){.block = {32, 1, 1}, .shared = 2048}))
        fail_msg("%s", px->fault.message);
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t j = 0; j < n; j++) {
            int want = 0;

            for (uint32_t i = 0; i < k; i++)
                want += value(r * k + i, 1) * value(i * n + j, 2);
            if (((float *)px_map(px, y))[r * n + j] != (float)want)
                fail_msg("[%u][%u]: got %g, want %d", r, j,
                         (double)((float *)px_map(px, y))[r * n + j], want);
        }
    px_free(px, x);
    px_free(px, y);
}

/* %f1..%f4 of an m16n8 accumulator to a row-major 16 x 8 matrix at %x1, after the ISA's figure. */
#define STORE_M16N8                                                                                \
    "shr.u32 %r20, %r2, 2; and.b32 %r21, %r2, 3; shl.b32 %r21, %r21, 1; mad.lo.u32 %r22, %r20, "   \
    "8, %r21;\n"                                                                                   \
    "mul.wide.u32 %x10, %r22, 4; add.s64 %x10, %x1, %x10;\n"                                       \
    "st.global.v2.f32 [%x10], {%f1, %f2}; st.global.v2.f32 [%x10+256], {%f3, %f4};\n"

/* All 1 KiB of input to shared memory at dyn. */
#define TO_SHARED                                                                                  \
    "mov.u64 %x5, dyn; mul.wide.u32 %x6, %r2, 16; add.s64 %x7, %x2, %x6; add.s64 %x8, %x5, %x6;\n" \
    "ld.global.v4.u32 {%r10,%r11,%r12,%r13}, [%x7]; st.shared.v4.u32 [%x8], "                      \
    "{%r10,%r11,%r12,%r13};\n"                                                                     \
    "ld.global.v4.u32 {%r10,%r11,%r12,%r13}, [%x7+512]; st.shared.v4.u32 [%x8+512], "              \
    "{%r10,%r11,%r12,%r13};\n"                                                                     \
    "bar.sync 0;\n"

static void ldmatrix_and_mma(void **state)
{
    static const char half[] = TO_SHARED
        /* a: lane l gives row l % 16, columns 8 * (l / 16) on */
        "and.b32 %r20, %r2, 15; shr.u32 %r21, %r2, 4; shl.b32 %r20, %r20, 5; shl.b32 %r21, %r21, "
        "4;\n"
        "add.u32 %r20, %r20, %r21; cvt.u64.u32 %x9, %r20; add.s64 %x9, %x9, %x5;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3,%r4,%r5,%r6}, [%x9];\n"
        /* b: 16 rows of 8 halves behind a's 512 bytes, transposed while loading */
        "and.b32 %r20, %r2, 15; shl.b32 %r20, %r20, 4; cvt.u64.u32 %x9, %r20; add.s64 %x9, %x9, "
        "%x5;\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r7,%r8}, [%x9+512];\n"
        "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r4,%r5,%r6}, "
        "{%r7,%r8}, {%f1,%f2,%f3,%f4};\n" STORE_M16N8;
    char bf16[sizeof half + 8], *at;

    check_product(*state, half, 16, 8, 0, half_of);
    memcpy(bf16, half, sizeof half);
    at = strstr(bf16, "f32.f16.f16.f32");
    memmove(at + 17, at + 15, strlen(at + 15) + 1);
    memcpy(at, "f32.bf16.bf16.f32", 17);
    check_product(*state, bf16, 16, 8, 0, bf16_of);
}

/* The 8-deep form, operands loaded lane by lane after the ISA's figure. */
static void mma_of_depth_8(void **state)
{
    check_product(
        *state,
        "shr.u32 %r20, %r2, 2; and.b32 %r21, %r2, 3; shl.b32 %r22, %r21, 2; mad.lo.u32 %r23, %r20, "
        "16, %r22;\n"
        "cvt.u64.u32 %x5, %r23; add.s64 %x5, %x2, %x5; ld.global.u32 %r3, [%x5]; ld.global.u32 "
        "%r4, [%x5+128];\n"
        "ld.global.u32 %r5, [%x5+256];\n"
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r4}, {%r5}, "
        "{0f00000000,0f00000000,0f00000000,0f00000000};\n" STORE_M16N8,
        8, 8, 1, half_of);
}

static void wmma_products(void **state)
{
    static const char rows[] =
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, "
        "[%x2], 16;\n"
        "add.s64 %x3, %x2, 512;\n"
        "wmma.load.b.sync.aligned.row.m16n16k16.global.f16 "
        "{%r11,%r12,%r13,%r14,%r15,%r16,%r17,%r18}, [%x3], 16;\n"
        ".reg .f32 %zero; mov.f32 %zero, 0f00000000;\n"
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, "
        "{%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, {%r11,%r12,%r13,%r14,%r15,%r16,%r17,%r18}, "
        "{%zero,%zero,%zero,%zero,%zero,%zero,%zero,%zero};\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%x1], "
        "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 16;\n";
    static const char shared_columns[] = TO_SHARED
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, "
        "[%x5], 16;\n"
        "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 "
        "{%r11,%r12,%r13,%r14,%r15,%r16,%r17,%r18}, [%x5+512], 16;\n"
        ".reg .f32 %zero; mov.f32 %zero, 0f00000000;\n"
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, "
        "{%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, {%r11,%r12,%r13,%r14,%r15,%r16,%r17,%r18}, "
        "{%zero,%zero,%zero,%zero,%zero,%zero,%zero,%zero};\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%x1], "
        "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 16;\n";

    check_product(*state, rows, 16, 16, 0, half_of);
    check_product(*state, shared_columns, 16, 16, 1, half_of);
}

/* 8-bit integers, 32 deep: a row of a is 32 bytes, a column of b too. */
static void integer_mma(void **state)
{
    struct px *px = *state;
    int8_t in[512 + 256];
    struct rung_buffer *y = px_buffer(px, "out", NULL, 512), *x;

    for (uint32_t i = 0; i < sizeof in; i++)
        in[i] = (int8_t)(value(i, 3) * 17);
    x = px_buffer(px, "in", in, sizeof in);
    if (*run_snippet(px,
                     "shr.u32 %r20, %r2, 2; and.b32 %r21, %r2, 3; shl.b32 %r22, %r21, 2; "
                     "mad.lo.u32 %r23, %r20, 32, %r22;\n"
                     "cvt.u64.u32 %x5, %r23; add.s64 %x5, %x2, %x5; ld.global.u32 %r3, [%x5]; "
                     "ld.global.u32 %r4, [%x5+256];\n"
                     "ld.global.u32 %r5, [%x5+16]; ld.global.u32 %r6, [%x5+272]; ld.global.u32 "
                     "%r7, [%x5+512];\n"
                     "ld.global.u32 %r8, [%x5+528]; mov.u32 %r9, 0;\n"
                     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r10,%r11,%r12,%r13}, "
                     "{%r3,%r4,%r5,%r6}, {%r7,%r8}, "
                     "{%r9,%r9,%r9,%r9};\n"
                     "mov.b32 %f1, %r10; mov.b32 %f2, %r11; mov.b32 %f3, %r12; mov.b32 %f4, "
                     "%r13;\n" STORE_M16N8,
                     y, x, 0, (struct px_launch){.block = {32, 1, 1}}))
        fail_msg("%s", px->fault.message);
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t j = 0; j < 8; j++) {
            int32_t want = 0;

            for (uint32_t i = 0; i < 32; i++)
                want += in[r * 32 + i] * in[512 + j * 32 + i];
            assert_int_equal(((int32_t *)px_map(px, y))[r * 8 + j], want);
        }
    px_free(px, x);
    px_free(px, y);
}

/* Other shapes are named, not computed wrongly. */
static void other_shapes_are_unsupported(void **state)
{
    struct px *px = *state;

    assert_string_equal(
        run_snippet(
            px,
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1,%d2}, {%d3}, {%d4}, {%d1,%d2};\n",
            NULL, NULL, 0, (struct px_launch){.block = {32, 1, 1}}),
        "device.unsupported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ldmatrix_and_mma),
        cmocka_unit_test(mma_of_depth_8),
        cmocka_unit_test(wmma_products),
        cmocka_unit_test(integer_mma),
        cmocka_unit_test(other_shapes_are_unsupported),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
