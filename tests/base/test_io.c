/* Files: limits, refusal of what is no file, and replacement in one step. */
#include "support/support.h"

#include "base/io.h"
#include "base/status.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void files_are_read_whole_within_the_limit(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "f");
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    struct rung_text text;
    support_write(path, "a\0bc", 4);
    assert_int_equal(rung_read_file(arena, path, 4, &text, &err), RUNG_OK);
    assert_int_equal(text.len, 4);
    assert_memory_equal(text.ptr, "a\0bc", 5);
    assert_int_equal(rung_read_file(arena, path, 3, &text, &err), RUNG_EIO);
    support_contains(err.message, path);
    support_write(path, "", 0);
    assert_int_equal(rung_read_file(arena, path, 4, &text, &err), RUNG_OK);
    assert_int_equal(text.len, 0);
    assert_string_equal(text.ptr, "");
    rung_arena_free(arena);
    free(path);
    support_remove(folder);
}

static void what_is_no_regular_file_is_refused_at_once(void **state)
{
    (void)state;
    char *folder = support_folder(), *fifo = support_path(folder, "fifo");
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    struct rung_text text;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(rung_read_file(arena, fifo, 100, &text, &err), RUNG_EIO);
    assert_int_equal(rung_read_file(arena, folder, 100, &text, &err), RUNG_EIO);
    assert_int_equal(rung_read_file(arena, "/dev/zero", 100, &text, &err), RUNG_EIO);
    rung_arena_free(arena);
    free(fifo);
    support_remove(folder);
}

struct race {
    const char *path;
    atomic_bool done;
};

enum { SIZE = 40000, WRITES = 60 };

static void *write_in_turn(void *arg)
{
    struct race *race = arg;
    char *bytes = malloc(SIZE);
    for (int i = 0; i < WRITES; i++) {
        memset(bytes, 'a' + i % 2, SIZE);
        if (rung_write_file(race->path, bytes, SIZE, NULL) != RUNG_OK)
            break;
    }
    free(bytes);
    atomic_store(&race->done, true);
    return NULL;
}

static void readers_see_the_old_or_the_new_file(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "f");
    struct race race = {.path = path};
    pthread_t writer;
    char first[SIZE];
    memset(first, 'a', SIZE);
    assert_int_equal(rung_write_file(path, first, SIZE, NULL), RUNG_OK);
    assert_int_equal(pthread_create(&writer, NULL, write_in_turn, &race), 0);
    while (!atomic_load(&race.done)) {
        size_t n;
        char *bytes = support_read(path, &n);
        assert_int_equal(n, SIZE);
        for (size_t i = 1; i < n; i++)
            assert_int_equal(bytes[i], bytes[0]);
        free(bytes);
    }
    pthread_join(writer, NULL);
    assert_int_equal(support_count(folder), 1);
    free(path);
    support_remove(folder);
}

static void failed_writes_leave_the_old_file_and_no_litter(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "taken");
    struct rung_error err = rung_error_init();
    assert_int_equal(mkdir(path, 0700), 0);
    char *inside = support_path(path, "keep");
    support_write_text(inside, "kept");
    assert_int_equal(rung_write_file(path, "x", 1, &err), RUNG_EIO);
    support_contains(err.message, path);
    assert_int_equal(support_count(folder), 1);
    char *nowhere = support_path(folder, "no/such/file");
    assert_int_equal(rung_write_file(nowhere, "x", 1, &err), RUNG_EIO);
    free(nowhere);
    free(inside);
    free(path);
    support_remove(folder);
}

static void new_files_obey_the_umask(void **state)
{
    (void)state;
    char *folder = support_folder(), *path = support_path(folder, "f");
    struct stat st;
    mode_t old = umask(027);
    assert_int_equal(rung_write_file(path, "x", 1, NULL), RUNG_OK);
    assert_int_equal(umask(old), 027);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    free(path);
    support_remove(folder);
}

static void folders_are_made_all_the_way(void **state)
{
    (void)state;
    char *folder = support_folder(), *deep = support_path(folder, "a/b//c/");
    struct stat st;
    struct rung_error err = rung_error_init();
    assert_int_equal(rung_make_dirs(deep, &err), RUNG_OK);
    assert_int_equal(rung_make_dirs(deep, &err), RUNG_OK);
    assert_true(stat(deep, &st) == 0 && S_ISDIR(st.st_mode));
    char *file = support_path(folder, "file"), *under = support_path(folder, "file/x");
    support_write_text(file, "");
    assert_int_equal(rung_make_dirs(under, &err), RUNG_EIO);
    free(under);
    free(file);
    free(deep);
    support_remove(folder);
}

static void paths_are_joined(void **state)
{
    (void)state;
    struct rung_arena *arena = rung_arena_new();
    assert_string_equal(rung_path_beside(arena, "/x/a.cfg", "b.cfg"), "/x/b.cfg");
    assert_string_equal(rung_path_beside(arena, "a.cfg", "b.cfg"), "b.cfg");
    assert_string_equal(rung_path_beside(arena, "/x/a.cfg", "/b.cfg"), "/b.cfg");
    assert_string_equal(rung_path_join(arena, "d", "b"), "d/b");
    assert_string_equal(rung_path_join(arena, "d", "/b"), "/b");
    assert_non_null(strstr(rung_exe_path(), "test_base_io"));
    rung_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_whole_within_the_limit),
        cmocka_unit_test(what_is_no_regular_file_is_refused_at_once),
        cmocka_unit_test(readers_see_the_old_or_the_new_file),
        cmocka_unit_test(failed_writes_leave_the_old_file_and_no_litter),
        cmocka_unit_test(new_files_obey_the_umask),
        cmocka_unit_test(folders_are_made_all_the_way),
        cmocka_unit_test(paths_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
