/* Which connections are kept, what the user's pipeline says about them, and HTTP/2. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *folder, *certificate, *key;

static int32_t get(struct http_call *c, const struct server *server, const char *path)
{
    http_begin(c, server, path);
    return http_do(c);
}

static long number_at(const struct server *server, const char *path)
{
    struct http_call c;
    assert_int_equal(get(&c, server, path), RUNG_OK);
    long number = strtol(c.response.body.ptr, NULL, 10);
    http_end(&c);
    return number;
}

static int32_t stop(void *ctx, struct rung_text piece)
{
    (void)ctx;
    (void)piece;
    return 1;
}

static void a_connection_is_used_again(void **state)
{
    (void)state;
    struct http_call c;
    struct server server = server_start(NULL, NULL);
    long port = number_at(&server, "/port");
    assert_int_equal(number_at(&server, "/port"), port);
    assert_int_equal(get(&c, &server, "/status/404"), RUNG_OK);
    assert_true(c.response.connect_ns > 0 && c.response.connect_ns < c.response.total_ns);
    http_end(&c);
    assert_int_equal(number_at(&server, "/port"), port);
    http_begin(&c, &server, "/chunks/1000/20"); /* broken off: of no use any more */
    c.request.on_data = stop;
    assert_int_equal(http_do(&c), RUNG_ECANCELLED);
    http_end(&c);
    assert_int_not_equal(number_at(&server, "/port"), port);
    server_stop(&server);
}

/* libcurl would send the request again on a new connection. */
static void nothing_is_sent_twice(void **state)
{
    (void)state;
    struct http_call c;
    struct server server = server_start(NULL, NULL);
    assert_int_equal(get(&c, &server, "/once"), RUNG_OK);
    http_end(&c);
    http_begin(&c, &server, "/echo");
    c.request.body = (struct rung_text){"spends money", 12};
    assert_int_equal(http_do(&c), RUNG_EIO);
    assert_string_equal(c.error.symbol, "http.broken");
    support_contains(c.error.message, "kept from an earlier request");
    http_end(&c);
    assert_int_equal(number_at(&server, "/count"), 3); /* once, the refused one, this one */
    server_stop(&server);
}

static void garbage_is_no_reply(void **state)
{
    (void)state;
    struct http_call c;
    struct server server = server_start(NULL, NULL);
    assert_int_equal(get(&c, &server, "/garbage"), RUNG_EIO);
    assert_string_equal(c.error.symbol, "http.broken");
    http_end(&c);
    server_stop(&server);
}

/* ---- The pipeline's settings ---- */

static void a_proxy_can_be_named(void **state)
{
    (void)state;
    char proxy[64], line[256];
    struct http_call c;
    struct server other = server_start(NULL, NULL);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", other.port);
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    rung_http_configure(&(struct rung_http_settings){.proxy = proxy});
    assert_int_not_equal(get(&c, NULL, "https://example.invalid/"), RUNG_OK);
    http_end(&c);
    assert_non_null(fgets(line, sizeof line, other.output));
    assert_string_equal(line, "CONNECT example.invalid:443\n");
    assert_int_equal(number_at(&other, "/count"), 2); /* this host is reached past any proxy */
    rung_http_configure(&(struct rung_http_settings){.proxy = ""});
    assert_int_equal(get(&c, NULL, "https://example.invalid/"), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.resolve");
    http_end(&c);
    rung_http_configure(&(struct rung_http_settings){.proxy = NULL});
    assert_int_equal(get(&c, NULL, "https://example.invalid/"), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.connect"); /* the environment's */
    http_end(&c);
    unsetenv("https_proxy");
    server_stop(&other);
}

static int32_t get_tls(struct http_call *c, const struct server *server)
{
    char url[64];
    snprintf(url, sizeof url, "https://localhost:%d/echo", server->port);
    return get(c, NULL, url);
}

/* A named authority alone counts: not those of the environment, nor the system's. */
static void authorities_can_be_named(void **state)
{
    (void)state;
    struct http_call c;
    char *other = support_path(folder, "other.pem"), *unused = support_path(folder, "unused.pem");
    assert_true(server_certificate(other, unused));
    struct server server = server_start(certificate, key);
    assert_int_equal(get_tls(&c, &server), RUNG_EUNAVAILABLE);
    http_end(&c);
    rung_http_configure(&(struct rung_http_settings){.ca = certificate});
    assert_int_equal(get_tls(&c, &server), RUNG_OK);
    http_end(&c);
    setenv("SSL_CERT_FILE", certificate, 1);
    rung_http_configure(&(struct rung_http_settings){.ca = other});
    assert_int_equal(get_tls(&c, &server), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.tls");
    http_end(&c);
    rung_http_configure(&(struct rung_http_settings){.ca = folder}); /* without hashed names */
    assert_int_equal(get_tls(&c, &server), RUNG_EUNAVAILABLE);
    http_end(&c);
    rung_http_configure(&(struct rung_http_settings){.ca = NULL});
    assert_int_equal(get_tls(&c, &server), RUNG_OK);
    http_end(&c);
    unsetenv("SSL_CERT_FILE");
    server_stop(&server);
    free(other);
    free(unused);
}

/* ---- HTTP/2 ---- */

struct stream {
    const struct server *server;
    unsigned n;
    int32_t status;
    bool in_order;
};

static int32_t count(void *ctx, struct rung_text name, struct rung_text data)
{
    struct stream *s = ctx;
    char expected[32];
    (void)name;
    snprintf(expected, sizeof expected, "token %u", s->n - 1);
    s->in_order &=
        s->n == 0 ? strncmp(data.ptr, "connection ", 11) == 0 : strcmp(data.ptr, expected) == 0;
    s->n++;
    return 0;
}

static void *read_stream(void *arg)
{
    struct stream *s = arg;
    struct http_call c;
    char url[64];
    snprintf(url, sizeof url, "https://localhost:%d/", s->server->port);
    http_begin(&c, NULL, url);
    c.request.body = (struct rung_text){"{}", 2};
    c.request.on_event = count;
    c.request.ctx = s;
    s->in_order = true;
    s->status = http_try(&c);
    http_end(&c);
    return NULL;
}

static void http_2_is_an_option(void **state)
{
    (void)state;
    enum { STREAMS = 40 };
    pthread_t threads[STREAMS];
    struct stream streams[STREAMS];
    struct server server = server_start_h2(certificate, key);
    struct stream alone = {.server = &server};
    rung_http_configure(&(struct rung_http_settings){.version = 1, .ca = certificate});
    read_stream(&alone);
    assert_int_not_equal(alone.status, RUNG_OK); /* the server speaks nothing else */
    rung_http_configure(&(struct rung_http_settings){.version = 2, .ca = certificate});
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = (struct stream){.server = &server};
        assert_int_equal(pthread_create(&threads[i], NULL, read_stream, &streams[i]), 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(streams[i].status, RUNG_OK);
        assert_int_equal(streams[i].n, 201);
        assert_true(streams[i].in_order);
    }
    server_stop(&server);
    server = server_start(certificate, key); /* and one that speaks HTTP/1.1 alone */
    struct http_call c;
    assert_int_equal(get_tls(&c, &server), RUNG_OK);
    http_end(&c);
    rung_http_configure(&(struct rung_http_settings){.version = 1});
    server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_used_again), cmocka_unit_test(nothing_is_sent_twice),
        cmocka_unit_test(garbage_is_no_reply),        cmocka_unit_test(a_proxy_can_be_named),
        cmocka_unit_test(authorities_can_be_named),   cmocka_unit_test(http_2_is_an_option),
    };
    folder = support_folder();
    certificate = support_path(folder, "cert.pem");
    key = support_path(folder, "key.pem");
    int result = 77;
    if (server_certificate(certificate, key))
        result = cmocka_run_group_tests(tests, NULL, NULL);
    support_remove(folder);
    free(certificate);
    free(key);
    return result;
}
