/* One byte at a time, but for values, which are copied whole. Nothing of a line is kept but data
 * and name. */
#include "http/events.h"

#include <string.h>

enum { KEY, COLON, VALUE }; /* state: a field's name, the byte after its colon, its value */
enum { OTHER, DATA, NAME }; /* field */
enum { BOM_DONE = 4, KEPT_BYTES = 64 * 1024 };

static const char bom[] = "\xef\xbb\xbf";

/* ---- UTF-8 ---- */

/*
 * Length of the sequence at the begin of text (n > 0 bytes), or 0 and in *bad how many bytes one
 * U+FFFD stands for: the longest begin of a sequence (Unicode, 3.9, table 3-7), else one byte.
 */
static size_t sequence(const unsigned char *text, size_t n, size_t *bad)
{
    unsigned char first = text[0], low = 0x80, high = 0xbf;
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < length; i++) {
        *bad = i;
        if (i == n || text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    *bad = 1;
    return length;
}

/* The text as UTF-8; in `room` when it had to be mended. */
static struct rung_text decode(const struct rung_buf *text, size_t n, struct rung_buf *room)
{
    const unsigned char *bytes = (const void *)text->ptr;
    size_t bad, i = 0;
    if (rung_utf8_valid(text->ptr, n))
        return (struct rung_text){text->ptr, n};
    room->len = 0;
    while (i < n) {
        size_t length = sequence(bytes + i, n - i, &bad);
        rung_buf_add(room, length ? text->ptr + i : "\xef\xbf\xbd", length ? length : 3);
        i += length ? length : bad;
    }
    return (struct rung_text){room->ptr, room->len};
}

/* ---- Events ---- */

/* An event of many megabytes need not stay for the next ones, which are small. */
static void empty(struct rung_buf *buf)
{
    if (buf->cap > KEPT_BYTES)
        rung_buf_free(buf);
    buf->len = 0;
}

/* The blank line. An event without any data field is none. */
static enum rung_events_result dispatch(struct rung_events *e, rung_events_sink sink, void *ctx)
{
    int32_t stop = 0;
    if (e->data.len) {
        struct rung_buf name_room = {0};
        struct rung_text name = {"message", strlen("message")};
        if (e->name.len)
            name = decode(&e->name, e->name.len, &name_room);
        e->data.ptr[--e->data.len] = 0; /* the last line's newline */
        stop = sink(ctx, name, decode(&e->data, e->data.len, &e->repaired));
        rung_buf_free(&name_room);
    }
    empty(&e->data);
    empty(&e->name);
    empty(&e->repaired);
    return stop ? RUNG_EVENTS_STOPPED : RUNG_EVENTS_FED;
}

/* ---- Lines ---- */

static uint8_t known_field(const struct rung_events *e)
{
    if (e->n_key == 4 && memcmp(e->key, "data", 4) == 0)
        return DATA;
    return e->n_key == 5 && memcmp(e->key, "event", 5) == 0 ? NAME : OTHER;
}

/* The name of a field is whole, at its colon or at the line's end. */
static void end_key(struct rung_events *e)
{
    e->field = known_field(e);
    if (e->field == NAME)
        e->name.len = 0;
}

static enum rung_events_result end_line(struct rung_events *e, rung_events_sink sink, void *ctx)
{
    bool blank = e->state == KEY && e->n_key == 0;
    if (e->state == KEY)
        end_key(e);
    e->state = KEY;
    e->n_key = 0;
    if (blank)
        return dispatch(e, sink, ctx);
    if (e->field != DATA)
        return RUNG_EVENTS_FED;
    if (e->data.len > e->max_bytes)
        return RUNG_EVENTS_TOO_LARGE;
    rung_buf_putc(&e->data, '\n');
    return RUNG_EVENTS_FED;
}

/* A byte of a field's name, or the colon behind it; before the latter nothing: a comment. */
static void key_byte(struct rung_events *e, char c)
{
    if (c == ':') {
        end_key(e);
        e->state = COLON;
        return;
    }
    if (e->n_key < sizeof e->key)
        e->key[e->n_key++] = c;
}

/* Bytes of a value that hold no line's end. */
static enum rung_events_result add_value(struct rung_events *e, const char *bytes, size_t n)
{
    struct rung_buf *to = e->field == DATA ? &e->data : &e->name;
    if (e->field == OTHER)
        return RUNG_EVENTS_FED;
    if (n > e->max_bytes || to->len > e->max_bytes - n)
        return RUNG_EVENTS_TOO_LARGE;
    rung_buf_add(to, bytes, n);
    return RUNG_EVENTS_FED;
}

static size_t until_line_end(const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && bytes[i] != '\n' && bytes[i] != '\r')
        i++;
    return i;
}

/* Reads on from bytes (n > 0); *used is how far it came. */
static enum rung_events_result step(struct rung_events *e, const char *bytes, size_t n,
                                    size_t *used, rung_events_sink sink, void *ctx)
{
    bool joined = e->after_cr && *bytes == '\n';
    e->after_cr = *bytes == '\r';
    *used = 1;
    if (joined)
        return RUNG_EVENTS_FED;
    if (*bytes == '\r' || *bytes == '\n')
        return end_line(e, sink, ctx);
    if (e->state == KEY) {
        key_byte(e, *bytes);
        return RUNG_EVENTS_FED;
    }
    if (e->state == COLON) {
        e->state = VALUE;
        if (*bytes == ' ')
            return RUNG_EVENTS_FED;
    }
    *used = until_line_end(bytes, n);
    return add_value(e, bytes, *used);
}

/* Skips a byte order mark at the stream's begin; a part of one is the begin of a field's name. */
static size_t skip_bom(struct rung_events *e, const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && e->bom < 3 && bytes[i] == bom[e->bom]) {
        e->bom++;
        i++;
    }
    if (e->bom == 3 || i < n) {
        for (uint8_t k = 0; e->bom < 3 && k < e->bom; k++)
            key_byte(e, bom[k]);
        e->bom = BOM_DONE;
    }
    return i;
}

enum rung_events_result rung_events_feed(struct rung_events *e, const char *bytes, size_t n,
                                         rung_events_sink sink, void *ctx)
{
    enum rung_events_result result = RUNG_EVENTS_FED;
    size_t i = e->bom < BOM_DONE ? skip_bom(e, bytes, n) : 0;
    for (size_t used; i < n && result == RUNG_EVENTS_FED; i += used)
        result = step(e, bytes + i, n - i, &used, sink, ctx);
    return result;
}

void rung_events_free(struct rung_events *e)
{
    rung_buf_free(&e->data);
    rung_buf_free(&e->name);
    rung_buf_free(&e->repaired);
}
