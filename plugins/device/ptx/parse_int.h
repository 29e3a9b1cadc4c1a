/*
 * parse_int.h - what the parser's files share: state, errors, scopes.
 */
#ifndef PTX_PARSE_INT_H
#define PTX_PARSE_INT_H

#include "parse.h"

#define PTX_MAX_SCOPE_DEPTH 64u
#define PTX_MAX_REGS (1u << 20)
#define PTX_MAX_STMTS (4u << 20)
#define PTX_MAX_ITEMS 256u
#define PTX_MAX_VAR_BYTES ((uint64_t)1 << 30)

struct ptx_parser {
    struct ptx_text *out;
    struct ptx_lexer lx;
    struct ptx_sym **bound; /* by name */
    uint32_t n_bound;
    uint32_t failed;
    struct ptx_func *func; /* whose body is read, or NULL */
    uint32_t depth;
    uint32_t scope; /* current scope number in func */
    struct ptx_sym *scope_syms[PTX_MAX_SCOPE_DEPTH + 1];
    uint32_t line, main_file; /* of .loc */
    uint32_t *label_heads;    /* by name; zero between functions */
    uint32_t n_heads;
};

/* Records the first problem, at the current token; returns -1. */
int ptx_fail(struct ptx_parser *ps, const char *what);

/* Consumes a punctuation character or fails. */
int ptx_expect(struct ptx_parser *ps, char punct);

/* New symbol bound to the name in the current scope; NULL (and failed) when memory is out. */
struct ptx_sym *ptx_declare(struct ptx_parser *ps, uint32_t name, uint32_t kind);

/* What a name means here, registers of a range included; NULL when nothing. */
struct ptx_sym *ptx_lookup(struct ptx_parser *ps, uint32_t name);

/* Number of the current word token; moves on. UINT32_MAX and failed when it is no word. */
uint32_t ptx_take_word(struct ptx_parser *ps);

int ptx_open_scope(struct ptx_parser *ps);
void ptx_close_scope(struct ptx_parser *ps);

/* Skips to behind the next ';' (quotes and nested braces counted). */
void ptx_skip_statement(struct ptx_parser *ps);

/* parse_decl.c: ".reg ...;" and ".space ... name[...] = ...;", the current token on the first word.
 */
int ptx_parse_reg(struct ptx_parser *ps);
int ptx_parse_var(struct ptx_parser *ps, int is_extern);
/* One ".param ..." of a parameter list, without the separator. */
struct ptx_sym *ptx_parse_param(struct ptx_parser *ps);

/* parse_body.c: statements up to and with the closing brace. */
int ptx_parse_body(struct ptx_parser *ps);

#endif
