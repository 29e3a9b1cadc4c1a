/*
 * exec_atomic.c - memory lane by lane, of one instruction-set level: local memory, parameters at a
 * computed address, atomics.
 */
#include "exec_memory.h"

/* ---- Local memory and parameters at a computed address --------------------------------------- */

/* Local memory of a lane, or the parameter block, which stores can't reach. */
static uint8_t *own_memory(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                           uint64_t address, uint32_t bytes)
{
    const struct ptx_exec *x = w->x;

    if (in->space != PTX_PARAM)
        return ptx_resolve(w, lane, address + PTX_LOCAL_WINDOW, bytes, 0);
    if (address > x->param_bytes || bytes > x->param_bytes - address)
        return NULL;
    return (uint8_t *)(uintptr_t)(x->params + address);
}

static const struct ptx_insn *own_lanes(struct ptx_warp *w, const struct ptx_insn *in, int writes)
{
    const uint64_t *a = SLOT(const uint64_t, in->r[writes ? 0 : 1]);
    uint8_t *slot = SLOT(uint8_t, in->r[writes ? 1 : 0]);
    const uint32_t bytes = element_bytes(in->sub);

    for (uint32_t left = w->mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const uint64_t v = a[i] + (uint64_t)in->imm;
        uint8_t *host = v < PTX_WINDOW_BYTES ? own_memory(w, in, (uint32_t)i, v, bytes) : NULL;

        if (!host || (v & (bytes - 1)))
            return ptx_memory_fault(w, in, (uint32_t)i, v, bytes);
        if (writes)
            deposit(slot, i, host, in->sub);
        else
            fetch(slot, i, host, in->sub);
    }
    return in + 1;
}

HANDLER(any_ldl)
{
    return own_lanes(w, in, 0);
}
HANDLER(any_stl)
{
    return own_lanes(w, in, 1);
}

/* ---- Atomics --------------------------------------------------------------------------------- */

static uint32_t apply_32(uint32_t op, uint32_t old, uint32_t b, uint32_t c)
{
    switch (op) {
    case PTX_ATOM_ADD:
        return old + b;
    case PTX_ATOM_ADD_F32:
        return f32_bits(bits_f32(old) + bits_f32(b));
    case PTX_ATOM_ADD_F16X2:
        return both2(old, b, half_to_f32, f32_to_half, PAIR_ADD);
    case PTX_ATOM_ADD_BF16X2:
        return both2(old, b, bf16_to_f32, f32_to_bf16, PAIR_ADD);
    case PTX_ATOM_MIN_U:
        return old < b ? old : b;
    case PTX_ATOM_MAX_U:
        return old > b ? old : b;
    case PTX_ATOM_MIN_S:
        return (int32_t)old < (int32_t)b ? old : b;
    case PTX_ATOM_MAX_S:
        return (int32_t)old > (int32_t)b ? old : b;
    case PTX_ATOM_AND:
        return old & b;
    case PTX_ATOM_OR:
        return old | b;
    case PTX_ATOM_XOR:
        return old ^ b;
    case PTX_ATOM_CAS:
        return old == b ? c : old;
    case PTX_ATOM_INC:
        return old >= b ? 0 : old + 1;
    case PTX_ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    default:
        return b; /* exchange */
    }
}

static uint64_t apply_64(uint32_t op, uint64_t old, uint64_t b, uint64_t c)
{
    switch (op) {
    case PTX_ATOM_ADD:
        return old + b;
    case PTX_ATOM_ADD_F64:
        return f64_bits(bits_f64(old) + bits_f64(b));
    case PTX_ATOM_MIN_U:
        return old < b ? old : b;
    case PTX_ATOM_MAX_U:
        return old > b ? old : b;
    case PTX_ATOM_MIN_S:
        return (int64_t)old < (int64_t)b ? old : b;
    case PTX_ATOM_MAX_S:
        return (int64_t)old > (int64_t)b ? old : b;
    case PTX_ATOM_AND:
        return old & b;
    case PTX_ATOM_OR:
        return old | b;
    case PTX_ATOM_XOR:
        return old ^ b;
    case PTX_ATOM_CAS:
        return old == b ? c : old;
    default:
        return b;
    }
}

static uint16_t apply_16(uint32_t op, uint16_t old, uint16_t b, uint16_t c)
{
    switch (op) {
    case PTX_ATOM_ADD_F16:
        return f32_to_half(half_to_f32(old) + half_to_f32(b));
    case PTX_ATOM_ADD_BF16:
        return f32_to_bf16(bf16_to_f32(old) + bf16_to_f32(b));
    case PTX_ATOM_CAS:
        return old == b ? c : old;
    default:
        return b;
    }
}

/* With one worker and in shared memory nobody else is there; else compare and swap until it holds.
 */
#define ATOMIC(type, apply)                                                                        \
    static type atomic_##type(type *p, uint32_t op, type b, type c, int alone)                     \
    {                                                                                              \
        type old = alone ? *p : __atomic_load_n(p, __ATOMIC_RELAXED);                              \
                                                                                                   \
        if (alone) {                                                                               \
            *p = apply(op, old, b, c);                                                             \
            return old;                                                                            \
        }                                                                                          \
        while (!__atomic_compare_exchange_n(p, &old, apply(op, old, b, c), 0, __ATOMIC_ACQ_REL,    \
                                            __ATOMIC_RELAXED))                                     \
            ;                                                                                      \
        return old;                                                                                \
    }
ATOMIC(uint16_t, apply_16)
ATOMIC(uint32_t, apply_32)
ATOMIC(uint64_t, apply_64)

static uint8_t *atomic_place(struct ptx_warp *w, const struct ptx_insn *in, int i, uint64_t v,
                             uint32_t bytes)
{
    uint8_t *host;

    if (in->space == PTX_SHARED) {
        host = span(w->x, in, v, bytes, 1, 1);
        return host || v >= PTX_WINDOW_BYTES
                   ? host
                   : ptx_resolve(w, (uint32_t)i, v + PTX_SHARED_WINDOW, bytes, 1);
    }
    host = span(w->x, in, v, bytes, 0, 1);
    if (!host)
        return ptx_resolve(w, (uint32_t)i, v, bytes, 1);
    mark(w->x, in, v, bytes);
    return host;
}

/* slot_type is how a lane of a register is stored. */
#define ATOM_HANDLER(name, type, slot_type, bytes)                                                 \
    HANDLER(name)                                                                                  \
    {                                                                                              \
        const uint64_t *a = SLOT(const uint64_t, in->r[1]);                                        \
        const slot_type *b = SLOT(const slot_type, in->r[2]),                                      \
                        *c = SLOT(const slot_type, in->r[3]);                                      \
        slot_type *to = SLOT(slot_type, in->r[0]);                                                 \
        const int alone = w->x->one_worker || in->space == PTX_SHARED;                             \
                                                                                                   \
        for (uint32_t left = w->mask; left; left &= left - 1) {                                    \
            const int i = __builtin_ctz(left);                                                     \
            const uint64_t v = a[i] + (uint64_t)in->imm;                                           \
            uint8_t *host = atomic_place(w, in, i, v, bytes);                                      \
                                                                                                   \
            if (!host || (v & (bytes - 1)))                                                        \
                return ptx_memory_fault(w, in, (uint32_t)i, v, bytes);                             \
            to[i] = atomic_##type((type *)(void *)host, in->sub, (type)b[i], (type)c[i], alone);   \
        }                                                                                          \
        return in + 1;                                                                             \
    }
ATOM_HANDLER(any_atom_16, uint16_t, uint32_t, 2)
ATOM_HANDLER(any_atom_32, uint32_t, uint32_t, 4)
ATOM_HANDLER(any_atom_64, uint64_t, uint64_t, 8)

#define ANY(name, handler) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = handler

void LEVEL(ptx_fill_atomic)(struct ptx_isa *isa)
{
    ANY(ldl_32, any_ldl);
    ANY(ldl_64, any_ldl);
    ANY(stl_32, any_stl);
    ANY(stl_64, any_stl);
    ANY(atom_16, any_atom_16);
    ANY(atom_32, any_atom_32);
    ANY(atom_64, any_atom_64);
}
