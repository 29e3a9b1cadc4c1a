/*
 * rung.host.program/0: programs that answer, and programs that do everything else. Nothing may be
 * left of any of them: no process, no descriptor.
 */
#include "plugin/instance.h"
#include "worker/harness.h"
#include "worker/process/program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rung_arena *arena;
static struct rung_registry *registry;
static struct rung_instance *instance;
static struct rung_cancel *cancel;
static struct rung_error error;
static struct rung_call call;
static struct rung_program *program;
static size_t descriptors;

static const struct rung_host_program *service(void)
{
    return instance->host->get_extension(instance->host, RUNG_HOST_PROGRAM);
}

static void new_call(double seconds)
{
    error = rung_error_init();
    call = (struct rung_call){
        .struct_size = sizeof call, .arena = arena, .error = &error, .cancel = cancel};
    if (seconds > 0)
        call.deadline_ns = rung_now_ns() + (uint64_t)(seconds * 1e9);
}

static int setup(void **state)
{
    const struct rung_loaded *loaded;
    struct rung_diags diags = {0};
    (void)state;
    arena = rung_arena_new();
    cancel = rung_cancel_new();
    registry = rung_registry_new();
    new_call(0);
    rung_registry_allow_insecure(registry);
    rung_registry_add_dir(registry, harness_plugins);
    if (rung_registry_load(registry, RUNG_KIND_VERIFIER, "marker", &loaded, &error))
        fail_msg("%s", error.message);
    const struct rung_service services[] = {
        {RUNG_HOST_PROGRAM, &rung_program_table, (void *)(uintptr_t)harness_main},
        {NULL, NULL, NULL}};
    const struct rung_options *options =
        rung_options_read(arena, loaded->factory, NULL, NULL, "/", &diags);
    assert_int_equal(rung_instance_new(loaded, options, "marker", "/", services, &instance, &error),
                     RUNG_OK);
    descriptors = harness_descriptors(getpid());
    return 0;
}

static int teardown(void **state)
{
    pid_t children[4];
    (void)state;
    service()->close(instance->host, program);
    program = NULL;
    assert_int_equal(harness_descriptors(getpid()), descriptors);
    assert_int_equal(harness_children(getpid(), children, 4), 0);
    rung_instance_free(instance);
    rung_registry_free(registry);
    rung_cancel_free(cancel);
    rung_arena_free(arena);
    return 0;
}

static void open_as(const char *word)
{
    const char *argv[] = {"python3", PROGRAM, word, NULL};
    const char *extra[] = {"RUNG_TEST=yes=1", "HOME=/nowhere", NULL};
    new_call(20);
    if (service()->open(instance->host, &call, argv, extra, &program))
        fail_msg("%s", error.message);
}

static int32_t ask(const char *line, double seconds, uint64_t max, struct rung_text *answer)
{
    new_call(seconds);
    return service()->exchange(instance->host, &call, program, rung_text_of(line), max, answer);
}

static void expect(const char *line, const char *wanted)
{
    struct rung_text answer;
    if (ask(line, 20, 0, &answer))
        fail_msg("%s: %s", line, error.message);
    assert_string_equal(answer.ptr, wanted);
    assert_int_equal(answer.len, strlen(wanted));
}

static void expect_error(const char *line, double seconds, uint64_t max, int32_t code,
                         const char *symbol, const char *part)
{
    struct rung_text answer;
    assert_int_equal(ask(line, seconds, max, &answer), code);
    assert_int_equal(error.code, code);
    assert_string_equal(error.symbol, symbol);
    support_contains(error.message, part);
    /* And it stays so. */
    assert_int_equal(ask("echo again", 20, 0, &answer), RUNG_EUNAVAILABLE);
}

static void answers_lines(void **state)
{
    struct rung_text answer;
    (void)state;
    open_as("answer");
    expect("echo one", "one");
    expect("echo ", "");
    expect("echo \xc3\xa9 {\"a\": 1}", "\xc3\xa9 {\"a\": 1}");
    expect("env RUNG_TEST", "yes=1");
    expect("env HOME", "/nowhere");
    assert_int_equal(ask("big 20000000", 20, 0, &answer), RUNG_OK);
    assert_int_equal(answer.len, 20000000);
    assert_int_equal(ask("big 1000", 20, 1000, &answer), RUNG_OK);
    assert_int_equal(answer.len, 1000);
    expect("early", "one");
    expect("echo three", "two"); /* the next line that it writes */
}

static void long_questions_reach_it_while_it_writes(void **state)
{
    struct rung_text answer;
    struct rung_buf line = {0};
    (void)state;
    open_as("answer");
    rung_buf_puts(&line, "echo ");
    for (int i = 0; i < 3000000; i++)
        rung_buf_putc(&line, 'q');
    assert_int_equal(ask(rung_buf_text(&line), 20, 0, &answer), RUNG_OK);
    assert_int_equal(answer.len, 3000000);
    rung_buf_free(&line);
    new_call(1);
    assert_int_equal(
        service()->exchange(instance->host, &call, program, rung_text_of("a\nb"), 0, &answer),
        RUNG_EINVAL);
}

static void gets_three_descriptors_and_a_group_of_its_own(void **state)
{
    struct rung_text answer;
    int pid, group, parent;
    (void)state;
    open_as("answer");
    expect("fds", "0 1 2");
    assert_int_equal(ask("group", 20, 0, &answer), RUNG_OK);
    assert_int_equal(sscanf(answer.ptr, "%d %d %d", &pid, &group, &parent), 3);
    assert_int_equal(group, parent);
    assert_int_not_equal(group, getpgrp());
}

static void standard_error_is_kept_and_bounded(void **state)
{
    (void)state;
    open_as("answer");
    expect("stderr 3000000", "done");
    expect_error("exit 9", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "ended with status 9");
    support_contains(error.message, "the last word good bye");
}

static void last_words_are_made_plain(void **state)
{
    (void)state;
    open_as("answer");
    expect_error("escape", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "?[31mred?");
}

static void ends_by_itself(void **state)
{
    (void)state;
    open_as("answer");
    expect_error("kill 11", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "by signal 11");
    service()->close(instance->host, program);
    open_as("dies");
    expect_error("echo x", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "could not start");
    service()->close(instance->host, program);
    open_as("answer");
    expect_error("close_output", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "output");
    service()->close(instance->host, program);
    open_as("answer");
    expect_error("kill_keeper", 20, 0, RUNG_EUNAVAILABLE, "program.ended", "by signal 9");
}

static void limits_hold(void **state)
{
    double begun = harness_now();
    (void)state;
    open_as("answer");
    expect_error("endless", 20, 1 << 20, RUNG_EIO, "program.too_large", "1048576 bytes");
    service()->close(instance->host, program);
    open_as("answer");
    expect_error("big 1001", 20, 1000, RUNG_EIO, "program.too_large", "1000 bytes");
    service()->close(instance->host, program);
    open_as("answer");
    expect_error("unfinished", 0.5, 0, RUNG_ETIMEOUT, "program.deadline", "in time");
    service()->close(instance->host, program);
    open_as("answer");
    expect_error("flood", 0.5, 0, RUNG_ETIMEOUT, "program.deadline", "in time");
    service()->close(instance->host, program);
    open_as("deaf");
    expect_error("hang", 0.5, 0, RUNG_ETIMEOUT, "program.deadline", "in time");
    assert_true(harness_now() - begun < 15);
}

static void a_cancelled_call_kills_it(void **state)
{
    (void)state;
    open_as("answer");
    rung_cancel_request(cancel);
    expect_error("hang", 20, 0, RUNG_ECANCELLED, "program.cancelled", "cancelled");
}

static void close_kills_what_stays(void **state)
{
    double begun = harness_now();
    (void)state;
    open_as("stay");
    expect("echo here", "here");
    service()->close(instance->host, program);
    program = NULL;
    assert_true(harness_now() - begun > 1.9);
    assert_true(harness_now() - begun < 6);
    begun = harness_now();
    open_as("answer");
    service()->close(instance->host, program);
    program = NULL;
    assert_true(harness_now() - begun < 1.9); /* it ends when its input does */
}

static void its_children_end_with_it(void **state)
{
    struct rung_text answer;
    int child, self;
    (void)state;
    open_as("answer");
    assert_int_equal(ask("child", 20, 0, &answer), RUNG_OK);
    assert_int_equal(sscanf(answer.ptr, "%d %d", &child, &self), 2);
    service()->close(instance->host, program);
    program = NULL;
    assert_true(harness_gone(child, 5));
    assert_true(harness_gone(self, 5));
}

/* An executor that is killed with its group, as the supervisor does it. */
static void it_ends_with_its_opener(void **state)
{
    int back[2], child = 0, self = 0;
    (void)state;
    assert_int_equal(pipe(back), 0);
    pid_t opener = fork();
    if (opener == 0) {
        struct rung_text answer;
        setpgid(0, 0);
        open_as("stay");
        if (ask("child", 20, 0, &answer))
            _exit(1);
        (void)!write(back[1], answer.ptr, answer.len + 1);
        for (;;)
            pause();
    }
    char text[64] = "";
    assert_true(read(back[0], text, sizeof text - 1) > 0);
    assert_int_equal(sscanf(text, "%d %d", &child, &self), 2);
    assert_int_equal(kill(child, 0), 0);
    kill(-opener, SIGKILL);
    waitpid(opener, NULL, 0);
    assert_true(harness_gone(child, 5));
    assert_true(harness_gone(self, 5));
    close(back[0]);
    close(back[1]);
}

static void a_missing_program_is_told(void **state)
{
    const char *argv[] = {"no-such-program-of-rung", NULL};
    const char *folder[] = {"/tmp", NULL};
    const char *none[] = {NULL};
    (void)state;
    new_call(20);
    assert_int_equal(service()->open(instance->host, &call, argv, NULL, &program),
                     RUNG_EUNAVAILABLE);
    assert_string_equal(error.symbol, "program.start");
    support_contains(error.message, "no-such-program-of-rung");
    new_call(20);
    assert_int_equal(service()->open(instance->host, &call, folder, NULL, &program),
                     RUNG_EUNAVAILABLE);
    new_call(20);
    assert_int_equal(service()->open(instance->host, &call, none, NULL, &program), RUNG_EINVAL);
    service()->close(instance->host, NULL);
}

/* ---- run_once ---- */

static int32_t run(const char *word, const char *more, struct rung_text input, uint64_t max,
                   double seconds, struct rung_program_result *out)
{
    const char *argv[] = {"python3", PROGRAM, word, more, NULL};
    struct rung_program_run r = {
        .struct_size = sizeof r, .argv = argv, .input = input, .max_output = max};
    *out = (struct rung_program_result){.struct_size = sizeof *out};
    new_call(seconds);
    return service()->run_once(instance->host, &call, &r, out);
}

static void one_run_gives_bytes_and_status(void **state)
{
    static char bytes[500001];
    struct rung_program_result out;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    struct rung_text input = {bytes, sizeof bytes - 1};
    assert_int_equal(run("copy", "5", input, 0, 20, &out), RUNG_OK);
    assert_int_equal(out.status, 5);
    assert_int_equal(out.output.len, input.len);
    assert_memory_equal(out.output.ptr, bytes, input.len);
    assert_string_equal(out.errors.ptr, "copied\n");
    assert_int_equal(run("copy", "0", (struct rung_text){"", 0}, 0, 20, &out), RUNG_OK);
    assert_int_equal(out.status, 0);
    assert_int_equal(out.output.len, 0);
    assert_int_equal(run("dies", NULL, input, 0, 20, &out), RUNG_OK); /* reads nothing */
    assert_int_equal(out.status, 3);
    assert_int_equal(run("stray", NULL, input, 0, 20, &out), RUNG_OK);
    assert_string_equal(out.output.ptr, "done");
}

static void one_run_is_bounded(void **state)
{
    struct rung_program_result out;
    (void)state;
    struct rung_text input = {"0123456789", 10};
    assert_int_equal(run("copy", "0", input, 9, 20, &out), RUNG_EIO);
    assert_string_equal(error.symbol, "program.too_large");
    assert_string_equal(out.output.ptr, "012345678");
    assert_int_equal(run("copy", "0", input, 10, 20, &out), RUNG_OK);
    assert_int_equal(run("deaf", NULL, input, 0, 0.5, &out), RUNG_ETIMEOUT);
    assert_string_equal(error.symbol, "program.deadline");
    assert_int_equal(run("answer", NULL, rung_text_of("echo so far\nhang\n"), 0, 1.5, &out),
                     RUNG_ETIMEOUT);
    assert_string_equal(out.output.ptr, "so far\n");
    out.struct_size = 8;
    new_call(1);
    struct rung_program_run r = {.struct_size = sizeof r};
    assert_int_equal(service()->run_once(instance->host, &call, &r, &out), RUNG_EINVAL);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(answers_lines),
        CASE(long_questions_reach_it_while_it_writes),
        CASE(gets_three_descriptors_and_a_group_of_its_own),
        CASE(standard_error_is_kept_and_bounded),
        CASE(last_words_are_made_plain),
        CASE(ends_by_itself),
        CASE(limits_hold),
        CASE(a_cancelled_call_kills_it),
        CASE(close_kills_what_stays),
        CASE(its_children_end_with_it),
        CASE(it_ends_with_its_opener),
        CASE(a_missing_program_is_told),
        CASE(one_run_gives_bytes_and_status),
        CASE(one_run_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
