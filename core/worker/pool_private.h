/*
 * Inside of the pool. One thread (the pool's own) starts workers, reads and writes their lines and
 * ends them; callers only queue jobs and wait. One lock guards everything; the thread holds it
 * except while it polls and while it calls back into the engine.
 */
#ifndef WORKER_POOL_PRIVATE_H
#define WORKER_POOL_PRIVATE_H

#include "worker/blob.h"
#include "worker/line.h"
#include "worker/message.h"
#include "worker/pool.h"
#include "worker/spawn.h"
#include <pthread.h>

enum pool_job_state {
    POOL_JOB_QUEUED,
    POOL_JOB_RUNNING,
    POOL_JOB_DONE, /* result, or lost */
    POOL_JOB_CANCELLED,
    POOL_JOB_FAILED, /* no worker is left */
};

/* Lives on the stack of the caller of rung_pool_run until its state is one of the last three. */
struct pool_job {
    enum pool_job_state state;
    uint64_t id;
    const char *label;
    struct rung_buf lines; /* what a worker gets: chunks of the bundle, the job */
    const char *device;    /* plugin that it needs; NULL: the pool's own */
    unsigned losses;       /* workers that were lost with it */
    cJSON *result;         /* the message; NULL when lost */
    struct pool_job *next; /* in the queue */
};

enum pool_worker_state {
    POOL_DOWN,     /* starts at start_ns */
    POOL_LAUNCHED, /* process started, no hello yet: it may queue behind its launch prefix */
    POOL_SETUP,    /* has the set-up, has not answered */
    POOL_FREE,
    POOL_BUSY,
    POOL_DRAINING, /* its job was cancelled; the answer is awaited */
    POOL_CLOSING,  /* pipes closed, process not reaped */
    POOL_GONE,
};

struct pool_worker {
    struct rung_pool *pool;
    const struct rung_worker_spec *spec;
    char name[64]; /* "worker 3 (srun)" */
    enum pool_worker_state state;
    struct rung_worker_pipes pipes;
    struct rung_line_in in;
    struct rung_line_out out;
    struct rung_blob_set blobs;
    struct pool_job *job;
    char progress[128]; /* last text passed on */
    uint64_t start_ns;  /* DOWN: when to start */
    uint64_t since_ns;  /* of the state */
    uint64_t heard_ns, nag_ns;
    uint64_t deaf_ns;   /* since when it takes no lines; 0: it does */
    unsigned failures;  /* in a row, without a result between them */
    int signal;         /* sent last to end it: 0, then SIGTERM, then SIGKILL */
    const char *plugin; /* of its device; NULL until it was ready once */
    const char *device; /* that device's name */
    uint32_t sm_count;
    bool was_ready, permanent;
    struct rung_error why; /* of its last loss */
};

struct rung_pool {
    struct rung_pool_spec spec;
    struct rung_arena *arena;
    cJSON *setup; /* all but "device" */
    struct pool_worker *workers;
    uint32_t n_workers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;        /* a job's state, or a worker's */
    int wake;                      /* eventfd */
    struct pool_job *first, *last; /* queued */
    uint64_t next_id, beat_ns;
    bool cancelled, closing;
    const struct pool_worker *own; /* whose device is the pool's own; NULL until there is one */
    struct rung_error failure;     /* why the last worker went */
};

/* pool_setup.c: the set-up message of this pipeline and task. RUNG_ECONFIG with file and line. */
int32_t pool_setup_build(const struct rung_pool_spec *spec, struct rung_arena *arena, cJSON **out,
                         struct rung_error *err);

/* pool_worker.c: all with the lock held, by the pool's thread only. */
void pool_worker_init(struct rung_pool *pool, struct pool_worker *w,
                      const struct rung_worker_spec *spec, uint32_t index);
/* Starts, nags, times out, kills, reaps. */
void pool_worker_attend(struct pool_worker *w, uint64_t now);
/* Reads what is there and acts on it. */
void pool_worker_listen(struct pool_worker *w, uint64_t now);
void pool_worker_flush(struct pool_worker *w);
bool pool_worker_alive(const struct pool_worker *w);
void pool_worker_give(struct pool_worker *w, struct pool_job *job);
void pool_worker_cancel(struct pool_worker *w);
void pool_worker_close(struct pool_worker *w);
/* Closes the pipes, gives the job back; starts again after a while unless permanent. */
void pool_worker_lose(struct pool_worker *w, bool permanent, int32_t status, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

/* pool.c, with the lock held. */
void pool_job_finish(struct rung_pool *pool, struct pool_job *job, enum pool_job_state state);
/* Back to the head of the queue, or finished when it was lost twice. */
void pool_job_return(struct rung_pool *pool, struct pool_job *job);

#endif
