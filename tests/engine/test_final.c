/* Several processes' reports as one: medians, spans, verdicts; and reports that say nonsense. */
#include "base/json.h"
#include "engine/engine.h"
#include "engine/report_text.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *parsed(const char *text)
{
    cJSON *json = rung_json_parse(text, strlen(text));
    if (!json)
        fail_msg("%s", text);
    return json;
}

/* A report of a process that measured `us`, with one baseline of a speedup and its half width. */
static cJSON *report(double us, const char *name, double speedup, double half, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"time\":{\"kind\":\"measured\",\"median_us\":%g,\"ci_us\":[%g,%g]},"
             "\"baselines\":[{\"name\":\"%s\",\"label\":\"sgemm\",\"available\":true,"
             "\"median_us\":%g,\"ci_us\":[%g,%g],\"speedup\":%g,\"speedup_ci\":[%g,%g]%s}]}",
             us, us - 1, us + 1, name, us * speedup, us * speedup - 1, us * speedup + 1, speedup,
             speedup - half, speedup + half, more);
    return parsed(text);
}

static cJSON *sum(cJSON **reports, uint32_t n)
{
    cJSON *json = engine_final_sum(reports, n, 0.005);
    for (uint32_t i = 0; i < n; i++)
        cJSON_Delete(reports[i]);
    return json;
}

static const cJSON *baseline(const cJSON *json, int i)
{
    return cJSON_GetArrayItem(rung_json_get(json, "baselines"), i);
}

static double end_of(const cJSON *json, const char *name, int i)
{
    return cJSON_GetArrayItem(rung_json_get(json, name), i)->valuedouble;
}

static void medians_and_spans_are_over_processes(void **state)
{
    (void)state;
    cJSON *reports[] = {report(100, "a", 1.5, 0.01, ""), report(104, "a", 1.4, 0.02, ""),
                        report(101, "a", 1.45, 0.01, "")};
    cJSON *json = sum(reports, 3);
    const cJSON *a = baseline(json, 0);
    assert_true(rung_json_number(json, "median_us", 0) == 101);
    assert_true(end_of(json, "ci_us", 0) == 99 && end_of(json, "ci_us", 1) == 105);
    assert_true(fabs(rung_json_number(json, "spread", 0) - 4 / 101.0) < 1e-12);
    assert_true(fabs(rung_json_number(a, "speedup", 0) - 1.45) < 1e-9);
    assert_true(fabs(end_of(a, "speedup_ci", 0) - 1.38) < 1e-9);
    assert_true(fabs(end_of(a, "speedup_ci", 1) - 1.51) < 1e-9);
    assert_string_equal(rung_json_text(a, "verdict", ""), "faster");
    assert_int_equal(rung_json_i64(a, "processes", 0), 3);
    cJSON_Delete(json);
}

/* Each process alone is sure, and they disagree: that is no win. */
static void processes_that_disagree_decide_nothing(void **state)
{
    (void)state;
    cJSON *reports[] = {report(100, "a", 1.03, 0.001, ""), report(100, "a", 0.98, 0.001, ""),
                        report(100, "a", 1.02, 0.001, "")};
    cJSON *json = sum(reports, 3);
    assert_string_equal(rung_json_text(baseline(json, 0), "verdict", ""), "unknown");
    cJSON_Delete(json);
    cJSON *near[] = {report(100, "a", 1.001, 0.001, ""), report(100, "a", 0.999, 0.001, "")};
    json = sum(near, 2);
    assert_string_equal(rung_json_text(baseline(json, 0), "verdict", ""), "same");
    cJSON_Delete(json);
}

static void a_mark_of_one_process_stays(void **state)
{
    (void)state;
    cJSON *reports[] = {report(100, "a", 1.5, 0.01, ""),
                        report(100, "a", 1.5, 0.01,
                               ",\"within_tolerance\":false,\"within_why\":\"w\","
                               "\"below_floor\":true")};
    cJSON *json = sum(reports, 2);
    const cJSON *a = baseline(json, 0);
    assert_true(cJSON_IsFalse(rung_json_get(a, "within_tolerance")));
    assert_string_equal(rung_json_text(a, "within_why", ""), "w");
    assert_string_equal(rung_json_text(a, "verdict", ""), "unknown");
    cJSON_Delete(json);
}

static void one_that_was_there_once_is_told_from_one_that_never_was(void **state)
{
    (void)state;
    cJSON *reports[] = {
        parsed("{\"time\":{\"kind\":\"measured\",\"median_us\":5,\"ci_us\":[4,6]},\"baselines\":["
               "{\"name\":\"a\",\"available\":false,\"why\":\"no a\"},"
               "{\"name\":\"b\",\"available\":false,\"why\":\"no b\"}]}"),
        report(5, "b", 2, 0.1, "")};
    cJSON *json = sum(reports, 2);
    assert_false(rung_json_bool(baseline(json, 0), "available", true));
    assert_string_equal(rung_json_text(baseline(json, 0), "why", ""), "no a");
    assert_true(rung_json_bool(baseline(json, 1), "available", false));
    assert_int_equal(rung_json_i64(baseline(json, 1), "processes", 0), 1);
    cJSON_Delete(json);
}

/* What a worker sends is anybody's guess: numbers that are none count as not there. */
static void nonsense_is_not_counted(void **state)
{
    (void)state;
    static const char *const none[] = {
        "{}",
        "{\"time\":7}",
        "{\"time\":{\"kind\":\"modelled\",\"median_us\":5,\"ci_us\":[4,6]}}",
        "{\"time\":{\"kind\":\"measured\",\"median_us\":\"nan\",\"ci_us\":[4,6]}}",
        "{\"time\":{\"kind\":\"measured\",\"median_us\":5,\"ci_us\":[6,4]}}",
        "{\"time\":{\"kind\":\"measured\",\"median_us\":5,\"ci_us\":[\"a\"]}}"};
    static const char *const odd[] = {
        "7", "[7,null,{}]", "[{\"name\":\"a\",\"available\":true}]",
        "[{\"name\":\"a\",\"available\":true,\"median_us\":1,\"ci_us\":[1,1],\"speedup\":-1,"
        "\"speedup_ci\":[1,1]}]",
        "[{\"name\":\"a\",\"available\":true,\"median_us\":1,\"ci_us\":[1,1],\"speedup\":1,"
        "\"speedup_ci\":[0,1]}]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        cJSON *reports[] = {parsed(none[i])};
        assert_null(sum(reports, 1));
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"time\":{\"kind\":\"measured\",\"median_us\":5,\"ci_us\":[4,6]},\"baselines\":"
                 "%s,\"rival\":[]}",
                 odd[i]);
        cJSON *reports[] = {parsed(text)}, *json = sum(reports, 1), *entry;
        assert_non_null(json);
        cJSON_ArrayForEach(entry, rung_json_get(json, "baselines"))
            assert_false(rung_json_bool(entry, "available", true));
        assert_null(rung_json_get(json, "rival"));
        cJSON_Delete(json);
    }
}

/* ---- Words for people ---- */

static void expect_text(void (*print)(FILE *, const cJSON *), const char *json, const char *wanted)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    cJSON *parsed_json = parsed(json);
    print(out, parsed_json);
    fclose(out);
    support_contains(text, wanted);
    free(text);
    cJSON_Delete(parsed_json);
}

static void times_and_speedups_read_well(void **state)
{
    (void)state;
    expect_text(
        rung_report_print,
        "{\"time\":{\"kind\":\"measured\",\"median_us\":786.2,\"ci_us\":[785.1,787.4],\"n\":"
        "60,\"mode\":{\"batch\":1,\"sets\":1,\"cold\":\"flush\"},\"floor_us\":437}}",
        "  time       786.2 us [785.1, 787.4] measured, cold (flush), n = 60; floor 437 us\n");
    expect_text(rung_report_print,
                "{\"time\":{\"kind\":\"modelled\",\"median_us\":26.17,\"ci_us\":null,\"gpu\":"
                "\"NVIDIA H200\",\"floor_us\":0.1067}}",
                "  time       26.17 us modelled for NVIDIA H200, floor 0.1067 us\n");
    expect_text(
        rung_report_print,
        "{\"baselines\":[{\"name\":\"torch\",\"available\":true,\"median_us\":1077,\"label\":"
        "\"softmax\",\"math\":\"fp32\",\"speedup\":1.37,\"speedup_ci\":[1.36,1.38],"
        "\"verdict\":\"faster\"}]}",
        "  vs torch   1.37x faster [1.36, 1.38]; softmax, 1077 us, fp32\n");
    expect_text(rung_report_print,
                "{\"baselines\":[{\"name\":\"cublas\",\"available\":true,\"median_us\":500,"
                "\"speedup\":0.5,\"speedup_ci\":[0.4,0.8],\"verdict\":\"slower\",\"math\":\"tf32\","
                "\"within_tolerance\":false}]}",
                "  vs cublas  2x slower [1.25, 2.5]; 500 us, tf32; its results leave the task's "
                "tolerance: tf32\n");
    expect_text(rung_report_print,
                "{\"baselines\":[{\"name\":\"cudnn\",\"available\":false,\"why\":\"no library\"}]}",
                "  vs cudnn   not available: no library\n");
    expect_text(rung_report_final,
                "{\"median_us\":786.2,\"ci_us\":[785,788],\"processes\":3,\"spread\":0.004,"
                "\"rival\":{\"name\":\"candidate 5\",\"available\":true,\"median_us\":787,"
                "\"speedup\":1.001,\"speedup_ci\":[0.999,1.003],\"verdict\":\"same\"}}",
                "final: 786.2 us [785, 788] measured in 3 fresh processes, which differ by 0.4 %\n"
                "  vs candidate 5 the same, 1.001x [0.999, 1.003]; 787 us\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_spans_are_over_processes),
        cmocka_unit_test(processes_that_disagree_decide_nothing),
        cmocka_unit_test(a_mark_of_one_process_stays),
        cmocka_unit_test(one_that_was_there_once_is_told_from_one_that_never_was),
        cmocka_unit_test(nonsense_is_not_counted),
        cmocka_unit_test(times_and_speedups_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
