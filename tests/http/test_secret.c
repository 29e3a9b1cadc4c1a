/* Secrets: the server gets them, nobody else. */
#include "base/log.h"
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "sk-Test_0123456789/abc="
#define KEY_IN_PATH "sk-Test_0123456789%2Fabc="

static struct server server;
static char *folder;

static int begin(void **state)
{
    (void)state;
    server = server_start(NULL, NULL);
    folder = support_folder();
    setenv("HTTP_TEST_KEY", KEY, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    server_stop(&server);
    support_remove(folder);
    return 0;
}

/* A GET with one secret header. */
static int32_t get_with(struct http_call *c, const char *path, const char *name, const char *secret,
                        const char *prefix)
{
    struct rung_http_header header = http_secret(name, secret, prefix);
    http_begin(c, &server, path);
    c->request.headers = &header;
    c->request.n_headers = 1;
    return http_do(c);
}

static void the_server_sees_the_value(void **state)
{
    (void)state;
    struct http_call c;
    assert_int_equal(
        get_with(&c, "/need/X-Api-Key/" KEY_IN_PATH, "x-api-key", "env:HTTP_TEST_KEY", NULL),
        RUNG_OK);
    assert_int_equal(c.response.status, 200);
    http_end(&c);
    assert_int_equal(get_with(&c, "/need/Authorization/Bearer%20" KEY_IN_PATH, "Authorization",
                              "env:HTTP_TEST_KEY", "Bearer "),
                     RUNG_OK);
    assert_int_equal(c.response.status, 200);
    http_end(&c);
    assert_int_equal(get_with(&c, "/need/X-Api-Key/other", "x-api-key", "env:HTTP_TEST_KEY", NULL),
                     RUNG_OK);
    assert_int_equal(c.response.status, 401);
    http_end(&c);
}

struct seen {
    char text[256];
};

static int32_t see(void *ctx, struct rung_text piece)
{
    struct seen *seen = ctx;
    size_t n = strlen(seen->text);
    snprintf(seen->text + n, sizeof seen->text - n, "%s", piece.ptr);
    return 0;
}

/* Byte by byte in the body and in a header. */
static void a_value_that_comes_back_is_hidden(void **state)
{
    (void)state;
    struct http_call c;
    struct seen seen = {""};
    struct rung_http_header header = http_secret("X-Key", "env:HTTP_TEST_KEY", "Key ");
    http_begin(&c, &server, "/reflect/X-Key");
    c.request.headers = &header;
    c.request.n_headers = 1;
    c.request.on_data = see;
    c.request.ctx = &seen;
    assert_int_equal(http_do(&c), RUNG_OK);
    assert_string_equal(c.response.body.ptr, "<Key ***> and <Key ***>");
    assert_string_equal(seen.text, c.response.body.ptr);
    assert_string_equal(http_value(&c, "x-reflected"), "<Key ***>");
    assert_null(strstr(c.log, KEY));
    http_end(&c);
}

static void no_error_shows_the_value(void **state)
{
    (void)state;
    struct http_call c;
    struct rung_http_header header = http_secret("X-Key", "env:HTTP_TEST_KEY", NULL);
    http_begin(&c, &server, "/drop/" KEY);
    c.request.headers = &header;
    c.request.n_headers = 1;
    assert_int_equal(http_do(&c), RUNG_EIO);
    assert_null(strstr(c.error.message, KEY));
    http_end(&c);
    http_begin(&c, NULL, "http://127.0.0.1:1/" KEY "?k=" KEY);
    c.request.headers = &header;
    c.request.n_headers = 1;
    assert_int_equal(http_do(&c), RUNG_EUNAVAILABLE);
    support_contains(c.error.message, "***");
    assert_null(strstr(c.error.message, KEY));
    http_end(&c);
}

/* The log as rung writes it, to standard error. */
static void the_log_hides_the_value_from_then_on(void **state)
{
    (void)state;
    char *path = support_path(folder, "log");
    struct http_call c;
    setenv("HTTP_TEST_KEY_2", "another-key-of-ours\n", 1);
    assert_int_equal(get_with(&c, "/echo", "X-Key", "env:HTTP_TEST_KEY_2", NULL), RUNG_OK);
    http_end(&c);
    int kept = dup(STDERR_FILENO), file = open(path, O_CREAT | O_RDWR, 0600);
    dup2(file, STDERR_FILENO);
    rung_log(RUNG_LOG_ERROR, "test", "the key is another-key-of-ours.");
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    char *text = support_read(path, NULL);
    support_contains(text, "the key is ***.");
    free(text);
    free(path);
}

static void refused(const char *secret, const char *names, const char *because)
{
    struct http_call c;
    assert_int_equal(get_with(&c, "/echo", "X-Key", secret, NULL), RUNG_ECONFIG);
    assert_string_equal(c.error.symbol, "http.secret");
    support_contains(c.error.message, names);
    support_contains(c.error.message, because);
    assert_int_equal(c.response.status, 0);
    http_end(&c);
}

static void bad_variables_are_named(void **state)
{
    (void)state;
    unsetenv("HTTP_TEST_NONE");
    refused("env:HTTP_TEST_NONE", "HTTP_TEST_NONE", "is not set");
    setenv("HTTP_TEST_BAD", " \n", 1);
    refused("env:HTTP_TEST_BAD", "HTTP_TEST_BAD", "empty");
    setenv("HTTP_TEST_BAD", "abc", 1);
    refused("env:HTTP_TEST_BAD", "HTTP_TEST_BAD", "shorter than 4");
    setenv("HTTP_TEST_BAD", "value\r\nX-Evil: 1", 1);
    refused("env:HTTP_TEST_BAD", "HTTP_TEST_BAD", "line break");
    struct http_call c;
    assert_int_equal(get_with(&c, "/echo", "X-Key", "sk-the-key-itself", NULL), RUNG_ECONFIG);
    assert_null(strstr(c.error.message, "sk-the-key-itself"));
    http_end(&c);
}

static void files_need_their_mode(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool fine;
    } cases[] = {{0600, true},  {0400, true},  {0640, false}, {0604, false},
                 {0644, false}, {0700, false}, {0660, false}, {04600, false}};
    char reference[512];
    char *path = support_path(folder, "key");
    support_write_text(path, KEY "\n");
    snprintf(reference, sizeof reference, "file:%s", path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_call c;
        assert_int_equal(chmod(path, cases[i].mode), 0);
        if (!cases[i].fine) {
            refused(reference, path, "chmod 600");
            continue;
        }
        assert_int_equal(get_with(&c, "/need/X-Key/" KEY_IN_PATH, "X-Key", reference, NULL),
                         RUNG_OK);
        assert_int_equal(c.response.status, 200);
        http_end(&c);
    }
    free(path);
}

static void bad_files_are_named(void **state)
{
    (void)state;
    char reference[512], text[20000];
    refused("file:/nonexistent/key", "/nonexistent/key", "No such file");
    refused("file:key", "file:key", "absolute");
    snprintf(reference, sizeof reference, "file:%s", folder);
    refused(reference, folder, "no regular file");
    char *path = support_path(folder, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(reference, sizeof reference, "file:%s", path);
    refused(reference, path, "no regular file");
    free(path);
    path = support_path(folder, "large");
    memset(text, 'a', sizeof text);
    support_write(path, text, sizeof text);
    assert_int_equal(chmod(path, 0600), 0);
    snprintf(reference, sizeof reference, "file:%s", path);
    refused(reference, path, "longer than");
    free(path);
}

/* More calls than the log has room for words. */
static void the_same_secret_again_is_one_secret(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct http_call c;
        assert_int_equal(get_with(&c, "/status/200", "X-Key", "env:HTTP_TEST_KEY", NULL), RUNG_OK);
        http_end(&c);
    }
}

/* http_proxy must not carry a request for this host away; https goes through, secrets only inside.
 */
static void proxies_see_no_secret(void **state)
{
    (void)state;
    char proxy[64], line[256];
    struct http_call c;
    struct server other = server_start(NULL, NULL);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", other.port);
    setenv("http_proxy", proxy, 1);
    setenv("https_proxy", proxy, 1);
    assert_int_equal(get_with(&c, "/need/X-Key/" KEY_IN_PATH, "X-Key", "env:HTTP_TEST_KEY", NULL),
                     RUNG_OK);
    assert_int_equal(c.response.status, 200);
    http_end(&c);
    struct rung_http_header header = http_secret("X-Key", "env:HTTP_TEST_KEY", NULL);
    http_begin(&c, NULL, "https://example.invalid/");
    c.request.headers = &header;
    c.request.n_headers = 1;
    assert_int_not_equal(http_do(&c), RUNG_OK);
    assert_int_equal(c.response.status, 0);
    http_end(&c);
    assert_non_null(fgets(line, sizeof line, other.output));
    assert_string_equal(line, "CONNECT example.invalid:443\n");
    while (fgets(line, sizeof line, other.output) && line[0] != '\n') {
        assert_null(strstr(line, "X-Key"));
        assert_null(strstr(line, KEY));
    }
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    server_stop(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_sees_the_value),
        cmocka_unit_test(a_value_that_comes_back_is_hidden),
        cmocka_unit_test(no_error_shows_the_value),
        cmocka_unit_test(the_log_hides_the_value_from_then_on),
        cmocka_unit_test(bad_variables_are_named),
        cmocka_unit_test(files_need_their_mode),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(the_same_secret_again_is_one_secret),
        cmocka_unit_test(proxies_see_no_secret),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
