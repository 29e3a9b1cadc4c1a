/*
 * Slots of tensors with strides. The host's copies are dense, so that references, comparisons and
 * verifiers know nothing of strides; device memory holds the tensor's whole extent, and what lies
 * between its elements holds the canary. All goes through an image of the extent on the host.
 */
#include "session/private.h"

#include <stdlib.h>
#include <string.h>

/* The lines of the last axis, in row-major order; at: element of the extent that a line starts at.
 */
struct lines {
    const struct slot *s;
    int64_t index[RUNG_MAX_DIMS];
    uint64_t n, size, line_bytes, at, stride;
};

static struct lines lines_of(const struct slot *s)
{
    uint32_t last = s->n_dims - 1;
    struct lines l = {
        .s = s, .size = rung_dtype_bits(s->dtype) / 8, .stride = (uint64_t)s->strides[last]};
    l.n = s->elements / (uint64_t)s->last;
    l.line_bytes = (uint64_t)s->last * l.size;
    return l;
}

static void lines_next(struct lines *l)
{
    const struct slot *s = l->s;
    for (uint32_t d = s->n_dims - 1; d-- > 0;) {
        l->at += (uint64_t)s->strides[d];
        if (++l->index[d] < s->shape[d])
            return;
        l->at -= (uint64_t)(s->strides[d] * s->shape[d]);
        l->index[d] = 0;
    }
}

/* `to` and `from` advance by their own steps for each of n elements of `size` bytes. */
static void move(char *to, uint64_t to_step, const char *from, uint64_t from_step, uint64_t n,
                 uint64_t size)
{
    if (to_step == size && from_step == size) {
        memcpy(to, from, n * size);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, size);
}

static void gather(const struct slot *s, const char *image, char *dense)
{
    struct lines l = lines_of(s);
    for (uint64_t i = 0; i < l.n; i++, lines_next(&l))
        move(dense + i * l.line_bytes, l.size, image + l.at * l.size, l.stride * l.size,
             (uint64_t)s->last, l.size);
}

static void scatter(const struct slot *s, const char *dense, char *image)
{
    struct lines l = lines_of(s);
    for (uint64_t i = 0; i < l.n; i++, lines_next(&l))
        move(image + l.at * l.size, l.stride * l.size, dense + i * l.line_bytes, l.size,
             (uint64_t)s->last, l.size);
}

static void repeat(const uint8_t *pattern, uint64_t period, char *to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += period)
        memcpy(to + at, pattern, bytes - at < period ? bytes - at : period);
}

/* An image with these elements, and the canary in the gaps. */
static void compose(const struct run *run, const struct slot *s, const char *dense, char *image)
{
    repeat(run->memory->canary, CANARY_BYTES, image, s->extent);
    scatter(s, dense, image);
}

/* Room for images on the host. */
static int32_t room_for(struct rung_call *call, const struct slot *s, uint64_t bytes, char **out)
{
    *out = malloc(bytes);
    return *out ? RUNG_OK
                : rung_fail(call->error, RUNG_ENOMEM, "session.host_memory",
                            "no room for a copy of %s on the host", s->name);
}

/* The extent as it is: the device's own memory where the host can read it, else in `room`. */
static int32_t image_of(struct run *run, struct rung_call *call, const struct slot *s, char *room,
                        const char **out)
{
    const char *mapped = device_map(run->session, s->buffer);
    *out = mapped ? mapped + s->offset : room;
    return mapped ? RUNG_OK
                  : device_read(run->session, call, s->buffer, s->offset, room, s->extent);
}

int32_t strided_get(struct run *run, struct rung_call *call, const struct slot *s, void *out)
{
    char *room;
    const char *image;
    int32_t status = room_for(call, s, s->extent, &room);
    if (status == RUNG_OK)
        status = image_of(run, call, s, room, &image);
    if (status == RUNG_OK)
        gather(s, image, out);
    free(room);
    return status;
}

int32_t strided_check(struct run *run, struct rung_call *call, const struct slot *s, uint32_t index)
{
    char *room, *dense, *want;
    const char *image;
    if (!s->laid || run->pub.guard_broken)
        return RUNG_OK;
    int32_t status = room_for(call, s, 2 * s->extent + s->bytes, &room);
    if (status != RUNG_OK)
        return status;
    want = room + s->extent;
    dense = want + s->extent;
    status = image_of(run, call, s, room, &image);
    if (status == RUNG_OK) { /* the elements themselves may be anything */
        gather(s, image, dense);
        compose(run, s, dense, want);
        if (memcmp(image, want, s->extent) != 0)
            run->pub.guard_broken = index + 1;
    }
    free(room);
    return status;
}

int32_t strided_put(struct run *run, struct rung_call *call, struct slot *s, const void *dense,
                    bool written)
{
    char *image;
    int32_t status = strided_check(run, call, s, (uint32_t)(s - run->slots));
    if (status == RUNG_OK)
        status = room_for(call, s, s->extent, &image);
    if (status != RUNG_OK)
        return status;
    compose(run, s, dense, image);
    status =
        device_fill(run->session, call, s->buffer, s->offset, s->extent, image, s->extent, written);
    s->laid = status == RUNG_OK;
    free(image);
    return status;
}

int32_t strided_poison(struct run *run, struct rung_call *call, struct slot *s)
{
    char *dense;
    int32_t status = room_for(call, s, s->bytes, &dense);
    if (status != RUNG_OK)
        return status;
    repeat(s->poison, POISON_BYTES, dense, s->bytes);
    status = strided_put(run, call, s, dense, false);
    free(dense);
    return status;
}
