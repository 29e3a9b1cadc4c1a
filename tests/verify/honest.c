#include "honest.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG2E 1.4426950408889634f
enum { THREADS = 256 };

/* ---- sums ---- */

typedef float (*term)(float x, float shift);

static float plain(float x, float shift)
{
    (void)shift;
    return x;
}

static float square(float x, float shift)
{
    return (x - shift) * (x - shift);
}

static float sequential(const float *x, int64_t n, term f, float shift)
{
    float s = 0;
    for (int64_t i = 0; i < n; i++)
        s += f(x[i], shift);
    return s;
}

static float pairwise(const float *x, int64_t n, term f, float shift)
{
    if (n == 1)
        return f(x[0], shift);
    return pairwise(x, n / 2, f, shift) + pairwise(x + n / 2, n - n / 2, f, shift);
}

static float tree(const float *x, int64_t n, term f, float shift)
{
    float part[THREADS] = {0};
    for (int64_t i = 0; i < n; i++)
        part[i % THREADS] += f(x[i], shift);
    for (int step = THREADS / 2; step; step /= 2)
        for (int t = 0; t < step; t++)
            part[t] += part[t + step];
    return part[0];
}

static float backwards_fused(const float *x, int64_t n, term f, float shift)
{
    float s = 0;
    for (int64_t i = n; i-- > 0;)
        s = f == square ? fmaf(x[i] - shift, x[i] - shift, s) : s + f(x[i], shift);
    return s;
}

typedef float (*adder)(const float *, int64_t, term, float);

#define SUM_KERNELS(add)                                                                           \
    static void sum_##add(const float *x, int64_t n, float *y)                                     \
    {                                                                                              \
        *y = add(x, n, plain, 0);                                                                  \
    }                                                                                              \
    static void mean_##add(const float *x, int64_t n, float *y)                                    \
    {                                                                                              \
        *y = add(x, n, plain, 0) * (1.0f / (float)n);                                              \
    }                                                                                              \
    static void norm_##add(const float *x, int64_t n, float *y)                                    \
    {                                                                                              \
        *y = sqrtf(add(x, n, square, 0));                                                          \
    }                                                                                              \
    static void var_##add(const float *x, int64_t n, float *y)                                     \
    {                                                                                              \
        float mean = add(x, n, plain, 0) / (float)n;                                               \
        *y = add(x, n, square, mean) / (float)(n - 1);                                             \
    }                                                                                              \
    static void layernorm_##add(const float *x, int64_t n, float *y)                               \
    {                                                                                              \
        float mean = add(x, n, plain, 0) / (float)n;                                               \
        float r = 1 / sqrtf(add(x, n, square, mean) / (float)n + 1e-5f);                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (x[i] - mean) * r;                                                              \
    }
SUM_KERNELS(sequential)
SUM_KERNELS(pairwise)
SUM_KERNELS(tree)
SUM_KERNELS(backwards_fused)

/* ---- moments ---- */

struct moments {
    float n, mean, m2;
};

static struct moments welford(const float *x, int64_t n, int64_t first, int64_t step)
{
    struct moments m = {0, 0, 0};
    for (int64_t i = first; i < n; i += step) {
        m.n += 1;
        float d = x[i] - m.mean;
        m.mean += d / m.n;
        m.m2 += d * (x[i] - m.mean);
    }
    return m;
}

static struct moments merge(struct moments a, struct moments b)
{
    float n = a.n + b.n, d = b.mean - a.mean;
    if (b.n == 0)
        return a;
    if (a.n == 0)
        return b;
    return (struct moments){n, a.mean + d * (b.n / n), a.m2 + b.m2 + d * d * (a.n * b.n / n)};
}

static struct moments welford_tree(const float *x, int64_t n)
{
    struct moments part[THREADS];
    for (int t = 0; t < THREADS; t++)
        part[t] = welford(x, n, t, THREADS);
    for (int step = THREADS / 2; step; step /= 2)
        for (int t = 0; t < step; t++)
            part[t] = merge(part[t], part[t + step]);
    return part[0];
}

static void var_welford(const float *x, int64_t n, float *y)
{
    *y = welford(x, n, 0, 1).m2 / (float)(n - 1);
}

static void var_welford_tree(const float *x, int64_t n, float *y)
{
    *y = welford_tree(x, n).m2 / (float)(n - 1);
}

static void mean_welford(const float *x, int64_t n, float *y)
{
    *y = welford(x, n, 0, 1).mean;
}

static void mean_welford_tree(const float *x, int64_t n, float *y)
{
    *y = welford_tree(x, n).mean;
}

static void layernorm_welford(const float *x, int64_t n, float *y)
{
    struct moments m = welford_tree(x, n);
    float r = 1 / sqrtf(m.m2 / (float)n + 1e-5f);
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - m.mean) * r;
}

void unstable_var(const float *x, int64_t n, float *y)
{
    float mean = sequential(x, n, plain, 0) / (float)n;
    *y = (sequential(x, n, square, 0) / (float)n - mean * mean) * ((float)n / (float)(n - 1));
}

void unstable_var_tree(const float *x, int64_t n, float *y)
{
    float mean = tree(x, n, plain, 0) / (float)n;
    *y = (tree(x, n, square, 0) / (float)n - mean * mean) * ((float)n / (float)(n - 1));
}

/* ---- products and running sums ---- */

static void prod_sequential(const float *x, int64_t n, float *y)
{
    *y = 1;
    for (int64_t i = 0; i < n; i++)
        *y *= x[i];
}

static void prod_tree(const float *x, int64_t n, float *y)
{
    float part[THREADS];
    for (int t = 0; t < THREADS; t++)
        part[t] = 1;
    for (int64_t i = 0; i < n; i++)
        part[i % THREADS] *= x[i];
    for (int step = THREADS / 2; step; step /= 2)
        for (int t = 0; t < step; t++)
            part[t] *= part[t + step];
    *y = part[0];
}

static void cumsum_sequential(const float *x, int64_t n, float *y)
{
    float s = 0;
    for (int64_t i = 0; i < n; i++)
        y[i] = s += x[i];
}

/* Chunks of 32 scanned on their own, with carried sums of chunks. */
static void cumsum_chunks(const float *x, int64_t n, float *y)
{
    float carry = 0;
    for (int64_t c = 0; c < n; c += 32) {
        int64_t end = c + 32 < n ? c + 32 : n;
        cumsum_sequential(x + c, end - c, y + c);
        float total = y[end - 1];
        for (int64_t i = c; i < end; i++)
            y[i] += carry;
        carry += total;
    }
}

/* ---- softmax ---- */

static float largest(const float *x, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = fmaxf(m, x[i]);
    return m;
}

static void softmax_plain(const float *x, int64_t n, float *y)
{
    float m = largest(x, n), s = 0;
    for (int64_t i = 0; i < n; i++)
        s += y[i] = expf(x[i] - m);
    for (int64_t i = 0; i < n; i++)
        y[i] /= s;
}

/* exp2(x log2e - m log2e), contracted, and a reciprocal. */
static void softmax_exp2(const float *x, int64_t n, float *y)
{
    float m = largest(x, n) * LOG2E, s = 0;
    for (int64_t i = 0; i < n; i++)
        s += exp2f(fmaf(x[i], LOG2E, -m));
    float r = 1 / s;
    for (int64_t i = 0; i < n; i++)
        y[i] = exp2f(x[i] * LOG2E - m) * r;
}

/* One pass; the sum is rescaled at each new maximum. */
static void online(const float *x, int64_t n, int64_t first, int64_t step, float *m, float *s)
{
    *m = -INFINITY;
    *s = 0;
    for (int64_t i = first; i < n; i += step) {
        float larger = fmaxf(*m, x[i]);
        *s = *s * exp2f((*m - larger) * LOG2E) + exp2f((x[i] - larger) * LOG2E);
        *m = larger;
    }
}

static void softmax_online(const float *x, int64_t n, float *y)
{
    float m, s;
    online(x, n, 0, 1, &m, &s);
    for (int64_t i = 0; i < n; i++)
        y[i] = exp2f((x[i] - m) * LOG2E) / s;
}

static void online_tree(const float *x, int64_t n, float *max, float *sum)
{
    float m[THREADS], s[THREADS];
    for (int t = 0; t < THREADS; t++)
        online(x, n, t, THREADS, &m[t], &s[t]);
    for (int step = THREADS / 2; step; step /= 2)
        for (int t = 0; t < step; t++) {
            float larger = fmaxf(m[t], m[t + step]);
            float a = s[t] > 0 ? s[t] * exp2f(m[t] * LOG2E - larger * LOG2E) : 0;
            float b =
                s[t + step] > 0 ? s[t + step] * exp2f(m[t + step] * LOG2E - larger * LOG2E) : 0;
            m[t] = larger;
            s[t] = a + b;
        }
    *max = m[0];
    *sum = s[0];
}

static void softmax_online_tree(const float *x, int64_t n, float *y)
{
    float m, s;
    online_tree(x, n, &m, &s);
    for (int64_t i = 0; i < n; i++)
        y[i] = expf(x[i] - m) * (1 / s);
}

/* exp(x - (m + log s)). */
static void softmax_by_lse(const float *x, int64_t n, float *y)
{
    float m, s;
    online_tree(x, n, &m, &s);
    float lse = m + logf(s);
    for (int64_t i = 0; i < n; i++)
        y[i] = expf(x[i] - lse);
}

static void log_softmax_plain(const float *x, int64_t n, float *y)
{
    float m = largest(x, n), s = 0;
    for (int64_t i = 0; i < n; i++)
        s += expf(x[i] - m);
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - m) - logf(s);
}

static void log_softmax_by_lse(const float *x, int64_t n, float *y)
{
    float m, s;
    online_tree(x, n, &m, &s);
    float lse = m + log2f(s) * 0.6931471805599453f;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - lse;
}

static void logsumexp_plain(const float *x, int64_t n, float *y)
{
    float m = largest(x, n), s = 0;
    for (int64_t i = 0; i < n; i++)
        s += expf(x[i] - m);
    *y = m + logf(s);
}

static void logsumexp_online(const float *x, int64_t n, float *y)
{
    float m, s;
    online_tree(x, n, &m, &s);
    *y = m + log2f(s) / LOG2E;
}

/* ---- points ---- */

static float fast_exp(float x)
{
    return exp2f(x * LOG2E);
}

static float gelu_erf(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
}

static float gelu_erf_half(float x)
{
    return x * (0.5f + 0.5f * erff(x / 1.41421356237309505f));
}

static float gelu_tanhf(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

static float tanh_by_exp(float x)
{
    float t = fast_exp(-2 * fabsf(x));
    return copysignf((1 - t) / (1 + t), x);
}

static float tanh_by_quotient(float x)
{
    return 1 - 2 / (fast_exp(2 * x) + 1);
}

static float gelu_tanh_by_exp(float x)
{
    float z = 0.7978845608028654f * x * (1 + 0.044715f * x * x);
    return 0.5f * x * (1 + tanh_by_exp(z));
}

static float gelu_tanh_as_sigmoid(float x)
{
    return x / (1 + fast_exp(-2 * 0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

static float sigmoid_plain(float x)
{
    return 1 / (1 + expf(-x));
}

static float sigmoid_two_sided(float x)
{
    float e = fast_exp(-fabsf(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static float silu_quotient(float x)
{
    return x / (1 + fast_exp(-x));
}

static float silu_product(float x)
{
    return x * (1 / (1 + expf(-x)));
}

static float softplus_log1p(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

static float softplus_stable(float x)
{
    return fmaxf(x, 0) + logf(1 + expf(-fabsf(x)));
}

static float mish_tanh(float x)
{
    return x * tanhf(softplus_log1p(x));
}

static float mish_rational(float x)
{
    float e = expf(fminf(x, 20)), n = e * (e + 2);
    return x * (n / (n + 2));
}

static float hardswish_divide(float x)
{
    return x * fminf(fmaxf(x + 3, 0), 6) / 6;
}

static float hardswish_multiply(float x)
{
    return x * (fminf(fmaxf(x + 3, 0), 6) * (1.0f / 6));
}

static float log_base2(float x)
{
    return log2f(x) * 0.6931471805599453f;
}

static float sqrt_by_rsqrt(float x)
{
    return x == 0 ? 0 : x * (1 / sqrtf(x));
}

static float cube(float x)
{
    return x * x * x;
}

static float cube_by_pow(float x)
{
    return powf(x, 3);
}

static float inverse(float x)
{
    return 1 / x;
}

/* ---- lists ---- */

#define ROW(f)                                                                                     \
    {                                                                                              \
#f, f                                                                                      \
    }
#define SUMS(f) ROW(f##_sequential), ROW(f##_pairwise), ROW(f##_tree), ROW(f##_backwards_fused)
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

const struct named_row honest_softmax[] = {ROW(softmax_plain),  ROW(softmax_exp2),
                                           ROW(softmax_online), ROW(softmax_online_tree),
                                           ROW(softmax_by_lse), END};
const struct named_row honest_log_softmax[] = {ROW(log_softmax_plain), ROW(log_softmax_by_lse),
                                               END};
const struct named_row honest_logsumexp[] = {ROW(logsumexp_plain), ROW(logsumexp_online), END};
const struct named_row honest_sum[] = {SUMS(sum), END};
const struct named_row honest_mean[] = {SUMS(mean), ROW(mean_welford), ROW(mean_welford_tree), END};
const struct named_row honest_var[] = {SUMS(var), ROW(var_welford), ROW(var_welford_tree), END};
const struct named_row honest_norm[] = {SUMS(norm), END};
const struct named_row honest_cumsum[] = {ROW(cumsum_sequential), ROW(cumsum_chunks), END};
const struct named_row honest_layernorm[] = {SUMS(layernorm), ROW(layernorm_welford), END};
const struct named_row honest_prod[] = {ROW(prod_sequential), ROW(prod_tree), END};

const struct named_point honest_gelu[] = {ROW(gelu_erf), ROW(gelu_erf_half), END};
const struct named_point honest_gelu_tanh[] = {ROW(gelu_tanhf), ROW(gelu_tanh_by_exp),
                                               ROW(gelu_tanh_as_sigmoid), END};
const struct named_point honest_silu[] = {ROW(silu_quotient), ROW(silu_product), END};
const struct named_point honest_sigmoid[] = {ROW(sigmoid_plain), ROW(sigmoid_two_sided), END};
const struct named_point honest_softplus[] = {ROW(softplus_log1p), ROW(softplus_stable), END};
const struct named_point honest_mish[] = {ROW(mish_tanh), ROW(mish_rational), END};
const struct named_point honest_tanh[] = {ROW(tanhf), ROW(tanh_by_exp), ROW(tanh_by_quotient), END};
const struct named_point honest_hardswish[] = {ROW(hardswish_divide), ROW(hardswish_multiply), END};
const struct named_point honest_log[] = {ROW(logf), ROW(log_base2), END};
const struct named_point honest_sqrt[] = {ROW(sqrtf), ROW(sqrt_by_rsqrt), END};
const struct named_point honest_exp[] = {ROW(expf), ROW(fast_exp), END};
const struct named_point honest_erf[] = {ROW(erff), END};
const struct named_point honest_cube[] = {ROW(cube), ROW(cube_by_pow), END};
const struct named_point honest_inverse[] = {ROW(inverse), END};

/* ---- narrow types ---- */

static float round_bits(float x, int drop)
{
    uint32_t w;
    memcpy(&w, &x, sizeof w);
    if ((w & 0x7f800000u) == 0x7f800000u)
        return x;
    w += (1u << (drop - 1)) - 1 + (w >> drop & 1);
    w &= ~((1u << drop) - 1);
    memcpy(&x, &w, sizeof x);
    return x;
}

float to_bf16(float x)
{
    return round_bits(x, 16);
}

float to_f16(float x)
{
    if (fabsf(x) >= 65520)
        return copysignf(INFINITY, x);
    if (fabsf(x) < 0x1p-14f)
        return nearbyintf(x * 0x1p24f) * 0x1p-24f;
    return round_bits(x, 13);
}
