/* Order statistics of one list of samples, and the bootstrap of its median. */
#include "stats/stats.h"
#include "base/die.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t seed = UINT64_C(0x72756e67);

/* SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t next_word(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool good(const double *samples, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(samples[i]) || samples[i] < 0)
            return false;
    return n > 0;
}

/* A sorted copy on the heap. */
static double *sorted_copy(const double *samples, uint32_t n)
{
    double *sorted = rung_xmalloc(n * sizeof *sorted);
    memcpy(sorted, samples, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    return sorted;
}

static double middle_of(const double *sorted, uint32_t n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

bool rung_stats_quartiles(const double *samples, uint32_t n, struct rung_quartiles *out)
{
    if (!good(samples, n))
        return false;
    double *sorted = sorted_copy(samples, n);
    *out = (struct rung_quartiles){sorted[0], sorted[n / 4], middle_of(sorted, n),
                                   sorted[n - 1 - n / 4]};
    free(sorted);
    return true;
}

double rung_stats_median(const double *samples, uint32_t n)
{
    if (n == 0)
        return NAN;
    double *sorted = sorted_copy(samples, n);
    double median = middle_of(sorted, n);
    free(sorted);
    return median;
}

/*
 * The median of one resample: how often each rank was drawn is enough, so nothing is sorted. The
 * two middle ranks are the same for odd n.
 */
static double resampled_median(const double *sorted, uint32_t n, uint32_t *counts, uint64_t *state)
{
    uint32_t low = (n - 1) / 2, high = n / 2, seen = 0, i = 0;
    memset(counts, 0, n * sizeof *counts);
    for (uint32_t k = 0; k < n; k++)
        counts[(next_word(state) >> 32) * n >> 32]++;
    while (seen + counts[i] <= low)
        seen += counts[i++];
    double first = sorted[i];
    while (seen + counts[i] <= high)
        seen += counts[i++];
    return (first + sorted[i]) / 2;
}

/* Both ends of the middle 95 % of the resampled medians; samples may be of either sign. */
static struct rung_interval bootstrap(const double *sorted, uint32_t n)
{
    double *medians = rung_xmalloc(RUNG_STATS_RESAMPLES * sizeof *medians);
    uint32_t *counts = rung_xmalloc(n * sizeof *counts);
    uint64_t state = seed;
    for (uint32_t r = 0; r < RUNG_STATS_RESAMPLES; r++)
        medians[r] = resampled_median(sorted, n, counts, &state);
    qsort(medians, RUNG_STATS_RESAMPLES, sizeof *medians, ascending);
    uint32_t tail = RUNG_STATS_RESAMPLES / 40;
    struct rung_interval interval = {medians[tail], medians[RUNG_STATS_RESAMPLES - 1 - tail]};
    free(counts);
    free(medians);
    return interval;
}

bool rung_stats_median_interval(const double *samples, uint32_t n, struct rung_interval *out)
{
    if (!good(samples, n))
        return false;
    double *sorted = sorted_copy(samples, n);
    *out = bootstrap(sorted, n);
    free(sorted);
    return true;
}

static bool positive(double v)
{
    return isfinite(v) && v > 0;
}

bool rung_stats_ratio(const double *a, const double *b, uint32_t n, struct rung_ratio *out)
{
    double *logs = rung_xmalloc((n + 1) * sizeof *logs);
    bool whole = n > 0;
    for (uint32_t i = 0; i < n && whole; i++) {
        whole = positive(a[i]) && positive(b[i]);
        logs[i] = whole ? log(a[i] / b[i]) : 0;
    }
    if (whole) {
        qsort(logs, n, sizeof *logs, ascending);
        struct rung_interval interval = bootstrap(logs, n);
        *out = (struct rung_ratio){
            exp(middle_of(logs, n)), {exp(interval.low), exp(interval.high)}, n};
    }
    free(logs);
    return whole;
}
