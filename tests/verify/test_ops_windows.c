/*
 * Convolutions, transposed convolutions and pooling against loops written out here: each output
 * element visits every tap and asks whether it lies inside.
 */
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3 }; /* spatial dimensions; lower ranks have extents of 1 */

struct window {
    int64_t in[N], kernel[N], stride[N], pad[N], dilation[N], more[N], out[N];
};

static int64_t volume(const int64_t *x)
{
    return x[0] * x[1] * x[2];
}

static void unfold(int64_t i, const int64_t *extents, int64_t *at)
{
    for (int d = N; d-- > 0; i /= extents[d])
        at[d] = i % extents[d];
}

static int64_t fold(const int64_t *at, const int64_t *extents)
{
    return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
}

static int inside(const int64_t *at, const int64_t *extents)
{
    for (int d = 0; d < N; d++)
        if (at[d] < 0 || at[d] >= extents[d])
            return 0;
    return 1;
}

/* "(1, 2, 3)" of the last `rank` entries. */
static const char *tuple(int rank, const int64_t *x, char *text)
{
    char *at = text;
    for (int d = N - rank; d < N; d++)
        at += sprintf(at, "%s%ld", d == N - rank ? "(" : ", ", (long)x[d]);
    sprintf(at, rank == 1 ? ",)" : ")");
    return text;
}

static const char *shape(int rank, int64_t a, int64_t b, const int64_t *x, char *text)
{
    char *at = text + sprintf(text, "%ld,%ld", (long)a, (long)b);
    for (int d = N - rank; d < N; d++)
        at += sprintf(at, ",%ld", (long)x[d]);
    return text;
}

static void same(double got, double want, double scale, const char *graph)
{
    if (!(fabs(got - want) <= 1e-12 * (scale + fabs(want)) || got == want ||
          (isnan(got) && isnan(want))))
        fail_msg("%s: %.17g is not %.17g", graph, got, want);
}

/* ---- convolutions ---- */

struct conv {
    int rank, transposed;
    int64_t batch, channels, out_channels, groups;
    struct window w;
};

/* One output element by definition. */
static double conv_element(const struct conv *c, const float *x, const float *w, int64_t n,
                           int64_t o, int64_t flat)
{
    int64_t at[N], k[N], pos[N], in_group = c->channels / c->groups;
    int64_t out_group = c->out_channels / c->groups, group = o / out_group;
    double sum = 0;
    unfold(flat, c->w.out, at);
    for (int64_t i = 0; i < in_group; i++)
        for (int64_t t = 0; t < volume(c->w.kernel); t++) {
            int64_t channel = group * in_group + i, good = 1;
            unfold(t, c->w.kernel, k);
            for (int d = 0; d < N; d++) {
                int64_t reach = k[d] * c->w.dilation[d];
                pos[d] = c->transposed ? at[d] + c->w.pad[d] - reach
                                       : at[d] * c->w.stride[d] - c->w.pad[d] + reach;
                good = good && (!c->transposed || pos[d] % c->w.stride[d] == 0);
                pos[d] = c->transposed ? pos[d] / c->w.stride[d] : pos[d];
                good = good && pos[d] >= 0;
            }
            if (!good || !inside(pos, c->w.in))
                continue;
            int64_t of = c->transposed ? channel * out_group + o % out_group : o * in_group + i;
            sum += (double)x[(n * c->channels + channel) * volume(c->w.in) + fold(pos, c->w.in)] *
                   w[of * volume(c->w.kernel) + t];
        }
    return sum;
}

static void run_conv(struct conv *c)
{
    char graph[400], a[64], b[64], d[64], e[64], text[3][64];
    for (int i = 0; i < N; i++) {
        int64_t reach = c->w.dilation[i] * (c->w.kernel[i] - 1) + 1;
        c->w.out[i] = c->transposed ? (c->w.in[i] - 1) * c->w.stride[i] - 2 * c->w.pad[i] + reach +
                                          c->w.more[i]
                                    : (c->w.in[i] + 2 * c->w.pad[i] - reach) / c->w.stride[i] + 1;
    }
    int at =
        sprintf(graph, "y = conv%s%dd(x, w, b, stride=%s, pad=%s, dilation=%s, groups=%ld",
                c->transposed ? "_transpose" : "", c->rank, tuple(c->rank, c->w.stride, a),
                tuple(c->rank, c->w.pad, b), tuple(c->rank, c->w.dilation, d), (long)c->groups);
    if (c->transposed)
        at += sprintf(graph + at, ", output_pad=%s", tuple(c->rank, c->w.more, e));
    sprintf(graph + at, ")");
    int64_t rows = c->transposed ? c->channels : c->out_channels;
    int64_t cols = (c->transposed ? c->out_channels : c->channels) / c->groups;
    float *x = test_normal(1, c->batch * c->channels * volume(c->w.in));
    float *w = test_normal(2, rows * cols * volume(c->w.kernel));
    float *bias = test_normal(3, c->out_channels);
    struct problem p;
    problem_open(&p, graph, RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, shape(c->rank, c->batch, c->channels, c->w.in, text[0]), x);
    problem_input(&p, "w", RUNG_F32, shape(c->rank, rows, cols, c->w.kernel, text[1]), w);
    sprintf(a, "%ld", (long)c->out_channels);
    problem_input(&p, "b", RUNG_F32, a, bias);
    problem_output(&p, "y", RUNG_F32, shape(c->rank, c->batch, c->out_channels, c->w.out, text[2]));
    if (problem_evaluate(&p))
        fail_msg("%s: %s", graph, p.error.message);
    int64_t space = volume(c->w.out);
    for (int64_t i = 0; i < c->batch * c->out_channels * space; i++) {
        int64_t o = i / space % c->out_channels;
        double want = conv_element(c, x, w, i / space / c->out_channels, o, i % space) + bias[o];
        same(p.outputs[0].value[i], want, 10, graph);
        if (!(p.outputs[0].bound[i] >= 0 && p.outputs[0].bound[i] < 1e-2))
            fail_msg("%s: [%ld] +- %g", graph, (long)i, p.outputs[0].bound[i]);
    }
    problem_close(&p);
    free(x);
    free(w);
    free(bias);
}

static const struct conv convs[] = {
    /* rank, transposed, batch, channels, out, groups, {in, kernel, stride, pad, dilation, more} */
    {1, 0, 2, 3, 4, 1, {{1, 1, 17}, {1, 1, 5}, {1, 1, 2}, {0, 0, 3}, {1, 1, 1}, {0}, {0}}},
    {1, 0, 1, 4, 4, 4, {{1, 1, 9}, {1, 1, 2}, {1, 1, 5}, {0, 0, 0}, {1, 1, 1}, {0}, {0}}},
    {2, 0, 2, 6, 4, 2, {{1, 7, 8}, {1, 3, 2}, {1, 1, 2}, {0, 0, 1}, {1, 2, 3}, {0}, {0}}},
    {2, 0, 3, 1, 1, 1, {{1, 5, 5}, {1, 5, 5}, {1, 1, 1}, {0, 4, 0}, {1, 1, 1}, {0}, {0}}},
    {2, 0, 2, 8, 8, 8, {{1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {0}, {0}}},
    {2, 0, 1, 3, 13, 1, {{1, 30, 31}, {1, 11, 11}, {1, 4, 4}, {0, 2, 2}, {1, 1, 1}, {0}, {0}}},
    {2, 0, 1, 2, 2, 1, {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 4, 4}, {1, 1, 1}, {0}, {0}}},
    {3, 0, 1, 2, 3, 1, {{5, 6, 7}, {3, 2, 3}, {2, 1, 3}, {1, 0, 1}, {1, 3, 2}, {0}, {0}}},
    {1, 1, 2, 3, 4, 1, {{1, 1, 7}, {1, 1, 5}, {1, 1, 3}, {0, 0, 2}, {1, 1, 1}, {0, 0, 1}, {0}}},
    {2, 1, 2, 4, 6, 2, {{1, 4, 5}, {1, 3, 4}, {1, 2, 1}, {0, 1, 0}, {1, 2, 3}, {0, 1, 2}, {0}}},
    {2, 1, 1, 2, 2, 1, {{1, 3, 3}, {1, 2, 2}, {1, 4, 3}, {0, 0, 0}, {1, 1, 1}, {0, 2, 0}, {0}}},
    {2, 1, 1, 3, 3, 3, {{1, 4, 4}, {1, 3, 3}, {1, 1, 1}, {0, 2, 2}, {1, 1, 1}, {0}, {0}}},
    {3, 1, 1, 3, 2, 1, {{2, 3, 4}, {3, 3, 2}, {2, 3, 1}, {1, 1, 0}, {1, 1, 1}, {1, 2, 0}, {0}}},
};

static void convolutions_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        struct conv c = convs[i];
        run_conv(&c);
    }
}

/* An even kernel needs one element more after than before. */
static void same_padding_keeps_the_shape(void **state)
{
    static const float x[] = {1, 2, 3, 4, 5}, w[] = {1, 10, 100, 1000};
    struct problem p;
    (void)state;
    problem_open(&p, "y = conv1d(x, w, pad=same)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "1,1,5", x);
    problem_input(&p, "w", RUNG_F32, "1,1,4", w);
    problem_output(&p, "y", RUNG_F32, "1,1,5");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    static const double want[] = {3210, 4321, 5432, 543, 54};
    for (int i = 0; i < 5; i++)
        assert_true(p.outputs[0].value[i] == want[i]);
    problem_close(&p);
}

/* ---- pooling ---- */

struct pool {
    int rank, kind; /* 0 maximum, 1 mean with padding, 2 mean without */
    int ceil_mode;
    struct window w;
};

static double pool_element(const struct pool *c, const float *x, const int64_t *at)
{
    int64_t k[N], pos[N], count = 0, padded = 1;
    double sum = 0, most = -INFINITY;
    for (int64_t t = 0; t < volume(c->w.kernel); t++) {
        unfold(t, c->w.kernel, k);
        for (int d = 0; d < N; d++)
            pos[d] = at[d] * c->w.stride[d] - c->w.pad[d] + k[d] * c->w.dilation[d];
        if (!inside(pos, c->w.in))
            continue;
        sum += x[fold(pos, c->w.in)];
        most = fmax(most, x[fold(pos, c->w.in)]);
        count++;
    }
    for (int d = 0; d < N; d++) {
        int64_t start = at[d] * c->w.stride[d] - c->w.pad[d];
        int64_t end = start + c->w.kernel[d], limit = c->w.in[d] + c->w.pad[d];
        padded *= (end < limit ? end : limit) - start;
    }
    return c->kind == 0 ? most : sum / (double)(c->kind == 1 ? padded : count);
}

static void run_pool(struct pool *c)
{
    char graph[400], a[64], b[64], d[64], e[64], text[2][64];
    for (int i = 0; i < N; i++) {
        int64_t room = c->w.in[i] + 2 * c->w.pad[i] - c->w.dilation[i] * (c->w.kernel[i] - 1) - 1;
        c->w.out[i] = (room + (c->ceil_mode ? c->w.stride[i] - 1 : 0)) / c->w.stride[i] + 1;
        if (c->ceil_mode && (c->w.out[i] - 1) * c->w.stride[i] >= c->w.in[i] + c->w.pad[i])
            c->w.out[i]--;
    }
    int at = sprintf(graph, "y = %spool%dd(x, kernel=%s, stride=%s, pad=%s, ceil_mode=%d",
                     c->kind ? "avg" : "max", c->rank, tuple(c->rank, c->w.kernel, a),
                     tuple(c->rank, c->w.stride, b), tuple(c->rank, c->w.pad, d), c->ceil_mode);
    if (c->kind == 0)
        sprintf(graph + at, ", dilation=%s)", tuple(c->rank, c->w.dilation, e));
    else
        sprintf(graph + at, ", count_include_pad=%d)", c->kind == 1);
    float *x = test_normal(4, 6 * volume(c->w.in));
    struct problem p;
    problem_open(&p, graph, RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, shape(c->rank, 2, 3, c->w.in, text[0]), x);
    problem_output(&p, "y", RUNG_F32, shape(c->rank, 2, 3, c->w.out, text[1]));
    if (problem_evaluate(&p))
        fail_msg("%s: %s", graph, p.error.message);
    for (int64_t i = 0; i < 6 * volume(c->w.out); i++) {
        int64_t pos[N];
        unfold(i % volume(c->w.out), c->w.out, pos);
        same(p.outputs[0].value[i],
             pool_element(c, x + i / volume(c->w.out) * volume(c->w.in), pos), 1, graph);
        if (c->kind == 0)
            assert_true(p.outputs[0].bound[i] == 0);
    }
    problem_close(&p);
    free(x);
}

static void pools_match(void **state)
{
    static const struct pool pools[] = {
        {1, 0, 0, {{1, 1, 12}, {1, 1, 3}, {1, 1, 2}, {0, 0, 1}, {1, 1, 2}, {0}, {0}}},
        {2, 0, 0, {{1, 9, 8}, {1, 3, 3}, {1, 2, 2}, {0, 0, 1}, {1, 1, 1}, {0}, {0}}},
        {2, 0, 1, {{1, 10, 7}, {1, 3, 2}, {1, 3, 2}, {0, 1, 0}, {1, 1, 3}, {0}, {0}}},
        {2, 0, 0, {{1, 9, 9}, {1, 2, 2}, {1, 5, 4}, {0, 0, 0}, {1, 1, 1}, {0}, {0}}},
        {3, 0, 1, {{5, 6, 7}, {2, 3, 2}, {2, 2, 3}, {1, 1, 0}, {1, 1, 1}, {0}, {0}}},
        {1, 1, 0, {{1, 1, 12}, {1, 1, 4}, {1, 1, 3}, {0, 0, 2}, {1, 1, 1}, {0}, {0}}},
        {2, 1, 1, {{1, 9, 8}, {1, 3, 4}, {1, 2, 3}, {0, 1, 2}, {1, 1, 1}, {0}, {0}}},
        {2, 2, 1, {{1, 9, 8}, {1, 3, 4}, {1, 2, 3}, {0, 1, 2}, {1, 1, 1}, {0}, {0}}},
        {3, 2, 0, {{4, 5, 6}, {2, 2, 3}, {1, 2, 2}, {1, 0, 1}, {1, 1, 1}, {0}, {0}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        struct pool c = pools[i];
        run_pool(&c);
    }
}

/* Windows from floor(i in/out) to ceil((i + 1) in/out). */
static void adaptive_pools_match(void **state)
{
    enum { IN = 11 };
    char graph[96], out[32];
    (void)state;
    for (int size = 1; size <= 14; size++)
        for (int kind = 0; kind < 2; kind++) {
            float *x = test_normal(6, 2 * IN);
            struct problem p;
            sprintf(graph, "y = adaptive_%spool1d(x, %d)", kind ? "avg" : "max", size);
            sprintf(out, "1,2,%d", size);
            problem_open(&p, graph, RUNG_PRECISION_FP32);
            problem_input(&p, "x", RUNG_F32, "1,2,11", x);
            problem_output(&p, "y", RUNG_F32, out);
            assert_int_equal(problem_evaluate(&p), RUNG_OK);
            for (int i = 0; i < 2 * size; i++) {
                int from = i % size * IN / size, to = ((i % size + 1) * IN + size - 1) / size;
                double sum = 0, most = -INFINITY;
                for (int k = from; k < to; k++) {
                    sum += x[i / size * IN + k];
                    most = fmax(most, x[i / size * IN + k]);
                }
                same(p.outputs[0].value[i], kind ? sum / (to - from) : most, 1, graph);
            }
            problem_close(&p);
            free(x);
        }
}

/* A NaN reaches the outputs whose windows hold it, and no others. */
static void nan_stays_in_its_windows(void **state)
{
    static const char *const graphs[] = {"y = maxpool1d(x, 3, stride=1, pad=1)",
                                         "y = avgpool1d(x, 3, stride=1, pad=1)",
                                         "y = conv1d(x, w, pad=1)"};
    static const float x[] = {1, 2, NAN, 4, 5, 6}, w[] = {1, 2, 3};
    (void)state;
    for (int g = 0; g < 3; g++) {
        struct problem p;
        problem_open(&p, graphs[g], RUNG_PRECISION_FP32);
        problem_input(&p, "x", RUNG_F32, "1,1,6", x);
        problem_input(&p, "w", RUNG_F32, "1,1,3", w);
        problem_output(&p, "y", RUNG_F32, "1,1,6");
        assert_int_equal(problem_evaluate(&p), RUNG_OK);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(isnan(p.outputs[0].value[i]), i >= 1 && i <= 3);
            assert_true(isfinite(p.outputs[0].bound[i]));
        }
        problem_close(&p);
    }
}

/* A window of padding only, as dilation can make it: the maximum of nothing. */
static void empty_windows(void **state)
{
    static const float x[] = {1, 2};
    struct problem p;
    (void)state;
    problem_open(&p, "y = maxpool1d(x, 2, stride=1, pad=1, dilation=3)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "1,1,2", x);
    problem_output(&p, "y", RUNG_F32, "1,1,1");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_true(p.outputs[0].value[0] == -INFINITY && p.outputs[0].bound[0] == 0);
    problem_close(&p);
}

static void work_of_a_fused_convolution(void **state)
{
    struct problem p;
    struct rung_work work;
    (void)state;
    problem_open(&p, "y = maxpool2d(relu(conv2d(x, w, b, stride=4, pad=2)), kernel=3, stride=2)",
                 RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "100,3,224,224", NULL);
    problem_input(&p, "w", RUNG_F32, "96,3,11,11", NULL);
    problem_input(&p, "b", RUNG_F32, "96", NULL);
    problem_output(&p, "y", RUNG_F32, "100,96,27,27");
    if (problem_work(&p, &work))
        fail_msg("%s", p.error.message);
    double conv = 100.0 * 96 * 55 * 55, pool = 100.0 * 96 * 27 * 27;
    assert_true(work.flops == conv * 2 * 3 * 121 + 2 * conv + 9 * pool);
    assert_true(work.min_bytes == 4 * (100.0 * 3 * 224 * 224 + 96 * 3 * 121 + 96 + pool));
    p.task.graph = "t = conv_transpose2d(x, w2, stride=2); y = sum(t)";
    p.task.n_tensors = 0;
    p.n_outputs = 0;
    problem_input(&p, "x", RUNG_F32, "2,3,5,7", NULL);
    problem_input(&p, "w2", RUNG_F32, "3,4,3,3", NULL);
    problem_output(&p, "y", RUNG_F32, "1");
    assert_int_equal(problem_work(&p, &work), RUNG_OK);
    assert_true(work.flops == 2.0 * 2 * 3 * 5 * 7 * 4 * 9 + 2 * 4 * 11 * 15);
    problem_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_match),
        cmocka_unit_test(same_padding_keeps_the_shape),
        cmocka_unit_test(pools_match),
        cmocka_unit_test(adaptive_pools_match),
        cmocka_unit_test(nan_stays_in_its_windows),
        cmocka_unit_test(empty_windows),
        cmocka_unit_test(work_of_a_fused_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
