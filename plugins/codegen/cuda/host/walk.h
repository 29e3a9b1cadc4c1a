/* What walk.c and loops.c share. */
#ifndef CODEGEN_CUDA_WALK_H
#define CODEGEN_CUDA_WALK_H

#include "host.h"

/* Behind the statement at i. */
uint32_t cg_skip_statement(struct cg_host *h, uint32_t i, uint32_t end);
/* Walks [from, to) in a scope of its own; h->i stays. */
void cg_run_statement(struct cg_host *h, uint32_t from, uint32_t to);
/* A declaration at h->i that ends before `end`; false when there is none. */
bool cg_declaration(struct cg_host *h, uint32_t end);
/* for, while, do, switch at h->i: moves behind it. false when there is none. */
bool cg_loop(struct cg_host *h, uint32_t end);

#endif
