/*
 * The executor's descriptors 1 and 2 (device printf lands there) become log lines to the
 * orchestrator, in bounded amounts: a kernel that prints for ever costs nothing but its own time.
 */
#include "worker/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2000, JOB_MAX_BYTES = 64 << 10, QUEUE_MAX = 1 << 20 };

static const char *const levels[] = {"debug", "info", "warn", "error"};

/* Lines of our own log carry their level ("rung: warn: ..."); anything else is output. */
static int64_t level_of(const char **text)
{
    if (!rung_starts_with(*text, "rung: "))
        return RUNG_LOG_INFO;
    if (rung_starts_with(*text, "rung: fatal: "))
        return RUNG_LOG_ERROR; /* the last words of a process that a plugin brought down */
    for (int64_t i = 0; i < 4; i++) {
        size_t n = strlen(levels[i]);
        if (strncmp(*text + 6, levels[i], n) == 0 && strncmp(*text + 6 + n, ": ", 2) == 0) {
            *text += 6 + n + 2;
            return i;
        }
    }
    return RUNG_LOG_INFO;
}

static void say_log(struct rung_supervisor *s, int64_t level, const char *text)
{
    cJSON *message = rung_message_new(RUNG_MSG_LOG);
    rung_json_add_i64(message, "level", level);
    rung_json_add_text(message, "text", rung_text_of(text));
    rung_supervisor_say(s, rung_message_line(message));
}

static void end_line(struct rung_supervisor *s)
{
    struct rung_log_tap *tap = &s->tap;
    const char *text = rung_buf_text(&tap->line);
    bool room =
        tap->sent + tap->line.len <= JOB_MAX_BYTES && rung_line_waiting(&s->out) < QUEUE_MAX;
    if (tap->line.len && !room)
        tap->dropped += tap->line.len;
    if (rung_starts_with(text, RUNG_STEP_PREFIX)) {
        snprintf(tap->step, sizeof tap->step, "%s", text + strlen(RUNG_STEP_PREFIX));
    } else if (tap->line.len && room) {
        tap->sent += tap->line.len;
        int64_t level = level_of(&text);
        say_log(s, level, text);
    }
    tap->line.len = 0;
}

static void take(struct rung_supervisor *s, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || s->tap.line.len >= LINE_MAX_BYTES)
            end_line(s);
        if (bytes[i] != '\n')
            rung_buf_putc(&s->tap.line, bytes[i] ? bytes[i] : ' ');
    }
}

void rung_tap_read(struct rung_supervisor *s)
{
    char bytes[1 << 14];
    ssize_t n = 0;
    for (int round = 0; round < 16; round++) {
        n = read(s->executor.pipes.log, bytes, sizeof bytes);
        if (n <= 0)
            break;
        take(s, bytes, (size_t)n);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        end_line(s);
        close(s->executor.pipes.log);
        s->executor.pipes.log = -1;
    }
}

void rung_tap_new_job(struct rung_supervisor *s)
{
    char text[96];
    if (s->tap.dropped) {
        snprintf(text, sizeof text, "%llu bytes of further output were dropped",
                 (unsigned long long)s->tap.dropped);
        say_log(s, RUNG_LOG_INFO, text);
    }
    s->tap.sent = s->tap.dropped = 0;
}
