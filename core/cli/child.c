#include "cli/child.h"
#include "base/die.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUTPUT = 16 << 20, MAX_ARGS = 30 };
extern char **environ;

static pid_t spawn(const char *const *args, int to, bool quiet)
{
    pid_t pid;
    char *argv[MAX_ARGS + 2] = {(char *)"rung"};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    const char *exe = rung_exe_path();
    for (size_t i = 0; args[i] && i < MAX_ARGS; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (quiet)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    int failed = exe ? posix_spawn(&pid, exe, &actions, &attr, argv, environ) : ENOENT;
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        rung_die("can't start a child: %s", strerror(failed));
    return pid;
}

/* false when the time was over. */
static bool read_all(int fd, uint64_t until_ns, struct rung_buf *out)
{
    char chunk[4096];
    for (;;) {
        uint64_t now = rung_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= until_ns)
            return false;
        int ready = poll(&p, 1, (int)((until_ns - now) / 1000000 + 1));
        if (ready <= 0)
            continue;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0 && out->len + (size_t)n < MAX_OUTPUT)
            rung_buf_add(out, chunk, (size_t)n);
    }
}

static cJSON *broken(const char *subject, int status, bool in_time)
{
    struct rung_buf text = {0};
    cJSON *json = cJSON_CreateObject();
    if (!in_time)
        rung_buf_printf(&text, "%s: did not end in time", subject);
    else if (WIFSIGNALED(status))
        rung_buf_printf(&text, "%s: crashed while it was loaded (signal %d, %s)", subject,
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        rung_buf_printf(&text, "%s: ended the process that loaded it (status %d)", subject,
                        WEXITSTATUS(status));
    rung_json_add_text(json, "error", rung_text_of(rung_buf_text(&text)));
    rung_buf_free(&text);
    return json;
}

cJSON *cli_child(const char *const *args, const char *subject, double limit_s, bool quiet)
{
    int fds[2], status = 0;
    struct rung_buf out = {0};
    if (pipe2(fds, O_CLOEXEC) != 0)
        rung_die("can't start a child: %s", strerror(errno));
    pid_t pid = spawn(args, fds[1], quiet);
    close(fds[1]);
    bool in_time = read_all(fds[0], rung_now_ns() + (uint64_t)(limit_s * 1e9), &out);
    close(fds[0]);
    if (!in_time)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    cJSON *json = in_time ? rung_json_parse(rung_buf_text(&out), out.len) : NULL;
    rung_buf_free(&out);
    if (cJSON_IsObject(json))
        return json;
    cJSON_Delete(json);
    return broken(subject, status, in_time);
}
