/* Reading kernel declarations out of PTX text. */
#ifndef NVRTC_PTX_H
#define NVRTC_PTX_H

#include <rung/bundle.h>
#include <stdbool.h>

/*
 * Fills n_params, params, param_bytes and max_threads of kernel from the `.entry` named
 * kernel->symbol. params is malloc'ed. false when there is no such entry, it can't be read, or
 * memory is out. Parameter layout: PTX ISA, "Kernel function parameters": in order, each at its
 * alignment.
 */
bool nv_ptx_kernel(const char *ptx, struct rung_kernel *kernel);

#endif
