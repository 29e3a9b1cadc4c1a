/* Options: every type, its default, what is refused and how that is told. */
#include "plugin/harness.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void defaults_of_every_type_are_read(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_options *o =
        harness_options(&h, harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory, NULL);
    assert_non_null(o);
    assert_int_equal(rung_options_int(o, "flag"), 1);
    assert_int_equal(rung_options_int(o, "whole"), 5);
    assert_true(rung_options_float(o, "share") == 0.25);
    assert_string_equal(rung_options_string(o, "word"), "plain");
    assert_string_equal(rung_options_string(o, "colour"), "green");
    assert_string_equal(rung_options_string(o, "file"), "/data/gpus/h200.cfg");
    assert_true(rung_options_float(o, "wait") == 90);
    assert_int_equal(rung_options_int(o, "room"), 65536);
    assert_int_equal(rung_options_count(o, "names"), 2);
    assert_string_equal(rung_options_string_at(o, "names", 1), "two");
    assert_null(rung_options_string_at(o, "names", 2));
    assert_int_equal(rung_options_count(o, "sizes"), 3);
    assert_int_equal(rung_options_int_at(o, "sizes", 2), 4);
    assert_string_equal(rung_options_string(o, "key"), "");
    assert_int_equal(rung_options_int(o, "bare"), 0);
    harness_close(&h);
}

/* JSON numbers are doubles in cJSON; what is written must not pass through one. */
static void large_integers_are_written_whole(void **state)
{
    (void)state;
    static const struct rung_option sizes = {.struct_size = sizeof sizes,
                                             .type = RUNG_OPT_INTS,
                                             .name = "sizes",
                                             .summary = "Sizes",
                                             .default_text = "1, 9007199254740993"};
    static const struct rung_option *const table[] = {&sizes, NULL};
    static const struct rung_factory factory = {.struct_size = sizeof factory,
                                                .kind = RUNG_KIND_VERIFIER,
                                                .name = "large",
                                                .options = table};
    struct harness h = harness_open(GOOD_PLUGINS);
    cJSON *given = rung_json_parse("{\"sizes\":[]}", 12);
    struct rung_node *group = rung_node_from_json(h.arena, given, NULL, "x");
    group->first->first = rung_node_new(h.arena, RUNG_NODE_INT, NULL, "x", 1);
    group->first->first->i = INT64_C(9007199254740993);
    struct rung_options *o = rung_options_read(h.arena, &factory, group, NULL, "/data", &h.diags);
    assert_non_null(o);
    cJSON *json = rung_options_to_json(o);
    char *text = rung_json_line(json);
    assert_string_equal(text, "{\"sizes\":[9007199254740993]}");
    free(text);
    cJSON_Delete(json);
    cJSON_Delete(given);
    harness_close(&h);
}

static void values_of_every_type_are_read(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_factory *f = harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory;
    struct rung_options *o = harness_options(
        &h, f,
        "{\"plugin\":\"good\",\"name\":\"mine\",\"flag\":false,\"whole\":10,\"share\":1,\"word\":"
        "\"w\","
        "\"colour\":\"red\",\"file\":\"sub/x.cfg\",\"wait\":\"2m\",\"room\":\"1MiB\","
        "\"names\":[\"a\",\"b c\"],\"sizes\":[-1],\"key\":\"env:KEY\",\"bare\":-9007199254740992}");
    assert_non_null(o);
    assert_int_equal(rung_options_int(o, "flag"), 0);
    assert_int_equal(rung_options_int(o, "whole"), 10);
    assert_true(rung_options_float(o, "share") == 1);
    assert_string_equal(rung_options_string(o, "colour"), "red");
    assert_string_equal(rung_options_string(o, "file"), "/dir/sub/x.cfg");
    assert_true(rung_options_float(o, "wait") == 120);
    assert_int_equal(rung_options_int(o, "room"), 1048576);
    assert_string_equal(rung_options_string_at(o, "names", 1), "b c");
    assert_int_equal(rung_options_int_at(o, "sizes", 0), -1);
    assert_string_equal(rung_options_string(o, "key"), "env:KEY");
    assert_true(rung_options_int(o, "bare") == -9007199254740992);
    harness_close(&h);
}

static void what_does_not_fit_is_told_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"{\"flag\":1}", "'flag' must be true or false, not an integer"},
        {"{\"whole\":11}", "'whole' must lie in 1..10 blocks"},
        {"{\"whole\":0}", "'whole' must lie in 1..10 blocks"},
        {"{\"whole\":1.5}", "'whole' must be an integer, not a number"},
        {"{\"whole\":\"5\"}", "'whole' must be an integer, not a string"},
        {"{\"share\":1.01}", "'share' must lie in 0..1"},
        {"{\"share\":\"half\"}", "'share' must be a number, not a string"},
        {"{\"word\":5}", "'word' must be a string, not an integer"},
        {"{\"colour\":\"blue\"}", "'colour' may be red, green; not 'blue'"},
        {"{\"wait\":\"soon\"}", "'wait' must be a time such as 90"},
        {"{\"wait\":-1}", "'wait' must be a time such as 90"},
        {"{\"wait\":\"2h\"}", "'wait' must lie in 0..3600 s"},
        {"{\"room\":1.5}", "'room' must be a size such as 4096"},
        {"{\"room\":\"9GiB\"}", "'room' must lie in 1.."},
        {"{\"names\":\"a\"}", "'names' must be a list of strings, not a string"},
        {"{\"names\":[1]}", "'names' must be a list of strings, not an integer"},
        {"{\"sizes\":[1,\"2\"]}", "'sizes' must be a list of integers, not a string"},
        {"{\"key\":\"sk-123\"}", "never write the secret itself"},
        {"{\"colr\":\"red\"}", "verifier 'good' has no setting 'colr'"},
        {"{\"whole\":{}}", "'whole' must be an integer, not a group"},
    };
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_factory *f = harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(harness_options(&h, f, cases[i].json));
        assert_int_equal(h.diags.n, 1);
        support_contains(h.diags.text.ptr, "/dir/test.cfg");
        support_contains(h.diags.text.ptr, cases[i].why);
        assert_null(strstr(h.diags.text.ptr, "sk-123"));
    }
    harness_close(&h);
}

static void all_faults_are_told_at_once(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_factory *f = harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory;
    assert_null(harness_options(&h, f, "{\"whole\":99,\"share\":7,\"wrod\":\"x\"}"));
    assert_int_equal(h.diags.n, 3);
    support_contains(h.diags.text.ptr, "did you mean 'word'?");
    harness_close(&h);
}

static void a_required_option_must_be_there(void **state)
{
    (void)state;
    static const struct rung_option need = {.struct_size = sizeof need,
                                            .type = RUNG_OPT_STRING,
                                            .flags = RUNG_OPT_REQUIRED,
                                            .name = "dir",
                                            .summary = "Where."};
    static const struct rung_option *const options[] = {&need, NULL};
    static const struct rung_factory factory = {
        .struct_size = sizeof factory, .kind = RUNG_KIND_LLM, .name = "box", .options = options};
    struct harness h = harness_open(GOOD_PLUGINS);
    assert_null(harness_options(&h, &factory, "{}"));
    support_contains(h.diags.text.ptr, "the option 'dir' is required: Where.");
    struct rung_options *o = harness_options(&h, &factory, "{\"dir\":\"d\"}");
    assert_non_null(o);
    assert_string_equal(rung_options_string(o, "dir"), "d");
    harness_close(&h);
}

/* What was set travels as JSON and reads back as the same set elsewhere. */
static void sets_survive_the_way_to_another_process(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_factory *f = harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory;
    static const char text[] =
        "{\"flag\":false,\"share\":0.1,\"file\":\"/dir/x\",\"wait\":0.5,\"names\":[],"
        "\"sizes\":[3,2],\"key\":\"file:/k\"}";
    cJSON *json = rung_options_to_json(harness_options(&h, f, text));
    char *line = rung_json_line(json);
    struct rung_options *again = harness_options(&h, f, line);
    assert_non_null(again);
    assert_int_equal(rung_options_int(again, "flag"), 0);
    assert_true(rung_options_float(again, "share") == 0.1);
    assert_true(rung_options_float(again, "wait") == 0.5);
    assert_string_equal(rung_options_string(again, "file"), "/dir/x");
    assert_string_equal(rung_options_string(again, "key"), "file:/k");
    assert_int_equal(rung_options_count(again, "names"), 0);
    assert_int_equal(rung_options_int_at(again, "sizes", 0), 3);
    assert_null(rung_json_get(json, "whole"));
    free(line);
    cJSON_Delete(json);
    harness_close(&h);
}

static void ask_wrongly(void *arg)
{
    struct rung_options *o = arg;
    assert_int_equal(rung_options_int(o, "word"), 0);
    assert_string_equal(rung_options_string(o, "whole"), "");
    assert_true(rung_options_float(o, "absent") == 0);
    assert_int_equal(rung_options_count(o, "word"), 0);
    assert_null(rung_options_string_at(o, "sizes", 0));
}

static void asking_for_what_is_not_there_is_logged_and_zero(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_options *o =
        harness_options(&h, harness_load(&h, RUNG_KIND_VERIFIER, "good")->factory, NULL);
    char *log = harness_log(ask_wrongly, o);
    support_contains(log, "API MISUSE: option 'word'");
    support_contains(log, "API MISUSE: option 'absent'");
    free(log);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_of_every_type_are_read),
        cmocka_unit_test(large_integers_are_written_whole),
        cmocka_unit_test(values_of_every_type_are_read),
        cmocka_unit_test(what_does_not_fit_is_told_with_its_place),
        cmocka_unit_test(all_faults_are_told_at_once),
        cmocka_unit_test(a_required_option_must_be_there),
        cmocka_unit_test(sets_survive_the_way_to_another_process),
        cmocka_unit_test(asking_for_what_is_not_there_is_logged_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
