/*
 * counters.h - what a launch did, in the terms of rung_counters. Only the counting run loop calls
 * this; the fast one knows nothing of it. One worker at a time.
 */
#ifndef PTX_COUNTERS_H
#define PTX_COUNTERS_H

#include "exec.h"

/* A set of 32-byte sectors that one block touched; grows, emptied at each block. */
struct ptx_sectors {
    uint64_t *slots; /* sector number + 1; 0 empty */
    uint32_t n, cap; /* cap: power of two */
};

struct ptx_counting {
    struct rung_counters sum;
    struct ptx_sectors read, written;
    uint8_t classes[PTX_N_OPS]; /* ptx_op_class */
};

/* Prepares; NULL when memory is out. */
struct ptx_counting *ptx_counting_new(void);
void ptx_counting_free(struct ptx_counting *counting);

/* Counts one instruction that the running split of the warp is about to execute. */
void ptx_count(struct ptx_counting *counting, const struct ptx_warp *warp,
               const struct ptx_insn *in);

/* Ends a block: its distinct sectors go into the sums. */
void ptx_count_block(struct ptx_counting *counting);

#endif
