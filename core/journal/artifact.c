/* Artifacts: files named by their hash, written beside and renamed, so that none is ever half
 * there. */
#include "base/io.h"
#include "base/status.h"
#include "journal/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ARTIFACT = 64 << 20 };

static bool sha_valid(const char *sha256)
{
    return strlen(sha256) == 64 && strspn(sha256, "0123456789abcdef") == 64;
}

static int32_t artifact_path(struct rung_journal *j, const char *sha256, char *path, size_t n,
                             struct rung_error *err)
{
    if (!sha_valid(sha256))
        return rung_fail(err, RUNG_EINVAL, "journal.hash", "'%.80s' is no SHA-256", sha256);
    snprintf(path, n, "%s/artifacts/%s", rung_journal_dir(j), sha256);
    return RUNG_OK;
}

/* What a person can do about a full disk, as the journal itself tells it. */
static void add_hint(struct rung_error *err)
{
    size_t used = err ? strlen(err->message) : 0;
    if (err && strstr(err->message, strerror(ENOSPC)))
        snprintf(err->message + used, sizeof err->message - used, "; free some space and resume");
}

int32_t rung_journal_store(struct rung_journal *j, const char *sha256, const void *bytes,
                           uint64_t n, struct rung_error *err)
{
    char path[4200], dir[4200];
    struct stat st;
    int32_t status = artifact_path(j, sha256, path, sizeof path, err);
    if (status || stat(path, &st) == 0)
        return status;
    snprintf(dir, sizeof dir, "%s/artifacts", rung_journal_dir(j));
    status = rung_make_dirs(dir, err);
    if (!status)
        status = rung_write_file(path, bytes, n, err);
    if (status)
        add_hint(err);
    return status;
}

int32_t rung_journal_artifact(struct rung_journal *j, const char *sha256, struct rung_arena *arena,
                              struct rung_text *out, struct rung_error *err)
{
    char path[4200], hex[RUNG_SHA256_HEX];
    int32_t status = artifact_path(j, sha256, path, sizeof path, err);
    if (!status)
        status = rung_read_file(arena, path, MAX_ARTIFACT, out, err);
    if (status)
        return status;
    rung_sha256(out->ptr, out->len, hex);
    if (strcmp(hex, sha256) != 0)
        return rung_fail(err, RUNG_EIO, "journal.artifact",
                         "%s: its contents do not match its name", path);
    return RUNG_OK;
}
