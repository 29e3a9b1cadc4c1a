/* Task files: what a right one becomes, and every fault at its place. */
#include "task/task_common.h"

#include "base/json.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static struct rung_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    rung_arena_free(arena);
    return 0;
}

static void a_right_task_is_read_whole(void **state)
{
    (void)state;
    const struct rung_task *t = softmax_task(arena);
    assert_string_equal(t->name, "softmax");
    assert_int_equal(t->n_dims, 3);
    assert_int_equal(t->dims[1].multiple_of, 4);
    assert_int_equal(t->dims[2].derived, 1);
    assert_int_equal(t->dims[2].value, 64);
    assert_int_equal(t->n_params, 2);
    assert_true(t->params[0].f64 == 1.5);
    assert_int_equal(t->params[1].i64, 3);
    assert_int_equal(t->tensors[0].alignment, 256);
    assert_string_equal(t->tensors[1].shape[1], "cols");
    assert_int_equal(t->n_extra, 1);
    assert_int_equal(t->extra[0].dims[2], 250);
    assert_int_equal(t->n_bench, 2);
    assert_int_equal(t->bench[1].dims[1], 256);
    assert_true(rung_task_weight_sum(t) == 3.0);
    assert_int_equal(t->shape_rule, RUNG_SHAPES_RANGE);
    assert_string_equal(t->reference, "ops");
    assert_int_equal(rung_task_dim(t, "cols4"), 2);
    assert_int_equal(rung_task_tensor(t, "y"), 1);
    assert_int_equal(rung_task_param(t, "y"), -1);
    assert_string_equal(rung_task_dims_text(arena, t, t->extra[0].dims), "rows=7 cols=1000");
    assert_int_equal(rung_task_elements(t, t->extra[0].dims), 14000);
}

static void dims_are_completed_and_constrained(void **state)
{
    (void)state;
    const struct rung_task *t = softmax_task(arena);
    struct rung_error err = rung_error_init();
    int64_t dims[3] = {5, 40, -1}, shape[RUNG_MAX_DIMS];
    assert_int_equal(rung_task_complete(t, dims, &err), RUNG_OK);
    assert_int_equal(dims[2], 10);
    assert_int_equal(rung_task_shape(t, 0, dims, shape, &err), RUNG_OK);
    assert_int_equal(shape[1], 40);
    dims[1] = 42;
    assert_int_equal(rung_task_complete(t, dims, &err), RUNG_EINVAL);
    support_contains(err.message, "dim 'cols' is 42, but it must be a multiple of 4");
    dims[1] = 65540;
    assert_int_equal(rung_task_complete(t, dims, &err), RUNG_EINVAL);
    support_contains(err.message, "between 4 and 65536");
    dims[0] = 0;
    assert_int_equal(rung_task_complete(t, dims, &err), RUNG_EINVAL);
    support_contains(err.message, "dim 'rows' is 0, but it must be at least 1");
    dims[0] = INT64_C(1) << 40;
    dims[1] = 64;
    assert_int_equal(rung_task_shape(t, 0, dims, shape, &err), RUNG_EINVAL);
    support_contains(err.message, "2^40");
    assert_int_equal(rung_task_elements(t, dims), -1);
}

static void elements_saturate(void **state)
{
    (void)state;
    int64_t shape[4] = {1 << 30, 1 << 30, 1 << 30, 1};
    assert_true(rung_shape_elements(shape, 4) == INT64_MAX);
    shape[3] = 0;
    assert_int_equal(rung_shape_elements(shape, 4), 0);
    assert_int_equal(rung_shape_elements(shape, 0), 1);
}

static void precision_follows_the_outputs(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        uint32_t want;
    } cases[] = {{"i32", RUNG_PRECISION_EXACT},
                 {"f64", RUNG_PRECISION_FP64},
                 {"f16", RUNG_PRECISION_FP32},
                 {"bool", RUNG_PRECISION_EXACT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *faults;
        char json[512];
        snprintf(
            json, sizeof json,
            "{\"name\":\"t\",\"tensors\":[{\"name\":\"y\",\"role\":\"output\",\"dtype\":\"%s\","
            "\"shape\":\"\"}],\"reference\":{\"plugin\":\"ops\"}}",
            cases[i].dtype);
        const struct rung_task *t = task_of_json(arena, json, &faults);
        assert_non_null(t);
        assert_int_equal(t->precision, cases[i].want);
        assert_int_equal(t->n_bench, 1);
        assert_int_equal(t->tensors[0].n_dims, 0);
        assert_null(t->graph);
    }
}

static void the_contract_names_everything(void **state)
{
    (void)state;
    char *text = rung_task_contract(arena, softmax_task(arena));
    support_contains(text, "x: input f32 [rows, cols]");
    support_contains(text, "y: output f32 [rows, cols]");
    support_contains(text, "cols (such as 256; at least 4, at most 65536, a multiple of 4)");
    support_contains(text, "cols4 = cols / 4");
    support_contains(text, "scale: f64 = 1.5");
    support_contains(text, "y = softmax(x, axis=1)");
    support_contains(text, "rows=4096 cols=1024 (weight 2)");
}

static void what_plugins_do_not_see_is_kept(void **state)
{
    (void)state;
    const char *json = softmax_with(arena, "\"bench\": {",
                                    "\"bench\": { \"baselines\": [\"torch\", \"cudnn\"],"
                                    "\"flops\": \"5 * rows * cols\", \"bytes\": 1.5e9,");
    struct rung_diags diags = {0};
    struct rung_task_rest rest;
    struct rung_error err = rung_error_init();
    cJSON *tree = rung_json_parse(json, strlen(json));
    const struct rung_node *root = rung_node_from_json(arena, tree, NULL, "task.json");
    const struct rung_task *t = rung_task_read_all(arena, root, &rest, &diags);
    assert_non_null(t);
    assert_string_equal(rest.baselines[1], "cudnn");
    assert_null(rest.baselines[2]);
    assert_string_equal(rung_node_get(rest.reference, "plugin")->s, "ops");
    double v = 0;
    assert_int_equal(rung_task_amount_at(t, &rest.flops, t->bench[0].dims, &v, &err), RUNG_OK);
    assert_true(v == 5.0 * 4096 * 1024);
    assert_int_equal(rung_task_amount_at(t, &rest.bytes, t->bench[0].dims, &v, &err), RUNG_OK);
    assert_true(v == 1.5e9);
    rest.flops.given = false;
    assert_int_equal(rung_task_amount_at(t, &rest.flops, t->bench[0].dims, &v, &err), RUNG_OK);
    assert_true(v == 1.5e9);
    cJSON_Delete(tree);
}

#define Y "\"role\": \"output\""

static void strides_lay_elements_apart(void **state)
{
    static const struct {
        const char *strides;
        int64_t rows, cols, extent;
    } cases[] = {{"cols + 3, 1", 259, 1, 63 * 259 + 256},
                 {"1, rows", 1, 64, 64 * 256},
                 {"2, 2 * rows", 2, 128, 2 * 64 * 256 - 1}};
    int64_t dims[3] = {64, 256, 64};
    struct rung_error err = rung_error_init();
    struct rung_layout l;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *faults,
            *json = softmax_with(
                arena, Y, rung_arena_printf(arena, Y ", \"strides\": \"%s\"", cases[i].strides));
        const struct rung_task *t = task_of_json(arena, json, &faults);
        if (!t)
            fail_msg("%s", faults);
        assert_ptr_equal(rung_task_strided(t), &t->tensors[1]);
        assert_int_equal(rung_task_layout(t, 1, dims, &l, &err), RUNG_OK);
        assert_int_equal(l.strides[0], cases[i].rows);
        assert_int_equal(l.strides[1], cases[i].cols);
        assert_int_equal(l.elements, 64 * 256);
        assert_int_equal(l.extent, cases[i].extent);
        assert_int_equal(rung_task_layout(t, 0, dims, &l, &err), RUNG_OK);
        assert_int_equal(l.strides[0], 256);
        assert_int_equal(l.extent, 64 * 256);
        support_contains(rung_task_contract(arena, t), "y: output f32 [rows, cols], strides [");
        support_contains(rung_task_contract(arena, t), "x: input f32 [rows, cols], row-major");
    }
    assert_null(rung_task_strided(softmax_task(arena)));
}

/* One row or one column says nothing of the distance to the next. */
static void axes_of_one_element_may_have_any_stride(void **state)
{
    static const char json[] =
        "{\"name\":\"t\",\"dims\":{\"n\":7,\"m\":{\"value\":1,\"min\":0}},"
        "\"tensors\":[{\"name\":\"y\",\"role\":\"output\",\"dtype\":\"f32\",\"shape\":\"m, n\","
        "\"strides\":\"1, 2\",\"align\":4096}],\"reference\":{\"plugin\":\"ops\"}}";
    const char *faults;
    struct rung_layout l;
    struct rung_error err = rung_error_init();
    int64_t dims[2] = {7, 1};
    (void)state;
    const struct rung_task *t = task_of_json(arena, json, &faults);
    if (!t)
        fail_msg("%s", faults);
    assert_int_equal(t->tensors[0].alignment, 4096);
    assert_int_equal(rung_task_layout(t, 0, dims, &l, &err), RUNG_OK);
    assert_int_equal(l.extent, 13);
    dims[1] = 2; /* one row between the elements of the other */
    assert_int_equal(rung_task_layout(t, 0, dims, &l, &err), RUNG_OK);
    assert_int_equal(l.extent, 14);
    dims[1] = 3;
    assert_int_equal(rung_task_layout(t, 0, dims, &l, &err), RUNG_EINVAL);
    dims[1] = 0;
    assert_int_equal(rung_task_layout(t, 0, dims, &l, &err), RUNG_OK);
    assert_int_equal(l.extent, 0);
}

static const struct {
    const char *from, *to, *want;
} wrong[] = {
    {"\"name\": \"softmax\",", "", "the task lacks 'name'"},
    {"\"name\": \"softmax\"", "\"name\": \"../x\"", "the name \"../x\""},
    {"\"rows\": 64", "\"rows\": \"64 +\"", "the expression ends"},
    {"\"rows\": 64", "\"rows\": true", "dim 'rows' must be an integer"},
    {"\"rows\": 64", "\"weight\": 64", "can't be named 'weight'"},
    {"\"rows\": 64", "\"sm_count\": 64", "can't name a dim"},
    {"\"rows\": 64", "\"rows\": -4", "at least 1"},
    {"\"rows\": 64", "\"rows\": {\"value\":4,\"expr\":\"4\"}", "either 'value' or 'expr'"},
    {"\"rows\": 64", "\"rows\": {\"value\":4,\"multiple\":2}", "did you mean 'multiple_of'?"},
    {"\"cols / 4\"", "\"colls / 4\"", "did you mean 'cols'?"},
    {"\"cols / 4\"", "\"cols / 4.0\"", "not an integer"},
    {"\"name\": \"shift\"", "\"name\": \"scale\"", "'scale' stands twice"},
    {"\"name\": \"shift\"", "\"name\": \"x\"", "'x' stands twice"},
    {"\"dtype\": \"i64\"", "\"dtype\": \"f32\"", "'dtype' can't be \"f32\"; it is one of i64, f64"},
    {"\"value\": 3", "\"value\": 3.5", "'value' must be an integer"},
    {"\"role\": \"output\"", "\"role\": \"out\"", "it is one of input, output, inout, weight"},
    {"\"role\": \"output\"", "\"role\": \"input\"", "at least one tensor with role"},
    {"\"shape\": \"rows, cols\", ", "", "a tensor lacks 'shape'"},
    {"\"shape\": \"rows, cols\"", "\"shape\": \"rows, (cols\"", "parentheses"},
    {"\"shape\": \"rows, cols\"", "\"shape\": \"1,1,1,1,1,1,1,1,1\"", "at most 8 axes"},
    {"\"shape\": \"rows, cols\"", "\"shape\": \"rows - 65\"", "below zero"},
    {"\"shape\": \"rows, cols\"", "\"shape\": \"rows, scale\"", "unknown name 'scale'"},
    {"\"shape\": \"rows, cols\"", "\"shape\": \"1099511627777\"", "2^40"},
    {"\"fill\": \"normal\"", "\"fill\": \"normall\"", "did you mean \"normal\"?"},
    {"\"fill\": \"normal\"", "\"align\": 48", "power of two"},
    {"\"fill\": \"normal\"", "\"filll\": \"normal\"", "did you mean 'fill'?"},
    {"\"role\": \"output\"", "\"role\": \"output\", \"fill\": \"ones\"", "an output has no fill"},
    {"\"plugin\": \"ops\", ", "", "reference lacks 'plugin'"},
    {"\"precision\": \"fp32\"", "\"precision\": \"fp23\"", "tf32"},
    {"\"rows\": 7", "\"rows\": 0", "at these dims, dim 'rows' is 0"},
    {"\"rows\": 7", "\"cols4\": 7", "is derived"},
    {"\"rows\": 7", "\"rowz\": 7", "did you mean 'rows'?"},
    {"\"rows\": 7", "\"rows\": 7.5", "must be an integer"},
    {"\"rows\": 4096", "\"rows\": 99999999999", "2^40"},
    {"\"weight\": 2.0", "\"weight\": 0", "between 1e-09"},
    {"\"bench\": {", "\"bench\": { \"baseline\": [\"torch\"],",
     "bench has no setting 'baseline'; did you mean 'baselines'?"},
    {"\"bench\": {", "\"bench\": { \"baselines\": [5],", "'baselines' must hold strings"},
    {"\"bench\": {", "\"bench\": { \"baselines\": [\"\"],", "an empty name"},
    {"\"bench\": {", "\"bench\": { \"baselines\": [\"a\", \"a\"],", "names \"a\" twice"},
    {"\"bench\": {", "\"bench\": { \"flops\": true,", "'flops' must be a number or an expr"},
    {"\"bench\": {", "\"bench\": { \"flops\": \"2 * rowz\",", "did you mean 'rows'?"},
    {"\"bench\": {", "\"bench\": { \"bytes\": 0,", "'bytes': it is 0, but it must be above 0"},
    {"\"bench\": {", "\"bench\": { \"bytes\": \"rows / (rows - 8)\",", "zero"},
    {Y, Y ", \"strides\": \"1\"", "strides \"1\" has 1 items, but shape has 2"},
    {Y, Y ", \"strides\": \"cols, 1, 1\"", "has 3 items, but shape has 2"},
    {Y, Y ", \"strides\": \"\"", "has 0 items, but shape has 2"},
    {Y, Y ", \"strides\": 4", "'strides' must be a string"},
    {Y, Y ", \"strides\": \"(cols, 1\"", "parentheses"},
    {Y, Y ", \"strides\": \"colz, 1\"", "did you mean 'cols'?"},
    {Y, Y ", \"strides\": \"cols * 1.0, 1\"", "must be an integer"},
    {Y, Y ", \"strides\": \"cols, 0\"", "stride \"0\" is 0, but it must lie between 1"},
    {Y, Y ", \"strides\": \"cols - 1, 1\"", "reach 256 elements: it must be at least as many"},
    {Y, Y ", \"strides\": \"1, 1\"", "elements overlap"},
    {Y, Y ", \"strides\": \"256, 1\"", "at these dims, tensor 'y': stride \"256\" is 256, but"},
    {Y, Y ", \"strides\": \"cols * 1073741824, 1\"", "reaches more than 2^40 elements"},
    {Y, Y ", \"strides\": \"1099511627777, 1\"", "2^40"},
    {Y, Y ", \"align\": 8192", "'align'"},
    {"\"plugin\": \"ops\"", "\"plugin\": \"\"", "'plugin' is empty"},
    {"\"plugin\": \"ops\"", "\"plugin\": \"ops\", \"graph\": 5, \"x\": \"\"",
     "'graph' must be a string"},
    {"\"bench\": {", "\"bench\": 5, \"chek\": {", "did you mean 'check'?"},
    {"\"extra\": [", "\"extra\": [ 5,", "must hold groups"},
};

static void every_fault_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *faults;
        if (task_of_json(arena, softmax_with(arena, wrong[i].from, wrong[i].to), &faults))
            fail_msg("%s was accepted", wrong[i].to);
        support_contains(faults, wrong[i].want);
        assert_memory_equal(faults, "task.json: ", 11);
    }
}

static void many_faults_are_told_at_once(void **state)
{
    (void)state;
    const char *faults;
    assert_null(task_of_json(
        arena,
        "{\"nam\":\"x\",\"tensors\":[{\"name\":\"y\",\"role\":\"outpt\",\"dtype\":\"f31\","
        "\"shape\":\"n\"}],\"reference\":{},\"check\":{\"shapes\":\"all\"}}",
        &faults));
    support_contains(faults, "lacks 'name'");
    support_contains(faults, "\"outpt\"");
    support_contains(faults, "\"f31\"");
    support_contains(faults, "unknown name 'n'");
    support_contains(faults, "lacks 'plugin'");
    support_contains(faults, "\"all\"");
    support_contains(faults, "did you mean 'name'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_right_task_is_read_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(dims_are_completed_and_constrained, setup, teardown),
        cmocka_unit_test_setup_teardown(elements_saturate, setup, teardown),
        cmocka_unit_test_setup_teardown(precision_follows_the_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(the_contract_names_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(what_plugins_do_not_see_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(strides_lay_elements_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(axes_of_one_element_may_have_any_stride, setup, teardown),
        cmocka_unit_test_setup_teardown(every_fault_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(many_faults_are_told_at_once, setup, teardown),
    };
    return cmocka_run_group_tests_name("task", tests, NULL, NULL);
}
