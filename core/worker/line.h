/*
 * Lines of the worker protocol over a descriptor: reading in bounded memory, and a write queue that
 * never blocks. Neither owns its descriptor. One thread at a time.
 */
#ifndef WORKER_LINE_H
#define WORKER_LINE_H

#include "base/text.h"

enum rung_line_status {
    RUNG_LINE_OK,
    RUNG_LINE_AGAIN, /* nothing more now */
    RUNG_LINE_EOF,   /* the other side has closed */
    RUNG_LINE_FAULT, /* a read error, or a line over RUNG_LINE_MAX */
};

struct rung_line_in {
    int fd;
    struct rung_buf buf;
    size_t pos;     /* first byte not handed out */
    size_t scanned; /* no newline before it, at or after pos */
};

struct rung_line_out {
    int fd;
    struct rung_buf buf;
    size_t pos; /* first byte not written */
};

/* One read(2) into the buffer. Blocks only where the descriptor does. */
enum rung_line_status rung_line_read(struct rung_line_in *in);
/*
 * The next whole line, without its newline and with a NUL after it; valid until the next read.
 * AGAIN when there is none yet, FAULT when it is (or is bound to become) longer than RUNG_LINE_MAX.
 */
enum rung_line_status rung_line_next(struct rung_line_in *in, const char **line, size_t *n);
void rung_line_in_free(struct rung_line_in *in);

/* Queues a line; the newline is added. */
void rung_line_push(struct rung_line_out *out, const char *line, size_t n);
/* Bytes that wait. */
size_t rung_line_waiting(const struct rung_line_out *out);
/* Writes what the descriptor takes now. false when the other side is gone. */
bool rung_line_flush(struct rung_line_out *out);
void rung_line_out_free(struct rung_line_out *out);

#endif
