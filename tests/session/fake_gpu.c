#include "fake_gpu.h"
#include "fake_device.h"

#include "session/convert.h"
#include "session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct session_gpu fake_gpu;

static uint64_t bytes_of(const struct session_gpu_range *range)
{
    return range->n * (rung_dtype_bits(range->dtype) / 8);
}

int32_t session_gpu_draw(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *to, const struct rung_fill *fill,
                         uint64_t seed, int64_t last)
{
    (void)call;
    gpu->draws++;
    return rung_fill_draw(fill, to->dtype, seed, 0, to->n, last,
                          fake_memory(to->buffer) + to->offset);
}

int32_t session_gpu_same(struct session_gpu *gpu, struct rung_call *call,
                         const struct session_gpu_range *range, const struct rung_fill *fill,
                         uint64_t seed, int64_t last, bool *same)
{
    char *want = malloc(bytes_of(range));
    (void)call;
    gpu->sames++;
    int32_t status = rung_fill_draw(fill, range->dtype, seed, 0, range->n, last, want);
    *same = memcmp(want, fake_memory(range->buffer) + range->offset, bytes_of(range)) == 0;
    free(want);
    return status;
}

int32_t session_gpu_compare(struct session_gpu *gpu, struct rung_call *call,
                            const struct session_gpu_range *range, const uint8_t *poison,
                            uint64_t poison_bytes, uint32_t precision, struct rung_buffer *value,
                            struct rung_buffer *bound, struct rung_comparison *out)
{
    const float *got = (const float *)(void *)(fake_memory(range->buffer) + range->offset);
    const double *want = (const double *)(void *)fake_memory(value);
    const double *room = (const double *)(void *)fake_memory(bound);
    (void)call, (void)precision;
    gpu->compares++;
    out->n = range->n;
    out->first_bad = range->n;
    for (uint64_t i = 0; i < range->n; i++) {
        if (fabs(got[i] - want[i]) <= room[i] + 0x1p-24 * fabs(want[i]))
            continue;
        if (out->n_bad++ == 0) {
            out->first_bad = i;
            out->first_got = got[i];
            out->first_want = want[i];
        }
        out->n_unwritten += poison && !memcmp(&got[i], poison + i * 4 % poison_bytes, 4);
    }
    return RUNG_OK;
}

int32_t session_gpu_same_bytes(struct session_gpu *gpu, struct rung_call *call,
                               struct rung_buffer *a, uint64_t a_offset, uint64_t a_stride,
                               uint64_t count, struct rung_buffer *b, uint64_t b_offset,
                               uint64_t bytes, bool *same)
{
    (void)call;
    gpu->bytes++;
    *same = true;
    for (uint64_t i = 0; i < count; i++)
        *same &=
            !memcmp(fake_memory(a) + a_offset + i * a_stride, fake_memory(b) + b_offset, bytes);
    return RUNG_OK;
}
