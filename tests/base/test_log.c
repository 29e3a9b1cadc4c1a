/* The log: levels, hidden secrets, no control characters of others on the terminal. */
#include "support/support.h"

#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs body with descriptor 2 in a file and returns what it got. */
static char *caught(void (*body)(void))
{
    char *folder = support_folder(), *path = support_path(folder, "log");
    int saved = dup(STDERR_FILENO), fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(saved >= 0 && fd >= 0);
    dup2(fd, STDERR_FILENO);
    body();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
    char *text = support_read(path, NULL);
    free(path);
    support_remove(folder);
    return text;
}

static void log_all_levels(void)
{
    for (uint32_t level = RUNG_LOG_DEBUG; level <= RUNG_LOG_ERROR; level++)
        rung_log(level, "engine", "level %u", level);
    rung_log(77, "engine", "no such level");
}

static void lower_levels_are_silent(void **state)
{
    (void)state;
    rung_log_level(RUNG_LOG_WARN);
    char *text = caught(log_all_levels);
    assert_string_equal(text, "rung: warn: [engine] level 2\nrung: error: [engine] level 3\n");
    free(text);
}

static void log_secret(void)
{
    rung_log(RUNG_LOG_ERROR, "llm", "key sk-abcdef, twice sk-abcdef\x1b[31m\nrung: error: forged");
}

static void secrets_and_control_characters_are_hidden(void **state)
{
    (void)state;
    rung_log_redact("sk-abcdef");
    rung_log_redact("abc");
    char *text = caught(log_secret);
    assert_string_equal(text,
                        "rung: error: [llm] key ***, twice ***\\x1b[31m\\x0arung: error: forged\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_levels_are_silent),
        cmocka_unit_test(secrets_and_control_characters_are_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
