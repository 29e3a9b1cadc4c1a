/* Candidates that fail, crash, hang and print: each is an outcome, and the next job runs as ever.
 */
#include "worker/harness.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Judges, checks, and shows that the worker is as good as before. */
static struct rung_outcome judge(const char *markers, uint32_t verdict, const char *code)
{
    struct rung_outcome o = harness_judge(h, markers);
    harness_expect(&o, verdict, code);
    struct rung_outcome next = harness_judge(h, "good");
    harness_expect(&next, RUNG_ACCEPTED, "");
    cJSON_Delete(next.report);
    return o;
}

static void verdicts_become_outcomes(void **state)
{
    (void)state;
    static const struct {
        const char *marker;
        uint32_t verdict;
        const char *code, *message;
    } cases[] = {
        {"fail", RUNG_REJECTED, "numeric.mismatch", "as the marker says"},
        {"note", RUNG_ACCEPTED, "", ""},
        {"unsupported", RUNG_NOT_SUPPORTED, "device.unsupported", "as the marker says"},
        {"error", RUNG_INCONCLUSIVE, "internal", "as the marker says"},
        {"codeless", RUNG_INCONCLUSIVE, "internal", "its code is missing"},
        {"badcode", RUNG_INCONCLUSIVE, "internal", "its code is missing"},
        {"nonsense", RUNG_INCONCLUSIVE, "internal", "unknown status"},
        {"late", RUNG_REJECTED, "run.timeout", "out of time"},
        {"nomem", RUNG_NOT_SUPPORTED, "device.memory", "no room"},
        {"broken", RUNG_INCONCLUSIVE, "internal", "the check broke"},
        {"load-unsupported", RUNG_NOT_SUPPORTED, "device.unsupported", "wgmma"},
        {"compile-error", RUNG_REJECTED, "compile.error", "k.cu(1): error: no"},
        {"compile-broken", RUNG_INCONCLUSIVE, "internal", "the fake compiler broke"},
        {"time-fault", RUNG_REJECTED, "mem.out_of_bounds", "in the timed run"},
        {"time-broken", RUNG_INCONCLUSIVE, "internal", "the clock broke"},
    };
    static const char *const words[] = {"", "accepted", "rejected", "unsupported", "inconclusive"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rung_outcome o = judge(cases[i].marker, cases[i].verdict, cases[i].code);
        support_contains(o.message, cases[i].message);
        assert_string_equal(rung_json_text(o.report, "verdict", ""), words[cases[i].verdict]);
        assert_int_equal(cJSON_GetArraySize(rung_json_get(o.report, "rungs")), 3);
        cJSON_Delete(o.report);
    }
}

static void a_crash_is_the_candidates_and_named(void **state)
{
    (void)state;
    struct rung_outcome o = judge("crash", RUNG_REJECTED, "run.crash");
    support_contains(o.message, "candidate 1: the process died with signal 11");
    support_contains(o.message, "in marker, at rows=8");
    assert_string_equal(o.point, "T=32");
    assert_int_equal(o.n_points, 2);
    assert_string_equal(rung_json_text(harness_rung(&o, 0), "status", ""), "pass");
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "status", ""), "fail");
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "code", ""), "run.crash");
    assert_string_equal(rung_json_text(harness_rung(&o, 2), "status", ""), "skipped");
    cJSON_Delete(o.report);
    o = judge("exit", RUNG_REJECTED, "run.crash");
    support_contains(o.message, "exit status 7");
    cJSON_Delete(o.report);
    o = judge("time-crash", RUNG_REJECTED, "run.crash");
    support_contains(o.message, "in time, at rows=8");
    cJSON_Delete(o.report);
}

static void a_check_that_breaks_by_itself_says_nothing_of_the_kernel(void **state)
{
    (void)state;
    struct rung_outcome o = judge("check-crash", RUNG_INCONCLUSIVE, "internal");
    support_contains(o.message, "in marker; no kernel was running: the check itself is at fault");
    assert_string_equal(rung_json_text(harness_rung(&o, 1), "status", ""), "error");
    cJSON_Delete(o.report);
    o = judge("check-hang", RUNG_INCONCLUSIVE, "internal");
    support_contains(o.message, "the check itself, between two runs of the kernel");
    cJSON_Delete(o.report);
}

static void deaths_that_prove_nothing_are_inconclusive(void **state)
{
    (void)state;
    struct rung_outcome o = judge("killed", RUNG_INCONCLUSIVE, "internal");
    support_contains(o.message, "killed from outside");
    cJSON_Delete(o.report);
    o = judge("compile-crash", RUNG_INCONCLUSIVE, "internal");
    support_contains(o.message, "in compile");
    cJSON_Delete(o.report);
}

static void what_hangs_is_killed_at_its_deadline(void **state)
{
    (void)state;
    double before = harness_now();
    struct rung_outcome o = judge("hang", RUNG_REJECTED, "run.timeout");
    assert_true(harness_now() - before < 1 + 3);
    support_contains(o.message, "the kernel did not end within");
    support_contains(o.message, "in marker, at rows=8");
    cJSON_Delete(o.report);
    o = judge("compile-hang", RUNG_REJECTED, "compile.timeout");
    support_contains(o.message, "compiling did not end within 1 s");
    cJSON_Delete(o.report);
}

static void printing_does_not_reach_the_protocol(void **state)
{
    (void)state;
    struct rung_outcome o = judge("print", RUNG_ACCEPTED, "");
    cJSON_Delete(o.report);
}

static void a_lost_device_gets_a_fresh_executor(void **state)
{
    (void)state;
    struct rung_outcome o = judge("kernel-lost", RUNG_INCONCLUSIVE, "device.lost");
    cJSON_Delete(o.report);
}

static void an_executor_killed_between_jobs_is_replaced(void **state)
{
    (void)state;
    pid_t supervisor, executor;
    struct rung_outcome o = harness_judge(h, "good");
    cJSON_Delete(o.report);
    assert_int_equal(harness_children(getpid(), &supervisor, 1), 1);
    for (int i = 0; i < 4; i++) { /* also with the next job already on its way */
        assert_int_equal(harness_children(supervisor, &executor, 1), 1);
        kill(executor, SIGKILL);
        o = harness_judge(h, "good");
        harness_expect(&o, RUNG_ACCEPTED, "");
        cJSON_Delete(o.report);
    }
}

static void a_killed_supervisor_takes_its_executor_along(void **state)
{
    (void)state;
    pid_t supervisor, executor;
    assert_int_equal(harness_children(getpid(), &supervisor, 1), 1);
    assert_int_equal(harness_children(supervisor, &executor, 1), 1);
    kill(supervisor, SIGKILL);
    assert_true(harness_gone(executor, 2));
    struct rung_outcome o = harness_judge(h, "good"); /* by a worker started anew */
    harness_expect(&o, RUNG_ACCEPTED, "");
    cJSON_Delete(o.report);
}

static void *judge_hanging(void *arg)
{
    struct rung_outcome *o = arg;
    *o = harness_judge(h, "hang");
    return NULL;
}

/* The supervisor of a job that has reached its n-th check. */
static pid_t busy_supervisor(unsigned n)
{
    static const struct timespec pause = {0, 5000000};
    pid_t supervisor = 0;
    double until = harness_now() + 15;
    while (atomic_load(&h->marked) < n && harness_now() < until)
        nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(&h->marked), n);
    assert_int_equal(harness_children(getpid(), &supervisor, 1), 1);
    return supervisor;
}

static void *cancel_soon(void *arg)
{
    (void)arg;
    busy_supervisor(1);
    rung_pool_cancel(h->pool);
    return NULL;
}

/* The worker dies with the job in hand, twice: the job counts as judged, inconclusively. */
static void a_job_whose_workers_are_lost_is_inconclusive(void **state)
{
    (void)state;
    struct rung_outcome o;
    pthread_t thread;
    h = harness_new();
    h->pipeline.limits.check_s = 20;
    harness_start(h);
    assert_int_equal(pthread_create(&thread, NULL, judge_hanging, &o), 0);
    for (unsigned i = 1; i <= 2; i++)
        kill(busy_supervisor(i), SIGKILL);
    pthread_join(thread, NULL);
    harness_expect(&o, RUNG_INCONCLUSIVE, "internal");
    support_contains(o.message, "candidate 1: no worker could finish it");
    cJSON_Delete(o.report);
    harness_free(h);
}

static void cancelling_ends_a_running_job(void **state)
{
    (void)state;
    struct rung_error err = rung_error_init();
    struct rung_outcome o;
    pthread_t thread;
    h = harness_new();
    h->pipeline.limits.check_s = 20;
    harness_start(h);
    const struct rung_job job = {
        .label = "c", .bundle = harness_bundle(h->arena, "hang"), .stages = RUNG_STAGE_CHECK};
    double before = harness_now();
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
    assert_int_equal(rung_pool_run(h->pool, &job, h->arena, &o, &err), RUNG_ECANCELLED);
    assert_true(harness_now() - before < 10);
    pthread_join(thread, NULL);
    harness_free(h);
}

static void a_pool_that_no_worker_joins_says_why(void **state)
{
    (void)state;
    static const char *const nowhere[] = {"/nonexistent/launcher", NULL};
    struct rung_error err = rung_error_init();
    struct harness *mine = harness_with_graph("wrong");
    struct rung_pool_spec spec = {.registry = mine->registry,
                                  .pipeline = &mine->pipeline,
                                  .task = mine->task,
                                  .task_node = mine->task_node,
                                  .data_dir = "/"};
    assert_int_equal(rung_pool_new(&spec, &mine->pool, &err), RUNG_ECONFIG);
    support_contains(err.message, "graph:1: unknown operator");
    mine->pool = NULL;
    harness_free(mine);
    mine = harness_new();
    mine->workers[0].device = "absent";
    spec.task = mine->task;
    spec.task_node = mine->task_node;
    spec.registry = mine->registry;
    spec.pipeline = &mine->pipeline;
    assert_int_equal(rung_pool_new(&spec, &mine->pool, &err), RUNG_EUNAVAILABLE);
    support_contains(err.message, "no device answers: absent: no such device here");
    mine->workers[0].device = "auto";
    mine->workers[0].launch = nowhere;
    assert_int_equal(rung_pool_new(&spec, &mine->pool, &err), RUNG_EUNAVAILABLE);
    support_contains(err.message, "/nonexistent/launcher");
    mine->pool = NULL;
    harness_free(mine);
}

int main(void)
{
    rung_log_level(RUNG_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts_become_outcomes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_crash_is_the_candidates_and_named, setup, teardown),
        cmocka_unit_test_setup_teardown(deaths_that_prove_nothing_are_inconclusive, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_check_that_breaks_by_itself_says_nothing_of_the_kernel,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_hangs_is_killed_at_its_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(printing_does_not_reach_the_protocol, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_device_gets_a_fresh_executor, setup, teardown),
        cmocka_unit_test_setup_teardown(an_executor_killed_between_jobs_is_replaced, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_killed_supervisor_takes_its_executor_along, setup,
                                        teardown),
        cmocka_unit_test(a_job_whose_workers_are_lost_is_inconclusive),
        cmocka_unit_test(cancelling_ends_a_running_job),
        cmocka_unit_test(a_pool_that_no_worker_joins_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
