/*
 * Bytes that travel in chunks: bundles one way, artifacts the other. The receiver believes nothing:
 * chunks must follow each other, sizes are bounded and the hash is computed anew.
 */
#ifndef WORKER_BLOB_H
#define WORKER_BLOB_H

#include "base/hash.h"
#include "base/json.h"

enum {
    RUNG_BLOB_CHUNK = 48 << 10, /* bytes a chunk, before base64 */
    RUNG_BLOB_MAX = 64 << 20,   /* bytes a blob */
    RUNG_BLOB_OPEN = 16,        /* blobs that a set holds at once */
};

struct rung_blob {
    char sha256[RUNG_SHA256_HEX];
    struct rung_buf bytes;
    uint64_t total;
    bool used;
};

/* Blobs on their way and those that have arrived. {0} is empty. One thread at a time. */
struct rung_blob_set {
    struct rung_blob blobs[RUNG_BLOB_OPEN];
    uint64_t held; /* bytes in all */
};

/*
 * Takes one chunk. *done is the blob when this was its last chunk and the hash is right, else NULL.
 * RUNG_EMISUSE, with the reason, for anything that a correct sender does not send.
 */
int32_t rung_blob_take(struct rung_blob_set *set, const cJSON *message,
                       const struct rung_blob **done, struct rung_error *err);
/* A blob that has arrived whole, or NULL. */
const struct rung_blob *rung_blob_find(const struct rung_blob_set *set, const char *sha256);
void rung_blob_drop(struct rung_blob_set *set, const struct rung_blob *blob);
void rung_blob_clear(struct rung_blob_set *set);

/* Hands the chunk lines of n bytes to send, which borrows each. Stops when it returns false. */
bool rung_blob_send(const char *sha256, const void *bytes, uint64_t n,
                    bool (*send)(void *ctx, const char *line), void *ctx);

#endif
