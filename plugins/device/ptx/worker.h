/*
 * worker.h - deals a launch's blocks out to host threads and runs them to their end.
 */
#ifndef PTX_WORKER_H
#define PTX_WORKER_H

#include "context.h"

#define PTX_MAX_WORKERS 64u

/* One launch: what its workers share. */
struct ptx_job {
    const struct ptx_exec *common; /* what contexts start as */
    uint64_t shared_bytes;         /* a block */
    uint64_t n_clusters;           /* of the grid */
    uint64_t n_gangs;              /* to run; fewer when blocks are sampled */
    uint32_t gang_blocks, gang_clusters;
    uint32_t n_workers;
    uint32_t checks; /* ptx_checks */
    uint64_t seed;
    uint64_t max_context_bytes; /* of all contexts of a worker */
    uint64_t next;              /* atomic: number of the next gang to run */
    uint32_t stop;              /* atomic: a worker has failed */
    uint32_t n_alive, n_stuck;  /* atomic: workers that run, and those of them that get nowhere */
};

/* Which blocks are checked for races and values never written. */
enum ptx_checks { PTX_CHECK_OFF = 0, PTX_CHECK_SAMPLE, PTX_CHECK_ALL };

/* Runs all gangs. fault: of the lowest block that failed. Returns 0, or -1 when memory is out. */
int ptx_run_job(struct ptx_job *job, struct rung_fault *fault);

#endif
