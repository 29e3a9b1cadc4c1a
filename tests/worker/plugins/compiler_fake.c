/* "Compiles" a source into itself: the artifact's PTX is the text of the entry file. */
#include "fake.h"

#include <stdlib.h>
#include <time.h>

static const struct rung_kernel_param params[] = {
    {.struct_size = sizeof params[0],
     .type = RUNG_PARAM_INT,
     .offset = 0,
     .size = 8,
     .alignment = 8},
    {.struct_size = sizeof params[0],
     .type = RUNG_PARAM_INT,
     .offset = 8,
     .size = 8,
     .alignment = 8},
};

static const struct rung_artifact *artifact_of(const struct rung_host *host, struct rung_call *call,
                                               const struct rung_compile_request *request)
{
    struct rung_text text = request->bundle->files[request->bundle->entry].text;
    struct rung_artifact *artifact = host->alloc(host, call->arena, sizeof *artifact, 8);
    struct rung_code *code = host->alloc(host, call->arena, sizeof *code, 8);
    struct rung_kernel *kernels =
        host->alloc(host, call->arena, sizeof *kernels * (request->n_expressions + 1), 8);
    char *copy = host->alloc(host, call->arena, text.len + 1, 1);
    memcpy(copy, text.ptr, text.len);
    for (uint32_t i = 0; i < request->n_expressions; i++) {
        size_t n = strlen(request->expressions[i]) + 1;
        char *name = host->alloc(host, call->arena, n, 1);
        memcpy(name, request->expressions[i], n);
        kernels[i] = (struct rung_kernel){.struct_size = sizeof kernels[i],
                                          .n_params = 2,
                                          .expression = name,
                                          .symbol = name,
                                          .params = params,
                                          .param_bytes = 16,
                                          .registers = 17,
                                          .spill_bytes = 4};
    }
    *code = (struct rung_code){.struct_size = sizeof *code,
                               .format = RUNG_FORMAT_PTX,
                               .arch = "compute_90",
                               .bytes = copy,
                               .n_bytes = text.len};
    *artifact = (struct rung_artifact){.struct_size = sizeof *artifact,
                                       .n_codes = 1,
                                       .n_kernels = request->n_expressions,
                                       .codes = code,
                                       .kernels = kernels,
                                       .compiler = "fake 1"};
    return artifact;
}

static int32_t compile(void *self, struct rung_call *call,
                       const struct rung_compile_request *request, struct rung_compile_result *out)
{
    const struct rung_host *host = self;
    const char *text = request->bundle->files[request->bundle->entry].text.ptr;
    struct timespec moment = {100, 0};
    out->log = (struct rung_text){"warning: a fake", 15};
    out->compile_ns = 1000000;
    if (fake_marked(text, "compile-crash"))
        abort();
    if (fake_marked(text, "compile-hang"))
        nanosleep(&moment, NULL);
    if (fake_marked(text, "compile-broken"))
        return fake_fail(call, RUNG_EINTERNAL, "the fake compiler broke");
    if (fake_marked(text, "compile-error")) {
        strcpy(out->code, "compile.error");
        out->log = (struct rung_text){"k.cu(1): error: no", 18};
        return RUNG_OK;
    }
    out->artifact = artifact_of(host, call, request);
    return RUNG_OK;
}

static const struct rung_compiler_ops ops = {.struct_size = sizeof ops, .compile = compile};
FAKE_PLUGIN(RUNG_KIND_COMPILER, "fake", 0, NULL, ops)
