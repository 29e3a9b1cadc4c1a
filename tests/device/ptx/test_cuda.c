/*
 * test_cuda.c - real CUDA through NVRTC, both PTX dialects, against plain C in f64. Skipped,
 * loudly, where there is no NVRTC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct px px;
static struct rung_module *module;

static int open_device(void **state)
{
    const char *arch = *state;
    static char source[32768];
    FILE *f = fopen(PTX_KERNELS, "r");
    char *ptx;

    if (!f)
        return -1;
    source[fread(source, 1, sizeof source - 1, f)] = 0;
    fclose(f);
    if (px_open(&px, PTX_PLUGIN, NULL))
        return -1;
    ptx = px_compile(source, arch);
    if (!ptx) {
        print_message("SKIPPED: no NVRTC on this machine, CUDA kernels are not tested\n");
        return 0;
    }
    module = px_load(&px, ptx);
    if (!module)
        print_message("%s\n", px.fault.message);
    free(ptx);
    return module ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    if (module)
        px_unload(&px, module);
    module = NULL;
    px_close(&px);
    return 0;
}

#define NEED_NVRTC()                                                                               \
    do {                                                                                           \
        if (!module)                                                                               \
            skip();                                                                                \
    } while (0)

static float *draw(size_t n, float scale)
{
    float *x = malloc(n * sizeof *x);
    uint32_t s = 12345;

    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = ((float)(s >> 8) / 8388608.0f - 1.0f) * scale;
    }
    return x;
}

static void run(const char *kernel, struct rung_dim3 grid, struct rung_dim3 block, uint32_t shared,
                const void *params, uint32_t bytes)
{
    struct px_launch l = {.kernel = kernel,
                          .grid = grid,
                          .block = block,
                          .shared = shared,
                          .params = params,
                          .param_bytes = bytes};

    if (*px_launch(&px, module, &l))
        fail_msg("%s: %s", kernel, px.fault.message);
}

static void close_to(const char *what, size_t i, double got, double want, double relative,
                     double absolute)
{
    if (!(fabs(got - want) <= relative * fabs(want) + absolute))
        fail_msg("%s[%zu]: got %.9g, want %.9g", what, i, got, want);
}

static void elementwise(void **state)
{
    enum { N = 10000 };
    float *a = draw(N, 4), *b = draw(N, 1e6f);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "a", a, N * 4), *y = px_buffer(&px, "b", b, N * 4),
                       *z = px_buffer(&px, "c", NULL, N * 4);
    struct {
        uint64_t a, b, c;
        int32_t n4;
    } p = {px_address(&px, x), px_address(&px, y), px_address(&px, z), N / 4};
    run("vadd4", (struct rung_dim3){(N / 4 + 127) / 128, 1, 1}, (struct rung_dim3){128, 1, 1}, 0,
        &p, 28);
    for (int i = 0; i < N; i++)
        assert_true(((float *)px_map(&px, z))[i] == a[i] + b[i]);
    struct {
        uint64_t x, y;
        int32_t n;
    } g = {p.a, p.c, N};
    run("gelu", (struct rung_dim3){7, 1, 1}, (struct rung_dim3){96, 1, 1}, 0, &g, 20);
    for (size_t i = 0; i < N; i++) {
        double v = a[i];

        close_to("gelu", i, ((float *)px_map(&px, z))[i],
                 0.5 * v * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v))), 1e-5, 1e-6);
    }
    px_free(&px, x), px_free(&px, y), px_free(&px, z);
    free(a), free(b);
}

static void softmax(void **state)
{
    enum { ROWS = 7, COLS = 1000 };
    float *a = draw(ROWS * COLS, 8);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", a, ROWS * COLS * 4),
                       *y = px_buffer(&px, "y", NULL, ROWS * COLS * 4);
    struct {
        uint64_t x, y;
        int32_t cols;
    } p = {px_address(&px, x), px_address(&px, y), COLS};
    run("softmax_rows", (struct rung_dim3){ROWS, 1, 1}, (struct rung_dim3){128, 1, 1}, 512, &p, 20);
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0;

        for (size_t i = 0; i < COLS; i++)
            sum += exp((double)a[r * COLS + i]);
        for (size_t i = 0; i < COLS; i++)
            close_to("softmax", r * COLS + i, ((float *)px_map(&px, y))[r * COLS + i],
                     exp((double)a[r * COLS + i]) / sum, 2e-6, 0);
    }
    px_free(&px, x), px_free(&px, y);
    free(a);
}

static void normalisation(void **state)
{
    enum { ROWS = 5, COLS = 777 };
    float *a = draw(ROWS * COLS, 3), *g = draw(COLS, 2), *b = draw(COLS, 1);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", a, ROWS * COLS * 4),
                       *gb = px_buffer(&px, "g", g, COLS * 4);
    struct rung_buffer *bb = px_buffer(&px, "b", b, COLS * 4),
                       *y = px_buffer(&px, "y", NULL, ROWS * COLS * 4);
    struct {
        uint64_t x, g, b, y;
        int32_t cols;
        float eps;
    } p = {px_address(&px, x),
           px_address(&px, gb),
           px_address(&px, bb),
           px_address(&px, y),
           COLS,
           1e-5f};
    run("layernorm", (struct rung_dim3){ROWS, 1, 1}, (struct rung_dim3){256, 1, 1}, 0, &p, 40);
    for (size_t r = 0; r < ROWS; r++) {
        double s = 0, q = 0;

        for (size_t i = 0; i < COLS; i++) {
            s += a[r * COLS + i];
            q += (double)a[r * COLS + i] * a[r * COLS + i];
        }
        s /= COLS;
        q = 1 / sqrt(q / COLS - s * s + 1e-5);
        for (size_t i = 0; i < COLS; i++)
            close_to("layernorm", i, ((float *)px_map(&px, y))[r * COLS + i],
                     (a[r * COLS + i] - s) * q * g[i] + b[i], 1e-5, 1e-5);
    }
    px_free(&px, x), px_free(&px, gb), px_free(&px, bb), px_free(&px, y);
    free(a), free(g), free(b);
}

static void reduction(void **state)
{
    enum { N = 100003 };
    float *a = draw(N, 1);
    double sum = 0;

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", a, N * 4), *out = px_buffer(&px, "out", NULL, 4);
    struct {
        uint64_t x, out;
        int32_t n;
    } p = {px_address(&px, x), px_address(&px, out), N};
    run("reduce_sum", (struct rung_dim3){20, 1, 1}, (struct rung_dim3){256, 1, 1}, 0, &p, 20);
    for (size_t i = 0; i < N; i++)
        sum += a[i];
    close_to("sum", 0, *(float *)px_map(&px, out), sum, 1e-4, 1e-2);
    px_free(&px, x), px_free(&px, out);
    free(a);
}

static void matrix_product(void **state)
{
    enum { M = 45, N = 70, K = 33 };
    float *a = draw(M * K, 1), *b = draw(K * N, 2);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "a", a, M * K * 4),
                       *y = px_buffer(&px, "b", b, K * N * 4),
                       *z = px_buffer(&px, "c", NULL, M * N * 4);
    struct {
        uint64_t a, b, c;
        int32_t m, n, k;
    } p = {px_address(&px, x), px_address(&px, y), px_address(&px, z), M, N, K};
    run("matmul", (struct rung_dim3){5, 3, 1}, (struct rung_dim3){16, 16, 1}, 0, &p, 36);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double s = 0;

            for (size_t k = 0; k < K; k++)
                s += (double)a[i * K + k] * b[k * N + j];
            close_to("c", i * N + j, ((float *)px_map(&px, z))[i * N + j], s, 1e-6, 1e-5);
        }
    px_free(&px, x), px_free(&px, y), px_free(&px, z);
    free(a), free(b);
}

static void convolution(void **state)
{
    enum { H = 37, W = 41, R = 2, K = 5 };
    float *a = draw(H * W, 1), *k = draw(K * K, 1);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", a, H * W * 4),
                       *w = px_buffer(&px, "w", k, K * K * 4),
                       *y = px_buffer(&px, "y", NULL, H * W * 4);
    struct {
        uint64_t x, w, y;
        int32_t h, wd, r;
    } p = {px_address(&px, x), px_address(&px, w), px_address(&px, y), H, W, R};
    run("conv2d", (struct rung_dim3){2, 10, 1}, (struct rung_dim3){32, 4, 1}, 0, &p, 36);
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++) {
            double s = 0;

            for (int u = -R; u <= R; u++)
                for (int v = -R; v <= R; v++)
                    if (i + u >= 0 && i + u < H && j + v >= 0 && j + v < W)
                        s += (double)a[(i + u) * W + j + v] * k[(u + R) * K + v + R];
            close_to("y", (size_t)(i * W + j), ((float *)px_map(&px, y))[i * W + j], s, 1e-6, 1e-5);
        }
    px_free(&px, x), px_free(&px, w), px_free(&px, y);
    free(a), free(k);
}

static void mathematics(void **state)
{
    enum { N = 2000 };
    float *a = draw(N, 4);

    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", a, N * 4),
                       *y = px_buffer(&px, "y", NULL, N * 14 * 4),
                       *z = px_buffer(&px, "z", NULL, N * 16);
    struct {
        uint64_t x, y, z;
        int32_t n;
    } p = {px_address(&px, x), px_address(&px, y), px_address(&px, z), N};
    run("functions", (struct rung_dim3){(N + 63) / 64, 1, 1}, (struct rung_dim3){64, 1, 1}, 0, &p,
        28);
    for (size_t i = 0; i < N; i++) {
        const float *o = (float *)px_map(&px, y) + 14 * i;
        const double *d = (double *)px_map(&px, z) + 2 * i;
        const double v = a[i], m = fabs(v);
        const double want[14] = {exp(v),
                                 log(m),
                                 pow(m, 1.7f),
                                 sin((double)(a[i] * 1000.0f)),
                                 cos(v),
                                 tanh(v),
                                 erf(v),
                                 sqrt(m),
                                 1 / v,
                                 v / 3,
                                 fmod(v, 0.7f),
                                 log1p(m) + expm1(v),
                                 (1.5 * v - 2) * v + 0.25,
                                 exp(v) + log(m + 1) + sin(v) + cos(v)};

        for (size_t k = 0; k < 14; k++)
            close_to("functions", 100 * i + k, o[k], want[k], 2e-6, 2e-6);
        close_to("f64", 2 * i, d[0], sin(v * 1e6) + exp(v) + log(m), 1e-13, 1e-13);
        close_to("f64", 2 * i + 1, d[1], pow(m, 0.3) / (1 + v * v), 1e-14, 0);
    }
    px_free(&px, x), px_free(&px, y), px_free(&px, z);
    free(a);
}

static void integer_kernels(void **state)
{
    enum { N = 50000, ROWS = 45, COLS = 70 };
    static uint8_t bytes[N];
    uint32_t want[256] = {0};
    float *a = draw(ROWS * COLS, 1);

    (void)state;
    NEED_NVRTC();
    for (uint32_t i = 0; i < N; i++)
        want[bytes[i] = (uint8_t)(i * i >> 5)]++;
    struct rung_buffer *x = px_buffer(&px, "x", bytes, N),
                       *bins = px_buffer(&px, "bins", NULL, sizeof want);
    struct {
        uint64_t x, bins;
        int32_t n;
    } p = {px_address(&px, x), px_address(&px, bins), N};
    run("histogram", (struct rung_dim3){6, 1, 1}, (struct rung_dim3){192, 1, 1}, 0, &p, 20);
    assert_memory_equal(px_map(&px, bins), want, sizeof want);
    struct rung_buffer *from = px_buffer(&px, "from", a, ROWS * COLS * 4),
                       *to = px_buffer(&px, "to", NULL, ROWS * COLS * 4);
    struct {
        uint64_t x, y;
        int32_t rows, cols;
    } t = {px_address(&px, from), px_address(&px, to), ROWS, COLS};
    run("transpose", (struct rung_dim3){3, 2, 1}, (struct rung_dim3){32, 8, 1}, 0, &t, 24);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++)
            assert_true(((float *)px_map(&px, to))[c * ROWS + r] == a[r * COLS + c]);
    px_free(&px, x), px_free(&px, bins), px_free(&px, from), px_free(&px, to);
    free(a);
}

/* A source line as the compiler gives it. */
static void fault_names_the_line(void **state)
{
    (void)state;
    NEED_NVRTC();
    struct rung_buffer *x = px_buffer(&px, "x", NULL, 256), *y = px_buffer(&px, "y", NULL, 252);
    struct {
        uint64_t x, y;
        int32_t n;
    } p = {px_address(&px, x), px_address(&px, y), 64};
    struct px_launch l = {.kernel = "gelu", .block = {64, 1, 1}, .params = &p, .param_bytes = 20};

    assert_string_equal(px_launch(&px, module, &l), "mem.out_of_bounds");
    assert_int_equal(px.fault.line, 16);
    assert_int_equal(px.fault.thread[0], 63);
    px_free(&px, x), px_free(&px, y);
}

int main(void)
{
    static char old[] = "compute_90", new[] = "compute_100";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),          cmocka_unit_test(softmax),
        cmocka_unit_test(normalisation),        cmocka_unit_test(reduction),
        cmocka_unit_test(matrix_product),       cmocka_unit_test(convolution),
        cmocka_unit_test(mathematics),          cmocka_unit_test(integer_kernels),
        cmocka_unit_test(fault_names_the_line),
    };
    int failed = 0;

    for (int round = 0; round < 2; round++) {
        void *arch = round ? new : old;

        print_message("%s\n", (char *)arch);
        failed |= open_device(&arch);
        failed |= _cmocka_run_group_tests(round ? "compute_100" : "compute_90", tests,
                                          sizeof tests / sizeof tests[0], NULL, NULL);
        close_device(NULL);
    }
    return failed;
}
