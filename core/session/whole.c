/*
 * Whole outputs against the reference, where they lie: the reference computes on the device, from
 * inputs drawn anew into memory that no candidate ever saw, after it has finished.
 */
#include "session/private.h"

#include "base/log.h"

#include <stddef.h>

struct whole {
    struct run *run;
    uint32_t n_tensors, n_outputs;
    struct rung_buffer **inputs; /* one a task tensor */
    struct rung_tensor_view *views;
    struct rung_reference_device_output *outputs;
};

bool whole_is_possible(const struct rung_open_session *s)
{
    const struct rung_reference_ops *ops = s->spec.reference->ops;
    size_t end = offsetof(struct rung_reference_ops, evaluate_device) + sizeof ops->evaluate_device;
    return s->spec.gpu && !rung_task_strided(s->spec.task) && !s->host_reference &&
           ops->struct_size >= end && ops->evaluate_device;
}

static void view_of(const struct slot *s, struct rung_tensor_view *view)
{
    int64_t stride = 1;
    *view = (struct rung_tensor_view){.struct_size = sizeof *view,
                                      .dtype = s->dtype,
                                      .n_dims = s->n_dims,
                                      .alignment = s->alignment};
    for (uint32_t d = s->n_dims; d-- > 0;) {
        view->dims[d] = s->shape[d];
        view->strides[d] = stride;
        stride *= s->shape[d];
    }
}

static int32_t draw_input(struct whole *w, struct rung_call *call, uint32_t i)
{
    struct rung_open_session *session = w->run->session;
    struct slot *s = &w->run->slots[i];
    int32_t status = memory_buffer(session, call, s->bytes, s->alignment, s->name, &w->inputs[i]);
    if (status != RUNG_OK)
        return status;
    w->views[i].handle = w->inputs[i];
    w->views[i].data = (const void *)(uintptr_t)device_address(session, w->inputs[i]);
    return slot_draw_again(w->run, call, s, w->inputs[i]);
}

static int32_t evaluate(struct whole *w, struct rung_call *call)
{
    const struct rung_task *task = w->run->session->spec.task;
    struct rung_reference_request request = {.struct_size = sizeof request,
                                             .task = task,
                                             .dims = w->run->memory->dims,
                                             .tensors = w->views};
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < w->n_tensors && status == RUNG_OK; i++) {
        const struct slot *s = &w->run->slots[i];
        view_of(s, &w->views[i]);
        if (slot_is_output(s))
            w->outputs[w->n_outputs++] = (struct rung_reference_device_output){
                .struct_size = sizeof *w->outputs, .tensor = i};
        if (!slot_is_input(s))
            continue;
        request.n_inputs++;
        status = draw_input(w, call, i);
    }
    if (status == RUNG_OK)
        RUNG_INVOKE(status, w->run->session->spec.reference, struct rung_reference_ops,
                    evaluate_device, call, &request, w->outputs, w->n_outputs);
    return status;
}

/* In task order, by the contract of the reference. */
static int32_t compare_outputs(struct whole *w, struct rung_call *call,
                               struct rung_comparison *compared)
{
    struct run *run = w->run;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0, o = 0; i < w->n_tensors && status == RUNG_OK; i++) {
        const struct slot *s = &run->slots[i];
        if (!slot_is_output(s))
            continue;
        const struct rung_reference_device_output *want = &w->outputs[o++];
        if (want->n != s->elements || (want->n && (!want->value || !want->bound)))
            return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                             "the reference gave %llu elements of %s; %llu are needed",
                             (unsigned long long)want->n, s->name, (unsigned long long)s->elements);
        const struct session_gpu_range range = {
            .buffer = s->buffer, .offset = s->offset, .dtype = s->dtype, .n = s->elements};
        compared[i] = (struct rung_comparison){.struct_size = sizeof *compared, .tensor = i};
        if (s->elements)
            status = session_gpu_compare(run->session->spec.gpu, call, &range, s->poison,
                                         POISON_BYTES, run->session->spec.task->precision,
                                         want->value, want->bound, &compared[i]);
    }
    return status;
}

static void whole_free(struct whole *w)
{
    struct rung_open_session *s = w->run->session;
    for (uint32_t i = 0; i < w->n_tensors; i++)
        memory_drop(s, w->inputs[i], w->run->slots[i].bytes);
    for (uint32_t i = 0; i < w->n_outputs; i++) {
        if (w->outputs[i].value)
            device_free(s, w->outputs[i].value);
        if (w->outputs[i].bound)
            device_free(s, w->outputs[i].bound);
    }
}

/* Told once a session: from now on the host compares. */
static void note_failure(struct run *run, int32_t status, const struct rung_error *err)
{
    if (status == RUNG_EUNSUPPORTED)
        run->session->host_reference = true;
    if (status == RUNG_EUNSUPPORTED || status == RUNG_ENOMEM)
        rung_log(RUNG_LOG_DEBUG, "session", "the reference is computed on the host: %s",
                 err->message);
}

int32_t whole_compare(struct run *run, struct rung_call *call)
{
    struct whole w = {.run = run, .n_tensors = run->session->spec.task->n_tensors};
    struct rung_call inner = *call;
    if (run->compared)
        return RUNG_OK;
    inner.arena = rung_arena_new();
    if (!inner.arena)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for the reference");
    struct rung_comparison *compared =
        RUNG_ARENA_NEW(run->arena, struct rung_comparison, w.n_tensors);
    w.inputs = RUNG_ARENA_NEW(inner.arena, struct rung_buffer *, w.n_tensors);
    w.views = RUNG_ARENA_NEW(inner.arena, struct rung_tensor_view, w.n_tensors);
    w.outputs = RUNG_ARENA_NEW(inner.arena, struct rung_reference_device_output, w.n_tensors);
    int32_t status = evaluate(&w, &inner);
    if (status == RUNG_OK) {
        status = compare_outputs(&w, &inner, compared);
    } else {
        note_failure(run, status, call->error);
        w.n_outputs = 0; /* the reference keeps nothing of a failure */
    }
    whole_free(&w);
    rung_arena_free(inner.arena);
    run->compared = status == RUNG_OK ? compared : NULL;
    return status;
}
