/*
 * Tokens of host C++ and of the Python around it, and the macros of a source. Pure; hostile input;
 * results in the pool.
 */
#ifndef CODEGEN_CUDA_LEX_H
#define CODEGEN_CUDA_LEX_H

#include "pool.h"

enum cg_kind { CG_END, CG_NAME, CG_NUMBER, CG_STRING, CG_CHAR, CG_OP };

#define CG_NOWHERE ((uint32_t)-1)

/* A string's text is what stands between its quotes, escapes as written. */
struct cg_token {
    const char *s;
    uint32_t n;
    uint32_t at;     /* first byte in the source, CG_NOWHERE for one out of a macro */
    uint32_t end;    /* behind its last byte */
    uint32_t column; /* of its line; for Python */
    uint8_t kind;    /* cg_kind */
    uint8_t glued;   /* no blank before it */
    uint8_t first;   /* first of its line */
};

/* t[n] is a CG_END. partner[i] is the bracket that belongs to the bracket i, else i itself. */
struct cg_tokens {
    struct cg_token *t;
    uint32_t *partner;
    uint32_t n;
    bool balanced;
};

struct cg_macro {
    const char *name;
    int n_params; /* -1: not a function */
    const char *params[16];
    struct cg_tokens body;
    bool variadic;
};

struct cg_macros {
    struct cg_macro *list;
    size_t n, cap;
};

/* CG_CPP_ALL: all branches of #if are kept. */
enum cg_language { CG_CPP, CG_CPP_ALL, CG_PYTHON };

/*
 * Tokens of a source; '>' is always a token of its own but in "->", ">=". Directives of the
 * preprocessor are left out; #define goes to macros (may be NULL), and of #if ... #else the branch
 * is kept that a host compiler would take as far as that is plain, else the first.
 */
struct cg_tokens cg_lex(struct cg_pool *pool, const char *source, enum cg_language language,
                        struct cg_macros *macros);
/* The tokens [from, to) with macros replaced. */
struct cg_tokens cg_expand(struct cg_pool *pool, const struct cg_macros *macros,
                           const struct cg_token *from, const struct cg_token *to);

/* Brackets of tokens that were put together elsewhere; t has room for t[n]. */
struct cg_tokens cg_pair(struct cg_pool *pool, struct cg_token *t, size_t n);

bool cg_is(const struct cg_token *t, const char *text);
/* The token as text with a closing NUL. */
char *cg_token_text(struct cg_pool *pool, const struct cg_token *t);
/* [from, to) as text, blanks where words would run together. */
char *cg_tokens_text(struct cg_pool *pool, const struct cg_token *from, const struct cg_token *to);
const struct cg_macro *cg_find_macro(const struct cg_macros *macros, const struct cg_token *name);

#endif
