/* The graph language: what parses, what it means, and what is said about mistakes. */
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Value of a constant expression in one output element. */
static double value_of(const char *expression)
{
    char graph[256];
    struct problem p;
    snprintf(graph, sizeof graph, "y = %s", expression);
    problem_open(&p, graph, RUNG_PRECISION_FP64);
    problem_dim(&p, "n", 12);
    problem_f64(&p, "scale", 0.5);
    problem_i64(&p, "count", 3);
    problem_output(&p, "y", RUNG_F64, "1");
    if (problem_evaluate(&p))
        fail_msg("%s: %s", expression, p.error.message);
    double v = p.outputs[0].value[0];
    problem_close(&p);
    return v;
}

static void operators_bind_as_in_python(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"1 + 2 * 3", 7},
                 {"(1 + 2) * 3", 9},
                 {"2 ** 3 ** 2", 512},
                 {"-2 ** 2", -4},
                 {"2 ** -1", 0.5},
                 {"10 - 4 - 3", 3},
                 {"16 / 4 / 2", 2},
                 {"- - 3", 3},
                 {"+3", 3},
                 {"1e3 + .5 + 2.", 1002.5},
                 {"2.5E-1", 0.25},
                 {"n * scale + count", 9},
                 {"123456789012345678", 123456789012345680.0},
                 {"0.1", 0.1},
                 {"1e-5", 1e-5},
                 {"3.141592653589793", M_PI},
                 {"\n exp ( 0 )\t", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (value_of(cases[i].text) != cases[i].value)
            fail_msg("%s is %.17g, not %.17g", cases[i].text, value_of(cases[i].text),
                     cases[i].value);
}

/* check's message for a graph over x[rows, cols] and b[cols] to y[rows, cols]. */
static int32_t check(const char *graph, char *message)
{
    struct problem p;
    problem_open(&p, graph, RUNG_PRECISION_FP32);
    problem_dim(&p, "rows", 6);
    problem_dim(&p, "cols", 4);
    problem_f64(&p, "alpha", 0.25);
    problem_input(&p, "x", RUNG_F32, "rows,cols", NULL);
    problem_input(&p, "b", RUNG_F32, "cols", NULL);
    problem_output(&p, "y", RUNG_F32, "rows,cols");
    int32_t status = problem_check(&p);
    snprintf(message, 1024, "%s", p.error.message);
    problem_close(&p);
    return status;
}

static void good_graphs_pass_the_check(void **state)
{
    static const char *const good[] = {"y = x",
                                       "y = x + b;",
                                       "y = x * alpha",
                                       "y = softmax(x, axis=1)",
                                       "y = softmax(x, dim=-1)",
                                       "y = softmax(x, 1)",
                                       "m = max(x, axis=1, keepdim=1); y = x - m",
                                       "m = max(x, axis=1, keepdim=True); y = x - m",
                                       "y = x - mean(x)",
                                       "y = x - sum(x, axis=[0, 1])",
                                       "y = leaky_relu(x, slope=alpha)",
                                       "y = clamp(x, min=0, max=6)",
                                       "y = clamp(x, max=b)",
                                       "y = gelu(x, approximate=tanh)",
                                       "t = relu(x); t = t + b; y = t",
                                       "y = x / cols",
                                       "y = x + var(x, axis=0, unbiased=0)",
                                       "y = transpose(transpose(x))",
                                       "y = layernorm(x, b, b)",
                                       "y = matmul(x, matmul(x, x, transpose_a=1))",
                                       "y = pow(x, 2)",
                                       "y = x ** 2 + norm(x, p=1)",
                                       "y = sum(x, axis=(0, 1)) + x",
                                       "y = sum(x, axis=(1,), keepdim=1) + x",
                                       "y = layer_norm(x, b)",
                                       "y = leaky_relu(x, negative_slope=alpha)",
                                       "y = reshape(x, (-1, cols))",
                                       "y = reshape(x, (rows, cols / 2 + 2))",
                                       "y = squeeze(conv2d(reshape(x, (1, 1, 6, 4)), "
                                       "reshape(b, (1, 1, 2, 2)), padding=same))",
                                       "y = squeeze(max_pool2d(reshape(x, [1, 1, 6, 4]), "
                                       "kernel_size=3, stride=1, padding=1))",
                                       "y = concat(x)"};
    char message[1024];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (check(good[i], message))
            fail_msg("%s: %s", good[i], message);
}

struct mistake {
    const char *graph, *column, *says;
};

static void refused(const struct mistake *bad, size_t n)
{
    char message[1024];
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(check(bad[i].graph, message), RUNG_ECONFIG);
        support_contains(message, bad[i].column);
        support_contains(message, bad[i].says);
    }
}

static void mistakes_are_named_with_their_column(void **state)
{
    static const struct mistake bad[] = {
        {"y = sofmax(x, axis=1)", "graph:5:", "did you mean 'softmax'"},
        {"y = sofmax(x, axis=1)", "graph:5:", "known: abs,"},
        {"y = x + bb", "graph:9:", "did you mean 'b'"},
        {"y = softmax(x, axs=1)", "graph:16:", "did you mean 'axis'"},
        {"y = softmax(x)", "graph:5:", "axis is missing"},
        {"y = softmax(x, axis=2)", "graph:16:", "2 is outside a tensor of 2 dimensions"},
        {"y = softmax(x, axis=0.5)", "graph:21:", "whole number"},
        {"y = sum(x, axis=[0,0])", "graph:12:", "twice"},
        {"y = sum(x, axis=1)", "graph:1:", "has shape [6], but the task declares [6, 4]"},
        {"y = x + transpose(x)", "graph:7:", "[6, 4] and [4, 6] do not broadcast"},
        {"y = x x", "graph:7:", "expected an operator or ';'"},
        {"y = (x", "graph:7:", "the text ends; expected ')'"},
        {"y x", "graph:3:", "expected '='"},
        {"y = exp(x", "graph:10:", "expected ',' or ')'"},
        {"y = ", "graph:5:", "the text ends"},
        {"", "graph:1:", "the text ends"},
        {"y = 1e", "graph:7:", "exponent"},
        {"y = x @ x", "graph:7:", "unexpected '@'"},
        {"y = x \x01", "graph:7:", "0x01"},
        {"z = x", "graph:", "no statement gives output 'y'"},
        {"x = x; y = x", "graph:1:", "'x' is an input"},
        {"alpha = 1; y = x", "graph:1:", "'alpha' is a parameter"},
        {"rows = 1; y = x", "graph:1:", "'rows' is a dimension"},
        {"y = z; z = x", "graph:5:", "unknown name 'z'"},
        {"y = exp(x, x)", "graph:12:", "at most"},
        {"y = exp(x, x=x)", "graph:12:", "given twice"},
        {"y = gelu(x, approximate=fast)", "graph:13:", "none or tanh"},
        {"y = clamp(x)", "graph:5:", "min, max or both"},
        {"y = x + sum(x, keepdim=2)", "graph:16:", "0 or 1"},
        {"y = x % 2", "graph:7:", "shapes"},
        {"y = [x]", "graph:5:", "list"},
        {"y = matmul(x, x)", "graph:5:", "no matrix product of shapes [6, 4] and [6, 4]"},
        {"y = norm(x, p=3)", "graph:13:", "must be 1 or 2"},
        {"y = 1e999", "graph:", "range"},
        {"y = (x, x)", "graph:6:", "a list is no tensor"},
        {"y = (x, x", "graph:10:", "the text ends; expected ',' or ')'"},
        {"y = x + (b,", "graph:12:", "the text ends"},
        {"y = softmax(x, axis=(0, 1))", "graph:16:", "one dimension"}};
    (void)state;
    refused(bad, sizeof bad / sizeof *bad);
}

static void windows_that_do_not_fit_are_refused(void **state)
{
    static const struct mistake bad[] = {
        {"y = conv2d(x, b)", "graph:12:",
         "conv2d: x has shape [6, 4], but must have 4 dimensions: [batch, channels, height"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), stride=0)",
         "graph:58:", "conv1d: stride must be one number or 1, each from 1 to"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), pad=(1, 2))",
         "graph:58:", "one number or 1"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (3, 2, 4)))",
         "graph:5:", "input [2, 3, 4] has 3 channels, weights [3, 2, 4] are for 2"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), dilation=2)",
         "graph:5:", "wider than the padded input [2, 3, 4]; raise pad"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), groups=2)",
         "graph:5:", "groups=2 must divide"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), pad=same, stride=2)",
         "graph:58:", "same needs stride=1"},
        {"y = conv1d(reshape(x, (2, 3, 4)), reshape(x, (2, 3, 4)), b)",
         "graph:58:", "bias has shape [4], but must be a vector of the 2 channels"},
        {"y = conv_transpose1d(reshape(x, (2, 3, 4)), reshape(x, (3, 2, 4)), pad=9)",
         "graph:68:", "leaves nothing"},
        {"y = conv_transpose1d(reshape(x, (2, 3, 4)), reshape(x, (3, 2, 4)), output_pad=1)",
         "graph:68:", "smaller than stride or dilation"},
        {"y = maxpool1d(reshape(x, (2, 3, 4)), 3, pad=2)", "graph:41:", "half the kernel"},
        {"y = avgpool1d(reshape(x, (2, 3, 4)), 5)", "graph:5:", "a kernel of [5]"},
        {"y = maxpool1d(reshape(x, (2, 3, 4)), kernal=3)", "graph:38:", "did you mean 'kernel'"}};
    (void)state;
    refused(bad, sizeof bad / sizeof *bad);
}

static void other_arguments_that_do_not_fit_are_refused(void **state)
{
    static const struct mistake bad[] = {
        {"y = reshape(x, (5, 5))", "graph:5:", "[6, 4] of 24 elements can't become [5, 5]"},
        {"y = reshape(x, (-1, -1))", "graph:16:", "one of them perhaps -1"},
        {"y = permute(x, (0, 0))", "graph:16:", "every dimension once"},
        {"y = slice(x, axis=0, start=3, end=3)", "graph:5:", "no elements from 3 to 3"},
        {"y = slice(x, axis=0, step=-1)", "graph:22:", "use flip"},
        {"y = narrow(x, 0, 4, 3)", "graph:5:", "3 elements from 4 on of 6"},
        {"y = concat(x, b)", "graph:5:", "[6, 4] and [4] differ beside axis 0"},
        {"y = concat(axis=0)", "graph:5:", "no tensors"},
        {"y = groupnorm(x, groups=3)", "graph:5:", "groups=3 does not divide 4 channels"},
        {"y = batchnorm(x, running_mean=b)", "graph:5:", "or neither"},
        {"y = mse_loss(x, b)", "graph:5:", "input [6, 4] and target [4] must have one shape"},
        {"y = cross_entropy(x, b)", "graph:5:", "target [4] does not fit input [6, 4]"},
        {"y = kl_div(x, x, reduction=average)",
         "graph:18:", "must be mean, batchmean, sum or none"},
        {"y = attention(b, b, b)", "graph:15:", "at least 2 dimensions"},
        {"y = unsqueeze(x, 9)", "graph:18:", "9 is outside a tensor of 3 dimensions"},
        {"y = adaptive_avgpool1d(reshape(x, (2, 3, 4)), 0)", "graph:47:", "from 1 to"},
        {"y = reshape(x, 1, 24)", "graph:19:", "takes 2 arguments at most"}};
    (void)state;
    refused(bad, sizeof bad / sizeof *bad);
}

static void hostile_texts_are_refused(void **state)
{
    static char deep[70000];
    char message[1024];
    (void)state;
    memset(deep, '(', 5000);
    memcpy(deep, "y = ", 4);
    assert_int_equal(check(deep, message), RUNG_ECONFIG);
    support_contains(message, "nested deeper");
    memset(deep, '-', 5000);
    memcpy(deep, "y = ", 4);
    assert_int_equal(check(deep, message), RUNG_ECONFIG);
    for (int i = 4; i < 60000; i += 2)
        memcpy(deep + i, "x+", 2);
    assert_int_equal(check(deep, message), RUNG_ECONFIG);
    support_contains(message, "more than 1024 operations");
    memset(deep, ' ', 69999);
    assert_int_equal(check(deep, message), RUNG_ECONFIG);
    support_contains(message, "longer than");
}

static void shapes_of_the_task_are_expressions(void **state)
{
    struct problem p;
    (void)state;
    problem_open(&p, "y = sum(x, axis=1)", RUNG_PRECISION_FP32);
    problem_dim(&p, "n", 10);
    problem_input(&p, "x", RUNG_F32, "ceil_div(n; 4) * 2 + n % 3 - 1,n", NULL);
    p.tensors[0].shape[0] = "ceil_div(n, 4) * 2 + n % 3 - min(1, n)"; /* 6 */
    problem_output(&p, "y", RUNG_F32, "(n + 2) / 2");
    if (problem_check(&p))
        fail_msg("%s", p.error.message);
    p.tensors[1].shape[0] = "n - 10";
    assert_int_equal(problem_check(&p), RUNG_ECONFIG);
    support_contains(p.error.message, "extent of 0");
    p.tensors[1].shape[0] = "n / 0";
    assert_int_equal(problem_check(&p), RUNG_ECONFIG);
    p.tensors[1].shape[0] = "9000000000000000 * 9000000000000000";
    assert_int_equal(problem_check(&p), RUNG_ECONFIG);
    problem_close(&p);
}

static void work_counts_the_tasks_operations(void **state)
{
    struct problem p;
    struct rung_work work;
    (void)state;
    problem_open(&p, "y = softmax(x, axis=1)", RUNG_PRECISION_FP32);
    problem_dim(&p, "rows", 4096);
    problem_dim(&p, "cols", 65536);
    problem_input(&p, "x", RUNG_F32, "rows,cols", NULL);
    problem_output(&p, "y", RUNG_F32, "rows,cols");
    assert_int_equal(problem_work(&p, &work), RUNG_OK);
    assert_true(work.min_bytes == 2 * 4.0 * 4096 * 65536);
    assert_true(work.flops == 5.0 * 4096 * 65536);
    p.task.graph = "y = matmul(x, matmul(x, x, transpose_a=1))";
    assert_int_equal(problem_work(&p, &work), RUNG_OK);
    assert_true(work.flops == 4.0 * 4096 * 65536 * 65536);
    problem_close(&p);
}

static void a_view_that_does_not_fit_is_refused(void **state)
{
    struct problem p;
    float x[6] = {0};
    (void)state;
    problem_open(&p, "y = x", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "2,3", x);
    problem_output(&p, "y", RUNG_F32, "2,3");
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    p.views[0].data = NULL;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    p.views[0].data = x;
    p.views[0].dtype = RUNG_F64;
    assert_int_equal(problem_evaluate(&p), RUNG_EINVAL);
    problem_close(&p);
}

/* Refused before the machine is out of memory; the shapes alone are no fault. */
static void more_memory_than_the_machine_has_is_refused(void **state)
{
    struct problem p;
    float x[6] = {0};
    (void)state;
    problem_open(&p, "y = sum(adaptive_avgpool2d(x, 1000000))", RUNG_PRECISION_FP32);
    problem_input(&p, "x", RUNG_F32, "1,1,2,3", x);
    problem_output(&p, "y", RUNG_F32, "1");
    assert_int_equal(problem_check(&p), RUNG_OK);
    assert_int_equal(problem_evaluate(&p), RUNG_ENOMEM);
    support_contains(p.error.message, "the evaluation needs more than");
    p.task.graph = "y = sum(x)";
    assert_int_equal(problem_evaluate(&p), RUNG_OK);
    problem_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_in_python),
        cmocka_unit_test(good_graphs_pass_the_check),
        cmocka_unit_test(mistakes_are_named_with_their_column),
        cmocka_unit_test(windows_that_do_not_fit_are_refused),
        cmocka_unit_test(other_arguments_that_do_not_fit_are_refused),
        cmocka_unit_test(hostile_texts_are_refused),
        cmocka_unit_test(shapes_of_the_task_are_expressions),
        cmocka_unit_test(work_counts_the_tasks_operations),
        cmocka_unit_test(a_view_that_does_not_fit_is_refused),
        cmocka_unit_test(more_memory_than_the_machine_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
