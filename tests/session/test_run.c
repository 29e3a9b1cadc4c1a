/* Runs: poison, guards, inputs, faults, repeats, sampling, limits. */
#include "support/support.h"

#include "harness.h"

#include "base/status.h"
#include "session/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels ---- */

static int poisoned_on_entry, clean_temp_on_entry;

/* NaN for even seeds, a plausible number for odd ones. */
static int is_poison(float v)
{
    return isnan(v) || (fabsf(v) >= 0.25f && fabsf(v) < 0.5f);
}
static float *seen_x;

static void good(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    poisoned_on_entry += is_poison(a->y[0]) && is_poison(a->y[a->n - 1]);
    seen_x = a->x;
    for (int i = 0; i < a->n; i++)
        a->y[i] = 2 * a->x[i] + 1;
}

static void skip_last(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    for (int i = 0; i < a->n - 1; i++)
        a->y[i] = 2 * a->x[i] + 1;
}

static void nothing(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)a, (void)l, (void)f;
}

static void spoil_input(const struct fake_args *a, const struct rung_launch *l,
                        struct rung_fault *f)
{
    good(a, l, f);
    a->x[a->n - 1] += 1;
}

static void overrun(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    good(a, l, f);
    a->y[a->n] = 0;
}

static void underrun(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    good(a, l, f);
    a->x[-1] = 0;
}

static void crash(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)a, (void)l;
    strcpy(f->code, "mem.out_of_bounds");
    strcpy(f->message, "thread 3 reads 4 bytes past x");
    f->line = 12;
    f->sticky = 1;
}

static void temp_twice(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    clean_temp_on_entry += a->t[0] == 0 && a->t[a->n - 1] == 0;
    for (int i = 0; i < a->n; i++)
        a->t[i] += 1;
    good(a, l, f);
}

static int turn;
static void unsteady(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    good(a, l, f);
    a->y[5] += (float)turn++;
}

static void prepare(struct harness *h, const char *plan)
{
    static const struct {
        const char *symbol;
        fake_kernel run;
    } all[] = {{"good", good},        {"skip_last", skip_last},
               {"nothing", nothing},  {"spoil_input", spoil_input},
               {"overrun", overrun},  {"underrun", underrun},
               {"crash", crash},      {"temp_twice", temp_twice},
               {"unsteady", unsteady}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fake_config.kernels[i].symbol = all[i].symbol;
        fake_config.kernels[i].run = all[i].run;
    }
    poisoned_on_entry = clean_temp_on_entry = turn = 0;
    harness_init(h, RUNG_F32);
    harness_open(h, plan);
    assert_non_null(h->session);
}

static struct rung_comparison compared(struct harness *h, struct rung_run *run)
{
    struct rung_comparison c;
    if (h->session->compare(h->session, &h->call, run, 1, &c))
        fail_msg("%s", h->error.message);
    return c;
}

/* ---- Tests ---- */

static void a_right_kernel_passes_with_and_without_host_memory(void **state)
{
    for (uint32_t flags = 0; flags < 16; flags += 1) {
        struct harness h;
        harness_clean(state);
        fake_config.flags = flags & (RUNG_DEVICE_EXACT_BOUNDS | RUNG_DEVICE_HOST_MEMORY);
        prepare(&h, ONE_LAUNCH("good"));
        struct rung_run *run = harness_run(&h, 1000, 1, 0);
        assert_string_equal(run->fault.code, "");
        assert_int_equal(run->modified_input, 0);
        assert_int_equal(run->guard_broken, 0);
        assert_int_equal(run->n_launches, 1);
        assert_string_equal(run->kernels[0], "good");
        assert_int_equal(run->facts[0].registers, 20);
        assert_int_equal(run->facts[0].shared_bytes, 16);
        struct rung_comparison c = compared(&h, run);
        assert_int_equal(c.n, 1000);
        assert_int_equal(c.n_bad, 0);
        assert_true(c.worst <= 1);
        assert_int_equal(poisoned_on_entry, 1);
        compared(&h, run);
        assert_int_equal(fake_counts.evaluations, 1);
        assert_ptr_not_equal(fake_counts.reference_saw, seen_x);
        h.session->end(h.session, run);
        assert_int_equal(fake_counts.buffers, 0);
        harness_done(&h);
    }
}

static void inputs_are_the_fill(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("good"));
    struct rung_run *run = harness_run(&h, 100, 9, 0);
    struct rung_tensor_view view;
    assert_int_equal(h.session->map(h.session, &h.call, run, 0, &view), RUNG_OK);
    for (int i = 0; i < 100; i++)
        assert_true(((const float *)view.data)[i] ==
                    (float)rung_fill_value("normal", 9, 0, (uint64_t)i, 100));
    assert_int_equal(view.dims[0], 100);
    assert_int_equal(view.strides[0], 1);
    harness_done(&h); /* ends the run too */
}

static void unwritten_elements_are_counted(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("skip_last"));
    struct rung_comparison c = compared(&h, harness_run(&h, 777, 1, 0));
    assert_int_equal(c.n_unwritten, 1);
    assert_int_equal(c.n_bad, 1);
    assert_int_equal(c.n_nan, 0);
    assert_int_equal(c.first_bad, 776);
    harness_done(&h);
    prepare(&h, ONE_LAUNCH("nothing"));
    c = compared(&h, harness_run(&h, 777, 1, 0));
    assert_int_equal(c.n_unwritten, 777);
    assert_true(c.worst > 1);
    c = compared(&h, harness_run(&h, 777, 2, 0)); /* an even seed: the poison is NaN */
    assert_int_equal(c.n_unwritten, 777);
    assert_true(isinf(c.worst));
    harness_done(&h);
}

static void a_changed_input_is_named(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("spoil_input"));
    assert_int_equal(harness_run(&h, 64, 1, 0)->modified_input, 1);
    assert_int_equal(harness_run(&h, 64, 1, RUNG_RUN_KEEP_INPUTS)->modified_input, 0);
    /* The reference must not have seen the change. */
    assert_int_equal(compared(&h, harness_run(&h, 64, 1, 0)).n_bad, 0);
    harness_done(&h);
}

static void guards_catch_one_element(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("overrun"));
    assert_int_equal(harness_run(&h, 63, 1, 0)->guard_broken, 2); /* y */
    harness_done(&h);
    prepare(&h, ONE_LAUNCH("underrun"));
    assert_int_equal(harness_run(&h, 63, 1, 0)->guard_broken, 1); /* x */
    harness_done(&h);
}

static void faults_name_kernel_and_line_and_last(void **state)
{
    struct harness h;
    struct rung_comparison c;
    (void)state;
    prepare(&h, ONE_LAUNCH("good") ONE_LAUNCH("crash") ONE_LAUNCH("good"));
    struct rung_run *run = harness_run(&h, 64, 1, 0);
    assert_string_equal(run->fault.code, "mem.out_of_bounds");
    assert_string_equal(run->fault.kernel, "crash");
    assert_int_equal(run->fault.line, 12);
    assert_int_equal(fake_counts.launches, 2);
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_EINVAL);
    h.error = rung_error_init();
    run = harness_run(&h, 64, 1, 0);
    assert_string_equal(run->fault.code, "device.lost");
    support_contains(run->fault.message, "mem.out_of_bounds");
    harness_done(&h);
}

static void limits_are_told_before_the_launch(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, "//@ launch good grid=(1) block=(32) shared=49140 args=(x, y, n)\n");
    struct rung_run *run = harness_run(&h, 64, 1, 0);
    assert_string_equal(run->fault.code, "launch.resources");
    assert_int_equal(run->fault.line, 1);
    support_contains(run->fault.message, "49156");
    assert_int_equal(fake_counts.launches, 0);
    harness_done(&h);
}

static void plan_errors_are_faults(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, "//@ tune T = 32\n//@ where T <= n\n" ONE_LAUNCH("good"));
    assert_string_equal(harness_run(&h, 31, 1, 0)->fault.code, "plan.error");
    assert_string_equal(harness_run(&h, 32, 1, 0)->fault.code, "");
    harness_done(&h);
    prepare(&h, ONE_LAUNCH("missing"));
    struct rung_run *run = harness_run(&h, 32, 1, 0);
    assert_string_equal(run->fault.code, "plan.error");
    support_contains(run->fault.message, "missing");
    harness_done(&h);
    prepare(&h, "//@ launch good grid=(1) block=(32) args=(x, y)\n");
    assert_string_equal(harness_run(&h, 32, 1, 0)->fault.code, "plan.error");
    harness_done(&h);
}

static void every_repeat_is_poisoned_and_set(void **state)
{
    struct harness h;
    (void)state;
    fake_config.flags = RUNG_DEVICE_MEASURES;
    prepare(&h, "//@ temp t f32 [n]\n//@ zero t\n"
                "//@ launch temp_twice grid=(1) block=(32) args=(x, y, n, t)\n");
    int64_t n = 100;
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED,
                                       .dims = &n,
                                       .seed = 4,
                                       .repeats = 5};
    struct rung_run *run;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(poisoned_on_entry, 5);
    assert_int_equal(clean_temp_on_entry, 5);
    assert_int_equal(run->n_launches, 2); /* the memset counts */
    assert_string_equal(run->kernels[0], "memset");
    /* The fake clock counts records in us: 21 pairs for the floor, then one a repeat. */
    assert_true(run->floor_ns == 22000);
    assert_int_equal(run->n_samples, 5);
    for (int i = 0; i < 5; i++)
        assert_true(run->samples_ns[i] == 44000 + 2000 * i);
    assert_true(run->elapsed_ns == 48000);
    assert_int_equal(compared(&h, run).n_bad, 0);
    harness_done(&h);
}

static void cold_runs_overwrite_the_cache(void **state)
{
    struct harness h;
    (void)state;
    fake_config.flags = RUNG_DEVICE_MEASURES | RUNG_DEVICE_EXACT_BOUNDS;
    prepare(&h, ONE_LAUNCH("good"));
    h.info.l2_bytes = 1 << 16;
    int64_t n = 100;
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .dims = &n,
                                       .seed = 4,
                                       .repeats = 3,
                                       .flags = RUNG_RUN_TIMED | RUNG_RUN_COLD};
    struct rung_run *run;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(fake_counts.fills, 6); /* poison and flush */
    assert_int_equal(fake_counts.flushed, 3 << 17);
    assert_int_equal(fake_counts.buffers, 2);
    assert_int_equal(compared(&h, run).n_bad, 0);
    request.repeats = 1 << 21;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    harness_done(&h);
}

static void a_cancelled_call_ends(void **state)
{
    struct harness h;
    int64_t n = 100;
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .seed = 4, .repeats = 3};
    struct rung_run *run;
    (void)state;
    prepare(&h, ONE_LAUNCH("good"));
    h.call.cancel = rung_cancel_new();
    rung_cancel_request(h.call.cancel);
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_ECANCELLED);
    rung_cancel_free(h.call.cancel);
    h.call.cancel = NULL;
    h.error = rung_error_init();
    h.call.deadline_ns = 1;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_string_equal(run->fault.code, "run.timeout");
    assert_int_equal(fake_counts.launches, 0);
    harness_done(&h);
}

static void sampled_runs_repeat_inputs_and_poison_nothing(void **state)
{
    struct harness h;
    struct rung_comparison c;
    (void)state;
    fake_config.flags = RUNG_DEVICE_COUNTERS | RUNG_DEVICE_HOST_MEMORY | RUNG_DEVICE_EXACT_BOUNDS;
    prepare(&h, ONE_LAUNCH("good"));
    int64_t n = 1 << 20;
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .dims = &n,
                                       .seed = 4,
                                       .flags = RUNG_RUN_SAMPLED | RUNG_RUN_COUNTERS,
                                       .sample_blocks = 3};
    struct rung_run *run;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(run->n_counters, 1);
    assert_int_equal(run->counters[0].blocks, 3);
    assert_int_equal(fake_counts.unwritten_fills, 0);
    assert_int_equal(poisoned_on_entry, 0);
    for (int i = 0; i < 1 << 18; i += 1001) /* the block of 1 MiB repeats */
        assert_true(seen_x[i] == seen_x[i + (1 << 18)] && seen_x[i] == seen_x[i + 3 * (1 << 18)]);
    assert_true(seen_x[0] == (float)rung_fill_value("normal", 4, 0, 0, n));
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_EINVAL);
    harness_done(&h);
}

static void memory_has_a_limit(void **state)
{
    struct harness h;
    (void)state;
    fake_config.flags = RUNG_DEVICE_EXACT_BOUNDS;
    fake_config.memory = 8000;
    prepare(&h, ONE_LAUNCH("good"));
    struct rung_run *run = harness_run(&h, 1000, 1, 0);
    assert_string_equal(run->fault.code, "");
    assert_string_equal(harness_run(&h, 1, 1, 0)->fault.code,
                        "device.memory"); /* the first still lives */
    h.session->end(h.session, run);
    assert_string_equal(harness_run(&h, 1001, 1, 0)->fault.code, "device.memory");
    assert_string_equal(harness_run(&h, 1000, 1, 0)->fault.code, "");
    harness_done(&h);
    fake_config.memory = UINT64_MAX;
    prepare(&h, ONE_LAUNCH("good"));
    run = harness_run(&h, INT64_C(1) << 31, 1, 0); /* the device itself refuses 8 GiB */
    assert_string_equal(run->fault.code, "device.memory");
    assert_int_equal(h.error.code, RUNG_OK);
    harness_done(&h);
}

static void requests_are_checked(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("good"));
    int64_t n = 10;
    float bytes[10] = {1, 2, 3};
    struct rung_fill fill = {
        .struct_size = sizeof fill, .tensor = 0, .bytes = bytes, .n_bytes = 12};
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .fills = &fill, .n_fills = 1};
    struct rung_run *run;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    fill.n_bytes = 40;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(compared(&h, run).n_bad, 0);
    assert_true(seen_x == NULL || compared(&h, run).n == 10);
    fill.tensor = 2;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    fill.tensor = 0;
    fill.bytes = NULL;
    fill.kind = "nonsense";
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    support_contains(h.error.message, "nonsense");
    request.n_fills = 0;
    n = 0;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    n = 10;
    request.flags = RUNG_RUN_COUNTERS;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EUNSUPPORTED);
    request.flags = RUNG_RUN_TIMED;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EUNSUPPORTED);
    harness_done(&h);
}

static void same_bits_tells_runs_apart(void **state)
{
    struct harness h;
    uint32_t same;
    (void)state;
    prepare(&h, ONE_LAUNCH("unsteady"));
    struct rung_run *a = harness_run(&h, 64, 1, 0), *b = harness_run(&h, 64, 1, 0);
    assert_int_equal(h.session->same_bits(h.session, &h.call, a, b, &same), RUNG_OK);
    assert_int_equal(same, 0);
    assert_int_equal(h.session->same_bits(h.session, &h.call, a, a, &same), RUNG_OK);
    assert_int_equal(same, 1);
    harness_done(&h);
}

static void an_inout_is_restored_before_each_repeat(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("spoil_input"));
    h.tensors[0].role = RUNG_ROLE_INOUT;
    h.tensors[1].role = RUNG_ROLE_OUTPUT;
    int64_t n = 16;
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .seed = 4, .repeats = 3};
    struct rung_run *run;
    struct rung_tensor_view view;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(run->modified_input, 0);
    assert_int_equal(h.session->map(h.session, &h.call, run, 0, &view), RUNG_OK);
    assert_true(((const float *)view.data)[15] ==
                (float)rung_fill_value("normal", 4, 0, 15, 16) + 1);
    harness_done(&h);
}

static void a_refused_artifact_is_a_fault(void **state)
{
    struct harness h;
    (void)state;
    fake_config.load_fault = "device.unsupported";
    harness_init(&h, RUNG_F32);
    harness_open(&h, "//@ launch good grid=(1) block=(32) args=(x, y, n)\n");
    assert_null(h.open);
    assert_string_equal(h.load_fault.code, "device.unsupported");
    harness_done(&h);
}

static void a_malformed_artifact_is_refused(void **state)
{
    struct harness h;
    (void)state;
    fake_config.kernels[0].symbol = "good";
    fake_config.kernels[0].run = good;
    harness_init(&h, RUNG_F32);
    h.kernels[0].param_bytes = 18; /* the count would lie outside */
    const char *problem;
    struct rung_session_spec spec = {.device = h.device,
                                     .reference = h.reference,
                                     .info = &h.info,
                                     .task = &h.task,
                                     .artifact = &h.artifact};
    spec.plan =
        rung_plan_parse(h.arena, &h.task, "k.cu", rung_text_of(ONE_LAUNCH("good")), &problem);
    assert_int_equal(rung_session_open(&spec, &h.call, &h.open, &h.load_fault), RUNG_EINVAL);
    assert_null(h.open);
    harness_done(&h);
}

static void table_helpers(void **state)
{
    struct harness h;
    int64_t n = 33, shape[RUNG_MAX_DIMS];
    struct rung_work work;
    (void)state;
    prepare(&h, ONE_LAUNCH("good"));
    assert_int_equal(h.session->shape(h.session, 1, &n, shape), RUNG_OK);
    assert_int_equal(shape[0], 33);
    assert_int_equal(h.session->shape(h.session, 2, &n, shape), RUNG_EINVAL);
    assert_int_equal(h.session->complete_dims(h.session, &n), RUNG_OK);
    n = -1;
    assert_int_equal(h.session->complete_dims(h.session, &n), RUNG_EINVAL);
    n = 4;
    assert_int_equal(h.session->work(h.session, &h.call, &n, &work), RUNG_OK);
    assert_true(work.flops == 8 && work.min_bytes == 32);
    h.session->end(h.session, NULL);
    harness_done(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(a_right_kernel_passes_with_and_without_host_memory),
                                       T(inputs_are_the_fill),
                                       T(unwritten_elements_are_counted),
                                       T(a_changed_input_is_named),
                                       T(guards_catch_one_element),
                                       T(faults_name_kernel_and_line_and_last),
                                       T(limits_are_told_before_the_launch),
                                       T(plan_errors_are_faults),
                                       T(every_repeat_is_poisoned_and_set),
                                       T(cold_runs_overwrite_the_cache),
                                       T(a_cancelled_call_ends),
                                       T(sampled_runs_repeat_inputs_and_poison_nothing),
                                       T(memory_has_a_limit),
                                       T(requests_are_checked),
                                       T(same_bits_tells_runs_apart),
                                       T(an_inout_is_restored_before_each_repeat),
                                       T(a_refused_artifact_is_a_fault),
                                       T(a_malformed_artifact_is_refused),
                                       T(table_helpers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
