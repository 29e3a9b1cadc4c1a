/*
 * Growing bytes, and the writing and reading of numbers and texts in them. A failed allocation sets
 * `failed` and makes all later writing void, so that it needs one check at the end: the helper's
 * child runs under a memory limit. One thread a buffer.
 */
#ifndef NVRTC_BUFFER_H
#define NVRTC_BUFFER_H

#include <rung/plugin.h>
#include <stdbool.h>

struct nv_buffer {
    char *ptr; /* ptr[len] == 0 once something was added */
    size_t len, cap;
    bool failed;
};

void nv_add(struct nv_buffer *b, const void *bytes, size_t n);
void nv_puts(struct nv_buffer *b, const char *text);
void nv_printf(struct nv_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nv_free(struct nv_buffer *b);
/* "" when nothing was added. */
const char *nv_text(const struct nv_buffer *b);

/* Behind the blanks, line ends and comments of C++ at p. */
const char *nv_skip_blank(const char *p);

/* Numbers in native order; texts as a length, the bytes, and a NUL. */
void nv_put_u32(struct nv_buffer *b, uint32_t value);
void nv_put_u64(struct nv_buffer *b, uint64_t value);
void nv_put_bytes(struct nv_buffer *b, const void *bytes, size_t n);
void nv_put_text(struct nv_buffer *b, const char *text);

/* Reads what the functions above wrote. After the first fault everything reads as 0 or "". */
struct nv_reader {
    const char *at, *end;
    bool failed;
};

uint32_t nv_get_u32(struct nv_reader *r);
uint64_t nv_get_u64(struct nv_reader *r);
/* Borrowed from the reader's bytes; ptr[len] is 0. */
struct rung_text nv_get_bytes(struct nv_reader *r);
const char *nv_get_text(struct nv_reader *r);
/* A count of items of at least `least` bytes each: fails when so many can't stand in the rest. */
uint32_t nv_get_count(struct nv_reader *r, size_t least);

#endif
