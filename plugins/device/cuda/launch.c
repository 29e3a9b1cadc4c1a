/* Launches and their faults. */
#include "cuda.h"

#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_SHARED = 48 << 10,
    PORTABLE_CLUSTER = 8,
    PLAIN_ALIGNMENT = 16,
    MOST_POINTERS = 64,
};

/*
 * More than 48 KiB of shared memory, static and dynamic, must be asked for (CUDA programming guide,
 * 9.0).
 */
static cu_result allow_shared(struct cuda *self, struct cuda_kernel *k, const struct rung_launch *l)
{
    uint32_t bytes = l->shared_bytes;
    if ((uint64_t)bytes + l->kernel->static_shared <= DEFAULT_SHARED || bytes <= k->shared)
        return CU_OK;
    cu_result result =
        self->driver.function_set(k->function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)bytes);
    if (result == CU_OK)
        k->shared = bytes;
    return result == CU_INVALID_VALUE ? CU_LAUNCH_OUT_OF_RESOURCES : result;
}

static uint32_t cluster_blocks(const struct rung_launch *l)
{
    return l->cluster.x * l->cluster.y * l->cluster.z;
}

/* Clusters of more than 8 blocks run on some GPUs only and must be asked for. */
static cu_result allow_cluster(struct cuda *self, struct cuda_kernel *k,
                               const struct rung_launch *l)
{
    if (cluster_blocks(l) <= PORTABLE_CLUSTER || k->wide)
        return CU_OK;
    cu_result result = self->driver.function_set(k->function, CU_FUNC_NON_PORTABLE_CLUSTER, 1);
    k->wide = result == CU_OK;
    return result;
}

static struct cu_launch_config config_of(const struct cuda *self, const struct rung_launch *l,
                                         struct cu_launch_attribute attributes[2])
{
    struct cu_launch_config c = {.grid = {l->grid.x, l->grid.y, l->grid.z},
                                 .block = {l->block.x, l->block.y, l->block.z},
                                 .shared = l->shared_bytes,
                                 .stream = self->stream,
                                 .attributes = attributes};
    if (cluster_blocks(l))
        attributes[c.n_attributes++] = (struct cu_launch_attribute){
            .id = CU_LAUNCH_CLUSTER, .value.cluster = {l->cluster.x, l->cluster.y, l->cluster.z}};
    if (l->flags & RUNG_LAUNCH_COOPERATIVE)
        attributes[c.n_attributes++] =
            (struct cu_launch_attribute){.id = CU_LAUNCH_COOPERATIVE, .value.cooperative = 1};
    return c;
}

/* ---- Parameters ---- */

/*
 * Parameters aligned to more than 16 bytes (tensor maps) lie elsewhere in a CUBIN than PTX says:
 * its block of parameters starts at 0x210 on some GPUs, so that one of alignment 64 comes 48 bytes
 * in. Where they lie is for the driver to know: it gets a pointer to each.
 */
static int is_aligned_wide(const struct rung_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_params; i++)
        if (kernel->params[i].alignment > PLAIN_ALIGNMENT)
            return 1;
    return 0;
}

/* The driver reads as many bytes behind each pointer as the code says: the artifact must agree. */
static int agrees(struct cuda *self, struct cuda_kernel *k, const struct rung_kernel *kernel)
{
    size_t offset, size = 0;
    if (k->known || !self->driver.function_param)
        return 1;
    for (uint32_t i = 0; i < kernel->n_params; i++)
        if (self->driver.function_param(k->function, i, &offset, &size) != CU_OK ||
            size != kernel->params[i].size)
            return 0;
    k->known = self->driver.function_param(k->function, kernel->n_params, &offset, &size) != CU_OK;
    return k->known;
}

/* Pointers into the launch's block. */
static cu_result point(struct cuda *self, struct cuda_kernel *k, const struct rung_launch *l,
                       void *pointers[MOST_POINTERS])
{
    if (l->kernel->n_params > MOST_POINTERS || !agrees(self, k, l->kernel))
        return CU_INVALID_VALUE;
    for (uint32_t i = 0; i < l->kernel->n_params; i++)
        pointers[i] = (char *)(uintptr_t)l->params + l->kernel->params[i].offset;
    return CU_OK;
}

static cu_result launch_kernel(struct cuda *self, struct cuda_kernel *k,
                               const struct rung_launch *l)
{
    struct cu_launch_attribute attributes[2];
    void *pointers[MOST_POINTERS];
    size_t bytes = l->param_bytes;
    void *block[] = {(void *)(uintptr_t)1,
                     (void *)(uintptr_t)l->params, /* CU_LAUNCH_PARAM_BUFFER_POINTER */
                     (void *)(uintptr_t)2, &bytes, /* CU_LAUNCH_PARAM_BUFFER_SIZE */
                     NULL};
    int plain = !cluster_blocks(l) && !(l->flags & RUNG_LAUNCH_COOPERATIVE);
    /* A recorded launch with attributes does not take the packed block either. */
    void **params = !plain || is_aligned_wide(l->kernel) ? pointers : NULL;
    void **extra = params || !bytes ? NULL : block;
    cu_result result = allow_shared(self, k, l);
    if (result == CU_OK)
        result = allow_cluster(self, k, l);
    if (result == CU_OK && params)
        result = point(self, k, l, pointers);
    if (result != CU_OK)
        return result;
    if (plain)
        return self->driver.launch(k->function, l->grid.x, l->grid.y, l->grid.z, l->block.x,
                                   l->block.y, l->block.z, l->shared_bytes, self->stream, params,
                                   extra);
    struct cu_launch_config config = config_of(self, l, attributes);
    return self->driver.launch_ex(&config, k->function, params, extra);
}

/* How many blocks are resident at once, for one who launched too many. */
static void say_what_fits(struct cuda *self, const struct cuda_kernel *k,
                          const struct rung_launch *l, struct rung_fault *fault)
{
    uint32_t threads = l->block.x * l->block.y * l->block.z;
    uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    int each = 0;
    if (self->driver.resident_blocks(&each, k->function, (int)threads, l->shared_bytes) != CU_OK)
        return;
    snprintf(fault->message, sizeof fault->message,
             "a cooperative launch of %llu blocks, but only %llu of them (%d on each of %u "
             "multiprocessors) fit at once: launch at most as many (sm_count in the grid) and let "
             "each block loop over the work",
             (unsigned long long)blocks, (unsigned long long)each * self->info.sm_count, each,
             self->info.sm_count);
}

/* 0 with a fault when this GPU has no such launches. */
static int supported(const struct cuda *self, const struct rung_launch *l, struct rung_fault *fault)
{
    int lacks_cluster = cluster_blocks(l) && !self->clusters;
    int lacks_barrier = (l->flags & RUNG_LAUNCH_COOPERATIVE) && !self->cooperative;
    if (!lacks_cluster && !lacks_barrier)
        return 1;
    snprintf(fault->code, sizeof fault->code, "device.unsupported");
    snprintf(fault->message, sizeof fault->message, "%s has no %s", self->name,
             lacks_cluster ? "clusters of blocks" : "cooperative launches");
    return 0;
}

int32_t cuda_launch(void *ptr, struct rung_call *call, const struct rung_launch *l,
                    struct rung_fault *fault)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter_queue(self, call);
    if (status != RUNG_OK)
        return status;
    if (l->counters || l->sample_blocks) {
        call->error->code = RUNG_EUNSUPPORTED;
        snprintf(call->error->message, sizeof call->error->message, "this device has no counters");
        return RUNG_EUNSUPPORTED;
    }
    struct cuda_kernel *k = NULL;
    for (uint32_t i = 0; i < l->module->n_kernels && !k; i++)
        if (strcmp(l->module->kernels[i].symbol, l->kernel->symbol) == 0)
            k = &l->module->kernels[i];
    if (supported(self, l, fault)) {
        cu_result result = k ? CU_OK : CU_NOT_FOUND;
        if (k && self->recording && !cuda_graph_uses(self, l->module))
            result = CU_OUT_OF_MEMORY;
        if (result == CU_OK)
            result = launch_kernel(self, k, l);
        l->module->launched |= !self->recording; /* a replay runs it */
        cuda_fault(self, result, "launch", fault);
        if (result == CU_COOPERATIVE_TOO_LARGE)
            say_what_fits(self, k, l, fault);
    }
    if (fault->code[0] && !fault->kernel[0])
        snprintf(fault->kernel, sizeof fault->kernel, "%s", l->kernel->expression);
    return RUNG_OK;
}

int32_t cuda_sync(void *ptr, struct rung_call *call, struct rung_fault *fault)
{
    struct cuda *self = ptr;
    cu_result result;
    int32_t status = cuda_enter(self, call);
    if (status == RUNG_OK)
        status = cuda_wait(self, call, &result);
    if (status == RUNG_OK)
        cuda_fault(self, result, "the kernel", fault);
    return status;
}
