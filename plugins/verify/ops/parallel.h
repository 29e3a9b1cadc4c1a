/*
 * Splits a loop over threads that live only as long as the call.
 */
#ifndef OPS_PARALLEL_H
#define OPS_PARALLEL_H

#include <stdint.h>

/* Work on items [first, end); parts never overlap and may run at once. */
typedef void (*ops_part)(void *ctx, uint64_t first, uint64_t end);

/*
 * Covers items [0, n) with at most `threads` parts of at least `grain` items. Returns when all are
 * done. Where a thread can't be had, the caller does its part.
 */
void ops_parallel(uint32_t threads, uint64_t n, uint64_t grain, ops_part f, void *ctx);
/* Processors that this process may use, at most 16. */
uint32_t ops_processors(void);

#endif
