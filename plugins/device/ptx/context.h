/*
 * context.h - blocks that have started. A context is the memory of one block: warps' frames, shared
 * and local memory. Contexts come in gangs: the blocks of a cluster, of a cooperative grid, or a
 * single block. A gang is used again for other blocks of its launch; it belongs to one worker.
 */
#ifndef PTX_CONTEXT_H
#define PTX_CONTEXT_H

#include "exec.h"

struct ptx_context {
    struct ptx_exec x;
    uint8_t *frames, *locals, *shared;
    uint64_t block; /* number in the grid */
    int state;      /* ptx_block_state of its last turn */
};

struct ptx_gang {
    struct ptx_context *contexts; /* [n], cluster by cluster, in a cluster by rank */
    struct ptx_cluster *clusters; /* [n / blocks of a cluster] */
    struct ptx_exec **blocks;     /* [n], where clusters point to */
    uint32_t n, n_live;           /* n_live: contexts that have not ended */
    struct ptx_gang *next;        /* in the worker's lists */
};

/*
 * New gang of n contexts as `common` says, a multiple of its cluster's size, with shared_bytes in
 * all a block; NULL when memory is out.
 */
struct ptx_gang *ptx_gang_new(const struct ptx_exec *common, uint32_t n, uint64_t shared_bytes);
void ptx_gang_free(struct ptx_gang *gang);

/* Bytes of host memory of one context. */
uint64_t ptx_context_bytes(const struct ptx_exec *common, uint64_t shared_bytes);

/* Puts block number `block` into a context. checked: with a shadow, where memory allows it. */
void ptx_context_start(struct ptx_context *context, uint64_t block, uint64_t seed, int checked);

/* frame.c: slots that hold for the launch (block = 0), or those that each block needs anew. */
void ptx_fill_frames(struct ptx_exec *x, int block);

#endif
