/* Event streams from a real server: pieces, faults, limits and slow readers. */
#include "base/io.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>
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

struct seen {
    char text[512]; /* "name|data;" of each event */
    unsigned n, stop_after;
    size_t bytes;
    unsigned sleep_us, sleep_once_ms;
};

static int32_t see(void *ctx, struct rung_text name, struct rung_text data)
{
    struct seen *seen = ctx;
    size_t at = strlen(seen->text);
    snprintf(seen->text + at, sizeof seen->text - at, "%s|%.80s;", name.ptr, data.ptr);
    seen->bytes += data.len;
    if (seen->n == 0 && seen->sleep_once_ms)
        usleep(seen->sleep_once_ms * 1000);
    usleep(seen->sleep_us);
    return ++seen->n == seen->stop_after;
}

/* A call that gathers events. */
static void open_stream(struct http_call *c, struct seen *seen, const char *path)
{
    http_begin(c, &server, path);
    c->request.on_event = see;
    c->request.ctx = seen;
}

static void streams_to(const char *path, int32_t status, const char *symbol, const char *expected)
{
    struct http_call c;
    struct seen seen = {.n = 0};
    open_stream(&c, &seen, path);
    int32_t got = http_do(&c);
    if (got != status || strcmp(seen.text, expected) != 0)
        fail_msg("%s: %d %s, \"%s\"", path, got, c.error.message, seen.text);
    assert_string_equal(c.error.symbol, symbol);
    http_end(&c);
}

#define PLAIN "message|one;two|2a\n2b;message|[DONE];"

static void events_come_whole(void **state)
{
    (void)state;
    streams_to("/events/plain", RUNG_OK, "", PLAIN);
    streams_to("/bytes/plain", RUNG_OK, "", PLAIN);
    streams_to("/bytes/utf8", RUNG_OK, "", "message|h\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80;");
    streams_to("/bytes/crlf", RUNG_OK, "", "message|one;message|two;");
    streams_to("/events/crlf", RUNG_OK, "", "message|one;message|two;");
    streams_to("/comments/20/5", RUNG_OK, "", "message|at last;");
    streams_to("/bytes/error", RUNG_OK, "",
               "message|one;error|{\"error\":{\"type\":\"overloaded\"}};");
    streams_to("/cut", RUNG_EIO, "http.broken", "message|whole;");
}

static void the_body_is_kept_unless_the_plugin_says_so(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.n = 0};
    open_stream(&c, &seen, "/bytes/plain");
    assert_int_equal(http_do(&c), RUNG_OK);
    support_contains(c.response.body.ptr, "data: one\n\nevent: two\ndata: 2a\n");
    c.request.flags = RUNG_HTTP_EVENTS_ONLY;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.n, 6);
    assert_int_equal(c.response.body.len, 0);
    assert_string_equal(c.response.body.ptr, "");
    http_end(&c);
    open_stream(&c, &seen, "/status/500");
    c.request.flags = RUNG_HTTP_EVENTS_ONLY;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(c.response.body.ptr, "status 500");
    http_end(&c);
}

static void only_event_streams_bring_events(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool brings;
    } cases[] = {{"/typed/text%2Fevent-stream", true},
                 {"/typed/TEXT%2FEVENT-STREAM;charset=utf-8", true},
                 {"/typed/text%2Fevent-streams", false},
                 {"/typed/text%2Fevent", false},
                 {"/typed/application%2Fjson", false},
                 {"/typed/none", false},
                 {"/status/200", false},
                 {"/status/429", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_call c;
        struct seen seen = {.n = 0};
        open_stream(&c, &seen, cases[i].path);
        assert_int_equal(http_do(&c), RUNG_OK);
        assert_int_equal(seen.n, cases[i].brings ? 3 : 0);
        assert_true(c.response.body.len > 0);
        http_end(&c);
    }
}

/* Compressed as asked: undone. Compressed for no reason: the body as it came, and no events. */
static void compression_is_the_plugins_wish(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.n = 0};
    struct rung_http_header wish = http_header("Accept-Encoding", "gzip");
    open_stream(&c, &seen, "/gzip/0");
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(seen.text, PLAIN);
    assert_string_equal(http_value(&c, "content-encoding"), "");
    seen = (struct seen){.n = 0};
    c.request.headers = &wish;
    c.request.n_headers = 1;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(http_value(&c, "content-encoding"), "gzip");
    assert_string_equal(seen.text, PLAIN);
    support_contains(c.response.body.ptr, "data: [DONE]");
    c.request.max_response_bytes = 20;
    assert_int_equal(http_do(&c), RUNG_EIO);
    assert_string_equal(c.error.symbol, "http.too_large");
    http_end(&c);
    seen = (struct seen){.n = 0};
    open_stream(&c, &seen, "/gzip/1");
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.n, 0);
    assert_memory_equal(c.response.body.ptr, "\x1f\x8b", 2);
    http_end(&c);
    open_stream(&c, &seen, "/gzip/2");
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.n, 0);
    http_end(&c);
}

static void events_have_a_limit(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.n = 0};
    open_stream(&c, &seen, "/huge/1000000");
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.bytes, 1000000);
    c.request.max_event_bytes = 999999;
    assert_int_equal(http_do(&c), RUNG_EIO);
    assert_string_equal(c.error.symbol, "http.too_large");
    assert_int_equal(seen.n, 1);
    c.request.max_event_bytes = 1000000;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.n, 2);
    http_end(&c);
    open_stream(&c, &seen, "/huge/9000000"); /* the default is 8 MiB */
    assert_int_equal(http_do(&c), RUNG_EIO);
    assert_string_equal(c.error.symbol, "http.too_large");
    http_end(&c);
}

static void times_out(struct http_call *c, const char *symbol, double least_s)
{
    uint64_t start = rung_now_ns();
    assert_int_equal(http_do(c), RUNG_ETIMEOUT);
    assert_string_equal(c->error.symbol, symbol);
    double seconds = (double)(rung_now_ns() - start) * 1e-9;
    assert_true(seconds >= least_s && seconds < least_s + 1.5);
}

/* Comments are a sign of life to between_bytes, not to the limits of events. */
static void events_have_deadlines(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.n = 0};
    open_stream(&c, &seen, "/comments/100/20");
    c.request.first_event_ms = 300;
    c.request.between_bytes_ms = 200;
    times_out(&c, "http.first_event", 0.3);
    assert_int_equal(seen.n, 0);
    c.request.first_event_ms = 0;
    c.request.first_byte_ms = 400; /* which the first event then has too */
    times_out(&c, "http.first_event", 0.4);
    c.request.first_event_ms = 5000;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(seen.text, "message|at last;");
    http_end(&c);
    open_stream(&c, &seen, "/wait/100/20");
    c.request.between_events_ms = 300;
    times_out(&c, "http.between_events", 0.3);
    c.request.between_events_ms = 0;
    assert_int_equal(http_do(&c), RUNG_OK);
    http_end(&c);
    open_stream(&c, &seen, "/slow/3000");
    c.request.first_event_ms = 300;
    times_out(&c, "http.first_event", 0.3);
    http_end(&c);
    open_stream(&c, &seen, "/wait/1/3000");
    c.request.between_bytes_ms = 300;
    times_out(&c, "http.stalled", 0.3);
    http_end(&c);
    open_stream(&c, &seen, "/stall/800"); /* no events: their limits don't count */
    c.request.first_event_ms = 300;
    c.request.between_events_ms = 300;
    assert_int_equal(http_do(&c), RUNG_OK);
    http_end(&c);
}

static void the_caller_stops_at_an_event(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.stop_after = 2};
    open_stream(&c, &seen, "/tokens/1000/5");
    assert_int_equal(http_do(&c), RUNG_ECANCELLED);
    assert_string_equal(c.error.symbol, "http.stopped");
    assert_string_equal(seen.text, "message|token 0;message|token 1;");
    http_end(&c);
}

/* 20 MB would come while the reader sleeps; the server is held up long before that. */
static void a_slow_reader_holds_the_server_up(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.sleep_once_ms = 1000, .stop_after = 1};
    char line[64];
    open_stream(&c, &seen, "/flood/20000");
    assert_int_equal(http_do(&c), RUNG_ECANCELLED);
    http_end(&c);
    assert_non_null(fgets(line, sizeof line, server.output));
    assert_memory_equal(line, "flood ", 6);
    long sent = strtol(line + 6, NULL, 10);
    assert_true(sent > 0 && sent < 8000);
}

static void a_slow_reader_misses_nothing(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {.sleep_us = 100};
    char line[64];
    open_stream(&c, &seen, "/flood/5000");
    c.request.between_bytes_ms = 2000;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(seen.n, 5000);
    assert_int_equal(seen.bytes, 5000 * 1000);
    assert_int_equal(c.response.body.len, 5000 * 1008);
    assert_non_null(fgets(line, sizeof line, server.output));
    assert_string_equal(line, "flood 5000\n");
    http_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_whole),
        cmocka_unit_test(the_body_is_kept_unless_the_plugin_says_so),
        cmocka_unit_test(only_event_streams_bring_events),
        cmocka_unit_test(compression_is_the_plugins_wish),
        cmocka_unit_test(events_have_a_limit),
        cmocka_unit_test(events_have_deadlines),
        cmocka_unit_test(the_caller_stops_at_an_event),
        cmocka_unit_test(a_slow_reader_holds_the_server_up),
        cmocka_unit_test(a_slow_reader_misses_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
