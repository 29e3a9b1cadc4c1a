/* JSON of other processes: hostile texts, defaults, and numbers without loss. */
#include "support/support.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *parse(const char *text)
{
    return rung_json_parse(text, strlen(text));
}

static void only_one_whole_value_is_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         " ",   "{",   "{}x",    "[1,]",
                                      "{\"a\":}", "nul", "1 2", "\"open", "{\"a\":1}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(parse(bad[i]));
    cJSON *json = parse(" {\"a\": [1, 2]} \r\n");
    assert_non_null(json);
    cJSON_Delete(json);
    assert_null(rung_json_parse("{\"a\":1}", 6));
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char *text = malloc(200001);
    memset(text, '[', 100000);
    memset(text + 100000, ']', 100000);
    assert_null(rung_json_parse(text, 200000));
    assert_null(rung_json_parse(text + 100000 - 65, 130));
    cJSON *json = rung_json_parse(text + 100000 - 64, 128);
    assert_non_null(json);
    cJSON_Delete(json);
    free(text);
    json =
        parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"\"");
    assert_non_null(json);
    cJSON_Delete(json);
}

static void wrong_types_give_the_default(void **state)
{
    (void)state;
    cJSON *json = parse("{\"s\":\"text\",\"n\":1.5,\"b\":true,\"z\":null,\"l\":[1],\"big\":1e300}");
    assert_string_equal(rung_json_text(json, "s", "none"), "text");
    assert_string_equal(rung_json_text(json, "n", "none"), "none");
    assert_null(rung_json_text(json, "absent", NULL));
    assert_true(rung_json_number(json, "n", 0) == 1.5);
    assert_true(rung_json_number(json, "s", 7) == 7);
    assert_int_equal(rung_json_i64(json, "n", -1), -1);
    assert_int_equal(rung_json_i64(json, "big", -1), -1);
    assert_int_equal(rung_json_i64(json, "l", -1), -1);
    assert_true(rung_json_bool(json, "b", false));
    assert_true(rung_json_bool(json, "z", true));
    assert_null(rung_json_get(NULL, "a"));
    assert_int_equal(rung_json_i64(NULL, "a", 3), 3);
    assert_null(rung_json_get(json, "S"));
    cJSON_Delete(json);
}

static cJSON *round_trip(cJSON *json)
{
    char *line = rung_json_line(json);
    assert_null(strchr(line, '\n'));
    cJSON *again = parse(line);
    assert_non_null(again);
    free(line);
    cJSON_Delete(json);
    return again;
}

static void doubles_survive(void **state)
{
    (void)state;
    static const double values[] = {0,         -0.0,      1.0 / 3, 5e-324,   1.7976931348623157e308,
                                    INFINITY,  -INFINITY, NAN,     1e16 + 2, 0.1,
                                    -2.5e-300, 3};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cJSON *json = cJSON_CreateObject();
        rung_json_add_f64(json, "v", values[i]);
        json = round_trip(json);
        double v = rung_json_number(json, "v", 12345);
        assert_true(isnan(values[i]) ? isnan(v) : v == values[i]);
        cJSON_Delete(json);
    }
}

static void integers_survive(void **state)
{
    (void)state;
    static const int64_t values[] = {
        0,         -1, INT64_MAX, INT64_MIN, 9007199254740992, 9007199254740993, -9007199254740993,
        4294967296};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cJSON *json = cJSON_CreateObject();
        rung_json_add_i64(json, "v", values[i]);
        json = round_trip(json);
        assert_true(rung_json_i64(json, "v", 12345) == values[i]);
        cJSON_Delete(json);
    }
}

static void texts_are_made_valid(void **state)
{
    (void)state;
    cJSON *json = cJSON_CreateObject();
    rung_json_add_text(json, "good", rung_text_of("line\n\"\xe2\x82\xac\""));
    rung_json_add_text(json, "bad",
                       (struct rung_text){"a\xff"
                                          "b\0c",
                                          5});
    rung_json_add_text(json, "empty", (struct rung_text){"", 0});
    rung_json_add_text(json, "stray",
                       (struct rung_text){"a\x80"
                                          "b",
                                          3});
    json = round_trip(json);
    assert_string_equal(rung_json_text(json, "good", ""), "line\n\"\xe2\x82\xac\"");
    assert_string_equal(rung_json_text(json, "bad", ""), "a\xef\xbf\xbd"
                                                         "b\xef\xbf\xbd"
                                                         "c");
    assert_string_equal(rung_json_text(json, "empty", "x"), "");
    assert_string_equal(rung_json_text(json, "stray", ""), "a\xef\xbf\xbd"
                                                           "b");
    cJSON_Delete(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_whole_value_is_read),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(wrong_types_give_the_default),
        cmocka_unit_test(doubles_survive),
        cmocka_unit_test(integers_survive),
        cmocka_unit_test(texts_are_made_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
