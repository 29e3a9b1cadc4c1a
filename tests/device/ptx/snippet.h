/*
 * snippet.h - a kernel `k` around a few lines of PTX, with parameters out and in (u64) and n (u32),
 * for tests that are about one behaviour. Source lines are the snippet's own, from 1.
 */
#ifndef PTX_SNIPPET_H
#define PTX_SNIPPET_H

#include "harness.h"

#include <stdio.h>
#include <string.h>

#define SNIPPET_HEAD                                                                               \
    ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n"        \
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"                       \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<33>; .reg .f32 %f<9>; .reg .b64 %x<17>; "     \
    ".reg .f64 %d<9>;\n"                                                                           \
    ".shared .align 4 .b8 fixed[256];\n.local .align 8 .b8 own[64];\n"                             \
    "ld.param.u64 %x1, [out]; ld.param.u64 %x2, [in]; ld.param.u32 %r1, [n]; mov.u32 %r2, "        \
    "%tid.x;\n"

struct snippet_params {
    uint64_t out, in;
    uint32_t n, pad;
};

/* The whole text; every line of the body gets a .loc with its number. Static buffer. */
static inline const char *snippet(const char *body)
{
    static char text[16384];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", SNIPPET_HEAD);
    unsigned line = 1;

    while (*body && n + 300 < sizeof text) {
        size_t k = strcspn(body, "\n");

        n += (size_t)snprintf(text + n, sizeof text - n, ".loc 1 %u 0\n%.*s\n", line++, (int)k,
                              body);
        body += k + (body[k] == '\n');
    }
    snprintf(text + n, sizeof text - n, "ret;\n}\n");
    return text;
}

/* Loads and runs the snippet; returns the fault's code ("" when it ran). Frees the module. */
static inline const char *run_snippet(struct px *px, const char *body, struct rung_buffer *out,
                                      struct rung_buffer *in, uint32_t n, struct px_launch launch)
{
    struct rung_module *m = px_load(px, snippet(body));
    struct snippet_params p = {out ? px_address(px, out) : 0, in ? px_address(px, in) : 0, n, 0};

    if (!m)
        return px->fault.code;
    launch.kernel = "k";
    launch.params = &p;
    launch.param_bytes = sizeof p;
    px_launch(px, m, &launch);
    px_unload(px, m);
    return px->fault.code;
}

#endif
