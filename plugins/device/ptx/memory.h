/*
 * memory.h - buffers and the address space that kernels see.
 *
 * A buffer is host memory of its own behind a made-up device address. Addresses are never reused
 * and lie at least a gibibyte apart, so that an access outside a buffer hits nothing, a freed one
 * is known as such, and every bound is exact. Shared and local memory have windows far above all
 * buffers, for generic addresses.
 * Changed only between launches; workers read it.
 */
#ifndef PTX_MEMORY_H
#define PTX_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define PTX_FIRST_ADDRESS ((uint64_t)1 << 40)
#define PTX_LAST_ADDRESS ((uint64_t)1 << 60)
#define PTX_SHARED_WINDOW ((uint64_t)1 << 61)
#define PTX_LOCAL_WINDOW ((uint64_t)1 << 62)
#define PTX_WINDOW_BYTES ((uint64_t)1 << 32)

struct ptx_segment {
    uint64_t base; /* device address */
    uint64_t size; /* bytes */
    uint8_t *host;
    uint8_t *written; /* a bit a byte, 1: has been written; NULL: all count as written */
    uint32_t read_only;
    uint32_t freed; /* kept in the list of old segments for messages */
    char label[64];
};

struct ptx_buffer {
    struct ptx_segment segment;
    struct ptx_memory *owner;
    uint64_t mapped; /* bytes of the mapping at host */
    struct ptx_buffer *next, *previous;
};

#define PTX_N_OLD 64

struct ptx_memory {
    struct ptx_segment **live; /* sorted by base */
    uint32_t n_live, cap_live;
    uint64_t next_address;
    uint64_t used, limit; /* bytes */
    struct ptx_buffer *buffers;
    struct ptx_segment old[PTX_N_OLD]; /* the last ones freed, in a ring */
    uint32_t n_old;
    uint32_t reserved;
};

void ptx_memory_init(struct ptx_memory *memory, uint64_t limit);

/* Frees all buffers. */
void ptx_memory_end(struct ptx_memory *memory);

/* New buffer, or NULL when the limit or the machine has no room. label may be NULL. */
struct ptx_buffer *ptx_buffer_new(struct ptx_memory *memory, uint64_t bytes, uint64_t align,
                                  const char *label);
void ptx_buffer_free(struct ptx_buffer *buffer);

/* Repeats n pattern bytes over a range that the caller has checked. */
void ptx_buffer_fill(struct ptx_buffer *buffer, uint64_t offset, uint64_t bytes,
                     const void *pattern, uint64_t n);

/* From now on the buffer knows which of its bytes were written; none is. */
void ptx_buffer_track(struct ptx_buffer *buffer);

/* Sets or clears the bits of a range that lies inside. Threads may mark ranges side by side. */
void ptx_buffer_written(struct ptx_buffer *buffer, uint64_t offset, uint64_t bytes, int written);
void ptx_mark(const struct ptx_segment *segment, uint64_t offset, uint64_t bytes);

/* Whether every byte of a range that lies inside has been written. */
int ptx_is_written(const struct ptx_segment *segment, uint64_t offset, uint64_t bytes);

/* The live segment that holds `address`, or NULL. */
struct ptx_segment *ptx_find_segment(const struct ptx_memory *memory, uint64_t address);

/*
 * Words for an address that no live segment holds: which buffer it lies behind or in front of, how
 * far, or that it was freed. Writes at most n bytes with the 0.
 */
void ptx_describe_address(const struct ptx_memory *memory, uint64_t address, uint32_t bytes,
                          char *out, size_t n);

#endif
