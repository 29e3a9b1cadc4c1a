/*
 * Modules: loading code, its kernels and variables. A module whose variables may have changed is
 * loaded anew to restore them: that covers variables that no table of symbols shows.
 */
#include "cuda.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 2048, MAX_CODE = 1 << 30 };

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

static cu_result load_image(struct cuda *self, const void *image, cu_module *out, char *log)
{
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    log[0] = 0;
    cu_result result = self->driver.module_load(out, image, 2, options, values);
    log[LOG_BYTES - 1] = 0;
    return result;
}

/* *image: the code as the driver takes it, on the heap; NULL unless CU_OK. */
static cu_result load_one(struct cuda *self, const struct rung_code *code, cu_module *out,
                          void **image, char *log)
{
    *image = NULL;
    if (!code->bytes || code->n_bytes > MAX_CODE)
        return CU_INVALID_IMAGE;
    if (code->format == RUNG_FORMAT_CUBIN && !cubin_is_whole(code->bytes, code->n_bytes))
        return CU_INVALID_IMAGE;
    char *copy = malloc(code->n_bytes + 1); /* PTX must end in NUL */
    if (!copy)
        return CU_OUT_OF_MEMORY;
    memcpy(copy, code->bytes, code->n_bytes);
    copy[code->n_bytes] = 0;
    cu_result result = load_image(self, copy, out, log);
    if (result == CU_OK)
        *image = copy;
    else
        free(copy);
    return result;
}

/* CUBIN first; PTX, which the driver compiles, where none of them suits this GPU. */
static cu_result load_any(struct cuda *self, const struct rung_artifact *artifact,
                          struct rung_module *m, char *log)
{
    static const uint32_t formats[] = {RUNG_FORMAT_CUBIN, RUNG_FORMAT_PTX};
    cu_result result = CU_NO_BINARY_FOR_GPU;
    log[0] = 0;
    for (int f = 0; f < 2; f++)
        for (uint32_t i = 0; i < artifact->n_codes; i++) {
            if (artifact->codes[i].format != formats[f])
                continue;
            result = load_one(self, &artifact->codes[i], &m->module, &m->image, log);
            if (result == CU_OK)
                return CU_OK;
        }
    return result;
}

static void module_free(struct cuda *self, struct rung_module *m)
{
    cuda_graph_forget(self, m);
    if (m->module && !self->dead)
        self->driver.module_unload(m->module);
    for (uint32_t i = 0; i < m->n_kernels; i++)
        free(m->kernels[i].symbol);
    while (m->variables) {
        struct variable *next = m->variables->next;
        free(m->variables->name);
        free(m->variables);
        m->variables = next;
    }
    free(m->image);
    free(m);
}

/* Loaded at once: drivers that load on the first launch can't do so while a graph is recorded. */
static cu_result function_of(struct cuda *self, cu_module module, struct cuda_kernel *k)
{
    cu_result result = self->driver.module_function(&k->function, module, k->symbol);
    if (result == CU_OK && self->driver.function_load)
        result = self->driver.function_load(k->function);
    return result;
}

static cu_result find_kernels(struct cuda *self, const struct rung_artifact *artifact,
                              struct rung_module *m, struct rung_fault *fault)
{
    for (uint32_t i = 0; i < artifact->n_kernels; i++) {
        struct cuda_kernel *k = &m->kernels[i];
        k->symbol = strdup(artifact->kernels[i].symbol);
        m->n_kernels = i + 1;
        if (!k->symbol)
            return CU_OUT_OF_MEMORY;
        cu_result result = function_of(self, m->module, k);
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
    for (uint32_t i = 0; i < artifact->n_symbols; i++)
        m->changes |= !(artifact->symbols[i].flags & RUNG_SYMBOL_CONST);
    cu_result result = load_any(self, artifact, m, log);
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
    cuda_graph_abandon(self);
    if (!self->dead)
        self->driver.context_set(self->context);
    module_free(self, m);
}

/* ---- Variables ---- */

/* Addresses of the kernels and of the variables handed out, as they are in `module`. */
static cu_result rebind(struct cuda *self, struct rung_module *m, cu_module module)
{
    cu_result result = CU_OK;
    for (uint32_t i = 0; i < m->n_kernels && result == CU_OK; i++) {
        struct cuda_kernel *k = &m->kernels[i];
        result = function_of(self, module, k);
        k->shared = 0;
        k->wide = 0;
        k->known = 0;
    }
    for (struct variable *v = m->variables; v && result == CU_OK; v = v->next) {
        size_t bytes = 0;
        result = self->driver.module_global(&v->buffer.address, &bytes, module, v->name);
        v->buffer.bytes = bytes;
    }
    return result;
}

int32_t cuda_reset(void *ptr, struct rung_call *call, struct rung_module *m)
{
    struct cuda *self = ptr;
    char log[LOG_BYTES];
    cu_module fresh = NULL;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK || !(m->uploaded || (m->changes && m->launched)))
        return status;
    status = cuda_settle(self, call, "before restoring the variables");
    if (status != RUNG_OK)
        return status;
    cu_result result = load_image(self, m->image, &fresh, log);
    if (result == CU_OK) {
        cuda_graph_forget(self, m);
        self->driver.module_unload(m->module);
        m->module = fresh;
        m->uploaded = m->launched = 0;
        result = rebind(self, m, fresh);
    }
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "restoring the variables",
                         result);
    return RUNG_OK;
}

int32_t cuda_symbol(void *ptr, struct rung_call *call, struct rung_module *m, const char *name,
                    struct rung_buffer **out, uint64_t *bytes)
{
    struct cuda *self = ptr;
    size_t size = 0;
    int32_t status = cuda_enter(self, call);
    *out = NULL;
    if (status != RUNG_OK)
        return status;
    struct variable *v = m->variables;
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    if (!v) {
        struct variable made = {.next = m->variables};
        cu_result result = self->driver.module_global(&made.buffer.address, &size, m->module, name);
        if (result != CU_OK)
            return cuda_fail(&self->driver, call->error,
                             result == CU_NOT_FOUND ? RUNG_ENOTFOUND : RUNG_EUNAVAILABLE,
                             "cuModuleGetGlobal", result);
        made.buffer.bytes = size;
        made.name = strdup(name);
        v = malloc(sizeof *v);
        if (!v || !made.name) {
            free(v);
            free(made.name);
            return cuda_fail(&self->driver, call->error, RUNG_ENOMEM, "no host memory",
                             CU_OUT_OF_MEMORY);
        }
        *v = made;
        m->variables = v;
    }
    m->uploaded = 1;
    *out = &v->buffer;
    *bytes = v->buffer.bytes;
    return RUNG_OK;
}
