/* TLS is verified: a server's own certificate counts only when the user names it. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *folder, *certificate, *key;

static int32_t get(struct http_call *c, const char *host, int port)
{
    char url[128];
    snprintf(url, sizeof url, "https://%s:%d/echo", host, port);
    http_begin(c, NULL, url);
    return http_do(c);
}

static void certificates_are_verified(void **state)
{
    (void)state;
    struct http_call c;
    struct server server = server_start(certificate, key);
    assert_int_equal(get(&c, "localhost", server.port), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.tls");
    http_end(&c);
    setenv("SSL_CERT_FILE", certificate, 1);
    assert_int_equal(get(&c, "localhost", server.port), RUNG_OK);
    assert_int_equal(c.response.status, 200);
    http_end(&c);
    assert_int_equal(get(&c, "127.0.0.1", server.port), RUNG_EUNAVAILABLE); /* another name */
    assert_string_equal(c.error.symbol, "http.tls");
    http_end(&c);
    unsetenv("SSL_CERT_FILE");
    server_stop(&server);
}

static void a_server_without_tls_is_told(void **state)
{
    (void)state;
    struct http_call c;
    struct server server = server_start(NULL, NULL);
    assert_int_equal(get(&c, "localhost", server.port), RUNG_EUNAVAILABLE);
    assert_string_equal(c.error.symbol, "http.tls");
    http_end(&c);
    server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates_are_verified),
        cmocka_unit_test(a_server_without_tls_is_told),
    };
    folder = support_folder();
    certificate = support_path(folder, "cert.pem");
    key = support_path(folder, "key.pem");
    int result = 77;
    if (server_certificate(certificate, key)) /* else skipped */
        result = cmocka_run_group_tests(tests, NULL, NULL);
    support_remove(folder);
    free(certificate);
    free(key);
    return result;
}
