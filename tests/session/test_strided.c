/*
 * Tensors with strides: dense on the host, spread out on the device, and what lies between their
 * elements is watched in every kind of run.
 */
#include "support/support.h"

#include "fake_gpu.h"
#include "harness.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/* Shapes and strides of x and y, as the task and as the kernels have them. */
struct layout {
    const char *shape[4], *x_stride[4], *y_stride[4];
    uint32_t n_dims;
    int sizes[4], x_steps[4], y_steps[4]; /* a size of 0: n */
};

/* x with padded rows, y with its columns in one piece and padded. */
static const struct layout padded_rows = {.shape = {"n", "5"},
                                          .x_stride = {"8", "1"},
                                          .y_stride = {"1", "n + 2"},
                                          .n_dims = 2,
                                          .sizes = {0, 5},
                                          .x_steps = {8, 1},
                                          .y_steps = {1, 9}};
static const struct layout four = {.shape = {"n", "2", "3", "4"},
                                   .x_stride = {"48", "24", "5", "1"},
                                   .y_stride = {"2", "2 * n * 12", "2 * n * 4", "2 * n"},
                                   .n_dims = 4,
                                   .sizes = {0, 2, 3, 4},
                                   .x_steps = {48, 24, 5, 1},
                                   .y_steps = {2, 168, 56, 14}};
enum { N = 7 };

static const struct layout *used;
static int launches, spoil_at;

static int size_of(int d)
{
    return used->sizes[d] ? used->sizes[d] : N;
}

static int elements(void)
{
    int n = 1;
    for (uint32_t d = 0; d < used->n_dims; d++)
        n *= size_of((int)d);
    return n;
}

/* Where element i lies. */
static int place(const int *steps, int i)
{
    int at = 0;
    for (int d = (int)used->n_dims; d-- > 0; i /= size_of(d))
        at += i % size_of(d) * steps[d];
    return at;
}

static void right(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    launches++;
    for (int i = 0; i < elements(); i++)
        a->y[place(used->y_steps, i)] = 2 * a->x[place(used->x_steps, i)] + 1;
}

static void dense(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    for (int i = 0; i < elements(); i++)
        a->y[i] = 2 * a->x[i] + 1;
}

/* Right, and writes behind the first row of x, or the first column of y, in one launch only. */
static void spoil_x(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    if (launches == spoil_at)
        a->x[5] = 0;
}

static void spoil_y(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    if (launches == spoil_at)
        a->y[N] = 0;
}

static void changes_x(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    a->x[place(used->x_steps, elements() - 1)] += 1;
}

static void misses_one(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    int last = place(used->y_steps, elements() - 1);
    float kept = a->y[last];
    right(a, l, f);
    a->y[last] = kept;
}

static void adds_to_y(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    launches++;
    for (int i = 0; i < elements(); i++)
        a->y[place(used->y_steps, i)] += 1;
}

static void init(struct harness *h, const struct layout *layout)
{
    static const struct {
        const char *symbol;
        fake_kernel run;
    } all[] = {{"right", right},        {"dense", dense},         {"spoil_x", spoil_x},
               {"spoil_y", spoil_y},    {"changes_x", changes_x}, {"misses_one", misses_one},
               {"adds_to_y", adds_to_y}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fake_config.kernels[i].symbol = all[i].symbol;
        fake_config.kernels[i].run = all[i].run;
    }
    used = layout;
    launches = 0;
    harness_init(h, RUNG_F32);
    for (uint32_t d = 0; d < layout->n_dims; d++)
        for (int t = 0; t < 2; t++) {
            h->tensors[t].shape[d] = layout->shape[d];
            h->tensors[t].stride[d] = (t ? layout->y_stride : layout->x_stride)[d];
        }
    h->tensors[0].n_dims = h->tensors[1].n_dims = layout->n_dims;
}

static void prepare(struct harness *h, const struct layout *layout, const char *plan)
{
    init(h, layout);
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

static void right_kernels_pass_and_the_host_sees_dense_tensors(void **state)
{
    const struct layout *layouts[] = {&padded_rows, &four};
    for (uint32_t i = 0; i < 8; i++) {
        struct harness h;
        struct rung_tensor_view view;
        harness_clean(state);
        fake_config.flags =
            (i & 1 ? RUNG_DEVICE_EXACT_BOUNDS : 0u) | (i & 2 ? RUNG_DEVICE_HOST_MEMORY : 0u);
        prepare(&h, layouts[i / 4], ONE_LAUNCH("right"));
        struct rung_run *run = harness_run(&h, N, 3, 0);
        assert_string_equal(run->fault.code, "");
        assert_int_equal(run->guard_broken, 0);
        assert_int_equal(run->modified_input, 0);
        struct rung_comparison c = compared(&h, run);
        assert_int_equal(c.n, elements());
        assert_int_equal(c.n_bad, 0);
        assert_int_equal(h.session->map(h.session, &h.call, run, 0, &view), RUNG_OK);
        for (int k = 0; k < elements(); k++)
            assert_true(((const float *)view.data)[k] ==
                        (float)rung_fill_value("normal", 3, 0, (uint64_t)k,
                                               size_of(-1 + (int)used->n_dims)));
        assert_int_equal(view.strides[used->n_dims - 1], 1);
        assert_int_equal(view.strides[0], elements() / N);
        struct rung_region box = {.struct_size = sizeof box, .n_dims = used->n_dims};
        for (uint32_t d = 0; d < used->n_dims; d++)
            box.start[d] = box.count[d] = 1;
        assert_int_equal(h.session->compare_region(h.session, &h.call, run, 1, &box, &c), RUNG_OK);
        assert_int_equal(c.n_bad, 0);
        uint32_t same = 0;
        struct rung_run *again = harness_run(&h, N, 3, 0);
        assert_int_equal(h.session->same_bits(h.session, &h.call, run, again, &same), RUNG_OK);
        assert_int_equal(same, 1);
        harness_done(&h);
    }
}

static void what_lies_between_elements_is_watched(void **state)
{
    for (uint32_t flags = 0; flags < 2; flags++) {
        struct harness h;
        harness_clean(state);
        fake_config.flags = flags ? RUNG_DEVICE_EXACT_BOUNDS | RUNG_DEVICE_HOST_MEMORY : 0u;
        prepare(&h, &padded_rows, ONE_LAUNCH("spoil_x"));
        spoil_at = 1;
        assert_int_equal(harness_run(&h, N, 1, 0)->guard_broken, 1);
        spoil_at = 9;
        assert_int_equal(harness_run(&h, N, 1, 0)->guard_broken, 0);
        harness_done(&h);
        prepare(&h, &padded_rows, ONE_LAUNCH("spoil_y"));
        spoil_at = 1;
        assert_int_equal(harness_run(&h, N, 1, 0)->guard_broken, 2);
        harness_done(&h);
        prepare(&h, &padded_rows, ONE_LAUNCH("dense"));
        assert_int_equal(harness_run(&h, N, 1, 0)->guard_broken, 2);
        harness_done(&h);
    }
}

/* The next repeat lays the gaps anew: what the first one did to them must not be lost. */
static void a_repeat_does_not_hide_an_earlier_one(void **state)
{
    static const int64_t n = N;
    struct harness h;
    (void)state;
    prepare(&h, &padded_rows, ONE_LAUNCH("spoil_y"));
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .seed = 1, .repeats = 4};
    struct rung_run *run;
    spoil_at = 2;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(launches, 4);
    assert_int_equal(run->guard_broken, 2);
    harness_done(&h);
}

static void inputs_and_unwritten_elements_are_noticed(void **state)
{
    struct harness h;
    (void)state;
    prepare(&h, &four, ONE_LAUNCH("changes_x"));
    assert_int_equal(harness_run(&h, N, 1, 0)->modified_input, 1);
    assert_int_equal(harness_run(&h, N, 1, RUNG_RUN_KEEP_INPUTS)->modified_input, 0);
    harness_done(&h);
    prepare(&h, &four, ONE_LAUNCH("misses_one"));
    struct rung_comparison c = compared(&h, harness_run(&h, N, 2, 0));
    assert_int_equal(c.n_unwritten, 1);
    assert_int_equal(c.first_bad, elements() - 1);
    harness_done(&h);
}

static void an_inout_is_as_drawn_in_every_repeat(void **state)
{
    static const int64_t n = N;
    struct harness h;
    struct rung_tensor_view view;
    struct rung_run *run;
    (void)state;
    init(&h, &padded_rows);
    h.tensors[1].role = RUNG_ROLE_INOUT;
    harness_open(&h, ONE_LAUNCH("adds_to_y"));
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .seed = 5, .repeats = 3};
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(launches, 3);
    assert_int_equal(run->guard_broken, 0);
    assert_int_equal(h.session->map(h.session, &h.call, run, 1, &view), RUNG_OK);
    for (int i = 0; i < elements(); i++)
        assert_true(((const float *)view.data)[i] ==
                    (float)rung_fill_value("normal", 5, 1, (uint64_t)i, 5) + 1);
    harness_done(&h);
}

/* Elements of every size go where they belong, and come back. */
static void types_of_every_size(void **state)
{
    static const uint32_t types[] = {RUNG_F16, RUNG_I64, RUNG_U8};
    for (size_t t = 0; t < 3; t++) {
        struct harness h;
        struct rung_tensor_view view;
        uint8_t want[8 * N * 24];
        harness_clean(state);
        init(&h, t == 1 ? &padded_rows : &four);
        h.tensors[0].dtype = types[t];
        h.tensors[0].fill = "integers";
        harness_open(&h, ONE_LAUNCH("adds_to_y"));
        struct rung_run *run = harness_run(&h, N, 8, 0);
        struct rung_fill fill = {.struct_size = sizeof fill, .kind = "integers"};
        assert_int_equal(rung_fill_draw(&fill, types[t], 8, 0, (uint64_t)elements(),
                                        size_of((int)used->n_dims - 1), want),
                         RUNG_OK);
        assert_int_equal(run->guard_broken, 0);
        assert_int_equal(run->modified_input, 0);
        assert_int_equal(h.session->map(h.session, &h.call, run, 0, &view), RUNG_OK);
        assert_memory_equal(view.data, want, (size_t)elements() * rung_dtype_bits(types[t]) / 8);
        harness_done(&h);
    }
}

static struct rung_run *timed_run(struct harness *h, const int64_t *n)
{
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED,
                                       .dims = n,
                                       .seed = 4,
                                       .repeats = 5,
                                       .sets = 8,
                                       .batch = 4,
                                       .verify = 3};
    struct rung_run *run = NULL;
    if (h->session->run(h->session, &h->call, &request, &run))
        fail_msg("%s", h->error.message);
    return run;
}

/* In the last sample as in the first, whose sets are used again. The host works in either case. */
static void timed_runs_watch_all_sets(void **state)
{
    static const int64_t n = N;
    static const char *const plans[] = {ONE_LAUNCH("right"), ONE_LAUNCH("spoil_y"),
                                        ONE_LAUNCH("spoil_x")};
    for (uint32_t i = 0; i < 10; i++) {
        struct harness h;
        harness_clean(state);
        memset(&fake_gpu, 0, sizeof fake_gpu);
        fake_config.launch_ns = 100e3;
        fake_config.flags = RUNG_DEVICE_MEASURES;
        init(&h, &padded_rows);
        harness_timed(&h);
        h.gpu = i & 1 ? &fake_gpu : NULL;
        h.info.flags = fake_config.flags;
        harness_open(&h, plans[i < 2 ? 0 : 1 + i / 6]);
        spoil_at = (i - 2) % 4 < 2 ? 2 : 18;
        struct rung_run *run = timed_run(&h, &n);
        assert_string_equal(run->fault.code, "");
        assert_int_equal(launches, 20);
        assert_int_equal(run->guard_broken, i < 2 ? 0 : i < 6 ? 2 : 1);
        assert_int_equal(run->n_verified, 3);
        assert_int_equal(run->set_bytes, (6 * 8 + 5 + 6 + 4 * 9 + 1) * 4);
        assert_int_equal(fake_gpu.draws + fake_gpu.compares, 0);
        h.session->end(h.session, run);
        if (i < 2)
            assert_int_equal(timed_run(&h, &n)->guard_broken, 0);
        harness_done(&h);
    }
}

static void sampled_runs_take_strides(void **state)
{
    static const int64_t n = N;
    struct harness h;
    struct rung_run *run;
    (void)state;
    fake_config.flags = RUNG_DEVICE_COUNTERS | RUNG_DEVICE_HOST_MEMORY | RUNG_DEVICE_EXACT_BOUNDS;
    prepare(&h, &four, ONE_LAUNCH("right"));
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .flags = RUNG_RUN_SAMPLED | RUNG_RUN_COUNTERS};
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_string_equal(run->fault.code, "");
    assert_int_equal(run->guard_broken, 0);
    harness_done(&h);
}

static void given_bytes_are_dense(void **state)
{
    static const int64_t n = N;
    struct harness h;
    struct rung_run *run;
    float bytes[N * 5];
    (void)state;
    for (int i = 0; i < N * 5; i++)
        bytes[i] = (float)i;
    prepare(&h, &padded_rows, ONE_LAUNCH("right"));
    const struct rung_fill fill = {
        .struct_size = sizeof fill, .bytes = bytes, .n_bytes = sizeof bytes};
    struct rung_run_request request = {
        .struct_size = sizeof request, .dims = &n, .fills = &fill, .n_fills = 1};
    struct rung_tensor_view view;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_OK);
    assert_int_equal(compared(&h, run).n_bad, 0);
    assert_int_equal(h.session->map(h.session, &h.call, run, 1, &view), RUNG_OK);
    for (int i = 0; i < N * 5; i++)
        assert_true(((const float *)view.data)[i] == 2 * bytes[i] + 1);
    harness_done(&h);
}

/* Strides that fit at the listed shapes and not at others: a verifier is told, and asks elsewhere.
 */
static void impossible_strides_are_no_shape(void **state)
{
    static const int64_t two = 2, six = 6;
    static const struct layout narrow = {
        .shape = {"3", "n"}, .x_stride = {"4", "1"}, .y_stride = {"4", "1"}, .n_dims = 2};
    struct harness h;
    int64_t shape[RUNG_MAX_DIMS];
    struct rung_run *run;
    (void)state;
    prepare(&h, &narrow, ONE_LAUNCH("right"));
    assert_int_equal(h.session->shape(h.session, 0, &two, shape), RUNG_OK);
    assert_int_equal(shape[1], 2);
    assert_int_equal(h.session->shape(h.session, 0, &six, shape), RUNG_EINVAL);
    struct rung_run_request request = {.struct_size = sizeof request, .dims = &six};
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    support_contains(h.error.message, "overlap");
    harness_done(&h);
}

/* Buffers begin where `align` says, in every set. */
static float *seen_y;

static void looks_at_y(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    right(a, l, f);
    assert_int_equal((uintptr_t)a->y % 4096, 0);
    seen_y = a->y;
}

static void alignment_holds_up_to_its_limit(void **state)
{
    static const int64_t n = N;
    struct harness h;
    (void)state;
    fake_config.launch_ns = 100e3;
    fake_config.flags = RUNG_DEVICE_MEASURES;
    init(&h, &padded_rows);
    fake_config.kernels[0].run = looks_at_y;
    h.tensors[1].alignment = 4096;
    harness_timed(&h);
    h.info.flags = fake_config.flags;
    harness_open(&h, ONE_LAUNCH("right"));
    seen_y = NULL;
    assert_int_equal(timed_run(&h, &n)->guard_broken, 0);
    assert_non_null(seen_y);
    struct rung_run_request request = {.struct_size = sizeof request, .dims = &n};
    struct rung_run *run;
    h.tensors[1].alignment = 8192;
    assert_int_equal(h.session->run(h.session, &h.call, &request, &run), RUNG_EINVAL);
    harness_done(&h);
}

static void zero_does_not_take_what_lies_between(void **state)
{
    const char *problem = NULL;
    struct harness h;
    (void)state;
    init(&h, &padded_rows);
    assert_null(rung_plan_parse(h.arena, &h.task, "k.cu",
                                rung_text_of("//@ zero y\n" ONE_LAUNCH("right")), &problem));
    support_contains(problem, "zero it in a kernel");
    harness_open(&h, ONE_LAUNCH("right"));
    harness_done(&h);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(right_kernels_pass_and_the_host_sees_dense_tensors),
                                       T(what_lies_between_elements_is_watched),
                                       T(a_repeat_does_not_hide_an_earlier_one),
                                       T(inputs_and_unwritten_elements_are_noticed),
                                       T(an_inout_is_as_drawn_in_every_repeat),
                                       T(types_of_every_size),
                                       T(timed_runs_watch_all_sets),
                                       T(sampled_runs_take_strides),
                                       T(given_bytes_are_dense),
                                       T(impossible_strides_are_no_shape),
                                       T(alignment_holds_up_to_its_limit),
                                       T(zero_does_not_take_what_lies_between)};
    return cmocka_run_group_tests_name("session_strided", tests, NULL, NULL);
}
