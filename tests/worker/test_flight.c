/* What a supervisor makes of an executor's words about a guest, also when they are nonsense. */
#include "support/support.h"

#include "base/json.h"
#include "worker/flight.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rung_flight flight;

static cJSON *parsed(const char *text)
{
    cJSON *json = rung_json_parse(text, strlen(text));
    if (!json)
        fail_msg("%s", text);
    return json;
}

static int setup(void **state)
{
    (void)state;
    cJSON *job = parsed("{\"t\":\"job\",\"id\":7,\"label\":\"candidate 1\"}");
    assert_true(rung_flight_begin(&flight, job));
    cJSON_Delete(job);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_flight_end(&flight);
    return 0;
}

static bool draft(const char *text)
{
    cJSON *json = parsed(text);
    bool taken = rung_flight_draft(&flight, json);
    cJSON_Delete(json);
    return taken;
}

static void enter(uint32_t kind, const char *where)
{
    const struct rung_stage_message stage = {.id = 7, .kind = kind, .limit_s = 1, .stage = "turns"};
    struct rung_stage_message copy = stage;
    strncpy(copy.where, where, sizeof copy.where - 1);
    cJSON *json = rung_stage_write(&copy);
    assert_true(rung_flight_stage(&flight, json));
    cJSON_Delete(json);
}

static const char good[] =
    "{\"t\":\"draft\",\"id\":7,\"verdict\":\"accepted\",\"code\":\"\",\"report\":{\"baselines\":["
    "{\"name\":\"a\",\"available\":false,\"why\":\"its turn did not come\"},"
    "{\"name\":\"b\",\"available\":false,\"why\":\"its turn did not come\"}],"
    "\"rival\":{\"name\":\"r\",\"available\":false,\"why\":\"its turn did not come\"}}}";

static void drafts_of_others_and_without_a_report_are_refused(void **state)
{
    (void)state;
    assert_false(draft("{\"t\":\"draft\",\"id\":8,\"report\":{}}"));
    assert_false(draft("{\"t\":\"draft\",\"report\":{}}"));
    assert_false(draft("{\"t\":\"draft\",\"id\":7}"));
    assert_false(draft("{\"t\":\"draft\",\"id\":7,\"report\":[]}"));
    enter(RUNG_AT_GUEST, "a");
    assert_null(rung_flight_guest(&flight));
    assert_true(draft(good));
    assert_string_equal(rung_flight_guest(&flight), "a");
    enter(RUNG_AT_TIME, "");
    assert_null(rung_flight_guest(&flight));
}

static void the_guest_is_blamed_and_the_result_stands(void **state)
{
    (void)state;
    assert_true(draft(good));
    enter(RUNG_AT_GUEST, "b");
    char *line = rung_flight_spared(&flight, "it died");
    cJSON *json = parsed(line), *list;
    list = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "report"),
                                            "baselines");
    assert_string_equal(rung_json_text(json, "t", ""), "result");
    assert_string_equal(rung_json_text(json, "verdict", ""), "accepted");
    assert_string_equal(rung_json_text(cJSON_GetArrayItem(list, 0), "why", ""),
                        "its turn did not come");
    assert_string_equal(rung_json_text(cJSON_GetArrayItem(list, 1), "why", ""), "it died");
    assert_true(rung_json_bool(cJSON_GetArrayItem(list, 1), "crashed", false));
    assert_false(flight.active);
    cJSON_Delete(json);
    free(line);
}

static void odd_reports_do_no_harm(void **state)
{
    (void)state;
    static const char *const reports[] = {
        "{}", "{\"baselines\":7}", "{\"baselines\":[7,null,[],{\"name\":5}],\"rival\":\"r\"}",
        "{\"baselines\":[{\"name\":\"a\"}],\"rival\":[]}"};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        char text[256];
        if (i > 0)
            setup(NULL);
        snprintf(text, sizeof text, "{\"t\":\"draft\",\"id\":7,\"report\":%s}", reports[i]);
        assert_true(draft(text));
        enter(RUNG_AT_GUEST, "a");
        char *line = rung_flight_spared(&flight, "it died");
        cJSON_Delete(parsed(line));
        free(line);
    }
}

/* Without a draft there is nothing to fall back on, but the candidate is still not to blame. */
static void a_guest_before_its_draft_blames_nobody(void **state)
{
    (void)state;
    enter(RUNG_AT_GUEST, "a");
    char *line = rung_flight_crashed(&flight, NULL, SIGSEGV);
    support_contains(line, "\"inconclusive\"");
    support_contains(line, "\"internal\"");
    free(line);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(drafts_of_others_and_without_a_report_are_refused),
        TEST(the_guest_is_blamed_and_the_result_stands),
        TEST(odd_reports_do_no_harm),
        TEST(a_guest_before_its_draft_blames_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
