/*
 * What the tests of baselines share: an instance of the plugin, a task out of text or a file, a
 * session that knows its shapes and nothing else, and a device: host memory here, or a real plugin.
 */
#ifndef TESTS_BENCH_BASELINES_H
#define TESTS_BENCH_BASELINES_H

#include "support/support.h"

#include "plugin/instance.h"
#include <rung/baseline.h>
#include <rung/host.h>

struct bench {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_instance *device, *baseline;
    const struct rung_task *task;
    struct rung_device_info info;
    struct rung_session session;
    struct rung_baseline_case ready;
    int fake_events; /* records of the fake device */
};

/* Registries over a folder of plugins; the device is memory of this process. */
void bench_open(struct bench *b, const char *plugins);
/* The same with the device plugin "cuda". 0 where none answers. */
int bench_open_gpu(struct bench *b, const char *plugins);
void bench_close(struct bench *b);
/* Creates the baseline; options as JSON ("{}"), with the program service. data_dir: config/. */
void bench_baseline(struct bench *b, const char *name, const char *options, const char *data_dir);
void bench_baseline_end(struct bench *b);
/* A task from its text or from a file. */
void bench_task_text(struct bench *b, const char *text);
void bench_task_file(struct bench *b, const char *path);
/* prepare at the first bench shape, with a fresh error; the case is in b->ready. */
int32_t bench_prepare(struct bench *b);
void bench_release(struct bench *b);
const int64_t *bench_dims(const struct bench *b);
const struct rung_baseline_ops *bench_ops(const struct bench *b);
/* A new error and deadline for the next call. */
void bench_call(struct bench *b, double seconds);

#endif
