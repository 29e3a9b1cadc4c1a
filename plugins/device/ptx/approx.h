/*
 * approx.h - the approximate functions of the special unit, and directed rounding. The functions
 * keep the hardware's documented bounds and use them up; they give the same bits at every
 * instruction-set level, since they use no fused multiply-add.
 */
#ifndef PTX_APPROX_H
#define PTX_APPROX_H

#include "lane.h"

/*
 * What the special unit leaves of an exact result. The documented bounds (PTX ISA, "maximum
 * absolute/relative error") are used up, so that a kernel that trusts an .approx function further
 * than a GPU allows shows it here. Errors are the same every time and point towards zero.
 */

/* Relative error up to 2^-bits: the lower mantissa bits are gone. NaN and infinity stay what they
 * are. */
LANE_FN float coarse(float v, int bits)
{
    return bits_f32(f32_bits(v) & ~((1u << (23 - bits)) - 1));
}

/* Absolute error up to 1 / steps, for |v| of a few units. */
LANE_FN float stepped(float v, float steps)
{
    return __builtin_truncf(v * steps) * (1.0f / steps);
}

/*
 * 2^x: x = n + r, |r| <= 1/2, Taylor polynomial of 2^r (error below 2^-27), scaled twice so that
 * subnormal results are rounded once. Error below 1 ulp.
 */
LANE_FN float exact_ex2(float x)
{
    float c = x < -151.0f ? -151.0f : x;

    c = c > 129.0f ? 129.0f : c;
    float t = c + 12582912.0f; /* 1.5 * 2^23: the low bits are n */
    int32_t n = (int32_t)(f32_bits(t) - 0x4b400000u);
    float r = c - (t - 12582912.0f);
    float r2 = r * r;
    float a = 0.693147182f + r * 0.240226507f;
    float b = 0.0555041087f + r * 0.00961812911f;
    float d = 0.00133335581f + r * 1.54035304e-4f;
    float q = (a + b * r2) + (d + r2 * 1.52527338e-5f) * (r2 * r2);
    int32_t half = n >> 1;
    float s1 = bits_f32((uint32_t)(half + 127) << 23);
    float s2 = bits_f32((uint32_t)(n - half + 127) << 23);

    return ((1.0f + r * q) * s1) * s2;
}

LANE_FN float ex2_f32(float x)
{
    return coarse(exact_ex2(x), 22);
}

/* log2: in f64, mantissa in [sqrt(1/2), sqrt(2)), atanh series in (m - 1) / (m + 1). */
LANE_FN float exact_lg2(float x)
{
    uint64_t bits = f64_bits((double)x);
    uint64_t top = bits - 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    int64_t e = (int64_t)top >> 52;
    double m = bits_f64(bits - ((uint64_t)e << 52));
    double s = (m - 1.0) / (m + 1.0);
    double s2 = s * s;
    double p = 0.2219527, v;

    p = 0.26230818925253880 + s2 * p;
    p = 0.32059889797532520 + s2 * p;
    p = 0.41219858311113240 + s2 * p;
    p = 0.57707801635558535 + s2 * p;
    p = 0.96179669392597560 + s2 * p;
    p = 2.88539008177792681 + s2 * p;
    v = (double)(int32_t)e + s * p;
    v = x == 0 ? -__builtin_inf() : v;
    v = x < 0 || x != x ? __builtin_nan("") : v;
    return (float)(x > 3.4028234664e38f ? __builtin_inf() : v);
}

/* Absolute error 2^-22 where the result is small, else relative 2^-22. */
LANE_FN float lg2_f32(float x)
{
    const float v = exact_lg2(x);

    return __builtin_fabsf(v) < 1.0f ? stepped(v, 0x1p22f) : coarse(v, 22);
}

/* sin(x + quadrant * pi/2) in f64: reduction by pi/2 in two parts, Taylor polynomials on [-pi/4,
 * pi/4]. */
LANE_FN float exact_sin(double x, uint64_t quadrant)
{
    double t = x * 0.63661977236758134 + 6755399441055744.0; /* 1.5 * 2^52 */
    uint64_t k = f64_bits(t) + quadrant;
    double n = t - 6755399441055744.0;
    double r = (x - n * 1.5707963267341256) - n * 6.0771005065061922e-11;
    double r2 = r * r;
    double s =
        r * (1.0 + r2 * (-0.16666666666666667 +
                         r2 * (8.3333333333333333e-3 +
                               r2 * (-1.9841269841269841e-4 +
                                     r2 * (2.7557319223985891e-6 + r2 * -2.5052108385441719e-8)))));
    double c =
        1.0 + r2 * (-0.5 +
                    r2 * (4.1666666666666667e-2 +
                          r2 * (-1.3888888888888889e-3 +
                                r2 * (2.4801587301587302e-5 + r2 * (-2.7557319223985891e-7 +
                                                                    r2 * 2.0876756987868099e-9)))));
    double v = k & 1 ? c : s;

    return (float)(k & 2 ? -v : v);
}

/* The unit takes turns: x / 2pi rounded to f32, which is what makes large arguments bad. */
LANE_FN float sin_quadrant(float x, uint64_t quadrant)
{
    const float turns = x * 0.159154943f;
    const float part = turns - __builtin_rintf(turns);

    return stepped(exact_sin((double)part * 6.2831853071795865, quadrant), 0x1p22f);
}

LANE_FN float sin_f32(float x)
{
    return sin_quadrant(x, 0);
}

LANE_FN float cos_f32(float x)
{
    return sin_quadrant(x, 1);
}

/* tanh = 1 - 2 / (e^2x + 1) in f64; near 0 its series, where that cancels. */
LANE_FN float exact_tanh(float xf)
{
    double x = (double)(xf > 15.0f ? 15.0f : xf < -15.0f ? -15.0f : xf);
    double y = x * 2.8853900817779268;
    double t = y + 6755399441055744.0;
    double r = (y - (t - 6755399441055744.0)) * 0.69314718055994531;
    double p =
        1.0 + r * (1.0 + r * (0.5 + r * (0.16666666666666667 +
                                         r * (0.041666666666666667 +
                                              r * (8.3333333333333333e-3 +
                                                   r * (1.3888888888888889e-3 +
                                                        r * (1.9841269841269841e-4 +
                                                             r * 2.4801587301587302e-5)))))));
    double e = p * bits_f64((f64_bits(t) + 1023) << 52);
    double far = 1.0 - 2.0 / (e + 1.0);
    double x2 = x * x;
    double near = x * (1.0 + x2 * (-0.33333333333333333 + x2 * 0.13333333333333333));

    return (float)(x2 < 1e-4 ? near : x != x ? x : far);
}

/* Relative error 2^-11; subnormals come out as they are. */
LANE_FN float tanh_f32(float x)
{
    const float v = exact_tanh(x);

    return __builtin_fabsf(v) < 0x1p-126f ? v : coarse(v, 11);
}

/* ---- Directed rounding: mode 1 towards zero, 2 down, 3 up ------------------------------------ */

/* One step of a float's bits up or down on the number line; selections, no branches, so that it
 * vectorises. */
LANE_FN float step_f32(float v, int up)
{
    uint32_t b = f32_bits(v);
    uint32_t moved = (b >> 31) == (uint32_t)up ? b - 1 : b + 1;

    return bits_f32(v == 0 ? (up ? 1u : 0x80000001u) : moved);
}

LANE_FN double step_f64(double v, int up)
{
    uint64_t b = f64_bits(v);
    uint64_t moved = (b >> 63) == (uint64_t)up ? b - 1 : b + 1;

    return bits_f64(v == 0 ? (up ? 1u : 0x8000000000000001u) : moved);
}

/* off: sign of (exact - v), where v is the nearest value. mode is a constant wherever this is used.
 */
LANE_FN float direct_f32(float v, double off, int mode)
{
    const float down = step_f32(v, 0), up = step_f32(v, 1);

    if (mode == 2)
        return off < 0 ? down : v;
    if (mode == 3)
        return off > 0 ? up : v;
    return v > 0 ? (off < 0 ? down : v) : v < 0 ? (off > 0 ? up : v) : v;
}

LANE_FN double direct_f64(double v, double off, int mode)
{
    const double down = step_f64(v, 0), up = step_f64(v, 1);

    if (mode == 2)
        return off < 0 ? down : v;
    if (mode == 3)
        return off > 0 ? up : v;
    return v > 0 ? (off < 0 ? down : v) : v < 0 ? (off > 0 ? up : v) : v;
}

/* v + error, where error is far below v's last bit. */
LANE_FN float dir_f64_to_f32(double v, double error, int mode)
{
    float r = (float)v;
    double off = v - (double)r;

    return direct_f32(r, off != 0 ? off : error, mode);
}

LANE_FN float dir_s64_to_f32(int64_t v, int mode)
{
    float r = (float)v;
    __int128 off = (__int128)v - (__int128)r;

    return direct_f32(r, off < 0 ? -1.0 : off > 0 ? 1.0 : 0.0, mode);
}

LANE_FN float dir_u64_to_f32(uint64_t v, int mode)
{
    float r = (float)v;
    __int128 off = (__int128)v - (__int128)r;

    return direct_f32(r, off < 0 ? -1.0 : off > 0 ? 1.0 : 0.0, mode);
}

LANE_FN double dir_s64_to_f64(int64_t v, int mode)
{
    double r = (double)v;
    __int128 off = (__int128)v - (__int128)r;

    return direct_f64(r, off < 0 ? -1.0 : off > 0 ? 1.0 : 0.0, mode);
}

LANE_FN double dir_u64_to_f64(uint64_t v, int mode)
{
    double r = (double)v;
    __int128 off = (__int128)v - (__int128)r;

    return direct_f64(r, off < 0 ? -1.0 : off > 0 ? 1.0 : 0.0, mode);
}

/* Towards zero, with the last bit set when something was lost: a later rounding is then exact. */
LANE_FN float odd_s64_to_f32(int64_t v)
{
    const float z = dir_s64_to_f32(v, 1);

    return odd_bits(z, (__int128)z != v);
}

LANE_FN float odd_u64_to_f32(uint64_t v)
{
    const float z = dir_u64_to_f32(v, 1);

    return odd_bits(z, (unsigned __int128)z != v);
}

LANE_FN float add_dir_f32(float x, float y, int mode)
{
    double s = (double)x + (double)y;
    float r = dir_f64_to_f32(s, sum_error((double)x, (double)y, s), mode);

    /* Rounding down, a sum of zero is -0 unless both parts are +0. */
    return mode == 2 && s == 0 && ((f32_bits(x) | f32_bits(y)) >> 31) ? -0.0f : r;
}

LANE_FN float mul_dir_f32(float x, float y, int mode)
{
    return dir_f64_to_f32((double)x * (double)y, 0, mode);
}

LANE_FN float fma_dir_f32(float x, float y, float z, int mode)
{
    double p = (double)x * (double)y;
    double s = p + (double)z;
    float r = dir_f64_to_f32(s, sum_error(p, (double)z, s), mode);

    return mode == 2 && s == 0 && ((f64_bits(p) | f64_bits((double)z)) >> 63) ? -0.0f : r;
}

LANE_FN float div_dir_f32(float x, float y, int mode)
{
    float q = x / y;
    double rest = (double)x - (double)q * (double)y;

    return direct_f32(q, y < 0 ? -rest : rest, mode);
}

/* Division by a divisor above 2^126 gives 0, as the reciprocal inside is flushed. */
LANE_FN float div_approx(float x, float y)
{
    const float q = div_dir_f32(x, y, 1);
    const float a = __builtin_fabsf(y);

    return a > 0x1p126f && a < __builtin_inff() ? x * 0.0f : q;
}

LANE_FN float sqrt_dir_f32(float x, int mode)
{
    float q = __builtin_sqrtf(x);

    return direct_f32(q, (double)x - (double)q * (double)q, mode);
}

LANE_FN float rsqrt_approx(float x)
{
    return dir_f64_to_f32(1.0 / __builtin_sqrt((double)x), 0, 1);
}

LANE_FN double add_dir_f64(double x, double y, int mode)
{
    double s = x + y;
    double r = direct_f64(s, sum_error(x, y, s), mode);

    return mode == 2 && s == 0 && ((f64_bits(x) | f64_bits(y)) >> 63) ? -0.0 : r;
}

/* What the remainders below are scaled by, so that they don't underflow. */
LANE_FN double up_scale(double x, double scale)
{
    return __builtin_fabs(x) < 0x1p-900 ? scale : 1.0;
}

LANE_FN double div_dir_f64(double x, double y, int mode)
{
    const double q = x / y, k = up_scale(x, 0x1p600);
    const double rest = __builtin_fma(-(q * k), y, x * k);

    return direct_f64(q, y < 0 ? -rest : rest, mode);
}

LANE_FN double sqrt_dir_f64(double x, int mode)
{
    const double q = __builtin_sqrt(x), k = up_scale(x, 0x1p300);

    return direct_f64(q, __builtin_fma(-(q * k), q * k, x * k * k), mode);
}

LANE_FN double mul_dir_f64(double x, double y, int mode)
{
    double p = x * y;

    return direct_f64(p, __builtin_fma(x, y, -p), mode);
}

#endif
