/*
 * shadow.c - see shadow.h. Registers and memory accesses of checked blocks; races are in race.c.
 */
#include "shadow_int.h"
#include "shuffle.h"

#include <stdlib.h>
#include <string.h>

/* ---- Life ------------------------------------------------------------------------------------ */

struct ptx_shadow *ptx_shadow_new(const struct ptx_exec *x)
{
    struct ptx_shadow *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->stride = x->program->frame_bytes / 4 + 1;
    s->unit = x->program->shared_unit;
    s->local_bytes = x->program->local_bytes;
    s->taint = calloc((size_t)s->stride * x->n_warps, sizeof *s->taint);
    s->origins = calloc((size_t)PTX_LANES * x->n_warps, sizeof *s->origins);
    s->units = calloc(x->shared.size / s->unit + 1, sizeof *s->units);
    s->shared = calloc(x->shared.size + 1, 1);
    s->local = calloc(s->local_bytes * PTX_LANES * x->n_warps + 1, 1);
    if (s->taint && s->origins && s->units && s->shared && s->local)
        return s;
    ptx_shadow_free(s);
    return NULL;
}

void ptx_shadow_free(struct ptx_shadow *s)
{
    if (!s)
        return;
    free(s->taint);
    free(s->origins);
    free(s->units);
    free(s->shared);
    free(s->local);
    free(s);
}

void ptx_shadow_start(struct ptx_exec *x)
{
    struct ptx_shadow *s = x->shadow;

    s->epoch++;
    s->seen = NULL;
    memset(s->taint, 0, (size_t)s->stride * x->n_warps * sizeof *s->taint);
    memset(s->shared, PTX_NEVER, x->shared.size);
    memset(s->local, PTX_NEVER, s->local_bytes * PTX_LANES * x->n_warps);
}

void ptx_shadow_order(struct ptx_shadow *s)
{
    s->epoch++;
}

void ptx_shadow_copied(struct ptx_warp *w, uint64_t offset, uint32_t bytes)
{
    memset(w->x->shadow->shared + offset, PTX_WRITTEN, bytes);
}

/* ---- Registers ------------------------------------------------------------------------------- */

/* Lanes whose register at this place holds a value that nothing wrote. */
static uint32_t *taint_at(const struct ptx_warp *w, uint32_t offset)
{
    const struct ptx_shadow *s = w->x->shadow;

    return s->taint + (size_t)w->index * s->stride + offset / 4;
}

static void set_taint(const struct ptx_warp *w, uint32_t offset, uint32_t lanes)
{
    uint32_t *t = taint_at(w, offset);

    *t = (*t & ~w->mask) | (lanes & w->mask);
}

/* The value that a lane got from a byte never written is about to be used. */
static const struct ptx_insn *used(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lanes,
                                   const char *how)
{
    const uint32_t lane = (uint32_t)__builtin_ctz(lanes & w->mask);
    const struct ptx_origin *o = &w->x->shadow->origins[(size_t)w->index * PTX_LANES + lane];
    char at[40] = "";

    if (in->line && o->in && in->line != o->in->line)
        snprintf(at, sizeof at, " at line %u", in->line);
    return ptx_fault(w, o->in ? o->in : in, lane, "mem.uninitialised", o->address,
                     "%s memory is read where nothing has written (%s, %u bytes)%s, and the value "
                     "%s%s",
                     o->space ? o->space : "unknown", o->place, o->bytes,
                     o->space && *o->space == 's' ? ", or not yet: is a barrier missing?" : "", how,
                     at);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Where an access of `bytes` bytes goes; PTX_NOWHERE when it is for the handler to refuse. */
struct ptx_place ptx_place_of(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                              uint64_t address, uint64_t bytes)
{
    struct ptx_exec *x = w->x;
    struct ptx_shadow *s = x->shadow;
    struct ptx_place p = {.kind = PTX_NOWHERE};

    if (in->space == PTX_SHARED || address - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES) {
        p.offset = in->space == PTX_SHARED ? address : address - PTX_SHARED_WINDOW;
        if (p.offset <= x->shared.size && bytes <= x->shared.size - p.offset)
            p.kind = PTX_IN_SHARED;
    } else if (in->space == PTX_LOCAL || address - PTX_LOCAL_WINDOW < PTX_WINDOW_BYTES) {
        p.offset = in->space == PTX_LOCAL ? address : address - PTX_LOCAL_WINDOW;
        if (p.offset <= s->local_bytes && bytes <= s->local_bytes - p.offset)
            p.kind = PTX_IN_LOCAL;
        p.state = s->local + ((uint64_t)w->index * PTX_LANES + lane) * s->local_bytes + p.offset;
    } else if (in->space != PTX_PARAM) {
        if (!s->seen || address - s->seen->base >= s->seen->size)
            s->seen = ptx_find_segment(x->memory, address);
        p.offset = s->seen ? address - s->seen->base : 0;
        if (s->seen && bytes <= s->seen->size - p.offset)
            p.kind = PTX_IN_GLOBAL;
        p.segment = s->seen;
    }
    if (p.kind == PTX_IN_SHARED)
        p.state = s->shared + p.offset;
    return p;
}

/*
 * A register has one state for all its bytes. One that holds some written byte counts as written: a
 * pair of halves at the end of an odd row must not be called garbage for the half that nobody uses.
 */
static int never_written(const struct ptx_place *p, uint32_t bytes)
{
    if (p->kind == PTX_NOWHERE)
        return 0;
    for (uint32_t k = 0; k < bytes; k++)
        if (p->kind == PTX_IN_GLOBAL ? ptx_is_written(p->segment, p->offset + k, 1)
                                     : p->state[k] == PTX_WRITTEN)
            return 0;
    return 1;
}

static void set_written(const struct ptx_place *p, uint32_t bytes, int written)
{
    if (p->kind == PTX_IN_SHARED || p->kind == PTX_IN_LOCAL)
        memset(p->state, written ? PTX_WRITTEN : PTX_NEVER, bytes);
}

static void note_origin(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                        const struct ptx_place *p, uint64_t address, uint32_t bytes)
{
    static const char *const spaces[] = {"unknown", "shared", "local", "global"};
    struct ptx_origin *o = &w->x->shadow->origins[(size_t)w->index * PTX_LANES + lane];

    *o =
        (struct ptx_origin){.in = in, .address = address, .bytes = bytes, .space = spaces[p->kind]};
    if (p->kind == PTX_IN_GLOBAL)
        snprintf(o->place, sizeof o->place, "byte %llu of '%.40s'", (unsigned long long)p->offset,
                 p->segment->label);
    else
        snprintf(o->place, sizeof o->place, "offset %llu", (unsigned long long)p->offset);
}

/* ---- Accesses -------------------------------------------------------------------------------- */

static const uint64_t *addresses_of(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t k)
{
    return (const uint64_t *)(const void *)(w->frame + in->r[k]);
}

static void orders(struct ptx_warp *w, const struct ptx_insn *in)
{
    if (in->flags & PTX_F_ORDERS)
        ptx_shadow_order(w->x->shadow);
}

static const struct ptx_insn *step_load(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t count = ptx_element_count(in), size = ptx_element_bytes(in);
    const uint64_t *a = addresses_of(w, in, count);
    const uint32_t bad = *taint_at(w, in->r[count]) & w->mask;
    uint32_t never[4] = {0};

    if (bad)
        return used(w, in, bad, "makes the address of a load");
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint64_t address = a[i] + (uint64_t)in->imm;
        struct ptx_place p = ptx_place_of(w, in, i, address, size * count);

        if (p.kind == PTX_IN_SHARED && ptx_race_read(w, in, i, p.offset, size * count))
            return NULL;
        for (uint32_t k = 0; k < count; k++) {
            if (never_written(&p, size)) {
                never[k] |= 1u << i;
                note_origin(w, in, i, &p, address + k * size, size);
            }
            p.offset += size;
            p.state += p.state ? size : 0;
        }
    }
    for (uint32_t k = 0; k < count; k++)
        set_taint(w, in->r[k], never[k]);
    orders(w, in);
    return in;
}

static const struct ptx_insn *step_store(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t count = ptx_element_count(in), size = ptx_element_bytes(in);
    const uint64_t *a = addresses_of(w, in, 0);
    const uint32_t bad = *taint_at(w, in->r[0]) & w->mask;

    if (bad)
        return used(w, in, bad, "makes the address of a store");
    orders(w, in);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);

        for (uint32_t k = 0; k < count; k++) {
            const uint32_t never = *taint_at(w, in->r[1 + k]) >> i & 1;
            const uint8_t *value = w->frame + in->r[1 + k] + (size > 4 ? 8 : 4) * i;
            const struct ptx_place p =
                ptx_place_of(w, in, i, a[i] + (uint64_t)in->imm + k * size, size);

            if (never && p.kind == PTX_IN_GLOBAL)
                return used(w, in, 1u << i, "is stored to global memory");
            if (p.kind == PTX_IN_SHARED && ptx_race_write(w, in, i, p.offset, size, value))
                return NULL;
            set_written(&p, size, !never);
        }
    }
    return in;
}

static const struct ptx_insn *step_atomic(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t size = ptx_element_bytes(in);
    const uint64_t *a = addresses_of(w, in, 1);
    const uint32_t bad =
        (*taint_at(w, in->r[1]) | *taint_at(w, in->r[2]) | *taint_at(w, in->r[3])) & w->mask;
    uint32_t never = 0;

    if (bad)
        return used(w, in, bad, "goes into an atomic operation");
    orders(w, in);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint64_t address = a[i] + (uint64_t)in->imm;
        const struct ptx_place p = ptx_place_of(w, in, i, address, size);

        if (p.kind == PTX_IN_SHARED && ptx_race_atomic(w, in, i, p.offset, size))
            return NULL;
        if (never_written(&p, size)) {
            never |= 1u << i;
            note_origin(w, in, i, &p, address, size);
            if (in->sub != PTX_ATOM_EXCH)
                return used(w, in, 1u << i, "is changed by an atomic operation");
        }
        set_written(&p, size, 1);
    }
    set_taint(w, in->r[0], never);
    return in;
}

static const struct ptx_insn *step_copy(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint64_t *to = addresses_of(w, in, 0);
    const uint32_t bad =
        (*taint_at(w, in->r[0]) | *taint_at(w, in->r[1]) | *taint_at(w, in->r[2])) & w->mask;
    struct ptx_exec *x = w->x;

    if (bad)
        return used(w, in, bad, "makes the address of an asynchronous copy");
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint64_t offset = to[i] + (uint64_t)(int64_t)in->second;

        if (offset > x->shared.size || in->sub > x->shared.size - offset)
            continue;
        if (ptx_race_write(w, in, i, offset, in->sub, NULL))
            return NULL;
        memset(x->shadow->shared + offset, PTX_PENDING, in->sub);
    }
    return in;
}

/* Rows of ldmatrix; the registers count as written. */
static const struct ptx_insn *step_matrix(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint64_t *at = addresses_of(w, in, 4);

    for (uint32_t i = 0; i < 8u * in->sub && i < PTX_LANES; i++) {
        const struct ptx_place p = ptx_place_of(w, in, i, at[i] + (uint64_t)in->imm, 16);

        if (p.kind == PTX_IN_SHARED && ptx_race_read(w, in, i, p.offset, 16))
            return NULL;
    }
    for (uint32_t k = 0; k < 4; k++)
        set_taint(w, in->r[k], 0);
    return in;
}

/* A wmma tile: lines of neighbours, a stride apart. */
static const struct ptx_insn *step_tile(struct ptx_warp *w, const struct ptx_insn *in, int writes)
{
    const struct ptx_tile t = ptx_tile_of(in);
    const uint32_t k = ptx_ops[in->op].defs.n, across = t.c == 'c' ? 16 : t.k;
    const uint32_t lines = (t.c == 'b') == (t.d == 0) ? across : 16;
    const uint32_t size = ptx_type_bytes(t.type), length = 16 * across / lines * size;
    const uint64_t base = addresses_of(w, in, k)[0] + (uint64_t)in->imm;
    const uint32_t stride = *(const uint32_t *)(const void *)(w->frame + in->r[2]);

    for (uint32_t i = 0; i < lines; i++) {
        const struct ptx_place p =
            ptx_place_of(w, in, 0, base + (uint64_t)i * stride * size, length);

        if (p.kind != PTX_IN_SHARED)
            continue;
        if (writes ? ptx_race_write(w, in, 0, p.offset, length, NULL)
                   : ptx_race_read(w, in, 0, p.offset, length))
            return NULL;
        if (writes)
            set_written(&p, length, 1);
    }
    return in;
}

/* ---- Other instructions ---------------------------------------------------------------------- */

static uint32_t mask_at(const struct ptx_warp *w, uint32_t offset)
{
    return *(const uint32_t *)(const void *)(w->frame + offset);
}

/* Lanes whose source k is all zeros, or all ones: they decide an and, or an or, alone. */
static uint32_t deciding(const struct ptx_warp *w, uint32_t offset, int wide, int ones)
{
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < PTX_LANES; i++) {
        const uint64_t v = wide ? ((const uint64_t *)(const void *)(w->frame + offset))[i]
                                : ((const uint32_t *)(const void *)(w->frame + offset))[i];
        const uint64_t all = wide ? ~(uint64_t)0 : PTX_ALL;

        lanes |= (uint32_t)(v == (ones ? all : 0)) << i;
    }
    return lanes & ~*taint_at(w, offset);
}

/* and, or: a defined operand may settle the result. */
static uint32_t logic(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t a, uint32_t b)
{
    const uint32_t t = *taint_at(w, a) | *taint_at(w, b);

    if (!(t & w->mask))
        return 0;
    switch (in->op) {
    case PTX_OP_and_p:
        return t & ~(~mask_at(w, a) & ~*taint_at(w, a)) & ~(~mask_at(w, b) & ~*taint_at(w, b));
    case PTX_OP_or_p:
        return t & ~(mask_at(w, a) & ~*taint_at(w, a)) & ~(mask_at(w, b) & ~*taint_at(w, b));
    case PTX_OP_and_32:
    case PTX_OP_and_64:
        return t & ~deciding(w, a, in->op == PTX_OP_and_64, 0) &
               ~deciding(w, b, in->op == PTX_OP_and_64, 0);
    default:
        return t & ~deciding(w, a, in->op == PTX_OP_or_64, 1) &
               ~deciding(w, b, in->op == PTX_OP_or_64, 1);
    }
}

/* selp: the side that is taken, and the choice. */
static uint32_t selected(const struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t p = mask_at(w, in->r[3]);

    return (p & *taint_at(w, in->r[1])) | (~p & *taint_at(w, in->r[2])) | *taint_at(w, in->r[3]);
}

static uint32_t shuffled(const struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t *b = (const uint32_t *)(const void *)(w->frame + in->r[3]);
    const uint32_t *c = (const uint32_t *)(const void *)(w->frame + in->r[4]);
    const uint32_t from = *taint_at(w, in->r[2]);
    uint32_t lanes = *taint_at(w, in->r[3]) | *taint_at(w, in->r[4]);

    for (uint32_t left = from ? w->mask : 0; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);

        lanes |= (from >> ptx_source_lane(in->sub, i, b[i], c[i]).lane & 1) << i;
    }
    return lanes;
}

static uint32_t sources(const struct ptx_warp *w, const struct ptx_insn *in)
{
    const struct ptx_opinfo *info = &ptx_ops[in->op];
    uint32_t lanes = 0;

    for (uint32_t k = 0; k < info->uses.n; k++)
        lanes |= *taint_at(w, in->r[info->defs.n + k]);
    return lanes & w->mask;
}

static uint32_t result_of(const struct ptx_warp *w, const struct ptx_insn *in)
{
    switch (in->op) {
    case PTX_OP_selp_32:
    case PTX_OP_selp_64:
        return selected(w, in);
    case PTX_OP_and_p:
    case PTX_OP_or_p:
    case PTX_OP_and_32:
    case PTX_OP_and_64:
    case PTX_OP_or_32:
    case PTX_OP_or_64:
        return logic(w, in, in->r[1], in->r[2]);
    case PTX_OP_shfl:
        return shuffled(w, in);
    case PTX_OP_vote:
    case PTX_OP_ballot:
    case PTX_OP_match_any_32:
    case PTX_OP_match_any_64:
    case PTX_OP_match_all_32:
    case PTX_OP_match_all_64:
    case PTX_OP_redux:
        return sources(w, in) ? PTX_ALL : 0;
    case PTX_OP_frag_pack:
    case PTX_OP_frag_pack_high:
    case PTX_OP_frag_unpack:
    case PTX_OP_frag_unpack_high:
    case PTX_OP_mma:
        return 0;
    default:
        return sources(w, in);
    }
}

static const struct ptx_insn *step_access(struct ptx_warp *w, const struct ptx_insn *in)
{
    switch (in->op) {
    case PTX_OP_cp_async:
        return step_copy(w, in);
    case PTX_OP_ldmatrix:
        return step_matrix(w, in);
    case PTX_OP_tile_load:
    case PTX_OP_tile_store:
        return step_tile(w, in, in->op == PTX_OP_tile_store);
    default:
        break;
    }
    switch (ptx_ops[in->op].class) {
    case PTX_C_LOAD:
        return step_load(w, in);
    case PTX_C_STORE:
        return step_store(w, in);
    default:
        return step_atomic(w, in);
    }
}

const struct ptx_insn *ptx_shadow_step(struct ptx_warp *w, const struct ptx_insn *in)
{
    const struct ptx_opinfo *info = &ptx_ops[in->op];
    uint32_t lanes;

    if (info->class == PTX_C_LOAD || info->class == PTX_C_STORE || info->class == PTX_C_ATOMIC)
        return step_access(w, in);
    if (in->op == PTX_OP_bra_if) {
        lanes = *taint_at(w, in->r[0]) & w->mask;
        return lanes ? used(w, in, lanes, "decides a branch") : in;
    }
    if (in->op == PTX_OP_fence)
        ptx_shadow_order(w->x->shadow);
    lanes = info->defs.n ? result_of(w, in) : 0;
    for (uint32_t k = 0; k < info->defs.n; k++)
        set_taint(w, in->r[k], lanes);
    return in;
}
