/* llm_replay: lookups, prompts that changed, and hostile cassettes. */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "{\"rung_cassette\":1,\"recorded\":\"2026-01-01\",\"through\":\"mailbox\"}\n"
/* printf 'code\nuser\nhello' | sha256sum */
#define HELLO "3cfb527aaf83fcef71766e1cd7b319bc3aa8f1348b686747891323479f5f258c"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = support_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    support_remove(folder);
    return 0;
}

/* Opens a cassette of these bytes. */
static int32_t open_bytes(struct model *model, const void *bytes, size_t n, bool strict)
{
    char options[4096];
    char *path = support_path(folder, "tape.jsonl");
    support_write(path, bytes, n);
    snprintf(options, sizeof options, "{\"cassette\": \"%s\", \"strict\": %s}", path,
             strict ? "true" : "false");
    free(path);
    return model_open(model, "replay", options);
}

static int32_t open_text(struct model *model, const char *text, bool strict)
{
    return open_bytes(model, text, strlen(text), strict);
}

static void a_reply_is_found_by_key(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(
        open_text(&model,
                  HEADER
                  "{\"key\":\"code/12/0\",\"role\":\"code\",\"reply\":\"line\\nzwei \\u00e4\","
                  "\"finish\":\"length\",\"model\":\"m-1\",\"usage\":{\"input\":7,\"output\":3}}\n"
                  "\n{\"key\":\"a\",\"reply\":\"\"}\n{\"key\":\"z\",\"reply\":\"last\"}",
                  true),
        RUNG_OK);
    assert_int_equal(model_ask(&model, "code", "code/12/0", 0, "hello"), RUNG_OK);
    assert_string_equal(model_text(&model), "line\nzwei \xc3\xa4");
    assert_int_equal(model.response.finish, RUNG_FINISH_LENGTH);
    assert_string_equal(model.response.model, "m-1");
    assert_int_equal(model.response.usage.input, 7);
    assert_int_equal(model.response.usage.output, 3);
    assert_int_equal(model.response.usage.reasoning, -1);
    assert_int_equal(model.response.usage.estimated, 0);
    assert_int_equal(model_ask(&model, "code", "z", 0, "hello"), RUNG_OK);
    assert_string_equal(model_text(&model), "last");
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    assert_int_equal(model.response.usage.estimated, 1);
    assert_int_equal(model_ask(&model, "code", "a", 0, "hello"), RUNG_OK);
    assert_string_equal(model_text(&model), "");
    model_close(&model);
}

static void a_missing_key_names_key_and_file(void **state)
{
    (void)state;
    struct model model;
    assert_int_equal(open_text(&model, HEADER, false), RUNG_OK);
    assert_int_equal(model_ask(&model, "code", "code/99/1", 0, "hello"), RUNG_ENOTFOUND);
    support_contains(model.error.message, "code/99/1");
    support_contains(model.error.message, "tape.jsonl");
    model_close(&model);
}

static void the_prompt_hash_is_as_documented(void **state)
{
    (void)state;
    struct model model;
    const char *wrong = HEADER "{\"key\":\"k\",\"reply\":\"r\",\"prompt_sha256\":\"00\"}\n";
    assert_int_equal(open_text(&model, wrong, true), RUNG_OK);
    assert_int_equal(model_ask(&model, "code", "k", 0, "hello"), RUNG_ENOTFOUND);
    support_contains(model.error.message, "another prompt");
    model_close(&model);
    assert_int_equal(open_text(&model, wrong, false), RUNG_OK);
    assert_int_equal(model_ask(&model, "code", "k", 0, "hello"), RUNG_OK);
    model_close(&model);
    const char *right = HEADER "{\"key\":\"k\",\"reply\":\"r\",\"prompt_sha256\":\"" HELLO "\"}\n";
    assert_int_equal(open_text(&model, right, true), RUNG_OK);
    assert_int_equal(model_ask(&model, "code", "k", 0, "hello"), RUNG_OK);
    assert_int_equal(model_ask(&model, "repair", "k", 0, "hello"), RUNG_ENOTFOUND);
    assert_int_equal(model_ask(&model, "code", "k", 0, "hello "), RUNG_ENOTFOUND);
    model_close(&model);
}

static void bad_cassettes_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", ":1: the file is empty"},
        {"\n\n", ":1: the file is empty"},
        {"{\"key\":\"k\",\"reply\":\"r\"}\n", ":1: the first line must be the header"},
        {"{\"rung_cassette\":2}\n", ":1: cassette version 2"},
        {"[1]\n", ":1: not one JSON object"},
        {HEADER "nonsense\n", ":2: not one JSON object"},
        {HEADER "{\"key\":\"k\",\"reply\":\"r\"} trailing\n", ":2: not one JSON object"},
        {HEADER "\n{\"key\":\"k\",\"reply\":\"r\"\n", ":3: not one JSON object"},
        {HEADER "{\"reply\":\"r\"}\n", ":2: \"key\" must be"},
        {HEADER "{\"key\":7,\"reply\":\"r\"}\n", ":2: \"key\" must be"},
        {HEADER "{\"key\":\"\",\"reply\":\"r\"}\n", ":2: \"key\" must be"},
        {HEADER "{\"key\":\"k\"}\n", ":2: \"reply\" of key k"},
        {HEADER "{\"key\":\"k\",\"reply\":\"r\",\"finish\":\"done\"}\n", ":2: \"finish\" of key k"},
        {HEADER "{\"key\":\"k\",\"reply\":\"r\"}\n{\"key\":\"k\",\"reply\":\"s\"}\n",
         ":3: key k stands on line 2"},
        {HEADER "{\"key\":\"k\",\"reply\":\"r\",\"x\":[[[[[[[[[[]]]]]]]]]]}\n",
         ":2: values are nested"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct model model;
        assert_int_equal(open_text(&model, cases[i].text, false), RUNG_ECONFIG);
        support_contains(model.error.message, cases[i].why);
        support_contains(model.error.message, "tape.jsonl");
        model_close(&model);
    }
}

static void binary_and_huge_lines_are_refused(void **state)
{
    (void)state;
    struct model model;
    static const char zero[] = HEADER "{\"key\":\"k\0\",\"reply\":\"r\"}\n";
    assert_int_equal(open_bytes(&model, zero, sizeof zero - 1, false), RUNG_ECONFIG);
    support_contains(model.error.message, ":2: the line holds a NUL");
    model_close(&model);

    const size_t head = strlen(HEADER), size = head + (5 << 20);
    char *big = malloc(size);
    memcpy(big, HEADER, head);
    memset(big + head, '[', size - head);
    assert_int_equal(open_bytes(&model, big, size, false), RUNG_ECONFIG);
    support_contains(model.error.message, ":2: the line is longer");
    model_close(&model);
    assert_int_equal(open_bytes(&model, big, head + 100000, false), RUNG_ECONFIG);
    support_contains(model.error.message, ":2: values are nested");
    model_close(&model);
    free(big);
}

static void cut_cassettes_never_crash(void **state)
{
    (void)state;
    static const char text[] =
        HEADER "{\"key\":\"k\",\"reply\":\"r\\n\",\"usage\":{\"input\":-1e999,\"output\":\"x\"}}\n";
    for (size_t n = 0; n < sizeof text - 1; ++n) {
        struct model model;
        const int32_t status = open_bytes(&model, text, n, false);
        assert_true(status == RUNG_OK || status == RUNG_ECONFIG);
        model_close(&model);
    }
}

static void a_missing_file_or_folder_is_an_error(void **state)
{
    (void)state;
    struct model model;
    char options[4096];
    snprintf(options, sizeof options, "{\"cassette\": \"%s/none.jsonl\"}", folder);
    assert_int_equal(model_open(&model, "replay", options), RUNG_EIO);
    support_contains(model.error.message, "none.jsonl");
    model_close(&model);
    snprintf(options, sizeof options, "{\"cassette\": \"%s\"}", folder);
    assert_int_equal(model_open(&model, "replay", options), RUNG_EIO);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_found_by_key),
        cmocka_unit_test(a_missing_key_names_key_and_file),
        cmocka_unit_test(the_prompt_hash_is_as_documented),
        cmocka_unit_test(bad_cassettes_are_refused_with_their_line),
        cmocka_unit_test(binary_and_huge_lines_are_refused),
        cmocka_unit_test(cut_cassettes_never_crash),
        cmocka_unit_test(a_missing_file_or_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
