/* baseline "cublas" over a library that computes on the CPU: every product is the right one. */
#include "bench/baselines.h"
#include "bench/fake_cublaslt.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bench b;
static struct fake_seen *seen;

static int setup(void **state)
{
    (void)state;
    void *fake = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fake);
    seen = dlsym(fake, "fake_seen");
    assert_non_null(seen);
    memset(seen, 0, sizeof *seen);
    bench_open(&b, PLUGIN_DIR);
    bench_baseline(&b, "cublas", "{\"library\": \"" FAKE_LIBRARY "\"}", CONFIG_DIR);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bench_close(&b);
    assert_int_equal(seen->live, 0);
    assert_int_equal(seen->handles, 0);
    return 0;
}

/* A task a, b [, bias] -> c of one dtype. */
static void task_of(const char *dtype, const char *a, const char *bb, const char *bias,
                    const char *c, const char *graph)
{
    char text[2048], more[256] = "";
    if (bias)
        snprintf(more, sizeof more,
                 "{ name = \"bias\"; role = \"weight\"; dtype = \"%s\"; shape = \"%s\"; },", dtype,
                 bias);
    snprintf(text, sizeof text,
             "name = \"t\"; summary = \"t\"; dims = { g = 3; m = 5; n = 7; k = 4; };\n"
             "tensors = ( { name = \"a\"; role = \"input\"; dtype = \"%s\"; shape = \"%s\"; },\n"
             "{ name = \"b\"; role = \"input\"; dtype = \"%s\"; shape = \"%s\"; },\n%s\n"
             "{ name = \"c\"; role = \"output\"; dtype = \"%s\"; shape = \"%s\"; } );\n"
             "reference = { plugin = \"ops\"; graph = \"%s\"; };\n"
             "bench = { shapes = ( { g = 3; m = 5; n = 7; k = 4; } ); };\n",
             dtype, a, dtype, bb, more, dtype, c, graph);
    bench_task_text(&b, text);
}

static double value(uint32_t i, uint32_t salt)
{
    return (double)((i * 7 + salt * 13) % 17) / 4 - 2;
}

/* Runs the prepared case on f32 data; c must be what the row-major loops say. */
static void check_f32(int flip_a, int flip_b, int64_t stride_a, int64_t stride_b, int64_t batch,
                      int64_t m, int with_bias, double (*act)(double))
{
    enum { N = 7, K = 4, ROOM = 512 };
    float *buffers[4];
    uint64_t addresses[4];
    for (uint32_t i = 0; i < 4; i++) {
        buffers[i] = calloc(ROOM, sizeof(float));
        for (uint32_t j = 0; j < ROOM; j++)
            buffers[i][j] = (float)value(j, i);
        addresses[i] = (uint64_t)(uintptr_t)buffers[i];
    }
    void *scratch = aligned_alloc(256, b.ready.scratch_bytes + 256);
    float *c = buffers[b.task->n_tensors - 1];
    bench_call(&b, 0);
    assert_int_equal(bench_ops(&b)->enqueue(b.baseline->self, &b.call, &b.ready, addresses,
                                            (uint64_t)(uintptr_t)scratch),
                     RUNG_OK);
    for (int64_t g = 0; g < batch; g++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < N; j++) {
                double want = 0;
                for (int64_t p = 0; p < K; p++)
                    want += (double)buffers[0][g * stride_a + (flip_a ? p * m + i : i * K + p)] *
                            (double)buffers[1][g * stride_b + (flip_b ? j * K + p : p * N + j)];
                want += with_bias ? (double)buffers[2][j] : 0;
                want = act ? act(want) : want;
                assert_true(fabs((double)c[g * m * N + i * N + j] - want) < 1e-4);
            }
    for (uint32_t i = 0; i < 4; i++)
        free(buffers[i]);
    free(scratch);
}

static void prepared(const char *math)
{
    if (bench_prepare(&b))
        fail_msg("%s", b.error.message);
    assert_string_equal(b.ready.math, math);
    assert_string_equal(b.ready.label, "cublasLtMatmul, best of 2 algorithms");
    assert_int_equal(b.ready.scratch_bytes, 8 << 20); /* the third algorithm's */
}

static void transposes_are_as_the_graph_says(void **state)
{
    static const char *const graphs[] = {"c = matmul(a, b)", "c = matmul(a, b, transpose_b=1)",
                                         "c = matmul(a, b, transpose_a=true)",
                                         "c = matmul(a=a, b=b, transpose_a=1, transpose_b=1)"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        task_of("f32", i & 2 ? "k, m" : "m, k", i & 1 ? "n, k" : "k, n", NULL, "m, n", graphs[i]);
        prepared("fp32");
        assert_int_equal(seen->compute, 68);
        check_f32(i & 2, i & 1, 0, 0, 1, 5, 0, NULL);
    }
}

static void batches_are_strided_shared_or_folded(void **state)
{
    (void)state;
    task_of("f32", "g, m, k", "g, k, n", NULL, "g, m, n", "c = bmm(a, b)");
    prepared("fp32");
    check_f32(0, 0, 20, 28, 3, 5, 0, NULL);
    task_of("f32", "g, m, k", "g, n, k", NULL, "g, m, n", "t = bmm(a, b, 0, 1); c = t");
    prepared("fp32");
    check_f32(0, 1, 20, 28, 3, 5, 0, NULL);
    task_of("f32", "g, m, k", "k, n", NULL, "g, m, n", "c = matmul(a, b)");
    prepared("fp32");
    check_f32(0, 0, 0, 0, 1, 15, 0, NULL);
    task_of("f32", "g, k, m", "k, n", NULL, "g, m, n", "c = matmul(a, b, transpose_a=1)");
    prepared("fp32");
    check_f32(1, 0, 20, 0, 3, 5, 0, NULL);
    task_of("f32", "m, k", "g, k, n", NULL, "g, m, n", "c = matmul(a, b)");
    prepared("fp32");
    check_f32(0, 0, 0, 28, 3, 5, 0, NULL);
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double gelu(double x)
{
    return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void bias_and_activation_are_fused(void **state)
{
    (void)state;
    task_of("f32", "m, k", "k, n", "n", "m, n", "c = relu(matmul(a, b) + bias)");
    prepared("fp32");
    check_f32(0, 0, 0, 0, 1, 5, 1, relu);
    task_of("f32", "m, k", "n, k", "n", "m, n",
            "h = bias + matmul(a, b, transpose_b=1); c = gelu(h, approximate=tanh)");
    prepared("fp32");
    check_f32(0, 1, 0, 0, 1, 5, 1, gelu);
}

static void math_is_named_and_asked_for(void **state)
{
    (void)state;
    task_of("f16", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    prepared("fp16, fp32 accumulation");
    assert_int_equal(seen->compute, 68);
    task_of("bf16", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    prepared("bf16, fp32 accumulation");
    task_of("f64", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    prepared("fp64");
    assert_int_equal(seen->compute, 70);
    bench_baseline(&b, "cublas", "{\"library\": \"" FAKE_LIBRARY "\", \"math\": \"tf32\"}",
                   CONFIG_DIR);
    task_of("f32", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    prepared("tf32");
    assert_int_equal(seen->compute, 77);
}

static void the_fastest_that_runs_is_kept(void **state)
{
    (void)state;
    task_of("f32", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    prepared("fp32");
    check_f32(0, 0, 0, 0, 1, 5, 0, NULL);
    assert_int_equal(seen->algorithm, 2);
    assert_int_equal(seen->alignment[0], 256);
    assert_true(b.fake_events > 0);
}

static void refuse(const char *dtype, const char *a, const char *bb, const char *c,
                   const char *graph, const char *part)
{
    task_of(dtype, a, bb, "n", c, graph);
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    support_contains(b.error.message, part);
    assert_null(b.ready.ctx);
}

static void strides_are_unsupported(void **state)
{
    (void)state;
    task_of("f32", "m, k", "k, n\"; strides = \"n + 1, 1", NULL, "m, n", "c = matmul(a, b)");
    assert_int_equal(bench_prepare(&b), RUNG_EUNSUPPORTED);
    support_contains(b.error.message, "b has strides");
    assert_null(b.ready.ctx);
}

static void other_graphs_are_unsupported(void **state)
{
    (void)state;
    refuse("f32", "m, k", "k, n", "m, n", "c = softmax(matmul(a, b), axis=1)", "only matmul");
    refuse("f32", "m, k", "k, n", "m, n", "c = matmul(relu(a), b)", "no task tensors");
    refuse("f32", "m, k", "k, n", "m, n", "c = gelu(matmul(a, b))", "only matmul");
    refuse("f32", "m, k", "k, n", "m, n", "c = matmul(a, b) * 2", "only matmul");
    refuse("i32", "m, k", "k, n", "m, n", "c = matmul(a, b)", "dtypes");
    refuse("f32", "m, k", "k, n", "m, n", "c = matmul(a, b) + a", "only matmul");
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    task_of("f32", "m, k", "k, n", NULL, "m, n", "c = matmul(a, b)");
    bench_baseline(&b, "cublas", "{\"library\": \"/no/such/libcublasLt.so.13\"}", CONFIG_DIR);
    assert_int_equal(bench_prepare(&b), RUNG_EUNAVAILABLE);
    support_contains(b.error.message, "/no/such/libcublasLt.so.13");
    bench_baseline(&b, "cublas", "{\"library\": \"" FAKE_LIBRARY "\"}", CONFIG_DIR);
    seen->start_fails = 1;
    assert_int_equal(bench_prepare(&b), RUNG_EUNAVAILABLE);
    support_contains(b.error.message, "not initialized");
    seen->start_fails = 0;
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(transposes_are_as_the_graph_says), CASE(batches_are_strided_shared_or_folded),
        CASE(bias_and_activation_are_fused),    CASE(math_is_named_and_asked_for),
        CASE(the_fastest_that_runs_is_kept),    CASE(other_graphs_are_unsupported),
        CASE(strides_are_unsupported),          CASE(what_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
