/*
 * Every operator on the device against the host's evaluation: the same formulas, so that values
 * agree within a thousandth of the bound and bounds to six digits, whatever the order of sums. On
 * the ptx interpreter, which reports every access outside a buffer.
 */
#include "session/gpu/rig.h"

#include "problem.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rig rig;
static struct rung_instance *reference;

/* One graph over inputs a, b, c, d of some dtypes, giving y0, y1, ... of one shape. */
struct sample {
    const char *graph;
    const char *shapes[4]; /* of a, b, c, d */
    const char *out;
    uint32_t precision; /* 0: fp32 */
    uint32_t in, to;    /* dtypes; 0: f32 */
    double scale;       /* of the inputs; 0: 1 */
};

static const struct sample samples[] = {
    {.graph = "y0 = abs(a); "
              "y1 = sign(a); "
              "y2 = floor(a); "
              "y3 = ceil(a); "
              "y4 = round(a); "
              "y5 = exp(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = exp2(a); "
              "y1 = expm1(a); "
              "y2 = log(a); "
              "y3 = log2(a); "
              "y4 = log1p(a); "
              "y5 = sqrt(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = rsqrt(a); "
              "y1 = square(a); "
              "y2 = reciprocal(a); "
              "y3 = sin(a); "
              "y4 = cos(a); "
              "y5 = erf(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = tanh(a); "
              "y1 = relu(a); "
              "y2 = relu6(a); "
              "y3 = sigmoid(a); "
              "y4 = logsigmoid(a); "
              "y5 = silu(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = softplus(a); "
              "y1 = softsign(a); "
              "y2 = mish(a); "
              "y3 = selu(a); "
              "y4 = hardswish(a); "
              "y5 = hardsigmoid(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = leaky_relu(a); "
              "y1 = elu(a); "
              "y2 = hardtanh(a); "
              "y3 = gelu(a); "
              "y4 = -exp(a); "
              "y5 = exp(a) + sin(a)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = 1 / log(a); "
              "y1 = gelu(a, approximate=tanh)",
     .shapes = {"3,37"},
     .out = "3,37"},
    {.graph = "y0 = a + b; "
              "y1 = a - b; "
              "y2 = a * b; "
              "y3 = a / b; "
              "y4 = abs(a) ** b; "
              "y5 = a ** 3 + b",
     .shapes = {"3,1,9", "5,1"},
     .out = "3,5,9"},
    {.graph = "y0 = maximum(a, b); "
              "y1 = minimum(a, b); "
              "y2 = gt(a, b); "
              "y3 = ge(a, b); "
              "y4 = lt(a, b); "
              "y5 = le(a, b)",
     .shapes = {"3,1,9", "5,1"},
     .out = "3,5,9"},
    {.graph = "y0 = eq(a, b); "
              "y1 = ne(a, b); "
              "y2 = gt(exp(a), exp(b)); "
              "y3 = where(gt(a, b), a, b); "
              "y4 = clamp(a + b, min=-1, max=0.5); "
              "y5 = leaky_relu(a, slope=b)",
     .shapes = {"3,1,9", "5,1"},
     .out = "3,5,9"},
    {.graph = "y0 = sum(a, axis=1); "
              "y1 = mean(a, axis=1); "
              "y2 = max(a, axis=1); "
              "y3 = min(a, axis=1); "
              "y4 = prod(a, axis=1); "
              "y5 = var(a, axis=1)",
     .shapes = {"5,77"},
     .out = "5"},
    {.graph = "y0 = var(a, axis=1, unbiased=0); "
              "y1 = norm(a, axis=1); "
              "y2 = norm(a, axis=1, p=1); "
              "y3 = logsumexp(a, axis=1); "
              "y4 = argmax(a, axis=1); "
              "y5 = argmin(a, axis=1)",
     .shapes = {"5,77"},
     .out = "5"},
    {.graph = "y0 = argmax(exp(a), axis=1); "
              "y1 = sum(exp(a), axis=1); "
              "y2 = max(exp(a), axis=1)",
     .shapes = {"5,77"},
     .out = "5"},
    {.graph = "y0 = sum(a, axis=1); "
              "y1 = mean(exp(a), axis=1); "
              "y2 = max(a, axis=1); "
              "y3 = var(exp(a), axis=1); "
              "y4 = logsumexp(a, axis=1); "
              "y5 = argmin(a, axis=1)",
     .shapes = {"4,21,6"},
     .out = "4,6"},
    {.graph = "y0 = softmax(a, axis=1); "
              "y1 = softmax(a, axis=0); "
              "y2 = log_softmax(a, axis=1); "
              "y3 = softmax(exp(a), axis=1); "
              "y4 = cumsum(a, axis=1); "
              "y5 = cumsum(a, axis=0)",
     .shapes = {"3,77"},
     .out = "3,77"},
    {.graph = "y0 = cumsum(exp(a), axis=1); "
              "y1 = cumprod(a, axis=1); "
              "y2 = cumprod(exp(a), axis=0)",
     .shapes = {"3,77"},
     .out = "3,77"},
    {.graph = "y0 = exp(a)", .shapes = {"3,37"}, .out = "3,37", .scale = 60},
    {.graph = "y0 = sin(a) + tanh(a) + sigmoid(a)",
     .shapes = {"3,37"},
     .out = "3,37",
     .scale = 1e5},
    {.graph = "y0 = log(a * 1e-30) + sqrt(a)", .shapes = {"3,37"}, .out = "3,37", .scale = 1e-38},
    {.graph = "y0 = sum(a, axis=(0, 2))", .shapes = {"4,21,6"}, .out = "21"},
    {.graph = "y0 = mean(a)", .shapes = {"9,5000"}, .out = "1"},
    {.graph = "y0 = sum(a) + max(a) + norm(a)", .shapes = {"70000"}, .out = "1"},
    {.graph = "y0 = argmax(a)", .shapes = {"3,333"}, .out = "1"},
    {.graph = "y0 = softmax(a, axis=1)", .shapes = {"2,1500"}, .out = "2,1500", .scale = 20},
    {.graph = "y0 = matmul(a, b)", .shapes = {"70,37", "37,131"}, .out = "70,131"},
    {.graph = "y0 = matmul(exp(a), b)", .shapes = {"5,19", "19,66"}, .out = "5,66"},
    {.graph = "y0 = matmul(a, b, transpose_a=1, transpose_b=1)",
     .shapes = {"9,5", "7,9"},
     .out = "5,7"},
    {.graph = "y0 = bmm(a, b)", .shapes = {"3,5,7", "3,7,9"}, .out = "3,5,9"},
    {.graph = "y0 = matmul(a, b)", .shapes = {"3,5,7", "7,9"}, .out = "3,5,9"},
    {.graph = "y0 = matmul(a, b)", .shapes = {"7", "7,9"}, .out = "9"},
    {.graph = "y0 = matmul(relu(a), b) + c", .shapes = {"8,40", "40,6", "6"}, .out = "8,6"},
    {.graph = "y0 = attention(a, b, c)", .shapes = {"2,9,8", "2,11,8", "2,11,5"}, .out = "2,9,5"},
    {.graph = "y0 = attention(a, b, c, causal=1)",
     .shapes = {"2,9,8", "2,9,8", "2,9,5"},
     .out = "2,9,5"},
    {.graph = "y0 = attention(a, b, c, mask=d)",
     .shapes = {"2,9,8", "2,11,8", "2,11,5", "9,11"},
     .out = "2,9,5"},
    {.graph = "y0 = conv1d(a, b)", .shapes = {"2,3,17", "5,3,4"}, .out = "2,5,14"},
    {.graph = "y0 = conv2d(a, b, c, stride=2, pad=1)",
     .shapes = {"2,3,9,8", "5,3,3,3", "5"},
     .out = "2,5,5,4"},
    {.graph = "y0 = conv2d(exp(a), b, groups=2, dilation=2, pad=(2, 1))",
     .shapes = {"2,4,9,8", "6,2,3,3"},
     .out = "2,6,9,6"},
    {.graph = "y0 = conv3d(a, b)", .shapes = {"1,2,4,5,6", "3,2,2,3,2"}, .out = "1,3,3,3,5"},
    {.graph = "y0 = conv_transpose1d(a, b, stride=3, pad=1, output_pad=1)",
     .shapes = {"2,3,6", "3,4,4"},
     .out = "2,4,18"},
    {.graph = "y0 = conv_transpose2d(a, b, c, stride=2, pad=1)",
     .shapes = {"2,4,5,6", "4,3,3,3", "3"},
     .out = "2,3,9,11"},
    {.graph = "y0 = conv_transpose2d(a, b, stride=3, groups=2)",
     .shapes = {"1,4,3,3", "4,3,2,2"},
     .out = "1,6,8,8"},
    {.graph = "y0 = conv_transpose3d(a, b, stride=2)",
     .shapes = {"1,2,3,3,2", "2,3,2,3,2"},
     .out = "1,3,6,7,4"},
    {.graph = "y0 = maxpool1d(a, kernel=3)", .shapes = {"2,3,20"}, .out = "2,3,6"},
    {.graph = "y0 = maxpool2d(a, kernel=3, stride=2, pad=1); "
              "y1 = avgpool2d(a, kernel=3, stride=2, pad=1); "
              "y2 = avgpool2d(exp(a), kernel=3, stride=2, pad=1, count_include_pad=0)",
     .shapes = {"2,3,9,8"},
     .out = "2,3,5,4"},
    {.graph = "y0 = maxpool3d(exp(a), kernel=2, dilation=2, stride=1)",
     .shapes = {"1,2,5,4,5"},
     .out = "1,2,3,2,3"},
    {.graph = "y0 = avgpool1d(a, kernel=2)", .shapes = {"2,3,9"}, .out = "2,3,4"},
    {.graph = "y0 = adaptive_avgpool2d(a, (1, 3))", .shapes = {"2,3,9,8"}, .out = "2,3,1,3"},
    {.graph = "y0 = adaptive_maxpool2d(a, (4, 3))", .shapes = {"2,3,9,8"}, .out = "2,3,4,3"},
    {.graph = "y0 = layernorm(a, b, c)", .shapes = {"5,77", "77", "77"}, .out = "5,77"},
    {.graph = "y0 = layernorm(a, axis=1)", .shapes = {"3,7,11"}, .out = "3,7,11", .scale = 100},
    {.graph = "y0 = rmsnorm(a, b)", .shapes = {"5,77", "77"}, .out = "5,77"},
    {.graph = "y0 = groupnorm(a, b, c, groups=2)",
     .shapes = {"2,4,5,3", "4", "4"},
     .out = "2,4,5,3"},
    {.graph = "y0 = batchnorm(a, b, c)", .shapes = {"3,4,5,3", "4", "4"}, .out = "3,4,5,3"},
    {.graph = "y0 = batchnorm(a, running_mean=b, running_var=abs(c))",
     .shapes = {"3,4,5", "4", "4"},
     .out = "3,4,5"},
    {.graph = "y0 = instancenorm(a)", .shapes = {"3,4,50"}, .out = "3,4,50"},
    {.graph = "y0 = mse_loss(a, b); "
              "y1 = l1_loss(a, b, reduction=sum); "
              "y2 = smooth_l1_loss(a, b, beta=0.5); "
              "y3 = binary_cross_entropy(sigmoid(a), sigmoid(b)); "
              "y4 = kl_div(log_softmax(a, 1), softmax(b, 1), reduction=batchmean); "
              "y5 = kl_div(a, b, log_target=1)",
     .shapes = {"9,7", "9,7"},
     .out = "1"},
    {.graph = "y0 = huber_loss(a, b, reduction=none)", .shapes = {"9,7", "9,7"}, .out = "9,7"},
    {.graph = "y0 = cross_entropy(a, softmax(b, 1)); "
              "y1 = cross_entropy(a, argmax(b, 1), ignore_index=2)",
     .shapes = {"9,7", "9,7"},
     .out = "1"},
    {.graph = "y0 = nll_loss(a, argmax(b, 1), reduction=none)",
     .shapes = {"9,7", "9,7"},
     .out = "9"},
    {.graph = "y0 = transpose(a)", .shapes = {"5,40,33"}, .out = "5,33,40"},
    {.graph = "y0 = permute(exp(a), (2, 0, 1))", .shapes = {"5,4,3"}, .out = "3,5,4"},
    {.graph = "y0 = reshape(exp(a), (6, -1))", .shapes = {"5,4,3"}, .out = "6,10"},
    {.graph = "y0 = unsqueeze(squeeze(flatten(a, 1)), 0)", .shapes = {"5,4,3"}, .out = "1,5,12"},
    {.graph = "y0 = concat(a, exp(b), a, axis=1)", .shapes = {"5,4,3", "5,2,3"}, .out = "5,10,3"},
    {.graph = "y0 = slice(exp(a), 1, start=3, end=30, step=4)", .shapes = {"5,40"}, .out = "5,7"},
    {.graph = "y0 = narrow(a, 0, 2, 2) + select(a, 0, 1)", .shapes = {"5,40"}, .out = "2,40"},
    {.graph = "y0 = flip(a, (0, 1))", .shapes = {"5,7"}, .out = "5,7"},
    {.graph = "y0 = tril(exp(a), diagonal=1) + triu(a)", .shapes = {"2,5,7"}, .out = "2,5,7"},
    {.graph = "h = relu(conv2d(a, b, c, stride=2, pad=1)); "
              "y0 = maxpool2d(h, kernel=2)",
     .shapes = {"2,3,11,11", "4,3,3,3", "4"},
     .out = "2,4,3,3"},
    {.graph = "y0 = matmul(a, b)",
     .shapes = {"9,40", "40,11"},
     .out = "9,11",
     .precision = RUNG_PRECISION_FP16,
     .in = RUNG_F16,
     .to = RUNG_F16},
    {.graph = "y0 = softmax(a, axis=1)",
     .shapes = {"3,50"},
     .out = "3,50",
     .precision = RUNG_PRECISION_BF16,
     .in = RUNG_BF16,
     .to = RUNG_BF16},
    {.graph = "y0 = layernorm(a)",
     .shapes = {"3,50"},
     .out = "3,50",
     .precision = RUNG_PRECISION_FP16,
     .in = RUNG_F16,
     .to = RUNG_F32},
    {.graph = "y0 = matmul(a, b)",
     .shapes = {"9,40", "40,11"},
     .out = "9,11",
     .precision = RUNG_PRECISION_TF32},
    {.graph = "y0 = a * b + a",
     .shapes = {"9,40", "40"},
     .out = "9,40",
     .precision = RUNG_PRECISION_EXACT,
     .in = RUNG_I32,
     .to = RUNG_I32,
     .scale = 1e5},
    {.graph = "y0 = a * b",
     .shapes = {"9,40", "40"},
     .out = "9,40",
     .precision = RUNG_PRECISION_EXACT,
     .in = RUNG_I64,
     .to = RUNG_I64,
     .scale = 1e5},
    {.graph = "y0 = a + b",
     .shapes = {"9,40", "40"},
     .out = "9,40",
     .precision = RUNG_PRECISION_EXACT,
     .in = RUNG_I8,
     .to = RUNG_U8,
     .scale = 50},
    {.graph = "y0 = where(a, b, 2)",
     .shapes = {"9,40", "40"},
     .out = "9,40",
     .precision = RUNG_PRECISION_EXACT,
     .in = RUNG_BOOL,
     .to = RUNG_BOOL},
    {.graph = "y0 = a * 3", .shapes = {"9,40"}, .out = "9,40", .in = RUNG_F64, .to = RUNG_F32},
};

enum { N_SAMPLES = sizeof samples / sizeof *samples, MOST = 1 << 17, MOST_OUTPUTS = 6 };
static uint8_t inputs[4][MOST * 8];

static uint64_t count_of(const char *shape)
{
    uint64_t n = 1;
    for (const char *p = shape; *p; p += strcspn(p, ","), p += *p == ',')
        n *= strtoull(p, NULL, 10);
    return n;
}

/* Normal numbers; where `special` is set, some of float32 ones are what kernels trip over. */
static void draw(const struct sample *s, uint32_t i, uint32_t dtype, int special)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN,    0,     -0.0f,
                                     3e38f,    -3e38f,    1e-40f, 1e-20f};
    uint64_t n = count_of(s->shapes[i]);
    struct rung_fill fill = {
        .struct_size = sizeof fill, .tensor = i, .kind = "normal", .scale = s->scale};
    assert_true(n <= MOST);
    assert_int_equal(rung_fill_draw(&fill, dtype, 7, 0, n, 1, inputs[i]), RUNG_OK);
    for (uint64_t k = 0; special && dtype == RUNG_F32 && i < 2 && k < n; k += 11 + 4 * i)
        memcpy(inputs[i] + 4 * k, &specials[(k / 3 + i) % 9], 4);
}

static void open_sample(const struct sample *s, struct problem *p, int special)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const outputs[] = {"y0", "y1", "y2", "y3", "y4", "y5"};
    uint32_t in = s->in ? s->in : RUNG_F32, to = s->to ? s->to : RUNG_F32;
    problem_open(p, s->graph, s->precision ? s->precision : RUNG_PRECISION_FP32);
    for (uint32_t i = 0; i < 4 && s->shapes[i]; i++) {
        draw(s, i, in, special);
        problem_input(p, names[i], in, s->shapes[i], inputs[i]);
    }
    for (uint32_t i = 0; i < MOST_OUTPUTS && strstr(s->graph, outputs[i]); i++)
        problem_output(p, outputs[i], to, s->out);
}

static int agrees(double value, double bound, double want, double allowed)
{
    if (isinf(allowed) || isinf(bound))
        return isinf(allowed) && isinf(bound);
    if (isnan(want) || isinf(want))
        return (isnan(value) && isnan(want)) || value == want;
    return fabs(value - want) <= 1e-3 * allowed && fabs(bound - allowed) <= 1e-6 * allowed;
}

static void check_output(const struct sample *s, const struct rung_reference_output *want,
                         const struct rung_reference_device_output *got, int special)
{
    double *value = malloc(want->n * 8), *bound = malloc(want->n * 8);
    assert_int_equal(got->n, want->n);
    assert_int_equal(got->tensor, want->tensor);
    rig_read(&rig, got->value, value, want->n * 8);
    rig_read(&rig, got->bound, bound, want->n * 8);
    for (uint64_t i = 0; i < want->n; i++)
        if (!agrees(value[i], bound[i], want->value[i], want->bound[i]))
            fail_msg("%s%s: tensor %u [%llu] is %.17g within %.9g on the device, %.17g within %.9g "
                     "on the host",
                     s->graph, special ? " (special values)" : "", want->tensor,
                     (unsigned long long)i, value[i], bound[i], want->value[i], want->bound[i]);
    free(value);
    free(bound);
    rig_free(&rig, got->value);
    rig_free(&rig, got->bound);
}

/* Host and device on the same inputs. */
static void check_sample(const struct sample *s, int special)
{
    struct problem p;
    struct rung_buffer *buffers[8] = {NULL};
    struct rung_tensor_view views[8];
    struct rung_reference_device_output out[MOST_OUTPUTS];
    int32_t status;
    open_sample(s, &p, special);
    if (problem_evaluate(&p))
        fail_msg("%s: %s", s->graph, p.error.message);
    memcpy(views, p.views, sizeof views);
    const struct rung_device_ops *ops = rig.device->ops;
    for (uint32_t i = 0; i < p.task.n_tensors && p.views[i].data; i++) {
        buffers[i] = rig_buffer(&rig, p.views[i].data,
                                count_of(s->shapes[i]) * rung_dtype_bits(p.views[i].dtype) / 8);
        views[i].data = (const void *)(uintptr_t)ops->address(rig.device->self, buffers[i]);
    }
    const struct rung_reference_request request = {.struct_size = sizeof request,
                                                   .n_inputs = p.task.n_tensors - p.n_outputs,
                                                   .task = &p.task,
                                                   .dims = p.values,
                                                   .tensors = views};
    RUNG_INVOKE(status, reference, struct rung_reference_ops, evaluate_device, &rig.call, &request,
                out, p.n_outputs);
    if (status)
        fail_msg("%s: %s", s->graph, rig.error.message);
    for (uint32_t i = 0; i < p.n_outputs; i++)
        check_output(s, &p.outputs[i], &out[i], special);
    for (uint32_t i = 0; i < 8; i++)
        rig_free(&rig, buffers[i]); /* NULL is fine */
    problem_close(&p);
}

/* RUNG_TEST_PART, "2/12": the third twelfth of the graphs only, for processes side by side. */
static void every_operator_agrees(void **state)
{
    (void)state;
    const char *part = getenv("RUNG_TEST_PART");
    unsigned first = 0, parts = 1;
    if (part && (sscanf(part, "%u/%u", &first, &parts) != 2 || !parts))
        fail_msg("RUNG_TEST_PART is \"%s\"", part);
    for (uint32_t i = first; i < N_SAMPLES; i += parts)
        for (int special = 0; special < 2; special++)
            check_sample(&samples[i], special);
}

static int close_rig(void **state)
{
    (void)state;
    rung_instance_free(reference);
    rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_agrees)};
    if (!rig_open(&rig))
        return 77;
    reference = rig_make(&rig, RUNG_KIND_REFERENCE, "ops", "{}");
    return cmocka_run_group_tests(tests, NULL, close_rig);
}
