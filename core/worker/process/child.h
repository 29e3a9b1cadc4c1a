/*
 * The forked child of a helper: made ahead while the helper is idle, so that forking and copying
 * pages on write cost no request any time; it takes one request, shuts itself in, serves, and ends.
 */
#ifndef PROCESS_CHILD_H
#define PROCESS_CHILD_H

#include "worker/process/wire.h"
#include <rung/host.h>
#include <sys/types.h>

struct process_child {
    pid_t pid; /* 0: none */
    int to;    /* requests go in here */
    int from;  /* one RESPONSE frame comes out here */
};

/*
 * Forks a child that waits for a request. host is handed to nobody in it; ops and state are the
 * plugin's. close_fd is a descriptor of the parent's that the child must not keep. false with errno
 * set. Only in a process with one thread.
 */
bool process_child_fork(struct process_child *child, const struct rung_helper_ops *ops, void *state,
                        int close_fd);

struct process_end {
    int status;          /* of wait4 */
    uint64_t peak_bytes; /* most memory that it held at once */
};

/*
 * The end of a child: waits up to `grace_ms` for it to end by itself, then kills it with its group,
 * reaps it and closes its pipes.
 */
struct process_end process_child_end(struct process_child *child, int grace_ms);

#endif
