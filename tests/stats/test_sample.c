/* Medians, quartiles and the bootstrap of the median, on samples whose answer is known. */
#include "support/support.h"

#include "stats/stats.h"

#include <math.h>
#include <string.h>

static void quartiles_are_order_statistics(void **state)
{
    (void)state;
    const double five[] = {5, 1, 4, 2, 3}, four[] = {4, 1, 3, 2};
    struct rung_quartiles q;
    assert_true(rung_stats_quartiles(five, 5, &q));
    assert_true(q.min == 1 && q.q1 == 2 && q.median == 3 && q.q3 == 4);
    assert_true(rung_stats_quartiles(four, 4, &q));
    assert_true(q.min == 1 && q.q1 == 2 && q.median == 2.5 && q.q3 == 3);
    assert_true(rung_stats_quartiles(five, 1, &q));
    assert_true(q.min == 5 && q.q1 == 5 && q.median == 5 && q.q3 == 5);
    assert_true(five[0] == 5 && five[4] == 3);
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    const double bad[][2] = {{1, NAN}, {INFINITY, 1}, {1, -1}};
    struct rung_quartiles q;
    struct rung_interval ci;
    for (int i = 0; i < 3; i++) {
        assert_false(rung_stats_quartiles(bad[i], 2, &q));
        assert_false(rung_stats_median_interval(bad[i], 2, &ci));
    }
    assert_false(rung_stats_quartiles(bad[0], 0, &q));
    assert_false(rung_stats_median_interval(bad[0], 0, &ci));
    assert_true(isnan(rung_stats_median(bad[0], 0)));
}

static void one_sample_and_equal_samples_have_no_width(void **state)
{
    (void)state;
    const double same[] = {7, 7, 7, 7, 7, 7};
    struct rung_interval ci;
    assert_true(rung_stats_median_interval(same, 1, &ci) && ci.low == 7 && ci.high == 7);
    assert_true(rung_stats_median_interval(same, 6, &ci) && ci.low == 7 && ci.high == 7);
}

/* Of five, the least is the median of a resample in 5.8 % of all: more than a tail of 2.5 %. */
static void five_samples_span_their_whole_range(void **state)
{
    (void)state;
    const double five[] = {1500, 1100, 1000, 1300, 1200};
    struct rung_interval ci, again;
    assert_true(rung_stats_median_interval(five, 5, &ci));
    assert_true(ci.low == 1000 && ci.high == 1500);
    assert_true(rung_stats_median_interval(five, 5, &again));
    assert_memory_equal(&ci, &again, sizeof ci);
}

/* How often the interval of 40 exponential samples holds the true median, ln 2. */
static void the_interval_covers_the_median(void **state)
{
    (void)state;
    int held = 0;
    uint64_t word = 1;
    for (int i = 0; i < 400; i++) {
        double samples[40];
        struct rung_interval ci;
        for (int k = 0; k < 40; k++) {
            word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            samples[k] = -log(((double)(word >> 11) + 0.5) / 9007199254740992.0);
        }
        assert_true(rung_stats_median_interval(samples, 40, &ci));
        held += ci.low <= M_LN2 && M_LN2 <= ci.high;
    }
    assert_true(held >= 365 && held <= 395);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quartiles_are_order_statistics),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(one_sample_and_equal_samples_have_no_width),
        cmocka_unit_test(five_samples_span_their_whole_range),
        cmocka_unit_test(the_interval_covers_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
