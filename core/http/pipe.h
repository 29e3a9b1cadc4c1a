/*
 * The way of one reply from the thread of all transfers (loop.c) to the thread of its caller: a
 * queue of bounded size, and the news that the transfer is over. One writer, one reader.
 */
#ifndef HTTP_PIPE_H
#define HTTP_PIPE_H

#include "base/text.h"
#include "http/library.h"

#include <pthread.h>
#include <semaphore.h>

/* What the writer may hold for a slow reader before it says that the pipe is full. */
enum { RUNG_PIPE_BYTES = 64 * 1024 };

struct rung_pipe {
    pthread_mutex_t lock;
    sem_t news;            /* posted where `waits` was set; cheaper here than a condition */
    bool waits;            /* the reader sleeps, or is about to */
    struct rung_buf queue; /* records */
    bool full;             /* the writer waits for room */
    bool nudged;           /* somebody wants the reader to look up */
    bool over;             /* nothing follows */
    bool dismissed;        /* over, but not by the transfer's own end */
    CURLcode result;       /* of a transfer that ended by itself */
};

enum rung_pipe_kind {
    RUNG_PIPE_LINE, /* of the head, or a trailer */
    RUNG_PIPE_DATA, /* a piece of the body */
};

void rung_pipe_init(struct rung_pipe *pipe);
/* Wipes what was not read, for it may hold a secret that came back. */
void rung_pipe_free(struct rung_pipe *pipe);

/* ---- The writer ---- */

/*
 * Adds bytes; rung_pipe_wake tells the reader. With `bounded`, false when they don't fit: the
 * writer shall offer them again when the reader asks for it (rung_pipe_take). Something always fits
 * into an empty pipe.
 */
bool rung_pipe_put(struct rung_pipe *pipe, enum rung_pipe_kind kind, const char *bytes, size_t n,
                   bool bounded);
/* Wakes the reader if it sleeps and there are records. */
void rung_pipe_wake(struct rung_pipe *pipe);
/* Nothing follows; the last use of the pipe by its writer. */
void rung_pipe_end(struct rung_pipe *pipe, CURLcode result, bool dismissed);
/* Wakes the reader, once for all times. */
void rung_pipe_nudge(struct rung_pipe *pipe);

/* ---- The reader ---- */

enum rung_pipe_news {
    RUNG_PIPE_IDLE,   /* the time came */
    RUNG_PIPE_NUDGED, /* somebody nudged */
    RUNG_PIPE_ROOM,   /* records; and the writer waits to be told that there is room */
    RUNG_PIPE_MORE,   /* records */
    RUNG_PIPE_OVER,   /* all was read, nothing follows */
};

/*
 * Waits until until_ns (the clock of rung_now_ns) for records, which replace what `records` holds;
 * a nudge ends the waiting for ever.
 */
enum rung_pipe_news rung_pipe_take(struct rung_pipe *pipe, struct rung_buf *records,
                                   uint64_t until_ns);
/* Waits, however long, until nothing follows. */
void rung_pipe_wait_end(struct rung_pipe *pipe);
/* The record at *at, which moves on to the next; false behind the last. */
bool rung_pipe_next(const struct rung_buf *records, size_t *at, enum rung_pipe_kind *kind,
                    char **bytes, size_t *n);

#endif
