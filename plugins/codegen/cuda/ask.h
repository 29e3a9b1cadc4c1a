/* What the model is told when the launch stayed unclear. */
#ifndef CODEGEN_CUDA_ASK_H
#define CODEGEN_CUDA_ASK_H

#include "reading.h"

/* There is code, but nothing says how to launch it; why may be NULL. Sets plan.error. */
int32_t cg_ask_for_plan(struct cg_reading *r, const char *source, const char *why);
/* The //@ lines are wrong, as the host's plan reader tells. Sets plan.error. */
int32_t cg_tell_plan_problem(struct cg_reading *r, struct rung_text problem);

#endif
