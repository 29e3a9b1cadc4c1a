/* Calls from eight threads at once, the first of which opens the library. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_do_not_mix)};
    return cmocka_run_group_tests(tests, begin, end);
}
