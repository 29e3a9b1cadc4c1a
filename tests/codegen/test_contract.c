/* Codegen "cuda": the contract, and that its example keeps it. */
#include "codegen/compile_case.h"
#include "task/plan.h"
#include <rung/codegen.h>
#include <stdio.h>
#include <stdlib.h>

static struct harness h;

static int setup(void **state)
{
    (void)state;
    return harness_open(&h, RUNG_KIND_CODEGEN, "cuda", "{}", true) != RUNG_OK;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

static struct rung_text contract_of(const struct rung_task *task)
{
    struct rung_text text = {NULL, 0};
    int32_t status;
    harness_reset(&h);
    RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, contract, &h.call, task, &text);
    if (status != RUNG_OK)
        fail_msg("%s", h.error.message);
    assert_int_equal(strlen(text.ptr), text.len);
    return text;
}

static void the_task_is_in_it(void **state)
{
    (void)state;
    struct rung_text text = contract_of(harness_task());
    assert_null(strstr(text.ptr, "{{"));
    support_contains(text.ptr, "- `x`: `const float *`, input, shape [rows, cols]");
    support_contains(text.ptr, "- `y`: `float *`, output, shape [rows, cols]");
    support_contains(text.ptr, "`scale` (double or float, 1)");
    support_contains(text.ptr, "y = softmax(x * scale, axis=1)");
    support_contains(text.ptr, "rows = 64, cols = 1000");
    support_contains(text.ptr, "every value of the dims");
    support_contains(text.ptr, "Precision fp32");
    struct rung_task fixed = *harness_task();
    fixed.shape_rule = RUNG_SHAPES_FIXED;
    fixed.precision = RUNG_PRECISION_BF16;
    fixed.graph = NULL;
    text = contract_of(&fixed);
    support_contains(text.ptr, "specialising to them is allowed");
    support_contains(text.ptr, "Precision bf16");
    struct rung_tensor_spec padded[2] = {harness_task()->tensors[0], harness_task()->tensors[1]};
    padded[1].stride[0] = "cols + 3";
    padded[1].stride[1] = "1";
    fixed.tensors = padded;
    text = contract_of(&fixed);
    support_contains(text.ptr, "input, shape [rows, cols], row-major");
    support_contains(text.ptr, "output, shape [rows, cols], strides [cols + 3, 1] elements");
}

/* The task that the contract's example is about. */
static const struct rung_task *dot_task(void)
{
    static struct rung_tensor_spec tensors[3];
    static const struct rung_dim dims[] = {{.struct_size = sizeof(dims[0]),
                                            .name = "n",
                                            .value = 1000,
                                            .min = 1,
                                            .max = INT64_MAX,
                                            .multiple_of = 1}};
    static const int64_t sizes[] = {1000};
    static const struct rung_shape_case bench[] = {
        {.struct_size = sizeof(bench[0]), .dims = sizes, .weight = 1}};
    static struct rung_task task;
    const char *names[] = {"a", "b", "out"};
    for (int i = 0; i < 3; i++) {
        tensors[i] = harness_task()->tensors[i == 2];
        tensors[i].name = names[i];
        tensors[i].n_dims = 1;
        tensors[i].shape[0] = i < 2 ? "n" : "1";
    }
    task = *harness_task();
    task.n_dims = 1;
    task.dims = dims;
    task.n_params = 0;
    task.n_tensors = 3;
    task.tensors = tensors;
    task.bench = bench;
    return &task;
}

static void its_example_is_a_good_candidate(void **state)
{
    (void)state;
    struct rung_text text = contract_of(dot_task());
    struct rung_reply_result r = {.struct_size = sizeof(r)};
    int32_t status;
    const char *example = strstr(text.ptr, "```cuda");
    assert_non_null(example);
    struct rung_reply_request req = {
        .struct_size = sizeof(req), .task = dot_task(), .reply = {example, strlen(example)}};
    RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, read_reply, &h.call, &req, &r);
    assert_int_equal(status, RUNG_OK);
    if (r.code[0])
        fail_msg("%s: %s", r.code, r.message.ptr);
    assert_int_equal(r.plan->n_steps, 2);
    struct harness compiler;
    compile_open(&compiler, "{}");
    struct rung_point point = rung_plan_default_point(r.plan);
    uint32_t n;
    const char *problem = NULL;
    const char *const *expressions =
        rung_plan_expressions(h.arena, r.plan, dot_task(), &point, &n, &problem);
    assert_non_null(expressions);
    struct rung_compile_result c = compile_files(&compiler, r.bundle->files, r.bundle->n_files,
                                                 expressions, n, "compute_90", RUNG_FORMAT_PTX, 1);
    if (c.code[0])
        fail_msg("%s", c.log.ptr);
    harness_close(&compiler);
}

static void wrong_templates_are_refused(void **state)
{
    (void)state;
    struct harness other;
    char *folder = support_folder();
    char *path = support_path(folder, "contract.md");
    char options[512];
    snprintf(options, sizeof(options), "{\"contract\": \"%s\"}", path);
    assert_int_equal(harness_open(&other, RUNG_KIND_CODEGEN, "cuda", options, true), RUNG_ECONFIG);
    support_contains(other.error.message, path);
    harness_close(&other);
    support_write_text(path, "line\n{{tensor}}\n");
    assert_int_equal(harness_open(&other, RUNG_KIND_CODEGEN, "cuda", options, true), RUNG_ECONFIG);
    support_contains(other.error.message, "contract.md:2: unknown placeholder");
    harness_close(&other);
    support_write_text(path, "{{graph}}");
    assert_int_equal(harness_open(&other, RUNG_KIND_CODEGEN, "cuda", options, true), RUNG_OK);
    harness_close(&other);
    free(path);
    support_remove(folder);
}

int main(int argc, char **argv)
{
    HARNESS_HELPER(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_task_is_in_it),
        cmocka_unit_test(wrong_templates_are_refused),
        cmocka_unit_test(its_example_is_a_good_candidate),
    };
    return cmocka_run_group_tests_name("contract", tests, setup, teardown);
}
