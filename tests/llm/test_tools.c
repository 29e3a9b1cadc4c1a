/* Tools, echoes and schemas: what is sent to each dialect, and calls put together from pieces. */
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS(list) "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" list "]}}]}\n\n"
#define END(reason)                                                                                \
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}]}\n\ndata: [DONE]\n\n"

static const char object[] = "{\"type\":\"object\"}";

static void open_one(struct model *model, const char *plugin, const char *more)
{
    char options[256];
    snprintf(options, sizeof options, "{\"model\":\"m-1\",\"key\":\"env:K\"%s}", more);
    assert_int_equal(wire_open(model, plugin, options), RUNG_OK);
}

/* The calls and echoes of the last reply: "kind id name text" a line. */
static const char *parts_of(const struct model *model)
{
    static char text[2048];
    size_t n = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < model->response.n_parts; ++i) {
        const struct rung_part *p = &model->response.parts[i];
        if (p->kind == RUNG_PART_TEXT && !p->text.len)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s %s %s\n",
                              p->kind == RUNG_PART_TEXT        ? "text"
                              : p->kind == RUNG_PART_TOOL_CALL ? "call"
                                                               : "echo",
                              p->id ? p->id : "-", p->name ? p->name : "-", p->text.ptr);
        assert_true(n < sizeof text);
    }
    return text;
}

static void ask_golden(struct model *model, const char *name)
{
    char *events = wire_golden(name);
    assert_int_equal(wire_ask_stream(model, events), RUNG_OK);
    free(events);
    assert_int_equal(model->response.finish, RUNG_FINISH_TOOL_CALLS);
}

/* ---- Calls ---- */

static void calls_are_put_together_from_streams(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", "");
    ask_golden(&model, "stream_tools.sse");
    assert_string_equal(parts_of(&model), "call call_a search {\"q\":\"smem\"}\n"
                                          "call call_b read {\"path\":\"a.h\"}\n");
    model_close(&model);
    open_one(&model, "anthropic", "");
    ask_golden(&model, "stream_anthropic_tools.sse");
    assert_string_equal(parts_of(&model),
                        "echo - anthropic {\"type\":\"redacted_thinking\",\"data\":\"EmwK\"}\n"
                        "text - - I look.\n"
                        "call toolu_1 search {\"q\": \"smem\"}\n"
                        "call toolu_2 read {}\n");
    ask_golden(&model, "stream_anthropic_tools.sse");
    model_close(&model);
    open_one(&model, "gemini", "");
    ask_golden(&model, "stream_gemini_tools.sse");
    assert_string_equal(parts_of(&model), "echo - gemini {\"thoughtSignature\":\"Cg0T\"}\n"
                                          "call call_1 search {\"q\":\"smem\"}\n"
                                          "call call_2 read {\"path\":\"a.h\"}\n");
    model_close(&model);
    open_one(&model, "openai_responses", "");
    ask_golden(&model, "stream_responses_tools.sse");
    assert_string_equal(parts_of(&model), "call call_a search {\"q\":\"smem\"}\n"
                                          "call call_b read {\"path\":\"a.h\"}\n");
    model_close(&model);
}

/* What servers do to the pieces of a call. */
static const struct {
    const char *events, *parts;
} streams[] = {
    /* Without index, by id. */
    {CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
         CALLS("{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}")
             CALLS("{\"id\":\"a\",\"function\":{\"arguments\":\"}\"}}"),
     "call a f {}\ncall b g {}\n"},
    /* Without index and id: goes on with the last one. */
    {CALLS("{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}}")
         CALLS("{\"function\":{\"arguments\":\"1}\"}}")
             CALLS("{\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}"),
     "call call_0 f {\"x\":1}\ncall call_1 g {}\n"},
    /* By position within the list. */
    {CALLS("{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"function\":{\"name\":\"g\","
           "\"arguments\":\"{\"}}")
         CALLS("{\"function\":{\"arguments\":\"}\"}},{\"function\":{\"arguments\":\"}\"}}"),
     "call call_0 f {}\ncall call_1 g {}\n"},
    /* One index for all parallel calls, with ids of their own. */
    {CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
         CALLS("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"),
     "call a f {}\ncall b f {}\n"},
    /* Arguments before the name. */
    {CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}}")
         CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"1}\"}}"),
     "call a f {\"x\":1}\n"},
    /* Id and name in every piece. */
    {CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
         CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"}\"}}"),
     "call a f {}\n"},
    /* Arguments as an object, none at all, and the older form. */
    {CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}"),
     "call a f {\"x\":1}\n"},
    {CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}"), "call a f {}\n"},
    {"data: "
     "{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\"}}}]}"
     "\n\ndata: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\"}\"}}}]}\n\n",
     "call call_0 f {}\n"},
    /* Hostile indices. */
    {CALLS("{\"index\":-1,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
         CALLS("{\"index\":1e14,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}")
             CALLS("7,null,{\"index\":\"0\",\"function\":8}"),
     "call a f {}\ncall b g {}\n"},
};

static void odd_pieces_find_their_call(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", "");
    for (size_t i = 0; i < sizeof streams / sizeof *streams; ++i) {
        char events[4096];
        snprintf(events, sizeof events, "%s%s", streams[i].events, END("stop"));
        assert_int_equal(wire_ask_stream(&model, events), RUNG_OK);
        assert_int_equal(model.response.finish, RUNG_FINISH_TOOL_CALLS);
        assert_string_equal(parts_of(&model), streams[i].parts);
    }
    /* A call that the cap cut off is no call to make. */
    assert_int_equal(
        wire_ask_stream(&model, CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
                                      "\"arguments\":\"{\\\"x\"}}") END("length")),
        RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_LENGTH);
    model_close(&model);
}

static void too_many_calls_are_refused(void **state)
{
    (void)state;
    struct model model;
    struct {
        char *text;
        size_t n;
    } all = {malloc(1 << 20), 0};
    for (int i = 0; i < 600; ++i)
        all.n += (size_t)snprintf(all.text + all.n, (1 << 20) - all.n,
                                  CALLS("{\"index\":%d,\"function\":{\"name\":\"f\"}}"), i);
    snprintf(all.text + all.n, (1 << 20) - all.n, "%s", END("stop"));
    open_one(&model, "openai", "");
    assert_int_equal(wire_ask_stream(&model, all.text), RUNG_EIO);
    support_contains(model.error.message, "too many parts");
    free(all.text);
    model_close(&model);
}

/* ---- What is sent ---- */

static struct rung_part part_of(uint32_t kind, const char *id, const char *name, const char *text)
{
    return (struct rung_part){.struct_size = sizeof(struct rung_part),
                              .kind = kind,
                              .text = {text, strlen(text)},
                              .id = id,
                              .name = name};
}

/* A turn of tools: the model called twice, one result failed to be JSON, and a user speaks on. */
static int32_t send_turn(struct model *model, const char *answer)
{
    const struct rung_part parts[] = {
        part_of(RUNG_PART_TEXT, NULL, NULL, "Be brief."),
        part_of(RUNG_PART_TEXT, NULL, NULL, "Look."),
        part_of(RUNG_PART_OPAQUE, NULL, "anthropic",
                "{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"s\"}"),
        part_of(RUNG_PART_OPAQUE, NULL, "gemini", "{\"thoughtSignature\":\"g\"}"),
        part_of(
            RUNG_PART_OPAQUE, NULL, "openrouter",
            "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm\"}],\"role\":1}"),
        part_of(RUNG_PART_OPAQUE, NULL, "openai_responses",
                "{\"type\":\"reasoning\",\"id\":\"r\"}"),
        part_of(RUNG_PART_TOOL_CALL, "a", "search", "{\"q\":\"x\"}"),
        part_of(RUNG_PART_TOOL_CALL, "b", "read", "not JSON"),
        part_of(RUNG_PART_TOOL_RESULT, "a", "search", "{\"hits\":2}"),
        part_of(RUNG_PART_TOOL_RESULT, "b", "read", "text \xff"),
        part_of(RUNG_PART_TEXT, NULL, NULL, "Go on.")};
    const struct rung_message messages[] = {{sizeof *messages, RUNG_MSG_SYSTEM, parts, 1, 0},
                                            {sizeof *messages, RUNG_MSG_USER, parts + 1, 1, 0},
                                            {sizeof *messages, RUNG_MSG_ASSISTANT, parts + 2, 6, 0},
                                            {sizeof *messages, RUNG_MSG_USER, parts + 8, 3, 0}};
    const struct rung_tool tool = {.struct_size = sizeof tool,
                                   .name = "search",
                                   .summary = "Looks for it.",
                                   .schema = {object, sizeof object - 1}};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 4,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .tools = &tool,
                                             .n_tools = 1,
                                             .temperature = -1,
                                             .schema = {object, sizeof object - 1},
                                             .schema_name = "reply"};
    wire_answer(200, NULL, answer);
    return model_send(model, &request);
}

static void a_turn_of_tools_is_sent_to_chat_completions(void **state)
{
    static const char fine[] = "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}";
    (void)state;
    struct model model;
    open_one(&model, "openai", ",\"dialect\":\"openrouter\"");
    assert_int_equal(send_turn(&model, fine), RUNG_OK);
    wire_has("messages",
             "[{\"role\":\"system\",\"content\":\"Be brief.\"},"
             "{\"role\":\"user\",\"content\":\"Look.\"},"
             "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
             "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"search\",\"arguments\":"
             "\"{\\\"q\\\":\\\"x\\\"}\"}},"
             "{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":"
             "\"{}\"}}],"
             "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm\"}]},"
             "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{\\\"hits\\\":2}\"},"
             "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"text \xef\xbf\xbd\"},"
             "{\"role\":\"user\",\"content\":\"Go on.\"}]");
    wire_has("tools", "[{\"type\":\"function\",\"function\":{\"name\":\"search\",\"description\":"
                      "\"Looks for it.\",\"parameters\":{\"type\":\"object\"}}}]");
    wire_has("response_format",
             "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"reply\",\"strict\":true,"
             "\"schema\":{\"type\":\"object\"}}}");
    model_close(&model);
    open_one(&model, "openai", ",\"dialect\":\"llama_cpp\"");
    assert_int_equal(send_turn(&model, fine), RUNG_OK);
    wire_has("response_format", "{\"type\":\"json_object\",\"schema\":{\"type\":\"object\"}}");
    assert_null(cJSON_GetObjectItem(
        cJSON_GetArrayItem(cJSON_GetObjectItem(wire_body(), "messages"), 2), "reasoning_details"));
    model_close(&model);
    open_one(&model, "openai", ",\"dialect\":\"deepseek\"");
    assert_int_equal(send_turn(&model, fine), RUNG_OK);
    wire_lacks("response_format");
    model_close(&model);
}

static void a_turn_of_tools_is_sent_to_messages(void **state)
{
    static const char fine[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\"}";
    (void)state;
    struct model model;
    open_one(&model, "anthropic", "");
    assert_int_equal(send_turn(&model, fine), RUNG_OK);
    wire_has("messages.1.content",
             "[{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"s\"},"
             "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"search\",\"input\":{\"q\":\"x\"}},"
             "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"read\",\"input\":{}}]");
    wire_has("messages.2.content",
             "[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"{\\\"hits\\\":2}\"},"
             "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"text \xef\xbf\xbd\"},"
             "{\"type\":\"text\",\"text\":\"Go on.\"}]");
    wire_has("tools", "[{\"name\":\"search\",\"description\":\"Looks for it.\",\"input_schema\":"
                      "{\"type\":\"object\"}}]");
    wire_has("output_config",
             "{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}}");
    model_close(&model);
    open_one(&model, "bedrock", ",\"region\":\"eu-west-1\"");
    assert_int_equal(send_turn(&model, fine), RUNG_OK);
    assert_string_equal(wire_url(),
                        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m-1/invoke");
    assert_string_equal(wire_header("authorization"), "authorization: Bearer {env:K}");
    wire_has("anthropic_version", "\"bedrock-2023-05-31\"");
    wire_lacks("model");
    wire_lacks("stream");
    assert_false(wire_asked_for_events());
    model_close(&model);
}

static void a_turn_of_tools_is_sent_to_generate_content(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "gemini", "");
    assert_int_equal(
        send_turn(&model, "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}"),
        RUNG_OK);
    wire_has("contents.1",
             "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"search\",\"args\":"
             "{\"q\":\"x\"}},\"thoughtSignature\":\"g\"},"
             "{\"functionCall\":{\"name\":\"read\",\"args\":{}}}]}");
    wire_has("contents.2.parts",
             "[{\"functionResponse\":{\"name\":\"search\",\"response\":{\"hits\":2}}},"
             "{\"functionResponse\":{\"name\":\"read\",\"response\":{\"result\":\"text "
             "\xef\xbf\xbd\"}}},{\"text\":\"Go on.\"}]");
    wire_has("tools", "[{\"functionDeclarations\":[{\"name\":\"search\",\"description\":\"Looks "
                      "for it.\",\"parametersJsonSchema\":{\"type\":\"object\"}}]}]");
    wire_has("generationConfig", "{\"responseMimeType\":\"application/json\","
                                 "\"responseJsonSchema\":{\"type\":\"object\"}}");
    model_close(&model);
}

static void a_turn_of_tools_is_sent_to_responses(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai_responses", "");
    assert_int_equal(send_turn(&model, "{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":"
                                       "\"output_text\",\"text\":\"a\"}]}]}"),
                     RUNG_OK);
    wire_has("instructions", "\"Be brief.\"");
    wire_has(
        "input",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Look.\"}]},"
        "{\"type\":\"reasoning\",\"id\":\"r\"},"
        "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"search\",\"arguments\":"
        "\"{\\\"q\\\":\\\"x\\\"}\"},"
        "{\"type\":\"function_call\",\"call_id\":\"b\",\"name\":\"read\",\"arguments\":\"not "
        "JSON\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"{\\\"hits\\\":2}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"b\",\"output\":\"text "
        "\xef\xbf\xbd\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Go on.\"}]}]");
    wire_has("include", "[\"reasoning.encrypted_content\"]");
    wire_has("text", "{\"format\":{\"type\":\"json_schema\",\"name\":\"reply\",\"strict\":true,"
                     "\"schema\":{\"type\":\"object\"}}}");
    model_close(&model);
}

/* ---- Echoes ---- */

static void a_signature_at_the_end_goes_back_on_an_empty_text(void **state)
{
    (void)state;
    struct model model;
    const struct rung_part parts[] = {
        part_of(RUNG_PART_TEXT, NULL, NULL, "Look."), part_of(RUNG_PART_TEXT, NULL, NULL, "Seen."),
        part_of(RUNG_PART_OPAQUE, NULL, "gemini", "{\"thoughtSignature\":\"g\"}"),
        part_of(RUNG_PART_TEXT, NULL, NULL, "Go on."),
        part_of(RUNG_PART_OPAQUE, NULL, "openai_responses", "{\"type\":\"reasoning\"}")};
    const struct rung_message messages[] = {
        {sizeof *messages, RUNG_MSG_USER, parts, 1, 0},
        {sizeof *messages, RUNG_MSG_ASSISTANT, parts + 1, 2, 0},
        {sizeof *messages, RUNG_MSG_USER, parts + 3, 1, 0},
        {sizeof *messages, RUNG_MSG_ASSISTANT, parts + 4, 1, 0}};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 4,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .temperature = -1};
    open_one(&model, "gemini", "");
    wire_answer(200, NULL, "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}");
    assert_int_equal(model_send(&model, &request), RUNG_OK);
    wire_has("contents", "[{\"role\":\"user\",\"parts\":[{\"text\":\"Look.\"}]},"
                         "{\"role\":\"model\",\"parts\":[{\"text\":\"Seen.\"},{\"text\":\"\","
                         "\"thoughtSignature\":\"g\"}]},"
                         "{\"role\":\"user\",\"parts\":[{\"text\":\"Go on.\"}]}]");
    model_close(&model);
}

static void reasoning_that_goes_back_is_kept(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", ",\"dialect\":\"deepseek\"");
    assert_int_equal(
        wire_ask_stream(&model,
                        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"H\"}}]}\n\n"
                        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"m\"}}]}\n\n" CALLS(
                            "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}")
                            END("tool_calls")),
        RUNG_OK);
    assert_string_equal(parts_of(&model),
                        "call a f {}\necho - deepseek {\"reasoning_content\":\"Hm\"}\n");
    model_close(&model);
    open_one(&model, "openai", ",\"dialect\":\"openrouter\"");
    char *golden = wire_golden("stream_openrouter.sse");
    assert_int_equal(wire_ask_stream(&model, golden), RUNG_OK);
    assert_string_equal(parts_of(&model), "text - - Use shared memory.\n"); /* no calls: no echo */
    char *end = strstr(golden, "data: [DONE]"), *events = malloc(strlen(golden) + 512);
    *end = 0;
    snprintf(events, strlen(golden) + 512, "%s%s%s", golden,
             CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}"), END("tool_calls"));
    assert_int_equal(wire_ask_stream(&model, events), RUNG_OK);
    support_contains(parts_of(&model),
                     "echo - openrouter {\"reasoning_details\":[{\"type\":\"reasoning.text\","
                     "\"text\":\"The rows are short\"");
    support_contains(parts_of(&model), "\"signature\":\"c2ln\"");
    free(events);
    free(golden);
    model_close(&model);
}

static void thinking_that_is_not_signed_does_not_go_back(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "anthropic", "");
    char *golden = wire_golden("stream_anthropic.sse");
    assert_int_equal(wire_ask_stream(&model, golden), RUNG_OK);
    assert_string_equal(parts_of(&model),
                        "echo - anthropic {\"type\":\"thinking\",\"thinking\":\"The rows are "
                        "short\",\"signature\":\"EqQB\"}\n"
                        "text - - Use shared memory.\n");
    memcpy(strstr(golden, "\"signature_delta\""), "\"signature_xxxxx\"", 17);
    memcpy(strstr(golden, "\"signature\":\"EqQB\""), "\"signaturx\":\"EqQB\"", 18);
    assert_int_equal(wire_ask_stream(&model, golden), RUNG_OK);
    assert_string_equal(parts_of(&model), "text - - Use shared memory.\n");
    free(golden);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_put_together_from_streams),
        cmocka_unit_test(odd_pieces_find_their_call),
        cmocka_unit_test(too_many_calls_are_refused),
        cmocka_unit_test(a_turn_of_tools_is_sent_to_chat_completions),
        cmocka_unit_test(a_turn_of_tools_is_sent_to_messages),
        cmocka_unit_test(a_turn_of_tools_is_sent_to_generate_content),
        cmocka_unit_test(a_turn_of_tools_is_sent_to_responses),
        cmocka_unit_test(a_signature_at_the_end_goes_back_on_an_empty_text),
        cmocka_unit_test(reasoning_that_goes_back_is_kept),
        cmocka_unit_test(thinking_that_is_not_signed_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
