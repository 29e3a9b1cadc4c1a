/* Modules, launches and their faults. */
#include "cuda.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 2048, DEFAULT_SHARED = 48 << 10, MAX_CODE = 1 << 30 };

struct kernel {
    char *symbol;
    cu_function function;
    uint32_t shared; /* dynamic bytes that were allowed so far */
};

struct rung_module {
    cu_module module;
    uint32_t n_kernels;
    struct kernel kernels[];
};

/* The driver takes no length, so a CUBIN must at least hold the tables that its header names. */
static int cubin_is_whole(const void *bytes, uint64_t n)
{
    Elf64_Ehdr h;
    if (n < sizeof h)
        return 0;
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    if (h.e_shoff > n || (uint64_t)h.e_shnum * sizeof(Elf64_Shdr) > n - h.e_shoff)
        return 0;
    for (uint32_t i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, (const char *)bytes + h.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type != SHT_NOBITS && (s.sh_offset > n || s.sh_size > n - s.sh_offset))
            return 0;
    }
    return 1;
}

static cu_result load_one(struct cuda *self, const struct rung_code *code, cu_module *out,
                          char *log)
{
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    log[0] = 0;
    if (!code->bytes || code->n_bytes > MAX_CODE)
        return CU_INVALID_IMAGE;
    if (code->format == RUNG_FORMAT_CUBIN && !cubin_is_whole(code->bytes, code->n_bytes))
        return CU_INVALID_IMAGE;
    char *copy = malloc(code->n_bytes + 1); /* PTX must end in NUL */
    if (!copy)
        return CU_OUT_OF_MEMORY;
    memcpy(copy, code->bytes, code->n_bytes);
    copy[code->n_bytes] = 0;
    cu_result result = self->driver.module_load(out, copy, 2, options, values);
    free(copy);
    log[LOG_BYTES - 1] = 0;
    return result;
}

/* CUBIN first; PTX, which the driver compiles, where none of them suits this GPU. */
static cu_result load_any(struct cuda *self, const struct rung_artifact *artifact, cu_module *out,
                          char *log)
{
    static const uint32_t formats[] = {RUNG_FORMAT_CUBIN, RUNG_FORMAT_PTX};
    cu_result result = CU_NO_BINARY_FOR_GPU;
    for (int f = 0; f < 2; f++)
        for (uint32_t i = 0; i < artifact->n_codes; i++) {
            if (artifact->codes[i].format != formats[f])
                continue;
            result = load_one(self, &artifact->codes[i], out, log);
            if (result == CU_OK)
                return CU_OK;
        }
    return result;
}

static void module_free(struct cuda *self, struct rung_module *m)
{
    if (m->module && !self->dead)
        self->driver.module_unload(m->module);
    for (uint32_t i = 0; i < m->n_kernels; i++)
        free(m->kernels[i].symbol);
    free(m);
}

static cu_result find_kernels(struct cuda *self, const struct rung_artifact *artifact,
                              struct rung_module *m, struct rung_fault *fault)
{
    for (uint32_t i = 0; i < artifact->n_kernels; i++) {
        struct kernel *k = &m->kernels[i];
        k->symbol = strdup(artifact->kernels[i].symbol);
        m->n_kernels = i + 1;
        if (!k->symbol)
            return CU_OUT_OF_MEMORY;
        cu_result result = self->driver.module_function(&k->function, m->module, k->symbol);
        if (result != CU_OK) {
            snprintf(fault->kernel, sizeof fault->kernel, "%s", artifact->kernels[i].expression);
            return result;
        }
    }
    return CU_OK;
}

int32_t cuda_load(void *ptr, struct rung_call *call, const struct rung_artifact *artifact,
                  struct rung_module **out, struct rung_fault *fault)
{
    struct cuda *self = ptr;
    char log[LOG_BYTES];
    *out = NULL;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    struct rung_module *m = calloc(1, sizeof *m + artifact->n_kernels * sizeof m->kernels[0]);
    if (!m) {
        call->error->code = RUNG_ENOMEM;
        snprintf(call->error->message, sizeof call->error->message, "no memory for the module");
        return RUNG_ENOMEM;
    }
    cu_result result = load_any(self, artifact, &m->module, log);
    cuda_fault(self, result, "loading the code", fault);
    if (result != CU_OK && log[0]) {
        size_t used = strlen(fault->message);
        snprintf(fault->message + used, sizeof fault->message - used, ": %.400s", log);
    }
    if (result == CU_OK) {
        result = find_kernels(self, artifact, m, fault);
        cuda_fault(self, result, "finding the kernel", fault);
    }
    if (result == CU_OK)
        *out = m;
    else
        module_free(self, m);
    return RUNG_OK;
}

void cuda_unload(void *ptr, struct rung_module *m)
{
    struct cuda *self = ptr;
    if (!m)
        return;
    if (!self->dead)
        self->driver.context_set(self->context);
    module_free(self, m);
}

/* More than 48 KiB of dynamic shared memory must be asked for (CUDA programming guide, 9.0). */
static cu_result allow_shared(struct cuda *self, struct kernel *k, uint32_t bytes)
{
    if (bytes <= DEFAULT_SHARED || bytes <= k->shared)
        return CU_OK;
    cu_result result =
        self->driver.function_set(k->function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)bytes);
    if (result == CU_OK)
        k->shared = bytes;
    return result == CU_INVALID_VALUE ? CU_LAUNCH_OUT_OF_RESOURCES : result;
}

static cu_result launch_kernel(struct cuda *self, struct kernel *k, const struct rung_launch *l)
{
    size_t bytes = l->param_bytes;
    void *extra[] = {(void *)(uintptr_t)1,
                     (void *)(uintptr_t)l->params, /* CU_LAUNCH_PARAM_BUFFER_POINTER */
                     (void *)(uintptr_t)2, &bytes, /* CU_LAUNCH_PARAM_BUFFER_SIZE */
                     NULL};
    cu_result result = allow_shared(self, k, l->shared_bytes);
    if (result != CU_OK)
        return result;
    return self->driver.launch(k->function, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y,
                               l->block.z, l->shared_bytes, self->stream, NULL,
                               bytes ? extra : NULL);
}

int32_t cuda_launch(void *ptr, struct rung_call *call, const struct rung_launch *l,
                    struct rung_fault *fault)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    if (l->counters || l->sample_blocks) {
        call->error->code = RUNG_EUNSUPPORTED;
        snprintf(call->error->message, sizeof call->error->message, "this device has no counters");
        return RUNG_EUNSUPPORTED;
    }
    struct kernel *k = NULL;
    for (uint32_t i = 0; i < l->module->n_kernels && !k; i++)
        if (strcmp(l->module->kernels[i].symbol, l->kernel->symbol) == 0)
            k = &l->module->kernels[i];
    cuda_fault(self, k ? launch_kernel(self, k, l) : CU_NOT_FOUND, "launch", fault);
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
