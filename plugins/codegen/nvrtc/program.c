/* Compiling one program: see program.h. */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reading NV_STD takes longer than reading a small kernel. cuda::std is another namespace. */
static bool mentions(const char *text)
{
    static const char cuda[] = "cuda::";
    if (strstr(text, "namespace std"))
        return true;
    for (const char *p = text; (p = strstr(p, "std::")); p += 5)
        if (p - text < 6 || memcmp(p - 6, cuda, 6) != 0)
            return true;
    return false;
}

bool nv_mentions_std(const struct nv_request *request)
{
    for (uint32_t i = 0; i < request->n_files; i++)
        if (mentions(request->files[i].text.ptr))
            return true;
    return false;
}

void nv_options_make(const struct nv_settings *s, const struct nv_request *request, bool with_std,
                     struct nv_options *out)
{
    int n = 0;
    snprintf(out->arch, sizeof(out->arch), "--gpu-architecture=%s", request->arch);
    snprintf(out->std, sizeof(out->std), "-std=%s", s->std);
    out->list[n++] = out->arch;
    out->list[n++] = out->std;
    out->list[n++] = "-default-device";
    out->list[n++] = "-lineinfo";
    out->list[n++] = "--pre-include=" NV_PRELUDE;
    if (with_std)
        out->list[n++] = "--pre-include=" NV_STD;
    if (request->want_cubin)
        out->list[n++] = "-Xptxas=-v";
    for (uint32_t i = 0; i < s->n_options && n < NV_MAX_OPTIONS; i++)
        out->list[n++] = s->options[i];
    out->n = n;
}

char *nv_symbol_address(const char *expression)
{
    char *address = malloc(strlen(expression) + 2);
    if (address) {
        address[0] = '&';
        memcpy(address + 1, expression, strlen(expression) + 1);
    }
    return address;
}

/* malloc'ed; NULL when memory is out. */
static char *fetch_log(const struct nv_job *job)
{
    const struct nv_api *api = &job->tools->api;
    size_t size = 0;
    if (api->log_size(job->program, &size) != NV_SUCCESS)
        size = 0;
    char *log = calloc(size + 1, 1);
    if (log && size && api->log(job->program, log) != NV_SUCCESS)
        log[0] = '\0';
    return log;
}

static int32_t create(struct nv_job *job, const struct nv_includes *inc, struct rung_error *err)
{
    const struct nv_api *api = &job->tools->api;
    const struct nv_request *q = job->request;
    const struct nv_file *entry = &q->files[q->entry];
    int result =
        api->create(&job->program, entry->text.ptr, entry->path, inc->n, inc->texts, inc->names);
    for (uint32_t i = 0; i < q->n_expressions && result == NV_SUCCESS; i++)
        result = api->add_name(job->program, q->expressions[i]);
    for (uint32_t i = 0; i < q->n_symbols && result == NV_SUCCESS; i++) {
        char *address = nv_symbol_address(q->symbols[i]);
        result = address ? api->add_name(job->program, address) : NV_OUT_OF_MEMORY;
        free(address);
    }
    if (result != NV_SUCCESS)
        return nv_fail(err, result == NV_OUT_OF_MEMORY ? RUNG_ENOMEM : RUNG_EINTERNAL,
                       "nvrtc.program", "NVRTC can't take the program: %s",
                       api->error_string(result));
    return RUNG_OK;
}

static int32_t run(struct nv_job *job, const struct nv_options *options, struct rung_error *err)
{
    uint64_t start = now_ns();
    job->result = job->tools->api.compile(job->program, options->n, options->list);
    job->compile_ns += now_ns() - start;
    job->log = fetch_log(job);
    return job->log ? RUNG_OK
                    : nv_fail(err, RUNG_ENOMEM, "", "out of memory for the compiler's log");
}

/*
 * Whether a compile with a precompiled header may have gone wrong because of it: its heap is
 * bounded, and the compiler says when it can't use the file. What the source itself makes of this
 * costs it only the time of a second compile.
 */
static bool blames_header(const struct nv_job *job)
{
    return job->result == NV_OUT_OF_MEMORY || strstr(job->log, "precompiled header") ||
           strcasestr(job->log, "catastrophic error");
}

/* With a precompiled header when there is one, and once more without when that did not work. */
static int32_t run_shared(struct nv_job *job, const struct nv_includes *inc,
                          struct nv_options *options, struct rung_error *err)
{
    char use[64];
    int n = options->n;
    if (!nv_pch_use(job->tools, job->request, options, use, sizeof(use)))
        return run(job, options, err);
    options->list[options->n++] = use;
    options->list[options->n++] = "--pch-messages=false";
    int32_t status = run(job, options, err);
    if (status != RUNG_OK || !blames_header(job))
        return status;
    options->n = n;
    free(job->log);
    job->tools->api.destroy(&job->program);
    status = create(job, inc, err);
    return status == RUNG_OK ? run(job, options, err) : status;
}

int32_t nv_job_compile(struct nv_job *job, bool may_share, struct rung_error *err)
{
    struct nv_includes inc = {0};
    struct nv_options options;
    bool std = nv_mentions_std(job->request);
    nv_includes_collect(&job->tools->store, job->request, std, &inc);
    if (inc.failed)
        return nv_fail(err, RUNG_ENOMEM, "", "out of memory for headers");
    nv_options_make(&job->tools->settings, job->request, std, &options);
    int32_t status = create(job, &inc, err);
    if (status == RUNG_OK)
        status = may_share ? run_shared(job, &inc, &options, err) : run(job, &options, err);
    if (status != RUNG_OK)
        return status;
    if (job->result == NV_OUT_OF_MEMORY ||
        (job->result != NV_SUCCESS && strstr(job->log, "catastrophic error: out of memory")))
        return nv_fail(err, RUNG_ENOMEM, "", "the compiler ran out of memory");
    if (job->result == NV_INVALID_OPTION)
        return nv_fail(err, RUNG_EUNSUPPORTED, "nvrtc.option", "%s refuses %s or an option: %.400s",
                       job->tools->compiler, job->request->arch, job->log);
    return RUNG_OK;
}
