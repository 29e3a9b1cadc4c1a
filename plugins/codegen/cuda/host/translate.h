/*
 * Plan lines out of host code: what a launcher, a program or a PyTorch module would launch, found
 * by reading it. Nothing is executed. Pure.
 */
#ifndef CODEGEN_CUDA_TRANSLATE_H
#define CODEGEN_CUDA_TRANSLATE_H

#include "pool.h"
#include <rung/task.h>

struct cg_translation {
    const char *plan;    /* "//@ ..." lines; NULL: none */
    const char *note;    /* sentences on what was assumed; "" for none */
    bool snippet;        /* the host code was statements around the code, not a function */
    const char *problem; /* why there is no plan; NULL when there is no host code to read */
};

/*
 * code: the C++ of the candidate; around: further C++, of which statements outside of functions
 * count too; python: a module around it or "". Results are in the pool, which exhaustion leaves
 * through cg_guard.
 */
struct cg_translation cg_translate(struct cg_pool *pool, const struct rung_task *task,
                                   const char *code, const char *around, const char *python);

/* The C++ in a Python module's strings; "" for none. */
const char *cg_python_source(struct cg_pool *pool, const char *python);

/*
 * A plan for code with one kernel and no host code: its parameters bound by name, grid and block as
 * the kernel's indices show them. prose: the reply's text, which may say how to launch.
 */
struct cg_translation cg_infer(struct cg_pool *pool, const struct rung_task *task, const char *code,
                               const char *prose);

/*
 * Plan lines as models slip in writing them, made right where that is plain. constants: the code,
 * for numbers that the lines name. NULL when a line is beyond repair.
 */
const char *cg_repair(struct cg_pool *pool, const struct rung_task *task, const char *plan,
                      const char *code);

/* The source without its host code, in the pool; what kernels use stays. */
const char *cg_strip(struct cg_pool *pool, const char *source);
/* Whether there is host code that device compilers choke on. */
bool cg_has_host_code(struct cg_pool *pool, const char *source);

#endif
