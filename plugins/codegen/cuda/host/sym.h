/*
 * Symbolic numbers: what a launch's grid or argument is as an expression over the task's dims,
 * parameters and tunes, simplified as it is built and printed in the plan language (docs/plans.md).
 * Integer meaning is C's without overflow. Results in the pool.
 */
#ifndef CODEGEN_CUDA_SYM_H
#define CODEGEN_CUDA_SYM_H

#include "pool.h"

enum cg_op {
    SYM_INT,
    SYM_REAL,
    SYM_NAME,
    SYM_ADD,
    SYM_SUB,
    SYM_MUL,
    SYM_DIV,
    SYM_MOD,
    SYM_CEIL_DIV,
    SYM_MIN,
    SYM_MAX,
    SYM_EQ,
    SYM_NE,
    SYM_LT,
    SYM_LE,
    SYM_GT,
    SYM_GE,
    SYM_AND,
    SYM_OR,
    SYM_NOT,
};

/* lo..hi is where an integer's value lies; it is a multiple of `divisor`. */
struct cg_sym {
    enum cg_op op;
    bool real;
    int64_t i;
    double f;
    const char *name;
    const struct cg_sym *a, *b;
    int64_t lo, hi, divisor;
    uint32_t size; /* nodes */
};

const struct cg_sym *cg_sym_int(struct cg_pool *pool, int64_t value);
const struct cg_sym *cg_sym_real(struct cg_pool *pool, double value);
const struct cg_sym *cg_sym_name(struct cg_pool *pool, const char *name, int64_t lo, int64_t hi,
                                 int64_t divisor, bool real);
/*
 * a op b (b NULL for NOT). NULL when an operand is NULL, the result is not a number of the plan
 * language (too large, a division by zero, overflow) or too long.
 */
const struct cg_sym *cg_sym(struct cg_pool *pool, enum cg_op op, const struct cg_sym *a,
                            const struct cg_sym *b);
/* As a float: so that divisions are not those of integers. */
const struct cg_sym *cg_sym_to_real(struct cg_pool *pool, const struct cg_sym *a);
bool cg_sym_constant(const struct cg_sym *a, int64_t *value);
bool cg_sym_same(const struct cg_sym *a, const struct cg_sym *b);
const char *cg_sym_text(struct cg_pool *pool, const struct cg_sym *a);

#endif
