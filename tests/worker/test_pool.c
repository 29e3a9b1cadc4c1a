/* The whole way from the pool through supervisor and executor to the outcome, when all goes well.
 */
#include "worker/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct harness *h;

static int setup(void **state)
{
    (void)state;
    h = harness_new();
    harness_start(h);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_free(h);
    return 0;
}

static void a_good_candidate_is_accepted_with_a_modelled_time(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_string_equal(o.point, "T=32");
    assert_int_equal(o.n_points, 2);
    assert_int_equal(o.time_kind, RUNG_TIME_MODELLED);
    assert_true(fabs(o.time_ns - (3 * 8000 + 16000) / 4.0) < 1e-6);
    assert_true(o.tie_band == 0.3);
    assert_true(o.floor_ns == 100);
    assert_string_equal(o.advice, "dram limits");
    assert_int_equal(o.n_stored, 1);
    assert_string_equal(o.stored[0].name, "kernel.ptx");
    assert_int_equal(h->stored, 1);
    assert_int_equal(h->stored_bytes, o.stored[0].bytes);
    assert_string_equal(h->progress, "compile|load|first 1/3|marker 2/3|time 1/2|time 2/2|");
    cJSON_Delete(o.report);
}

static void the_report_is_that_of_eval(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "good");
    assert_string_equal(rung_json_text(o.report, "verdict", ""), "accepted");
    assert_true(cJSON_IsNull(rung_json_get(o.report, "code")));
    assert_int_equal(cJSON_GetArraySize(rung_json_get(o.report, "rungs")), 3);
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "rung", ""), "marker");
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "status", ""), "pass");
    assert_string_equal(rung_json_text(harness_rung(&o, 2), "status", ""), "skipped");
    support_contains(rung_json_text(harness_rung(&o, 2), "detail", ""), "it runs on cuda only");
    const cJSON *time = rung_json_get(o.report, "time");
    assert_string_equal(rung_json_text(time, "kind", ""), "modelled");
    assert_true(rung_json_number(time, "median_us", 0) == 10);
    assert_true(cJSON_IsNull(rung_json_get(time, "ci_us")));
    assert_string_equal(rung_json_text(time, "gpu", ""), "fake gpu");
    assert_true(cJSON_IsArray(rung_json_get(o.report, "baselines")));
    assert_int_equal(rung_json_i64(rung_json_get(o.report, "resources"), "registers", 0), 17);
    support_contains(rung_json_text(rung_json_get(o.report, "compile"), "log", ""), "a fake");
    cJSON_Delete(o.report);
}

static void measured_times_are_medians_with_an_interval(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "time-measured");
    const cJSON *time = rung_json_get(o.report, "time"), *ci = rung_json_get(time, "ci_us");
    assert_int_equal(o.time_kind, RUNG_TIME_MEASURED);
    assert_true(o.time_ns == 1200 && o.tie_band == 0);
    assert_true(cJSON_GetArrayItem(ci, 0)->valuedouble == 1.0);
    assert_true(cJSON_GetArrayItem(ci, 1)->valuedouble == 1.5);
    assert_null(rung_json_get(time, "gpu"));
    cJSON_Delete(o.report);
    o = harness_judge(h, "time-floor");
    harness_expect(&o, RUNG_REJECTED, "time.below_floor");
    support_contains(o.message, "1.200 us at rows=8");
    assert_int_equal(o.time_kind, 0);
    cJSON_Delete(o.report);
}

static struct rung_outcome judge_point(const char *point, uint32_t stages)
{
    struct rung_error err = rung_error_init();
    struct rung_outcome o;
    const struct rung_job job = {
        .label = "p", .bundle = harness_bundle(h->arena, "good"), .point = point, .stages = stages};
    assert_int_equal(rung_pool_run(h->pool, &job, h->arena, &o, &err), RUNG_OK);
    return o;
}

static void stages_and_points_are_obeyed(void **state)
{
    (void)state;
    struct rung_outcome o = judge_point("T=64", RUNG_STAGE_COMPILE);
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_string_equal(o.point, "T=64");
    assert_int_equal(o.time_kind, 0);
    assert_true(cJSON_IsNull(rung_json_get(o.report, "time")));
    assert_string_equal(rung_json_text(harness_rung(&o, 0), "detail", ""), "not asked for");
    cJSON_Delete(o.report);
    o = judge_point("T=63", RUNG_STAGE_COMPILE);
    harness_expect(&o, RUNG_REJECTED, "plan.error");
    cJSON_Delete(o.report);
    o = judge_point(NULL, RUNG_STAGE_TIME);
    harness_expect(&o, RUNG_ACCEPTED, "");
    assert_int_equal(o.time_kind, RUNG_TIME_MODELLED);
    cJSON_Delete(o.report);
}

static void an_artifact_travels_once_and_rungs_may_keep_their_own(void **state)
{
    (void)state;
    struct rung_outcome o = harness_judge(h, "store");
    unsigned before = h->stored;
    assert_int_equal(o.n_stored, 2);
    assert_string_equal(o.stored[1].name, "notes.txt");
    assert_int_equal(o.stored[1].bytes, 4);
    cJSON_Delete(o.report);
    o = harness_judge(h, "store");
    assert_int_equal(o.n_stored, 2);
    assert_int_equal(h->stored, before);
    assert_true(rung_json_bool(rung_json_get(o.report, "compile"), "cached", false));
    cJSON_Delete(o.report);
}

/* A bundle over a line's length goes in chunks; one that is over the limit of bundles is an
 * outcome. */
static void large_bundles_travel_in_chunks(void **state)
{
    (void)state;
    const size_t sizes[] = {3 << 20, 5 << 20};
    for (int i = 0; i < 2; i++) {
        struct rung_error err = rung_error_init();
        struct rung_outcome o;
        char *text = malloc(sizes[i] + 100);
        int n = snprintf(text, 100, "//@ launch k grid=(1) block=(32) args=(x, y)\n// ");
        memset(text + n, 'a', sizes[i]);
        text[(size_t)n + sizes[i]] = 0;
        const struct rung_file file = {
            .struct_size = sizeof file, .path = "k.cu", .text = rung_text_of(text)};
        const struct rung_bundle bundle = {
            .struct_size = sizeof bundle, .n_files = 1, .language = "cuda", .files = &file};
        const struct rung_job job = {
            .label = "large", .bundle = &bundle, .stages = RUNG_STAGE_COMPILE};
        assert_int_equal(rung_pool_run(h->pool, &job, h->arena, &o, &err), RUNG_OK);
        harness_expect(&o, i == 0 ? RUNG_ACCEPTED : RUNG_INCONCLUSIVE, i == 0 ? "" : "internal");
        assert_true(i == 1 || h->stored_bytes >= sizes[0]);
        cJSON_Delete(o.report);
        free(text);
    }
}

struct many {
    pthread_t thread;
    unsigned accepted;
};

static void *judge_some(void *arg)
{
    struct many *many = arg;
    for (int i = 0; i < 20; i++) {
        struct rung_arena *arena = rung_arena_new();
        struct rung_error err = rung_error_init();
        struct rung_outcome o;
        const struct rung_job job = {
            .label = "many", .bundle = harness_bundle(arena, "good"), .stages = RUNG_STAGE_CHECK};
        if (rung_pool_run(h->pool, &job, arena, &o, &err) == RUNG_OK) {
            many->accepted += o.verdict == RUNG_ACCEPTED;
            cJSON_Delete(o.report);
        }
        rung_arena_free(arena);
    }
    return NULL;
}

static void many_threads_share_the_workers(void **state)
{
    (void)state;
    struct many many[4] = {0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&many[i].thread, NULL, judge_some, &many[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(many[i].thread, NULL);
        assert_int_equal(many[i].accepted, 20);
    }
    assert_int_equal(rung_pool_size(h->pool), 1);
}

static const char *detail(const struct rung_outcome *o, int rung)
{
    return rung_json_text(harness_rung(o, rung), "detail", "");
}

/* The pool's own device is that of the first entry, however fast the others start. */
static void unlike_workers_serve_only_who_asks_for_their_device(void **state)
{
    (void)state;
    static const char *const on_twin[] = {"cuda", "twin", NULL};
    struct harness *mine = harness_new();
    struct rung_error err = rung_error_init();
    struct rung_outcome o;
    mine->workers[1] = mine->workers[0];
    mine->workers[0].device = "null";
    mine->workers[1].device = "twin";
    mine->pipeline.n_workers = 2;
    mine->rungs[1].when = RUNG_WHEN_BEST;
    mine->rungs[2].on_devices = on_twin;
    harness_start(mine);
    assert_string_equal(rung_pool_plugin(mine->pool), "null");
    assert_true(rung_pool_has(mine->pool, "twin") && !rung_pool_has(mine->pool, "cuda"));
    for (int i = 0; i < 8; i++) {
        o = harness_judge(mine, "good");
        support_contains(detail(&o, 1), "for the best candidates only");
        support_contains(detail(&o, 2), "it runs on cuda, twin only; this worker has null");
        cJSON_Delete(o.report);
    }
    struct rung_job job = {.label = "twin",
                           .bundle = harness_bundle(mine->arena, "good"),
                           .stages = RUNG_STAGE_CHECK,
                           .device = "twin"};
    assert_int_equal(rung_pool_run(mine->pool, &job, mine->arena, &o, &err), RUNG_OK);
    support_contains(detail(&o, 0), "another device judges it");
    assert_string_equal(rung_json_text(harness_rung(&o, 2), "status", ""), "pass");
    cJSON_Delete(o.report);
    job = (struct rung_job){.label = "best",
                            .bundle = job.bundle,
                            .stages = RUNG_STAGE_CHECK,
                            .occasions = 1u << RUNG_WHEN_BEST};
    assert_int_equal(rung_pool_run(mine->pool, &job, mine->arena, &o, &err), RUNG_OK);
    support_contains(detail(&o, 0), "it was passed before");
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "status", ""), "pass");
    cJSON_Delete(o.report);
    job.device = "cuda";
    assert_int_equal(rung_pool_run(mine->pool, &job, mine->arena, &o, &err), RUNG_EUNAVAILABLE);
    harness_free(mine);
}

static void two_workers_behind_a_prefix(void **state)
{
    (void)state;
    static const char *const launch[] = {"env", "-C", "/tmp", NULL};
    struct harness *mine = harness_new();
    mine->workers[0].count = 2;
    mine->workers[0].launch = launch;
    harness_start(mine);
    struct rung_outcome o = harness_judge(mine, "good");
    harness_expect(&o, RUNG_ACCEPTED, "");
    cJSON_Delete(o.report);
    assert_string_equal(rung_pool_device(mine->pool), "nothing");
    assert_int_equal(rung_pool_sm_count(mine->pool), 4);
    harness_free(mine);
}

static void the_pool_waits_for_nobody_when_cancelled(void **state)
{
    (void)state;
    struct harness *mine = harness_new();
    struct rung_error err = rung_error_init();
    struct rung_outcome o;
    const struct rung_job job = {.label = "late",
                                 .bundle = harness_bundle(mine->arena, "good"),
                                 .stages = RUNG_STAGE_COMPILE};
    harness_start(mine);
    rung_pool_cancel(mine->pool);
    assert_int_equal(rung_pool_run(mine->pool, &job, mine->arena, &o, &err), RUNG_ECANCELLED);
    harness_free(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_candidate_is_accepted_with_a_modelled_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_report_is_that_of_eval, setup, teardown),
        cmocka_unit_test_setup_teardown(measured_times_are_medians_with_an_interval, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(stages_and_points_are_obeyed, setup, teardown),
        cmocka_unit_test_setup_teardown(an_artifact_travels_once_and_rungs_may_keep_their_own,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(large_bundles_travel_in_chunks, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_share_the_workers, setup, teardown),
        cmocka_unit_test(unlike_workers_serve_only_who_asks_for_their_device),
        cmocka_unit_test(two_workers_behind_a_prefix),
        cmocka_unit_test(the_pool_waits_for_nobody_when_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
