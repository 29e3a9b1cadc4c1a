/* One worker of the pool: launch, hello, jobs, loss, restart. */
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/pool_private.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILURES_MAX = 3 };

static const uint64_t second = UINT64_C(1000000000);
static const double silence_s = 30, nag_s = 60, deaf_s = 1, polite_s = 1, close_s = 3;

static bool older(uint64_t since, double seconds, uint64_t now)
{
    return now > since && (double)(now - since) > seconds * 1e9;
}

static void enter(struct pool_worker *w, enum pool_worker_state state)
{
    w->state = state;
    w->since_ns = rung_now_ns();
    pthread_cond_broadcast(&w->pool->changed);
}

void pool_worker_init(struct rung_pool *pool, struct pool_worker *w,
                      const struct rung_worker_spec *spec, uint32_t index)
{
    *w = (struct pool_worker){.pool = pool, .spec = spec, .pipes = {.to = -1, .from = -1}};
    w->why = rung_error_init();
    bool remote = spec->launch && spec->launch[0];
    snprintf(w->name, sizeof w->name, remote ? "worker %u (%s)" : "worker %u", index,
             remote ? spec->launch[0] : "");
}

bool pool_worker_alive(const struct pool_worker *w)
{
    return w->state >= POOL_LAUNCHED && w->state <= POOL_DRAINING;
}

/* ---- Loss and end ---- */

static void close_pipes(struct pool_worker *w)
{
    close(w->pipes.to);
    close(w->pipes.from);
    w->pipes.to = w->pipes.from = -1;
    rung_line_in_free(&w->in);
    rung_line_out_free(&w->out);
    rung_blob_clear(&w->blobs);
    enter(w, POOL_CLOSING);
}

void pool_worker_lose(struct pool_worker *w, bool permanent, int32_t status, const char *format,
                      ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rung_fail(&w->why, status, "worker.lost", "%s: %.900s", w->name, text);
    w->pool->failure = w->why;
    if (!w->pool->closing)
        rung_log(RUNG_LOG_WARN, "pool", "%s", w->why.message);
    struct pool_job *job = w->job;
    w->job = NULL;
    w->permanent = permanent || ++w->failures > FAILURES_MAX;
    if (pool_worker_alive(w))
        close_pipes(w);
    else
        enter(w, POOL_CLOSING); /* it never ran: pid 0 counts as reaped */
    if (job)
        pool_job_return(w->pool, job);
}

void pool_worker_close(struct pool_worker *w)
{
    static const char bye[] = "{\"t\":\"bye\"}";
    w->permanent = true;
    if (!pool_worker_alive(w)) {
        if (w->state == POOL_DOWN)
            enter(w, POOL_GONE);
        return;
    }
    rung_line_push(&w->out, bye, sizeof bye - 1);
    rung_line_flush(&w->out);
    close_pipes(w);
}

static void buried(struct pool_worker *w, uint64_t now)
{
    w->pipes.pid = 0;
    if (w->permanent || w->pool->closing) {
        enter(w, POOL_GONE);
        return;
    }
    enter(w, POOL_DOWN);
    w->start_ns = now + (second / 4 << w->failures);
}

static void await_end(struct pool_worker *w, uint64_t now)
{
    int status;
    if (w->pipes.pid == 0 || rung_reap(w->pipes.pid, &status)) {
        buried(w, now);
        return;
    }
    int signal = older(w->since_ns, close_s, now)    ? SIGKILL
                 : older(w->since_ns, polite_s, now) ? SIGTERM
                                                     : 0;
    if (signal != w->signal)
        kill(w->pipes.pid, signal);
    w->signal = signal;
}

/* ---- Start ---- */

static const char *const *command_of(const struct pool_worker *w, struct rung_arena *arena)
{
    const char *self = w->spec->rung ? w->spec->rung : rung_exe_path();
    size_t n = 0;
    while (w->spec->launch && w->spec->launch[n])
        n++;
    const char **argv = RUNG_ARENA_NEW(arena, const char *, n + 3);
    for (size_t i = 0; i < n; i++)
        argv[i] = w->spec->launch[i];
    argv[n] = self ? self : "rung";
    argv[n + 1] = "worker";
    return argv;
}

static void launch(struct pool_worker *w, uint64_t now)
{
    struct rung_error err = rung_error_init();
    struct rung_arena *scratch = rung_arena_new();
    int32_t status = scratch ? rung_spawn_worker(command_of(w, scratch), &w->pipes, &err)
                             : rung_fail(&err, RUNG_ENOMEM, "", "memory is out");
    rung_arena_free(scratch);
    if (status != RUNG_OK) {
        w->pipes.pid = 0;
        pool_worker_lose(w, false, status, "%s", err.message);
        return;
    }
    w->in.fd = w->pipes.from;
    w->out.fd = w->pipes.to;
    w->heard_ns = w->nag_ns = now;
    w->signal = 0;
    w->deaf_ns = 0;
    enter(w, POOL_LAUNCHED);
}

/* Queueing behind a launch prefix is not start-up time. */
static void await_hello(struct pool_worker *w, uint64_t now)
{
    double limit = w->pool->spec.pipeline->limits.start_s;
    bool prefixed = w->spec->launch && w->spec->launch[0];
    if (!prefixed && older(w->since_ns, limit, now))
        pool_worker_lose(w, false, RUNG_ETIMEOUT, "no hello within %.3g s (limits.start)", limit);
    else if (prefixed && older(w->nag_ns, nag_s, now)) {
        w->nag_ns = now;
        rung_log(RUNG_LOG_WARN, "pool", "%s: waiting for a hello since %.0f s", w->name,
                 (double)(now - w->since_ns) / 1e9);
    }
}

void pool_worker_attend(struct pool_worker *w, uint64_t now)
{
    double start_s = w->pool->spec.pipeline->limits.start_s;
    if (w->state == POOL_DOWN && now >= w->start_ns)
        launch(w, now);
    else if (w->state == POOL_LAUNCHED)
        await_hello(w, now);
    else if (w->state == POOL_CLOSING)
        await_end(w, now);
    else if (w->state == POOL_SETUP && older(w->since_ns, start_s + 5, now))
        pool_worker_lose(w, true, RUNG_ETIMEOUT, "not ready within %.3g s (limits.start)", start_s);
    else if (w->deaf_ns && pool_worker_alive(w) && older(w->deaf_ns, deaf_s, now))
        pool_worker_lose(w, false, RUNG_EUNAVAILABLE, "it has closed its input");
    else if (pool_worker_alive(w) && older(w->heard_ns, silence_s, now))
        pool_worker_lose(w, false, RUNG_EUNAVAILABLE, "no heartbeat for %.0f s", silence_s);
}

/* ---- Lines to it ---- */

/* A worker that closed its input has last words: they are read before it counts as lost. */
void pool_worker_flush(struct pool_worker *w)
{
    if (!pool_worker_alive(w) || rung_line_flush(&w->out))
        return;
    rung_line_out_free(&w->out);
    if (!w->deaf_ns)
        w->deaf_ns = rung_now_ns();
}

void pool_worker_give(struct pool_worker *w, struct pool_job *job)
{
    job->state = POOL_JOB_RUNNING;
    w->job = job;
    rung_log(RUNG_LOG_INFO, w->name, "judging %s", job->label);
    w->progress[0] = 0;
    rung_buf_add(&w->out.buf, rung_buf_text(&job->lines), job->lines.len);
    enter(w, POOL_BUSY);
}

void pool_worker_cancel(struct pool_worker *w)
{
    cJSON *message = rung_message_new(RUNG_MSG_CANCEL);
    rung_json_add_i64(message, "id", (int64_t)w->job->id);
    char *line = rung_message_line(message);
    rung_line_push(&w->out, line, strlen(line));
    free(line);
    pool_job_finish(w->pool, w->job, POOL_JOB_CANCELLED);
    w->job = NULL;
    enter(w, POOL_DRAINING);
}

/* ---- Lines from it ---- */

static void take_hello(struct pool_worker *w, const cJSON *message)
{
    struct rung_error err = rung_error_init();
    if (rung_identity_check(message, "the worker", &err) != RUNG_OK) {
        pool_worker_lose(w, true, err.code, "%s", err.message);
        return;
    }
    cJSON *setup = cJSON_Duplicate(w->pool->setup, true);
    rung_json_add_text(setup, "device", rung_text_of(w->spec->device ? w->spec->device : "auto"));
    char *line = rung_message_line(setup);
    rung_line_push(&w->out, line, strlen(line));
    free(line);
    enter(w, POOL_SETUP);
}

static void take_ready(struct pool_worker *w, const cJSON *message)
{
    struct rung_pool *pool = w->pool;
    const cJSON *device = rung_json_get(message, "device");
    if (!w->was_ready) {
        w->sm_count = (uint32_t)rung_json_i64(device, "sm_count", 0);
        w->device = rung_arena_strdup(pool->arena, rung_json_text(device, "name", "?"));
        w->plugin = rung_arena_strdup(pool->arena, rung_json_text(device, "plugin", "?"));
    }
    w->was_ready = true;
    enter(w, POOL_FREE);
}

static void take_refusal(struct pool_worker *w, const cJSON *message)
{
    struct rung_error err = rung_error_init();
    int32_t status = rung_refusal_read(message, &err);
    pool_worker_lose(w, !w->was_ready, status, "%s", err.message);
}

static bool of_job(const struct pool_worker *w, const cJSON *message)
{
    uint64_t id;
    return w->job && rung_message_u64(message, "id", &id) && id == w->job->id;
}

static void take_stage(struct pool_worker *w, const cJSON *message)
{
    struct rung_stage_message stage;
    struct rung_pool *pool = w->pool;
    if (!of_job(w, message) || !rung_stage_read(message, &stage) ||
        strcmp(stage.text, w->progress) == 0)
        return;
    memcpy(w->progress, stage.text, sizeof w->progress);
    if (!pool->spec.progress)
        return;
    const char *label = w->job->label;
    pthread_mutex_unlock(&pool->lock);
    pool->spec.progress(pool->spec.ctx, label, stage.text);
    pthread_mutex_lock(&pool->lock);
}

static void take_blob(struct pool_worker *w, const cJSON *message)
{
    struct rung_pool *pool = w->pool;
    struct rung_error err = rung_error_init();
    const struct rung_blob *blob;
    if (rung_blob_take(&w->blobs, message, &blob, &err) != RUNG_OK) {
        pool_worker_lose(w, false, err.code, "%s", err.message);
        return;
    }
    if (!blob)
        return;
    if (pool->spec.store) {
        pthread_mutex_unlock(&pool->lock);
        pool->spec.store(pool->spec.ctx, blob->sha256, rung_buf_text(&blob->bytes),
                         blob->bytes.len);
        pthread_mutex_lock(&pool->lock);
    }
    rung_blob_drop(&w->blobs, blob);
}

/* true when the message was kept. */
static bool take_result(struct pool_worker *w, cJSON *message)
{
    struct pool_job *job = w->job;
    bool mine = of_job(w, message);
    if (!mine && w->state != POOL_DRAINING) {
        pool_worker_lose(w, false, RUNG_EMISUSE, "it answered a job that it did not have");
        return false;
    }
    rung_blob_clear(&w->blobs); /* what a dead executor began to send */
    w->job = NULL;
    w->failures = 0;
    enter(w, POOL_FREE);
    if (!mine)
        return false;
    job->result = message;
    pool_job_finish(w->pool, job, POOL_JOB_DONE);
    return true;
}

/* The executor died before it began: the job is as it was. */
static void take_again(struct pool_worker *w, const cJSON *message)
{
    struct pool_job *job = w->job;
    if (w->state != POOL_DRAINING && !of_job(w, message)) {
        pool_worker_lose(w, false, RUNG_EMISUSE, "it gave back a job that it did not have");
        return;
    }
    w->job = NULL;
    enter(w, POOL_FREE);
    if (job)
        pool_job_return(w->pool, job);
}

static void take_log(const struct pool_worker *w, const cJSON *message)
{
    int64_t level = rung_json_i64(message, "level", RUNG_LOG_INFO);
    if (level >= RUNG_LOG_DEBUG && level <= RUNG_LOG_ERROR)
        rung_log((uint32_t)level, w->name, "%s", rung_json_text(message, "text", ""));
}

static void take_line(struct pool_worker *w, const char *line, size_t n)
{
    cJSON *message;
    bool kept = false, ran = w->state == POOL_BUSY || w->state == POOL_DRAINING;
    enum rung_message_type type = rung_message_parse(line, n, &message);
    if (type == RUNG_MSG_HELLO && w->state == POOL_LAUNCHED)
        take_hello(w, message);
    else if (type == RUNG_MSG_READY && w->state == POOL_SETUP)
        take_ready(w, message);
    else if (type == RUNG_MSG_REFUSED)
        take_refusal(w, message);
    else if (type == RUNG_MSG_STAGE && ran)
        take_stage(w, message);
    else if (type == RUNG_MSG_BLOB && ran)
        take_blob(w, message);
    else if (type == RUNG_MSG_RESULT && ran)
        kept = take_result(w, message);
    else if (type == RUNG_MSG_AGAIN && ran)
        take_again(w, message);
    else if (type == RUNG_MSG_LOG)
        take_log(w, message);
    else if (type != RUNG_MSG_BEAT && type != RUNG_MSG_RUNG)
        pool_worker_lose(w, w->state == POOL_LAUNCHED, RUNG_EMISUSE,
                         "a line that breaks the protocol: %.80s", line);
    if (!kept)
        cJSON_Delete(message);
}

void pool_worker_listen(struct pool_worker *w, uint64_t now)
{
    enum rung_line_status got = rung_line_read(&w->in), next = RUNG_LINE_AGAIN;
    const char *line;
    size_t n;
    w->heard_ns = now;
    while (pool_worker_alive(w) && (next = rung_line_next(&w->in, &line, &n)) == RUNG_LINE_OK)
        take_line(w, line, n);
    if (!pool_worker_alive(w))
        return;
    if (next == RUNG_LINE_FAULT)
        pool_worker_lose(w, false, RUNG_EMISUSE, "a line of more than %d bytes", RUNG_LINE_MAX);
    else if (got == RUNG_LINE_EOF || got == RUNG_LINE_FAULT)
        pool_worker_lose(w, false, RUNG_EUNAVAILABLE,
                         w->state == POOL_LAUNCHED ? "the command ended without a hello"
                                                   : "it ended");
}
