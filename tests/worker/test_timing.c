/* Search mode on a device with a clock: blocks, what is verified, and what the report says of it.
 */
#include "worker/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct harness *h;

static int setup(void **state)
{
    (void)state;
    h = harness_with_clock();
    harness_start(h);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_free(h);
    return 0;
}

static const cJSON *time_of(const struct rung_outcome *o)
{
    return rung_json_get(o->report, "time");
}

static double end_of(const cJSON *time, int i)
{
    return cJSON_GetArrayItem(rung_json_get(time, "ci_us"), i)->valuedouble;
}

static void a_steady_kernel_takes_two_blocks(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "good");
    const cJSON *time = time_of(&o), *mode = rung_json_get(time, "mode");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_int_equal(o.time_kind, RUNG_TIME_MEASURED);
    assert_true(fabs(o.time_ns - 10000) < 60);
    assert_true(o.low_ns > 9940 && o.low_ns <= o.time_ns && o.time_ns <= o.high_ns);
    assert_true(end_of(time, 0) * 1e3 - o.low_ns < 1e-6 &&
                end_of(time, 1) * 1e3 - o.high_ns < 1e-6);
    assert_int_equal(rung_json_i64(time, "blocks", 0), 2);
    assert_int_equal(rung_json_i64(time, "verified", 0), 3);
    assert_int_equal(rung_json_i64(time, "n", 0), 70);
    assert_int_equal(rung_json_i64(mode, "sets", 0), 3);
    assert_string_equal(rung_json_text(mode, "cold", ""), "flush");
    assert_true(rung_json_number(time, "event_floor_us", 0) == 0.5);
    assert_true(rung_json_number(time, "q1_us", 0) <= rung_json_number(time, "q3_us", 0));
    assert_true(rung_json_number(time, "min_us", 99) <= rung_json_number(time, "q1_us", 0));
    assert_int_equal(rung_json_i64(rung_json_get(time, "clocks"), "sm_mhz_least", 0), 1700);
    assert_string_equal(cJSON_GetArrayItem(rung_json_get(time, "throttle"), 0)->valuestring,
                        "power");
    assert_int_equal(cJSON_GetArraySize(rung_json_get(o.report, "baselines")), 0);
    cJSON_Delete(o.report);
}

/* Blocks of 12, 11 and 10 us before it is steady, at the first shape; then one more, compared. */
static void blocks_of_a_rising_clock_are_dropped(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "clock-rising");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_true(fabs(o.time_ns - 10000) < 60 && o.high_ns < 10100);
    assert_int_equal(rung_json_i64(time_of(&o), "dropped", 0), 70);
    assert_int_equal(rung_json_i64(time_of(&o), "blocks", 0), 3);
    cJSON_Delete(o.report);
}

static void raw_samples_are_an_artifact(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "good");
    assert_string_equal(o.stored[o.n_stored - 1].name, "samples.json");
    cJSON *json = rung_json_parse(h->last_json, strlen(h->last_json));
    const cJSON *shapes = rung_json_get(json, "shapes");
    assert_int_equal(cJSON_GetArraySize(shapes), 2);
    const cJSON *kernel =
        cJSON_GetArrayItem(rung_json_get(cJSON_GetArrayItem(shapes, 0), "kernels"), 0);
    const cJSON *blocks = rung_json_get(kernel, "samples");
    assert_string_equal(rung_json_text(kernel, "name", ""), "candidate");
    assert_int_equal(cJSON_GetArraySize(blocks), 2);
    assert_int_equal(cJSON_GetArraySize(rung_json_get(cJSON_GetArrayItem(blocks, 0), "samples_ns")),
                     20);
    assert_false(rung_json_bool(json, "cut", true));
    cJSON_Delete(json);
    cJSON_Delete(o.report);
}

static void a_time_that_never_settles_is_refused(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "clock-unstable");
    harness_expect(&o, RUNG_REJECTED, "time.unstable");
    support_contains(o.message, "at rows=8 varies too much");
    assert_int_equal(o.time_kind, 0);
    assert_true(cJSON_IsNull(time_of(&o)));
    cJSON_Delete(o.report);
    o = harness_judge(h, "clock-unstable,clock-tiny");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_true(rung_json_bool(time_of(&o), "launch_bound", false));
    cJSON_Delete(o.report);
}

static void wrong_outputs_in_timed_launches_are_the_verdict(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "clock-wrong");
    harness_expect(&o, RUNG_REJECTED, "numeric.mismatch");
    assert_string_equal(o.message, "wrong in a timed launch");
    cJSON_Delete(o.report);
}

/* A fresh executor counts its looks from 0 again, and so the clock of its own process. */
static void a_fresh_job_gets_an_executor_of_its_own(void **state)
{
    (void)state;
    struct rung_job job = {
        .label = "fresh", .bundle = harness_bundle(h->arena, "good"), .stages = RUNG_STAGE_TIME};
    struct rung_outcome first = harness_run(h, &job), second = harness_run(h, &job);
    assert_true(first.time_ns != second.time_ns);
    job.fresh = true;
    for (int i = 0; i < 3; i++) {
        struct rung_outcome fresh = harness_run(h, &job);
        harness_expect(&fresh, RUNG_ACCEPTED, "");
        assert_true(fresh.time_ns == first.time_ns);
        assert_false(rung_json_bool(rung_json_get(fresh.report, "compile"), "cached", true));
        cJSON_Delete(fresh.report);
    }
    cJSON_Delete(first.report);
    cJSON_Delete(second.report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_steady_kernel_takes_two_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_of_a_rising_clock_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(raw_samples_are_an_artifact, setup, teardown),
        cmocka_unit_test_setup_teardown(a_time_that_never_settles_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_outputs_in_timed_launches_are_the_verdict, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fresh_job_gets_an_executor_of_its_own, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
