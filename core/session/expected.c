/* The reference result of a run: computed once, after the launches, from the host's own inputs. */
#include "session/private.h"

#include <string.h>

static void view_of(const struct slot *s, struct rung_tensor_view *view)
{
    *view = (struct rung_tensor_view){.struct_size = sizeof *view,
                                      .dtype = s->dtype,
                                      .n_dims = s->n_dims,
                                      .alignment = 16,
                                      .data = s->before};
    int64_t stride = 1;
    for (uint32_t d = s->n_dims; d-- > 0;) {
        view->dims[d] = s->shape[d];
        view->strides[d] = stride;
        stride *= s->shape[d];
    }
}

/* What a reference plugin hands out may last only until its next call, so the run keeps a copy. */
static int32_t keep(struct run *run, struct rung_call *call,
                    const struct rung_reference_output *from)
{
    const struct slot *s = &run->slots[from->tensor];
    if (from->n != s->elements || (s->elements && (!from->value || !from->bound)))
        return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                         "the reference gave %llu elements of %s; %llu are needed",
                         (unsigned long long)from->n, s->name, (unsigned long long)s->elements);
    for (uint64_t i = 0; i < from->n; i++)
        if (!(from->bound[i] >= 0))
            return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                             "the reference gave a bound of %g for %s[%llu]", from->bound[i],
                             s->name, (unsigned long long)i);
    uint64_t bytes = (from->n ? from->n : 1) * sizeof(double);
    double *value = rung_arena_alloc(run->arena, bytes, 64);
    double *bound = rung_arena_alloc(run->arena, bytes, 64);
    if (!value || !bound)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for the reference of %s", s->name);
    memcpy(value, from->value, from->n * sizeof *value);
    memcpy(bound, from->bound, from->n * sizeof *bound);
    run->expected[from->tensor] = (struct rung_reference_output){.struct_size = sizeof *from,
                                                                 .tensor = from->tensor,
                                                                 .n = from->n,
                                                                 .value = value,
                                                                 .bound = bound};
    return RUNG_OK;
}

static int32_t evaluate(struct run *run, struct rung_call *call)
{
    const struct rung_task *task = run->session->spec.task;
    struct rung_tensor_view *views =
        RUNG_ARENA_NEW(call->arena, struct rung_tensor_view, task->n_tensors);
    struct rung_reference_output *outputs =
        RUNG_ARENA_NEW(call->arena, struct rung_reference_output, task->n_tensors);
    uint32_t n_inputs = 0, n = 0;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        view_of(&run->slots[i], &views[i]);
        n_inputs += slot_is_input(&run->slots[i]);
        if (slot_is_output(&run->slots[i]))
            outputs[n++] =
                (struct rung_reference_output){.struct_size = sizeof *outputs, .tensor = i};
    }
    struct rung_reference_request request = {.struct_size = sizeof request,
                                             .n_inputs = n_inputs,
                                             .task = task,
                                             .dims = run->dims,
                                             .tensors = views};
    int32_t status;
    RUNG_INVOKE(status, run->session->spec.reference, struct rung_reference_ops, evaluate, call,
                &request, outputs, n);
    for (uint32_t i = 0, o = 0; i < task->n_tensors && status == RUNG_OK; i++)
        if (slot_is_output(&run->slots[i])) {
            outputs[o].tensor = i; /* in task order, by contract */
            status = keep(run, call, &outputs[o++]);
        }
    return status;
}

static int32_t ensure_expected(struct run *run, struct rung_call *call)
{
    if (run->expected)
        return RUNG_OK;
    struct rung_call inner = *call;
    inner.arena = rung_arena_new();
    if (!inner.arena)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for the reference");
    run->expected = RUNG_ARENA_NEW(run->arena, struct rung_reference_output,
                                   run->session->spec.task->n_tensors);
    int32_t status = evaluate(run, &inner);
    rung_arena_free(inner.arena);
    if (status != RUNG_OK)
        run->expected = NULL;
    return status;
}

int32_t session_expected(const struct rung_session *table, struct rung_call *call,
                         struct rung_run *pub, uint32_t tensor, struct rung_reference_output *out)
{
    struct run *run;
    (void)table;
    int32_t status = run_finished(pub, call, tensor, &run);
    if (status != RUNG_OK)
        return status;
    if (!slot_is_output(&run->slots[tensor]))
        return rung_fail(call->error, RUNG_EINVAL, "session.run", "%s is no output",
                         run->slots[tensor].name);
    status = ensure_expected(run, call);
    if (status == RUNG_OK)
        *out = run->expected[tensor];
    return status;
}

int32_t session_work(const struct rung_session *table, struct rung_call *call, const int64_t *dims,
                     struct rung_work *out)
{
    struct rung_open_session *session = table->ctx;
    int32_t status;
    *out = (struct rung_work){.struct_size = sizeof *out};
    RUNG_INVOKE(status, session->spec.reference, struct rung_reference_ops, work, call, table->task,
                dims, out);
    if (status == RUNG_OK && !(out->flops >= 0 && out->min_bytes >= 0))
        return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                         "the reference gave no sensible work");
    return status;
}
