/*
 * libFuzzer: any bytes as a stream of server-sent events. The same events must come out for the
 * whole at once, for single bytes and for pieces of random sizes, and they must be those of a
 * second, slow reader that does what the standard says, word by word: decode all, split into
 * lines, look at each. Byte 0 gives the limit of an event (255: none to speak of), byte 1 the
 * pieces.
 */
#include "base/text.h"
#include "http/events.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- What came out, as one text ---- */

struct log {
    struct rung_buf text;
    unsigned left; /* events until the sink says stop */
};

static void log_event(struct rung_buf *log, struct rung_text name, struct rung_text data)
{
    rung_buf_printf(log, "event %zu %zu ", (size_t)name.len, (size_t)data.len);
    rung_buf_add(log, name.ptr, name.len);
    rung_buf_add(log, data.ptr, data.len);
}

static int32_t take(void *ctx, struct rung_text name, struct rung_text data)
{
    struct log *log = ctx;
    if (!name.ptr || !data.ptr || name.ptr[name.len] || data.ptr[data.len] || !name.len)
        __builtin_trap();
    log_event(&log->text, name, data);
    return --log->left == 0;
}

/* Pieces of 1 + (something below step) bytes; 0: all at once. */
static enum rung_events_result parse(const char *bytes, size_t n, uint32_t max, unsigned step,
                                     unsigned stop_after, struct rung_buf *out)
{
    struct rung_events events = {.max_bytes = max};
    struct log log = {.left = stop_after};
    enum rung_events_result result = RUNG_EVENTS_FED;
    uint32_t random = step * 2654435761u + 1;
    for (size_t i = 0, piece; i < n && result == RUNG_EVENTS_FED; i += piece) {
        random = random * 1664525 + 1013904223;
        piece = step ? 1 + (random >> 16) % step : n;
        if (piece > n - i)
            piece = n - i;
        char *copy = malloc(piece); /* so that a read past the piece is seen */
        memcpy(copy, bytes + i, piece);
        result = rung_events_feed(&events, copy, piece, take, &log);
        free(copy);
    }
    rung_events_free(&events);
    *out = log.text;
    return result;
}

/* ---- The second reader ---- */

/* The "UTF-8 decoder" of the WHATWG Encoding standard, its answer written as UTF-8 again. */
static struct rung_buf decode(const unsigned char *bytes, size_t n)
{
    struct rung_buf out = {0};
    unsigned needed = 0, seen = 0, lower = 0x80, upper = 0xbf;
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned b = bytes[i];
        if (needed && b >= lower && b <= upper) {
            lower = 0x80;
            upper = 0xbf;
            if (++seen == needed) {
                rung_buf_add(&out, bytes + first, needed + 1);
                needed = seen = 0;
            }
            continue;
        }
        if (needed) {
            rung_buf_puts(&out, "\xef\xbf\xbd");
            needed = seen = 0;
            lower = 0x80;
            upper = 0xbf;
        }
        first = i;
        if (b < 0x80) {
            rung_buf_putc(&out, (char)b);
        } else if (b >= 0xc2 && b <= 0xdf) {
            needed = 1;
        } else if (b >= 0xe0 && b <= 0xef) {
            needed = 2;
            lower = b == 0xe0 ? 0xa0 : 0x80;
            upper = b == 0xed ? 0x9f : 0xbf;
        } else if (b >= 0xf0 && b <= 0xf4) {
            needed = 3;
            lower = b == 0xf0 ? 0x90 : 0x80;
            upper = b == 0xf4 ? 0x8f : 0xbf;
        } else {
            rung_buf_puts(&out, "\xef\xbf\xbd");
        }
    }
    return out; /* what is unfinished at the end can't be part of a dispatched event */
}

static bool is(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(text, word, n) == 0;
}

static void read_line(const char *line, size_t n, struct rung_buf *data, struct rung_buf *name)
{
    const char *colon = memchr(line, ':', n);
    size_t field = colon ? (size_t)(colon - line) : n;
    const char *value = colon ? colon + 1 : line + n;
    size_t length = n - (size_t)(value - line);
    if (length && *value == ' ') {
        value++;
        length--;
    }
    if (is(line, field, "event")) {
        name->len = 0;
        rung_buf_add(name, value, length);
    } else if (is(line, field, "data")) {
        rung_buf_add(data, value, length);
        rung_buf_putc(data, '\n');
    }
}

static struct rung_buf by_the_standard(const char *bytes, size_t n)
{
    struct rung_buf text = decode((const void *)bytes, n), out = {0}, data = {0}, name = {0};
    size_t at = text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (size_t end; at < text.len; at = end) {
        end = at;
        while (end < text.len && text.ptr[end] != '\r' && text.ptr[end] != '\n')
            end++;
        if (end == text.len)
            break;
        if (end > at) {
            read_line(text.ptr + at, end - at, &data, &name);
        } else {
            if (data.len)
                log_event(&out,
                          name.len ? (struct rung_text){name.ptr, name.len}
                                   : (struct rung_text){"message", 7},
                          (struct rung_text){data.ptr, data.len - 1});
            data.len = name.len = 0;
        }
        end += text.ptr[end] == '\r' && end + 1 < text.len && text.ptr[end + 1] == '\n' ? 2 : 1;
    }
    rung_buf_free(&text);
    rung_buf_free(&data);
    rung_buf_free(&name);
    return out;
}

static void must_equal(struct rung_buf *a, const struct rung_buf *b)
{
    if (a->len != b->len || (a->len && memcmp(a->ptr, b->ptr, a->len) != 0))
        __builtin_trap();
    rung_buf_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 2;
    const uint32_t max = data[0] == 255 ? 1u << 30 : data[0];
    const unsigned steps[] = {1, 2 + data[1] % 61}, stop_after = data[1] < 16 ? data[1] + 1 : 0;
    struct rung_buf whole, split;
    enum rung_events_result result = parse(bytes, size - 2, max, 0, stop_after, &whole);
    for (size_t i = 0; i < 2; i++) {
        if (parse(bytes, size - 2, max, steps[i], stop_after, &split) != result)
            __builtin_trap();
        must_equal(&split, &whole);
    }
    if (result == RUNG_EVENTS_FED) {
        struct rung_buf second = by_the_standard(bytes, size - 2);
        must_equal(&second, &whole);
    }
    rung_buf_free(&whole);
    return 0;
}
