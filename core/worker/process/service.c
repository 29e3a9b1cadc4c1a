/*
 * The opener's side of helpers. One thread at a time a helper; helpers are independent. The helper
 * ends when its socket closes, so it can't outlive this process.
 */
#include "worker/process/service.h"
#include "base/die.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"
#include "worker/process/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000u /* for loading and warming up when the call has no deadline */
#define STEP_MS 50      /* how often cancellation is looked at */
#define TAIL 2048       /* bytes of standard error that a message keeps */

extern char **environ;

struct rung_helper {
    pid_t pid;
    int socket;
    int errors; /* read end of its standard error; -1 after its end */
    bool dead;
    char tail[TAIL]; /* newest of its standard error */
    size_t tail_len;
    struct rung_buf in;
};

/* ---- Starting ------------------------------------------------------------------------------- */

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* Moves a descriptor above the ones that the child's are duplicated onto. */
static int lift(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    return high;
}

static int spawn(pid_t *pid, const char *exe, char **argv, int socket, int errors)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, errors, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_adddup2(&actions, socket, PROCESS_FD);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int failed = posix_spawn(pid, exe, &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int32_t start_process(const struct rung_host *host, struct rung_helper *h,
                             struct rung_error *err)
{
    const char *exe = rung_host_user(host, RUNG_HOST_PROCESS);
    int pair[2], pipes[2];
    if (!exe)
        exe = rung_exe_path();
    if (!exe)
        return rung_fail(err, RUNG_EUNAVAILABLE, "helper.start",
                         "can't tell this executable's path");
    char *argv[] = {(char *)exe, "helper",
                    "--plugin",  (char *)rung_host_plugin_path(host),
                    "--factory", (char *)rung_host_factory_name(host),
                    "--kind",    (char *)rung_host_factory_kind(host),
                    NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return rung_fail(err, RUNG_EIO, "helper.start", "socketpair: %s", strerror(errno));
    if (pipe2(pipes, O_CLOEXEC)) {
        close_pair(pair);
        return rung_fail(err, RUNG_EIO, "helper.start", "pipe: %s", strerror(errno));
    }
    pair[1] = lift(pair[1]);
    pipes[1] = lift(pipes[1]);
    int failed = spawn(&h->pid, exe, argv, pair[1], pipes[1]);
    close(pair[1]);
    close(pipes[1]);
    if (failed) {
        close(pair[0]);
        close(pipes[0]);
        return rung_fail(err, RUNG_EUNAVAILABLE, "helper.start", "can't start %s: %s", exe,
                         strerror(failed));
    }
    h->socket = pair[0];
    h->errors = pipes[0];
    fcntl(h->socket, F_SETFL, O_NONBLOCK);
    fcntl(h->errors, F_SETFL, O_NONBLOCK);
    return RUNG_OK;
}

/* ---- Standard error ------------------------------------------------------------------------- */

static void keep_tail(struct rung_helper *h, const char *bytes, size_t n)
{
    if (n > TAIL) {
        bytes += n - TAIL;
        n = TAIL;
    }
    size_t keep = h->tail_len < TAIL - n ? h->tail_len : TAIL - n;
    memmove(h->tail, h->tail + h->tail_len - keep, keep);
    memcpy(h->tail + keep, bytes, n);
    h->tail_len = keep + n;
}

/* Passes on what the helper has written; -1 to `errors` at its end. */
static void drain_errors(struct rung_helper *h)
{
    char block[4096];
    for (;;) {
        ssize_t n = h->errors < 0 ? -1 : read(h->errors, block, sizeof(block));
        if (n == 0) {
            close(h->errors);
            h->errors = -1;
        }
        if (n <= 0)
            return;
        (void)!write(2, block, (size_t)n);
        keep_tail(h, block, (size_t)n);
    }
}

/* ---- Waiting for a frame -------------------------------------------------------------------- */

/* The helper is gone: reaps it and says how it ended, with its last words. */
static int32_t tell_death(struct rung_helper *h, struct rung_error *err)
{
    int status = 0;
    h->dead = true;
    kill(h->pid, SIGKILL); /* when it only closed its socket */
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    drain_errors(h);
    size_t from = h->tail_len > 600 ? h->tail_len - 600 : 0;
    const char *what = WIFSIGNALED(status) ? "ended by signal" : "ended with status";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return rung_fail(err, RUNG_EUNAVAILABLE, "helper.died", "the helper process %s %d%s%.*s", what,
                     number, h->tail_len ? "; its last words: " : "", (int)(h->tail_len - from),
                     h->tail + from);
}

/* RUNG_OK with a whole frame in h->in, RUNG_ETIMEOUT, RUNG_ECANCELLED, or the helper's death. */
static int32_t await(const struct rung_host *host, struct rung_call *call, struct rung_helper *h,
                     uint64_t deadline, struct process_frame *frame)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = h->socket, .events = POLLIN},
                                {.fd = h->errors, .events = POLLIN}};
        int n = poll(fds, 2, STEP_MS);
        if (n > 0 && fds[1].revents)
            drain_errors(h);
        if (n > 0 && fds[0].revents) {
            int ready = process_receive(h->socket, &h->in, PROCESS_MAX_BODY, frame);
            if (ready < 0)
                return tell_death(h, call->error);
            if (ready > 0)
                return RUNG_OK;
            continue;
        }
        if (call->cancel && host->is_cancelled(host, call->cancel))
            return rung_fail(call->error, RUNG_ECANCELLED, "", "cancelled");
        if (deadline && rung_now_ns() > deadline)
            return rung_fail(call->error, RUNG_ETIMEOUT, "helper.timeout",
                             "the helper did not answer in time");
    }
}

static void drop_frame(struct rung_helper *h, const struct process_frame *frame)
{
    rung_buf_drop(&h->in, sizeof(*frame) + frame->length);
}

/* ---- The service ---------------------------------------------------------------------------- */

static void service_close(const struct rung_host *host, struct rung_helper *h)
{
    (void)host;
    if (!h)
        return;
    close(h->socket);
    if (!h->dead) {
        kill(h->pid, SIGKILL);
        while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    drain_errors(h);
    if (h->errors >= 0)
        close(h->errors);
    rung_buf_free(&h->in);
    free(h);
}

static int32_t handshake(const struct rung_host *host, struct rung_call *call,
                         struct rung_helper *h, struct rung_text args)
{
    struct process_frame frame;
    uint64_t deadline =
        call->deadline_ns ? call->deadline_ns : rung_now_ns() + START_MS * 1000000ull;
    if (!process_send(h->socket, process_frame_of(PROCESS_INIT, 0), args.ptr, args.len))
        return tell_death(h, call->error);
    int32_t status = await(host, call, h, deadline, &frame);
    if (status != RUNG_OK)
        return status;
    if (frame.type != PROCESS_READY)
        status = rung_fail(call->error, RUNG_EINTERNAL, "helper.protocol",
                           "the helper sent frame %u at start", frame.type);
    else if (frame.status != RUNG_OK)
        process_error_read(&frame, h->in.ptr + sizeof(frame), call->error);
    drop_frame(h, &frame);
    return status != RUNG_OK ? status : frame.status;
}

static int32_t service_open(const struct rung_host *host, struct rung_call *call,
                            struct rung_text args, struct rung_helper **out)
{
    struct rung_helper *h = rung_xcalloc(1, sizeof(*h));
    int32_t status = start_process(host, h, call->error);
    if (status != RUNG_OK) {
        free(h);
        return status;
    }
    status = handshake(host, call, h, args);
    if (status != RUNG_OK) {
        service_close(host, h);
        return status;
    }
    *out = h;
    return RUNG_OK;
}

/* Milliseconds for a request: its own limit and the call's deadline, whichever is less; 0 = none.
 */
static uint64_t wall_limit(const struct rung_call *call, uint64_t wall_ms)
{
    if (!call->deadline_ns)
        return wall_ms;
    uint64_t now = rung_now_ns();
    uint64_t left = call->deadline_ns > now ? (call->deadline_ns - now) / 1000000u + 1 : 1;
    return wall_ms && wall_ms < left ? wall_ms : left;
}

/* Waits for the response; on cancellation tells the helper and still takes its answer. */
static int32_t take_response(const struct rung_host *host, struct rung_call *call,
                             struct rung_helper *h, uint64_t wall_ms, struct process_frame *frame)
{
    /* The helper keeps the limit; the grace is for a helper that is itself stopped. */
    uint64_t deadline = wall_ms ? rung_now_ns() + (wall_ms + 5000) * 1000000u : 0;
    int32_t status = await(host, call, h, deadline, frame);
    if (status == RUNG_ECANCELLED) {
        struct rung_call quiet = *call;
        quiet.cancel = NULL;
        if (!process_send(h->socket, process_frame_of(PROCESS_CANCEL, 0), NULL, 0))
            return tell_death(h, call->error);
        status = await(host, &quiet, h, rung_now_ns() + 1000000000u, frame);
        if (status == RUNG_OK)
            frame->a = PROCESS_CANCELLED;
    }
    if (status == RUNG_ETIMEOUT)
        tell_death(h, &(struct rung_error){.struct_size = sizeof(struct rung_error)});
    return status;
}

static int32_t copy_response(struct rung_call *call, const struct process_frame *frame,
                             const char *body, struct rung_helper_response *out)
{
    if (frame->type != PROCESS_RESPONSE)
        return rung_fail(call->error, RUNG_EINTERNAL, "helper.protocol", "the helper sent frame %u",
                         frame->type);
    if (frame->a == PROCESS_CANCELLED)
        return rung_fail(call->error, RUNG_ECANCELLED, "", "cancelled");
    if (frame->status != RUNG_OK) {
        process_error_read(frame, body, call->error);
        return frame->status;
    }
    struct rung_text text = {rung_arena_strndup(call->arena, body, frame->length), frame->length};
    out->outcome = (uint32_t)frame->a;
    out->body = frame->a == RUNG_HELPER_DONE ? text : (struct rung_text){"", 0};
    out->detail = frame->a == RUNG_HELPER_DONE ? (struct rung_text){"", 0} : text;
    return RUNG_OK;
}

static int32_t service_request(const struct rung_host *host, struct rung_call *call,
                               struct rung_helper *h, const struct rung_helper_request *request,
                               struct rung_helper_response *out)
{
    struct process_frame frame = process_frame_of(PROCESS_REQUEST, 0);
    if (h->dead)
        return rung_fail(call->error, RUNG_EUNAVAILABLE, "helper.died",
                         "the helper process has ended");
    frame.a = wall_limit(call, request->wall_ms);
    frame.b = request->memory_bytes;
    frame.c = request->response_bytes;
    uint64_t wall_ms = frame.a;
    if (!process_send(h->socket, frame, request->body.ptr, request->body.len))
        return tell_death(h, call->error);
    int32_t status = take_response(host, call, h, wall_ms, &frame);
    if (status != RUNG_OK)
        return status;
    status = copy_response(call, &frame, h->in.ptr + sizeof(frame), out);
    drop_frame(h, &frame);
    return status;
}

const struct rung_host_process rung_process_table = {
    .struct_size = sizeof(struct rung_host_process),
    .open = service_open,
    .request = service_request,
    .close = service_close,
};
