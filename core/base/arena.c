#include "base/arena.h"
#include "base/die.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, MAX_BLOCK = 1 << 20 };

struct block {
    struct block *next;
    size_t size; /* of data */
    size_t used;
    _Alignas(64) unsigned char data[];
};

struct rung_arena {
    struct block *head;
    uint64_t used;
    uint64_t limit;
};

struct rung_arena *rung_arena_new(void)
{
    return calloc(1, sizeof(struct rung_arena));
}

void rung_arena_reset(struct rung_arena *arena)
{
    while (arena->head) {
        struct block *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    arena->used = 0;
}

void rung_arena_free(struct rung_arena *arena)
{
    if (!arena)
        return;
    rung_arena_reset(arena);
    free(arena);
}

void rung_arena_set_limit(struct rung_arena *arena, uint64_t bytes)
{
    arena->limit = bytes;
}

uint64_t rung_arena_used(const struct rung_arena *arena)
{
    return arena->used;
}

/* Blocks double up to 1 MiB, so that small arenas stay small; a large request gets its own. */
static struct block *block_add(struct rung_arena *arena, uint64_t need)
{
    size_t size = arena->head ? arena->head->size * 2 : FIRST_BLOCK;
    if (size > MAX_BLOCK)
        size = MAX_BLOCK;
    if (size < need)
        size = need;
    size_t bytes = (sizeof(struct block) + size + 63) & ~(size_t)63;
    struct block *block = aligned_alloc(64, bytes);
    if (!block)
        return NULL;
    *block = (struct block){.next = arena->head, .size = size};
    arena->head = block;
    return block;
}

void *rung_arena_alloc(struct rung_arena *arena, uint64_t size, uint64_t align)
{
    if (align == 0 || align > 64 || (align & (align - 1)) || size > (UINT64_MAX >> 2))
        return NULL;
    if (arena->limit &&
        size > arena->limit - (arena->used < arena->limit ? arena->used : arena->limit))
        return NULL;
    struct block *block = arena->head;
    size_t start = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || start > block->size || size > block->size - start) {
        block = block_add(arena, size);
        start = 0;
    }
    if (!block)
        return NULL;
    block->used = start + size;
    arena->used += size;
    return memset(block->data + start, 0, size);
}

void *rung_arena_need(struct rung_arena *arena, uint64_t size)
{
    void *p = rung_arena_alloc(arena, size ? size : 1, 16);
    if (!p)
        rung_die("out of memory (%llu bytes)", (unsigned long long)size);
    return p;
}

char *rung_arena_strndup(struct rung_arena *arena, const char *text, size_t n)
{
    char *copy = rung_arena_need(arena, n + 1);
    if (n)
        memcpy(copy, text, n);
    return copy;
}

char *rung_arena_strdup(struct rung_arena *arena, const char *text)
{
    return rung_arena_strndup(arena, text, strlen(text));
}

char *rung_arena_vprintf(struct rung_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = rung_arena_need(arena, n < 0 ? 1 : (uint64_t)n + 1);
    if (n >= 0)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

char *rung_arena_printf(struct rung_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = rung_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
