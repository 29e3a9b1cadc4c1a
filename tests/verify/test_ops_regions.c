/*
 * Evaluation of boxes: for every operator, random boxes of the output have the bits that a whole
 * evaluation has there; and boxes of huge outputs cost little.
 */
#include "problem.h"

#include "base/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sample {
    const char *graph, *x, *w, *y; /* shapes; w and its vector of y's channels may be unused */
};

static const struct sample samples[] = {
    {"y = gelu(x) * w + exp(x - 1)", "5,6,7", "6,1", "5,6,7"},
    {"y = x + w", "1,4,1,7", "3,1,5,1", "3,4,5,7"},
    {"y = clamp(leaky_relu(x), max=w)", "4,5", "5", "4,5"},
    {"y = where(gt(x, 0), x, w)", "4,5", "4,1", "4,5"},
    {"y = sum(x, axis=1)", "5,6,7", "1", "5,7"},
    {"y = mean(x, axis=(0, 2), keepdim=1)", "5,6,7", "1", "1,6,1"},
    {"y = max(x, axis=0) - min(x, axis=0)", "5,6,7", "1", "6,7"},
    {"y = var(x, axis=-1)", "5,6,7", "1", "5,6"},
    {"y = norm(x, axis=2) + logsumexp(x, axis=2)", "5,6,7", "1", "5,6"},
    {"y = prod(x, axis=1)", "5,6,7", "1", "5,7"},
    {"y = argmax(x, axis=1) + argmin(x, axis=1)", "5,6,7", "1", "5,7"},
    {"y = argmax(exp(x), axis=2)", "5,6,7", "1", "5,6"},
    {"y = softmax(x, axis=1)", "5,6,7", "1", "5,6,7"},
    {"y = log_softmax(x, axis=2)", "5,6,7", "1", "5,6,7"},
    {"y = cumsum(x, axis=0) + cumprod(x, axis=1)", "5,6,7", "1", "5,6,7"},
    {"y = matmul(x, w)", "250,430", "430,210", "250,210"},
    {"y = matmul(exp(x), w, transpose_b=1)", "3,20,30", "25,30", "3,20,25"},
    {"y = matmul(x, w, transpose_a=1)", "30,20", "2,4,30,25", "2,4,20,25"},
    {"y = bmm(x, w)", "5,6,7", "5,7,4", "5,6,4"},
    {"y = matmul(x, w)", "5,6,7", "7", "5,6"},
    {"y = matmul(w, x)", "5,6,7", "6", "5,7"},
    {"y = transpose(x, 0, 2)", "5,6,7", "1", "7,6,5"},
    {"y = permute(x, (2, 0, 1))", "5,6,7", "1", "7,5,6"},
    {"y = reshape(x, (6, 5, 7))", "5,6,7", "1", "6,5,7"},
    {"y = flatten(x, 1)", "5,6,7", "1", "5,42"},
    {"y = slice(x, 1, 1, 6, 2)", "5,6,7", "1", "5,3,7"},
    {"y = flip(x, axis=(0, 1))", "5,6,7", "1", "5,6,7"},
    {"y = narrow(x, 2, 3, 4) + select(x, 2, 0) * 0 + 1", "4,4,7", "1", "4,4,4"},
    {"y = concat(x, w, x * 2, axis=1)", "3,4,5", "3,2,5", "3,10,5"},
    {"y = tril(x, -1) + triu(x, 2)", "3,8,9", "1", "3,8,9"},
    {"y = unsqueeze(squeeze(x), 0)", "5,1,7", "1", "1,5,7"},
    {"y = layernorm(x, w)", "5,6,7", "7", "5,6,7"},
    {"y = rmsnorm(x, w, axis=1)", "5,6,7", "6,7", "5,6,7"},
    {"y = groupnorm(x, w, w, groups=3)", "4,6,7", "6", "4,6,7"},
    {"y = batchnorm(x, w, w)", "4,6,7", "6", "4,6,7"},
    {"y = batchnorm(x, running_mean=w, running_var=w)", "4,6,7", "6", "4,6,7"},
    {"y = instancenorm(x, w, w)", "4,6,7,3", "6", "4,6,7,3"},
    {"y = attention(x, w, w, causal=1)", "2,9,4", "2,7,4", "2,9,4"},
    {"y = mse_loss(x, w, reduction=none) + huber_loss(x, w, reduction=none)", "5,6", "5,6", "5,6"},
    {"y = nll_loss(x, argmax(w, axis=1), reduction=none)", "5,6,7", "5,6,7", "5,7"},
    {"y = cross_entropy(x, softmax(w, 1), reduction=none)", "5,6,7", "5,6,7", "5,7"},
    {"y = conv1d(x, w, stride=2, pad=3, dilation=2)", "3,4,30", "5,4,4", "3,5,15"},
    {"y = conv2d(x, w, w1, pad=1, groups=2)", "2,6,9,8", "4,3,3,3", "2,4,9,8"},
    {"y = conv2d(x, w, pad=4)", "1,2,3,3", "2,2,1,1", "1,2,11,11"},
    {"y = conv2d(x, w, pad=1, groups=6)", "2,6,9,30", "6,1,3,3", "2,6,9,30"},
    {"y = conv3d(x, w, stride=(1, 2, 1), pad=(0, 1, 2))", "2,3,5,6,7", "4,3,2,3,3", "2,4,4,3,9"},
    {"y = conv_transpose1d(x, w, stride=3, pad=2, output_pad=1)", "3,4,9", "4,5,4", "3,5,25"},
    {"y = conv_transpose2d(x, w, stride=2, pad=1, groups=2, dilation=2)", "2,6,5,6", "6,2,3,3",
     "2,4,11,13"},
    {"y = conv_transpose3d(x, w, stride=(2, 1, 3))", "1,2,3,4,3", "2,3,3,2,2", "1,3,7,5,8"},
    {"y = conv_transpose2d(x, w, stride=4)", "1,2,3,3", "2,2,2,2", "1,2,10,10"},
    {"y = maxpool2d(relu(conv2d(x, w, w1, stride=2, pad=2)), 3, stride=2)", "2,3,30,31", "7,3,5,5",
     "2,7,7,7"},
    {"y = maxpool1d(x, 3, stride=2, pad=1, dilation=2)", "3,4,30", "1", "3,4,14"},
    {"y = avgpool3d(x, 2, pad=1, ceil_mode=1)", "2,3,4,5,6", "1", "2,3,3,3,4"},
    {"y = adaptive_avgpool2d(x, (3, 5))", "2,3,7,8", "1", "2,3,3,5"},
    {"y = adaptive_maxpool1d(x, 11)", "2,3,7", "1", "2,3,11"},
    {"t = softmax(matmul(x, w), axis=1); y = layernorm(t) + x", "20,20", "20,20", "20,20"},
};

static int64_t elements(const char *shape)
{
    int64_t n = 1;
    for (const char *at = shape; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        n *= strtoll(at, NULL, 10);
    return n;
}

/* Random numbers; in every third place one that float32 would have flushed, NaN or infinity in a
 * few. */
static float *data_of(uint64_t seed, const char *shape)
{
    int64_t n = elements(shape);
    float *x = test_normal(seed, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = i % 3 == 1 ? (i % 2 ? 0 : 1e-40f) : x[i];
    if (n > 20) {
        x[n / 2] = NAN;
        x[n / 3] = INFINITY;
    }
    return x;
}

static void random_box(struct problem *p, uint32_t output, uint64_t seed)
{
    struct rung_region *r = &p->regions[output];
    uint32_t words[4];
    *r = (struct rung_region){.struct_size = sizeof *r, .n_dims = p->views[output].n_dims};
    for (uint32_t d = 0; d < r->n_dims; d++) {
        int64_t extent = p->views[output].dims[d];
        rung_philox4(seed, d, 0, words);
        r->start[d] = words[0] % extent;
        r->count[d] = 1 + words[1] % (extent - r->start[d]);
    }
}

/* Offset in the whole output of element i of the box. */
static uint64_t place(const struct problem *p, uint32_t output, uint64_t i)
{
    const struct rung_region *r = &p->regions[output];
    uint64_t at = 0, stride = 1;
    for (uint32_t d = r->n_dims; d-- > 0; i /= (uint64_t)r->count[d]) {
        at += (uint64_t)(r->start[d] + (int64_t)(i % (uint64_t)r->count[d])) * stride;
        stride *= (uint64_t)p->views[output].dims[d];
    }
    return at;
}

static void open_sample(struct problem *p, const struct sample *s, float *data[3])
{
    char channels[16] = "1";
    const char *second = strchr(s->y, ',');
    snprintf(channels, sizeof channels, "%lld", second ? strtoll(second + 1, NULL, 10) : 1);
    data[0] = data_of(1, s->x);
    data[1] = data_of(2, s->w);
    data[2] = data_of(3, channels);
    problem_open(p, s->graph, RUNG_PRECISION_FP32);
    problem_input(p, "x", RUNG_F32, s->x, data[0]);
    problem_input(p, "w", RUNG_F32, s->w, data[1]);
    problem_input(p, "w1", RUNG_F32, channels, data[2]);
    problem_output(p, "y", RUNG_F32, s->y);
    if (problem_evaluate(p))
        fail_msg("%s: %s", s->graph, p->error.message);
}

static void compare(const struct problem *p, const double *value, const double *bound)
{
    const struct rung_reference_output *o = &p->outputs[0];
    uint64_t n = 1;
    for (uint32_t d = 0; d < p->regions[3].n_dims; d++)
        n *= (uint64_t)p->regions[3].count[d];
    assert_int_equal(o->n, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = place(p, 3, i);
        int same_value = !memcmp(&o->value[i], &value[at], sizeof *value) ||
                         (isnan(o->value[i]) && isnan(value[at]));
        if (!same_value || memcmp(&o->bound[i], &bound[at], sizeof *bound))
            fail_msg("%s: [%lu] of a box is %.17g +- %g, of the whole %.17g +- %g", p->task.graph,
                     (unsigned long)at, o->value[i], o->bound[i], value[at], bound[at]);
    }
}

static void boxes_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        struct problem p;
        float *data[3];
        open_sample(&p, &samples[s], data);
        uint64_t bytes = p.outputs[0].n * sizeof(double);
        double *value = malloc(bytes), *bound = malloc(bytes);
        memcpy(value, p.outputs[0].value, bytes);
        memcpy(bound, p.outputs[0].bound, bytes);
        p.with_regions = 1;
        for (uint64_t trial = 0; trial < (p.outputs[0].n > 10000 ? 8 : 40); trial++) {
            random_box(&p, 3, 1000 * s + trial);
            if (problem_evaluate(&p))
                fail_msg("%s: %s", samples[s].graph, p.error.message);
            compare(&p, value, bound);
        }
        problem_close(&p);
        free(value);
        free(bound);
        for (int i = 0; i < 3; i++)
            free(data[i]);
    }
}

/* Two outputs of one graph: each its box, or nothing. */
static void outputs_can_be_left_out(void **state)
{
    float *x = test_normal(1, 20);
    struct problem p;
    (void)state;
    problem_open(&p, "y = exp(x); z = y * 2; s = sum(x)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "4,5", x);
    problem_output(&p, "y", RUNG_F32, "4,5");
    problem_output(&p, "z", RUNG_F32, "4,5");
    problem_output(&p, "s", RUNG_F32, "1");
    p.with_regions = 1;
    p.regions[1] = (struct rung_region){.struct_size = sizeof p.regions[1], .skip = 1};
    p.regions[2] = (struct rung_region){
        .struct_size = sizeof p.regions[2], .n_dims = 2, .start = {2, 1}, .count = {1, 2}};
    p.regions[3] =
        (struct rung_region){.struct_size = sizeof p.regions[3], .n_dims = 1, .count = {1}};
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_int_equal(p.outputs[0].n, 0);
    assert_int_equal(p.outputs[1].n, 2);
    assert_int_equal(p.outputs[2].n, 1);
    assert_true(p.outputs[1].value[1] == 2 * exp(x[12]));
    p.regions[2].start[0] = 4;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    support_contains(p.error.message, "region of 'z'");
    p.regions[2].start[0] = INT64_MAX;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    p.regions[2].start[0] = 0;
    p.regions[2].count[0] = 0;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    p.regions[2].count[0] = 1;
    p.regions[2].n_dims = 1;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    problem_close(&p);
    free(x);
}

/* A few rows of 2^34 multiply-adds, a tile of a convolution that would take minutes. */
static void boxes_of_huge_outputs_cost_little(void **state)
{
    struct problem p;
    clock_t start = clock();
    (void)state;
    float *x = calloc(2048 * 2048, sizeof *x), *w = calloc(256 * 64 * 9, sizeof *w);
    problem_open(&p, "y = softmax(matmul(matmul(x, x), x), axis=1)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "2048,2048", x);
    problem_output(&p, "y", RUNG_F32, "2048,2048");
    p.with_regions = 1;
    p.regions[1] = (struct rung_region){
        .struct_size = sizeof p.regions[1], .n_dims = 2, .start = {1000, 7}, .count = {1, 100}};
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_int_equal(p.outputs[0].n, 100);
    problem_close(&p);
    problem_open(&p, "y = conv2d(relu(conv2d(x, w, pad=1)), w2, pad=1)", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "16,64,64,64", x);
    problem_input(&p, "w", RUNG_F32, "64,64,3,3", w);
    problem_input(&p, "w2", RUNG_F32, "256,64,3,3", w);
    problem_output(&p, "y", RUNG_F32, "16,256,64,64");
    p.with_regions = 1;
    p.regions[3] = (struct rung_region){.struct_size = sizeof p.regions[3],
                                        .n_dims = 4,
                                        .start = {15, 200, 60, 60},
                                        .count = {1, 4, 4, 4}};
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    assert_int_equal(p.outputs[0].n, 64);
    problem_close(&p);
    free(x);
    free(w);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds > 10)
        fail_msg("%g s", seconds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_have_the_bits_of_the_whole),
        cmocka_unit_test(outputs_can_be_left_out),
        cmocka_unit_test(boxes_of_huge_outputs_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
