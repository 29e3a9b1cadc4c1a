/*
 * reference "cuda": a naive kernel of the user's, `extern "C" __global__ void reference(struct
 * rung_task t)`, run on the worker's device in buffers of its own, after the candidate, in float64.
 * It is launched once with a fixed grid and loops over its elements by the stride of the grid.
 */
#include "own.h"

#include <rung/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, MAX_WORDS = 512, BLOCKS_A_SM = 4 };

struct cuda_reference {
    const struct rung_host *host;
    struct own_settings settings;
    struct own_memory memory;
    char file[PATH_BYTES];
    uint32_t threads;
    char *built_for;                          /* source that the modules were made of; NULL: none */
    const struct rung_artifact *artifacts[2]; /* float64, float32 */
    struct rung_module *modules[2];           /* the second may be NULL */
};

/* The device with its functions. */
struct device {
    const struct rung_device_ops *ops;
    void *self;
    const struct rung_device_info *info;
};

/* 0 where there is none, such as in the orchestrator. */
static int find_device(const struct cuda_reference *self, struct device *out)
{
    const struct rung_host_device *service =
        self->host->get_extension(self->host, RUNG_HOST_DEVICE);
    *out = (struct device){.ops = NULL};
    if (service)
        out->ops = service->ops(self->host, &out->self);
    if (out->ops)
        out->info = service->info(self->host);
    return out->ops != NULL;
}

/* ---- Building ---- */

static void forget_modules(struct cuda_reference *self, const struct device *d)
{
    for (int i = 0; i < 2; i++) {
        if (self->modules[i])
            d->ops->unload(d->self, self->modules[i]);
        self->modules[i] = NULL;
    }
    free(self->built_for);
    self->built_for = NULL;
}

static int32_t load(struct cuda_reference *self, struct rung_call *call, const char *whole,
                    int single)
{
    static const char *const kernels[] = {"reference", NULL};
    const struct rung_host_device *service =
        self->host->get_extension(self->host, RUNG_HOST_DEVICE);
    size_t n = strlen(whole) + 64;
    char *text = self->host->alloc(self->host, call->arena, n, 1);
    if (!text)
        return own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no memory");
    snprintf(text, n, "%s%s", single ? "#define RUNG_SINGLE 1\n" : "", whole);
    return service->load(self->host, call, self->file, (struct rung_text){text, strlen(text)},
                         kernels, &self->artifacts[single], &self->modules[single]);
}

/* Header, then the user's text with its own line numbers. */
static const char *whole_source(struct cuda_reference *self, struct rung_call *call,
                                const struct rung_task *task, struct rung_text source)
{
    const char *header = own_header(self->host, call, task);
    size_t n = header ? strlen(header) + source.len + PATH_BYTES + 32 : 0;
    char *text = header ? self->host->alloc(self->host, call->arena, n, 1) : NULL;
    if (text)
        snprintf(text, n, "%s#line 1 \"%s\"\n%s", header, self->file, source.ptr);
    return text;
}

static int32_t build(struct cuda_reference *self, struct rung_call *call,
                     const struct rung_task *task)
{
    struct rung_text source;
    struct device d;
    int32_t status = own_read_source(self->host, call, self->file, &source);
    if (status != RUNG_OK || !find_device(self, &d))
        return status;
    const char *whole = whole_source(self, call, task, source);
    if (!whole)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.task",
                        "the task has too many names for a CUDA reference");
    if (self->built_for && strcmp(self->built_for, whole) == 0)
        return RUNG_OK;
    forget_modules(self, &d);
    status = load(self, call, whole, 0);
    if (status == RUNG_EUNSUPPORTED)
        call->error->code = status = RUNG_ECONFIG; /* the file is the user's to mend */
    if (status != RUNG_OK)
        return status;
    if (load(self, call, whole, 1) != RUNG_OK) { /* the estimate does without */
        self->modules[1] = NULL;
        call->error->code = RUNG_OK;
    }
    self->built_for = strdup(whole);
    return self->built_for ? RUNG_OK
                           : own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no memory");
}

static int32_t check(void *ptr, struct rung_call *call, const struct rung_task *task)
{
    struct device d;
    struct cuda_reference *self = ptr;
    struct rung_text source;
    /* In an executor the compiler has started by now; elsewhere only the file is looked at. */
    return find_device(self, &d) ? build(self, call, task)
                                 : own_read_source(self->host, call, self->file, &source);
}

/* ---- Computing ---- */

struct launch {
    struct cuda_reference *self;
    struct rung_call *call;
    const struct own_io *io;
    struct device d;
    int single;
    struct rung_buffer **buffers; /* one a tensor */
    float *narrow;                /* of one tensor at a time, for the float32 form */
};

static uint64_t element_bytes(const struct launch *l)
{
    return l->single ? sizeof(float) : sizeof(double);
}

static int32_t upload(struct launch *l, uint32_t i)
{
    uint64_t n = l->io->n[i], bytes = n * element_bytes(l);
    int32_t status = l->d.ops->alloc(l->d.self, l->call, bytes ? bytes : 1, 256,
                                     l->io->task->tensors[i].name, &l->buffers[i]);
    for (uint64_t k = 0; l->single && k < n; k++)
        l->narrow[k] = (float)l->io->v[i][k];
    if (status == RUNG_OK && bytes)
        status = l->d.ops->write(l->d.self, l->call, l->buffers[i], 0,
                                 l->single ? (const void *)l->narrow : l->io->v[i], bytes);
    return status;
}

static int32_t download(struct launch *l, uint32_t i)
{
    uint64_t n = l->io->n[i], bytes = n * element_bytes(l);
    void *to = l->single ? (void *)l->narrow : l->io->v[i];
    if (!bytes || (l->io->task->tensors[i].role & ~1u) != RUNG_ROLE_OUTPUT)
        return RUNG_OK;
    int32_t status = l->d.ops->read(l->d.self, l->call, l->buffers[i], 0, to, bytes);
    for (uint64_t k = 0; status == RUNG_OK && l->single && k < n; k++)
        l->io->v[i][k] = (double)l->narrow[k];
    return status;
}

/* struct rung_task by value: 8 bytes a member, in the header's order. */
static uint32_t pack(const struct launch *l, uint64_t words[MAX_WORDS])
{
    const struct rung_task *task = l->io->task;
    uint32_t k = 0;
    for (uint32_t i = 0; i < task->n_dims; i++)
        words[k++] = (uint64_t)l->io->dims[i];
    for (uint32_t i = 0; i < task->n_params; i++, k++)
        if (task->params[i].dtype == RUNG_I64)
            words[k] = (uint64_t)task->params[i].i64;
        else
            memcpy(&words[k], &task->params[i].f64, 8);
    for (uint32_t i = 0; i < task->n_tensors; i++)
        words[k++] = l->d.ops->address(l->d.self, l->buffers[i]);
    return k * 8;
}

static int32_t run_kernel(struct launch *l)
{
    uint64_t words[MAX_WORDS];
    const struct rung_artifact *artifact = l->self->artifacts[l->single];
    struct rung_fault fault = {.struct_size = sizeof fault};
    uint32_t bytes = pack(l, words);
    if (artifact->kernels[0].param_bytes != bytes)
        return own_fail(l->call->error, RUNG_ECONFIG, "reference.kernel",
                        "%s: the kernel `reference` must take one argument, struct rung_task",
                        l->self->file);
    struct rung_launch launch = {.struct_size = sizeof launch,
                                 .module = l->self->modules[l->single],
                                 .kernel = &artifact->kernels[0],
                                 .grid = {BLOCKS_A_SM * l->d.info->sm_count, 1, 1},
                                 .block = {l->self->threads, 1, 1},
                                 .params = words,
                                 .param_bytes = bytes};
    int32_t status = l->d.ops->launch(l->d.self, l->call, &launch, &fault);
    if (status == RUNG_OK && !fault.code[0])
        status = l->d.ops->sync(l->d.self, l->call, &fault);
    if (status == RUNG_OK && fault.code[0])
        status = own_fail(l->call->error, RUNG_EINTERNAL, "reference.kernel",
                          "%s, the reference's own kernel: %s: %.600s", l->self->file, fault.code,
                          fault.message);
    return status;
}

static int32_t run_all(struct launch *l)
{
    uint32_t n = l->io->task->n_tensors;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < n && status == RUNG_OK; i++)
        status = upload(l, i);
    if (status == RUNG_OK)
        status = run_kernel(l);
    for (uint32_t i = 0; i < n && status == RUNG_OK; i++)
        status = download(l, i);
    return status;
}

static int32_t compute(void *ptr, struct rung_call *call, const struct own_io *io, int single)
{
    struct launch l = {.self = ptr, .call = call, .io = io, .single = single};
    const struct rung_task *task = io->task;
    uint64_t most = 1;
    if (single && !l.self->modules[1])
        return RUNG_EUNSUPPORTED;
    for (uint32_t i = 0; i < task->n_tensors; i++)
        most = io->n[i] > most ? io->n[i] : most;
    l.buffers = calloc(task->n_tensors + 1, sizeof(struct rung_buffer *));
    l.narrow = single ? malloc(most * sizeof *l.narrow) : NULL;
    int32_t status = RUNG_OK;
    if (!l.buffers || (single && !l.narrow))
        status = own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no memory");
    else if (find_device(l.self, &l.d))
        status = run_all(&l);
    for (uint32_t i = 0; l.buffers && i < task->n_tensors; i++)
        if (l.buffers[i])
            l.d.ops->free(l.d.self, l.buffers[i]);
    free(l.buffers);
    free(l.narrow);
    return status;
}

static int32_t evaluate(void *ptr, struct rung_call *call,
                        const struct rung_reference_request *request,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    struct cuda_reference *self = ptr;
    struct device d;
    const struct rung_task *task = request->task;
    if (!find_device(self, &d))
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.device",
                        "there is no device here");
    if (task->n_dims + task->n_params + task->n_tensors > MAX_WORDS)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.task",
                        "the task has more than %d names", MAX_WORDS);
    int32_t status = build(self, call, task);
    if (status != RUNG_OK)
        return status;
    return own_evaluate(&self->settings, &self->memory, call, request, compute, self, outputs,
                        n_outputs);
}

/* ---- Life ---- */

static void destroy(void *ptr)
{
    struct cuda_reference *self = ptr;
    struct device d;
    if (self->built_for && find_device(self, &d))
        forget_modules(self, &d);
    free(self->built_for);
    own_forget(&self->memory);
    free(self);
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    struct cuda_reference *self = calloc(1, sizeof *self);
    if (!self)
        return own_fail(err, RUNG_ENOMEM, "reference.memory", "out of memory");
    self->host = host;
    self->settings = own_settings_read(host, options);
    self->threads = (uint32_t)host->opt_int(host, options, "threads");
    snprintf(self->file, sizeof self->file, "%s", host->opt_string(host, options, "file"));
    *out = self;
    return RUNG_OK;
}

static const struct rung_option option_file = {
    .struct_size = sizeof option_file,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_REQUIRED | RUNG_OPT_AFFECTS_RESULT,
    .name = "file",
    .summary =
        "CUDA file with `extern \"C\" __global__ void reference(struct rung_task t)`; workers "
        "must see it too."};
static const struct rung_option option_threads = {.struct_size = sizeof option_threads,
                                                  .type = RUNG_OPT_INT,
                                                  .name = "threads",
                                                  .default_text = "256",
                                                  .unit = "threads",
                                                  .summary =
                                                      "Threads a block; there are 4 blocks a "
                                                      "multiprocessor.",
                                                  .min = 1,
                                                  .max = 1024};
static const struct rung_option *const options[] = {&option_file,
                                                    &option_threads,
                                                    &own_option_trials,
                                                    &own_option_safety,
                                                    &own_option_rtol,
                                                    &own_option_atol,
                                                    NULL};

static const struct rung_reference_ops ops = {
    .struct_size = sizeof ops, .check = check, .evaluate = evaluate, .work = own_work};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_REFERENCE,
    .name = "cuda",
    .summary = "A naive CUDA kernel of the user's, in float64",
    .doc = "The file defines `extern \"C\" __global__ void reference(struct rung_task t)`. The "
           "struct has a member for\nevery dim, param and tensor of the task (t.rows, t.scale, "
           "t.x); tensors are arrays of `real`, dense and\nrow-major. `real` is double; written "
           "with it, the kernel is also compiled for float, which sharpens the\nerror bounds. "
           "The grid is fixed: loop from the thread's index by the stride of the grid.",
    .options = options,
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "org.rung.reference.cuda",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
