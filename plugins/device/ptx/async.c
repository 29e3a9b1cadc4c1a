/*
 * async.c - cp.async: a copy is checked when it is issued and made when the thread waits for its
 * group, so that a missing wait shows: until then shared memory holds what it held. Copies that
 * nobody waits for are never made. The same at every instruction-set level.
 */
#include "exec_memory.h"
#include "shadow.h"

#include <stdlib.h>

struct ptx_async {
    uint32_t mask, bytes;
    uint32_t group[PTX_LANES]; /* number of the lane's group, from 0 */
    uint32_t size[PTX_LANES];  /* bytes to read; the rest of `bytes` is zero */
    uint64_t to[PTX_LANES];    /* offset in shared memory */
    uint8_t *put[PTX_LANES];
    const uint8_t *get[PTX_LANES];
};

static struct ptx_async *new_entry(struct ptx_warp *w)
{
    if (w->n_async == w->cap_async) {
        uint32_t cap = w->cap_async ? w->cap_async * 2 : 8;
        struct ptx_async *wider = realloc(w->async, cap * sizeof(*wider));

        if (!wider)
            return NULL;
        w->async = wider;
        w->cap_async = cap;
    }
    return &w->async[w->n_async];
}

/* Sources [shared address, global address, bytes to read]. */
HANDLER(any_cp_async)
{
    const uint64_t *to = SLOT(const uint64_t, in->r[0]), *from = SLOT(const uint64_t, in->r[1]);
    const uint32_t *sizes = SLOT(const uint32_t, in->r[2]);
    const uint32_t bytes = in->sub;
    struct ptx_async *e = new_entry(w);

    if (!e)
        return ptx_fault(w, in, (uint32_t)__builtin_ctz(w->mask), "device.memory", 0,
                         "no memory for asynchronous copies under way");
    e->mask = w->mask;
    e->bytes = bytes;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint32_t n = sizes[i] < bytes ? sizes[i] : bytes;
        const uint64_t source = from[i] + (uint64_t)in->imm;
        const uint64_t target = to[i] + (uint64_t)(int64_t)in->second;

        e->put[i] = span(w->x, in, target, bytes, 1, 1);
        e->get[i] = n ? ptx_resolve(w, i, source, n, 0) : NULL;
        if (!e->put[i] || (target & (bytes - 1)))
            return ptx_memory_fault(w, in, i, target + PTX_SHARED_WINDOW, bytes);
        if ((n && !e->get[i]) || (source & (bytes - 1)))
            return ptx_memory_fault(w, in, i, source, bytes);
        e->to[i] = target;
        e->size[i] = n;
        e->group[i] = w->committed[i];
    }
    w->n_async++;
    return in + 1;
}

static void make(struct ptx_warp *w, struct ptx_async *e, uint32_t i)
{
    memset(e->put[i], 0, e->bytes);
    if (e->size[i])
        memcpy(e->put[i], e->get[i], e->size[i]);
    e->mask &= ~(1u << i);
    if (w->x->shadow)
        ptx_shadow_copied(w, e->to[i], e->bytes);
}

HANDLER(any_cp_async_commit)
{
    for (uint32_t left = w->mask; left; left &= left - 1)
        w->committed[__builtin_ctz(left)]++;
    return in + 1;
}

/* imm: that many groups may stay under way; sub: copies in no group are made too. */
HANDLER(any_cp_async_wait)
{
    uint32_t kept = 0;

    for (uint32_t k = 0; k < w->n_async; k++) {
        struct ptx_async *e = &w->async[k];

        for (uint32_t left = e->mask & w->mask; left; left &= left - 1) {
            const uint32_t i = (uint32_t)__builtin_ctz(left);

            if (in->sub || (uint64_t)e->group[i] + (uint64_t)in->imm < w->committed[i])
                make(w, e, i);
        }
        if (e->mask)
            w->async[kept++] = *e;
    }
    w->n_async = kept;
    return in + 1;
}

#define ANY(name) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = any_##name

void ptx_fill_async(struct ptx_isa *isa)
{
    ANY(cp_async);
    ANY(cp_async_commit);
    ANY(cp_async_wait);
}
