/* What models refuse: the tables, and the one repair of a request that a server turns away. */
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char fine[] =
    "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}";
static const char fine_anthropic[] =
    "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\"}";
static const char fine_gemini[] = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}";

static const struct {
    const char *plugin, *fine;
} plugins[] = {{"openai", fine}, {"anthropic", fine_anthropic}, {"gemini", fine_gemini}};

static const char *fine_of(const char *plugin)
{
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; ++i)
        if (strcmp(plugins[i].plugin, plugin) == 0)
            return plugins[i].fine;
    return "{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":"
           "\"a\"}]}]}";
}

/* A request that asks for everything there is. */
static int32_t ask_all(struct model *model, uint32_t effort)
{
    static const char object[] = "{\"type\":\"object\"}";
    const struct rung_part parts[] = {
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = {"Be brief.", 9}},
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = {"x", 1}, .cache_mark = 1}};
    const struct rung_message messages[] = {{sizeof *messages, RUNG_MSG_SYSTEM, parts, 1, 0},
                                            {sizeof *messages, RUNG_MSG_USER, parts + 1, 1, 0}};
    const struct rung_tool tool = {
        .struct_size = sizeof tool, .name = "search", .schema = {object, sizeof object - 1}};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 2,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .messages = messages,
                                             .tools = &tool,
                                             .n_tools = 1,
                                             .effort = effort,
                                             .temperature = 0.5,
                                             .max_output_tokens = 8000,
                                             .schema = {object, sizeof object - 1},
                                             .schema_name = "reply"};
    return model_send(model, &request);
}

/* ---- The repair ---- */

static const struct {
    const char *plugin, *more, *refusal, *repaired, *gone;
} cases[] = {
    {"openai", "",
     "{\"error\":{\"message\":\"Unsupported value: 'temperature' does not support 0.5 with "
     "this model. Only the default (1) value is supported.\",\"param\":\"temperature\"}}",
     "temperature", "temperature"},
    {"openai", ",\"dialect\":\"vllm\"",
     "{\"error\":{\"message\":\"seed is not supported\",\"code\":400}}", "seed", "seed"},
    {"openai", "",
     "{\"error\":{\"message\":\"Unrecognized request argument supplied: reasoning_effort\"}}",
     "reasoning_effort", "reasoning_effort"},
    {"openai", ",\"dialect\":\"openrouter\"",
     "{\"error\":{\"message\":\"reasoning is not supported\",\"code\":400}}", "reasoning",
     "reasoning"},
    {"openai", "",
     "{\"error\":{\"message\":\"Invalid parameter: 'response_format' of type 'json_schema' is "
     "not supported with this model.\",\"param\":null}}",
     "response_format", "response_format"},
    {"openai", "",
     "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\"],\"msg\":"
     "\"Extra inputs are not permitted\"}]}",
     "stream_options", "stream_options"},
    {"openai", "", "{\"error\":\"registry.ollama.ai/m does not support tools\"}", "tools", "tools"},
    {"openai", "",
     "{\"error\":{\"message\":\"Unsupported value: 'stream' does not support true with this "
     "model.\",\"param\":\"stream\"}}",
     "stream", "stream"},
    {"anthropic", "",
     "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
     "\"`temperature` is deprecated for this model.\"}}",
     "temperature", "temperature"},
    {"anthropic", ",\"thinking\":\"adaptive\"",
     "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
     "\"adaptive thinking is not supported on this model\"}}",
     "thinking", "thinking"},
    {"anthropic", "",
     "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
     "\"output_config.effort: Extra inputs are not permitted\"}}",
     "output_config.effort", NULL},
    {"gemini", "",
     "{\"error\":{\"code\":400,\"message\":\"Thinking level is not supported for this "
     "model.\",\"status\":\"INVALID_ARGUMENT\"}}",
     "thinking level", NULL},
    {"openai_responses", "",
     "{\"error\":{\"message\":\"Encrypted content is not supported with this "
     "model.\",\"param\":"
     "\"include\"}}",
     "include", "include"},
};

static void one_parameter_is_left_out_and_stays_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct model model;
        char options[256];
        snprintf(options, sizeof options, "{\"model\":\"m-1\"%s}", cases[i].more);
        assert_int_equal(wire_open(&model, cases[i].plugin, options), RUNG_OK);
        wire_answer(400, NULL, cases[i].refusal);
        wire_answer(200, NULL, fine_of(cases[i].plugin));
        assert_int_equal(ask_all(&model, 3), RUNG_OK);
        assert_int_equal(wire_sent_count(), 2);
        assert_int_equal(model.response.tries, 2);
        assert_string_equal(model.response.repaired, cases[i].repaired);
        if (cases[i].gone)
            wire_lacks(cases[i].gone);
        /* It stays out, and that is no repair any more. */
        wire_answer(200, NULL, fine_of(cases[i].plugin));
        assert_int_equal(ask_all(&model, 3), RUNG_OK);
        assert_int_equal(model.response.tries, 1);
        assert_null(model.response.repaired);
        if (cases[i].gone)
            wire_lacks(cases[i].gone);
        model_close(&model);
    }
}

static void only_one_repair_and_only_of_what_was_sent(void **state)
{
    static const char seed[] = "{\"error\":{\"message\":\"seed is not supported\"}}";
    static const char temperature[] = "{\"error\":{\"message\":\"temperature is not supported\"}}";
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "openai", "{\"model\":\"m\",\"body\":[\"seed=7\"]}"),
                     RUNG_OK);
    /* The user's own field is the user's. */
    wire_answer(400, NULL, seed);
    assert_int_equal(ask_all(&model, 0), RUNG_ECONFIG);
    assert_string_equal(model.error.symbol, "llm.request");
    assert_int_equal(model.response.tries, 1);
    /* A repair that doesn't help isn't remembered, and there is no second one. */
    wire_answer(400, NULL, temperature);
    wire_answer(400, NULL, "{\"error\":{\"message\":\"tools is not supported\"}}");
    assert_int_equal(ask_all(&model, 0), RUNG_ECONFIG);
    assert_int_equal(model.response.tries, 2);
    assert_null(model.response.repaired);
    wire_answer(200, NULL, fine);
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    wire_has("temperature", "0.5");
    /* Other faults that name a parameter are none to repair. */
    wire_answer(429, NULL, temperature);
    assert_int_equal(ask_all(&model, 0), RUNG_ERATELIMIT);
    assert_int_equal(model.response.tries, 1);
    wire_answer(400, NULL,
                "{\"error\":{\"message\":\"maximum context length is 10; tools are too long\"}}");
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_CONTEXT);
    assert_int_equal(model.response.tries, 1);
    model_close(&model);
}

static void the_system_may_have_to_speak_as_the_user(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(
        wire_open(&model, "openai", "{\"model\":\"m\",\"url\":\"http://localhost:1\"}"), RUNG_OK);
    wire_answer(400, NULL, "{\"error\":{\"message\":\"System role not supported\",\"code\":400}}");
    wire_answer(200, NULL, fine);
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    assert_string_equal(model.response.repaired, "system role");
    wire_has("messages", "[{\"role\":\"user\",\"content\":\"Be brief.\\n\\nx\"}]");
    model_close(&model);
}

/* ---- Tables ---- */

static char *folder;

static void open_table(struct model *model, const char *plugin, const char *more, const char *text)
{
    char *path = support_path(folder, "table.cfg"), options[512];
    support_write(path, text, strlen(text));
    snprintf(options, sizeof options, "{\"model\":\"m-1\",\"models\":\"%s\"%s}", path, more);
    free(path);
    assert_int_equal(wire_open(model, plugin, options), RUNG_OK);
    wire_answer(200, NULL, fine_of(plugin));
}

static void a_table_says_what_is_left_out(void **state)
{
    (void)state;
    struct model model;
    open_table(&model, "openai", "",
               "models = ( { provider = \"*\"; match = \"m-*\"; refuses = ( \"temperature\", "
               "\"schema\", \"stream_usage\" ); cap_field = \"max_tokens\"; system_role = "
               "\"developer\"; efforts = ( \"low\", \"high\" ); output = 4000; },\n"
               "{ provider = \"ollama\"; match = \"*\"; refuses = (); },\n"
               "{ provider = \"openai\"; match = \"other*\"; output = 1; } );");
    assert_int_equal(ask_all(&model, 5), RUNG_OK);
    assert_null(model.response.repaired);
    wire_lacks("temperature");
    wire_lacks("response_format");
    wire_lacks("stream_options");
    wire_has("stream", "true");
    wire_has("max_tokens", "4000");
    wire_has("messages.0.role", "\"developer\"");
    wire_has("reasoning_effort", "\"high\"");
    wire_answer(200, NULL, fine);
    assert_int_equal(ask_all(&model, 2), RUNG_OK);
    wire_has("reasoning_effort", "\"low\"");
    model_close(&model);
}

static void a_later_entry_replaces_a_field(void **state)
{
    (void)state;
    struct model model;
    open_table(&model, "openai", "",
               "models = ( { provider = \"*\"; match = \"*\"; refuses = ( \"temperature\" ); "
               "cap_field = \"max_tokens\"; }, { provider = \"openai\"; match = \"M-?\"; refuses = "
               "(); } );");
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    wire_has("temperature", "0.5");
    wire_has("max_tokens", "8000");
    model_close(&model);
}

static void effort_may_be_a_number_of_tokens(void **state)
{
    static const char table[] =
        "models = ( { provider = \"*\"; match = \"*\"; budgets = ( 0, 1024, "
        "2048, 4096, 7000 ); } );";
    (void)state;
    struct model model;
    open_table(&model, "anthropic", "", table);
    assert_int_equal(ask_all(&model, 4), RUNG_OK);
    wire_has("thinking", "{\"type\":\"enabled\",\"budget_tokens\":4096}");
    wire_lacks("temperature"); /* the API takes none beside thinking */
    wire_answer(200, NULL, fine_anthropic);
    assert_int_equal(ask_all(&model, 1), RUNG_OK);
    wire_lacks("thinking");
    model_close(&model);
    open_table(&model, "gemini", "", table);
    assert_int_equal(ask_all(&model, 1), RUNG_OK);
    wire_has("generationConfig.thinkingConfig", "{\"thinkingBudget\":0}");
    model_close(&model);
}

static void thinking_fits_below_the_cap(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "anthropic",
                               "{\"model\":\"m\",\"thinking\":\"enabled\","
                               "\"thinking_budget\":9000}"),
                     RUNG_OK);
    wire_answer(200, NULL, fine_anthropic);
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    wire_has("max_tokens", "8000");
    wire_has("thinking", "{\"type\":\"enabled\",\"budget_tokens\":7999}");
    model_close(&model);
}

static void prompt_and_reply_share_the_context(void **state)
{
    (void)state;
    struct model model;
    open_table(&model, "openai", "",
               "models = ( { provider = \"*\"; match = \"*\"; context = 4096; } );");
    assert_int_equal(ask_all(&model, 0), RUNG_OK);
    wire_has("max_completion_tokens", "4092"); /* ten characters are three tokens, four at most */
    model_close(&model);
}

static void a_table_that_is_wrong_is_told_by_line(void **state)
{
    static const struct {
        const char *text, *says;
    } tables[] = {
        {"models = (\n", "table.cfg:"},
        {"other = 1;", "one list is needed"},
        {"models = (\n{ provider = \"x\"; } );", "table.cfg:2: a group with the texts"},
        {"models = ( { provider = \"x\"; match = \"*\";\nrefuses = ( \"top_p\" ); } );",
         "table.cfg:2: refuses: the words are"},
        {"models = ( { provider = \"x\"; match = \"*\"; efforts = \"low\"; } );",
         "efforts: a list"},
        {"models = ( { provider = \"x\"; match = \"*\"; budgets = ( 1 ); } );", "budgets: five"},
        {"models = ( { provider = \"x\"; match = \"*\"; context = -1; } );", "context: a number"},
        {"models = ( { provider = \"x\"; match = \"*\"; cap_field = \"n\"; } );",
         "cap_field: \"max"},
        {"models = ( { provider = \"x\"; match = \"*\"; temprature = 1; } );",
         "temprature: no such setting"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) {
        struct model model;
        char *path = support_path(folder, "table.cfg"), options[512];
        support_write(path, tables[i].text, strlen(tables[i].text));
        snprintf(options, sizeof options, "{\"model\":\"m-1\",\"models\":\"%s\"}", path);
        assert_int_equal(wire_open(&model, "openai", options), RUNG_ECONFIG);
        assert_string_equal(model.error.symbol, "llm.models");
        support_contains(model.error.message, tables[i].says);
        free(path);
        model_close(&model);
    }
    struct model model;
    assert_int_equal(
        wire_open(&model, "openai", "{\"model\":\"m-1\",\"models\":\"/nowhere/at/all\"}"),
        RUNG_ENOTFOUND);
    model_close(&model);
}

/* ---- Dialects ---- */

static void every_dialect_has_its_address_and_its_ways(void **state)
{
    static const struct {
        const char *options, *url, *key;
        bool old_cap, seed;
    } dialects[] = {
        {"\"dialect\":\"openai\"", "https://api.openai.com/v1/chat/completions",
         "authorization: Bearer {env:K}", false, false},
        {"\"url\":\"https://r.openai.azure.com\"",
         "https://r.openai.azure.com/openai/v1/chat/completions", "api-key: {env:K}", false, false},
        {"\"url\":\"https://r.openai.azure.com\",\"api_version\":\"2024-10-21\"",
         "https://r.openai.azure.com/openai/deployments/m-1/chat/"
         "completions?api-version=2024-10-21",
         "api-key: {env:K}", false, false},
        {"\"dialect\":\"openrouter\"", "https://openrouter.ai/api/v1/chat/completions",
         "authorization: Bearer {env:K}", true, false},
        {"\"dialect\":\"deepseek\"", "https://api.deepseek.com/v1/chat/completions",
         "authorization: Bearer {env:K}", true, false},
        {"\"dialect\":\"mistral\"", "https://api.mistral.ai/v1/chat/completions",
         "authorization: Bearer {env:K}", true, false},
        {"\"dialect\":\"llama_cpp\"", "http://127.0.0.1:8080/v1/chat/completions",
         "authorization: Bearer {env:K}", true, true},
        {"\"dialect\":\"ollama\",\"url\":\"http://box:9\"", "http://box:9/v1/chat/completions",
         "authorization: Bearer {env:K}", true, true},
        {"\"dialect\":\"vllm\",\"url\":\"http://box:9/v1/\"", "http://box:9/v1/chat/completions",
         "authorization: Bearer {env:K}", true, true},
        {"\"dialect\":\"sglang\"", "http://127.0.0.1:30000/v1/chat/completions",
         "authorization: Bearer {env:K}", true, true},
        {"\"dialect\":\"lmstudio\"", "http://127.0.0.1:1234/v1/chat/completions",
         "authorization: Bearer {env:K}", true, true},
        {"\"url\":\"https://elsewhere/x/v1/chat/completions\"",
         "https://elsewhere/x/v1/chat/completions", "authorization: Bearer {env:K}", true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; ++i) {
        struct model model;
        char options[256];
        snprintf(options, sizeof options, "{\"model\":\"m-1\",\"key\":\"env:K\",%s}",
                 dialects[i].options);
        assert_int_equal(wire_open(&model, "openai", options), RUNG_OK);
        wire_answer(200, NULL, fine);
        assert_int_equal(ask_all(&model, 0), RUNG_OK);
        assert_string_equal(wire_url(), dialects[i].url);
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(dialects[i].key, ":"), dialects[i].key);
        assert_string_equal(wire_header(name), dialects[i].key);
        wire_has(dialects[i].old_cap ? "max_tokens" : "max_completion_tokens", "8000");
        assert_true(!dialects[i].seed == !cJSON_GetObjectItem(wire_body(), "seed"));
        model_close(&model);
    }
    struct model model;
    assert_int_equal(wire_open(&model, "openai", "{\"model\":\"m\",\"dialect\":\"generic\"}"),
                     RUNG_ECONFIG);
    model_close(&model);
    assert_int_equal(wire_open(&model, "openai", "{\"model\":\"m\",\"api_version\":\"1\"}"),
                     RUNG_ECONFIG);
    model_close(&model);
    assert_int_equal(wire_open(&model, "bedrock", "{\"model\":\"m\",\"region\":\"x.evil/\"}"),
                     RUNG_ECONFIG);
    model_close(&model);
}

/* ---- Limits ---- */

static const struct rung_rate_limit *limits_of(struct model *model, const char *headers)
{
    wire_answer(200, headers, fine);
    assert_int_equal(ask_all(model, 0), RUNG_OK);
    return &model->response.limits;
}

static void limits_come_from_headers(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(wire_open(&model, "openai", "{\"model\":\"m\"}"), RUNG_OK);
    const struct rung_rate_limit *l = limits_of(
        &model, "x-ratelimit-limit-requests: 500\nx-ratelimit-remaining-requests: 499\n"
                "x-ratelimit-reset-requests: 20ms\nx-ratelimit-limit-tokens: 30000\n"
                "x-ratelimit-remaining-tokens: 29000\nx-ratelimit-reset-tokens: 6m0.5s\n");
    assert_int_equal(l->requests, 500);
    assert_int_equal(l->requests_left, 499);
    assert_int_equal(l->requests_reset_ms, 20);
    assert_int_equal(l->tokens, 30000);
    assert_int_equal(l->tokens_left, 29000);
    assert_int_equal(l->tokens_reset_ms, 360500);
    l = limits_of(&model,
                  "anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: "
                  "0\nanthropic-ratelimit-requests-reset: 2999-01-01T00:00:00Z\n"
                  "anthropic-ratelimit-input-tokens-limit: 100\n"
                  "anthropic-ratelimit-input-tokens-remaining: 90\n"
                  "anthropic-ratelimit-output-tokens-limit: 100\n"
                  "anthropic-ratelimit-output-tokens-remaining: 10\n"
                  "anthropic-ratelimit-output-tokens-reset: 2001-01-01T00:00:00+01:00\n");
    assert_int_equal(l->requests_left, 0);
    assert_int_equal(l->requests_reset_ms, 1000000000);
    assert_int_equal(l->tokens_left, 10);
    assert_int_equal(l->tokens_reset_ms, 0);
    /* OpenRouter tells milliseconds of the epoch, others seconds from now. */
    l = limits_of(&model, "x-ratelimit-limit: 20\nx-ratelimit-remaining: 3\nx-ratelimit-reset: "
                          "1000000000000\n");
    assert_int_equal(l->requests_left, 3);
    assert_int_equal(l->requests_reset_ms, 0);
    l = limits_of(&model, "ratelimit-limit: 20\nratelimit-remaining: 3\nratelimit-reset: 7\n");
    assert_int_equal(l->requests_reset_ms, 7000);
    l = limits_of(&model, "x-ratelimit-limit-requests: many\nx-ratelimit-reset-requests: soon\n"
                          "x-ratelimit-remaining-tokens: -5\n");
    assert_int_equal(l->requests, -1);
    assert_int_equal(l->requests_reset_ms, -1);
    assert_int_equal(l->tokens_left, -1);
    /* On an error too. */
    wire_answer(429, "x-ratelimit-remaining-requests: 0\nx-request-id: req_9\n", "{}");
    assert_int_equal(ask_all(&model, 0), RUNG_ERATELIMIT);
    assert_int_equal(model.response.limits.requests_left, 0);
    assert_string_equal(model.response.request_id, "req_9");
    assert_int_equal(model.response.tries, 1);
    assert_int_equal(model.response.usage.input, -1);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_parameter_is_left_out_and_stays_out),
        cmocka_unit_test(only_one_repair_and_only_of_what_was_sent),
        cmocka_unit_test(the_system_may_have_to_speak_as_the_user),
        cmocka_unit_test(a_table_says_what_is_left_out),
        cmocka_unit_test(a_later_entry_replaces_a_field),
        cmocka_unit_test(effort_may_be_a_number_of_tokens),
        cmocka_unit_test(thinking_fits_below_the_cap),
        cmocka_unit_test(prompt_and_reply_share_the_context),
        cmocka_unit_test(a_table_that_is_wrong_is_told_by_line),
        cmocka_unit_test(every_dialect_has_its_address_and_its_ways),
        cmocka_unit_test(limits_come_from_headers),
    };
    folder = support_folder();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    support_remove(folder);
    return failed;
}
