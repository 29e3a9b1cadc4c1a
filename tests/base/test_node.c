/* The tree of settings: lookups, and JSON there and back. */
#include "support/support.h"

#include "base/json.h"
#include "base/node.h"

#include <stdlib.h>
#include <string.h>

static struct rung_node *from_text(struct rung_arena *arena, const char *text)
{
    cJSON *json = rung_json_parse(text, strlen(text));
    assert_non_null(json);
    struct rung_node *node = rung_node_from_json(arena, json, NULL, "job");
    cJSON_Delete(json);
    return node;
}

static void children_are_found_and_marked(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_node *group = rung_node_new(arena, RUNG_NODE_GROUP, NULL, "a.cfg", 1);
    char name[] = "rounds";
    struct rung_node *child = rung_node_new(arena, RUNG_NODE_INT, name, "a.cfg", 2);
    rung_node_append(group, child);
    rung_node_append(group, rung_node_new(arena, RUNG_NODE_STRING, "plugin", "a.cfg", 3));
    name[0] = 'X';
    assert_int_equal(rung_node_count(group), 2);
    assert_false(child->used);
    assert_ptr_equal(rung_node_get(group, "rounds"), child);
    assert_true(child->used);
    assert_null(rung_node_get(group, "round"));
    assert_null(rung_node_get(NULL, "rounds"));
    assert_string_equal(rung_node_get(group, "plugin")->s, "");
    rung_arena_free(arena);
}

static void json_keeps_types_and_order(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"b\":true,\"i\":-7,\"f\":0.5,\"s\":\"t\\n\",\"g\":{\"x\":1},\"l\":[1,\"two\",[3]]}",
        "[]",
        "{}",
        "\"text\"",
        "[4294967296,9007199254740991]",
    };
    struct rung_arena *arena = rung_arena_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cJSON *json = rung_node_to_json(from_text(arena, texts[i]));
        char *line = rung_json_line(json);
        assert_string_equal(line, texts[i]);
        free(line);
        cJSON_Delete(json);
    }
    struct rung_node *whole = rung_node_new(arena, RUNG_NODE_FLOAT, NULL, "a", 1);
    whole->f = 3;
    cJSON *json = rung_node_to_json(whole);
    char *line = rung_json_line(json);
    assert_string_equal(line, "3.0");
    free(line);
    cJSON_Delete(json);
    rung_arena_free(arena);
}

static void what_settings_cannot_hold_is_refused(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    assert_null(from_text(arena, "{\"a\":null}"));
    char deep[101];
    memset(deep, '[', 50);
    memset(deep + 50, ']', 50);
    deep[100] = 0;
    assert_null(from_text(arena, deep));
    rung_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_found_and_marked),
        cmocka_unit_test(json_keeps_types_and_order),
        cmocka_unit_test(what_settings_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
