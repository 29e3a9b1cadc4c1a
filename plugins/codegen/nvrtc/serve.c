/*
 * Compiling, in the helper: init loads NVRTC, reads the headers and compiles once, so that every
 * library is loaded and every table built before a child is forked; serve runs in the child, where
 * nothing can be opened, and frees nothing that the child's end frees.
 */
#include "serve.h"
#include "api.h"
#include "diagnose.h"
#include "headers.h"
#include "ptx.h"
#include "ptxas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_OPTIONS = 48, STATIC_SHARED = 49152 };

struct helper {
    const struct rung_host *host;
    struct nv_api api;
    struct nv_settings settings;
    struct nv_store store;
    char compiler[32]; /* "nvrtc 13.0" */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One compile; everything in it lives until the process ends. */
struct job {
    const struct helper *h;
    const struct nv_request *request;
    nv_program program;
    int result;
    char *log;
    uint64_t compile_ns;
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static int run_compiler(struct job *job, bool with_std)
{
    const struct nv_settings *s = &job->h->settings;
    char arch[64], std[32];
    const char *options[MAX_OPTIONS] = {arch, std, "-default-device", "-lineinfo",
                                        "--pre-include=" NV_PRELUDE};
    int n = 5;
    snprintf(arch, sizeof(arch), "--gpu-architecture=%s", job->request->arch);
    snprintf(std, sizeof(std), "-std=%s", s->std);
    if (with_std)
        options[n++] = "--pre-include=" NV_STD;
    if (job->request->want_cubin)
        options[n++] = "-Xptxas=-v";
    for (uint32_t i = 0; i < s->n_options && n < MAX_OPTIONS; i++)
        options[n++] = s->options[i];
    uint64_t start = now_ns();
    int result = job->h->api.compile(job->program, n, options);
    job->compile_ns = now_ns() - start;
    return result;
}

static char *fetch(int (*size_of)(nv_program, size_t *), int (*get)(nv_program, char *),
                   nv_program program, size_t *n)
{
    size_t size = 0;
    if (size_of(program, &size) != NV_SUCCESS)
        size = 0;
    char *bytes = calloc(size + 1, 1);
    if (bytes && size && get(program, bytes) != NV_SUCCESS)
        size = 0;
    if (n)
        *n = bytes ? size : 0;
    return bytes;
}

/* RUNG_OK with job->result and job->log set. */
static int32_t compile(struct job *job, struct rung_error *err)
{
    const struct nv_api *api = &job->h->api;
    const struct nv_file *entry = &job->request->files[job->request->entry];
    struct nv_includes inc = {0};
    nv_includes_collect(&job->h->store, job->request, &inc);
    if (inc.failed)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory for headers");
    int result =
        api->create(&job->program, entry->text.ptr, entry->path, inc.n, inc.texts, inc.names);
    for (uint32_t i = 0; i < job->request->n_expressions && result == NV_SUCCESS; i++)
        result = api->add_name(job->program, job->request->expressions[i]);
    if (result != NV_SUCCESS)
        return nv_fail(err, result == NV_OUT_OF_MEMORY ? RUNG_ENOMEM : RUNG_EINTERNAL,
                       "nvrtc.program", "NVRTC can't take the program: %s",
                       api->error_string(result));
    job->result = run_compiler(job, inc.std);
    if (job->result == NV_OUT_OF_MEMORY)
        return nv_fail(err, RUNG_ENOMEM, "", "the compiler ran out of memory");
    job->log = fetch(api->log_size, api->log, job->program, NULL);
    if (!job->log)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory for the compiler's log");
    if (job->result != NV_SUCCESS && strstr(job->log, "catastrophic error: out of memory"))
        return nv_fail(err, RUNG_ENOMEM, "", "the compiler ran out of memory");
    if (job->result == NV_INVALID_OPTION)
        return nv_fail(err, RUNG_EUNSUPPORTED, "nvrtc.option", "%s refuses %s or an option: %.400s",
                       job->h->compiler, job->request->arch, job->log);
    return RUNG_OK;
}

/* ---- The answer ----------------------------------------------------------------------------- */

/* Both forms of the code, as far as they are wanted. */
struct codes {
    char *ptx;
    size_t n_ptx;
    struct rung_code list[2];
    uint32_t n;
    char ptx_arch[32];
};

static int32_t take_codes(const struct job *job, struct codes *c, struct rung_error *err)
{
    const struct nv_api *api = &job->h->api;
    const char *number = strchr(job->request->arch, '_');
    c->ptx = fetch(api->ptx_size, api->ptx, job->program, &c->n_ptx);
    if (!c->ptx)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory for PTX");
    c->n_ptx = strlen(c->ptx); /* NVRTC counts the NUL */
    snprintf(c->ptx_arch, sizeof(c->ptx_arch), "compute%s", number ? number : "");
    if (job->request->want_ptx)
        c->list[c->n++] = (struct rung_code){sizeof(struct rung_code), RUNG_FORMAT_PTX, c->ptx_arch,
                                             c->ptx, c->n_ptx};
    if (job->request->want_cubin) {
        size_t n;
        char *cubin = fetch(api->cubin_size, api->cubin, job->program, &n);
        if (!cubin || !n)
            return nv_fail(err, RUNG_EINTERNAL, "nvrtc.cubin", "NVRTC gave no CUBIN for %s",
                           job->request->arch);
        c->list[c->n++] = (struct rung_code){sizeof(struct rung_code), RUNG_FORMAT_CUBIN,
                                             job->request->arch, cubin, n};
    }
    return RUNG_OK;
}

/* NULL, and out filled, when an expression names something that is no kernel. */
static struct rung_kernel *take_kernels(const struct job *job, const struct codes *c,
                                        struct nv_buffer *out)
{
    const struct nv_request *q = job->request;
    struct rung_kernel *kernels = calloc(q->n_expressions + 1, sizeof(*kernels));
    if (!kernels) {
        out->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < q->n_expressions; i++) {
        struct rung_kernel *k = &kernels[i];
        k->struct_size = sizeof(*k);
        k->expression = q->expressions[i];
        if (job->h->api.lowered_name(job->program, k->expression, &k->symbol) != NV_SUCCESS ||
            !k->symbol || !nv_ptx_kernel(c->ptx, k)) {
            nv_diagnose_name(k->expression, "is not a __global__ function", q, out);
            return NULL;
        }
    }
    nv_ptxas_read(job->log, kernels, q->n_expressions);
    return kernels;
}

/* The result as bytes in the call's arena. */
static int32_t respond(const struct helper *h, struct rung_call *call,
                       const struct rung_compile_result *result, struct rung_text *response)
{
    struct nv_buffer b = {0};
    nv_write_result(&b, result);
    char *copy = b.failed ? NULL : h->host->alloc(h->host, call->arena, b.len + 1, 1);
    if (!copy)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for the result");
    memcpy(copy, b.ptr, b.len);
    *response = (struct rung_text){copy, b.len};
    return RUNG_OK;
}

static struct rung_text as_text(const struct nv_buffer *b)
{
    return (struct rung_text){nv_text(b), b->len};
}

static int32_t answer_failure(struct job *job, struct rung_call *call,
                              struct rung_compile_result *result, struct rung_text *response)
{
    struct nv_buffer text = {0}, cut = {0};
    uint32_t shared = nv_ptxas_most_shared(job->log);
    nv_ptxas_strip(job->log);
    nv_diagnose(job->log, job->request, result->code, &text);
    if (!text.len && shared > STATIC_SHARED)
        nv_printf(&text,
                  "ptxas: a kernel uses %u bytes of static shared memory; %d is the most. Use "
                  "less, or dynamic shared "
                  "memory (`extern __shared__`, with shared= in the launch line).\n",
                  shared, STATIC_SHARED);
    else if (!text.len)
        nv_printf(&text, "NVRTC: %s\n", job->h->api.error_string(job->result));
    nv_add_cut(&cut, nv_text(&text), text.len, job->h->settings.log_limit);
    if (text.failed || cut.failed)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for the compiler's log");
    result->log = as_text(&cut);
    return respond(job->h, call, result, response);
}

static int32_t answer_code(struct job *job, struct rung_call *call,
                           struct rung_compile_result *result, struct rung_text *response)
{
    struct codes codes = {0};
    struct nv_buffer text = {0};
    struct rung_artifact artifact = {.struct_size = sizeof(artifact)};
    int32_t status = take_codes(job, &codes, call->error);
    if (status != RUNG_OK)
        return status;
    struct rung_kernel *kernels = NULL;
    if (codes.n_ptx > job->h->settings.ptx_limit) {
        snprintf(result->code, sizeof(result->code), "compile.too_large");
        nv_printf(&text,
                  "The kernel compiles to %zu bytes of PTX; the limit is %llu. Unroll less "
                  "(`#pragma unroll 4` or "
                  "none on outer loops) or use fewer template instances.\n",
                  codes.n_ptx, (unsigned long long)job->h->settings.ptx_limit);
    } else if (!(kernels = take_kernels(job, &codes, &text))) {
        snprintf(result->code, sizeof(result->code), "plan.error");
    } else {
        nv_ptxas_strip(job->log);
        nv_add_cut(&text, job->log, strlen(job->log), job->h->settings.log_limit);
        artifact.n_codes = codes.n;
        artifact.codes = codes.list;
        artifact.n_kernels = job->request->n_expressions;
        artifact.kernels = kernels;
        artifact.compiler = job->h->compiler;
        result->artifact = &artifact;
    }
    if (text.failed)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for the result");
    result->log = as_text(&text);
    return respond(job->h, call, result, response);
}

/* ---- The extension -------------------------------------------------------------------------- */

static int32_t serve(void *state, struct rung_call *call, struct rung_text request,
                     struct rung_text *response)
{
    struct nv_request q;
    struct job job = {.h = state, .request = &q};
    struct rung_compile_result result = {.struct_size = sizeof(result)};
    if (!nv_read_request(request, &q))
        return nv_fail(call->error, RUNG_EINTERNAL, "nvrtc.protocol",
                       "the compile request is garbled");
    int32_t status = compile(&job, call->error);
    if (status != RUNG_OK)
        return status;
    result.compile_ns = job.compile_ns;
    if (job.result != NV_SUCCESS)
        return answer_failure(&job, call, &result, response);
    return answer_code(&job, call, &result, response);
}

/* Compiles a little kernel to PTX and to CUBIN: libraries load and tables are built. */
static int32_t warm_up(struct helper *h, struct rung_error *err)
{
    int n = 0;
    if (h->api.n_archs(&n) != NV_SUCCESS || n <= 0 || n > 256)
        return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.broken", "%s names no architecture",
                       h->api.path);
    int archs[256];
    char arch[32];
    h->api.archs(archs);
    struct nv_file file = {"warm.cu", {"__global__ void warm(float *p) { *p = 1; }", 42}};
    for (int cubin = 0; cubin < 2; cubin++) {
        snprintf(arch, sizeof(arch), "%s_%d", cubin ? "sm" : "compute", archs[n - 1]);
        struct nv_request q = {
            .arch = arch, .want_cubin = (uint32_t)cubin, .n_files = 1, .files = &file};
        struct job job = {.h = h, .request = &q};
        int32_t status = compile(&job, err);
        if (status != RUNG_OK)
            return status;
        if (job.result != NV_SUCCESS)
            return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.broken", "%s can't compile: %s: %.400s",
                           h->api.path, h->api.error_string(job.result), job.log);
        h->api.destroy(&job.program);
        free(job.log);
    }
    return RUNG_OK;
}

static int32_t init(const struct rung_host *host, struct rung_text args, struct rung_error *err,
                    void **state)
{
    struct helper *h = calloc(1, sizeof(*h));
    char *copy = malloc(args.len + 1);
    if (!h || !copy)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory");
    memcpy(copy, args.ptr, args.len);
    copy[args.len] = '\0';
    h->host = host;
    if (!nv_read_settings((struct rung_text){copy, args.len}, &h->settings))
        return nv_fail(err, RUNG_EINTERNAL, "nvrtc.protocol",
                       "the compile helper's settings are garbled");
    int32_t status = nv_api_load(&h->api, h->settings.library, err);
    if (status != RUNG_OK)
        return status;
    snprintf(h->compiler, sizeof(h->compiler), "nvrtc %d.%d", h->api.major, h->api.minor);
    status = nv_store_fill(&h->store, h->api.path, h->settings.headers, h->settings.n_headers, err);
    if (status == RUNG_OK)
        status = warm_up(h, err);
    *state = h;
    return status;
}

const struct rung_helper_ops nv_helper_ops = {
    .struct_size = sizeof(struct rung_helper_ops),
    .init = init,
    .serve = serve,
};
