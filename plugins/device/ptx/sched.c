/*
 * sched.c - who runs: splits of a warp, warps of a block, barriers.
 *
 * The rule that brings lanes together again: of a warp's splits the one earliest in the program
 * runs (the program is laid out so that a join stands behind all that leads to it, loop bodies in
 * one piece), and splits that meet become one. A split that loops on while others could run has to
 * give way after a number of back-edges, so that lanes that wait for each other's stores get on.
 */
#include "counters.h"
#include "exec.h"

#include <stdio.h>
#include <string.h>

#define FUEL 4096           /* back-edges of a turn */
#define LOOK_EVERY 8000000u /* lane instructions between looks at the clock */

/* ---- Splits ---------------------------------------------------------------------------------- */

static void drop_split(struct ptx_warp *w, uint32_t i)
{
    w->split[i] = w->split[--w->n_splits];
}

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

        if (s->state == PTX_AT_BARRIER)
            continue;
        for (uint32_t k = i + 1; k < w->n_splits;) {
            const struct ptx_split *o = &w->split[k];

            if (o->state == PTX_AT_BARRIER || o->pc != s->pc) {
                k++;
                continue;
            }
            s->mask |= o->mask;
            s->turn |= o->turn;
            s->state = PTX_RUNS; /* the instruction is tried again with more lanes */
            drop_split(w, k);
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
        if (i == w->current || w->split[i].state == PTX_AT_BARRIER)
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

/* Runs a warp until it waits, ends (reason NEXT), used up its turn (YIELD) or failed (FAULT). */
static uint32_t run_warp(struct ptx_warp *w)
{
    struct ptx_exec *x = w->x;
    int chosen;

    x->fuel = FUEL;
    while (w->n_splits && (chosen = pick_split(w)) >= 0) {
        struct ptx_split *s = &w->split[chosen];
        const struct ptx_insn *in = x->code + s->pc;

        w->current = (uint32_t)chosen;
        w->base = in->count - (in->flags & PTX_F_WEIGHT);
        set_mask(w, s->mask);
        x->reason = PTX_NEXT;
        in = (x->counting ? run_counted : run_straight)(w, in, x->code + stop_of(w));
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

/* ---- Barriers -------------------------------------------------------------------------------- */

static void complete(struct ptx_exec *x, uint32_t number)
{
    struct ptx_barrier *b = &x->barriers[number];

    for (uint32_t k = 0; k < x->n_warps; k++)
        for (uint32_t i = 0; i < x->warps[k].n_splits; i++) {
            struct ptx_split *s = &x->warps[k].split[i];

            if (s->state == PTX_AT_BARRIER && s->barrier == number)
                s->state = PTX_RUNS;
        }
    *b = (struct ptx_barrier){.last_popc = b->popc, .last_all = b->all, .last_any = b->any};
    b->all = 1;
}

static void complete_if_full(struct ptx_exec *x, uint32_t number)
{
    struct ptx_barrier *b = &x->barriers[number];

    if (b->arrived && b->arrived >= (b->expected ? b->expected : x->n_live))
        complete(x, number);
}

const struct ptx_insn *ptx_arrive(struct ptx_warp *w, const struct ptx_insn *in, uint32_t predicate,
                                  int waits)
{
    struct ptx_exec *x = w->x;
    const uint32_t first = (uint32_t)__builtin_ctz(w->mask), k = ptx_ops[in->op].defs.n;
    const uint32_t number = ((const uint32_t *)(const void *)(w->frame + in->r[k]))[first];
    const uint32_t count = ((const uint32_t *)(const void *)(w->frame + in->r[k + 1]))[first];
    struct ptx_split *now = &w->split[w->current];

    if (number >= PTX_N_BARRIERS)
        return ptx_fault(w, in, first, "run.crash", 0, "barrier number %u is above 15", number);
    if ((in->flags & PTX_F_ALIGNED) && ptx_gather(w, in, w->live) != in)
        return NULL;
    struct ptx_barrier *b = &x->barriers[number];
    b->expected = count;
    b->arrived += count && w->mask == w->live ? PTX_LANES : (uint32_t)__builtin_popcount(w->mask);
    b->popc += (uint32_t)__builtin_popcount(predicate & w->mask);
    b->all &= (predicate & w->mask) == w->mask;
    b->any |= (predicate & w->mask) != 0;
    if (!waits) {
        complete_if_full(x, number);
        return in + 1;
    }
    ptx_account(w, in->count);
    now->state = PTX_AT_BARRIER;
    now->barrier = (uint8_t)number;
    now->pc = (uint32_t)(in - x->code) + 1;
    now->turn = 0;
    x->reason = PTX_RESCHEDULE;
    complete_if_full(x, number);
    return NULL;
}

const struct ptx_insn *ptx_exit(struct ptx_warp *w, const struct ptx_insn *in)
{
    struct ptx_exec *x = w->x;

    ptx_account(w, in->count);
    w->live &= ~w->mask;
    x->n_live -= (uint32_t)__builtin_popcount(w->mask);
    drop_split(w, w->current);
    x->reason = PTX_RESCHEDULE;
    if (x->n_live)
        for (uint32_t k = 0; k < PTX_N_BARRIERS; k++)
            if (x->barriers[k].arrived && !x->barriers[k].expected)
                complete_if_full(x, k);
    return NULL;
}

/* ---- When nothing moves ---------------------------------------------------------------------- */

/* Lanes at bar.warp.sync may stand at different ones; returns whether some were let go. */
static int release_warp_sync(struct ptx_warp *w)
{
    uint32_t here = 0, wanted = 0;

    for (uint32_t i = 0; i < w->n_splits; i++) {
        const struct ptx_split *s = &w->split[i];

        if (s->state == PTX_AT_WARP && w->x->code[s->pc].op == PTX_OP_warp_sync) {
            here |= s->mask;
            wanted |= s->members;
        }
    }
    if (!here || (wanted & w->live & ~here))
        return 0;
    for (uint32_t i = 0; i < w->n_splits; i++) {
        struct ptx_split *s = &w->split[i];

        if (s->state == PTX_AT_WARP && w->x->code[s->pc].op == PTX_OP_warp_sync) {
            s->state = PTX_RUNS;
            s->pc++;
        }
    }
    return 1;
}

/* A warp with lanes that wait for other lanes of it, which stand elsewhere: says so. */
static int blame_warp(struct ptx_warp *w)
{
    const struct ptx_split *waits = NULL, *other = NULL;

    for (uint32_t i = 0; i < w->n_splits; i++)
        if (w->split[i].state == PTX_AT_WARP)
            waits = &w->split[i];
    if (!waits)
        return 0;
    for (uint32_t i = 0; i < w->n_splits; i++)
        if (&w->split[i] != waits && (w->split[i].mask & waits->members))
            other = &w->split[i];
    const struct ptx_insn *in = &w->x->code[waits->pc];
    uint32_t there = other ? other->pc - (other->state == PTX_AT_BARRIER) : waits->pc;
    uint32_t lane = (uint32_t)__builtin_ctz(waits->mask), line = w->x->code[there].line;
    int barrier = ptx_ops[in->op].class == PTX_C_BARRIER && in->op != PTX_OP_warp_sync;

    if (barrier)
        ptx_fault(w, in, lane, "sync.divergent_barrier", 0,
                  "a barrier (__syncthreads) is reached by only some threads of a warp (lanes "
                  "0x%08x); others "
                  "(lanes 0x%08x) wait at line %u and never come here; all threads must reach the "
                  "same barrier",
                  waits->mask, other ? other->mask : 0, line);
    else
        ptx_fault(w, in, lane, "sync.inactive_lane", 0,
                  "a warp-wide operation (shuffle, vote, __syncwarp) names lanes 0x%08x, but only "
                  "0x%08x came to it; "
                  "lanes 0x%08x wait at line %u",
                  waits->members, waits->mask, other ? other->mask : 0, line);
    return 1;
}

/* All threads that live wait at barriers that can't complete. */
static void blame_block(struct ptx_exec *x)
{
    for (uint32_t k = 0; k < x->n_warps; k++) {
        struct ptx_warp *w = &x->warps[k];

        for (uint32_t i = 0; i < w->n_splits; i++) {
            const struct ptx_split *s = &w->split[i];
            const struct ptx_barrier *b = &x->barriers[s->barrier];

            ptx_fault(
                w, &x->code[s->pc - 1], (uint32_t)__builtin_ctz(s->mask), "sync.deadlock", 0,
                "all threads wait: barrier %u has %u of %u threads, and the others wait elsewhere",
                s->barrier, b->arrived, b->expected ? b->expected : x->n_live);
            return;
        }
    }
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
            "the kernel ran %llu thread instructions, the limit, without an end; the last loop",
            (unsigned long long)x->lane_instructions);
        return 1;
    }
    if (x->lane_instructions < x->next_look)
        return 0;
    x->next_look = x->lane_instructions + LOOK_EVERY;
    if (call->deadline_ns && x->host->now_ns(x->host) > call->deadline_ns) {
        ptx_fault(w, &in, lane, "run.timeout", 0,
                  "the time for this launch is over; the last loop");
        return 1;
    }
    if (call->cancel && x->host->is_cancelled(x->host, call->cancel)) {
        ptx_fault(w, &in, lane, "run.timeout", 0, "cancelled; the last loop");
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
}

/* One round over the warps. Returns how many moved, or -1 on a fault. */
static int run_round(struct ptx_exec *x)
{
    int moved = 0;

    for (uint32_t k = 0; k < x->n_warps; k++) {
        struct ptx_warp *w = &x->warps[k];
        uint64_t before = x->lane_instructions;

        if (!w->n_splits)
            continue;
        uint32_t reason = run_warp(w);
        if (reason == PTX_FAULT || over_budget(x, w))
            return -1;
        moved += reason == PTX_YIELD || x->lane_instructions != before;
    }
    return moved;
}

int ptx_run_block(struct ptx_exec *x)
{
    x->n_live = x->n_threads;
    memset(x->barriers, 0, sizeof x->barriers);
    for (uint32_t k = 0; k < PTX_N_BARRIERS; k++)
        x->barriers[k].all = 1;
    for (uint32_t k = 0; k < x->n_warps; k++)
        start_warp(&x->warps[k]);
    while (x->n_live) {
        int moved = run_round(x);

        if (moved < 0)
            return -1;
        if (moved || !x->n_live)
            continue;
        for (uint32_t k = 0; k < x->n_warps; k++)
            moved += release_warp_sync(&x->warps[k]);
        if (moved)
            continue;
        for (uint32_t k = 0; k < x->n_warps; k++)
            if (blame_warp(&x->warps[k]))
                return -1;
        blame_block(x);
        return -1;
    }
    if (x->counting)
        ptx_count_block(x->counting);
    return 0;
}
