/* Requests and replies as the other side sees them. */
#include "harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

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

static void a_get_arrives_with_its_headers(void **state)
{
    (void)state;
    struct http_call c;
    struct rung_http_header headers[] = {http_header("X-One", "first value"),
                                         http_header("x-empty", "")};
    http_begin(&c, &server, "/echo?a=b");
    c.request.headers = headers;
    c.request.n_headers = 2;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.status, 200);
    assert_ptr_equal(strstr(c.response.body.ptr, "GET /echo?a=b\n"), c.response.body.ptr);
    support_contains(c.response.body.ptr, "\nX-One: first value\n");
    support_contains(c.response.body.ptr, "\nx-empty: \n");
    support_contains(c.response.body.ptr, "\nUser-Agent: rung/");
    assert_null(strstr(c.response.body.ptr, "Content-Type"));
    assert_int_equal(c.response.body.len, strlen(c.response.body.ptr));
    assert_string_equal(http_value(&c, "x-MARK"), "echo");
    assert_null(rung_http_table.find(&c.response, "x-mar").ptr);
    http_end(&c);
}

static void a_body_of_any_bytes_arrives(void **state)
{
    (void)state;
    enum { N = 1500 * 1000 }; /* where libcurl would ask with Expect first */
    static char body[N];
    for (int i = 0; i < N; i++)
        body[i] = (char)(i * 7 + i / 256);
    struct http_call c;
    struct rung_http_header type = http_header("content-type", "application/json");
    http_begin(&c, &server, "/echo");
    c.request.headers = &type;
    c.request.n_headers = 1;
    c.request.body = (struct rung_text){body, N};
    assert_int_equal(http_do(&c), RUNG_OK);
    support_contains(c.response.body.ptr, "POST /echo\n");
    support_contains(c.response.body.ptr, "\nContent-Length: 1500000\n");
    support_contains(c.response.body.ptr, "\ncontent-type: application/json\n");
    assert_null(strstr(c.response.body.ptr, "Expect"));
    assert_true(c.response.body.len > N);
    assert_memory_equal(c.response.body.ptr + c.response.body.len - N, body, N);
    http_end(&c);
}

static void every_method_is_sent_as_such(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct http_call c;
        http_begin(&c, &server, "/echo");
        c.request.method = methods[i];
        assert_int_equal(http_do(&c), RUNG_OK);
        assert_memory_equal(c.response.body.ptr, methods[i], strlen(methods[i]));
        assert_null(strstr(c.response.body.ptr, "Content-Type"));
        http_end(&c);
    }
}

static void head_has_headers_and_no_body(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/echo");
    c.request.method = "HEAD";
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.status, 200);
    assert_string_equal(http_value(&c, "x-mark"), "echo");
    assert_int_equal(c.response.body.len, 0);
    assert_int_equal(c.response.first_byte_ns, 0);
    http_end(&c);
}

static void a_status_is_data(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t status;
        const char *body;
    } cases[] = {{"/status/404", 404, "status 404"},     {"/status/429", 429, "status 429"},
                 {"/status/500", 500, "status 500"},     {"/redirect", 302, "over there"},
                 {"/nothing_here", 404, "no such path"}, {"/status/204", 204, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_call c;
        http_begin(&c, &server, cases[i].path);
        assert_int_equal(http_do(&c), RUNG_OK);
        assert_int_equal(c.response.status, cases[i].status);
        if (cases[i].body)
            assert_string_equal(c.response.body.ptr, cases[i].body);
        if (cases[i].status == 302)
            assert_string_equal(http_value(&c, "location"), "/echo");
        http_end(&c);
    }
}

struct pieces {
    const struct http_call *call;
    char text[256];
    uint32_t n, heads, stop_after;
    char type[64];
};

static int32_t take_head(void *ctx, const struct rung_http_response *head)
{
    struct pieces *p = ctx;
    assert_int_equal(p->n, 0);
    p->heads++;
    struct rung_text value = rung_http_table.find(head, "transfer-encoding");
    snprintf(p->type, sizeof p->type, "%u %s", head->status, value.ptr ? value.ptr : "");
    return p->stop_after == UINT32_MAX;
}

static int32_t take_piece(void *ctx, struct rung_text piece)
{
    struct pieces *p = ctx;
    size_t n = strlen(p->text);
    assert_true(piece.len > 0);
    assert_int_equal(piece.ptr[piece.len], 0);
    snprintf(p->text + n, sizeof p->text - n, "%s", piece.ptr);
    return ++p->n == p->stop_after;
}

static int32_t stream(struct http_call *c, struct pieces *p, const char *path)
{
    http_begin(c, &server, path);
    c->request.on_head = take_head;
    c->request.on_data = take_piece;
    c->request.ctx = p;
    return http_do(c);
}

static void pieces_come_as_they_are_sent(void **state)
{
    (void)state;
    struct http_call c;
    struct pieces p = {0};
    assert_int_equal(stream(&c, &p, "/chunks/5/30"), RUNG_OK);
    assert_string_equal(p.text, "piece 0\npiece 1\npiece 2\npiece 3\npiece 4\n");
    assert_string_equal(c.response.body.ptr, p.text);
    assert_true(p.n >= 3);
    assert_int_equal(p.heads, 1);
    assert_string_equal(p.type, "200 chunked");
    assert_true(c.response.first_byte_ns < c.response.total_ns);
    assert_true(c.response.connect_ns <= c.response.first_byte_ns);
    assert_true(c.response.total_ns > 100 * 1000 * 1000u);
    assert_string_equal(http_value(&c, "x-trailer"), "");
    assert_int_equal(c.response.status, 200);
    http_end(&c);
}

static void an_error_page_is_not_streamed(void **state)
{
    (void)state;
    struct http_call c;
    struct pieces p = {0};
    assert_int_equal(stream(&c, &p, "/status/500"), RUNG_OK);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.heads, 1);
    assert_string_equal(c.response.body.ptr, "status 500");
    http_end(&c);
}

static void the_caller_stops_a_stream(void **state)
{
    (void)state;
    struct http_call c;
    struct pieces p = {.stop_after = 2};
    assert_int_equal(stream(&c, &p, "/chunks/1000/30"), RUNG_ECANCELLED);
    assert_string_equal(c.error.symbol, "http.stopped");
    assert_int_equal(p.n, 2);
    assert_string_equal(c.response.body.ptr, p.text);
    assert_int_equal(c.response.status, 200);
    http_end(&c);
    p = (struct pieces){.stop_after = UINT32_MAX};
    assert_int_equal(stream(&c, &p, "/chunks/1000/30"), RUNG_ECANCELLED);
    assert_int_equal(p.n, 0);
    http_end(&c);
}

static void odd_heads_are_tamed(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/odd");
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.status, 200);
    assert_string_equal(c.response.body.ptr, "ok");
    assert_string_equal(http_value(&c, "x-early"), "");
    assert_string_equal(http_value(&c, "x-two"), "a");
    assert_string_equal(http_value(&c, "x-latin"), "caf?");
    assert_string_equal(http_value(&c, "x-bell"), "a?b");
    assert_string_equal(http_value(&c, "x-utf8"), "\xc3\xa4");
    assert_non_null(rung_http_table.find(&c.response, "x-empty").ptr);
    int twos = 0;
    for (uint32_t i = 0; i < c.response.n_headers; i++) {
        assert_int_equal(c.response.headers[i].struct_size, sizeof(struct rung_http_header));
        twos += strcmp(c.response.headers[i].name.ptr, "x-two") == 0;
    }
    assert_int_equal(twos, 2);
    http_end(&c);
}

/* A process that is started meanwhile shall not hold the connection open. */
static int32_t look_at_sockets(void *ctx, struct rung_text piece)
{
    int *found = ctx;
    (void)piece;
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t size = sizeof address;
        if (getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
            address.ss_family == AF_INET) {
            assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
            ++*found;
        }
    }
    return 0;
}

static void no_child_inherits_a_connection(void **state)
{
    (void)state;
    struct http_call c;
    int found = 0;
    http_begin(&c, &server, "/status/200");
    c.request.on_data = look_at_sockets;
    c.request.ctx = &found;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_true(found > 0);
    http_end(&c);
}

static void a_call_is_logged_without_its_query(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/echo?key=abcdef");
    assert_int_equal(http_do(&c), RUNG_OK);
    support_contains(c.log, "GET http://127.0.0.1:");
    support_contains(c.log, "/echo: status 200, ");
    assert_null(strstr(c.log, "abcdef"));
    http_end(&c);
}

/* An older plugin's smaller structs: what it lacks is the default, and nothing is written past its
 * end. */
static void smaller_structs_are_respected(void **state)
{
    (void)state;
    struct http_call c;
    http_begin(&c, &server, "/status/404");
    c.request.struct_size = offsetof(struct rung_http_request, headers);
    c.request.n_headers = 1000000;
    c.response.struct_size = offsetof(struct rung_http_response, body);
    c.response.total_ns = 12345;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.status, 404);
    assert_int_equal(c.response.struct_size, offsetof(struct rung_http_response, body));
    assert_int_equal(c.response.total_ns, 12345);
    c.response.struct_size = 4;
    assert_int_equal(http_do(&c), RUNG_EMISUSE);
    http_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_arrives_with_its_headers),
        cmocka_unit_test(a_body_of_any_bytes_arrives),
        cmocka_unit_test(every_method_is_sent_as_such),
        cmocka_unit_test(head_has_headers_and_no_body),
        cmocka_unit_test(a_status_is_data),
        cmocka_unit_test(pieces_come_as_they_are_sent),
        cmocka_unit_test(an_error_page_is_not_streamed),
        cmocka_unit_test(the_caller_stops_a_stream),
        cmocka_unit_test(odd_heads_are_tamed),
        cmocka_unit_test(no_child_inherits_a_connection),
        cmocka_unit_test(a_call_is_logged_without_its_query),
        cmocka_unit_test(smaller_structs_are_respected),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
