/* Growing bytes: see buffer.h. */
#include "buffer.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct nv_buffer *b, size_t more)
{
    if (b->failed || more > SIZE_MAX / 4 || b->len > SIZE_MAX / 4) {
        b->failed = true;
        return false;
    }
    size_t want = b->len + more + 1;
    if (want <= b->cap)
        return true;
    size_t cap = b->cap * 2 > want ? b->cap * 2 : want + 64;
    char *ptr = realloc(b->ptr, cap);
    if (!ptr) {
        b->failed = true;
        return false;
    }
    b->ptr = ptr;
    b->cap = cap;
    return true;
}

void nv_add(struct nv_buffer *b, const void *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = '\0';
}

void nv_puts(struct nv_buffer *b, const char *text)
{
    nv_add(b, text, strlen(text));
}

void nv_printf(struct nv_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->ptr + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void nv_free(struct nv_buffer *b)
{
    free(b->ptr);
    *b = (struct nv_buffer){0};
}

const char *nv_text(const struct nv_buffer *b)
{
    return b->ptr ? b->ptr : "";
}

void nv_put_u32(struct nv_buffer *b, uint32_t value)
{
    nv_add(b, &value, sizeof(value));
}

void nv_put_u64(struct nv_buffer *b, uint64_t value)
{
    nv_add(b, &value, sizeof(value));
}

void nv_put_bytes(struct nv_buffer *b, const void *bytes, size_t n)
{
    nv_put_u64(b, n);
    nv_add(b, bytes, n);
    nv_add(b, "", 1);
}

void nv_put_text(struct nv_buffer *b, const char *text)
{
    nv_put_bytes(b, text, strlen(text));
}

static bool take(struct nv_reader *r, void *out, size_t n)
{
    if (r->failed || (size_t)(r->end - r->at) < n) {
        r->failed = true;
        memset(out, 0, n);
        return false;
    }
    memcpy(out, r->at, n);
    r->at += n;
    return true;
}

uint32_t nv_get_u32(struct nv_reader *r)
{
    uint32_t value;
    take(r, &value, sizeof(value));
    return value;
}

uint64_t nv_get_u64(struct nv_reader *r)
{
    uint64_t value;
    take(r, &value, sizeof(value));
    return value;
}

struct rung_text nv_get_bytes(struct nv_reader *r)
{
    struct rung_text text = {"", 0};
    uint64_t n = nv_get_u64(r);
    if (r->failed || n >= (uint64_t)(r->end - r->at) || r->at[n] != '\0') {
        r->failed = true;
        return text;
    }
    text = (struct rung_text){r->at, n};
    r->at += n + 1;
    return text;
}

const char *nv_get_text(struct nv_reader *r)
{
    return nv_get_bytes(r).ptr;
}

uint32_t nv_get_count(struct nv_reader *r, size_t least)
{
    uint32_t n = nv_get_u32(r);
    if (r->failed || n > (size_t)(r->end - r->at) / least) {
        r->failed = true;
        return 0;
    }
    return n;
}

const char *nv_skip_blank(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\r\n");
        const char *end = p[0] == '/' && p[1] == '*' ? strstr(p + 2, "*/") : NULL;
        if (p[0] == '/' && p[1] == '/')
            p += strcspn(p, "\n");
        else if (end)
            p = end + 2;
        else
            return p;
    }
}
