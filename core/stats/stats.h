/*
 * What samples of times say: medians, quartiles, intervals, and whether one kernel is faster than
 * another. Pure and deterministic: the same samples give the same numbers on every machine. Any
 * thread. Times are of any one unit.
 *
 * Intervals are percentile bootstraps at 95 % (Efron and Tibshirani, An Introduction to the
 * Bootstrap, 1993, section 13.3): 2,000 resamples with replacement from a fixed seed. The median
 * needs no noise model and no outlier rule; a mean would follow every interrupt.
 */
#ifndef STATS_STATS_H
#define STATS_STATS_H

#include <stdbool.h>
#include <stdint.h>

enum { RUNG_STATS_RESAMPLES = 2000, RUNG_STATS_MIN_ROUNDS = 6 };

struct rung_interval {
    double low, high;
};

/* Of sorted samples: the middle one, or the mean of the two; quartiles at n / 4 from either end. */
struct rung_quartiles {
    double min, q1, median, q3;
};

/* false when there are none, or one is negative or not finite. Samples keep their order. */
bool rung_stats_quartiles(const double *samples, uint32_t n, struct rung_quartiles *out);
/* The median alone; NaN for none. */
double rung_stats_median(const double *samples, uint32_t n);
/*
 * 95 % interval of the median; of one sample, that sample. false as above. Takes 2,000 n steps.
 */
bool rung_stats_median_interval(const double *samples, uint32_t n, struct rung_interval *out);

/* ---- Two kernels that took turns ----
 *
 * One round is A B B A (of several: there and back), so that a clock that drifts evenly does to
 * both the same. a[i] and b[i] are what each took in round i: the geometric mean of the medians of
 * its two blocks.
 */

struct rung_ratio {
    double ratio;                  /* exp of the median of log(a[i] / b[i]): below 1, a is faster */
    struct rung_interval interval; /* bootstrap over rounds */
    uint32_t rounds;
};

enum rung_stats_verdict {
    RUNG_STATS_UNKNOWN, /* more rounds could tell */
    RUNG_STATS_FASTER,  /* a takes less time than b, by more than delta */
    RUNG_STATS_SLOWER,
    RUNG_STATS_SAME, /* no difference of delta or more */
};

/* false when n is 0 or a time is not above 0 and finite. */
bool rung_stats_ratio(const double *a, const double *b, uint32_t n, struct rung_ratio *out);
/*
 * FASTER when the whole interval is below 1 - delta, SLOWER when above 1 + delta, SAME when within
 * both, else UNKNOWN. Fewer than RUNG_STATS_MIN_ROUNDS rounds are UNKNOWN: five that all fall on
 * one side are chance once in 16 times.
 */
enum rung_stats_verdict rung_stats_judge(const struct rung_ratio *ratio, double delta);
/* The interval's part of the same, for intervals that come from elsewhere. */
enum rung_stats_verdict rung_stats_judge_interval(struct rung_interval interval, double delta);
/* "unknown", "faster", "slower", "same". */
const char *rung_stats_verdict_name(enum rung_stats_verdict verdict);

#endif
