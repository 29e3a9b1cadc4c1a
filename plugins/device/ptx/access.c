/*
 * access.c - the slow side of memory accesses, and the text of faults. Called once a launch at
 * most, but for scattered accesses.
 */
#include "exec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint32_t ptx_element_bytes(const struct ptx_insn *in)
{
    switch (in->op) {
    case PTX_OP_ldg_x:
    case PTX_OP_ldg_xv2:
    case PTX_OP_ldg_xv4:
    case PTX_OP_stg_x:
    case PTX_OP_stg_xv2:
    case PTX_OP_stg_xv4:
    case PTX_OP_lds_x:
    case PTX_OP_lds_xv2:
    case PTX_OP_lds_xv4:
    case PTX_OP_sts_x:
    case PTX_OP_sts_xv2:
    case PTX_OP_sts_xv4:
        return in->sub == PTX_E_U8 || in->sub == PTX_E_S8 ? 1 : 2;
    case PTX_OP_ldl_32:
    case PTX_OP_ldl_64:
    case PTX_OP_stl_32:
    case PTX_OP_stl_64:
        return in->sub == PTX_E_64 ? 8 : in->sub == PTX_E_32 ? 4 : in->sub >= PTX_E_U16 ? 2 : 1;
    case PTX_OP_ldmatrix:
        return 16;
    case PTX_OP_ldg_64:
    case PTX_OP_ldg_64v2:
    case PTX_OP_ldg_64v4:
    case PTX_OP_stg_64:
    case PTX_OP_stg_64v2:
    case PTX_OP_stg_64v4:
    case PTX_OP_lds_64:
    case PTX_OP_lds_64v2:
    case PTX_OP_sts_64:
    case PTX_OP_sts_64v2:
    case PTX_OP_atom_64:
        return 8;
    case PTX_OP_atom_16:
        return 2;
    case PTX_OP_cp_async:
        return in->sub;
    default:
        return 4;
    }
}

uint32_t ptx_element_count(const struct ptx_insn *in)
{
    const struct ptx_opinfo *info = &ptx_ops[in->op];

    if (info->class == PTX_C_LOAD)
        return info->defs.n ? info->defs.n : 1;
    return info->class == PTX_C_STORE ? info->uses.n - 1u : 1;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static uint8_t *inside(struct ptx_segment *s, uint64_t address, uint32_t bytes, int writes)
{
    uint64_t offset = address - s->base;

    if (offset > s->size || bytes > s->size - offset || (writes && s->read_only))
        return NULL;
    return s->host + offset;
}

/* The shared memory that a generic address names: the block's own, or another block's of the
 * cluster. The rank is taken out of the address. */
static struct ptx_segment *shared_of(struct ptx_exec *x, uint64_t *address)
{
    const uint64_t offset = *address - PTX_SHARED_WINDOW, rank = offset >> PTX_RANK_SHIFT;

    if (!rank)
        return &x->shared_window;
    if (!x->cluster || rank > x->cluster->n)
        return &x->nowhere;
    *address -= rank << PTX_RANK_SHIFT;
    return &x->cluster->blocks[rank - 1]->shared_window;
}

uint8_t *ptx_resolve(struct ptx_warp *w, uint32_t lane, uint64_t address, uint32_t bytes,
                     int writes)
{
    struct ptx_exec *x = w->x;
    struct ptx_segment *s;

    if (address - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES) {
        s = shared_of(x, &address);
        return inside(s, address, bytes, writes);
    }
    if (address - PTX_LOCAL_WINDOW < PTX_WINDOW_BYTES) {
        uint64_t offset = address - PTX_LOCAL_WINDOW, size = x->program->local_bytes;

        if (offset > size || bytes > size - offset)
            return NULL;
        return w->local + (uint64_t)lane * size + offset;
    }
    s = ptx_find_segment(x->memory, address);
    uint8_t *host = s ? inside(s, address, bytes, writes) : NULL;

    if (host && writes && s->written)
        ptx_mark(s, address - s->base, bytes);
    return host;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void thread_of(const struct ptx_warp *w, uint32_t lane, uint32_t out[3])
{
    const struct rung_dim3 *n = &w->x->block;
    uint32_t linear = w->index * PTX_LANES + lane;

    out[0] = linear % n->x;
    out[1] = linear / n->x % n->y;
    out[2] = linear / n->x / n->y;
}

const struct ptx_insn *ptx_fault(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                                 const char *code, uint64_t address, const char *format, ...)
{
    struct rung_fault *f = w->x->fault;
    const struct rung_dim3 *at = &w->x->at;
    va_list args;
    int n;

    w->x->reason = PTX_FAULT;
    f->line = in->line;
    f->address = address;
    snprintf(f->code, sizeof f->code, "%s", code);
    snprintf(f->kernel, sizeof f->kernel, "%s", w->x->kernel);
    f->block[0] = at->x, f->block[1] = at->y, f->block[2] = at->z;
    thread_of(w, lane, f->thread);
    va_start(args, format);
    n = vsnprintf(f->message, sizeof f->message, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof f->message)
        return NULL;
    snprintf(f->message + n, sizeof f->message - (size_t)n, ", block (%u,%u,%u), thread (%u,%u,%u)",
             at->x, at->y, at->z, f->thread[0], f->thread[1], f->thread[2]);
    return NULL;
}

static const char *space_word(const struct ptx_insn *in, uint64_t address)
{
    if (in->space == PTX_SHARED || address - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES)
        return "shared";
    if (in->space == PTX_LOCAL || address - PTX_LOCAL_WINDOW < PTX_WINDOW_BYTES)
        return "local";
    return in->space == PTX_PARAM ? "parameter" : "global";
}

static const char *action_word(const struct ptx_insn *in)
{
    uint32_t class = ptx_ops[in->op].class;

    return class == PTX_C_STORE ? "store" : class == PTX_C_ATOMIC ? "atomic" : "load";
}

/* Where a shared, local or parameter address lies outside. */
static void describe_own(const struct ptx_exec *x, uint64_t offset, uint32_t bytes,
                         const char *space, char *out, size_t n)
{
    uint64_t size = *space == 's'   ? x->shared.size
                    : *space == 'l' ? x->program->local_bytes
                                    : x->param_bytes;

    if ((int64_t)offset < 0)
        snprintf(out, n,
                 "at offset %" PRId64 " is before the start of the %" PRIu64 " bytes of %s memory",
                 (int64_t)offset, size, space);
    else if (offset >= size)
        snprintf(out, n,
                 "at offset %" PRIu64 " is %" PRIu64 " bytes past the end of the %" PRIu64
                 " bytes of %s memory",
                 offset, offset - size, size, space);
    else
        snprintf(out, n,
                 "at offset %" PRIu64 " ends %" PRIu64 " bytes past the end of the %" PRIu64
                 " bytes of %s memory",
                 offset, offset + bytes - size, size, space);
}

const struct ptx_insn *ptx_memory_fault(struct ptx_warp *w, const struct ptx_insn *in,
                                        uint32_t lane, uint64_t address, uint32_t bytes)
{
    struct ptx_exec *x = w->x;
    const char *space = space_word(in, address), *action = action_word(in);
    const struct ptx_segment *s = NULL;
    char where[400];

    if (address & (bytes - 1) && bytes <= 32)
        return ptx_fault(w, in, lane, "mem.misaligned", address,
                         "%s %s of %u bytes at 0x%" PRIx64 ", which is not a multiple of %u", space,
                         action, bytes, address, bytes);
    if (*space == 'g') {
        s = ptx_find_segment(x->memory, address);
        if (s && s->read_only && address - s->base + bytes <= s->size)
            snprintf(where, sizeof where, "writes to the constant '%s'", s->label);
        else
            ptx_describe_address(x->memory, address, bytes, where, sizeof where);
        return ptx_fault(w, in, lane, "mem.out_of_bounds", address,
                         "%s %s of %u bytes at 0x%" PRIx64 " %s", space, action, bytes, address,
                         where);
    }
    if (address >= PTX_SHARED_WINDOW && address - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES)
        address -= PTX_SHARED_WINDOW;
    else if (address - PTX_LOCAL_WINDOW < PTX_WINDOW_BYTES)
        address -= PTX_LOCAL_WINDOW;
    describe_own(x, address, bytes, space, where, sizeof where);
    return ptx_fault(w, in, lane, "mem.out_of_bounds", address, "%s %s of %u bytes %s", space,
                     action, bytes, where);
}
