/*
 * Values against formulas written out here in float64, at awkward sizes; shapes, axes, dtypes; and
 * what happens at infinities, NaN and the edges of the range.
 */
#include "problem.h"

#include "honest.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void close_to(double got, double want)
{
    double scale = fmax(fabs(want), 1e-300);
    if (!(fabs(got - want) <= 1e-11 * scale || got == want || (isnan(got) && isnan(want))))
        fail_msg("%.17g is not %.17g", got, want);
}

/* ---- points ---- */

static double ref_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

static double ref_gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double ref_silu(double x)
{
    return x / (1 + exp(-x));
}

static double ref_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double ref_mish(double x)
{
    return x * tanh(ref_softplus(x));
}

static double ref_hardswish(double x)
{
    return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
}

static double ref_relu(double x)
{
    return x > 0 ? x : 0;
}

static double ref_leaky(double x)
{
    return x > 0 ? x : 0.01 * x;
}

static double ref_clamp(double x)
{
    return x < -0.5 ? -0.5 : x > 1.25 ? 1.25 : x;
}

static double ref_mixed(double x)
{
    return (3 * x - 1) / (x * x + 2) - pow(2, x);
}

static void points_match(void **state)
{
    static const struct {
        const char *graph;
        double (*f)(double);
    } cases[] = {{"y = exp(x)", exp},
                 {"y = log(x)", log},
                 {"y = sqrt(x)", sqrt},
                 {"y = abs(x)", fabs},
                 {"y = sin(x)", sin},
                 {"y = cos(x)", cos},
                 {"y = erf(x)", erf},
                 {"y = tanh(x)", tanh},
                 {"y = relu(x)", ref_relu},
                 {"y = leaky_relu(x)", ref_leaky},
                 {"y = sigmoid(x)", ref_sigmoid},
                 {"y = gelu(x)", ref_gelu},
                 {"y = gelu(x, approximate=tanh)", ref_gelu_tanh},
                 {"y = silu(x)", ref_silu},
                 {"y = softplus(x)", ref_softplus},
                 {"y = mish(x)", ref_mish},
                 {"y = hardswish(x)", ref_hardswish},
                 {"y = clamp(x, min=-0.5, max=1.25)", ref_clamp},
                 {"y = (3 * x - 1) / (x ** 2 + 2) - 2 ** x", ref_mixed}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float *x = test_data("normal", 21, 3, 1001);
        struct problem p;
        problem_matrix(&p, cases[c].graph, 3, 1001, x, "rows,cols");
        for (int i = 0; i < 3003; i++)
            close_to(p.outputs[0].value[i], cases[c].f(x[i]));
        problem_close(&p);
        free(x);
    }
}

/* ---- rows ---- */

struct row_sums {
    double max, min, sum, squares, exps, product, mean, centred;
};

static struct row_sums sums_of(const float *x, int64_t n, int64_t step)
{
    struct row_sums s = {-INFINITY, INFINITY, 0, 0, 0, 1, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        double v = x[i * step];
        s.max = fmax(s.max, v);
        s.min = fmin(s.min, v);
        s.sum += v;
        s.squares += v * v;
        s.product *= v;
    }
    s.mean = s.sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        s.exps += exp(x[i * step] - s.max);
        s.centred += (x[i * step] - s.mean) * (x[i * step] - s.mean);
    }
    return s;
}

static double ref_reduce(const char *name, const float *x, int64_t n, int64_t step)
{
    struct row_sums s = sums_of(x, n, step);
    double count = (double)n;
    return !strcmp(name, "sum")    ? s.sum
           : !strcmp(name, "mean") ? s.mean
           : !strcmp(name, "max")  ? s.max
           : !strcmp(name, "min")  ? s.min
           : !strcmp(name, "prod") ? s.product
           : !strcmp(name, "norm") ? sqrt(s.squares)
           : !strcmp(name, "var")  ? s.centred / (count - 1)
                                   : s.max + log(s.exps);
}

static const char *const reductions[] = {"sum",  "mean", "max", "min",
                                         "prod", "norm", "var", "logsumexp"};

static void reductions_match_along_both_axes(void **state)
{
    static const int64_t shapes[][2] = {{7, 1000}, {1, 2}, {3, 4097}, {257, 3}, {65, 129}};
    char graph[64];
    (void)state;
    for (int r = 0; r < 8; r++)
        for (int s = 0; s < 5; s++)
            for (int axis = -2; axis < 2; axis++) {
                int64_t rows = shapes[s][0], cols = shapes[s][1], along = axis & 1;
                if (rows == 1 && !along)
                    continue;
                float *x = test_data("normal", 31, rows, cols);
                struct problem p;
                snprintf(graph, sizeof graph, "y = %s(x, axis=%d)", reductions[r], axis);
                problem_matrix(&p, graph, rows, cols, x, along ? "rows" : "cols");
                for (int64_t i = 0; i < (along ? rows : cols); i++)
                    close_to(p.outputs[0].value[i],
                             along ? ref_reduce(reductions[r], x + i * cols, cols, 1)
                                   : ref_reduce(reductions[r], x + i, rows, cols));
                problem_close(&p);
                free(x);
            }
}

static void without_an_axis_all_elements_count(void **state)
{
    char graph[64];
    (void)state;
    for (int r = 0; r < 8; r++) {
        float *x = test_data("normal", 8, 5, 13);
        struct problem p;
        snprintf(graph, sizeof graph, "y = %s(x)", reductions[r]);
        problem_matrix(&p, graph, 5, 13, x, "1");
        close_to(p.outputs[0].value[0], ref_reduce(reductions[r], x, 65, 1));
        problem_close(&p);
        free(x);
    }
}

/* Reducing dimensions 0 and 2 of three; keepdim; broadcasting back. */
static void lists_of_axes_and_keepdim(void **state)
{
    enum { A = 3, B = 4, C = 5 };
    float *x = test_data("normal", 2, A * B, C);
    struct problem p;
    (void)state;
    problem_open(&p, "y = sum(x, axis=[0, -1], keepdim=1); z = x - y", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "3,4,5", x);
    problem_output(&p, "y", RUNG_F32, "1,4,1");
    problem_output(&p, "z", RUNG_F32, "3,4,5");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    for (int b = 0; b < B; b++) {
        double sum = 0;
        for (int a = 0; a < A; a++)
            for (int c = 0; c < C; c++)
                sum += x[(a * B + b) * C + c];
        close_to(p.outputs[0].value[b], sum);
        close_to(p.outputs[1].value[(2 * B + b) * C + 3], x[(2 * B + b) * C + 3] - sum);
    }
    problem_close(&p);
    free(x);
}

static void scans_match_along_both_axes(void **state)
{
    static const char *const names[] = {"softmax", "log_softmax", "cumsum"};
    enum { R = 37, C = 61 };
    char graph[64];
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int axis = 0; axis < 2; axis++) {
            float *x = test_data("normal", 4, R, C);
            struct problem p;
            snprintf(graph, sizeof graph, "y = %s(x, axis=%d)", names[k], axis);
            problem_matrix(&p, graph, R, C, x, "rows,cols");
            for (int i = 0; i < (axis ? R : C); i++) {
                int n = axis ? C : R, step = axis ? 1 : C, first = axis ? i * C : i;
                struct row_sums s = sums_of(x + first, n, step);
                double run = 0;
                for (int j = 0; j < n; j++) {
                    double v = x[first + j * step];
                    run += v;
                    close_to(p.outputs[0].value[first + j * step], k == 0 ? exp(v - s.max) / s.exps
                                                                   : k == 1
                                                                       ? v - s.max - log(s.exps)
                                                                       : run);
                }
            }
            problem_close(&p);
            free(x);
        }
}

static void layernorm_matches(void **state)
{
    enum { R = 5, C = 33 };
    float *x = test_data("offset", 6, R, C), *w = test_data("normal", 7, 1, C),
          *b = test_data("normal", 8, 1, C);
    struct problem p;
    (void)state;
    problem_open(&p, "y = layernorm(x, w, b, eps=1e-3)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "5,33", x);
    problem_input(&p, "w", RUNG_F32, "33", w);
    problem_input(&p, "b", RUNG_F32, "33", b);
    problem_output(&p, "y", RUNG_F32, "5,33");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    for (int i = 0; i < R * C; i++) {
        struct row_sums s = sums_of(x + i / C * C, C, 1);
        close_to(p.outputs[0].value[i],
                 (x[i] - s.mean) / sqrt(s.centred / C + 1e-3) * w[i % C] + b[i % C]);
    }
    problem_close(&p);
    free(x);
    free(w);
    free(b);
}

static void products_match(void **state)
{
    enum { M = 7, K = 13, N = 5 };
    float *a = test_data("normal", 1, K, M), *b = test_data("normal", 2, N, K);
    struct problem p;
    (void)state;
    problem_open(&p, "y = matmul(a, b, transpose_a=1, transpose_b=1)", RUNG_PRECISION_FP32);
    problem_input(&p, "a", RUNG_F32, "13,7", a);
    problem_input(&p, "b", RUNG_F32, "5,13", b);
    problem_output(&p, "y", RUNG_F32, "7,5");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)a[k * M + i] * b[j * K + k];
            close_to(p.outputs[0].value[i * N + j], sum);
        }
    problem_close(&p);
    free(a);
    free(b);
}

static void batches_share_a_matrix(void **state)
{
    float *a = test_data("normal", 1, 6, 4), *b = test_data("normal", 2, 4, 2);
    struct problem p;
    (void)state;
    problem_open(&p, "y = matmul(a, b)", RUNG_PRECISION_FP32);
    problem_input(&p, "a", RUNG_F32, "2,3,4", a);
    problem_input(&p, "b", RUNG_F32, "4,2", b);
    problem_output(&p, "y", RUNG_F32, "2,3,2");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += (double)a[5 * 4 + k] * b[k * 2 + 1];
    close_to(p.outputs[0].value[11], sum);
    problem_close(&p);
    free(a);
    free(b);
}

/* ---- dtypes, strides, edges ---- */

static void every_dtype_is_read(void **state)
{
    static const double f64[] = {1.5, -2};
    static const float f32[] = {1.5f, -2};
    static const uint16_t f16[] = {0x3e00, 0xc000}, bf16[] = {0x3fc0, 0xc000};
    static const int8_t i8[] = {1, -2};
    static const uint8_t u8[] = {1, 254}, boolean[] = {1, 0};
    static const int32_t i32[] = {1, -2};
    static const int64_t i64[] = {1, -2};
    static const struct {
        uint32_t dtype;
        const void *data;
        double v[2];
    } cases[] = {
        {RUNG_F64, f64, {1.5, -2}},   {RUNG_F32, f32, {1.5, -2}}, {RUNG_F16, f16, {1.5, -2}},
        {RUNG_BF16, bf16, {1.5, -2}}, {RUNG_I8, i8, {1, -2}},     {RUNG_U8, u8, {1, 254}},
        {RUNG_I32, i32, {1, -2}},     {RUNG_I64, i64, {1, -2}},   {RUNG_BOOL, boolean, {1, 0}}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct problem p;
        problem_open(&p, "y = x", RUNG_PRECISION_FP64);
        problem_input(&p, "x", cases[c].dtype, "2", cases[c].data);
        problem_output(&p, "y", RUNG_F64, "2");
        assert_int_equal(problem_evaluate(&p), RUNG_OK);
        assert_true(p.outputs[0].value[0] == cases[c].v[0] &&
                    p.outputs[0].value[1] == cases[c].v[1]);
        assert_true(p.outputs[0].bound[0] == 0);
        problem_close(&p);
    }
}

static void all_halves_are_read(void **state)
{
    uint16_t *x = malloc(65536 * sizeof *x);
    struct problem p;
    (void)state;
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    problem_open(&p, "y = x", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F16, "65536", x);
    problem_output(&p, "y", RUNG_F32, "65536");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    for (int i = 0; i < 65536; i++) {
        double v = p.outputs[0].value[i];
        if ((i & 0x7c00) == 0x7c00)
            assert_true(i & 0x3ff ? isnan(v) : isinf(v));
        else /* to_f16 of an exact half is itself */
            assert_true((float)v == to_f16((float)v) && signbit(v) == (i >> 15));
    }
    problem_close(&p);
    free(x);
}

static void exact_operators_ask_for_exact_bits(void **state)
{
    static const char *const graphs[] = {
        "y = relu(x)",         "y = abs(x)",          "y = -x",
        "y = maximum(x, 0.5)", "y = clamp(x, min=0)", "y = transpose(transpose(x))"};
    (void)state;
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        float *x = test_data("normal", 3, 4, 100);
        struct problem p;
        problem_matrix(&p, graphs[g], 4, 100, x, "rows,cols");
        for (int i = 0; i < 400; i++)
            assert_true(p.outputs[0].bound[i] == 0);
        problem_close(&p);
        free(x);
    }
}

static void integers_are_exact_and_wrap(void **state)
{
    static const int32_t x[] = {7, -3, 2000000000, 2000000000};
    struct problem p;
    (void)state;
    problem_open(&p, "y = x + x; s = sum(x)", RUNG_PRECISION_EXACT);
    problem_input(&p, "x", RUNG_I32, "4", x);
    problem_output(&p, "y", RUNG_I32, "4");
    problem_output(&p, "s", RUNG_I64, "1");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_true(p.outputs[0].value[0] == 14 &&
                p.outputs[0].value[2] == 4000000000.0 - 4294967296.0);
    assert_true(p.outputs[1].value[0] == 4000000004.0);
    assert_true(p.outputs[0].bound[2] == 0 && p.outputs[1].bound[0] == 0);
    problem_close(&p);
}

static void infinities_and_nan_go_through(void **state)
{
    const float x[] = {1, INFINITY, -INFINITY, NAN};
    static const struct {
        const char *graph;
        double y[4];
    } cases[] = {{"y = exp(x)", {M_E, INFINITY, 0, NAN}},
                 {"y = relu(x)", {1, INFINITY, 0, NAN}},
                 {"y = maximum(x, 2)", {2, INFINITY, 2, NAN}},
                 {"y = clamp(x, max=2)", {1, 2, -INFINITY, NAN}},
                 {"y = x - x", {0, NAN, NAN, NAN}},
                 {"y = 1 / x", {1, 0, 0, NAN}},
                 {"y = x / 0", {INFINITY, INFINITY, -INFINITY, NAN}},
                 {"y = tanh(x)", {0.76159415595576485, 1, -1, NAN}},
                 {"y = softplus(x)", {1.3132616875182228, INFINITY, 0, NAN}},
                 {"y = cumsum(x, axis=1)", {1, INFINITY, NAN, NAN}},
                 {"y = x ** 2", {1, INFINITY, INFINITY, NAN}},
                 {"y = x + max(x)", {NAN, NAN, NAN, NAN}}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct problem p;
        problem_matrix(&p, cases[c].graph, 1, 4, x, "rows,cols");
        for (int i = 0; i < 4; i++) {
            close_to(p.outputs[0].value[i], cases[c].y[i]);
            if (!isfinite(cases[c].y[i]))
                assert_true(p.outputs[0].bound[i] == 0);
        }
        problem_close(&p);
    }
}

/* Beyond float32's range the answer is an infinity; where only the way there leaves it, nothing is
 * asked. */
static void overflow_of_the_precision(void **state)
{
    const float x[] = {50, 100, 1000, -100};
    struct problem p;
    (void)state;
    problem_matrix(&p, "y = exp(x)", 1, 4, x, "rows,cols");
    assert_true(isfinite(p.outputs[0].value[0]) && isinf(p.outputs[0].value[1]) &&
                isinf(p.outputs[0].value[2]));
    assert_true(p.outputs[0].bound[1] == 0);
    problem_close(&p);
    problem_matrix(&p, "e = exp(x); y = e / (1 + e)", 1, 4, x, "rows,cols");
    assert_true(p.outputs[0].bound[0] < 1e-4 && isinf(p.outputs[0].bound[1]) &&
                isinf(p.outputs[0].bound[2]));
    assert_true(p.outputs[0].bound[3] < 1e-30);
    problem_close(&p);
    problem_matrix(&p, "y = sigmoid(x)", 1, 4, x, "rows,cols");
    assert_true(p.outputs[0].bound[1] < 1e-6 && p.outputs[0].bound[2] < 1e-6);
    problem_close(&p);
    problem_matrix(&p, "y = x / (1 + exp(-x))", 1, 4, x, "rows,cols");
    assert_true(p.outputs[0].bound[3] < 1e-35 && p.outputs[0].bound[3] >= 100 * exp(-100));
    problem_close(&p);
}

static void degenerate_rows(void **state)
{
    const float x[] = {-INFINITY, -INFINITY, INFINITY, 1, -INFINITY, 2};
    struct problem p;
    (void)state;
    problem_matrix(&p, "y = softmax(x, axis=1)", 3, 2, x, "rows,cols");
    assert_true(isnan(p.outputs[0].value[0]) && isnan(p.outputs[0].value[2]));
    assert_true(p.outputs[0].value[4] == 0 && p.outputs[0].value[5] == 1);
    problem_close(&p);
    problem_matrix(&p, "y = logsumexp(x, axis=1)", 3, 2, x, "rows");
    assert_true(p.outputs[0].value[0] == -INFINITY && p.outputs[0].value[1] == INFINITY);
    assert_true(p.outputs[0].value[2] == 2);
    problem_close(&p);
    problem_matrix(&p, "y = var(x, axis=0)", 1, 6, x, "cols");
    assert_true(isnan(p.outputs[0].value[3])); /* one element, unbiased */
    problem_close(&p);
}

static void half_outputs_overflow_where_half_does(void **state)
{
    const float x[] = {65000, 65519, 65521, 1e6f};
    struct problem p;
    (void)state;
    problem_open(&p, "y = x", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "4", x);
    problem_output(&p, "y", RUNG_F16, "4");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_true(isfinite(p.outputs[0].value[1]) && isinf(p.outputs[0].value[2]) &&
                isinf(p.outputs[0].value[3]));
    problem_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_match),
        cmocka_unit_test(reductions_match_along_both_axes),
        cmocka_unit_test(without_an_axis_all_elements_count),
        cmocka_unit_test(lists_of_axes_and_keepdim),
        cmocka_unit_test(scans_match_along_both_axes),
        cmocka_unit_test(layernorm_matches),
        cmocka_unit_test(products_match),
        cmocka_unit_test(batches_share_a_matrix),
        cmocka_unit_test(every_dtype_is_read),
        cmocka_unit_test(all_halves_are_read),
        cmocka_unit_test(exact_operators_ask_for_exact_bits),
        cmocka_unit_test(integers_are_exact_and_wrap),
        cmocka_unit_test(infinities_and_nan_go_through),
        cmocka_unit_test(overflow_of_the_precision),
        cmocka_unit_test(degenerate_rows),
        cmocka_unit_test(half_outputs_overflow_where_half_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
