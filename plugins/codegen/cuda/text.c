/* Texts: see text.h. */
#include "text.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int32_t cg_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    snprintf(err->symbol, sizeof(err->symbol), "%s", symbol);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return code;
}

int32_t cg_no_memory(struct rung_error *err)
{
    return cg_fail(err, RUNG_ENOMEM, "", "out of memory");
}

bool cg_open(struct cg_writer *w)
{
    w->ptr = NULL;
    w->len = 0;
    w->file = open_memstream(&w->ptr, &w->len);
    return w->file != NULL;
}

bool cg_close(struct cg_writer *w)
{
    if (!w->file)
        return false;
    bool bad = ferror(w->file);
    return fclose(w->file) == 0 && !bad && w->ptr;
}

struct rung_text cg_keep(const struct rung_host *host, struct rung_arena *arena, const char *ptr,
                         size_t len)
{
    char *copy = host->alloc(host, arena, len + 1, 1);
    if (!copy)
        return (struct rung_text){NULL, 0};
    if (len)
        memcpy(copy, ptr, len);
    copy[len] = '\0';
    return (struct rung_text){copy, len};
}

/* Bytes of the UTF-8 sequence at p (at most n of them are there), or 0 when it is none. */
static size_t sequence(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;
    if (!len || len > n || !p[0])
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0;
    bool beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
}

char *cg_clean(const char *ptr, size_t len)
{
    const unsigned char *p = (const unsigned char *)ptr;
    char *out = malloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < len;) {
        size_t k = sequence(p + i, len - i);
        if (p[i] == '\r') {
            out[n++] = '\n';
            i += i + 1 < len && p[i + 1] == '\n' ? 2 : 1;
        } else if (!k) {
            out[n++] = '?';
            i++;
        } else {
            memcpy(out + n, p + i, k);
            n += k;
            i += k;
        }
    }
    if (out)
        out[n] = '\0';
    return out;
}

size_t cg_word(const char *p)
{
    size_t n = 0;
    if (isdigit((unsigned char)*p))
        return 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

bool cg_contains(const char *text, const char *lower_word)
{
    size_t n = strlen(lower_word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == (unsigned char)lower_word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}
