/*
 * Serving, in the helper: init loads NVRTC, reads the headers and compiles once, so that every
 * library is loaded and every table built before a child is forked; prepare makes precompiled
 * headers between requests; serve runs in the child, where nothing can be opened, and frees nothing
 * that the child's end frees.
 */
#include "serve.h"
#include "diagnose.h"
#include "names.h"
#include "program.h"
#include "ptx.h"
#include "ptxas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATIC_SHARED = 49152 };

/* ---- The answer ----------------------------------------------------------------------------- */

static char *fetch(int (*size_of)(nv_program, size_t *), int (*get)(nv_program, char *),
                   nv_program program, size_t *n)
{
    size_t size = 0;
    if (size_of(program, &size) != NV_SUCCESS)
        size = 0;
    char *bytes = calloc(size + 1, 1);
    if (bytes && size && get(program, bytes) != NV_SUCCESS)
        size = 0;
    *n = bytes ? size : 0;
    return bytes;
}

/* Both forms of the code, as far as they are wanted. */
struct codes {
    char *ptx;
    size_t n_ptx;
    struct rung_code list[2];
    uint32_t n;
    char ptx_arch[32];
};

static int32_t take_codes(const struct nv_job *job, struct codes *c, struct rung_error *err)
{
    const struct nv_api *api = &job->tools->api;
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
static struct rung_kernel *take_kernels(const struct nv_job *job, const struct codes *c,
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
        if (job->tools->api.lowered_name(job->program, k->expression, &k->symbol) != NV_SUCCESS ||
            !k->symbol || !nv_ptx_kernel(c->ptx, k)) {
            nv_diagnose_name(k->expression, "is not a __global__ function", q, out);
            return NULL;
        }
    }
    nv_ptxas_read(job->log, kernels, q->n_expressions);
    return kernels;
}

/* The index of what the expression names; n when it is no variable. */
static uint32_t find_symbol(const struct nv_job *job, const char *expression,
                            const struct rung_symbol *found, uint32_t n)
{
    const char *name = NULL;
    char *address = nv_symbol_address(expression);
    uint32_t at = n;
    if (address && job->tools->api.lowered_name(job->program, address, &name) == NV_SUCCESS && name)
        for (at = 0; at < n && strcmp(found[at].symbol, name); at++)
            ;
    free(address);
    return at;
}

/*
 * Every variable of module scope, those first that were asked for. false, and out filled, when one
 * asked for is none.
 */
static bool take_symbols(const struct nv_job *job, const struct codes *c,
                         struct rung_artifact *artifact, struct nv_buffer *out)
{
    const struct nv_request *q = job->request;
    struct rung_symbol *found = NULL;
    uint32_t n;
    if (!nv_ptx_symbols(c->ptx, &found, &n)) {
        out->failed = true;
        return false;
    }
    struct rung_symbol *all = calloc(n + q->n_symbols + 1, sizeof(*all));
    if (!all) {
        out->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < q->n_symbols; i++) {
        bool whole = nv_is_variable(q->symbols[i]);
        uint32_t at = whole ? find_symbol(job, q->symbols[i], found, n) : n;
        if (at == n) {
            nv_diagnose_symbol(q->symbols[i], "is no __constant__ or __device__ variable", q, out);
            return false;
        }
        all[i] = found[at];
        all[i].expression = q->symbols[i];
    }
    artifact->n_symbols = q->n_symbols;
    for (uint32_t i = 0; i < n; i++) {
        bool asked = false;
        for (uint32_t k = 0; k < q->n_symbols && !asked; k++)
            asked = !strcmp(all[k].symbol, found[i].symbol);
        if (!asked)
            all[artifact->n_symbols++] = found[i];
    }
    artifact->symbols = all;
    return true;
}

/* The result as bytes in the call's arena. */
static int32_t respond(const struct nv_tools *tools, struct rung_call *call,
                       const struct rung_compile_result *result, struct rung_text *response)
{
    struct nv_buffer b = {0};
    nv_write_result(&b, result);
    char *copy = b.failed ? NULL : tools->host->alloc(tools->host, call->arena, b.len + 1, 1);
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

static int32_t answer_failure(struct nv_job *job, struct rung_call *call,
                              struct rung_compile_result *result, struct rung_text *response)
{
    struct nv_buffer text = {0}, cut = {0};
    uint32_t shared = nv_ptxas_most_shared(job->log);
    nv_ptxas_strip(job->log);
    nv_diagnose(job->log, job->request, nv_store_offer(&job->tools->store), result->code, &text);
    if (!text.len && shared > STATIC_SHARED)
        nv_printf(&text,
                  "ptxas: a kernel uses %u bytes of static shared memory; %d is the most. Use "
                  "less, or dynamic shared "
                  "memory (`extern __shared__`, with shared= in the launch line).\n",
                  shared, STATIC_SHARED);
    else if (!text.len)
        nv_printf(&text, "NVRTC: %s\n", job->tools->api.error_string(job->result));
    nv_add_cut(&cut, nv_text(&text), text.len, job->tools->settings.log_limit);
    nv_includes_tell_host(job->request, &cut);
    if (text.failed || cut.failed)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for the compiler's log");
    result->log = as_text(&cut);
    return respond(job->tools, call, result, response);
}

static int32_t answer_code(struct nv_job *job, struct rung_call *call,
                           struct rung_compile_result *result, struct rung_text *response)
{
    struct codes codes = {0};
    struct nv_buffer text = {0};
    struct rung_artifact artifact = {.struct_size = sizeof(artifact)};
    int32_t status = take_codes(job, &codes, call->error);
    if (status != RUNG_OK)
        return status;
    struct rung_kernel *kernels = NULL;
    if (codes.n_ptx > job->tools->settings.ptx_limit) {
        snprintf(result->code, sizeof(result->code), "compile.too_large");
        nv_printf(&text,
                  "The kernel compiles to %zu bytes of PTX; the limit is %llu. Unroll less "
                  "(`#pragma unroll 4` or "
                  "none on outer loops) or use fewer template instances.\n",
                  codes.n_ptx, (unsigned long long)job->tools->settings.ptx_limit);
    } else if (!(kernels = take_kernels(job, &codes, &text)) ||
               !take_symbols(job, &codes, &artifact, &text)) {
        snprintf(result->code, sizeof(result->code), "plan.error");
    } else {
        nv_ptxas_strip(job->log);
        nv_add_cut(&text, job->log, strlen(job->log), job->tools->settings.log_limit);
        artifact.n_codes = codes.n;
        artifact.codes = codes.list;
        artifact.n_kernels = job->request->n_expressions;
        artifact.kernels = kernels;
        artifact.compiler = job->tools->compiler;
        result->artifact = &artifact;
    }
    if (text.failed)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for the result");
    result->log = as_text(&text);
    return respond(job->tools, call, result, response);
}

/* ---- The extension -------------------------------------------------------------------------- */

static int32_t serve(void *state, struct rung_call *call, struct rung_text request,
                     struct rung_text *response)
{
    struct nv_request q;
    struct nv_job job = {.tools = state, .request = &q};
    struct rung_compile_result result = {.struct_size = sizeof(result)};
    if (!nv_read_request(request, &q))
        return nv_fail(call->error, RUNG_EINTERNAL, "nvrtc.protocol",
                       "the compile request is garbled");
    int32_t status = nv_job_compile(&job, true, call->error);
    if (status != RUNG_OK)
        return status;
    result.compile_ns = job.compile_ns;
    if (job.result != NV_SUCCESS)
        return answer_failure(&job, call, &result, response);
    return answer_code(&job, call, &result, response);
}

/* Between requests: what the last one would have been faster with. */
static void prepare(void *state, struct rung_text request)
{
    struct nv_tools *tools = state;
    struct nv_request q = {0};
    struct nv_buffer said = {0};
    bool read = request.len && nv_read_request(request, &q);
    nv_pch_prepare(tools, read ? &q : NULL, &said);
    if (said.len && !said.failed)
        tools->host->log(tools->host, RUNG_LOG_DEBUG, nv_text(&said));
    nv_free(&said);
    nv_request_free(&q);
}

/* Compiles a little kernel to PTX and to CUBIN: libraries load and tables are built. */
static int32_t warm_up(struct nv_tools *tools, struct rung_error *err)
{
    const struct nv_api *api = &tools->api;
    int n = 0;
    if (api->n_archs(&n) != NV_SUCCESS || n <= 0 || n > 256)
        return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.broken", "%s names no architecture",
                       api->path);
    int archs[256];
    char arch[32];
    api->archs(archs);
    struct nv_file file = {"warm.cu", {"__global__ void warm(float *p) { *p = 1; }", 42}};
    for (int cubin = 0; cubin < 2; cubin++) {
        snprintf(arch, sizeof(arch), "%s_%d", cubin ? "sm" : "compute", archs[n - 1]);
        struct nv_request q = {
            .arch = arch, .want_cubin = (uint32_t)cubin, .n_files = 1, .files = &file};
        struct nv_job job = {.tools = tools, .request = &q};
        int32_t status = nv_job_compile(&job, false, err);
        if (status != RUNG_OK)
            return status;
        if (job.result != NV_SUCCESS)
            return nv_fail(err, RUNG_EUNAVAILABLE, "nvrtc.broken", "%s can't compile: %s: %.400s",
                           api->path, api->error_string(job.result), job.log);
        api->destroy(&job.program);
        free(job.log);
    }
    return RUNG_OK;
}

static int32_t init(const struct rung_host *host, struct rung_text args, struct rung_error *err,
                    void **state)
{
    struct nv_tools *tools = calloc(1, sizeof(*tools));
    char *copy = malloc(args.len + 1);
    char why[100];
    if (!tools || !copy)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory");
    memcpy(copy, args.ptr, args.len);
    copy[args.len] = '\0';
    tools->host = host;
    if (!nv_read_settings((struct rung_text){copy, args.len}, &tools->settings))
        return nv_fail(err, RUNG_EINTERNAL, "nvrtc.protocol",
                       "the compile helper's settings are garbled");
    int32_t status = nv_api_load(&tools->api, tools->settings.library, err);
    if (status != RUNG_OK)
        return status;
    snprintf(tools->compiler, sizeof(tools->compiler), "nvrtc %d.%d", tools->api.major,
             tools->api.minor);
    status = nv_store_fill(&tools->store, tools->api.path, tools->settings.headers,
                           tools->settings.n_headers, err);
    if (status == RUNG_OK)
        status = warm_up(tools, err);
    if (status == RUNG_OK) {
        nv_pch_init(tools, why);
        host->log(host, RUNG_LOG_DEBUG, why);
        host->log(host, RUNG_LOG_DEBUG, nv_store_offer(&tools->store));
    }
    *state = tools;
    return status;
}

const struct rung_helper_ops nv_helper_ops = {
    .struct_size = sizeof(struct rung_helper_ops),
    .init = init,
    .serve = serve,
    .prepare = prepare,
};
