/* Buffers, strict parsing, suggestions, UTF-8. */
#include "support/support.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static void buffers_grow_and_stay_closed(void **state)
{
    (void)state;
    struct rung_buf buf = {0};
    assert_string_equal(rung_buf_text(&buf), "");
    for (int i = 0; i < 3000; i++)
        rung_buf_printf(&buf, "%d,", i % 10);
    assert_int_equal(buf.len, 6000);
    assert_int_equal(strlen(buf.ptr), 6000);
    rung_buf_drop(&buf, 5998);
    assert_string_equal(rung_buf_text(&buf), "9,");
    rung_buf_drop(&buf, 99);
    assert_string_equal(rung_buf_text(&buf), "");
    rung_buf_putc(&buf, 'a');
    rung_buf_puts(&buf, "bc");
    rung_buf_add(&buf, "\0d", 2);
    rung_buf_add(&buf, NULL, 0);
    assert_int_equal(buf.len, 5);
    assert_memory_equal(buf.ptr, "abc\0d", 6);
    rung_buf_free(&buf);
    assert_null(buf.ptr);
}

static void integers_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char *const bad[] = {"",     " 1",  "1 ",  "+1", "1x",
                                      "0x10", "1.0", "--1", "-",  "9223372036854775808"};
    int64_t v = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(rung_parse_i64(bad[i], &v));
    assert_int_equal(v, 77);
    assert_true(rung_parse_i64("-9223372036854775808", &v));
    assert_true(v == INT64_MIN);
    assert_true(rung_parse_i64("9223372036854775807", &v));
    assert_true(v == INT64_MAX);
    assert_true(rung_parse_i64("007", &v));
    assert_int_equal(v, 7);

    uint64_t u;
    assert_true(rung_parse_u64("18446744073709551615", &u));
    assert_true(u == UINT64_MAX);
    assert_false(rung_parse_u64("18446744073709551616", &u));
    assert_false(rung_parse_u64("-1", &u));
    assert_false(rung_parse_u64("", &u));
    assert_false(rung_parse_u64("5k", &u));
}

static void numbers_refuse_junk_inf_and_nan(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    " 1",    "1 ",  "1e", "inf",  "-inf",
                                      "nan", "1e999", "1,5", ".",  "0x10", "-0X1p3"};
    double v = 5;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(rung_parse_f64(bad[i], &v));
    assert_true(v == 5);
    assert_true(rung_parse_f64("-1.5e-3", &v) && v == -1.5e-3);
    assert_true(rung_parse_f64(".5", &v) && v == 0.5);
    assert_true(rung_parse_f64("+2", &v) && v == 2);
}

static void durations_and_sizes_take_units(void **state)
{
    (void)state;
    double s;
    int64_t b;
    assert_true(rung_parse_duration("90", &s) && s == 90);
    assert_true(rung_parse_duration("500ms", &s) && s == 0.5);
    assert_true(rung_parse_duration("1.5m", &s) && s == 90);
    assert_true(rung_parse_duration("2h", &s) && s == 7200);
    assert_true(rung_parse_duration("1d", &s) && s == 86400);
    assert_true(rung_parse_duration("412us", &s) && s == 412e-6);
    assert_true(rung_parse_duration("1.5m", &s) && s == 90);
    assert_false(rung_parse_duration("-1s", &s));
    assert_false(rung_parse_duration("2 h", &s));
    assert_false(rung_parse_duration("2hours", &s));
    assert_false(rung_parse_duration("s", &s));
    assert_false(rung_parse_duration("0x10", &s));
    assert_true(rung_parse_bytes("4096", &b) && b == 4096);
    assert_true(rung_parse_bytes("64KiB", &b) && b == 65536);
    assert_true(rung_parse_bytes("1.5MiB", &b) && b == 1572864);
    assert_true(rung_parse_bytes("1GB", &b) && b == 1000000000);
    assert_false(rung_parse_bytes("1gib", &b));
    assert_false(rung_parse_bytes("99999999TiB", &b));
    assert_false(rung_parse_bytes("-1", &b));
}

static void suggestions_are_near_or_none(void **state)
{
    (void)state;
    static const char *const names[] = {"numeric", NULL, "sanitize", "ops"};
    assert_string_equal(rung_nearest("numerc", names, 4), "numeric");
    assert_string_equal(rung_nearest("sanitise", names, 4), "sanitize");
    assert_string_equal(rung_nearest("op", names, 4), "ops");
    assert_null(rung_nearest("branching", names, 4));
    assert_null(rung_nearest("numeric", names, 0));
    static const char *const keys[] = {"name", "base", "llm", "multiple_of", "count", "n"};
    assert_null(rung_nearest("case", keys + 2, 4));
    assert_null(rung_nearest("basic", keys, 6));
    assert_null(rung_nearest("nose", keys, 6));
    assert_null(rung_nearest("k", keys, 6));
    assert_string_equal(rung_nearest("lmm", keys, 6), "llm");
    assert_string_equal(rung_nearest("cuont", keys, 6), "count");
    assert_string_equal(rung_nearest("multiple", keys, 6), "multiple_of");
    assert_string_equal(rung_nearest("Base", keys, 6), "base");
    char far[200];
    memset(far, 'n', sizeof far - 1);
    far[sizeof far - 1] = 0;
    assert_null(rung_nearest(far, names, 4));
}

static void utf8_is_judged_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, true},
        {"a\0b", 3, false},
        {"\xc0\x80", 2, false},
        {"\xc1\xbf", 2, false},
        {"\xe0\x80\xaf", 3, false},
        {"\xed\xa0\x80", 3, false},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xf0\x80\x80\x80", 4, false},
        {"\x80", 1, false},
        {"\xe2\x82", 2, false},
        {"\xff", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rung_utf8_valid(cases[i].text, cases[i].len), cases[i].valid);
}

static void cuts_do_not_split_a_character(void **state)
{
    (void)state;
    const char *text = "a\xe2\x82\xac"
                       "b"; /* 1 + 3 + 1 bytes */
    assert_int_equal(rung_utf8_cut(text, 5, 9), 5);
    assert_int_equal(rung_utf8_cut(text, 5, 4), 4);
    assert_int_equal(rung_utf8_cut(text, 5, 3), 1);
    assert_int_equal(rung_utf8_cut(text, 5, 2), 1);
    assert_int_equal(rung_utf8_cut(text, 5, 1), 1);
    assert_int_equal(rung_utf8_cut(text, 5, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_grow_and_stay_closed),
        cmocka_unit_test(integers_are_read_whole_or_not_at_all),
        cmocka_unit_test(numbers_refuse_junk_inf_and_nan),
        cmocka_unit_test(durations_and_sizes_take_units),
        cmocka_unit_test(suggestions_are_near_or_none),
        cmocka_unit_test(utf8_is_judged_strictly),
        cmocka_unit_test(cuts_do_not_split_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
