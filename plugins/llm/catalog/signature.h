/*
 * The operators that catalog files may name: their parameters in order and what stands for one that
 * is not given. Names and meaning are those of the reference's graph language. Constant data.
 */
#ifndef LLM_CATALOG_SIGNATURE_H
#define LLM_CATALOG_SIGNATURE_H

#include "graph.h"

enum { SIGNATURE_MAX_PARAMS = 8 };

struct signature {
    const char *name;
    struct {
        const char *name;     /* keyword; NULL ends the list */
        const char *standard; /* the value when it is left out; NULL: none; "=name": that one's */
    } params[SIGNATURE_MAX_PARAMS];
};

/* Whether a name of a graph means `name`: underscores never count, and some names have others. */
bool signature_means(struct llm_span given, const char *name);

/* By name or alias ("bmm" is a matmul); NULL for one that the catalog does not know. */
const struct signature *signature_find(struct llm_span name);

/* Argument number `param` of a call, or NULL when it is left out. */
const struct graph_node *signature_arg(const struct signature *signature, const struct graph *graph,
                                       const struct graph_node *call, uint32_t param);

/* Whether every argument of the call is one of the signature's, none twice. */
bool signature_fits(const struct signature *signature, const struct graph_node *call);

#endif
