/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers:
 * as easy as 1, 2, 3; SC 2011). Pure; the same bits on every machine.
 */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

/* Four words of block `counter` of stream (seed, stream). */
void rung_philox4(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);
/* Words first .. first + n - 1 of the stream. */
void rung_philox_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *out, uint64_t n);

#endif
