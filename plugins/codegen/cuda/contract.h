/* The candidate contract: a template of markdown, filled in for a task. */
#ifndef CODEGEN_CUDA_CONTRACT_H
#define CODEGEN_CUDA_CONTRACT_H

#include <rung/task.h>

/* The whole template, malloc'ed; NULL with err filled (RUNG_ECONFIG names file and fault). */
char *cg_contract_read(const char *path, struct rung_error *err);

/* Fills the template in; *out is in the call's arena. */
int32_t cg_contract_fill(const struct rung_host *host, struct rung_call *call, const char *template,
                         const struct rung_task *task, struct rung_text *out);

#endif
