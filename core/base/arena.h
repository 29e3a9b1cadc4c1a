/*
 * A bump allocator: everything in it is freed at once. One thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <rung/plugin.h>
#include <stdarg.h>

/* New, empty arena; NULL when memory is out. */
struct rung_arena *rung_arena_new(void);
/* Frees the arena and every block in it. NULL is fine. */
void rung_arena_free(struct rung_arena *arena);
/* Frees the blocks and keeps the arena. */
void rung_arena_reset(struct rung_arena *arena);
/*
 * A zeroed block. align is a power of two, at most 64. NULL when memory is out or the arena's limit
 * (rung_arena_set_limit) is passed.
 */
void *rung_arena_alloc(struct rung_arena *arena, uint64_t size, uint64_t align);
/* Most bytes that the arena will hold; 0 = no limit (the default). */
void rung_arena_set_limit(struct rung_arena *arena, uint64_t bytes);
/* Bytes handed out so far. */
uint64_t rung_arena_used(const struct rung_arena *arena);

/* Copies with a closing NUL. The core treats running out of memory here as fatal: never NULL. */
char *rung_arena_strdup(struct rung_arena *arena, const char *text);
char *rung_arena_strndup(struct rung_arena *arena, const char *text, size_t n);
char *rung_arena_printf(struct rung_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *rung_arena_vprintf(struct rung_arena *arena, const char *format, va_list args);
/* As rung_arena_alloc, but ends the process when memory is out. For the core's own structures. */
void *rung_arena_need(struct rung_arena *arena, uint64_t size);

/* n elements of a type. */
#define RUNG_ARENA_NEW(arena, type, n)                                                             \
    ((type *)rung_arena_need((arena), sizeof(type) * (uint64_t)(n)))

#endif
