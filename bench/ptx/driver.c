/*
 * driver.c - thread instructions a second of the ptx device on one host thread. Instructions are
 * counted in an instrumented run; the time is that of runs without counters. Every result is
 * checked against plain C in f64.  usage: bench_ptx PLUGIN.so KERNELS.ptx [ISA [CHECKS]]
 */
#include "../../tests/device/ptx/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ELEMENTS (4u << 20)
#define COLS 4096u
#define SIDE 512u
#define RUNS 9

struct bench {
    const char *kernel;
    struct rung_dim3 grid, block;
    int n_inputs; /* 1 or 2 */
    int32_t last; /* the integer parameter */
    double (*expect)(const float *a, const float *b, size_t i);
    size_t n;        /* elements of the result */
    double absolute; /* error allowed besides 2e-5 of the value */
};

static double expect_sum(const float *a, const float *b, size_t i)
{
    return (double)a[i] + b[i];
}

static double expect_gelu(const float *a, const float *b, size_t i)
{
    double v = a[i];

    (void)b;
    return 0.5 * v * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
}

static double expect_softmax(const float *a, const float *b, size_t i)
{
    const float *row = a + i / COLS * COLS;
    double sum = 0;

    (void)b;
    for (size_t k = 0; k < COLS; k++)
        sum += exp((double)row[k]);
    return exp((double)a[i]) / sum;
}

static double expect_product(const float *a, const float *b, size_t i)
{
    double sum = 0;

    for (size_t k = 0; k < SIDE; k++)
        sum += (double)a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
    return sum;
}

static const struct bench benches[] = {
    {"vadd4", {ELEMENTS / 1024, 1, 1}, {256, 1, 1}, 2, ELEMENTS / 4, expect_sum, ELEMENTS, 1e-6},
    {"gelu4", {ELEMENTS / 1024, 1, 1}, {256, 1, 1}, 1, ELEMENTS / 4, expect_gelu, ELEMENTS, 1e-6},
    {"softmax_shuffle",
     {ELEMENTS / COLS, 1, 1},
     {256, 1, 1},
     1,
     COLS,
     expect_softmax,
     ELEMENTS,
     1e-6},
    {"softmax_tree", {ELEMENTS / COLS, 1, 1}, {256, 1, 1}, 1, COLS, expect_softmax, ELEMENTS, 1e-6},
    {"matmul_naive",
     {SIDE / 32, SIDE / 8, 1},
     {32, 8, 1},
     2,
     SIDE,
     expect_product,
     SIDE *SIDE,
     1e-4},
    {"matmul_tiled",
     {SIDE / 16, SIDE / 16, 1},
     {16, 16, 1},
     2,
     SIDE,
     expect_product,
     SIDE *SIDE,
     1e-4},
};

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static char *read_text(const char *file)
{
    FILE *f = fopen(file, "r");
    char *text = calloc(1, 4u << 20);

    if (!f || !text)
        exit(2);
    text[fread(text, 1, (4u << 20) - 1, f)] = 0;
    fclose(f);
    return text;
}

/* Some elements of the result, spread over all. */
static int check(const struct bench *b, const float *x, const float *y, const float *got)
{
    for (size_t i = 0; i < b->n; i += b->n / 509) {
        double want = b->expect(x, y, i);

        if (!(fabs(got[i] - want) <= 2e-5 * fabs(want) + b->absolute)) {
            fprintf(stderr, "%s[%zu]: got %.9g, want %.9g\n", b->kernel, i, got[i], want);
            return -1;
        }
    }
    return 0;
}

static int run(struct px *px, struct rung_module *m, const struct bench *b,
               struct rung_buffer *const *buffers)
{
    uint64_t params[4] = {px_address(px, buffers[0]), px_address(px, buffers[1]),
                          px_address(px, buffers[2]), (uint32_t)b->last};
    uint64_t wall[RUNS], cpu[RUNS];
    struct rung_counters c;
    struct px_launch l = {.kernel = b->kernel,
                          .grid = b->grid,
                          .block = b->block,
                          .params = params,
                          .param_bytes = 28,
                          .counters = &c};

    if (b->n_inputs == 1) {
        params[1] = params[2];
        params[2] = params[3];
        l.param_bytes = 20;
    }
    for (int i = -2; i < RUNS; i++) {
        uint64_t at = px_now(), used = cpu_ns();

        if (*px_launch(px, m, &l)) {
            fprintf(stderr, "%s: %s\n", b->kernel, px->fault.message);
            return -1;
        }
        l.counters = NULL;
        if (i >= 0) {
            wall[i] = px_now() - at;
            cpu[i] = cpu_ns() - used;
        }
    }
    qsort(wall, RUNS, sizeof *wall, ascending);
    qsort(cpu, RUNS, sizeof *cpu, ascending);
    printf("%-16s %12llu %9.2f %9.2f %7.2f %7.2f\n", b->kernel,
           (unsigned long long)c.lane_instructions, (double)wall[RUNS / 2] / 1e6,
           (double)cpu[RUNS / 2] / 1e6, (double)c.lane_instructions / (double)wall[RUNS / 2],
           (double)c.lane_instructions / (double)cpu[RUNS / 2]);
    return check(b, px_map(px, buffers[0]), px_map(px, buffers[1]), px_map(px, buffers[2]));
}

int main(int argc, char **argv)
{
    const struct px_option options[] = {{"isa", argc > 3 ? argv[3] : "auto"},
                                        {"checks", argc > 4 ? argv[4] : "sample"},
                                        {NULL, NULL}};
    struct rung_buffer *buffers[3];
    struct rung_device_info info = {.struct_size = sizeof info};
    struct px px;
    float *noise = malloc(ELEMENTS * sizeof *noise);
    int failed = 0;

    if (argc < 3 || !noise || px_open(&px, argv[1], options)) {
        fprintf(stderr, "usage: bench_ptx PLUGIN.so KERNELS.ptx [ISA [CHECKS]]\n");
        return 2;
    }
    for (uint32_t i = 0; i < ELEMENTS; i++)
        noise[i] = (float)((i * 2654435761u) >> 8) / 2097152.0f - 4.0f;
    buffers[0] = px_buffer(&px, "a", noise, ELEMENTS * 4);
    buffers[1] = px_buffer(&px, "b", noise, ELEMENTS * 4);
    buffers[2] = px_buffer(&px, "c", NULL, ELEMENTS * 4);
    uint64_t at = px_now();
    struct rung_module *m = px_load(&px, read_text(argv[2]));
    px.ops->info(px.self, &px.call, &info);
    if (!m) {
        fprintf(stderr, "%s\n", px.fault.message);
        return 1;
    }
    printf("%s; %u kernels read in %.2f ms\n", info.name,
           (unsigned)(sizeof benches / sizeof *benches), (double)(px_now() - at) / 1e6);
    printf("%-16s %12s %9s %9s %7s %7s\n", "kernel", "thread insns", "wall ms", "cpu ms", "G/s",
           "G/cpu s");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        failed |= run(&px, m, &benches[i], buffers);
    px_close(&px);
    return failed ? 1 : 0;
}
