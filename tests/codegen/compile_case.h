/* Compiling one source text through compiler "nvrtc" in tests. One thread. */
#ifndef TESTS_CODEGEN_COMPILE_CASE_H
#define TESTS_CODEGEN_COMPILE_CASE_H

#include "codegen/harness.h"
#include <rung/compiler.h>

/* Opens "nvrtc" with options; ends the process with 77 (skipped), loudly, when there is no NVRTC.
 */
void compile_open(struct harness *h, const char *options);
/* Compiles `source` for compute_90 as PTX with one expression (NULL: none). */
struct rung_compile_result compile_one(struct harness *h, const char *source,
                                       const char *expression);
/* The same with everything stated. */
struct rung_compile_result compile_files(struct harness *h, const struct rung_file *files,
                                         uint32_t n, const char *const *expressions,
                                         uint32_t n_expressions, const char *arch, uint32_t format,
                                         uint32_t want_all);
/* Compiles a good kernel: the helper is alive. */
void compile_alive(struct harness *h);

#endif
