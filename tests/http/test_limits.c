/* Deadlines, caps, cancels and servers that aren't there or break off. */
#include "base/io.h"
#include "harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct server server;

static int begin(void **state)
{
    (void)state;
    server = server_start(NULL, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

static double seconds_since(uint64_t begin_ns)
{
    return (double)(rung_now_ns() - begin_ns) * 1e-9;
}

static void expect(struct http_call *c, int32_t status, const char *symbol)
{
    assert_int_equal(http_do(c), status);
    assert_string_equal(c->error.symbol, symbol);
}

static void a_large_body_is_cut_at_the_limit(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/lines/200000");
    c.request.max_response_bytes = 100000;
    expect(&c, RUNG_EIO, "http.too_large");
    assert_int_equal(c.response.status, 200);
    assert_true(c.response.body.len <= 100000);
    c.request.max_response_bytes = 200000;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.body.len, 200000);
    http_end(&c);
}

static void a_large_head_is_refused(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/many_headers");
    expect(&c, RUNG_EIO, "http.too_large");
    http_end(&c);
}

static void a_full_arena_is_no_memory(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/lines/200000");
    rung_arena_set_limit(c.arena, 100000);
    expect(&c, RUNG_ENOMEM, "http.memory");
    http_end(&c);
}

static void a_late_first_byte_times_out(void **state)
{
    (void)state;
    static const char *const paths[] = {"/slow/3000", "/head_only/3000"};
    for (int i = 0; i < 2; i++) {
        struct http_call c;
        http_begin(&c, &server, paths[i]);
        c.request.first_byte_ms = 300;
        uint64_t start = rung_now_ns();
        expect(&c, RUNG_ETIMEOUT, "http.first_byte");
        assert_true(seconds_since(start) >= 0.3 && seconds_since(start) < 2.0);
        assert_int_equal(c.response.status, i == 0 ? 0 : 200);
        http_end(&c);
    }
}

static void a_stalled_body_times_out(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/stall/3000");
    c.request.between_bytes_ms = 300;
    uint64_t start = rung_now_ns();
    expect(&c, RUNG_ETIMEOUT, "http.stalled");
    assert_true(seconds_since(start) >= 0.3 && seconds_since(start) < 2.0);
    assert_string_equal(c.response.body.ptr, "one half, ");
    http_end(&c);
}

static int32_t dawdle(void *ctx, struct rung_text piece)
{
    (void)ctx;
    (void)piece;
    usleep(400 * 1000);
    return 0;
}

/* Slow but steady is fine, and so is a caller that takes its time. */
static void steady_bytes_do_not_time_out(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/chunks/5/100");
    c.request.first_byte_ms = 2000;
    c.request.between_bytes_ms = 390;
    assert_int_equal(http_do(&c), RUNG_OK);
    c.request.on_data = dawdle;
    assert_int_equal(http_do(&c), RUNG_OK);
    http_end(&c);
}

static void the_deadline_of_the_call_ends_it(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/chunks/1000/20");
    uint64_t start = rung_now_ns();
    c.call.deadline_ns = start + 300 * 1000000ull;
    expect(&c, RUNG_ETIMEOUT, "http.deadline");
    assert_true(seconds_since(start) >= 0.3 && seconds_since(start) < 2.0);
    http_end(&c);
}

static void what_is_past_its_deadline_is_not_sent(void **state)
{
    (void)state;
    struct http_call c;
    char before[32];
    http_begin(&c, &server, "/count");
    assert_int_equal(http_do(&c), RUNG_OK);
    snprintf(before, sizeof before, "%ld", strtol(c.response.body.ptr, NULL, 10) + 1);
    c.call.deadline_ns = 1;
    expect(&c, RUNG_ETIMEOUT, "http.deadline");
    c.call.deadline_ns = 0;
    c.call.cancel = rung_cancel_new();
    rung_cancel_request(c.call.cancel);
    expect(&c, RUNG_ECANCELLED, "http.cancelled");
    rung_cancel_free(c.call.cancel);
    c.call.cancel = NULL;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(c.response.body.ptr, before);
    http_end(&c);
}

struct canceller {
    struct rung_cancel *cancel;
    uint64_t at_ns;
};

static void *cancel_soon(void *arg)
{
    struct canceller *canceller = arg;
    usleep(650 * 1000);
    canceller->at_ns = rung_now_ns();
    rung_cancel_request(canceller->cancel);
    return NULL;
}

static void a_cancel_is_seen_within_200_ms(void **state)
{
    (void)state;
    static const char *const paths[] = {"/slow/5000", "/stall/5000", "/chunks/1000/5"};
    for (int i = 0; i < 3; i++) {
        struct http_call c;
        struct canceller canceller = {.cancel = rung_cancel_new()};
        pthread_t thread;
        http_begin(&c, &server, paths[i]);
        c.call.cancel = canceller.cancel;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &canceller), 0);
        expect(&c, RUNG_ECANCELLED, "http.cancelled");
        uint64_t end_ns = rung_now_ns();
        pthread_join(thread, NULL);
        assert_true(end_ns - canceller.at_ns < 200 * 1000000ull);
        rung_cancel_free(canceller.cancel);
        http_end(&c);
    }
}

/* A bound socket that does not listen. */
static int closed_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void a_closed_port_is_unavailable(void **state)
{
    (void)state;
    int port, fd = closed_port(&port);
    char url[64];
    struct http_call c;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    http_begin(&c, NULL, url);
    expect(&c, RUNG_EUNAVAILABLE, "http.connect");
    support_contains(c.error.message, url);
    assert_int_equal(c.response.status, 0);
    http_end(&c);
    close(fd);
}

static void a_connection_that_hangs_times_out(void **state)
{
    (void)state;
    int port, fd = closed_port(&port), waiting[8];
    char url[64];
    struct http_call c;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 8; i++) { /* fills the queue */
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(waiting[i], (struct sockaddr *)&address, sizeof address);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    http_begin(&c, NULL, url);
    c.request.connect_ms = 300;
    expect(&c, RUNG_ETIMEOUT, "http.connect_timeout");
    http_end(&c);
    for (int i = 0; i < 8; i++)
        close(waiting[i]);
    close(fd);
}

static void a_broken_connection_is_an_error(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/drop");
    expect(&c, RUNG_EIO, "http.broken");
    http_end(&c);
    http_begin(&c, &server, "/short");
    expect(&c, RUNG_EIO, "http.broken");
    assert_string_equal(c.response.body.ptr, "0123456789");
    http_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_body_is_cut_at_the_limit),
        cmocka_unit_test(a_large_head_is_refused),
        cmocka_unit_test(a_full_arena_is_no_memory),
        cmocka_unit_test(a_late_first_byte_times_out),
        cmocka_unit_test(a_stalled_body_times_out),
        cmocka_unit_test(steady_bytes_do_not_time_out),
        cmocka_unit_test(the_deadline_of_the_call_ends_it),
        cmocka_unit_test(what_is_past_its_deadline_is_not_sent),
        cmocka_unit_test(a_cancel_is_seen_within_200_ms),
        cmocka_unit_test(a_closed_port_is_unavailable),
        cmocka_unit_test(a_connection_that_hangs_times_out),
        cmocka_unit_test(a_broken_connection_is_an_error),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
