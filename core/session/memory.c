/*
 * Memory of a run: one buffer a slot for all sets, with canaries between them; what follows from
 * the dims. A timed run leaves its memory with the session, so that the next block of the same
 * measurement starts at once.
 */
#include "session/private.h"

#include "base/die.h"
#include "base/philox.h"

#include <stdlib.h>
#include <string.h>

/* Philox streams below 2^32 are the tensors' fills. */
#define CANARY_STREAM (UINT64_C(2) << 32)

void run_use(struct run *run, uint32_t set)
{
    const struct set *s = &run->memory->sets[set];
    if (run->slots != s->slots) {
        run->expected = NULL;
        run->compared = NULL;
        run->boxes = NULL;
    }
    run->slots = s->slots;
    run->addresses = s->addresses;
    run->ready = s->ready;
}

/* ---- Shapes ---- */

/* The memory's own copy of the dims; what is derived must agree with what the task says. */
static int32_t take_dims(struct run *run, struct rung_call *call, const int64_t *dims)
{
    const struct rung_task *task = run->session->spec.task;
    int64_t *mine = RUNG_ARENA_NEW(run->memory->arena, int64_t, task->n_dims + 1);
    memcpy(mine, dims, task->n_dims * sizeof *dims);
    run->memory->dims = mine;
    int32_t status = rung_task_complete(task, mine, call->error);
    if (status != RUNG_OK)
        return status;
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (mine[i] != dims[i])
            return rung_fail(call->error, RUNG_EINVAL, "session.dims", "%s is %lld, not %lld",
                             task->dims[i].name, (long long)mine[i], (long long)dims[i]);
    return RUNG_OK;
}

/* extent: in elements. */
static int32_t slot_size(struct slot *s, struct rung_call *call, uint64_t extent)
{
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    if (!size || __builtin_mul_overflow(s->elements, size, &s->bytes) ||
        __builtin_mul_overflow(extent, size, &s->extent) || s->extent > UINT64_C(1) << 48)
        return rung_fail(call->error, RUNG_EINVAL, "session.size", "%s is too large", s->name);
    if (s->alignment < 256)
        s->alignment = 256;
    if (s->alignment > 4096 || (s->alignment & (s->alignment - 1)))
        return rung_fail(call->error, RUNG_EINVAL, "session.alignment",
                         "%s: the alignment must be a power of two of at most 4096 bytes", s->name);
    return RUNG_OK;
}

/* Whether elements lie elsewhere than without strides. */
static bool is_strided(const struct slot *s, const struct rung_layout *layout)
{
    int64_t stride = 1;
    bool dense = true;
    for (uint32_t d = s->n_dims; d-- > 0 && layout->elements;) {
        dense &= s->shape[d] == 1 || s->strides[d] == stride;
        stride *= s->shape[d];
    }
    return !dense;
}

static int32_t plan_tensor(struct run *run, struct rung_call *call, uint32_t index, struct slot *s)
{
    const struct rung_task *task = run->session->spec.task;
    const struct rung_tensor_spec *spec = &task->tensors[index];
    *s = (struct slot){.name = spec->name,
                       .dtype = spec->dtype,
                       .role = spec->role,
                       .n_dims = spec->n_dims,
                       .last = 1,
                       .elements = 1,
                       .alignment = spec->alignment};
    struct rung_layout layout;
    int32_t status = rung_task_layout(task, index, run->memory->dims, &layout, call->error);
    if (status != RUNG_OK)
        return status;
    memcpy(s->shape, layout.shape, sizeof s->shape);
    memcpy(s->strides, layout.strides, sizeof s->strides);
    s->elements = (uint64_t)layout.elements;
    s->strided = is_strided(s, &layout);
    if (s->n_dims && s->shape[s->n_dims - 1] > 0)
        s->last = s->shape[s->n_dims - 1];
    return slot_size(s, call, (uint64_t)layout.extent);
}

static int32_t plan_temp(struct run *run, struct rung_call *call, uint32_t index, struct slot *s)
{
    const struct rung_temp *temp = &run->session->spec.plan->temps[index];
    *s = (struct slot){.name = temp->name,
                       .dtype = temp->dtype,
                       .last = 1,
                       .elements = (uint64_t)run->memory->plan->temp_elements[index]};
    return slot_size(s, call, s->elements);
}

/* The slots of set 0, without buffers. */
static int32_t plan_slots(struct run *run, struct rung_call *call)
{
    const struct rung_session_spec *spec = &run->session->spec;
    struct memory *m = run->memory;
    uint32_t n_tensors = spec->task->n_tensors, n_temps = spec->plan ? spec->plan->n_temps : 0;
    int32_t status = RUNG_OK;
    m->n_slots = n_tensors + n_temps;
    m->rooms = RUNG_ARENA_NEW(m->arena, struct room, m->n_slots + 1);
    m->sets = RUNG_ARENA_NEW(m->arena, struct set, m->n_sets);
    for (uint32_t i = 0; i < m->n_sets; i++) {
        m->sets[i].slots = RUNG_ARENA_NEW(m->arena, struct slot, m->n_slots + 1);
        m->sets[i].addresses = RUNG_ARENA_NEW(m->arena, uint64_t, m->n_slots + 1);
    }
    struct slot *slots = m->sets[0].slots;
    for (uint32_t i = 0; i < m->n_slots && status == RUNG_OK; i++)
        status = i < n_tensors ? plan_tensor(run, call, i, &slots[i])
                               : plan_temp(run, call, i - n_tensors, &slots[i]);
    return status;
}

/* ---- Buffers ---- */

static uint64_t limit_of(const struct rung_open_session *s)
{
    return s->spec.memory_limit ? s->spec.memory_limit : s->spec.info->memory_bytes;
}

/* Frees what an ended run left. */
static bool drop_kept(struct rung_open_session *s)
{
    struct memory *kept = s->kept;
    s->kept = NULL;
    memory_free(s, kept);
    return kept != NULL;
}

int32_t memory_buffer(struct rung_open_session *s, struct rung_call *call, uint64_t bytes,
                      uint64_t align, const char *label, struct rung_buffer **out)
{
    uint64_t room = bytes ? bytes : 1, limit = limit_of(s);
    *out = NULL;
    if (s->allocated > limit || room > limit - s->allocated)
        drop_kept(s);
    if (s->allocated > limit || room > limit - s->allocated)
        return rung_fail(call->error, RUNG_ENOMEM, "session.memory", "%.1f MiB are free",
                         (double)(s->allocated < limit ? limit - s->allocated : 0) / 0x1p20);
    int32_t status = device_alloc(s, call, room, align, label, out);
    if (status == RUNG_ENOMEM && drop_kept(s)) {
        *call->error = rung_error_init();
        status = device_alloc(s, call, room, align, label, out);
    }
    if (status == RUNG_OK)
        s->allocated += room;
    return status;
}

void memory_drop(struct rung_open_session *s, struct rung_buffer *buffer, uint64_t bytes)
{
    if (!buffer)
        return;
    device_free(s, buffer);
    s->allocated -= bytes ? bytes : 1;
}

/* Where the sets of a slot lie. Few sets keep wide guards; a set begins where it is aligned. */
static void place_sets(struct memory *m, uint32_t index, bool guards)
{
    const struct slot *s = &m->sets[0].slots[index];
    struct room *r = &m->rooms[index];
    r->guard = guards ? GUARD_BYTES : 0;
    r->pitch = s->extent + r->guard;
    if (m->n_sets > 1)
        r->pitch = (r->pitch + s->alignment - 1) & ~(s->alignment - 1);
    r->allocated = r->guard + m->n_sets * r->pitch;
    if (!r->allocated)
        r->allocated = 1;
}

static bool fits(struct run *run)
{
    struct memory *m = run->memory;
    uint64_t limit = limit_of(run->session), tensors = m->scratch_bytes, temps = 0;
    for (uint32_t i = 0; i < m->n_slots; i++) /* 128 slots of 2^48 bytes, 2^12 sets: no overflow */
        *(m->sets[0].slots[i].role ? &tensors : &temps) += m->rooms[i].allocated;
    for (int attempt = 0; attempt < 2; attempt++) {
        uint64_t used = run->session->allocated;
        if (used <= limit && tensors + temps <= limit - used)
            return true;
        if (!drop_kept(run->session))
            break;
    }
    uint64_t used = run->session->allocated;
    fault_set(&run->pub.fault, "device.memory", "", 0,
              "the tensors take %.1f MiB and the temps %.1f MiB%s; %.1f MiB are free",
              (double)tensors / 0x1p20, (double)temps / 0x1p20,
              m->n_sets > 1 ? " in all sets together" : "",
              (double)(used < limit ? limit - used : 0) / 0x1p20);
    return false;
}

/* Writes the canary before set 0 and behind every set. */
static int32_t write_guards(struct run *run, struct rung_call *call, uint32_t index)
{
    const struct memory *m = run->memory;
    const struct room *r = &m->rooms[index];
    uint64_t bytes = m->sets[0].slots[index].extent;
    int32_t status = device_write(run->session, call, r->buffer, 0, m->canary, GUARD_BYTES);
    for (uint32_t i = 0; i < m->n_sets && status == RUNG_OK; i++)
        status = device_write(run->session, call, r->buffer, r->guard + i * r->pitch + bytes,
                              m->canary, r->pitch - bytes);
    return status;
}

static int32_t room_alloc(struct run *run, struct rung_call *call, uint32_t index)
{
    struct memory *m = run->memory;
    struct room *r = &m->rooms[index];
    const struct slot *first = &m->sets[0].slots[index];
    uint64_t bytes = r->allocated;
    r->allocated = 0;
    int32_t status =
        memory_buffer(run->session, call, bytes, first->alignment, first->name, &r->buffer);
    if (status == RUNG_ENOMEM) {
        fault_set(&run->pub.fault, "device.memory", "", 0, "no room for %s (%.1f MiB): %s",
                  first->name, (double)bytes / 0x1p20, call->error->message);
        *call->error = rung_error_init();
        return RUNG_OK;
    }
    if (status != RUNG_OK)
        return status;
    r->allocated = bytes;
    uint64_t address = device_address(run->session, r->buffer) + r->guard;
    for (uint32_t i = 0; i < m->n_sets; i++) {
        struct slot *s = &m->sets[i].slots[index];
        *s = *first;
        s->buffer = r->buffer;
        s->offset = r->guard + i * r->pitch;
        m->sets[i].addresses[index] = address + i * r->pitch;
    }
    return r->guard ? write_guards(run, call, index) : RUNG_OK;
}

static int32_t alloc_scratch(struct run *run, struct rung_call *call)
{
    struct memory *m = run->memory;
    if (!m->scratch_bytes)
        return RUNG_OK;
    int32_t status =
        memory_buffer(run->session, call, m->scratch_bytes, 256, "scratch", &m->scratch);
    if (status != RUNG_ENOMEM)
        return status;
    fault_set(&run->pub.fault, "device.memory", "", 0, "no room for %.1f MiB of scratch memory: %s",
              (double)m->scratch_bytes / 0x1p20, call->error->message);
    *call->error = rung_error_init();
    return RUNG_OK;
}

static bool has_gaps(const struct memory *m)
{
    bool gaps = false;
    for (uint32_t i = 0; i < m->n_slots; i++)
        gaps |= m->sets[0].slots[i].strided;
    return gaps;
}

/* Sets lie side by side, so that even exact bounds leave something to watch between them. */
static int32_t alloc_all(struct run *run, struct rung_call *call)
{
    struct memory *m = run->memory;
    bool guards = !(run->session->spec.info->flags & RUNG_DEVICE_EXACT_BOUNDS) || m->n_sets > 1;
    if (guards || has_gaps(m)) {
        m->canary = RUNG_ARENA_NEW(m->arena, uint8_t, CANARY_BYTES);
        rung_philox_words(run->seed, CANARY_STREAM, 0, (uint32_t *)(void *)m->canary,
                          CANARY_BYTES / 4);
    }
    if (run->session->spec.baseline_case)
        m->scratch_bytes = run->session->spec.baseline_case->scratch_bytes;
    for (uint32_t i = 0; i < m->n_slots; i++)
        place_sets(m, i, guards);
    if (!fits(run)) {
        for (uint32_t i = 0; i < m->n_slots; i++)
            m->rooms[i].allocated = 0;
        return RUNG_OK;
    }
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < m->n_slots && status == RUNG_OK && !fault_is(&run->pub.fault); i++)
        status = room_alloc(run, call, i);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = alloc_scratch(run, call);
    return status;
}

/* ---- Taking and giving back ---- */

static bool same_need(const struct run *run, const struct memory *kept, const int64_t *dims,
                      uint32_t n_sets)
{
    const struct rung_session_spec *spec = &run->session->spec;
    uint64_t scratch = spec->baseline_case ? spec->baseline_case->scratch_bytes : 0;
    return kept->n_sets == n_sets && kept->scratch_bytes == scratch &&
           memcmp(kept->dims, dims, spec->task->n_dims * sizeof *dims) == 0;
}

static int32_t memory_new(struct run *run, struct rung_call *call, const int64_t *dims,
                          uint32_t n_sets)
{
    struct memory *m = rung_xcalloc(1, sizeof *m);
    run->memory = m;
    m->n_sets = n_sets;
    m->arena = rung_arena_new();
    if (!m->arena)
        rung_die("out of memory");
    int32_t status = take_dims(run, call, dims);
    if (status == RUNG_OK && run->session->spec.plan)
        status = launch_resolve(run, call);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = plan_slots(run, call);
    if (status == RUNG_OK && !fault_is(&run->pub.fault))
        status = alloc_all(run, call);
    return status;
}

int32_t memory_take(struct run *run, struct rung_call *call, const int64_t *dims, uint32_t n_sets)
{
    struct rung_open_session *s = run->session;
    int32_t status = RUNG_OK;
    if (run->flags & RUNG_RUN_TIMED && s->kept && same_need(run, s->kept, dims, n_sets)) {
        run->memory = s->kept;
        s->kept = NULL;
    } else {
        status = memory_new(run, call, dims, n_sets);
    }
    if (status != RUNG_OK || fault_is(&run->pub.fault))
        return status;
    run->n_slots = run->memory->n_slots;
    run_use(run, 0);
    return RUNG_OK;
}

void memory_free(struct rung_open_session *s, struct memory *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->rooms && i < m->n_slots; i++)
        memory_drop(s, m->rooms[i].buffer, m->rooms[i].allocated);
    memory_drop(s, m->scratch, m->scratch_bytes);
    rung_arena_free(m->arena);
    free(m);
}

void memory_give_back(struct run *run)
{
    struct rung_open_session *s = run->session;
    struct memory *m = run->memory;
    bool clean = !fault_is(&run->pub.fault) && !run->pub.guard_broken;
    if (!m)
        return;
    for (uint32_t i = 0; m->sets && i < m->n_sets && run->slots; i++) {
        run_use(run, i);
        run_forget(run);
    }
    run->memory = NULL;
    if (!(run->flags & RUNG_RUN_TIMED) || !clean || !m->kernels) {
        memory_free(s, m);
        return;
    }
    drop_kept(s);
    s->kept = m;
}

/* ---- Guards ---- */

/* One guard after the other, on the host. */
static int32_t check_on_host(struct run *run, struct rung_call *call, uint32_t index, bool *same)
{
    const struct memory *m = run->memory;
    const struct room *r = &m->rooms[index];
    uint64_t bytes = m->sets[0].slots[index].extent;
    int32_t status = slot_same_memory(run, call, r->buffer, 0, m->canary, r->guard, same);
    for (uint32_t i = 0; i < m->n_sets && status == RUNG_OK && *same; i++)
        status = slot_same_memory(run, call, r->buffer, r->guard + i * r->pitch + bytes, m->canary,
                                  r->pitch - bytes, same);
    return status;
}

/* All guards of a slot at once, against a canary that no kernel has seen. */
static int32_t check_on_device(struct run *run, struct rung_call *call, uint32_t index,
                               struct rung_buffer *canary, bool *same)
{
    const struct memory *m = run->memory;
    const struct room *r = &m->rooms[index];
    struct session_gpu *gpu = run->session->spec.gpu;
    uint64_t bytes = m->sets[0].slots[index].extent;
    int32_t status =
        session_gpu_same_bytes(gpu, call, r->buffer, 0, 0, 1, canary, 0, r->guard, same);
    if (status == RUNG_OK && *same)
        status = session_gpu_same_bytes(gpu, call, r->buffer, r->guard + bytes, r->pitch, m->n_sets,
                                        canary, 0, r->pitch - bytes, same);
    return status;
}

/* Between the elements, which no device watches. */
static int32_t check_gaps(struct run *run, struct rung_call *call)
{
    const struct memory *m = run->memory;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < m->n_slots; i++)
        for (uint32_t set = 0; set < m->n_sets && status == RUNG_OK; set++)
            status = strided_check(run, call, &m->sets[set].slots[i], i);
    return status;
}

static int32_t check_guards(struct run *run, struct rung_call *call)
{
    const struct memory *m = run->memory;
    struct rung_buffer *canary = NULL;
    bool few = m->n_sets < 8 || !run->session->spec.gpu;
    int32_t status = RUNG_OK;
    if (!few)
        status = memory_buffer(run->session, call, CANARY_BYTES, 256, "canary", &canary);
    if (status == RUNG_ENOMEM) {
        *call->error = rung_error_init();
        status = RUNG_OK;
        few = true;
    }
    if (canary)
        status = device_write(run->session, call, canary, 0, m->canary, CANARY_BYTES);
    for (uint32_t i = 0; i < m->n_slots && status == RUNG_OK && !run->pub.guard_broken; i++) {
        bool same = true;
        if (!m->rooms[i].guard)
            continue;
        status =
            few ? check_on_host(run, call, i, &same) : check_on_device(run, call, i, canary, &same);
        if (!same)
            run->pub.guard_broken = i + 1;
    }
    memory_drop(run->session, canary, CANARY_BYTES);
    return status;
}

int32_t memory_check_guards(struct run *run, struct rung_call *call)
{
    if (!run->memory->canary)
        return RUNG_OK;
    int32_t status = check_guards(run, call);
    return status == RUNG_OK ? check_gaps(run, call) : status;
}
