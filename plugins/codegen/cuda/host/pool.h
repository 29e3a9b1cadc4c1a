/*
 * Memory and effort of one analysis of host code. Everything lies in one pool that is freed at
 * once. When memory or the step budget is spent, the analysis is left by longjmp to cg_guard, so
 * that nothing else may be held while it runs (no open file, no malloc'ed block). One thread.
 */
#ifndef CODEGEN_CUDA_POOL_H
#define CODEGEN_CUDA_POOL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cg_chunk;

struct cg_pool {
    jmp_buf *out; /* where exhaustion leads; set by cg_guard */
    struct cg_chunk *chunks;
    size_t used;
    long steps;
};

enum cg_end { CG_DONE = 0, CG_MEMORY = 1, CG_TOO_COMPLEX = 2 };

/* Runs fn(ctx) under the pool's limits. */
enum cg_end cg_guard(struct cg_pool *pool, void (*fn)(void *), void *ctx);
void cg_pool_free(struct cg_pool *pool);

/* A zeroed block; never NULL. */
void *cg_take(struct cg_pool *pool, size_t n);
/* n items of an array that holds `used` of them and has room for *cap; grows by doubling. */
void *cg_grow(struct cg_pool *pool, void *items, size_t used, size_t *cap, size_t size);
/* One step of work. */
void cg_step(struct cg_pool *pool);
char *cg_text(struct cg_pool *pool, const char *ptr, size_t n);
char *cg_format(struct cg_pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
