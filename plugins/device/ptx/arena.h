/*
 * arena.h - bump memory of a module or of one parse: freed as a whole, so that a hostile text that
 * fails half-way leaks nothing. One thread at a time.
 */
#ifndef PTX_ARENA_H
#define PTX_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct ptx_chunk;

struct ptx_arena {
    struct ptx_chunk *last;
    uint64_t used;  /* bytes handed out */
    uint64_t limit; /* more than this fails; 0 = no limit */
};

/* Zeroed block aligned to 16 bytes, or NULL when memory or the arena's limit is out. */
void *ptx_arena_alloc(struct ptx_arena *arena, size_t size);

/* Zeroed array; NULL too when n * size overflows. */
void *ptx_arena_array(struct ptx_arena *arena, size_t n, size_t size);

/*
 * A list that doubles: returns room for item number n (0-based) of `size` bytes each, moving *items
 * when *cap is reached; NULL when memory is out. Old blocks stay in the arena.
 */
void *ptx_arena_grow(struct ptx_arena *arena, void **items, uint32_t n, uint32_t *cap, size_t size);

/* Copy of n bytes with a 0 behind, or NULL. */
char *ptx_arena_text(struct ptx_arena *arena, const char *text, size_t n);

/* Frees everything; the arena is empty and usable again. */
void ptx_arena_free(struct ptx_arena *arena);

#endif
