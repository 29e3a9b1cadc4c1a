/*
 * Frames between a process and its helper, and between a helper and its forked child. Both ends are
 * the same executable on the same machine, so numbers are in native order; lengths are checked all
 * the same, since a child that runs a candidate through a compiler may send anything.
 */
#ifndef PROCESS_WIRE_H
#define PROCESS_WIRE_H

#include "base/text.h"

enum { PROCESS_FD = 3 }; /* where a helper finds its socket */

enum process_frame_type {
    PROCESS_INIT = 1,     /* body: the opener's args */
    PROCESS_READY = 2,    /* status, body: symbol NUL message when status is not OK */
    PROCESS_REQUEST = 3,  /* a, b, c: wall_ms, memory_bytes, response_bytes; body: the request */
    PROCESS_RESPONSE = 4, /* a: outcome; status; body: as READY when status is not OK */
    PROCESS_CANCEL = 5,   /* ends the request that runs */
};

/* Outcome only on the wire: the opener has asked for the end. */
enum { PROCESS_CANCELLED = 100 };

/* Most bytes of a body that anybody reads. */
#define PROCESS_MAX_BODY ((uint64_t)256 << 20)

struct process_frame {
    uint32_t magic;
    uint32_t type; /* process_frame_type */
    int32_t status;
    uint32_t reserved;
    uint64_t a, b, c;
    uint64_t length; /* bytes of the body behind this header */
};

struct process_frame process_frame_of(uint32_t type, int32_t status);

/* All of header and body; sockets and pipes, without SIGPIPE on sockets. false with errno set. */
bool process_send(int fd, struct process_frame frame, const void *body, size_t n);

/*
 * Reads what is there (one read) into `in` and says whether a whole frame stands at its front.
 * 1: whole, 0: not yet, -1: end of file, a read error, or no frame of ours (a body over `limit`
 * included: then errno is EMSGSIZE).
 */
int process_receive(int fd, struct rung_buf *in, uint64_t limit, struct process_frame *frame);

/* The error that a READY or RESPONSE body of status != OK carries; and its making. */
void process_error_read(const struct process_frame *frame, const char *body,
                        struct rung_error *err);
void process_error_write(struct rung_buf *out, const struct rung_error *err);

#endif
