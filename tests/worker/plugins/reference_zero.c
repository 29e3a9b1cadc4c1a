/* A reference that says zero to everything; the graph "wrong" is refused. */
#include "fake.h"
#include <rung/reference.h>

static int32_t check(void *self, struct rung_call *call, const struct rung_task *task)
{
    (void)self;
    if (task->graph && strcmp(task->graph, "wrong") == 0)
        return fake_fail(call, RUNG_ECONFIG, "graph:1: unknown operator");
    return RUNG_OK;
}

static int32_t evaluate(void *self, struct rung_call *call,
                        const struct rung_reference_request *request,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    (void)self, (void)request, (void)outputs, (void)n_outputs;
    return fake_fail(call, RUNG_EUNSUPPORTED, "these tests compare nothing");
}

static int32_t work(void *self, struct rung_call *call, const struct rung_task *task,
                    const int64_t *dims, struct rung_work *out)
{
    (void)self, (void)call, (void)task;
    out->flops = (double)dims[0];
    out->min_bytes = 8.0 * (double)dims[0];
    return RUNG_OK;
}

static const struct rung_reference_ops ops = {
    .struct_size = sizeof ops, .check = check, .evaluate = evaluate, .work = work};
FAKE_PLUGIN(RUNG_KIND_REFERENCE, "zero", 0, NULL, ops)
