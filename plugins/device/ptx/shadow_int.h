/*
 * shadow_int.h - what shadow.c and race.c share.
 */
#ifndef PTX_SHADOW_INT_H
#define PTX_SHADOW_INT_H

#include "shadow.h"

#include <stdio.h>

/* State of a byte of shared or local memory. PENDING: an asynchronous copy is on its way. */
enum ptx_byte_state { PTX_NEVER = 0, PTX_WRITTEN, PTX_PENDING };

/* Which warps (a bit each) touched a unit of shared memory in an epoch. */
struct ptx_unit {
    uint32_t epoch;
    uint32_t writers, readers, atomics;
    uint32_t line; /* source line of the last access */
};

/* The last read of a byte never written, a lane. */
struct ptx_origin {
    const struct ptx_insn *in;
    const char *space;
    uint64_t address;
    uint32_t bytes;
    char place[72];
};

struct ptx_shadow {
    uint32_t *taint; /* [n_warps][stride]: a word for every 4 bytes of a frame */
    uint32_t stride;
    uint32_t unit;  /* bytes */
    uint32_t epoch; /* grows at barriers */
    uint32_t reserved;
    struct ptx_unit *units;
    struct ptx_origin *origins; /* [n_warps][32] */
    uint8_t *shared, *local;    /* ptx_byte_state; local: [n_warps][32][local_bytes] */
    uint64_t local_bytes;
    struct ptx_segment *seen; /* of the last global access */
};

enum ptx_place_kind { PTX_NOWHERE = 0, PTX_IN_SHARED, PTX_IN_LOCAL, PTX_IN_GLOBAL };

struct ptx_place {
    uint32_t kind;   /* ptx_place_kind */
    uint64_t offset; /* in the memory or the segment */
    uint8_t *state;  /* SHARED, LOCAL */
    const struct ptx_segment *segment;
};

struct ptx_place ptx_place_of(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                              uint64_t address, uint64_t bytes);

/*
 * A lane's access to bytes of shared memory that lie inside it. value: what will stand there, or
 * NULL when that is not known. Return 0, or -1 after a fault.
 */
int ptx_race_read(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                  uint32_t bytes);
int ptx_race_write(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                   uint32_t bytes, const uint8_t *value);
int ptx_race_atomic(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                    uint32_t bytes);

#endif
