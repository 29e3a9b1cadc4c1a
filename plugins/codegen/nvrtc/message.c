/* Messages: see message.h. */
#include "message.h"
#include "api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_list(struct nv_buffer *b, const char *const *texts, uint32_t n)
{
    nv_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        nv_put_text(b, texts[i]);
}

/* At least one element is allocated, so that NULL means failure. */
static const char **get_list(struct nv_reader *r, uint32_t *n)
{
    *n = nv_get_count(r, 9);
    const char **texts = calloc(*n + 1, sizeof(*texts));
    for (uint32_t i = 0; texts && i < *n; i++)
        texts[i] = nv_get_text(r);
    if (!texts)
        r->failed = true;
    return texts;
}

void nv_write_settings(struct nv_buffer *b, const struct nv_settings *s)
{
    nv_put_text(b, s->library);
    nv_put_text(b, s->std);
    nv_put_u64(b, s->ptx_limit);
    nv_put_u64(b, s->log_limit);
    put_list(b, s->options, s->n_options);
    put_list(b, s->headers, s->n_headers);
}

bool nv_read_settings(struct rung_text bytes, struct nv_settings *s)
{
    struct nv_reader r = {bytes.ptr, bytes.ptr + bytes.len, false};
    s->library = nv_get_text(&r);
    s->std = nv_get_text(&r);
    s->ptx_limit = nv_get_u64(&r);
    s->log_limit = nv_get_u64(&r);
    s->options = get_list(&r, &s->n_options);
    s->headers = get_list(&r, &s->n_headers);
    return !r.failed;
}

/* What to ask of NVRTC for the form that the device wants: sm_XX yields both, compute_XX only PTX.
 */
static void put_arch(struct nv_buffer *b, const struct rung_compile_request *request)
{
    char arch[32];
    bool cubin = request->format == RUNG_FORMAT_CUBIN || request->want_all;
    const char *number = strchr(request->arch, '_');
    snprintf(arch, sizeof(arch), "%s%s", cubin ? "sm" : "compute", number ? number : "_");
    nv_put_text(b, arch);
    nv_put_u32(b, cubin);
    nv_put_u32(b, request->format == RUNG_FORMAT_PTX || request->want_all);
}

void nv_write_request(struct nv_buffer *b, const struct rung_compile_request *request)
{
    const struct rung_bundle *bundle = request->bundle;
    put_arch(b, request);
    nv_put_u32(b, bundle->entry);
    nv_put_u32(b, bundle->n_files);
    for (uint32_t i = 0; i < bundle->n_files; i++) {
        nv_put_text(b, bundle->files[i].path);
        nv_put_bytes(b, bundle->files[i].text.ptr, bundle->files[i].text.len);
    }
    put_list(b, request->expressions, request->n_expressions);
    put_list(b, request->symbols, RUNG_HAS(request, n_symbols) ? request->n_symbols : 0);
}

bool nv_read_request(struct rung_text bytes, struct nv_request *q)
{
    struct nv_reader r = {bytes.ptr, bytes.ptr + bytes.len, false};
    q->arch = nv_get_text(&r);
    q->want_cubin = nv_get_u32(&r);
    q->want_ptx = nv_get_u32(&r);
    q->entry = nv_get_u32(&r);
    q->n_files = nv_get_count(&r, 18);
    q->files = calloc(q->n_files + 1, sizeof(*q->files));
    for (uint32_t i = 0; q->files && i < q->n_files; i++) {
        q->files[i].path = nv_get_text(&r);
        q->files[i].text = nv_get_bytes(&r);
    }
    q->expressions = get_list(&r, &q->n_expressions);
    q->symbols = get_list(&r, &q->n_symbols);
    return q->files && !r.failed && q->entry < q->n_files;
}

void nv_request_free(struct nv_request *q)
{
    free(q->files);
    free(q->expressions);
    free(q->symbols);
    *q = (struct nv_request){0};
}

/* ---- Results -------------------------------------------------------------------------------- */

static void put_kernel(struct nv_buffer *b, const struct rung_kernel *k)
{
    nv_put_text(b, k->expression);
    nv_put_text(b, k->symbol);
    const uint32_t numbers[] = {k->param_bytes, k->registers,   k->static_shared,
                                k->local_bytes, k->spill_bytes, k->max_threads};
    nv_add(b, numbers, sizeof(numbers));
    nv_put_u32(b, k->n_params);
    for (uint32_t i = 0; i < k->n_params; i++) {
        nv_put_u32(b, k->params[i].type);
        nv_put_u32(b, k->params[i].offset);
        nv_put_u32(b, k->params[i].size);
        nv_put_u32(b, k->params[i].alignment);
    }
}

static void put_symbol(struct nv_buffer *b, const struct rung_symbol *s)
{
    nv_put_u32(b, s->flags);
    nv_put_text(b, s->expression ? s->expression : "");
    nv_put_text(b, s->symbol);
    nv_put_u64(b, s->bytes);
}

static void put_artifact(struct nv_buffer *b, const struct rung_artifact *a)
{
    nv_put_text(b, a->compiler);
    nv_put_u32(b, a->n_codes);
    for (uint32_t i = 0; i < a->n_codes; i++) {
        nv_put_u32(b, a->codes[i].format);
        nv_put_text(b, a->codes[i].arch);
        nv_put_bytes(b, a->codes[i].bytes, a->codes[i].n_bytes);
    }
    nv_put_u32(b, a->n_kernels);
    for (uint32_t i = 0; i < a->n_kernels; i++)
        put_kernel(b, &a->kernels[i]);
    nv_put_u32(b, a->n_symbols);
    for (uint32_t i = 0; i < a->n_symbols; i++)
        put_symbol(b, &a->symbols[i]);
}

void nv_write_result(struct nv_buffer *b, const struct rung_compile_result *result)
{
    nv_put_text(b, result->code);
    nv_put_bytes(b, result->log.ptr, result->log.len);
    nv_put_u64(b, result->compile_ns);
    nv_put_u32(b, result->artifact != NULL);
    if (result->artifact)
        put_artifact(b, result->artifact);
}

/* Reading, with the arena that everything goes to. */
struct reading {
    struct nv_reader r;
    const struct rung_host *host;
    struct rung_arena *arena;
    bool no_memory;
};

static void *claim(struct reading *in, size_t n, size_t size)
{
    void *p = in->host->alloc(in->host, in->arena, (n ? n : 1) * size, 16);
    if (!p)
        in->no_memory = in->r.failed = true;
    return p;
}

static const char *copy_text(struct reading *in)
{
    struct rung_text text = nv_get_bytes(&in->r);
    char *copy = claim(in, text.len + 1, 1);
    return copy ? memcpy(copy, text.ptr, text.len) : "";
}

static void get_kernel(struct reading *in, struct rung_kernel *k)
{
    k->struct_size = sizeof(*k);
    k->expression = copy_text(in);
    k->symbol = copy_text(in);
    uint32_t *const numbers[] = {&k->param_bytes, &k->registers,   &k->static_shared,
                                 &k->local_bytes, &k->spill_bytes, &k->max_threads};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        *numbers[i] = nv_get_u32(&in->r);
    k->n_params = nv_get_count(&in->r, 16);
    struct rung_kernel_param *params = claim(in, k->n_params, sizeof(*params));
    for (uint32_t i = 0; params && i < k->n_params; i++) {
        params[i].struct_size = sizeof(*params);
        params[i].type = nv_get_u32(&in->r);
        params[i].offset = nv_get_u32(&in->r);
        params[i].size = nv_get_u32(&in->r);
        params[i].alignment = nv_get_u32(&in->r);
    }
    k->params = params;
}

static void get_symbol(struct reading *in, struct rung_symbol *s)
{
    *s = (struct rung_symbol){.struct_size = sizeof(*s), .flags = nv_get_u32(&in->r)};
    const char *expression = copy_text(in);
    s->expression = expression[0] ? expression : NULL;
    s->symbol = copy_text(in);
    s->bytes = nv_get_u64(&in->r);
}

static struct rung_artifact *get_artifact(struct reading *in)
{
    struct rung_artifact *a = claim(in, 1, sizeof(*a));
    if (!a)
        return NULL;
    a->struct_size = sizeof(*a);
    a->compiler = copy_text(in);
    a->n_codes = nv_get_count(&in->r, 22);
    struct rung_code *codes = claim(in, a->n_codes, sizeof(*codes));
    for (uint32_t i = 0; codes && i < a->n_codes; i++) {
        codes[i].struct_size = sizeof(*codes);
        codes[i].format = nv_get_u32(&in->r);
        codes[i].arch = copy_text(in);
        struct rung_text bytes = nv_get_bytes(&in->r);
        char *copy = claim(in, bytes.len + 1, 1);
        codes[i].bytes = copy ? memcpy(copy, bytes.ptr, bytes.len) : NULL;
        codes[i].n_bytes = bytes.len;
    }
    a->codes = codes;
    a->n_kernels = nv_get_count(&in->r, 46);
    struct rung_kernel *kernels = claim(in, a->n_kernels, sizeof(*kernels));
    for (uint32_t i = 0; kernels && i < a->n_kernels; i++)
        get_kernel(in, &kernels[i]);
    a->kernels = kernels;
    a->n_symbols = nv_get_count(&in->r, 30);
    struct rung_symbol *symbols = claim(in, a->n_symbols, sizeof(*symbols));
    for (uint32_t i = 0; symbols && i < a->n_symbols; i++)
        get_symbol(in, &symbols[i]);
    a->symbols = symbols;
    return a;
}

int32_t nv_read_result(const struct rung_host *host, struct rung_call *call, struct rung_text bytes,
                       struct rung_compile_result *out)
{
    struct reading in = {{bytes.ptr, bytes.ptr + bytes.len, false}, host, call->arena, false};
    snprintf(out->code, sizeof(out->code), "%s", nv_get_text(&in.r));
    struct rung_text log = nv_get_bytes(&in.r);
    char *copy = claim(&in, log.len + 1, 1);
    out->log = copy ? (struct rung_text){memcpy(copy, log.ptr, log.len), log.len}
                    : (struct rung_text){"", 0};
    out->compile_ns = nv_get_u64(&in.r);
    out->artifact = nv_get_u32(&in.r) && !in.r.failed ? get_artifact(&in) : NULL;
    if (in.no_memory)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for a compile result");
    if (in.r.failed || !out->code[0] != (out->artifact != NULL))
        return nv_fail(call->error, RUNG_EINTERNAL, "nvrtc.protocol",
                       "the compile helper's answer is garbled");
    return RUNG_OK;
}
