#include "base/text.h"
#include "base/die.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void buf_room(struct rung_buf *buf, size_t n)
{
    if (n > SIZE_MAX / 4 - buf->len)
        rung_die("a text of %zu bytes is too large", n);
    if (buf->len + n + 1 <= buf->cap)
        return;
    size_t cap = buf->cap ? buf->cap * 2 : 256;
    if (cap < buf->len + n + 1)
        cap = buf->len + n + 1;
    buf->ptr = rung_xrealloc(buf->ptr, cap);
    buf->cap = cap;
}

void rung_buf_add(struct rung_buf *buf, const void *bytes, size_t n)
{
    buf_room(buf, n);
    if (n)
        memcpy(buf->ptr + buf->len, bytes, n);
    buf->len += n;
    buf->ptr[buf->len] = 0;
}

void rung_buf_puts(struct rung_buf *buf, const char *text)
{
    rung_buf_add(buf, text, strlen(text));
}

void rung_buf_putc(struct rung_buf *buf, char c)
{
    rung_buf_add(buf, &c, 1);
}

void rung_buf_printf(struct rung_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n > 0) {
        buf_room(buf, (size_t)n);
        vsnprintf(buf->ptr + buf->len, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
}

void rung_buf_drop(struct rung_buf *buf, size_t n)
{
    if (n > buf->len)
        n = buf->len;
    if (n == 0)
        return;
    memmove(buf->ptr, buf->ptr + n, buf->len - n);
    buf->len -= n;
    buf->ptr[buf->len] = 0;
}

void rung_buf_free(struct rung_buf *buf)
{
    free(buf->ptr);
    *buf = (struct rung_buf){0};
}

const char *rung_buf_text(const struct rung_buf *buf)
{
    return buf->ptr ? buf->ptr : "";
}

bool rung_parse_i64(const char *text, int64_t *out)
{
    char *end;
    if (!(*text == '-' || (*text >= '0' && *text <= '9')))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *out = v;
    return true;
}

bool rung_parse_u64(const char *text, uint64_t *out)
{
    char *end;
    if (!(*text >= '0' && *text <= '9'))
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *out = v;
    return true;
}

bool rung_parse_f64(const char *text, double *out)
{
    char *end;
    if (!strchr("+-.0123456789", *text) || !*text)
        return false;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || strpbrk(text, "xX"))
        return false;
    *out = v;
    return true;
}

struct unit {
    const char *name;
    double factor;
};

/* A number >= 0 followed by one of the units. */
static bool parse_unit(const char *text, const struct unit *units, double *out)
{
    char *end;
    if (!(*text >= '0' && *text <= '9') || strpbrk(text, "xX"))
        return false;
    double v = strtod(text, &end);
    for (; units->name; units++) {
        if (strcmp(end, units->name) != 0)
            continue;
        *out = v * units->factor;
        return isfinite(*out);
    }
    return false;
}

bool rung_parse_duration(const char *text, double *seconds)
{
    static const struct unit units[] = {{"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
                                        {"ns", 1e-9}, {"m", 60}, {"min", 60},  {"h", 3600},
                                        {"d", 86400}, {NULL, 0}};
    return parse_unit(text, units, seconds);
}

bool rung_parse_bytes(const char *text, int64_t *bytes)
{
    static const struct unit units[] = {
        {"", 1},          {"B", 1},         {"kB", 1e3},
        {"MB", 1e6},      {"GB", 1e9},      {"KiB", 1 << 10},
        {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", (double)(1ll << 40)},
        {NULL, 0}};
    double v;
    if (!parse_unit(text, units, &v) || v > 9e15)
        return false;
    *bytes = (int64_t)v;
    return true;
}

bool rung_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Edit distance of two short names, two neighbours swapped counting once (optimal string
 * alignment); long names count as far. Letters of both cases are the same.
 */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), rows[3][65];
    if (n > 64 || m > 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]) && two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

/* One is the other's beginning, of two letters at least: "multiple" for "multiple_of". */
static bool begins_like(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;
    return least >= 2 && strncasecmp(a, b, least) == 0;
}

const char *rung_nearest(const char *name, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t len = strlen(name), limit = len < 3 ? 0 : len < 6 ? 1 : len / 3, least = limit + 1;
    for (size_t i = 0; i < n; i++) {
        if (!names[i])
            continue;
        size_t d = edit_distance(name, names[i]);
        if (d > limit && d != SIZE_MAX && begins_like(name, names[i]))
            d = limit;
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

/* Length of the valid UTF-8 sequence at s (1..4), or 0. */
static size_t utf8_step(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return s[0] ? 1 : 0;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (!len || s[0] > 0xf4 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

bool rung_utf8_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_step((const unsigned char *)text + i, len - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

size_t rung_utf8_cut(const char *text, size_t len, size_t n)
{
    if (len <= n)
        return len;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}
