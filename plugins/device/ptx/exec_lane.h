/*
 * exec_lane.h - turns lines of ops.def into handlers, compiled once an instruction-set level.
 * PTX_LEVEL is the suffix of that level.
 */
#ifndef PTX_EXEC_LANE_H
#define PTX_EXEC_LANE_H

#include "approx.h"
#include "exec.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define LEVEL_3(name, level) name##_##level
#define LEVEL_2(name, level) LEVEL_3(name, level)
#define LEVEL(name) LEVEL_2(name, PTX_LEVEL)

#if defined(__clang__)
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < PTX_LANES; i++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < PTX_LANES; i++)
#endif

#define SLOT(type, offset) ((type *)__builtin_assume_aligned(w->frame + (offset), 64))

/* T_: how a slot's lane is stored; V_: the value; GET_ and PUT_ go between them. */
#define T_u8 uint32_t
#define T_s8 uint32_t
#define T_u16 uint32_t
#define T_s16 uint32_t
#define T_u32 uint32_t
#define T_s32 uint32_t
#define T_f32 float
#define T_fz float
#define T_fs float
#define T_fzs float
#define T_h uint32_t
#define T_hz uint32_t
#define T_bf uint32_t
#define T_u64 uint64_t
#define T_s64 uint64_t
#define T_f64 double
#define T_p uint32_t
#define V_u8 uint8_t
#define V_s8 int8_t
#define V_u16 uint16_t
#define V_s16 int16_t
#define V_u32 uint32_t
#define V_s32 int32_t
#define V_f32 float
#define V_fz float
#define V_h float
#define V_bf float
#define V_u64 uint64_t
#define V_s64 int64_t
#define V_f64 double
#define V_p uint32_t
#define GET_u8(s) ((uint8_t)(s)[i])
#define GET_s8(s) ((int8_t)(s)[i])
#define GET_u16(s) ((uint16_t)(s)[i])
#define GET_s16(s) ((int16_t)(s)[i])
#define GET_u32(s) ((s)[i])
#define GET_s32(s) ((int32_t)(s)[i])
#define GET_f32(s) ((s)[i])
#define GET_fz(s) flush((s)[i])
#define GET_h(s) half_to_f32((s)[i] & 0xffffu)
#define GET_bf(s) bf16_to_f32((s)[i] & 0xffffu)
#define GET_u64(s) ((s)[i])
#define GET_s64(s) ((int64_t)(s)[i])
#define GET_f64(s) ((s)[i])
#define GET_p(s) ((s##_bits >> i) & 1u)
#define PUT_u16(v) ((uint32_t)(uint16_t)(v))
#define PUT_s16(v) ((uint32_t)(int32_t)(int16_t)(v))
#define PUT_u32(v) ((uint32_t)(v))
#define PUT_s32(v) ((uint32_t)(int32_t)(v))
#define PUT_f32(v) (v)
#define PUT_fz(v) flush(v)
#define PUT_fs(v) saturate(v)
#define PUT_fzs(v) flush(saturate(v))
#define PUT_h(v) ((uint32_t)f32_to_half(v))
#define PUT_hz(v) ((uint32_t)f32_to_half_rz(v))
#define PUT_bf(v) ((uint32_t)f32_to_bf16(v))
#define PUT_u64(v) ((uint64_t)(v))
#define PUT_s64(v) ((uint64_t)(int64_t)(v))
#define PUT_f64(v) (v)

/* One source: its slot pointer, and for predicates the mask, read before the loop. */
#define SOURCE(name, tag, k)                                                                       \
    const T_##tag *name = (const T_##tag *)(w->frame + in->r[k]);                                  \
    const uint32_t name##_bits = *(const uint32_t *)(const void *)name;                            \
    (void)name##_bits

#define HANDLER(name)                                                                              \
    static const struct ptx_insn *name(struct ptx_warp *w, const struct ptx_insn *in)

/* LOAD declares the sources x, y, z of lane i; expr is made of them. */
#define LANE_LOOP(d, LOAD, expr)                                                                   \
    T_##d *to = SLOT(T_##d, in->r[0]);                                                             \
    const int64_t imm = in->imm;                                                                   \
    (void)imm;                                                                                     \
    EACH_LANE                                                                                      \
    {                                                                                              \
        LOAD;                                                                                      \
        to[i] = PUT_##d(expr);                                                                     \
    }                                                                                              \
    return in + 1;

#define LANE_LOOP_MASKED(d, LOAD, expr)                                                            \
    T_##d *to = SLOT(T_##d, in->r[0]);                                                             \
    const uint32_t *on = w->on;                                                                    \
    const int64_t imm = in->imm;                                                                   \
    (void)imm;                                                                                     \
    EACH_LANE                                                                                      \
    {                                                                                              \
        LOAD;                                                                                      \
        const T_##d value = PUT_##d(expr);                                                         \
        to[i] = on[i] ? value : to[i];                                                             \
    }                                                                                              \
    return in + 1;

/* The 32 lanes' 0 / ~0 words as one mask. */
static inline __attribute__((always_inline, unused)) uint32_t pack_mask(const uint32_t *t)
{
#if defined(__AVX512DQ__)
    uint32_t low = (uint32_t)_mm512_movepi32_mask(_mm512_load_si512((const void *)t));
    uint32_t high = (uint32_t)_mm512_movepi32_mask(_mm512_load_si512((const void *)(t + 16)));

    return low | (high << 16);
#elif defined(__AVX2__)
    uint32_t mask = 0;

    for (int k = 0; k < 4; k++)
        mask |=
            (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)(const void *)(t + 8 * k)))
            << (8 * k);
    return mask;
#elif defined(__SSE2__)
    uint32_t mask = 0;

    for (int k = 0; k < 8; k++)
        mask |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)(const void *)(t + 4 * k)))
                << (4 * k);
    return mask;
#else
    uint32_t mask = 0;

    for (int k = 0; k < PTX_LANES; k++)
        mask |= (t[k] & 1u) << k;
    return mask;
#endif
}

static inline __attribute__((always_inline, unused)) void put_mask(struct ptx_warp *w,
                                                                   uint32_t offset, uint32_t mask)
{
    uint32_t *to = (uint32_t *)(void *)(w->frame + offset);

    *to = (*to & ~w->mask) | (mask & w->mask);
}

static inline __attribute__((always_inline, unused)) uint32_t get_mask(const struct ptx_warp *w,
                                                                       uint32_t offset)
{
    return *(const uint32_t *)(const void *)(w->frame + offset);
}

#endif
