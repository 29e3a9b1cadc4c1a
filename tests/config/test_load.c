/* One file: values and places, and every fault of syntax, range and form with file and line. */
#include "support/support.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct rung_arena *arena;
static struct rung_diags diags;

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    rung_diags_free(&diags);
    rung_arena_free(arena);
    return 0;
}

static const char *faults_of(const char *text)
{
    rung_diags_free(&diags);
    if (rung_config_parse(arena, text, "dir/f.cfg", &diags))
        fail_msg("accepted: %s", text);
    assert_true(diags.n > 0);
    return rung_buf_text(&diags.text);
}

static void values_keep_type_and_place(void **state)
{
    (void)state;
    struct rung_node *root =
        rung_config_parse(arena,
                          "// first\na = 5; b = -3.5;\n"
                          "c = \"x\" \"y\"; /* \n 99999999999 */ d = true;\n"
                          "e = { f = ( 1, \"two\", { g = [ 1, 2 ]; } ); };\n"
                          "big = 5000000000L; hex = 0x10; s = \"99999999999 # \\\" //\";\n"
                          "n99999999999 = 1e5; # 99999999999\n",
                          "dir/f.cfg", &diags);
    if (!root)
        fail_msg("%s", rung_buf_text(&diags.text));
    assert_int_equal(rung_node_get(root, "a")->i, 5);
    assert_int_equal(rung_node_get(root, "a")->line, 2);
    assert_string_equal(rung_node_get(root, "a")->file, "dir/f.cfg");
    assert_true(rung_node_get(root, "b")->f == -3.5);
    assert_string_equal(rung_node_get(root, "c")->s, "xy");
    assert_int_equal(rung_node_get(root, "d")->type, RUNG_NODE_BOOL);
    assert_int_equal(rung_node_get(root, "d")->line, 4);
    const struct rung_node *list = rung_node_get(rung_node_get(root, "e"), "f");
    assert_int_equal(list->type, RUNG_NODE_LIST);
    assert_int_equal(list->first->i, 1);
    assert_string_equal(list->first->next->s, "two");
    assert_int_equal(rung_node_count(rung_node_get(list->first->next->next, "g")), 2);
    assert_true(rung_node_get(root, "big")->i == 5000000000);
    assert_int_equal(rung_node_get(root, "hex")->i, 16);
}

static void faults_name_file_and_line(void **state)
{
    (void)state;
    support_contains(faults_of("a = 1;\nb = ;\n"), "dir/f.cfg:2: syntax error");
    support_contains(faults_of("a = 1;\n\tb = \x01 (;\n"), "at or before: b = ? (;");
    support_contains(faults_of("a = 1;\nb = \"never\nc = 3;\n"),
                     "dir/f.cfg:2: the text that begins here is never closed");
    support_contains(faults_of("a = \"x\\\""), "f.cfg:1: the text that begins");
    support_contains(faults_of("a = 1; /* b\nc = 3;\n"), "f.cfg:1: the comment that begins");
    support_contains(faults_of("a = 1;\na = 2;\n"), "dir/f.cfg:2: duplicate");
    support_contains(faults_of("a = [ 1, \"x\" ];\n"), "dir/f.cfg:1:");
    support_contains(faults_of("\n\na = 5000000000;"),
                     "dir/f.cfg:3: the integer 5000000000 does not fit 32 bits; write 5000000000L");
    support_contains(faults_of("a = -2147483649;"), "write -2147483649L");
    support_contains(faults_of("a = 0xffffffff;"), "write 0xffffffffL");
    support_contains(faults_of("a = 9007199254740993L;"), "2^53");
    support_contains(faults_of("a = 99999999999999999999999999999999999999999999999L;"),
                     "too large");
    support_contains(faults_of("a = 99999999999999999999;"), "too large");
    support_contains(faults_of("a = 1e999;"), "too large");
    support_contains(faults_of("s = \"\n\n\";\na = 5000000000;"), "dir/f.cfg:4:");
    support_contains(faults_of("@include \"nothing.cfg\"\n"), "nothing.cfg");
    support_contains(faults_of("@include \"/etc/passwd\"\n"), "must be relative to dir/");
}

static void integers_are_reported_together(void **state)
{
    (void)state;
    const char *text = faults_of("a = 5000000000;\nb = ( 1, 6000000000 );\n");
    support_contains(text, ":1:");
    support_contains(text, ":2:");
    assert_int_equal(diags.n, 2);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char text[4096] = "a = ";
    memset(text + 4, '(', 1000);
    memset(text + 1004, ')', 1000);
    text[2004] = ';';
    support_contains(faults_of(text), "nested more than 32 deep");
    char *deep = calloc(1, 500001);
    memset(deep, '{', 500000);
    memcpy(deep, "a=", 2);
    support_contains(faults_of(deep), "dir/f.cfg:1: groups and lists are nested");
    free(deep);
    memset(text, 0, sizeof text);
    memcpy(text, "a=", 2);
    memset(text + 2, '(', 32);
    memset(text + 34, ')', 32);
    assert_non_null(rung_config_parse(arena, strcat(text, ";"), "f.cfg", &diags));
}

static void files_that_are_no_text_are_refused(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "x.cfg");
    assert_null(rung_config_load(arena, path, &diags));
    support_contains(rung_buf_text(&diags.text), "x.cfg: can't be opened: No such file");
    assert_null(rung_config_load(arena, folder, &diags));
    support_contains(rung_buf_text(&diags.text), "regular file");
    support_write(path, "a = 1;\0", 7);
    assert_null(rung_config_load(arena, path, &diags));
    support_contains(rung_buf_text(&diags.text), "x.cfg: is not a text in UTF-8: it holds a NUL");
    support_write(path, "a = \"\xff\";", 8);
    assert_null(rung_config_load(arena, path, &diags));
    support_write_text(path, "\xef\xbb\xbf"
                             "a = 1;\r\nb = 2;\r\n");
    struct rung_node *marked = rung_config_load(arena, path, &diags);
    assert_int_equal(rung_node_get(marked, "b")->line, 2);
    char *large = calloc(1, (1 << 20) + 2);
    memset(large, '\n', (1 << 20) + 1);
    support_write(path, large, (1 << 20) + 1);
    assert_null(rung_config_load(arena, path, &diags));
    support_contains(rung_buf_text(&diags.text), "allowed");
    assert_int_equal(diags.n, 5);
    free(large);
    free(path);
    support_remove(folder);
}

static void includes_keep_their_places_and_are_checked(void **state)
{
    (void)state;
    char *folder = support_folder(), *main_path = support_path(folder, "main.cfg");
    char *part = support_path(folder, "part.cfg");
    support_write_text(main_path, "a = 1;\n@include \"part.cfg\"\nc = 3;\n");
    support_write_text(part, "\nb = 2;\n");
    struct rung_node *root = rung_config_load(arena, main_path, &diags);
    if (!root)
        fail_msg("%s", rung_buf_text(&diags.text));
    assert_string_equal(rung_node_get(root, "b")->file, part);
    assert_int_equal(rung_node_get(root, "b")->line, 2);
    assert_int_equal(rung_node_get(root, "c")->line, 3);
    support_write_text(part, "\nb = 5000000000;\n");
    assert_null(rung_config_load(arena, main_path, &diags));
    support_contains(rung_buf_text(&diags.text), "part.cfg:2: the integer");
    support_write_text(part, "\nb = ;\n");
    assert_null(rung_config_load(arena, main_path, &diags));
    support_contains(rung_buf_text(&diags.text), "part.cfg:2: syntax error");
    support_write_text(part, "@include \"main.cfg\"\n");
    assert_null(rung_config_load(arena, main_path, &diags));
    support_contains(rung_buf_text(&diags.text), "8 deep");
    support_write_text(main_path, "@include \".\"\n");
    assert_null(rung_config_load(arena, main_path, &diags));
    support_contains(rung_buf_text(&diags.text), "main.cfg:1: @include");
    free(main_path);
    free(part);
    support_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_keep_type_and_place, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_name_file_and_line, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_are_reported_together, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_no_text_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(includes_keep_their_places_and_are_checked, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
