/* baseline "cudnn" over a library that computes on the CPU: every layer is the right one. */
#include "bench/baselines.h"
#include "bench/fake_cudnn.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096, MOST = 6 };

static struct bench b;
static struct fake_cudnn_seen *seen;
static float *data[MOST];

static int setup(void **state)
{
    (void)state;
    void *fake = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fake);
    seen = dlsym(fake, "fake_cudnn_seen");
    assert_non_null(seen);
    memset(seen, 0, sizeof *seen);
    bench_open(&b, PLUGIN_DIR);
    bench_baseline(&b, "cudnn", "{\"library\": \"" FAKE_LIBRARY "\"}", CONFIG_DIR);
    for (int i = 0; i < MOST; i++) {
        data[i] = calloc(ROOM, sizeof(float));
        for (int j = 0; j < ROOM; j++)
            data[i][j] = (float)((j * 7 + i * 5 + 3) % 23) / 8 - 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bench_close(&b);
    for (int i = 0; i < MOST; i++)
        free(data[i]);
    assert_int_equal(seen->live, 0);
    assert_int_equal(seen->handles, 0);
    return 0;
}

/* tensors: "x:f32:2, 3, 4" and so on; the last is the output. */
static void task_of(const char *graph, const char *const *tensors)
{
    char text[4096];
    int at = snprintf(text, sizeof text,
                      "name = \"t\"; summary = \"t\"; dims = { n = 2; };\ntensors = (\n");
    for (int i = 0; tensors[i]; i++) {
        char name[16], dtype[16], shape[64];
        assert_int_equal(sscanf(tensors[i], "%15[^:]:%15[^:]:%63[^\n]", name, dtype, shape), 3);
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{ name = \"%s\"; role = \"%s\"; dtype = \"%s\"; shape = \"%s\"; }\n",
                       i ? "," : "", name, tensors[i + 1] ? "input" : "output", dtype, shape);
    }
    snprintf(text + at, sizeof text - (size_t)at,
             ");\nreference = { plugin = \"ops\"; graph = \"%s\"; };\n"
             "bench = { shapes = ( { n = 2; } ); };\n",
             graph);
    bench_task_text(&b, text);
}

#define TASK(graph, ...) task_of(graph, (const char *const[]){__VA_ARGS__, NULL})

static void prepared(const char *label, const char *math)
{
    if (bench_prepare(&b))
        fail_msg("%s", b.error.message);
    assert_string_equal(b.ready.label, label);
    assert_string_equal(b.ready.math, math);
}

/* The output of the prepared case. */
static const float *run(void)
{
    uint64_t addresses[MOST];
    for (int i = 0; i < MOST; i++)
        addresses[i] = (uint64_t)(uintptr_t)data[i];
    void *scratch = aligned_alloc(256, (b.ready.scratch_bytes + 511) / 256 * 256);
    bench_call(&b, 0);
    if (bench_ops(&b)->enqueue(b.baseline->self, &b.call, &b.ready, addresses,
                               (uint64_t)(uintptr_t)scratch))
        fail_msg("%s", b.error.message);
    free(scratch);
    return data[b.task->n_tensors - 1];
}

static void near(float got, double want)
{
    if (!(fabs((double)got - want) < 1e-4))
        fail_msg("%g instead of %g", (double)got, want);
}

/* conv of x [2, 4, 9, 8] with w [6, 4/g, 3, 2], stride (2, 1), pad (1, 0). */
static double conv_at(int n, int k, int p, int q, int groups)
{
    double sum = 0;
    int each = 4 / groups;
    for (int c = 0; c < each; c++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 2; s++) {
                int h = p * 2 - 1 + r, w = q + s, channel = k / (6 / groups) * each + c;
                if (h < 0 || h >= 9 || w >= 8)
                    continue;
                sum += (double)data[0][((n * 4 + channel) * 9 + h) * 8 + w] *
                       (double)data[1][((k * each + c) * 3 + r) * 2 + s];
            }
    return sum;
}

static void check_conv(int groups, int bias, int relu)
{
    const float *y = run();
    for (int i = 0; i < 2 * 6 * 5 * 7; i++) {
        int q = i % 7, p = i / 7 % 5, k = i / 35 % 6, n = i / 210;
        double want = conv_at(n, k, p, q, groups) + (bias ? (double)data[2][k] : 0);
        near(y[i], relu && want < 0 ? 0 : want);
    }
}

static void convolutions(void **state)
{
    (void)state;
    TASK("y = conv2d(x, w, stride=(2, 1), pad=(1, 0))", "x:f32:2, 4, 9, 8", "w:f32:6, 4, 3, 2",
         "y:f32:2, 6, 5, 7");
    prepared("cuDNN convolution, best of 2", "fp32");
    check_conv(1, 0, 0);
    assert_int_equal(seen->engine, 2); /* not the one on tensor cores */
    TASK("y = conv2d(x, w, stride=[2, 1], padding=[1, 0], groups=2)", "x:f32:2, 4, 9, 8",
         "w:f32:6, 2, 3, 2", "y:f32:2, 6, 5, 7");
    prepared("cuDNN convolution, best of 2", "fp32");
    check_conv(2, 0, 0);
}

static void tails_are_fused_or_separate(void **state)
{
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        seen->fusion_fails = separate;
        TASK("y = conv2d(x, w, b, (2, 1), (1, 0))", "x:f32:2, 4, 9, 8", "w:f32:6, 4, 3, 2",
             "b:f32:6", "y:f32:2, 6, 5, 7");
        if (bench_prepare(&b))
            fail_msg("%s", b.error.message);
        check_conv(1, 1, 0);
        support_contains(b.ready.label, "convolution + bias");
        if (separate)
            support_contains(b.ready.label, "separate steps");
    }
    seen->fusion_fails = 0;
    TASK("h = conv2d(x, w, b, (2, 1), (1, 0)); y = relu(h)", "x:f32:2, 4, 9, 8", "w:f32:6, 4, 3, 2",
         "b:f32:6", "y:f32:2, 6, 5, 7");
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    support_contains(b.ready.label, "convolution + bias + relu");
    check_conv(1, 1, 1);
}

static void a_pool_follows(void **state)
{
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        seen->fusion_fails = separate;
        TASK("y = maxpool2d(relu(conv2d(x, w, b, stride=(2, 1), pad=(1, 0))), kernel=3, stride=2)",
             "x:f32:2, 4, 9, 8", "w:f32:6, 4, 3, 2", "b:f32:6", "y:f32:2, 6, 2, 3");
        if (bench_prepare(&b))
            fail_msg("%s", b.error.message);
        support_contains(b.ready.label, "convolution + bias + relu + pool");
        const float *y = run();
        for (int i = 0; i < 2 * 6 * 2 * 3; i++) {
            int q = i % 3, p = i / 3 % 2, k = i / 6 % 6, n = i / 36;
            double most = 0; /* relu */
            for (int j = 0; j < 9; j++)
                most =
                    fmax(most, conv_at(n, k, 2 * p + j / 3, 2 * q + j % 3, 1) + (double)data[2][k]);
            near(y[i], most);
        }
    }
    seen->fusion_fails = 0;
    TASK("y = avgpool2d(x, 2, pad=1, count_include_pad=0)", "x:f32:2, 4, 9, 8", "y:f32:2, 4, 5, 5");
    prepared("cuDNN pool", "fp32");
    near(run()[0], (double)data[0][0]);
}

static void rows(void **state)
{
    (void)state;
    TASK("y = softmax(x, axis=1)", "x:f32:2, 5, 3", "y:f32:2, 5, 3");
    prepared("cuDNN softmax", "fp32");
    const float *y = run();
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (int c = 0; c < 5; c++)
                sum += exp((double)data[0][(n * 5 + c) * 3 + i]);
            for (int c = 0; c < 5; c++)
                near(y[(n * 5 + c) * 3 + i], exp((double)data[0][(n * 5 + c) * 3 + i]) / sum);
        }
    TASK("y = log_softmax(x, dim=-1)", "x:f32:4, 6", "y:f32:4, 6");
    prepared("cuDNN log_softmax", "fp32");
    run();
}

static void normalisations(void **state)
{
    (void)state;
    for (int rms = 0; rms < 2; rms++) {
        if (rms)
            TASK("y = rmsnorm(x, w, axis=1, eps=0.25)", "x:f32:3, 2, 4", "w:f32:2, 4",
                 "y:f32:3, 2, 4");
        else
            TASK("y = layernorm(x, w, b, axis=1, eps=0.25)", "x:f32:3, 2, 4", "w:f32:2, 4",
                 "b:f32:2, 4", "y:f32:3, 2, 4");
        prepared(rms ? "cuDNN rmsnorm, best of 2" : "cuDNN layernorm, best of 2", "fp32");
        const float *y = run();
        for (int row = 0; row < 3; row++) {
            double mean = 0, square = 0;
            for (int i = 0; i < 8 && !rms; i++)
                mean += (double)data[0][row * 8 + i] / 8;
            for (int i = 0; i < 8; i++)
                square += pow((double)data[0][row * 8 + i] - mean, 2) / 8;
            for (int i = 0; i < 8; i++)
                near(y[row * 8 + i], ((double)data[0][row * 8 + i] - mean) / sqrt(square + 0.25) *
                                             (double)data[1][i] +
                                         (rms ? 0 : (double)data[2][i]));
        }
    }
    TASK("y = batchnorm(x, w, b)", "x:f32:4, 3, 5", "w:f32:3", "b:f32:3", "y:f32:4, 3, 5");
    prepared("cuDNN batchnorm", "fp32");
    const float *y = run();
    double mean = 0, square = 0;
    for (int i = 0; i < 20; i++)
        mean += (double)data[0][i / 5 * 15 + 5 + i % 5] / 20; /* channel 1 */
    for (int i = 0; i < 20; i++)
        square += pow((double)data[0][i / 5 * 15 + 5 + i % 5] - mean, 2) / 20;
    near(y[5], ((double)data[0][5] - mean) / sqrt(square + 1e-5) * (double)data[1][1] +
                   (double)data[2][1]);
}

static double half(const float *from, int i)
{
    uint16_t h = ((const uint16_t *)(const void *)from)[i];
    int e = h >> 10 & 31;
    double x = e ? ldexp(1024 + (h & 1023), e - 25) : 0;
    return h & 0x8000 ? -x : x;
}

static void fill_halves(void)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < ROOM; i++)
            ((uint16_t *)(void *)data[t])[i] =
                (uint16_t)((i * 37 + t * 11) % 2 * 0x8000 + (13 + i % 3) * 1024 + i * 29 % 1024);
}

static void check_attention(int causal, double scale)
{
    enum { Q = 5, K = 6, D = 8 };
    const float *o = run();
    for (int head = 0; head < 6; head++)
        for (int r = 0; r < Q; r++)
            for (int d = 0; d < D; d++) {
                double sum = 0, out = 0;
                for (int c = 0; c < K && (!causal || c <= r); c++) {
                    double score = 0;
                    for (int i = 0; i < D; i++)
                        score += half(data[0], (head * Q + r) * D + i) *
                                 half(data[1], (head * K + c) * D + i);
                    sum += exp(score * scale);
                    out += exp(score * scale) * half(data[2], (head * K + c) * D + d);
                }
                assert_true(fabs(half(o, (head * Q + r) * D + d) - out / sum) < 2e-3);
            }
}

static void attention(void **state)
{
    (void)state;
    fill_halves();
    TASK("o = attention(q, k, v)", "q:f16:2, 3, 5, 8", "k:f16:2, 3, 6, 8", "v:f16:2, 3, 6, 8",
         "o:f16:2, 3, 5, 8");
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    support_contains(b.ready.label, "cuDNN attention");
    assert_string_equal(b.ready.math, "fp16, fp32 accumulation");
    check_attention(0, 1 / sqrt(8));
    TASK("o = attention(q, k, v, is_causal=true, scale=1/4)", "q:f16:6, 5, 8", "k:f16:6, 6, 8",
         "v:f16:6, 6, 8", "o:f16:6, 5, 8");
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    check_attention(1, 0.25);
}

static void math_is_named(void **state)
{
    (void)state;
    bench_baseline(&b, "cudnn", "{\"library\": \"" FAKE_LIBRARY "\", \"math\": \"tf32\"}",
                   CONFIG_DIR);
    TASK("y = conv2d(x, w)", "x:f32:2, 4, 9, 8", "w:f32:6, 4, 3, 2", "y:f32:2, 6, 7, 7");
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    assert_string_equal(b.ready.math, "tf32");
    support_contains(b.ready.label, "best of "); /* the engine on tensor cores too */
}

static void refuse(const char *part)
{
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    support_contains(b.error.message, part);
    assert_null(b.ready.ctx);
}

static void the_rest_is_unsupported(void **state)
{
    (void)state;
    TASK("y = relu(x) * 2", "x:f32:4", "y:f32:4");
    refuse("only convolutions");
    TASK("y = x", "x:f32:4", "y:f32:4");
    refuse("no operator");
    TASK("y = maxpool2d(x, 2, ceil_mode=1)", "x:f32:1, 1, 5, 5", "y:f32:1, 1, 3, 3");
    refuse("ceil_mode");
    TASK("y = layernorm(x)", "x:f32:4, 4", "y:f32:4, 4");
    refuse("without weight");
    TASK("o = attention(q, k, v, mask=m)", "q:f16:4, 8", "k:f16:4, 8", "v:f16:4, 8", "m:f16:4, 4",
         "o:f16:4, 8");
    refuse("mask");
    TASK("y = conv2d(x, w)", "x:f32:1, 1, 5, 5", "w:f16:1, 1, 2, 2", "y:f32:1, 1, 4, 4");
    refuse("dtypes");
    TASK("y = attention(q, k, v); y = relu(y)", "q:f16:4, 8", "k:f16:4, 8", "v:f16:4, 8",
         "y:f16:4, 8");
    refuse("only convolutions");
}

/* The reader of the graph's text takes anything and ends. */
static void nonsense_is_no_layer(void **state)
{
    static const char *const texts[] = {"",
                                        "=",
                                        "y",
                                        "y =",
                                        "y = (",
                                        "y = [1e300]",
                                        "y = reshape(x, (1e300, 2))",
                                        "y = [1, 2",
                                        "y = f(x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
                                        "y = x +",
                                        "y = x ** 9e99 ** 9",
                                        "y = 1 / 0",
                                        "y = [1,2,3,4,5,6,7,8,9]",
                                        "y = relu(x) z",
                                        "y = ceil_div(1, 0)",
                                        "y = x % 0",
                                        "y = 5 % 0",
                                        "y = maxpool2d(x, kernel=0)",
                                        "y = conv2d(x, x, stride=0)",
                                        "y = softmax(x, axis=99)",
                                        "y = softmax(x, axis=1e18)",
                                        "\xff",
                                        ("y = a_name_of_more_than_sixty_three_letters_"
                                         "a_name_of_more_than_sixty_three_letters(x)")};
    (void)state;
    TASK("y = relu(x)", "x:f32:4, 4, 4, 4", "y:f32:4, 4, 4, 4");
    struct rung_task task = *b.task;
    b.session.task = &task;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        task.graph = texts[i];
        assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    }
    char *deep = calloc(1, 20001);
    memcpy(deep, "y=", 2);
    memset(deep + 2, '(', 19998);
    task.graph = deep;
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    for (int i = 0; i < 9999; i++)
        memcpy(deep + 2 + 2 * i, i % 2 ? "(x" : "-+", 2);
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    task.graph = NULL;
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    free(deep);
}

static void a_library_that_does_not_start(void **state)
{
    (void)state;
    TASK("y = softmax(x, axis=1)", "x:f32:2, 5", "y:f32:2, 5");
    seen->start_fails = 1;
    assert_int_equal(bench_prepare(&b), RUNG_EUNAVAILABLE);
    support_contains(b.error.message, "NOT_INITIALIZED");
    seen->start_fails = 0;
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(convolutions),         CASE(tails_are_fused_or_separate),
        CASE(a_pool_follows),       CASE(rows),
        CASE(normalisations),       CASE(attention),
        CASE(math_is_named),        CASE(the_rest_is_unsupported),
        CASE(nonsense_is_no_layer), CASE(a_library_that_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
