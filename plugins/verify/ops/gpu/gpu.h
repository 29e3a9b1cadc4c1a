/*
 * Evaluating a graph on the worker's device: the values of value.c, whole, by the kernels of the
 * .cu files beside this one, through rung.host.device/0. The walk is made twice: dry, to learn
 * which kernels the graph needs (they are compiled and loaded then), and for good. One thread.
 */
#ifndef OPS_GPU_GPU_H
#define OPS_GPU_GPU_H

#include "../attr.h"
#include "args.h"
#include <rung/host.h>

enum { OPS_GPU_MOST_KERNELS = 96, OPS_GPU_NAME = 64 };

/* Elements of a value: v and e (NULL: all errors are 0), shared by values that only reshape. */
struct ops_gpu_data {
    uint32_t refs;
    uint64_t n;
    struct rung_buffer *v, *e;
};

/* What outlives an evaluation: the kernels of the last graph. */
struct ops_gpu_module {
    char names[OPS_GPU_MOST_KERNELS][OPS_GPU_NAME];
    const char *list[OPS_GPU_MOST_KERNELS + 1];
    uint32_t n;
    const struct rung_artifact *artifact;
    struct rung_module *module;
};

struct ops_gpu {
    struct ops_eval *ev;
    struct rung_call *call;
    const struct rung_host_device *service;
    const struct rung_device_ops *ops;
    void *self;
    const struct rung_device_info *info;
    struct ops_gpu_module *loaded;
    struct ops_gpu_module wanted; /* dry: names */
    int dry;
    struct rung_buffer *flag; /* 4 bytes */
};

/* The service's device; RUNG_EUNSUPPORTED where the host offers none. */
int32_t ops_gpu_open(struct ops_gpu *g, struct ops_eval *ev, struct ops_gpu_module *loaded);
/* Loads what the dry walk asked for, unless it is there. */
int32_t ops_gpu_load(struct ops_gpu *g);
void ops_gpu_close(struct ops_gpu *g);
/* Frees the kernels. host: the plugin's. */
void ops_gpu_unload(const struct rung_host *host, struct ops_gpu_module *loaded);

/* RUNG_EUNSUPPORTED with a message. */
int32_t ops_gpu_cannot(struct ops_gpu *g, const char *what);
/* A buffer; NULL in a dry walk. RUNG_ENOMEM where the device has no room. */
int32_t ops_gpu_alloc(struct ops_gpu *g, uint64_t bytes, struct rung_buffer **out);
void ops_gpu_free(struct ops_gpu *g, struct rung_buffer *buffer);
uint64_t ops_gpu_address(struct ops_gpu *g, struct rung_buffer *buffer);
/* New elements with one reference. */
int32_t ops_gpu_data_new(struct ops_gpu *g, uint64_t n, int with_errors, struct ops_gpu_data **out);
void ops_gpu_data_drop(struct ops_gpu *g, struct ops_gpu_data *data);
struct ops_gpu_tensor ops_gpu_tensor_of(struct ops_gpu *g, const struct ops_gpu_data *data);
/* Queues a kernel over so many blocks; a dry walk notes its name. args: the struct it takes. */
int32_t ops_gpu_launch(struct ops_gpu *g, const char *kernel, uint64_t blocks, uint32_t threads,
                       const void *args, uint32_t bytes);
/* The same for a kernel that goes through n items in steps of the grid. */
int32_t ops_gpu_each(struct ops_gpu *g, const char *kernel, uint64_t n, const void *args,
                     uint32_t bytes);
/* A kernel that may set the flag: args hold ops_gpu_flag(g). Waits for the answer; 1 when dry. */
int32_t ops_gpu_flag_start(struct ops_gpu *g, uint64_t *address);
int32_t ops_gpu_flag_read(struct ops_gpu *g, int *set);
/* Bytes to the device, now. */
int32_t ops_gpu_write(struct ops_gpu *g, struct rung_buffer *to, const void *from, uint64_t bytes);

/* Computes v->gpu out of those of its operands. (values.c, rows.c, products.c) */
int32_t ops_gpu_value(struct ops_gpu *g, struct ops_value *v);
int32_t ops_gpu_rows(struct ops_gpu *g, struct ops_value *v);
int32_t ops_gpu_matmul(struct ops_gpu *g, struct ops_value *v);
int32_t ops_gpu_conv(struct ops_gpu *g, struct ops_value *v);
/* Value and bound of an output that stores `data` as dtype. */
int32_t ops_gpu_finish(struct ops_gpu *g, const struct ops_gpu_data *data, uint32_t dtype,
                       struct ops_gpu_data **out);
/* Strides of a in a result of n_dims dims; 0 along those that it repeats. */
void ops_gpu_steps(const struct ops_value *a, uint32_t n_dims, int64_t *steps);

/* The kernel template argument of a function: "ops_exp"; NULL for one that is not known. */
const char *ops_gpu_unary_name(ops_unary f);
const char *ops_gpu_binary_name(ops_binary f);
const char *ops_gpu_ternary_name(ops_ternary f);

/* All outputs of a built graph, in task order; buffers are the caller's. */
int32_t ops_gpu_evaluate(struct ops_eval *ev, struct ops_gpu_module *loaded,
                         struct rung_reference_device_output *outputs, uint32_t n_outputs);

#endif
