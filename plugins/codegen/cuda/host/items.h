/*
 * What stands at namespace level of a CUDA source: functions, variables, types and the rest, found
 * without knowing C++ in full. Pure; results in the pool.
 */
#ifndef CODEGEN_CUDA_ITEMS_H
#define CODEGEN_CUDA_ITEMS_H

#include "lex.h"

enum cg_item_kind {
    CG_FUNCTION, /* with a body */
    CG_PROTOTYPE,
    CG_VARIABLE,
    CG_TYPE,
    CG_USING,   /* using, typedef, static_assert, namespace alias */
    CG_INVOKED, /* a macro's call, with a block or without: PYBIND11_MODULE(...) { } */
};

struct cg_parameter {
    const char *name;       /* "" without one */
    uint32_t from, to;      /* its type and name */
    uint32_t value, behind; /* default value; value == behind: none */
    bool is_type;           /* of a template: typename T */
};

struct cg_item {
    enum cg_item_kind kind;
    uint32_t from, to; /* tokens */
    const char *name;  /* "" when it has none */
    const char *space; /* enclosing namespaces "a::b", "" outside */
    bool global, device, constant;
    const struct cg_parameter *params, *template_params;
    uint32_t n_params, n_template_params;
    bool is_template;
    uint32_t open, close; /* FUNCTION, TYPE, INVOKED: the braces; 0 without */
};

struct cg_items {
    struct cg_item *list;
    size_t n, cap;
};

struct cg_items cg_items_scan(struct cg_pool *pool, const struct cg_tokens *tokens);
/* The function of that name, one with a body first; NULL when there is none. */
const struct cg_item *cg_find_function(const struct cg_items *items, const char *name);
/* "a::b::name". */
const char *cg_full_name(struct cg_pool *pool, const struct cg_item *item);
/* Behind the '>' that closes the '<' at i, or i when none does before `to`. */
uint32_t cg_close_angle(const struct cg_tokens *tokens, uint32_t i, uint32_t to);
/* Splits [from, to) at commas outside of brackets and <>; at most max parts, ends in ends[]. */
uint32_t cg_split_list(const struct cg_tokens *tokens, uint32_t from, uint32_t to, uint32_t *starts,
                       uint32_t *ends, uint32_t max);

#endif
