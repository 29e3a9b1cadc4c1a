/*
 * Parts of an executor: the process that holds a device and the worker-side plugins, and judges one
 * job after the other. One thread.
 */
#ifndef WORKER_EXECUTOR_H
#define WORKER_EXECUTOR_H

#include "plugin/instance.h"
#include "session/session.h"
#include "worker/blob.h"
#include "worker/device_lock.h"
#include "worker/device_service.h"
#include "worker/job.h"
#include "worker/line.h"
#include "worker/message.h"
#include <rung/host.h>

struct rung_trial;

struct rung_executor_rung {
    const char *name;
    const char *on;                 /* devices that it needs, as text; NULL: any */
    uint32_t when;                  /* rung_when */
    struct rung_instance *instance; /* NULL: it needs another device */
};

/* A baseline that a pipeline or the task names; loaded and started when it is wanted first. */
struct rung_executor_baseline {
    const char *name;
    const cJSON *stage;             /* in the set-up */
    struct rung_instance *instance; /* NULL: not yet */
    const char *problem;            /* why it can't be had; NULL: it may be */
};

enum { RUNG_CACHE_SIZE = 8, RUNG_SENT_SIZE = 64 };

/* A compile that was done before; its result lives in its own arena. */
struct rung_cached {
    char key[RUNG_SHA256_HEX];
    struct rung_arena *arena; /* NULL: free */
    struct rung_compile_result result;
    uint64_t used; /* job number, for the least recently used */
};

struct rung_executor {
    int fd;
    struct rung_line_in in;
    struct rung_registry *registry;
    struct rung_arena *arena; /* lives as long as the executor */
    cJSON *setup;
    const struct rung_task *task;
    struct rung_task_rest task_rest;
    struct rung_instance *compiler, *device, *reference, *timer; /* timer may be NULL */
    const char *device_plugin;
    struct rung_device_info info;
    struct rung_device_lock lock; /* open when the device measures */
    struct rung_kernels kernels;  /* rung.host.device/0 */
    struct session_gpu *gpu;      /* NULL: the host does all itself */
    struct rung_executor_rung *rungs;
    uint32_t n_rungs;
    double compile_s, check_s, time_s;
    struct rung_timing_settings timing;
    struct rung_executor_baseline *baselines;
    uint32_t n_baselines;
    struct rung_blob_set blobs;
    struct rung_cached cache[RUNG_CACHE_SIZE];
    char sent[RUNG_SENT_SIZE][RUNG_SHA256_HEX]; /* artifacts that the orchestrator has */
    uint64_t n_sent, n_jobs;
    struct rung_trial *trial; /* in hand, or NULL */
};

/* executor.c: sends a line (borrowed) or a message (deleted). false when the supervisor is gone. */
bool rung_executor_send_line(struct rung_executor *ex, const char *line);
bool rung_executor_send(struct rung_executor *ex, cJSON *message);

/*
 * setup.c: makes every instance that the set-up names. On failure the error is what the worker is
 * refused with; what was made is freed by rung_executor_release either way.
 */
int32_t rung_executor_setup(struct rung_executor *ex, const cJSON *setup, struct rung_error *err);
void rung_executor_release(struct rung_executor *ex);
/* One more instance, of a stage of the set-up; its hash is checked. */
int32_t rung_executor_make(struct rung_executor *ex, const char *kind, const cJSON *stage,
                           struct rung_instance **out, struct rung_error *err);
/* The message "ready": device facts and the hashes of what was loaded. */
cJSON *rung_executor_ready(const struct rung_executor *ex);
/* Device facts for reports. */
cJSON *rung_executor_device(const struct rung_executor *ex);

/* store.c: keeps bytes with the trial in hand and sends them unless the orchestrator has them. */
int32_t rung_executor_store(struct rung_executor *ex, const char *name, const void *bytes,
                            uint64_t n, char sha256[RUNG_SHA256_HEX], struct rung_error *err);
extern const struct rung_host_artifact rung_artifact_table;

#endif
