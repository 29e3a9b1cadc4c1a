/* Faults of user files and errors: places, suggestions, cutting. */
#include "support/support.h"

#include "base/diag.h"
#include "base/status.h"

#include <string.h>

static void every_fault_has_its_place(void **state)
{
    (void)state;
    struct rung_diags diags = {0};
    rung_diag(&diags, "a.cfg", 7, "no %s", "task");
    rung_diag(&diags, "a.cfg", 0, "unreadable");
    rung_diag(&diags, NULL, 0, "nothing given");
    assert_int_equal(diags.n, 3);
    assert_string_equal(rung_buf_text(&diags.text),
                        "a.cfg:7: no task\na.cfg: unreadable\nnothing given\n");
    assert_string_equal(diags.items[0].file, "a.cfg");
    assert_int_equal(diags.items[0].line, 7);
    assert_string_equal(diags.items[0].message, "no task");
    assert_null(diags.items[2].file);
    rung_diags_free(&diags);
    assert_int_equal(diags.n, 0);
}

static void unused_settings_are_named_with_the_nearest(void **state)
{
    (void)state;
    static const char *const known[] = {"rounds", "branches", NULL};
    struct rung_arena *arena = rung_arena_new();
    struct rung_diags diags = {0};
    struct rung_node *group = rung_node_new(arena, RUNG_NODE_GROUP, NULL, "a.cfg", 1);
    rung_node_append(group, rung_node_new(arena, RUNG_NODE_INT, "rounds", "a.cfg", 2));
    rung_node_append(group, rung_node_new(arena, RUNG_NODE_INT, "branchs", "a.cfg", 3));
    rung_node_append(group, rung_node_new(arena, RUNG_NODE_INT, "zzz", "a.cfg", 4));
    rung_node_get(group, "rounds");
    rung_diag_unknown(&diags, group, "search 'branching'", known);
    assert_int_equal(diags.n, 2);
    support_contains(diags.text.ptr, "a.cfg:3: search 'branching' has no setting 'branchs'; "
                                     "did you mean 'branches'? (it knows: rounds, branches)\n");
    support_contains(diags.text.ptr, "a.cfg:4: search 'branching' has no setting 'zzz' (it knows");
    rung_diags_free(&diags);
    rung_arena_free(arena);
}

static void errors_are_filled_and_cut(void **state)
{
    (void)state;
    struct rung_error err = rung_error_init();
    assert_int_equal(err.struct_size, sizeof err);
    assert_int_equal(rung_fail(&err, RUNG_EIO, "a.b", "%s: %d", "file", 5), RUNG_EIO);
    assert_int_equal(err.code, RUNG_EIO);
    assert_string_equal(err.symbol, "a.b");
    assert_string_equal(err.message, "file: 5");
    char symbol[200];
    memset(symbol, 's', sizeof symbol - 1);
    symbol[sizeof symbol - 1] = 0;
    rung_fail(&err, RUNG_EIO, symbol, "%3000d", 1);
    assert_int_equal(strlen(err.symbol), sizeof err.symbol - 1);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(rung_fail(NULL, RUNG_EINVAL, "", "unheard"), RUNG_EINVAL);
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (int32_t i = RUNG_OK; i <= RUNG_EINTERNAL; i++)
        assert_true(strcmp(rung_status_name(i), "unknown status") != 0);
    assert_string_equal(rung_status_name(-1), "unknown status");
    assert_string_equal(rung_status_name(RUNG_EINTERNAL + 1), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_has_its_place),
        cmocka_unit_test(unused_settings_are_named_with_the_nearest),
        cmocka_unit_test(errors_are_filled_and_cut),
        cmocka_unit_test(every_status_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
