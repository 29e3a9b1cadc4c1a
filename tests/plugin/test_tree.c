/*
 * Every plugin of the tree: it loads, its file name tells kind and name, every default of every
 * option parses, and create and destroy need no device, no network and no toolkit.
 */
#include "plugin/harness.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool needs_something(const struct rung_factory *f)
{
    for (size_t i = 0; f->options && f->options[i]; i++)
        if (f->options[i]->flags & RUNG_OPT_REQUIRED)
            return true;
    return false;
}

static void check_texts(const struct rung_factory *f)
{
    assert_true(strlen(f->summary) > 0);
    for (size_t i = 0; f->options && f->options[i]; i++) {
        assert_true(strlen(f->options[i]->summary) > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(f->options[k]->name, f->options[i]->name);
    }
}

static void check_life(struct harness *h, const struct rung_loaded *loaded,
                       struct rung_options *options)
{
    struct rung_instance *instance = NULL;
    h->err = rung_error_init();
    for (int i = 0; i < 3; i++) {
        if (rung_instance_new(loaded, options, "test", "/nowhere", NULL, &instance, &h->err) !=
            RUNG_OK) {
            assert_true(strlen(h->err.message) > 0);
            return;
        }
        rung_instance_free(instance);
    }
}

static void check_factory(struct harness *h, const char *path, const struct rung_factory *f)
{
    char expected[256];
    const struct rung_loaded *loaded = harness_load(h, f->kind, f->name);
    assert_string_equal(loaded->factory->name, f->name);
    snprintf(expected, sizeof expected, "%s_%s.so", rung_kind_word(f->kind), f->name);
    assert_string_equal(base_name(path), expected);
    check_texts(f);
    struct rung_options *options = harness_options(h, f, NULL);
    if (!options && !needs_something(f))
        fail_msg("%s: %s", path, rung_buf_text(&h->diags.text));
    for (size_t i = 0; f->options && f->options[i]; i++)
        if (!(f->options[i]->flags & RUNG_OPT_REQUIRED))
            assert_null(strstr(rung_buf_text(&h->diags.text), f->options[i]->name));
    if (options)
        check_life(h, loaded, options);
}

static void every_plugin_of_the_tree_is_sound(void **state)
{
    (void)state;
    struct harness h = harness_open(TREE_PLUGINS);
    size_t n;
    const char *const *files = rung_registry_files(h.registry, h.arena, &n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const struct rung_plugin *plugin = NULL;
        if (rung_registry_open(h.registry, files[i], &plugin, &h.err) != RUNG_OK)
            fail_msg("%s", h.err.message);
        for (size_t k = 0; plugin->factories[k]; k++)
            check_factory(&h, files[i], plugin->factories[k]);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_plugin_of_the_tree_is_sound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
