/*
 * Starting and ending processes of the worker: a worker command with pipes (for the pool) and an
 * executor with its socket and log pipe (for the supervisor). Uses posix_spawn only: nothing of
 * ours runs between fork and exec.
 */
#ifndef WORKER_SPAWN_H
#define WORKER_SPAWN_H

#include <rung/plugin.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    RUNG_EXECUTOR_FD = 3, /* where an executor finds its socket */
    RUNG_PRIVATE_FD = 10, /* descriptors of ours lie here or higher */
};

/* A worker command. Both descriptors are non-blocking and close on exec. */
struct rung_worker_pipes {
    pid_t pid;
    int to;   /* its input */
    int from; /* its output */
};

struct rung_executor_pipes {
    pid_t pid; /* and process group */
    int sock;
    int log; /* its descriptors 1 and 2 */
};

/* argv is NULL-terminated and looked up in PATH. RUNG_EUNAVAILABLE names the command. */
int32_t rung_spawn_worker(const char *const *argv, struct rung_worker_pipes *out,
                          struct rung_error *err);
/* This very program again, as `worker --executor 3`, in a process group of its own. */
int32_t rung_spawn_executor(struct rung_executor_pipes *out, struct rung_error *err);
/*
 * A path that starts this program again from within this process; lives as long as the process. It
 * works in a root folder without /proc too.
 */
const char *rung_self_path(void);
/* Moves a descriptor to RUNG_PRIVATE_FD or higher, close-on-exec. -1 when that fails; fd is closed.
 */
int rung_fd_private(int fd);
void rung_fd_nonblocking(int fd);
/* Whether the child has ended; it is reaped then. */
bool rung_reap(pid_t pid, int *status);
/* "signal 11 (Segmentation fault)" or "exit status 3", in memory of the caller. */
const char *rung_status_text(int status, char *text, size_t size);

#endif
