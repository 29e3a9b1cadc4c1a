/* The session as plugins of an executor get it: the core's table with run() watched. */
#include "worker/trial.h"

static void note_run(struct rung_trial *trial, const struct rung_run *run)
{
    if (run->fault.sticky)
        trial->sticky = true;
    for (uint32_t i = 0; run->facts && i < run->n_launches; i++)
        if (run->facts[i].shared_bytes > trial->shared_bytes)
            trial->shared_bytes = run->facts[i].shared_bytes;
}

static int32_t watched_run(const struct rung_session *table, struct rung_call *call,
                           const struct rung_run_request *request, struct rung_run **out)
{
    const struct rung_watch *watch = (const struct rung_watch *)(const void *)table;
    *out = NULL;
    if (watch->announce && request->dims)
        rung_trial_at(watch->trial, rung_task_dims_text(call->arena, table->task, request->dims));
    int32_t status = watch->inner->run(watch->inner, call, request, out);
    if (watch->announce)
        rung_trial_at(watch->trial, ""); /* what happens from here on is not the kernel's doing */
    if (status == RUNG_OK && *out)
        note_run(watch->trial, *out);
    return status;
}

const struct rung_session *rung_watch_init(struct rung_watch *watch, struct rung_trial *trial,
                                           const struct rung_session *inner, bool announce)
{
    *watch =
        (struct rung_watch){.table = *inner, .inner = inner, .trial = trial, .announce = announce};
    watch->table.run = watched_run;
    return &watch->table;
}

const struct rung_session *rung_trial_watch(struct rung_trial *trial, bool announce)
{
    return rung_watch_init(&trial->watch, trial, rung_session_table(trial->session), announce);
}
