/*
 * The timer "model" on counters that are written down here: order of known kernels, limiters,
 * limits of occupancy, hostile GPU files. The session is a stand-in that hands out these counters.
 */
#include "support/support.h"

#include "../../plugins/bench/model/advice.h"

#include "base/status.h"
#include "plugin/instance.h"
#include "plugin/options.h"
#include <rung/timer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rung_plugin *rung_plugin_v0(uint32_t, uint32_t);

/* ---- A session that answers what the test says ---- */

enum { MOST = 8 };
static struct {
    struct rung_run run;
    struct rung_counters counters[MOST];
    struct rung_launch_facts facts[MOST];
    const char *kernels[MOST];
    struct rung_work work;
    struct rung_task task;
    uint32_t sample_blocks, flags;
    int ended;
    int32_t run_status;
} fake;

static int32_t fake_run(const struct rung_session *s, struct rung_call *call,
                        const struct rung_run_request *request, struct rung_run **out)
{
    (void)s;
    fake.sample_blocks = request->sample_blocks;
    fake.flags = request->flags;
    if (fake.run_status)
        return rung_fail(call->error, fake.run_status, "", "told to");
    *out = &fake.run;
    return RUNG_OK;
}

static int32_t fake_work(const struct rung_session *s, struct rung_call *call, const int64_t *dims,
                         struct rung_work *out)
{
    (void)s, (void)call, (void)dims;
    *out = fake.work;
    return RUNG_OK;
}

static void fake_end(const struct rung_session *s, struct rung_run *run)
{
    (void)s;
    fake.ended += run != NULL;
}

static const struct rung_session session = {.struct_size = sizeof session,
                                            .task = &fake.task,
                                            .run = fake_run,
                                            .work = fake_work,
                                            .end = fake_end};

static int reset(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.task.precision = RUNG_PRECISION_FP32;
    fake.run.counters = fake.counters;
    fake.run.facts = fake.facts;
    fake.run.kernels = fake.kernels;
    return 0;
}

/* What one warp of a kernel does, for a whole launch of identical blocks, of which 3 are counted.
 */
struct work_of_warp {
    double loads, load_sectors, load_lines, stores, store_sectors, store_lines;
    double fp32, special, other;
    double unique_read, unique_written; /* sectors a block */
};

static void launch(uint32_t grid, uint32_t block, uint32_t registers, uint32_t shared,
                   struct work_of_warp w)
{
    uint32_t i = fake.run.n_launches++;
    uint64_t blocks = grid < 3 ? grid : 3;
    double warps = (double)blocks * (block / 32.0);
    fake.run.n_counters = fake.run.n_launches;
    fake.kernels[i] = "kernel";
    fake.facts[i] = (struct rung_launch_facts){.struct_size = sizeof fake.facts[i],
                                               .shared_bytes = shared,
                                               .grid = {grid, 1, 1},
                                               .block = {block, 1, 1},
                                               .registers = registers};
    fake.counters[i] = (struct rung_counters){
        .struct_size = sizeof fake.counters[i],
        .grid_blocks = grid,
        .blocks = blocks,
        .threads_per_block = block,
        .warp_instructions =
            (uint64_t)(warps * (w.loads + w.stores + w.fp32 + w.special + w.other)),
        .warp_fp32 = (uint64_t)(warps * w.fp32),
        .warp_special = (uint64_t)(warps * w.special),
        .warp_int = (uint64_t)(warps * w.other),
        .global_loads = (uint64_t)(warps * w.loads),
        .global_stores = (uint64_t)(warps * w.stores),
        .global_sectors_read = (uint64_t)(warps * w.loads * w.load_sectors),
        .global_sectors_written = (uint64_t)(warps * w.stores * w.store_sectors),
        .global_lines = (uint64_t)(warps * (w.loads * w.load_lines + w.stores * w.store_lines)),
        .unique_sectors_read = (uint64_t)((double)blocks * w.unique_read),
        .unique_sectors_written = (uint64_t)((double)blocks * w.unique_written)};
}

/* Softmax of 4096 rows of 65536 float32. */
static const double ROWS = 4096, COLS = 65536;

static void softmax_thread_a_row(void)
{
    launch(16, 256, 32, 0,
           (struct work_of_warp){3 * COLS, 32, 32, COLS, 32, 32, 4 * COLS, 2 * COLS, 8 * COLS,
                                 256 * COLS / 8, 256 * COLS / 8});
}

static void softmax_warp_a_row(void)
{
    double n = COLS / 32;
    launch(512, 256, 32, 0,
           (struct work_of_warp){3 * n, 4, 1, n, 4, 1, 4 * n, 2 * n, 8 * n, 8 * COLS / 8,
                                 8 * COLS / 8});
}

static void softmax_block_a_row(void)
{
    double n = COLS / 256;
    launch(4096, 256, 32, 1024,
           (struct work_of_warp){3 * n, 4, 1, n, 4, 1, 4 * n, 2 * n, 8 * n, COLS / 8, COLS / 8});
}

static void softmax_once_vectorised(void)
{
    double n = COLS / 1024 / 4;
    launch(4096, 1024, 48, 4096,
           (struct work_of_warp){n, 16, 4, n, 16, 4, 16 * n, 8 * n, 8 * n, COLS / 8, COLS / 8});
}

static void softmax_work(void)
{
    fake.work = (struct rung_work){
        .struct_size = sizeof fake.work, .flops = 5 * ROWS * COLS, .min_bytes = 8 * ROWS * COLS};
}

/* ---- The plugin as the core would run it ---- */

struct timer {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_loaded loaded;
    struct rung_instance *instance;
    struct rung_diags diags;
};

static void timer_open(struct timer *t)
{
    memset(t, 0, sizeof *t);
    t->arena = rung_arena_new();
    t->error = rung_error_init();
    t->call =
        (struct rung_call){.struct_size = sizeof t->call, .arena = t->arena, .error = &t->error};
    t->loaded = (struct rung_loaded){.path = "here",
                                     .plugin = rung_plugin_v0(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT)};
    assert_non_null(t->loaded.plugin);
    t->loaded.factory = t->loaded.plugin->factories[0];
    struct rung_options *options =
        rung_options_read(t->arena, t->loaded.factory, NULL, NULL, CONFIG_DIR, &t->diags);
    if (!options)
        fail_msg("%s", rung_buf_text(&t->diags.text));
    assert_int_equal(
        rung_instance_new(&t->loaded, options, "model", CONFIG_DIR, NULL, &t->instance, &t->error),
        RUNG_OK);
    if (rung_instance_start(t->instance, &t->error))
        fail_msg("%s", t->error.message);
}

static void timer_close(struct timer *t)
{
    rung_instance_free(t->instance);
    rung_diags_free(&t->diags);
    rung_arena_free(t->arena);
}

static int32_t measure(struct timer *t, struct rung_timing *out)
{
    static const int64_t dims[2] = {4096, 65536};
    struct rung_timing_recipe recipe = {
        .struct_size = sizeof recipe, .samples = 1, .dims = dims, .seed = 1};
    int32_t status;
    out->struct_size = sizeof *out;
    RUNG_INVOKE(status, t->instance, struct rung_timer_ops, measure, &t->call, &session, &recipe,
                out);
    return status;
}

/* Modelled time in us of what `fill` writes down; advice is checked for `says` unless NULL. */
static double modelled(void (*fill)(void), const char *limiter, const char *says)
{
    struct timer t;
    struct rung_timing out;
    reset(NULL);
    softmax_work();
    fill();
    timer_open(&t);
    if (measure(&t, &out))
        fail_msg("%s", t.error.message);
    assert_int_equal(out.kind, RUNG_TIME_MODELLED);
    assert_string_equal(out.fault.code, "");
    if (limiter)
        assert_string_equal(out.modelled.limiter, limiter);
    if (says)
        support_contains(out.advice.ptr, says);
    assert_int_equal(out.advice.len, strlen(out.advice.ptr));
    assert_true(out.modelled.tie_band == 0.3);
    assert_string_equal(out.modelled.gpu, "NVIDIA H200");
    assert_true(out.modelled.time_ns >= out.physical_floor_ns);
    bool is_long = fake.counters[0].warp_instructions > 5e6;
    assert_int_equal(fake.ended, is_long ? 1 : 2);
    assert_int_equal(fake.sample_blocks, is_long ? 1 : 3);
    assert_int_equal(fake.flags, RUNG_RUN_SAMPLED | RUNG_RUN_COUNTERS);
    if (getenv("SHOW"))
        printf("%s\n", out.advice.ptr);
    double us = out.modelled.time_ns / 1e3;
    timer_close(&t);
    return us;
}

/* ---- Tests ---- */

static void softmax_kernels_are_in_order(void **state)
{
    (void)state;
    double thread = modelled(softmax_thread_a_row, "lsu", "neighbouring threads");
    double warp = modelled(softmax_warp_a_row, NULL, NULL);
    double block = modelled(softmax_block_a_row, "dram", "fewer passes");
    double once = modelled(softmax_once_vectorised, "dram", "Floor of the task");
    assert_true(thread > 5 * warp);
    assert_true(thread > 10 * block);
    assert_true(warp > 0.77 * block);
    assert_true(once < block);
    /* One pass at 91 % of the bandwidth. */
    double floor_us = 8 * ROWS * COLS / 4.8e12 * 1e6;
    assert_true(once > floor_us && once < 1.3 * floor_us);
}

static void empty_kernels_cost_their_launches(void)
{
    for (int i = 0; i < 5; i++)
        launch(1, 32, 16, 0, (struct work_of_warp){.fp32 = 4});
    fake.work = (struct rung_work){.struct_size = sizeof fake.work, .flops = 100, .min_bytes = 100};
}

static void launches_are_counted(void **state)
{
    (void)state;
    double us = modelled(empty_kernels_cost_their_launches, "launch", "fuse");
    assert_true(us > 10 && us < 11);
}

/* One block copies a gigabyte: 1 of 132 SMs. */
static void one_block_copy(void)
{
    double n = COLS * ROWS / 32 / 32;
    launch(1, 1024, 16, 0,
           (struct work_of_warp){n, 4, 1, n, 4, 1, 0, 0, n, ROWS * COLS / 8, ROWS * COLS / 8});
}

static void whole_grid_copy(void)
{
    launch(65536, 256, 16, 0, (struct work_of_warp){16, 4, 1, 16, 4, 1, 0, 0, 32, 512, 512});
}

static void few_blocks_cannot_fill_the_bandwidth(void **state)
{
    (void)state;
    double one = modelled(one_block_copy, NULL, "Only 1 of 132 SMs");
    double all = modelled(whole_grid_copy, "dram", NULL);
    assert_true(one > 20 * all);
}

static void heavy_arithmetic(void)
{
    launch(13200, 256, 32, 0, (struct work_of_warp){1, 4, 1, 1, 4, 1, 100000, 0, 0, 32, 32});
}

static void arithmetic_is_issue_bound_at_the_peak(void **state)
{
    (void)state;
    double us = modelled(heavy_arithmetic, "issue", "Instructions are the limit");
    /* 13200 blocks x 8 warps x 1e5 instructions x 32 lanes, 128 lanes a cycle on 132 SMs at 1.98
     * GHz */
    double want = 13200.0 * 8 * 1e5 * 32 / (132 * 128 * 1.98e9) * 1e6;
    assert_true(fabs(us - want) < 0.02 * want + 3);
}

static struct gpu h200(void)
{
    struct gpu gpu;
    struct rung_error err = rung_error_init();
    if (gpu_read(CONFIG_DIR "/gpus/h200.cfg", &gpu, &err))
        fail_msg("%s", err.message);
    return gpu;
}

static void occupancy_follows_its_limits(void **state)
{
    static const struct {
        uint32_t threads, registers, shared, blocks;
        const char *limit;
    } cases[] = {{256, 32, 0, 8, "warps"},      {1024, 64, 0, 1, "registers"},
                 {1024, 65, 0, 0, "registers"}, {256, 255, 0, 1, "registers"},
                 {32, 16, 0, 32, "blocks"},     {128, 32, 100 * 1024, 2, "shared memory"},
                 {256, 40, 0, 6, "registers"},  {64, 32, 232448, 1, "shared memory"}};
    struct gpu gpu = h200();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rung_launch_facts f = {.block = {cases[i].threads, 1, 1},
                                      .registers = cases[i].registers,
                                      .shared_bytes = cases[i].shared};
        struct occupancy o = occupancy_of(&gpu, &f);
        assert_int_equal((int)o.blocks_per_sm, cases[i].blocks);
        assert_string_equal(o.limit, cases[i].limit);
    }
}

static void spills_and_bank_conflicts_cost_time(void **state)
{
    struct gpu gpu = h200();
    struct estimate plain, spilled, conflicts;
    (void)state;
    reset(NULL);
    launch(1320, 256, 64, 0, (struct work_of_warp){100, 4, 1, 1, 4, 1, 1000, 0, 0, 100, 32});
    fake.counters[0].shared_loads = fake.counters[0].shared_wavefronts = 3 * 8 * 500;
    estimate_launch(&gpu, &fake.counters[0], &fake.facts[0], 0, 0, &plain);
    fake.facts[0].spill_bytes = 4000;
    estimate_launch(&gpu, &fake.counters[0], &fake.facts[0], 0, 0, &spilled);
    fake.facts[0].spill_bytes = 0;
    fake.counters[0].shared_wavefronts *= 32;
    estimate_launch(&gpu, &fake.counters[0], &fake.facts[0], 0, 0, &conflicts);
    assert_true(spilled.time_ns > 1.3 * plain.time_ns);
    assert_true(conflicts.time_ns > 5 * plain.time_ns);
    assert_int_equal(conflicts.limiter, LIMIT_LSU);
}

static void uncounted_blocks_are_scaled(void **state)
{
    struct gpu gpu = h200();
    struct estimate small, large;
    (void)state;
    reset(NULL);
    launch(13200, 256, 32, 0, (struct work_of_warp){100, 4, 1, 100, 4, 1, 100, 0, 0, 3200, 3200});
    launch(132000, 256, 32, 0, (struct work_of_warp){100, 4, 1, 100, 4, 1, 100, 0, 0, 3200, 3200});
    estimate_launch(&gpu, &fake.counters[0], &fake.facts[0], 0, 0, &small);
    estimate_launch(&gpu, &fake.counters[1], &fake.facts[1], 0, 0, &large);
    assert_true(fabs(large.dram_bytes / small.dram_bytes - 10) < 1e-9);
    for (int k = 0; k < LIMIT_LAUNCH; k++)
        assert_true(fabs(large.ns[k] / small.ns[k] - 10) < 1e-9);
}

static void a_fault_passes_through(void **state)
{
    struct timer t;
    struct rung_timing out;
    (void)state;
    timer_open(&t);
    strcpy(fake.run.fault.code, "mem.out_of_bounds");
    assert_int_equal(measure(&t, &out), RUNG_OK);
    assert_string_equal(out.fault.code, "mem.out_of_bounds");
    assert_int_equal(fake.ended, 1);
    fake.run_status = RUNG_EINVAL;
    assert_int_equal(measure(&t, &out), RUNG_EINVAL);
    timer_close(&t);
}

static void missing_counters_are_a_misuse(void **state)
{
    struct timer t;
    struct rung_timing out;
    (void)state;
    timer_open(&t);
    softmax_block_a_row();
    fake.run.n_counters = 0;
    assert_int_equal(measure(&t, &out), RUNG_EMISUSE);
    timer_close(&t);
}

static void no_numbers_are_no_crash(void **state)
{
    struct gpu gpu = h200();
    struct estimate e;
    struct rung_counters c = {.struct_size = sizeof c};
    struct rung_launch_facts f = {.struct_size = sizeof f};
    (void)state;
    estimate_launch(&gpu, &c, &f, 0, 0, &e);
    assert_true(e.time_ns == 2000 && e.limiter == LIMIT_LAUNCH);
    memset(&c, 0xff, sizeof c);
    memset(&f, 0xff, sizeof f);
    estimate_launch(&gpu, &c, &f, 1, 0, &e);
    assert_true(isfinite(e.time_ns));
    c.blocks = 1;
    c.warp_fp32 = c.warp_instructions = 1000;
    estimate_launch(&gpu, &c, &f, 1e9, 1, &e);
    assert_true(e.time_ns > 0);
    /* The text stays inside its buffer. */
    char small[40];
    const char *name = "kernel";
    struct rung_run run = {.kernels = &name, .facts = &f};
    struct prediction p = {
        .gpu = &gpu, .run = &run, .launches = &e, .n_launches = 1, .time_ns = e.time_ns};
    assert_int_equal(advice_write(&p, small, sizeof small), 39);
}

static void floors_follow_precision(void **state)
{
    struct gpu gpu = h200();
    struct rung_work work = {.flops = 66.9e12, .min_bytes = 4.8e12};
    (void)state;
    assert_true(fabs(floor_ns(&gpu, &work, RUNG_PRECISION_FP32) - 1e9) < 1);
    work.flops *= 10;
    assert_true(fabs(floor_ns(&gpu, &work, RUNG_PRECISION_FP32) - 1e10) < 10);
    assert_true(floor_ns(&gpu, &work, RUNG_PRECISION_FP16) < 1.01e9);
    assert_true(floor_ns(&gpu, &work, RUNG_PRECISION_EXACT) == 1e9);
}

static void bad(const char *folder, const char *from, const char *to, const char *says)
{
    size_t n;
    char *text = support_read(CONFIG_DIR "/gpus/h200.cfg", &n), *at = strstr(text, from);
    assert_non_null(at);
    char *path = support_path(folder, "bad.cfg"), *changed = malloc(n + strlen(to) + 1);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    support_write_text(path, changed);
    struct gpu gpu;
    struct rung_error err = rung_error_init();
    assert_int_equal(gpu_read(path, &gpu, &err), RUNG_ECONFIG);
    support_contains(err.message, says);
    support_contains(err.message, "bad.cfg");
    free(changed);
    free(path);
    free(text);
}

static void bad_descriptions_are_refused(void **state)
{
    char *folder = support_folder();
    (void)state;
    bad(folder, "sm_count = 132;", "", "missing setting sm_count");
    bad(folder, "sm_count = 132;", "sm_count = 0;", "positive number");
    bad(folder, "sm_count = 132;", "sm_count = \"132\";", "a number is needed for sm_count");
    bad(folder, "sm_count = 132;", "sm_count = 132; smcount = 1;", "unknown setting smcount");
    bad(folder, "sm_count = 132;", "sm_count = ;", "syntax error");
    bad(folder, "dram_efficiency = 0.91;", "dram_efficiency = 1.5;", "dram_efficiency");
    bad(folder, "name = \"NVIDIA H200\";", "", "name");
    bad(folder, "name = \"NVIDIA H200\";", "name = 5;", "a text is needed");
    struct gpu gpu;
    struct rung_error err = rung_error_init();
    assert_int_equal(gpu_read("/nonexistent/gpu.cfg", &gpu, &err), RUNG_ECONFIG);
    support_contains(err.message, "/nonexistent/gpu.cfg");
    support_remove(folder);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {T(softmax_kernels_are_in_order),
                                       T(launches_are_counted),
                                       T(few_blocks_cannot_fill_the_bandwidth),
                                       T(arithmetic_is_issue_bound_at_the_peak),
                                       T(occupancy_follows_its_limits),
                                       T(spills_and_bank_conflicts_cost_time),
                                       T(uncounted_blocks_are_scaled),
                                       T(a_fault_passes_through),
                                       T(missing_counters_are_a_misuse),
                                       T(no_numbers_are_no_crash),
                                       T(floors_follow_precision),
                                       T(bad_descriptions_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
