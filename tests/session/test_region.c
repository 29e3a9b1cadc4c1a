/* Boxes of an output: the same values, bounds and findings as in the whole, at a part's cost. */
#include "support/support.h"

#include "harness.h"

#include "base/status.h"

#include <string.h>

enum { A = 5, B = 4, C = 6 };

static int wrong_at = -1, skip_at = -1;

/* y = 2 x + 1 of [n, 4, 6], but for one element that is wrong and one that is left as it was. */
static void kernel(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l, (void)f;
    for (int i = 0; i < a->n * B * C; i++)
        if (i != skip_at)
            a->y[i] = 2 * a->x[i] + 1 + (i == wrong_at ? 10.0f : 0.0f);
}

static struct rung_run *begin(struct harness *h)
{
    fake_config.kernels[0].symbol = "kernel";
    fake_config.kernels[0].run = kernel;
    harness_init(h, RUNG_F32);
    for (int i = 0; i < 2; i++) {
        h->tensors[i].n_dims = 3;
        h->tensors[i].shape[1] = "4";
        h->tensors[i].shape[2] = "6";
    }
    harness_open(h, ONE_LAUNCH("kernel"));
    return harness_run(h, A, 2, 0);
}

static struct rung_region box(int64_t a, int64_t na, int64_t b, int64_t nb, int64_t c, int64_t nc)
{
    return (struct rung_region){.struct_size = sizeof(struct rung_region),
                                .n_dims = 3,
                                .start = {a, b, c},
                                .count = {na, nb, nc}};
}

/* The box's values against those of the whole result. */
static void check_values(struct harness *h, struct rung_run *run, const struct rung_region *r,
                         const struct rung_reference_output *whole)
{
    struct rung_reference_output part;
    uint64_t k = 0;
    if (h->session->expected_region(h->session, &h->call, run, 1, r, &part))
        fail_msg("%s", h->error.message);
    assert_int_equal(part.n, r->count[0] * r->count[1] * r->count[2]);
    assert_int_equal(part.tensor, 1);
    for (int64_t a = r->start[0]; a < r->start[0] + r->count[0]; a++)
        for (int64_t b = r->start[1]; b < r->start[1] + r->count[1]; b++)
            for (int64_t c = r->start[2]; c < r->start[2] + r->count[2]; c++, k++) {
                assert_true(part.value[k] == whole->value[(a * B + b) * C + c]);
                assert_true(part.bound[k] == whole->bound[(a * B + b) * C + c]);
            }
}

static void boxes_hold_what_the_whole_holds(void **state)
{
    const struct rung_region boxes[] = {box(0, 1, 0, 1, 0, 1), box(4, 1, 3, 1, 5, 1),
                                        box(0, A, 0, B, 0, C), box(1, 2, 1, 3, 2, 3),
                                        box(0, A, 2, 1, 0, C), box(3, 2, 0, B, 5, 1)};
    enum { N = sizeof boxes / sizeof *boxes };
    struct harness h;
    struct rung_reference_output whole;
    (void)state;
    struct rung_run *run = begin(&h), *fresh = harness_run(&h, A, 2, 0);
    assert_int_equal(h.session->expected(h.session, &h.call, run, 1, &whole), RUNG_OK);
    for (int i = 0; i < N; i++)
        check_values(&h, run, &boxes[i], &whole); /* cut out of the whole */
    assert_int_equal(fake_counts.evaluations, 1);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < N; i++)
            check_values(&h, fresh, &boxes[i], &whole); /* evaluated, once each */
    assert_int_equal(fake_counts.regions, N);
    assert_int_equal(fake_counts.evaluations, 1 + N);
    harness_done(&h);
}

static void a_box_is_compared_alone(void **state)
{
    struct harness h;
    struct rung_comparison c;
    (void)state;
    wrong_at = (2 * B + 1) * C + 4;
    skip_at = (3 * B + 3) * C + 5;
    struct rung_run *run = begin(&h);
    struct rung_region r = box(0, A, 0, B, 0, 4); /* neither */
    assert_int_equal(h.session->compare_region(h.session, &h.call, run, 1, &r, &c), RUNG_OK);
    assert_int_equal(c.n, A * B * 4);
    assert_int_equal(c.n_bad, 0);
    assert_int_equal(c.first_bad, A * B * C);
    assert_true(c.worst <= 1);
    r = box(2, 1, 1, 2, 3, 2);
    assert_int_equal(h.session->compare_region(h.session, &h.call, run, 1, &r, &c), RUNG_OK);
    assert_int_equal(c.n, 4);
    assert_int_equal(c.n_bad, 1);
    assert_int_equal(c.n_unwritten, 0);
    assert_int_equal(c.first_bad, wrong_at);
    assert_int_equal(c.max_abs_at, wrong_at);
    assert_true(c.max_abs > 9.99 && c.fraction_out == 0.25);
    r = box(3, 2, 3, 1, 5, 1);
    assert_int_equal(h.session->compare_region(h.session, &h.call, run, 1, &r, &c), RUNG_OK);
    assert_int_equal(c.n_unwritten, 1); /* the poison's place counts in the whole output */
    assert_int_equal(c.first_bad, skip_at);
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
    assert_int_equal(c.n_bad, 2);
    wrong_at = skip_at = -1;
    harness_done(&h);
}

static void boxes_outside_are_refused(void **state)
{
    const struct rung_region bad[] = {
        box(-1, 1, 0, 1, 0, 1),        box(0, A + 1, 0, 1, 0, 1),
        box(A, 1, 0, 1, 0, 1),         box(0, 1, 0, 1, 5, 2),
        box(0, 0, 0, 1, 0, 1),         box(0, 1, 0, -1, 0, 1),
        box(0, INT64_MAX, 0, 1, 0, 1), box(INT64_MAX, INT64_MAX, 0, 1, 0, 1)};
    struct harness h;
    struct rung_comparison c;
    struct rung_reference_output part;
    (void)state;
    struct rung_run *run = begin(&h);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        h.error = rung_error_init();
        assert_int_equal(h.session->compare_region(h.session, &h.call, run, 1, &bad[i], &c),
                         RUNG_EINVAL);
        support_contains(h.error.message, "inside");
    }
    struct rung_region r = box(0, 1, 0, 1, 0, 1);
    h.error = rung_error_init();
    assert_int_equal(h.session->expected_region(h.session, &h.call, run, 0, &r, &part),
                     RUNG_EINVAL); /* an input */
    h.error = rung_error_init();
    assert_int_equal(h.session->expected_region(h.session, &h.call, run, 7, &r, &part),
                     RUNG_EINVAL);
    r.n_dims = 2;
    h.error = rung_error_init();
    assert_int_equal(h.session->expected_region(h.session, &h.call, run, 1, &r, &part),
                     RUNG_EINVAL);
    r.n_dims = 3;
    r.skip = 1;
    h.error = rung_error_init();
    assert_int_equal(h.session->expected_region(h.session, &h.call, run, 1, &r, &part),
                     RUNG_EINVAL);
    assert_int_equal(fake_counts.evaluations, 0);
    harness_done(&h);
}

static void a_reference_that_ignores_the_box_is_told(void **state)
{
    struct harness h;
    struct rung_reference_output part;
    (void)state;
    struct rung_run *run = begin(&h);
    struct rung_region r = box(0, 1, 0, 1, 0, 1);
    fake_config.ignore_regions = 1;
    assert_int_equal(h.session->expected_region(h.session, &h.call, run, 1, &r, &part),
                     RUNG_EMISUSE);
    support_contains(h.error.message, "120 elements of y; 1 are needed");
    harness_done(&h);
}

static void a_reference_without_boxes_is_asked_for_all_once(void **state)
{
    struct harness h;
    struct rung_reference_output whole;
    struct rung_region r = box(1, 2, 0, B, 1, 3), other = box(4, 1, 1, 1, 0, 6);
    (void)state;
    struct rung_run *run = begin(&h), *fresh = harness_run(&h, A, 2, 0);
    fake_config.no_regions = 1;
    assert_int_equal(h.session->expected(h.session, &h.call, run, 1, &whole), RUNG_OK);
    check_values(&h, fresh, &r, &whole);
    check_values(&h, fresh, &other, &whole);
    assert_int_equal(h.error.code, RUNG_OK);
    assert_int_equal(fake_counts.evaluations, 2);
    harness_done(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(boxes_hold_what_the_whole_holds),
                                       T(a_box_is_compared_alone), T(boxes_outside_are_refused),
                                       T(a_reference_that_ignores_the_box_is_told),
                                       T(a_reference_without_boxes_is_asked_for_all_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
