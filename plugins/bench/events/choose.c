/*
 * How a block is measured. Short plans are replayed as a graph of many executions, each on buffers
 * of its own that hold nothing in the caches after the flush before the graph; long ones are
 * launched one by one, with a flush before each.
 */
#include "events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ESTIMATES = 5, MORE_ESTIMATES = 25, MOST_BATCH = 512, LEAST_BATCH = 4 };
/* Shorter plans are batched, to intervals of about that much; a block's preparation takes no more
 * than that, unless the recipe says. */
#define SHORT_NS 200e3
#define INTERVAL_NS 1e6
#define BLOCK_S 10.0

void events_fault(const struct rung_session *session, const struct rung_run *run,
                  struct rung_fault *out)
{
    uint32_t n = session->task->n_tensors, broken = run->guard_broken,
             changed = run->modified_input;
    uint32_t size = out->struct_size;
    *out = run->fault;
    out->struct_size = size;
    if (out->code[0])
        return;
    if (broken) {
        snprintf(out->code, sizeof out->code, "mem.out_of_bounds");
        snprintf(out->message, sizeof out->message,
                 "memory just outside %s%s was overwritten in the timed launches",
                 broken <= n && session->task->tensors[broken - 1].stride[0]
                     ? "or between the elements of "
                     : "",
                 broken <= n ? session->task->tensors[broken - 1].name : "a temp of the plan");
    } else if (changed) {
        snprintf(out->code, sizeof out->code, "input.modified");
        snprintf(out->message, sizeof out->message, "the timed launches changed the input %s",
                 changed <= n ? session->task->tensors[changed - 1].name : "");
    }
}

/* FNV-1a. */
static uint64_t shape_of(const struct rung_session *session,
                         const struct rung_timing_recipe *recipe)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < session->task->n_dims; i++)
        h = (h ^ (uint64_t)recipe->dims[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* What is noted of this measurement, or NULL. */
static struct events_note *find(struct events_timer *self, const struct rung_session *session,
                                uint64_t shape)
{
    for (uint32_t i = 0; i < EVENTS_NOTES; i++)
        if (self->notes[i].session == session->ctx && self->notes[i].shape == shape)
            return &self->notes[i];
    return NULL;
}

void events_note(struct events_timer *self, const struct rung_session *session,
                 const struct rung_timing_recipe *recipe, const struct events_mode *mode)
{
    uint64_t shape = shape_of(session, recipe);
    struct events_note *note = find(self, session, shape);
    if (!note)
        note = &self->notes[self->n_notes++ % EVENTS_NOTES];
    *note = (struct events_note){session->ctx, shape, *mode};
}

/* What launches one by one told. */
struct trial {
    double ns;     /* median */
    double wall_s; /* of all */
    double cost_s; /* wall time of one more, with drawing and poisoning */
    uint64_t set_bytes;
    uint32_t tries; /* each on other inputs */
};

/* Executions of one batch; 1: launch one by one. */
static uint32_t batch_of(const struct rung_session *session,
                         const struct rung_timing_recipe *recipe, const struct trial *t)
{
    double budget = recipe->budget_s > 0 ? recipe->budget_s : BLOCK_S;
    double most = fmin(MOST_BATCH, ceil(INTERVAL_NS / fmax(t->ns, 1)));
    if (t->ns >= SHORT_NS)
        return 1;
    if (t->set_bytes)
        most = fmin(most, floor((double)session->device->memory_bytes / 4 / (double)t->set_bytes));
    if (t->cost_s > 0)
        most = fmin(most, floor(budget / (recipe->samples + 1.0) / t->cost_s));
    return most < LEAST_BATCH ? 1 : (uint32_t)most;
}

/* Launches one by one, on cold caches: their median, and the wall time of one with all around it.
 */
static int32_t try_launches(struct events_timer *self, struct rung_call *call,
                            const struct rung_session *session,
                            const struct rung_timing_recipe *recipe, uint32_t n,
                            struct rung_fault *fault, struct trial *out)
{
    struct rung_run *run = NULL;
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED | RUNG_RUN_COLD,
                                       .dims = recipe->dims,
                                       .seed = ~recipe->seed - out->tries++,
                                       .repeats = n};
    double ns[MORE_ESTIMATES];
    uint64_t start = self->host->now_ns(self->host);
    int32_t status = session->run(session, call, &request, &run);
    out->wall_s = (double)(self->host->now_ns(self->host) - start) / 1e9;
    if (status != RUNG_OK)
        return status;
    events_fault(session, run, fault);
    if (!fault->code[0] && run->n_samples == n && run->samples_ns) {
        memcpy(ns, run->samples_ns, n * sizeof *ns);
        out->ns = events_median(ns, n);
        out->set_bytes = run->set_bytes;
    } else if (!fault->code[0]) {
        status = events_fail(call->error, RUNG_EMISUSE, "events.samples",
                             "the session timed not every launch");
    }
    session->end(session, run);
    return status;
}

/* What one more launch costs: the first ones pay for buffers and floors, and each run for itself.
 */
static int32_t try_more(struct events_timer *self, struct rung_call *call,
                        const struct rung_session *session, const struct rung_timing_recipe *recipe,
                        struct rung_fault *fault, struct trial *t)
{
    int32_t status = try_launches(self, call, session, recipe, ESTIMATES, fault, t);
    double few_s = t->wall_s;
    if (status == RUNG_OK && !fault->code[0])
        status = try_launches(self, call, session, recipe, MORE_ESTIMATES, fault, t);
    t->cost_s = fmax(0, t->wall_s - few_s) / (MORE_ESTIMATES - ESTIMATES);
    return status;
}

/* Only of short plans more than the time of one launch matters. */
static int32_t estimate(struct events_timer *self, struct rung_call *call,
                        const struct rung_session *session, const struct rung_timing_recipe *recipe,
                        struct rung_timing *out, struct events_mode *mode)
{
    struct trial t = {0};
    int32_t status = try_launches(self, call, session, recipe, ESTIMATES, &out->fault, &t);
    t.cost_s = t.wall_s / ESTIMATES;
    if (status == RUNG_OK && !out->fault.code[0] && t.ns < SHORT_NS)
        status = try_more(self, call, session, recipe, &out->fault, &t);
    if (status != RUNG_OK || out->fault.code[0])
        return status;
    uint32_t batch = batch_of(session, recipe, &t);
    *mode = (struct events_mode){batch, batch, batch * t.cost_s, 0, 0};
    return RUNG_OK;
}

int32_t events_choose(struct events_timer *self, struct rung_call *call,
                      const struct rung_session *session, const struct rung_timing_recipe *recipe,
                      struct rung_timing *out, struct events_mode *mode)
{
    const struct events_note *note = find(self, session, shape_of(session, recipe));
    if (!recipe->sets || !recipe->batch)
        return estimate(self, call, session, recipe, out, mode);
    *mode = (struct events_mode){.sets = recipe->sets, .batch = recipe->batch};
    if (note && note->mode.sets == recipe->sets && note->mode.batch == recipe->batch)
        mode->sample_s = note->mode.sample_s;
    return RUNG_OK;
}
