#include "cli/diff.h"
#include "base/die.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 8 << 20, OLD_FD = 200, NEW_FD = 201 };

extern char **environ;

/* A nameless file with the text, readable from its start; -1 with errno. */
static int file_of(struct rung_text text)
{
    int fd = memfd_create("rung-diff", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < text.len) {
        ssize_t n = write(fd, text.ptr + done, text.len - done);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    return fd;
}

static int start(const char *old_name, int old, const char *new_name, int new, int out, pid_t *pid)
{
    char *argv[] = {"diff",
                    "-u",
                    "--label",
                    (char *)(uintptr_t)old_name,
                    "--label",
                    (char *)(uintptr_t)new_name,
                    "--",
                    "/proc/self/fd/200",
                    "/proc/self/fd/201",
                    NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, old, OLD_FD);
    posix_spawn_file_actions_adddup2(&actions, new, NEW_FD);
    int failed = posix_spawnp(pid, "diff", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void read_all(int fd, struct rung_buf *out)
{
    char part[16384];
    ssize_t n;
    while ((n = read(fd, part, sizeof part)) > 0)
        if (out->len + (size_t)n <= OUTPUT_MAX)
            rung_buf_add(out, part, (size_t)n);
}

static char *trouble(const char *why)
{
    struct rung_buf out = {0};
    rung_buf_printf(&out, "(diff can't be run: %s)\n", why);
    char *copy = rung_xstrdup(rung_buf_text(&out));
    rung_buf_free(&out);
    return copy;
}

static char *run(const char *old_name, int old, const char *new_name, int new)
{
    int ends[2], status = 0;
    pid_t pid;
    struct rung_buf out = {0};
    if (pipe2(ends, O_CLOEXEC))
        return trouble(strerror(errno));
    int failed = start(old_name, old, new_name, new, ends[1], &pid);
    close(ends[1]);
    if (!failed) {
        read_all(ends[0], &out);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    char *copy = failed                                         ? trouble(strerror(failed))
                 : WIFEXITED(status) && WEXITSTATUS(status) < 2 ? rung_xstrdup(rung_buf_text(&out))
                                                                : trouble("it failed");
    rung_buf_free(&out);
    return copy;
}

char *cli_diff(const char *old_name, struct rung_text old, const char *new_name,
               struct rung_text new)
{
    int from = file_of(old), to = file_of(new);
    char *text = from < 0 || to < 0 ? trouble(strerror(errno)) : run(old_name, from, new_name, to);
    close(from);
    close(to);
    return text;
}
