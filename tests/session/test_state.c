/* Variables of module scope: uploads, restoring, what is kept; clusters and grid-wide barriers. */
#include "support/support.h"

#include "harness.h"

#include "base/status.h"

#include <string.h>

static float seen[FAKE_VARIABLE];
static int launches_on_entry[64], n_seen;

/* y = 2 x + 1, and notes the variable: uploads, or its own count of launches in element 15. */
static void counting(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    memcpy(seen, fake_variable, sizeof seen);
    if (n_seen < 64)
        launches_on_entry[n_seen++] = (int)fake_variable[15];
    fake_variable[15] += 1;
    for (int i = 0; i < a->n; i++)
        a->y[i] = 2 * a->x[i] + 1;
}

static void begin(struct harness *h)
{
    fake_config.kernels[0].symbol = "counting";
    fake_config.kernels[0].run = counting;
    fake_config.variable = "_ZN2ns3c_wE";
    n_seen = 0;
    harness_init(h, RUNG_F32);
}

static struct rung_run *run_with(struct harness *h, uint32_t flags, uint32_t repeats)
{
    int64_t n = 64;
    struct rung_run_request request = {
        .struct_size = sizeof request, .flags = flags, .dims = &n, .seed = 3, .repeats = repeats};
    struct rung_run *run = NULL;
    if (h->session->run(h->session, &h->call, &request, &run))
        fail_msg("%s", h->error.message);
    return run;
}

static void a_symbol_is_copied_in_its_place(void **state)
{
    struct harness h;
    (void)state;
    fake_config.flags = RUNG_DEVICE_COUNTERS | RUNG_DEVICE_MEASURES;
    begin(&h);
    harness_open(&h, "//@ symbol ns::c_w = x + 2 count 4\n" ONE_LAUNCH(
                         "counting") "//@ symbol ns::c_w = y count 1\n" ONE_LAUNCH("counting"));
    struct rung_run *run = run_with(&h, RUNG_RUN_COUNTERS, 1);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(run->n_launches, 4);
    assert_string_equal(run->kernels[0], "memcpy symbol");
    assert_string_equal(run->kernels[1], "counting");
    assert_int_equal(run->counters[0].global_sectors_read, 1); /* 16 bytes */
    assert_int_equal(run->counters[0].unique_sectors_written, 1);
    assert_int_equal(run->facts[0].grid.x, 1);
    struct rung_tensor_view x;
    assert_int_equal(h.session->map(h.session, &h.call, run, 0, &x), RUNG_OK);
    const float *v = x.data;
    assert_true(seen[0] == 2 * v[0] + 1); /* the second copy lies between the launches */
    assert_true(seen[1] == v[3] && seen[3] == v[5] && seen[4] == 0);
    assert_int_equal(fake_counts.copies, 2);
    assert_int_equal(run->modified_input, 0);
    run = run_with(&h, RUNG_RUN_TIMED, 2);
    assert_int_equal(run->n_samples, 2);
    harness_done(&h);
}

static void a_symbol_that_does_not_fit_is_a_plan_error(void **state)
{
    static const struct {
        const char *plan, *says;
    } cases[] = {
        {"//@ symbol ns::c_w = x\n" ONE_LAUNCH("counting"),
         "64 elements of x are 256 bytes, but the variable ns::c_w holds 64"},
        {"//@ symbol ns::c_w = x + 1 count 17\n" ONE_LAUNCH("counting"), "holds 64"},
        {"//@ symbol c_w = x count 1\n" ONE_LAUNCH("counting"), "has no variable c_w"},
        {"//@ symbol _ZN2ns3c_wE = x count 1\n" ONE_LAUNCH("counting"), "has no variable"}};
    struct harness h;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(&h);
        harness_open(&h, cases[i].plan);
        struct rung_run *run = run_with(&h, 0, 1);
        assert_string_equal(run->fault.code, "plan.error");
        support_contains(run->fault.message, cases[i].says);
        assert_int_equal(run->fault.line, 1);
        assert_int_equal(h.error.code, RUNG_OK);
        assert_int_equal(fake_counts.launches, 0);
        harness_done(&h);
    }
    begin(&h);
    fake_config.variable = "another"; /* the artifact promised what the module does not have */
    harness_open(&h, "//@ symbol ns::c_w = x count 1\n" ONE_LAUNCH("counting"));
    assert_string_equal(run_with(&h, 0, 1)->fault.code, "plan.error");
    harness_done(&h);
    begin(&h);
    harness_open(&h, "//@ symbol ns::c_w = x count 16\n//@ symbol ns::c_w = x count 0\n" ONE_LAUNCH(
                         "counting"));
    assert_string_equal(run_with(&h, 0, 1)->fault.code, "");
    harness_done(&h);
}

static void a_device_without_symbols_says_so(void **state)
{
    struct harness h;
    (void)state;
    begin(&h);
    harness_plain(&h);
    harness_open(&h, "//@ symbol ns::c_w = x count 1\n" ONE_LAUNCH("counting"));
    struct rung_run *run = run_with(&h, 0, 1);
    assert_string_equal(run->fault.code, "device.unsupported");
    support_contains(run->fault.message, "ns::c_w");
    harness_done(&h);
    begin(&h);
    harness_plain(&h);
    harness_open(&h, ONE_LAUNCH("counting"));
    assert_string_equal(run_with(&h, 0, 1)->fault.code, "");
    run_with(&h, 0, 1); /* nothing restores what it counts */
    assert_int_equal(launches_on_entry[1], 1);
    harness_done(&h);
}

static void each_run_starts_from_what_the_code_says(void **state)
{
    static const int want[] = {0, 1, 2, 0, 1, 2, 0};
    struct harness h;
    (void)state;
    begin(&h);
    harness_open(&h, ONE_LAUNCH("counting"));
    run_with(&h, 0, 3); /* repeats of one run keep what the launch before left */
    run_with(&h, 0, 1);
    run_with(&h, RUNG_RUN_KEEP_STATE, 2);
    run_with(&h, 0, 1);
    assert_int_equal(n_seen, 7);
    assert_memory_equal(launches_on_entry, want, sizeof want);
    assert_int_equal(fake_counts.resets, 3);
    harness_done(&h);
}

static void clusters_and_barriers_reach_the_device(void **state)
{
    struct harness h;
    (void)state;
    begin(&h);
    harness_open(&h, "//@ launch counting grid=(4, 2) block=(32) cluster=(2, 2) cooperative "
                     "args=(x, y, n)\n");
    assert_string_equal(run_with(&h, 0, 1)->fault.code, "");
    assert_int_equal(fake_last_launch.cluster.x, 2);
    assert_int_equal(fake_last_launch.cluster.y, 2);
    assert_int_equal(fake_last_launch.cluster.z, 1);
    assert_int_equal(fake_last_launch.flags, RUNG_LAUNCH_COOPERATIVE);
    harness_done(&h);
    begin(&h);
    harness_open(&h, ONE_LAUNCH("counting"));
    run_with(&h, 0, 1);
    assert_int_equal(fake_last_launch.cluster.x + fake_last_launch.flags, 0);
    harness_done(&h);
    begin(&h);
    harness_open(&h, "//@ launch counting grid=(3) block=(32) cluster=(2) args=(x, y, n)\n");
    struct rung_run *run = run_with(&h, 0, 1);
    assert_string_equal(run->fault.code, "plan.error");
    support_contains(run->fault.message, "no multiple of the cluster");
    harness_done(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {
        T(a_symbol_is_copied_in_its_place), T(a_symbol_that_does_not_fit_is_a_plan_error),
        T(a_device_without_symbols_says_so), T(each_run_starts_from_what_the_code_says),
        T(clusters_and_barriers_reach_the_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
