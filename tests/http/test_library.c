/* A machine without libcurl: this executable starts itself with one that can't be loaded. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int without_library(void)
{
    struct http_call c;
    http_begin(&c, NULL, "https://example.invalid/");
    bool good = http_do(&c) == RUNG_EUNAVAILABLE && strcmp(c.error.symbol, "http.library") == 0 &&
                strstr(c.error.message, "apt-get install libcurl4");
    http_end(&c);
    return good ? 0 : 1;
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    int status;
    char *folder = support_folder();
    char *fake = support_path(folder, "libcurl.so.4");
    support_write_text(fake, "no library");
    pid_t pid = fork();
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        execl("/proc/self/exe", "test_http_library", "without", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(fake);
    support_remove(folder);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return without_library();
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_library_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
