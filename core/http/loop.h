/*
 * The one thread in which all transfers of the process run: a libcurl multi handle, its sockets and
 * timers. Started by the first transfer, joined when the process ends by exit() or by a return from
 * main. Callers give it orders; what comes back goes through the flight's pipe.
 */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include "http/library.h"
#include "http/pipe.h"

/* One transfer while the thread has it. The owner keeps it in place until rung_loop_leave. */
struct rung_flight {
    CURL *easy;
    const struct rung_cancel
        *cancel; /* the pipe's reader is nudged when it is requested; or NULL */
    struct rung_pipe pipe;
    /* ---- private to loop.c ---- */
    struct rung_flight *before, *after; /* of all in the air */
    struct rung_flight *next_order;
    unsigned orders;
    bool in_air, landed, nudged, has_news;
    uint64_t woken_ns; /* when the pipe's reader was last woken */
};

/*
 * Hands over a transfer whose easy handle is complete; its pipe gets what happens, until its end.
 * The easy handle is the thread's until then. RUNG_ENOMEM (http.memory) when the thread can't be
 * started, RUNG_ECANCELLED (http.cancelled) while the process ends. Any thread.
 */
int32_t rung_loop_enter(const struct rung_curl *curl, struct rung_flight *flight,
                        struct rung_error *err);
/*
 * For libcurl's callbacks, on the thread itself: rung_pipe_put, and the reader hears of it at the
 * next occasion (loop.c).
 */
bool rung_loop_put(struct rung_flight *flight, enum rung_pipe_kind kind, const char *bytes,
                   size_t n, bool bounded);
/* There is room in the pipe again: what it refused comes now. Any thread. */
void rung_loop_resume(struct rung_flight *flight);
/*
 * Breaks the transfer off unless it is over, and waits until the thread has let go of it. After
 * that the owner may free everything. Any thread.
 */
void rung_loop_leave(struct rung_flight *flight);

#endif
