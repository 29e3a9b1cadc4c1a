/* rung.host.process/0: helpers that answer, fail, crash, hang, eat memory, and are killed. */
#include "codegen/harness.h"
#include <rung/host.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

static struct harness h;
static struct rung_helper *helper;

static const struct rung_host_process *process(void)
{
    return h.instance->host->get_extension(h.instance->host, RUNG_HOST_PROCESS);
}

static int32_t open_with(const char *args)
{
    struct rung_text text = {args, strlen(args)};
    return process()->open(h.instance->host, &h.call, text, &helper);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(harness_open(&h, RUNG_KIND_COMPILER, "moody", "{}", false), RUNG_OK);
    assert_int_equal(open_with("go"), RUNG_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    process()->close(h.instance->host, helper);
    harness_close(&h);
    return 0;
}

static int32_t ask_limited(const char *text, uint64_t wall_ms, uint64_t memory, uint64_t bytes,
                           struct rung_helper_response *out)
{
    struct rung_helper_request q = {.struct_size = sizeof(q),
                                    .body = {text, strlen(text)},
                                    .wall_ms = wall_ms,
                                    .memory_bytes = memory,
                                    .response_bytes = bytes};
    *out = (struct rung_helper_response){.struct_size = sizeof(*out)};
    harness_reset(&h);
    return process()->request(h.instance->host, &h.call, helper, &q, out);
}

static void expect(const char *request, uint32_t outcome, const char *body)
{
    struct rung_helper_response r;
    assert_int_equal(ask_limited(request, 5000, 0, 0, &r), RUNG_OK);
    assert_int_equal(r.outcome, outcome);
    if (body)
        assert_string_equal(r.body.ptr, body);
}

static void alive(void)
{
    expect("echo still here", RUNG_HELPER_DONE, "still here");
}

static void answers(void **state)
{
    (void)state;
    expect("echo one", RUNG_HELPER_DONE, "one");
    expect("echo ", RUNG_HELPER_DONE, "");
    expect("big 20000000", RUNG_HELPER_DONE, NULL);
    expect("stderr hello", RUNG_HELPER_DONE, "");
    alive();
}

static void children_find_what_was_prepared(void **state)
{
    (void)state;
    struct rung_helper_response r;
    expect("echo a", RUNG_HELPER_DONE, "a");
    expect("prepared", RUNG_HELPER_DONE, "echo a");
    expect("prepared", RUNG_HELPER_DONE, "prepared");
    assert_int_equal(ask_limited("hang", 50, 0, 0, &r), RUNG_OK);
    expect("prepared", RUNG_HELPER_DONE, "hang");
}

static void errors_of_serve_come_back(void **state)
{
    (void)state;
    struct rung_helper_response r;
    assert_int_equal(ask_limited("fail", 1000, 0, 0, &r), RUNG_EUNSUPPORTED);
    assert_string_equal(h.error.message, "not this");
    assert_string_equal(h.error.symbol, "moody.test");
    expect("full", RUNG_HELPER_MEMORY, NULL);
    alive();
}

static void crashes_are_outcomes(void **state)
{
    (void)state;
    struct rung_helper_response r;
    assert_int_equal(ask_limited("crash", 1000, 0, 0, &r), RUNG_OK);
    assert_int_equal(r.outcome, RUNG_HELPER_CRASHED);
    support_contains(r.detail.ptr, "signal 6");
    assert_int_equal(ask_limited("exit", 1000, 0, 0, &r), RUNG_OK);
    assert_int_equal(r.outcome, RUNG_HELPER_CRASHED);
    support_contains(r.detail.ptr, "status 7");
    alive();
}

static void hangs_are_killed_in_time(void **state)
{
    (void)state;
    static const char *const ways[] = {"hang", "spin"};
    for (int i = 0; i < 2; i++) {
        struct rung_helper_response r;
        uint64_t start = rung_now_ns();
        assert_int_equal(ask_limited(ways[i], 300, 0, 0, &r), RUNG_OK);
        uint64_t ms = (rung_now_ns() - start) / 1000000;
        assert_int_equal(r.outcome, RUNG_HELPER_TIMEOUT);
        assert_in_range(ms, 295, 800);
    }
    alive();
}

static void the_call_s_deadline_counts(void **state)
{
    (void)state;
    struct rung_helper_response r;
    h.call.deadline_ns = rung_now_ns() + 200000000u;
    int32_t status = ask_limited("hang", 60000, 0, 0, &r);
    h.call.deadline_ns = 0;
    assert_int_equal(status, RUNG_OK);
    assert_int_equal(r.outcome, RUNG_HELPER_TIMEOUT);
    alive();
}

static void memory_is_limited(void **state)
{
    (void)state;
    struct rung_helper_response r;
    if (UNDER_SANITIZER)
        skip();
    assert_int_equal(ask_limited("eat", 20000, 200 << 20, 0, &r), RUNG_OK);
    assert_int_equal(r.outcome, RUNG_HELPER_MEMORY);
    alive();
}

static void large_responses_are_refused(void **state)
{
    (void)state;
    struct rung_helper_response r;
    assert_int_equal(ask_limited("big 2000000", 5000, 0, 1000000, &r), RUNG_OK);
    assert_int_equal(r.outcome, RUNG_HELPER_TOO_LARGE);
    alive();
}

static void nothing_can_be_opened(void **state)
{
    (void)state;
    expect("/etc/passwd", RUNG_HELPER_DONE, "refused 24"); /* EMFILE */
    expect("/dev/null", RUNG_HELPER_DONE, "refused 24");
    expect("socket", RUNG_HELPER_DONE, "refused 24");
}

static void init_failures_are_told(void **state)
{
    (void)state;
    struct rung_helper *first = helper;
    assert_int_equal(open_with("refuse"), RUNG_EUNAVAILABLE);
    assert_string_equal(h.error.message, "no mood for it");
    harness_reset(&h);
    assert_int_equal(open_with("die"), RUNG_EUNAVAILABLE);
    support_contains(h.error.message, "signal 6");
    support_contains(h.error.message, "last words");
    harness_reset(&h);
    h.call.deadline_ns = rung_now_ns() + 300000000u;
    assert_int_equal(open_with("sleep"), RUNG_ETIMEOUT);
    h.call.deadline_ns = 0;
    helper = first;
    alive();
}

static void a_dead_helper_is_unavailable_and_another_opens(void **state)
{
    (void)state;
    struct rung_helper_response r;
    assert_int_equal(ask_limited("kill parent", 5000, 0, 0, &r), RUNG_EUNAVAILABLE);
    support_contains(h.error.message, "signal 9");
    assert_int_equal(ask_limited("echo x", 5000, 0, 0, &r), RUNG_EUNAVAILABLE);
    process()->close(h.instance->host, helper);
    harness_reset(&h);
    assert_int_equal(open_with("go"), RUNG_OK);
    alive();
}

/* A process that opens a helper, asks it for something endless, and is killed. */
static void be_killed(void)
{
    struct rung_helper_response r;
    assert_int_equal(open_with("go"), RUNG_OK);
    ask_limited("hang", 0, 0, 0, &r);
    _exit(1);
}

/* Orphans come to this process, so that all are gone when it has no child left. */
static void helpers_die_with_their_opener(void **state)
{
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    process()->close(h.instance->host, helper);
    helper = NULL;
    for (int ms = 200; ms <= 1000; ms += 400) {
        pid_t pid = fork();
        if (pid == 0)
            be_killed();
        usleep((useconds_t)ms * 1000);
        kill(pid, SIGKILL);
        uint64_t until = rung_now_ns() + 5000000000u;
        while (waitpid(-1, NULL, WNOHANG) >= 0 && rung_now_ns() < until)
            usleep(1000);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    harness_reset(&h);
    assert_int_equal(open_with("go"), RUNG_OK);
    alive();
}

int main(int argc, char **argv)
{
    HARNESS_HELPER(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(children_find_what_was_prepared),
        cmocka_unit_test(errors_of_serve_come_back),
        cmocka_unit_test(crashes_are_outcomes),
        cmocka_unit_test(hangs_are_killed_in_time),
        cmocka_unit_test(the_call_s_deadline_counts),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(large_responses_are_refused),
        cmocka_unit_test(nothing_can_be_opened),
        cmocka_unit_test(init_failures_are_told),
        cmocka_unit_test(a_dead_helper_is_unavailable_and_another_opens),
        cmocka_unit_test(helpers_die_with_their_opener),
    };
    return cmocka_run_group_tests_name("process", tests, setup, teardown);
}
