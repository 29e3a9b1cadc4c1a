/*
 * shuffle.h - which lane a shuffle reads: for the handlers and for the shadow of registers.
 */
#ifndef PTX_SHUFFLE_H
#define PTX_SHUFFLE_H

#include "exec.h"

struct ptx_source {
    uint32_t lane;
    uint32_t in_range;
};

/*
 * The lane that lane i reads, after PTX ISA "shfl.sync": c holds the clamp value in bits 0-4 and
 * the segment mask in bits 8-12.
 */
static inline __attribute__((always_inline)) struct ptx_source
ptx_source_lane(uint32_t mode, uint32_t i, uint32_t b, uint32_t c)
{
    const uint32_t segment = (c >> 8) & 31, clamp = c & 31;
    const uint32_t least = i & segment, most = least | (clamp & ~segment);
    uint32_t j;
    int ok;

    b &= 31;
    switch (mode) {
    case PTX_SHFL_UP:
        j = i - b;
        ok = (int32_t)j >= (int32_t)most;
        break;
    case PTX_SHFL_DOWN:
        j = i + b;
        ok = j <= most;
        break;
    case PTX_SHFL_BFLY:
        j = i ^ b;
        ok = j <= most;
        break;
    default:
        j = least | (b & ~segment);
        ok = j <= most;
        break;
    }
    return (struct ptx_source){ok ? j : i, (uint32_t)ok};
}

/*
 * shfl.down over the first n lanes of a warp: lanes whose partner lies past n keep garbage that a
 * tree reduction never uses. That is common and sound, so it reads as out of range; with an offset
 * of n or more lane 0 itself would read garbage, which is a fault.
 */
static inline int ptx_is_tree_tail(uint32_t mode, uint32_t active, uint32_t i, uint32_t b)
{
    const uint32_t n = (uint32_t)__builtin_popcount(active);

    return mode == PTX_SHFL_DOWN && (active & (active + 1)) == 0 && (b & 31) < n &&
           i + (b & 31) >= n;
}

#endif
