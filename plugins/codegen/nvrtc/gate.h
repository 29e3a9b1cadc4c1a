/*
 * The two files that NVRTC opens when it uses a precompiled header, for a child that can open none:
 * the precompiled header itself, read-only, and a file of zeros that backs the compiler's heap.
 * Both are descriptors from before the limits. A seccomp filter turns the child's openat into a
 * signal whose handler answers with them, once each, and refuses all else as RLIMIT_NOFILE would.
 * The filter grants nothing: the child's limits stay as they are. Linux on x86-64 and aarch64.
 */
#ifndef NVRTC_GATE_H
#define NVRTC_GATE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this machine has what nv_gate_set needs. */
bool nv_gate_possible(void);

/* An anonymous file of `bytes` zeros; -1 when there can be none. */
int nv_gate_scratch(size_t bytes);

struct nv_gate {
    const char *path; /* opening it for reading gives `file` */
    int file, scratch;
    char *staged; /* NULL, or a private writable mapping of all of the file: see nv_gate_set */
    size_t n_staged;
};

/*
 * In the forked child, for the rest of its life; it must not be able to gain privileges any more.
 * The compiler maps the file piece by piece; pieces of `staged` are moved there instead, with the
 * pages that the child has made its own before. false: nothing has changed.
 */
bool nv_gate_set(const struct nv_gate *gate);

#endif
