/* What a file stands on: the order of precedence, chains of base, and their faults. */
#include "support/support.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct rung_arena *arena;
static struct rung_diags diags;
static char *folder, *data;

static void put(const char *name, const char *text)
{
    char *path = support_path(folder, name);
    support_write_text(path, text);
    free(path);
}

static void make_folder(const char *name)
{
    char *path = support_path(folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    folder = support_folder();
    make_folder("data");
    make_folder("data/pipelines");
    make_folder("home");
    make_folder("home/rung");
    make_folder("lab");
    put("data/pipelines/builtin.cfg", "a = 1; b = 1; c = 1; d = 1; e = 1; g = { x = 1; y = 1; };");
    data = support_path(folder, "data");
    char *home = support_path(folder, "home");
    setenv("XDG_CONFIG_HOME", home, 1);
    free(home);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_diags_free(&diags);
    rung_arena_free(arena);
    support_remove(folder);
    free(data);
    return 0;
}

static struct rung_node *load(const char *name, const char *const *sets, size_t n)
{
    char *path = name ? support_path(folder, name) : NULL;
    struct rung_node *root = rung_config_pipeline(arena, path, data, sets, n, &diags);
    free(path);
    assert_true((root != NULL) == (diags.n == 0));
    return root;
}

static int64_t value(const struct rung_node *root, const char *key)
{
    return rung_node_get(root, key)->i;
}

static void later_layers_win(void **state)
{
    (void)state;
    static const char *const sets[] = {"e=5"};
    put("home/rung/rung.cfg", "b = 2; c = 2; d = 2; e = 2; g = { y = 2; };");
    put("lab/base.cfg", "c = 3; d = 3; e = 3;");
    put("mine.cfg", "base = \"lab/base.cfg\"; d = 4; e = 4; g = { z = 4; };");
    struct rung_node *root = load("mine.cfg", sets, 1);
    if (!root)
        fail_msg("%s", rung_buf_text(&diags.text));
    assert_int_equal(value(root, "a"), 1);
    assert_int_equal(value(root, "b"), 2);
    assert_int_equal(value(root, "c"), 3);
    assert_int_equal(value(root, "d"), 4);
    assert_int_equal(value(root, "e"), 5);
    assert_int_equal(value(rung_node_get(root, "g"), "x"), 1);
    assert_int_equal(value(rung_node_get(root, "g"), "y"), 2);
    assert_int_equal(value(rung_node_get(root, "g"), "z"), 4);
    assert_null(rung_node_get(root, "base"));
    support_contains(root->file, "mine.cfg");
    support_contains(rung_node_get(root, "c")->file, "lab/base.cfg");
}

static void without_a_file_the_built_in_stands(void **state)
{
    (void)state;
    struct rung_node *root = load(NULL, NULL, 0);
    assert_non_null(root);
    assert_int_equal(value(root, "e"), 1);
}

static void faults_of_all_layers_are_told(void **state)
{
    (void)state;
    static const char *const sets[] = {"=1"};
    put("home/rung/rung.cfg", "b = ;");
    put("mine.cfg", "a = 1;\nb = 5000000000;");
    assert_null(load("mine.cfg", sets, 1));
    support_contains(rung_buf_text(&diags.text), "rung.cfg:1: syntax error");
    support_contains(rung_buf_text(&diags.text), "mine.cfg:2: the integer");
    support_contains(rung_buf_text(&diags.text), "PATH=VALUE");
}

static void bases_are_checked(void **state)
{
    (void)state;
    put("mine.cfg", "base = \"gone.cfg\";");
    assert_null(load("mine.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "mine.cfg:1: base \"gone.cfg\"");
    support_contains(rung_buf_text(&diags.text), "gone.cfg: can't be opened: No such file");
    put("mine.cfg", "base = 5;");
    assert_null(load("mine.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "mine.cfg:1: 'base' must be the path");
    put("mine.cfg", "base = \"lab/b.cfg\";");
    put("lab/b.cfg", "base = \"../lab/../mine.cfg\";");
    assert_null(load("mine.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "lab/b.cfg:1: 'base' goes in a circle");
    put("mine.cfg", "base = \"mine.cfg\";");
    assert_null(load("mine.cfg", NULL, 0));
    assert_int_equal(diags.n, 4);
    assert_null(load("absent.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "absent.cfg: can't be opened: No such file");
}

static void the_other_kind_of_file_is_told(void **state)
{
    (void)state;
    put("task.cfg", "name = \"t\"; tensors = (); reference = { plugin = \"ops\"; };");
    put("mine.cfg", "task = \"task.cfg\"; llm = ();");
    assert_null(load("task.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "task.cfg: is a task file");
    support_contains(rung_buf_text(&diags.text), "rung run PIPELINE --task");
    assert_int_equal(diags.n, 1);
    char *path = support_path(folder, "mine.cfg");
    assert_null(rung_config_task(arena, path, &diags));
    support_contains(rung_buf_text(&diags.text), "mine.cfg: is a pipeline file");
    support_contains(rung_buf_text(&diags.text), "rung run");
    free(path);
}

static void a_kind_is_told_by_its_keys(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rung_file_kind want;
    } cases[] = {{"dims = { }; name = \"x\";", RUNG_FILE_TASK},
                 {"check = { }; llm = (); tensors = ();", RUNG_FILE_TASK},
                 {"task = \"x\";", RUNG_FILE_PIPELINE},
                 {"name = \"x\"; search = { };", RUNG_FILE_PIPELINE},
                 {"name = \"x\"; sm_count = 3;", RUNG_FILE_OTHER},
                 {"", RUNG_FILE_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rung_config_kind(rung_config_parse(arena, cases[i].text, "k.cfg", &diags)),
                         cases[i].want);
}

static void long_chains_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 17; i++) {
        char name[32], text[64];
        snprintf(name, sizeof name, "f%d.cfg", i);
        snprintf(text, sizeof text, "base = \"f%d.cfg\";", i + 1);
        put(name, i < 16 ? text : "a = 7;");
    }
    assert_null(load("f0.cfg", NULL, 0));
    support_contains(rung_buf_text(&diags.text), "more than 15 files");
    rung_diags_free(&diags);
    assert_int_equal(value(load("f1.cfg", NULL, 0), "a"), 7);
}

static void a_missing_built_in_is_told(void **state)
{
    (void)state;
    assert_null(rung_config_pipeline(arena, NULL, "/nowhere", NULL, 0, &diags));
    support_contains(rung_buf_text(&diags.text), "/nowhere/pipelines/builtin.cfg");
}

static void tasks_have_bases_too(void **state)
{
    (void)state;
    put("t.cfg", "base = \"lab/t.cfg\"; name = \"mine\"; dims = { rows = 4; };");
    put("lab/t.cfg", "name = \"theirs\"; dims = { rows = 1; cols = 2; };");
    char *path = support_path(folder, "t.cfg");
    struct rung_node *root = rung_config_task(arena, path, &diags);
    assert_non_null(root);
    assert_string_equal(rung_node_get(root, "name")->s, "mine");
    assert_int_equal(value(rung_node_get(root, "dims"), "cols"), 2);
    assert_null(rung_node_get(root, "a"));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(later_layers_win, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_file_the_built_in_stands, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_of_all_layers_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(bases_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(the_other_kind_of_file_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kind_is_told_by_its_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(long_chains_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_built_in_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(tasks_have_bases_too, setup, teardown),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
