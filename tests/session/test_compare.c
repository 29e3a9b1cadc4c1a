/* The comparison: which bits are good, and what is counted. The kernel stores what the test says.
 */
#include "support/support.h"

#include "harness.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N = 2500 };

static const void *store;
static size_t store_bytes;
static double value[N], bound[N];

static void copy(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    memcpy(a->y, store, store_bytes);
}

/* Compares n elements of a type against value[] and bound[]. */
static struct rung_comparison compared(uint32_t dtype, uint32_t precision, const void *got,
                                       int64_t n)
{
    struct harness h;
    struct rung_comparison c;
    fake_config.flags = RUNG_DEVICE_EXACT_BOUNDS;
    fake_config.kernels[0].symbol = "copy";
    fake_config.kernels[0].run = copy;
    fake_config.value = value;
    fake_config.bound = bound;
    store = got;
    store_bytes = (size_t)n * rung_dtype_bits(dtype) / 8;
    harness_init(&h, dtype);
    h.task.precision = precision;
    harness_open(&h, ONE_LAUNCH("copy"));
    struct rung_run *run = harness_run(&h, n, 11, 0);
    if (h.session->compare(h.session, &h.call, run, 1, &c))
        fail_msg("%s", h.error.message);
    harness_done(&h);
    return c;
}

static struct rung_comparison single(float got, double want, double b)
{
    value[0] = want;
    bound[0] = b;
    return compared(RUNG_F32, RUNG_PRECISION_FP32, &got, 1);
}

static void bounds_are_inclusive_and_rounded(void **state)
{
    (void)state;
    assert_int_equal(single(1, 1, 0).n_bad, 0);
    assert_int_equal(single(nextafterf(1, 2), 1, 0).n_bad, 1);
    assert_int_equal(single(nextafterf(1, 2), 1, 0x1p-23).n_bad, 0);
    assert_int_equal(single(nextafterf(1, 2), 1, 0x1p-25).n_bad, 1);
    /* A want between two floats: either neighbour only as far as the bound says. */
    assert_int_equal(single(1, 1 + 0x1p-25, 0).n_bad, 0);
    assert_int_equal(single(nextafterf(1, 2), 1 + 0x1p-25, 0).n_bad, 1);
    assert_int_equal(single(nextafterf(1, 2), 1 + 0x1p-25, 0x1.01p-25).n_bad, 0);
    struct rung_comparison c = single(1.5f, 1, 0.25);
    assert_int_equal(c.n_bad, 1);
    assert_true(c.worst == 2 && c.max_abs == 0.5 && c.max_rel == 0.5);
    assert_true(c.first_got == 1.5 && c.first_want == 1 && c.first_bound == 0.25);
    assert_true(c.worst_half == 0.5 / (0.25 * 8192));
    assert_true(isinf(single(nextafterf(1, 2), 1, 0).worst));
}

static void zeros_and_subnormals(void **state)
{
    (void)state;
    assert_int_equal(single(-0.0f, 0, 0).n_bad, 0);
    assert_int_equal(single(0.0f, -0.0, 0).n_bad, 0);
    assert_int_equal(single(FLT_TRUE_MIN, FLT_TRUE_MIN, 0).n_bad, 0);
    assert_int_equal(single(0, FLT_TRUE_MIN, 0).n_bad, 1);
    assert_int_equal(single(0, FLT_MIN / 2, FLT_MIN).n_bad, 0);
    assert_int_equal(single(0, 0x1p-151, 0).n_bad, 0); /* rounds to zero */
    struct rung_comparison c = single(0, 0, 0);
    assert_true(c.worst == 0 && c.cosine == 1 && isinf(c.psnr) && c.rmse == 0);
}

static void special_values_must_match(void **state)
{
    (void)state;
    assert_int_equal(single(NAN, NAN, 0).n_bad, 0);
    assert_int_equal(single(INFINITY, INFINITY, 0).n_bad, 0);
    assert_int_equal(single(-INFINITY, INFINITY, 0).n_missing, 1);
    assert_int_equal(single(NAN, INFINITY, 0).n_missing, 1);
    assert_int_equal(single(INFINITY, NAN, 0).n_missing, 1);
    assert_int_equal(single(3, NAN, 0).n_missing, 1);
    struct rung_comparison c = single(3, INFINITY, 1e30);
    assert_true(c.n_missing == 1 && c.n_bad == 1 && isinf(c.worst));
    c = single(NAN, 3, 1e30);
    assert_true(c.n_nan == 1 && c.n_bad == 1 && c.n_inf == 0 && c.n_unwritten == 0);
    c = single(INFINITY, 3, 1e30);
    assert_true(c.n_inf == 1 && c.n_bad == 1);
    assert_int_equal(single(-INFINITY, 1e39, 1e30).n_inf, 1);
}

static void overflow_is_honest_only_at_the_edge(void **state)
{
    (void)state;
    assert_int_equal(single(INFINITY, 1e39, 0).n_bad, 0);
    assert_int_equal(single(FLT_MAX, 1e39, 0).n_bad, 1);
    assert_int_equal(single(INFINITY, FLT_MAX, 0).n_bad, 1);
    assert_int_equal(single(INFINITY, FLT_MAX, 1e32).n_bad, 0);
    const uint16_t inf = 0x7c00, most = 0x7bff;
    value[0] = 70000;
    bound[0] = 1;
    assert_int_equal(compared(RUNG_F16, RUNG_PRECISION_FP16, &inf, 1).n_bad, 0);
    assert_int_equal(compared(RUNG_F16, RUNG_PRECISION_FP16, &most, 1).n_bad, 1);
    value[0] = 65500;
    assert_int_equal(compared(RUNG_F16, RUNG_PRECISION_FP16, &inf, 1).n_bad, 1);
    assert_int_equal(compared(RUNG_F16, RUNG_PRECISION_FP16, &most, 1).n_bad, 0);
}

/* An infinite bound asks for nothing, but for being written. */
static void an_infinite_bound_takes_anything(void **state)
{
    (void)state;
    assert_int_equal(single(NAN, 3, INFINITY).n_bad, 0);
    assert_int_equal(single(-INFINITY, 3, INFINITY).n_bad, 0);
    struct rung_comparison c = single(1e30f, 3, INFINITY);
    assert_true(c.n_bad == 0 && c.max_abs == 0 && c.worst == 0);
    struct harness h;
    store_bytes = 0;
    harness_init(&h, RUNG_F32);
    harness_open(&h, ONE_LAUNCH("copy"));
    struct rung_run *run = harness_run(&h, 1, 11, 0);
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
    assert_true(c.n_bad == 1 && c.n_unwritten == 1 && isinf(c.worst));
    harness_done(&h);
}

static void one_bad_element_is_found_anywhere(void **state)
{
    static const int places[] = {0, 1023, 1024, 1777, N - 1};
    float got[N];
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        for (int i = 0; i < N; i++) {
            value[i] = i + 1;
            bound[i] = 0;
            got[i] = (float)(i + 1);
        }
        got[places[p]] = nextafterf(got[places[p]], INFINITY);
        struct rung_comparison c = compared(RUNG_F32, RUNG_PRECISION_FP32, got, N);
        assert_int_equal(c.n_bad, 1);
        assert_int_equal(c.first_bad, places[p]);
        assert_int_equal(c.max_abs_at, places[p]);
        assert_true(c.fraction_out == 1.0 / N);
        assert_true(fabs(c.cosine - 1) < 1e-12);
    }
}

static void statistics(void **state)
{
    (void)state;
    float got[4] = {1, 2, 3, 6};
    for (int i = 0; i < 4; i++) {
        value[i] = i + 1;
        bound[i] = 4;
    }
    struct rung_comparison c = compared(RUNG_F32, RUNG_PRECISION_FP32, got, 4);
    assert_int_equal(c.n_bad, 0);
    assert_int_equal(c.first_bad, 4);
    assert_true(fabs(c.rmse - 1) < 1e-15);
    assert_true(fabs(c.psnr - 20 * log10(4)) < 1e-12);
    assert_true(fabs(c.cosine - 38 / (sqrt(50) * sqrt(30))) < 1e-12);
    assert_true(c.worst == 0.5 && c.max_rel == 0.5 && c.max_rel_at == 3);
    /* float64 extremes must not overflow the sums */
    double big[2] = {1e300, -1e300};
    value[0] = 1e300, value[1] = -1e300;
    bound[0] = bound[1] = 0;
    c = compared(RUNG_F64, RUNG_PRECISION_FP64, big, 2);
    assert_true(c.cosine == 1 && c.n_bad == 0);
}

static void integers_are_exact(void **state)
{
    int64_t got[3] = {5, -7, INT64_C(1) << 40};
    (void)state;
    value[0] = 5, value[1] = -7, value[2] = 0x1p40;
    bound[0] = bound[1] = bound[2] = 0;
    assert_int_equal(compared(RUNG_I64, RUNG_PRECISION_EXACT, got, 3).n_bad, 0);
    got[1] = -8;
    struct rung_comparison c = compared(RUNG_I64, RUNG_PRECISION_EXACT, got, 3);
    assert_true(c.n_bad == 1 && c.first_bad == 1 && c.first_got == -8 && c.n_unwritten == 0);
}

/* Every type tells what was never written from what is wrong. */
static void unwritten_of_every_type(void **state)
{
    static const uint32_t types[] = {RUNG_F64, RUNG_F32, RUNG_F16, RUNG_BF16, RUNG_I8,
                                     RUNG_U8,  RUNG_I32, RUNG_I64, RUNG_BOOL};
    static uint8_t zeros[N * 8];
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        uint32_t precision = types[t] <= RUNG_BF16 ? RUNG_PRECISION_FP32 : RUNG_PRECISION_EXACT;
        memset(bound, 0, sizeof bound);
        memset(value, 0, sizeof value);
        harness_clean(state);
        fake_config.value = value;
        assert_int_equal(compared(types[t], precision, zeros, N).n_bad, 0);
        for (int i = 0; i < N; i++)
            value[i] = 1;
        struct rung_comparison c = compared(types[t], precision, zeros, N); /* wrong, but written */
        assert_int_equal(c.n_bad, N);
        assert_int_equal(c.n_unwritten, 0);
        /* Only the first 1000 are stored. */
        struct harness h;
        store_bytes = 0;
        harness_init(&h, types[t]);
        h.task.precision = precision;
        harness_open(&h, ONE_LAUNCH("copy"));
        store_bytes = 1000 * rung_dtype_bits(types[t]) / 8;
        struct rung_run *run = harness_run(&h, N, 11, 0);
        memset(value, 0, 1000 * sizeof *value);
        assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
        harness_done(&h);
        assert_true(c.n_unwritten >= 1470 && c.n_unwritten <= 1500);
        assert_true(c.n_bad == c.n_unwritten);
        assert_true(c.n_nan == 0);
    }
}

static void a_bad_bound_is_the_references_fault(void **state)
{
    struct harness h;
    struct rung_comparison c;
    float one = 1;
    (void)state;
    value[0] = 1;
    bound[0] = NAN;
    fake_config.kernels[0].symbol = "copy";
    fake_config.kernels[0].run = copy;
    fake_config.value = value;
    fake_config.bound = bound;
    store = &one;
    store_bytes = 4;
    harness_init(&h, RUNG_F32);
    harness_open(&h, ONE_LAUNCH("copy"));
    struct rung_run *run = harness_run(&h, 1, 1, 0);
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_EMISUSE);
    harness_done(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(bounds_are_inclusive_and_rounded),
                                       T(zeros_and_subnormals),
                                       T(special_values_must_match),
                                       T(overflow_is_honest_only_at_the_edge),
                                       T(an_infinite_bound_takes_anything),
                                       T(one_bad_element_is_found_anywhere),
                                       T(statistics),
                                       T(integers_are_exact),
                                       T(unwritten_of_every_type),
                                       T(a_bad_bound_is_the_references_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
