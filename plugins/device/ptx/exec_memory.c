/*
 * exec_memory.c - loads and stores of one instruction-set level.
 *
 * The usual warp reads 32 neighbours of one buffer: that is one bounds check and a copy. Otherwise
 * the lowest and highest address are checked against one segment, and lanes move one by one; only
 * when that fails each lane's address is resolved on its own, which also finds the lane to blame.
 */
#include "exec_memory.h"

/* ---- All lanes ------------------------------------------------------------------------------- */

struct reach {
    uint64_t low, high, bits; /* lowest, highest, or of all addresses */
};

/* Addresses of active lanes into at[]; lanes that are off get the first active lane's. */
INLINE struct reach addresses(const struct ptx_warp *w, const uint64_t *a, int64_t offset,
                              uint64_t *at, int masked)
{
    const uint64_t first = a[masked ? __builtin_ctz(w->mask) : 0] + (uint64_t)offset;
    uint64_t low = ~(uint64_t)0, high = 0, bits = 0;

    for (int i = 0; i < PTX_LANES; i++) {
        const uint64_t v = masked && !w->on[i] ? first : a[i] + (uint64_t)offset;

        at[i] = v;
        low = v < low ? v : low;
        high = v > high ? v : high;
        bits |= v;
    }
    return (struct reach){low, high, bits};
}

/* Whether 32 lanes stand side by side, n bytes each. */
INLINE int is_contiguous(const uint64_t *a, uint64_t n)
{
    uint64_t wrong = 0;

    if (a[PTX_LANES - 1] - a[0] != (PTX_LANES - 1) * n)
        return 0;
    for (int i = 0; i < PTX_LANES; i++)
        wrong |= (a[i] - a[0]) ^ ((uint64_t)i * n);
    return !wrong;
}

/* A wrong or scattered access: lane by lane, in order, until the first that faults. */
static const struct ptx_insn *each_lane(struct ptx_warp *w, const struct ptx_insn *in,
                                        const uint64_t *at, int e, uint32_t count, int shared,
                                        int writes)
{
    const uint32_t bytes = element_bytes(e) * count;
    const uint64_t window = shared ? PTX_SHARED_WINDOW : 0;

    for (uint32_t left = w->mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const uint64_t v = at[i] + window;
        uint8_t *host = shared && at[i] >= PTX_WINDOW_BYTES
                            ? NULL
                            : ptx_resolve(w, (uint32_t)i, v, bytes, writes);

        if (!host || (at[i] & (bytes - 1)))
            return ptx_memory_fault(w, in, (uint32_t)i, at[i], bytes);
        for (uint32_t k = 0; k < count; k++) {
            if (writes)
                deposit(w->frame + in->r[1 + k], i, host + k * element_bytes(e), e);
            else
                fetch(w->frame + in->r[k], i, host + k * element_bytes(e), e);
        }
    }
    return in + 1;
}

#if defined(__AVX512F__)
/* 32 lanes of 4 words each, as they lie in memory, into 4 slots: 16 lanes a round. */
INLINE void load_4x32(struct ptx_warp *w, const struct ptx_insn *in, const uint8_t *from)
{
    const __m512i even =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i odd =
        _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);

    for (int k = 0; k < 2; k++, from += 256) {
        const __m512i v0 = _mm512_loadu_si512(from), v1 = _mm512_loadu_si512(from + 64);
        const __m512i v2 = _mm512_loadu_si512(from + 128), v3 = _mm512_loadu_si512(from + 192);
        const __m512i e0 = _mm512_permutex2var_epi32(v0, even, v1),
                      e1 = _mm512_permutex2var_epi32(v2, even, v3);
        const __m512i o0 = _mm512_permutex2var_epi32(v0, odd, v1),
                      o1 = _mm512_permutex2var_epi32(v2, odd, v3);

        _mm512_store_si512(w->frame + in->r[0] + 64 * k, _mm512_shuffle_i64x2(e0, e1, 0x44));
        _mm512_store_si512(w->frame + in->r[1] + 64 * k, _mm512_shuffle_i64x2(e0, e1, 0xee));
        _mm512_store_si512(w->frame + in->r[2] + 64 * k, _mm512_shuffle_i64x2(o0, o1, 0x44));
        _mm512_store_si512(w->frame + in->r[3] + 64 * k, _mm512_shuffle_i64x2(o0, o1, 0xee));
    }
}

INLINE void store_4x32(struct ptx_warp *w, const struct ptx_insn *in, uint8_t *to)
{
    const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const __m512i high =
        _mm512_setr_epi32(4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);

    for (int k = 0; k < 2; k++, to += 256) {
        const __m512i a = _mm512_load_si512(w->frame + in->r[1] + 64 * k);
        const __m512i b = _mm512_load_si512(w->frame + in->r[2] + 64 * k);
        const __m512i c = _mm512_load_si512(w->frame + in->r[3] + 64 * k);
        const __m512i d = _mm512_load_si512(w->frame + in->r[4] + 64 * k);
        const __m512i ab0 = _mm512_shuffle_i64x2(a, b, 0x44),
                      ab1 = _mm512_shuffle_i64x2(a, b, 0xee);
        const __m512i cd0 = _mm512_shuffle_i64x2(c, d, 0x44),
                      cd1 = _mm512_shuffle_i64x2(c, d, 0xee);

        _mm512_storeu_si512(to, _mm512_permutex2var_epi32(ab0, low, cd0));
        _mm512_storeu_si512(to + 64, _mm512_permutex2var_epi32(ab0, high, cd0));
        _mm512_storeu_si512(to + 128, _mm512_permutex2var_epi32(ab1, low, cd1));
        _mm512_storeu_si512(to + 192, _mm512_permutex2var_epi32(ab1, high, cd1));
    }
}
#define HAS_4X32 1
#else
#define HAS_4X32 0
#define load_4x32(w, in, from) (void)0
#define store_4x32(w, in, to) (void)0
#endif

/* Lane i's element at host + (at[i] - low) into its place; often all lanes read the same one. */
INLINE void gather(uint8_t *to, const uint8_t *host, const uint64_t *at, const struct reach *r,
                   uint32_t mask, int e, int masked)
{
    if (masked) {
        for (uint32_t left = mask; left; left &= left - 1) {
            const int i = __builtin_ctz(left);

            fetch(to, i, host + (at[i] - r->low), e);
        }
    } else if (r->low == r->high) {
        EACH_LANE fetch(to, i, host, e);
#if defined(__AVX512F__)
    } else if (e == PTX_E_32) {
        for (int k = 0; k < PTX_LANES; k += 8) {
            const __m512i offset =
                _mm512_sub_epi64(_mm512_load_si512(at + k), _mm512_set1_epi64((long long)r->low));

            _mm256_store_si256((__m256i *)(void *)(to + 4 * k),
                               _mm512_i64gather_epi32(offset, host, 1));
        }
#endif
    } else {
        EACH_LANE fetch(to, i, host + (at[i] - r->low), e);
    }
}

INLINE const struct ptx_insn *load(struct ptx_warp *w, const struct ptx_insn *in, int e,
                                   uint32_t count, int shared, int masked)
{
    const uint64_t *a = SLOT(const uint64_t, in->r[count]);
    const uint32_t size = element_bytes(e), bytes = size * count;
    _Alignas(64) uint64_t at[PTX_LANES];
    const uint8_t *host;

    if (!masked && is_contiguous(a, bytes)) {
        const uint64_t first = a[0] + (uint64_t)in->imm;

        host = span(w->x, in, first, PTX_LANES * bytes, shared, 0);
        if (__builtin_expect(host && !(first & (bytes - 1)), 1)) {
            if (HAS_4X32 && e == PTX_E_32 && count == 4) {
                load_4x32(w, in, host);
                return in + 1;
            }
            for (uint32_t k = 0; k < count; k++) {
                uint8_t *to = SLOT(uint8_t, in->r[k]);

                EACH_LANE fetch(to, i, host + (uint32_t)i * bytes + k * size, e);
            }
            return in + 1;
        }
    }
    const struct reach r = addresses(w, a, in->imm, at, masked);
    host = r.high - r.low < PTX_LAST_ADDRESS
               ? span(w->x, in, r.low, r.high - r.low + bytes, shared, 0)
               : NULL;
    if (__builtin_expect(!host || (r.bits & (bytes - 1)), 0))
        return each_lane(w, in, at, e, count, shared, 0);
    for (uint32_t k = 0; k < count; k++)
        gather(SLOT(uint8_t, in->r[k]), host + k * size, at, &r, w->mask, e, masked);
    return in + 1;
}

INLINE const struct ptx_insn *store(struct ptx_warp *w, const struct ptx_insn *in, int e,
                                    uint32_t count, int shared, int masked)
{
    const uint64_t *a = SLOT(const uint64_t, in->r[0]);
    const uint32_t size = element_bytes(e), bytes = size * count;
    uint64_t at[PTX_LANES];
    uint8_t *host;

    if (!masked && is_contiguous(a, bytes)) {
        const uint64_t first = a[0] + (uint64_t)in->imm;

        host = span(w->x, in, first, PTX_LANES * bytes, shared, 1);
        if (__builtin_expect(host && !(first & (bytes - 1)), 1)) {
            if (!shared)
                mark(w->x, in, first, PTX_LANES * bytes);
            if (HAS_4X32 && e == PTX_E_32 && count == 4) {
                store_4x32(w, in, host);
                return in + 1;
            }
            for (uint32_t k = 0; k < count; k++) {
                const uint8_t *from = SLOT(const uint8_t, in->r[1 + k]);

                EACH_LANE deposit(from, i, host + (uint32_t)i * bytes + k * size, e);
            }
            return in + 1;
        }
    }
    const struct reach r = addresses(w, a, in->imm, at, masked);
    host = r.high - r.low < PTX_LAST_ADDRESS
               ? span(w->x, in, r.low, r.high - r.low + bytes, shared, 1)
               : NULL;
    if (__builtin_expect(!host || (r.bits & (bytes - 1)), 0))
        return each_lane(w, in, at, e, count, shared, 1);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);

        if (!shared)
            mark(w->x, in, at[i], bytes);
        for (uint32_t k = 0; k < count; k++)
            deposit(w->frame + in->r[1 + k], i, host + (at[i] - r.low) + k * size, e);
    }
    return in + 1;
}

#define MOVES(name, how, e, count, shared)                                                         \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        return how(w, in, e, count, shared, 0);                                                    \
    }                                                                                              \
    HANDLER(masked_##name)                                                                         \
    {                                                                                              \
        return how(w, in, e, count, shared, 1);                                                    \
    }
#define MOVES_X(name, how, count, shared)                                                          \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        switch (in->sub) {                                                                         \
        case PTX_E_U8:                                                                             \
            return how(w, in, PTX_E_U8, count, shared, 0);                                         \
        case PTX_E_S8:                                                                             \
            return how(w, in, PTX_E_S8, count, shared, 0);                                         \
        case PTX_E_U16:                                                                            \
            return how(w, in, PTX_E_U16, count, shared, 0);                                        \
        default:                                                                                   \
            return how(w, in, PTX_E_S16, count, shared, 0);                                        \
        }                                                                                          \
    }                                                                                              \
    HANDLER(masked_##name)                                                                         \
    {                                                                                              \
        switch (in->sub) {                                                                         \
        case PTX_E_U8:                                                                             \
            return how(w, in, PTX_E_U8, count, shared, 1);                                         \
        case PTX_E_S8:                                                                             \
            return how(w, in, PTX_E_S8, count, shared, 1);                                         \
        case PTX_E_U16:                                                                            \
            return how(w, in, PTX_E_U16, count, shared, 1);                                        \
        default:                                                                                   \
            return how(w, in, PTX_E_S16, count, shared, 1);                                        \
        }                                                                                          \
    }
#define FAMILY(M, MX)                                                                              \
    M(ldg_32, load, PTX_E_32, 1, 0)                                                                \
    M(ldg_32v2, load, PTX_E_32, 2, 0)                                                              \
    M(ldg_32v4, load, PTX_E_32, 4, 0)                                                              \
    M(ldg_64, load, PTX_E_64, 1, 0)                                                                \
    M(ldg_64v2, load, PTX_E_64, 2, 0)                                                              \
    M(ldg_64v4, load, PTX_E_64, 4, 0)                                                              \
    MX(ldg_x, load, 1, 0)                                                                          \
    MX(ldg_xv2, load, 2, 0)                                                                        \
    MX(ldg_xv4, load, 4, 0)                                                                        \
    M(stg_32, store, PTX_E_32, 1, 0)                                                               \
    M(stg_32v2, store, PTX_E_32, 2, 0)                                                             \
    M(stg_32v4, store, PTX_E_32, 4, 0)                                                             \
    M(stg_64, store, PTX_E_64, 1, 0)                                                               \
    M(stg_64v2, store, PTX_E_64, 2, 0)                                                             \
    M(stg_64v4, store, PTX_E_64, 4, 0)                                                             \
    MX(stg_x, store, 1, 0)                                                                         \
    MX(stg_xv2, store, 2, 0)                                                                       \
    MX(stg_xv4, store, 4, 0)                                                                       \
    M(lds_32, load, PTX_E_32, 1, 1)                                                                \
    M(lds_32v2, load, PTX_E_32, 2, 1)                                                              \
    M(lds_32v4, load, PTX_E_32, 4, 1)                                                              \
    M(lds_64, load, PTX_E_64, 1, 1)                                                                \
    M(lds_64v2, load, PTX_E_64, 2, 1)                                                              \
    MX(lds_x, load, 1, 1)                                                                          \
    MX(lds_xv2, load, 2, 1)                                                                        \
    MX(lds_xv4, load, 4, 1)                                                                        \
    M(sts_32, store, PTX_E_32, 1, 1)                                                               \
    M(sts_32v2, store, PTX_E_32, 2, 1)                                                             \
    M(sts_32v4, store, PTX_E_32, 4, 1)                                                             \
    M(sts_64, store, PTX_E_64, 1, 1)                                                               \
    M(sts_64v2, store, PTX_E_64, 2, 1)                                                             \
    MX(sts_x, store, 1, 1)                                                                         \
    MX(sts_xv2, store, 2, 1)                                                                       \
    MX(sts_xv4, store, 4, 1)

FAMILY(MOVES, MOVES_X)

#define ENTRY(name, ...)                                                                           \
    isa->full[PTX_OP_##name] = full_##name, isa->masked[PTX_OP_##name] = masked_##name;

void LEVEL(ptx_fill_memory)(struct ptx_isa *isa)
{
    FAMILY(ENTRY, ENTRY)
}
