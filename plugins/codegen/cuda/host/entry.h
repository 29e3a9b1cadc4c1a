/* Which functions launch, and where reading starts. Private to this folder. */
#ifndef CODEGEN_CUDA_ENTRY_H
#define CODEGEN_CUDA_ENTRY_H

#include "host.h"

enum { CG_MAX_ENTRIES = 16 };

/* Whether a launch can be reached from each item. */
const bool *cg_find_reaching(struct cg_pool *pool, const struct cg_tokens *tokens,
                             const struct cg_items *items, const struct cg_macros *macros);
/* Host functions that nothing but main calls, the likeliest first, main last; their number. */
uint32_t cg_find_entries(struct cg_host *h, const struct cg_item **entries);
/* Calls the function with the task's values. */
struct cg_value cg_run_entry(struct cg_host *h, const struct cg_item *item);

/* Reads a module's forward(). */
struct cg_python;
struct cg_python *cg_python_read(struct cg_pool *pool, const char *python);
/* The C++ in its strings; "" for none. */
const char *cg_python_code(const struct cg_python *python);
bool cg_python_has_forward(const struct cg_python *python);
struct cg_value cg_python_run(struct cg_host *h, struct cg_python *python);

#endif
