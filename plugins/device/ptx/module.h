/*
 * module.h - a loaded artifact: parsed text, the memory of its variables, its kernels as programs.
 */
#ifndef PTX_MODULE_H
#define PTX_MODULE_H

#include "decode.h"
#include "exec.h"

struct ptx_kernel {
    const char *symbol;
    const struct ptx_func *func;
    struct ptx_program program;
    struct ptx_problem problem; /* message not empty: not supported */
};

struct ptx_module {
    struct ptx_text text;
    struct ptx_arena arena;   /* programs */
    struct ptx_buffer **vars; /* memory of .global and .const variables */
    struct ptx_sym **syms;    /* [n_vars] what they are */
    struct ptx_kernel *kernels;
    uint32_t n_vars, n_kernels;
};

/*
 * Loads the PTX form of an artifact (hostile). NULL with fault->code when it can't be used at all:
 * no PTX form, a syntax error, or none of its kernels is supported; NULL without when memory is
 * out.
 */
struct ptx_module *ptx_module_load(const struct rung_artifact *artifact,
                                   const struct ptx_optable *table, struct ptx_memory *memory,
                                   struct rung_fault *fault);
void ptx_module_free(struct ptx_module *module);

/* Variables of .global and .const memory are again what the code says. */
void ptx_module_reset(struct ptx_module *module);

/*
 * The memory of a variable of module scope, or NULL. name: the one in the PTX, or what its source
 * calls it when only one lowered name ends in that. The module owns the buffer.
 */
struct ptx_buffer *ptx_module_symbol(struct ptx_module *module, const char *name);

/* The kernel of this symbol, or NULL. */
const struct ptx_kernel *ptx_module_kernel(const struct ptx_module *module, const char *symbol);

/* Fault text for a kernel that is not supported; name: what the plan calls it, or NULL. */
void ptx_kernel_fault(const struct ptx_kernel *kernel, const char *name, struct rung_fault *fault);

#endif
