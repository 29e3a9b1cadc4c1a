/*
 * lex.h - words, numbers and punctuation of PTX text, and the table that gives each distinct word a
 * number. The text is borrowed and must end with a 0 byte behind its length.
 */
#ifndef PTX_LEX_H
#define PTX_LEX_H

#include "arena.h"

enum ptx_token_kind {
    PTX_T_END = 0,
    PTX_T_WORD, /* identifiers, directives and mnemonics, dots included: ".reg", "ld.global.f32",
                   "%tid.x" */
    PTX_T_INT,
    PTX_T_F32,    /* 0f3F800000: bits in value */
    PTX_T_F64,    /* 0d... or a decimal fraction: bits in value */
    PTX_T_STRING, /* without quotes, escapes kept */
    PTX_T_PUNCT,  /* one character, in ptr[0] */
    PTX_T_BAD,
};

struct ptx_token {
    uint32_t kind;
    uint32_t line; /* in the PTX text, 1-based */
    const char *ptr;
    uint32_t len;
    uint32_t reserved;
    uint64_t value;
};

struct ptx_lexer {
    const char *at, *end;
    uint32_t line;
    struct ptx_token token; /* the current one */
};

void ptx_lex_start(struct ptx_lexer *lexer, const char *text, size_t n);

/* Moves on to the next token. At the end it stays PTX_T_END. */
void ptx_lex_next(struct ptx_lexer *lexer);

/* Whether the current token is this word, or this punctuation character. */
int ptx_lex_is(const struct ptx_lexer *lexer, const char *word);
int ptx_lex_at(const struct ptx_lexer *lexer, char punct);

/* ---- Words to numbers ------------------------------------------------------------------------ */

struct ptx_name {
    const char *ptr; /* in the text or the arena */
    uint32_t len;
    uint32_t hash;
};

struct ptx_names {
    struct ptx_arena *arena;
    struct ptx_name *names;
    uint32_t n, cap;
    uint32_t *slots; /* open addressing: index + 1 */
    uint32_t n_slots;
    uint32_t reserved;
};

/* Number of the word, from 0 on without gaps; UINT32_MAX when memory is out. Borrows ptr. */
uint32_t ptx_name_of(struct ptx_names *names, const char *ptr, uint32_t len);

/* The same without adding: UINT32_MAX when the word is not there. */
uint32_t ptx_name_find(const struct ptx_names *names, const char *ptr, uint32_t len);

#endif
