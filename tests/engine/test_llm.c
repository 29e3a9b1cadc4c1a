/* The pure parts of requests: joining pieces, cost, records of ends, shrinking, tools' table. */
#include "base/json.h"
#include "base/status.h"
#include "engine/llm.h"
#include "engine/llm_join.h"
#include "engine/tools.h"
#include "plugin/instance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_joined(const char *text, const char *piece, const char *expected)
{
    struct rung_buf buf = {0};
    rung_buf_puts(&buf, text);
    llm_join(&buf, piece, strlen(piece));
    assert_string_equal(rung_buf_text(&buf), expected);
    rung_buf_free(&buf);
}

static void test_pieces_join_without_duplicates(void **state)
{
    (void)state;
    assert_joined("", "all of it", "all of it");
    assert_joined("int a", "bc = 1;", "int abc = 1;");
    assert_joined("```cuda\nint first = 1;\nint second =", "int second = 2;\n```\n",
                  "```cuda\nint first = 1;\nint second = 2;\n```\n");
    assert_joined("```cuda\nint first = 1;\nint sec", "int first = 1;\nint second = 2;\n```\n",
                  "```cuda\nint first = 1;\nint second = 2;\n```\n");
    /* As short an overlap as this may be chance. */
    assert_joined("```cuda\nint first = 1;\n", "int first = 1;\nint second = 2;\n```\n",
                  "```cuda\nint first = 1;\nint first = 1;\nint second = 2;\n```\n");
    assert_joined("```cuda\n    float total = 0.0f;\n",
                  "    float total = 0.0f;\n    total += x;\n```\n",
                  "```cuda\n    float total = 0.0f;\n    total += x;\n```\n");
}

static void test_a_fence_that_opens_again_is_dropped(void **state)
{
    (void)state;
    assert_joined("```cuda\nint a = ", "```cuda\n1;\n```\n", "```cuda\nint a = 1;\n```\n");
    assert_joined("```cuda\nint a = 1;\n", "\n```cuda\nint b = 2;\n```\n",
                  "```cuda\nint a = 1;\nint b = 2;\n```\n");
    /* Three backticks alone close the block, and outside of one a fence is the reply's own. */
    assert_joined("```cuda\nint a = 1;\n", "```\nDone.", "```cuda\nint a = 1;\n```\nDone.");
    assert_joined("Here it is:\n", "```cuda\nint a;\n```\n", "Here it is:\n```cuda\nint a;\n```\n");
}

static void test_a_piece_that_starts_over_takes_the_place(void **state)
{
    (void)state;
    static const char begin[] =
        "```cuda\n//@ launch k grid=(1) block=(32) args=(x)\n__global__ void k(float *x) {";
    char whole[256];
    snprintf(whole, sizeof whole, "%s x[0] = 1; }\n```\n", begin);
    assert_joined(begin, whole, whole);
}

static void test_cost_by_class(void **state)
{
    (void)state;
    struct rung_price price = {.given = true,
                               .input = 2,
                               .output = 10,
                               .cache_read = 0.5,
                               .cache_write_5m = 2.5,
                               .cache_write_1h = 4};
    struct engine_tokens tokens = {.input = 1000000,
                                   .cache_read = 2000000,
                                   .cache_write_5m = 400000,
                                   .cache_write_1h = 500000,
                                   .output = 100000,
                                   .reasoning = 200000};
    assert_true(engine_cost(&price, &tokens) == 2 + 1 + 1 + 2 + 3);
}

static struct rung_price price_of(struct rung_arena *arena, const char *settings)
{
    struct rung_diags diags = {0};
    struct rung_stage stage = {.plugin = "openai"};
    stage.settings = rung_config_parse(arena, settings, "a test", &diags);
    struct rung_price price = rung_price_find(arena, rung_data_dir(), &stage, &diags);
    assert_int_equal(diags.n, 0);
    rung_diags_free(&diags);
    return price;
}

static void test_a_price_is_of_its_model_and_server(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    struct rung_price p = price_of(arena, "model = \"gpt-6-sol-2026-09-22\";");
    assert_true(p.given && p.input == 2 && p.output == 10 && p.cache_write_1h == 2.5);
    assert_false(price_of(arena, "model = \"gpt-6-sol\"; url = \"http://127.0.0.1:1\";").given);
    assert_false(price_of(arena, "model = \"of-nobody\";").given);
    assert_false(price_of(arena, "model = 7;").given);
    rung_arena_free(arena);
}

static void test_ends_have_one_meaning_each(void **state)
{
    (void)state;
    static const struct {
        int32_t status;
        const char *symbol;
        bool cut;
        uint32_t kind;
    } table[] = {{RUNG_OK, "", false, LLM_ANSWERED},
                 {RUNG_EIO, "http.broken", true, LLM_CUT},
                 {RUNG_EIO, "http.broken", false, LLM_UNSURE},
                 {RUNG_ETIMEOUT, "http.between_events", false, LLM_UNSURE},
                 {RUNG_ETIMEOUT, "http.connect_timeout", false, LLM_TURNED_AWAY},
                 {RUNG_ERATELIMIT, "llm.rate", false, LLM_TURNED_AWAY},
                 {RUNG_EUNAVAILABLE, "llm.overloaded", false, LLM_TURNED_AWAY},
                 {RUNG_EUNAVAILABLE, "http.connect", false, LLM_TURNED_AWAY},
                 {RUNG_EIO, "llm.reply", false, LLM_TURNED_AWAY},
                 {RUNG_EBUDGET, "llm.quota", false, LLM_OUT},
                 {RUNG_ECONFIG, "llm.quota", false, LLM_OUT},
                 {RUNG_ECONFIG, "llm.model", false, LLM_OUT},
                 {RUNG_ECONFIG, "llm.key", false, LLM_NO_KEY},
                 {RUNG_ECONFIG, "http.secret", false, LLM_NO_KEY},
                 {RUNG_ECONFIG, "llm.request", false, LLM_UNFIT},
                 {RUNG_EUNSUPPORTED, "llm.tools", false, LLM_UNFIT}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rung_error err = rung_error_init();
        rung_fail(&err, table[i].status, table[i].symbol, "x");
        assert_int_equal(llm_kind_of(table[i].status, &err, table[i].cut), table[i].kind);
    }
}

static void test_an_end_survives_the_journal(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_stage stage = {.name = "one"};
    struct engine_llm llm = {.stage = &stage};
    const struct rung_part parts[] = {
        {sizeof parts[0], RUNG_PART_OPAQUE, {"sig\n", 4}, NULL, NULL, 0, 0},
        {sizeof parts[0], RUNG_PART_TEXT, {"a \xc3\xa9", 4}, NULL, NULL, 0, 0},
        {sizeof parts[0], RUNG_PART_TOOL_CALL, {"{\"a\":1}", 7}, "id7", "compile", 0, 0}};
    struct llm_end in = {.kind = LLM_ANSWERED,
                         .finish = RUNG_FINISH_TOOL_CALLS,
                         .parts = parts,
                         .n_parts = 3,
                         .usage = {.input = 5, .estimated = 1}},
                   out;
    cJSON *json = llm_end_to_json(&in, &llm);
    assert_string_equal(rung_json_text(json, "billed", ""), "guessed");
    llm_end_from_json(json, arena, &out);
    assert_int_equal(out.kind, LLM_ANSWERED);
    assert_int_equal(out.finish, RUNG_FINISH_TOOL_CALLS);
    assert_int_equal(out.n_parts, 3);
    assert_int_equal(out.parts[0].kind, RUNG_PART_OPAQUE);
    assert_string_equal(out.parts[0].text.ptr, "sig\n");
    assert_string_equal(out.parts[2].id, "id7");
    assert_string_equal(out.parts[2].name, "compile");
    cJSON_Delete(json);
    rung_arena_free(arena);
}

static void test_a_damaged_end_is_one_that_is_lost(void **state)
{
    (void)state;
    static const char *const bad[] = {"{}", "[]", "{\"end\":7,\"parts\":3}",
                                      "{\"end\":\"answered\",\"parts\":[1,{\"kind\":9}]}"};
    struct rung_arena *arena = rung_arena_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct llm_end out;
        cJSON *json = rung_json_parse(bad[i], strlen(bad[i]));
        llm_end_from_json(json, arena, &out);
        assert_int_equal(out.kind, i == 3 ? LLM_ANSWERED : LLM_LOST);
        cJSON_Delete(json);
    }
    rung_arena_free(arena);
}

/* system, task + prompt, then `turns` of reply and repair, each of `bytes`. */
static void long_talk(struct llm_talk *talk, struct rung_arena *arena, uint32_t turns, size_t bytes)
{
    char *text = rung_arena_alloc(arena, bytes + 1, 1);
    memset(text, 'x', bytes);
    struct rung_part *first = RUNG_ARENA_NEW(arena, struct rung_part, 2);
    first[0] = first[1] = (struct rung_part){
        .struct_size = sizeof *first, .kind = RUNG_PART_TEXT, .text = {text, bytes}};
    const struct rung_message begin[2] = {
        engine_message(arena, RUNG_MSG_SYSTEM, text),
        {sizeof(struct rung_message), RUNG_MSG_USER, first, 2, 0}};
    llm_talk_open(talk, arena, begin, 2);
    for (uint32_t i = 0; i < turns; i++) {
        llm_talk_add(talk, engine_message(arena, RUNG_MSG_ASSISTANT, text));
        llm_talk_add(talk, engine_message(arena, RUNG_MSG_USER, text));
    }
}

static void test_a_conversation_shrinks_and_keeps_its_prefix(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct llm_talk talk;
    uint32_t step = 0, steps = 0;
    long_talk(&talk, arena, 20, 50000);
    assert_int_equal(talk.n, 42);
    uint64_t bytes = llm_talk_bytes(talk.messages, talk.n);
    while (llm_talk_shrink(&talk, &step)) {
        uint64_t now = llm_talk_bytes(talk.messages, talk.n);
        assert_true(now < bytes);
        bytes = now;
        steps++;
    }
    assert_int_equal(steps, 5);
    assert_int_equal(talk.n, 4);
    assert_int_equal(talk.messages[0].parts[0].text.len, 50000);
    assert_int_equal(talk.messages[1].parts[0].text.len, 50000);
    assert_true(talk.messages[1].parts[1].text.len < 1000);
    assert_non_null(strstr(talk.messages[3].parts[0].text.ptr, "bytes left out"));
    rung_arena_free(arena);
}

static void test_every_tool_of_the_configuration_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; rung_tool_names[i]; i++) {
        const struct engine_tool *tool = engine_tool_find(rung_tool_names[i]);
        assert_non_null(tool);
        cJSON *schema = rung_json_parse(tool->schema, strlen(tool->schema));
        assert_true(cJSON_IsObject(schema));
        cJSON_Delete(schema);
    }
    assert_null(engine_tool_find("rm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_join_without_duplicates),
        cmocka_unit_test(test_a_fence_that_opens_again_is_dropped),
        cmocka_unit_test(test_a_piece_that_starts_over_takes_the_place),
        cmocka_unit_test(test_cost_by_class),
        cmocka_unit_test(test_a_price_is_of_its_model_and_server),
        cmocka_unit_test(test_ends_have_one_meaning_each),
        cmocka_unit_test(test_an_end_survives_the_journal),
        cmocka_unit_test(test_a_damaged_end_is_one_that_is_lost),
        cmocka_unit_test(test_a_conversation_shrinks_and_keeps_its_prefix),
        cmocka_unit_test(test_every_tool_of_the_configuration_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
