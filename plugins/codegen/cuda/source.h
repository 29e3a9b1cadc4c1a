/*
 * Reading CUDA source just well enough to tell what it is: kernels and their parameters, plan
 * lines, whether it is whole. Pure; hostile input; every pass is linear.
 */
#ifndef CODEGEN_CUDA_SOURCE_H
#define CODEGEN_CUDA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A malloc'ed copy of the same length in which comments and the insides of string and character
 * literals are blanks (newlines stay), so that what is found in it is code. NULL: memory is out.
 */
char *cg_mask(const char *source);

/* A kernel's declaration; offsets into the source that was masked. */
struct cg_kernel {
    size_t name, name_len;
    size_t params, params_len; /* between the parentheses */
    bool templated;
};

/* The next `__global__` function with a body or declaration at or behind *at; moves *at behind it.
 */
bool cg_next_kernel(const char *mask, size_t *at, struct cg_kernel *kernel);
/* Whether a kernel of that name stands in the source. */
bool cg_defines(const char *mask, const char *source, const char *name, size_t name_len);

/* The next parameter's name in a parameter list; false at the end. *at starts as kernel->params. */
bool cg_next_param(const char *mask, const struct cg_kernel *kernel, size_t *at, size_t *name,
                   size_t *name_len);

/*
 * Whether every kernel that the //@ lines of `old` launch stands in `source` with parameters of the
 * same types; their names may differ. false when `old` launches none.
 */
bool cg_same_signatures(const char *old, const char *source);

/* The word behind the next `//@ launch` at or behind *at; moves *at behind it. */
bool cg_next_launch(const char *source, size_t *at, size_t *name, size_t *name_len);
/* Whether a line starts with //@. */
bool cg_has_plan(const char *source);
/* Whether all brackets are closed and the last line of code ends a declaration. */
bool cg_is_whole(const char *mask);

#endif
