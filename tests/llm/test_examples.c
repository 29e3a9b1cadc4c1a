/* examples_catalog: kernels for prompts, for tasks that the catalog serves and for others. */
#include "harness.h"

#include <rung/examples.h>
#include <stdio.h>
#include <string.h>

static struct model model;

static int open_examples(void **state)
{
    (void)state;
    return model_open_kind(&model, RUNG_KIND_EXAMPLES, "catalog", "{}");
}

static int close_examples(void **state)
{
    (void)state;
    model_close(&model);
    return 0;
}

static const struct rung_dim dims[] = {
    {.struct_size = sizeof *dims, .name = "rows", .value = 8, .min = 1, .max = INT64_MAX},
    {.struct_size = sizeof *dims, .name = "cols", .value = 9, .min = 1, .max = INT64_MAX},
};

/* Of x, in the tasks from here on; NULL: dense. */
static const char *row_stride;

/* Examples for a task of one input and one output of rows by cols. */
static uint32_t examples(const char *graph, uint32_t dtype, uint32_t max,
                         const struct rung_example **out)
{
    struct rung_tensor_spec tensors[2] = {
        {.struct_size = sizeof *tensors, .role = RUNG_ROLE_INPUT, .name = "logits"},
        {.struct_size = sizeof *tensors, .role = RUNG_ROLE_OUTPUT, .name = "p"},
    };
    for (int i = 0; i < 2; ++i) {
        tensors[i].dtype = dtype;
        tensors[i].n_dims = 2;
        tensors[i].shape[0] = "rows";
        tensors[i].shape[1] = "cols";
        tensors[i].alignment = 256;
    }
    tensors[0].stride[0] = row_stride;
    tensors[0].stride[1] = row_stride ? "1" : NULL;
    const struct rung_task task = {.struct_size = sizeof task,
                                   .n_dims = 2,
                                   .n_tensors = 2,
                                   .name = "t",
                                   .dims = dims,
                                   .tensors = tensors,
                                   .graph = graph};
    struct rung_call call = {.struct_size = sizeof call,
                             .arena = model.arena,
                             .cancel = model.cancel,
                             .error = &model.error};
    int32_t status = RUNG_EINTERNAL;
    uint32_t n = 0;
    RUNG_INVOKE(status, model.instance, struct rung_examples_ops, examples, &call, &task, max, out,
                &n);
    assert_int_equal(status, RUNG_OK);
    assert_true(n <= max);
    return n;
}

static void the_task_itself_comes_with_its_names(void **state)
{
    (void)state;
    const struct rung_example *list = NULL;
    assert_int_equal(examples("p = softmax(logits, axis=1)", RUNG_F32, 3, &list), 3);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(list[i].same_task, 1);
        assert_true(list[i].score == 1.0);
        support_contains(list[i].title, "softmax: ");
        assert_true(strlen(list[i].source.ptr) == list[i].source.len);
        support_contains(list[i].source.ptr, "args=(logits, p");
        assert_null(strstr(list[i].source.ptr, "{{"));
        assert_null(strstr(list[i].source.ptr, "//!"));
        assert_null(strstr(list[i].source.ptr, "// catalog:"));
    }
    support_contains(list[0].source.ptr, "softmax_naive");
}

static void a_like_task_gets_the_nearest_operator(void **state)
{
    (void)state;
    const struct rung_example *list = NULL;
    assert_int_equal(examples("p = softmax(logits, axis=0)", RUNG_F32, 2, &list), 2);
    assert_int_equal(list[0].same_task, 0);
    assert_true(list[0].score < 1.0 && list[0].score > list[1].score);
    support_contains(list[0].source.ptr, "softmax_naive");
    support_contains(list[0].source.ptr, "args=(x, y, rows, cols)");
    assert_true(examples("p = softmax(logits, axis=1)", RUNG_F64, 1, &list) == 1);
    assert_int_equal(list[0].same_task, 0);
    row_stride = "cols + 3"; /* all its kernels are of dense tensors */
    assert_true(examples("p = softmax(logits, axis=1)", RUNG_F32, 1, &list) == 1);
    row_stride = NULL;
    assert_int_equal(list[0].same_task, 0);
}

static void any_task_is_answered(void **state)
{
    (void)state;
    static const char *const graphs[] = {"p = cumsum(logits, axis=1)", "p = ((((", "", NULL};
    const struct rung_example *list = NULL;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; ++i) {
        const uint32_t n = examples(graphs[i], RUNG_F32, 64, &list);
        assert_true(n > 5 && n < 64);
        for (uint32_t k = 0; k < n; ++k) {
            assert_int_equal(list[k].same_task, 0);
            assert_null(strstr(list[k].source.ptr, "{{"));
            support_contains(list[k].source.ptr, "//@ launch ");
        }
    }
    assert_int_equal(examples("p = relu(logits)", RUNG_F32, 0, &list), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_task_itself_comes_with_its_names),
        cmocka_unit_test(a_like_task_gets_the_nearest_operator),
        cmocka_unit_test(any_task_is_answered),
    };
    return cmocka_run_group_tests(tests, open_examples, close_examples);
}
