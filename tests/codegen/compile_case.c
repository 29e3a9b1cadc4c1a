#include "codegen/compile_case.h"
#include <stdio.h>
#include <stdlib.h>

void compile_open(struct harness *h, const char *options)
{
    int32_t status = harness_open(h, RUNG_KIND_COMPILER, "nvrtc", options, true);
    if (status == RUNG_EUNAVAILABLE && !strcmp(h->error.symbol, "nvrtc.not_found")) {
        fprintf(stderr, "SKIPPED, nothing about compiling was tested: %s\n", h->error.message);
        exit(77);
    }
    if (status != RUNG_OK)
        fail_msg("%s", h->error.message);
}

struct rung_compile_result compile_files(struct harness *h, const struct rung_file *files,
                                         uint32_t n, const char *const *expressions,
                                         uint32_t n_expressions, const char *arch, uint32_t format,
                                         uint32_t want_all)
{
    struct rung_bundle bundle = {
        .struct_size = sizeof(bundle), .n_files = n, .language = "cuda", .files = files};
    struct rung_compile_request q = {.struct_size = sizeof(q),
                                     .n_expressions = n_expressions,
                                     .bundle = &bundle,
                                     .expressions = expressions,
                                     .arch = arch,
                                     .format = format,
                                     .want_all = want_all};
    struct rung_compile_result r = {.struct_size = sizeof(r)};
    int32_t status;
    harness_reset(h);
    RUNG_INVOKE(status, h->instance, struct rung_compiler_ops, compile, &h->call, &q, &r);
    if (status != RUNG_OK)
        fail_msg("%d: %s", status, h->error.message);
    assert_non_null(r.log.ptr);
    assert_true((r.code[0] == '\0') == (r.artifact != NULL));
    return r;
}

struct rung_compile_result compile_one(struct harness *h, const char *source,
                                       const char *expression)
{
    struct rung_file file = {
        .struct_size = sizeof(file), .path = "kernel.cu", .text = {source, strlen(source)}};
    return compile_files(h, &file, 1, &expression, expression != NULL, "compute_90",
                         RUNG_FORMAT_PTX, 0);
}

void compile_alive(struct harness *h)
{
    struct rung_compile_result r = compile_one(h, "__global__ void k(float *p) { p[0] = 1; }", "k");
    assert_string_equal(r.code, "");
}
