/*
 * Turns of a candidate with baselines and a rival, on a simulated clock: verdicts, and everything
 * that can be wrong with a guest, which must never become the candidate's fault.
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
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_free(h);
    return 0;
}

static struct rung_job job_of(const char *markers)
{
    return (struct rung_job){.label = "candidate 1",
                             .bundle = harness_bundle(h->arena, markers),
                             .stages = RUNG_STAGE_TIME | RUNG_STAGE_BASELINES};
}

static struct rung_outcome race(const char *markers)
{
    const struct rung_job job = job_of(markers);
    return harness_run(h, &job);
}

static const cJSON *entry(const struct rung_outcome *o, const char *name)
{
    const cJSON *list = rung_json_get(o->report, "baselines"), *item;
    cJSON_ArrayForEach(item, list)
    {
        if (strcmp(rung_json_text(item, "name", ""), name) == 0)
            return item;
    }
    fail_msg("no baseline %s", name);
    return NULL;
}

static double end_of(const cJSON *e, int i)
{
    return cJSON_GetArrayItem(rung_json_get(e, "speedup_ci"), i)->valuedouble;
}

static void expect_turns(const struct rung_outcome *o, const char *name, double speedup,
                         const char *verdict)
{
    const cJSON *e = entry(o, name);
    assert_true(rung_json_bool(e, "available", false));
    assert_string_equal(rung_json_text(e, "verdict", ""), verdict);
    assert_true(fabs(rung_json_number(e, "speedup", 0) - speedup) < 0.01 * speedup);
    assert_true(end_of(e, 0) <= rung_json_number(e, "speedup", 0));
    assert_true(end_of(e, 1) >= rung_json_number(e, "speedup", 0));
    assert_true(rung_json_i64(e, "rounds", 0) >= 10);
}

static void expect_absent(const struct rung_outcome *o, const char *name, const char *why)
{
    const cJSON *e = entry(o, name);
    assert_false(rung_json_bool(e, "available", true));
    support_contains(rung_json_text(e, "why", ""), why);
    assert_null(rung_json_get(e, "speedup"));
}

static void each_baseline_gets_its_verdict(void **state)
{
    (void)state;
    harness_add_baseline(h, "slow", "{\"us\":\"15\"}");
    harness_add_baseline(h, "fast", "{\"us\":\"8\"}");
    harness_add_baseline(h, "same", "{\"us\":\"10\"}");
    harness_start(h);
    struct rung_outcome o = race("good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    expect_turns(&o, "slow", 1.5, "faster");
    expect_turns(&o, "fast", 0.8, "slower");
    expect_turns(&o, "same", 1, "same");
    const cJSON *slow = entry(&o, "slow");
    assert_string_equal(rung_json_text(slow, "label", ""), "fakeSgemm");
    assert_string_equal(rung_json_text(slow, "math", ""), "fp32");
    assert_true(rung_json_bool(slow, "within_tolerance", false));
    assert_true(fabs(rung_json_number(slow, "median_us", 0) - 15) < 0.1);
    assert_true(rung_json_i64(rung_json_get(o.report, "time"), "verified", 0) >= 6);
    support_contains(h->last_json, "\"slow\"");
    cJSON_Delete(o.report);
}

/* One that queues its work runs in a session of its own, under the candidate's timer. */
static void a_baseline_that_queues_is_measured_by_the_timer(void **state)
{
    (void)state;
    harness_add_baseline(h, "queue", "{}");
    harness_add_baseline(h, "broken", "{\"what\":\"helper-dies\"}");
    h->baselines[0].plugin = h->baselines[1].plugin = "queue";
    harness_start(h);
    struct rung_outcome o = race("good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    expect_turns(&o, "queue", 1.5, "faster");
    assert_true(rung_json_bool(entry(&o, "queue"), "within_tolerance", false));
    assert_int_equal(rung_json_i64(rung_json_get(entry(&o, "queue"), "mode"), "sets", 0), 3);
    expect_absent(&o, "broken", "it broke");
    cJSON_Delete(o.report);
}

/* 1e-4 a sample, both: some 20 % over the turns; back and forth cancels it. */
static void drift_is_not_taken_for_a_difference(void **state)
{
    (void)state;
    harness_add_baseline(h, "drift", "{\"us\":\"10\",\"what\":\"drift\"}");
    harness_start(h);
    struct rung_outcome o = race("clock-drift");
    harness_expect(&o, RUNG_ACCEPTED, "");
    expect_turns(&o, "drift", 1, "same");
    cJSON_Delete(o.report);
}

static void what_is_not_there_is_told_and_no_failure(void **state)
{
    (void)state;
    static const char *const wishes[] = {"nosuch", "first", NULL};
    h->wishes = wishes;
    harness_add_baseline(h, "first", "{\"what\":\"missing\"}");
    harness_add_baseline(h, "second", "{\"what\":\"unsupported\"}");
    harness_add_baseline(h, "third", "{\"what\":\"no-start\"}");
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    harness_start(h);
    struct rung_outcome o = race("good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_int_equal(cJSON_GetArraySize(rung_json_get(o.report, "baselines")), 5);
    expect_absent(&o, "first", "no library libfake.so");
    expect_absent(&o, "second", "it has nothing for this task");
    expect_absent(&o, "third", "its library is not on this machine");
    expect_absent(&o, "nosuch", "nosuch");
    expect_turns(&o, "good", 1.5, "faster");
    cJSON_Delete(o.report);
}

static void a_baseline_of_another_precision_is_marked(void **state)
{
    (void)state;
    harness_add_baseline(h, "tf32", "{\"us\":\"5.5\",\"what\":\"tf32\"}");
    harness_add_baseline(h, "unreal", "{\"us\":\"1\"}");
    harness_start(h);
    struct rung_outcome o = race("good");
    const cJSON *e = entry(&o, "tf32");
    harness_expect(&o, RUNG_ACCEPTED, "");
    expect_turns(&o, "tf32", 0.55, "slower");
    assert_true(cJSON_IsFalse(rung_json_get(e, "within_tolerance")));
    assert_string_equal(rung_json_text(e, "math", ""), "tf32");
    support_contains(rung_json_text(e, "within_why", ""), "10 bits");
    assert_true(rung_json_bool(entry(&o, "unreal"), "below_floor", false));
    assert_string_equal(rung_json_text(entry(&o, "unreal"), "verdict", ""), "unknown");
    cJSON_Delete(o.report);
}

static void a_baseline_that_breaks_leaves_and_the_others_go_on(void **state)
{
    (void)state;
    harness_add_baseline(h, "dying", "{\"what\":\"helper-dies\"}");
    harness_add_baseline(h, "garbage", "{\"what\":\"garbage\"}");
    harness_add_baseline(h, "modelled", "{\"what\":\"modelled\"}");
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    harness_start(h);
    struct rung_outcome o = race("good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    expect_absent(&o, "dying", "its helper died");
    expect_absent(&o, "garbage", "no times");
    expect_absent(&o, "modelled", "no times");
    expect_turns(&o, "good", 1.5, "faster");
    cJSON_Delete(o.report);
}

/*
 * The executor dies, the candidate's verdict and time stand, and the job is done again without the
 * one at fault; so is every later one.
 */
static void expect_spared(const char *what, const char *why)
{
    char settings[64];
    snprintf(settings, sizeof settings, "{\"what\":\"%s\"}", what);
    harness_add_baseline(h, "bad", settings);
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    harness_start(h);
    for (int i = 0; i < 2; i++) {
        struct rung_outcome o = race("good");
        harness_expect(&o, RUNG_ACCEPTED, "");
        assert_int_equal(o.time_kind, RUNG_TIME_MEASURED);
        assert_true(fabs(o.time_ns - 10000) < 100);
        expect_absent(&o, "bad", why);
        expect_turns(&o, "good", 1.5, "faster");
        cJSON_Delete(o.report);
    }
}

static void a_crash_in_prepare_is_not_the_candidates(void **state)
{
    (void)state;
    expect_spared("crash", "signal 11");
}

static void a_crash_in_a_turn_is_not_the_candidates(void **state)
{
    (void)state;
    expect_spared("turn-crash", "signal 6");
}

static void a_hanging_baseline_is_not_the_candidates(void **state)
{
    (void)state;
    expect_spared("hang", "did not end in time");
}

static void the_candidates_own_crash_in_a_turn_is_its_own(void **state)
{
    (void)state;
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    harness_start(h);
    struct rung_outcome o = race("clock-crash");
    harness_expect(&o, RUNG_REJECTED, "run.crash");
    cJSON_Delete(o.report);
}

/* The fourth look at its outputs is in a later turn. */
static void a_fault_in_a_turn_is_the_candidates_verdict(void **state)
{
    (void)state;
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    h->pipeline.timing.delta = 0.005;
    harness_start(h);
    struct rung_outcome o = race("clock-wrong-late");
    harness_expect(&o, RUNG_REJECTED, "numeric.mismatch");
    assert_int_equal(o.time_kind, 0);
    assert_true(cJSON_IsNull(rung_json_get(o.report, "time")));
    cJSON_Delete(o.report);
}

static struct rung_outcome race_rival(const char *mine, const char *theirs)
{
    struct rung_job job = job_of(mine);
    job.rival = harness_bundle(h->arena, theirs);
    job.rival_label = "candidate 2";
    job.rival_point = "T=64";
    job.delta = 0.005;
    return harness_run(h, &job);
}

static void a_rival_takes_turns_and_is_told_apart(void **state)
{
    (void)state;
    harness_start(h);
    struct rung_outcome o = race_rival("good", "clock-slow");
    const cJSON *e = rung_json_get(o.report, "rival");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_string_equal(rung_json_text(e, "name", ""), "candidate 2");
    assert_string_equal(rung_json_text(e, "verdict", ""), "faster");
    assert_true(fabs(rung_json_number(e, "speedup", 0) - 1.05) < 0.01);
    assert_true(rung_json_number(e, "delta", 0) == 0.005);
    cJSON_Delete(o.report);
    o = race_rival("clock-slow", "good");
    assert_string_equal(rung_json_text(rung_json_get(o.report, "rival"), "verdict", ""), "slower");
    cJSON_Delete(o.report);
    o = race_rival("good", "clock-near");
    assert_string_equal(rung_json_text(rung_json_get(o.report, "rival"), "verdict", ""), "same");
    cJSON_Delete(o.report);
}

static void a_rival_that_fails_is_no_fault_of_the_candidate(void **state)
{
    (void)state;
    static const struct {
        const char *markers, *why;
    } table[] = {{"compile-error", "compile.error"},
                 {"clock-wrong", "wrong in a timed launch"},
                 {"load-unsupported", "device.unsupported"},
                 {"compile-crash", "signal 6"}};
    harness_start(h);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rung_outcome o = race_rival("good", table[i].markers);
        const cJSON *e = rung_json_get(o.report, "rival");
        harness_expect(&o, RUNG_ACCEPTED, "");
        assert_int_equal(o.time_kind, RUNG_TIME_MEASURED);
        assert_false(rung_json_bool(e, "available", true));
        support_contains(rung_json_text(e, "why", ""), table[i].why);
        cJSON_Delete(o.report);
    }
}

static void a_modelled_time_is_compared_with_nothing(void **state)
{
    (void)state;
    h->workers[0].device = "null";
    harness_add_baseline(h, "good", "{\"us\":\"15\"}");
    harness_start(h);
    struct rung_outcome o = race("good");
    assert_int_equal(o.time_kind, RUNG_TIME_MODELLED);
    expect_absent(&o, "good", "a modelled time is not compared");
    cJSON_Delete(o.report);
}

static void without_the_stage_nobody_takes_turns(void **state)
{
    (void)state;
    harness_add_baseline(h, "crash", "{\"what\":\"crash\"}");
    harness_start(h);
    struct rung_outcome o = harness_judge(h, "good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_int_equal(cJSON_GetArraySize(rung_json_get(o.report, "baselines")), 0);
    assert_null(rung_json_get(o.report, "rival"));
    cJSON_Delete(o.report);
}

#define RACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RACE(each_baseline_gets_its_verdict),
        RACE(a_baseline_that_queues_is_measured_by_the_timer),
        RACE(drift_is_not_taken_for_a_difference),
        RACE(what_is_not_there_is_told_and_no_failure),
        RACE(a_baseline_of_another_precision_is_marked),
        RACE(a_baseline_that_breaks_leaves_and_the_others_go_on),
        RACE(a_crash_in_prepare_is_not_the_candidates),
        RACE(a_crash_in_a_turn_is_not_the_candidates),
        RACE(a_hanging_baseline_is_not_the_candidates),
        RACE(the_candidates_own_crash_in_a_turn_is_its_own),
        RACE(a_fault_in_a_turn_is_the_candidates_verdict),
        RACE(a_rival_takes_turns_and_is_told_apart),
        RACE(a_rival_that_fails_is_no_fault_of_the_candidate),
        RACE(a_modelled_time_is_compared_with_nothing),
        RACE(without_the_stage_nobody_takes_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
