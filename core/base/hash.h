/* SHA-256 as hex, from libmd. Any thread. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <rung/plugin.h>

enum { RUNG_SHA256_HEX = 65 };

void rung_sha256(const void *bytes, uint64_t n, char hex[RUNG_SHA256_HEX]);
/* Of a whole file. RUNG_EIO with the path and the reason. */
int32_t rung_sha256_file(const char *path, char hex[RUNG_SHA256_HEX], struct rung_error *err);

#endif
