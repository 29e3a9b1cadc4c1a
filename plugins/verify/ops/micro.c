/*
 * The innermost loop of matrix products for AVX-512, AVX2 and any processor, from one text. A tile
 * of C stays in registers while k runs.
 */
#include "gemm.h"

#define ROWS_1(f) f(0)
#define ROWS_4(f) f(0) f(1) f(2) f(3)
#define ROWS_6(f) ROWS_4(f) f(4) f(5)
#define ROWS_12(f) ROWS_6(f) f(6) f(7) f(8) f(9) f(10) f(11)

#define START(r) VEC c##r##_0 = SET(0.0), c##r##_1 = SET(0.0);
#define STEP(r)                                                                                    \
    {                                                                                              \
        VEC x = SET(a[r]);                                                                         \
        c##r##_0 = FMA(x, b0, c##r##_0);                                                           \
        c##r##_1 = FMA(x, b1, c##r##_1);                                                           \
    }
#define FINISH(r)                                                                                  \
    {                                                                                              \
        double *to = c + r * stride;                                                               \
        STORE(to, ADD(LOAD(to), c##r##_0));                                                        \
        STORE(to + WIDTH, ADD(LOAD(to + WIDTH), c##r##_1));                                        \
    }
/* A tile of n rows and two vectors of columns. */
#define MICRO(name, attribute, n, rows)                                                            \
    attribute static void name(int64_t k, const double *a, const double *b, double *c,             \
                               int64_t stride)                                                     \
    {                                                                                              \
        rows(START) for (int64_t i = 0; i < k; i++, a += n, b += 2 * WIDTH)                        \
        {                                                                                          \
            VEC b0 = LOAD(b), b1 = LOAD(b + WIDTH);                                                \
            rows(STEP)                                                                             \
        }                                                                                          \
        rows(FINISH)                                                                               \
    }

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define WIDTH 8
#define VEC __m512d
#define SET _mm512_set1_pd
#define LOAD _mm512_loadu_pd
#define STORE _mm512_storeu_pd
#define ADD _mm512_add_pd
#define FMA _mm512_fmadd_pd
MICRO(avx512_full, AVX512, 12, ROWS_12)
MICRO(avx512_single, AVX512, 1, ROWS_1)
#undef WIDTH
#undef VEC
#undef SET
#undef LOAD
#undef STORE
#undef ADD
#undef FMA

#define AVX2 __attribute__((target("avx2,fma")))
#define WIDTH 4
#define VEC __m256d
#define SET _mm256_set1_pd
#define LOAD _mm256_loadu_pd
#define STORE _mm256_storeu_pd
#define ADD _mm256_add_pd
#define FMA _mm256_fmadd_pd
MICRO(avx2_full, AVX2, 6, ROWS_6)
MICRO(avx2_single, AVX2, 1, ROWS_1)
#undef WIDTH
#undef VEC
#undef SET
#undef LOAD
#undef STORE
#undef ADD
#undef FMA
#endif

/* Two doubles, in the compilers' own vectors. */
typedef double pair __attribute__((vector_size(16)));
typedef double loose __attribute__((vector_size(16), aligned(8), may_alias));

#define WIDTH 2
#define VEC pair
#define SET(x) ((pair){(x), (x)})
#define LOAD(p) (*(const loose *)(p))
#define STORE(p, x) (*(loose *)(p) = (x))
#define ADD(x, y) ((x) + (y))
#define FMA(x, y, z) ((x) * (y) + (z))
#define PLAIN
MICRO(generic_full, PLAIN, 4, ROWS_4)
MICRO(generic_single, PLAIN, 1, ROWS_1)

static const struct ops_micro all[] = {
#if defined(__x86_64__)
    {"avx512", 12, 16, avx512_full, avx512_single},
    {"avx2", 6, 8, avx2_full, avx2_single},
#endif
    {"generic", 4, 4, generic_full, generic_single},
};

const struct ops_micro *ops_micro_list(uint32_t *n)
{
    uint32_t first = 0, count = sizeof all / sizeof *all;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f"))
        first = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 2;
#endif
    *n = count - first;
    return all + first;
}
