/* Kernels of the core's own: compiled once, kept in memory and on disk, and never trusted blindly.
 */
#include "session/gpu/rig.h"

#include "base/hash.h"
#include "base/status.h"
#include "worker/kernel_cache.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rig rig;
static const char source[] =
    "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"
    "template <int N> __global__ void add(int *x) { x[0] += N; }\n";
static const char *const names[] = {"add<3>", "twice", NULL};

static int32_t load(struct rung_kernels *kernels, const char *text)
{
    const struct rung_artifact *artifact;
    struct rung_module *module;
    rig.error = rung_error_init();
    int32_t status = rung_kernels_load(kernels, &rig.call, "kernels of the test",
                                       rung_text_of(text), names, &artifact, &module);
    if (status != RUNG_OK)
        return status;
    assert_int_equal(artifact->n_kernels, 2);
    assert_string_equal(artifact->kernels[0].expression, "add<3>");
    assert_string_equal(artifact->kernels[1].symbol, "twice");
    assert_int_equal(artifact->kernels[1].param_bytes, 8);
    ((const struct rung_device_ops *)rig.device->ops)->unload(rig.device->self, module);
    return RUNG_OK;
}

/* As a process that starts anew. */
static void load_afresh(void)
{
    struct rung_kernels other = {.compiler = rig.compiler, .device = rig.device, .info = &rig.info};
    rung_kernels_open(&other);
    rig_good(&rig, load(&other, source));
    rung_kernels_close(&other);
}

/* The one file in the folder, and what the system says of it. */
static char *the_file(struct stat *info)
{
    char *path = NULL;
    DIR *dir = opendir(rig.kernels.folder);
    struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            assert_null(path);
            path = support_path(rig.kernels.folder, entry->d_name);
        }
    closedir(dir);
    assert_non_null(path);
    assert_int_equal(lstat(path, info), 0);
    return path;
}

static void kept_on_disk_for_this_user_alone(void **state)
{
    (void)state;
    struct stat first, again;
    rig_good(&rig, load(&rig.kernels, source));
    char *path = the_file(&first);
    assert_int_equal(first.st_mode & 07777, 0600);
    assert_int_equal(stat(rig.kernels.folder, &again), 0);
    assert_int_equal(again.st_mode & 07777, 0700);
    rig_good(&rig, load(&rig.kernels, source));
    load_afresh();
    free(path);
    path = the_file(&again);
    assert_int_equal(again.st_ino, first.st_ino);
    assert_int_equal(again.st_mtim.tv_nsec, first.st_mtim.tv_nsec);
    free(path);
}

/* Spoils the file, loads, and finds another file in its place. */
static void spoil(void (*how)(const char *path))
{
    struct stat before, after;
    char *path = the_file(&before);
    how(path);
    assert_int_equal(lstat(path, &before), 0);
    load_afresh();
    assert_int_equal(lstat(path, &after), 0);
    assert_true(S_ISREG(after.st_mode) && (after.st_mode & 07777) == 0600);
    assert_true(after.st_ino != before.st_ino);
    free(path);
}

static void cut_short(const char *path)
{
    assert_int_equal(truncate(path, 200), 0);
}

static void flip_a_byte(const char *path)
{
    size_t n;
    char *bytes = support_read(path, &n);
    bytes[n / 2] ^= 1;
    support_write(path, bytes, n);
    free(bytes);
}

static void let_others_write(const char *path)
{
    assert_int_equal(chmod(path, 0620), 0);
}

static void put_a_link(const char *path)
{
    char *moved = support_path(rig.cache, "moved");
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    free(moved);
}

static void empty_it(const char *path)
{
    support_write(path, "", 0);
}

static void faults_in_the_file_compile_anew(void **state)
{
    (void)state;
    spoil(cut_short);
    spoil(flip_a_byte);
    spoil(let_others_write);
    spoil(put_a_link);
    spoil(empty_it);
}

static void without_a_folder_it_just_compiles(void **state)
{
    (void)state;
    char *cache = strdup(getenv("XDG_CACHE_HOME"));
    setenv("XDG_CACHE_HOME", "/proc/no/such", 1);
    load_afresh();
    char *open_folder = support_folder();
    setenv("XDG_CACHE_HOME", open_folder, 1);
    char *parent = support_path(open_folder, "rung"),
         *folder = support_path(open_folder, "rung/kernels");
    assert_int_equal(mkdir(parent, 0700) | mkdir(folder, 0755), 0);
    load_afresh();
    assert_int_equal(support_count(folder), 0);
    setenv("XDG_CACHE_HOME", cache, 1);
    free(parent);
    free(folder);
    support_remove(open_folder);
    free(cache);
}

static void what_does_not_compile_is_said(void **state)
{
    (void)state;
    assert_int_equal(load(&rig.kernels, "__global__ void twice(nonsense *x) {}"),
                     RUNG_EUNSUPPORTED);
    support_contains(rig.error.message, "nonsense");
    struct rung_kernels early = {.info = &rig.info};
    rung_kernels_open(&early);
    assert_int_equal(load(&early, source), RUNG_EUNAVAILABLE);
    rung_kernels_close(&early);
}

static const struct rung_artifact *unpack(const char *json, const char *codes)
{
    struct rung_buf body = {0}, all = {0};
    char sum[RUNG_SHA256_HEX];
    rung_buf_printf(&body, "%s\n%s", json, codes);
    rung_sha256(body.ptr, body.len, sum);
    rung_buf_printf(&all, "%s\n%s", sum, body.ptr);
    const struct rung_artifact *artifact =
        rung_kernel_unpack(rig.arena, (struct rung_text){all.ptr, all.len}, names);
    rung_buf_free(&body);
    rung_buf_free(&all);
    return artifact;
}

/* A right checksum over nonsense. */
static void hostile_blocks(void **state)
{
    (void)state;
#define TWICE                                                                                      \
    "{\"expression\":\"twice\",\"symbol\":\"twice\",\"param_bytes\":8,\"params\":[[1,0,8,8]]}"
#define ADD "{\"expression\":\"add<3>\",\"symbol\":\"_Z3addILi3EEvPi\",\"params\":[]}"
#define CODES "\"codes\":[{\"format\":1,\"arch\":\"compute_90\",\"bytes\":4}]"
    assert_non_null(unpack("{\"kernels\":[" TWICE "," ADD "]," CODES "}", "code"));
    assert_null(unpack("{\"kernels\":[" TWICE "]," CODES "}", "code"));
    assert_null(unpack("{\"kernels\":[" TWICE "," ADD "]," CODES "}", "cod"));
    assert_null(unpack("{\"kernels\":[" TWICE "," ADD "]," CODES "}", "codes"));
    assert_null(unpack("{\"kernels\":[" TWICE "," ADD "]}", ""));
    assert_null(unpack("{\"kernels\":[" TWICE "," ADD "],\"codes\":[{\"bytes\":-4}]}", "code"));
    assert_null(unpack("{\"kernels\":[" TWICE ",{\"expression\":\"add<3>\"}]," CODES "}", "code"));
    assert_null(unpack("{\"kernels\":[" TWICE ",{\"expression\":\"add<3>\",\"symbol\":\"s\","
                       "\"params\":[[1,2,3,-4]]}]," CODES "}",
                       "code"));
    assert_null(unpack("[]", ""));
    assert_null(unpack("", ""));
    assert_null(rung_kernel_unpack(rig.arena, rung_text_of("short"), names));
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_on_disk_for_this_user_alone),
        cmocka_unit_test(faults_in_the_file_compile_anew),
        cmocka_unit_test(without_a_folder_it_just_compiles),
        cmocka_unit_test(what_does_not_compile_is_said),
        cmocka_unit_test(hostile_blocks),
    };
    if (!rig_open(&rig))
        return 77;
    return cmocka_run_group_tests(tests, NULL, close_rig);
}
