/*
 * The workers of a run: starts them (behind their launch prefixes), checks their hello, hands out
 * jobs one a worker, collects results and artifacts, starts a fresh one when one is lost.
 */
#ifndef WORKER_POOL_H
#define WORKER_POOL_H

#include "worker/job.h"

struct rung_pool;

struct rung_pool_spec {
    struct rung_registry *registry;
    const struct rung_pipeline *pipeline;
    const struct rung_task *task;
    const struct rung_node *task_node; /* the task's settings tree: what travels */
    const char *const *baselines;      /* that the task names; NULL-terminated, or NULL */
    const char *data_dir;
    /* [any thread] Receives every artifact; NULL: they are dropped. sha256 is checked already. */
    void (*store)(void *ctx, const char *sha256, const void *bytes, uint64_t n);
    /* [any thread] Progress lines of a job: "compile", "numeric 3/8"; may be NULL. */
    void (*progress)(void *ctx, const char *label, const char *text);
    void *ctx;
};

/*
 * Starts all workers and waits until one of the first entry (of the next one, where none of it can
 * start) has said hello and accepted the set-up; others may join later, and one that can't start is
 * a warning while any other is there. Workers with another device than that one's serve only jobs
 * that ask for theirs. RUNG_EUNAVAILABLE or
 * RUNG_ECONFIG with the worker's own words when none can.
 */
int32_t rung_pool_new(const struct rung_pool_spec *spec, struct rung_pool **out,
                      struct rung_error *err);
/* Workers that can take jobs at once. */
uint32_t rung_pool_size(const struct rung_pool *pool);
/*
 * The pool's own device, which judges and times every candidate: that of the first worker entry of
 * which one can start. Its name, its plugin, and what `sm_count` means in plans there.
 */
const char *rung_pool_device(const struct rung_pool *pool);
const char *rung_pool_plugin(const struct rung_pool *pool);
uint32_t rung_pool_sm_count(const struct rung_pool *pool);
/* Whether some worker has, or may still come to have, a device of this plugin. */
bool rung_pool_has(const struct rung_pool *pool, const char *plugin);
/*
 * [any thread] Waits for a free worker, runs the job, waits for its end. A wrong, crashing or
 * hanging kernel is an outcome. Fails only with RUNG_ECANCELLED (rung_pool_cancel) or
 * RUNG_EUNAVAILABLE (no worker that could do it is left, and none can be started). A job whose
 * worker was lost is tried once more elsewhere; one in which a baseline took the executor down is
 * done again without it.
 */
int32_t rung_pool_run(struct rung_pool *pool, const struct rung_job *job, struct rung_arena *arena,
                      struct rung_outcome *out, struct rung_error *err);
/* [any thread, async-signal-unsafe] Makes all waiting and running jobs end with RUNG_ECANCELLED. */
void rung_pool_cancel(struct rung_pool *pool);
/* Closes the workers' inputs, waits up to 3 s, kills what is left. */
void rung_pool_free(struct rung_pool *pool);

/* `rung worker`: the supervisor; and its executor child. Return exit statuses. */
int rung_supervisor_main(void);
int rung_executor_main(int fd);

#endif
