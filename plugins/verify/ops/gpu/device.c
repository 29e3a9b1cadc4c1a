/* The device behind an evaluation: memory, kernels, launches. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(RUNG_F64 == 1 && RUNG_F32 == 2 && RUNG_F16 == 3 && RUNG_BF16 == 4 && RUNG_I8 == 16 &&
                   RUNG_U8 == 17 && RUNG_I32 == 18 && RUNG_I64 == 19 && RUNG_BOOL == 20 &&
                   RUNG_MAX_DIMS == 8,
               "prelude.cuh has these numbers");

/* All sources, one after the other. */
extern const char ops_gpu_source[];
extern const unsigned long long ops_gpu_source_size;

int32_t ops_gpu_cannot(struct ops_gpu *g, const char *what)
{
    return ops_fail(&g->ev->who, RUNG_EUNSUPPORTED, 0, "%s on the device", what);
}

static int32_t faulted(struct ops_gpu *g, const char *what, int32_t status,
                       const struct rung_fault *fault)
{
    if (status || !fault->code[0])
        return status;
    return ops_fail(&g->ev->who, RUNG_EINTERNAL, 0, "%s: %s: %s", what, fault->code,
                    fault->message);
}

/* ---- Memory ---- */

int32_t ops_gpu_alloc(struct ops_gpu *g, uint64_t bytes, struct rung_buffer **out)
{
    *out = NULL;
    return g->dry ? RUNG_OK
                  : g->ops->alloc(g->self, g->call, bytes ? bytes : 1, 256, "reference", out);
}

void ops_gpu_free(struct ops_gpu *g, struct rung_buffer *buffer)
{
    if (buffer)
        g->ops->free(g->self, buffer);
}

uint64_t ops_gpu_address(struct ops_gpu *g, struct rung_buffer *buffer)
{
    return buffer ? g->ops->address(g->self, buffer) : 0;
}

int32_t ops_gpu_write(struct ops_gpu *g, struct rung_buffer *to, const void *from, uint64_t bytes)
{
    return g->dry ? RUNG_OK : g->ops->write(g->self, g->call, to, 0, from, bytes);
}

int32_t ops_gpu_data_new(struct ops_gpu *g, uint64_t n, int with_errors, struct ops_gpu_data **out)
{
    struct ops_gpu_data *data = calloc(1, sizeof *data);
    *out = NULL;
    if (!data)
        return ops_no_memory(&g->ev->who);
    data->refs = 1;
    data->n = n;
    int32_t status = ops_gpu_alloc(g, n * sizeof(double), &data->v);
    if (!status && with_errors)
        status = ops_gpu_alloc(g, n * sizeof(double), &data->e);
    if (status)
        ops_gpu_data_drop(g, data);
    else
        *out = data;
    return status;
}

void ops_gpu_data_drop(struct ops_gpu *g, struct ops_gpu_data *data)
{
    if (!data || --data->refs)
        return;
    ops_gpu_free(g, data->v);
    ops_gpu_free(g, data->e);
    free(data);
}

struct ops_gpu_tensor ops_gpu_tensor_of(struct ops_gpu *g, const struct ops_gpu_data *data)
{
    return (struct ops_gpu_tensor){ops_gpu_address(g, data->v), ops_gpu_address(g, data->e)};
}

/* ---- Kernels ---- */

static int32_t want(struct ops_gpu *g, const char *kernel)
{
    struct ops_gpu_module *w = &g->wanted;
    for (uint32_t i = 0; i < w->n; i++)
        if (!strcmp(w->names[i], kernel))
            return RUNG_OK;
    if (w->n == OPS_GPU_MOST_KERNELS || strlen(kernel) >= OPS_GPU_NAME)
        return ops_gpu_cannot(g, "too many kernels");
    memcpy(w->names[w->n++], kernel, strlen(kernel) + 1);
    return RUNG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int32_t ops_gpu_load(struct ops_gpu *g)
{
    struct ops_gpu_module *m = g->loaded;
    const struct rung_text source = {ops_gpu_source, ops_gpu_source_size};
    qsort(g->wanted.names, g->wanted.n, OPS_GPU_NAME, by_name);
    if (m->module && m->n == g->wanted.n &&
        !memcmp(m->names, g->wanted.names, (size_t)m->n * OPS_GPU_NAME))
        return RUNG_OK;
    ops_gpu_unload(g->ev->who.host, m);
    *m = g->wanted;
    for (uint32_t i = 0; i < m->n; i++)
        m->list[i] = m->names[i];
    m->list[m->n] = NULL;
    int32_t status = g->service->load(g->ev->who.host, g->call, "the reference's kernels", source,
                                      m->list, &m->artifact, &m->module);
    if (status)
        m->module = NULL;
    return status;
}

void ops_gpu_unload(const struct rung_host *host, struct ops_gpu_module *m)
{
    const struct rung_host_device *service = host->get_extension(host, RUNG_HOST_DEVICE);
    void *self = NULL;
    const struct rung_device_ops *ops = service ? service->ops(host, &self) : NULL;
    if (m->module && ops)
        ops->unload(self, m->module);
    *m = (struct ops_gpu_module){.n = 0};
}

static const struct rung_kernel *find(const struct ops_gpu_module *m, const char *kernel)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (!strcmp(m->names[i], kernel))
            return &m->artifact->kernels[i];
    return NULL;
}

int32_t ops_gpu_launch(struct ops_gpu *g, const char *kernel, uint64_t blocks, uint32_t threads,
                       const void *args, uint32_t bytes)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_launch launch = {.struct_size = sizeof launch,
                                 .grid = {(uint32_t)blocks, 1, 1},
                                 .block = {threads, 1, 1},
                                 .params = args,
                                 .param_bytes = bytes};
    if (blocks > INT32_MAX)
        return ops_gpu_cannot(g, "a value of so many parts");
    if (g->dry)
        return want(g, kernel);
    launch.module = g->loaded->module;
    launch.kernel = find(g->loaded, kernel);
    if (!launch.kernel || launch.kernel->param_bytes != bytes)
        return ops_fail(&g->ev->who, RUNG_EINTERNAL, 0,
                        "kernel %s does not take the parameters that it should", kernel);
    return faulted(g, kernel, g->ops->launch(g->self, g->call, &launch, &fault), &fault);
}

int32_t ops_gpu_each(struct ops_gpu *g, const char *kernel, uint64_t n, const void *args,
                     uint32_t bytes)
{
    uint64_t blocks = (n + OPS_GPU_THREADS - 1) / OPS_GPU_THREADS;
    uint64_t most = 32 * (uint64_t)(g->info->sm_count ? g->info->sm_count : 16);
    return ops_gpu_launch(g, kernel, blocks < most ? blocks : most, OPS_GPU_THREADS, args, bytes);
}

/* ---- The flag ---- */

int32_t ops_gpu_flag_start(struct ops_gpu *g, uint64_t *address)
{
    static const uint32_t zero = 0;
    *address = ops_gpu_address(g, g->flag);
    return g->dry ? RUNG_OK
                  : g->ops->fill(g->self, g->call, g->flag, 0, sizeof zero, &zero, sizeof zero, 1);
}

int32_t ops_gpu_flag_read(struct ops_gpu *g, int *set)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    uint32_t flag = 1;
    int32_t status = RUNG_OK;
    if (!g->dry)
        status = faulted(g, "reference", g->ops->sync(g->self, g->call, &fault), &fault);
    if (!status && !g->dry)
        status = g->ops->read(g->self, g->call, g->flag, 0, &flag, sizeof flag);
    *set = flag != 0;
    return status;
}

/* ---- Life ---- */

int32_t ops_gpu_open(struct ops_gpu *g, struct ops_eval *ev, struct ops_gpu_module *loaded)
{
    const struct rung_host *host = ev->who.host;
    *g = (struct ops_gpu){.ev = ev, .call = ev->who.call, .loaded = loaded};
    g->service = host->get_extension(host, RUNG_HOST_DEVICE);
    g->ops = g->service ? g->service->ops(host, &g->self) : NULL;
    g->info = g->ops ? g->service->info(host) : NULL;
    if (!g->info)
        return ops_gpu_cannot(g, "no evaluation");
    return ops_gpu_alloc(g, sizeof(uint32_t), &g->flag);
}

void ops_gpu_close(struct ops_gpu *g)
{
    ops_gpu_free(g, g->flag);
    g->flag = NULL;
}
