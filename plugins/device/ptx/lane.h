/*
 * lane.h - scalar helpers of the lane expressions in ops.def, written so that compilers turn loops
 * over them into vector code. No state. Rounding: everything relies on the default environment
 * (nearest even) and on the compiler not contracting a * b + c.
 */
#ifndef PTX_LANE_H
#define PTX_LANE_H

#include <stdint.h>
#include <string.h>

#define LANE_FN static inline __attribute__((always_inline, unused))

LANE_FN uint32_t f32_bits(float v)
{
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

LANE_FN float bits_f32(uint32_t b)
{
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
}

LANE_FN uint64_t f64_bits(double v)
{
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

LANE_FN double bits_f64(uint64_t b)
{
    double v;
    memcpy(&v, &b, sizeof v);
    return v;
}

LANE_FN float nan_f32(void)
{
    return bits_f32(0x7fffffffu);
}

/* ---- Integers -------------------------------------------------------------------------------- */

LANE_FN int32_t clamp_s32(int64_t v)
{
    return (int32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}

LANE_FN int32_t sext24(uint32_t v)
{
    return (int32_t)(v << 8) >> 8;
}

LANE_FN uint64_t mulhi_u64(uint64_t x, uint64_t y)
{
    return (uint64_t)(((unsigned __int128)x * y) >> 64);
}

LANE_FN uint64_t mulhi_s64(uint64_t x, uint64_t y)
{
    return (uint64_t)(((__int128)(int64_t)x * (int64_t)y) >> 64);
}

/*
 * Exact through f64: a quotient of 32-bit numbers is at least 2^-32 (relative) away from the next
 * whole number above it, far more than the rounding of the division. By zero: all ones, as GPUs do.
 */
LANE_FN uint32_t div_u32(uint32_t x, uint32_t y)
{
    double q = (double)x / (double)(y ? y : 1);

    return y ? (uint32_t)(int64_t)q : ~0u;
}

LANE_FN int32_t div_s32(int32_t x, int32_t y)
{
    double q = (double)x / (double)(y ? y : 1);

    return y ? (int32_t)(uint32_t)(int64_t)q : -1;
}

LANE_FN int64_t div_s64(int64_t x, int64_t y)
{
    if (!y)
        return -1;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

LANE_FN uint32_t popc_u32(uint32_t x)
{
    x -= (x >> 1) & 0x55555555u;
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    return (((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
}

LANE_FN uint32_t brev_u32(uint32_t x)
{
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(x);
}

LANE_FN uint32_t bfind_s32(uint32_t x)
{
    x ^= (uint32_t)((int32_t)x >> 31);
    return x ? 31u - (uint32_t)__builtin_clz(x) : ~0u;
}

LANE_FN uint32_t bfind_s64(uint64_t x)
{
    x ^= (uint64_t)((int64_t)x >> 63);
    return x ? 63u - (uint32_t)__builtin_clzll(x) : ~0u;
}

LANE_FN uint32_t shl_u32(uint32_t x, uint32_t y)
{
    return (y & 255) > 31 ? 0 : x << (y & 31);
}

LANE_FN uint64_t shl_u64(uint64_t x, uint32_t y)
{
    return (y & 255) > 63 ? 0 : x << (y & 63);
}

/* Bits pos .. pos + len - 1; both are bytes in PTX. */
LANE_FN uint32_t bfi_mask_u32(uint32_t pos, uint32_t len)
{
    uint32_t ones = (len & 255) > 31 ? ~0u : (1u << (len & 31)) - 1;

    return shl_u32(ones, pos);
}

LANE_FN uint64_t bfi_mask_u64(uint32_t pos, uint32_t len)
{
    uint64_t ones = (len & 255) > 63 ? ~(uint64_t)0 : ((uint64_t)1 << (len & 63)) - 1;

    return shl_u64(ones, pos);
}

LANE_FN uint32_t bfe_u32(uint32_t x, uint32_t pos, uint32_t len)
{
    return ((pos & 255) > 31 ? 0 : x >> (pos & 31)) & bfi_mask_u32(0, len);
}

/* The 64-bit forms take position and length as whole words, as an H200 does. */
LANE_FN uint64_t low_mask_u64(uint32_t len)
{
    return len > 63 ? ~(uint64_t)0 : ((uint64_t)1 << (len & 63)) - 1;
}

LANE_FN uint64_t bfe_u64(uint64_t x, uint32_t pos, uint32_t len)
{
    return (pos > 63 ? 0 : x >> (pos & 63)) & low_mask_u64(len);
}

/* Filled with the field's top bit, which is the value's own when the field passes its end. */
LANE_FN int32_t bfe_s32(int32_t x, uint32_t pos, uint32_t len)
{
    uint32_t top = (pos & 255) + (len & 255) - 1;
    uint32_t sign = (len & 255) && (((uint32_t)x >> (top > 31 ? 31 : top)) & 1) ? ~0u : 0;
    uint32_t mask = bfi_mask_u32(0, len);
    uint32_t field = (pos & 255) > 31 ? sign : (uint32_t)(x >> (pos & 31));

    return (int32_t)((field & mask) | (sign & ~mask));
}

LANE_FN int64_t bfe_s64(int64_t x, uint32_t pos, uint32_t len)
{
    uint64_t top = (uint64_t)pos + len - 1;
    uint64_t sign = len && (((uint64_t)x >> (top > 63 ? 63 : top)) & 1) ? ~(uint64_t)0 : 0;
    uint64_t mask = low_mask_u64(len);
    uint64_t field = pos > 63 ? sign : (uint64_t)(x >> (pos & 63));

    return (int64_t)((field & mask) | (sign & ~mask));
}

LANE_FN uint32_t prmt_byte(uint64_t both, uint32_t selector)
{
    uint32_t byte = (uint32_t)(both >> ((selector & 7) * 8)) & 255;

    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}

LANE_FN uint32_t prmt_b32(uint32_t x, uint32_t y, uint32_t z)
{
    uint64_t both = ((uint64_t)y << 32) | x;

    return prmt_byte(both, z & 15) | (prmt_byte(both, (z >> 4) & 15) << 8) |
           (prmt_byte(both, (z >> 8) & 15) << 16) | (prmt_byte(both, (z >> 12) & 15) << 24);
}

/* Selectors of the special modes by the two low bits of z (PTX ISA, prmt). */
LANE_FN uint32_t prmt_mode(uint32_t x, uint32_t y, uint32_t z, uint32_t mode)
{
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232},
    };

    return prmt_b32(x, y, selectors[mode % 6][z & 3]);
}

LANE_FN uint32_t lop3_b32(uint32_t x, uint32_t y, uint32_t z, uint32_t table)
{
    uint32_t r = 0;

    for (uint32_t i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
    return r;
}

LANE_FN uint32_t dot4(uint32_t x, uint32_t y, int x_signed, int y_signed)
{
    int32_t sum = 0;

    for (int k = 0; k < 32; k += 8) {
        int32_t a = x_signed ? (int8_t)(x >> k) : (int32_t)((x >> k) & 255);
        int32_t b = y_signed ? (int8_t)(y >> k) : (int32_t)((y >> k) & 255);

        sum += a * b;
    }
    return (uint32_t)sum;
}

/* Of each 16-bit half the smaller or the larger. */
LANE_FN uint32_t pair_pick(uint32_t x, uint32_t y, int larger, int is_signed)
{
    uint32_t r = 0;

    for (int k = 0; k < 32; k += 16) {
        uint32_t a = (x >> k) & 0xffffu, b = (y >> k) & 0xffffu, flip = is_signed ? 0x8000u : 0;

        r |= (((a ^ flip) > (b ^ flip)) == larger ? a : b) << k;
    }
    return r;
}

/* Two 16-bit numbers of x times the two low bytes of y. */
LANE_FN uint32_t dot2(uint32_t x, uint32_t y, int x_signed, int y_signed)
{
    uint32_t sum = 0;

    for (int k = 0; k < 2; k++) {
        int32_t a = x_signed ? (int16_t)(x >> (16 * k)) : (int32_t)((x >> (16 * k)) & 0xffffu);
        int32_t b = y_signed ? (int8_t)(y >> (8 * k)) : (int32_t)((y >> (8 * k)) & 255);

        sum += (uint32_t)(a * b);
    }
    return sum;
}

LANE_FN uint32_t carry_u64(uint64_t x, uint64_t y, uint32_t carry)
{
    uint64_t sum = x + y;

    return (sum < x) | (sum + carry < sum);
}

/* ---- Narrow floats --------------------------------------------------------------------------- */

LANE_FN float flush(float v)
{
    uint32_t b = f32_bits(v);

    return bits_f32((b & 0x7f800000u) ? b : b & 0x80000000u);
}

LANE_FN float saturate(float v)
{
    float low = v > 0.0f ? v : 0.0f; /* NaN becomes 0 */

    return low < 1.0f ? low : 1.0f;
}

LANE_FN float half_to_f32(uint32_t h)
{
    uint32_t em = h & 0x7fffu;
    float tiny = (float)(int32_t)em * 0x1p-24f;
    uint32_t shifted = (em << 13) + (em >= 0x7c00u ? 0x70000000u : 0x38000000u);
    uint32_t magnitude = em < 0x400u ? f32_bits(tiny) : shifted;

    return bits_f32(magnitude | ((h & 0x8000u) << 16));
}

LANE_FN uint16_t f32_to_half(float v)
{
    uint32_t b = f32_bits(v), sign = (b >> 16) & 0x8000u, m = b & 0x7fffffffu;
    uint32_t normal = (m - 0x38000000u + 0xfffu + ((m >> 13) & 1)) >> 13;
    uint32_t tiny = f32_bits(bits_f32(m < 0x38800000u ? m : 0) + 0.5f) - 0x3f000000u;
    uint32_t h = m < 0x38800000u ? tiny : m >= 0x477ff000u ? 0x7c00u : normal;

    return (uint16_t)(m > 0x7f800000u ? 0x7fffu : sign | h);
}

LANE_FN uint16_t f32_to_half_rz(float v)
{
    uint32_t b = f32_bits(v), sign = (b >> 16) & 0x8000u, m = b & 0x7fffffffu;
    float scaled = bits_f32(m < 0x38800000u ? m : 0) * 0x1p24f;
    uint32_t h = m < 0x38800000u ? (uint32_t)(int32_t)scaled : (m - 0x38000000u) >> 13;

    if (m >= 0x47800000u)
        h = m == 0x7f800000u ? 0x7c00u : 0x7bffu;
    return (uint16_t)(m > 0x7f800000u ? 0x7fffu : sign | h);
}

LANE_FN float bf16_to_f32(uint32_t h)
{
    return bits_f32(h << 16);
}

LANE_FN uint16_t f32_to_bf16(float v)
{
    uint32_t b = f32_bits(v);

    return (uint16_t)((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu
                                                      : (b + 0x7fffu + ((b >> 16) & 1)) >> 16);
}

LANE_FN uint16_t bf16_rz(uint32_t b)
{
    return (uint16_t)((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : b >> 16);
}

/* Round to odd: a later rounding to fewer bits is then as if done once. */
LANE_FN float odd_f64_to_f32(double v)
{
    float r = (float)v;
    uint32_t b = f32_bits(r);
    double outward = __builtin_fabs(v) - __builtin_fabs((double)r);

    if (outward != 0 && outward == outward && !(b & 1))
        b += outward > 0 ? 1u : ~0u;
    return bits_f32(b);
}

LANE_FN uint16_t f64_to_half(double v)
{
    return f32_to_half(odd_f64_to_f32(v));
}

/* Error of s = a + b (Knuth's two-sum); 0 when s is not finite. */
LANE_FN double sum_error(double a, double b, double s)
{
    double t = s - a;
    double e = (a - (s - t)) + (b - t);

    return e == e ? e : 0;
}

/* Directed rounding to 16 bits: z is the value towards zero; mode 2 down, 3 up. */
LANE_FN uint16_t half_dir(float v, int mode)
{
    const uint16_t z = f32_to_half_rz(v);
    const int outward = half_to_f32(z) != v && (mode == 3 ? v > 0 : v < 0);

    return (uint16_t)(z + outward);
}

LANE_FN uint16_t bf16_dir(float v, int mode)
{
    const uint16_t z = bf16_rz(f32_bits(v));
    const int outward = bf16_to_f32(z) != v && (mode == 3 ? v > 0 : v < 0);

    return (uint16_t)(z + outward);
}

/*
 * 8-bit floats (PTX ISA, "e4m3", "e5m2"): bits of mantissa, bias, largest finite value. Nearest
 * even, beyond the range the largest finite value, NaN is 0x7f.
 */
LANE_FN uint32_t f32_to_fp8(float v, int mantissa, int bias, float largest)
{
    const uint32_t b = f32_bits(v), sign = b >> 24 & 0x80u;
    const float a = __builtin_fabsf(v), c = a < largest ? a : largest;
    const int32_t e = (int32_t)(f32_bits(c) >> 23) - 127;
    const int32_t least = 1 - bias, k = (e > least ? e : least) - mantissa;
    const float steps = __builtin_rintf(c * bits_f32((uint32_t)(127 - k) << 23));
    const uint32_t n = (uint32_t)(int32_t)steps;
    const uint32_t code = e < least ? n : n + ((uint32_t)(e - least) << mantissa);

    return v != v ? 0x7fu : sign | code;
}

LANE_FN uint32_t e4m3_to_half(uint32_t v)
{
    const uint32_t m = v & 0x7fu, n = m & 7u;
    const float tiny = (float)(int32_t)n * 0x1p-9f;
    const uint32_t big = m << 7; /* exponent of bias 7 */
    const uint32_t h = m < 8 ? f32_to_half(tiny) : big + (8u << 10);

    return (m == 0x7fu ? 0x7fffu : h) | (v & 0x80u) << 8;
}

LANE_FN float odd_bits(float z, int inexact)
{
    return bits_f32(f32_bits(z) | (uint32_t)inexact);
}

/* x * y + z of halves: the product is exact in f64, the sum is rounded to odd twice. */
LANE_FN float fma_odd(float x, float y, float z)
{
    double p = (double)x * (double)y;
    double s = p + (double)z;
    double e = sum_error(p, (double)z, s);
    uint64_t b = f64_bits(s);

    if (e != 0 && !(b & 1))
        b += (e > 0) == (s > 0) ? 1u : ~(uint64_t)0;
    return odd_f64_to_f32(bits_f64(b));
}

LANE_FN float relu_f32(float v)
{
    return v != v ? nan_f32() : v > 0 ? v : 0.0f;
}

LANE_FN float fma_odd_relu(float x, float y, float z)
{
    return relu_f32(fma_odd(x, y, z));
}

/* One NaN gives the other operand; -0 is below +0. */
LANE_FN float min_f32(float x, float y)
{
    float least = x < y ? x : y;
    float equal = bits_f32(f32_bits(x) | f32_bits(y)); /* of zeros: the negative one */

    least = x == y ? equal : least;
    least = x != x ? y : least;
    return y != y ? (x != x ? nan_f32() : x) : least;
}

LANE_FN float max_f32(float x, float y)
{
    float most = x > y ? x : y;
    float equal = bits_f32(f32_bits(x) & f32_bits(y));

    most = x == y ? equal : most;
    most = x != x ? y : most;
    return y != y ? (x != x ? nan_f32() : x) : most;
}

LANE_FN double min_f64(double x, double y)
{
    if (x != x)
        return y;
    if (x == y)
        return bits_f64(f64_bits(x) | f64_bits(y));
    return x < y || y != y ? x : y;
}

LANE_FN double max_f64(double x, double y)
{
    if (x != x)
        return y;
    if (x == y)
        return bits_f64(f64_bits(x) & f64_bits(y));
    return x > y || y != y ? x : y;
}

LANE_FN float min_nan(float x, float y)
{
    return x != x || y != y ? nan_f32() : min_f32(x, y);
}

LANE_FN float max_nan(float x, float y)
{
    return x != x || y != y ? nan_f32() : max_f32(x, y);
}

LANE_FN float fma_odd_sat(float x, float y, float z)
{
    return saturate(fma_odd(x, y, z));
}

#define PAIR_ADD_SAT(x, y) saturate((x) + (y))
#define PAIR_SUB_SAT(x, y) saturate((x) - (y))
#define PAIR_MUL_SAT(x, y) saturate((x) * (y))
#define PAIR_ADD(x, y) ((x) + (y))
#define PAIR_SUB(x, y) ((x) - (y))
#define PAIR_MUL(x, y) ((x) * (y))
#define both1(x, load, store, f)                                                                   \
    ((uint32_t)store(f(load((x)&0xffffu))) | ((uint32_t)store(f(load((x) >> 16))) << 16))
#define both2(x, y, load, store, f)                                                                \
    ((uint32_t)store(f(load((x)&0xffffu), load((y)&0xffffu))) |                                    \
     ((uint32_t)store(f(load((x) >> 16), load((y) >> 16))) << 16))
#define both3(x, y, z, load, store, f)                                                             \
    ((uint32_t)store(f(load((x)&0xffffu), load((y)&0xffffu), load((z)&0xffffu))) |                 \
     ((uint32_t)store(f(load((x) >> 16), load((y) >> 16), load((z) >> 16))) << 16))

/* ---- To integers ----------------------------------------------------------------------------- */

/* Out of range saturates. NaN: 0 for f32 to 32 bits, else the top bit alone (PTX ISA, cvt). */
LANE_FN int32_t f32_to_s32(float v)
{
    float c = v >= -0x1p31f ? v : v != v ? 0.0f : -0x1p31f;

    return c >= 0x1p31f ? INT32_MAX : (int32_t)(c < 0x1p31f ? c : 0.0f);
}

LANE_FN uint32_t f32_to_u32(float v)
{
    double c = v > 0.0f ? (double)v : 0.0;

    return (uint32_t)(int64_t)(c < 0x1p32 ? c : 4294967295.0);
}

LANE_FN int32_t f64_to_s32(double v)
{
    double c = v > -0x1p31 ? v : -0x1p31; /* NaN too */

    return (int32_t)(c < 2147483647.0 ? c : 2147483647.0);
}

LANE_FN uint32_t f64_to_u32(double v)
{
    double c = v > 0.0 ? v : v != v ? 0x1p31 : 0.0;

    return (uint32_t)(int64_t)(c < 4294967295.0 ? c : 4294967295.0);
}

LANE_FN int64_t f64_to_s64(double v)
{
    if (!(v > -0x1p63))
        return INT64_MIN;
    return v < 0x1p63 ? (int64_t)v : INT64_MAX;
}

LANE_FN uint64_t f64_to_u64(double v)
{
    if (v != v)
        return (uint64_t)1 << 63;
    if (!(v > 0))
        return 0;
    return v < 0x1p64 ? (uint64_t)v : UINT64_MAX;
}

#endif
