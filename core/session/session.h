/*
 * The session: one variant on one device. Draws inputs, owns all buffers, launches the plan,
 * watches inputs and guard zones, computes the reference after the run, compares. It is what struct
 * rung_session (the ABI table for verifiers and timers) is made of. One thread at a time.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "plugin/instance.h"
#include "task/plan.h"
#include <rung/baseline.h>
#include <rung/session.h>

struct rung_session_spec {
    struct rung_instance *device;    /* started */
    struct rung_instance *reference; /* started */
    const struct rung_device_info *info;
    const struct rung_task *task;
    const struct rung_plan *plan;
    const struct rung_artifact *artifact;
    struct rung_point point;
    uint64_t memory_limit;               /* bytes of buffers at once; 0: the device's */
    const struct rung_task_rest *stated; /* the work that the task states; NULL: none */
    /*
     * A baseline instead of a candidate: plan and artifact are NULL then, and one execution is one
     * call of rung_baseline_ops.enqueue with the case, whose scratch the session provides.
     */
    struct rung_instance *baseline;
    const struct rung_baseline_case *baseline_case;
    /* For what the host would otherwise do itself; NULL: it does. Borrowed. */
    struct session_gpu *gpu;
};

struct rung_open_session;

/*
 * Loads the artifact. *fault is filled (and *out NULL, RUNG_OK returned) when the device can't take
 * it. Everything in spec is borrowed until close.
 */
int32_t rung_session_open(const struct rung_session_spec *spec, struct rung_call *call,
                          struct rung_open_session **out, struct rung_fault *fault);
/* The ABI table; lives until close. */
const struct rung_session *rung_session_table(const struct rung_open_session *session);
/* Ends all runs, frees buffers, unloads. NULL is fine. */
void rung_session_close(struct rung_open_session *session);

/*
 * Element index i of a fill (see struct rung_fill in rung/session.h), in float64 before rounding to
 * the tensor's dtype. last = size of the last axis, at least 1. Pure; NaN for an unknown kind.
 */
double rung_fill_value(const char *kind, uint64_t seed, uint32_t tensor, uint64_t i, int64_t last);
/* Whether the kind is known; and all kinds, NULL-terminated. */
bool rung_fill_known(const char *kind);
extern const char *const rung_fill_kinds[];
/* n elements of dtype from element `first` on, drawn and rounded (to nearest even). */
int32_t rung_fill_draw(const struct rung_fill *fill, uint32_t dtype, uint64_t seed, uint64_t first,
                       uint64_t n, int64_t last, void *out);

#endif
