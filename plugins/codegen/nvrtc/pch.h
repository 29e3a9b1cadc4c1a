/*
 * Precompiled headers, made by the helper and used by its forked children: the compiler's heap must
 * lie at the same addresses in both, which a fork keeps. One is kept for each head (the #include
 * lines that sources begin with) and each set of options that was asked for, as a sealed file in
 * memory: nobody can alter it any more. A head names headers of the store only, so that making one
 * reads nothing that a candidate wrote.
 */
#ifndef NVRTC_PCH_H
#define NVRTC_PCH_H

#include "message.h"
#include <stddef.h>

struct nv_tools;
struct nv_options;

enum { NV_PCH_KEPT = 6 };

struct nv_pch_kept {
    char *key; /* NULL: free */
    int file;  /* -1: it can't be made, which is remembered */
    size_t bytes;
    uint64_t used; /* when, in requests */
};

struct nv_pch {
    bool possible;
    int scratch; /* for the next child */
    size_t heap; /* of the compiler's, bytes */
    char
        *staged; /* a mapping of the file used last, for the child to make its own while it waits */
    size_t n_staged;
    int staged_file;
    uint32_t made;
    uint64_t clock;
    struct nv_pch_kept kept[NV_PCH_KEPT];
};

/* Finds out whether there can be any: `why` gets words for the debug log, at most 100 bytes. */
void nv_pch_init(struct nv_tools *tools, char why[100]);

/*
 * In the helper before it forks: makes what the request would have used (NULL: none), and lets go
 * of what was not used for longest. `said` gets words for the debug log or stays as it is.
 */
void nv_pch_prepare(struct nv_tools *tools, const struct nv_request *request,
                    struct nv_buffer *said);

/*
 * In a child behind its limits: true, and the compiler's option that names it, when there is one
 * for this request. From then on the compiler can open it.
 */
bool nv_pch_use(const struct nv_tools *tools, const struct nv_request *request,
                const struct nv_options *options, char *option, size_t size);

#endif
