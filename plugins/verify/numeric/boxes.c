/*
 * Which parts of an output are compared where the whole reference would be too dear: rows at both
 * ends, tiles at corners, at multiples of 128 (where tiles of kernels end), in the middle and at
 * random. At most 5 % of the elements, and of the rows, since one element of a softmax costs a row.
 */
#include "numeric.h"

#include <string.h>

enum { MOST_ELEMENTS = 1 << 16, SMALL = 64, SHARE = 20, TILES = 24, TILE_ROWS = 8, BORDER = 128 };

enum place { FIRST, LAST, CENTRE, AT_BORDER, RANDOM };

/* Outer axes, rows, columns of the first boxes; later ones take turns at borders and at random. */
static const enum place planned[][3] = {
    {FIRST, FIRST, FIRST}, {LAST, LAST, LAST},  {FIRST, LAST, FIRST},    {LAST, FIRST, LAST},
    {FIRST, FIRST, LAST},  {LAST, LAST, FIRST}, {CENTRE, CENTRE, CENTRE}};
enum { N_PLANNED = sizeof planned / sizeof *planned };

static int64_t place(enum place where, int64_t extent, int64_t count, uint64_t *state)
{
    int64_t last = extent - count;
    if (where == FIRST)
        return 0;
    if (where == LAST)
        return last;
    if (where == CENTRE)
        return last / 2;
    if (where == RANDOM || extent <= BORDER)
        return (int64_t)(numeric_next(state) % (uint64_t)(last + 1));
    int64_t k = 1 + (int64_t)(numeric_next(state) % (uint64_t)(extent / BORDER));
    int64_t at = k * BORDER - (count + 1) / 2; /* elements on either side of the border */
    return at < 0 ? 0 : at > last ? last : at;
}

static int64_t clamp(uint64_t v, int64_t most)
{
    return v < 1 ? 1 : v > (uint64_t)most ? most : (int64_t)v;
}

static int known(const struct rung_region *boxes, uint32_t n, const struct rung_region *box)
{
    for (uint32_t i = 0; i < n; i++)
        if (!memcmp(&boxes[i], box, sizeof *box))
            return 1;
    return 0;
}

/* Box i; count holds its size, but for the rows at both ends, which are as long as it is large. */
static void place_box(const int64_t *shape, uint32_t n_dims, uint32_t i, const int64_t *count,
                      uint64_t *state, struct rung_region *box)
{
    enum place later = i % 2 ? AT_BORDER : RANDOM, outer = i < N_PLANNED ? planned[i][0] : RANDOM;
    enum place row = i < N_PLANNED ? planned[i][1] : later,
               col = i < N_PLANNED ? planned[i][2] : later;
    *box = (struct rung_region){.struct_size = sizeof *box, .n_dims = n_dims};
    memcpy(box->count, count, n_dims * sizeof *count);
    if (i < 2 && n_dims > 1) {
        box->count[n_dims - 1] =
            clamp((uint64_t)(count[n_dims - 1] * count[n_dims - 2]), shape[n_dims - 1]);
        box->count[n_dims - 2] = 1;
    }
    for (uint32_t d = 0; d < n_dims; d++)
        box->start[d] = place(d + 1 == n_dims   ? col
                              : d + 2 == n_dims ? row
                                                : outer,
                              shape[d], box->count[d], state);
}

uint32_t numeric_boxes(const int64_t *shape, uint32_t n_dims, uint64_t seed,
                       struct rung_region boxes[NUMERIC_BOXES])
{
    uint64_t n = 1, state = seed, size = 1;
    int64_t count[RUNG_MAX_DIMS] = {0};
    uint32_t found = 0;
    for (uint32_t d = 0; d < n_dims; d++)
        n *= (uint64_t)shape[d];
    if (n <= SMALL) {
        boxes[0] = (struct rung_region){.struct_size = sizeof boxes[0], .n_dims = n_dims};
        memcpy(boxes[0].count, shape, n_dims * sizeof *shape);
        return 1;
    }
    uint64_t most = n / SHARE < MOST_ELEMENTS ? n / SHARE : MOST_ELEMENTS;
    uint64_t rows = n / (uint64_t)shape[n_dims - 1] / SHARE / TILES, room = most / TILES;
    rows = rows < TILE_ROWS ? rows : TILE_ROWS;
    for (uint32_t d = 0; d < n_dims; d++)
        count[d] = 1;
    for (uint32_t d = n_dims - 1; d-- > 0 && d + 3 >= n_dims;) { /* rows, then planes */
        count[d] = clamp(rows, shape[d]);
        rows /= (uint64_t)count[d];
        room /= (uint64_t)count[d];
    }
    count[n_dims - 1] = clamp(room, shape[n_dims - 1]);
    for (uint32_t d = 0; d < n_dims; d++)
        size *= (uint64_t)count[d];
    uint64_t wanted = most / size < TILES ? TILES : most / size;
    for (uint32_t i = 0; i < wanted && found < NUMERIC_BOXES; i++) {
        place_box(shape, n_dims, i, count, &state, &boxes[found]);
        found += !known(boxes, found, &boxes[found]);
    }
    return found;
}

/* ---- Everything else of such an output ---- */

static int not_finite(uint32_t dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case RUNG_F64:
        return (((const uint64_t *)data)[i] >> 52 & 0x7ff) == 0x7ff;
    case RUNG_F32:
        return (((const uint32_t *)data)[i] >> 23 & 0xff) == 0xff;
    case RUNG_F16:
        return (((const uint16_t *)data)[i] >> 10 & 0x1f) == 0x1f;
    case RUNG_BF16:
        return (((const uint16_t *)data)[i] >> 7 & 0xff) == 0xff;
    default:
        return 0;
    }
}

struct rung_region numeric_box_at(const struct rung_tensor_view *view, uint64_t at)
{
    struct rung_region box = {.struct_size = sizeof box, .n_dims = view->n_dims};
    for (uint32_t d = view->n_dims; d-- > 0;) {
        box.count[d] = 1;
        box.start[d] = (int64_t)(at % (uint64_t)view->dims[d]);
        at /= (uint64_t)view->dims[d];
    }
    return box;
}

uint32_t numeric_scan(const struct rung_tensor_view *view, uint64_t n,
                      struct rung_region boxes[NUMERIC_FINDS])
{
    uint32_t found = 0;
    for (uint64_t i = 0; i < n && found < NUMERIC_FINDS; i++)
        if (not_finite(view->dtype, view->data, i))
            boxes[found++] = numeric_box_at(view, i);
    return found;
}
