/* Index arithmetic of boxes in a row-major tensor. Pure. */
#include "session/private.h"

int32_t region_check(const struct slot *s, const struct rung_region *region, struct rung_error *err)
{
    if (region->n_dims != s->n_dims || region->skip)
        return rung_fail(err, RUNG_EINVAL, "session.region",
                         "%s has %u axes; a box of %u axes was asked for", s->name, s->n_dims,
                         region->skip ? 0 : region->n_dims);
    for (uint32_t d = 0; d < s->n_dims; d++) {
        int64_t start = region->start[d], count = region->count[d];
        if (start < 0 || count < 1 || start >= s->shape[d] || count > s->shape[d] - start)
            return rung_fail(err, RUNG_EINVAL, "session.region",
                             "%s has %lld elements along axis %u; %lld from %lld on do not lie "
                             "inside",
                             s->name, (long long)s->shape[d], d, (long long)count,
                             (long long)start);
    }
    return RUNG_OK;
}

uint64_t region_width(const struct rung_region *region)
{
    return region->n_dims ? (uint64_t)region->count[region->n_dims - 1] : 1;
}

uint64_t region_lines(const struct rung_region *region)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d + 1 < region->n_dims; d++)
        n *= (uint64_t)region->count[d];
    return n;
}

uint64_t region_line(const struct slot *s, const struct rung_region *region, uint64_t line)
{
    uint64_t flat = 0, stride = 1;
    if (!s->n_dims)
        return 0;
    uint32_t last = s->n_dims - 1;
    flat = (uint64_t)region->start[last];
    stride = (uint64_t)s->shape[last];
    for (uint32_t d = last; d-- > 0;) {
        uint64_t count = (uint64_t)region->count[d];
        flat += ((uint64_t)region->start[d] + line % count) * stride;
        line /= count;
        stride *= (uint64_t)s->shape[d];
    }
    return flat;
}
