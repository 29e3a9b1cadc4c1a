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

static int32_t fake_run(const struct rung_session *s, struct rung_call *call,
                        const struct rung_run_request *request, struct rung_run **out)
{
    (void)s, (void)call;
    asked = *request;
    *out = &run;
    return RUNG_OK;
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

static int32_t measure(struct timer *t, uint32_t warmups, uint32_t wanted, uint32_t cold,
                       struct rung_timing *out)
{
    static const int64_t dims[1] = {7};
    struct rung_timing_recipe recipe = {.struct_size = sizeof recipe,
                                        .warmups = warmups,
                                        .samples = wanted,
                                        .cold = cold,
                                        .dims = dims,
                                        .seed = 3};
    int32_t status;
    out->struct_size = sizeof *out;
    RUNG_INVOKE(status, t->instance, struct rung_timer_ops, measure, &t->call, &session, &recipe,
                out);
    return status;
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

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {T(samples_are_raw_and_without_warmups),
                                       T(another_gpu_has_no_known_floor),
                                       T(what_goes_wrong_is_a_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
