/* Artifacts of the trial in hand: rung.host.artifact/0, and the compiled code itself. */
#include "base/status.h"
#include "worker/trial.h"

#include <stdio.h>
#include <string.h>

enum { STORED_MAX = 128 };

static bool was_sent(const struct rung_executor *ex, const char *sha256)
{
    for (size_t i = 0; i < RUNG_SENT_SIZE; i++)
        if (strcmp(ex->sent[i], sha256) == 0)
            return true;
    return false;
}

static bool send_line(void *ctx, const char *line)
{
    return rung_executor_send_line(ctx, line);
}

static bool good_name(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

static int32_t check(const struct rung_executor *ex, const char *name, const void *bytes,
                     uint64_t n, struct rung_error *err)
{
    if (!ex->trial)
        return rung_fail(err, RUNG_EINVAL, "artifact.no_job",
                         "artifacts belong to a job, and none runs");
    if (!good_name(name) || (n && !bytes))
        return rung_fail(err, RUNG_EINVAL, "artifact.name",
                         "an artifact's name is [a-z0-9_.-]{1,63}");
    if (n > RUNG_BLOB_MAX)
        return rung_fail(err, RUNG_EINVAL, "artifact.size", "%s: %llu bytes are more than 64 MiB",
                         name, (unsigned long long)n);
    if (cJSON_GetArraySize(ex->trial->stored) >= STORED_MAX)
        return rung_fail(err, RUNG_EINVAL, "artifact.count", "more than %d artifacts of one job",
                         STORED_MAX);
    return RUNG_OK;
}

static void list(struct rung_trial *trial, const char *name, const char *sha256, uint64_t n)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddStringToObject(item, "sha256", sha256);
    rung_json_add_i64(item, "bytes", (int64_t)n);
    if (!trial->stored)
        trial->stored = cJSON_CreateArray();
    cJSON_AddItemToArray(trial->stored, item);
}

int32_t rung_executor_store(struct rung_executor *ex, const char *name, const void *bytes,
                            uint64_t n, char sha256[RUNG_SHA256_HEX], struct rung_error *err)
{
    int32_t status = check(ex, name, bytes, n, err);
    if (status != RUNG_OK)
        return status;
    rung_sha256(n ? bytes : "", n, sha256);
    if (!was_sent(ex, sha256)) {
        if (!rung_blob_send(sha256, n ? bytes : "", n, send_line, ex))
            return rung_fail(err, RUNG_EIO, "artifact.send", "the supervisor is gone");
        memcpy(ex->sent[ex->n_sent++ % RUNG_SENT_SIZE], sha256, RUNG_SHA256_HEX);
    }
    list(ex->trial, name, sha256, n);
    return RUNG_OK;
}

static int32_t host_put(const struct rung_host *host, struct rung_call *call, const char *name,
                        const void *bytes, uint64_t n, char *sha256_hex)
{
    struct rung_executor *ex = rung_host_user(host, RUNG_HOST_ARTIFACT);
    return rung_executor_store(ex, name, bytes, n, sha256_hex, call->error);
}

const struct rung_host_artifact rung_artifact_table = {.struct_size = sizeof rung_artifact_table,
                                                       .put = host_put};
