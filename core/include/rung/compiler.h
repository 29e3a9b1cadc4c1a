/*
 * rung/compiler.h - from a bundle to an artifact. Runs in executors; heavy or untrusted work goes
 * to a helper through rung.host.process/0.
 */
#ifndef RUNG_COMPILER_H
#define RUNG_COMPILER_H

#include <rung/bundle.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rung_compile_request {
    uint32_t struct_size;
    uint32_t n_expressions;
    const struct rung_bundle *bundle;
    const char *const *expressions; /* kernels wanted, as name expressions: "softmax_rows<256>" */
    const char *arch;               /* "compute_90", "sm_90" or "sm_90a" */
    uint32_t format;                /* rung_format that the device wants */
    uint32_t want_all;              /* 1: also the other forms that the same compile yields */
    const char *const *symbols;     /* variables that the plan uploads to: "c_w", "ns::c_w" */
    uint32_t n_symbols;             /* one that the source lacks is plan.error */
    uint32_t reserved;
};

/* code is "" on success, else compile.error, compile.timeout, compile.too_large or plan.error. */
struct rung_compile_result {
    uint32_t struct_size;
    uint32_t reserved;
    char code[32];
    struct rung_text log;                 /* the compiler's own words, bounded; never NULL */
    const struct rung_artifact *artifact; /* NULL unless code is "" */
    uint64_t compile_ns;                  /* wall time of the compile itself */
};

struct rung_compiler_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker, started] A source that does not compile is a result, not an error. */
    int32_t (*compile)(void *self, struct rung_call *, const struct rung_compile_request *,
                       struct rung_compile_result *out);
};

#ifdef __cplusplus
}
#endif
#endif
