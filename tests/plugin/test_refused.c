/* Plugins whose descriptor is wrong: each is refused with a message that names the file and why. */
#include "plugin/harness.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *file, *symbol, *why;
} cases[] = {
    {"faulty_draft", "plugin.abi", "this rung has ABI"},
    {"faulty_major", "plugin.abi", "is built for plugin ABI 7"},
    {"faulty_magic", "plugin.magic", "is no rung plugin (magic 12345678)"},
    {"faulty_answer", "plugin.abi", "does not serve plugin ABI"},
    {"faulty_slot", "plugin.incomplete", "verifier 'faulty' lacks the operation 'check'"},
    {"faulty_short_ops", "plugin.incomplete", "verifier 'faulty' lacks the operation 'check'"},
    {"faulty_ops", "plugin.incomplete", "has no operations"},
    {"faulty_create", "plugin.incomplete", "lacks create()"},
    {"faulty_factories", "plugin.incomplete", "it has no factories"},
    {"faulty_kind", "plugin.incomplete", "the kind 'rung.oracle/0'"},
    {"faulty_name", "plugin.incomplete", "the name 'Not A Name'"},
    {"faulty_enum", "plugin.incomplete", "option 'mode' of 'faulty' is an enum without values"},
    {"faulty_required", "plugin.incomplete", "is required and has a default"},
    {"faulty_threads", "plugin.incomplete", "unknown thread model 9"},
    {"faulty_size", "plugin.incomplete", "has a struct_size of 16"},
    {"faulty_licence", "plugin.incomplete", "the descriptor is incomplete"},
    {"no_entry", "plugin.entry", "does not export rung_plugin_v0"},
};

static void each_is_refused_with_file_and_reason(void **state)
{
    (void)state;
    struct harness h = harness_open(FAULTY_PLUGINS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rung_loaded *loaded = NULL;
        h.err = rung_error_init();
        int32_t status =
            rung_registry_load(h.registry, RUNG_KIND_VERIFIER, cases[i].file, &loaded, &h.err);
        assert_true(status == RUNG_EMISUSE || status == RUNG_EINVAL);
        assert_null(loaded);
        assert_string_equal(h.err.symbol, cases[i].symbol);
        support_contains(h.err.message, cases[i].why);
        char *path = support_path(FAULTY_PLUGINS "/verifier_", "");
        path[strlen(path) - 1] = 0;
        support_contains(h.err.message, path);
        support_contains(h.err.message, cases[i].file);
        free(path);
    }
    harness_close(&h);
}

static void text_with_the_name_of_a_plugin_is_refused(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "verifier_text.so");
    const struct rung_loaded *loaded = NULL;
    support_write_text(path, "not a shared object\n");
    struct harness h = harness_open(folder);
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "text", &loaded, &h.err),
                     RUNG_EINVAL);
    assert_string_equal(h.err.symbol, "plugin.load");
    support_contains(h.err.message, path);
    support_contains(h.err.message, "ldd -r");
    harness_close(&h);
    free(path);
    support_remove(folder);
}

/* Reading a folder must not run create(): one that crashes there is still listed. */
static void a_plugin_that_crashes_in_create_is_listed_unharmed(void **state)
{
    (void)state;
    struct harness h = harness_open(FAULTY_PLUGINS);
    size_t n, opened = 0;
    const char *const *files = rung_registry_files(h.registry, h.arena, &n);
    assert_true(n >= sizeof cases / sizeof *cases);
    for (size_t i = 0; i < n; i++) {
        const struct rung_plugin *plugin = NULL;
        opened += rung_registry_open(h.registry, files[i], &plugin, &h.err) == RUNG_OK &&
                  strstr(files[i], "faulty_crash");
    }
    assert_int_equal(opened, 1);
    harness_close(&h);
}

static void create_and_crash(void *arg)
{
    struct harness *h = arg;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        rung_crash_install();
        const struct rung_loaded *loaded = NULL;
        struct rung_instance *instance = NULL;
        rung_registry_load(h->registry, RUNG_KIND_VERIFIER,
                           FAULTY_PLUGINS "/verifier_faulty_crash.so", &loaded, &h->err);
        rung_instance_new(loaded, harness_options(h, loaded->factory, NULL), "mine", "/data", NULL,
                          &instance, &h->err);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_crash_in_create_names_plugin_and_file(void **state)
{
    (void)state;
    struct harness h = harness_open(FAULTY_PLUGINS);
    char *log = harness_log(create_and_crash, &h);
    support_contains(log, "verifier mine");
    support_contains(log, "verifier_faulty_crash.so");
    free(log);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_refused_with_file_and_reason),
        cmocka_unit_test(text_with_the_name_of_a_plugin_is_refused),
        cmocka_unit_test(a_plugin_that_crashes_in_create_is_listed_unharmed),
        cmocka_unit_test(a_crash_in_create_names_plugin_and_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
