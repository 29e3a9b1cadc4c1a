/* The parser of server-sent events, by the rules of WHATWG HTML, 9.2.6: at every split in two and
 * byte by byte. */
#include "support/support.h"

#include "http/events.h"

#include <string.h>

struct seen {
    struct rung_buf text; /* "name|data;" of each event */
    int stop_after;
};

static int32_t see(void *ctx, struct rung_text name, struct rung_text data)
{
    struct seen *seen = ctx;
    assert_int_equal(name.ptr[name.len], 0);
    assert_int_equal(data.ptr[data.len], 0);
    rung_buf_add(&seen->text, name.ptr, name.len);
    rung_buf_putc(&seen->text, '|');
    rung_buf_add(&seen->text, data.ptr, data.len);
    rung_buf_putc(&seen->text, ';');
    return seen->stop_after && --seen->stop_after == 0;
}

/* Feeds two pieces, or with cut > n single bytes. */
static enum rung_events_result feed(const char *bytes, size_t n, size_t cut, uint32_t max,
                                    int stop_after, struct rung_buf *out)
{
    struct rung_events events = {.max_bytes = max};
    struct seen seen = {.stop_after = stop_after};
    enum rung_events_result result = RUNG_EVENTS_FED;
    size_t i = 0;
    while (i < n && result == RUNG_EVENTS_FED) {
        size_t piece = cut > n ? 1 : i == 0 && cut ? cut : n - i;
        result = rung_events_feed(&events, bytes + i, piece, see, &seen);
        i += piece;
    }
    rung_events_free(&events);
    *out = seen.text;
    return result;
}

static void at_every_split(const char *bytes, size_t n, uint32_t max, int stop_after,
                           enum rung_events_result result, const char *expected)
{
    for (size_t cut = 0; cut <= n + 1; cut++) {
        struct rung_buf out;
        enum rung_events_result got = feed(bytes, n, cut, max, stop_after, &out);
        if (got != result || out.len != strlen(expected) ||
            memcmp(rung_buf_text(&out), expected, out.len) != 0)
            fail_msg("cut at %zu of \"%.*s\": %d, \"%s\"", cut, (int)n, bytes, (int)got,
                     rung_buf_text(&out));
        rung_buf_free(&out);
    }
}

static void reads(const char *stream, const char *expected)
{
    at_every_split(stream, strlen(stream), 1000, 0, RUNG_EVENTS_FED, expected);
}

static void fields_are_read(void **state)
{
    (void)state;
    reads("data: a\n\n", "message|a;");
    reads("data:a\n\n", "message|a;");
    reads("data:  a\n\n", "message| a;");
    reads("data: a: b\n\n", "message|a: b;");
    reads("event: ping\ndata: {}\n\n", "ping|{};");
    reads("data: {}\nevent: ping\n\ndata: x\n\n", "ping|{};message|x;");
    reads("event: a\nevent: b\ndata: x\n\n", "b|x;");
    reads("event: a\nevent\ndata: x\n\n", "message|x;");
    reads("event: a\n\ndata: x\n\n", "message|x;");
    reads("id: 7\nretry: 10\nnonsense\ndatas: y\ndat: z\nDATA: q\n data: r\ndata: x\n\n",
          "message|x;");
}

/* The examples of the standard itself are among these. */
static void lines_of_data_are_joined(void **state)
{
    (void)state;
    reads("data: YHOO\ndata: +2\ndata: 10\n\n", "message|YHOO\n+2\n10;");
    reads("data\n\ndata\ndata\n\ndata:", "message|;message|\n;");
    reads("data:test\n\ndata: test\n\n", "message|test;message|test;");
    reads("data: a\ndata\ndata: b\n\n", "message|a\n\nb;");
    reads(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
          "event\n\n",
          "message|first event;message|second event;message| third event;");
}

static void lines_end_in_three_ways(void **state)
{
    (void)state;
    reads("data: a\r\rdata: b\r\n\r\ndata: c\n\n", "message|a;message|b;message|c;");
    reads("data: a\r\ndata: b\rdata: c\n\r\n", "message|a\nb\nc;");
    reads("data: a\n\r\ndata: b\r\n\n", "message|a;message|b;");
    reads("data: a\r\n\rdata: b\n\r", "message|a;message|b;");
    reads("\r\n\r\n\n\rdata: a\n\n\n\n", "message|a;");
}

static void comments_are_dropped(void **state)
{
    (void)state;
    reads(": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", "message|a;");
    reads(":\n\n:\n:data: x\n\n", "");
    reads("data: a\n: between\ndata: b\n\n", "message|a\nb;");
}

static void the_unfinished_is_dropped(void **state)
{
    (void)state;
    reads("data: a\n\ndata: b\n", "message|a;");
    reads("data: a\n\ndata: b", "message|a;");
    reads("", "");
    reads("data: a", "");
}

static void a_byte_order_mark_is_skipped_once(void **state)
{
    (void)state;
    reads("\xef\xbb\xbf"
          "data: a\n\n",
          "message|a;");
    reads("\xef\xbb\xbf\xef\xbb\xbf"
          "data: a\n\ndata: b\n\n",
          "message|b;");
    reads("\xef\xbb"
          "data: a\n\ndata: b\n\n",
          "message|b;");
    reads("data: \xef\xbb\xbf\n\n", "message|\xef\xbb\xbf;");
    reads("\xef", "");
}

static void utf8_survives_and_the_rest_is_marked(void **state)
{
    (void)state;
    reads("data: h\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80\n\n",
          "message|h\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80;");
    reads("data: \xff\n\n", "message|\xef\xbf\xbd;");
    reads("data: \xe4\xb8\n\n", "message|\xef\xbf\xbd;");
    reads("data: \xe4\xb8x\xc0\x80\n\n", "message|\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd;");
    reads("data: \xed\xa0\x80\n\n", "message|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd;");
    reads("event: \xf0\x9f\ndata: a\n\n", "\xef\xbf\xbd|a;");
}

static void a_nul_is_data(void **state)
{
    (void)state;
    struct rung_buf out;
    assert_int_equal(feed("data: a\0b\n\n", 11, 0, 100, 0, &out), RUNG_EVENTS_FED);
    assert_int_equal(out.len, 12);
    assert_memory_equal(out.ptr, "message|a\0b;", 12);
    rung_buf_free(&out);
}

static void large_events_are_refused(void **state)
{
    (void)state;
    const char *fits = "data: 012\ndata: 4567\n\n", *data = "data: 0\n\ndata: 012345678\n\n",
               *lines = "data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n\n",
               *name = "event: 012345678\n\n", *comment = ":0123456789\nid: 0123456789\n\n";
    at_every_split(fits, strlen(fits), 8, 0, RUNG_EVENTS_FED, "message|012\n4567;");
    at_every_split(data, strlen(data), 8, 0, RUNG_EVENTS_TOO_LARGE, "message|0;");
    at_every_split(lines, strlen(lines), 8, 0, RUNG_EVENTS_TOO_LARGE, "");
    at_every_split(name, strlen(name), 8, 0, RUNG_EVENTS_TOO_LARGE, "");
    at_every_split(comment, strlen(comment), 8, 0, RUNG_EVENTS_FED, "");
}

static void the_sink_stops_it(void **state)
{
    (void)state;
    const char *stream = "data: a\n\ndata: b\n\ndata: c\n\n";
    at_every_split(stream, strlen(stream), 100, 2, RUNG_EVENTS_STOPPED, "message|a;message|b;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(lines_of_data_are_joined),
        cmocka_unit_test(lines_end_in_three_ways),
        cmocka_unit_test(comments_are_dropped),
        cmocka_unit_test(the_unfinished_is_dropped),
        cmocka_unit_test(a_byte_order_mark_is_skipped_once),
        cmocka_unit_test(utf8_survives_and_the_rest_is_marked),
        cmocka_unit_test(a_nul_is_data),
        cmocka_unit_test(large_events_are_refused),
        cmocka_unit_test(the_sink_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
