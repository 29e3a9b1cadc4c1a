/* What goes to the journal comes back the same: verdicts, settings trees, ideas of a reply. */
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_an_outcome_survives_the_journal(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_stored stored = {.name = "kernel.ptx", .bytes = 10};
    memset(stored.sha256, 'a', 64);
    struct rung_outcome in = {.verdict = RUNG_ACCEPTED,
                              .message = "m\n\xc3\xa9",
                              .point = "TPB=128",
                              .n_points = 12,
                              .time_kind = RUNG_TIME_MODELLED,
                              .time_ns = 1234.5678901234567,
                              .low_ns = 1200.5,
                              .high_ns = 1300.25,
                              .tie_band = 0.3,
                              .floor_ns = 7,
                              .advice = "memory-bound",
                              .stored = &stored,
                              .n_stored = 1};
    cJSON *json = engine_outcome_to_json(&in);
    char *line = rung_json_line(json);
    cJSON *again = rung_json_parse(line, strlen(line));
    struct rung_outcome out;
    assert_true(engine_outcome_from_json(again, arena, &out));
    assert_int_equal(out.verdict, RUNG_ACCEPTED);
    assert_string_equal(out.message, in.message);
    assert_string_equal(out.point, "TPB=128");
    assert_true(out.time_ns == in.time_ns);
    assert_true(out.low_ns == in.low_ns && out.high_ns == in.high_ns);
    assert_int_equal(out.time_kind, RUNG_TIME_MODELLED);
    assert_int_equal(out.n_points, 12);
    free(line);
    cJSON_Delete(json);
    cJSON_Delete(again);
    rung_arena_free(arena);
}

static void test_a_damaged_verdict_is_refused(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    static const char *const bad[] = {"{}", "[]", "{\"verdict\": 3}", "{\"verdict\": \"fine\"}",
                                      "null"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rung_outcome out;
        cJSON *json = rung_json_parse(bad[i], strlen(bad[i]));
        assert_false(engine_outcome_from_json(json, arena, &out));
        cJSON_Delete(json);
    }
    rung_arena_free(arena);
}

static struct rung_node *string_node(struct rung_arena *a, const char *name, const char *text,
                                     const char *file)
{
    struct rung_node *n = rung_node_new(a, RUNG_NODE_STRING, name, file, 3);
    n->s = text;
    return n;
}

static void test_a_tree_keeps_the_file_of_each_text(void **state)
{
    (void)state;
    struct rung_arena *a = rung_arena_new();
    struct rung_node *root = rung_node_new(a, RUNG_NODE_GROUP, NULL, "/a/one.cfg", 1);
    struct rung_node *list = rung_node_new(a, RUNG_NODE_LIST, "list", "/a/one.cfg", 2);
    struct rung_node *number = rung_node_new(a, RUNG_NODE_INT, "n", "/a/one.cfg", 4);
    number->i = 9007199254740991;
    rung_node_append(root, string_node(a, "path", "x.cu", "/b/two.cfg"));
    rung_node_append(list, string_node(a, NULL, "item", "/a/one.cfg"));
    rung_node_append(root, list);
    rung_node_append(root, number);
    cJSON *saved = engine_tree_save(root);
    char *line = rung_json_line(saved);
    cJSON *json = rung_json_parse(line, strlen(line));
    const struct rung_node *back = engine_tree_load(a, json);
    assert_non_null(back);
    assert_string_equal(rung_node_get(back, "path")->file, "/b/two.cfg");
    assert_string_equal(rung_node_get(back, "path")->s, "x.cu");
    assert_int_equal(rung_node_get(back, "path")->line, 3);
    assert_string_equal(rung_node_get(back, "list")->first->s, "item");
    assert_true(rung_node_get(back, "n")->i == 9007199254740991);
    free(line);
    cJSON_Delete(saved);
    cJSON_Delete(json);
    rung_arena_free(a);
}

static void test_a_hostile_tree_is_refused(void **state)
{
    (void)state;
    struct rung_arena *a = rung_arena_new();
    char deep[2000] = "";
    for (int i = 0; i < 40; i++)
        strcat(deep, "{\"list\":[");
    strcat(deep, "1");
    for (int i = 0; i < 40; i++)
        strcat(deep, "]}");
    cJSON *json = cJSON_Parse(deep);
    assert_non_null(json);
    assert_null(engine_tree_load(a, json));
    cJSON_Delete(json);
    json = cJSON_Parse("{\"group\":{\"a\":{\"neither\":1}}}");
    assert_null(engine_tree_load(a, json));
    cJSON_Delete(json);
    rung_arena_free(a);
}

/* Ideas need a journal: a folder of their own. */
struct fixture {
    struct engine e;
    char dir[64];
};

static int open_engine(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct rung_error err = rung_error_init();
    strcpy(f->dir, "/tmp/rung-engine-XXXXXX");
    f->e.state.arena = rung_arena_new();
    f->e.cancel = rung_cancel_new();
    pthread_mutex_init(&f->e.lock, NULL);
    *state = f;
    return mkdtemp(f->dir) && !rung_journal_open(f->dir, RUNG_JOURNAL_CREATE, &f->e.journal, &err)
               ? 0
               : -1;
}

static int close_engine(void **state)
{
    struct fixture *f = *state;
    char command[100];
    rung_journal_close(f->e.journal);
    engine_state_free(&f->e.state);
    rung_cancel_free(f->e.cancel);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void test_ideas_are_read_from_lists_of_any_habit(void **state)
{
    struct fixture *f = *state;
    const char *reply =
        "Here are some ideas:\n\n"
        "- [Memory] Load four floats at a time with float4.\n"
        "2. **[parallelism]** One warp a row, with shuffles instead of shared memory.\n"
        "* Keep the row in registers between the passes.\n"
        "not an item: this sentence must not become an idea\n"
        "- short\n";
    assert_int_equal(engine_ideas_take(&f->e, reply, 8, 3), 3);
    const struct engine_state *s = &f->e.state;
    assert_string_equal(s->ideas[0]->category, "memory");
    assert_string_equal(s->ideas[0]->sentence, "Load four floats at a time with float4.");
    assert_string_equal(s->ideas[1]->category, "parallelism");
    assert_string_equal(s->ideas[2]->category, "general");
    assert_int_equal(s->ideas[2]->parent, 3);
    assert_int_equal(rung_journal_count(f->e.journal, "idea"), 3);
}

static void test_the_same_idea_is_taken_once_a_parent(void **state)
{
    struct fixture *f = *state;
    const char *reply =
        "- [a] Use float4 loads for the row.\n- [b] Use FLOAT4 loads, for the row!\n";
    assert_int_equal(engine_ideas_take(&f->e, reply, 8, 0), 1);
    assert_int_equal(engine_ideas_take(&f->e, reply, 8, 0), 0);
    assert_int_equal(engine_ideas_take(&f->e, reply, 8, 1), 1);
}

static void test_no_more_ideas_than_asked_for(void **state)
{
    struct fixture *f = *state;
    char reply[20000] = "";
    for (int i = 0; i < 100; i++)
        snprintf(reply + strlen(reply), 100, "- [x] Idea with the number %d of many.\n", i);
    assert_int_equal(engine_ideas_take(&f->e, reply, 5, 0), 5);
    assert_int_equal(engine_ideas_take(&f->e, "", 5, 0), 0);
}

static void test_a_prompt_hash_depends_on_every_text(void **state)
{
    (void)state;
    struct rung_arena *a = rung_arena_new();
    char one[RUNG_SHA256_HEX], two[RUNG_SHA256_HEX];
    struct rung_message m[2] = {engine_message(a, RUNG_MSG_SYSTEM, "s"),
                                engine_message(a, RUNG_MSG_USER, "u")};
    engine_prompt_hash("code", m, 2, one);
    engine_prompt_hash("repair", m, 2, two);
    assert_string_not_equal(one, two);
    m[1] = engine_message(a, RUNG_MSG_USER, "v");
    engine_prompt_hash("code", m, 2, two);
    assert_string_not_equal(one, two);
    rung_arena_free(a);
}

int main(void)
{
#define WITH(name) cmocka_unit_test_setup_teardown(name, open_engine, close_engine)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_outcome_survives_the_journal),
        cmocka_unit_test(test_a_damaged_verdict_is_refused),
        cmocka_unit_test(test_a_tree_keeps_the_file_of_each_text),
        cmocka_unit_test(test_a_hostile_tree_is_refused),
        WITH(test_ideas_are_read_from_lists_of_any_habit),
        WITH(test_the_same_idea_is_taken_once_a_parent),
        WITH(test_no_more_ideas_than_asked_for),
        cmocka_unit_test(test_a_prompt_hash_depends_on_every_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
