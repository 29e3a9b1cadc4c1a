/*
 * exec_memory.h - what the memory handlers of one instruction-set level share: the segment check
 * and moves of one lane's element.
 */
#ifndef PTX_EXEC_MEMORY_H
#define PTX_EXEC_MEMORY_H

#include "exec_lane.h"

#define INLINE static inline __attribute__((always_inline, unused))

/* Bytes of an element; e is a constant wherever this is inlined. */
INLINE uint32_t element_bytes(int e)
{
    return e == PTX_E_64 ? 8 : e == PTX_E_32 ? 4 : e == PTX_E_U16 || e == PTX_E_S16 ? 2 : 1;
}

/* Host memory of [address, address + bytes) if one segment holds it all, else NULL. */
INLINE uint8_t *span(struct ptx_exec *x, const struct ptx_insn *in, uint64_t address,
                     uint64_t bytes, int shared, int writes)
{
    struct ptx_segment *s = shared ? &x->shared : x->hints[in->hint];
    uint64_t offset = address - s->base;

    if (__builtin_expect(offset > s->size || bytes > s->size - offset, 0)) {
        if (shared)
            return NULL;
        s = address - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES ? &x->shared_window
                                                           : ptx_find_segment(x->memory, address);
        if (!s)
            return NULL;
        x->hints[in->hint] = s;
        offset = address - s->base;
        if (offset > s->size || bytes > s->size - offset)
            return NULL;
    }
    return writes && s->read_only ? NULL : s->host + offset;
}

/* Bytes of the segment that span() has just found count as written. */
INLINE void mark(const struct ptx_exec *x, const struct ptx_insn *in, uint64_t address,
                 uint64_t bytes)
{
    const struct ptx_segment *s = x->hints[in->hint];

    if (__builtin_expect(s->written != NULL, 0))
        ptx_mark(s, address - s->base, bytes);
}

/* ---- One lane -------------------------------------------------------------------------------- */

INLINE void fetch(uint8_t *slot, int i, const uint8_t *from, int e)
{
    uint16_t half;

    switch (e) {
    case PTX_E_U8:
        ((uint32_t *)(void *)slot)[i] = *from;
        break;
    case PTX_E_S8:
        ((uint32_t *)(void *)slot)[i] = (uint32_t)(int8_t)*from;
        break;
    case PTX_E_U16:
        memcpy(&half, from, 2);
        ((uint32_t *)(void *)slot)[i] = half;
        break;
    case PTX_E_S16:
        memcpy(&half, from, 2);
        ((uint32_t *)(void *)slot)[i] = (uint32_t)(int16_t)half;
        break;
    case PTX_E_32:
        memcpy((uint32_t *)(void *)slot + i, from, 4);
        break;
    default:
        memcpy((uint64_t *)(void *)slot + i, from, 8);
        break;
    }
}

INLINE void deposit(const uint8_t *slot, int i, uint8_t *to, int e)
{
    if (e == PTX_E_64)
        memcpy(to, (const uint64_t *)(const void *)slot + i, 8);
    else
        memcpy(to, (const uint32_t *)(const void *)slot + i, element_bytes(e));
}

#endif
