/* Plan lines in texts: exact ones, and those that models slip in writing. Results in the pool. */
#ifndef CODEGEN_CUDA_PLANLINES_H
#define CODEGEN_CUDA_PLANLINES_H

#include "pool.h"

struct cg_found_plan {
    const char *plan; /* "//@ directive ...\n" each, continued lines joined; "" for none */
    const char *rest; /* the text without them */
    bool launches;
    bool slips; /* some were not written as the contract says */
};

/*
 * in_code: lines of a source, where a directive stands behind `//@`, `// @`, `#@` or the star of a
 * block comment; else prose, where `//@` may follow anything.
 */
struct cg_found_plan cg_find_plan(struct cg_pool *pool, const char *text, bool in_code);

#endif
