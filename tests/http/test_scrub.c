/* Secrets in bytes, at every split. */
#include "http/scrub.h"
#include "support/support.h"

#include <string.h>

/* Feeds text in pieces of `step` bytes. */
static void scrub_in(struct rung_scrub *scrub, const char *text, size_t step, struct rung_buf *out)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i += step)
        rung_scrub_feed(scrub, text + i, n - i < step ? n - i : step, out);
    rung_scrub_end(scrub, out);
    rung_scrub_free(scrub);
}

static void expect(struct rung_scrub base, const char *text, const char *clean)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        struct rung_scrub scrub = base;
        struct rung_buf out = {0};
        scrub_in(&scrub, text, step, &out);
        assert_string_equal(rung_buf_text(&out), clean);
        rung_buf_free(&out);
    }
    struct rung_buf whole = {0};
    rung_scrub_text(&base, text, strlen(text), &whole);
    assert_string_equal(rung_buf_text(&whole), clean);
    rung_buf_free(&whole);
}

static void secrets_vanish_at_every_split(void **state)
{
    (void)state;
    struct rung_scrub one = {.secrets = {"aabaac"}, .n = 1};
    expect(one, "aabaac", "***");
    expect(one, "x aabaac y aabaacaabaac", "x *** y ******");
    expect(one, "aabaabaac", "aab***");
    expect(one, "aabaa", "aabaa");
    expect(one, "nothing here", "nothing here");
}

static void the_longest_of_several_counts(void **state)
{
    (void)state;
    struct rung_scrub two = {.secrets = {"abcd", "abcdefgh"}, .n = 2};
    expect(two, "abcdefgh", "***");
    expect(two, "abcdefg", "***efg");
    expect(two, "abcdabcdefgh", "******");
    two = (struct rung_scrub){.secrets = {"abcdefgh", "abcd"}, .n = 2};
    expect(two, "abcdefg", "***efg");
    expect(two, "abcdefgh!", "***!");
}

static void without_secrets_all_passes_at_once(void **state)
{
    (void)state;
    struct rung_scrub none = {.n = 0};
    struct rung_buf out = {0};
    rung_scrub_feed(&none, "ab", 2, &out);
    assert_string_equal(rung_buf_text(&out), "ab");
    rung_buf_free(&out);
}

/* Streams are not delayed: only what may begin a secret waits. */
static void only_the_begin_of_a_secret_is_held(void **state)
{
    (void)state;
    struct rung_scrub one = {.secrets = {"sk-12345"}, .n = 1};
    struct rung_buf out = {0};
    rung_scrub_feed(&one, "data: hi\n\nsk-1", 14, &out);
    assert_string_equal(rung_buf_text(&out), "data: hi\n\n");
    rung_scrub_feed(&one, "x", 1, &out);
    assert_string_equal(rung_buf_text(&out), "data: hi\n\nsk-1x");
    rung_scrub_free(&one);
    rung_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_vanish_at_every_split),
        cmocka_unit_test(the_longest_of_several_counts),
        cmocka_unit_test(without_secrets_all_passes_at_once),
        cmocka_unit_test(only_the_begin_of_a_secret_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
