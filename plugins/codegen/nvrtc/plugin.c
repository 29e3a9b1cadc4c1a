/*
 * compiler "nvrtc": CUDA C++ to PTX and CUBIN with NVIDIA's run-time compiler. The plugin itself
 * only checks options, sends requests to its helper and reads the answers; see serve.c for the
 * compiling. One helper an instance; the host keeps calls of one instance apart.
 */
#include "api.h"
#include "message.h"
#include "serve.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compiler {
    const struct rung_host *host;
    const struct rung_host_process *process;
    struct rung_helper *helper; /* NULL until the first start, and after it died */
    struct nv_buffer settings;
    uint64_t wall_ms, memory_bytes, ptx_limit, log_limit;
};

/* ---- Options -------------------------------------------------------------------------------- */

#define OPTION(id, kind, flag, text, what, ...)                                                    \
    static const struct rung_option option_##id = {.struct_size = sizeof(struct rung_option),      \
                                                   .type = (kind),                                 \
                                                   .flags = (flag),                                \
                                                   .name = #id,                                    \
                                                   .default_text = (text),                         \
                                                   .summary = (what),                              \
                                                   __VA_ARGS__}

static const char *const std_values[] = {"c++14", "c++17", "c++20", NULL};

OPTION(library, RUNG_OPT_PATH, 0, NULL,
       "libnvrtc itself or a toolkit's directory; searched when empty (RUNG_CUDA_HOME first).",
       .unit = NULL);
OPTION(std, RUNG_OPT_ENUM, RUNG_OPT_AFFECTS_RESULT, "c++17", "Language standard.",
       .values = std_values);
OPTION(
    options, RUNG_OPT_STRINGS, RUNG_OPT_AFFECTS_RESULT, NULL,
    "More compiler options, out of: --use_fast_math, --fmad=, --ftz=, --prec-div=, --prec-sqrt=, "
    "--maxrregcount=, --extra-device-vectorization, -D.",
    .unit = NULL);
OPTION(headers, RUNG_OPT_STRINGS, RUNG_OPT_AFFECTS_RESULT, NULL,
       "Directories (absolute) whose files candidates may include; read when the helper starts.",
       .unit = NULL);
OPTION(time_limit, RUNG_OPT_DURATION, 0, "20s", "Longest compile of one candidate.", .unit = "s",
       .min = 0.1, .max = 3600);
OPTION(memory_limit, RUNG_OPT_BYTES, 0, "2GiB", "Most memory of one compile.", .unit = "bytes",
       .min = 64 << 20, .max = 1e12);
OPTION(ptx_limit, RUNG_OPT_BYTES, 0, "8MiB", "Most PTX of one candidate.", .unit = "bytes",
       .min = 4096, .max = 128 << 20);
OPTION(log_limit, RUNG_OPT_BYTES, 0, "16KiB", "Most of the compiler's log; the middle is cut out.",
       .unit = "bytes", .min = 1024, .max = 1 << 20);

static const struct rung_option *const options[] = {
    &option_library,   &option_std,        &option_options,
    &option_headers,   &option_time_limit, &option_memory_limit,
    &option_ptx_limit, &option_log_limit,  NULL};

/* Options that change code, not what is read: no -I, no --pre-include, no files. */
static int allowed(const char *option)
{
    static const char *const exact[] = {"--use_fast_math", "-use_fast_math",
                                        "--extra-device-vectorization"};
    static const char *const prefixes[] = {
        "--fmad=",    "-fmad=",       "--ftz=",      "-ftz=",           "--prec-div=",
        "-prec-div=", "--prec-sqrt=", "-prec-sqrt=", "--maxrregcount=", "-maxrregcount=",
        "-D"};
    for (size_t i = 0; i < sizeof(exact) / sizeof(*exact); i++)
        if (!strcmp(option, exact[i]))
            return 1;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (!strncmp(option, prefixes[i], n) && option[n] && !strpbrk(option, "\n\r"))
            return 1;
    }
    return 0;
}

static int32_t validate(const struct rung_host *host, const struct rung_options *opts,
                        struct rung_error *err)
{
    uint32_t n = host->opt_count(host, opts, "options");
    if (n > 32)
        return nv_fail(err, RUNG_ECONFIG, "nvrtc.options",
                       "options: %" PRIu32 " compiler options; at most 32", n);
    for (uint32_t i = 0; i < n; i++)
        if (!allowed(host->opt_string_at(host, opts, "options", i)))
            return nv_fail(
                err, RUNG_ECONFIG, "nvrtc.options",
                "options: \"%.100s\" is not allowed; allowed are --use_fast_math, --fmad=, --ftz=, "
                "--prec-div=, --prec-sqrt=, --maxrregcount=, --extra-device-vectorization and "
                "-Dname=value",
                host->opt_string_at(host, opts, "options", i));
    for (uint32_t i = 0; i < host->opt_count(host, opts, "headers"); i++)
        if (host->opt_string_at(host, opts, "headers", i)[0] != '/')
            return nv_fail(err, RUNG_ECONFIG, "nvrtc.headers",
                           "headers: \"%.100s\" is not an absolute path",
                           host->opt_string_at(host, opts, "headers", i));
    return RUNG_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static const char **copy_list(const struct rung_host *host, const struct rung_options *opts,
                              const char *name, uint32_t *n)
{
    *n = host->opt_count(host, opts, name);
    const char **list = calloc(*n + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < *n; i++)
        list[i] = host->opt_string_at(host, opts, name, i);
    return list;
}

static void write_settings(struct compiler *c, const struct rung_options *opts)
{
    const struct rung_host *host = c->host;
    const char *library = host->opt_string(host, opts, "library");
    struct nv_settings s = {.library = library ? library : "",
                            .std = host->opt_string(host, opts, "std"),
                            .ptx_limit = c->ptx_limit,
                            .log_limit = c->log_limit};
    s.options = copy_list(host, opts, "options", &s.n_options);
    s.headers = copy_list(host, opts, "headers", &s.n_headers);
    if (s.options && s.headers)
        nv_write_settings(&c->settings, &s);
    else
        c->settings.failed = true;
    free(s.options);
    free(s.headers);
}

static int32_t create(const struct rung_host *host, const struct rung_options *opts,
                      struct rung_error *err, void **self)
{
    struct compiler *c = calloc(1, sizeof(*c));
    if (!c)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory");
    c->host = host;
    c->wall_ms = (uint64_t)(host->opt_float(host, opts, "time_limit") * 1000);
    c->memory_bytes = (uint64_t)host->opt_int(host, opts, "memory_limit");
    c->ptx_limit = (uint64_t)host->opt_int(host, opts, "ptx_limit");
    c->log_limit = (uint64_t)host->opt_int(host, opts, "log_limit");
    write_settings(c, opts);
    if (c->settings.failed) {
        nv_free(&c->settings);
        free(c);
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory");
    }
    *self = c;
    return RUNG_OK;
}

static int32_t open_helper(struct compiler *c, struct rung_call *call)
{
    struct rung_text args = {c->settings.ptr, c->settings.len};
    if (c->helper)
        return RUNG_OK;
    return c->process->open(c->host, call, args, &c->helper);
}

static void close_helper(struct compiler *c)
{
    if (c->helper)
        c->process->close(c->host, c->helper);
    c->helper = NULL;
}

static int32_t start(void *self, struct rung_error *err)
{
    struct compiler *c = self;
    struct rung_call call = {.struct_size = sizeof(call), .error = err};
    c->process = c->host->get_extension(c->host, RUNG_HOST_PROCESS);
    if (!c->process)
        return nv_fail(err, RUNG_EUNSUPPORTED, "nvrtc.no_helper",
                       "this process offers no helper processes");
    return open_helper(c, &call);
}

static void stop(void *self)
{
    close_helper(self);
}

static void destroy(void *self)
{
    struct compiler *c = self;
    nv_free(&c->settings);
    free(c);
}

/* ---- Compiling ------------------------------------------------------------------------------ */

static int32_t check_request(const struct rung_compile_request *q, struct rung_error *err)
{
    const char *number = strchr(q->arch ? q->arch : "", '_');
    const char *digits = number ? number + 1 : "";
    size_t n = strspn(digits, "0123456789");
    if (n < 2 || n > 3 || digits[n + (digits[n] == 'a' || digits[n] == 'f')])
        return nv_fail(err, RUNG_EINVAL, "nvrtc.arch",
                       "architecture \"%.40s\" is not like compute_90 or sm_90a",
                       q->arch ? q->arch : "");
    if (q->format != RUNG_FORMAT_PTX && q->format != RUNG_FORMAT_CUBIN)
        return nv_fail(err, RUNG_EUNSUPPORTED, "nvrtc.format",
                       "NVRTC makes PTX and CUBIN, not format %" PRIu32, q->format);
    if (strcmp(q->bundle->language, "cuda"))
        return nv_fail(err, RUNG_EUNSUPPORTED, "nvrtc.language",
                       "NVRTC compiles \"cuda\", not \"%.40s\"", q->bundle->language);
    if (!q->bundle->n_files || q->bundle->entry >= q->bundle->n_files)
        return nv_fail(err, RUNG_EINVAL, "nvrtc.bundle", "the bundle has no entry file");
    return RUNG_OK;
}

/* A text of this plugin's own as the log of a failed compile. */
static int32_t fail_compile(struct compiler *c, struct rung_call *call,
                            struct rung_compile_result *out, const char *code, const char *text)
{
    size_t n = strlen(text);
    char *copy = c->host->alloc(c->host, call->arena, n + 1, 1);
    if (!copy)
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory");
    snprintf(out->code, sizeof(out->code), "%s", code);
    out->log = (struct rung_text){memcpy(copy, text, n), n};
    out->artifact = NULL;
    return RUNG_OK;
}

static int32_t read_response(struct compiler *c, struct rung_call *call,
                             const struct rung_helper_response *r, struct rung_compile_result *out)
{
    char text[512];
    switch (r->outcome) {
    case RUNG_HELPER_DONE:
        return nv_read_result(c->host, call, r->body, out);
    case RUNG_HELPER_TIMEOUT:
        snprintf(text, sizeof(text),
                 "The compiler did not end within %" PRIu64
                 " ms. Unroll less, nest fewer `#pragma unroll` loops "
                 "and templates, and keep per-thread arrays small.\n",
                 c->wall_ms);
        return fail_compile(c, call, out, "compile.timeout", text);
    case RUNG_HELPER_MEMORY:
        snprintf(text, sizeof(text),
                 "The compiler ran out of its %" PRIu64
                 " MiB of memory. Unroll less and use smaller templates.\n",
                 c->memory_bytes >> 20);
        return fail_compile(c, call, out, "compile.too_large", text);
    case RUNG_HELPER_TOO_LARGE:
        return fail_compile(
            c, call, out, "compile.too_large",
            "The compiled code is too large. Unroll less or use fewer template instances.\n");
    default:
        snprintf(text, sizeof(text),
                 "The compiler crashed on this source (%.200s). Write it more simply.\n",
                 r->detail.ptr);
        return fail_compile(c, call, out, "compile.error", text);
    }
}

/* Sends the request; a helper that was dead is started anew, once. */
static int32_t ask(struct compiler *c, struct rung_call *call,
                   const struct rung_helper_request *request, struct rung_helper_response *response)
{
    int32_t status = RUNG_EUNAVAILABLE;
    for (int attempt = 0; attempt < 2 && status == RUNG_EUNAVAILABLE; attempt++) {
        status = open_helper(c, call);
        if (status != RUNG_OK)
            return status;
        status = c->process->request(c->host, call, c->helper, request, response);
        if (status == RUNG_EUNAVAILABLE || status == RUNG_ETIMEOUT)
            close_helper(c);
    }
    if (status == RUNG_OK) /* of an attempt before */
        call->error->code = RUNG_OK;
    return status;
}

static int32_t compile(void *self, struct rung_call *call, const struct rung_compile_request *q,
                       struct rung_compile_result *out)
{
    struct compiler *c = self;
    struct nv_buffer body = {0};
    struct rung_helper_response response = {.struct_size = sizeof(response)};
    int32_t status = check_request(q, call->error);
    if (status != RUNG_OK)
        return status;
    nv_write_request(&body, q);
    if (body.failed) {
        nv_free(&body);
        return nv_fail(call->error, RUNG_ENOMEM, "", "out of memory for a compile request");
    }
    struct rung_helper_request request = {.struct_size = sizeof(request),
                                          .body = {body.ptr, body.len},
                                          .wall_ms = c->wall_ms,
                                          .memory_bytes = c->memory_bytes,
                                          .response_bytes =
                                              c->ptx_limit * 5 + c->log_limit + (4u << 20)};
    status = ask(c, call, &request, &response);
    nv_free(&body);
    return status != RUNG_OK ? status : read_response(c, call, &response, out);
}

/* ---- The plugin ----------------------------------------------------------------------------- */

static const void *get_extension(const char *id)
{
    return strcmp(id, RUNG_HELPER) ? NULL : &nv_helper_ops;
}

static const struct rung_compiler_ops ops = {.struct_size = sizeof(ops), .compile = compile};

static const struct rung_factory factory = {
    .struct_size = sizeof(factory),
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_COMPILER,
    .name = "nvrtc",
    .summary = "CUDA C++ to PTX and CUBIN with NVRTC, in a helper process that can open nothing.",
    .doc = "Compiles in a forked child under limits of time, memory and output, with all headers "
           "served from "
           "memory: the toolkit's device headers, stubs for the usual host headers, and "
           "directories that the option "
           "`headers` names. A kernel that the launch lines name and the source does not have is a "
           "plan.error.",
    .options = options,
    .ops = &ops,
    .validate = validate,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
    .get_extension = get_extension,
};

static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof(plugin),
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.compiler.nvrtc",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "see LICENSE",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
