/*
 * The reference result of a run, whole or of boxes: computed once, after the launches, from the
 * host's own inputs.
 */
#include "session/private.h"

#include <stdio.h>
#include <string.h>

static void view_of(const struct slot *s, struct rung_tensor_view *view)
{
    *view = (struct rung_tensor_view){
        .struct_size = sizeof *view, .dtype = s->dtype, .n_dims = s->n_dims, .alignment = 16};
    int64_t stride = 1;
    for (uint32_t d = s->n_dims; d-- > 0;) {
        view->dims[d] = s->shape[d];
        view->strides[d] = stride;
        stride *= s->shape[d];
    }
}

/*
 * What a reference plugin hands out may last only until its next call, so the run keeps a copy.
 * n: the elements that were asked for.
 */
static int32_t keep(struct run *run, struct rung_call *call,
                    const struct rung_reference_output *from, uint64_t n,
                    struct rung_reference_output *to)
{
    const struct slot *s = &run->slots[from->tensor];
    if (from->n != n || (n && (!from->value || !from->bound)))
        return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                         "the reference gave %llu elements of %s; %llu are needed",
                         (unsigned long long)from->n, s->name, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        if (!(from->bound[i] >= 0))
            return rung_fail(call->error, RUNG_EMISUSE, "session.reference",
                             "the reference gave a bound of %g for %s[%llu]", from->bound[i],
                             s->name, (unsigned long long)i);
    uint64_t bytes = (n ? n : 1) * sizeof(double);
    double *value = rung_arena_alloc(run->arena, bytes, 64);
    double *bound = rung_arena_alloc(run->arena, bytes, 64);
    if (!value || !bound)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for the reference of %s", s->name);
    memcpy(value, from->value, n * sizeof *value);
    memcpy(bound, from->bound, n * sizeof *bound);
    *to = (struct rung_reference_output){.struct_size = sizeof *from,
                                         .tensor = from->tensor,
                                         .n = n,
                                         .value = value,
                                         .bound = bound};
    return RUNG_OK;
}

/* regions: one a task tensor, or NULL for everything. outputs: one an output, in task order. */
static int32_t evaluate(struct run *run, struct rung_call *call, const struct rung_region *regions,
                        struct rung_reference_output *outputs)
{
    const struct rung_task *task = run->session->spec.task;
    struct rung_tensor_view *views =
        RUNG_ARENA_NEW(call->arena, struct rung_tensor_view, task->n_tensors);
    uint32_t n_inputs = 0, n = 0;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < task->n_tensors && status == RUNG_OK; i++) {
        view_of(&run->slots[i], &views[i]);
        if (slot_is_input(&run->slots[i])) {
            status = slot_before(call, &run->slots[i], &views[i].data);
            n_inputs++;
        }
        if (slot_is_output(&run->slots[i]))
            outputs[n++] =
                (struct rung_reference_output){.struct_size = sizeof *outputs, .tensor = i};
    }
    struct rung_reference_request request = {.struct_size = sizeof request,
                                             .n_inputs = n_inputs,
                                             .task = task,
                                             .dims = run->memory->dims,
                                             .tensors = views,
                                             .regions = regions};
    if (status != RUNG_OK)
        return status;
    RUNG_INVOKE(status, run->session->spec.reference, struct rung_reference_ops, evaluate, call,
                &request, outputs, n);
    if (status == RUNG_ETIMEOUT) { /* a slow reference says nothing of the kernel */
        char why[sizeof call->error->message - 64];
        snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, call->error->message);
        return rung_fail(call->error, RUNG_EINTERNAL, "session.reference",
                         "the reference did not end in time: %s", why);
    }
    for (uint32_t i = 0, o = 0; i < task->n_tensors; i++)
        if (slot_is_output(&run->slots[i]))
            outputs[o++].tensor = i; /* in task order, by contract */
    return status;
}

static int32_t evaluate_all(struct run *run, struct rung_call *call,
                            struct rung_reference_output *expected)
{
    const struct rung_task *task = run->session->spec.task;
    struct rung_reference_output *outputs =
        RUNG_ARENA_NEW(call->arena, struct rung_reference_output, task->n_tensors);
    int32_t status = evaluate(run, call, NULL, outputs);
    for (uint32_t i = 0, o = 0; i < task->n_tensors && status == RUNG_OK; i++)
        if (slot_is_output(&run->slots[i]))
            status = keep(run, call, &outputs[o++], run->slots[i].elements, &expected[i]);
    return status;
}

/* Only the box of one tensor; nothing of all others. */
static int32_t evaluate_box(struct run *run, struct rung_call *call, uint32_t tensor,
                            struct box *box)
{
    uint32_t n = run->session->spec.task->n_tensors, at = 0;
    struct rung_region *regions = RUNG_ARENA_NEW(call->arena, struct rung_region, n);
    struct rung_reference_output *outputs =
        RUNG_ARENA_NEW(call->arena, struct rung_reference_output, n);
    for (uint32_t i = 0; i < n; i++) {
        regions[i] = (struct rung_region){
            .struct_size = sizeof *regions, .n_dims = run->slots[i].n_dims, .skip = 1};
        at += i < tensor && slot_is_output(&run->slots[i]);
    }
    regions[tensor] = box->region;
    regions[tensor].struct_size = sizeof *regions;
    int32_t status = evaluate(run, call, regions, outputs);
    if (status != RUNG_OK)
        return status;
    return keep(run, call, &outputs[at], region_lines(&box->region) * region_width(&box->region),
                &box->expected);
}

/* The call with an arena for what the reference leaves behind. */
static int32_t scratch(const struct rung_call *call, struct rung_call *inner)
{
    *inner = *call;
    inner->arena = rung_arena_new();
    return inner->arena ? RUNG_OK
                        : rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                                    "no room for the reference");
}

static int32_t ensure_expected(struct run *run, struct rung_call *call)
{
    struct rung_call inner;
    if (run->expected)
        return RUNG_OK;
    int32_t status = scratch(call, &inner);
    if (status != RUNG_OK)
        return status;
    struct rung_reference_output *expected = RUNG_ARENA_NEW(
        run->arena, struct rung_reference_output, run->session->spec.task->n_tensors);
    status = evaluate_all(run, &inner, expected);
    rung_arena_free(inner.arena);
    run->expected = status == RUNG_OK ? expected : NULL;
    return status;
}

int32_t run_output(struct rung_run *pub, struct rung_call *call, uint32_t tensor, struct run **run)
{
    int32_t status = run_finished(pub, call, tensor, run);
    if (status == RUNG_OK && !slot_is_output(&(*run)->slots[tensor]))
        status = rung_fail(call->error, RUNG_EINVAL, "session.run", "%s is no output",
                           (*run)->slots[tensor].name);
    return status;
}

int32_t session_expected(const struct rung_session *table, struct rung_call *call,
                         struct rung_run *pub, uint32_t tensor, struct rung_reference_output *out)
{
    struct run *run = NULL;
    (void)table;
    int32_t status = run_output(pub, call, tensor, &run);
    if (status == RUNG_OK)
        status = ensure_expected(run, call);
    if (status == RUNG_OK)
        *out = run->expected[tensor];
    return status;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

static bool same_box(const struct box *box, uint32_t tensor, const struct rung_region *region)
{
    size_t bytes = region->n_dims * sizeof region->start[0];
    return box->expected.tensor == tensor && memcmp(box->region.start, region->start, bytes) == 0 &&
           memcmp(box->region.count, region->count, bytes) == 0;
}

/* The box cut out of the whole result. */
static int32_t cut_out(struct run *run, struct rung_call *call, uint32_t tensor, struct box *box)
{
    const struct rung_reference_output *whole = &run->expected[tensor];
    const struct slot *s = &run->slots[tensor];
    uint64_t width = region_width(&box->region), lines = region_lines(&box->region);
    double *value = rung_arena_alloc(run->arena, lines * width * sizeof *value, 64);
    double *bound = rung_arena_alloc(run->arena, lines * width * sizeof *bound, 64);
    if (!value || !bound)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for the reference of %s", s->name);
    for (uint64_t i = 0; i < lines; i++) {
        uint64_t from = region_line(s, &box->region, i);
        memcpy(value + i * width, whole->value + from, width * sizeof *value);
        memcpy(bound + i * width, whole->bound + from, width * sizeof *bound);
    }
    box->expected = (struct rung_reference_output){.struct_size = sizeof box->expected,
                                                   .tensor = tensor,
                                                   .n = lines * width,
                                                   .value = value,
                                                   .bound = bound};
    return RUNG_OK;
}

/* Only the box, where the reference can: RUNG_EUNSUPPORTED says that it can't. */
static int32_t evaluate_alone(struct run *run, struct rung_call *call, uint32_t tensor,
                              struct box *box)
{
    struct rung_call inner;
    int32_t status = scratch(call, &inner);
    if (status != RUNG_OK)
        return status;
    status = evaluate_box(run, &inner, tensor, box);
    rung_arena_free(inner.arena);
    return status;
}

static int32_t make_box(struct run *run, struct rung_call *call, uint32_t tensor,
                        const struct rung_region *region, struct box **out)
{
    struct box *box = RUNG_ARENA_NEW(run->arena, struct box, 1);
    *box = (struct box){.region = *region};
    int32_t status = run->expected ? RUNG_EUNSUPPORTED : evaluate_alone(run, call, tensor, box);
    if (status == RUNG_EUNSUPPORTED) {
        *call->error = rung_error_init();
        status = ensure_expected(run, call);
        if (status == RUNG_OK)
            status = cut_out(run, call, tensor, box);
    }
    if (status != RUNG_OK)
        return status;
    box->next = run->boxes;
    run->boxes = *out = box;
    return RUNG_OK;
}

int32_t session_expected_region(const struct rung_session *table, struct rung_call *call,
                                struct rung_run *pub, uint32_t tensor,
                                const struct rung_region *region, struct rung_reference_output *out)
{
    struct run *run = NULL;
    (void)table;
    int32_t status = run_output(pub, call, tensor, &run);
    if (status == RUNG_OK)
        status = region_check(&run->slots[tensor], region, call->error);
    if (status != RUNG_OK)
        return status;
    struct box *box = run->boxes;
    while (box && !same_box(box, tensor, region))
        box = box->next;
    if (!box)
        status = make_box(run, call, tensor, region, &box);
    if (status == RUNG_OK)
        *out = box->expected;
    return status;
}

/* Every tensor once, one that is read and written twice: for references that don't know. */
static double least_bytes(const struct rung_task *task, const int64_t *dims)
{
    double sum = 0;
    int64_t shape[RUNG_MAX_DIMS];
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        double bytes = rung_dtype_bits(task->tensors[i].dtype) / 8.0;
        if (rung_task_shape(task, i, dims, shape, NULL) != RUNG_OK)
            return 0;
        for (uint32_t d = 0; d < task->tensors[i].n_dims; d++)
            bytes *= (double)shape[d];
        sum += task->tensors[i].role == RUNG_ROLE_INOUT ? 2 * bytes : bytes;
    }
    return sum;
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
    if (status == RUNG_OK && out->min_bytes == 0)
        out->min_bytes = least_bytes(table->task, dims);
    if (status == RUNG_OK && session->spec.stated)
        rung_task_work_at(table->task, session->spec.stated, dims, out);
    return status;
}
