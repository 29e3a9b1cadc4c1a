/*
 * The executor's main loop: set-up, then one job after the other, until the socket closes or the
 * device is lost. Nothing here forks or reads a file of the candidate.
 */
#include "worker/executor.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/pool.h"
#include "worker/spawn.h"
#include "worker/trial.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool rung_executor_send_line(struct rung_executor *ex, const char *line)
{
    return send_all(ex->fd, line, strlen(line)) && send_all(ex->fd, "\n", 1);
}

bool rung_executor_send(struct rung_executor *ex, cJSON *message)
{
    char *line = rung_message_line(message);
    bool sent = rung_executor_send_line(ex, line);
    free(line);
    return sent;
}

/* ---- Jobs ---- */

/* The bundle's JSON text: in the job itself, or in a blob that came before it. */
static cJSON *bundle_json(struct rung_executor *ex, const cJSON *job, char hex[RUNG_SHA256_HEX])
{
    const char *sha256 = rung_message_sha(job, "bundle_sha256");
    const struct rung_blob *blob = sha256 ? rung_blob_find(&ex->blobs, sha256) : NULL;
    const cJSON *inlined = rung_json_get(job, "bundle");
    if (blob) {
        memcpy(hex, sha256, RUNG_SHA256_HEX);
        return rung_json_parse(rung_buf_text(&blob->bytes), blob->bytes.len);
    }
    if (!cJSON_IsObject(inlined))
        return NULL;
    char *text = rung_json_line(inlined);
    rung_sha256(text, strlen(text), hex);
    free(text);
    return cJSON_Duplicate(inlined, true);
}

static int32_t read_bundle(struct rung_trial *trial, const cJSON *job, struct rung_error *err)
{
    cJSON *json = bundle_json(trial->ex, job, trial->bundle_sha256);
    if (!json)
        return rung_fail(err, RUNG_EMISUSE, "worker.job",
                         "a job whose bundle is missing or is no JSON");
    struct rung_error why = rung_error_init();
    trial->bundle = rung_bundle_from_json(trial->arena, json, &why);
    trial->bundle_problem = rung_arena_strdup(trial->arena, why.message);
    cJSON_Delete(json);
    return RUNG_OK;
}

/* Another kernel of the same task, for turns: a guest of the trial. */
static int32_t read_rival(struct rung_trial *trial, const cJSON *job, struct rung_error *err)
{
    const cJSON *rival = rung_json_get(job, "rival"), *point = rung_json_get(rival, "point");
    const char *label = rung_json_text(rival, "label", NULL);
    if (!rival)
        return RUNG_OK;
    if (!label || (point && !cJSON_IsString(point)))
        return rung_fail(err, RUNG_EMISUSE, "worker.job", "a rival without a label");
    trial->rival = RUNG_ARENA_NEW(trial->arena, struct rung_trial, 1);
    *trial->rival = (struct rung_trial){
        .ex = trial->ex,
        .arena = trial->arena,
        .id = trial->id,
        .guest = rung_arena_strdup(trial->arena, label),
        .label = trial->label,
        .verdict = RUNG_ACCEPTED,
        .message = rung_text_of(""),
        .asked_point = point ? rung_arena_strdup(trial->arena, point->valuestring) : NULL,
    };
    return read_bundle(trial->rival, rival, err);
}

static int32_t read_bundles(struct rung_trial *trial, const cJSON *job, struct rung_error *err)
{
    int32_t status = read_bundle(trial, job, err);
    if (status == RUNG_OK)
        status = read_rival(trial, job, err);
    rung_blob_clear(&trial->ex->blobs);
    return status;
}

static int32_t read_job(struct rung_trial *trial, const cJSON *job, struct rung_error *err)
{
    uint64_t stages, occasions;
    const char *label = rung_json_text(job, "label", NULL);
    const cJSON *point = rung_json_get(job, "point");
    double delta = rung_json_number(job, "delta", 0);
    if (!label || !rung_message_u64(job, "id", &trial->id) ||
        !rung_message_u64(job, "stages", &stages) ||
        !rung_message_u64(job, "occasions", &occasions) || occasions >= 2u << RUNG_WHEN_FINAL ||
        stages >= 2u * RUNG_STAGE_BASELINES || (point && !cJSON_IsString(point)))
        return rung_fail(err, RUNG_EMISUSE, "worker.job",
                         "a job without id, label, stages or occasions");
    trial->stages = (uint32_t)stages;
    trial->occasions = (uint32_t)occasions;
    trial->named = rung_json_bool(job, "named", false);
    trial->delta = delta > 0 && delta < 1 ? delta : 0;
    trial->label = rung_arena_strdup(trial->arena, label);
    trial->asked_point = point ? rung_arena_strdup(trial->arena, point->valuestring) : NULL;
    return read_bundles(trial, job, err);
}

/* false when the executor shall end: the orchestrator errs, or the device is lost. */
static bool take_job(struct rung_executor *ex, const cJSON *message)
{
    struct rung_error err = rung_error_init();
    struct rung_trial trial = {.ex = ex, .arena = rung_arena_new(), .verdict = RUNG_ACCEPTED};
    int32_t status = trial.arena && ex->task
                         ? read_job(&trial, message, &err)
                         : rung_fail(&err, RUNG_EMISUSE, "worker.job", "a job before the set-up");
    ex->trial = &trial;
    ex->n_jobs++;
    if (status == RUNG_OK)
        rung_trial_run(&trial);
    else
        rung_executor_send(ex, rung_refusal_new(status, err.message));
    ex->trial = NULL;
    rung_arena_free(trial.arena);
    return status == RUNG_OK && !trial.sticky;
}

/* ---- Messages ---- */

static bool take_setup(struct rung_executor *ex, cJSON *message)
{
    struct rung_error err = rung_error_init();
    int32_t status = ex->setup ? rung_fail(&err, RUNG_EMISUSE, "worker.setup", "a second set-up")
                               : rung_executor_setup(ex, message, &err);
    if (status == RUNG_OK)
        return rung_executor_send(ex, rung_executor_ready(ex));
    rung_executor_send(ex, rung_refusal_new(status, err.message));
    return false;
}

static bool take_blob(struct rung_executor *ex, const cJSON *message)
{
    struct rung_error err = rung_error_init();
    const struct rung_blob *done;
    int32_t status = rung_blob_take(&ex->blobs, message, &done, &err);
    if (status != RUNG_OK)
        rung_executor_send(ex, rung_refusal_new(status, err.message));
    return status == RUNG_OK;
}

static bool take_line(struct rung_executor *ex, const char *line, size_t n)
{
    cJSON *message;
    enum rung_message_type type = rung_message_parse(line, n, &message);
    bool go_on = false;
    if (type == RUNG_MSG_SETUP)
        go_on = take_setup(ex, message);
    else if (type == RUNG_MSG_BLOB)
        go_on = take_blob(ex, message);
    else if (type == RUNG_MSG_JOB)
        go_on = take_job(ex, message);
    else
        rung_executor_send(
            ex, rung_refusal_new(RUNG_EMISUSE, "a line that is no message to an executor"));
    cJSON_Delete(message);
    return go_on;
}

static void serve(struct rung_executor *ex)
{
    const char *line;
    size_t n;
    for (;;) {
        enum rung_line_status got = rung_line_next(&ex->in, &line, &n);
        if (got == RUNG_LINE_OK && !take_line(ex, line, n))
            return;
        if (got == RUNG_LINE_FAULT)
            return;
        if (got != RUNG_LINE_AGAIN)
            continue;
        got = rung_line_read(&ex->in);
        if (got == RUNG_LINE_EOF || got == RUNG_LINE_FAULT)
            return;
    }
}

int rung_executor_main(int fd)
{
    static const struct rlimit no_core = {0, 0};
    struct rung_executor ex = {.lock = RUNG_DEVICE_UNLOCKED};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE,
              &no_core); /* a crash is a verdict; its memory image would only fill disks */
    ex.fd = ex.in.fd = rung_fd_private(fd);
    ex.arena = rung_arena_new();
    if (ex.fd < 0 || !ex.arena) {
        rung_log(RUNG_LOG_ERROR, "executor", "descriptor %d is not a supervisor's", fd);
        return 3;
    }
    serve(&ex);
    rung_executor_release(&ex);
    rung_line_in_free(&ex.in);
    rung_arena_free(ex.arena);
    return 0;
}
