/*
 * Normalisations, attention, losses, indices and operators that move elements, against formulas
 * written out here in float64.
 */
#include "problem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void close_to(double got, double want, const char *graph)
{
    if (!(fabs(got - want) <= 1e-11 * (fabs(want) + 1e-2) || got == want ||
          (isnan(got) && isnan(want))))
        fail_msg("%s: %.17g is not %.17g", graph, got, want);
}

static void evaluated(struct problem *p)
{
    if (problem_evaluate(p))
        fail_msg("%s: %s", p->task.graph, p->error.message);
}

/* Opens a problem y = graph over x, ends the test on errors. */
static void solve(struct problem *p, const char *graph, const char *in, const float *x,
                  const char *out)
{
    problem_open(p, graph, RUNG_PRECISION_FP32);
    problem_input(p, "x", RUNG_F32, in, x);
    problem_output(p, "y", RUNG_F32, out);
    evaluated(p);
}

/* ---- normalisations: x [2, 6, 5] ---- */

enum { B = 2, C = 6, S = 5 };

/* Mean and variance of the elements that one element is normalised with. */
static void moments(const float *x, int kind, int b, int c, double *mean, double *var)
{
    double sum = 0, square = 0, n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < B; i++)
            for (int k = 0; k < C; k++)
                for (int s = 0; s < S; s++) {
                    int in = kind == 0   ? i == b && k / 2 == c / 2 /* groupnorm, 3 groups */
                             : kind == 1 ? k == c                   /* batchnorm */
                                         : i == b && k == c;        /* instancenorm */
                    double v = x[(i * C + k) * S + s];
                    if (in && pass == 0) {
                        sum += v;
                        n++;
                    } else if (in) {
                        square += (v - sum / n) * (v - sum / n);
                    }
                }
    }
    *mean = sum / n;
    *var = square / n;
}

static void normalisations_match(void **state)
{
    static const char *const graphs[] = {"y = groupnorm(x, w, b, groups=3, eps=0.001)",
                                         "y = batch_norm(x, w, b, eps=0.001)",
                                         "y = instancenorm(x, w, b, eps=0.001)"};
    float *x = test_normal(1, B * C * S), *w = test_normal(2, C), *bias = test_normal(3, C);
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct problem p;
        problem_open(&p, graphs[kind], RUNG_PRECISION_FP32);
        problem_input(&p, "x", RUNG_F32, "2,6,5", x);
        problem_input(&p, "w", RUNG_F32, "6", w);
        problem_input(&p, "b", RUNG_F32, "6", bias);
        problem_output(&p, "y", RUNG_F32, "2,6,5");
        evaluated(&p);
        for (int i = 0; i < B * C * S; i++) {
            double mean, var;
            int c = i / S % C;
            moments(x, kind, i / S / C, c, &mean, &var);
            close_to(p.outputs[0].value[i], (x[i] - mean) / sqrt(var + 0.001) * w[c] + bias[c],
                     graphs[kind]);
            assert_true(p.outputs[0].bound[i] < 1e-4);
        }
        problem_close(&p);
    }
    free(x);
    free(w);
    free(bias);
}

static void running_statistics_and_rmsnorm(void **state)
{
    float *x = test_normal(1, B * C * S), *mean = test_normal(2, C), var[C];
    struct problem p;
    (void)state;
    for (int c = 0; c < C; c++)
        var[c] = 0.5f + (float)c;
    problem_open(&p, "y = batchnorm(x, running_mean=m, running_var=v); z = rmsnorm(x, axis=-2)",
                 RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "2,6,5", x);
    problem_input(&p, "m", RUNG_F32, "6", mean);
    problem_input(&p, "v", RUNG_F32, "6", var);
    problem_output(&p, "y", RUNG_F32, "2,6,5");
    problem_output(&p, "z", RUNG_F32, "2,6,5");
    evaluated(&p);
    for (int i = 0; i < B * C * S; i++) {
        double squares = 0;
        for (int k = 0; k < C * S; k++)
            squares += (double)x[i / C / S * C * S + k] * x[i / C / S * C * S + k];
        int c = i / S % C;
        double want = ((double)x[i] - mean[c]) / sqrt(var[c] + 1e-5);
        close_to(p.outputs[0].value[i], want, "batchnorm");
        close_to(p.outputs[1].value[i], x[i] / sqrt(squares / (C * S) + 1e-6), "rmsnorm");
    }
    problem_close(&p);
    free(x);
    free(mean);
}

/* ---- attention: q [2, 5, 4], k [2, 7, 4], v [2, 7, 3] ---- */

enum { L = 5, K = 7, D = 4, V = 3 };

static double attended(const float *q, const float *k, const float *v, const float *mask, int kind,
                       double scale, int b, int i, int c)
{
    double s[K], most = -INFINITY, sum = 0, y = 0;
    for (int j = 0; j < K; j++) {
        s[j] = 0;
        for (int d = 0; d < D; d++)
            s[j] += (double)q[(b * L + i) * D + d] * k[(b * K + j) * D + d];
        s[j] = s[j] * scale + (kind == 2 ? mask[i * K + j] : 0);
        if ((kind == 1 && j > i) || (kind == 3 && mask[i * K + j] < 0))
            s[j] = -INFINITY;
        most = fmax(most, s[j]);
    }
    for (int j = 0; j < K; j++)
        sum += exp(s[j] - most);
    for (int j = 0; j < K; j++)
        y += exp(s[j] - most) / sum * v[(b * K + j) * V + c];
    return y;
}

static void attention_matches(void **state)
{
    static const char *const graphs[] = {
        "y = attention(q, k, v)", "y = attention(q, k, v, causal=1, scale=0.3)",
        "y = attention(q, k, v, mask=m)", "y = scaled_dot_product_attention(q, k, v, attn_mask=t)"};
    float *q = test_normal(1, 2 * L * D), *k = test_normal(2, 2 * K * D);
    float *v = test_normal(3, 2 * K * V), *m = test_normal(4, L * K);
    uint8_t truth[L * K];
    (void)state;
    for (int i = 0; i < L * K; i++)
        truth[i] = m[i] >= 0;
    for (int kind = 0; kind < 4; kind++) {
        struct problem p;
        problem_open(&p, graphs[kind], RUNG_PRECISION_FP32);
        problem_input(&p, "q", RUNG_F32, "2,5,4", q);
        problem_input(&p, "k", RUNG_F32, "2,7,4", k);
        problem_input(&p, "v", RUNG_F32, "2,7,3", v);
        problem_input(&p, "m", RUNG_F32, "5,7", m);
        problem_input(&p, "t", RUNG_BOOL, "5,7", truth);
        problem_output(&p, "y", RUNG_F32, "2,5,3");
        evaluated(&p);
        for (int i = 0; i < 2 * L * V; i++) {
            close_to(p.outputs[0].value[i],
                     attended(q, k, v, m, kind, kind == 1 ? 0.3 : 0.5, i / V / L, i / V % L, i % V),
                     graphs[kind]);
            assert_true(p.outputs[0].bound[i] < 1e-4);
        }
        problem_close(&p);
    }
    free(q);
    free(k);
    free(v);
    free(m);
}

/* ---- losses ---- */

static double loss_of(int kind, double x, double t)
{
    double d = x - t, size = fabs(d);
    switch (kind) {
    case 0:
        return d * d;
    case 1:
        return size;
    case 2:
        return size < 0.5 ? d * d / 2 / 0.5 : size - 0.25;
    case 3:
        return size <= 2 ? d * d / 2 : 2 * (size - 1);
    case 4:
        return -(t * fmax(log(x), -100) + (1 - t) * fmax(log(1 - x), -100));
    case 5:
        return t > 0 ? t * (log(t) - x) : 0;
    default:
        return exp(t) * (t - x);
    }
}

static void pointwise_losses_match(void **state)
{
    static const struct {
        const char *call;
        int kind, unit; /* unit: input and target lie in [0, 1] */
    } cases[] = {{"mse_loss(x, t", 0, 0},
                 {"l1_loss(x, t", 1, 0},
                 {"smooth_l1_loss(x, t, beta=0.5", 2, 0},
                 {"smooth_l1(x, t, beta=0.5", 2, 0},
                 {"huber_loss(x, t, delta=2", 3, 0},
                 {"binary_cross_entropy(x, t", 4, 1},
                 {"kl_div(x, t", 5, 1},
                 {"kl_div(x, t, log_target=1", 6, 0}};
    enum { N = 40 };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char graph[400];
        float *x = test_normal(1, N), *t = test_normal(2, N);
        for (int i = 0; i < N && cases[c].unit; i++) {
            x[i] = (float)i / (N - 1);
            t[i] = i % 3 ? fabsf(t[i]) / 4 : 0;
        }
        struct problem p;
        snprintf(graph, sizeof graph, "y = %s, reduction=none); m = %s); s = %s, reduction=sum)",
                 cases[c].call, cases[c].call, cases[c].call);
        problem_open(&p, graph, RUNG_PRECISION_FP32);
        problem_input(&p, "x", RUNG_F32, "8,5", x);
        problem_input(&p, "t", RUNG_F32, "8,5", t);
        problem_output(&p, "y", RUNG_F32, "8,5");
        problem_output(&p, "m", RUNG_F32, "1");
        problem_output(&p, "s", RUNG_F32, "1");
        evaluated(&p);
        double sum = 0;
        for (int i = 0; i < N; i++) {
            double want = loss_of(cases[c].kind, x[i], t[i]);
            close_to(p.outputs[0].value[i], want, graph);
            assert_true(p.outputs[0].bound[i] < 1e-4);
            sum += want;
        }
        close_to(p.outputs[1].value[0], sum / N, graph);
        close_to(p.outputs[2].value[0], sum, graph);
        problem_close(&p);
        free(x);
        free(t);
    }
}

/* x [3, 4, 2]; targets [3, 2] of 4 classes. */
static void class_losses_match(void **state)
{
    static const int64_t target[6] = {0, 3, 2, 2, 1, 0};
    float *x = test_normal(9, 24);
    struct problem p;
    double sum = 0, kept = 0;
    (void)state;
    problem_open(&p,
                 "y = cross_entropy(x, t, reduction=none); m = cross_entropy(x, t); "
                 "n = nll_loss(log_softmax(x, 1), t, ignore_index=2)",
                 RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "3,4,2", x);
    problem_input(&p, "t", RUNG_I64, "3,2", target);
    problem_output(&p, "y", RUNG_F32, "3,2");
    problem_output(&p, "m", RUNG_F32, "1");
    problem_output(&p, "n", RUNG_F32, "1");
    evaluated(&p);
    for (int i = 0; i < 6; i++) {
        double exps = 0;
        for (int c = 0; c < 4; c++)
            exps += exp(x[(i / 2 * 4 + c) * 2 + i % 2]);
        double want = log(exps) - x[(i / 2 * 4 + target[i]) * 2 + i % 2];
        close_to(p.outputs[0].value[i], want, "cross_entropy");
        sum += want;
        kept += target[i] == 2 ? 0 : want;
    }
    close_to(p.outputs[1].value[0], sum / 6, "mean of cross_entropy");
    close_to(p.outputs[2].value[0], kept / 4, "nll_loss with ignored targets");
    if (!(p.outputs[2].bound[0] < 2e-5))
        fail_msg("%g", p.outputs[2].bound[0]);
    problem_close(&p);
    free(x);
}

/* Nothing can be asked where a target names no class. */
static void targets_outside_are_no_constraint(void **state)
{
    static const int64_t target[3] = {1, 2, -7};
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    struct problem p;
    (void)state;
    problem_open(&p, "y = nll_loss(x, t, reduction=none)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "3,2", x);
    problem_input(&p, "t", RUNG_I64, "3", target);
    problem_output(&p, "y", RUNG_F32, "3");
    evaluated(&p);
    assert_true(p.outputs[0].value[0] == -2 && p.outputs[0].bound[0] == 0);
    assert_true(isinf(p.outputs[0].bound[1]) && isinf(p.outputs[0].bound[2]));
    problem_close(&p);
}

/* ---- indices ---- */

static void indices_of_extremes(void **state)
{
    static const float x[] = {1, 5, 5, 2, /**/ -3, -9, 4, -9, /**/ 2, NAN, 7, NAN};
    struct problem p;
    (void)state;
    problem_open(&p, "y = argmax(x, axis=1); z = argmin(x, axis=1, keepdim=1); a = argmax(x)",
                 RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "3,4", x);
    problem_output(&p, "y", RUNG_I64, "3");
    problem_output(&p, "z", RUNG_I32, "3,1");
    problem_output(&p, "a", RUNG_I64, "1");
    evaluated(&p);
    const double *y = p.outputs[0].value, *z = p.outputs[1].value;
    assert_true(y[0] == 1 && y[1] == 2 && y[2] == 1);
    assert_true(z[0] == 0 && z[1] == 1 && z[2] == 1);
    assert_true(p.outputs[2].value[0] == 9);
    for (int i = 0; i < 3; i++)
        assert_true(p.outputs[0].bound[i] == 0 && p.outputs[1].bound[i] == 0);
    problem_close(&p);
}

/* Elements that an honest kernel can't tell apart may swap; others may not. */
static void near_ties_of_computed_elements(void **state)
{
    static const float x[] = {0.1f, 3, 0, 3.0000002f, 1, 2};
    struct problem p;
    (void)state;
    problem_open(&p, "y = argmax(exp(x), axis=0); z = argmax(x, axis=0)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "6", x);
    problem_output(&p, "y", RUNG_I32, "1");
    problem_output(&p, "z", RUNG_I32, "1");
    evaluated(&p);
    assert_true(p.outputs[0].value[0] == 3 && p.outputs[0].bound[0] == 2);
    assert_true(p.outputs[1].value[0] == 3 && p.outputs[1].bound[0] == 0);
    problem_close(&p);
}

/* ---- movement: x [3, 4] holds 0 .. 11 ---- */

static void moves_match(void **state)
{
    static const struct {
        const char *graph, *out;
        double y[16];
    } cases[] = {
        {"y = transpose(x)", "4,3", {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
        {"y = permute(x, (1, 0))", "4,3", {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
        {"y = reshape(x, (2, -1))", "2,6", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = flatten(x)", "12", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = flip(x, axis=1)", "3,4", {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}},
        {"y = flip(x, axis=(0, 1))", "3,4", {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
        {"y = slice(x, axis=1, start=1, end=-1)", "3,2", {1, 2, 5, 6, 9, 10}},
        {"y = slice(x, axis=1, start=-3, end=9, step=2)", "3,2", {1, 3, 5, 7, 9, 11}},
        {"y = narrow(x, 0, 1, 2)", "2,4", {4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = select(x, 0, -1)", "4", {8, 9, 10, 11}},
        {"y = select(x, axis=1, index=2)", "3", {2, 6, 10}},
        {"y = concat(select(x, 0, 1), select(x, 0, 0), axis=0)", "8", {4, 5, 6, 7, 0, 1, 2, 3}},
        {"y = cat([narrow(x, 1, 3, 1), narrow(x, 1, 0, 2)], dim=1)",
         "3,3",
         {3, 0, 1, 7, 4, 5, 11, 8, 9}},
        {"y = tril(x)", "3,4", {0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 0}},
        {"y = triu(x, diagonal=1)", "3,4", {0, 1, 2, 3, 0, 0, 6, 7, 0, 0, 0, 11}},
        {"y = unsqueeze(x, 1)", "3,1,4", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = squeeze(unsqueeze(x, -1))", "3,4", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = where(x, x, -1)", "3,4", {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {"y = where(gt(x, 4), 1, where(eq(x, 4), 0, -1))",
         "3,4",
         {-1, -1, -1, -1, 0, 1, 1, 1, 1, 1, 1, 1}},
        {"y = le(x, 2) + ge(x, 10) + lt(x, 1) - ne(x, 5)",
         "3,4",
         {1, 0, 0, -1, -1, 0, -1, -1, -1, -1, 0, 0}},
        {"y = matmul(select(x, 0, 0), transpose(x))", "3", {14, 38, 62}},
        {"y = matmul(x, select(x, 0, 0))", "3", {14, 38, 62}},
        {"y = cumprod(x, axis=0)", "3,4", {0, 1, 2, 3, 0, 5, 12, 21, 0, 45, 120, 231}},
    };
    float x[12];
    (void)state;
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct problem p;
        solve(&p, cases[c].graph, "3,4", x, cases[c].out);
        for (uint64_t i = 0; i < p.outputs[0].n; i++)
            close_to(p.outputs[0].value[i], cases[c].y[i], cases[c].graph);
        problem_close(&p);
    }
}

/* ---- points ---- */

static double ref_rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double ref_square(double x)
{
    return x * x;
}
static double ref_inverse(double x)
{
    return 1 / x;
}
static double ref_sign(double x)
{
    return (x > 0) - (x < 0);
}
static double ref_relu6(double x)
{
    return fmin(fmax(x, 0), 6);
}
static double ref_elu(double x)
{
    return x > 0 ? x : 1.5 * expm1(x);
}
static double ref_selu(double x)
{
    return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * expm1(x));
}
static double ref_hardsigmoid(double x)
{
    return x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5;
}
static double ref_hardtanh(double x)
{
    return x < -0.5 ? -0.5 : x > 1 ? 1 : x;
}
static double ref_softsign(double x)
{
    return x / (1 + fabs(x));
}
static double ref_logsigmoid(double x)
{
    return -log1p(exp(-x));
}

static void points_match(void **state)
{
    static const struct {
        const char *graph;
        double (*f)(double);
    } cases[] = {{"y = rsqrt(x)", ref_rsqrt},
                 {"y = square(x)", ref_square},
                 {"y = reciprocal(x)", ref_inverse},
                 {"y = log2(x)", log2},
                 {"y = log1p(x)", log1p},
                 {"y = exp2(x)", exp2},
                 {"y = expm1(x)", expm1},
                 {"y = floor(x)", floor},
                 {"y = ceil(x)", ceil},
                 {"y = round(x)", rint},
                 {"y = sign(x)", ref_sign},
                 {"y = relu6(x)", ref_relu6},
                 {"y = elu(x, alpha=1.5)", ref_elu},
                 {"y = selu(x)", ref_selu},
                 {"y = hardsigmoid(x)", ref_hardsigmoid},
                 {"y = hardtanh(x, min=-0.5)", ref_hardtanh},
                 {"y = softsign(x)", ref_softsign},
                 {"y = logsigmoid(x)", ref_logsigmoid}};
    enum { N = 500 };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float *x = test_normal(5, N);
        struct problem p;
        for (int i = 0; i < N; i++)
            x[i] *= 4;
        x[0] = 0;
        x[1] = INFINITY;
        x[2] = NAN;
        x[3] = 2.5f;
        x[4] = 1e-20f;
        solve(&p, cases[c].graph, "500", x, "500");
        for (int i = 0; i < N; i++) {
            double want = cases[c].f(x[i]);
            if (c == 16 && isinf(x[i]))
                want = NAN; /* inf / inf */
            close_to(p.outputs[0].value[i], isnan(x[i]) ? NAN : want, cases[c].graph);
            if (!isfinite(want))
                assert_true(p.outputs[0].bound[i] == 0);
            else if (fabs(want) < 1e3 && !(p.outputs[0].bound[i] <= 1e-2))
                fail_msg("%s(%g): +- %g", cases[c].graph, x[i], p.outputs[0].bound[i]);
        }
        problem_close(&p);
        free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisations_match), cmocka_unit_test(running_statistics_and_rmsnorm),
        cmocka_unit_test(attention_matches),    cmocka_unit_test(pointwise_losses_match),
        cmocka_unit_test(class_losses_match),   cmocka_unit_test(targets_outside_are_no_constraint),
        cmocka_unit_test(indices_of_extremes),  cmocka_unit_test(near_ties_of_computed_elements),
        cmocka_unit_test(moves_match),          cmocka_unit_test(points_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
