/* Where plugins are looked for, what is refused for its place, and what the messages say. */
#include "plugin/harness.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "verifier_good.so"

static void names_and_paths_find_the_same_plugin(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_loaded *by_name = harness_load(&h, RUNG_KIND_VERIFIER, "good");
    assert_string_equal(by_name->factory->name, "good");
    assert_string_equal(by_name->plugin->id, "org.rung.tests.good");
    assert_ptr_equal(harness_load(&h, RUNG_KIND_VERIFIER, "good"), by_name);
    assert_ptr_equal(harness_load(&h, RUNG_KIND_VERIFIER, GOOD_PLUGINS "/" FILE_NAME), by_name);
    const struct rung_loaded *second =
        harness_load(&h, RUNG_KIND_SEARCH, GOOD_PLUGINS "/" FILE_NAME);
    assert_string_equal(second->factory->name, "idle");
    assert_string_equal(second->path, by_name->path);
    harness_close(&h);
}

static void hashes_are_those_of_the_file(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    char want[RUNG_SHA256_HEX], located[RUNG_SHA256_HEX], *path;
    assert_int_equal(rung_sha256_file(GOOD_PLUGINS "/" FILE_NAME, want, &h.err), RUNG_OK);
    assert_int_equal(rung_registry_locate(h.registry, RUNG_KIND_VERIFIER, "good", &path, located,
                                          h.arena, &h.err),
                     RUNG_OK);
    assert_string_equal(located, want);
    assert_string_equal(harness_load(&h, RUNG_KIND_VERIFIER, "good")->sha256, want);
    assert_string_equal(harness_load(&h, RUNG_KIND_VERIFIER, "good")->path, path);
    harness_close(&h);
}

static void links_lead_to_one_loaded_file(void **state)
{
    (void)state;
    char *folder = support_folder(), *link = support_path(folder, FILE_NAME);
    assert_int_equal(symlink(GOOD_PLUGINS "/" FILE_NAME, link), 0);
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_loaded *first = harness_load(&h, RUNG_KIND_VERIFIER, "good");
    assert_ptr_equal(harness_load(&h, RUNG_KIND_VERIFIER, link), first);
    rung_registry_add_dir(h.registry, folder);
    assert_ptr_equal(harness_load(&h, RUNG_KIND_VERIFIER, "good"), first);
    harness_close(&h);
    free(link);
    support_remove(folder);
}

static void the_current_directory_is_never_searched(void **state)
{
    (void)state;
    char *folder = support_folder(), *cwd = getcwd(NULL, 0);
    const struct rung_loaded *loaded;
    struct harness h = harness_open(folder);
    assert_int_equal(chdir(GOOD_PLUGINS), 0);
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "good", &loaded, &h.err),
                     RUNG_ENOTFOUND);
    assert_int_equal(chdir(cwd), 0);
    harness_close(&h);
    free(cwd);
    support_remove(folder);
}

static void the_environment_adds_absolute_folders(void **state)
{
    (void)state;
    setenv("RUNG_PLUGIN_PATH", "relative::/nowhere:" GOOD_PLUGINS, 1);
    struct rung_registry *registry = rung_registry_new();
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    const struct rung_loaded *loaded;
    assert_int_equal(rung_registry_load(registry, RUNG_KIND_VERIFIER, "good", &loaded, &err),
                     RUNG_OK);
    size_t n, seen = 0;
    const char *const *files = rung_registry_files(registry, arena, &n);
    for (size_t i = 0; i < n; i++)
        seen += strcmp(files[i], GOOD_PLUGINS "/" FILE_NAME) == 0;
    assert_int_equal(seen, 1);
    rung_arena_free(arena);
    rung_registry_free(registry);
    unsetenv("RUNG_PLUGIN_PATH");
}

static void a_missing_plugin_is_told_with_folders_and_the_nearest(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_loaded *loaded;
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "godo", &loaded, &h.err),
                     RUNG_ENOTFOUND);
    support_contains(h.err.message, "no verifier plugin 'godo'");
    support_contains(h.err.message, "did you mean 'good'?");
    support_contains(h.err.message, "verifier_godo.so in " GOOD_PLUGINS);
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_TIMER, "good", &loaded, &h.err),
                     RUNG_ENOTFOUND);
    assert_int_equal(rung_registry_load(h.registry, "rung.oracle/0", "good", &loaded, &h.err),
                     RUNG_EINVAL);
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_TIMER, GOOD_PLUGINS "/" FILE_NAME,
                                        &loaded, &h.err),
                     RUNG_ENOTFOUND);
    support_contains(h.err.message, "holds no timer");
    harness_close(&h);
}

/* Loads a copy of the good plugin from a folder of the given modes. */
static int32_t load_with_modes(mode_t file, mode_t folder, bool insecure, struct rung_error *err)
{
    char *dir = support_folder(), *path = support_path(dir, FILE_NAME);
    const struct rung_loaded *loaded = NULL;
    support_copy(GOOD_PLUGINS "/" FILE_NAME, path);
    chmod(path, file);
    chmod(dir, folder);
    struct harness h = harness_open(dir);
    if (insecure)
        rung_registry_allow_insecure(h.registry);
    int32_t status = rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "good", &loaded, err);
    if (status)
        support_contains(err->message, dir);
    harness_close(&h);
    free(path);
    support_remove(dir);
    return status;
}

static void files_that_others_may_write_are_refused(void **state)
{
    (void)state;
    struct rung_error err = rung_error_init();
    assert_int_equal(load_with_modes(0755, 0755, false, &err), RUNG_OK);
    assert_int_equal(load_with_modes(0757, 0755, false, &err), RUNG_EINVAL);
    assert_string_equal(err.symbol, "plugin.insecure");
    support_contains(err.message, "chmod go-w");
    assert_int_equal(load_with_modes(0775, 0755, false, &err), RUNG_EINVAL);
    assert_int_equal(load_with_modes(0755, 0777, false, &err), RUNG_EINVAL);
    assert_int_equal(load_with_modes(0755, 01777, false, &err), RUNG_OK);
    assert_int_equal(load_with_modes(0777, 0777, true, &err), RUNG_OK);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, FILE_NAME);
    const struct rung_loaded *loaded;
    struct harness h = harness_open(folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "good", &loaded, &h.err),
                     RUNG_EINVAL);
    support_contains(h.err.message, path);
    assert_int_equal(
        rung_registry_load(h.registry, RUNG_KIND_VERIFIER, "/no/such.so", &loaded, &h.err),
        RUNG_ENOTFOUND);
    support_contains(h.err.message, "/no/such.so");
    harness_close(&h);
    free(path);
    support_remove(folder);
}

static void kinds_have_words_both_ways(void **state)
{
    (void)state;
    static const char *const words[] = {"llm",       "codegen",  "compiler", "device",
                                        "reference", "verifier", "timer",    "search"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_string_equal(rung_kind_word(rung_kind_of_word(words[i])), words[i]);
    assert_null(rung_kind_of_word("oracle"));
    assert_null(rung_kind_word(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_paths_find_the_same_plugin),
        cmocka_unit_test(hashes_are_those_of_the_file),
        cmocka_unit_test(links_lead_to_one_loaded_file),
        cmocka_unit_test(the_current_directory_is_never_searched),
        cmocka_unit_test(the_environment_adds_absolute_folders),
        cmocka_unit_test(a_missing_plugin_is_told_with_folders_and_the_nearest),
        cmocka_unit_test(files_that_others_may_write_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(kinds_have_words_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
