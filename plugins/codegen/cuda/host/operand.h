/* What eval.c and operand.c share: reading tokens, and values that can be assigned. */
#ifndef CODEGEN_CUDA_OPERAND_H
#define CODEGEN_CUDA_OPERAND_H

#include "host.h"

/* A value, and the path of the variable that it stands in when it can be assigned. */
struct cg_operand {
    struct cg_value value;
    const char *path; /* NULL: the value counts */
};

static inline struct cg_operand cg_operand_of(struct cg_value value)
{
    return (struct cg_operand){value, NULL};
}

/* The token at h->i; the closing CG_END behind the end. */
const struct cg_token *cg_peek(const struct cg_host *h);
bool cg_take_token(struct cg_host *h, const char *text);
struct cg_value cg_load(struct cg_host *h, struct cg_operand o);
/* An operand with its signs; a primary with its calls, members and subscripts. */
struct cg_operand cg_unary(struct cg_host *h);
struct cg_operand cg_postfix(struct cg_host *h);

#endif
