/* `rung worker` as a stranger meets it: over pipes, with lines that no orchestrator of ours sends.
 */
#include "worker/harness.h"

#include "worker/line.h"
#include "worker/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rung_worker_pipes worker;
static struct rung_line_in from;

static int setup(void **state)
{
    (void)state;
    struct rung_error err = rung_error_init();
    const char *const argv[] = {harness_main, "worker", NULL};
    signal(SIGPIPE, SIG_IGN);
    setenv("RUNG_PLUGIN_PATH", harness_plugins, 1);
    if (rung_spawn_worker(argv, &worker, &err) != RUNG_OK)
        fail_msg("%s", err.message);
    from = (struct rung_line_in){.fd = worker.from};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int status;
    close(worker.to);
    close(worker.from);
    rung_line_in_free(&from);
    assert_true(harness_gone(worker.pid, 5));
    assert_int_equal(waitpid(worker.pid, &status, 0), worker.pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        fail_msg("the supervisor died with signal %d", WTERMSIG(status));
    return 0;
}

static void tell(const char *line)
{
    if (!rung_write_all(worker.to, line, strlen(line)) || !rung_write_all(worker.to, "\n", 1))
        fail_msg("the worker takes no line");
}

/* The next message that is no heartbeat or log line; NULL when the worker has closed. */
static cJSON *hear(enum rung_message_type *type)
{
    double until = harness_now() + 15;
    const char *line;
    size_t n;
    cJSON *message;
    while (harness_now() < until) {
        while (rung_line_next(&from, &line, &n) == RUNG_LINE_OK) {
            *type = rung_message_parse(line, n, &message);
            assert_int_not_equal(*type, RUNG_MSG_NONE);
            if (*type != RUNG_MSG_BEAT && *type != RUNG_MSG_LOG)
                return message;
            cJSON_Delete(message);
        }
        struct pollfd fd = {worker.from, POLLIN, 0};
        poll(&fd, 1, 100);
        if (rung_line_read(&from) == RUNG_LINE_EOF)
            return NULL;
    }
    fail_msg("the worker says nothing");
    return NULL;
}

static cJSON *hear_type(enum rung_message_type want)
{
    enum rung_message_type type;
    cJSON *message = hear(&type);
    assert_non_null(message);
    if (type != want) {
        char *line = rung_json_line(message);
        fail_msg("instead of message %d: %s", want, line);
    }
    return message;
}

static void expect_refusal(const char *part)
{
    enum rung_message_type type;
    cJSON *message = hear_type(RUNG_MSG_REFUSED);
    support_contains(rung_json_text(message, "message", ""), part);
    cJSON_Delete(message);
    message = hear(&type);
    assert_null(message);
}

static void expect_hello(void)
{
    struct rung_error err = rung_error_init();
    cJSON *hello = hear_type(RUNG_MSG_HELLO);
    assert_int_equal(rung_identity_check(hello, "the worker", &err), RUNG_OK);
    assert_int_equal(rung_json_i64(hello, "pid", 0), worker.pid);
    cJSON_Delete(hello);
}

/* ---- A set-up by hand ---- */

static void add_plugin(cJSON *setup, const char *kind, const char *name)
{
    struct rung_registry *registry = rung_registry_new();
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    char *path, sha256[RUNG_SHA256_HEX];
    if (rung_registry_locate(registry, kind, name, &path, sha256, arena, &err) != RUNG_OK)
        fail_msg("%s", err.message);
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "kind", rung_kind_word(kind));
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddStringToObject(item, "sha256", sha256);
    cJSON_AddItemToArray(cJSON_GetObjectItem(setup, "plugins"), item);
    rung_arena_free(arena);
    rung_registry_free(registry);
}

static cJSON *setup_message(void)
{
    static const char text[] =
        "{\"t\":\"setup\",\"device\":\"null\",\"silence_s\":30,\"limits\":{\"start_s\":20,"
        "\"compile_s\":1,"
        "\"check_s\":1,\"time_s\":1},\"task\":{\"name\":\"copy\",\"dims\":{\"rows\":8},\"tensors\":"
        "["
        "{\"name\":\"x\",\"role\":\"input\",\"dtype\":\"f32\",\"shape\":\"rows\"},"
        "{\"name\":\"y\",\"role\":\"output\",\"dtype\":\"f32\",\"shape\":\"rows\"}],"
        "\"reference\":{\"plugin\":\"zero\",\"graph\":\"y = "
        "x\"},\"bench\":{\"shapes\":[{\"rows\":8}]}},"
        "\"devices\":[{\"plugin\":\"null\"}],\"compiler\":{\"plugin\":\"fake\"},"
        "\"reference\":{\"plugin\":\"zero\"},\"rungs\":[{\"name\":\"marker\",\"plugin\":\"marker\"}"
        "],"
        "\"timers\":[],\"plugin_path\":[],\"plugins\":[]}";
    cJSON *setup_json = rung_json_parse(text, strlen(text));
    assert_non_null(setup_json);
    rung_identity_add(setup_json);
    add_plugin(setup_json, RUNG_KIND_DEVICE, "null");
    add_plugin(setup_json, RUNG_KIND_COMPILER, "fake");
    add_plugin(setup_json, RUNG_KIND_REFERENCE, "zero");
    add_plugin(setup_json, RUNG_KIND_VERIFIER, "marker");
    return setup_json;
}

static void tell_setup(cJSON *message)
{
    char *line = rung_message_line(message);
    tell(line);
    free(line);
}

static void make_ready(void)
{
    expect_hello();
    tell_setup(setup_message());
    cJSON *ready = hear_type(RUNG_MSG_READY);
    assert_string_equal(rung_json_text(rung_json_get(ready, "device"), "plugin", ""), "null");
    assert_int_equal(cJSON_GetArraySize(rung_json_get(ready, "plugins")), 4);
    cJSON_Delete(ready);
}

static const char job[] =
    "{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":3,\"occasions\":1,\"bundle\":{\"language\":"
    "\"cuda\","
    "\"entry\":0,"
    "\"files\":[{\"path\":\"k.cu\",\"text\":\"//@ launch k grid=(1) block=(32) args=(x, y)\\n"
    "// marker: %s\\n\"}]}}";

static void tell_job(const char *marker)
{
    char line[1024];
    snprintf(line, sizeof line, job, marker);
    tell(line);
}

/* ---- Tests ---- */

static void garbage_is_refused_before_the_setup(void **state)
{
    (void)state;
    expect_hello();
    tell("garbage \x1b[2J");
    expect_refusal("no message to a worker");
}

static void a_job_before_the_setup_is_refused(void **state)
{
    (void)state;
    expect_hello();
    tell_job("good");
    expect_refusal("a job");
}

static void a_line_without_end_is_refused(void **state)
{
    (void)state;
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    expect_hello();
    fcntl(worker.to, F_SETFL, fcntl(worker.to, F_GETFL) & ~O_NONBLOCK);
    for (int i = 0; i < 20; i++) /* the worker may be gone before the last one */
        if (write(worker.to, block, sizeof block) < 0)
            break;
    expect_refusal("a line of more than");
}

static void another_version_is_refused(void **state)
{
    (void)state;
    expect_hello();
    cJSON *message = setup_message();
    cJSON_ReplaceItemInObject(message, "version", cJSON_CreateString("7.0.0"));
    tell_setup(message);
    expect_refusal("the orchestrator is rung 7.0.0");
}

static void a_differing_plugin_is_refused(void **state)
{
    (void)state;
    expect_hello();
    cJSON *message = setup_message(),
          *item = cJSON_GetArrayItem(cJSON_GetObjectItem(message, "plugins"), 1);
    cJSON_ReplaceItemInObject(
        item, "sha256",
        cJSON_CreateString("00000000000000000000000000000000000000000000000000000000deadbeef"));
    tell_setup(message);
    expect_refusal("compiler fake: the worker's file");
}

static void wrong_types_in_the_setup_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"task", "devices", "compiler", "reference", "limits"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (i > 0)
            setup(NULL);
        expect_hello();
        cJSON *message = setup_message();
        cJSON_ReplaceItemInObject(message, keys[i], cJSON_CreateNumber(7));
        tell_setup(message);
        expect_refusal("");
        if (i + 1 < sizeof keys / sizeof *keys)
            teardown(NULL);
    }
}

static void broken_chunks_and_jobs_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"t\":\"blob\",\"sha256\":\"ab\",\"offset\":0,\"total\":1,\"data\":\"!\"}",
        "{\"t\":\"job\",\"id\":-1,\"label\":\"l\",\"stages\":1,\"occasions\":1,\"bundle\":{}}",
        "{\"t\":\"job\",\"id\":1,\"label\":7,\"stages\":1,\"occasions\":1,\"bundle\":{}}",
        "{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":99,\"occasions\":1,\"bundle\":{}}",
        "{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":1,\"occasions\":1}",
        ("{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":1,\"occasions\":1,\"bundle_sha256\":"
         "\"zz\"}"),
        ("{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":8,\"occasions\":1,\"bundle\":{},"
         "\"rival\":{\"bundle\":{}}}"),
        ("{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":8,\"occasions\":1,\"bundle\":{},"
         "\"rival\":{\"label\":\"r\",\"point\":7,\"bundle\":{}}}"),
        ("{\"t\":\"job\",\"id\":1,\"label\":\"l\",\"stages\":8,\"occasions\":1,\"bundle\":{},"
         "\"rival\":{\"label\":\"r\"}}"),
        "{\"t\":\"draft\",\"id\":1,\"report\":{}}",
        "{\"t\":\"result\"}",
        "{\"t\":\"ready\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (i > 0)
            setup(NULL);
        make_ready();
        tell(bad[i]);
        expect_refusal("");
        if (i + 1 < sizeof bad / sizeof *bad)
            teardown(NULL);
    }
}

static void a_job_by_hand_is_judged(void **state)
{
    (void)state;
    enum rung_message_type type = RUNG_MSG_NONE;
    cJSON *message = NULL;
    make_ready();
    tell_job("good");
    do {
        cJSON_Delete(message);
        message = hear(&type);
        assert_non_null(message);
    } while (type != RUNG_MSG_RESULT);
    assert_string_equal(rung_json_text(message, "verdict", ""), "accepted");
    cJSON_Delete(message);
}

static void everything_ends_with_the_input(void **state)
{
    (void)state;
    pid_t executor;
    make_ready();
    tell_job("hang");
    cJSON *message = hear_type(RUNG_MSG_STAGE);
    cJSON_Delete(message);
    assert_int_equal(harness_children(worker.pid, &executor, 1), 1);
    close(worker.to);
    assert_true(harness_gone(worker.pid, 2));
    assert_true(harness_gone(executor, 1));
    worker.to = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static void everything_ends_when_nobody_reads(void **state)
{
    (void)state;
    pid_t executor;
    make_ready();
    assert_int_equal(harness_children(worker.pid, &executor, 1), 1);
    close(worker.from);
    assert_true(harness_gone(worker.pid, 3));
    assert_true(harness_gone(executor, 1));
    worker.from = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void a_killed_supervisor_leaves_no_executor(void **state)
{
    (void)state;
    pid_t executor;
    make_ready();
    assert_int_equal(harness_children(worker.pid, &executor, 1), 1);
    kill(worker.pid, SIGKILL);
    assert_true(harness_gone(executor, 2));
}

static void silence_ends_the_worker(void **state)
{
    (void)state;
    expect_hello();
    cJSON *message = setup_message();
    cJSON_ReplaceItemInObject(message, "silence_s", cJSON_CreateNumber(0.5));
    tell_setup(message);
    assert_true(harness_gone(worker.pid, 4));
}

static void an_executor_that_dies_again_and_again_ends_the_worker(void **state)
{
    (void)state;
    pid_t executor = 0, last = 0;
    make_ready();
    for (int i = 0; i < 3; i++) {
        double until = harness_now() + 5;
        while ((harness_children(worker.pid, &executor, 1) == 0 || executor == last) &&
               harness_now() < until)
            usleep(2000);
        last = executor;
        kill(executor, SIGKILL);
    }
    expect_refusal("the executor died 3 times between jobs");
}

int main(void)
{
    rung_log_level(RUNG_LOG_ERROR);
    setenv("RUNG_LOG", "error", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(garbage_is_refused_before_the_setup),
        TEST(a_job_before_the_setup_is_refused),
        TEST(a_line_without_end_is_refused),
        TEST(another_version_is_refused),
        TEST(a_differing_plugin_is_refused),
        TEST(wrong_types_in_the_setup_are_refused),
        TEST(broken_chunks_and_jobs_are_refused),
        TEST(a_job_by_hand_is_judged),
        TEST(everything_ends_with_the_input),
        TEST(everything_ends_when_nobody_reads),
        TEST(a_killed_supervisor_leaves_no_executor),
        TEST(silence_ends_the_worker),
        TEST(an_executor_that_dies_again_and_again_ends_the_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
