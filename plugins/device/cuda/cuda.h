/*
 * What the files of the device share. One instance holds the primary context of one GPU and one
 * stream, on which everything is queued in order. After a fault that the context can't recover
 * from, or a kernel that does not end, the instance is dead: nothing waits for the GPU any more, so
 * that the process can end.
 */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include "driver.h"
#include "nvml.h"
#include <rung/device.h>

/* What flush() queues; made by the first one. (flush.c) */
struct cuda_flush {
    cu_address scratch; /* twice the L2 cache */
    cu_module module;
    cu_function clean; /* leaves no written line of scratch; NULL: the driver compiles no PTX */
};

struct cuda {
    const struct rung_host *host;
    int ordinal;
    struct cuda_driver driver;
    cu_device device;
    cu_context context;
    cu_stream stream;
    int started, dead;
    int clusters, cooperative; /* launches that this GPU has */
    int tensor_maps;           /* GPU and driver have them */
    struct cuda_flush flush;
    struct nvml nvml;
    struct rung_graph *graphs;    /* all that are not freed */
    struct rung_graph *recording; /* between capture and captured; one of graphs */
    char name[256], id[64], arch[16], version[32];
    struct rung_device_info info;
};

struct rung_buffer {
    cu_address base;    /* as allocated */
    cu_address address; /* aligned */
    uint64_t bytes;
};

struct cuda_kernel {
    char *symbol;
    cu_function function;
    uint32_t shared; /* dynamic bytes that were allowed so far */
    int wide;        /* clusters beyond the portable size were allowed */
    int known;       /* its parameters are what the artifact says */
};

/* A variable that was asked for; base stays 0: the module's, not ours to free. */
struct variable {
    struct variable *next;
    char *name;
    struct rung_buffer buffer;
};

struct rung_module {
    cu_module module;
    void *image; /* the code as it was loaded */
    struct variable *variables;
    int changes;            /* has variables that kernels may write */
    int launched, uploaded; /* since it was loaded */
    uint32_t n_kernels;
    struct cuda_kernel kernels[];
};

/* ---- module.c ---- */

int32_t cuda_load(void *self, struct rung_call *call, const struct rung_artifact *artifact,
                  struct rung_module **out, struct rung_fault *fault);
void cuda_unload(void *self, struct rung_module *module);
int32_t cuda_reset(void *self, struct rung_call *call, struct rung_module *module);
int32_t cuda_symbol(void *self, struct rung_call *call, struct rung_module *module,
                    const char *name, struct rung_buffer **out, uint64_t *bytes);

/* ---- launch.c ---- */

int32_t cuda_launch(void *self, struct rung_call *call, const struct rung_launch *launch,
                    struct rung_fault *fault);
int32_t cuda_sync(void *self, struct rung_call *call, struct rung_fault *fault);

/* ---- graph.c ---- */

int32_t cuda_capture(void *self, struct rung_call *call);
int32_t cuda_captured(void *self, struct rung_call *call, struct rung_graph **out,
                      struct rung_fault *fault);
int32_t cuda_replay(void *self, struct rung_call *call, struct rung_graph *graph,
                    struct rung_fault *fault);
void cuda_graph_free(void *self, struct rung_graph *graph);
/* Notes that the graph being recorded launches kernels of this module. False without memory. */
int cuda_graph_uses(struct cuda *self, struct rung_module *module);
/* Graphs with kernels of this module can't be replayed any more: its code goes away. */
void cuda_graph_forget(struct cuda *self, const struct rung_module *module);
/* Ends a recording that nobody will ask for, so that the stream works again. */
void cuda_graph_abandon(struct cuda *self);

/* ---- flush.c ---- */

int32_t cuda_flush(void *self, struct rung_call *call);
void cuda_flush_free(struct cuda *self);

/* ---- condition.c ---- */

int32_t cuda_condition(void *self, struct rung_call *call, struct rung_device_condition *out);

/* ---- tensormap.c ---- */

int32_t cuda_tensormap(void *self, struct rung_call *call, const struct rung_tensormap *map,
                       void *out, struct rung_fault *fault);

/* ---- wait.c ---- */

/*
 * Makes the context current. RUNG_EUNAVAILABLE once the instance is dead; RUNG_EMISUSE while a
 * graph is recorded.
 */
int32_t cuda_enter(struct cuda *self, struct rung_call *call);
/* The same for what may be recorded: launches, fills, copies. */
int32_t cuda_enter_queue(struct cuda *self, struct rung_call *call);
/*
 * Waits for the stream. *result is CU_OK, the stream's error, or CU_LAUNCH_TIMEOUT past the call's
 * deadline; in the latter two cases the instance is dead. RUNG_ECANCELLED when the call is
 * cancelled (dead as well).
 */
int32_t cuda_wait(struct cuda *self, struct rung_call *call, cu_result *result);
/* Waits after a copy: a fault of an earlier launch is then an error. */
int32_t cuda_settle(struct cuda *self, struct rung_call *call, const char *what);
/* A driver's answer as a fault of a kernel; code "" for CU_OK. */
void cuda_fault(struct cuda *self, cu_result result, const char *what, struct rung_fault *fault);

#endif
