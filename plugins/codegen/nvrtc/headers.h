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

/* The arrays that nvrtcCreateProgram takes. */
struct nv_includes {
    const char **names, **texts;
    int n, cap;
    bool std;    /* NV_STD is wanted */
    bool failed; /* memory is out */
};

/*
 * The prelude and all that the request's entry file mentions in #include or __has_include, directly
 * or through other headers: the request's own files first, then the store. Names are as written,
 * since NVRTC knows no directories: `#include "info.h"` in a/b.h is served a/info.h under "info.h".
 */
void nv_includes_collect(const struct nv_store *store, const struct nv_request *request,
                         struct nv_includes *out);

#endif
