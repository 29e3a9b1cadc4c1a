/* The life of executors: start, lines, deadlines, death, the next one. */
#include "worker/supervisor.h"
#include "base/io.h"
#include "base/status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDLE_DEATHS_MAX = 3, PENDING_MAX = 16 << 20 };

static const double grace_s = 1.0, kill_patience_s = 10.0;

static uint64_t after(double seconds)
{
    return rung_now_ns() + (uint64_t)(seconds * 1e9);
}

void rung_executor_launch(struct rung_supervisor *s)
{
    struct rung_executor_side *executor = &s->executor;
    struct rung_error err = rung_error_init();
    *executor = (struct rung_executor_side){.pipes = {.sock = -1, .log = -1}};
    if (rung_spawn_executor(&executor->pipes, &err) != RUNG_OK) {
        rung_supervisor_refuse(s, err.code, "%s", err.message);
        return;
    }
    executor->in.fd = executor->out.fd = executor->pipes.sock;
    executor->state = RUNG_EXECUTOR_STARTING;
    executor->deadline_ns = after(s->start_s + grace_s);
    rung_line_push(&executor->out, s->setup, strlen(s->setup));
    rung_buf_add(&executor->out.buf, rung_buf_text(&s->pending), s->pending.len);
    rung_buf_free(&s->pending);
}

void rung_executor_pass(struct rung_supervisor *s, const char *line, size_t n)
{
    enum rung_executor_state state = s->executor.state;
    if (state == RUNG_EXECUTOR_STARTING || state == RUNG_EXECUTOR_READY) {
        rung_line_push(&s->executor.out, line, n);
        return;
    }
    rung_buf_add(&s->pending, line, n);
    rung_buf_putc(&s->pending, '\n');
    if (s->pending.len > PENDING_MAX)
        rung_supervisor_refuse(s, RUNG_EMISUSE, "more than %d bytes for one job", PENDING_MAX);
}

void rung_executor_kill(struct rung_supervisor *s)
{
    struct rung_executor_side *executor = &s->executor;
    if (executor->state != RUNG_EXECUTOR_STARTING && executor->state != RUNG_EXECUTOR_READY)
        return;
    executor->was_ready = executor->state == RUNG_EXECUTOR_READY;
    kill(-executor->pipes.pid, SIGKILL);
    close(executor->pipes.sock);
    rung_line_in_free(&executor->in);
    rung_line_out_free(&executor->out);
    executor->pipes.sock = -1;
    executor->deadline_ns = 0;
    executor->ending_ns = rung_now_ns();
    executor->state = RUNG_EXECUTOR_ENDING;
}

/* The executor, not the candidate, breaks the protocol. */
static void breach(struct rung_supervisor *s, const char *what)
{
    if (s->flight.active)
        rung_supervisor_say(
            s, rung_flight_broken(&s->flight, rung_json_get(s->setup_json, "rungs"), what));
    rung_executor_kill(s);
}

static void take_ready(struct rung_supervisor *s, const char *line)
{
    s->executor.state = RUNG_EXECUTOR_READY;
    s->executor.deadline_ns = s->flight.active ? after(s->start_s + grace_s) : 0;
    if (!s->announced)
        rung_supervisor_say(s, strdup(line));
    s->announced = true;
}

static void take_result(struct rung_supervisor *s, const cJSON *message, const char *line)
{
    uint64_t id;
    if (!s->flight.active || !rung_message_u64(message, "id", &id) || id != s->flight.id) {
        breach(s, "the executor answered a job that it did not have");
        return;
    }
    rung_supervisor_say(s, strdup(line));
    rung_flight_end(&s->flight);
    rung_tap_new_job(s);
    s->executor.deadline_ns = 0;
    s->executor.served = true;
    s->idle_deaths = 0;
    if (!rung_json_bool(message, "last", false))
        return;
    s->executor.planned = true;
    rung_executor_kill(s);
}

static void take_stage(struct rung_supervisor *s, const cJSON *message, const char *line)
{
    if (!rung_flight_stage(&s->flight, message)) {
        breach(s, "the executor announced a stage wrongly");
        return;
    }
    s->executor.deadline_ns = after(s->flight.stage.limit_s + grace_s);
    rung_supervisor_say(s, strdup(line));
}

void rung_executor_renew(struct rung_supervisor *s)
{
    if (s->executor.state != RUNG_EXECUTOR_READY || !s->executor.served)
        return;
    s->executor.planned = true;
    rung_executor_kill(s);
}

static void take_refusal(struct rung_supervisor *s, const char *line)
{
    rung_supervisor_say(s, strdup(line));
    s->leaving = true;
    s->exit_status = 1;
}

static void take_line(struct rung_supervisor *s, const char *line, size_t n)
{
    cJSON *message;
    enum rung_message_type type = rung_message_parse(line, n, &message);
    if (type == RUNG_MSG_READY && s->executor.state == RUNG_EXECUTOR_STARTING)
        take_ready(s, line);
    else if (type == RUNG_MSG_REFUSED)
        take_refusal(s, line);
    else if (type == RUNG_MSG_STAGE)
        take_stage(s, message, line);
    else if (type == RUNG_MSG_RESULT)
        take_result(s, message, line);
    else if (type == RUNG_MSG_DRAFT && rung_flight_draft(&s->flight, message))
        ; /* kept: it is said only if a guest ends the executor */
    else if (type == RUNG_MSG_BLOB ||
             (type == RUNG_MSG_RUNG && rung_flight_rung(&s->flight, message)))
        rung_supervisor_say(s, strdup(line));
    else
        breach(s, "the executor sent a line that breaks the protocol");
    cJSON_Delete(message);
}

static bool alive(const struct rung_supervisor *s)
{
    return s->executor.state == RUNG_EXECUTOR_STARTING || s->executor.state == RUNG_EXECUTOR_READY;
}

void rung_executor_listen(struct rung_supervisor *s)
{
    enum rung_line_status got = rung_line_read(&s->executor.in), next = RUNG_LINE_AGAIN;
    const char *line;
    size_t n;
    while (alive(s) && !s->leaving) {
        next = rung_line_next(&s->executor.in, &line, &n);
        if (next != RUNG_LINE_OK)
            break;
        take_line(s, line, n);
    }
    if (alive(s) && next == RUNG_LINE_FAULT)
        breach(s, "the executor sent a line that is too long");
    else if (alive(s) && (got == RUNG_LINE_EOF || got == RUNG_LINE_FAULT))
        rung_executor_kill(s); /* it is dying: its exit status is set already */
}

/*
 * A baseline that took an executor down is not asked again by the next ones: the set-up that they
 * get says that it is missing, and why.
 */
static void exclude(struct rung_supervisor *s, const char *name, const char *why)
{
    cJSON *stage;
    cJSON_ArrayForEach(stage, rung_json_get(s->setup_json, "baselines"))
    {
        if (strcmp(rung_json_text(stage, "name", ""), name) != 0 || rung_json_get(stage, "missing"))
            continue;
        cJSON_AddStringToObject(stage, "missing", why);
        free(s->setup);
        s->setup = rung_json_line(s->setup_json);
    }
}

/* A guest ended it, or took too long: the candidate's own result stands. */
static void spare(struct rung_supervisor *s, const char *how)
{
    struct rung_buf why = {0};
    rung_buf_printf(&why, "%s in %s", how, s->flight.stage.text);
    exclude(s, rung_flight_guest(&s->flight), rung_buf_text(&why));
    rung_supervisor_say(s, rung_flight_spared(&s->flight, rung_buf_text(&why)));
    rung_buf_free(&why);
}

/* The plugin that the executor was making, with what is left in its log. */
static const char *step_of(struct rung_supervisor *s)
{
    if (s->executor.pipes.log >= 0)
        rung_tap_read(s);
    return s->tap.step[0] ? s->tap.step : "its start";
}

static void overrun(struct rung_supervisor *s)
{
    const cJSON *names = rung_json_get(s->setup_json, "rungs");
    if (s->executor.state == RUNG_EXECUTOR_STARTING) {
        rung_supervisor_refuse(s, RUNG_ETIMEOUT,
                               "the executor was not ready within %.3g s (limits.start); "
                               "it was at: %s",
                               s->start_s, step_of(s));
        return;
    }
    if (rung_flight_guest(&s->flight))
        spare(s, "it did not end in time");
    else if (s->flight.active)
        rung_supervisor_say(s, rung_flight_timed_out(&s->flight, names));
    s->executor.planned = true;
    rung_executor_kill(s);
}

static void say_again(struct rung_supervisor *s)
{
    cJSON *message = rung_message_new(RUNG_MSG_AGAIN);
    rung_json_add_i64(message, "id", (int64_t)s->flight.id);
    rung_flight_end(&s->flight);
    rung_buf_free(&s->pending);
    rung_supervisor_say(s, rung_message_line(message));
}

/*
 * An end that nobody ordered. In a job it is the candidate's crash; before the first stage of a job
 * the candidate can't be the reason, so the job goes back. Three such in a row end the worker.
 */
static void unexpected_end(struct rung_supervisor *s)
{
    char how[96];
    rung_status_text(s->executor.status, how, sizeof how);
    if (rung_flight_guest(&s->flight)) {
        char died[128];
        snprintf(died, sizeof died, "the process died with %s", how);
        spare(s, died);
        return;
    }
    if (s->flight.active && s->flight.stage.kind != RUNG_AT_NOTHING) {
        const cJSON *names = rung_json_get(s->setup_json, "rungs");
        rung_supervisor_say(s, rung_flight_crashed(&s->flight, names, s->executor.status));
        return;
    }
    if (s->flight.active)
        say_again(s);
    if (!s->announced)
        rung_supervisor_refuse(s, RUNG_EUNAVAILABLE,
                               "the executor died with %s while it started; it was at: %s", how,
                               step_of(s));
    else if (++s->idle_deaths >= IDLE_DEATHS_MAX)
        rung_supervisor_refuse(s, RUNG_EUNAVAILABLE,
                               "the executor died %d times between jobs, the last "
                               "time with %s",
                               IDLE_DEATHS_MAX, how);
}

static void ended(struct rung_supervisor *s)
{
    if (s->executor.pipes.log >= 0)
        rung_tap_read(s);
    if (s->executor.pipes.log >= 0)
        close(s->executor.pipes.log);
    s->executor.pipes.log = -1;
    s->executor.state = RUNG_EXECUTOR_NONE;
    if (!s->executor.planned)
        unexpected_end(s);
    rung_tap_new_job(s);
    if (!s->leaving)
        rung_executor_launch(s);
}

void rung_executor_reap(struct rung_supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (s->executor.state != RUNG_EXECUTOR_NONE && pid == s->executor.pipes.pid) {
            s->executor.reaped = true;
            s->executor.status = status;
        }
}

void rung_executor_attend(struct rung_supervisor *s, uint64_t now)
{
    struct rung_executor_side *executor = &s->executor;
    if (executor->deadline_ns && now > executor->deadline_ns)
        overrun(s);
    if (executor->state != RUNG_EXECUTOR_ENDING)
        return;
    rung_executor_reap(s);
    if (executor->reaped)
        ended(s);
    else if (now > executor->ending_ns + (uint64_t)(kill_patience_s * 1e9))
        rung_supervisor_refuse(
            s, RUNG_EUNAVAILABLE,
            "the executor can't be killed: its device driver hangs (device.lost)");
}
