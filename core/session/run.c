/* One run from request to end: checks the request, owns the order of the steps, gives views. */
#include "session/private.h"

#include "base/die.h"

#include <stdlib.h>
#include <string.h>

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
    return RUNG_OK;
}

/* The run's own copy of the dims; what is derived must agree with what the task says. */
static int32_t take_dims(struct run *run, struct rung_call *call, const int64_t *dims)
{
    const struct rung_task *task = run->session->spec.task;
    int64_t *mine = RUNG_ARENA_NEW(run->arena, int64_t, task->n_dims + 1);
    memcpy(mine, dims, task->n_dims * sizeof *dims);
    run->dims = mine;
    int32_t status = rung_task_complete(task, mine, call->error);
    if (status != RUNG_OK)
        return status;
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (mine[i] != dims[i])
            return rung_fail(call->error, RUNG_EINVAL, "session.dims", "%s is %lld, not %lld",
                             task->dims[i].name, (long long)mine[i], (long long)dims[i]);
    return RUNG_OK;
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

static int32_t run_steps(struct run *run, struct rung_call *call,
                         const struct rung_run_request *request)
{
    const struct rung_fault *fault = &run->pub.fault;
    int32_t status = take_dims(run, call, request->dims);
    if (status == RUNG_OK)
        status = launch_resolve(run, call);
    if (status == RUNG_OK && !fault_is(fault))
        status = slots_plan(run, call);
    if (status == RUNG_OK && !fault_is(fault))
        status = slots_alloc(run, call);
    if (status == RUNG_OK && !fault_is(fault))
        status = slots_draw(run, call, request);
    if (status == RUNG_OK && !fault_is(fault))
        status = repeat_all(run, call, request->repeats ? request->repeats : 1);
    if (status == RUNG_OK && !fault_is(fault))
        status = slots_check_guards(run, call);
    if (status == RUNG_OK && !fault_is(fault) && !(run->flags & RUNG_RUN_KEEP_INPUTS))
        status = slots_check_inputs(run, call);
    return status;
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
    slots_free(run);
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

static int32_t session_same_bits(const struct rung_session *table, struct rung_call *call,
                                 struct rung_run *a, struct rung_run *b, uint32_t *same)
{
    struct run *ra, *rb;
    uint32_t n = table->task->n_tensors;
    int32_t status = run_finished(a, call, 0, &ra);
    if (status == RUNG_OK)
        status = run_finished(b, call, 0, &rb);
    *same = 1;
    for (uint32_t i = 0; i < n && status == RUNG_OK && *same; i++) {
        struct slot *sa = &ra->slots[i], *sb = &rb->slots[i];
        const void *pa, *pb = NULL;
        if (!slot_is_output(sa))
            continue;
        status = slot_after(ra, call, sa, &pa);
        if (status == RUNG_OK)
            status = slot_after(rb, call, sb, &pb);
        if (status == RUNG_OK)
            *same = sa->bytes == sb->bytes && memcmp(pa, pb, sa->bytes) == 0;
    }
    return status;
}

static int32_t session_shape(const struct rung_session *table, uint32_t tensor, const int64_t *dims,
                             int64_t *shape)
{
    if (tensor >= table->task->n_tensors)
        return RUNG_EINVAL;
    return rung_task_shape(table->task, tensor, dims, shape, NULL);
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
}
