#include "base/io.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t rung_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t rung_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int32_t read_fd(struct rung_arena *arena, int fd, const char *path, uint64_t limit,
                       struct rung_text *out, struct rung_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return rung_fail(err, RUNG_EIO, "", "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return rung_fail(err, RUNG_EIO, "", "%s: is not a regular file", path);
    if ((uint64_t)st.st_size > limit)
        return rung_fail(err, RUNG_EIO, "", "%s: %lld bytes are more than the %llu allowed here",
                         path, (long long)st.st_size, (unsigned long long)limit);
    char *data = rung_arena_need(arena, (uint64_t)st.st_size + 1);
    size_t used = 0;
    while (used < (size_t)st.st_size) {
        ssize_t n = read(fd, data + used, (size_t)st.st_size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rung_fail(err, RUNG_EIO, "", "%s: %s", path, strerror(errno));
        if (n == 0)
            break;
        used += (size_t)n;
    }
    *out = (struct rung_text){data, used};
    return RUNG_OK;
}

int32_t rung_read_file(struct rung_arena *arena, const char *path, uint64_t limit,
                       struct rung_text *out, struct rung_error *err)
{
    /* O_NONBLOCK: a pipe in place of a file must not hang us; it is refused by its type. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return rung_fail(err, RUNG_EIO, "", "%s: can't be opened: %s", path, strerror(errno));
    int32_t status = read_fd(arena, fd, path, limit, out, err);
    close(fd);
    return status;
}

bool rung_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

int32_t rung_write_file(const char *path, const void *bytes, uint64_t n, struct rung_error *err)
{
    char temp[PATH_MAX];
    if (snprintf(temp, sizeof temp, "%s.tmp.%d.XXXXXX", path, (int)getpid()) >= (int)sizeof temp)
        return rung_fail(err, RUNG_EIO, "", "%s: the path is too long", path);
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return rung_fail(err, RUNG_EIO, "", "%s: can't be written: %s", path, strerror(errno));
    mode_t mask = umask(0);
    umask(mask);
    bool ok = fchmod(fd, 0666 & ~mask) == 0 && rung_write_all(fd, bytes, n) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(temp, path) != 0) {
        ok = false;
        why = errno;
    }
    if (ok)
        return RUNG_OK;
    unlink(temp);
    return rung_fail(err, RUNG_EIO, "", "%s: can't be written: %s", path, strerror(why));
}

int32_t rung_make_dirs(const char *path, struct rung_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return rung_fail(err, RUNG_EIO, "", "%s: the path is too long", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return rung_fail(err, RUNG_EIO, "", "%s: can't be made: %s", part, strerror(errno));
        part[i] = i < n ? '/' : 0;
    }
    return RUNG_OK;
}

char *rung_path_absolute(struct rung_arena *arena, const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/' || !getcwd(cwd, sizeof cwd))
        return rung_arena_strdup(arena, path);
    return rung_path_join(arena, cwd, path);
}

char *rung_path_join(struct rung_arena *arena, const char *dir, const char *path)
{
    if (path[0] == '/')
        return rung_arena_strdup(arena, path);
    return rung_arena_printf(arena, "%s/%s", dir, path);
}

char *rung_path_beside(struct rung_arena *arena, const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    if (path[0] == '/' || !slash)
        return rung_arena_strdup(arena, path);
    return rung_arena_printf(arena, "%.*s%s", (int)(slash - file + 1), file, path);
}

const char *rung_exe_path(void)
{
    static _Thread_local char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = 0;
    return path;
}
