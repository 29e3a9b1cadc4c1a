/*
 * shadow.h - what a GPU never tells: races in shared memory, and values that nothing has written.
 *
 * A checked block keeps, beside its memory, which warps touched each unit of shared memory since
 * the last barrier, which bytes of shared and local memory were written, and for each register
 * which lanes hold a value that comes from a byte never written. Such a value is no fault while it
 * only moves about; it is one when it decides a branch, makes an address, takes part in an atomic
 * or goes to global memory: the fault then names the read that brought it in.
 *
 * Two accesses race when they come from different warps with no barrier, fence or ordering access
 * in between, at least one of them writes, and the write changes what is there. Volatile and
 * relaxed accesses never race; an atomic races with plain accesses only. Values that pass through
 * tensor operations count as written. A context owns its shadow.
 */
#ifndef PTX_SHADOW_H
#define PTX_SHADOW_H

#include "exec.h"

/* For the blocks of a context; NULL when memory is out: the block then runs unchecked. */
struct ptx_shadow *ptx_shadow_new(const struct ptx_exec *x);
void ptx_shadow_free(struct ptx_shadow *shadow);

/* Forgets the last block. */
void ptx_shadow_start(struct ptx_exec *x);

/* What the instruction is about to do, for the running lanes. Returns it, or NULL after a fault. */
const struct ptx_insn *ptx_shadow_step(struct ptx_warp *w, const struct ptx_insn *in);

/* A lane's asynchronous copy has arrived at this offset of shared memory. */
void ptx_shadow_copied(struct ptx_warp *w, uint64_t offset, uint32_t bytes);

/* Threads of the block have met: accesses before and after don't race. */
void ptx_shadow_order(struct ptx_shadow *shadow);

#endif
