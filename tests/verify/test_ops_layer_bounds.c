/*
 * Bounds of convolutions, pooling, normalisations, attention, losses and the later activations
 * against float32 kernels as people write them, in several orders; and kernels with fewer bits,
 * which must fall outside.
 */
#include "problem.h"

#include "honest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int within(float got, double want, double bound)
{
    if (isnan(want))
        return isnan(got);
    return got >= (float)(want - bound) && got <= (float)(want + bound);
}

static void all_within(const char *name, const char *fill, const struct problem *p,
                       const float *got)
{
    for (uint64_t i = 0; i < p->outputs[0].n; i++)
        if (!within(got[i], p->outputs[0].value[i], p->outputs[0].bound[i]))
            fail_msg("%s, fill %s: [%lu] is %.9g, expected %.9g +- %.3g", name, fill,
                     (unsigned long)i, got[i], p->outputs[0].value[i], p->outputs[0].bound[i]);
}

static double outside(const struct problem *p, const float *got)
{
    double bad = 0;
    for (uint64_t i = 0; i < p->outputs[0].n; i++)
        bad += !within(got[i], p->outputs[0].value[i], p->outputs[0].bound[i]);
    return bad / (double)p->outputs[0].n;
}

static void evaluated(struct problem *p)
{
    if (problem_evaluate(p))
        fail_msg("%s: %s", p->task.graph, p->error.message);
}

static const char *const fills[] = {"normal", "offset", "large", "small", "ones", "ramp"};
enum { N_FILLS = sizeof fills / sizeof *fills };

/* ---- conv2d: x [1, C, H, H], w [O, C, 3, 3], padding 1 ---- */

enum { C = 5, H = 9, O = 4, T = C * 9 };

typedef float (*rounding)(float);

static float same(float x)
{
    return x;
}

/* TF32: 10 explicit bits. */
static float to_tf32(float x)
{
    uint32_t w;
    memcpy(&w, &x, sizeof w);
    w = (w + 0xfff + (w >> 13 & 1)) & ~0x1fffu;
    memcpy(&x, &w, sizeof x);
    return x;
}

/* The terms of one output element; zeros where the window hangs out. */
static void terms(const float *x, const float *w, int i, rounding narrow, float *a, float *b)
{
    int o = i / H / H, row = i / H % H, col = i % H;
    for (int t = 0; t < T; t++) {
        int r = row + t % 9 / 3 - 1, c = col + t % 3 - 1;
        int inside = r >= 0 && r < H && c >= 0 && c < H;
        a[t] = inside ? narrow(x[(t / 9 * H + r) * H + c]) : 0;
        b[t] = narrow(w[o * T + t]);
    }
}

static float forwards(const float *a, const float *b)
{
    float s = 0;
    for (int t = 0; t < T; t++)
        s += a[t] * b[t];
    return s;
}

static float taps_first(const float *a, const float *b)
{
    float s = 0;
    for (int k = 9; k-- > 0;)
        for (int c = 0; c < C; c++)
            s = fmaf(a[c * 9 + k], b[c * 9 + k], s);
    return s;
}

static float four_lanes(const float *a, const float *b)
{
    float s[4] = {0};
    for (int t = 0; t < T; t++)
        s[t % 4] = fmaf(a[t], b[t], s[t % 4]);
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static float (*const orders[])(const float *, const float *) = {forwards, taps_first, four_lanes};
static const char *const order_names[] = {"forwards", "taps first", "four lanes"};

static void convolve(const float *x, const float *w, int order, rounding narrow, float *y)
{
    float a[T], b[T];
    for (int i = 0; i < O * H * H; i++) {
        terms(x, w, i, narrow, a, b);
        y[i] = orders[order](a, b);
    }
}

static void open_conv(struct problem *p, const float *x, const float *w)
{
    problem_open(p, "y = conv2d(x, w, pad=1)", RUNG_PRECISION_FP32);
    problem_input(p, "x", RUNG_F32, "1,5,9,9", x);
    problem_input(p, "w", RUNG_F32, "4,5,3,3", w);
    problem_output(p, "y", RUNG_F32, "1,4,9,9");
    evaluated(p);
}

static void convolutions_are_within(void **state)
{
    (void)state;
    for (int f = 0; f < N_FILLS; f++) {
        float *x = test_data(fills[f], 1, 1, C * H * H), *w = test_data(fills[f], 2, O, T);
        float y[O * H * H];
        struct problem p;
        open_conv(&p, x, w);
        for (int order = 0; order < 3; order++) {
            convolve(x, w, order, same, y);
            all_within(order_names[order], fills[f], &p, y);
        }
        problem_close(&p);
        free(x);
        free(w);
    }
}

static void narrow_convolutions_are_outside(void **state)
{
    float *x = test_normal(1, C * H * H), *w = test_normal(2, O * T), y[O * H * H];
    struct problem p;
    (void)state;
    open_conv(&p, x, w);
    convolve(x, w, 0, to_tf32, y);
    assert_true(outside(&p, y) > 0.8);
    convolve(x, w, 1, to_f16, y);
    assert_true(outside(&p, y) > 0.8);
    convolve(x, w, 2, to_bf16, y);
    assert_true(outside(&p, y) > 0.9);
    problem_close(&p);
    free(x);
    free(w);
}

/* The accumulator starts at the bias, which outweighs all that follows; or the bias comes last. */
static void a_bias_may_be_the_first_term(void **state)
{
    static const char *const graphs[] = {
        "y = conv2d(x, w, b, pad=1)", "y = relu(conv2d(x, w, pad=1) + reshape(b, [1, 4, 1, 1]))"};
    float *x = test_data("small", 1, 1, C * H * H), *w = test_normal(2, O * T), y[2][O * H * H];
    float bias[O] = {1.7f, -3.1f, 0.3f, 11.0f}, a[T], b[T];
    (void)state;
    for (int i = 0; i < O * H * H; i++) {
        float first = bias[i / H / H], last;
        terms(x, w, i, same, a, b);
        for (int t = 0; t < T; t++)
            first = fmaf(a[t], b[t], first);
        last = forwards(a, b) + bias[i / H / H];
        y[0][i] = first;
        y[1][i] = last;
    }
    for (int g = 0; g < 2; g++) {
        struct problem p;
        problem_open(&p, graphs[g], RUNG_PRECISION_FP32);
        problem_input(&p, "x", RUNG_F32, "1,5,9,9", x);
        problem_input(&p, "w", RUNG_F32, "4,5,3,3", w);
        problem_input(&p, "b", RUNG_F32, "4", bias);
        problem_output(&p, "y", RUNG_F32, "1,4,9,9");
        evaluated(&p);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; g && i < O * H * H; i++)
                y[k][i] = fmaxf(y[k][i], 0);
            all_within(k ? "bias last" : "bias first", "small", &p, y[k]);
        }
        problem_close(&p);
    }
    free(x);
    free(w);
}

/* A task that says tf32 takes what fp32 refuses. */
static void tf32_tasks_take_tf32(void **state)
{
    float *x = test_normal(1, C * H * H), *w = test_normal(2, O * T), y[O * H * H];
    struct problem p;
    (void)state;
    open_conv(&p, x, w);
    p.task.precision = RUNG_PRECISION_TF32;
    evaluated(&p);
    convolve(x, w, 0, to_tf32, y);
    all_within("tf32", "normal", &p, y);
    problem_close(&p);
    free(x);
    free(w);
}

/* Transposed convolution as threads of the input scatter it: the order of atomics is anything. */
static void scattered_transposed_convolutions_are_within(void **state)
{
    enum { N = 7, K = 4, OUT = (N - 1) * 2 + K };
    float *x = test_normal(3, 3 * N), *w = test_normal(4, 3 * K), y[OUT];
    struct problem p;
    (void)state;
    problem_open(&p, "y = conv_transpose1d(x, w, stride=2)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "1,3,7", x);
    problem_input(&p, "w", RUNG_F32, "3,1,4", w);
    problem_output(&p, "y", RUNG_F32, "1,1,16");
    evaluated(&p);
    for (int seed = 0; seed < 50; seed++) {
        memset(y, 0, sizeof y);
        for (int i = 0; i < 3 * N * K; i++) {
            int j = (i * 37 + seed * 11) % (3 * N * K), in = j / K % N, k = j % K;
            y[2 * in + k] = fmaf(x[j / K], w[j / K / N * K + k], y[2 * in + k]);
        }
        all_within("scatter", "normal", &p, y);
    }
    problem_close(&p);
    free(x);
    free(w);
}

/* ---- rows of 64: pooling, rmsnorm, losses, attention ---- */

enum { ROWS = 6, COLS = 64 };

static void pool_rows(const float *x, int order, float *y)
{
    for (int i = 0; i < ROWS * COLS / 4; i++) {
        const float *w = x + 4 * i;
        y[i] = order == 0   ? (w[0] + w[1] + w[2] + w[3]) / 4
               : order == 1 ? ((w[3] + w[1]) + (w[0] + w[2])) * 0.25f
                            : w[0] * 0.25f + w[1] * 0.25f + (w[2] * 0.25f + w[3] * 0.25f);
    }
}

static void rms_rows(const float *x, int order, float *y)
{
    for (int r = 0; r < ROWS; r++) {
        float s = 0;
        for (int i = 0; i < COLS; i++) {
            float v = x[r * COLS + (order ? COLS - 1 - i : i)];
            s = order ? fmaf(v, v, s) : s + v * v;
        }
        float scale = order == 2 ? 1 / sqrtf(s / COLS + 1e-6f) : 0, root = sqrtf(s / COLS + 1e-6f);
        for (int i = 0; i < COLS; i++)
            y[r * COLS + i] = order == 2 ? x[r * COLS + i] * scale : x[r * COLS + i] / root;
    }
}

/* Squared distance to a constant, over all elements. */
static void mse_rows(const float *x, int order, float *y)
{
    float s[8] = {0};
    for (int i = 0; i < ROWS * COLS; i++) {
        float d = x[i] - 0.25f;
        int lane = order == 0 ? 0 : i % 8;
        s[lane] = order == 2 ? fmaf(d, d, s[lane]) : s[lane] + d * d;
    }
    for (int lane = 1; lane < 8; lane++)
        s[0] += s[lane];
    y[0] = s[0] / (ROWS * COLS);
}

static void products_of_rows(const float *x, int order, float *y)
{
    for (int r = 0; r < ROWS; r++) {
        float run = 1, carry = 1;
        for (int i = 0; i < COLS; i++) {
            if (order && i % 8 == 0) {
                carry *= run;
                run = 1;
            }
            run *= x[r * COLS + i];
            y[r * COLS + i] = order ? carry * run : run;
        }
    }
}

static void rows_are_within(void **state)
{
    static const struct {
        const char *graph, *out;
        void (*run)(const float *x, int order, float *y);
    } cases[] = {{"y = reshape(avgpool1d(reshape(x, (1, 6, 64)), 4), (6, 16))", "6,16", pool_rows},
                 {"y = rmsnorm(x)", "6,64", rms_rows},
                 {"y = mse_loss(x, x * 0 + 0.25)", "1", mse_rows},
                 {"y = cumprod(x, axis=1)", "6,64", products_of_rows}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int f = 0; f < N_FILLS; f++) {
            float *x = test_data(fills[f], 8, ROWS, COLS), y[ROWS * COLS];
            struct problem p;
            problem_open(&p, cases[c].graph, RUNG_PRECISION_FP32);
            problem_input(&p, "x", RUNG_F32, "6,64", x);
            problem_output(&p, "y", RUNG_F32, cases[c].out);
            evaluated(&p);
            for (int order = 0; order < 3; order++) {
                cases[c].run(x, order, y);
                all_within(cases[c].graph, fills[f], &p, y);
            }
            problem_close(&p);
            free(x);
        }
}

/* One pass over keys with rescaling, in blocks of `block`, division last. */
static void flash(const float *x, int block, float *y)
{
    for (int i = 0; i < ROWS * 8; i++) {
        float m = -INFINITY, sum = 0, acc[8] = {0};
        for (int j0 = 0; j0 < ROWS * 8; j0 += block) {
            float s[ROWS * 8], most = m;
            for (int j = j0; j < j0 + block && j < ROWS * 8; j++) {
                s[j] = 0;
                for (int d = 0; d < 8; d++)
                    s[j] = fmaf(x[i * 8 + d] * 0.35355339059327373f, x[j * 8 + d], s[j]);
                most = fmaxf(most, s[j]);
            }
            float again = exp2f((m - most) * 1.4426950408889634f);
            sum *= again;
            for (int d = 0; d < 8; d++)
                acc[d] *= again;
            for (int j = j0; j < j0 + block && j < ROWS * 8; j++) {
                float e = exp2f((s[j] - most) * 1.4426950408889634f);
                sum += e;
                for (int d = 0; d < 8; d++)
                    acc[d] = fmaf(e, x[j * 8 + d], acc[d]);
            }
            m = most;
        }
        for (int d = 0; d < 8; d++)
            y[i * 8 + d] = acc[d] / sum;
    }
}

static void attention_in_one_pass_is_within(void **state)
{
    static const int blocks[] = {1, 2, 7, 16, 48};
    (void)state;
    for (int f = 0; f < N_FILLS; f++) {
        float *x = test_data(fills[f], 8, ROWS, COLS), y[ROWS * COLS];
        struct problem p;
        if (!strcmp(fills[f], "large") || !strcmp(fills[f], "offset")) {
            free(x); /* scores of 1e8 have no digits left for a softmax */
            continue;
        }
        problem_open(&p, "y = attention(x, x, x)", RUNG_PRECISION_FP32);
        problem_input(&p, "x", RUNG_F32, "48,8", x);
        problem_output(&p, "y", RUNG_F32, "48,8");
        evaluated(&p);
        for (int b = 0; b < 5; b++) {
            flash(x, blocks[b], y);
            all_within("flash", fills[f], &p, y);
        }
        for (int i = 0; i < ROWS * COLS && f == 0; i++)
            x[i] = to_f16(x[i]);
        if (f == 0) {
            flash(x, 16, y);
            assert_true(outside(&p, y) > 0.5);
        }
        problem_close(&p);
        free(x);
    }
}

/* ---- points ---- */

static float rsqrt_exact(float x)
{
    return 1 / sqrtf(x);
}
static float rsqrt_log(float x)
{
    return exp2f(-0.5f * log2f(x));
}
static float log2_by_log(float x)
{
    return logf(x) * 1.4426950408889634f;
}
static float elu_expm1(float x)
{
    return x > 0 ? x : expm1f(x);
}
static float elu_exp(float x)
{
    return x > 0 ? x : exp2f(x * 1.4426950408889634f) - 1;
}
static float selu_exp(float x)
{
    return x > 0 ? 1.0507009873554805f * x
                 : 1.0507009873554805f * (1.6732632423543772f * (expf(x) - 1));
}
static float selu_folded(float x)
{
    return x > 0 ? 1.0507009873554805f * x : 1.7580993408473766f * expm1f(x);
}
static float hardsigmoid_fma(float x)
{
    return fminf(fmaxf(fmaf(x, 1.0f / 6, 0.5f), 0), 1);
}
static float hardsigmoid_relu6(float x)
{
    return fminf(fmaxf(x + 3, 0), 6) / 6;
}
static float softsign_divide(float x)
{
    return x / (1 + fabsf(x));
}
static float softsign_reciprocal(float x)
{
    return x * (1 / (1 + fabsf(x)));
}
static float logsigmoid_stable(float x)
{
    return fminf(x, 0) - log1pf(expf(-fabsf(x)));
}
static float logsigmoid_plain(float x)
{
    return -logf(1 + expf(-x));
}

static void later_activations_are_within(void **state)
{
    static const struct {
        const char *graph;
        point_kernel run;
        int positive, bounded; /* bounded: |x| < 80, for forms that overflow */
    } cases[] = {{"y = rsqrt(x)", rsqrt_exact, 1, 0},
                 {"y = 1 / sqrt(x)", rsqrt_exact, 1, 0},
                 {"y = rsqrt(x)", rsqrt_log, 1, 2},
                 {"y = log2(x)", log2f, 1, 0},
                 {"y = log2(x)", log2_by_log, 1, 0},
                 {"y = elu(x)", elu_expm1, 0, 0},
                 {"y = elu(x)", elu_exp, 0, 0},
                 {"y = selu(x)", selu_exp, 0, 0},
                 {"y = selu(x)", selu_folded, 0, 0},
                 {"y = hardsigmoid(x)", hardsigmoid_fma, 0, 0},
                 {"y = hardsigmoid(x)", hardsigmoid_relu6, 0, 0},
                 {"y = softsign(x)", softsign_divide, 0, 0},
                 {"y = softsign(x)", softsign_reciprocal, 0, 0},
                 {"y = logsigmoid(x)", logsigmoid_stable, 0, 0},
                 {"y = logsigmoid(x)", logsigmoid_plain, 0, 1}};
    enum { N = 20000 };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int f = 0; f < N_FILLS; f++) {
            float *x = test_data(fills[f], 5, 1, N), *y = malloc(N * sizeof *y);
            for (int i = 0; i < N; i++) {
                x[i] = cases[c].positive ? fabsf(x[i]) : x[i];
                x[i] = cases[c].bounded == 1 ? fminf(fmaxf(x[i], -80), 80) : x[i];
                x[i] = cases[c].bounded == 2 ? fminf(fmaxf(x[i], 0.25f), 4) : x[i];
                y[i] = cases[c].run(x[i]);
            }
            struct problem p;
            problem_matrix(&p, cases[c].graph, 1, N, x, "rows,cols");
            all_within(cases[c].graph, fills[f], &p, y);
            for (int i = 0; i < N; i++)
                y[i] = to_f16(y[i]);
            if (f == 0 && outside(&p, y) < 0.5 && !strstr(cases[c].graph, "hard"))
                fail_msg("%s: only %g outside in half precision", cases[c].graph, outside(&p, y));
            problem_close(&p);
            free(x);
            free(y);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_within),
        cmocka_unit_test(narrow_convolutions_are_outside),
        cmocka_unit_test(a_bias_may_be_the_first_term),
        cmocka_unit_test(tf32_tasks_take_tf32),
        cmocka_unit_test(scattered_transposed_convolutions_are_within),
        cmocka_unit_test(rows_are_within),
        cmocka_unit_test(attention_in_one_pass_is_within),
        cmocka_unit_test(later_activations_are_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
