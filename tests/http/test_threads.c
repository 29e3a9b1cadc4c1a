/* Calls from eight threads at once, the first of which opens the library; and the process's end. */
#include "base/io.h"
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 12 };

static struct server server;

static int begin(void **state)
{
    (void)state;
    server = server_start(NULL, NULL);
    setenv("HTTP_TEST_KEY", "sk-of-eight-threads", 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

/* cmocka's assertions belong to the main thread: a worker counts its faults. */
static bool one_call(int thread, int i)
{
    char body[64], expected[64];
    struct http_call c;
    struct rung_http_header header = http_secret("X-Key", "env:HTTP_TEST_KEY", NULL);
    snprintf(body, sizeof body, "thread %d call %d", thread, i);
    snprintf(expected, sizeof expected, "\n\nthread %d call %d", thread, i);
    http_begin(&c, &server, "/echo");
    c.request.headers = &header;
    c.request.n_headers = 1;
    c.request.body = (struct rung_text){body, strlen(body)};
    bool good = http_try(&c) == RUNG_OK && c.response.status == 200 &&
                strstr(c.response.body.ptr, expected) &&
                strstr(c.response.body.ptr, "X-Key: ***\n");
    http_end(&c);
    return good;
}

static void *many_calls(void *arg)
{
    int thread = *(int *)arg;
    intptr_t faults = 0;
    for (int i = 0; i < CALLS; i++)
        faults += !one_call(thread, i);
    return (void *)faults;
}

static void calls_do_not_mix(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, many_calls, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *faults;
        assert_int_equal(pthread_join(threads[i], &faults), 0);
        assert_null(faults);
    }
}

static void *wait_long(void *unused)
{
    struct http_call c;
    (void)unused;
    http_begin(&c, &server, "/slow/20000");
    http_try(&c);
    http_end(&c);
    return NULL;
}

static void end_amid_a_transfer(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_long, NULL) == 0 && pthread_detach(thread) == 0)
        usleep(300 * 1000);
    exit(0);
}

/* Before this process has a thread for its own transfers, which a child would not have. */
static void the_process_can_end_at_any_time(void **state)
{
    (void)state;
    int status;
    uint64_t begin_ns = rung_now_ns();
    pid_t child = fork();
    if (child == 0)
        end_amid_a_transfer();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(rung_now_ns() - begin_ns < 5000 * 1000000ull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_process_can_end_at_any_time),
                                       cmocka_unit_test(calls_do_not_mix)};
    return cmocka_run_group_tests(tests, begin, end);
}
