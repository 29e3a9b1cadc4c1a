/* Everything that servers do wrong, the same way for all providers' plugins. */
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const plugins[] = {"openai", "openai_responses", "anthropic", "bedrock",
                                      "gemini"};

enum { N_PLUGINS = sizeof plugins / sizeof *plugins };

struct fault {
    uint32_t http;
    const char *headers;
    const char *body;
    int32_t status;
    const char *symbol;
    const char *says; /* part of the message */
};

static void open_one(struct model *model, const char *plugin)
{
    assert_int_equal(wire_open(model, plugin, "{\"model\":\"m-1\",\"key\":\"env:RUNG_TEST_KEY\"}"),
                     RUNG_OK);
}

static void check(const struct fault *faults, size_t n)
{
    for (size_t p = 0; p < N_PLUGINS; ++p) {
        struct model model;
        open_one(&model, plugins[p]);
        for (size_t i = 0; i < n; ++i) {
            const struct fault *f = &faults[i];
            wire_answer(f->http, f->headers, f->body);
            assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), f->status);
            assert_string_equal(model.error.symbol, f->symbol);
            support_contains(model.error.message, f->says);
            support_contains(model.error.message, plugins[p]);
        }
        model_close(&model);
    }
}

static void every_status_means_something(void **state)
{
    static const struct fault faults[] = {
        {401, NULL, "{\"error\":{\"message\":\"Incorrect API key\"}}", RUNG_ECONFIG, "llm.key",
         "environment variable RUNG_TEST_KEY"},
        {403, NULL, "{\"error\":{\"message\":\"no\",\"type\":\"permission_error\"}}", RUNG_ECONFIG,
         "llm.key", "HTTP 403: no; the key comes from"},
        {400, NULL,
         "{\"error\":{\"code\":400,\"message\":\"API key not valid.\",\"status\":"
         "\"INVALID_ARGUMENT\",\"details\":[{\"reason\":\"API_KEY_INVALID\"}]}}",
         RUNG_ECONFIG, "llm.key", "RUNG_TEST_KEY"},
        {404, NULL, "{\"error\":{\"message\":\"The model does not exist\"}}", RUNG_ECONFIG,
         "llm.model", "model 'm-1' is not known there"},
        {400, NULL, "{\"error\":{\"message\":\"bad top_p\"}}", RUNG_ECONFIG, "llm.request",
         "HTTP 400: bad top_p"},
        {402, NULL, "{\"error\":{\"message\":\"Insufficient Balance\"}}", RUNG_EBUDGET, "llm.quota",
         "credit is used up"},
        {400, NULL,
         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your "
         "credit "
         "balance is too low\"}}",
         RUNG_EBUDGET, "llm.quota", "Your credit balance"},
        {408, NULL, "", RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 408: no message"},
        {409, NULL, "{}", RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 409"},
        {500, NULL, "{\"error\":null}", RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 500"},
        {503, NULL, "{\"error\":{\"message\":\"Loading model\",\"code\":503}}", RUNG_EUNAVAILABLE,
         "llm.overloaded", "Loading model"},
        {500, "x-should-retry: false\n", "{\"error\":\"broken\"}", RUNG_ECONFIG, "llm.request",
         "broken"},
        {429, "x-should-retry: false\n", "{\"error\":\"never\"}", RUNG_ECONFIG, "llm.request",
         "never"},
        {400, "x-should-retry: true\n", "{\"error\":\"later\"}", RUNG_EUNAVAILABLE,
         "llm.overloaded", "later"},
        {302, "location: https://elsewhere/\n", "", RUNG_ECONFIG, "llm.request",
         "'https://elsewhere/'"},
    };
    (void)state;
    check(faults, sizeof faults / sizeof *faults);
}

static void every_form_of_error_body_is_read(void **state)
{
    static const struct fault faults[] = {
        {500, NULL, "{\"error\":\"only a text\"}", RUNG_EUNAVAILABLE, "llm.overloaded",
         "HTTP 500: only a text"},
        {500, NULL, "{\"detail\":\"from FastAPI\"}", RUNG_EUNAVAILABLE, "llm.overloaded",
         "from FastAPI"},
        {422, NULL, "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"wrong\"}]}", RUNG_ECONFIG,
         "llm.request", "\"msg\":\"wrong\""},
        {500, NULL, "{\"message\":\"flat\"}", RUNG_EUNAVAILABLE, "llm.overloaded", "flat"},
        {502, NULL, "<html>\r\n<head><title>502 Bad\x1b[31m \xc2\x9b\x7fGateway</title></head>\xff",
         RUNG_EUNAVAILABLE, "llm.overloaded", "<html> <head><title>502 Bad [31m Gateway</title>"},
        {500, NULL, "{\"error\":{\"message\":{\"a\":1}}}", RUNG_EUNAVAILABLE, "llm.overloaded",
         "{\"a\":1}"},
        {500, NULL, "{\"error\":[1,2]}", RUNG_EUNAVAILABLE, "llm.overloaded", "[1,2]"},
        {500, NULL, "[]", RUNG_EUNAVAILABLE, "llm.overloaded", "[]"},
        {500, NULL, "{\"error\":", RUNG_EUNAVAILABLE, "llm.overloaded", "{\"error\":"},
    };
    (void)state;
    check(faults, sizeof faults / sizeof *faults);
}

static void an_error_inside_a_good_status_is_one(void **state)
{
    static const struct fault faults[] = {
        {200, NULL,
         "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}",
         RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 529"},
        {200, NULL, "{\"error\":{\"code\":429,\"message\":\"slow down\"}}", RUNG_ERATELIMIT,
         "llm.rate", "slow down"},
        {200, NULL, "{\"error\":{\"type\":\"authentication_error\",\"message\":\"x\"}}",
         RUNG_ECONFIG, "llm.key", "RUNG_TEST_KEY"},
        {200, NULL, "{\"error\":\"what\"}", RUNG_EUNAVAILABLE, "llm.overloaded", "what"},
    };
    (void)state;
    check(faults, sizeof faults / sizeof *faults);
}

static void replies_that_cannot_be_read_show_their_first_bytes(void **state)
{
    static const struct fault faults[] = {
        {200, NULL, "", RUNG_EIO, "llm.reply", "(nothing)"},
        {200, NULL, "<html>hi</html>", RUNG_EIO, "llm.reply", "it begins: <html>hi</html>"},
        {200, NULL, "{\"choices\":[", RUNG_EIO, "llm.reply", "no JSON"},
        {200, NULL, "{} trailing", RUNG_EIO, "llm.reply", "{} trailing"},
        {200, NULL, "{}", RUNG_EIO, "llm.reply", "it begins: {}"},
        {200, NULL, "null", RUNG_EIO, "llm.reply", "null"},
        {200, NULL, "[1]", RUNG_EIO, "llm.reply", "no JSON object"},
        {200, NULL, "\"text\"", RUNG_EIO, "llm.reply", "no JSON object"},
        {200, NULL, "{\"choices\":{},\"content\":7,\"candidates\":\"x\"}", RUNG_EIO, "llm.reply",
         "it begins"},
        {200, NULL,
         "{\"choices\":[{\"message\":{\"content\":{}}}],\"content\":[7,null,{\"type\":1}],"
         "\"output\":[7,null,{\"type\":\"message\",\"content\":7},{\"type\":2}],"
         "\"candidates\":[{\"content\":{\"parts\":[7,null,{\"text\":1}]}}]}",
         RUNG_EIO, "llm.reply", "neither text nor"},
    };
    (void)state;
    check(faults, sizeof faults / sizeof *faults);
}

static void deep_wide_and_broken_bytes_do_no_harm(void **state)
{
    enum { N = 1 << 20 };
    (void)state;
    char *big = malloc(N + 1);
    big[N] = 0;
    for (size_t p = 0; p < N_PLUGINS; ++p) {
        struct model model;
        open_one(&model, plugins[p]);
        memset(big, '[', N);
        wire_answer(200, NULL, big);
        assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EIO);
        support_contains(model.error.message, "nested too deep");
        memset(big, ',', N);
        big[0] = '[';
        wire_answer(500, NULL, big);
        assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EUNAVAILABLE);
        memset(big, 0xff, N);
        wire_answer(200, NULL, big);
        assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EIO);
        wire_answer_bytes(200, NULL, "{\"a\":\"\0\"}", 9);
        assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EIO);
        support_contains(model.error.message, "NUL");
        model_close(&model);
    }
    free(big);
}

/* ---- When to come back ---- */

static uint32_t wait_of(struct model *model, const char *headers, const char *body)
{
    wire_answer(429, headers, body);
    assert_int_equal(model_ask(model, "code", "code/1/0", 1, "x"), RUNG_ERATELIMIT);
    return model->error.retry_after_ms;
}

static void the_servers_hints_are_taken(void **state)
{
    (void)state;
    struct model model;
    char date[64], header[128];
    const time_t soon = time(NULL) + 30;
    struct tm t;
    char *google = wire_golden("error_google.json");
    open_one(&model, "gemini");
    assert_int_equal(wait_of(&model, "retry-after-ms: 250\nretry-after: 9\n", ""), 250);
    assert_int_equal(wait_of(&model, "retry-after: 7\n", ""), 7000);
    assert_int_equal(wait_of(&model, "retry-after: 0.5\n", ""), 500);
    assert_int_equal(wait_of(&model, "retry-after: 99999999999\n", ""), 1000000000);
    assert_int_equal(wait_of(&model, NULL, google), 37000);
    assert_int_equal(wait_of(&model, NULL, ""), 0);
    assert_int_equal(wait_of(&model, "retry-after: soon\n", ""), 0);
    assert_int_equal(wait_of(&model, "retry-after: -5\n", ""), 0);
    assert_int_equal(wait_of(&model, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\n", ""), 1);
    assert_int_equal(wait_of(&model, "retry-after: Sun, 06 Foo 1994 08:49:37 GMT\n", ""), 0);
    gmtime_r(&soon, &t);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &t);
    snprintf(header, sizeof header, "retry-after: %s\n", date);
    assert_in_range(wait_of(&model, header, ""), 25000, 30001);
    free(google);
    model_close(&model);
}

static void a_quota_that_is_gone_is_no_rate_limit(void **state)
{
    (void)state;
    struct model model;
    char *body = wire_golden("error_openai.json");
    open_one(&model, "openai");
    wire_answer(429, "retry-after: 1\n", body);
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EBUDGET);
    assert_string_equal(model.error.symbol, "llm.quota");
    assert_int_equal(model.error.retry_after_ms, 0);
    free(body);
    model_close(&model);
}

static void an_overloaded_server_is_tried_again(void **state)
{
    (void)state;
    struct model model;
    char *body = wire_golden("error_anthropic.json");
    open_one(&model, "anthropic");
    wire_answer(529, "retry-after: 3\n", body);
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_EUNAVAILABLE);
    assert_int_equal(model.error.retry_after_ms, 3000);
    support_contains(model.error.message, "HTTP 529: Overloaded");
    free(body);
    model_close(&model);
}

/* ---- Prompts that are turned away ---- */

static void turned_away(const char *body, uint32_t http, uint32_t finish)
{
    for (size_t p = 0; p < N_PLUGINS; ++p) {
        struct model model;
        open_one(&model, plugins[p]);
        wire_answer(http, NULL, body);
        assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_OK);
        assert_int_equal(model.response.finish, finish);
        assert_string_equal(model_text(&model), "");
        wire_usage(&model, -1, -1, -1, -1, -1, -1);
        model_close(&model);
    }
}

static void a_prompt_that_is_too_long_is_an_outcome(void **state)
{
    static const char *const messages[] = {
        "This model's maximum context length is 128000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000",
        "the request exceeds the available context size, try increasing it",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    };
    (void)state;
    char body[512];
    for (size_t i = 0; i < sizeof messages / sizeof *messages; ++i) {
        snprintf(body, sizeof body, "{\"error\":{\"message\":\"%s\"}}", messages[i]);
        turned_away(body, 400, RUNG_FINISH_CONTEXT);
    }
    turned_away("{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}", 400,
                RUNG_FINISH_CONTEXT);
    turned_away("<h1>413 Request Entity Too Large</h1>", 413, RUNG_FINISH_CONTEXT);
}

static void a_filter_is_an_outcome(void **state)
{
    (void)state;
    turned_away(
        "{\"error\":{\"message\":\"The response was filtered\",\"code\":\"content_filter\"}}", 400,
        RUNG_FINISH_REFUSED);
    turned_away("{\"error\":{\"code\":403,\"message\":\"The input requires moderation\"}}", 403,
                RUNG_FINISH_REFUSED);
}

/* ---- The wire itself ---- */

static void what_breaks_the_wire_is_told_as_it_is(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai");
    wire_break(RUNG_ETIMEOUT, "http.first_byte");
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ETIMEOUT);
    assert_string_equal(model.error.symbol, "http.first_byte");
    model.deadline_ns = 1;
    wire_break(RUNG_ETIMEOUT, "http.deadline");
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ETIMEOUT);
    wire_break(RUNG_ECANCELLED, "http.cancelled");
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ECANCELLED);
    model_close(&model);
}

static void without_an_http_service_it_does_not_start(void **state)
{
    (void)state;
    for (size_t p = 0; p < N_PLUGINS; ++p) {
        struct model model;
        assert_int_equal(model_open(&model, plugins[p], "{\"model\":\"m\"}"), RUNG_EUNAVAILABLE);
        model_close(&model);
    }
}

static void a_query_of_the_url_stays_out_of_messages(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "openai",
                               "{\"model\":\"m\",\"url\":\"https://h.example/v1?token=abcdef\"}"),
                     RUNG_OK);
    wire_answer(401, NULL, "{}");
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ECONFIG);
    support_contains(model.error.message, "https://h.example/v1/chat/completions: HTTP 401");
    support_contains(model.error.message, "no key is set");
    assert_null(strstr(model.error.message, "abcdef"));
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_means_something),
        cmocka_unit_test(every_form_of_error_body_is_read),
        cmocka_unit_test(an_error_inside_a_good_status_is_one),
        cmocka_unit_test(replies_that_cannot_be_read_show_their_first_bytes),
        cmocka_unit_test(deep_wide_and_broken_bytes_do_no_harm),
        cmocka_unit_test(the_servers_hints_are_taken),
        cmocka_unit_test(a_quota_that_is_gone_is_no_rate_limit),
        cmocka_unit_test(an_overloaded_server_is_tried_again),
        cmocka_unit_test(a_prompt_that_is_too_long_is_an_outcome),
        cmocka_unit_test(a_filter_is_an_outcome),
        cmocka_unit_test(what_breaks_the_wire_is_told_as_it_is),
        cmocka_unit_test(without_an_http_service_it_does_not_start),
        cmocka_unit_test(a_query_of_the_url_stays_out_of_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
