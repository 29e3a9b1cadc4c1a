/* baselines "torch" and "torch_compile" over a program that answers for Python, well or badly. */
#include "bench/baselines.h"

#include "base/io.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bench b;
static char *folder, *log_path;

static void be(const char *mode)
{
    bench_baseline_end(&b);
    setenv("RUNG_FAKE_TORCH", mode, 1);
    bench_baseline(&b, "torch", "{\"python\": \"" FAKE_PYTHON "\"}", "/data");
}

static int setup(void **state)
{
    (void)state;
    folder = support_folder();
    log_path = support_path(folder, "log");
    setenv("RUNG_FAKE_LOG", log_path, 1);
    bench_open(&b, PLUGIN_DIR);
    bench_task_text(
        &b,
        "name = \"t\"; summary = \"t\"; dims = { m = 5; n = 7; };\n"
        "params = ( { name = \"alpha\"; dtype = \"f64\"; value = 0.5; } );\n"
        "tensors = ( { name = \"x\"; role = \"input\"; dtype = \"f32\"; shape = \"m, n\"; fill = "
        "\"uniform\"; },\n"
        "{ name = \"y\"; role = \"output\"; dtype = \"f32\"; shape = \"m\"; } );\n"
        "reference = { plugin = \"ops\"; graph = \"y = sum(x, axis=1) * alpha\"; };\n"
        "bench = { shapes = ( { m = 5; n = 7; } ); };\n");
    be("good");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bench_close(&b);
    free(log_path);
    support_remove(folder);
    return 0;
}

/* The request of that number that the program got; 0 is how it was started. */
static cJSON *request(int number)
{
    char *text = support_read(log_path, NULL), *at = text;
    for (int i = 0; i < number; i++) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    cJSON *json = cJSON_Parse(at);
    assert_non_null(json);
    free(text);
    return json;
}

static int32_t measure(uint32_t samples, uint32_t sets, uint32_t batch, struct rung_timing *out)
{
    int32_t status;
    struct rung_timing_recipe recipe = {.struct_size = sizeof recipe,
                                        .warmups = 3,
                                        .samples = samples,
                                        .cold = 1,
                                        .dims = bench_dims(&b),
                                        .seed = 9,
                                        .sets = sets,
                                        .batch = batch,
                                        .budget_s = 1.5};
    bench_call(&b, 20);
    out->struct_size = sizeof *out;
    RUNG_INVOKE(status, b.baseline, struct rung_baseline_ops, measure, &b.call, &b.ready, &recipe,
                out);
    return status;
}

static void the_task_is_told_and_times_come_back(void **state)
{
    struct rung_timing t;
    (void)state;
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    assert_string_equal(b.ready.label, "torch eager");
    assert_string_equal(b.ready.math, "fp32");
    assert_int_equal(measure(6, 0, 0, &t), RUNG_OK);
    assert_int_equal(t.kind, RUNG_TIME_MEASURED);
    assert_int_equal(t.measured.n_samples, 6);
    assert_true(t.measured.samples_ns[5] == 1005);
    assert_true(t.measured.floor_ns == 400);
    assert_int_equal(t.measured.sets, 4);
    assert_int_equal(t.measured.batch, 4);
    assert_int_equal(t.measured.cold, RUNG_COLD_ROTATE);
    assert_int_equal(t.measured.launch_bound, 1); /* 1003 ns over a floor of 400 */
    cJSON *start = request(0), *prepare = request(2), *recipe = request(3);
    char *text = cJSON_PrintUnformatted(start);
    support_contains(text, "/data/torch/helper.py");
    support_contains(text, "\"visible\":\"GPU-of-a-test\"");
    free(text);
    text = cJSON_PrintUnformatted(prepare);
    support_contains(text, "\"graph\":\"y = sum(x, axis=1) * alpha\"");
    support_contains(text, "\"dims\":{\"m\":5,\"n\":7}");
    support_contains(text, "{\"name\":\"alpha\",\"dtype\":\"f64\",\"value\":0.5}");
    support_contains(text, "\"fill\":\"uniform\",\"shape\":[5,7]");
    support_contains(text, "\"mode\":\"eager\",\"tf32\":false");
    free(text);
    text = cJSON_PrintUnformatted(recipe);
    support_contains(text, "\"warmups\":3,\"samples\":6,\"cold\":1,\"seed\":9");
    support_contains(text, "\"budget_s\":1.5");
    free(text);
    cJSON_Delete(start);
    cJSON_Delete(prepare);
    cJSON_Delete(recipe);
}

static void one_process_serves_all_and_is_told_what_to_forget(void **state)
{
    struct rung_timing t;
    (void)state;
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    assert_int_equal(bench_prepare(&b), RUNG_OK); /* releases the first */
    assert_int_equal(measure(3, 8, 2, &t), RUNG_OK);
    assert_int_equal(t.measured.sets, 8);
    assert_int_equal(t.measured.batch, 2);
    cJSON *second = request(3), *recipe = request(4);
    assert_string_equal(rung_json_text(second, "op", ""), "prepare");
    char *text = cJSON_PrintUnformatted(second);
    support_contains(text, "\"release\":[1]");
    free(text);
    assert_true(rung_json_number(recipe, "case", 0) == 2);
    cJSON_Delete(second);
    cJSON_Delete(recipe);
}

static void modes_of_compile(void **state)
{
    (void)state;
    bench_baseline_end(&b);
    bench_baseline(&b, "torch_compile",
                   "{\"python\": \"" FAKE_PYTHON "\", \"mode\": \"max-autotune\", \"tf32\": true}",
                   "/data");
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    cJSON *prepare = request(2);
    assert_string_equal(rung_json_text(prepare, "mode", ""), "max-autotune");
    assert_true(rung_json_bool(prepare, "tf32", false));
    cJSON_Delete(prepare);
}

static void expect_prepare(const char *mode, int32_t status, const char *part)
{
    be(mode);
    assert_int_equal(bench_prepare(&b), status);
    support_contains(b.error.message, part);
    assert_null(b.ready.ctx);
}

static void refusals_keep_their_kind(void **state)
{
    (void)state;
    expect_prepare("no_torch", RUNG_EUNAVAILABLE, "pip install torch");
    expect_prepare("no_gpu", RUNG_EUNAVAILABLE, "sees no GPU");
    expect_prepare("unsupported", RUNG_EUNSUPPORTED, "graph: what is this ?[31m?");
    expect_prepare("memory", RUNG_ENOMEM, "out of memory");
    bench_baseline(&b, "torch", "{\"python\": \"no-python-of-this-name\"}", "/data");
    assert_int_equal(bench_prepare(&b), RUNG_EUNAVAILABLE);
    support_contains(b.error.message, "no-python-of-this-name");
}

static void strides_are_refused(void **state)
{
    (void)state;
    bench_task_text(&b, "name = \"t\"; dims = { n = 7; };\n"
                        "tensors = ( { name = \"x\"; role = \"input\"; dtype = \"f32\"; shape = "
                        "\"n\"; strides = \"2\"; },\n"
                        "{ name = \"y\"; role = \"output\"; dtype = \"f32\"; shape = \"n\"; } );\n"
                        "reference = { plugin = \"ops\"; graph = \"y = relu(x)\"; };\n");
    expect_prepare("good", RUNG_EUNSUPPORTED, "x has strides");
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    expect_prepare("garbage", RUNG_EINTERNAL, "no answer");
    expect_prepare("deep", RUNG_EINTERNAL, "no answer");
    expect_prepare("no_label", RUNG_EINTERNAL, "not understood");
    expect_prepare("dies", RUNG_EUNAVAILABLE, "a joke");
    static const char *const bad[] = {"nan",   "negative", "none", "many",
                                      "words", "no_list",  "sets"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rung_timing t;
        be(bad[i]);
        assert_int_equal(bench_prepare(&b), RUNG_OK);
        assert_int_equal(measure(10, 0, 0, &t), RUNG_EINTERNAL);
    }
}

static void a_hanging_program_is_replaced(void **state)
{
    struct rung_timing t;
    (void)state;
    assert_int_equal(bench_prepare(&b), RUNG_OK);
    struct rung_baseline_case old = b.ready;
    b.ready.ctx = NULL;
    be("hangs");
    bench_call(&b, 0.7);
    int32_t status;
    RUNG_INVOKE(status, b.baseline, struct rung_baseline_ops, prepare, &b.call, &b.session,
                bench_dims(&b), &b.ready);
    assert_int_equal(status, RUNG_ETIMEOUT);
    setenv("RUNG_FAKE_TORCH", "good", 1);
    assert_int_equal(bench_prepare(&b), RUNG_OK); /* a new process */
    assert_int_equal(measure(2, 0, 0, &t), RUNG_OK);
    bench_ops(&b)->release(b.baseline->self, &old);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_task_is_told_and_times_come_back),
        CASE(one_process_serves_all_and_is_told_what_to_forget),
        CASE(modes_of_compile),
        CASE(refusals_keep_their_kind),
        CASE(nonsense_is_refused),
        CASE(strides_are_refused),
        CASE(a_hanging_program_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
