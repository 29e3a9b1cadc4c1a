/* Outputs compared where they lie, by a reference on the device; baselines as sessions. */
#include "support/support.h"

#include "fake_gpu.h"
#include "harness.h"

#include "base/status.h"

#include <string.h>

/* ---- Kernels ---- */

static float *seen_x[8], seen_first[8];
static int n_seen;

static void right(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    seen_first[n_seen % 8] = a->x[0];
    seen_x[n_seen++ % 8] = a->x;
    for (int i = 0; i < a->n; i++)
        a->y[i] = 2 * a->x[i] + 1;
}

static void wrong(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    a->y[7] = 0;
}

static void prepare(struct harness *h, const char *plan)
{
    fake_config.kernels[0].symbol = "right";
    fake_config.kernels[0].run = right;
    fake_config.kernels[1].symbol = "wrong";
    fake_config.kernels[1].run = wrong;
    fake_config.flags |= RUNG_DEVICE_MEASURES;
    memset(&fake_gpu, 0, sizeof fake_gpu);
    n_seen = 0;
    harness_init(h, RUNG_F32);
    harness_timed(h);
    h->gpu = &fake_gpu;
    harness_open(h, plan);
    assert_non_null(h->session);
}

static struct rung_run *take(struct harness *h, const struct rung_run_request *request)
{
    struct rung_run *run = NULL;
    if (h->session->run(h->session, &h->call, request, &run))
        fail_msg("%s", h->error.message);
    return run;
}

/* ---- Comparing where the outputs lie ---- */

static void outputs_are_compared_on_the_device(void **state)
{
    struct harness h;
    struct rung_comparison c;
    struct rung_tensor_view view;
    uint32_t same;
    (void)state;
    prepare(&h, ONE_LAUNCH("wrong"));
    assert_int_equal(h.session->flags, RUNG_SESSION_FAST_COMPARE);
    struct rung_run *a = harness_run(&h, 64, 2, 0), *b = harness_run(&h, 64, 2, 0);
    assert_int_equal(fake_gpu.draws, 2);
    assert_int_equal(fake_gpu.sames, 2);
    assert_int_equal(h.session->compare(h.session, &h.call, a, 1, &c), RUNG_OK);
    assert_int_equal(c.n_bad, 1);
    assert_int_equal(c.first_bad, 7);
    assert_int_equal(h.session->compare_fast(h.session, &h.call, a, 1, &c), RUNG_OK);
    assert_int_equal(fake_counts.device_evaluations, 1); /* once for a run */
    assert_int_equal(fake_counts.evaluations, 0);
    assert_ptr_not_equal(fake_counts.reference_saw, seen_x[0]);
    assert_int_equal(h.session->same_bits(h.session, &h.call, a, b, &same), RUNG_OK);
    assert_int_equal(same, 1);
    assert_int_equal(fake_gpu.bytes, 1);
    struct rung_reference_output want; /* the host's own, from inputs drawn now */
    assert_int_equal(h.session->expected(h.session, &h.call, a, 1, &want), RUNG_OK);
    assert_int_equal(h.session->map(h.session, &h.call, a, 0, &view), RUNG_OK);
    for (int i = 0; i < 64; i++)
        assert_true(want.value[i] == 2.0 * ((const float *)view.data)[i] + 1);
    harness_done(&h);
    assert_int_equal(fake_counts.buffers, 0);
}

static void the_host_compares_where_the_device_can_not(void **state)
{
    static const int32_t answers[] = {RUNG_EUNSUPPORTED, RUNG_ENOMEM};
    for (int i = 0; i < 2; i++) {
        struct harness h;
        struct rung_comparison c;
        harness_clean(state);
        fake_config.device_refuses = answers[i];
        prepare(&h, ONE_LAUNCH("right"));
        struct rung_run *run = harness_run(&h, 64, 2, 0);
        assert_int_equal(h.session->compare_fast(h.session, &h.call, run, 1, &c), answers[i]);
        h.error = rung_error_init();
        assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
        assert_int_equal(c.n_bad, 0);
        assert_int_equal(fake_counts.evaluations, 1);
        assert_int_equal(h.error.code, RUNG_OK);
        fake_config.device_refuses = 0;
        run = harness_run(&h, 64, 4, 0);
        assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
        assert_int_equal(fake_counts.device_evaluations,
                         i); /* what has no form is not asked again */
        harness_done(&h);
    }
}

static void inputs_given_as_bytes_go_to_the_device_as_they_are(void **state)
{
    static const int64_t n = 64;
    float bytes[64] = {1, 2, 3};
    struct rung_fill fill = {.struct_size = sizeof fill, .bytes = bytes, .n_bytes = sizeof bytes};
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .fills = &fill, .n_fills = 1};
    struct harness h;
    struct rung_comparison c;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"));
    struct rung_run *run = take(&h, &request);
    memset(bytes, 0, sizeof bytes); /* the caller's again */
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
    assert_int_equal(c.n_bad, 0);
    assert_int_equal(fake_counts.device_evaluations, 1);
    assert_int_equal(fake_gpu.draws, 0);
    harness_done(&h);
}

/* ---- Baselines ---- */

static uint64_t scratch_seen;
static int n_enqueued;

static int32_t enqueue(void *self, struct rung_call *call, const struct rung_baseline_case *c,
                       const uint64_t *addresses, uint64_t scratch)
{
    (void)self, (void)call, (void)c;
    struct rung_launch launch = {0};
    struct fake_args args = {.x = (float *)addresses[0], .y = (float *)addresses[1], .n = 64};
    scratch_seen = scratch;
    n_enqueued++;
    fake_clock += 5e4;
    right(&args, &launch, NULL);
    return RUNG_OK;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **self)
{
    (void)host, (void)options, (void)err;
    *self = &n_enqueued;
    return RUNG_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static const struct rung_baseline_ops baseline_ops = {.struct_size = sizeof baseline_ops,
                                                      .enqueue = enqueue};
static const struct rung_factory baseline_factory = {.struct_size = sizeof baseline_factory,
                                                     .thread_model = RUNG_SERIAL_INSTANCE,
                                                     .kind = RUNG_KIND_BASELINE,
                                                     .name = "fake",
                                                     .summary = "fake",
                                                     .ops = &baseline_ops,
                                                     .create = create,
                                                     .destroy = destroy};
static const struct rung_loaded baseline_loaded = {.path = "fake", .factory = &baseline_factory};

static void a_baseline_runs_as_a_candidate_does(void **state)
{
    static const int64_t n = 64;
    struct rung_baseline_case ready = {
        .struct_size = sizeof ready, .label = "fakeSgemm", .scratch_bytes = 100};
    struct rung_instance *baseline;
    struct rung_comparison c;
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"));
    rung_session_close(h.open);
    assert_int_equal(fake_counts.modules, 0);
    assert_int_equal(
        rung_instance_new(&baseline_loaded, NULL, "fake", "/", NULL, &baseline, &h.error), 0);
    const struct rung_session_spec spec = {.device = h.device,
                                           .reference = h.reference,
                                           .info = &h.info,
                                           .task = &h.task,
                                           .baseline = baseline,
                                           .baseline_case = &ready,
                                           .gpu = &fake_gpu};
    assert_int_equal(rung_session_open(&spec, &h.call, &h.open, &h.load_fault), RUNG_OK);
    h.session = rung_session_table(h.open);
    assert_null(h.session->artifact);
    struct rung_run *run = harness_run(&h, 64, 1, 0);
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
    assert_int_equal(c.n_bad, 0);
    assert_int_equal(run->n_launches, 1);
    assert_string_equal(run->kernels[0], "fakeSgemm");
    assert_true(scratch_seen != 0 && scratch_seen % 256 == 0);
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED | RUNG_RUN_COLD,
                                       .dims = &n,
                                       .seed = 4,
                                       .repeats = 5,
                                       .sets = 2,
                                       .verify = 1};
    n_enqueued = n_seen = 0;
    run = take(&h, &request);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(n_enqueued, 5);
    assert_true(run->samples_ns[4] == 5e4);
    assert_int_equal(run->n_verified, 1);
    assert_true(seen_x[0] != seen_x[1] && seen_first[0] != seen_first[2]);
    harness_done(&h);
    rung_instance_free(baseline);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(outputs_are_compared_on_the_device),
                                       T(the_host_compares_where_the_device_can_not),
                                       T(inputs_given_as_bytes_go_to_the_device_as_they_are),
                                       T(a_baseline_runs_as_a_candidate_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
