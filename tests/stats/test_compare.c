/*
 * Comparisons on simulated clocks: two kernels that take turns A B B A while the clock drifts and
 * jumps. The same kernel twice must hardly ever be told apart; a real difference must be found.
 */
#include "support/support.h"

#include "stats/stats.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 10, BLOCK = 10, TRIALS = 100 };

enum noise { GAUSSIAN, HEAVY_TAILS, DRIFT, ALL };

struct simulation {
    uint64_t word;
    enum noise noise;
    double clock; /* a factor on all times, as it drifts */
};

static double uniform(struct simulation *s)
{
    s->word = s->word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(s->word >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(struct simulation *s)
{
    double radius = sqrt(-2 * log(uniform(s)));
    return radius * cos(2 * M_PI * uniform(s));
}

static double sample(struct simulation *s, double time)
{
    double v = time * (1 + 0.01 * gaussian(s));
    if (s->noise == DRIFT || s->noise == ALL)
        v *= s->clock *= 1 + 2e-4; /* 8 % over a comparison of 400 samples */
    if ((s->noise == HEAVY_TAILS || s->noise == ALL) && uniform(s) < 0.1)
        v *= 1 + 3 * uniform(s); /* an interrupt, a refresh, another user */
    return v;
}

static double block(struct simulation *s, double time)
{
    double samples[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        samples[i] = sample(s, time);
    return rung_stats_median(samples, BLOCK);
}

static void one_round(struct simulation *s, double a, double b, double *out_a, double *out_b)
{
    double a1 = block(s, a), b1 = block(s, b), b2 = block(s, b), a2 = block(s, a);
    *out_a = sqrt(a1 * a2);
    *out_b = sqrt(b1 * b2);
}

static struct rung_ratio compare(uint64_t seed, enum noise noise, double a, double b)
{
    struct simulation s = {.word = seed * UINT64_C(0x9e3779b97f4a7c15), .noise = noise, .clock = 1};
    double of_a[ROUNDS], of_b[ROUNDS];
    struct rung_ratio ratio;
    for (int i = 0; i < ROUNDS; i++)
        one_round(&s, a, b, &of_a[i], &of_b[i]);
    assert_true(rung_stats_ratio(of_a, of_b, ROUNDS, &ratio));
    return ratio;
}

/* How many of TRIALS comparisons end so, of times 100 and 100 * factor. */
static int count(enum noise noise, double factor, double delta, enum rung_stats_verdict verdict)
{
    int n = 0;
    for (uint64_t i = 1; i <= TRIALS; i++) {
        struct rung_ratio ratio = compare(i, noise, 100, 100 * factor);
        n += rung_stats_judge(&ratio, delta) == verdict;
    }
    return n;
}

static void the_same_kernel_twice_is_no_difference(void **state)
{
    (void)state;
    for (int noise = GAUSSIAN; noise <= ALL; noise++)
        for (int final = 0; final < 2; final++) {
            double delta = final ? 0.005 : 0.01;
            int called = count(noise, 1, delta, RUNG_STATS_FASTER) +
                         count(noise, 1, delta, RUNG_STATS_SLOWER);
            if (called > 5)
                fail_msg("noise %d, delta %g: %d of 100 called different", noise, delta, called);
        }
}

/* Even without any band, an interval of 95 % must hold 1 about that often. */
static void the_interval_itself_holds_the_truth(void **state)
{
    (void)state;
    for (int noise = GAUSSIAN; noise <= ALL; noise++) {
        int wrong = count(noise, 1, 0, RUNG_STATS_FASTER) + count(noise, 1, 0, RUNG_STATS_SLOWER);
        if (wrong > 12)
            fail_msg("noise %d: %d of 100 intervals miss 1", noise, wrong);
    }
}

static void three_percent_are_found(void **state)
{
    (void)state;
    for (int noise = GAUSSIAN; noise <= ALL; noise++) {
        int faster = count(noise, 1.03, 0.01, RUNG_STATS_FASTER),
            slower = count(noise, 1 / 1.03, 0.01, RUNG_STATS_SLOWER);
        if (faster < 90 || slower < 90)
            fail_msg("noise %d: found %d and %d of 100", noise, faster, slower);
    }
}

/*
 * As the worker does it: ten rounds, then a look every fifth until there is a verdict, 60 at most.
 * Looking often must not make up differences, and small ones must not stay unknown for ever.
 */
static enum rung_stats_verdict adaptive(uint64_t seed, enum noise noise, double factor,
                                        double delta)
{
    struct simulation s = {.word = seed * UINT64_C(0x9e3779b97f4a7c15), .noise = noise, .clock = 1};
    double of_a[60], of_b[60];
    struct rung_ratio ratio;
    for (uint32_t n = 0; n < 60; n++) {
        one_round(&s, 100, 100 * factor, &of_a[n], &of_b[n]);
        if (n + 1 < ROUNDS || (n + 1 - ROUNDS) % 5)
            continue;
        assert_true(rung_stats_ratio(of_a, of_b, n + 1, &ratio));
        enum rung_stats_verdict verdict = rung_stats_judge(&ratio, delta);
        if (verdict != RUNG_STATS_UNKNOWN)
            return verdict;
    }
    return RUNG_STATS_UNKNOWN;
}

static void looking_again_makes_nothing_up(void **state)
{
    (void)state;
    for (int noise = GAUSSIAN; noise <= ALL; noise++) {
        int different = 0, found = 0;
        for (uint64_t i = 1; i <= TRIALS; i++) {
            enum rung_stats_verdict same = adaptive(i, noise, 1, 0.005);
            different += same == RUNG_STATS_FASTER || same == RUNG_STATS_SLOWER;
            found += adaptive(i, noise, 1.03, 0.005) == RUNG_STATS_FASTER;
        }
        if (different > 5 || found < 95)
            fail_msg("noise %d: %d called different, %d of 3 %% found", noise, different, found);
    }
}

static void the_ratio_is_that_of_the_times(void **state)
{
    (void)state;
    struct rung_ratio ratio = compare(7, ALL, 150, 100);
    assert_true(fabs(ratio.ratio - 1.5) < 0.02);
    assert_true(ratio.interval.low <= ratio.ratio && ratio.ratio <= ratio.interval.high);
    assert_int_equal(ratio.rounds, ROUNDS);
}

static void a_b_b_a_cancels_an_even_drift(void **state)
{
    (void)state;
    struct rung_ratio ratio;
    double a[ROUNDS], b[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) { /* 10 % a block, no other noise */
        double start = pow(1.1, 4 * i);
        a[i] = sqrt(start * start * pow(1.1, 3));
        b[i] = sqrt(start * 1.1 * start * pow(1.1, 2));
    }
    assert_true(rung_stats_ratio(a, b, ROUNDS, &ratio));
    assert_true(fabs(ratio.interval.low - 1) < 1e-12 && fabs(ratio.interval.high - 1) < 1e-12);
    assert_int_equal(rung_stats_judge(&ratio, 0.005), RUNG_STATS_SAME);
}

static void verdicts_follow_the_interval(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        uint32_t rounds;
        const char *verdict;
    } table[] = {
        {0.90, 0.98, 10, "faster"},   {0.90, 0.995, 10, "unknown"}, {0.995, 1.005, 10, "same"},
        {1.02, 1.20, 10, "slower"},   {0.98, 1.02, 10, "unknown"},  {0.90, 0.98, 5, "unknown"},
        {0.999, 1.03, 10, "unknown"}, {NAN, 1, 10, "unknown"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rung_ratio ratio = {1, {table[i].low, table[i].high}, table[i].rounds};
        assert_string_equal(rung_stats_verdict_name(rung_stats_judge(&ratio, 0.01)),
                            table[i].verdict);
    }
}

static void ratios_of_what_is_no_time_are_refused(void **state)
{
    (void)state;
    const double one[] = {1}, bad[] = {0, -1, NAN, INFINITY};
    struct rung_ratio ratio;
    assert_false(rung_stats_ratio(one, one, 0, &ratio));
    for (int i = 0; i < 4; i++) {
        assert_false(rung_stats_ratio(one, &bad[i], 1, &ratio));
        assert_false(rung_stats_ratio(&bad[i], one, 1, &ratio));
    }
    assert_true(rung_stats_ratio(one, one, 1, &ratio) && ratio.ratio == 1);
    assert_int_equal(rung_stats_judge(&ratio, 0.01), RUNG_STATS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_kernel_twice_is_no_difference),
        cmocka_unit_test(the_interval_itself_holds_the_truth),
        cmocka_unit_test(three_percent_are_found),
        cmocka_unit_test(looking_again_makes_nothing_up),
        cmocka_unit_test(the_ratio_is_that_of_the_times),
        cmocka_unit_test(a_b_b_a_cancels_an_even_drift),
        cmocka_unit_test(verdicts_follow_the_interval),
        cmocka_unit_test(ratios_of_what_is_no_time_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
