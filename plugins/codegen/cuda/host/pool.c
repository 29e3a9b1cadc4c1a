/* Memory and effort of one analysis: see pool.h. */
#include "pool.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, LIMIT = 192 << 20, STEPS = 2500000 };

struct cg_chunk {
    struct cg_chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

enum cg_end cg_guard(struct cg_pool *pool, void (*fn)(void *), void *ctx)
{
    jmp_buf out;
    jmp_buf *outer = pool->out;
    pool->out = &out;
    if (!outer)
        pool->steps = STEPS;
    enum cg_end end;
    switch (setjmp(out)) {
    case 0:
        fn(ctx);
        end = CG_DONE;
        break;
    case CG_MEMORY:
        end = CG_MEMORY;
        break;
    default:
        end = CG_TOO_COMPLEX;
    }
    pool->out = outer;
    return end;
}

void cg_pool_free(struct cg_pool *pool)
{
    while (pool->chunks) {
        struct cg_chunk *next = pool->chunks->next;
        free(pool->chunks);
        pool->chunks = next;
    }
    pool->used = 0;
}

void *cg_take(struct cg_pool *pool, size_t n)
{
    struct cg_chunk *c = pool->chunks;
    if (n > LIMIT)
        longjmp(*pool->out, CG_TOO_COMPLEX);
    n = (n + 15) & ~(size_t)15;
    if (!c || c->size - c->used < n) {
        size_t size = n > CHUNK ? n : CHUNK;
        if (pool->used + size > LIMIT)
            longjmp(*pool->out, CG_TOO_COMPLEX);
        c = malloc(sizeof(*c) + size);
        if (!c)
            longjmp(*pool->out, CG_MEMORY);
        pool->used += size;
        *c = (struct cg_chunk){.next = pool->chunks, .size = size};
        pool->chunks = c;
    }
    void *p = c->bytes + c->used;
    c->used += n;
    memset(p, 0, n);
    return p;
}

void *cg_grow(struct cg_pool *pool, void *items, size_t used, size_t *cap, size_t size)
{
    if (used < *cap)
        return items;
    size_t more = *cap ? *cap * 2 : 16;
    void *bigger = cg_take(pool, more * size);
    if (used)
        memcpy(bigger, items, used * size);
    *cap = more;
    return bigger;
}

void cg_step(struct cg_pool *pool)
{
    if (pool->steps-- <= 0)
        longjmp(*pool->out, CG_TOO_COMPLEX);
}

char *cg_text(struct cg_pool *pool, const char *ptr, size_t n)
{
    char *copy = cg_take(pool, n + 1);
    if (n)
        memcpy(copy, ptr, n);
    return copy;
}

char *cg_format(struct cg_pool *pool, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = cg_take(pool, (size_t)(n > 0 ? n : 0) + 1);
    if (n > 0)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
