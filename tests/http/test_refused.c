/* What is refused before anybody is contacted, and lookups that hang. */
#include "base/io.h"
#include "harness.h"
#include "names.h"

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

static void refuse(const char *url, int32_t status, const char *symbol)
{
    struct http_call c;
    int asked = names_asked();
    http_begin(&c, NULL, url);
    if (http_do(&c) != status || strcmp(c.error.symbol, symbol) != 0)
        fail_msg("%s: %d %s %s", url, c.error.code, c.error.symbol, c.error.message);
    assert_int_equal(names_asked(), asked);
    http_end(&c);
}

static void bad_urls_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "nonsense",
        "localhost:80/",
        "/path",
        "//localhost/",
        "http://",
        "http:///path",
        "https://[::1/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ldap://127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nX: y",
        "http://user:word@127.0.0.1/",
        "https://key@localhost/",
        "http://127.0.0.1\t/",
        "http://ho%00st/",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        refuse(urls[i], RUNG_ECONFIG, "http.url");
    struct http_call c;
    http_begin(&c, NULL, "http://user:sesame@127.0.0.1/?key=sesame");
    assert_int_equal(http_do(&c), RUNG_ECONFIG);
    assert_null(strstr(c.error.message, "sesame"));
    http_end(&c);
}

static void plain_http_stays_on_this_host(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "http://example.invalid/",
        "http://localhost.example.invalid/",
        "http://127.0.0.1.example.invalid/",
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://[::2]/",
        "http://[::ffff:10.0.0.1]/",
        "http://128.0.0.1/",
        "http://126.0.0.1/",
        "HTTP://EXAMPLE.INVALID/",
        "http://localhost./",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        refuse(urls[i], RUNG_ECONFIG, "http.plain");
}

static void loopback_has_many_names(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost", "LocalHost", "127.0.0.1",
                                        "2130706433"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char url[128];
        struct http_call c;
        snprintf(url, sizeof url, "http://%s:%d/status/200", hosts[i], server.port);
        http_begin(&c, NULL, url);
        assert_int_equal(http_do(&c), RUNG_OK);
        assert_int_equal(c.response.status, 200);
        http_end(&c);
    }
}

static void plain_http_can_be_allowed(void **state)
{
    (void)state;
    struct http_call c;
    int asked = names_asked();
    http_begin(&c, NULL, "http://example.invalid/");
    c.request.flags = RUNG_HTTP_ALLOW_PLAIN;
    assert_int_equal(http_do(&c), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.resolve");
    assert_true(names_asked() > asked);
    http_end(&c);
}

static void a_hanging_lookup_holds_nobody(void **state)
{
    (void)state;
    struct http_call c;
    uint64_t start = rung_now_ns();
    http_begin(&c, NULL, "https://slow.test/");
    c.call.deadline_ns = start + 300 * 1000000ull;
    assert_int_equal(http_do(&c), RUNG_ETIMEOUT);
    assert_string_equal(c.error.symbol, "http.deadline");
    assert_true(rung_now_ns() - start < 500 * 1000000ull);
    c.call.deadline_ns = 0;
    c.request.connect_ms = 200;
    assert_int_equal(http_do(&c), RUNG_ETIMEOUT);
    assert_string_equal(c.error.symbol, "http.connect_timeout");
    http_end(&c);
    assert_true(names_hanging() > 0);
    names_let_go();
    for (int i = 0; names_hanging() && i < 500; i++)
        usleep(10 * 1000);
    usleep(100 * 1000); /* for libcurl's threads to end behind it */
}

/* ---- Requests ---- */

static void refuse_header(struct rung_http_header header)
{
    struct http_call c;
    http_begin(&c, &server, "/echo");
    c.request.headers = &header;
    c.request.n_headers = 1;
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    assert_string_equal(c.error.symbol, "http.request");
    assert_int_equal(c.response.status, 0);
    http_end(&c);
}

static void no_header_ends_its_line(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "A B",
                                        "A:",
                                        "A\r\nB",
                                        "A\n",
                                        "A\x01",
                                        "\xc3\xa4",
                                        "A;",
                                        "A\"",
                                        "Host",
                                        "content-length",
                                        "Transfer-Encoding",
                                        "Connection",
                                        "EXPECT",
                                        "Proxy-Authorization"};
    static const char *const values[] = {"a\r\nX-B: c", "a\n", "\rb", "a\x1b[2J", "a\x7f"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refuse_header(http_header(names[i], "v"));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        refuse_header(http_header("X-A", values[i]));
        refuse_header(http_secret("X-A", "env:HOME", values[i]));
    }
    struct rung_http_header nul = http_header("X-A", "ab");
    nul.value = (struct rung_text){"a\0b", 3};
    refuse_header(nul);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    static const char *const methods[] = {"", "get", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y"};
    struct http_call c;
    http_begin(&c, &server, "/echo");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        c.request.method = methods[i];
        assert_int_equal(http_do(&c), RUNG_EINVAL);
    }
    c.request.method = "HEAD";
    c.request.body = (struct rung_text){"x", 1};
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    c.request.method = "POST";
    c.request.body = (struct rung_text){NULL, 1};
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    c.request.body.len = 0;
    c.request.flags = 1u << 31;
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    c.request.flags = 0;
    c.request.n_headers = 1;
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    c.request.n_headers = 1000;
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    struct rung_http_header headers[2] = {http_header("a", "b"), http_header("c", "d")};
    c.request.headers = headers;
    c.request.n_headers = 2;
    assert_int_equal(http_do(&c), RUNG_OK);
    headers[1].struct_size = 8;
    assert_int_equal(http_do(&c), RUNG_EMISUSE);
    headers[0].struct_size = 8;
    assert_int_equal(http_do(&c), RUNG_EMISUSE);
    c.request.n_headers = 0;
    c.request.url = NULL;
    assert_int_equal(http_do(&c), RUNG_EINVAL);
    http_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(plain_http_stays_on_this_host),
        cmocka_unit_test(loopback_has_many_names),
        cmocka_unit_test(plain_http_can_be_allowed),
        cmocka_unit_test(a_hanging_lookup_holds_nobody),
        cmocka_unit_test(no_header_ends_its_line),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
