/* 200 jobs, every fourth of which crashes: no descriptor, process or memory is lost on the way. */
#include "worker/harness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct usage {
    size_t descriptors, children, supervisor_descriptors, executors;
    long resident_kib;
};

static long resident_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(file);
    return kib;
}

static struct usage usage_now(void)
{
    struct usage u = {.descriptors = harness_descriptors(getpid())};
    pid_t children[8], executors[8];
    u.children = harness_children(getpid(), children, 8);
    assert_int_equal(u.children, 1);
    u.executors = harness_children(children[0], executors, 8);
    u.supervisor_descriptors = harness_descriptors(children[0]);
    u.resident_kib = resident_kib(children[0]);
    return u;
}

static void judge(struct harness *h, int i)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    struct rung_outcome o;
    const char *marker = i % 4 ? "good" : "crash";
    const struct rung_job job = {.label = "leak",
                                 .bundle = harness_bundle(arena, marker),
                                 .stages = RUNG_STAGE_CHECK | RUNG_STAGE_TIME};
    if (rung_pool_run(h->pool, &job, arena, &o, &err) != RUNG_OK)
        fail_msg("job %d: %s", i, err.message);
    harness_expect(&o, i % 4 ? RUNG_ACCEPTED : RUNG_REJECTED, i % 4 ? "" : "run.crash");
    cJSON_Delete(o.report);
    rung_arena_free(arena);
}

static void two_hundred_jobs_leave_nothing_behind(void **state)
{
    (void)state;
    struct harness *h = harness_new();
    harness_start(h);
    for (int i = 0; i < 9; i++)
        judge(h, i + 1);
    struct usage before = usage_now();
    for (int i = 0; i < 200; i++)
        judge(h, i);
    judge(h, 1); /* so that the executor is at rest again */
    struct usage after = usage_now();
    assert_int_equal(after.descriptors, before.descriptors);
    assert_int_equal(after.executors, 1);
    assert_int_equal(after.supervisor_descriptors, before.supervisor_descriptors);
    assert_true(HARNESS_SANITIZED || after.resident_kib < before.resident_kib + 8192);
    harness_free(h);
    pid_t left;
    assert_int_equal(harness_children(getpid(), &left, 1), 0);
}

static void an_executor_lives_through_many_jobs_at_a_steady_size(void **state)
{
    (void)state;
    struct harness *h = harness_new();
    pid_t supervisor, executor, same;
    harness_start(h);
    for (int i = 0; i < 50; i++)
        judge(h, 1);
    assert_int_equal(harness_children(getpid(), &supervisor, 1), 1);
    assert_int_equal(harness_children(supervisor, &executor, 1), 1);
    size_t descriptors = harness_descriptors(executor);
    long before = resident_kib(executor);
    for (int i = 0; i < 1000; i++)
        judge(h, 1);
    assert_int_equal(harness_children(supervisor, &same, 1), 1);
    assert_int_equal(same, executor);
    assert_int_equal(harness_descriptors(executor), descriptors);
    assert_true(HARNESS_SANITIZED || resident_kib(executor) < before + 4096);
    harness_free(h);
}

int main(void)
{
    rung_log_level(RUNG_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hundred_jobs_leave_nothing_behind),
        cmocka_unit_test(an_executor_lives_through_many_jobs_at_a_steady_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
