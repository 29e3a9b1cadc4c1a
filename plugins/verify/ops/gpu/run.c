/* The walk over a graph's values. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

/* Readers of what the outputs need, from the last value to the first; others have none. */
static int32_t count_readers(struct ops_eval *ev)
{
    uint64_t n = 0, at = 0;
    for (struct ops_value *v = ev->first; v; v = v->next) {
        v->readers = 0;
        n++;
    }
    struct ops_value **all = calloc(n + 1, sizeof *all);
    if (!all)
        return ops_no_memory(&ev->who);
    for (struct ops_value *v = ev->first; v; v = v->next)
        all[at++] = v;
    for (uint32_t i = 0; i < ev->task->n_tensors; i++)
        if (ev->outputs[i])
            ev->outputs[i]->readers++;
    while (at-- > 0)
        for (uint32_t i = 0; all[at]->readers && i < all[at]->n_in; i++)
            all[at]->in[i]->readers++;
    free(all);
    return RUNG_OK;
}

static void read_one(struct ops_gpu *g, struct ops_value *v)
{
    if (--v->readers)
        return;
    ops_gpu_data_drop(g, v->gpu);
    v->gpu = NULL;
}

static int32_t finish_outputs(struct ops_gpu *g, struct ops_gpu_data **outputs)
{
    const struct rung_task *task = g->ev->task;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < task->n_tensors && !status; i++) {
        if (!g->ev->outputs[i])
            continue;
        status = ops_gpu_finish(g, g->ev->outputs[i]->gpu, task->tensors[i].dtype, &outputs[i]);
        read_one(g, g->ev->outputs[i]);
    }
    return status;
}

static int32_t cancelled(struct ops_gpu *g)
{
    const struct rung_host *host = g->ev->who.host;
    if (!g->call->cancel || !host->is_cancelled(host, g->call->cancel))
        return RUNG_OK;
    return ops_fail(&g->ev->who, RUNG_ECANCELLED, 0, "cancelled");
}

/* One walk; outputs has one entry a task tensor, filled for outputs. */
static int32_t walk(struct ops_gpu *g, struct ops_gpu_data **outputs)
{
    int32_t status = count_readers(g->ev);
    for (struct ops_value *v = g->ev->first; v && !status; v = v->next) {
        if (!v->readers)
            continue;
        status = cancelled(g);
        if (!status)
            status = ops_gpu_value(g, v);
        for (uint32_t i = 0; i < v->n_in && !status; i++)
            read_one(g, v->in[i]);
    }
    if (!status)
        status = finish_outputs(g, outputs);
    for (struct ops_value *v = g->ev->first; v; v = v->next) {
        ops_gpu_data_drop(g, v->gpu); /* after a failure */
        v->gpu = NULL;
    }
    return status;
}

static void drop_all(struct ops_gpu *g, struct ops_gpu_data **outputs)
{
    for (uint32_t i = 0; i < g->ev->task->n_tensors; i++) {
        ops_gpu_data_drop(g, outputs[i]);
        outputs[i] = NULL;
    }
}

/* Learns the kernels and loads them. */
static int32_t prepare(struct ops_gpu *g, struct ops_gpu_data **outputs)
{
    g->dry = 1;
    int32_t status = walk(g, outputs);
    drop_all(g, outputs);
    g->dry = 0;
    return status ? status : ops_gpu_load(g);
}

static int32_t hand_over(struct ops_gpu *g, struct ops_gpu_data **data,
                         struct rung_reference_device_output *outputs, uint32_t n_outputs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->ev->task->n_tensors; i++)
        n += g->ev->outputs[i] != NULL;
    if (n != n_outputs)
        return ops_fail(&g->ev->who, RUNG_EINVAL, 0, "the task has %u outputs, not %u", n,
                        n_outputs);
    for (uint32_t i = 0; i < g->ev->task->n_tensors; i++) {
        if (!data[i])
            continue;
        *outputs++ = (struct rung_reference_device_output){.struct_size = sizeof *outputs,
                                                           .tensor = i,
                                                           .n = data[i]->n,
                                                           .value = data[i]->v,
                                                           .bound = data[i]->e};
        data[i]->v = data[i]->e = NULL;
    }
    return RUNG_OK;
}

int32_t ops_gpu_evaluate(struct ops_eval *ev, struct ops_gpu_module *loaded,
                         struct rung_reference_device_output *outputs, uint32_t n_outputs)
{
    struct ops_gpu *g = calloc(1, sizeof *g);
    struct ops_gpu_data **data = calloc(ev->task->n_tensors + 1, sizeof *data);
    int32_t status = g && data ? ops_gpu_open(g, ev, loaded) : ops_no_memory(&ev->who);
    if (!status)
        status = prepare(g, data);
    if (!status)
        status = walk(g, data);
    if (!status)
        status = hand_over(g, data, outputs, n_outputs);
    if (g && data && g->ops) {
        drop_all(g, data);
        ops_gpu_close(g);
    }
    free(data);
    free(g);
    return status;
}
