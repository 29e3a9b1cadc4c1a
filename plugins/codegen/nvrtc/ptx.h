/* Reading kernel declarations out of PTX text. */
#ifndef NVRTC_PTX_H
#define NVRTC_PTX_H

#include <rung/bundle.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Fills n_params, params, param_bytes and max_threads of kernel from the `.entry` named
 * kernel->symbol. params is malloc'ed. false when there is no such entry, it can't be read, or
 * memory is out. Parameter layout: PTX ISA, "Kernel function parameters": in order, each at its
 * alignment.
 */
bool nv_ptx_kernel(const char *ptx, struct rung_kernel *kernel);

/*
 * The variables of module scope in .global and .const, in the order of the text, without those of
 * other spaces and without opaque ones (textures): symbol and bytes are set (0 for an array without
 * a length), expression is NULL. *symbols is malloc'ed, its names too. false when memory is out.
 */
bool nv_ptx_symbols(const char *ptx, struct rung_symbol **symbols, uint32_t *n);

#endif
