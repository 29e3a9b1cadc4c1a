/* llm_mailbox: prompts go out, replies come in, waiting ends when it should. */
#include "harness.h"
#include "base/io.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static void open_mailbox(struct model *model, const char *more)
{
    char options[4096];
    snprintf(options, sizeof options, "{\"dir\": \"%s\", \"poll\": \"20ms\"%s}", folder, more);
    assert_int_equal(model_open(model, "mailbox", options), RUNG_OK);
}

static void put(const char *name, const char *text)
{
    char *path = support_path(folder, name);
    support_write_text(path, text);
    free(path);
}

static char *get(const char *name)
{
    char *path = support_path(folder, name);
    char *text = support_read(path, NULL);
    free(path);
    return text;
}

static bool exists(const char *name)
{
    char *path = support_path(folder, name);
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void sleep_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static double seconds_since(uint64_t begin)
{
    return (double)(rung_now_ns() - begin) * 1e-9;
}

/* A partial file first, then the whole one under the name that counts. */
static void *answer_later(void *ctx)
{
    (void)ctx;
    while (!exists("code_3_1.json"))
        sleep_ms(5);
    put("code_3_1.reply.md.tmp", "half of");
    sleep_ms(100);
    put("code_3_1.reply.md.tmp", "all of it");
    char *from = support_path(folder, "code_3_1.reply.md.tmp");
    char *to = support_path(folder, "code_3_1.reply.md");
    const int renamed = rename(from, to);
    free(from);
    free(to);
    return renamed == 0 ? NULL : "rename failed";
}

static void a_reply_that_comes_later_is_taken(void **state)
{
    (void)state;
    struct model model;
    pthread_t thread;
    void *problem = NULL;
    open_mailbox(&model, "");
    assert_int_equal(pthread_create(&thread, NULL, answer_later, NULL), 0);
    assert_int_equal(model_ask(&model, "code", "code/3/1", 0, "Write it."), RUNG_OK);
    assert_string_equal(model_text(&model), "all of it");
    pthread_join(thread, &problem);
    assert_null(problem);
    char *prompt = get("code_3_1.prompt.md"), *note = get("code_3_1.json");
    assert_string_equal(prompt, "# user\n\nWrite it.\n");
    support_contains(note, "\"key\":\"code/3/1\"");
    support_contains(note, "\"role\":\"code\"");
    support_contains(note, "\"prompt_sha256\":\"");
    assert_false(exists("code_3_1.prompt.md.tmp"));
    free(prompt);
    free(note);
    model_close(&model);
}

static void a_reply_that_is_there_is_used_at_once(void **state)
{
    (void)state;
    struct model model;
    open_mailbox(&model, "");
    put("ideas_1_0.reply.md", "- [memory] Old idea.");
    assert_int_equal(model_ask(&model, "ideas", "ideas/1/0", 0, "Think."), RUNG_OK);
    assert_string_equal(model_text(&model), "- [memory] Old idea.");
    assert_false(exists("ideas_1_0.prompt.md"));
    model_close(&model);
}

static void waiting_ends_at_the_timeout(void **state)
{
    (void)state;
    struct model model;
    open_mailbox(&model, ", \"timeout\": \"300ms\"");
    const uint64_t begin = rung_now_ns();
    assert_int_equal(model_ask(&model, "code", "code/4/0", 0, "x"), RUNG_ETIMEOUT);
    assert_true(seconds_since(begin) >= 0.3 && seconds_since(begin) < 2.0);
    support_contains(model.error.message, "code_4_0.reply.md");
    model_close(&model);
}

static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    struct model model;
    open_mailbox(&model, "");
    const uint64_t begin = rung_now_ns();
    model.deadline_ns = begin + 200000000u;
    assert_int_equal(model_ask(&model, "code", "code/5/0", 0, "x"), RUNG_ETIMEOUT);
    assert_true(seconds_since(begin) >= 0.2 && seconds_since(begin) < 2.0);
    model_close(&model);
}

static void *cancel_soon(void *ctx)
{
    sleep_ms(150);
    rung_cancel_request(ctx);
    return NULL;
}

static void waiting_ends_when_cancelled(void **state)
{
    (void)state;
    struct model model;
    pthread_t thread;
    char options[4096];
    /* A slow poll must not delay it. */
    snprintf(options, sizeof options, "{\"dir\": \"%s\", \"poll\": \"60s\"}", folder);
    assert_int_equal(model_open(&model, "mailbox", options), RUNG_OK);
    const uint64_t begin = rung_now_ns();
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, model.cancel), 0);
    assert_int_equal(model_ask(&model, "code", "code/6/0", 0, "x"), RUNG_ECANCELLED);
    assert_true(seconds_since(begin) < 0.15 + 1.0);
    pthread_join(thread, NULL);
    model_close(&model);
}

static void keys_can_not_leave_the_folder(void **state)
{
    (void)state;
    struct model model;
    open_mailbox(&model, ", \"timeout\": \"1s\"");
    static const char *const bad[] = {"../x", "/etc/x", ".hidden", "a b", "a\nb", "a\\b", "a\"b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        assert_int_equal(model_ask(&model, "code", bad[i], 0, "x"), RUNG_EINVAL);
    char longer[300];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(model_ask(&model, "code", longer, 0, "x"), RUNG_EINVAL);
    /* a/b and a_b are two keys. */
    put("a_b.reply.md", "slash");
    put("a__b.reply.md", "underscore");
    assert_int_equal(model_ask(&model, "code", "a/b", 0, "x"), RUNG_OK);
    assert_string_equal(model_text(&model), "slash");
    assert_int_equal(model_ask(&model, "code", "a_b", 0, "x"), RUNG_OK);
    assert_string_equal(model_text(&model), "underscore");
    model_close(&model);
}

static void replies_are_bounded_and_plain_files(void **state)
{
    (void)state;
    struct model model;
    open_mailbox(&model, "");
    const size_t size = (1 << 20) + 1;
    char *big = malloc(size);
    memset(big, 'x', size);
    char *path = support_path(folder, "big_0.reply.md");
    support_write(path, big, size);
    assert_int_equal(model_ask(&model, "code", "big/0", 0, "x"), RUNG_EIO);
    support_contains(model.error.message, "too large");
    support_write(path, big, size - 1);
    assert_int_equal(model_ask(&model, "code", "big/0", 0, "x"), RUNG_OK);
    assert_int_equal(model.response.parts[0].text.len, size - 1);
    free(path);
    free(big);
    path = support_path(folder, "link_0.reply.md");
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(model_ask(&model, "code", "link/0", 0, "x"), RUNG_EIO);
    free(path);
    model_close(&model);
}

static void a_folder_is_made_and_must_be_writable(void **state)
{
    (void)state;
    struct model model;
    char options[4096];
    snprintf(options, sizeof options, "{\"dir\": \"%s/new\"}", folder);
    assert_int_equal(model_open(&model, "mailbox", options), RUNG_OK);
    assert_true(exists("new"));
    model_close(&model);
    put("file", "");
    snprintf(options, sizeof options, "{\"dir\": \"%s/file\"}", folder);
    assert_int_equal(model_open(&model, "mailbox", options), RUNG_EIO);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_that_comes_later_is_taken),
        cmocka_unit_test(a_reply_that_is_there_is_used_at_once),
        cmocka_unit_test(waiting_ends_at_the_timeout),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(waiting_ends_when_cancelled),
        cmocka_unit_test(keys_can_not_leave_the_folder),
        cmocka_unit_test(replies_are_bounded_and_plain_files),
        cmocka_unit_test(a_folder_is_made_and_must_be_writable),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
