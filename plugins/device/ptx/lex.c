/*
 * lex.c - see lex.h. No allocation but for the name table.
 */
#include "lex.h"

#include <stdlib.h>
#include <string.h>

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '%' || c == '$' || c == '_' ||
           c == '.';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void skip_space(struct ptx_lexer *lx)
{
    while (lx->at < lx->end) {
        const char *p = lx->at;

        if (*p == '\n') {
            lx->line++;
            lx->at++;
        } else if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f' || *p == '\v') {
            lx->at++;
        } else if (p[0] == '/' && p[1] == '/') {
            while (lx->at < lx->end && *lx->at != '\n')
                lx->at++;
        } else if (p[0] == '/' && p[1] == '*') {
            lx->at += 2;
            while (lx->at < lx->end && !(lx->at[0] == '*' && lx->at[1] == '/'))
                lx->line += *lx->at++ == '\n';
            lx->at = lx->end - lx->at >= 2 ? lx->at + 2 : lx->end;
        } else {
            return;
        }
    }
}

static void lex_word(struct ptx_lexer *lx)
{
    const char *p = lx->at + 1;
    const int directive = *lx->at == '.'; /* ".reg.b32" is two words, "ld.global" is one */

    while (p < lx->end && !(directive && *p == '.')) {
        if (is_word_start(*p) || is_digit(*p))
            p++;
        else if (p[0] == ':' && p[1] == ':' && p + 2 < lx->end && is_word_start(p[2]))
            p += 2;
        else if (p[0] == ':' && p[1] == ':' && p + 2 < lx->end && is_digit(p[2]))
            p += 2;
        else
            break;
    }
    lx->token.kind = PTX_T_WORD;
    lx->token.len = (uint32_t)(p - lx->at);
    lx->at = p;
}

/* Digits of a base up to 16; no overflow trap: PTX constants are 64 bits wide and wrap. */
static const char *lex_digits(const char *p, const char *end, int base, uint64_t *value)
{
    for (; p < end && hex_digit(*p) >= 0 && hex_digit(*p) < base; p++)
        *value = *value * (uint64_t)base + (uint64_t)hex_digit(*p);
    return p;
}

static const char *lex_bits(struct ptx_lexer *lx, const char *p, uint32_t digits, uint32_t kind)
{
    const char *end = lex_digits(p, lx->end, 16, &lx->token.value);

    lx->token.kind = (uint32_t)(end - p) == digits ? kind : PTX_T_BAD;
    return end;
}

/* A decimal fraction such as 1.5e-3, only in hand-written text. */
static const char *lex_fraction(struct ptx_lexer *lx)
{
    char text[64];
    size_t n = 0;
    const char *p = lx->at;
    double v;

    for (; p < lx->end && n + 1 < sizeof text; p++) {
        int sign = (*p == '+' || *p == '-') && n && (text[n - 1] == 'e' || text[n - 1] == 'E');

        if (!is_digit(*p) && *p != '.' && *p != 'e' && *p != 'E' && !sign)
            break;
        text[n++] = *p;
    }
    text[n] = 0;
    v = strtod(text, NULL);
    memcpy(&lx->token.value, &v, sizeof v);
    lx->token.kind = PTX_T_F64;
    return p;
}

static void lex_number(struct ptx_lexer *lx)
{
    const char *p = lx->at;
    const char *q = p;

    lx->token.kind = PTX_T_INT;
    if (p[0] == '0' && (p[1] == 'f' || p[1] == 'F'))
        p = lex_bits(lx, p + 2, 8, PTX_T_F32);
    else if (p[0] == '0' && (p[1] == 'd' || p[1] == 'D'))
        p = lex_bits(lx, p + 2, 16, PTX_T_F64);
    else if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p = lex_digits(p + 2, lx->end, 16, &lx->token.value);
    else if (p[0] == '0' && (p[1] == 'b' || p[1] == 'B'))
        p = lex_digits(p + 2, lx->end, 2, &lx->token.value);
    else {
        while (q < lx->end && is_digit(*q))
            q++;
        if (q < lx->end && (*q == '.' || *q == 'e' || *q == 'E'))
            p = lex_fraction(lx);
        else
            p = lex_digits(p, lx->end, p[0] == '0' && q - p > 1 ? 8 : 10, &lx->token.value);
    }
    if (p < lx->end && *p == 'U')
        p++;
    lx->token.len = (uint32_t)(p - lx->at);
    lx->at = p;
}

static void lex_string(struct ptx_lexer *lx)
{
    const char *p = lx->at + 1;

    while (p < lx->end && *p != '"' && *p != '\n')
        p += *p == '\\' && p + 1 < lx->end && p[1] != '\n' ? 2 : 1;
    lx->token.kind = p < lx->end && *p == '"' ? PTX_T_STRING : PTX_T_BAD;
    lx->token.ptr = lx->at + 1;
    lx->token.len = (uint32_t)(p - lx->token.ptr);
    lx->at = p < lx->end ? p + 1 : lx->end;
}

void ptx_lex_next(struct ptx_lexer *lx)
{
    skip_space(lx);
    lx->token = (struct ptx_token){.line = lx->line, .ptr = lx->at};
    if (lx->at >= lx->end)
        return;
    char c = *lx->at;
    if (is_word_start(c)) {
        lex_word(lx);
    } else if (is_digit(c)) {
        lex_number(lx);
    } else if (c == '"') {
        lex_string(lx);
    } else {
        lx->token.kind = c > ' ' && c < 127 ? PTX_T_PUNCT : PTX_T_BAD;
        lx->token.len = 1;
        lx->at++;
    }
}

void ptx_lex_start(struct ptx_lexer *lx, const char *text, size_t n)
{
    *lx = (struct ptx_lexer){.at = text, .end = text + n, .line = 1};
    ptx_lex_next(lx);
}

int ptx_lex_is(const struct ptx_lexer *lx, const char *word)
{
    size_t n = strlen(word);

    return lx->token.kind == PTX_T_WORD && lx->token.len == n && !memcmp(lx->token.ptr, word, n);
}

int ptx_lex_at(const struct ptx_lexer *lx, char punct)
{
    return lx->token.kind == PTX_T_PUNCT && lx->token.ptr[0] == punct;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static uint32_t hash_text(const char *p, uint32_t n)
{
    uint32_t h = 2166136261u;

    for (uint32_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)p[i]) * 16777619u;
    return h;
}

static int names_rehash(struct ptx_names *t)
{
    uint32_t n_slots = t->n_slots ? t->n_slots * 2 : 1024;
    uint32_t *slots = ptx_arena_array(t->arena, n_slots, sizeof *slots);

    if (!slots)
        return -1;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t s = t->names[i].hash & (n_slots - 1);

        while (slots[s])
            s = (s + 1) & (n_slots - 1);
        slots[s] = i + 1;
    }
    t->slots = slots;
    t->n_slots = n_slots;
    return 0;
}

/* Where the word stands in the slots, or the free slot where it would. */
static uint32_t find_slot(const struct ptx_names *t, const char *ptr, uint32_t len, uint32_t hash)
{
    uint32_t s = hash & (t->n_slots - 1);

    for (; t->slots[s]; s = (s + 1) & (t->n_slots - 1)) {
        const struct ptx_name *name = &t->names[t->slots[s] - 1];

        if (name->hash == hash && name->len == len && !memcmp(name->ptr, ptr, len))
            break;
    }
    return s;
}

uint32_t ptx_name_find(const struct ptx_names *t, const char *ptr, uint32_t len)
{
    if (!t->n_slots)
        return UINT32_MAX;
    return t->slots[find_slot(t, ptr, len, hash_text(ptr, len))] - 1;
}

uint32_t ptx_name_of(struct ptx_names *t, const char *ptr, uint32_t len)
{
    uint32_t hash = hash_text(ptr, len);

    if (t->n * 2 >= t->n_slots && names_rehash(t))
        return UINT32_MAX;
    uint32_t s = find_slot(t, ptr, len, hash);
    if (t->slots[s])
        return t->slots[s] - 1;
    struct ptx_name *name =
        ptx_arena_grow(t->arena, (void **)&t->names, t->n, &t->cap, sizeof *name);
    if (!name)
        return UINT32_MAX;
    *name = (struct ptx_name){.ptr = ptr, .len = len, .hash = hash};
    t->slots[s] = ++t->n;
    return t->n - 1;
}
