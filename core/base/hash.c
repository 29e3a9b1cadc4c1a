#include "base/hash.h"
#include "base/status.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>

void rung_sha256(const void *bytes, uint64_t n, char hex[RUNG_SHA256_HEX])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, bytes, n);
    SHA256End(&context, hex);
}

int32_t rung_sha256_file(const char *path, char hex[RUNG_SHA256_HEX], struct rung_error *err)
{
    if (!SHA256File(path, hex))
        return rung_fail(err, RUNG_EIO, "", "%s: can't be read: %s", path, strerror(errno));
    return RUNG_OK;
}
