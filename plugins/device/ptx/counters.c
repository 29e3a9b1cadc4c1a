/*
 * counters.c - see counters.h.
 */
#include "counters.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SECTORS 4096u

struct ptx_counting *ptx_counting_new(void)
{
    struct ptx_counting *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    for (uint32_t op = 0; op < PTX_N_OPS; op++)
        c->classes[op] = (uint8_t)ptx_op_class(op);
    c->read.slots = calloc(FIRST_SECTORS, sizeof(uint64_t));
    c->written.slots = calloc(FIRST_SECTORS, sizeof(uint64_t));
    c->read.cap = c->written.cap = FIRST_SECTORS;
    if (!c->read.slots || !c->written.slots) {
        ptx_counting_free(c);
        return NULL;
    }
    return c;
}

void ptx_counting_free(struct ptx_counting *c)
{
    if (!c)
        return;
    free(c->read.slots);
    free(c->written.slots);
    free(c);
}

/* ---- Sector sets ----------------------------------------------------------------------------- */

static uint32_t place(const struct ptx_sectors *s, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (s->cap - 1);

    while (s->slots[at] && s->slots[at] != key)
        at = (at + 1) & (s->cap - 1);
    return at;
}

static void widen(struct ptx_sectors *s)
{
    struct ptx_sectors wider = {calloc((size_t)s->cap * 2, sizeof(uint64_t)), s->n, s->cap * 2};

    if (!wider.slots)
        return; /* the set stays full enough to probe; counts then lag, memory is out anyway */
    for (uint32_t i = 0; i < s->cap; i++)
        if (s->slots[i])
            wider.slots[place(&wider, s->slots[i])] = s->slots[i];
    free(s->slots);
    *s = wider;
}

static void sectors_add(struct ptx_sectors *s, uint64_t sector)
{
    uint32_t at;

    if (s->n * 2 >= s->cap)
        widen(s);
    if (s->n + 1 >= s->cap)
        return;
    at = place(s, sector + 1);
    if (!s->slots[at]) {
        s->slots[at] = sector + 1;
        s->n++;
    }
}

static void sectors_clear(struct ptx_sectors *s)
{
    if (s->n)
        memset(s->slots, 0, (size_t)s->cap * sizeof(uint64_t));
    s->n = 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Which source holds the address. */
static uint32_t address_operand(const struct ptx_insn *in)
{
    return in->op == PTX_OP_cp_async ? 1 : ptx_ops[in->op].defs.n;
}

/* Adds v to the small list unless it is there; at most 32 lanes times 2 are ever added. */
static uint32_t list_add(uint64_t *list, uint32_t n, uint64_t v)
{
    for (uint32_t i = n; i-- > 0;)
        if (list[i] == v)
            return n;
    list[n] = v;
    return n + 1;
}

/* A wmma tile: lines of neighbours, a stride apart; lane 0's operands count for all. */
static void count_tile(struct ptx_counting *c, const struct ptx_warp *w, const struct ptx_insn *in,
                       int writes)
{
    const struct ptx_tile t = ptx_tile_of(in);
    const uint32_t k = address_operand(in), across = t.c == 'c' ? 16 : t.k;
    const uint32_t lines = (t.c == 'b') == (t.d == 0) ? across : 16, length = 16 * across / lines;
    const uint32_t bytes = ptx_type_bytes(t.type);
    const uint64_t base =
        *(const uint64_t *)(const void *)(w->frame + in->r[k]) + (uint64_t)in->imm;
    const uint32_t stride = *(const uint32_t *)(const void *)(w->frame + in->r[2]);

    for (uint32_t i = 0; i < lines; i++) {
        const uint64_t first = base + (uint64_t)i * stride * bytes,
                       last = first + length * bytes - 1;

        for (uint64_t s = first / 32; s <= last / 32; s++) {
            sectors_add(writes ? &c->written : &c->read, s);
            *(writes ? &c->sum.global_sectors_written : &c->sum.global_sectors_read) += 1;
        }
        c->sum.global_lines += last / 128 - first / 128 + 1;
    }
}

static int is_tile(const struct ptx_insn *in)
{
    return in->op == PTX_OP_tile_load || in->op == PTX_OP_tile_store;
}

/* Shared tiles count as the fewest wavefronts that move them. */
static void count_shared_tile(struct ptx_counting *c, const struct ptx_insn *in)
{
    const struct ptx_tile t = ptx_tile_of(in);

    c->sum.shared_wavefronts += 16u * (t.c == 'c' ? 16 : t.k) * ptx_type_bytes(t.type) / 128;
}

static void count_global(struct ptx_counting *c, const struct ptx_warp *w,
                         const struct ptx_insn *in, int writes)
{
    const uint64_t *a = (const uint64_t *)(const void *)(w->frame + in->r[address_operand(in)]);
    uint32_t bytes = ptx_element_bytes(in) * ptx_element_count(in);
    uint64_t sectors[PTX_LANES * 2 + 1], lines[PTX_LANES * 2 + 1];
    uint32_t n_sectors = 0, n_lines = 0;

    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint64_t first = a[__builtin_ctz(left)] + (uint64_t)in->imm;

        for (uint64_t s = first / 32; s <= (first + bytes - 1) / 32 && s <= first / 32 + 1; s++) {
            n_sectors = list_add(sectors, n_sectors, s);
            n_lines = list_add(lines, n_lines, s / 4);
        }
    }
    for (uint32_t i = 0; i < n_sectors; i++)
        sectors_add(writes ? &c->written : &c->read, sectors[i]);
    *(writes ? &c->sum.global_sectors_written : &c->sum.global_sectors_read) += n_sectors;
    c->sum.global_lines += n_lines;
}

/*
 * Wavefronts of a shared request: 32 banks of 4 bytes; lanes that read the same word share it. Wide
 * accesses go in groups of lanes that together move 128 bytes, as hardware does.
 */
static uint32_t wavefronts(const uint64_t *a, int64_t offset, uint32_t mask, uint32_t bytes)
{
    uint32_t words = bytes < 4 ? 1 : bytes / 4,
             group = PTX_LANES / (words > PTX_LANES ? PTX_LANES : words);
    uint32_t total = 0;

    for (uint32_t start = 0; start < PTX_LANES; start += group) {
        uint64_t seen[32][33];
        uint32_t depth[32] = {0}, worst = 0;

        for (uint32_t lane = start; lane < start + group; lane++) {
            if (!(mask >> lane & 1))
                continue;
            for (uint32_t k = 0; k < words; k++) {
                uint64_t word = (a[lane] + (uint64_t)offset) / 4 + k;
                uint32_t bank = (uint32_t)(word % 32);

                depth[bank] = list_add(seen[bank], depth[bank], word);
                worst = depth[bank] > worst ? depth[bank] : worst;
            }
        }
        total += worst;
    }
    return total;
}

static void count_shared(struct ptx_counting *c, const struct ptx_warp *w,
                         const struct ptx_insn *in, int64_t offset)
{
    uint32_t k = in->op == PTX_OP_cp_async ? 0 : address_operand(in);
    const uint64_t *a = (const uint64_t *)(const void *)(w->frame + in->r[k]);

    uint32_t lanes = in->op == PTX_OP_ldmatrix
                         ? w->mask & (uint32_t)(((uint64_t)1 << 8 * in->sub) - 1)
                         : w->mask;

    c->sum.shared_wavefronts +=
        wavefronts(a, offset, lanes, ptx_element_bytes(in) * ptx_element_count(in));
}

/* Generic addresses count as what they point to; a warp's lanes are taken to point to one space. */
static uint32_t space_of(const struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint64_t *a = (const uint64_t *)(const void *)(w->frame + in->r[address_operand(in)]);
    uint64_t v = a[__builtin_ctz(w->mask)] + (uint64_t)in->imm;

    if (in->space != PTX_GENERIC)
        return in->space;
    return v - PTX_SHARED_WINDOW < PTX_WINDOW_BYTES  ? PTX_SHARED
           : v - PTX_LOCAL_WINDOW < PTX_WINDOW_BYTES ? PTX_LOCAL
                                                     : PTX_GLOBAL;
}

static void count_load(struct ptx_counting *c, const struct ptx_warp *w, const struct ptx_insn *in)
{
    uint32_t space = space_of(w, in);

    if (in->op == PTX_OP_cp_async) {
        c->sum.global_loads++;
        c->sum.shared_stores++;
        count_global(c, w, in, 0);
        count_shared(c, w, in, in->second);
    } else if (space == PTX_SHARED) {
        c->sum.shared_loads++;
        if (is_tile(in))
            count_shared_tile(c, in);
        else
            count_shared(c, w, in, in->imm);
    } else if (space == PTX_LOCAL) {
        c->sum.local_loads++;
    } else if (space != PTX_PARAM) {
        c->sum.global_loads++;
        (is_tile(in) ? count_tile : count_global)(c, w, in, 0);
    }
}

static void count_store(struct ptx_counting *c, const struct ptx_warp *w, const struct ptx_insn *in)
{
    uint32_t space = space_of(w, in);

    if (space == PTX_SHARED) {
        c->sum.shared_stores++;
        if (is_tile(in))
            count_shared_tile(c, in);
        else
            count_shared(c, w, in, in->imm);
    } else if (space == PTX_LOCAL) {
        c->sum.local_stores++;
    } else {
        c->sum.global_stores++;
        (is_tile(in) ? count_tile : count_global)(c, w, in, 1);
    }
}

static void count_atomic(struct ptx_counting *c, const struct ptx_warp *w,
                         const struct ptx_insn *in)
{
    if (space_of(w, in) == PTX_SHARED) {
        c->sum.shared_stores++;
        count_shared(c, w, in, in->imm);
    } else {
        c->sum.global_atomics++;
        count_global(c, w, in, 1);
    }
}

void ptx_count(struct ptx_counting *c, const struct ptx_warp *w, const struct ptx_insn *in)
{
    uint32_t lanes = (uint32_t)__builtin_popcount(w->mask);
    struct rung_counters *s = &c->sum;
    uint32_t class = c->classes[in->op];

    if (!(in->flags & PTX_F_WEIGHT))
        return;
    s->warp_instructions++;
    s->lane_instructions += lanes;
    switch (class) {
    case PTX_C_FMA32:
        s->warp_fp32++;
        s->lane_flops_fp32 += 2 * (uint64_t)lanes;
        break;
    case PTX_C_FP32:
        s->warp_fp32++;
        s->lane_flops_fp32 += lanes;
        break;
    case PTX_C_SPECIAL:
        s->warp_special++;
        s->lane_flops_fp32 += lanes;
        break;
    case PTX_C_FP64:
        s->warp_fp64++;
        break;
    case PTX_C_INT:
        s->warp_int++;
        break;
    case PTX_C_TENSOR:
        s->warp_tensor++;
        break;
    case PTX_C_BRANCH:
        s->warp_branch++;
        break;
    case PTX_C_BARRIER:
        s->warp_barrier++;
        break;
    case PTX_C_LOAD:
        count_load(c, w, in);
        break;
    case PTX_C_STORE:
        count_store(c, w, in);
        break;
    case PTX_C_ATOMIC:
        count_atomic(c, w, in);
        break;
    default:
        break;
    }
}

void ptx_count_block(struct ptx_counting *c)
{
    c->sum.blocks++;
    c->sum.unique_sectors_read += c->read.n;
    c->sum.unique_sectors_written += c->written.n;
    sectors_clear(&c->read);
    sectors_clear(&c->written);
}
