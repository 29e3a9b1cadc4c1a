/* Hundreds of streams at once, and one of many that is cancelled. */
#include "base/io.h"
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CROWD = 512, TOKENS = 10, OTHERS = 100 };

static struct server server;

static int begin(void **state)
{
    struct rlimit limit;
    (void)state;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* the server inherits it */
        limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    server = server_start(NULL, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

struct caller {
    pthread_t thread;
    pthread_t seen_on; /* where on_event ran */
    struct rung_cancel *cancel;
    const char *path;
    unsigned n;
    bool in_order;
    int32_t status;
    char symbol[64];
    uint64_t end_ns;
};

static atomic_uint under_way;

static int32_t count(void *ctx, struct rung_text name, struct rung_text data)
{
    struct caller *caller = ctx;
    char expected[32];
    (void)name;
    snprintf(expected, sizeof expected, "token %u", caller->n);
    caller->in_order &= strcmp(expected, data.ptr) == 0;
    caller->seen_on = pthread_self();
    if (caller->n++ == 0)
        under_way++;
    return 0;
}

/* cmocka's assertions belong to the main thread. */
static void *call(void *arg)
{
    struct caller *caller = arg;
    struct http_call c;
    http_begin(&c, &server, caller->path);
    c.call.cancel = caller->cancel;
    c.request.on_event = count;
    c.request.ctx = caller;
    caller->in_order = true;
    caller->status = http_try(&c);
    caller->end_ns = rung_now_ns();
    snprintf(caller->symbol, sizeof caller->symbol, "%s", c.error.symbol);
    http_end(&c);
    return NULL;
}

static void start(struct caller *caller)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 * 1024);
    assert_int_equal(pthread_create(&caller->thread, &attributes, call, caller), 0);
    pthread_attr_destroy(&attributes);
}

static void every_stream_of_a_crowd_comes_whole(void **state)
{
    (void)state;
    static struct caller callers[CROWD];
    for (int i = 0; i < CROWD; i++) {
        callers[i] = (struct caller){.path = "/tokens/10/100"};
        start(&callers[i]);
    }
    for (int i = 0; i < CROWD; i++) {
        struct caller *c = &callers[i];
        assert_int_equal(pthread_join(c->thread, NULL), 0);
        if (c->status != RUNG_OK || c->n != TOKENS || !c->in_order)
            fail_msg("stream %d: %d %s, %u tokens", i, c->status, c->symbol, c->n);
        assert_true(pthread_equal(c->seen_on, c->thread));
    }
}

static void one_of_many_is_cancelled_at_once(void **state)
{
    (void)state;
    static struct caller callers[OTHERS + 1];
    struct rung_cancel *one = rung_cancel_new(), *all = rung_cancel_new();
    under_way = 0;
    for (int i = 0; i <= OTHERS; i++) {
        callers[i] = (struct caller){.path = "/tokens/1000/100", .cancel = i ? all : one};
        if (i == 0)
            callers[i].path = "/wait/1/20000"; /* nothing else wakes it */
        start(&callers[i]);
    }
    for (int i = 0; under_way <= OTHERS && i < 1000; i++)
        usleep(10 * 1000);
    assert_int_equal(under_way, OTHERS + 1);
    uint64_t begin_ns = rung_now_ns();
    rung_cancel_request(one);
    pthread_join(callers[0].thread, NULL);
    assert_true(callers[0].end_ns - begin_ns < 200 * 1000000ull);
    assert_int_equal(callers[0].status, RUNG_ECANCELLED);
    assert_string_equal(callers[0].symbol, "http.cancelled");
    usleep(300 * 1000); /* the others go on */
    begin_ns = rung_now_ns();
    rung_cancel_request(all);
    for (int i = 1; i <= OTHERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_true(callers[i].n >= 3 && callers[i].in_order);
        assert_string_equal(callers[i].symbol, "http.cancelled");
        assert_true(callers[i].end_ns >= begin_ns);
    }
    rung_cancel_free(one);
    rung_cancel_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stream_of_a_crowd_comes_whole),
        cmocka_unit_test(one_of_many_is_cancelled_at_once),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
