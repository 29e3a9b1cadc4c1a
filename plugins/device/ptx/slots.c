/*
 * slots.c - places of registers in the frame. Registers whose lives don't overlap share a place, so
 * that a warp's working set stays in the first-level cache. A life is one interval of the final
 * code, from liveness over basic blocks; lanes follow the control flow one by one and never write
 * where they are off, so per-thread liveness is enough.
 */
#include "decode_int.h"

#include <string.h>

#define MAX_LIVE_WORDS ((uint64_t)16 << 20)

struct life {
    uint32_t start, end; /* instructions, inclusive; start > end: unused */
    uint32_t global;     /* number among those that live across blocks, + 1; 0 local */
    uint32_t slot;
    uint32_t next_start, next_end; /* chains by start and by end, vreg + 1 */
};

struct span {
    uint32_t start, end; /* end exclusive */
    uint32_t succ[2];    /* spans or UINT32_MAX */
};

struct slots {
    struct ptx_decoder *d;
    struct life *lives;
    struct span *spans;
    uint32_t n_spans, n_globals;
    uint32_t *span_of;         /* by first instruction */
    uint64_t *in, *gen, *kill; /* [n_spans][words] */
    uint64_t words;
};

static int is_branch(const struct ptx_insn *in)
{
    return in->op == PTX_OP_bra || in->op == PTX_OP_bra_if;
}

static int falls_through(const struct ptx_insn *in)
{
    return in->op != PTX_OP_bra && in->op != PTX_OP_exit && in->op != PTX_OP_fell_off &&
           in->op != PTX_OP_trap;
}

/* ---- Spans: basic blocks of the final code --------------------------------------------------- */

static int find_spans(struct slots *s)
{
    struct ptx_decoder *d = s->d;
    uint8_t *leads = ptx_arena_alloc(&d->scratch, (size_t)d->n_code + 1);
    uint32_t k = UINT32_MAX;

    s->span_of = ptx_arena_array(&d->scratch, d->n_code, sizeof *s->span_of);
    if (!leads || !s->span_of)
        return ptx_no_memory(d);
    leads[0] = 1;
    for (uint32_t i = 0; i < d->n_code; i++) {
        if (is_branch(&d->code[i]))
            leads[d->code[i].target] = 1;
        if (is_branch(&d->code[i]) || !falls_through(&d->code[i]))
            leads[i + 1] = 1;
    }
    for (uint32_t i = 0; i < d->n_code; i++)
        s->n_spans += leads[i];
    s->spans = ptx_arena_array(&d->scratch, s->n_spans, sizeof *s->spans);
    if (!s->spans)
        return ptx_no_memory(d);
    for (uint32_t i = 0; i < d->n_code; i++) {
        if (leads[i])
            s->spans[++k] = (struct span){.start = i, .succ = {UINT32_MAX, UINT32_MAX}};
        s->span_of[i] = k;
        s->spans[k].end = i + 1;
    }
    for (k = 0; k < s->n_spans; k++) {
        const struct ptx_insn *last = &d->code[s->spans[k].end - 1];

        if (is_branch(last))
            s->spans[k].succ[0] = s->span_of[last->target];
        if (falls_through(last) && k + 1 < s->n_spans)
            s->spans[k].succ[1] = k + 1;
    }
    return 0;
}

/* ---- Liveness -------------------------------------------------------------------------------- */

static void touch(struct life *l, uint32_t at)
{
    l->start = at < l->start ? at : l->start;
    l->end = at > l->end ? at : l->end;
}

/* First pass: lives inside blocks, and which registers are read before they are written in some
 * block. */
static int find_globals(struct slots *s)
{
    struct ptx_decoder *d = s->d;
    uint32_t *written_in =
        ptx_arena_array(&d->scratch, d->n_vregs, sizeof *written_in); /* span + 1 */

    if (!written_in)
        return ptx_no_memory(d);
    for (uint32_t v = 0; v < d->n_vregs; v++)
        s->lives[v] = (struct life){.start = UINT32_MAX};
    for (uint32_t i = 0; i < d->n_code; i++) {
        const struct ptx_insn *in = &d->code[i];
        const struct ptx_opinfo *info = &ptx_ops[in->op];

        for (uint32_t k = 0; k < info->uses.n; k++) {
            uint32_t v = in->r[info->defs.n + k];

            touch(&s->lives[v], i);
            if (!d->vregs[v].is_fixed && written_in[v] != s->span_of[i] + 1 && !s->lives[v].global)
                s->lives[v].global = ++s->n_globals;
        }
        for (uint32_t k = 0; k < info->defs.n; k++) {
            touch(&s->lives[in->r[k]], i);
            written_in[in->r[k]] = s->span_of[i] + 1;
        }
    }
    return 0;
}

static void set_bit(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

static int get_bit(const uint64_t *set, uint32_t i)
{
    return (int)(set[i / 64] >> (i % 64) & 1);
}

static void span_sets(struct slots *s, uint32_t k)
{
    struct ptx_decoder *d = s->d;
    uint64_t *gen = s->gen + k * s->words, *kill = s->kill + k * s->words;

    for (uint32_t i = s->spans[k].start; i < s->spans[k].end; i++) {
        const struct ptx_insn *in = &d->code[i];
        const struct ptx_opinfo *info = &ptx_ops[in->op];

        for (uint32_t u = 0; u < info->uses.n; u++) {
            uint32_t g = s->lives[in->r[info->defs.n + u]].global;

            if (g && !get_bit(kill, g - 1))
                set_bit(gen, g - 1);
        }
        for (uint32_t u = 0; u < info->defs.n; u++) {
            uint32_t g = s->lives[in->r[u]].global;

            if (g)
                set_bit(kill, g - 1);
        }
    }
}

/* out |= what the successors need; returns whether `in` grew. */
static int flow(struct slots *s, uint32_t k, uint64_t *out)
{
    uint64_t *in = s->in + k * s->words;
    int grew = 0;

    memset(out, 0, s->words * sizeof *out);
    for (uint32_t e = 0; e < 2; e++) {
        const uint64_t *from =
            s->spans[k].succ[e] == UINT32_MAX ? NULL : s->in + s->spans[k].succ[e] * s->words;

        for (uint64_t i = 0; from && i < s->words; i++)
            out[i] |= from[i];
    }
    for (uint64_t i = 0; i < s->words; i++) {
        uint64_t v = s->gen[k * s->words + i] | (out[i] & ~s->kill[k * s->words + i]);

        grew |= v != in[i];
        in[i] = v;
    }
    return grew;
}

/* Stretches lives over the blocks that they cross. */
static void stretch(struct slots *s, const uint32_t *vreg_of, uint64_t *out)
{
    for (uint32_t k = 0; k < s->n_spans; k++) {
        const uint64_t *in = s->in + k * s->words;

        flow(s, k, out);
        for (uint32_t g = 0; g < s->n_globals; g++) {
            if (!(in[g / 64] | out[g / 64])) {
                g |= 63;
                continue;
            }
            if (get_bit(in, g))
                touch(&s->lives[vreg_of[g]], s->spans[k].start);
            if (get_bit(out, g))
                touch(&s->lives[vreg_of[g]], s->spans[k].end - 1);
        }
    }
}

static int find_lives(struct slots *s)
{
    struct ptx_decoder *d = s->d;
    uint32_t *vreg_of;
    uint64_t *out;
    int grew = 1;

    if (find_globals(s))
        return -1;
    s->words = (s->n_globals + 63) / 64;
    if (s->words * s->n_spans >
        MAX_LIVE_WORDS) { /* a monster: every register that crosses blocks keeps its place */
        for (uint32_t v = 0; v < d->n_vregs; v++)
            if (s->lives[v].global)
                s->lives[v].start = 0, s->lives[v].end = d->n_code - 1;
        return 0;
    }
    s->in = ptx_arena_array(&d->scratch, s->words * s->n_spans, sizeof *s->in);
    s->gen = ptx_arena_array(&d->scratch, s->words * s->n_spans, sizeof *s->gen);
    s->kill = ptx_arena_array(&d->scratch, s->words * s->n_spans, sizeof *s->kill);
    vreg_of = ptx_arena_array(&d->scratch, s->n_globals, sizeof *vreg_of);
    out = ptx_arena_array(&d->scratch, s->words, sizeof *out);
    if (!s->in || !s->gen || !s->kill || !vreg_of || !out)
        return ptx_no_memory(d);
    for (uint32_t v = 0; v < d->n_vregs; v++)
        if (s->lives[v].global)
            vreg_of[s->lives[v].global - 1] = v;
    for (uint32_t k = 0; k < s->n_spans; k++)
        span_sets(s, k);
    while (grew) {
        grew = 0;
        for (uint32_t k = s->n_spans; k-- > 0;)
            grew |= flow(s, k, out);
    }
    stretch(s, vreg_of, out);
    return 0;
}

/* ---- Places ---------------------------------------------------------------------------------- */

struct pool {
    uint32_t *free;
    uint32_t n_free, n_slots;
};

static void allocate(struct slots *s, struct pool *pools, uint32_t v)
{
    struct pool *p = &pools[s->d->vregs[v].width];

    s->lives[v].slot = p->n_free ? p->free[--p->n_free] : p->n_slots++;
}

/*
 * Linear scan. What an instruction writes gets its place before what it reads last gives its own
 * back, so that results never overlap sources of another width.
 */
static int scan(struct slots *s, struct pool *pools)
{
    struct ptx_decoder *d = s->d;
    uint32_t *starts = ptx_arena_array(&d->scratch, d->n_code, sizeof *starts);
    uint32_t *ends = ptx_arena_array(&d->scratch, d->n_code, sizeof *ends);

    if (!starts || !ends)
        return ptx_no_memory(d);
    for (uint32_t v = 0; v < d->n_vregs; v++) {
        struct life *l = &s->lives[v];

        if (d->vregs[v].is_fixed) {
            l->slot = pools[d->vregs[v].width].n_slots++;
        } else if (l->start <= l->end) {
            l->next_start = starts[l->start];
            starts[l->start] = v + 1;
            l->next_end = ends[l->end];
            ends[l->end] = v + 1;
        }
    }
    for (uint32_t i = 0; i < d->n_code; i++) {
        for (uint32_t v = starts[i]; v; v = s->lives[v - 1].next_start)
            allocate(s, pools, v - 1);
        for (uint32_t v = ends[i]; v; v = s->lives[v - 1].next_end) {
            struct pool *p = &pools[d->vregs[v - 1].width];

            p->free[p->n_free++] = s->lives[v - 1].slot;
        }
    }
    return 0;
}

/* Registers that the entry block may read before anything wrote them start each block as zeros. */
static int zero_undefined(struct slots *s)
{
    struct ptx_decoder *d = s->d;

    for (uint32_t v = 0; v < d->n_vregs; v++) {
        uint32_t g = s->lives[v].global;
        struct ptx_fill *f;

        if (!g || (s->in && !get_bit(s->in, g - 1)))
            continue;
        f = ptx_arena_grow(d->out, (void **)&d->fills, d->n_fills, &d->cap_fills, sizeof *f);
        if (!f)
            return ptx_no_memory(d);
        *f = (struct ptx_fill){.kind = PTX_FILL_ZERO, .width = d->vregs[v].width};
        d->vregs[v].fill = d->n_fills++;
        d->fills[d->vregs[v].fill].offset = v; /* the register; its place follows */
    }
    return 0;
}

static uint64_t place_of(const struct ptx_vreg *v, const struct life *l, const struct pool *pools)
{
    const uint64_t w32 = ((uint64_t)pools[PTX_WP].n_slots * 4 + 63) / 64 * 64;
    const uint64_t w64 = w32 + (uint64_t)pools[PTX_W32].n_slots * 128;

    if (v->width == PTX_WP)
        return (uint64_t)l->slot * 4;
    if (v->width == PTX_W32)
        return w32 + (uint64_t)l->slot * 128;
    if (v->width == PTX_W64)
        return w64 + (uint64_t)l->slot * 256;
    return w64 + (uint64_t)pools[PTX_W64].n_slots * 256 + (uint64_t)l->slot * 1024;
}

static void rewrite(struct slots *s, const struct pool *pools)
{
    struct ptx_decoder *d = s->d;

    for (uint32_t v = 0; v < d->n_vregs; v++) {
        d->vregs[v].offset = (uint32_t)place_of(&d->vregs[v], &s->lives[v], pools);
        if (d->vregs[v].is_fixed)
            d->fills[d->vregs[v].fill].offset = d->vregs[v].offset;
    }
    for (uint32_t i = 0; i < d->n_fills; i++)
        if (d->fills[i].kind == PTX_FILL_ZERO)
            d->fills[i].offset = d->vregs[d->fills[i].offset].offset;
    for (uint32_t i = 0; i < d->n_code; i++) {
        const struct ptx_opinfo *info = &ptx_ops[d->code[i].op];

        for (uint32_t k = 0; k < (uint32_t)info->defs.n + info->uses.n; k++)
            d->code[i].r[k] = d->vregs[d->code[i].r[k]].offset;
    }
}

int ptx_assign_slots(struct ptx_decoder *d, struct ptx_program *out)
{
    struct slots s = {.d = d};
    struct pool pools[PTX_N_WIDTHS] = {{0}};
    const struct ptx_vreg end = {.width = PTX_WX};
    struct life behind = {0};

    s.lives = ptx_arena_array(&d->scratch, d->n_vregs, sizeof *s.lives);
    for (uint32_t w = 0; w < PTX_N_WIDTHS; w++)
        pools[w].free = ptx_arena_array(&d->scratch, d->n_vregs, sizeof(uint32_t));
    if (!s.lives || !pools[PTX_N_WIDTHS - 1].free || find_spans(&s) || find_lives(&s) ||
        scan(&s, pools) || zero_undefined(&s))
        return ptx_no_memory(d);
    behind.slot = pools[PTX_WX].n_slots;
    uint64_t frame = place_of(&end, &behind, pools);
    if (frame > ((uint64_t)1 << 30))
        return ptx_no_memory(d);
    rewrite(&s, pools);
    out->code = d->code;
    out->n_code = d->n_code;
    out->fills = d->fills;
    out->n_fills = d->n_fills;
    out->frame_bytes = (uint32_t)frame;
    return 0;
}
