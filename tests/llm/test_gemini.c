/* llm_gemini: what it sends to generateContent, and what it makes of the replies. */
#include "wire.h"
#include <stdio.h>
#include <string.h>

#define CANDIDATE(text, reason)                                                                    \
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"" text                                  \
    "\"}]},\"finishReason\":\"" reason "\"}]}"

static void open_with(struct model *model, const char *more)
{
    char options[512];
    snprintf(options, sizeof options, "{\"model\":\"gemini-3-pro\",\"key\":\"env:K\"%s}", more);
    assert_int_equal(wire_open(model, "gemini", options), RUNG_OK);
}

static void a_whole_reply_is_read(void **state)
{
    (void)state;
    struct model model;
    open_with(&model, "");
    assert_int_equal(wire_ask_golden(&model, "gemini.json"), RUNG_OK);
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    assert_string_equal(model.response.model, "gemini-3-pro-001");
    assert_string_equal(model.response.request_id, "r-77");
    wire_usage(&model, 400, 600, -1, -1, 40, 500);
    model_close(&model);
}

static void a_blocked_prompt_is_an_outcome(void **state)
{
    (void)state;
    struct model model;
    open_with(&model, "");
    assert_int_equal(wire_ask_golden(&model, "gemini_blocked.json"), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_REFUSED);
    wire_usage(&model, 12, -1, -1, -1, 0, -1);
    model_close(&model);
}

static void endings_are_told_apart(void **state)
{
    static const struct {
        const char *body;
        uint32_t finish;
    } ends[] = {
        {CANDIDATE("a", "MAX_TOKENS"), RUNG_FINISH_LENGTH},
        {CANDIDATE("a", "SAFETY"), RUNG_FINISH_REFUSED},
        {CANDIDATE("", "RECITATION"), RUNG_FINISH_REFUSED},
        {CANDIDATE("a", "OTHER"), RUNG_FINISH_STOP},
        {CANDIDATE("", "MALFORMED_FUNCTION_CALL"), RUNG_FINISH_TOOL_CALLS},
        {"{\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":\"MAX_TOKENS\"}],"
         "\"usageMetadata\":{\"promptTokenCount\":9,\"thoughtsTokenCount\":99}}",
         RUNG_FINISH_REASONING},
        {"{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\"}}]},"
         "\"finishReason\":\"STOP\"}]}",
         RUNG_FINISH_TOOL_CALLS}};
    (void)state;
    struct model model;
    open_with(&model, "");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        assert_int_equal(wire_ask(&model, ends[i].body), RUNG_OK);
        assert_int_equal(model.response.finish, ends[i].finish);
    }
    assert_int_equal(wire_ask(&model, CANDIDATE("", "OTHER")), RUNG_EIO);
    assert_int_equal(wire_ask(&model, "{\"candidates\":[]}"), RUNG_EIO);
    assert_int_equal(wire_ask(&model, "{\"candidates\":[7],\"promptFeedback\":{}}"), RUNG_EIO);
    model_close(&model);
}

static struct rung_part part(const char *text)
{
    return (struct rung_part){.struct_size = sizeof(struct rung_part),
                              .kind = RUNG_PART_TEXT,
                              .text = {text, strlen(text)}};
}

static void a_conversation_is_sent_as_it_is(void **state)
{
    (void)state;
    struct model model;
    const struct rung_part parts[] = {part("Be brief."), part("one"), part("Sure."), part("two")};
    const struct rung_message messages[] = {
        {sizeof(struct rung_message), RUNG_MSG_SYSTEM, parts, 1, 0},
        {sizeof(struct rung_message), RUNG_MSG_USER, parts + 1, 1, 0},
        {sizeof(struct rung_message), RUNG_MSG_ASSISTANT, parts + 2, 1, 0},
        {sizeof(struct rung_message), RUNG_MSG_USER, parts + 3, 1, 0}};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 4,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .max_output_tokens = 77,
                                             .effort = 1,
                                             .temperature = 0};
    open_with(&model, ",\"stream\":false");
    wire_answer(200, NULL, CANDIDATE("a", "STOP"));
    assert_int_equal(model_send(&model, &request), RUNG_OK);
    assert_string_equal(wire_url(), "https://generativelanguage.googleapis.com/v1beta/models/"
                                    "gemini-3-pro:generateContent");
    assert_string_equal(wire_header("x-goog-api-key"), "x-goog-api-key: {env:K}");
    wire_has("systemInstruction", "{\"parts\":[{\"text\":\"Be brief.\"}]}");
    wire_has("contents", "[{\"role\":\"user\",\"parts\":[{\"text\":\"one\"}]},"
                         "{\"role\":\"model\",\"parts\":[{\"text\":\"Sure.\"}]},"
                         "{\"role\":\"user\",\"parts\":[{\"text\":\"two\"}]}]");
    wire_has("generationConfig", "{\"maxOutputTokens\":77,\"temperature\":0,"
                                 "\"thinkingConfig\":{\"thinkingLevel\":\"LOW\"}}");
    model_close(&model);
}

static void settings_reach_the_request(void **state)
{
    (void)state;
    struct model model;
    open_with(&model, ",\"url\":\"http://127.0.0.1:9\",\"stream\":false,\"effort\":\"minimal\","
                      "\"body\":[\"generationConfig.topP=0.5\"]");
    assert_int_equal(wire_ask(&model, CANDIDATE("a", "STOP")), RUNG_OK);
    assert_string_equal(wire_url(),
                        "http://127.0.0.1:9/v1beta/models/gemini-3-pro:generateContent");
    wire_has("generationConfig",
             "{\"thinkingConfig\":{\"thinkingLevel\":\"MINIMAL\"},\"topP\":0.5}");
    model_close(&model);
    open_with(&model, ",\"thinking_budget\":0");
    assert_int_equal(wire_ask(&model, CANDIDATE("a", "STOP")), RUNG_OK);
    wire_has("generationConfig.thinkingConfig", "{\"thinkingBudget\":0}");
    model_close(&model);
}

static void a_model_name_leads_nowhere_else(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "gemini", "{\"model\":\"models/../x?y#z 1.5\"}"), RUNG_OK);
    assert_int_equal(wire_ask(&model, CANDIDATE("a", "STOP")), RUNG_OK);
    assert_string_equal(wire_url(), "https://generativelanguage.googleapis.com/v1beta/models/"
                                    "%2E.%2Fx%3Fy%23z%201.5:streamGenerateContent?alt=sse");
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_reply_is_read),
        cmocka_unit_test(a_blocked_prompt_is_an_outcome),
        cmocka_unit_test(endings_are_told_apart),
        cmocka_unit_test(a_conversation_is_sent_as_it_is),
        cmocka_unit_test(settings_reach_the_request),
        cmocka_unit_test(a_model_name_leads_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
