/*
 * sched_int.h - what the scheduler's files share: sched.c runs warps, barrier.c lets threads meet,
 * stuck.c says why nothing moves.
 */
#ifndef PTX_SCHED_INT_H
#define PTX_SCHED_INT_H

#include "shadow.h"

static inline void ptx_drop_split(struct ptx_warp *w, uint32_t i)
{
    w->split[i] = w->split[--w->n_splits];
}

/* Such a split has left its pc behind, and goes on when others let it. */
static inline int ptx_has_arrived(const struct ptx_split *s)
{
    return s->state == PTX_AT_BARRIER || s->state == PTX_AT_CLUSTER;
}

/*
 * No warp of the block can move. Returns PTX_BLOCK_SPINS when some were let go, PTX_BLOCK_WAITS
 * when it waits for other blocks of its cluster, else PTX_BLOCK_FAULT with the fault filled.
 */
int ptx_unstick(struct ptx_exec *x);

#endif
