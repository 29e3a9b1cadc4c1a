/*
 * What lies in the slots of a set: drawn inputs, poison; afterwards what changed. The reference
 * never reads memory that a kernel reached: the host draws its own copy of an input, at once where
 * the host draws the inputs themselves, else when it is needed.
 */
#include "session/private.h"

#include "base/philox.h"
#include "session/convert.h"

#include <stdlib.h>
#include <string.h>

/* Philox streams below 2^32 are the tensors' fills. */
#define POISON_STREAM (UINT64_C(1) << 32)

/* The request's fill of a tensor, or the task's; in the run's arena. */
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
    out->kind = rung_arena_strdup(run->arena, out->kind);
    return RUNG_OK;
}

int32_t slots_take_fills(struct run *run, struct rung_call *call,
                         const struct rung_run_request *request)
{
    uint32_t n = run->session->spec.task->n_tensors;
    int32_t status = RUNG_OK;
    run->fills = RUNG_ARENA_NEW(run->arena, struct rung_fill, n + 1);
    for (uint32_t i = 0; i < n && status == RUNG_OK; i++)
        if (slot_is_input(&run->slots[i]))
            status = fill_of(run, call, i, request, &run->fills[i]);
    return status;
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

/* Whether the device itself draws this input and watches it. */
static bool on_device(const struct run *run, const struct slot *s)
{
    return run->session->spec.gpu && !s->strided && !s->fill.bytes &&
           !(run->flags & RUNG_RUN_SAMPLED);
}

/* Elements of an input from the host to where they lie on the device. */
static int32_t put(struct run *run, struct rung_call *call, struct slot *s, const void *host)
{
    return s->strided ? strided_put(run, call, s, host, true)
                      : device_write(run->session, call, s->buffer, s->offset, host, s->bytes);
}

static struct session_gpu_range range_of(const struct slot *s, struct rung_buffer *buffer,
                                         uint64_t offset)
{
    return (struct session_gpu_range){
        .buffer = buffer, .offset = offset, .dtype = s->dtype, .n = s->elements};
}

static int32_t draw_on_host(struct rung_call *call, const struct slot *s, uint64_t bytes,
                            void **out)
{
    int32_t status = host_room(call, bytes, out);
    if (status != RUNG_OK)
        return status;
    if (rung_fill_draw(&s->fill, s->dtype, s->seed, 0, bytes / (rung_dtype_bits(s->dtype) / 8),
                       s->last, *out) == RUNG_OK)
        return RUNG_OK;
    free(*out);
    *out = NULL;
    return rung_fail(call->error, RUNG_EINTERNAL, "session.fill", "%s can't be drawn", s->name);
}

/* A sampled run's input: a block of the fill, repeated. */
static int32_t draw_sample(struct run *run, struct rung_call *call, struct slot *s)
{
    uint64_t bytes = s->fill.bytes ? s->bytes : sample_block(s->extent);
    void *host;
    int32_t status = draw_on_host(call, s, bytes, &host);
    if (status == RUNG_OK && s->fill.bytes)
        status = put(run, call, s, host);
    else if (status == RUNG_OK && bytes)
        status = device_fill(run->session, call, s->buffer, s->offset, s->extent, host, bytes, 1);
    free(host);
    return status;
}

static int32_t slot_draw(struct run *run, struct rung_call *call, struct slot *s)
{
    if (run->flags & RUNG_RUN_SAMPLED)
        return draw_sample(run, call, s);
    if (on_device(run, s)) {
        struct session_gpu_range range = range_of(s, s->buffer, s->offset);
        return s->elements ? session_gpu_draw(run->session->spec.gpu, call, &range, &s->fill,
                                              s->seed, s->last)
                           : RUNG_OK;
    }
    int32_t status = draw_on_host(call, s, s->bytes, &s->before);
    if (status == RUNG_OK && s->bytes)
        status = put(run, call, s, s->before);
    return status;
}

int32_t slot_before(struct rung_call *call, struct slot *s, const void **out)
{
    int32_t status = s->before ? RUNG_OK : draw_on_host(call, s, s->bytes, &s->before);
    *out = s->before;
    return status;
}

int32_t slot_draw_again(struct run *run, struct rung_call *call, struct slot *s,
                        struct rung_buffer *to)
{
    const void *host;
    struct session_gpu_range range = range_of(s, to, 0);
    if (!s->elements)
        return RUNG_OK;
    if (on_device(run, s))
        return session_gpu_draw(run->session->spec.gpu, call, &range, &s->fill, s->seed, s->last);
    int32_t status = slot_before(call, s, &host);
    return status == RUNG_OK ? device_write(run->session, call, to, 0, host, s->bytes) : status;
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
static const uint8_t *poison_make(struct run *run, uint32_t index)
{
    const struct slot *s = &run->slots[index];
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
    return p;
}

void slots_make_poison(struct run *run)
{
    const struct memory *m = run->memory;
    for (uint32_t i = 0; i < run->n_slots; i++) {
        bool takes = !slot_is_input(&run->slots[i]) && !(run->flags & RUNG_RUN_SAMPLED);
        const uint8_t *poison = takes ? poison_make(run, i) : NULL;
        for (uint32_t set = 0; set < m->n_sets; set++)
            m->sets[set].slots[i].poison = poison;
    }
}

/* Zeros for the outputs and temps of a sampled run: launches may read what others did not write. */
static int32_t slot_clear(struct run *run, struct rung_call *call, struct slot *s)
{
    uint64_t block = sample_block(s->extent);
    if (!s->bytes)
        return RUNG_OK;
    void *zeros = calloc(1, block);
    if (!zeros)
        return rung_fail(call->error, RUNG_ENOMEM, "session.host_memory", "no room on the host");
    int32_t status =
        device_fill(run->session, call, s->buffer, s->offset, s->extent, zeros, block, 1);
    free(zeros);
    return status;
}

int32_t slots_draw(struct run *run, struct rung_call *call, uint64_t seed)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK; i++) {
        struct slot *s = &run->slots[i];
        if (slot_is_input(s)) {
            s->fill = run->fills[i];
            s->seed = seed;
            status = slot_draw(run, call, s);
        } else if (run->flags & RUNG_RUN_SAMPLED) {
            status = slot_clear(run, call, s);
        }
    }
    return status;
}

/* An inout that a launch changed, as it was drawn. */
static int32_t restore(struct run *run, struct rung_call *call, struct slot *s)
{
    if (s->role != RUNG_ROLE_INOUT || !s->bytes || run->flags & RUNG_RUN_SAMPLED)
        return RUNG_OK;
    if (s->before)
        return put(run, call, s, s->before);
    return slot_draw(run, call, s);
}

static int32_t poison(struct run *run, struct rung_call *call, struct slot *s)
{
    return s->strided ? strided_poison(run, call, s)
                      : device_fill(run->session, call, s->buffer, s->offset, s->bytes, s->poison,
                                    POISON_BYTES, 0);
}

int32_t slots_reset(struct run *run, struct rung_call *call, bool drawn)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK; i++) {
        struct slot *s = &run->slots[i];
        if (s->poison && s->bytes)
            status = poison(run, call, s);
        else if (!drawn)
            status = restore(run, call, s);
    }
    return status;
}

int32_t slots_reset_like(struct run *run, struct rung_call *call, const struct set *like)
{
    int32_t status = RUNG_OK;
    if (like->slots == run->slots || !device_has_copy(run->session))
        return slots_reset(run, call, true);
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK; i++) {
        struct slot *s = &run->slots[i];
        if (s->poison && s->strided) /* its gaps are to be looked at first */
            status = poison(run, call, s);
        else if (s->poison && s->bytes)
            status = device_copy(run->session, call, s->buffer, s->offset, like->slots[i].buffer,
                                 like->slots[i].offset, s->bytes);
    }
    return status;
}

int32_t slot_same_memory(struct run *run, struct rung_call *call, struct rung_buffer *buffer,
                         uint64_t offset, const void *host, uint64_t bytes, bool *same)
{
    enum { CHUNK = 1 << 22 };
    const char *mapped = device_map(run->session, buffer);
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
        status = device_read(run->session, call, buffer, offset + at, chunk, take);
        if (status == RUNG_OK)
            *same = memcmp(chunk, (const char *)host + at, take) == 0;
        at += take;
    }
    free(chunk);
    return status;
}

static int32_t slot_same(struct run *run, struct rung_call *call, struct slot *s, bool *same)
{
    struct session_gpu_range range = range_of(s, s->buffer, s->offset);
    const void *host;
    if (on_device(run, s))
        return session_gpu_same(run->session->spec.gpu, call, &range, &s->fill, s->seed, s->last,
                                same);
    int32_t status = slot_before(call, s, &host);
    if (status != RUNG_OK)
        return status;
    if (!s->strided)
        return slot_same_memory(run, call, s->buffer, s->offset, host, s->bytes, same);
    const void *after;
    status = slot_after(run, call, s, &after);
    if (status == RUNG_OK)
        *same = memcmp(after, host, s->bytes) == 0;
    return status;
}

int32_t slots_check_inputs(struct run *run, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    if (run->flags & RUNG_RUN_SAMPLED)
        return RUNG_OK;
    for (uint32_t i = 0; i < run->n_slots && status == RUNG_OK && !run->pub.modified_input; i++) {
        struct slot *s = &run->slots[i];
        bool same = true;
        if (slot_is_input(s) && !slot_is_output(s) && s->bytes)
            status = slot_same(run, call, s, &same);
        if (!same)
            run->pub.modified_input = i + 1;
    }
    return status;
}

int32_t slot_after(struct run *run, struct rung_call *call, struct slot *s, const void **out)
{
    const char *mapped = s->strided ? NULL : device_map(run->session, s->buffer);
    if (mapped) {
        *out = mapped + s->offset;
        return RUNG_OK;
    }
    int32_t status = RUNG_OK;
    if (!s->after) {
        status = host_room(call, s->bytes, &s->after);
        if (status == RUNG_OK && s->strided)
            status = strided_get(run, call, s, s->after);
        else if (status == RUNG_OK && s->bytes)
            status = device_read(run->session, call, s->buffer, s->offset, s->after, s->bytes);
        if (status != RUNG_OK) {
            free(s->after);
            s->after = NULL;
        }
    }
    *out = s->after;
    return status;
}

void run_forget(struct run *run)
{
    for (uint32_t i = 0; i < run->n_slots; i++) {
        struct slot *s = &run->slots[i];
        free(s->before);
        free(s->after);
        s->before = s->after = NULL;
    }
    run->expected = NULL;
    run->compared = NULL;
    run->boxes = NULL;
}
