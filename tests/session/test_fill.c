/* Fills and conversions: what is promised in rung/session.h, and the edges of rounding. */
#include "support/support.h"

#include "session/convert.h"
#include "session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void draw(const char *kind, uint32_t dtype, uint64_t first, uint64_t n, int64_t last,
                 void *out)
{
    struct rung_fill fill = {.struct_size = sizeof fill, .tensor = 3, .kind = kind};
    assert_int_equal(rung_fill_draw(&fill, dtype, 7, first, n, last, out), RUNG_OK);
}

static void moments(const char *kind, double mean, double deviation, double tolerance)
{
    enum { N = 200000 };
    double *v = malloc(N * sizeof *v), sum = 0, sum2 = 0;
    draw(kind, RUNG_F64, 0, N, 1000, v);
    for (int i = 0; i < N; i++)
        sum += v[i];
    for (int i = 0; i < N; i++)
        sum2 += (v[i] - sum / N) * (v[i] - sum / N);
    free(v);
    assert_true(fabs(sum / N - mean) < tolerance * deviation);
    assert_true(fabs(sqrt(sum2 / N) - deviation) < tolerance * deviation);
}

static void random_kinds_have_their_moments(void **state)
{
    (void)state;
    moments("normal", 0, 1, 0.01);
    moments("uniform", 0.5, sqrt(1.0 / 12), 0.01);
    moments("signed", 0, sqrt(1.0 / 3), 0.01);
    moments("offset", 1000, 1, 0.01);
    moments("large", 0, 1e4, 0.01);
    moments("small", 0, 1e-6, 0.01);
    moments("integers", 0, sqrt(24), 0.01); /* (17^2 - 1) / 12 */
}

/* Skewness and kurtosis too: 0 and 3; and tails as far as 200,000 draws reach. */
static void normal_is_normal(void **state)
{
    enum { N = 200000 };
    (void)state;
    double *v = malloc(N * sizeof *v), m3 = 0, m4 = 0, most = 0;
    draw("normal", RUNG_F64, 0, N, 1, v);
    for (int i = 0; i < N; i++) {
        m3 += pow(v[i], 3) / N;
        m4 += pow(v[i], 4) / N;
        most = fmax(most, fabs(v[i]));
    }
    free(v);
    assert_true(fabs(m3) < 0.03);
    assert_true(fabs(m4 - 3) < 0.08);
    assert_true(most > 4 && most < 7);
}

/* The library's own logarithm and cosine, which are portable, against libm's. */
static void normal_agrees_with_libm(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        double a = rung_fill_value("normal", 1, 0, 2 * i, 1),
               b = rung_fill_value("normal", 1, 0, 2 * i + 1, 1);
        double u1 = rung_fill_value("uniform", 1, 0, 2 * i, 1),
               u2 = rung_fill_value("uniform", 1, 0, 2 * i + 1, 1);
        double r = sqrt(-2 * log1p(-u1));
        assert_true(fabs(a - r * cos(2 * M_PI * u2)) < 1e-14 * (1 + r));
        assert_true(fabs(b - r * sin(2 * M_PI * u2)) < 1e-14 * (1 + r));
    }
}

static void known_bits(void **state)
{
    (void)state;
    /* Fixed for ever: journals name seeds. */
    assert_float_equal(rung_fill_value("ramp", 0, 0, 97 + 50, 1), 2.0 / 16, 0);
    assert_true(rung_fill_value("normal", 1, 2, 3, 1) == 0x1.5452b49fedf7fp-1);
    assert_true(rung_fill_value("normal", 1, 2, 4, 1) == -0x1.de04c9ba19fc7p-1);
    assert_true(rung_fill_value("uniform", 1, 2, 3, 1) == 0x1.c1679e688a83p-5);
    assert_true(rung_fill_value("integers", 1, 2, 3, 1) == 2);
    double v = rung_fill_value("normal", 1, 2, 3, 1), w = rung_fill_value("normal", 1, 2, 3, 1);
    assert_memory_equal(&v, &w, sizeof v);
    assert_true(v != rung_fill_value("normal", 2, 2, 3, 1));
    assert_true(v != rung_fill_value("normal", 1, 3, 3, 1));
    assert_true(isnan(rung_fill_value("nonsense", 1, 2, 3, 1)));
}

static void parts_equal_the_whole(void **state)
{
    (void)state;
    for (int k = 0; rung_fill_kinds[k]; k++) {
        float whole[3001], parts[3001];
        draw(rung_fill_kinds[k], RUNG_F32, 0, 3001, 37, whole);
        for (uint64_t at = 0, step = 1; at < 3001; at += step, step = step * 2 + 1) {
            if (step > 3001 - at)
                step = 3001 - at;
            draw(rung_fill_kinds[k], RUNG_F32, at, step, 37, parts + at);
        }
        assert_memory_equal(whole, parts, sizeof whole);
        for (int i = 0; i < 3001; i += 100)
            assert_true((float)rung_fill_value(rung_fill_kinds[k], 7, 3, (uint64_t)i, 37) ==
                        whole[i]);
        assert_true(rung_fill_known(rung_fill_kinds[k]));
    }
}

/* Large draws are made by several threads. */
static void a_large_draw_equals_its_elements(void **state)
{
    enum { N = (1 << 20) + 4097, FIRST = 999 };
    float *v = malloc(N * sizeof *v);
    (void)state;
    for (int k = 0; rung_fill_kinds[k]; k++) {
        draw(rung_fill_kinds[k], RUNG_F32, FIRST, N, 1000, v);
        for (uint64_t i = 0; i < N; i += i % 262144 < 3 || i % 262144 > 262140 ? 1 : 251)
            assert_true(v[i] == (float)rung_fill_value(rung_fill_kinds[k], 7, 3, FIRST + i, 1000));
    }
    free(v);
}

static void rows(void **state)
{
    (void)state;
    float e[20 * 13], h[20 * 13];
    draw("equal_rows", RUNG_F32, 0, 20 * 13, 13, e);
    draw("onehot_rows", RUNG_F32, 0, 20 * 13, 13, h);
    int places = 0;
    for (int r = 0; r < 20; r++) {
        int hot = 0;
        for (int c = 0; c < 13; c++) {
            assert_true(e[r * 13 + c] == e[r * 13]);
            hot += h[r * 13 + c] == 30;
            places |= h[r * 13 + c] == 30 ? 1 << c : 0;
            assert_true(h[r * 13 + c] == 30 || h[r * 13 + c] == 0);
        }
        assert_int_equal(hot, 1);
        assert_true(r == 0 || e[r * 13] != e[r * 13 - 1]);
    }
    assert_true(places & (places - 1)); /* not all at one place */
}

static void integer_and_bool_types(void **state)
{
    (void)state;
    int8_t i8[4000];
    uint8_t u8[4000], b[4000];
    int64_t i64[4000];
    int ones = 0;
    draw("integers", RUNG_I8, 0, 4000, 1, i8);
    draw("integers", RUNG_U8, 0, 4000, 1, u8);
    draw("integers", RUNG_I64, 0, 4000, 1, i64);
    draw("normal", RUNG_BOOL, 0, 4000, 1, b);
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(i8[i], i64[i]);
        assert_true(i8[i] >= -8 && i8[i] <= 8);
        assert_int_equal(u8[i], i8[i] < 0 ? 0 : i8[i]);
        assert_true(b[i] <= 1);
        ones += b[i];
    }
    assert_true(ones > 1800 && ones < 2200);
    draw("zeros", RUNG_BOOL, 0, 4000, 1, b);
    assert_int_equal(b[17], 0);
    draw("ones", RUNG_BOOL, 0, 4000, 1, b);
    assert_int_equal(b[17], 1);
}

static void scale_shift_and_bytes(void **state)
{
    (void)state;
    struct rung_fill fill = {
        .struct_size = sizeof fill, .tensor = 3, .kind = "ones", .scale = 3, .shift = -1};
    float v[2];
    assert_int_equal(rung_fill_draw(&fill, RUNG_F32, 7, 0, 2, 1, v), RUNG_OK);
    assert_true(v[0] == 2 && v[1] == 2);
    float given[4] = {1, 2, 3, 4};
    fill.bytes = given;
    fill.n_bytes = sizeof given;
    assert_int_equal(rung_fill_draw(&fill, RUNG_F32, 7, 2, 2, 1, v), RUNG_OK);
    assert_true(v[0] == 3 && v[1] == 4);
    assert_int_equal(rung_fill_draw(&fill, RUNG_F32, 7, 3, 2, 1, v), RUNG_EINVAL);
    fill.bytes = NULL;
    fill.kind = "nonsense";
    assert_int_equal(rung_fill_draw(&fill, RUNG_F32, 7, 0, 1, 1, v), RUNG_EINVAL);
    assert_int_equal(rung_fill_draw(&fill, 99, 7, 0, 1, 1, v), RUNG_EINVAL);
}

static uint16_t store16(uint32_t dtype, double v)
{
    uint16_t h;
    assert_true(rung_convert_store(dtype, &v, 1, &h));
    return h;
}

static void half_rounds_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        double v;
        uint16_t h;
    } cases[] = {{0, 0},
                 {-0.0, 0x8000},
                 {1, 0x3c00},
                 {-2, 0xc000},
                 {65504, 0x7bff},
                 {65519.999, 0x7bff},
                 {65520, 0x7c00},
                 {1e300, 0x7c00},
                 {-1e300, 0xfc00},
                 {INFINITY, 0x7c00},
                 {NAN, 0x7e00},
                 {1 + 0x1p-11, 0x3c00},
                 {1 + 3 * 0x1p-11, 0x3c02},
                 {1 + 0x1p-11 + 0x1p-40, 0x3c01},
                 {0x1p-14, 0x0400},
                 {0x1p-24, 0x0001},
                 {0x1p-25, 0x0000},
                 {0x1p-25 * (1 + 0x1p-50), 0x0001},
                 {3 * 0x1p-25, 0x0002},
                 {0x1p-14 - 0x1p-25, 0x0400},
                 {0x1p-1074, 0},
                 {2047.0 / 2048 * 2, 0x3fff},
                 {4095.0 / 4096 * 2, 0x4000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(store16(RUNG_F16, cases[i].v), cases[i].h);
}

static void every_half_survives(void **state)
{
    (void)state;
    for (uint32_t dtype = RUNG_F16; dtype <= RUNG_BF16; dtype++)
        for (uint32_t h = 0; h < 65536; h++) {
            uint16_t in = (uint16_t)h;
            double v;
            assert_true(rung_convert_load(dtype, &in, 1, &v));
            if (isnan(v))
                assert_true(isnan(rung_convert_round(dtype, v)));
            else
                assert_int_equal(store16(dtype, v), in);
        }
}

/* bfloat16 against rounding the bits of float32, for values that float32 holds. */
static void brain_float_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        float f = (float)(rung_fill_value("normal", 5, 0, i, 1) *
                          exp2(rung_fill_value("signed", 6, 0, i, 1) * 120));
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint32_t expect = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        assert_int_equal(store16(RUNG_BF16, f), expect);
    }
    assert_int_equal(store16(RUNG_BF16, 3.3962e38), 0x7f80);
    assert_int_equal(store16(RUNG_BF16, 3.3895e38), 0x7f7f);
}

static void integers_saturate(void **state)
{
    (void)state;
    const double v[] = {127.9, 128, -128.9, -129, 1e300, -1e300, NAN, -0.5};
    const int8_t want[] = {127, 127, -128, -128, 127, -128, 0, 0};
    int8_t got[8];
    assert_true(rung_convert_store(RUNG_I8, v, 8, got));
    assert_memory_equal(got, want, sizeof want);
    const double big[] = {1e19, -1e19, 0x1p62, NAN};
    int64_t i64[4];
    assert_true(rung_convert_store(RUNG_I64, big, 4, i64));
    assert_true(i64[0] == INT64_MAX && i64[1] == INT64_MIN && i64[2] == INT64_C(1) << 62 &&
                i64[3] == 0);
    int32_t i32[4];
    assert_true(rung_convert_store(RUNG_I32, big, 4, i32));
    assert_true(i32[0] == INT32_MAX && i32[1] == INT32_MIN);
    assert_true(isinf(rung_convert_round(RUNG_F32, 0x1.ffffffp127)));
    assert_true(rung_convert_round(RUNG_F32, 0x1.fffffefffffffp127) == 0x1.fffffep127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_kinds_have_their_moments),
                                       cmocka_unit_test(normal_is_normal),
                                       cmocka_unit_test(normal_agrees_with_libm),
                                       cmocka_unit_test(known_bits),
                                       cmocka_unit_test(parts_equal_the_whole),
                                       cmocka_unit_test(a_large_draw_equals_its_elements),
                                       cmocka_unit_test(rows),
                                       cmocka_unit_test(integer_and_bool_types),
                                       cmocka_unit_test(scale_shift_and_bytes),
                                       cmocka_unit_test(half_rounds_to_nearest_even),
                                       cmocka_unit_test(every_half_survives),
                                       cmocka_unit_test(brain_float_rounds_to_nearest_even),
                                       cmocka_unit_test(integers_saturate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
