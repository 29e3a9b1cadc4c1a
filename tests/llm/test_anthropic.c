/* llm_anthropic: what it sends to Messages, and what it makes of the replies. */
#include "wire.h"
#include <stdio.h>
#include <string.h>

static const char fine[] =
    "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\"}";

static void open_plain(struct model *model)
{
    assert_int_equal(wire_open(model, "anthropic",
                               "{\"model\":\"claude-opus-5\",\"key\":\"env:RUNG_TEST_KEY\"}"),
                     RUNG_OK);
}

static void a_whole_reply_is_read(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    assert_int_equal(wire_ask_golden(&model, "anthropic.json"), RUNG_OK);
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    assert_string_equal(model.response.model, "claude-opus-5");
    assert_string_equal(model.response.request_id, "msg_01");
    wire_usage(&model, 21, 1800, 100, 200, 40, 90);
    model_close(&model);
}

static void a_refusal_is_an_outcome(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    assert_int_equal(wire_ask_golden(&model, "anthropic_refusal.json"), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_REFUSED);
    assert_string_equal(model_text(&model), "");
    wire_usage(&model, 21, -1, 5, -1, 1, -1);
    model_close(&model);
}

static void endings_are_told_apart(void **state)
{
    static const struct {
        const char *reason;
        uint32_t finish;
    } ends[] = {{"\"max_tokens\"", RUNG_FINISH_LENGTH},
                {"\"pause_turn\"", RUNG_FINISH_LENGTH},
                {"\"stop_sequence\"", RUNG_FINISH_STOP},
                {"\"tool_use\"", RUNG_FINISH_TOOL_CALLS},
                {"\"refusal\"", RUNG_FINISH_REFUSED},
                {"\"model_context_window_exceeded\"", RUNG_FINISH_CONTEXT},
                {"null", RUNG_FINISH_STOP},
                {"\"new_reason\"", RUNG_FINISH_STOP}};
    (void)state;
    struct model model;
    char body[256];
    open_plain(&model);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        snprintf(body, sizeof body,
                 "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":%s}",
                 ends[i].reason);
        assert_int_equal(wire_ask(&model, body), RUNG_OK);
        assert_int_equal(model.response.finish, ends[i].finish);
    }
    assert_int_equal(wire_ask(&model, "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\"}],"
                                      "\"stop_reason\":\"max_tokens\"}"),
                     RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_REASONING);
    assert_int_equal(wire_ask(&model, "{\"content\":[],\"stop_reason\":null}"), RUNG_EIO);
    assert_int_equal(wire_ask(&model, "{\"content\":\"text\",\"stop_reason\":\"end_turn\"}"),
                     RUNG_EIO);
    model_close(&model);
}

static struct rung_part part(const char *text, uint32_t mark)
{
    return (struct rung_part){.struct_size = sizeof(struct rung_part),
                              .kind = RUNG_PART_TEXT,
                              .text = {text, strlen(text)},
                              .cache_mark = mark};
}

static void marked_parts_are_cached_and_system_stands_apart(void **state)
{
    (void)state;
    struct model model;
    const struct rung_part parts[] = {part("system", 1), part("contract", 1), part("one", 1),
                                      part("  \n", 1),   part("two", 1),      part("three", 1)};
    const struct rung_message messages[] = {
        {sizeof(struct rung_message), RUNG_MSG_SYSTEM, parts, 2, 0},
        {sizeof(struct rung_message), RUNG_MSG_USER, parts + 2, 2, 0},
        {sizeof(struct rung_message), RUNG_MSG_ASSISTANT, parts + 3, 1, 0},
        {sizeof(struct rung_message), RUNG_MSG_ASSISTANT, parts + 4, 1, 0},
        {sizeof(struct rung_message), RUNG_MSG_USER, parts + 5, 1, 0}};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 5,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .temperature = -1};
    open_plain(&model);
    wire_answer(200, NULL, fine);
    assert_int_equal(model_send(&model, &request), RUNG_OK);
    assert_string_equal(wire_url(), "https://api.anthropic.com/v1/messages");
    assert_string_equal(wire_header("x-api-key"), "x-api-key: {env:RUNG_TEST_KEY}");
    assert_string_equal(wire_header("anthropic-version"), "anthropic-version: 2023-06-01");
    wire_has("max_tokens", "16000");
    /* Five marks are one more than the API takes: the first one goes. */
    wire_has("system", "[{\"type\":\"text\",\"text\":\"system\"},{\"type\":\"text\",\"text\":"
                       "\"contract\",\"cache_control\":{\"type\":\"ephemeral\"}}]");
    wire_has("messages.0", "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"one\","
                           "\"cache_control\":{\"type\":\"ephemeral\"}}]}");
    wire_has("messages.1.role", "\"assistant\"");
    wire_has("messages.1.content.0.text", "\"two\"");
    wire_has("messages.2.content.0.cache_control.type", "\"ephemeral\"");
    wire_lacks("temperature");
    wire_lacks("thinking");
    wire_lacks("output_config");
    model_close(&model);
}

static void settings_reach_the_request(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "anthropic",
                               "{\"model\":\"m\",\"url\":\"https://res.example/anthropic/\","
                               "\"max_output_tokens\":8000,\"thinking\":\"enabled\","
                               "\"thinking_budget\":2000,\"effort\":\"max\",\"cache\":\"1h\","
                               "\"headers\":[\"anthropic-beta: x\"]}"),
                     RUNG_OK);
    assert_int_equal(wire_ask(&model, fine), RUNG_OK);
    assert_string_equal(wire_url(), "https://res.example/anthropic/messages");
    assert_null(wire_header("x-api-key"));
    assert_string_equal(wire_header("anthropic-beta"), "anthropic-beta: x");
    wire_has("max_tokens", "8000");
    wire_has("thinking", "{\"type\":\"enabled\",\"budget_tokens\":2000}");
    wire_has("output_config", "{\"effort\":\"max\"}");
    model_close(&model);
}

static void a_budget_for_thinking_must_fit(void **state)
{
    static const char *const sets[] = {
        "\"thinking\":\"enabled\"", "\"thinking\":\"enabled\",\"thinking_budget\":1023",
        "\"thinking\":\"enabled\",\"thinking_budget\":16000", "\"thinking_budget\":2000"};
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        struct model model;
        char options[256];
        snprintf(options, sizeof options, "{\"model\":\"m\",%s}", sets[i]);
        assert_int_equal(wire_open(&model, "anthropic", options), RUNG_ECONFIG);
        support_contains(model.error.message, "thinking_budget");
        model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_reply_is_read),
        cmocka_unit_test(a_refusal_is_an_outcome),
        cmocka_unit_test(endings_are_told_apart),
        cmocka_unit_test(marked_parts_are_cached_and_system_stands_apart),
        cmocka_unit_test(settings_reach_the_request),
        cmocka_unit_test(a_budget_for_thinking_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
