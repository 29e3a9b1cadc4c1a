/* Processes of the worker, by posix_spawn. */
#include "worker/spawn.h"
#include "base/io.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int rung_fd_private(int fd)
{
    if (fd < 0)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, RUNG_PRIVATE_FD);
    close(fd);
    return high;
}

void rung_fd_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool rung_reap(pid_t pid, int *status)
{
    pid_t got;
    do
        got = waitpid(pid, status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        *status = 0; /* someone else has reaped it: gone all the same */
    return got != 0;
}

const char *rung_status_text(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
    return text;
}

static void close_pair(const int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* A pipe whose ends are private. */
static bool private_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0) {
        fds[0] = fds[1] = -1;
        return false;
    }
    fds[0] = rung_fd_private(fds[0]);
    fds[1] = rung_fd_private(fds[1]);
    return fds[0] >= 0 && fds[1] >= 0;
}

static bool private_socketpair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        fds[0] = fds[1] = -1;
        return false;
    }
    fds[0] = rung_fd_private(fds[0]);
    fds[1] = rung_fd_private(fds[1]);
    return fds[0] >= 0 && fds[1] >= 0;
}

/* A child starts with no signal blocked, and with the default for those that we ignore. */
static void plain_signals(posix_spawnattr_t *attr, short flags)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGQUIT);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &usual);
    posix_spawnattr_setpgroup(attr, 0);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | flags);
}

static int spawn(const char *path, const char *const *argv, const int (*map)[2], size_t n,
                 short flags, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    for (size_t i = 0; i < n; i++)
        posix_spawn_file_actions_adddup2(&actions, map[i][0], map[i][1]);
    plain_signals(&attr, flags);
    int failed = posix_spawnp(pid, path, &actions, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return failed;
}

int32_t rung_spawn_worker(const char *const *argv, struct rung_worker_pipes *out,
                          struct rung_error *err)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    int failed = private_pipe(to) && private_pipe(from) ? 0 : errno;
    if (!failed) {
        const int map[2][2] = {{to[0], STDIN_FILENO}, {from[1], STDOUT_FILENO}};
        failed = spawn(argv[0], argv, map, 2, 0, &out->pid);
    }
    if (failed) {
        close_pair(to);
        close_pair(from);
        return rung_fail(err, RUNG_EUNAVAILABLE, "worker.start",
                         "can't start the worker command %s: %s", argv[0], strerror(failed));
    }
    close(to[0]);
    close(from[1]);
    out->to = to[1];
    out->from = from[0];
    rung_fd_nonblocking(out->to);
    rung_fd_nonblocking(out->from);
    return RUNG_OK;
}

/* /proc names the running program even when its file was replaced; another root may lack /proc. */
const char *rung_self_path(void)
{
    if (access("/proc/self/exe", X_OK) == 0)
        return "/proc/self/exe";
    return (const char *)(uintptr_t)getauxval(AT_EXECFN);
}

int32_t rung_spawn_executor(struct rung_executor_pipes *out, struct rung_error *err)
{
    static const char *const argv[] = {"rung", "worker", "--executor", "3", NULL};
    int sock[2] = {-1, -1}, log[2] = {-1, -1};
    int failed = private_socketpair(sock) && private_pipe(log) ? 0 : errno;
    if (!failed) {
        const int map[3][2] = {
            {log[1], STDOUT_FILENO}, {log[1], STDERR_FILENO}, {sock[1], RUNG_EXECUTOR_FD}};
        failed = spawn(rung_self_path(), argv, map, 3, POSIX_SPAWN_SETPGROUP, &out->pid);
    }
    if (failed) {
        close_pair(sock);
        close_pair(log);
        return rung_fail(err, RUNG_EUNAVAILABLE, "worker.executor", "can't start the executor: %s",
                         strerror(failed));
    }
    close(sock[1]);
    close(log[1]);
    out->sock = sock[0];
    out->log = log[0];
    rung_fd_nonblocking(out->sock);
    rung_fd_nonblocking(out->log);
    return RUNG_OK;
}
