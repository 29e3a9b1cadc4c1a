/* What a kernel's body tells of its launch. Private to this folder. */
#ifndef CODEGEN_CUDA_INFER_H
#define CODEGEN_CUDA_INFER_H

#include "host.h"

/* One of x, y, z. */
struct cg_axis {
    bool blocks, threads;        /* blockIdx, threadIdx are used */
    bool unclear;                /* in a way that is not understood */
    bool free;                   /* blockDim is used, so that any block is right */
    const struct cg_sym *extent; /* threads or blocks that must be */
    bool counts_threads;         /* extent counts threads, not blocks */
    const struct cg_sym *block;  /* threads of a block as the indices need them; NULL: open */
};

/*
 * Reads the body (macros replaced) of a kernel whose parameters are declared in h's frame; h->code
 * is used and kept.
 */
void cg_read_indices(struct cg_host *h, const struct cg_tokens *body, struct cg_axis axes[3]);
/* `grid = rows, block = 256` or `ceil_div(rows, 128)` blocks of 128 threads: true when text says
 * so. */
bool cg_read_hint(struct cg_host *h, const char *text, struct cg_value *grid,
                  struct cg_value *block);

#endif
