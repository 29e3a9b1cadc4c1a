/*
 * harness.h - opens the ptx device plugin as a host does, with few words: for tests and benchmarks.
 * Failures of the harness itself end the process with a message.
 */
#ifndef PTX_HARNESS_H
#define PTX_HARNESS_H

#include <rung/device.h>

#include <stddef.h>

struct px_option {
    const char *name, *value;
};

struct px {
    struct rung_host host;
    const struct rung_factory *factory;
    const struct rung_device_ops *ops;
    void *self;
    struct rung_error error;
    struct rung_call call;
    const struct px_option *options;
    struct rung_fault fault; /* of the last load or launch */
    char log[4096];          /* what the plugin logged, a line each */
    uint32_t cancel;         /* set: is_cancelled answers yes */
};

/* Opens the plugin file with options (ended by a NULL name; NULL: defaults). Returns create/start's
 * status. */
int px_open(struct px *px, const char *file, const struct px_option *options);
void px_close(struct px *px);

/* Buffer of n bytes with a copy of `from`, or zeros when it is NULL. */
struct rung_buffer *px_buffer(struct px *px, const char *label, const void *from, size_t n);
/* The same with nothing in it. */
struct rung_buffer *px_buffer_unwritten(struct px *px, const char *label, size_t n);
uint64_t px_address(struct px *px, struct rung_buffer *buffer);
void *px_map(struct px *px, struct rung_buffer *buffer);
void px_free(struct px *px, struct rung_buffer *buffer);

/* NULL with px->fault when the text can't be used. */
struct rung_module *px_load(struct px *px, const char *ptx);
void px_unload(struct px *px, struct rung_module *module);

struct px_launch {
    const char *kernel;
    const char *expression;       /* what a plan calls it; may be NULL */
    struct rung_dim3 grid, block; /* zeros count as 1 */
    uint32_t shared;
    const void *params;
    uint32_t param_bytes;
    uint32_t sample;
    uint64_t max_instructions;
    struct rung_dim3 cluster; /* zeros: as the code says */
    uint32_t flags;
    struct rung_counters *counters;
};

/* Launches and returns px->fault.code: "" when all went well. */
const char *px_launch(struct px *px, struct rung_module *module, const struct px_launch *launch);

/* PTX of CUDA source by NVRTC (malloc'ed), or NULL when this machine has no NVRTC; ends on compile
 * errors. */
char *px_compile(const char *source, const char *arch);

/* Monotonic nanoseconds. */
uint64_t px_now(void);

#endif
