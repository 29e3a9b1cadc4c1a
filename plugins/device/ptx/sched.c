/*
 * sched.c - who runs: splits of a warp, warps of a block.
 *
 * The rule that brings lanes together again: of a warp's splits the one earliest in the program
 * runs (the program is laid out so that a join stands behind all that leads to it, loop bodies in
 * one piece), and splits that meet become one. A split that loops on while others could run has to
 * give way after a number of back-edges, so that lanes that wait for each other's stores get on.
 */
#include "counters.h"
#include "sched_int.h"

#include <stdio.h>
#include <string.h>

#define LOOK_EVERY 8000000u /* lane instructions between looks at the clock */

/* ---- Splits ---------------------------------------------------------------------------------- */

const struct ptx_insn *ptx_diverge(struct ptx_warp *w, const struct ptx_insn *in, uint32_t taken)
{
    struct ptx_split *now = &w->split[w->current];
    uint32_t next = (uint32_t)(in - w->x->code) + 1;

    ptx_account(w, in->count);
    now->mask &= ~taken;
    now->pc = next;
    w->split[w->n_splits++] = (struct ptx_split){.pc = in->target, .mask = taken};
    w->x->reason = PTX_RESCHEDULE;
    if ((in->flags & PTX_F_BACK) && --w->x->fuel < 0) {
        w->x->hot_line = in->line ? in->line : w->x->hot_line;
        w->x->reason = PTX_YIELD;
    }
    return NULL;
}

const struct ptx_insn *ptx_gather(struct ptx_warp *w, const struct ptx_insn *in, uint32_t members)
{
    struct ptx_split *now = &w->split[w->current];

    if (!(members & w->live & ~w->mask))
        return in;
    ptx_account(w, in->count - (in->flags & PTX_F_WEIGHT));
    now->state = PTX_AT_WARP;
    now->members = members;
    now->pc = (uint32_t)(in - w->x->code);
    w->x->reason = PTX_RESCHEDULE;
    return NULL;
}

/* Splits at the same pc become one. A finished wait is noticed here too. */
static void merge_splits(struct ptx_warp *w)
{
    for (uint32_t i = 0; i < w->n_splits; i++) {
        struct ptx_split *s = &w->split[i];

        if (ptx_has_arrived(s))
            continue;
        for (uint32_t k = i + 1; k < w->n_splits;) {
            const struct ptx_split *o = &w->split[k];

            if (ptx_has_arrived(o) || o->pc != s->pc) {
                k++;
                continue;
            }
            s->mask |= o->mask;
            s->turn |= o->turn;
            s->state = PTX_RUNS; /* the instruction is tried again with more lanes */
            ptx_drop_split(w, k);
        }
        if (s->state == PTX_AT_WARP && !(s->members & w->live & ~s->mask))
            s->state = PTX_RUNS;
    }
}

/* Chooses the split that runs next, or returns -1 when none can. */
static int pick_split(struct ptx_warp *w)
{
    int best = -1;

    if (w->n_splits > 1 || w->split[0].state == PTX_AT_WARP)
        merge_splits(w);
    for (uint32_t i = 0; i < w->n_splits; i++) {
        const struct ptx_split *s = &w->split[i];

        if (s->state != PTX_RUNS)
            continue;
        if (s->turn)
            return (int)i;
        if (best < 0 || s->pc < w->split[best].pc)
            best = (int)i;
    }
    return best;
}

/*
 * Where the running split has to stop: at the nearest other split that it could meet. 0, a single
 * step, when it is not the earliest, since then it could meet one by jumping back.
 */
static uint32_t stop_of(const struct ptx_warp *w)
{
    const struct ptx_split *now = &w->split[w->current];
    uint32_t stop = w->x->program->n_code;

    for (uint32_t i = 0; i < w->n_splits; i++) {
        if (i == w->current || ptx_has_arrived(&w->split[i]))
            continue;
        if (w->split[i].pc <= now->pc)
            return 0;
        if (w->split[i].pc < stop)
            stop = w->split[i].pc;
    }
    return stop;
}

/* After a turn: the next split that can run has the processor, although it may not be the earliest.
 */
static void pass_turn(struct ptx_warp *w)
{
    w->split[w->current].turn = 0;
    for (uint32_t k = 1; k < w->n_splits; k++) {
        struct ptx_split *s = &w->split[(w->current + k) % w->n_splits];

        if (s->state == PTX_RUNS) {
            s->turn = 1;
            return;
        }
    }
}

static void set_mask(struct ptx_warp *w, uint32_t mask)
{
    if (w->mask == mask)
        return;
    w->mask = mask;
    for (uint32_t i = 0; i < PTX_LANES; i++)
        w->on[i] = mask >> i & 1 ? PTX_ALL : 0;
}

static const struct ptx_insn *run_straight(struct ptx_warp *w, const struct ptx_insn *in,
                                           const struct ptx_insn *stop)
{
    const ptx_handler *table = w->mask == PTX_ALL ? w->x->isa->full : w->x->isa->masked;

    do
        in = table[in->op](w, in);
    while (in && in < stop);
    return in;
}

static const struct ptx_insn *run_counted(struct ptx_warp *w, const struct ptx_insn *in,
                                          const struct ptx_insn *stop)
{
    const ptx_handler *table = w->mask == PTX_ALL ? w->x->isa->full : w->x->isa->masked;
    struct ptx_counting *counting = w->x->counting;

    do {
        ptx_count(counting, w, in);
        in = table[in->op](w, in);
    } while (in && in < stop);
    return in;
}

static const struct ptx_insn *run_checked(struct ptx_warp *w, const struct ptx_insn *in,
                                          const struct ptx_insn *stop)
{
    const ptx_handler *table = w->mask == PTX_ALL ? w->x->isa->full : w->x->isa->masked;

    do {
        if (!ptx_shadow_step(w, in))
            return NULL;
        in = table[in->op](w, in);
    } while (in && in < stop);
    return in;
}

/* The bytes that a store or atomic of the running lanes touches, in a number. */
static uint64_t touched(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t class = ptx_ops[in->op].class, k = class == PTX_C_STORE ? 0 : 1;
    const uint64_t *a = (const uint64_t *)(const void *)(w->frame + in->r[k]);
    const uint32_t bytes = ptx_element_bytes(in) * ptx_element_count(in);
    uint64_t hash = 1;

    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint64_t window = in->space == PTX_SHARED  ? PTX_SHARED_WINDOW
                                : in->space == PTX_LOCAL ? PTX_LOCAL_WINDOW
                                                         : 0;
        const uint8_t *at = ptx_resolve(w, i, a[i] + (uint64_t)in->imm + window, bytes, 0);

        for (uint32_t b = 0; at && b < bytes; b++)
            hash = (hash ^ at[b]) * 0x100000001b3u;
    }
    return hash;
}

/* Counts what changes memory; used for a while to prove that a loop has no end. */
static const struct ptx_insn *run_watched(struct ptx_warp *w, const struct ptx_insn *in,
                                          const struct ptx_insn *stop)
{
    const ptx_handler *table = w->mask == PTX_ALL ? w->x->isa->full : w->x->isa->masked;

    do {
        const struct ptx_insn *now = in;
        const uint32_t class = ptx_ops[in->op].class;
        const int writes = (class == PTX_C_STORE || class == PTX_C_ATOMIC);
        const uint64_t before = writes ? touched(w, in) : 0;

        in = table[in->op](w, in);
        w->x->changes += now->op == PTX_OP_tile_store || now->op == PTX_OP_cp_async_wait ||
                         (writes && touched(w, now) != before);
    } while (in && in < stop);
    return in;
}

typedef const struct ptx_insn *(*run_function)(struct ptx_warp *, const struct ptx_insn *,
                                               const struct ptx_insn *);

static run_function how_to_run(const struct ptx_exec *x)
{
    return x->watches    ? run_watched
           : x->counting ? run_counted
           : x->shadow   ? run_checked
                         : run_straight;
}

/* Runs a warp until it waits, ends (reason NEXT), used up its turn (YIELD) or failed (FAULT). */
static uint32_t run_warp(struct ptx_warp *w)
{
    struct ptx_exec *x = w->x;
    const run_function run = how_to_run(x);
    int chosen;

    x->fuel = x->turn_fuel;
    while (w->n_splits && (chosen = pick_split(w)) >= 0) {
        struct ptx_split *s = &w->split[chosen];
        const struct ptx_insn *in = x->code + s->pc;

        w->current = (uint32_t)chosen;
        w->base = in->count - (in->flags & PTX_F_WEIGHT);
        set_mask(w, s->mask);
        x->reason = PTX_NEXT;
        in = run(w, in, x->code + stop_of(w));
        if (in) {
            ptx_account(w, in->count - (in->flags & PTX_F_WEIGHT));
            s->pc = (uint32_t)(in - x->code);
        } else if (x->reason == PTX_YIELD) {
            pass_turn(w);
            return PTX_YIELD;
        } else if (x->reason == PTX_FAULT) {
            return PTX_FAULT;
        }
    }
    return PTX_NEXT;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int over_budget(struct ptx_exec *x, struct ptx_warp *w)
{
    const struct rung_call *call = x->call;
    const struct ptx_insn in = {.line = x->hot_line};
    uint32_t lane = w->live ? (uint32_t)__builtin_ctz(w->live) : 0;

    if (x->lane_instructions > x->max_lane_instructions) {
        ptx_fault(
            w, &in, lane, "run.timeout", 0,
            "the kernel ran %llu thread instructions, the limit, without an end; this is the loop "
            "that it ran last",
            (unsigned long long)x->lane_instructions);
        return 1;
    }
    if (x->lane_instructions < x->next_look)
        return 0;
    x->next_look = x->lane_instructions + LOOK_EVERY;
    if (call->deadline_ns && x->host->now_ns(x->host) > call->deadline_ns) {
        ptx_fault(w, &in, lane, "run.timeout", 0,
                  "the time for this launch is over; this is the loop that it ran last");
        return 1;
    }
    if (call->cancel && x->host->is_cancelled(x->host, call->cancel)) {
        ptx_fault(w, &in, lane, "run.timeout", 0, "cancelled; this is the loop that it ran last");
        return 1;
    }
    return 0;
}

static void start_warp(struct ptx_warp *w)
{
    uint32_t first = w->index * PTX_LANES, left = w->x->n_threads - first;
    uint32_t lanes = left >= PTX_LANES ? PTX_ALL : (1u << left) - 1;

    w->live = lanes;
    w->n_splits = 1;
    w->split[0] = (struct ptx_split){.mask = lanes};
    w->n_async = 0;
    memset(w->committed, 0, sizeof w->committed);
}

/* One round over the warps. Returns how many moved, or -1 on a fault; *spun: of these ran out of
 * fuel. */
static int run_round(struct ptx_exec *x, int *spun)
{
    int moved = 0;

    for (uint32_t k = 0; k < x->n_warps; k++) {
        struct ptx_warp *w = &x->warps[x->order[k]];
        uint64_t before = x->lane_instructions;

        if (!w->n_splits)
            continue;
        uint32_t reason = run_warp(w);
        if (reason == PTX_FAULT || over_budget(x, w))
            return -1;
        moved += reason == PTX_YIELD || x->lane_instructions != before;
        *spun += reason == PTX_YIELD;
    }
    return moved;
}

void ptx_block_start(struct ptx_exec *x)
{
    x->n_live = x->n_threads;
    memset(x->barriers, 0, sizeof x->barriers);
    for (uint32_t k = 0; k < PTX_N_BARRIERS; k++)
        x->barriers[k].all = 1;
    for (uint32_t k = 0; k < x->n_warps; k++)
        start_warp(&x->warps[k]);
}

int ptx_block_turn(struct ptx_exec *x, uint32_t rounds)
{
    uint32_t used = 0;

    while (x->n_live) {
        int spun = 0, moved = run_round(x, &spun);

        if (moved < 0)
            return PTX_BLOCK_FAULT;
        if (x->n_live && spun && ++used >= rounds)
            return PTX_BLOCK_SPINS;
        if (moved || !x->n_live)
            continue;
        int state = ptx_unstick(x);
        if (state != PTX_BLOCK_SPINS)
            return state;
    }
    if (x->counting)
        ptx_count_block(x->counting);
    return PTX_BLOCK_ENDED;
}
