/*
 * Timed runs: fresh sets for every sample, batches, clocks, verification, what is kept between
 * runs; and kernels that are fast by not doing the work.
 */
#include "support/support.h"

#include "fake_gpu.h"
#include "harness.h"

#include "base/io.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Kernels ---- */

enum { MOST = 4096 };

static struct {
    float first;
    float *x;
} seen[MOST];
static int n_seen, n_poisoned;

static void right(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    float v = a->y[a->n - 1];
    (void)l, (void)f;
    n_poisoned += isnan(v); /* the poison of even seeds */
    seen[n_seen % MOST].first = a->x[0];
    seen[n_seen++ % MOST].x = a->x;
    for (int i = 0; i < a->n; i++)
        a->y[i] = 2 * a->x[i] + 1;
}

/* Keeps the result of an input's address and gives it again. */
static struct {
    float *x;
    float y[64];
} memory[8];

static void memoise(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    int i = 0;
    while (i < 8 && memory[i].x && memory[i].x != a->x)
        i++;
    if (i < 8 && memory[i].x == a->x) {
        memcpy(a->y, memory[i].y, sizeof memory[i].y);
        return;
    }
    right(a, l, f);
    if (i == 8)
        return;
    memory[i].x = a->x;
    memcpy(memory[i].y, a->y, sizeof memory[i].y);
}

/* Does nothing where a few elements are what they were the last time. */
static float sampled[3];

static void skip_equal(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    const float now[3] = {a->x[0], a->x[a->n / 2], a->x[a->n - 1]};
    static float kept[64];
    if (memcmp(now, sampled, sizeof now) == 0) {
        memcpy(a->y, kept, sizeof kept);
        return;
    }
    memcpy(sampled, now, sizeof now);
    right(a, l, f);
    memcpy(kept, a->y, sizeof kept);
}

/* Right ten times. */
static void drift(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    if (n_seen > 10)
        a->y[7] = 0;
}

/* Most of the work where the events do not see it. */
static void elsewhere(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    for (uint64_t end = rung_now_ns() + 2000000; rung_now_ns() < end;)
        ;
}

static void overrun(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    if (n_seen == 3)
        a->y[a->n] = 0;
}

static void spoil(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    a->x[3] += 1;
}

static void nothing(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)a, (void)l, (void)f;
}

static void prepare(struct harness *h, const char *plan, struct session_gpu *gpu)
{
    static const struct {
        const char *symbol;
        fake_kernel run;
    } all[] = {{"right", right},         {"memoise", memoise}, {"skip_equal", skip_equal},
               {"drift", drift},         {"overrun", overrun}, {"spoil", spoil},
               {"elsewhere", elsewhere}, {"nothing", nothing}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fake_config.kernels[i].symbol = all[i].symbol;
        fake_config.kernels[i].run = all[i].run;
    }
    fake_config.flags |= RUNG_DEVICE_MEASURES;
    fake_config.launch_ns = 100e3;
    memset(memory, 0, sizeof memory);
    memset(sampled, 0, sizeof sampled);
    memset(&fake_gpu, 0, sizeof fake_gpu);
    n_seen = n_poisoned = 0;
    harness_init(h, RUNG_F32);
    harness_timed(h);
    h->gpu = gpu;
    harness_open(h, plan);
    assert_non_null(h->session);
}

static struct rung_run_request timed(const int64_t *n, uint32_t repeats, uint32_t sets,
                                     uint32_t batch)
{
    return (struct rung_run_request){.struct_size = sizeof(struct rung_run_request),
                                     .flags = RUNG_RUN_TIMED | RUNG_RUN_COLD,
                                     .dims = n,
                                     .seed = 4,
                                     .repeats = repeats,
                                     .sets = sets,
                                     .batch = batch};
}

static struct rung_run *take(struct harness *h, const struct rung_run_request *request)
{
    struct rung_run *run = NULL;
    if (h->session->run(h->session, &h->call, request, &run))
        fail_msg("%s", h->error.message);
    return run;
}

/* ---- Samples ---- */

static void every_execution_has_inputs_of_its_own(void **state)
{
    static const int64_t n = 64;
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        struct harness h;
        harness_clean(state);
        prepare(&h, ONE_LAUNCH("right"), on_gpu ? &fake_gpu : NULL);
        struct rung_run_request request = timed(&n, 6, 3, 1);
        struct rung_run *run = take(&h, &request);
        assert_string_equal(run->fault.code, "");
        assert_int_equal(run->n_samples, 6);
        assert_int_equal(n_seen, 6);
        assert_int_equal(n_poisoned, 6);
        assert_int_equal(run->set_bytes, 512);
        assert_int_equal(fake_counts.flushes, 6);
        for (int i = 0; i < 6; i++) {
            assert_true(run->samples_ns[i] == 100e3);
            for (int k = 0; k < i; k++) {
                assert_true(seen[i].first != seen[k].first);
                assert_true((seen[i].x == seen[k].x) == (i % 3 == k % 3));
            }
        }
        assert_int_equal(fake_gpu.draws, on_gpu ? 6 : 0);
        assert_int_equal(run->before.known, 1);
        harness_done(&h);
    }
}

static void a_batch_is_one_graph_and_a_sample_its_share(void **state)
{
    static const int64_t n = 64;
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("right") ONE_LAUNCH("right"), &fake_gpu);
    struct rung_run_request request = timed(&n, 5, 8, 4);
    struct rung_run *run = take(&h, &request);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(run->n_launches, 2);
    assert_int_equal(n_seen, 5 * 4 * 2);
    assert_int_equal(n_poisoned, 5 * 4);
    for (int i = 0; i < 5; i++)
        assert_true(run->samples_ns[i] == 200e3);
    assert_true(run->elapsed_ns == 200e3);
    /* Two groups of four sets take turns; a third graph is the floor's. */
    assert_int_equal(fake_counts.captures, 3);
    assert_int_equal(fake_counts.replays, 21 + 5);
    assert_true(seen[0].x != seen[8].x && seen[0].x == seen[16].x);
    assert_true(seen[0].first != seen[16].first);
    assert_true(run->after.sm_mhz > run->before.sm_mhz);
    assert_int_equal(fake_counts.graphs, 0);
    assert_int_equal(fake_counts.flushes, 5 + 21);
    harness_done(&h);
}

static void batches_need_graphs_and_enough_sets(void **state)
{
    static const int64_t n = 64;
    struct harness h;
    struct rung_run *run;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"), NULL);
    struct rung_run_request request = timed(&n, 5, 3, 4);
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    request.sets = 1 << 20;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    fake_config.no_capture = 1;
    request.sets = 4;
    run = take(&h, &request);
    assert_string_equal(run->fault.code, "device.unsupported");
    harness_done(&h);
    harness_clean(state);
    fake_config.flags = RUNG_DEVICE_MEASURES;
    fake_config.kernels[0].symbol = "right";
    fake_config.kernels[0].run = right;
    harness_init(&h, RUNG_F32); /* a device without graphs */
    harness_open(&h, ONE_LAUNCH("right"));
    request.batch = 2;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EUNSUPPORTED);
    harness_done(&h);
}

static void the_next_run_finds_everything_prepared(void **state)
{
    static const int64_t n = 64, other = 32;
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"), &fake_gpu);
    struct rung_run_request request = timed(&n, 2, 4, 4);
    h.session->end(h.session, take(&h, &request));
    int allocs = fake_counts.allocs, buffers = fake_counts.buffers;
    assert_int_equal(buffers, 2); /* one a slot, for all sets */
    float first = seen[0].first;
    request.seed = 5;
    n_seen = 0;
    struct rung_run *run = take(&h, &request);
    assert_true(seen[0].first != first);
    assert_true(run->floor_ns >= 0 && run->n_samples == 2);
    assert_int_equal(fake_counts.allocs, allocs);
    /* A second one beside it has buffers of its own; only one is kept. */
    h.session->end(h.session, take(&h, &request));
    h.session->end(h.session, run);
    assert_int_equal(fake_counts.buffers, 2);
    request.dims = &other;
    h.session->end(h.session, take(&h, &request));
    assert_int_equal(fake_counts.buffers, 2);
    harness_done(&h);
}

static void what_is_kept_makes_room_for_others(void **state)
{
    static const int64_t n = 1000;
    struct harness h;
    (void)state;
    fake_config.flags = RUNG_DEVICE_EXACT_BOUNDS;
    fake_config.memory = 8000;
    prepare(&h, ONE_LAUNCH("right"), NULL);
    struct rung_run_request request = timed(&n, 2, 1, 1);
    h.session->end(h.session, take(&h, &request));
    assert_int_equal(fake_counts.buffers, 2);
    struct rung_run *run = harness_run(&h, 900, 1, 0);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(fake_counts.buffers, 2);
    request.sets = 2;
    assert_string_equal(take(&h, &request)->fault.code, "device.memory");
    harness_done(&h);
}

/* ---- What is caught ---- */

static struct rung_run *exploit(struct harness *h, const char *kernel, struct session_gpu *gpu,
                                uint32_t sets, uint32_t batch, uint32_t verify)
{
    static const int64_t n = 64;
    char plan[128];
    snprintf(plan, sizeof plan, "//@ launch %s grid=(1) block=(32) args=(x, y, n)\n", kernel);
    prepare(h, plan, gpu);
    struct rung_run_request request = timed(&n, 50, sets, batch);
    request.verify = verify;
    return take(h, &request);
}

static void honest_launches_are_verified(void **state)
{
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        struct harness h;
        harness_clean(state);
        struct rung_run *run = exploit(&h, "right", on_gpu ? &fake_gpu : NULL, 4, 4, 3);
        assert_string_equal(run->fault.code, "");
        assert_int_equal(run->n_verified, 3);
        assert_int_equal(fake_counts.device_evaluations, on_gpu ? 3 : 0);
        assert_int_equal(fake_counts.evaluations, on_gpu ? 0 : 3);
        assert_int_equal(fake_gpu.compares, on_gpu ? 3 : 0);
        struct rung_comparison c;
        assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
        assert_int_equal(c.n_bad, 0);
        harness_done(&h);
        harness_clean(state);
        run = exploit(&h, "right", on_gpu ? &fake_gpu : NULL, 1, 1, 100);
        assert_int_equal(run->n_verified, 50);
        harness_done(&h);
    }
}

static void a_kept_result_is_caught(void **state)
{
    for (int mode = 0; mode < 4; mode++) {
        struct harness h;
        harness_clean(state);
        struct rung_run *run = exploit(&h, "memoise", mode & 1 ? &fake_gpu : NULL, mode & 2 ? 4 : 1,
                                       mode & 2 ? 4 : 1, 1);
        assert_string_equal(run->fault.code, "numeric.mismatch");
        support_contains(run->fault.message, "in the timed launches (sample 50 of 50)");
        assert_int_equal(run->n_verified, 0);
        harness_done(&h);
    }
}

/* One-hot rows: what the kernel looks at is nearly always zero. */
static void a_kernel_that_knows_inputs_by_samples_is_caught(void **state)
{
    static const int64_t n = 64;
    struct rung_fill fill = {.struct_size = sizeof fill, .kind = "onehot_rows"};
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("skip_equal"), NULL);
    struct rung_run_request request = timed(&n, 50, 1, 1);
    request.fills = &fill;
    request.n_fills = 1;
    request.verify = 10;
    assert_string_equal(take(&h, &request)->fault.code, "numeric.mismatch");
    harness_done(&h);
}

static void drift_after_ten_calls_is_caught(void **state)
{
    struct harness h;
    (void)state;
    struct rung_run *run = exploit(&h, "drift", &fake_gpu, 1, 1, 1);
    assert_string_equal(run->fault.code, "numeric.mismatch");
    support_contains(run->fault.message, "element 7 of y is 0");
    harness_done(&h);
}

static void work_elsewhere_is_caught(void **state)
{
    struct harness h;
    (void)state;
    struct rung_run *run = exploit(&h, "elsewhere", NULL, 1, 1, 1);
    assert_string_equal(run->fault.code, "time.unstable");
    support_contains(run->fault.message, "100.0 us");
    harness_done(&h);
}

static void what_is_not_written_is_caught(void **state)
{
    struct harness h;
    (void)state;
    struct rung_run *run = exploit(&h, "nothing", NULL, 2, 2, 1);
    assert_string_equal(run->fault.code, "output.unwritten");
    harness_done(&h);
    run = exploit(&h, "nothing", &fake_gpu, 2, 1, 1);
    assert_string_equal(run->fault.code, "output.unwritten");
    harness_done(&h);
}

static void guards_and_inputs_of_all_sets_are_checked(void **state)
{
    for (int mode = 0; mode < 4; mode++) {
        struct session_gpu *gpu = mode & 1 ? &fake_gpu : NULL;
        struct harness h;
        harness_clean(state);
        fake_config.flags = mode & 2 ? RUNG_DEVICE_EXACT_BOUNDS : 0;
        assert_int_equal(exploit(&h, "overrun", gpu, 10, 5, 0)->guard_broken, 2);
        assert_int_equal(fake_gpu.bytes > 0, mode & 1);
        harness_done(&h);
        assert_int_equal(exploit(&h, "spoil", gpu, 10, 5, 0)->modified_input, 1);
        harness_done(&h);
    }
}

static void a_cancelled_block_ends(void **state)
{
    static const int64_t n = 64;
    struct harness h;
    struct rung_run *run;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"), NULL);
    struct rung_run_request request = timed(&n, 5, 4, 4);
    h.call.cancel = rung_cancel_new();
    rung_cancel_request(h.call.cancel);
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_ECANCELLED);
    rung_cancel_free(h.call.cancel);
    h.call.cancel = NULL;
    h.error = rung_error_init();
    h.call.deadline_ns = 1;
    assert_string_equal(take(&h, &request)->fault.code, "run.timeout");
    assert_int_equal(n_seen, 0);
    harness_done(&h);
}

/* ---- Large outputs on the host ---- */

static void huge_outputs_are_verified_in_pieces(void **state)
{
    static const int64_t n = 1 << 16, more = 1 << 17;
    struct harness h;
    (void)state;
    prepare(&h, ONE_LAUNCH("right"), NULL);
    struct rung_run_request request = timed(&n, 2, 1, 1);
    request.verify = 1;
    fake_config.launch_ns = 1e9;
    assert_string_equal(take(&h, &request)->fault.code, "");
    assert_int_equal(fake_counts.regions, 0);
    request.dims = &more; /* whole it would be too large for the fake reference */
    struct rung_run *run = take(&h, &request);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(run->n_verified, 1);
    assert_in_range(fake_counts.regions, 16, 32);
    harness_done(&h);
    prepare(&h, ONE_LAUNCH("nothing"), NULL);
    run = take(&h, &request);
    assert_string_equal(run->fault.code, "output.unwritten");
    support_contains(run->fault.message, "of 65536 compared elements");
    harness_done(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(every_execution_has_inputs_of_its_own),
                                       T(a_batch_is_one_graph_and_a_sample_its_share),
                                       T(batches_need_graphs_and_enough_sets),
                                       T(the_next_run_finds_everything_prepared),
                                       T(what_is_kept_makes_room_for_others),
                                       T(honest_launches_are_verified),
                                       T(a_kept_result_is_caught),
                                       T(a_kernel_that_knows_inputs_by_samples_is_caught),
                                       T(drift_after_ten_calls_is_caught),
                                       T(work_elsewhere_is_caught),
                                       T(what_is_not_written_is_caught),
                                       T(guards_and_inputs_of_all_sets_are_checked),
                                       T(a_cancelled_block_ends),
                                       T(huge_outputs_are_verified_in_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
