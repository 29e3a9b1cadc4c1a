/*
 * Headers served from memory. The store is filled once, when the helper starts: texts of our own,
 * directories that the user names, and the toolkit's device headers. A forked child, which can open
 * nothing, picks out of it what a source mentions.
 */
#ifndef NVRTC_HEADERS_H
#define NVRTC_HEADERS_H

#include "message.h"

#define NV_PRELUDE "rung_prelude.h" /* included before every source */
#define NV_STD "rung_std.h"         /* and this when it mentions namespace std */

extern const char nv_text_prelude_h[];
extern const char nv_text_std_h[];
extern const char nv_text_cuda_h[];

struct nv_header {
    const char *name; /* as it stands in #include: "cooperative_groups/reduce.h" */
    const char *text;
    uint32_t rank; /* of headers with one name the least counts */
};

struct nv_store {
    struct nv_header *items; /* sorted by name */
    size_t n, cap;
};

/*
 * Fills the store. library: path of libnvrtc, beside which the toolkit's headers are looked for;
 * that none are found is fine. A user's directory that can't be read, or more than 256 MiB in all,
 * is RUNG_ECONFIG. The texts are made read-only, so that a child shares them.
 */
int32_t nv_store_fill(struct nv_store *store, const char *library, const char *const *dirs,
                      uint32_t n_dirs, struct rung_error *err);

const struct nv_header *nv_store_find(const struct nv_store *store, const char *name);
/* Borrows its texts. false when memory is out. */
bool nv_store_add(struct nv_store *store, const char *name, const char *text, uint32_t rank);

/* ---- Texts of our own (stubs.c) ---- */

/* Adds the prelude and the stubs. false when memory is out. */
bool nv_stubs_add(struct nv_store *store);

/*
 * Of a sorted store: empties those of the toolkit's headers that hold only host functions, which
 * NVRTC does not take, and leaves them out of the one that includes all of CUB.
 */
bool nv_stubs_trim(struct nv_store *store);

/* Whether a header has nothing for device code, as <vector> and <torch/extension.h>. */
bool nv_stub_is_host(const char *name);

/* What candidates may include, for a message: "CUDA's device headers (...)". */
const char *nv_store_offer(const struct nv_store *store);

/* The arrays that nvrtcCreateProgram takes. */
struct nv_includes {
    const char **names, **texts;
    int n, cap;
    char **made; /* names and texts of this list's own, in turn; the others are borrowed */
    int n_made, cap_made;
    bool failed; /* memory is out */
};

/*
 * The prelude, NV_STD when `std` is set, and all that the request's entry file mentions in #include
 * or __has_include, directly or through other headers: the request's own files first, then the
 * store. Names are as written,
 * since NVRTC knows no directories: `#include "info.h"` in a/b.h is served a/info.h under "info.h".
 */
void nv_includes_collect(const struct nv_store *store, const struct nv_request *request, bool std,
                         struct nv_includes *out);
void nv_includes_free(struct nv_includes *includes);

/* For a compile that failed: which headers of the request are empty here, being for the host;
 * nothing when none is. */
void nv_includes_tell_host(const struct nv_request *request, struct nv_buffer *out);

/*
 * The #include lines that the entry file begins with, up to the last one of a header that takes
 * time to read (any but the stubs of ours), as far as all are the store's and lie before anything
 * else but comments. 0 when there is none or they don't fit into `size` bytes; else the length.
 */
size_t nv_includes_head(const struct nv_store *store, const struct nv_request *request, char *out,
                        size_t size);

#endif
