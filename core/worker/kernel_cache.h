/*
 * Compiled kernels of the core's and the plugins' own, as one block of bytes and as files that
 * later processes find again. A file is trusted only when it is this user's alone and its checksum
 * is right; anything else counts as not there. Any thread.
 */
#ifndef WORKER_KERNEL_CACHE_H
#define WORKER_KERNEL_CACHE_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/text.h"
#include <rung/compiler.h>

/*
 * $XDG_CACHE_HOME/rung/kernels, or ~/.cache/rung/kernels, made with mode 0700 where it is missing.
 * NULL when there can be none, or it is not this user's alone. Lives in the arena.
 */
const char *rung_kernel_cache_folder(struct rung_arena *arena);

/* All of an artifact but its plan and variables, with a checksum. */
void rung_kernel_pack(const struct rung_artifact *artifact, struct rung_buf *out);
/*
 * The artifact back, in the arena, with its kernels in the order of `kernels` (NULL-terminated);
 * NULL when the bytes are damaged or a kernel is missing.
 */
const struct rung_artifact *rung_kernel_unpack(struct rung_arena *arena, struct rung_text bytes,
                                               const char *const *kernels);

/* The file of a key; empty text when there is none that can be trusted. Lives in the arena. */
struct rung_text rung_kernel_cache_read(struct rung_arena *arena, const char *folder,
                                        const char key[RUNG_SHA256_HEX]);
/* Writes it beside its place with mode 0600 and renames it; does nothing where that fails. */
void rung_kernel_cache_write(const char *folder, const char key[RUNG_SHA256_HEX],
                             const struct rung_buf *bytes);

#endif
