/*
 * Indices of extremes. The value is the first index of the largest element; an honest kernel whose
 * elements err may find another one, whose element may be the largest within the errors. The bound
 * is the distance to the farthest of those.
 */
#include "ops.h"

#include <math.h>

/* As in PyTorch, NaN counts as larger than everything. */
static int beats(double x, double than)
{
    return x > than || (isnan(x) && !isnan(than));
}

static struct ops_num farthest(const struct ops_row *row, double sign)
{
    uint64_t best = 0, least = 0, most = 0;
    double floor = -INFINITY; /* what the largest element reaches at least */
    for (uint64_t i = 0; i < row->n; i++) {
        if (isinf(row->e[i]))
            return (struct ops_num){0, INFINITY};
        if (beats(sign * row->v[i], sign * row->v[best]))
            best = i;
        floor = fmax(floor, sign * row->v[i] - row->e[i]);
    }
    least = most = best;
    for (uint64_t i = 0; i < row->n; i++)
        if (row->e[i] + row->e[best] > 0 && sign * row->v[i] + row->e[i] >= floor) {
            least = i < least ? i : least;
            most = i > most ? i : most;
        }
    uint64_t before = best - least, after = most - best;
    return (struct ops_num){(double)best, (double)(before > after ? before : after)};
}

struct ops_num ops_row_argmax(const struct ops_row *row, const struct ops_row_options *opt,
                              const struct ops_arith *ar)
{
    (void)opt, (void)ar;
    return farthest(row, 1);
}

struct ops_num ops_row_argmin(const struct ops_row *row, const struct ops_row_options *opt,
                              const struct ops_arith *ar)
{
    (void)opt, (void)ar;
    return farthest(row, -1);
}
