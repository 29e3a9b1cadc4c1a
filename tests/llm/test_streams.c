/* Replies in pieces, as each server sends them: whole, cut, stopped, failing midway. */
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROLE(more)                                                                                 \
    "data: {\"choices\":[{\"index\":0,\"delta\":{" more "},\"finish_reason\":null}]}\n\n"
#define TEXT(text) ROLE("\"content\":\"" text "\"")
#define END(reason) "data: {\"choices\":[{\"delta\":{},\"finish_reason\":" reason "}]}\n\n"
#define DONE "data: [DONE]\n\n"

/* ---- What was shown while it grew ---- */

static struct {
    char text[512];
    size_t n, calls, stop_at;
} shown;

static int32_t show(void *ctx, struct rung_text delta)
{
    (void)ctx;
    assert_true(shown.n + delta.len < sizeof shown.text);
    memcpy(shown.text + shown.n, delta.ptr, delta.len);
    shown.n += delta.len;
    shown.text[shown.n] = 0;
    return ++shown.calls == shown.stop_at;
}

static int32_t ask(struct model *model, size_t stop_at)
{
    static const char text[] = "Write it.";
    const struct rung_part part = {
        .struct_size = sizeof part, .kind = RUNG_PART_TEXT, .text = {text, sizeof text - 1}};
    const struct rung_message message = {sizeof message, RUNG_MSG_USER, &part, 1, 0};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 1,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = &message,
                                             .temperature = -1,
                                             .on_delta = show};
    memset(&shown, 0, sizeof shown);
    shown.stop_at = stop_at;
    return model_send(model, &request);
}

static void open_one(struct model *model, const char *plugin, const char *more)
{
    char options[256];
    snprintf(options, sizeof options, "{\"model\":\"m-1\",\"key\":\"env:K\"%s}", more);
    assert_int_equal(wire_open(model, plugin, options), RUNG_OK);
}

static void ask_golden(struct model *model, const char *name)
{
    char *events = wire_golden(name);
    wire_stream(events);
    assert_int_equal(ask(model, 0), RUNG_OK);
    free(events);
    assert_int_equal(model->response.cut, 0);
    assert_int_equal(model->response.tries, 1);
    assert_true(model->response.first_token_ns > 0);
    assert_true(wire_asked_for_events());
}

/* ---- Golden streams ---- */

static void every_server_of_chat_completions_is_read(void **state)
{
    static const struct {
        const char *dialect, *more;
        int64_t input, cached, output, reasoning;
        bool usage;
    } servers[] = {
        {"openai", "", 176, 1024, 260, 640, true},
        {"azure", ",\"url\":\"https://r.openai.azure.com\"", 30, -1, 9, -1, true},
        {"deepseek", "", 44, 256, 50, 30, true},
        {"openrouter", "", 40, -1, 10, 20, true},
        {"vllm", "", 20, -1, 19, -1, true},
        {"sglang", "", 20, -1, 9, -1, true},
        {"llama_cpp", "", 20, -1, 9, -1, true},
        {"ollama", "", 20, -1, 9, -1, true},
        {"lmstudio", "", 20, -1, 19, -1, true},
        {"mistral", "", 20, -1, 9, -1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; ++i) {
        struct model model;
        char more[128], name[64];
        snprintf(more, sizeof more, ",\"dialect\":\"%s\"%s", servers[i].dialect, servers[i].more);
        snprintf(name, sizeof name, "stream_%s.sse", servers[i].dialect);
        open_one(&model, "openai", more);
        ask_golden(&model, name);
        assert_string_equal(model_text(&model), "Use shared memory.");
        assert_string_equal(shown.text, "Use shared memory.");
        assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
        assert_string_equal(model.response.finish_word, "stop");
        assert_int_equal(model.response.usage.estimated, 0);
        wire_usage(&model, servers[i].input, servers[i].cached, -1, -1, servers[i].output,
                   servers[i].reasoning);
        wire_has("stream", "true");
        if (servers[i].usage)
            wire_has("stream_options", "{\"include_usage\":true}");
        else
            wire_lacks("stream_options");
        model_close(&model);
    }
}

static void messages_generate_content_and_responses_are_read(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "anthropic", "");
    ask_golden(&model, "stream_anthropic.sse");
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_string_equal(shown.text, "Use shared memory.");
    assert_string_equal(model.response.model, "claude-opus-5");
    assert_string_equal(model.response.request_id, "msg_01");
    assert_string_equal(model.response.finish_word, "end_turn");
    wire_usage(&model, 21, 1800, 100, 200, 40, 90);
    wire_has("stream", "true");
    model_close(&model);
    open_one(&model, "gemini", "");
    ask_golden(&model, "stream_gemini.sse");
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_string_equal(shown.text, "Use shared memory.");
    assert_string_equal(model.response.finish_word, "STOP");
    wire_usage(&model, 400, 600, -1, -1, 40, 500);
    model_close(&model);
    open_one(&model, "openai_responses", "");
    ask_golden(&model, "stream_responses.sse");
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_string_equal(shown.text, "Use shared memory.");
    assert_string_equal(wire_url(), "https://api.openai.com/v1/responses");
    wire_usage(&model, 176, 1024, -1, -1, 260, 640);
    wire_has("store", "false");
    assert_int_equal(wire_ask_golden(&model, "responses.json"), RUNG_OK);
    assert_string_equal(model_text(&model), "Use shared memory.");
    assert_int_equal(model.response.first_token_ns, 0);
    /* Servers that send no deltas: the last event holds it all, once. */
    wire_stream("data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":"
                "{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}}\n\n"
                "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\","
                "\"output\":[{\"type\":\"reasoning\",\"encrypted_content\":\"x\"},{\"type\":"
                "\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}]}}\n\n");
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(model.response.n_parts, 2);
    assert_string_equal(model_text(&model), "a");
    model_close(&model);
}

/* ---- Ends ---- */

static void a_stream_ends_once_and_what_follows_does_not_count(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", "");
    /* The finish twice, and text behind [DONE]. */
    wire_stream(TEXT("a") END("\"length\"") END("\"stop\"") DONE TEXT("b"));
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_string_equal(model_text(&model), "a");
    assert_int_equal(model.response.finish, RUNG_FINISH_LENGTH);
    assert_int_equal(model.response.usage.estimated, 1);
    /* No reason at all, but [DONE]; a reason, but no [DONE], and a connection that broke then. */
    wire_stream(TEXT("a") DONE);
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    wire_cut(TEXT("a") END("\"stop\""), RUNG_EIO, "http.broken");
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(model.response.cut, 0);
    wire_cut(TEXT("a") END("\"stop\""), RUNG_ECANCELLED, "http.cancelled");
    assert_int_equal(ask(&model, 0), RUNG_ECANCELLED);
    /* Nothing at all. */
    wire_stream(DONE);
    assert_int_equal(ask(&model, 0), RUNG_EIO);
    assert_string_equal(model.error.symbol, "llm.reply");
    model_close(&model);
}

static void a_cut_stream_is_told_with_what_had_come(void **state)
{
    static const struct {
        const char *plugin, *events;
    } cuts[] = {
        {"openai", TEXT("Use shared ") TEXT("memory")},
        {"anthropic",
         "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,"
         "\"output_tokens\":1}}}\n\n"
         "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
         "\"text\":\"\"}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
         "\"text\":\"Use shared memory\"}}\n\n"},
        {"gemini", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Use shared "
                   "memory\"}]}}]}\n\n"},
        {"openai_responses",
         "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Use shared memory\"}\n\n"},
    };
    static const struct {
        int32_t wire, status;
        const char *symbol;
    } ways[] = {{RUNG_OK, RUNG_EIO, "http.broken"},
                {RUNG_EIO, RUNG_EIO, "http.broken"},
                {RUNG_ETIMEOUT, RUNG_ETIMEOUT, "http.between_events"},
                {RUNG_ECANCELLED, RUNG_ECANCELLED, "http.cancelled"}};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
        struct model model;
        open_one(&model, cuts[i].plugin, "");
        for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
            wire_cut(cuts[i].events, ways[w].wire, ways[w].symbol);
            assert_int_equal(ask(&model, 0), ways[w].status);
            assert_string_equal(model.error.symbol, ways[w].symbol);
            assert_int_equal(model.response.cut, 1);
            assert_string_equal(model_text(&model), "Use shared memory");
            assert_int_equal(model.response.usage.estimated, 1);
            assert_int_equal(model.response.usage.output, 5); /* 17 characters */
            assert_int_equal(model.response.usage.input, i == 1 ? 7 : 3);
            assert_int_equal(model.response.tries, 1);
        }
        model_close(&model);
    }
}

static void the_reader_can_stop_it(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", "");
    wire_stream(TEXT("a") TEXT("b") TEXT("c") END("\"stop\"") DONE);
    assert_int_equal(ask(&model, 2), RUNG_ECANCELLED);
    assert_string_equal(model.error.symbol, "llm.stopped");
    assert_string_equal(shown.text, "ab");
    assert_int_equal(model.response.cut, 1);
    wire_answer(200, NULL,
                "{\"choices\":[{\"message\":{\"content\":\"abc\"},\"finish_reason\":\"stop\"}]}");
    assert_int_equal(ask(&model, 1), RUNG_ECANCELLED);
    assert_string_equal(model.error.symbol, "llm.stopped");
    model_close(&model);
}

/* ---- Faults midway ---- */

struct fault {
    const char *plugin, *events;
    int32_t status;
    const char *symbol, *says;
};

static void errors_inside_a_good_stream_are_errors(void **state)
{
    static const struct fault faults[] = {
        {"openai", TEXT("ha") "data: {\"error\":{\"message\":\"upstream died\",\"code\":502}}\n\n",
         RUNG_EUNAVAILABLE, "llm.overloaded", "upstream died"},
        {"openai",
         TEXT("ha") "data: {\"error\":{\"code\":\"server_error\",\"message\":\"upstream died\"},"
                    "\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
         RUNG_EUNAVAILABLE, "llm.overloaded", "upstream died"},
        {"openai", TEXT("ha") END("\"error\""), RUNG_EUNAVAILABLE, "llm.overloaded", "midway"},
        {"openai", TEXT("ha") END("\"insufficient_system_resource\""), RUNG_EUNAVAILABLE,
         "llm.overloaded", "midway"},
        {"openai", TEXT("ha") "event: error\ndata: it went wrong\n\n", RUNG_EUNAVAILABLE,
         "llm.overloaded", "it went wrong"},
        {"openai", TEXT("ha") "data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n",
         RUNG_ERATELIMIT, "llm.rate", "slow down"},
        {"openai",
         TEXT("ha") "data: {\"error\":{\"message\":\"x\",\"type\":\"insufficient_quota\"}}\n\n",
         RUNG_EBUDGET, "llm.quota", "used up"},
        {"openai", TEXT("ha") "data: {\"choices\":[\n\n", RUNG_EIO, "llm.reply", "it begins: {"},
        {"openai", TEXT("ha") "data: 7\n\n", RUNG_EIO, "llm.reply", "no JSON object"},
        {"anthropic",
         "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
         "\"message\":\"Overloaded\"}}\n\n",
         RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 529: Overloaded"},
        {"gemini",
         "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded\",\"status\":"
         "\"UNAVAILABLE\"}}\n\n",
         RUNG_EUNAVAILABLE, "llm.overloaded", "HTTP 503"},
        {"openai_responses",
         "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":"
         "{\"code\":\"rate_limit_exceeded\",\"message\":\"later\"}}}\n\n",
         RUNG_ERATELIMIT, "llm.rate", "later"},
        {"openai_responses",
         "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"broken\","
         "\"param\":null}\n\n",
         RUNG_EUNAVAILABLE, "llm.overloaded", "broken"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
        struct model model;
        open_one(&model, faults[i].plugin, "");
        wire_stream(faults[i].events);
        assert_int_equal(ask(&model, 0), faults[i].status);
        assert_string_equal(model.error.symbol, faults[i].symbol);
        support_contains(model.error.message, faults[i].says);
        if (strncmp(faults[i].events, TEXT("ha"), 20) == 0) {
            assert_int_equal(model.response.cut, 1);
            assert_string_equal(model_text(&model), "ha");
        }
        model_close(&model);
    }
}

static void a_prompt_turned_away_midway_is_an_outcome(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", "");
    wire_stream(
        "data: {\"error\":{\"message\":\"Trying to keep the first 9000 tokens when context "
        "the overflows. The model is loaded with context length of only 4096 tokens\"}}\n\n");
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_CONTEXT);
    wire_stream(TEXT("ha") "data: {\"error\":{\"code\":\"content_filter\",\"message\":\"x\"}}\n\n");
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_REFUSED);
    assert_string_equal(model.response.finish_word, "content_filter");
    model_close(&model);
}

/* ---- Reasons ---- */

static const struct {
    const char *plugin, *format, *word;
    uint32_t finish;
} every_end[] = {
#define CHAT                                                                                       \
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"%s\"}]}\n\n" DONE
    {"openai", CHAT, "stop", RUNG_FINISH_STOP},
    {"openai", CHAT, "eos", RUNG_FINISH_STOP},
    {"openai", CHAT, "STOP", RUNG_FINISH_STOP},
    {"openai", CHAT, "length", RUNG_FINISH_LENGTH},
    {"openai", CHAT, "model_length", RUNG_FINISH_LENGTH},
    {"openai", CHAT, "MAX_TOKENS", RUNG_FINISH_LENGTH},
    {"openai", CHAT, "content_filter", RUNG_FINISH_REFUSED},
    {"openai", CHAT, "sensitive", RUNG_FINISH_REFUSED},
    {"openai", CHAT, "tool_calls", RUNG_FINISH_TOOL_CALLS},
    {"openai", CHAT, "function_call", RUNG_FINISH_TOOL_CALLS},
    {"openai", CHAT, "model_context_window_exceeded", RUNG_FINISH_CONTEXT},
#define MESSAGES                                                                                   \
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","    \
    "\"text\":\"a\"}}\n\ndata: "                                                                   \
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"}}\n\n"                          \
    "data: {\"type\":\"message_stop\"}\n\n"
    {"anthropic", MESSAGES, "end_turn", RUNG_FINISH_STOP},
    {"anthropic", MESSAGES, "max_tokens", RUNG_FINISH_LENGTH},
    {"anthropic", MESSAGES, "stop_sequence", RUNG_FINISH_STOP},
    {"anthropic", MESSAGES, "tool_use", RUNG_FINISH_TOOL_CALLS},
    {"anthropic", MESSAGES, "pause_turn", RUNG_FINISH_LENGTH},
    {"anthropic", MESSAGES, "refusal", RUNG_FINISH_REFUSED},
    {"anthropic", MESSAGES, "model_context_window_exceeded", RUNG_FINISH_CONTEXT},
#define GOOGLE                                                                                     \
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"%s\"}"  \
    "]}\n\n"
    {"gemini", GOOGLE, "STOP", RUNG_FINISH_STOP},
    {"gemini", GOOGLE, "MAX_TOKENS", RUNG_FINISH_LENGTH},
    {"gemini", GOOGLE, "SAFETY", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "RECITATION", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "LANGUAGE", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "BLOCKLIST", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "PROHIBITED_CONTENT", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "SPII", RUNG_FINISH_REFUSED},
    {"gemini", GOOGLE, "OTHER", RUNG_FINISH_STOP},
    {"gemini", GOOGLE, "MALFORMED_FUNCTION_CALL", RUNG_FINISH_TOOL_CALLS},
#define RESPONSES                                                                                  \
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"                          \
    "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","             \
    "\"incomplete_details\":{\"reason\":\"%s\"}}}\n\n"
    {"openai_responses", RESPONSES, "max_output_tokens", RUNG_FINISH_LENGTH},
    {"openai_responses", RESPONSES, "content_filter", RUNG_FINISH_REFUSED},
};

static void every_reason_has_its_finish(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof every_end / sizeof *every_end; ++i) {
        struct model model;
        char events[1024];
        snprintf(events, sizeof events, every_end[i].format, every_end[i].word);
        open_one(&model, every_end[i].plugin, "");
        wire_stream(events);
        assert_int_equal(ask(&model, 0), RUNG_OK);
        if (model.response.finish != every_end[i].finish)
            fail_msg("%s: %s ends as %u", every_end[i].plugin, every_end[i].word,
                     model.response.finish);
        assert_string_equal(model.response.finish_word, every_end[i].word);
        assert_string_equal(model_text(&model), "a");
        model_close(&model);
    }
}

static void reasoning_that_left_no_room_is_told(void **state)
{
    static const struct {
        const char *plugin, *events;
    } ends[] = {
        {"openai", ROLE("\"reasoning_content\":\"Hm\"") END("\"length\"") DONE},
        {"openai", TEXT("<think>Hm") END("\"length\"") DONE},
        {"openai", END("\"length\"") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,"
                                     "\"completion_tokens\":9,\"completion_tokens_details\":"
                                     "{\"reasoning_tokens\":9}}}\n\n" DONE},
        {"anthropic", "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
                      "{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n"
                      "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                      "\"max_tokens\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"},
        {"gemini", "data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":"
                   "\"MAX_TOKENS\"}],\"usageMetadata\":{\"promptTokenCount\":9,"
                   "\"thoughtsTokenCount\":99}}\n\n"},
        {"openai_responses",
         "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
         "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[{\"type\":"
         "\"reasoning\"}],\"usage\":{\"input_tokens\":1,\"output_tokens\":9,"
         "\"output_tokens_details\":{\"reasoning_tokens\":9}}}}\n\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        struct model model;
        open_one(&model, ends[i].plugin, "");
        wire_stream(ends[i].events);
        assert_int_equal(ask(&model, 0), RUNG_OK);
        assert_int_equal(model.response.finish, RUNG_FINISH_REASONING);
        assert_string_equal(model_text(&model), "");
        assert_string_equal(shown.text, "");
        model_close(&model);
    }
}

static void silence_has_its_own_limit(void **state)
{
    (void)state;
    struct model model;
    open_one(&model, "openai", ",\"silence\":\"30s\",\"timeout\":\"5m\"");
    wire_stream(TEXT("a") END("\"stop\"") DONE);
    assert_int_equal(ask(&model, 0), RUNG_OK);
    assert_int_equal(wire_first_event_ms(), 30000);
    assert_int_equal(wire_between_events_ms(), 30000);
    assert_string_equal(wire_header("accept"), "accept: text/event-stream");
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_server_of_chat_completions_is_read),
        cmocka_unit_test(messages_generate_content_and_responses_are_read),
        cmocka_unit_test(a_stream_ends_once_and_what_follows_does_not_count),
        cmocka_unit_test(a_cut_stream_is_told_with_what_had_come),
        cmocka_unit_test(the_reader_can_stop_it),
        cmocka_unit_test(errors_inside_a_good_stream_are_errors),
        cmocka_unit_test(a_prompt_turned_away_midway_is_an_outcome),
        cmocka_unit_test(every_reason_has_its_finish),
        cmocka_unit_test(reasoning_that_left_no_room_is_told),
        cmocka_unit_test(silence_has_its_own_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
