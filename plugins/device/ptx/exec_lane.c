/*
 * exec_lane.c - handlers of the integer, float and conversion operations of one instruction-set
 * level. PTX_PART 0 makes integers and conversions, 1 floats, so that the parts compile side by
 * side.
 */
#include "exec_lane.h"

#define LANE1(name, d, a, expr, text)                                                              \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        LANE_LOOP(d, const V_##a x = GET_##a(sa);, expr)                                           \
    }                                                                                              \
    HANDLER(masked_##name)                                                                         \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        LANE_LOOP_MASKED(d, const V_##a x = GET_##a(sa);, expr)                                    \
    }
#define LANE2(name, d, a, b, expr, text)                                                           \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        SOURCE(sb, b, 2);                                                                          \
        LANE_LOOP(d, const V_##a x = GET_##a(sa); const V_##b y = GET_##b(sb);, expr)              \
    }                                                                                              \
    HANDLER(masked_##name)                                                                         \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        SOURCE(sb, b, 2);                                                                          \
        LANE_LOOP_MASKED(d, const V_##a x = GET_##a(sa); const V_##b y = GET_##b(sb);, expr)       \
    }
#define LANE3(name, d, a, b, c, expr, text)                                                        \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        SOURCE(sb, b, 2);                                                                          \
        SOURCE(sc, c, 3);                                                                          \
        LANE_LOOP(d, const V_##a x = GET_##a(sa); const V_##b y = GET_##b(sb);                     \
                  const V_##c z = GET_##c(sc);, expr)                                              \
    }                                                                                              \
    HANDLER(masked_##name)                                                                         \
    {                                                                                              \
        SOURCE(sa, a, 1);                                                                          \
        SOURCE(sb, b, 2);                                                                          \
        SOURCE(sc, c, 3);                                                                          \
        LANE_LOOP_MASKED(d, const V_##a x = GET_##a(sa); const V_##b y = GET_##b(sb);              \
                         const V_##c z = GET_##c(sc);, expr)                                       \
    }
/* A comparison computes all lanes and merges under the mask in one place, full or not. */
#define SETP(name, a, b, expr)                                                                     \
    HANDLER(full_##name)                                                                           \
    {                                                                                              \
        _Alignas(64) uint32_t t[PTX_LANES];                                                        \
        SOURCE(sa, a, 1);                                                                          \
        SOURCE(sb, b, 2);                                                                          \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const V_##a x = GET_##a(sa);                                                           \
            const V_##b y = GET_##b(sb);                                                           \
            t[i] = (expr) ? ~0u : 0u;                                                              \
        }                                                                                          \
        put_mask(w, in->r[0], pack_mask(t));                                                       \
        return in + 1;                                                                             \
    }

#if PTX_PART == 0
#include "ops_int.def"
#include "ops_cvt.def"
#else
#include "ops_float.def"
#endif

#if PTX_PART == 1 && defined(__AVX512F__)
/* AVX-512 rounds as each instruction asks; expf leans on fma.rm. Same bits as the portable
 * handlers. */
#define ROUNDED(name, mode, ...)                                                                   \
    HANDLER(rounded_##name)                                                                        \
    {                                                                                              \
        for (uint32_t k = 0; k < 2; k++) {                                                         \
            const uint8_t *f = w->frame + 64 * k;                                                  \
            const __m512 x = _mm512_load_ps(f + in->r[1]), y = _mm512_load_ps(f + in->r[2]);       \
            const __mmask16 m = (__mmask16)(w->mask >> (16 * k));                                  \
                                                                                                   \
            _mm512_mask_store_ps(w->frame + 64 * k + in->r[0], m, __VA_ARGS__);                    \
        }                                                                                          \
        return in + 1;                                                                             \
    }
#define Z_OPERAND _mm512_load_ps(f + in->r[3])
#define ROUNDED_FAMILY(suffix, mode)                                                               \
    ROUNDED(add_##suffix, mode, _mm512_add_round_ps(x, y, (mode) | _MM_FROUND_NO_EXC))             \
    ROUNDED(mul_##suffix, mode, _mm512_mul_round_ps(x, y, (mode) | _MM_FROUND_NO_EXC))             \
    ROUNDED(fma_##suffix, mode, _mm512_fmadd_round_ps(x, y, Z_OPERAND, (mode) | _MM_FROUND_NO_EXC))
ROUNDED_FAMILY(rz, _MM_FROUND_TO_ZERO)
ROUNDED_FAMILY(rm, _MM_FROUND_TO_NEG_INF)
ROUNDED_FAMILY(rp, _MM_FROUND_TO_POS_INF)
#define USE_ROUNDED(isa, suffix)                                                                   \
    isa->full[PTX_OP_add_##suffix] = isa->masked[PTX_OP_add_##suffix] = rounded_add_##suffix;      \
    isa->full[PTX_OP_mul_##suffix] = isa->masked[PTX_OP_mul_##suffix] = rounded_mul_##suffix;      \
    isa->full[PTX_OP_fma_##suffix] = isa->masked[PTX_OP_fma_##suffix] = rounded_fma_##suffix;
#else
#define USE_ROUNDED(isa, suffix)
#endif

#undef LANE1
#undef LANE2
#undef LANE3
#undef SETP
#define ENTRY(name)                                                                                \
    isa->full[PTX_OP_##name] = full_##name, isa->masked[PTX_OP_##name] = masked_##name;
#define LANE1(name, d, a, expr, text) ENTRY(name)
#define LANE2(name, d, a, b, expr, text) ENTRY(name)
#define LANE3(name, d, a, b, c, expr, text) ENTRY(name)
#define SETP(name, a, b, expr) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = full_##name;

#if PTX_PART == 0
void LEVEL(ptx_fill_lane)(struct ptx_isa *isa)
{
#include "ops_int.def"
#include "ops_cvt.def"
}
#else
void LEVEL(ptx_fill_float)(struct ptx_isa *isa)
{
#include "ops_float.def"
    USE_ROUNDED(isa, rz)
    USE_ROUNDED(isa, rm)
    USE_ROUNDED(isa, rp)
}
#endif
