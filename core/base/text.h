/*
 * Strings: a growing buffer and strict parsing. Any thread, one thread a buffer.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <rung/plugin.h>
#include <stdbool.h>

/* Growing text on the heap. {0} is a valid, empty one; ptr is NULL until something was added. */
struct rung_buf {
    char *ptr;
    size_t len; /* ptr[len] == 0 whenever ptr is not NULL */
    size_t cap;
};

void rung_buf_add(struct rung_buf *buf, const void *bytes, size_t n);
void rung_buf_puts(struct rung_buf *buf, const char *text);
void rung_buf_putc(struct rung_buf *buf, char c);
void rung_buf_printf(struct rung_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Drops the first n bytes (n <= len). */
void rung_buf_drop(struct rung_buf *buf, size_t n);
void rung_buf_free(struct rung_buf *buf);
/* The text, "" when nothing was added. Valid until the next change. */
const char *rung_buf_text(const struct rung_buf *buf);

/* The whole of text as a decimal integer or number; false on junk, overflow, inf and NaN. */
bool rung_parse_i64(const char *text, int64_t *out);
bool rung_parse_u64(const char *text, uint64_t *out);
bool rung_parse_f64(const char *text, double *out);
/* "90", "90s", "500ms", "412us", "80ns", "1.5m", "2h", "1d" -> seconds >= 0. */
bool rung_parse_duration(const char *text, double *seconds);
/* "4096", "64KiB", "2MiB", "1GiB", "1kB", "1MB", "1GB" -> bytes >= 0. */
bool rung_parse_bytes(const char *text, int64_t *bytes);

bool rung_starts_with(const char *text, const char *prefix);
/*
 * The entry of names (n of them, NULL entries are skipped) that is nearest to `name`, or NULL when
 * none is near enough to suggest: at most a third of its letters differ (one of up to five, none of
 * one or two; two neighbours swapped count once, upper and lower case are the same), or one is the
 * beginning of the other.
 */
const char *rung_nearest(const char *name, const char *const *names, size_t n);
/* Longest prefix of at most n bytes that does not cut a UTF-8 sequence. */
size_t rung_utf8_cut(const char *text, size_t len, size_t n);
/* Whether all of it is valid UTF-8 without NUL. */
bool rung_utf8_valid(const char *text, size_t len);

static inline struct rung_text rung_text_of(const char *text)
{
    return (struct rung_text){text, text ? __builtin_strlen(text) : 0};
}

#endif
