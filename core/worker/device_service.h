/*
 * rung.host.device/0 for executors: the worker's device for references and baselines, and kernels
 * of the core's and the plugins' own. These are compiled by the pipeline's compiler once; later
 * loads take the result from memory, later processes from disk (kernel_cache.h). One thread.
 */
#ifndef WORKER_DEVICE_SERVICE_H
#define WORKER_DEVICE_SERVICE_H

#include "base/hash.h"
#include "plugin/instance.h"
#include <rung/host.h>

struct rung_kept_kernels {
    struct rung_kept_kernels *next;
    char key[RUNG_SHA256_HEX];
    const struct rung_artifact *artifact;
};

struct rung_kernels {
    struct rung_instance *compiler, *device; /* NULL until they have started */
    const struct rung_device_info *info;
    struct rung_arena *arena; /* of what was compiled; set by rung_kernels_open */
    const char *folder;       /* NULL: nothing is kept on disk */
    struct rung_kept_kernels *kept;
};

/* device, compiler and info may be set later, before the first use. */
void rung_kernels_open(struct rung_kernels *kernels);
void rung_kernels_close(struct rung_kernels *kernels);
/*
 * rung_host_device.load; ctx is the struct rung_kernels. The artifact lives until
 * rung_kernels_close. RUNG_EUNAVAILABLE when the compiler or the device has not started;
 * RUNG_EUNSUPPORTED with the compiler's log when it doesn't take the source.
 */
int32_t rung_kernels_load(void *ctx, struct rung_call *call, const char *name,
                          struct rung_text source, const char *const *kernels,
                          const struct rung_artifact **artifact, struct rung_module **module);

/* The table of RUNG_HOST_DEVICE; its user pointer is a struct rung_kernels. */
extern const struct rung_host_device rung_device_table;

#endif
