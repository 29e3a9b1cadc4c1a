/*
 * Buffers of one run: memory with guards, drawn inputs, poison; afterwards what changed. The host
 * keeps its own copy of every input, so that the reference never reads memory that a kernel
 * reached.
 */
#include "session/private.h"

#include "base/die.h"
#include "base/philox.h"
#include "session/convert.h"

#include <stdlib.h>
#include <string.h>

/* Philox streams below 2^32 are the tensors' fills. */
#define POISON_STREAM (UINT64_C(1) << 32)
#define CANARY_STREAM (UINT64_C(2) << 32)

static int32_t slot_size(struct slot *s, struct rung_call *call)
{
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    if (!size || __builtin_mul_overflow(s->elements, size, &s->bytes) ||
        s->bytes > UINT64_C(1) << 48)
        return rung_fail(call->error, RUNG_EINVAL, "session.size", "%s is too large", s->name);
    if (s->alignment < 256)
        s->alignment = 256;
    if (s->alignment > 4096 || (s->alignment & (s->alignment - 1)))
        return rung_fail(call->error, RUNG_EINVAL, "session.alignment",
                         "%s: the alignment must be a power of two of at most 4096 bytes", s->name);
    return RUNG_OK;
}

static int32_t plan_tensor(struct run *run, struct rung_call *call, uint32_t index)
{
    const struct rung_task *task = run->session->spec.task;
    const struct rung_tensor_spec *spec = &task->tensors[index];
    struct slot *s = &run->slots[index];
    *s = (struct slot){.name = spec->name,
                       .dtype = spec->dtype,
                       .role = spec->role,
                       .n_dims = spec->n_dims,
                       .last = 1,
                       .elements = 1,
                       .alignment = spec->alignment};
    int32_t status = rung_task_shape(task, index, run->dims, s->shape, call->error);
    if (status != RUNG_OK)
        return status;
    for (uint32_t d = 0; d < s->n_dims; d++)
        if (s->shape[d] < 0 ||
            __builtin_mul_overflow(s->elements, (uint64_t)s->shape[d], &s->elements))
            return rung_fail(call->error, RUNG_EINVAL, "session.size", "%s is too large", s->name);
    if (s->n_dims && s->shape[s->n_dims - 1] > 0)
        s->last = s->shape[s->n_dims - 1];
    return slot_size(s, call);
}

static int32_t plan_temp(struct run *run, struct rung_call *call, uint32_t index)
{
    const struct rung_temp *temp = &run->session->spec.plan->temps[index];
    struct slot *s = &run->slots[run->session->spec.task->n_tensors + index];
    *s = (struct slot){.name = temp->name,
                       .dtype = temp->dtype,
                       .last = 1,
                       .elements = (uint64_t)run->plan->temp_elements[index]};
    return slot_size(s, call);
}

int32_t slots_plan(struct run *run, struct rung_call *call)
{
    uint32_t n_tensors = run->session->spec.task->n_tensors,
             n_temps = run->session->spec.plan->n_temps;
    run->n_slots = n_tensors + n_temps;
    run->slots = RUNG_ARENA_NEW(run->arena, struct slot, run->n_slots);
    run->addresses = RUNG_ARENA_NEW(run->arena, uint64_t, run->n_slots);
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < n_tensors && status == RUNG_OK; i++)
        status = plan_tensor(run, call, i);
    for (uint32_t i = 0; i < n_temps && status == RUNG_OK; i++)
        status = plan_temp(run, call, i);
    return status;
}

/* Bytes that the slot takes of the device. */
static uint64_t slot_room(const struct slot *s)
{
    uint64_t room = s->bytes + 2 * s->guard;
    return room ? room : 1;
}

static bool fits(struct run *run)
{
    const struct rung_session_spec *spec = &run->session->spec;
    uint64_t limit = spec->memory_limit ? spec->memory_limit : spec->info->memory_bytes;
    uint64_t tensors = 0, temps = 0;
    for (uint32_t i = 0; i < run->n_slots; i++) /* at most 128 slots of 2^48 bytes: no overflow */
        *(run->slots[i].role ? &tensors : &temps) += slot_room(&run->slots[i]);
    uint64_t used = run->session->allocated;
    if (used <= limit && tensors + temps <= limit - used)
        return true;
    fault_set(&run->pub.fault, "device.memory", "", 0,
              "the tensors take %.1f MiB and the temps %.1f MiB; %.1f MiB are free",
              (double)tensors / 0x1p20, (double)temps / 0x1p20,
              (double)(used < limit ? limit - used : 0) / 0x1p20);
    return false;
}

static int32_t slot_alloc(struct run *run, struct rung_call *call, uint32_t index)
{
    struct slot *s = &run->slots[index];
    uint64_t room = slot_room(s);
    int32_t status = device_alloc(run->session, call, room, s->alignment, s->name, &s->buffer);
    if (status == RUNG_ENOMEM) {
        fault_set(&run->pub.fault, "device.memory", "", 0, "no room for %s (%.1f MiB): %s", s->name,
                  (double)room / 0x1p20, call->error->message);
        *call->error = rung_error_init();
        return RUNG_OK;
    }
    if (status != RUNG_OK)
        return status;
    s->allocated = room;
    run->session->allocated += room;
    run->addresses[index] = device_address(run->session, s->buffer) + s->guard;
    if (!s->guard)
        return RUNG_OK;
    status = device_write(run->session, call, s->buffer, 0, run->canary, GUARD_BYTES);
    if (status == RUNG_OK)
        status = device_write(run->session, call, s->buffer, s->guard + s->bytes, run->canary,
                              GUARD_BYTES);
    return status;
}

int32_t slots_alloc(struct run *run, struct rung_call *call)
{
    bool exact = run->session->spec.info->flags & RUNG_DEVICE_EXACT_BOUNDS;
    if (!exact) {
        run->canary = RUNG_ARENA_NEW(run->arena, uint8_t, GUARD_BYTES);
        rung_philox_words(run->seed, CANARY_STREAM, 0, (uint32_t *)(void *)run->canary,
                          GUARD_BYTES / 4);
    }
    for (uint32_t i = 0; i < run->n_slots; i++)
        run->slots[i].guard = exact ? 0 : GUARD_BYTES;
    int32_t status = RUNG_OK;
    if (!fits(run))
        return RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK && !fault_is(&run->pub.fault); i++)
        status = slot_alloc(run, call, i);
    return status;
}

/* The request's fill of a tensor, or the task's. */
static int32_t fill_of(const struct run *run, struct rung_call *call, uint32_t tensor,
                       const struct rung_run_request *request, struct rung_fill *out)
{
    const struct rung_tensor_spec *spec = &run->session->spec.task->tensors[tensor];
    *out = (struct rung_fill){.struct_size = sizeof *out, .tensor = tensor};
    for (uint32_t i = 0; i < request->n_fills; i++)
        if (request->fills[i].tensor == tensor)
            *out = request->fills[i];
    if (!out->kind)
        out->kind = spec->fill ? spec->fill : "normal";
    if (out->bytes && out->n_bytes != run->slots[tensor].bytes)
        return rung_fail(call->error, RUNG_EINVAL, "session.fill",
                         "%s: %llu bytes given, %llu needed", spec->name,
                         (unsigned long long)out->n_bytes,
                         (unsigned long long)run->slots[tensor].bytes);
    if (!out->bytes && !rung_fill_known(out->kind))
        return rung_fail(call->error, RUNG_EINVAL, "session.fill", "%s: there is no fill \"%s\"",
                         spec->name, out->kind);
    return RUNG_OK;
}

static int32_t host_room(struct rung_call *call, uint64_t bytes, void **out)
{
    *out = malloc(bytes ? bytes : 1);
    if (*out)
        return RUNG_OK;
    return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                     "no room for %llu bytes on the host", (unsigned long long)bytes);
}

/* Bytes of the block that a sampled run repeats over a slot. */
static uint64_t sample_block(uint64_t bytes)
{
    uint64_t block = SAMPLE_BYTES;
    while (bytes / block > SAMPLE_BLOCKS)
        block *= 2;
    return bytes < block ? bytes : block;
}

static int32_t slot_draw(struct run *run, struct rung_call *call, struct slot *s,
                         const struct rung_fill *fill)
{
    bool part = (run->flags & RUNG_RUN_SAMPLED) && !fill->bytes;
    uint64_t bytes = part ? sample_block(s->bytes) : s->bytes;
    void *host;
    int32_t status = host_room(call, bytes, &host);
    if (status != RUNG_OK)
        return status;
    if (rung_fill_draw(fill, s->dtype, run->seed, 0, bytes / (rung_dtype_bits(s->dtype) / 8),
                       s->last, host) != RUNG_OK)
        status =
            rung_fail(call->error, RUNG_EINTERNAL, "session.fill", "%s can't be drawn", s->name);
    else if (part && bytes)
        status = device_fill(run->session, call, s->buffer, s->guard, s->bytes, host, bytes, 1);
    else if (s->bytes)
        status = device_write(run->session, call, s->buffer, s->guard, host, s->bytes);
    if (run->flags & RUNG_RUN_SAMPLED)
        free(host);
    else
        s->before = host;
    return status;
}

/*
 * A floating element between 1/4 and 1/2 of either sign. To a kernel that keeps what looks like a
 * result of an earlier call, NaN would tell poison from results.
 */
static uint64_t plausible(uint32_t dtype, uint64_t e)
{
    switch (dtype) {
    case RUNG_F64:
        return (e & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x3fd0000000000000);
    case RUNG_F32:
        return (e & 0x807fffff) | 0x3e800000;
    case RUNG_F16:
        return (e & 0x83ff) | 0x3400;
    default: /* RUNG_BF16 */
        return (e & 0x807f) | 0x3e80;
    }
}

/*
 * Elements that no honest kernel leaves behind: floating types get a signalling NaN with a drawn
 * payload (arithmetic would quiet it), and for every other seed a plausible number; bool a byte
 * past 1, other integers drawn bits. A plausible one counts as unwritten only where it is wrong.
 */
static void poison_make(struct run *run, uint32_t index)
{
    struct slot *s = &run->slots[index];
    uint8_t *p = RUNG_ARENA_NEW(run->arena, uint8_t, POISON_BYTES);
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    rung_philox_words(run->seed, POISON_STREAM + index, 0, (uint32_t *)(void *)p, POISON_BYTES / 4);
    for (uint64_t at = 0; at < POISON_BYTES; at += size) {
        uint64_t e = 0;
        memcpy(&e, p + at, size);
        if ((run->seed & 1) && rung_dtype_is_float(s->dtype)) {
            e = plausible(s->dtype, e);
            memcpy(p + at, &e, size);
            continue;
        }
        switch (s->dtype) {
        case RUNG_F64:
            e = UINT64_C(0x7ff4000000000000) | (e & UINT64_C(0x3ffffffffffff));
            break;
        case RUNG_F32:
            e = 0x7fa00000 | (e & 0x1fffff);
            break;
        case RUNG_F16:
            e = 0x7d00 | (e & 0xff);
            break;
        case RUNG_BF16:
            e = 0x7fa0 | (e & 0x1f);
            break;
        case RUNG_BOOL:
            e = 2 + e % 254;
            break;
        default:
            break;
        }
        memcpy(p + at, &e, size);
    }
    s->poison = p;
}

/* Zeros for the outputs and temps of a sampled run: launches may read what others did not write. */
static int32_t slot_clear(struct run *run, struct rung_call *call, struct slot *s)
{
    uint64_t block = sample_block(s->bytes);
    if (!s->bytes)
        return RUNG_OK;
    void *zeros = calloc(1, block);
    if (!zeros)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory", "no room on the host");
    int32_t status =
        device_fill(run->session, call, s->buffer, s->guard, s->bytes, zeros, block, 1);
    free(zeros);
    return status;
}

int32_t slots_draw(struct run *run, struct rung_call *call, const struct rung_run_request *request)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK; i++) {
        struct slot *s = &run->slots[i];
        struct rung_fill fill;
        if (slot_is_input(s)) {
            status = fill_of(run, call, i, request, &fill);
            if (status == RUNG_OK)
                status = slot_draw(run, call, s, &fill);
        } else if (run->flags & RUNG_RUN_SAMPLED) {
            status = slot_clear(run, call, s);
        } else {
            poison_make(run, i);
        }
    }
    return status;
}

int32_t slots_reset(struct run *run, struct rung_call *call, bool first)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK; i++) {
        struct slot *s = &run->slots[i];
        if (s->poison && s->bytes)
            status = device_fill(run->session, call, s->buffer, s->guard, s->bytes, s->poison,
                                 POISON_BYTES, 0);
        else if (s->role == RUNG_ROLE_INOUT && s->before && s->bytes && !first)
            status = device_write(run->session, call, s->buffer, s->guard, s->before, s->bytes);
    }
    return status;
}

/* Whether device memory from offset on equals what the host holds. */
static int32_t same_memory(struct run *run, struct rung_call *call, const struct slot *s,
                           uint64_t offset, const void *host, uint64_t bytes, bool *same)
{
    enum { CHUNK = 1 << 22 };
    const char *mapped = device_map(run->session, s->buffer);
    *same = true;
    if (mapped) {
        *same = memcmp(mapped + offset, host, bytes) == 0;
        return RUNG_OK;
    }
    void *chunk;
    int32_t status = host_room(call, bytes < CHUNK ? bytes : CHUNK, &chunk);
    if (status != RUNG_OK)
        return status;
    for (uint64_t at = 0; at < bytes && *same && status == RUNG_OK;) {
        uint64_t take = bytes - at < CHUNK ? bytes - at : CHUNK;
        status = device_read(run->session, call, s->buffer, offset + at, chunk, take);
        if (status == RUNG_OK)
            *same = memcmp(chunk, (const char *)host + at, take) == 0;
        at += take;
    }
    free(chunk);
    return status;
}

int32_t slots_check_guards(struct run *run, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK && !run->pub.guard_broken; i++) {
        struct slot *s = &run->slots[i];
        bool left = true, right = true;
        if (!s->guard)
            continue;
        status = same_memory(run, call, s, 0, run->canary, GUARD_BYTES, &left);
        if (status == RUNG_OK && left)
            status =
                same_memory(run, call, s, s->guard + s->bytes, run->canary, GUARD_BYTES, &right);
        if (!left || !right)
            run->pub.guard_broken = i + 1;
    }
    return status;
}

int32_t slots_check_inputs(struct run *run, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK && !run->pub.modified_input; i++) {
        struct slot *s = &run->slots[i];
        bool same = true;
        if (s->before && s->bytes && !slot_is_output(s))
            status = same_memory(run, call, s, s->guard, s->before, s->bytes, &same);
        if (!same)
            run->pub.modified_input = i + 1;
    }
    return status;
}

int32_t slot_after(struct run *run, struct rung_call *call, struct slot *s, const void **out)
{
    const char *mapped = device_map(run->session, s->buffer);
    if (mapped) {
        *out = mapped + s->guard;
        return RUNG_OK;
    }
    int32_t status = RUNG_OK;
    if (!s->after) {
        status = host_room(call, s->bytes, &s->after);
        if (status == RUNG_OK && s->bytes)
            status = device_read(run->session, call, s->buffer, s->guard, s->after, s->bytes);
        if (status != RUNG_OK) {
            free(s->after);
            s->after = NULL;
        }
    }
    *out = s->after;
    return status;
}

void slots_free(struct run *run)
{
    for (uint32_t i = 0; i < run->n_slots; i++) {
        struct slot *s = &run->slots[i];
        if (s->buffer)
            device_free(run->session, s->buffer);
        run->session->allocated -= s->allocated;
        free(s->before);
        free(s->after);
    }
}
