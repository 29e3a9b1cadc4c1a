/*
 * Server-sent events out of a stream of bytes: WHATWG HTML, section 9.2.6 "Interpreting an event
 * stream". The same events come out however the bytes are split. Pure; one thread a parser.
 */
#ifndef HTTP_EVENTS_H
#define HTTP_EVENTS_H

#include "base/text.h"

/* {.max_bytes = N} is a parser at the begin of a stream. The rest is private. */
struct rung_events {
    uint32_t max_bytes;       /* of one event's data, and of its name; reached is fine */
    uint8_t state;            /* which part of a line comes next */
    uint8_t field;            /* whose value that is */
    uint8_t bom;              /* bytes of the byte order mark seen; past it: 4 */
    bool after_cr;            /* a line feed now belongs to the line's end before it */
    char key[6];              /* begin of the field's name */
    uint8_t n_key;            /* its length; more than any known name's: 6 */
    struct rung_buf data;     /* each line of it followed by a newline */
    struct rung_buf name;     /* empty: "message" */
    struct rung_buf repaired; /* texts that were no UTF-8 */
};

/*
 * What receives an event: its name, never empty, and its data, both valid until it returns. As the
 * standard's decoder does, what is no UTF-8 reads U+FFFD. Non-zero: no more of them.
 */
typedef int32_t (*rung_events_sink)(void *ctx, struct rung_text name, struct rung_text data);

enum rung_events_result {
    RUNG_EVENTS_FED,
    RUNG_EVENTS_STOPPED,   /* by the sink */
    RUNG_EVENTS_TOO_LARGE, /* data or name of one event above max_bytes */
};

/*
 * Reads n more bytes. Comments, `id`, `retry` and unknown fields are dropped, and so is what the
 * end of the stream leaves unfinished: no call is needed for that. Not to be fed after a result
 * other than RUNG_EVENTS_FED.
 */
enum rung_events_result rung_events_feed(struct rung_events *events, const char *bytes, size_t n,
                                         rung_events_sink sink, void *ctx);
void rung_events_free(struct rung_events *events);

#endif
