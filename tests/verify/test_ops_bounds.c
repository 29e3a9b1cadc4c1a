/*
 * Bounds against what kernels really do: honest float32 kernels must lie within them on every fill
 * and size, and kernels that compute in half precision or by E[x^2] - mean^2 must not.
 */
#include "problem.h"

#include "honest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const fills[] = {"normal", "offset",     "large",       "small", "zeros",
                                    "ones",   "equal_rows", "onehot_rows", "ramp"};
enum { N_FILLS = sizeof fills / sizeof *fills };

/* As the session compares: within the bound, rounded to float32. */
static int within(float got, double want, double bound)
{
    if (isnan(want))
        return isnan(got);
    return got >= (float)(want - bound) && got <= (float)(want + bound);
}

static int64_t count_outside(const struct rung_reference_output *want, const float *got)
{
    int64_t bad = 0;
    for (uint64_t i = 0; i < want->n; i++)
        bad += !within(got[i], want->value[i], want->bound[i]);
    return bad;
}

static void explain(const char *name, const char *fill, int64_t rows, int64_t cols,
                    const struct rung_reference_output *want, const float *got)
{
    for (uint64_t i = 0; i < want->n; i++)
        if (!within(got[i], want->value[i], want->bound[i]))
            fail_msg("%s at %ldx%ld, fill %s: [%lu] is %.9g, expected %.9g +- %.3g", name,
                     (long)rows, (long)cols, fill, (unsigned long)i, got[i], want->value[i],
                     want->bound[i]);
}

static void run_rows(row_kernel f, const float *x, int64_t rows, int64_t cols, int64_t step,
                     float *y)
{
    for (int64_t r = 0; r < rows; r++)
        f(x + r * cols, cols, y + r * step);
}

/* scalar: the kernels give one value a row. */
static void rows_within(const char *graph, const struct named_row *kernels, int scalar,
                        int64_t least)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 33, 257, 1000, 4097, 65536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int f = 0; f < N_FILLS && sizes[s] >= least; f++) {
            int64_t rows = 5, cols = sizes[s], step = scalar ? 1 : cols;
            float *x = test_data(fills[f], 11, rows, cols),
                  *y = calloc((size_t)(rows * step), sizeof *y);
            struct problem p;
            problem_matrix(&p, graph, rows, cols, x, scalar ? "rows" : "rows,cols");
            for (const struct named_row *k = kernels; k->name; k++) {
                run_rows(k->run, x, rows, cols, step, y);
                explain(k->name, fills[f], rows, cols, &p.outputs[0], y);
            }
            problem_close(&p);
            free(x);
            free(y);
        }
}

static void points_within(const char *graph, const struct named_point *kernels, int positive)
{
    for (int f = 0; f < N_FILLS; f++) {
        int64_t n = 20000;
        float *x = test_data(fills[f], 5, 1, n), *y = calloc((size_t)n, sizeof *y);
        for (int64_t i = 0; i < n && positive; i++)
            x[i] = fabsf(x[i]);
        struct problem p;
        problem_matrix(&p, graph, 1, n, x, "rows,cols");
        for (const struct named_point *k = kernels; k->name; k++) {
            for (int64_t i = 0; i < n; i++)
                y[i] = k->run(x[i]);
            explain(k->name, fills[f], 1, n, &p.outputs[0], y);
        }
        problem_close(&p);
        free(x);
        free(y);
    }
}

static void softmax_kernels_are_within(void **state)
{
    (void)state;
    rows_within("y = softmax(x, axis=1)", honest_softmax, 0, 1);
    rows_within("y = log_softmax(x, axis=1)", honest_log_softmax, 0, 1);
    rows_within("y = logsumexp(x, axis=1)", honest_logsumexp, 1, 1);
}

static void a_softmax_written_out_is_within(void **state)
{
    (void)state;
    rows_within("e = exp(x - max(x, axis=1, keepdim=1)); y = e / sum(e, axis=1, keepdim=1)",
                honest_softmax, 0, 1);
}

static void sums_are_within(void **state)
{
    (void)state;
    rows_within("y = sum(x, axis=1)", honest_sum, 1, 1);
    rows_within("y = mean(x, axis=1)", honest_mean, 1, 1);
    rows_within("y = norm(x, axis=1)", honest_norm, 1, 1);
    rows_within("y = cumsum(x, axis=1)", honest_cumsum, 0, 1);
    rows_within("y = prod(x, axis=1)", honest_prod, 1, 1);
}

static void variances_are_within(void **state)
{
    (void)state;
    rows_within("y = var(x, axis=1)", honest_var, 1, 2);
    rows_within("y = layernorm(x)", honest_layernorm, 0, 1);
}

static void activations_are_within(void **state)
{
    (void)state;
    points_within("y = gelu(x)", honest_gelu, 0);
    points_within("y = gelu(x, approximate=tanh)", honest_gelu_tanh, 0);
    points_within("y = silu(x)", honest_silu, 0);
    points_within("y = sigmoid(x)", honest_sigmoid, 0);
    points_within("y = softplus(x)", honest_softplus, 0);
    points_within("y = mish(x)", honest_mish, 0);
    points_within("y = tanh(x)", honest_tanh, 0);
    points_within("y = hardswish(x)", honest_hardswish, 0);
    points_within("y = exp(x)", honest_exp, 0);
    points_within("y = erf(x)", honest_erf, 0);
    points_within("y = x ** 3", honest_cube, 0);
    points_within("y = 1 / x", honest_inverse, 0);
    points_within("y = log(x)", honest_log, 1);
    points_within("y = sqrt(x)", honest_sqrt, 1);
}

/* ---- what must fall outside ---- */

typedef float (*rounding)(float);

/* Fraction of outputs outside when the kernel's inputs are rounded first. */
static double outside_with_rounded_inputs(const char *graph, row_kernel f, int scalar, int64_t cols,
                                          const char *fill, rounding narrow)
{
    int64_t rows = 16, step = scalar ? 1 : cols;
    float *x = test_data(fill, 3, rows, cols), *y = calloc((size_t)(rows * step), sizeof *y);
    struct problem p;
    problem_matrix(&p, graph, rows, cols, x, scalar ? "rows" : "rows,cols");
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = narrow(x[i]);
    run_rows(f, x, rows, cols, step, y);
    double out = (double)count_outside(&p.outputs[0], y) / (double)p.outputs[0].n;
    problem_close(&p);
    free(x);
    free(y);
    return out;
}

static void half_precision_inputs_are_outside(void **state)
{
    static const struct {
        const char *graph;
        const struct named_row *kernels;
        int scalar;
    } cases[] = {{"y = softmax(x, axis=1)", honest_softmax, 0},
                 {"y = log_softmax(x, axis=1)", honest_log_softmax, 0},
                 {"y = logsumexp(x, axis=1)", honest_logsumexp, 1},
                 {"y = sum(x, axis=1)", honest_sum, 1},
                 {"y = mean(x, axis=1)", honest_mean, 1},
                 {"y = norm(x, axis=1)", honest_norm, 1},
                 {"y = var(x, axis=1)", honest_var, 1},
                 {"y = layernorm(x)", honest_layernorm, 0},
                 {"y = cumsum(x, axis=1)", honest_cumsum, 0}};
    static const int64_t sizes[] = {7, 33, 257};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int s = 0; s < 3; s++) {
            double f16 = outside_with_rounded_inputs(cases[c].graph, cases[c].kernels[0].run,
                                                     cases[c].scalar, sizes[s], "normal", to_f16);
            double bf16 = outside_with_rounded_inputs(cases[c].graph, cases[c].kernels[0].run,
                                                      cases[c].scalar, sizes[s], "normal", to_bf16);
            if (f16 < (sizes[s] < 100 ? 0.5 : 0.25) || bf16 < 0.8)
                fail_msg("%s at %ld columns: only %g (fp16), %g (bf16) outside", cases[c].graph,
                         (long)sizes[s], f16, bf16);
        }
}

static void half_precision_points_are_outside(void **state)
{
    static const struct {
        const char *graph;
        const struct named_point *kernels;
    } cases[] = {
        {"y = gelu(x)", honest_gelu},           {"y = gelu(x, approximate=tanh)", honest_gelu_tanh},
        {"y = silu(x)", honest_silu},           {"y = sigmoid(x)", honest_sigmoid},
        {"y = tanh(x)", honest_tanh},           {"y = softplus(x)", honest_softplus},
        {"y = mish(x)", honest_mish},           {"y = exp(x)", honest_exp},
        {"y = hardswish(x)", honest_hardswish}, {"y = x ** 3", honest_cube},
        {"y = 1 / x", honest_inverse}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t n = 1000;
        float *x = test_data("normal", 9, 1, n), *y = calloc((size_t)n, sizeof *y);
        struct problem p;
        problem_matrix(&p, cases[c].graph, 1, n, x, "rows,cols");
        for (int64_t i = 0; i < n; i++) /* a float32 kernel whose result passes through half */
            y[i] = to_f16(cases[c].kernels[0].run(x[i]));
        double out = (double)count_outside(&p.outputs[0], y) / (double)n;
        if (out < 0.5)
            fail_msg("%s: only %g outside", cases[c].graph, out);
        problem_close(&p);
        free(x);
        free(y);
    }
}

static float same(float x)
{
    return x;
}

static void the_difference_of_moments_is_outside(void **state)
{
    static const int64_t sizes[] = {7, 33, 257, 1000, 4097, 65536};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double one = outside_with_rounded_inputs("y = var(x, axis=1)", unstable_var, 1, sizes[s],
                                                 "offset", same);
        double tree = outside_with_rounded_inputs("y = var(x, axis=1)", unstable_var_tree, 1,
                                                  sizes[s], "offset", same);
        if (one < 0.5 || tree < 0.5)
            fail_msg("at %ld columns only %g (loop), %g (tree) outside", (long)sizes[s], one, tree);
    }
}

/* matmul with one-hot rows: exact in float32, wrong with fewer bits however long the sum. */
static void one_hot_rows_probe_products(void **state)
{
    enum { M = 8, K = 3000, N = 16 };
    float *a = test_data("onehot_rows", 2, M, K), *b = test_data("normal", 4, K, N), got[M * N];
    struct problem p;
    (void)state;
    problem_open(&p, "y = matmul(a, b)", RUNG_PRECISION_FP32);
    problem_input(&p, "a", RUNG_F32, "8,3000", a);
    problem_input(&p, "b", RUNG_F32, "3000,16", b);
    problem_output(&p, "y", RUNG_F32, "8,16");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    for (int narrow = 0; narrow < 2; narrow++) {
        for (int i = 0; i < M * N; i++) {
            got[i] = 0;
            for (int k = 0; k < K; k++)
                got[i] += a[i / N * K + k] * (narrow ? to_f16(b[k * N + i % N]) : b[k * N + i % N]);
        }
        int64_t bad = count_outside(&p.outputs[0], got);
        assert_true(narrow ? bad > M * N * 9 / 10 : bad == 0);
    }
    problem_close(&p);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_kernels_are_within),
        cmocka_unit_test(a_softmax_written_out_is_within),
        cmocka_unit_test(sums_are_within),
        cmocka_unit_test(variances_are_within),
        cmocka_unit_test(activations_are_within),
        cmocka_unit_test(half_precision_inputs_are_outside),
        cmocka_unit_test(half_precision_points_are_outside),
        cmocka_unit_test(the_difference_of_moments_is_outside),
        cmocka_unit_test(one_hot_rows_probe_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
