/* Bundles survive JSON, and hostile ones are refused. */
#include "task/task_common.h"

#include "base/json.h"
#include "base/status.h"
#include "task/plan.h"

#include <stdlib.h>
#include <string.h>

static void bundles_survive(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    struct rung_file files[] = {{.path = "k.cu", .text = rung_text_of("int \"a\";\n\tb \xc3\xa9")},
                                {.path = "inc/h-1.cuh", .text = rung_text_of("")}};
    struct rung_bundle bundle = {.n_files = 2, .language = "cuda", .files = files, .entry = 1};
    cJSON *json = rung_bundle_to_json(&bundle);
    char *line = rung_json_line(json);
    cJSON *again = rung_json_parse(line, strlen(line));
    const struct rung_bundle *back = rung_bundle_from_json(arena, again, &err);
    if (!back)
        fail_msg("%s", err.message);
    assert_int_equal(back->n_files, 2);
    assert_int_equal(back->entry, 1);
    assert_string_equal(back->language, "cuda");
    assert_string_equal(back->files[0].text.ptr, files[0].text.ptr);
    assert_string_equal(back->files[1].path, "inc/h-1.cuh");
    assert_int_equal(back->files[1].text.len, 0);
    cJSON_Delete(json);
    cJSON_Delete(again);
    free(line);
    rung_arena_free(arena);
}

static void hostile_bundles_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "5",
        "{\"language\":\"cuda\",\"files\":[]}",
        "{\"language\":\"cuda\",\"files\":{}}",
        "{\"files\":[{\"path\":\"a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[5]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"a\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"/a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"../a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"a/../b\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"a/\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"./a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"a b\",\"text\":\"\"}]}",
        ("{\"language\":\"cuda\",\"files\":[{\"path\":\"a\",\"text\":\"\"},"
         "{\"path\":\"a\",\"text\":\"\"}]}"),
        "{\"language\":\"cuda\",\"entry\":1,\"files\":[{\"path\":\"a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"entry\":-1,\"files\":[{\"path\":\"a\",\"text\":\"\"}]}",
        "{\"language\":\"cuda\",\"files\":[{\"path\":\"a\",\"text\":\"\xff\"}]}"};
    struct rung_arena *arena = rung_arena_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rung_error err = rung_error_init();
        cJSON *json = rung_json_parse(bad[i], strlen(bad[i]));
        if (rung_bundle_from_json(arena, json, &err))
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(err.code, RUNG_EINVAL);
        cJSON_Delete(json);
    }
    rung_arena_free(arena);
}

static void large_bundles_are_refused(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    size_t n = (4 << 20) + 1;
    char *text = malloc(n + 1);
    memset(text, 'a', n);
    text[n] = 0;
    struct rung_file file = {.path = "k.cu", .text = {text, n}};
    struct rung_bundle bundle = {.n_files = 1, .language = "cuda", .files = &file};
    cJSON *json = rung_bundle_to_json(&bundle);
    assert_null(rung_bundle_from_json(arena, json, &err));
    support_contains(err.message, "4 MiB");
    cJSON_Delete(json);
    free(text);
    rung_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundles_survive),
        cmocka_unit_test(hostile_bundles_are_refused),
        cmocka_unit_test(large_bundles_are_refused),
    };
    return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
