/*
 * barrier.c - where threads meet: barriers of a block, the barrier of a cluster, and exits, which
 * count as arrivals.
 */
#include "sched_int.h"

#include <string.h>

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
    if (x->shadow)
        ptx_shadow_order(x->shadow);
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

/* All living threads of the cluster have come: the next phase begins. */
static void cluster_complete_if_full(struct ptx_cluster *c)
{
    uint32_t live = 0;

    for (uint32_t k = 0; k < c->n; k++)
        live += c->blocks[k]->n_live;
    if (!c->arrived || c->arrived < live)
        return;
    c->arrived = 0;
    c->phase++;
    for (uint32_t k = 0; k < c->n; k++) {
        struct ptx_exec *x = c->blocks[k];

        for (uint32_t j = 0; j < x->n_warps; j++)
            for (uint32_t i = 0; i < x->warps[j].n_splits; i++)
                if (x->warps[j].split[i].state == PTX_AT_CLUSTER)
                    x->warps[j].split[i].state = PTX_RUNS;
        if (x->shadow)
            ptx_shadow_order(x->shadow);
    }
}

const struct ptx_insn *ptx_cluster_arrive(struct ptx_warp *w, const struct ptx_insn *in)
{
    struct ptx_cluster *c = w->x->cluster;

    if (ptx_gather(w, in, w->live) != in)
        return NULL;
    w->cluster_phase = c->phase;
    c->arrived += (uint32_t)__builtin_popcount(w->mask);
    cluster_complete_if_full(c);
    return in + 1;
}

const struct ptx_insn *ptx_cluster_wait(struct ptx_warp *w, const struct ptx_insn *in)
{
    struct ptx_split *now = &w->split[w->current];

    if (ptx_gather(w, in, w->live) != in)
        return NULL;
    if (w->cluster_phase != w->x->cluster->phase)
        return in + 1;
    ptx_account(w, in->count);
    now->state = PTX_AT_CLUSTER;
    now->pc = (uint32_t)(in - w->x->code) + 1;
    now->turn = 0;
    w->x->reason = PTX_RESCHEDULE;
    return NULL;
}

const struct ptx_insn *ptx_exit(struct ptx_warp *w, const struct ptx_insn *in)
{
    struct ptx_exec *x = w->x;

    ptx_account(w, in->count);
    w->live &= ~w->mask;
    x->n_live -= (uint32_t)__builtin_popcount(w->mask);
    ptx_drop_split(w, w->current);
    x->reason = PTX_RESCHEDULE;
    if (x->n_live)
        for (uint32_t k = 0; k < PTX_N_BARRIERS; k++)
            if (x->barriers[k].arrived && !x->barriers[k].expected)
                complete_if_full(x, k);
    cluster_complete_if_full(x->cluster);
    return NULL;
}
