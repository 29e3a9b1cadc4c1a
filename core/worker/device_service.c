#include "worker/device_service.h"

#include "base/status.h"
#include "worker/kernel_cache.h"

#include <string.h>

void rung_kernels_open(struct rung_kernels *kernels)
{
    kernels->arena = rung_arena_new();
    kernels->folder = kernels->arena ? rung_kernel_cache_folder(kernels->arena) : NULL;
    kernels->kept = NULL;
}

void rung_kernels_close(struct rung_kernels *kernels)
{
    rung_arena_free(kernels->arena);
    *kernels = (struct rung_kernels){0};
}

/*
 * One key for all that decides about the result. A compiler library that changes below the same
 * plugin gives other code of the same meaning, so the plugin's hash stands for it.
 */
static void key_of(const struct rung_kernels *k, struct rung_text source,
                   const char *const *kernels, char key[RUNG_SHA256_HEX])
{
    struct rung_buf all = {0};
    char sum[RUNG_SHA256_HEX];
    rung_sha256(source.ptr, source.len, sum);
    rung_buf_printf(&all, "1\n%s\n%s\n%u\n%s\n%s\n", sum, k->info->arch, k->info->format,
                    k->info->driver, k->compiler->loaded->sha256);
    for (uint32_t i = 0; kernels[i]; i++)
        rung_buf_printf(&all, "%s\n", kernels[i]);
    rung_sha256(all.ptr, all.len, key);
    rung_buf_free(&all);
}

static const struct rung_artifact *keep(struct rung_kernels *k, const char *key,
                                        const struct rung_artifact *artifact)
{
    struct rung_kept_kernels *item = RUNG_ARENA_NEW(k->arena, struct rung_kept_kernels, 1);
    *item = (struct rung_kept_kernels){.next = k->kept, .artifact = artifact};
    memcpy(item->key, key, sizeof item->key);
    k->kept = item;
    return artifact;
}

static int32_t call_compiler(struct rung_kernels *k, struct rung_call *call, const char *name,
                             struct rung_text source, const char *const *kernels,
                             struct rung_compile_result *out)
{
    const struct rung_file file = {
        .struct_size = sizeof file, .path = "kernels.cu", .text = source};
    const struct rung_bundle bundle = {
        .struct_size = sizeof bundle, .n_files = 1, .language = "cuda", .files = &file};
    struct rung_compile_request request = {.struct_size = sizeof request,
                                           .bundle = &bundle,
                                           .expressions = kernels,
                                           .arch = k->info->arch,
                                           .format = k->info->format};
    int32_t status;
    while (kernels[request.n_expressions])
        request.n_expressions++;
    *out = (struct rung_compile_result){.struct_size = sizeof *out};
    RUNG_INVOKE(status, k->compiler, struct rung_compiler_ops, compile, call, &request, out);
    if (status != RUNG_OK || (out->code[0] == 0 && out->artifact))
        return status;
    return rung_fail(call->error, RUNG_EUNSUPPORTED, "device.compile", "%s: %.31s: %.*s", name,
                     out->code, (int)(out->log.len < 600 ? out->log.len : 600),
                     out->log.ptr ? out->log.ptr : "");
}

static int32_t compile(struct rung_kernels *k, struct rung_call *call, const char *name,
                       struct rung_text source, const char *const *kernels, const char *key,
                       const struct rung_artifact **out)
{
    struct rung_compile_result result;
    struct rung_buf packed = {0};
    int32_t status = call_compiler(k, call, name, source, kernels, &result);
    if (status != RUNG_OK)
        return status;
    rung_kernel_pack(result.artifact, &packed);
    *out = rung_kernel_unpack(k->arena, (struct rung_text){packed.ptr, packed.len}, kernels);
    if (*out && k->folder)
        rung_kernel_cache_write(k->folder, key, &packed);
    rung_buf_free(&packed);
    return *out ? RUNG_OK
                : rung_fail(call->error, RUNG_EMISUSE, "device.compile",
                            "%s: the compiler gave no code, or not all kernels", name);
}

/* From memory, from disk, or compiled. */
static int32_t find(struct rung_kernels *k, struct rung_call *call, const char *name,
                    struct rung_text source, const char *const *kernels,
                    const struct rung_artifact **out)
{
    char key[RUNG_SHA256_HEX];
    key_of(k, source, kernels, key);
    for (const struct rung_kept_kernels *item = k->kept; item; item = item->next)
        if (strcmp(item->key, key) == 0) {
            *out = item->artifact;
            return RUNG_OK;
        }
    *out = NULL;
    if (k->folder)
        *out =
            rung_kernel_unpack(k->arena, rung_kernel_cache_read(k->arena, k->folder, key), kernels);
    int32_t status = *out ? RUNG_OK : compile(k, call, name, source, kernels, key, out);
    if (status == RUNG_OK)
        keep(k, key, *out);
    return status;
}

int32_t rung_kernels_load(void *ctx, struct rung_call *call, const char *name,
                          struct rung_text source, const char *const *kernels,
                          const struct rung_artifact **artifact, struct rung_module **module)
{
    struct rung_kernels *k = ctx;
    struct rung_fault fault = {.struct_size = sizeof fault};
    *artifact = NULL;
    *module = NULL;
    if (!k->compiler || !k->device || !k->arena)
        return rung_fail(call->error, RUNG_EUNAVAILABLE, "device.not_ready",
                         "the compiler and the device have not started");
    int32_t status = find(k, call, name, source, kernels, artifact);
    if (status == RUNG_OK)
        RUNG_INVOKE(status, k->device, struct rung_device_ops, load, call, *artifact, module,
                    &fault);
    if (status == RUNG_OK && !*module)
        status = rung_fail(call->error, RUNG_EUNSUPPORTED, "device.load", "%s: %s: %s", name,
                           fault.code, fault.message);
    return status;
}

/* ---- rung.host.device/0 ---- */

static const struct rung_device_ops *host_ops(const struct rung_host *host, void **self)
{
    const struct rung_kernels *k = rung_host_user(host, RUNG_HOST_DEVICE);
    *self = k->device ? k->device->self : NULL;
    return k->device ? k->device->ops : NULL;
}

static const struct rung_device_info *host_info(const struct rung_host *host)
{
    const struct rung_kernels *k = rung_host_user(host, RUNG_HOST_DEVICE);
    return k->device ? k->info : NULL;
}

static int32_t host_load(const struct rung_host *host, struct rung_call *call, const char *name,
                         struct rung_text source, const char *const *kernels,
                         const struct rung_artifact **artifact, struct rung_module **module)
{
    return rung_kernels_load(rung_host_user(host, RUNG_HOST_DEVICE), call, name, source, kernels,
                             artifact, module);
}

const struct rung_host_device rung_device_table = {
    .struct_size = sizeof rung_device_table, .ops = host_ops, .info = host_info, .load = host_load};
