/* Merging trees, and --set PATH=VALUE. */
#include "support/support.h"

#include "config/config.h"

#include <string.h>

static struct rung_arena *arena;
static struct rung_diags diags;
static struct rung_node *root;

static struct rung_node *parse(const char *text)
{
    struct rung_node *tree = rung_config_parse(arena, text, "f.cfg", &diags);
    if (!tree)
        fail_msg("%s", rung_buf_text(&diags.text));
    return tree;
}

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    root = parse(
        "search = { plugin = \"branching\"; rounds = 5; keep = 3; };\n"
        "llm = ( { name = \"writer\"; plugin = \"replay\"; }, { plugin = \"mailbox\"; n = 1; } );\n"
        "seed = 1;\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_diags_free(&diags);
    rung_arena_free(arena);
    return 0;
}

static const struct rung_node *at(const char *a, const char *b)
{
    return rung_node_get(rung_node_get(root, a), b);
}

static void groups_merge_and_lists_replace(void **state)
{
    (void)state;
    root = rung_config_merge(arena, root,
                             parse("search = { rounds = 9; more = 1; }; llm = ( 1 ); extra = 2;"));
    assert_int_equal(at("search", "rounds")->i, 9);
    assert_int_equal(at("search", "keep")->i, 3);
    assert_int_equal(at("search", "more")->i, 1);
    assert_int_equal(rung_node_count(rung_node_get(root, "llm")), 1);
    assert_int_equal(rung_node_get(root, "extra")->i, 2);
    assert_int_equal(rung_node_get(root, "seed")->i, 1);
    assert_string_equal(root->first->name, "search");
}

static void another_plugin_inherits_nothing(void **state)
{
    (void)state;
    root = rung_config_merge(arena, root, parse("search = { plugin = \"evolve\"; size = 4; };"));
    assert_null(at("search", "rounds"));
    assert_int_equal(at("search", "size")->i, 4);
    root = rung_config_merge(arena, root, parse("search = { plugin = \"evolve\"; age = 4; };"));
    assert_int_equal(at("search", "size")->i, 4);
}

static void types_may_change(void **state)
{
    (void)state;
    root = rung_config_merge(arena, root, parse("search = 1; seed = { a = 1; };"));
    assert_int_equal(rung_node_get(root, "search")->type, RUNG_NODE_INT);
    assert_int_equal(at("seed", "a")->i, 1);
}

static void set(const char *assignment)
{
    if (!rung_config_set(arena, root, assignment, &diags))
        fail_msg("%s", rung_buf_text(&diags.text));
    assert_int_equal(diags.n, 0);
}

static void values_are_read_as_in_a_file(void **state)
{
    (void)state;
    set("search.rounds=7");
    assert_int_equal(at("search", "rounds")->i, 7);
    assert_string_equal(at("search", "rounds")->file, "--set search.rounds");
    set("search.keep=2.5");
    assert_int_equal(at("search", "keep")->type, RUNG_NODE_FLOAT);
    set("search.flag=true");
    assert_int_equal(at("search", "flag")->type, RUNG_NODE_BOOL);
    set("search.text=\"7\"");
    assert_string_equal(at("search", "text")->s, "7");
    set("budget.wall=2h");
    assert_string_equal(at("budget", "wall")->s, "2h");
    set("key=env:A=B");
    assert_string_equal(rung_node_get(root, "key")->s, "env:A=B");
    set("empty=");
    assert_string_equal(rung_node_get(root, "empty")->s, "");
    set("two=1; three = 2");
    assert_string_equal(rung_node_get(root, "two")->s, "1; three = 2");
    assert_null(rung_node_get(root, "three"));
    set("list=( 1, 2 )");
    assert_int_equal(rung_node_count(rung_node_get(root, "list")), 2);
    set("search={ rounds = 1; }");
    assert_int_equal(at("search", "rounds")->i, 1);
    assert_non_null(at("search", "text"));
    set("search={ plugin = \"tune\"; }");
    assert_null(at("search", "rounds"));
    set("at=@include \"x\"");
    assert_string_equal(rung_node_get(root, "at")->s, "@include \"x\"");
}

static void items_are_addressed_by_index_name_or_plugin(void **state)
{
    (void)state;
    const struct rung_node *llm = rung_node_get(root, "llm");
    set("llm.0.model=gpt");
    assert_string_equal(rung_node_get(llm->first, "model")->s, "gpt");
    set("llm.writer.model=other");
    assert_string_equal(rung_node_get(llm->first, "model")->s, "other");
    set("llm.mailbox.n=4");
    assert_int_equal(rung_node_get(llm->first->next, "n")->i, 4);
    set("llm.1={ plugin = \"replay\"; }");
    assert_null(rung_node_get(llm->first->next, "n"));
    assert_int_equal(rung_node_count(llm), 2);
}

static void wrong_assignments_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"rounds", "write PATH=VALUE"},
        {"=4", "write PATH=VALUE"},
        {"llm.2.x=1", "--set llm.2.x=1: 'llm' has no item '2'; it has 0 (writer), 1 (mailbox)"},
        {"llm.replay.x=1", "'llm' has no item 'replay'"},
        {"llm.wrtier.x=1", "did you mean 'writer'?"},
        {"gone.0.x=1", "there is no list to take an item of"},
        {"seed.x=1", "there is nothing below an integer"},
        {"search..x=1", "PATH is keys"},
        {"search.9=1", "no list to take an item of"},
        {"a b=1", "PATH is keys"},
        {"seed=5000000000", "write 5000000000L"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rung_diags_free(&diags);
        if (rung_config_set(arena, root, cases[i].text, &diags))
            fail_msg("accepted: %s", cases[i].text);
        assert_int_equal(diags.n, 1);
        support_contains(rung_buf_text(&diags.text), cases[i].want);
    }
    assert_int_equal(rung_node_get(root, "seed")->i, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_merge_and_lists_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(another_plugin_inherits_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(types_may_change, setup, teardown),
        cmocka_unit_test_setup_teardown(values_are_read_as_in_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(items_are_addressed_by_index_name_or_plugin, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(wrong_assignments_are_told, setup, teardown),
    };
    return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
