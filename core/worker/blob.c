/* Sending and receiving of bytes in chunks. */
#include "worker/blob.h"
#include "base/io.h"
#include "base/status.h"
#include "worker/message.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 160 << 20 };

static struct rung_blob *find(const struct rung_blob_set *set, const char *sha256)
{
    for (size_t i = 0; i < RUNG_BLOB_OPEN; i++)
        if (set->blobs[i].used && strcmp(set->blobs[i].sha256, sha256) == 0)
            return (struct rung_blob *)&set->blobs[i];
    return NULL;
}

static struct rung_blob *open_blob(struct rung_blob_set *set, const char *sha256, uint64_t total)
{
    for (size_t i = 0; i < RUNG_BLOB_OPEN; i++) {
        struct rung_blob *blob = &set->blobs[i];
        if (blob->used)
            continue;
        *blob = (struct rung_blob){.total = total, .used = true};
        memcpy(blob->sha256, sha256, RUNG_SHA256_HEX);
        return blob;
    }
    return NULL;
}

static int32_t breach(struct rung_error *err, const char *what)
{
    return rung_fail(err, RUNG_EMISUSE, "worker.blob", "a chunk that breaks the protocol: %s",
                     what);
}

/* Adds the chunk's bytes. */
static int32_t append(struct rung_blob_set *set, struct rung_blob *blob, const char *data,
                      struct rung_error *err)
{
    size_t before = blob->bytes.len, n = strlen(data);
    if (n > (RUNG_BLOB_CHUNK + 2) / 3 * 4)
        return breach(err, "it is too large");
    bool good = rung_base64_decode(&blob->bytes, data, n);
    set->held += blob->bytes.len - before;
    if (!good)
        return breach(err, "its data are not base64");
    if (blob->bytes.len > blob->total)
        return breach(err, "more bytes than announced");
    if (blob->bytes.len == before && blob->total > 0)
        return breach(err, "it is empty");
    return set->held > HELD_MAX ? breach(err, "too many bytes at once") : RUNG_OK;
}

static int32_t finish(const struct rung_blob *blob, struct rung_error *err)
{
    char hex[RUNG_SHA256_HEX];
    rung_sha256(blob->bytes.len ? blob->bytes.ptr : "", blob->bytes.len, hex);
    return strcmp(hex, blob->sha256) == 0 ? RUNG_OK
                                          : breach(err, "the hash is not that of the bytes");
}

int32_t rung_blob_take(struct rung_blob_set *set, const cJSON *message,
                       const struct rung_blob **done, struct rung_error *err)
{
    uint64_t offset, total;
    const char *sha256 = rung_message_sha(message, "sha256");
    const char *data = rung_json_text(message, "data", NULL);
    *done = NULL;
    if (!sha256 || !data || !rung_message_u64(message, "offset", &offset) ||
        !rung_message_u64(message, "total", &total))
        return breach(err, "sha256, offset, total or data is missing");
    if (total > RUNG_BLOB_MAX)
        return breach(err, "it announces more than 64 MiB");
    struct rung_blob *blob = find(set, sha256);
    if (blob && offset == 0) { /* sent anew from its start: the first try was cut off */
        rung_blob_drop(set, blob);
        blob = NULL;
    }
    if (!blob && offset == 0)
        blob = open_blob(set, sha256, total);
    if (!blob)
        return breach(err, offset ? "its blob was never begun" : "too many blobs at once");
    if (offset != blob->bytes.len || total != blob->total)
        return breach(err, "it does not follow the one before");
    int32_t status = append(set, blob, data, err);
    if (status != RUNG_OK || blob->bytes.len < blob->total)
        return status;
    status = finish(blob, err);
    *done = status == RUNG_OK ? blob : NULL;
    return status;
}

const struct rung_blob *rung_blob_find(const struct rung_blob_set *set, const char *sha256)
{
    const struct rung_blob *blob = find(set, sha256);
    return blob && blob->bytes.len == blob->total ? blob : NULL;
}

void rung_blob_drop(struct rung_blob_set *set, const struct rung_blob *blob)
{
    struct rung_blob *mine = &set->blobs[blob - set->blobs];
    set->held -= mine->bytes.len;
    rung_buf_free(&mine->bytes);
    mine->used = false;
}

void rung_blob_clear(struct rung_blob_set *set)
{
    for (size_t i = 0; i < RUNG_BLOB_OPEN; i++)
        if (set->blobs[i].used)
            rung_blob_drop(set, &set->blobs[i]);
}

static char *chunk_line(const char *sha256, const char *bytes, uint64_t offset, size_t n,
                        uint64_t total)
{
    struct rung_buf data = {0};
    rung_base64_encode(&data, bytes + offset, n);
    cJSON *message = rung_message_new(RUNG_MSG_BLOB);
    cJSON_AddStringToObject(message, "sha256", sha256);
    rung_json_add_i64(message, "offset", (int64_t)offset);
    rung_json_add_i64(message, "total", (int64_t)total);
    cJSON_AddStringToObject(message, "data", rung_buf_text(&data));
    rung_buf_free(&data);
    return rung_message_line(message);
}

bool rung_blob_send(const char *sha256, const void *bytes, uint64_t n,
                    bool (*send)(void *ctx, const char *line), void *ctx)
{
    uint64_t offset = 0;
    do {
        size_t part = n - offset < RUNG_BLOB_CHUNK ? (size_t)(n - offset) : RUNG_BLOB_CHUNK;
        char *line = chunk_line(sha256, bytes, offset, part, n);
        bool sent = send(ctx, line);
        free(line);
        if (!sent)
            return false;
        offset += part;
    } while (offset < n);
    return true;
}
