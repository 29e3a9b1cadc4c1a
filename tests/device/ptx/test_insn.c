/*
 * test_insn.c - conformance a mnemonic: every line of insn_cases.def runs over pairs of awkward
 * values, with full warps and with half of the lanes off, at every instruction-set level of this
 * machine, and is compared with plain C.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 2048
#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

/* ---- What the expressions use ---------------------------------------------------------------- */

static float F(uint64_t v)
{
    uint32_t b = (uint32_t)v;
    float f;

    memcpy(&f, &b, 4);
    return f;
}

static uint64_t U(float f)
{
    uint32_t b;

    memcpy(&b, &f, 4);
    return b;
}

static double D(uint64_t v)
{
    double d;

    memcpy(&d, &v, 8);
    return d;
}

static uint64_t UD(double d)
{
    uint64_t b;

    memcpy(&b, &d, 8);
    return b;
}

static int64_t S16(uint64_t v)
{
    return (int16_t)v;
}
static int64_t S32(uint64_t v)
{
    return (int32_t)v;
}
static int64_t S64(uint64_t v)
{
    return (int64_t)v;
}
static float Z(float v)
{
    return fpclassify(v) == FP_SUBNORMAL ? copysignf(0.0f, v) : v;
}
static float SAT(float v)
{
    return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f;
}

static uint64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return (uint64_t)(v < low ? low : v > high ? high : v);
}

static float least(float x, float y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static float most(float x, float y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? y : x) : x > y ? x : y;
}

static uint64_t bfe(uint64_t a, uint64_t pos, uint64_t len, int bits, int is_signed)
{
    uint64_t r = 0, top = pos + len - 1 > (uint64_t)bits - 1 ? (uint64_t)bits - 1 : pos + len - 1;
    uint64_t sign = is_signed && len ? a >> top & 1 : 0;

    for (uint64_t i = 0; i < (uint64_t)bits; i++)
        r |= (i < len && pos + i < (uint64_t)bits ? a >> (pos + i) & 1 : sign) << i;
    return r;
}

static uint64_t bfind(uint64_t a)
{
    return a ? 63 - (uint64_t)__builtin_clzll(a) : ~0ull;
}

static uint64_t brev(uint64_t a, int bits)
{
    uint64_t r = 0;

    for (int i = 0; i < bits; i++)
        r |= (a >> i & 1) << (bits - 1 - i);
    return r;
}

static uint64_t prmt(uint64_t a, uint64_t b, uint64_t selector)
{
    uint64_t both = a | b << 32, r = 0;

    for (int i = 0; i < 4; i++) {
        uint64_t s = selector >> (4 * i) & 15, byte = both >> (8 * (s & 7)) & 255;

        r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
    }
    return r;
}

static int64_t dot(uint64_t a, uint64_t b, int sa, int sb)
{
    int64_t sum = 0;

    for (int k = 0; k < 32; k += 8) {
        uint8_t x = (uint8_t)(a >> k), y = (uint8_t)(b >> k);

        sum += (sa ? (int8_t)x : x) * (sb ? (int8_t)y : y);
    }
    return sum;
}

/* The machine's own directed rounding, restored at once; volatile keeps the compiler from folding.
 */
#define DIRECTED(name, type, decl, expr)                                                           \
    static type name(decl, int mode)                                                               \
    {                                                                                              \
        volatile type r;                                                                           \
        fesetround(mode);                                                                          \
        r = expr;                                                                                  \
        fesetround(FE_TONEAREST);                                                                  \
        return r;                                                                                  \
    }
#define COMMA ,
#define TWO volatile float x, volatile float y
#define THREE TWO, volatile float z
DIRECTED(dir_add, float, TWO, x + y)
DIRECTED(dir_mul, float, TWO, x *y)
DIRECTED(dir_div, float, TWO, x / y)
DIRECTED(dir_fma, float, THREE, fmaf(x, y, z))
DIRECTED(dir_sqrt, float, volatile float x, sqrtf(x))
DIRECTED(dir_int, float, volatile int64_t x, (float)x)
DIRECTED(dir_narrow, float, volatile double x, (float)x)
DIRECTED(dir_unsigned, float, volatile uint64_t x, (float)x)
DIRECTED(dir_wide, double, volatile int64_t x, (double)x)
DIRECTED(dir_sub_d, double, volatile double x COMMA volatile double y, x - y)
DIRECTED(dir_div_d, double, volatile double x COMMA volatile double y, x / y)
DIRECTED(dir_sqrt_d, double, volatile double x, sqrt(x))

static float half(uint64_t h)
{
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    float v = exponent == 31 ? (fraction ? NAN : INFINITY)
              : exponent     ? ldexpf(1.0f + (float)fraction / 1024.0f, exponent - 15)
                             : ldexpf((float)fraction, -24);

    return h & 0x8000 ? -v : v;
}

/* Nearest, ties to even, of a value that is exact in f64. */
static uint64_t narrow(double v, int digits, int least_exponent, int bias, uint64_t infinity)
{
    uint64_t sign = signbit(v) ? 0x8000 : 0;
    int e;

    v = fabs(v);
    if (v != v)
        return 0x7fff;
    if (v == 0 || isinf(v))
        return sign | (v == 0 ? 0 : infinity);
    frexp(v, &e);
    e = e - 1 < least_exponent ? least_exponent : e - 1;
    uint64_t units = (uint64_t)rint(ldexp(v, digits - e));
    uint64_t bits = units + ((uint64_t)(e + bias - 1) << digits);
    return sign | (bits > infinity ? infinity : bits);
}

static uint64_t to_half(double v)
{
    return narrow(v, 10, -14, 15, 0x7c00);
}

static float bf16(uint64_t h)
{
    return F((h & 0xffff) << 16);
}

static uint64_t to_bf16(double v)
{
    return narrow(v, 7, -126, 127, 0x7f80);
}

/* Directed, 'u'p or 'd'own: a step from the nearest 16-bit value, which back() turns into a number.
 */
static uint64_t dir_16(double v, char mode, uint64_t (*nearest)(double), float (*back)(uint64_t))
{
    uint64_t h = nearest(v);
    double got = back(h);

    if (v != v || got == v)
        return h;
    if (mode == 'u' && got < v)
        return h == 0x8000 ? 1 : h & 0x8000 ? h - 1 : h + 1;
    if (mode == 'd' && got > v)
        return h == 0 ? 0x8001 : h & 0x8000 ? h + 1 : h - 1;
    return h;
}

/* An 8-bit float: e4m3 (3 bits of mantissa, bias 7) or e5m2 (2, 15). */
static double fp8(uint64_t v, int digits, int bias)
{
    const int exponent = (int)((v & 127) >> digits), fraction = (int)(v & ((1u << digits) - 1));
    const double part = ldexp(fraction, -digits);
    const double m = exponent ? ldexp(1 + part, exponent - bias) : ldexp(part, 1 - bias);

    if ((v & 127) == 127 && digits == 3)
        return NAN;
    return v & 128 ? -m : m;
}

/* The nearest of all finite codes, the even one of two. */
static uint64_t to_fp8(float x, int digits, int bias, uint64_t last)
{
    const double a = fmin(fabs((double)x), fp8(last, digits, bias));
    uint64_t best = 0;

    if (x != x)
        return 127;
    for (uint64_t k = 1; k <= last; k++) {
        const double here = fabs(a - fp8(k, digits, bias));
        const double there = fabs(a - fp8(best, digits, bias));

        if (here < there || (here == there && !(k & 1)))
            best = k;
    }
    return best | (signbit(x) ? 128 : 0);
}

/* The sum rounded to odd in f64: fit for one more rounding to a half. */
static double exact_fma(float x, float y, float z)
{
    double p = (double)x * y, s, e, t;

    s = p + z;
    t = s - p;
    e = (p - (s - t)) + (z - t);
    if (e == e && e != 0 && !(UD(s) & 1))
        s = D(UD(s) + ((e > 0) == (s > 0) ? 1 : ~0ull));
    return s;
}

static uint64_t to_int(double v, int bits, int is_signed, double (*rounding)(double), uint64_t nan)
{
    double low = is_signed ? -ldexp(1, bits - 1) : 0, high = ldexp(1, is_signed ? bits - 1 : bits);

    if (v != v)
        return nan;
    v = rounding(v);
    if (v < low)
        return is_signed ? ~0ull << (bits - 1) : 0;
    if (v >= high)
        return (~0ull >> (64 - bits)) >> is_signed;
    return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

struct insn_case {
    char kind;
    const char *text;
    int d, a, b, c;
    uint64_t (*expect)(uint64_t a, uint64_t b, uint64_t c);
};

#define NAME_2(line) expect_##line
#define NAME_1(line) NAME_2(line)
#define X(kind, text, d, wa, wb, wc, expr)                                                         \
    static uint64_t NAME_1(__LINE__)(uint64_t a, uint64_t b, uint64_t c)                           \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return (uint64_t)(expr);                                                                   \
    }
#include "insn_cases.def"
#undef X

static const struct insn_case cases[] = {
#define X(kind, text, d, wa, wb, wc, expr) {#kind[0], text, d, wa, wb, wc, NAME_1(__LINE__)},
#include "insn_cases.def"
#undef X
};
#define N_CASES (sizeof cases / sizeof cases[0])

/* ---- Inputs ---------------------------------------------------------------------------------- */

static const uint32_t values_32[] = {
    0,          1,          2,          3,          4,          5,          7,          8,
    15,         16,         31,         32,         33,         40,         63,         64,
    0x7f,       0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,
    0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000, 0x3f000000,
    0x40490fdb, 0x00800000, 0x00000001, 0x007fffff, 0x80400000, 0x7f7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0x4b800001, 0x33800000, 0xc1200000, 0x42f6e979, 0x3eaaaaab, 0x4f000000, 0xcf000000,
    0x4f7fffff, 0x5f000000,
};
static const uint64_t values_64[] = {
    0,
    1,
    2,
    3,
    31,
    32,
    63,
    64,
    100,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0xfffffffffffffffe,
    0x123456789abcdef0,
    0x3ff0000000000000,
    0xbff8000000000000,
    0x7ff0000000000000,
    0xfff0000000000000,
    0x7ff8000000000000,
    0x0010000000000000,
    0x0000000000000001,
    0x7fefffffffffffff,
    0x3fb999999999999a,
    0x41dfffffffc00000,
    0xc1e0000000000000,
    0x43e0000000000000,
    0x4059000000000000,
    0x47efffffefffffff,
    0x36a0000000000001,
    0x3ff0000010000001,
    0x3f10020000000000,
    0x40effe0000000001,
};
static const uint16_t values_16[] = {
    0,      1,      2,      3,      7,      15,     16,     0x7f,   0x80,   0xff,
    0x3ff,  0x400,  0x7fff, 0x8000, 0x8001, 0xffff, 0x3c00, 0xbc00, 0x3800, 0x7bff,
    0x7c00, 0xfc00, 0x7e00, 0x3c01, 0x4248, 0x1400, 0x3f80, 0x4049, 0x0080, 0x7f7f,
};

/* The i-th value of a width: awkward ones first, then noise. */
static uint64_t value_of(int width, uint32_t i, uint32_t salt)
{
    uint64_t noise = (i + 1) * 0x9e3779b97f4a7c15u * (salt * 2 + 1);

    noise ^= noise >> 29;
    noise *= 0xbf58476d1ce4e5b9u;
    noise ^= noise >> 32;
    if (width == 64)
        return i % 41 < sizeof values_64 / 8 ? values_64[i % 41] : noise;
    if (width == 16)
        return i % 37 < sizeof values_16 / 2 ? values_16[i % 37] : noise & 0xffff;
    return i % 59 < sizeof values_32 / 4 ? values_32[i % 59] : noise & 0xffffffff;
}

struct inputs {
    uint64_t a[N], b[N], c[N];
};

static void make_inputs(struct inputs *in, const struct insn_case *k)
{
    for (uint32_t i = 0; i < N; i++) {
        in->a[i] = value_of(k->a, i, 1);
        in->b[i] = value_of(k->b, i / 59 + i * 3, 2);
        in->c[i] = value_of(k->c, i / 7 + i, 3);
    }
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

static const char *suffix(int width)
{
    return width == 64 ? "d" : width == 16 ? "h" : "r";
}

/* Loads a, b, c of 64 bits each, runs the instruction (odd threads only when half), stores d. */
static void make_kernel(char *out, size_t n, const struct insn_case *k, int half_off)
{
    char operands[64] = "";
    const int widths[3] = {k->a, k->b, k->c};

    for (int i = 0; i < 3; i++)
        if (widths[i])
            snprintf(operands + strlen(operands), sizeof operands - strlen(operands), ", %%%s%d",
                     suffix(widths[i]), i + 1);
    snprintf(
        out, n,
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
        ".reg .b64 %%d<8>; .reg .b64 %%x<8>; .reg .b32 %%r<8>; .reg .b16 %%h<8>; .reg .pred "
        "%%p<4>;\n"
        ".reg .b32 %%t<4>;\n"
        "mov.u32 %%t0, %%ctaid.x; mov.u32 %%t1, %%ntid.x; mov.u32 %%t2, %%tid.x;\n"
        "mad.lo.s32 %%t0, %%t0, %%t1, %%t2; mul.wide.u32 %%x4, %%t0, 8;\n"
        "ld.param.u64 %%x0, [p0]; ld.param.u64 %%x1, [p1]; ld.param.u64 %%x2, [p2]; ld.param.u64 "
        "%%x3, [p3];\n"
        "add.s64 %%x0, %%x0, %%x4; add.s64 %%x1, %%x1, %%x4; add.s64 %%x2, %%x2, %%x4; add.s64 "
        "%%x3, %%x3, %%x4;\n"
        "ld.global.u64 %%d1, [%%x1]; ld.global.u64 %%d2, [%%x2]; ld.global.u64 %%d3, [%%x3];\n"
        "cvt.u32.u64 %%r1, %%d1; cvt.u32.u64 %%r2, %%d2; cvt.u32.u64 %%r3, %%d3;\n"
        "cvt.u16.u64 %%h1, %%d1; cvt.u16.u64 %%h2, %%d2; cvt.u16.u64 %%h3, %%d3;\n"
        "mov.u64 %%d0, 0x5a5a5a5a5a5a5a5a; mov.u32 %%r0, 0x5a5a5a5a; mov.u16 %%h0, 0x5a5a;\n"
        "and.b32 %%t3, %%t2, 1; setp.eq.u32 %%p1, %%t3, 0; setp.eq.u32 %%p0, %%t3, 7;\n"
        "%s %s %%%s0%s;\n%s%sst.global.u64 [%%x0], %%d0;\nret;\n}\n",
        half_off ? "@!%p1" : "", k->text, k->d == 1 ? "p" : suffix(k->d), operands,
        k->d == 1 ? "selp.u32 %r0, 1, 0, %p0;\n" : "",
        k->d == 64   ? ""
        : k->d == 16 ? "cvt.u64.u16 %d0, %h0;\n"
                     : "cvt.u64.u32 %d0, %r0;\n");
}

/* ---- Comparison ------------------------------------------------------------------------------ */

static int same_half(uint64_t got, uint64_t want, uint64_t infinity)
{
    int nan = (got & 0x7fff) > infinity;

    return nan || (want & 0x7fff) > infinity ? nan && (want & 0x7fff) > infinity : got == want;
}

static int64_t ordered(uint64_t bits)
{
    return bits & 0x80000000 ? -(int64_t)(bits & 0x7fffffff) : (int64_t)bits;
}

static int agrees(char kind, int width, uint64_t got, uint64_t want)
{
    if (width < 64)
        want &= width == 16 ? 0xffff : 0xffffffff;
    switch (kind) {
    case 'f':
    case 'u':
    case 't':
    case 'l':
        if (F(got) != F(got) || F(want) != F(want))
            return F(got) != F(got) && F(want) != F(want);
        if (kind == 'u')
            return llabs(ordered(got) - ordered(want)) <= 2;
        if (kind == 't')
            return fabsf(F(got) - F(want)) <= 0x1p-11f * fabsf(F(want));
        if (kind == 'l' && got != want)
            return fabsf(F(got) - F(want)) <= 0x1p-22f * fmaxf(fabsf(F(want)), 1.0f);
        return got == want;
    case 'd':
        return (D(got) != D(got) && D(want) != D(want)) || got == want;
    case 'h':
        return same_half(got, want, 0x7c00);
    case 'b':
        return same_half(got, want, 0x7f80);
    case 'i':
        return same_half(got & 0xffff, want & 0xffff, 0x7c00) &&
               same_half(got >> 16, want >> 16, 0x7c00);
    default:
        return got == want;
    }
}

static void compare(const struct insn_case *k, const struct inputs *in, const uint64_t *got,
                    int half_off, const char *isa)
{
    for (uint32_t i = 0; i < N; i++) {
        uint64_t off = k->d == 1 ? 0 : k->d == 64 ? UNTOUCHED : k->d == 16 ? 0x5a5a : 0x5a5a5a5a;
        uint64_t want = half_off && !(i & 1) ? off : k->expect(in->a[i], in->b[i], in->c[i]);

        if (half_off && !(i & 1) ? got[i] == want : agrees(k->kind, k->d, got[i], want))
            continue;
        fail_msg("%s (%s%s) of 0x%llx, 0x%llx, 0x%llx: got 0x%llx, want 0x%llx", k->text, isa,
                 half_off ? ", half off" : "", (unsigned long long)in->a[i],
                 (unsigned long long)in->b[i], (unsigned long long)in->c[i],
                 (unsigned long long)got[i], (unsigned long long)want);
    }
}

static void run_case(struct px *px, const struct insn_case *k, int half_off, const char *isa)
{
    static struct inputs in;
    char text[4096];
    uint64_t params[4];

    make_inputs(&in, k);
    make_kernel(text, sizeof text, k, half_off);
    struct rung_module *m = px_load(px, text);
    if (!m)
        fail_msg("%s: %s", k->text, px->fault.message);
    struct rung_buffer *b[4] = {
        px_buffer(px, "d", NULL, sizeof in.a), px_buffer(px, "a", in.a, sizeof in.a),
        px_buffer(px, "b", in.b, sizeof in.b), px_buffer(px, "c", in.c, sizeof in.c)};
    for (int i = 0; i < 4; i++)
        params[i] = px_address(px, b[i]);
    struct px_launch l = {.kernel = "k",
                          .grid = {N / 256, 1, 1},
                          .block = {256, 1, 1},
                          .params = params,
                          .param_bytes = sizeof params};
    if (*px_launch(px, m, &l))
        fail_msg("%s: %s", k->text, px->fault.message);
    compare(k, &in, px_map(px, b[0]), half_off, isa);
    for (int i = 0; i < 4; i++)
        px_free(px, b[i]);
    px_unload(px, m);
}

static void all_cases(void **state)
{
    const struct px_option options[] = {{"isa", *state}, {NULL, NULL}};
    struct px px;

    if (px_open(&px, PTX_PLUGIN, options)) {
        print_message("SKIPPED: this machine has no level %s\n", (const char *)*state);
        px.factory->destroy(px.self);
        skip();
    }
    for (size_t i = 0; i < N_CASES; i++)
        for (int half_off = 0; half_off < 2; half_off++)
            run_case(&px, &cases[i], half_off, *state);
    px_close(&px);
}

int main(void)
{
    static char v2[] = "v2", v3[] = "v3", v4[] = "v4";
    const struct CMUnitTest tests[] = {
        {"all mnemonics, v2", all_cases, NULL, NULL, v2},
        {"all mnemonics, v3", all_cases, NULL, NULL, v3},
        {"all mnemonics, v4", all_cases, NULL, NULL, v4},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
