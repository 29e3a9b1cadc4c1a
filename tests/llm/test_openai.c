/* llm_openai: what it sends to OpenAI and its relatives, and what it makes of their replies. */
#include "wire.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_plain(struct model *model)
{
    assert_int_equal(wire_open(model, "openai", WIRE_OPENAI), RUNG_OK);
}

/* ---- Replies ---- */

static void a_whole_reply_is_read(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    char *body = wire_golden("openai.json");
    wire_answer(200, "x-request-id: req_1\n", body);
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "Write it."), RUNG_OK);
    assert_string_equal(model_text(&model),
                        "Here it is.\n\n```cuda\n__global__ void k() {}\n```\n");
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    assert_string_equal(model.response.model, "gpt-5.6-sol-2026-08-01");
    assert_string_equal(model.response.request_id, "req_1");
    assert_int_equal(model.response.usage.estimated, 0);
    wire_usage(&model, 76, 1024, 100, -1, 260, 640);
    assert_string_equal(model.response.raw.ptr, body);
    free(body);
    model_close(&model);
}

static void every_server_hides_its_reasoning_elsewhere(void **state)
{
    static const char *const names[] = {"deepseek", "openrouter", "vllm",
                                        "llamacpp", "ollama",     "mistral"};
    (void)state;
    struct model model;
    open_plain(&model);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char name[64];
        snprintf(name, sizeof name, "openai_%s.json", names[i]);
        assert_int_equal(wire_ask_golden(&model, name), RUNG_OK);
        assert_string_equal(model_text(&model), "Use shared memory.");
        assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
        assert_int_equal(model.response.usage.estimated, 0);
    }
    model_close(&model);
}

static void tokens_are_never_counted_twice(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    assert_int_equal(wire_ask_golden(&model, "openai_deepseek.json"), RUNG_OK);
    wire_usage(&model, 44, 256, -1, -1, 50, 30);
    assert_string_equal(model.response.request_id, "9f");
    /* Reasoning beside completion_tokens, as the total tells. */
    assert_int_equal(
        wire_ask(&model,
                 "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
                 "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,"
                 "\"total_tokens\":115,"
                 "\"completion_tokens_details\":{\"reasoning_tokens\":100}}}"),
        RUNG_OK);
    wire_usage(&model, 10, -1, -1, -1, 5, 100);
    /* More of a part than of the whole: nothing goes below zero. */
    assert_int_equal(
        wire_ask(&model,
                 "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
                 "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,"
                 "\"prompt_tokens_details\":{\"cached_tokens\":11},"
                 "\"completion_tokens_details\":{\"reasoning_tokens\":6}}}"),
        RUNG_OK);
    wire_usage(&model, 0, 11, -1, -1, 0, 6);
    model_close(&model);
}

static void usage_that_is_absent_or_nonsense_is_estimated(void **state)
{
    static const char *const usages[] = {
        "",
        ",\"usage\":null",
        ",\"usage\":7",
        ",\"usage\":[]",
        ",\"usage\":{\"prompt_tokens\":-1}",
        ",\"usage\":{\"prompt_tokens\":\"x\",\"completion_tokens\":1e300}"};
    (void)state;
    struct model model;
    open_plain(&model);
    for (size_t i = 0; i < sizeof usages / sizeof *usages; ++i) {
        char body[512];
        snprintf(
            body, sizeof body,
            "{\"choices\":[{\"message\":{\"content\":\"four\"},\"finish_reason\":\"stop\"}]%s}",
            usages[i]);
        assert_int_equal(wire_ask(&model, body), RUNG_OK);
        assert_int_equal(model.response.usage.estimated, 1);
        assert_int_equal(model.response.usage.output, 1);
        assert_string_equal(model.response.model, "m-1");
        assert_null(model.response.request_id);
    }
    model_close(&model);
}

static void finish_of(struct model *model, const char *choice, uint32_t finish, const char *text)
{
    char body[1024];
    snprintf(body, sizeof body, "{\"choices\":[%s]}", choice);
    assert_int_equal(wire_ask(model, body), RUNG_OK);
    assert_int_equal(model->response.finish, finish);
    assert_string_equal(model_text(model), text);
}

static void endings_are_told_apart(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
#define CHOICE(message, reason) "{\"message\":" message ",\"finish_reason\":" reason "}"
    finish_of(&model, CHOICE("{\"content\":\"a\"}", "\"length\""), RUNG_FINISH_LENGTH, "a");
    finish_of(&model, CHOICE("{\"content\":\"a\"}", "\"content_filter\""), RUNG_FINISH_REFUSED,
              "a");
    finish_of(&model, CHOICE("{\"content\":null,\"refusal\":\"No.\"}", "\"stop\""),
              RUNG_FINISH_REFUSED, "");
    finish_of(&model, CHOICE("{\"content\":\"a\"}", "\"\""), RUNG_FINISH_STOP, "a");
    finish_of(&model, CHOICE("{\"content\":\"a\"}", "null"), RUNG_FINISH_STOP, "a");
    finish_of(&model, CHOICE("{\"content\":\"a\"}", "\"eos\""), RUNG_FINISH_STOP, "a");
    finish_of(&model, CHOICE("{\"content\":\"\"}", "\"stop\""), RUNG_FINISH_STOP, "");
    assert_int_equal(wire_ask_golden(&model, "openai_tools.json"), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_TOOL_CALLS);
    assert_int_equal(wire_ask_golden(&model, "openai_length.json"), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_REASONING);
    wire_usage(&model, 50, -1, -1, -1, 0, 256);
    model_close(&model);
}

static void thoughts_in_the_text_are_kept_out(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    finish_of(&model, CHOICE("{\"content\":\"so\\n</think>\\n\\na\"}", "\"stop\""),
              RUNG_FINISH_STOP, "a");
    finish_of(&model, CHOICE("{\"content\":\"a <think> b </think> c\"}", "\"stop\""),
              RUNG_FINISH_STOP, "a <think> b </think> c");
    finish_of(&model, CHOICE("{\"content\":\" <think>never ends\"}", "\"length\""),
              RUNG_FINISH_REASONING, "");
    finish_of(&model, CHOICE("{\"content\":\"<think></think>\"}", "\"stop\""),
              RUNG_FINISH_REASONING, "");
    model_close(&model);
}

static void a_server_that_fails_midway_is_tried_again(void **state)
{
    static const char *const bodies[] = {
        "{\"choices\":[{\"message\":{\"content\":\"ha\"},\"finish_reason\":\"error\","
        "\"error\":{\"code\":502,\"message\":\"upstream died\"}}]}",
        "{\"choices\":[{\"message\":{\"content\":\"ha\"},"
        "\"finish_reason\":\"insufficient_system_resource\"}]}",
        "{\"choices\":[{\"error\":{\"message\":\"upstream died\"}}]}",
        "{\"error\":{\"code\":502,\"message\":\"upstream died\"}}",
        "{\"error\":\"upstream died\"}",
        "{\"error\":{\"message\":\"upstream died\",\"type\":\"server_error\"},\"choices\":[]}"};
    (void)state;
    struct model model;
    open_plain(&model);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; ++i) {
        assert_int_equal(wire_ask(&model, bodies[i]), RUNG_EUNAVAILABLE);
        assert_string_equal(model.error.symbol, "llm.overloaded");
        if (strstr(bodies[i], "upstream"))
            support_contains(model.error.message, "upstream died");
    }
    model_close(&model);
}

static void texts_come_out_as_utf8(void **state)
{
    (void)state;
    struct model model;
    open_plain(&model);
    finish_of(&model, CHOICE("{\"content\":\"a\\u0000b\\ud83dc\\ude00d\"}", "\"stop\""),
              RUNG_FINISH_STOP,
              "a\xef\xbf\xbd"
              "b\xef\xbf\xbd"
              "c\xef\xbf\xbd"
              "d");
    finish_of(&model, CHOICE("{\"content\":\"\\ud83d\\ude00\"}", "\"stop\""), RUNG_FINISH_STOP,
              "\xf0\x9f\x98\x80");
    finish_of(&model, CHOICE("{\"content\":\"\xff\xc3(\xc3\xa4\xed\xa0\x80\"}", "\"stop\""),
              RUNG_FINISH_STOP,
              "\xef\xbf\xbd\xef\xbf\xbd(\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    model_close(&model);
}

/* ---- Requests ---- */

static struct rung_part part(const char *text)
{
    return (struct rung_part){.struct_size = sizeof(struct rung_part),
                              .kind = RUNG_PART_TEXT,
                              .text = {text, strlen(text)}};
}

static const char fine[] =
    "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}";

static void a_conversation_is_sent_as_it_is(void **state)
{
    (void)state;
    struct model model;
    const struct rung_part parts[] = {part("Be brief."), part("one\n\"\x01\xff\xc3\xa4"),
                                      part(" two"),      part("Sure."),
                                      part("three"),     part("")};
#define MESSAGE(r, first, n)                                                                       \
    {                                                                                              \
        sizeof(struct rung_message), r, parts + (first), n, 0                                      \
    }
    const struct rung_message messages[] = {
        MESSAGE(RUNG_MSG_SYSTEM, 0, 1),    MESSAGE(RUNG_MSG_USER, 1, 2),
        MESSAGE(RUNG_MSG_ASSISTANT, 3, 1), MESSAGE(RUNG_MSG_USER, 4, 1),
        MESSAGE(RUNG_MSG_ASSISTANT, 5, 1), MESSAGE(RUNG_MSG_USER, 4, 1)};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 6,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .effort = 3,
                                             .max_output_tokens = 500,
                                             .temperature = 0.25};
    assert_int_equal(
        wire_open(&model, "openai",
                  "{\"model\":\"m-1\",\"key\":\"env:RUNG_TEST_KEY\",\"stream\":false}"),
        RUNG_OK);
    wire_answer(200, NULL, fine);
    assert_int_equal(model_send(&model, &request), RUNG_OK);
    assert_false(wire_asked_for_events());
    assert_string_equal(wire_url(), "https://api.openai.com/v1/chat/completions");
    assert_string_equal(wire_header("authorization"), "authorization: Bearer {env:RUNG_TEST_KEY}");
    assert_string_equal(wire_header("content-type"), "content-type: application/json");
    wire_has("model", "\"m-1\"");
    wire_has("messages.0", "{\"role\":\"system\",\"content\":\"Be brief.\"}");
    wire_has("messages.1.content", "\"one\\n\\\"\\u0001\xef\xbf\xbd\xc3\xa4 two\"");
    wire_has("messages.2", "{\"role\":\"assistant\",\"content\":\"Sure.\"}");
    wire_has("messages.3", "{\"role\":\"user\",\"content\":\"three\\n\\nthree\"}");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(wire_body(), "messages")), 4);
    wire_has("max_completion_tokens", "500");
    wire_has("temperature", "0.25");
    wire_has("reasoning_effort", "\"high\"");
    wire_lacks("stream");
    model_close(&model);
}

static void nothing_is_sent_that_was_not_asked_for(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(
        wire_open(&model, "openai",
                  "{\"model\":\"m\",\"url\":\"http://127.0.0.1:8080\",\"stream\":false}"),
        RUNG_OK);
    assert_int_equal(wire_ask(&model, fine), RUNG_OK);
    assert_string_equal(wire_url(), "http://127.0.0.1:8080/v1/chat/completions");
    assert_int_equal(cJSON_GetArraySize(wire_body()), 2); /* model and messages */
    assert_null(wire_header("authorization"));
    assert_int_equal(wire_flags(), 0);
    model_close(&model);
}

static void settings_reach_the_request(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(
        wire_open(&model, "openai",
                  "{\"model\":\"m\",\"url\":\"https://res.openai.azure.com/openai/v1/?api=2\","
                  "\"key\":\"env:K\",\"key_header\":\"api-key\",\"effort\":\"low\","
                  "\"max_output_tokens\":99,\"temperature\":0.5,\"timeout\":\"90s\","
                  "\"allow_plain_http\":true,"
                  "\"headers\":[\"X-Title: a: b\"],"
                  "\"body\":[\"top_p=0.9\",\"provider.order=[\\\"x\\\"]\",\"temperature=1\"]}"),
        RUNG_OK);
    assert_int_equal(wire_ask(&model, fine), RUNG_OK);
    assert_string_equal(wire_url(),
                        "https://res.openai.azure.com/openai/v1/chat/completions?api=2");
    assert_string_equal(wire_header("api-key"), "api-key: {env:K}");
    assert_string_equal(wire_header("x-title"), "X-Title: a: b");
    wire_has("max_completion_tokens", "99");
    wire_has("temperature", "1");
    wire_has("top_p", "0.9");
    wire_has("provider", "{\"order\":[\"x\"]}");
    wire_has("reasoning_effort", "\"low\"");
    assert_int_equal(wire_flags(), RUNG_HTTP_ALLOW_PLAIN);
    assert_int_equal(wire_first_byte_ms(), 90000);
    model_close(&model);
}

/* What the log says while this reply to a prompt of 40000 bytes is read; on the heap. */
static char *log_of(struct model *model, const char *usage)
{
    enum { PROMPT = 40000 };
    char *folder = support_folder(), *path = support_path(folder, "log"), body[512];
    char *prompt = malloc(PROMPT + 1);
    memset(prompt, 'x', PROMPT);
    prompt[PROMPT] = 0;
    snprintf(body, sizeof body,
             "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
             "\"usage\":%s}",
             usage);
    wire_answer(200, NULL, body);
    const int kept = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    const int32_t status = model_ask(model, "code", "code/1/0", 1, prompt);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    assert_int_equal(status, RUNG_OK);
    char *text = support_read(path, NULL);
    free(prompt);
    free(path);
    support_remove(folder);
    return text;
}

static void a_prompt_that_was_cut_is_told(void **state)
{
    static const char *const fine_usages[] = {
        "null", "{\"prompt_tokens\":9000,\"completion_tokens\":1}",
        ("{\"prompt_tokens\":9000,\"completion_tokens\":1,"
         "\"prompt_tokens_details\":{\"cached_tokens\":8999}}")};
    (void)state;
    struct model model;
    open_plain(&model);
    char *text = log_of(&model, "{\"prompt_tokens\":4096,\"completion_tokens\":1}");
    support_contains(text, "the server counts 4096 tokens for a prompt of 40000 bytes");
    free(text);
    for (size_t i = 0; i < sizeof fine_usages / sizeof *fine_usages; ++i) {
        text = log_of(&model, fine_usages[i]);
        assert_string_equal(text, "");
        free(text);
    }
    model_close(&model);
}

static void the_name_of_the_cap_changes_once(void **state)
{
    static const char refusal[] =
        "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this "
        "model. Use 'max_completion_tokens' instead.\",\"type\":\"invalid_request_error\","
        "\"param\":\"max_tokens\",\"code\":\"unsupported_parameter\"}}";
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "openai",
                               "{\"model\":\"m\",\"url\":\"http://localhost:1/x\","
                               "\"max_output_tokens\":9}"),
                     RUNG_OK);
    wire_answer(400, NULL, refusal);
    wire_answer(200, NULL, fine);
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_OK);
    assert_int_equal(wire_sent_count(), 2);
    wire_has("max_completion_tokens", "9");
    wire_lacks("max_tokens");
    assert_int_equal(wire_ask(&model, fine), RUNG_OK);
    wire_has("max_completion_tokens", "9");
    wire_answer(422, NULL,
                "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\","
                "\"max_completion_tokens\"],\"msg\":\"Extra inputs are not permitted\"}]}");
    wire_answer(400, NULL, refusal);
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ECONFIG);
    assert_int_equal(wire_sent_count(), 2);
    support_contains(model.error.message, "max_completion_tokens' instead");
    /* A cap that is too large is not a name that is unknown. */
    wire_answer(400, NULL, "{\"error\":{\"message\":\"max_tokens is too large: 9\"}}");
    assert_int_equal(model_ask(&model, "code", "code/1/0", 1, "x"), RUNG_ECONFIG);
    assert_int_equal(wire_sent_count(), 1);
    model_close(&model);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    static const char *const sets[] = {
        "\"headers\":[\"nothing\"]",
        "\"headers\":[\"Authorization: Bearer sk-1\"]",
        "\"headers\":[\"x-API-key: sk-1\"]",
        "\"body\":[\"top_p\"]",
        "\"body\":[\"top_p={\"]",
        "\"body\":[\"a..b=1\"]",
        "\"body\":[\"messages=[]\"]",
        "\"body\":[\"stream=true\"]",
        "\"url\":\"localhost:8080\"",
        "\"url\":\"\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        struct model model;
        char options[256];
        snprintf(options, sizeof options, "{\"model\":\"m\",%s}", sets[i]);
        assert_int_equal(wire_open(&model, "openai", options), RUNG_ECONFIG);
        assert_null(strstr(model.error.message, "sk-1"));
        model_close(&model);
    }
}

static void what_it_cannot_send_is_refused(void **state)
{
    (void)state;
    struct model model;
    struct rung_part one = part("x");
    const struct rung_message mine = {sizeof mine, RUNG_MSG_USER, &one, 1, 0};
    const struct rung_tool tool = {.struct_size = sizeof tool, .name = "search"};
    struct rung_llm_request request = {.struct_size = sizeof request,
                                       .n_messages = 1,
                                       .key = "code/1/0",
                                       .role = "code",
                                       .messages = &mine,
                                       .tools = &tool,
                                       .n_tools = 1,
                                       .temperature = -1};
    open_plain(&model);
    assert_int_equal(model_send(&model, &request), RUNG_EINVAL);
    support_contains(model.error.message, "tool 0 needs a name");
    request.n_tools = 0;
    one.kind = RUNG_PART_TOOL_RESULT;
    assert_int_equal(model_send(&model, &request), RUNG_EINVAL);
    support_contains(model.error.message, "without id or name");
    one.kind = 9;
    assert_int_equal(model_send(&model, &request), RUNG_EINVAL);
    one.kind = RUNG_PART_TEXT;
    request.schema = (struct rung_text){"[1]", 3};
    request.schema_name = "ideas";
    assert_int_equal(model_send(&model, &request), RUNG_EINVAL);
    support_contains(model.error.message, "must be a JSON object");
    request.schema.len = 0;
    one.text.len = 0;
    assert_int_equal(model_send(&model, &request), RUNG_EINVAL);
    assert_int_equal(wire_sent_count(), 0);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_reply_is_read),
        cmocka_unit_test(every_server_hides_its_reasoning_elsewhere),
        cmocka_unit_test(tokens_are_never_counted_twice),
        cmocka_unit_test(usage_that_is_absent_or_nonsense_is_estimated),
        cmocka_unit_test(endings_are_told_apart),
        cmocka_unit_test(thoughts_in_the_text_are_kept_out),
        cmocka_unit_test(a_server_that_fails_midway_is_tried_again),
        cmocka_unit_test(texts_come_out_as_utf8),
        cmocka_unit_test(a_conversation_is_sent_as_it_is),
        cmocka_unit_test(nothing_is_sent_that_was_not_asked_for),
        cmocka_unit_test(settings_reach_the_request),
        cmocka_unit_test(a_prompt_that_was_cut_is_told),
        cmocka_unit_test(the_name_of_the_cap_changes_once),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
        cmocka_unit_test(what_it_cannot_send_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
