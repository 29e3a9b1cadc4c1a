/*
 * exec_warp.c - operations in which lanes see each other: shuffles, votes, matches, reductions.
 *
 * PTX makes such an instruction wait for all living lanes that its member mask names; ptx_gather
 * does that. A value read from a lane that is not there is undefined: a fault, but for the harmless
 * upper half of a tree reduction over the first n lanes (see shuffle.h).
 */
#include "exec_lane.h"
#include "shuffle.h"

/* Lanes that must be here, and whether the running lanes agree on them. */
static const struct ptx_insn *meet(struct ptx_warp *w, const struct ptx_insn *in,
                                   uint32_t mask_slot, uint32_t *members)
{
    const uint32_t *masks = SLOT(const uint32_t, mask_slot);
    uint32_t first = masks[__builtin_ctz(w->mask)];

    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);

        if (!(masks[i] >> i & 1))
            return ptx_fault(w, in, i, "sync.inactive_lane", 0,
                             "a warp-wide operation whose member mask 0x%08x does not name the "
                             "executing lane %u",
                             masks[i], i);
        if (masks[i] != first) { /* groups with masks of their own, each together with itself */
            first = 0;
            break;
        }
    }
    *members = first;
    return first ? ptx_gather(w, in, first) : in;
}

/* The member mask of one lane, where groups differ. */
static inline uint32_t members_of(const struct ptx_warp *w, const struct ptx_insn *in, uint32_t k,
                                  uint32_t common, uint32_t lane)
{
    return common ? common : ((const uint32_t *)(const void *)(w->frame + in->r[k]))[lane];
}

HANDLER(any_shfl)
{
    const uint32_t *a = SLOT(const uint32_t, in->r[2]), *b = SLOT(const uint32_t, in->r[3]);
    const uint32_t *c = SLOT(const uint32_t, in->r[4]);
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    uint32_t members = 0, ok = 0;
    _Alignas(64) uint32_t value[PTX_LANES];

    memcpy(value, a, sizeof value);
    if (meet(w, in, in->r[5], &members) != in)
        return NULL;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint32_t present = w->mask & members_of(w, in, 5, members, i);
        struct ptx_source s = ptx_source_lane(in->sub, i, b[i], c[i]);

        if (!(present >> s.lane & 1)) {
            if (!ptx_is_tree_tail(in->sub, present, i, b[i]))
                return ptx_fault(
                    w, in, i, "sync.inactive_lane", 0, "shfl.sync reads lane %u, which %s", s.lane,
                    w->live >> s.lane & 1 ? "does not take part" : "has exited or does not exist");
            s = (struct ptx_source){i, 0};
        }
        to[i] = value[s.lane];
        ok |= s.in_range << i;
    }
    put_mask(w, in->r[1], ok);
    return in + 1;
}

/* to[i] = value[from[i]]; from[] is below 32. */
static inline void permute(uint32_t *to, const uint32_t *value, const uint32_t *from)
{
#if defined(__AVX512F__)
    const __m512i low = _mm512_load_si512(value), high = _mm512_load_si512(value + 16);

    _mm512_store_si512(to, _mm512_permutex2var_epi32(low, _mm512_load_si512(from), high));
    _mm512_store_si512(to + 16, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + 16), high));
#else
    EACH_LANE to[i] = value[from[i] & 31];
#endif
}

static inline __attribute__((always_inline)) void all_sources(uint32_t *from, uint32_t *ok,
                                                              uint32_t mode, uint32_t b, uint32_t c)
{
    EACH_LANE
    {
        const struct ptx_source s = ptx_source_lane(mode, (uint32_t)i, b, c);

        from[i] = s.lane;
        ok[i] = 0 - s.in_range;
    }
}

/* The usual shuffle: a full warp and the same operands in all lanes; anything else goes the long
 * way. */
HANDLER(full_shfl)
{
    const uint32_t *a = SLOT(const uint32_t, in->r[2]), *b = SLOT(const uint32_t, in->r[3]);
    const uint32_t *c = SLOT(const uint32_t, in->r[4]), *m = SLOT(const uint32_t, in->r[5]);
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    _Alignas(64) uint32_t value[PTX_LANES], from[PTX_LANES], ok[PTX_LANES];
    uint32_t differ = 0;

    EACH_LANE differ |= (m[i] ^ PTX_ALL) | (b[i] ^ b[0]) | (c[i] ^ c[0]);
    if (differ)
        return any_shfl(w, in);
    memcpy(value, a, sizeof value);
    switch (in->sub) {
    case PTX_SHFL_UP:
        all_sources(from, ok, PTX_SHFL_UP, b[0], c[0]);
        break;
    case PTX_SHFL_DOWN:
        all_sources(from, ok, PTX_SHFL_DOWN, b[0], c[0]);
        break;
    case PTX_SHFL_BFLY:
        all_sources(from, ok, PTX_SHFL_BFLY, b[0], c[0]);
        break;
    default:
        all_sources(from, ok, PTX_SHFL_IDX, b[0], c[0]);
        break;
    }
    permute(to, value, from);
    put_mask(w, in->r[1], pack_mask(ok));
    return in + 1;
}

HANDLER(any_vote)
{
    const uint32_t p = get_mask(w, in->r[1]);
    uint32_t members = 0, result = 0;

    if (meet(w, in, in->r[2], &members) != in)
        return NULL;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint32_t group = members_of(w, in, 2, members, i) & w->mask;
        const int all = (p & group) == group, any = (p & group) != 0;
        const int yes = in->sub == PTX_VOTE_ALL ? all : in->sub == PTX_VOTE_ANY ? any : all || !any;

        result |= (uint32_t)yes << i;
    }
    put_mask(w, in->r[0], result);
    return in + 1;
}

HANDLER(any_ballot)
{
    const uint32_t p = get_mask(w, in->r[1]);
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    uint32_t members = 0;

    if (meet(w, in, in->r[2], &members) != in)
        return NULL;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);

        to[i] = p & w->mask & members_of(w, in, 2, members, i);
    }
    return in + 1;
}

/* Lane i's 32- or 64-bit value; wide says which. */
static uint64_t lane_value(const struct ptx_warp *w, uint32_t slot, uint32_t i, int wide)
{
    if (wide)
        return ((const uint64_t *)(const void *)(w->frame + slot))[i];
    return ((const uint32_t *)(const void *)(w->frame + slot))[i];
}

/* first_source: where in r[] the value stands; the mask is behind it. */
static const struct ptx_insn *match(struct ptx_warp *w, const struct ptx_insn *in,
                                    uint32_t first_source, int wide)
{
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    uint32_t members = 0, agree = 0, found[PTX_LANES] = {0};

    if (meet(w, in, in->r[first_source + 1], &members) != in)
        return NULL;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint32_t group = members_of(w, in, first_source + 1, members, i) & w->mask;
        const uint64_t mine = lane_value(w, in->r[first_source], i, wide);

        for (uint32_t g = group; g; g &= g - 1)
            if (lane_value(w, in->r[first_source], (uint32_t)__builtin_ctz(g), wide) == mine)
                found[i] |= g & (0 - g);
        if (found[i] == group)
            agree |= 1u << i;
    }
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);

        to[i] = first_source == 1 || (agree >> i & 1) ? found[i] : 0;
    }
    if (first_source == 2)
        put_mask(w, in->r[1], agree);
    return in + 1;
}

HANDLER(any_match_any_32)
{
    return match(w, in, 1, 0);
}
HANDLER(any_match_any_64)
{
    return match(w, in, 1, 1);
}
HANDLER(any_match_all_32)
{
    return match(w, in, 2, 0);
}
HANDLER(any_match_all_64)
{
    return match(w, in, 2, 1);
}

static uint32_t reduce(uint32_t op, uint32_t x, uint32_t y)
{
    switch (op) {
    case PTX_REDUX_ADD:
        return x + y;
    case PTX_REDUX_MIN_U:
        return x < y ? x : y;
    case PTX_REDUX_MIN_S:
        return (int32_t)x < (int32_t)y ? x : y;
    case PTX_REDUX_MAX_U:
        return x > y ? x : y;
    case PTX_REDUX_MAX_S:
        return (int32_t)x > (int32_t)y ? x : y;
    case PTX_REDUX_AND:
        return x & y;
    case PTX_REDUX_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

HANDLER(any_redux)
{
    const uint32_t *a = SLOT(const uint32_t, in->r[1]);
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    uint32_t members = 0, result[PTX_LANES];

    if (meet(w, in, in->r[2], &members) != in)
        return NULL;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const uint32_t group = members_of(w, in, 2, members, i) & w->mask;
        uint32_t sum = a[__builtin_ctz(group)];

        for (uint32_t g = group & (group - 1); g; g &= g - 1)
            sum = reduce(in->sub, sum, a[__builtin_ctz(g)]);
        result[i] = sum;
    }
    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = result[__builtin_ctz(left)];
    return in + 1;
}

HANDLER(any_activemask)
{
    uint32_t *to = SLOT(uint32_t, in->r[0]);

    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = w->mask;
    return in + 1;
}

HANDLER(any_elect)
{
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    uint32_t members = 0;

    if (meet(w, in, in->r[2], &members) != in)
        return NULL;
    const uint32_t leader = (uint32_t)__builtin_ctz(w->mask);
    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = leader;
    put_mask(w, in->r[1], 1u << leader);
    return in + 1;
}

HANDLER(any_warp_sync)
{
    uint32_t members = 0;

    return meet(w, in, in->r[0], &members) == in ? in + 1 : NULL;
}

#define ANY(name) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = any_##name

void LEVEL(ptx_fill_warp)(struct ptx_isa *isa)
{
    ANY(shfl);
    isa->full[PTX_OP_shfl] = full_shfl;
    ANY(vote);
    ANY(ballot);
    ANY(match_any_32);
    ANY(match_any_64);
    ANY(match_all_32);
    ANY(match_all_64);
    ANY(redux);
    ANY(activemask);
    ANY(elect);
    ANY(warp_sync);
}
