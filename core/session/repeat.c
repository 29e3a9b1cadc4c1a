/*
 * Repeating a plan and timing it. Events lie around the launches of one repeat; resetting buffers
 * and flushing caches is queued before the first of them, so that the launches are already waiting
 * when the device comes to them and their start-up on the host is not measured.
 */
#include "session/private.h"

#include "base/io.h"

#include <stdlib.h>

enum { FLOOR_PAIRS = 21 };

/* All NULL when the run is not timed. */
struct stopwatch {
    struct rung_device_event *from, *to;
    struct rung_buffer *flush; /* COLD */
    uint64_t flush_bytes;
    double *samples;
};

static int32_t record(struct run *run, struct rung_call *call, struct rung_device_event *event)
{
    int32_t status = RUNG_OK;
    if (event)
        RUNG_INVOKE(status, run->session->spec.device, struct rung_device_ops, event_record, call,
                    event);
    return status;
}

static int32_t elapsed(struct run *run, struct rung_call *call, const struct stopwatch *w,
                       double *ns)
{
    int32_t status;
    RUNG_INVOKE(status, run->session->spec.device, struct rung_device_ops, event_elapsed, call,
                w->from, w->to, ns);
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int32_t flush(struct run *run, struct rung_call *call, const struct stopwatch *w)
{
    static const uint8_t zero;
    if (!w->flush)
        return RUNG_OK;
    return device_fill(run->session, call, w->flush, 0, w->flush_bytes, &zero, 1, 1);
}

/* What the events read with nothing between them. */
static int32_t measure_floor(struct run *run, struct rung_call *call, const struct stopwatch *w)
{
    double ns[FLOOR_PAIRS];
    int32_t status = RUNG_OK;
    for (int i = 0; i < FLOOR_PAIRS && status == RUNG_OK && !fault_is(&run->pub.fault); i++) {
        status = record(run, call, w->from);
        if (status == RUNG_OK)
            status = record(run, call, w->to);
        if (status == RUNG_OK)
            status = launch_sync(run, call, NULL);
        if (status == RUNG_OK && !fault_is(&run->pub.fault))
            status = elapsed(run, call, w, &ns[i]);
    }
    if (status != RUNG_OK || fault_is(&run->pub.fault))
        return status;
    qsort(ns, FLOOR_PAIRS, sizeof *ns, ascending);
    run->pub.floor_ns = ns[FLOOR_PAIRS / 2];
    return RUNG_OK;
}

static int32_t stopwatch_new(struct run *run, struct rung_call *call, uint32_t repeats,
                             struct stopwatch *w)
{
    struct rung_open_session *s = run->session;
    int32_t status = RUNG_OK;
    if (run->flags & RUNG_RUN_COLD) {
        w->flush_bytes = 2 * (uint64_t)s->spec.info->l2_bytes;
        if (w->flush_bytes)
            status = device_alloc(s, call, w->flush_bytes, 256, "flush", &w->flush);
    }
    if (status != RUNG_OK || !(run->flags & RUNG_RUN_TIMED))
        return status;
    RUNG_INVOKE(status, s->spec.device, struct rung_device_ops, event_new, call, &w->from);
    if (status == RUNG_OK)
        RUNG_INVOKE(status, s->spec.device, struct rung_device_ops, event_new, call, &w->to);
    if (status != RUNG_OK)
        return status;
    w->samples = RUNG_ARENA_NEW(run->arena, double, repeats);
    run->pub.samples_ns = w->samples;
    return measure_floor(run, call, w);
}

static void stopwatch_free(struct run *run, struct stopwatch *w)
{
    const struct rung_instance *device = run->session->spec.device;
    const struct rung_device_ops *ops = device->ops;
    if (w->to)
        ops->event_free(device->self, w->to);
    if (w->from)
        ops->event_free(device->self, w->from);
    if (w->flush)
        device_free(run->session, w->flush);
}

static int32_t one_repeat(struct run *run, struct rung_call *call, const struct ready *ready,
                          const struct stopwatch *w)
{
    int32_t status = flush(run, call, w);
    uint64_t start = rung_now_ns();
    if (status == RUNG_OK)
        status = record(run, call, w->from);
    if (status == RUNG_OK)
        status = launch_steps(run, call, ready);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = record(run, call, w->to);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = launch_sync(run, call, run->plan->n_steps == 1 ? &run->plan->steps[0] : NULL);
    run->pub.host_ns += rung_now_ns() - start;
    if (status == RUNG_OK && w->samples && !fault_is(&run->pub.fault))
        status = elapsed(run, call, w, &w->samples[run->pub.n_samples++]);
    return status;
}

/* Between repeats: whether the call has time left and is still wanted. */
static int32_t go_on(struct run *run, struct rung_call *call, uint32_t done)
{
    if (rung_cancel_requested(call->cancel))
        return rung_fail(call->error, RUNG_ECANCELLED, "session.cancelled", "cancelled");
    if (call->deadline_ns && rung_now_ns() > call->deadline_ns)
        fault_set(&run->pub.fault, "run.timeout", "", 0,
                  "the time was over after %u launches of the plan", done);
    return RUNG_OK;
}

static int32_t repeat_prepared(struct run *run, struct rung_call *call, const struct ready *ready,
                               uint32_t repeats, const struct stopwatch *w)
{
    int32_t status = RUNG_OK;
    double sum = 0;
    for (uint32_t r = 0; r < repeats && status == RUNG_OK && !fault_is(&run->pub.fault); r++) {
        status = go_on(run, call, r);
        if (status == RUNG_OK && !fault_is(&run->pub.fault))
            status = slots_reset(run, call, r == 0);
        if (status == RUNG_OK && !fault_is(&run->pub.fault))
            status = one_repeat(run, call, ready, w);
    }
    for (uint32_t i = 0; i < run->pub.n_samples; i++)
        sum += w->samples[i];
    run->pub.elapsed_ns = run->pub.n_samples ? sum / run->pub.n_samples : 0;
    return status;
}

int32_t repeat_all(struct run *run, struct rung_call *call, uint32_t repeats)
{
    struct stopwatch watch = {.from = NULL};
    const struct ready *ready = NULL;
    int32_t status = RUNG_OK;
    if (!(run->flags & RUNG_RUN_KEEP_STATE))
        status = device_reset(run->session, call);
    if (status == RUNG_OK)
        status = launch_prepare(run, call, &ready);
    if (!ready)
        return status;
    status = stopwatch_new(run, call, repeats, &watch);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = repeat_prepared(run, call, ready, repeats, &watch);
    stopwatch_free(run, &watch);
    return status;
}
