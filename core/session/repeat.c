/* Repeating a plan that is not timed; emptying the caches where the device can't do so itself. */
#include "session/private.h"

#include "base/io.h"

int32_t overwrite_new(struct run *run, struct rung_call *call, struct overwrite *w)
{
    struct rung_open_session *s = run->session;
    *w = (struct overwrite){.bytes = 2 * (uint64_t)s->spec.info->l2_bytes};
    if (!(run->flags & RUNG_RUN_COLD) || device_has_flush(s) || !w->bytes)
        return RUNG_OK;
    return memory_buffer(s, call, w->bytes, 256, "flush", &w->buffer);
}

int32_t overwrite_queue(struct run *run, struct rung_call *call, const struct overwrite *w)
{
    static const uint8_t zero;
    if (!(run->flags & RUNG_RUN_COLD))
        return RUNG_OK;
    if (device_has_flush(run->session))
        return device_flush(run->session, call);
    return w->buffer ? device_fill(run->session, call, w->buffer, 0, w->bytes, &zero, 1, 1)
                     : RUNG_OK;
}

void overwrite_free(struct run *run, struct overwrite *w)
{
    memory_drop(run->session, w->buffer, w->bytes);
}

int32_t repeat_go_on(struct run *run, struct rung_call *call, uint32_t done)
{
    if (rung_cancel_requested(call->cancel))
        return rung_fail(call->error, RUNG_ECANCELLED, "session.cancelled", "cancelled");
    if (call->deadline_ns && rung_now_ns() > call->deadline_ns)
        fault_set(&run->pub.fault, "run.timeout", "", 0,
                  "the time was over after %u launches of the plan", done);
    return RUNG_OK;
}

static int32_t one_repeat(struct run *run, struct rung_call *call, const struct overwrite *w)
{
    const struct rung_resolved_plan *plan = run->memory->plan;
    int32_t status = overwrite_queue(run, call, w);
    uint64_t start = rung_now_ns();
    if (status == RUNG_OK)
        status = launch_steps(run, call);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = launch_sync(run, call, plan && plan->n_steps == 1 ? &plan->steps[0] : NULL);
    run->pub.host_ns += rung_now_ns() - start;
    return status;
}

static int32_t repeat_prepared(struct run *run, struct rung_call *call, uint32_t repeats)
{
    struct overwrite watch;
    int32_t status = overwrite_new(run, call, &watch);
    for (uint32_t r = 0; r < repeats && status == RUNG_OK && !fault_is(&run->pub.fault); r++) {
        status = repeat_go_on(run, call, r);
        if (status == RUNG_OK && !fault_is(&run->pub.fault))
            status = slots_reset(run, call, r == 0);
        if (status == RUNG_OK && !fault_is(&run->pub.fault))
            status = one_repeat(run, call, &watch);
    }
    overwrite_free(run, &watch);
    return status;
}

int32_t repeat_all(struct run *run, struct rung_call *call, uint32_t repeats)
{
    int32_t status = RUNG_OK;
    if (!(run->flags & RUNG_RUN_KEEP_STATE))
        status = device_reset(run->session, call);
    if (status == RUNG_OK)
        status = launch_prepare(run, call);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = repeat_prepared(run, call, repeats);
    return status;
}
