/* The opener's side of programs: see program.h. */
#include "worker/process/program.h"
#include "base/arena.h"
#include "base/die.h"
#include "base/io.h"
#include "base/status.h"
#include "base/text.h"
#include "plugin/instance.h"
#include "worker/process/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_MS 50      /* how often cancellation and the program's end are looked at */
#define START_MS 10000u /* for the keeper to say that the program runs */
#define CLOSE_MS 2000u  /* for a program whose input was closed */
#define TAIL 4096u      /* bytes of standard error that are kept */
#define WORDS 600u      /* of those, in a message */
#define LOG_LINE 1000u  /* longest line of standard error in the log */
#define LOG_ALL ((uint64_t)256 << 10) /* most bytes of standard error in the log */
#define DEFAULT_ANSWER ((uint64_t)64 << 20)

extern char **environ;

struct rung_program {
    pid_t pid;         /* of the keeper, which leads the group */
    int in, out, errs; /* our ends of the program's 0, 1 and 2; -1 once closed */
    int life;          /* socket to the keeper: it kills the group when this closes */
    bool ended;        /* reaped */
    int status;        /* of its end: 0..255, 128 + a signal */
    char name[64];
    struct rung_buf got;  /* of its standard output, not yet taken */
    struct rung_buf line; /* of its standard error, for the log */
    uint64_t logged;
    char tail[TAIL];
    size_t tail_len;
};

/* ---- Starting ------------------------------------------------------------------------------- */

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Moves a descriptor above the ones that the child's are duplicated onto. */
static int lift(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    return high;
}

/* The four pairs of descriptors; [0] is ours, [1] the keeper's. */
static bool make_pairs(int pairs[4][2])
{
    bool good = true;
    memset(pairs, -1, 4 * sizeof(*pairs));
    good = good && !pipe2(pairs[0], O_CLOEXEC) && !pipe2(pairs[1], O_CLOEXEC) &&
           !pipe2(pairs[2], O_CLOEXEC) &&
           !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[3]);
    if (pairs[0][0] >= 0) { /* of this one we write */
        int swap = pairs[0][0];
        pairs[0][0] = pairs[0][1];
        pairs[0][1] = swap;
    }
    for (int i = 0; i < 4; i++)
        if (pairs[i][1] >= 0 && (pairs[i][1] = lift(pairs[i][1])) < 0)
            good = false;
    return good;
}

static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* This process' environment with `extra` over it; the caller frees the list. */
static char **environment(const char *const *extra)
{
    size_t n = 0, m = 0, at = 0;
    while (environ && environ[n])
        n++;
    while (extra && extra[m])
        m++;
    char **list = rung_xcalloc(n + m + 1, sizeof(*list));
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t j = 0; j < m && !replaced; j++)
            replaced = same_variable(extra[j], environ[i]);
        if (!replaced)
            list[at++] = environ[i];
    }
    for (size_t j = 0; j < m; j++)
        list[at++] = (char *)(uintptr_t)extra[j];
    return list;
}

static int spawn_keeper(pid_t *pid, const char *exe, const char *const *argv,
                        const char *const *extra, int pairs[4][2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    size_t n = 0;
    while (argv[n])
        n++;
    const char **words = rung_xcalloc(n + 4, sizeof(*words));
    words[0] = "rung", words[1] = "helper", words[2] = "--program";
    memcpy(words + 3, argv, n * sizeof(*words));
    char **env = environment(extra);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 4; i++)
        posix_spawn_file_actions_adddup2(&actions, pairs[i][1], i);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    int failed = posix_spawn(pid, exe, &actions, &attr, (char **)(uintptr_t)words, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    free(env);
    free(words);
    return failed;
}

/* ---- Its end -------------------------------------------------------------------------------- */

/* Kills what is left of the group and reaps the keeper, once. */
static void finish(struct rung_program *p)
{
    int status = 0;
    if (p->ended)
        return;
    /* While the keeper is not reaped its group's number can't be another's. */
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->ended = true;
    p->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Whether the keeper, and so the program, has ended; nothing is reaped. */
static bool has_ended(const struct rung_program *p)
{
    siginfo_t info = {0};
    return p->ended || waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
           info.si_pid == p->pid;
}

/* ---- Standard error ------------------------------------------------------------------------- */

static void log_line(const struct rung_host *host, struct rung_program *p)
{
    if (p->line.len && p->logged < LOG_ALL) {
        host->log(host, RUNG_LOG_INFO, rung_buf_text(&p->line));
        p->logged += p->line.len;
        if (p->logged >= LOG_ALL)
            host->log(host, RUNG_LOG_WARN, "the program writes too much: no more of it is logged");
    }
    rung_buf_free(&p->line);
}

static void keep_tail(struct rung_program *p, const char *bytes, size_t n)
{
    if (n > TAIL) {
        bytes += n - TAIL;
        n = TAIL;
    }
    size_t keep = p->tail_len < TAIL - n ? p->tail_len : TAIL - n;
    memmove(p->tail, p->tail + p->tail_len - keep, keep);
    memcpy(p->tail + keep, bytes, n);
    p->tail_len = keep + n;
}

static void take_errors(const struct rung_host *host, struct rung_program *p)
{
    char block[4096];
    ssize_t n;
    /* A flood must not keep us here: 16 blocks are what a pipe holds. */
    for (int i = 0; i < 16 && p->errs >= 0 && (n = read(p->errs, block, sizeof(block))) >= 0; i++) {
        if (n == 0)
            shut(&p->errs);
        keep_tail(p, block, (size_t)n);
        for (ssize_t at = 0; at < n && p->logged < LOG_ALL; at++) {
            if (block[at] == '\n' || p->line.len >= LOG_LINE)
                log_line(host, p);
            if (block[at] != '\n')
                rung_buf_putc(&p->line, block[at] ? block[at] : ' ');
        }
    }
}

/* The last words as one line of plain text, at most WORDS bytes, in `out`. */
static void last_words(const struct rung_program *p, char out[WORDS + 1])
{
    size_t n = p->tail_len;
    while (n && strchr("\n\r\t ", p->tail[n - 1]))
        n--;
    size_t from = n > WORDS ? n - WORDS : 0;
    bool plain = !rung_utf8_valid(p->tail + from, n - from);
    for (size_t i = from; i < n; i++) {
        unsigned char c = (unsigned char)p->tail[i];
        bool odd = c < ' ' || c == 127 || (plain && c > 127);
        out[i - from] = c == '\n' ? ' ' : odd ? '?' : (char)c;
    }
    out[n - from] = '\0';
}

static int32_t tell_end(struct rung_program *p, struct rung_error *err)
{
    char words[WORDS + 1], how[32];
    finish(p);
    last_words(p, words);
    snprintf(how, sizeof(how), p->status > 128 ? "by signal %d" : "with status %d",
             p->status > 128 ? p->status - 128 : p->status);
    return rung_fail(err, RUNG_EUNAVAILABLE, "program.ended", "the program %s ended %s%s%s",
                     p->name, how, words[0] ? "; its last words: " : "", words);
}

/* ---- The pipes ------------------------------------------------------------------------------ */

struct flow {
    struct rung_text send; /* what is not yet sent */
    bool close;            /* closes the program's input when all is sent */
    uint64_t limit;        /* most bytes in p->got, and one more */
    uint64_t deadline_ns;  /* 0: none */
};

/* write() that raises no SIGPIPE in this thread. */
static ssize_t write_quietly(int fd, const void *bytes, size_t n)
{
    sigset_t pipes, old;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, &old);
    ssize_t done = write(fd, bytes, n);
    int why = errno;
    if (done < 0 && why == EPIPE && !sigismember(&old, SIGPIPE))
        sigtimedwait(&pipes, NULL, &(struct timespec){0, 0});
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return done;
}

static void send_some(struct rung_program *p, struct flow *f)
{
    ssize_t n = f->send.len ? write_quietly(p->in, f->send.ptr, f->send.len) : 0;
    if (n > 0) {
        f->send.ptr += n;
        f->send.len -= (uint64_t)n;
    }
    bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
    if (broken || (f->close && !f->send.len))
        shut(&p->in);
}

static void take_output(struct rung_program *p, const struct flow *f)
{
    char block[16384];
    while (p->out >= 0 && p->got.len <= f->limit) {
        uint64_t room = f->limit + 1 - p->got.len;
        ssize_t n = read(p->out, block, room < sizeof(block) ? room : sizeof(block));
        if (n == 0)
            shut(&p->out);
        if (n <= 0)
            return;
        rung_buf_add(&p->got, block, (size_t)n);
    }
}

/* Waits a step at most for something to move, and moves it. */
static void pump(const struct rung_host *host, struct rung_program *p, struct flow *f)
{
    bool sending = f->send.len || f->close;
    struct pollfd fds[3] = {{.fd = sending ? p->in : -1, .events = POLLOUT},
                            {.fd = p->got.len <= f->limit ? p->out : -1, .events = POLLIN},
                            {.fd = p->errs, .events = POLLIN}};
    if (poll(fds, 3, STEP_MS) <= 0)
        return;
    if (fds[0].revents)
        send_some(p, f);
    if (fds[1].revents)
        take_output(p, f);
    if (fds[2].revents)
        take_errors(host, p);
}

/* RUNG_OK while the call may go on; else the program is killed. */
static int32_t may_go_on(const struct rung_host *host, struct rung_call *call,
                         struct rung_program *p, uint64_t deadline_ns)
{
    if (call->cancel && host->is_cancelled(host, call->cancel)) {
        finish(p);
        return rung_fail(call->error, RUNG_ECANCELLED, "program.cancelled", "cancelled");
    }
    if (deadline_ns && rung_now_ns() > deadline_ns) {
        finish(p);
        return rung_fail(call->error, RUNG_ETIMEOUT, "program.deadline",
                         "the program %s did not answer in time and was killed", p->name);
    }
    return RUNG_OK;
}

static int32_t too_large(struct rung_program *p, struct rung_error *err, uint64_t limit)
{
    finish(p);
    return rung_fail(err, RUNG_EIO, "program.too_large",
                     "the program %s wrote more than %llu bytes and was killed", p->name,
                     (unsigned long long)limit);
}

/* ---- The service ---------------------------------------------------------------------------- */

static void destroy(const struct rung_host *host, struct rung_program *p)
{
    finish(p);
    take_errors(host, p);
    log_line(host, p);
    shut(&p->in);
    shut(&p->out);
    shut(&p->errs);
    shut(&p->life);
    rung_buf_free(&p->got);
    free(p);
}

static void service_close(const struct rung_host *host, struct rung_program *p)
{
    struct flow f = {.close = true, .limit = 1 << 20};
    if (!p)
        return;
    uint64_t until = rung_now_ns() + CLOSE_MS * 1000000ull;
    shut(&p->in);
    while (!has_ended(p) && rung_now_ns() < until) {
        pump(host, p, &f);
        rung_buf_free(&p->got); /* nobody wants it, but the program may wait to write it */
        if (p->out < 0 && p->errs < 0)
            usleep(1000);
    }
    destroy(host, p);
}

/* What the keeper says of the program's start. */
static int32_t await_start(const struct rung_host *host, struct rung_call *call,
                           struct rung_program *p)
{
    uint64_t deadline = rung_now_ns() + START_MS * 1000000ull;
    int32_t why = 0, status = RUNG_OK;
    if (call->deadline_ns && call->deadline_ns < deadline)
        deadline = call->deadline_ns;
    while (!poll(&(struct pollfd){.fd = p->life, .events = POLLIN}, 1, STEP_MS))
        if ((status = may_go_on(host, call, p, deadline)))
            return status;
    if (read(p->life, &why, sizeof(why)) != sizeof(why)) {
        take_errors(host, p);
        return tell_end(p, call->error);
    }
    if (why)
        return rung_fail(call->error, RUNG_EUNAVAILABLE, "program.start", "can't start %s: %s",
                         p->name, strerror(why));
    return RUNG_OK;
}

static int32_t start_keeper(const struct rung_host *host, struct rung_call *call,
                            const char *const *argv, const char *const *extra_env,
                            struct rung_program *p)
{
    const char *exe = rung_host_user(host, RUNG_HOST_PROGRAM);
    int pairs[4][2];
    if (!exe)
        exe = rung_exe_path();
    int failed = !exe ? ENOENT : make_pairs(pairs) ? 0 : errno;
    if (!exe)
        memset(pairs, -1, sizeof(pairs));
    if (!failed)
        failed = spawn_keeper(&p->pid, exe, argv, extra_env, pairs);
    for (int i = 0; i < 4; i++) {
        shut(&pairs[i][1]);
        if (failed)
            shut(&pairs[i][0]);
    }
    if (failed)
        return rung_fail(call->error, RUNG_EUNAVAILABLE, "program.start", "can't start %s: %s",
                         argv[0], strerror(failed));
    p->in = pairs[0][0], p->out = pairs[1][0], p->errs = pairs[2][0], p->life = pairs[3][0];
    for (int i = 0; i < 3; i++)
        fcntl(pairs[i][0], F_SETFL, fcntl(pairs[i][0], F_GETFL) | O_NONBLOCK);
    return RUNG_OK;
}

static int32_t service_open(const struct rung_host *host, struct rung_call *call,
                            const char *const *argv, const char *const *extra_env,
                            struct rung_program **out)
{
    *out = NULL;
    if (!argv || !argv[0] || !argv[0][0])
        return rung_fail(call->error, RUNG_EINVAL, "program.run", "no program is named");
    struct rung_program *p = rung_xcalloc(1, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "%s", argv[0]);
    int32_t status = start_keeper(host, call, argv, extra_env, p);
    if (status) {
        free(p);
        return status;
    }
    status = await_start(host, call, p);
    if (status)
        destroy(host, p);
    else
        *out = p;
    return status;
}

/* A program that closed its input or output gets a moment to end, so that its end can be told. */
static int32_t closed_early(const struct rung_host *host, struct rung_program *p,
                            struct rung_error *err)
{
    struct flow f = {.limit = 0};
    uint64_t until = rung_now_ns() + CLOSE_MS * 1000000ull;
    while (!has_ended(p) && rung_now_ns() < until) {
        pump(host, p, &f);
        if (p->errs < 0)
            usleep(1000);
    }
    take_errors(host, p);
    if (has_ended(p))
        return tell_end(p, err);
    finish(p);
    return rung_fail(err, RUNG_EUNAVAILABLE, "program.ended",
                     "the program %s closed its standard %s and was killed", p->name,
                     p->out < 0 ? "output" : "input");
}

/* The first line of what has come, without its newline, into the arena. */
static bool take_line(struct rung_call *call, struct rung_program *p, uint64_t max,
                      struct rung_text *answer)
{
    const char *end = p->got.len ? memchr(p->got.ptr, '\n', p->got.len) : NULL;
    size_t n = end ? (size_t)(end - p->got.ptr) : 0;
    if (!end || n > max)
        return false;
    *answer = (struct rung_text){rung_arena_strndup(call->arena, p->got.ptr, n), n};
    rung_buf_drop(&p->got, n + 1);
    return true;
}

static int32_t service_exchange(const struct rung_host *host, struct rung_call *call,
                                struct rung_program *p, struct rung_text line, uint64_t max_bytes,
                                struct rung_text *answer)
{
    uint64_t max = max_bytes ? max_bytes : DEFAULT_ANSWER;
    *answer = (struct rung_text){NULL, 0};
    if (memchr(line.ptr, '\n', line.len))
        return rung_fail(call->error, RUNG_EINVAL, "program.exchange", "a line with a newline");
    if (p->ended)
        return tell_end(p, call->error);
    char *text = rung_xmalloc(line.len + 1);
    memcpy(text, line.ptr, line.len);
    text[line.len] = '\n';
    struct flow f = {.send = {text, line.len + 1}, .limit = max};
    int32_t status = RUNG_OK;
    while (!status && (f.send.len || !take_line(call, p, max, answer))) {
        bool last = has_ended(p);
        pump(host, p, &f);
        if (p->got.len > max && !memchr(p->got.ptr, '\n', max + 1))
            status = too_large(p, call->error, max);
        else if (last || p->in < 0 || p->out < 0)
            break;
        else
            status = may_go_on(host, call, p, call->deadline_ns);
    }
    if (!status && !answer->ptr && !take_line(call, p, max, answer))
        status = closed_early(host, p, call->error);
    free(text);
    return status;
}

/* Reads and writes until the program has ended and its output is taken. */
static int32_t run_to_end(const struct rung_host *host, struct rung_call *call,
                          struct rung_program *p, struct flow *f)
{
    int32_t status = RUNG_OK;
    bool over = false;
    while (!status && !over) {
        bool last = has_ended(p);
        pump(host, p, f);
        if (p->got.len > f->limit)
            status = too_large(p, call->error, f->limit);
        else if (!last)
            status = may_go_on(host, call, p, call->deadline_ns);
        /* A stray child of the program may hold the pipe open: what has come is all. */
        over = last;
        if (!last && p->out < 0 && p->errs < 0)
            usleep(1000);
    }
    while (!status && p->out >= 0 && p->got.len <= f->limit) {
        size_t before = p->got.len;
        take_output(p, f);
        if (p->got.len == before)
            break;
    }
    if (!status && p->got.len > f->limit)
        status = too_large(p, call->error, f->limit);
    take_errors(host, p);
    return status;
}

static int32_t service_run_once(const struct rung_host *host, struct rung_call *call,
                                const struct rung_program_run *run, struct rung_program_result *out)
{
    struct rung_program *p;
    if (!RUNG_HAS(run, max_output) || !RUNG_HAS(out, errors))
        return rung_fail(call->error, RUNG_EINVAL, "program.run", "a struct_size of no version");
    out->status = 0;
    out->output = out->errors = (struct rung_text){"", 0};
    int32_t status = service_open(host, call, run->argv, run->extra_env, &p);
    if (status)
        return status;
    struct flow f = {.send = run->input,
                     .close = true,
                     .limit = run->max_output ? run->max_output : DEFAULT_ANSWER};
    status = run_to_end(host, call, p, &f);
    finish(p);
    size_t n = p->got.len < f.limit ? p->got.len : f.limit;
    out->status = p->status;
    out->output = (struct rung_text){rung_arena_strndup(call->arena, rung_buf_text(&p->got), n), n};
    out->errors =
        (struct rung_text){rung_arena_strndup(call->arena, p->tail, p->tail_len), p->tail_len};
    destroy(host, p);
    return status;
}

const struct rung_host_program rung_program_table = {
    .struct_size = sizeof(struct rung_host_program),
    .open = service_open,
    .exchange = service_exchange,
    .close = service_close,
    .run_once = service_run_once,
};
