/*
 * stuck.c - when nothing moves, or nothing that moves gets anywhere: who waits for whom.
 */
#include "sched_int.h"

#include <string.h>

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

/* A split that waits for the rest of its warp at a barrier of the block or cluster. */
static int is_at_barrier(const struct ptx_warp *w, const struct ptx_split *s)
{
    const uint32_t op = w->x->code[s->pc].op;

    return ptx_ops[op].class == PTX_C_BARRIER && op != PTX_OP_warp_sync;
}

/* A warp with lanes that wait for other lanes of it, which stand elsewhere: says so. */
static int blame_warp(struct ptx_warp *w)
{
    const struct ptx_split *waits = NULL, *other = NULL;

    for (uint32_t i = 0; i < w->n_splits; i++)
        if (w->split[i].state == PTX_AT_WARP && (!waits || is_at_barrier(w, waits)))
            waits = &w->split[i];
    if (!waits)
        return 0;
    for (uint32_t i = 0; i < w->n_splits; i++)
        if (&w->split[i] != waits && (w->split[i].mask & waits->members))
            other = &w->split[i];
    const struct ptx_insn *in = &w->x->code[waits->pc];
    uint32_t there = other ? other->pc - (uint32_t)ptx_has_arrived(other) : waits->pc;
    uint32_t lane = (uint32_t)__builtin_ctz(waits->mask), line = w->x->code[there].line;

    if (is_at_barrier(w, waits))
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

            if (s->state == PTX_AT_CLUSTER) {
                ptx_fault(w, &x->code[s->pc - 1], (uint32_t)__builtin_ctz(s->mask), "sync.deadlock",
                          0,
                          "all threads wait: the cluster's barrier is not reached by all of them");
                return;
            }
            ptx_fault(
                w, &x->code[s->pc - 1], (uint32_t)__builtin_ctz(s->mask), "sync.deadlock", 0,
                "all threads wait: barrier %u has %u of %u threads, and the others wait elsewhere",
                s->barrier, b->arrived, b->expected ? b->expected : x->n_live);
            return;
        }
    }
}

static int waits_for_cluster(const struct ptx_exec *x)
{
    for (uint32_t k = 0; k < x->n_warps; k++)
        for (uint32_t i = 0; i < x->warps[k].n_splits; i++)
            if (x->warps[k].split[i].state == PTX_AT_CLUSTER)
                return 1;
    return 0;
}

/* No warp can move: __syncwarp on several paths is let go, all else is a fault. */
int ptx_unstick(struct ptx_exec *x)
{
    int released = 0;

    for (uint32_t k = 0; k < x->n_warps; k++)
        released += release_warp_sync(&x->warps[k]);
    if (released)
        return PTX_BLOCK_SPINS;
    for (uint32_t k = 0; k < x->n_warps; k++)
        if (blame_warp(&x->warps[k]))
            return PTX_BLOCK_FAULT;
    if (waits_for_cluster(x))
        return PTX_BLOCK_WAITS;
    blame_block(x);
    return PTX_BLOCK_FAULT;
}

/* ---- Loops without an end -------------------------------------------------------------------- */

static uint64_t hash_words(uint64_t hash, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    uint32_t word;

    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

uint64_t ptx_block_hash(const struct ptx_exec *x)
{
    uint64_t hash = hash_words(x->n_live, x->barriers, sizeof x->barriers);

    for (uint32_t k = 0; k < x->n_warps; k++) {
        const struct ptx_warp *w = &x->warps[k];

        hash = hash_words(hash, w->split, sizeof *w->split * w->n_splits);
        if (w->n_splits)
            hash = hash_words(hash + w->n_async, w->frame, x->program->frame_bytes);
    }
    return hash;
}

/* The first split of the block that waits for others (waits), or that runs. */
static const struct ptx_split *find_split(struct ptx_exec *x, int waits, struct ptx_warp **warp)
{
    for (uint32_t k = 0; k < x->n_warps; k++)
        for (uint32_t i = 0; i < x->warps[k].n_splits; i++)
            if ((x->warps[k].split[i].state != PTX_RUNS) == waits) {
                *warp = &x->warps[k];
                return &x->warps[k].split[i];
            }
    return NULL;
}

void ptx_blame_endless(struct ptx_exec *x)
{
    struct ptx_warp *waiter = NULL, *runner = NULL;
    const struct ptx_split *waits = find_split(x, 1, &waiter), *runs = find_split(x, 0, &runner);
    const uint32_t line = x->hot_line;
    const struct ptx_insn in = {.line = line};

    if (!runs) {
        blame_block(x);
    } else if (waits) {
        ptx_fault(waiter, &x->code[waits->pc - (uint32_t)ptx_has_arrived(waits)],
                  (uint32_t)__builtin_ctz(waits->mask), "sync.deadlock", 0,
                  "threads wait here for others that loop for ever at line %u: nothing that the "
                  "loop reads changes any more, and what could change it stands behind the wait",
                  line);
    } else {
        ptx_fault(runner, &in, (uint32_t)__builtin_ctz(runs->mask),
                  x->is_cooperative ? "sync.deadlock" : "run.timeout", 0,
                  "the loop has no end: nothing that it reads changes any more");
    }
}
