/* One run from request to end: checks the request, owns the order of the steps, gives views. */
#include "session/private.h"

#include "base/die.h"

#include <stdlib.h>
#include <string.h>

static int32_t check_timed(const struct rung_open_session *session, struct rung_call *call,
                           const struct rung_run_request *request)
{
    bool timed = request->flags & RUNG_RUN_TIMED;
    uint32_t sets = request->sets ? request->sets : 1, batch = request->batch ? request->batch : 1;
    if (timed && request->flags & (RUNG_RUN_COUNTERS | RUNG_RUN_SAMPLED))
        return rung_fail(call->error, RUNG_EINVAL, "session.request",
                         "what is counted or sampled has no time");
    if (sets > MAX_SETS || batch > sets || (!timed && sets * batch > 1))
        return rung_fail(call->error, RUNG_EINVAL, "session.request",
                         "a timed run has at most %d sets, and no larger batch than sets",
                         MAX_SETS);
    if (batch > 1 && !device_has_graphs(session))
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "session.graphs", "%s has no graphs",
                         session->spec.info->name);
    return RUNG_OK;
}

static int32_t check_request(const struct rung_open_session *session, struct rung_call *call,
                             const struct rung_run_request *request)
{
    const struct rung_task *task = session->spec.task;
    uint32_t has = session->spec.info->flags;
    if (!request->dims || (request->n_fills && !request->fills))
        return rung_fail(call->error, RUNG_EINVAL, "session.request",
                         "the request has no dims or fills");
    for (uint32_t i = 0; i < request->n_fills; i++)
        if (request->fills[i].tensor >= task->n_tensors)
            return rung_fail(call->error, RUNG_EINVAL, "session.fill",
                             "fill of tensor %u; the task has %u", request->fills[i].tensor,
                             task->n_tensors);
    if (request->flags & (RUNG_RUN_COUNTERS | RUNG_RUN_SAMPLED) && !(has & RUNG_DEVICE_COUNTERS))
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "session.counters", "%s has no counters",
                         session->spec.info->name);
    if (request->repeats > MAX_REPEATS)
        return rung_fail(call->error, RUNG_EINVAL, "session.request", "at most %d repeats",
                         MAX_REPEATS);
    if (request->flags & (RUNG_RUN_TIMED | RUNG_RUN_COLD) && !(has & RUNG_DEVICE_MEASURES))
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "session.timed",
                         "%s does not measure time", session->spec.info->name);
    return check_timed(session, call, request);
}

static struct run *run_new(struct rung_open_session *session,
                           const struct rung_run_request *request)
{
    struct run *run = rung_xcalloc(1, sizeof *run);
    run->session = session;
    run->arena = rung_arena_new();
    if (!run->arena)
        rung_die("out of memory");
    run->pub.struct_size = sizeof run->pub;
    run->pub.fault.struct_size = sizeof run->pub.fault;
    run->pub.ctx = run;
    run->seed = request->seed;
    run->flags = request->flags;
    run->sample_blocks = request->sample_blocks ? request->sample_blocks : 1;
    run->next = session->runs;
    session->runs = run;
    return run;
}

static int32_t run_once(struct run *run, struct rung_call *call,
                        const struct rung_run_request *request)
{
    int32_t status = slots_draw(run, call, run->seed);
    if (status == RUNG_OK)
        status = repeat_all(run, call, request->repeats ? request->repeats : 1);
    if (status == RUNG_OK && !fault_is(&run->pub.fault) && !(run->flags & RUNG_RUN_KEEP_INPUTS))
        status = slots_check_inputs(run, call);
    return status;
}

static int32_t run_steps(struct run *run, struct rung_call *call,
                         const struct rung_run_request *request)
{
    const struct rung_fault *fault = &run->pub.fault;
    bool timed = run->flags & RUNG_RUN_TIMED;
    int32_t status =
        memory_take(run, call, request->dims, timed && request->sets ? request->sets : 1);
    if (status == RUNG_OK && !fault_is(fault))
        status = slots_take_fills(run, call, request);
    if (status != RUNG_OK || fault_is(fault))
        return status;
    slots_make_poison(run);
    status = timed ? timed_all(run, call, request) : run_once(run, call, request);
    return status == RUNG_OK && !fault_is(fault) ? memory_check_guards(run, call) : status;
}

int32_t session_run(const struct rung_session *table, struct rung_call *call,
                    const struct rung_run_request *request, struct rung_run **out)
{
    struct rung_open_session *session = table->ctx;
    *out = NULL;
    int32_t status = check_request(session, call, request);
    if (status != RUNG_OK)
        return status;
    struct run *run = run_new(session, request);
    if (fault_is(&session->lost))
        fault_set(&run->pub.fault, "device.lost", session->lost.kernel, session->lost.line,
                  "the device is out of use since %s: %.600s", session->lost.code,
                  session->lost.message);
    else
        status = run_steps(run, call, request);
    if (status == RUNG_OK)
        *out = &run->pub;
    else
        session_end(table, &run->pub);
    return status;
}

void session_end(const struct rung_session *table, struct rung_run *pub)
{
    struct rung_open_session *session = table->ctx;
    if (!pub)
        return;
    struct run *run = pub->ctx;
    for (struct run **at = &session->runs; *at; at = &(*at)->next)
        if (*at == run) {
            *at = run->next;
            break;
        }
    memory_give_back(run);
    rung_arena_free(run->arena);
    free(run);
}

int32_t run_finished(struct rung_run *pub, struct rung_call *call, uint32_t tensor,
                     struct run **out)
{
    if (!pub)
        return rung_fail(call->error, RUNG_EINVAL, "session.run", "no run was given");
    struct run *run = pub->ctx;
    if (fault_is(&pub->fault))
        return rung_fail(call->error, RUNG_EINVAL, "session.run", "the run ended in %s",
                         pub->fault.code);
    if (run->flags & RUNG_RUN_SAMPLED)
        return rung_fail(call->error, RUNG_EINVAL, "session.run", "a sampled run has no results");
    if (tensor >= run->session->spec.task->n_tensors)
        return rung_fail(call->error, RUNG_EINVAL, "session.run", "the task has no tensor %u",
                         tensor);
    *out = run;
    return RUNG_OK;
}

static int32_t session_map(const struct rung_session *table, struct rung_call *call,
                           struct rung_run *pub, uint32_t tensor, struct rung_tensor_view *out)
{
    struct run *run = NULL;
    (void)table;
    int32_t status = run_finished(pub, call, tensor, &run);
    if (status != RUNG_OK)
        return status;
    struct slot *s = &run->slots[tensor];
    *out = (struct rung_tensor_view){.struct_size = sizeof *out,
                                     .dtype = s->dtype,
                                     .n_dims = s->n_dims,
                                     .alignment = s->alignment};
    int64_t stride = 1;
    for (uint32_t d = s->n_dims; d-- > 0;) {
        out->dims[d] = s->shape[d];
        out->strides[d] = stride;
        stride *= s->shape[d];
    }
    return slot_after(run, call, s, &out->data);
}

/* Two runs of one session have the same outputs, of perhaps other sizes. */
static int32_t same_output(struct run *a, struct run *b, struct rung_call *call, uint32_t i,
                           bool *same)
{
    struct slot *sa = &a->slots[i], *sb = &b->slots[i];
    struct session_gpu *gpu = a->session->spec.gpu;
    const void *pa, *pb = NULL;
    *same = sa->bytes == sb->bytes;
    if (!*same || !sa->bytes)
        return RUNG_OK;
    if (gpu && !sa->strided && !sb->strided)
        return session_gpu_same_bytes(gpu, call, sa->buffer, sa->offset, 0, 1, sb->buffer,
                                      sb->offset, sa->bytes, same);
    int32_t status = slot_after(a, call, sa, &pa);
    if (status == RUNG_OK)
        status = slot_after(b, call, sb, &pb);
    if (status == RUNG_OK)
        *same = memcmp(pa, pb, sa->bytes) == 0;
    return status;
}

static int32_t session_same_bits(const struct rung_session *table, struct rung_call *call,
                                 struct rung_run *a, struct rung_run *b, uint32_t *same)
{
    struct run *ra, *rb;
    int32_t status = run_finished(a, call, 0, &ra);
    bool equal = true;
    if (status == RUNG_OK)
        status = run_finished(b, call, 0, &rb);
    for (uint32_t i = 0; i < table->task->n_tensors && status == RUNG_OK && equal; i++)
        if (slot_is_output(&ra->slots[i]))
            status = same_output(ra, rb, call, i, &equal);
    *same = equal;
    return status;
}

static int32_t session_shape(const struct rung_session *table, uint32_t tensor, const int64_t *dims,
                             int64_t *shape)
{
    if (tensor >= table->task->n_tensors)
        return RUNG_EINVAL;
    struct rung_layout layout; /* strides, too, must be possible there */
    int32_t status = rung_task_layout(table->task, tensor, dims, &layout, NULL);
    for (uint32_t d = 0; d < table->task->tensors[tensor].n_dims; d++)
        shape[d] = layout.shape[d];
    return status;
}

static int32_t session_complete_dims(const struct rung_session *table, int64_t *dims)
{
    return rung_task_complete(table->task, dims, NULL);
}

void run_fill_table(struct rung_session *table)
{
    table->run = session_run;
    table->compare = session_compare;
    table->expected = session_expected;
    table->map = session_map;
    table->same_bits = session_same_bits;
    table->shape = session_shape;
    table->complete_dims = session_complete_dims;
    table->work = session_work;
    table->end = session_end;
    table->compare_region = session_compare_region;
    table->expected_region = session_expected_region;
    table->compare_fast = session_compare_fast;
}
