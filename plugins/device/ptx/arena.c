/*
 * arena.c - see arena.h.
 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 << 10)

struct ptx_chunk {
    struct ptx_chunk *previous;
    size_t used, size;
    _Alignas(16) uint8_t bytes[];
};

static struct ptx_chunk *chunk_new(struct ptx_arena *arena, size_t size)
{
    size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    struct ptx_chunk *chunk = calloc(1, sizeof *chunk + room);

    if (!chunk)
        return NULL;
    chunk->size = room;
    chunk->previous = arena->last;
    arena->last = chunk;
    return chunk;
}

void *ptx_arena_alloc(struct ptx_arena *arena, size_t size)
{
    struct ptx_chunk *chunk = arena->last;
    size_t rounded = (size + 15) & ~(size_t)15;

    if (rounded < size || (arena->limit && arena->used + rounded > arena->limit))
        return NULL;
    if (!chunk || chunk->size - chunk->used < rounded)
        chunk = chunk_new(arena, rounded);
    if (!chunk)
        return NULL;
    void *block = chunk->bytes + chunk->used;
    chunk->used += rounded;
    arena->used += rounded;
    return block;
}

void *ptx_arena_array(struct ptx_arena *arena, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return ptx_arena_alloc(arena, bytes ? bytes : 1);
}

void *ptx_arena_grow(struct ptx_arena *arena, void **items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n >= *cap) {
        uint32_t wider = *cap ? *cap * 2 : 16;
        void *moved = wider > *cap ? ptx_arena_array(arena, wider, size) : NULL;

        if (!moved)
            return NULL;
        if (n)
            memcpy(moved, *items, (size_t)n * size);
        *items = moved;
        *cap = wider;
    }
    return (uint8_t *)*items + (size_t)n * size;
}

char *ptx_arena_text(struct ptx_arena *arena, const char *text, size_t n)
{
    char *copy = ptx_arena_alloc(arena, n + 1);

    if (copy && n)
        memcpy(copy, text, n);
    return copy;
}

void ptx_arena_free(struct ptx_arena *arena)
{
    while (arena->last) {
        struct ptx_chunk *chunk = arena->last;

        arena->last = chunk->previous;
        free(chunk);
    }
    arena->used = 0;
}
