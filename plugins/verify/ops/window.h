/*
 * Windows of convolutions and pooling, for host and kernels (gpu/). Pure.
 */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#ifndef __CUDACC__
#include <stdint.h>
#endif

#define OPS_MAX_SPACE 3 /* dimensions of a window */

struct ops_window {
    uint32_t n; /* of dimensions */
    int64_t kernel[OPS_MAX_SPACE], stride[OPS_MAX_SPACE], dilation[OPS_MAX_SPACE];
    int64_t before[OPS_MAX_SPACE], after[OPS_MAX_SPACE]; /* padding */
    int64_t out[OPS_MAX_SPACE];                          /* extents of the result */
};

enum ops_pool_kind { OPS_POOL_MAX, OPS_POOL_MEAN, OPS_POOL_MEAN_PADDED };
struct ops_pool_attr {
    struct ops_window win;
    uint32_t kind; /* ops_pool_kind */
    int adaptive;
};

/* One dimension's window at an output position: elements first, first + step, ... (count of them),
 * and how many it has with padding. */
struct ops_reach {
    int64_t first, step, count, padded;
};

static inline struct ops_reach ops_reach_of(const struct ops_pool_attr *a, uint32_t d, int64_t at,
                                            int64_t extent)
{
    const struct ops_window *w = &a->win;
    struct ops_reach r = {0, w->dilation[d], 0, 0};
    if (a->adaptive) {
        r.first = at * extent / w->out[d];
        r.count = ((at + 1) * extent + w->out[d] - 1) / w->out[d] - r.first;
        r.padded = r.count;
        return r;
    }
    int64_t start = at * w->stride[d] - w->before[d], skip = 0;
    int64_t end = start + (w->kernel[d] - 1) * r.step + 1;
    int64_t limit = extent + w->after[d];
    r.padded = (end < limit ? end : limit) - start; /* of windows without dilation */
    if (start < 0)
        skip = (-start + r.step - 1) / r.step;
    r.first = start + skip * r.step;
    end = end < extent ? end : extent;
    r.count = end > r.first ? (end - r.first + r.step - 1) / r.step : 0;
    return r;
}

#endif
