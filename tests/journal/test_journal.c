/* The journal: records are there whole or not at all, and every kind of bad file is told apart. */
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "journal/journal.h"
#include "journal/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    struct rung_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/rung-journal-XXXXXX");
    f->err = rung_error_init();
    *state = f;
    return mkdtemp(f->dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    struct fixture *f = *state;
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    int failed = system(command);
    free(f);
    return failed;
}

static struct rung_journal *open_ok(struct fixture *f, enum rung_journal_mode mode)
{
    struct rung_journal *j = NULL;
    if (rung_journal_open(f->dir, mode, &j, &f->err))
        fail_msg("%s", f->err.message);
    return j;
}

static void append(struct fixture *f, struct rung_journal *j, const char *type, const char *key,
                   int value)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "value", value);
    assert_int_equal(rung_journal_append(j, type, key, json, NULL, &f->err), RUNG_OK);
    cJSON_Delete(json);
}

static int value_of(struct rung_journal *j, const char *type, const char *key)
{
    cJSON *json = rung_journal_find(j, type, key, NULL);
    int v = (int)rung_json_i64(json, "value", -1);
    cJSON_Delete(json);
    return v;
}

static void test_records_come_back_after_reopening(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE);
    append(f, j, "variant", "1/0/first", 7);
    append(f, j, "idea", "1", 8);
    rung_journal_close(j);
    j = open_ok(f, RUNG_JOURNAL_RESUME);
    assert_int_equal(value_of(j, "variant", "1/0/first"), 7);
    assert_int_equal(value_of(j, "idea", "1"), 8);
    assert_int_equal(value_of(j, "idea", "2"), -1);
    assert_int_equal(rung_journal_count(j, "idea"), 1);
    rung_journal_close(j);
}

static void test_a_step_is_recorded_once(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE);
    append(f, j, "reply", "code/1/0", 1);
    cJSON *json = cJSON_CreateObject();
    assert_int_equal(rung_journal_append(j, "reply", "code/1/0", json, NULL, &f->err), RUNG_EINVAL);
    assert_non_null(strstr(f->err.message, "recorded already"));
    cJSON_Delete(json);
    assert_int_equal(value_of(j, "reply", "code/1/0"), 1);
    rung_journal_close(j);
}

static bool collect(void *ctx, const struct rung_record *r)
{
    uint64_t *last = ctx;
    assert_true(r->seq > *last);
    *last = r->seq;
    return true;
}

static void test_sequence_numbers_grow(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE);
    char key[16];
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        append(f, j, i % 2 ? "a" : "b", key, i);
    }
    assert_int_equal(rung_journal_each(j, NULL, 0, collect, &last, &f->err), RUNG_OK);
    assert_int_equal(last, 100);
    rung_journal_close(j);
}

static void test_a_second_writer_is_told_so_and_a_reader_reads(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE), *other = NULL;
    append(f, j, "idea", "1", 5);
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &other, &f->err),
                     RUNG_EUNAVAILABLE);
    assert_non_null(strstr(f->err.message, "another process is writing"));
    other = open_ok(f, RUNG_JOURNAL_READ);
    assert_int_equal(value_of(other, "idea", "1"), 5);
    append(f, j, "idea", "2", 6);
    assert_int_equal(value_of(other, "idea", "2"), 6);
    rung_journal_close(other);
    rung_journal_close(j);
}

static void test_a_folder_with_a_run_is_not_started_over(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = NULL;
    rung_journal_close(open_ok(f, RUNG_JOURNAL_CREATE));
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_CREATE, &j, &f->err), RUNG_EINVAL);
    assert_non_null(strstr(f->err.message, "--resume"));
}

static void test_no_run_here(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = NULL;
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &j, &f->err), RUNG_ENOTFOUND);
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_READ, &j, &f->err), RUNG_ENOTFOUND);
}

static void test_a_newer_journal_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = NULL;
    char path[128], sql[64];
    sqlite3 *db;
    rung_journal_close(open_ok(f, RUNG_JOURNAL_CREATE));
    snprintf(path, sizeof path, "%s/journal.db", f->dir);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", JOURNAL_VERSION + 1);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &j, &f->err),
                     RUNG_EUNSUPPORTED);
    assert_non_null(strstr(f->err.message, "newer rung"));
}

static void write_db(struct fixture *f, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/journal.db", f->dir);
    assert_int_equal(rung_write_file(path, bytes, n, &f->err), RUNG_OK);
}

static void test_a_file_that_is_no_journal(void **state)
{
    struct fixture *f = *state;
    struct rung_journal *j = NULL;
    char junk[8192];
    memset(junk, 'x', sizeof junk);
    write_db(f, junk, sizeof junk);
    assert_int_equal(rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &j, &f->err), RUNG_EIO);
    assert_non_null(strstr(f->err.message, "no journal"));
    write_db(f, "", 0);
    assert_int_not_equal(rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &j, &f->err), RUNG_OK);
    assert_non_null(strstr(f->err.message, f->dir));
}

static bool count_visit(void *ctx, const struct rung_record *r)
{
    (void)r;
    ++*(uint64_t *)ctx;
    return true;
}

/* Cut at every eighth of its length: an error or fewer records, never a crash or made-up ones. */
static void test_a_truncated_journal(void **state)
{
    struct fixture *f = *state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_text whole;
    char path[128], key[16];
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE);
    for (int i = 0; i < 400; i++) {
        snprintf(key, sizeof key, "%d", i);
        append(f, j, "variant", key, i);
    }
    rung_journal_close(j);
    snprintf(path, sizeof path, "%s/journal.db", f->dir);
    assert_int_equal(rung_read_file(arena, path, 1 << 24, &whole, &f->err), RUNG_OK);
    for (size_t cut = 1; cut < 8; cut++) {
        uint64_t n = 0;
        write_db(f, whole.ptr, whole.len * cut / 8);
        j = NULL;
        if (rung_journal_open(f->dir, RUNG_JOURNAL_RESUME, &j, &f->err))
            continue;
        int32_t status = rung_journal_each(j, NULL, 0, count_visit, &n, &f->err);
        assert_true(status != RUNG_OK || n <= 400);
        rung_journal_close(j);
    }
    rung_arena_free(arena);
}

/* The writer is killed while it appends; what it had announced as committed must be there. */
static void test_kill_loses_nothing_committed(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 10; round++) {
        char sub[128];
        int fds[2];
        snprintf(sub, sizeof sub, "%s/%d", f->dir, round);
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct rung_journal *j = NULL;
            if (rung_journal_open(sub, RUNG_JOURNAL_CREATE, &j, &f->err))
                _exit(1);
            for (int i = 0;; i++) {
                char key[16];
                snprintf(key, sizeof key, "%d", i);
                append(f, j, "variant", key, i);
                if (write(fds[1], &i, sizeof i) != sizeof i)
                    _exit(1);
            }
        }
        int last = -1;
        close(fds[1]);
        for (int i = 0; i < 20 + round * 7; i++)
            assert_int_equal(read(fds[0], &last, sizeof last), sizeof last);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (read(fds[0], &last, sizeof last) == sizeof last)
            ;
        close(fds[0]);
        struct rung_journal *j = NULL;
        assert_int_equal(rung_journal_open(sub, RUNG_JOURNAL_RESUME, &j, &f->err), RUNG_OK);
        uint64_t n = rung_journal_count(j, "variant");
        assert_true(n >= (uint64_t)last + 1 && n <= (uint64_t)last + 2);
        rung_journal_close(j);
    }
}

static void test_artifacts_are_checked(void **state)
{
    struct fixture *f = *state;
    struct rung_arena *arena = rung_arena_new();
    struct rung_text back;
    char sha[RUNG_SHA256_HEX], path[256];
    struct rung_journal *j = open_ok(f, RUNG_JOURNAL_CREATE);
    rung_sha256("kernel", 6, sha);
    assert_int_equal(rung_journal_store(j, sha, "kernel", 6, &f->err), RUNG_OK);
    assert_int_equal(rung_journal_store(j, sha, "kernel", 6, &f->err), RUNG_OK);
    assert_int_equal(rung_journal_artifact(j, sha, arena, &back, &f->err), RUNG_OK);
    assert_string_equal(back.ptr, "kernel");
    snprintf(path, sizeof path, "%s/artifacts/%s", f->dir, sha);
    assert_int_equal(rung_write_file(path, "forged", 6, &f->err), RUNG_OK);
    assert_int_equal(rung_journal_artifact(j, sha, arena, &back, &f->err), RUNG_EIO);
    assert_int_equal(rung_journal_store(j, "../../etc/passwd", "x", 1, &f->err), RUNG_EINVAL);
    rung_journal_close(j);
    rung_arena_free(arena);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_records_come_back_after_reopening),
        TEST(test_a_step_is_recorded_once),
        TEST(test_sequence_numbers_grow),
        TEST(test_a_second_writer_is_told_so_and_a_reader_reads),
        TEST(test_a_folder_with_a_run_is_not_started_over),
        TEST(test_no_run_here),
        TEST(test_a_newer_journal_is_refused),
        TEST(test_a_file_that_is_no_journal),
        TEST(test_a_truncated_journal),
        TEST(test_kill_loses_nothing_committed),
        TEST(test_artifacts_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
