/*
 * The baselines on a real GPU: `gpu_baselines PLUGINS CONFIG [TASK...]`. Prepares each of cublas
 * and cudnn for each headline task, runs it plainly and from a captured graph, checks that both
 * leave the same bits and that nothing but the output changed, and prints the median of cold runs.
 * Ends with 77 (skipped) where no GPU answers and with 1 when a baseline that a task must have is
 * missing.
 */
#include "bench/baselines.h"

#include "base/io.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, SAMPLES = 15 };

static struct bench b;

static const struct {
    const char *task, *baseline, *options;
    int required;
} cases[] = {
    {"matmul", "cublas", "{}", 1},
    {"matmul", "cublas", "{\"math\": \"tf32\"}", 1},
    {"matmul_fp16", "cublas", "{}", 1},
    {"conv2d", "cudnn", "{}", 1},
    {"conv2d", "cudnn", "{\"math\": \"tf32\"}", 1},
    {"conv2d_relu_maxpool", "cudnn", "{}", 1},
    {"conv2d_relu_maxpool", "cudnn", "{\"math\": \"tf32\"}", 1},
    {"softmax", "cudnn", "{}", 1},
    {"layernorm", "cudnn", "{}", 0},
    {"attention", "cudnn", "{}", 1},
};

struct job {
    struct rung_buffer *buffers[MOST], *scratch;
    uint64_t addresses[MOST], scratch_at, bytes[MOST];
    int output;
};

static const struct rung_device_ops *ops(void)
{
    return b.device->ops;
}

static void must(int32_t status, const char *what)
{
    if (status == RUNG_OK)
        return;
    printf("%s: %s\n", what, b.error.message);
    exit(1);
}

static void sync_all(void)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    must(ops()->sync(b.device->self, &b.call, &fault), "sync");
    if (fault.code[0]) {
        printf("fault %s: %s\n", fault.code, fault.message);
        exit(1);
    }
}

static struct job job_new(void)
{
    struct job j = {.output = -1};
    float *pattern = malloc(65536 * sizeof *pattern);
    for (int i = 0; i < 65536; i++)
        pattern[i] = (float)((i * 2654435761u >> 16) % 2001) / 1000 - 1;
    unsigned short halves[4096];
    for (int i = 0; i < 4096; i++) /* random signs and fractions, exponents of 0.25 .. 2 */
        halves[i] = (unsigned short)(((i * 2654435761u >> 9) & 0x83ff) | ((13 + i % 3) << 10));
    for (uint32_t i = 0; i < b.task->n_tensors; i++) {
        int64_t shape[RUNG_MAX_DIMS];
        uint64_t n = rung_dtype_bits(b.task->tensors[i].dtype) / 8;
        must(b.session.shape(&b.session, i, bench_dims(&b), shape), "shape");
        for (uint32_t d = 0; d < b.task->tensors[i].n_dims; d++)
            n *= (uint64_t)shape[d];
        j.bytes[i] = n;
        must(ops()->alloc(b.device->self, &b.call, n, 256, "tensor", &j.buffers[i]), "alloc");
        j.addresses[i] = ops()->address(b.device->self, j.buffers[i]);
        int half = b.task->tensors[i].dtype == RUNG_F16;
        must(ops()->fill(b.device->self, &b.call, j.buffers[i], 0, n,
                         half ? (void *)halves : (void *)pattern,
                         half ? sizeof halves : 65536 * sizeof *pattern, 1),
             "fill");
        if (b.task->tensors[i].role == RUNG_ROLE_OUTPUT)
            j.output = (int)i;
    }
    free(pattern);
    if (b.ready.scratch_bytes) {
        must(ops()->alloc(b.device->self, &b.call, b.ready.scratch_bytes, 256, "scratch",
                          &j.scratch),
             "scratch");
        j.scratch_at = ops()->address(b.device->self, j.scratch);
    }
    return j;
}

static void job_free(struct job *j)
{
    for (uint32_t i = 0; i < b.task->n_tensors; i++)
        ops()->free(b.device->self, j->buffers[i]);
    ops()->free(b.device->self, j->scratch);
}

static void enqueue(struct job *j)
{
    must(bench_ops(&b)->enqueue(b.baseline->self, &b.call, &b.ready, j->addresses, j->scratch_at),
         "enqueue");
}

/* A hash of the output, after it was overwritten with NaN and computed anew by `work`. */
static uint64_t outcome(struct job *j, void (*work)(struct job *), double *first)
{
    uint64_t hash = 1469598103934665603u, n = j->bytes[j->output];
    unsigned char ff = 0xff, *bytes = malloc(n);
    must(ops()->fill(b.device->self, &b.call, j->buffers[j->output], 0, n, &ff, 1, 1), "poison");
    work(j);
    sync_all();
    must(ops()->read(b.device->self, &b.call, j->buffers[j->output], 0, bytes, n), "read");
    for (uint64_t i = 0; i < n; i += 997)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    uint64_t poison = 0;
    for (uint64_t i = 0; i + 4 <= n; i += 4)
        poison += !memcmp(bytes + i, "\xff\xff\xff\xff", 4);
    *first = b.task->tensors[j->output].dtype == RUNG_F32 ? (double)((float *)bytes)[12345] : 0;
    free(bytes);
    if (poison) {
        printf("%llu words of the output were not written\n", (unsigned long long)poison);
        exit(1);
    }
    return hash;
}

static struct rung_graph *graph;

static void replay(struct job *j)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    (void)j;
    must(ops()->replay(b.device->self, &b.call, graph, &fault), "replay");
}

static int check_capture(struct job *j)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    double x, y;
    if (!RUNG_HAS(ops(), capture) || !ops()->capture)
        return -1;
    uint64_t plain = outcome(j, enqueue, &x);
    must(ops()->capture(b.device->self, &b.call), "capture");
    enqueue(j);
    must(ops()->captured(b.device->self, &b.call, &graph, &fault), "captured");
    if (!graph) {
        printf("not capturable: %s %s\n", fault.code, fault.message);
        return 0;
    }
    uint64_t again = outcome(j, replay, &y);
    ops()->graph_free(b.device->self, graph);
    return plain == again;
}

static int ascending(const void *a, const void *c)
{
    double x = *(const double *)a, y = *(const double *)c;
    return (x > y) - (x < y);
}

static double time_us(struct job *j)
{
    struct rung_device_event *begin, *end;
    double ns[SAMPLES];
    must(ops()->event_new(b.device->self, &b.call, &begin), "event");
    must(ops()->event_new(b.device->self, &b.call, &end), "event");
    for (int i = -2; i < SAMPLES; i++) {
        double one;
        must(ops()->flush(b.device->self, &b.call), "flush");
        must(ops()->event_record(b.device->self, &b.call, begin), "event");
        enqueue(j);
        must(ops()->event_record(b.device->self, &b.call, end), "event");
        sync_all();
        must(ops()->event_elapsed(b.device->self, &b.call, begin, end, &one), "elapsed");
        ns[i < 0 ? 0 : i] = one;
    }
    ops()->event_free(b.device->self, begin);
    ops()->event_free(b.device->self, end);
    qsort(ns, SAMPLES, sizeof *ns, ascending);
    return ns[SAMPLES / 2] / 1e3;
}

static int one(size_t i, const char *config)
{
    char *path = rung_arena_printf(b.arena, "%s/tasks/%s.cfg", config, cases[i].task);
    double first;
    uint64_t begun = rung_now_ns();
    bench_task_file(&b, path);
    bench_baseline(&b, cases[i].baseline, cases[i].options, config);
    printf("%-20s %-6s %-18s ", cases[i].task, cases[i].baseline, cases[i].options);
    if (bench_prepare(&b)) {
        printf("%s: %.300s\n", rung_status_name(b.error.code), b.error.message);
        return !cases[i].required;
    }
    double prepared = (double)(rung_now_ns() - begun) / 1e9;
    bench_call(&b, 60);
    struct job j = job_new();
    outcome(&j, enqueue, &first);
    double us = time_us(&j);
    int captured = check_capture(&j);
    printf("%9.2f us  graph %s  [%s; %s] scratch %llu MiB, y[12345] %.6g, prepared in %.1f s\n", us,
           captured < 0 ? "none"
           : captured   ? "same bits"
                        : "DIFFERS",
           b.ready.label, b.ready.math, (unsigned long long)(b.ready.scratch_bytes >> 20), first,
           prepared);
    fflush(stdout);
    job_free(&j);
    return captured != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc < 3)
        return 2;
    if (!bench_open_gpu(&b, argv[1])) {
        printf("SKIPPED: no GPU answers: %s\n", b.error.message);
        return 77;
    }
    printf("device: %s, %s\n", b.info.name, b.info.driver);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc == 3;
        for (int a = 3; a < argc; a++)
            wanted |= !strcmp(argv[a], cases[i].task);
        if (wanted)
            failed += !one(i, argv[2]);
    }
    bench_close(&b);
    return failed != 0;
}
