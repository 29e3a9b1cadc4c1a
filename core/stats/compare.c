/* What an interval of a ratio lets one say. */
#include "stats/stats.h"

#include <math.h>

enum rung_stats_verdict rung_stats_judge_interval(struct rung_interval interval, double delta)
{
    if (!isfinite(interval.low) || !isfinite(interval.high))
        return RUNG_STATS_UNKNOWN;
    if (interval.high < 1 - delta)
        return RUNG_STATS_FASTER;
    if (interval.low > 1 + delta)
        return RUNG_STATS_SLOWER;
    if (interval.low >= 1 - delta && interval.high <= 1 + delta)
        return RUNG_STATS_SAME;
    return RUNG_STATS_UNKNOWN;
}

enum rung_stats_verdict rung_stats_judge(const struct rung_ratio *ratio, double delta)
{
    return ratio->rounds < RUNG_STATS_MIN_ROUNDS
               ? RUNG_STATS_UNKNOWN
               : rung_stats_judge_interval(ratio->interval, delta);
}

const char *rung_stats_verdict_name(enum rung_stats_verdict verdict)
{
    static const char *const names[] = {"unknown", "faster", "slower", "same"};
    return names[verdict <= RUNG_STATS_SAME ? verdict : RUNG_STATS_UNKNOWN];
}
