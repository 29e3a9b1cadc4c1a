/*
 * `rung worker`: the process that an orchestrator talks to. It holds no device and loads no plugin,
 * so that nothing a candidate does can take it down. It ends when its input closes, when heartbeats
 * stop, or when it is told a thing that breaks the protocol, and its executor ends with it.
 */
#include "worker/supervisor.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { OUT_QUEUE_MAX = 4 << 20, IN_QUEUE_MAX = 16 << 20, BEAT_MS = 1000, REAP_MS = 5 };

void rung_supervisor_say(struct rung_supervisor *s, char *line)
{
    rung_line_push(&s->out, line, strlen(line));
    free(line);
}

void rung_supervisor_refuse(struct rung_supervisor *s, int32_t status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rung_supervisor_say(s, rung_message_line(rung_refusal_new(status, text)));
    s->leaving = true;
    s->exit_status = 1;
}

/* ---- What the orchestrator says ---- */

static void take_setup(struct rung_supervisor *s, cJSON *message, const char *line)
{
    struct rung_error err = rung_error_init();
    if (s->setup) {
        rung_supervisor_refuse(s, RUNG_EMISUSE, "a second set-up");
        return;
    }
    if (rung_identity_check(message, "the orchestrator", &err) != RUNG_OK) {
        rung_supervisor_refuse(s, err.code, "%s", err.message);
        return;
    }
    double start = rung_json_number(rung_json_get(message, "limits"), "start_s", -1);
    double silence = rung_json_number(message, "silence_s", 30);
    if (!(start > 0 && start <= 1e6) || !(silence > 0 && silence <= 1e6)) {
        rung_supervisor_refuse(s, RUNG_EMISUSE, "a set-up without limits.start_s and silence_s");
        return;
    }
    s->start_s = start;
    s->silence_s = silence;
    s->setup = strdup(line);
    s->setup_json = cJSON_Duplicate(message, true);
    rung_executor_launch(s);
}

static void take_job(struct rung_supervisor *s, const cJSON *message, const char *line, size_t n)
{
    if (!s->setup || s->flight.active || !rung_flight_begin(&s->flight, message)) {
        rung_supervisor_refuse(s, RUNG_EMISUSE, "a job that is none, or one too many");
        return;
    }
    if (s->executor.state == RUNG_EXECUTOR_READY)
        s->executor.deadline_ns = rung_now_ns() + (uint64_t)((s->start_s + 1) * 1e9);
    rung_executor_pass(s, line, n);
}

static void take_cancel(struct rung_supervisor *s, const cJSON *message)
{
    uint64_t id;
    if (!s->flight.active || !rung_message_u64(message, "id", &id) || id != s->flight.id)
        return; /* it has ended meanwhile */
    rung_supervisor_say(
        s, rung_flight_broken(&s->flight, rung_json_get(s->setup_json, "rungs"), "cancelled"));
    s->executor.planned = true;
    rung_buf_free(&s->pending);
    rung_executor_kill(s);
}

static void take_line(struct rung_supervisor *s, const char *line, size_t n)
{
    cJSON *message;
    enum rung_message_type type = rung_message_parse(line, n, &message);
    if (type == RUNG_MSG_SETUP)
        take_setup(s, message, line);
    else if (type == RUNG_MSG_JOB)
        take_job(s, message, line, n);
    else if (type == RUNG_MSG_BLOB && s->setup)
        rung_executor_pass(s, line, n);
    else if (type == RUNG_MSG_CANCEL)
        take_cancel(s, message);
    else if (type == RUNG_MSG_RENEW && s->setup && !s->flight.active)
        rung_executor_renew(s);
    else if (type == RUNG_MSG_BYE)
        s->leaving = true;
    else if (type != RUNG_MSG_BEAT)
        rung_supervisor_refuse(s, RUNG_EMISUSE, "a line that is no message to a worker: %.60s",
                               line);
    cJSON_Delete(message);
}

static void hear(struct rung_supervisor *s, uint64_t now)
{
    enum rung_line_status got = rung_line_read(&s->in), next = RUNG_LINE_AGAIN;
    const char *line;
    size_t n;
    s->heard_ns = now;
    while (!s->leaving && (next = rung_line_next(&s->in, &line, &n)) == RUNG_LINE_OK)
        take_line(s, line, n);
    if (!s->leaving && next == RUNG_LINE_FAULT)
        rung_supervisor_refuse(s, RUNG_EMISUSE, "a line of more than %d bytes", RUNG_LINE_MAX);
    if (got == RUNG_LINE_EOF || got == RUNG_LINE_FAULT)
        s->leaving = true;
}

/* ---- The loop ---- */

enum { AT_IN, AT_OUT, AT_EXECUTOR, AT_LOG, N_FDS };

static bool paused_in(const struct rung_supervisor *s)
{
    return rung_line_waiting(&s->executor.out) > IN_QUEUE_MAX;
}

static bool paused_executor(const struct rung_supervisor *s)
{
    return rung_line_waiting(&s->out) > OUT_QUEUE_MAX;
}

static void prepare(const struct rung_supervisor *s, struct pollfd fds[N_FDS])
{
    const struct rung_executor_side *executor = &s->executor;
    bool none = executor->state == RUNG_EXECUTOR_NONE;
    fds[AT_IN] = (struct pollfd){s->in.fd, paused_in(s) ? 0 : POLLIN, 0};
    fds[AT_OUT] = (struct pollfd){s->out.fd, rung_line_waiting(&s->out) ? POLLOUT : 0, 0};
    fds[AT_EXECUTOR] = (struct pollfd){none ? -1 : executor->pipes.sock, 0, 0};
    fds[AT_LOG] = (struct pollfd){none ? -1 : executor->pipes.log, POLLIN, 0};
    if (!paused_executor(s))
        fds[AT_EXECUTOR].events |= POLLIN;
    if (rung_line_waiting(&executor->out))
        fds[AT_EXECUTOR].events |= POLLOUT;
    if (!fds[AT_EXECUTOR].events) /* poll would report its end again and again */
        fds[AT_EXECUTOR].fd = -1;
}

static int patience_ms(const struct rung_supervisor *s, uint64_t now)
{
    uint64_t until = s->beat_ns;
    if (s->executor.state == RUNG_EXECUTOR_ENDING)
        return REAP_MS;
    if (s->executor.deadline_ns && s->executor.deadline_ns < until)
        until = s->executor.deadline_ns;
    return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

static void tick(struct rung_supervisor *s, uint64_t now)
{
    if (!paused_in(s) && now > s->heard_ns + (uint64_t)(s->silence_s * 1e9)) {
        rung_log(RUNG_LOG_WARN, "worker", "no word from the orchestrator for %.3g s: leaving",
                 s->silence_s);
        s->leaving = true;
        s->exit_status = 1;
    }
    if (now < s->beat_ns)
        return;
    s->beat_ns = now + BEAT_MS * UINT64_C(1000000);
    rung_executor_reap(s);
    if (rung_line_waiting(&s->out) < OUT_QUEUE_MAX)
        rung_supervisor_say(s, rung_message_line(rung_message_new(RUNG_MSG_BEAT)));
}

static void serve(struct rung_supervisor *s, const struct pollfd fds[N_FDS], uint64_t now)
{
    if (fds[AT_OUT].revents & POLLERR)
        s->leaving = true; /* nobody reads any more */
    if (fds[AT_IN].revents)
        hear(s, now);
    if (fds[AT_LOG].revents && s->executor.pipes.log == fds[AT_LOG].fd)
        rung_tap_read(s);
    /* A failing write means that the executor is going: what it sent before is read first. */
    if (fds[AT_EXECUTOR].revents && s->executor.pipes.sock == fds[AT_EXECUTOR].fd) {
        rung_line_flush(&s->executor.out);
        if (!paused_executor(s) && (fds[AT_EXECUTOR].revents & (POLLIN | POLLHUP | POLLERR)))
            rung_executor_listen(s);
    }
}

static void loop(struct rung_supervisor *s)
{
    struct pollfd fds[N_FDS];
    while (!s->leaving) {
        uint64_t before = rung_now_ns(), now;
        prepare(s, fds);
        bool blocked = paused_executor(s);
        if (poll(fds, N_FDS, patience_ms(s, before)) < 0 && errno != EINTR)
            rung_supervisor_refuse(s, RUNG_EINTERNAL, "poll: %s", strerror(errno));
        now = rung_now_ns();
        if (blocked && s->executor.deadline_ns) /* time spent on a slow orchestrator is nobody's */
            s->executor.deadline_ns += now - before;
        serve(s, fds, now);
        if (!s->leaving)
            rung_executor_attend(s, now);
        tick(s, now);
        if (!rung_line_flush(&s->out))
            s->leaving = true;
    }
}

/* ---- Start and end ---- */

/* An input that is always at its end; another root folder may have no /dev/null. */
static int empty_input(void)
{
    int fds[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || pipe2(fds, O_CLOEXEC) != 0)
        return fd;
    close(fds[1]);
    return fds[0];
}

/* The protocol moves to private descriptors, so that nothing stray is ever read or written there.
 */
static bool hide_protocol(struct rung_supervisor *s)
{
    s->in.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, RUNG_PRIVATE_FD);
    s->out.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, RUNG_PRIVATE_FD);
    int empty = rung_fd_private(empty_input());
    if (s->in.fd < 0 || s->out.fd < 0 || empty < 0)
        return false;
    dup2(empty, STDIN_FILENO);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        dup2(empty, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close(empty);
    rung_fd_nonblocking(s->in.fd);
    rung_fd_nonblocking(s->out.fd);
    return true;
}

static void say_hello(struct rung_supervisor *s)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    cJSON *message = rung_message_new(RUNG_MSG_HELLO);
    rung_identity_add(message);
    rung_json_add_i64(message, "pid", getpid());
    rung_json_add_text(message, "host", rung_text_of(host));
    rung_supervisor_say(s, rung_message_line(message));
}

/* Last words for at most a second; then the executor and all its helpers go. */
static void leave(struct rung_supervisor *s)
{
    uint64_t until = rung_now_ns() + UINT64_C(1000000000);
    rung_executor_kill(s);
    while (rung_now_ns() < until) {
        bool open = rung_line_flush(&s->out) && rung_line_waiting(&s->out);
        rung_executor_reap(s);
        if (!open && (s->executor.state != RUNG_EXECUTOR_ENDING || s->executor.reaped))
            break;
        struct pollfd fd = {open ? s->out.fd : -1, POLLOUT, 0};
        poll(&fd, 1, REAP_MS);
    }
    rung_flight_end(&s->flight);
    rung_line_in_free(&s->in);
    rung_line_out_free(&s->out);
    rung_buf_free(&s->pending);
    rung_buf_free(&s->tap.line);
    cJSON_Delete(s->setup_json);
    free(s->setup);
}

int rung_supervisor_main(void)
{
    struct rung_supervisor s = {
        .start_s = 30, .silence_s = 30, .executor.pipes = {.sock = -1, .log = -1}};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* ^C is for the orchestrator, which ends its workers in order */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!hide_protocol(&s)) {
        rung_log(RUNG_LOG_ERROR, "worker", "standard input and output must be open: %s",
                 strerror(errno));
        return 3;
    }
    s.heard_ns = s.beat_ns = rung_now_ns();
    say_hello(&s);
    loop(&s);
    leave(&s);
    return s.exit_status;
}
