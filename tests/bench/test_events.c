/* The timer "events" over a session that answers what the test says. */
#include "support/support.h"

#include "base/status.h"
#include "plugin/instance.h"
#include "plugin/options.h"
#include <rung/timer.h>

#include <math.h>
#include <string.h>

static struct rung_run run;
static struct rung_run_request asked;
static struct rung_work work;
static double samples[64];
static int ended;

/* With `obeys`: as many samples as asked, each of `takes` ns, and what the options below say. */
static struct {
    int obeys, no_graphs, hot_blocks;
    double takes;
    uint64_t set_bytes;
    int n_runs;
    struct rung_run_request runs[8];
} fake;

static int32_t obey(struct rung_call *call, const struct rung_run_request *request)
{
    fake.runs[fake.n_runs++ % 8] = *request;
    if (fake.no_graphs && request->batch > 1)
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "", "no graphs");
    run.n_samples = request->repeats;
    run.n_verified = request->verify;
    run.set_bytes = fake.set_bytes;
    for (int i = 0; i < 64; i++)
        samples[i] = fake.takes + i;
    run.after = (struct rung_device_condition){.struct_size = sizeof run.after,
                                               .known = 1,
                                               .sm_mhz = 1900,
                                               .sm_mhz_max = 1980,
                                               .throttle = RUNG_THROTTLE_POWER,
                                               .celsius = 60,
                                               .milliwatt = 650000,
                                               .milliwatt_cap = 700000};
    if (request->batch && fake.hot_blocks-- > 0) {
        run.after.sm_mhz = 1200;
        run.after.throttle = RUNG_THROTTLE_THERMAL;
    }
    return RUNG_OK;
}

static int32_t fake_run(const struct rung_session *s, struct rung_call *call,
                        const struct rung_run_request *request, struct rung_run **out)
{
    (void)s;
    asked = *request;
    *out = NULL;
    int32_t status = fake.obeys ? obey(call, request) : RUNG_OK;
    if (status == RUNG_OK)
        *out = &run;
    return status;
}

static int32_t fake_work(const struct rung_session *s, struct rung_call *call, const int64_t *dims,
                         struct rung_work *out)
{
    (void)s, (void)call, (void)dims;
    *out = work;
    return RUNG_OK;
}

static void fake_end(const struct rung_session *s, struct rung_run *r)
{
    (void)s;
    ended += r != NULL;
}

static const struct rung_tensor_spec tensors[2] = {{.name = "x"}, {.name = "y"}};
static const struct rung_task task = {.struct_size = sizeof task,
                                      .n_tensors = 2,
                                      .tensors = tensors,
                                      .precision = RUNG_PRECISION_FP32};
static struct rung_device_info info;
static const struct rung_session session = {.struct_size = sizeof session,
                                            .task = &task,
                                            .device = &info,
                                            .run = fake_run,
                                            .work = fake_work,
                                            .end = fake_end};

static int reset(void **state)
{
    (void)state;
    run = (struct rung_run){
        .struct_size = sizeof run, .samples_ns = samples, .n_samples = 8, .floor_ns = 1500};
    work = (struct rung_work){.struct_size = sizeof work, .flops = 1, .min_bytes = 4.8e9 + 50e6};
    info = (struct rung_device_info){.struct_size = sizeof info, .name = "NVIDIA H200"};
    for (int i = 0; i < 64; i++)
        samples[i] = i < 3 ? 9e9 : 1.2e6 + 1000 * i;
    ended = 0;
    memset(&fake, 0, sizeof fake);
    return 0;
}

struct timer {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_instance *instance;
    struct rung_diags diags;
};

static void timer_open(struct timer *t)
{
    const struct rung_loaded *loaded;
    memset(t, 0, sizeof *t);
    t->arena = rung_arena_new();
    t->error = rung_error_init();
    t->call =
        (struct rung_call){.struct_size = sizeof t->call, .arena = t->arena, .error = &t->error};
    t->registry = rung_registry_new();
    rung_registry_allow_insecure(t->registry);
    rung_registry_add_dir(t->registry, PLUGIN_DIR);
    if (rung_registry_load(t->registry, RUNG_KIND_TIMER, "events", &loaded, &t->error))
        fail_msg("%s", t->error.message);
    assert_int_equal(loaded->factory->capabilities, RUNG_TIMER_MEASURES);
    struct rung_options *options =
        rung_options_read(t->arena, loaded->factory, NULL, NULL, CONFIG_DIR, &t->diags);
    assert_non_null(options);
    assert_int_equal(
        rung_instance_new(loaded, options, "events", CONFIG_DIR, NULL, &t->instance, &t->error),
        RUNG_OK);
    if (rung_instance_start(t->instance, &t->error))
        fail_msg("%s", t->error.message);
}

static void timer_close(struct timer *t)
{
    rung_instance_free(t->instance);
    rung_registry_free(t->registry);
    rung_diags_free(&t->diags);
    rung_arena_free(t->arena);
}

static int32_t measure_by(struct timer *t, const struct rung_timing_recipe *recipe,
                          struct rung_timing *out)
{
    int32_t status;
    out->struct_size = sizeof *out;
    RUNG_INVOKE(status, t->instance, struct rung_timer_ops, measure, &t->call, &session, recipe,
                out);
    return status;
}

static int32_t measure(struct timer *t, uint32_t warmups, uint32_t wanted, uint32_t cold,
                       struct rung_timing *out)
{
    static const int64_t dims[1] = {7};
    struct rung_timing_recipe recipe = {.struct_size = sizeof recipe,
                                        .warmups = warmups,
                                        .samples = wanted,
                                        .cold = cold,
                                        .dims = dims,
                                        .seed = 3,
                                        .sets = 1,
                                        .batch = 1};
    return measure_by(t, &recipe, out);
}

static void samples_are_raw_and_without_warmups(void **state)
{
    struct timer t;
    struct rung_timing out;
    (void)state;
    timer_open(&t);
    assert_int_equal(measure(&t, 3, 5, 1, &out), RUNG_OK);
    assert_int_equal(asked.flags, RUNG_RUN_TIMED | RUNG_RUN_COLD);
    assert_int_equal(asked.repeats, 8);
    assert_int_equal(out.kind, RUNG_TIME_MEASURED);
    assert_int_equal(out.measured.n_samples, 5);
    for (int i = 0; i < 5; i++)
        assert_true(out.measured.samples_ns[i] == samples[3 + i]);
    assert_true(out.measured.floor_ns == 1500);
    assert_true(fabs(out.physical_floor_ns - 1e6) < 1); /* 4.8 GB past L2 at 4.8 TB/s */
    support_contains(out.advice.ptr, "median 1205 us");
    support_contains(out.advice.ptr, "TB/s of 4.8; its floor is 1000 us");
    assert_int_equal(out.advice.len, strlen(out.advice.ptr));
    assert_int_equal(ended, 1);
    timer_close(&t);
}

static void another_gpu_has_no_known_floor(void **state)
{
    struct timer t;
    struct rung_timing out;
    (void)state;
    info.name = "NVIDIA A100";
    timer_open(&t);
    run.n_samples = 1;
    samples[0] = 4000;
    assert_int_equal(measure(&t, 0, 1, 0, &out), RUNG_OK);
    assert_int_equal(asked.flags, RUNG_RUN_TIMED);
    assert_true(out.physical_floor_ns == 0);
    support_contains(out.advice.ptr, "Launch-bound");
    timer_close(&t);
}

static void what_goes_wrong_is_a_fault(void **state)
{
    struct timer t;
    struct rung_timing out;
    (void)state;
    timer_open(&t);
    run.modified_input = 1;
    assert_int_equal(measure(&t, 3, 5, 1, &out), RUNG_OK);
    assert_string_equal(out.fault.code, "input.modified");
    support_contains(out.fault.message, "input x");
    run.guard_broken = 2;
    assert_int_equal(measure(&t, 3, 5, 1, &out), RUNG_OK);
    assert_string_equal(out.fault.code, "mem.out_of_bounds");
    support_contains(out.fault.message, "y");
    strcpy(run.fault.code, "run.timeout");
    assert_int_equal(measure(&t, 3, 5, 1, &out), RUNG_OK);
    assert_string_equal(out.fault.code, "run.timeout");
    run.fault.code[0] = 0;
    run.guard_broken = run.modified_input = 0;
    run.n_samples = 7;
    assert_int_equal(measure(&t, 3, 5, 1, &out), RUNG_EMISUSE);
    assert_int_equal(measure(&t, 3, 0, 1, &out), RUNG_EINVAL);
    assert_int_equal(measure(&t, UINT32_MAX, 5, 1, &out), RUNG_EINVAL);
    assert_int_equal(ended, 4);
    timer_close(&t);
}

/* ---- Choosing ---- */

static struct rung_timing_recipe open_recipe(void)
{
    static const int64_t dims[1] = {7};
    return (struct rung_timing_recipe){.struct_size = sizeof(struct rung_timing_recipe),
                                       .warmups = 5,
                                       .samples = 20,
                                       .cold = 1,
                                       .dims = dims,
                                       .seed = 3,
                                       .verify = 2};
}

static void a_short_plan_is_batched_and_the_choice_is_told(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    timer_open(&t);
    info.memory_bytes = UINT64_C(1) << 36;
    fake.obeys = 1;
    fake.takes = 10e3;
    fake.set_bytes = 1 << 20;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(fake.n_runs, 4);
    assert_int_equal(fake.runs[0].repeats, 5);  /* the estimate, */
    assert_int_equal(fake.runs[2].repeats, 25); /* and what one costs */
    assert_int_equal(fake.runs[0].flags, RUNG_RUN_TIMED | RUNG_RUN_COLD);
    assert_int_equal(fake.runs[0].verify, 0);
    assert_true(fake.runs[0].seed != fake.runs[3].seed && fake.runs[0].seed != fake.runs[1].seed);
    assert_int_equal(out.measured.batch, 100); /* about a millisecond */
    assert_int_equal(out.measured.sets, 100);
    assert_int_equal(fake.runs[3].batch, 100);
    assert_int_equal(fake.runs[3].sets, 100);
    assert_int_equal(fake.runs[3].verify, 2);
    assert_int_equal(fake.runs[3].repeats, 21); /* one replay is warm-up enough */
    assert_int_equal(out.measured.n_samples, 20);
    assert_int_equal(out.measured.cold, RUNG_COLD_ROTATE);
    assert_int_equal(out.measured.n_verified, 2);
    assert_int_equal(out.measured.after.celsius, 60);
    assert_int_equal(out.measured.launch_bound, 0);
    support_contains(out.advice.ptr, "mean of 100 executions");
    support_contains(out.advice.ptr, "held at 1900 of 1980 MHz by: power cap");
    recipe.sets = recipe.batch = 100; /* the next block of the same measurement */
    recipe.cold = 0;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(fake.n_runs, 5);
    assert_int_equal(fake.runs[4].flags, RUNG_RUN_TIMED);
    assert_int_equal(out.measured.cold, RUNG_COLD_WARM);
    timer_close(&t);
}

static void a_long_plan_is_launched_one_by_one(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    timer_open(&t);
    info.memory_bytes = UINT64_C(1) << 36;
    fake.obeys = 1;
    fake.takes = 250e3;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.batch, 1);
    assert_int_equal(out.measured.sets, 1);
    assert_int_equal(out.measured.cold, RUNG_COLD_FLUSH);
    assert_int_equal(fake.runs[1].repeats, 25);
    timer_close(&t);
}

static void memory_and_missing_graphs_bound_the_batch(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    timer_open(&t);
    info.memory_bytes = UINT64_C(1) << 30;
    fake.obeys = 1;
    fake.takes = 10e3;
    fake.set_bytes = 16 << 20;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.batch, 16); /* a quarter of the memory */
    fake.set_bytes = 100 << 20;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.batch, 1);
    fake.set_bytes = 1 << 10;
    fake.takes = 100;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.batch, 512);
    fake.no_graphs = 1;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.batch, 1);
    assert_int_equal(out.measured.cold, RUNG_COLD_FLUSH);
    assert_int_equal(out.measured.launch_bound, 1);
    timer_close(&t);
}

static void a_hot_block_is_dropped_and_measured_once_more(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    timer_open(&t);
    fake.obeys = 1;
    fake.takes = 250e3;
    recipe.sets = recipe.batch = 1;
    fake.hot_blocks = 1;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(fake.n_runs, 2);
    assert_true(fake.runs[0].seed != fake.runs[1].seed);
    assert_int_equal(out.measured.n_dropped, 20);
    assert_int_equal(out.measured.n_samples, 20);
    assert_int_equal(out.measured.after.sm_mhz, 1900);
    fake.hot_blocks = 3; /* once more, and no further */
    fake.n_runs = 0;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(fake.n_runs, 2);
    support_contains(out.advice.ptr, "1200 of 1980 MHz by: heat");
    timer_close(&t);
}

static void a_budget_leaves_fewer_samples(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    timer_open(&t);
    info.memory_bytes = UINT64_C(1) << 36;
    fake.obeys = 1;
    fake.takes = 250e3;
    recipe.budget_s = 1e-12;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.n_samples, 1);
    recipe.budget_s = 3600;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_int_equal(out.measured.n_samples, 20);
    timer_close(&t);
}

static void a_gpu_without_description_is_known_by_its_driver(void **state)
{
    struct timer t;
    struct rung_timing out;
    struct rung_timing_recipe recipe = open_recipe();
    (void)state;
    info = (struct rung_device_info){.struct_size = sizeof info,
                                     .name = "NVIDIA A100-SXM4-80GB",
                                     .sm_count = 108,
                                     .compute_major = 8,
                                     .sm_khz = 1410000,
                                     .memory_khz = 1593000,
                                     .memory_bus_bits = 5120,
                                     .l2_bytes = 40 << 20};
    work.min_bytes = 2.039e9 + (40 << 20);
    work.flops = 19.5e9;
    timer_open(&t);
    fake.obeys = 1;
    fake.takes = 2e6;
    recipe.sets = recipe.batch = 1;
    assert_int_equal(measure_by(&t, &recipe, &out), RUNG_OK);
    assert_true(fabs(out.physical_floor_ns / 1e6 - 1) < 0.01); /* 2.04 TB/s */
    support_contains(out.advice.ptr, "GFLOP in that time are 9.75 TFLOP/s of 19.5");
    support_contains(out.advice.ptr, "device memory bounds it");
    timer_close(&t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {T(samples_are_raw_and_without_warmups),
                                       T(another_gpu_has_no_known_floor),
                                       T(what_goes_wrong_is_a_fault),
                                       T(a_short_plan_is_batched_and_the_choice_is_told),
                                       T(a_long_plan_is_launched_one_by_one),
                                       T(memory_and_missing_graphs_bound_the_batch),
                                       T(a_hot_block_is_dropped_and_measured_once_more),
                                       T(a_budget_leaves_fewer_samples),
                                       T(a_gpu_without_description_is_known_by_its_driver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
