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

/* ---- Variables ------------------------------------------------------------------------------ */

/* Behind the `;` or the `{...}` that ends the statement at p. */
static const char *skip_statement(const char *p)
{
    for (int depth = 0; *p; p++) {
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
            p -= !*p;
        } else if (*p == '"') {
            p += 1 + strcspn(p + 1, "\"\n");
            p -= !*p;
        } else if (*p == '{') {
            depth++;
        } else if ((*p == '}' && --depth <= 0 && p[1] != ';') || (*p == ';' && depth <= 0)) {
            return p + 1;
        }
    }
    return p;
}

/* ".v4" -> 4 */
static uint64_t vector_length(const char *p, size_t n)
{
    return n == 3 && p[1] == 'v' && strchr("248", p[2]) ? (uint64_t)(p[2] - '0') : 0;
}

/* The product of the lengths in brackets behind a name; 0 when one is left out or absurd. */
static uint64_t array_length(const char *p)
{
    uint64_t product = 1;
    for (p = skip(p); *p == '['; p = skip(p)) {
        char *end;
        unsigned long long n = strtoull(p + 1, &end, 10);
        if (*end != ']' || n > ((uint64_t)1 << 40) || (n && product > ((uint64_t)1 << 40) / n))
            return 0;
        product *= n;
        p = end + 1;
    }
    return product;
}

/*
 * `[.visible] .const [.align N] [.v4] .type name[count]`: true when the statement at p is one of
 * these. The name is borrowed: *name, *length.
 */
static bool read_variable(const char *p, struct rung_symbol *symbol, const char **name,
                          size_t *length)
{
    struct rung_kernel_param element = {0};
    uint64_t vector = 1;
    bool placed = false, typed = false;
    for (;;) {
        p = skip(p);
        size_t n = word_length(p);
        if (!n || is_word(p, n, ".entry") || is_word(p, n, ".func"))
            return false;
        if (*p != '.' && (*p < '0' || *p > '9')) {
            *name = p;
            *length = n;
            symbol->bytes = element.size * vector * array_length(p + n);
            return placed && typed;
        }
        if (is_word(p, n, ".const") || is_word(p, n, ".global")) {
            placed = true;
            symbol->flags = p[1] == 'c' ? RUNG_SYMBOL_CONST : 0;
        } else if (vector_length(p, n)) {
            vector = vector_length(p, n);
        } else if (!typed) {
            typed = read_type(p, n, &element);
        }
        p += n;
    }
}

bool nv_ptx_symbols(const char *ptx, struct rung_symbol **symbols, uint32_t *n)
{
    uint32_t cap = 0;
    *symbols = NULL;
    *n = 0;
    for (const char *p = skip(ptx); *p; p = skip(p)) {
        struct rung_symbol symbol = {.struct_size = sizeof(symbol)};
        const char *name;
        size_t length, word = word_length(p);
        if (is_word(p, word, ".version") || is_word(p, word, ".target") ||
            is_word(p, word, ".address_size") || is_word(p, word, ".file") || *p == '@') {
            p += strcspn(p, "\n"); /* these end with their line */
            continue;
        }
        if (read_variable(p, &symbol, &name, &length)) {
            if (*n == cap) {
                cap = cap ? cap * 2 : 16;
                struct rung_symbol *bigger = realloc(*symbols, cap * sizeof(symbol));
                if (!bigger)
                    return false;
                *symbols = bigger;
            }
            if (!(symbol.symbol = strndup(name, length)))
                return false;
            (*symbols)[(*n)++] = symbol;
        }
        p = skip_statement(p);
    }
    return true;
}
