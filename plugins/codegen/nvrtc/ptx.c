/* Reading kernel declarations out of PTX text: see ptx.h. The text is bounded and NUL-terminated.
 */
#include "ptx.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 4096, MAX_PARAM_BYTES = 1 << 20 };

static const char *skip(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\r\n,");
        if (p[0] == '/' && p[1] == '/')
            p += strcspn(p, "\n");
        else
            return p;
    }
}

static size_t word_length(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$' || p[n] == '.' || p[n] == '%')
        n++;
    return n;
}

static bool is_word(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(p, word, n);
}

static bool in_comment(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        if (*--at == '/' && at[1] == '/')
            return true;
    return false;
}

/* Behind the symbol of `.entry symbol`, or NULL. */
static const char *find_entry(const char *ptx, const char *symbol)
{
    size_t n = strlen(symbol);
    for (const char *p = ptx; (p = strstr(p, ".entry")); p += 6) {
        const char *name = skip(p + 6);
        if (word_length(name) == n && !memcmp(name, symbol, n) && !in_comment(ptx, p))
            return name + n;
    }
    return NULL;
}

/* ".u64" -> INT of 8 bytes. */
static bool read_type(const char *p, size_t n, struct rung_kernel_param *param)
{
    char kind = n > 1 ? p[1] : 0;
    if (n < 3 || n > 4 || !memchr("usbf", kind, 4) || !isdigit((unsigned char)p[2]))
        return false;
    long bits = strtol(p + 2, NULL, 10);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return false;
    param->type = kind == 'f' ? RUNG_PARAM_FLOAT : kind == 'b' ? RUNG_PARAM_BITS : RUNG_PARAM_INT;
    param->size = (uint32_t)bits / 8;
    return true;
}

/* The length in brackets behind an array's name; p moves behind it. 1 without brackets. */
static bool read_array(const char **p, struct rung_kernel_param *param)
{
    const char *q = skip(*p);
    if (*q != '[')
        return true;
    char *end;
    unsigned long count = strtoul(q + 1, &end, 10);
    if (*end != ']' || !count || count > MAX_PARAM_BYTES)
        return false;
    param->type = RUNG_PARAM_BYTES;
    param->size *= (uint32_t)count;
    *p = end + 1;
    return param->size <= MAX_PARAM_BYTES;
}

/*
 * One parameter: `.param [.align N] .type [.ptr [.space] [.align N]] name[count]`. The alignment of
 * a pointer's target, behind .ptr, is none of ours.
 */
static bool read_param(const char **at, struct rung_kernel_param *param)
{
    const char *p = *at;
    bool typed = false;
    param->alignment = 0;
    for (;;) {
        p = skip(p);
        size_t n = word_length(p);
        if (!n)
            return false;
        if (is_word(p, n, ".align")) {
            const char *number = skip(p + n);
            if (!isdigit((unsigned char)*number))
                return false;
            unsigned long align = strtoul(number, (char **)&p, 10);
            if (!typed && (!align || align > 256 || (align & (align - 1))))
                return false;
            if (!typed)
                param->alignment = (uint32_t)align;
            continue;
        }
        if (*p != '.') { /* the name */
            *at = p + n;
            break;
        }
        if (!typed)
            typed = read_type(p, n, param);
        p += n;
    }
    if (!param->alignment)
        param->alignment = param->size;
    return typed && read_array(at, param);
}

static bool read_params(const char *p, struct rung_kernel *k, const char **end)
{
    struct rung_kernel_param *params = NULL;
    uint32_t n = 0, cap = 0, bytes = 0;
    for (p = skip(p); *p && *p != ')'; p = skip(p)) {
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            struct rung_kernel_param *bigger =
                cap <= MAX_PARAMS ? realloc(params, cap * sizeof(*params)) : NULL;
            if (!bigger)
                goto bad;
            params = bigger;
        }
        struct rung_kernel_param param = {.struct_size = sizeof(param)};
        if (!read_param(&p, &param))
            goto bad;
        param.offset = (bytes + param.alignment - 1) & ~(param.alignment - 1);
        bytes = param.offset + param.size;
        if (bytes > MAX_PARAM_BYTES)
            goto bad;
        params[n++] = param;
    }
    if (*p != ')')
        goto bad;
    k->params = params;
    k->n_params = n;
    k->param_bytes = bytes;
    *end = p + 1;
    return true;
bad:
    free(params);
    return false;
}

/* `.maxntid x[, y[, z]]` or .reqntid between the parameters and the body: threads a block. */
static uint32_t read_max_threads(const char *p)
{
    const char *body = strchr(p, '{');
    const char *at = strstr(p, ".maxntid");
    uint64_t threads = 1;
    if (!at || (body && at > body))
        at = strstr(p, ".reqntid");
    if (!at || (body && at > body))
        return 0;
    p = at + 8;
    do {
        unsigned long n = strtoul(p, (char **)&p, 10);
        threads *= n < 1 || n > 4096 ? 1 : n;
        p += strspn(p, " \t");
    } while (*p++ == ',');
    return threads > 1024 ? 1024 : (uint32_t)threads;
}

bool nv_ptx_kernel(const char *ptx, struct rung_kernel *kernel)
{
    const char *p = find_entry(ptx, kernel->symbol);
    if (!p)
        return false;
    p = skip(p);
    if (*p == '(' && !read_params(p + 1, kernel, &p))
        return false;
    kernel->max_threads = read_max_threads(p);
    return true;
}
