/* The names of kernels and variables in a source, for messages: a look at the words, no parsing. */
#ifndef NVRTC_NAMES_H
#define NVRTC_NAMES_H

#include "buffer.h"

enum { NV_MAX_NAMES = 32 };

/* Appends "name, templated<...>" for the __global__ functions; *count names so far, the most is
 * NV_MAX_NAMES. */
void nv_list_kernels(const char *source, struct nv_buffer *out, int *count);

struct nv_names {
    struct rung_text items[NV_MAX_NAMES]; /* borrowed from the sources, without a NUL */
    uint32_t n;
};

/* Adds the __constant__ and __device__ variables. */
void nv_list_variables(const char *source, struct nv_names *names);

/* Whether the expression may name a whole variable: no element, member or sum. */
bool nv_is_variable(const char *expression);

/* The name that is most like the last part of `wanted` ("ns::c_w"), or NULL when none is. */
const struct rung_text *nv_nearest(const struct nv_names *names, const char *wanted);

#endif
