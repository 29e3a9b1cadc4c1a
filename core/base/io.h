/* Files, descriptors and clocks. Any thread. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/arena.h"
#include "base/text.h"

/* Monotonic nanoseconds; the clock of rung_call.deadline_ns. */
uint64_t rung_now_ns(void);
/* Milliseconds since 1970. */
int64_t rung_wall_ms(void);

/* The file's bytes with a closing NUL, at most `limit` of them (else RUNG_EIO). */
int32_t rung_read_file(struct rung_arena *arena, const char *path, uint64_t limit,
                       struct rung_text *out, struct rung_error *err);
/* Writes a temporary file beside it, syncs, renames: readers see the old or the new one. */
int32_t rung_write_file(const char *path, const void *bytes, uint64_t n, struct rung_error *err);
/* All directories of the path, mode 0777 & ~umask. */
int32_t rung_make_dirs(const char *path, struct rung_error *err);
/* All of it, in spite of signals and short writes. false with errno set. */
bool rung_write_all(int fd, const void *bytes, size_t n);
/* dir of `file` joined with `path`, or path itself when it is absolute. */
char *rung_path_beside(struct rung_arena *arena, const char *file, const char *path);
/* The path from the root on: beside the current folder when it is relative. */
char *rung_path_absolute(struct rung_arena *arena, const char *path);
char *rung_path_join(struct rung_arena *arena, const char *dir, const char *path);
/* The running executable, resolved; thread-local memory. NULL when it can't be told. */
const char *rung_exe_path(void);

/* Base64 (RFC 4648, with padding). Decoding refuses anything else with false. */
void rung_base64_encode(struct rung_buf *out, const void *bytes, size_t n);
bool rung_base64_decode(struct rung_buf *out, const char *text, size_t n);

#endif
