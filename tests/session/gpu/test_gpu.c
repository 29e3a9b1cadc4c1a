/*
 * The session's kernels against the host's code: drawn bits, watched inputs, comparisons. On the
 * ptx interpreter, which also reports every access outside a buffer and every race.
 */
#include "session/gpu/rig.h"

#include "session/harness.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1201, LAST = 7 };

static struct rig rig;
static struct session_gpu *gpu;
static const uint32_t dtypes[] = {RUNG_F64, RUNG_F32, RUNG_F16, RUNG_BF16, RUNG_I8,
                                  RUNG_U8,  RUNG_I32, RUNG_I64, RUNG_BOOL};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* Draws n elements on both sides and compares the bits; first changes one byte, then none. */
static void draw_both(const struct rung_fill *fill, uint32_t dtype, uint64_t n, uint64_t seed)
{
    uint64_t size = rung_dtype_bits(dtype) / 8, offset = 3 * size;
    uint8_t *want = malloc(n * size), *got = calloc(n * size + offset, 1);
    struct rung_buffer *buffer = rig_buffer(&rig, got, n * size + offset);
    const struct session_gpu_range range = {buffer, offset, dtype, n};
    bool same;
    assert_int_equal(rung_fill_draw(fill, dtype, seed, 0, n, LAST, want), RUNG_OK);
    rig_good(&rig, session_gpu_draw(gpu, &rig.call, &range, fill, seed, LAST));
    rig_good(&rig, session_gpu_same(gpu, &rig.call, &range, fill, seed, LAST, &same));
    assert_true(same);
    rig_read(&rig, buffer, got, n * size + offset);
    for (uint64_t i = 0; i < n * size; i++)
        if (got[offset + i] != want[i])
            fail_msg("%s, dtype %u: byte %u of element %u differs", fill->kind, dtype,
                     (unsigned)(i % size), (unsigned)(i / size));
    got[offset + n * size - 1] ^= 1;
    rig_free(&rig, buffer);
    struct session_gpu_range changed = range;
    changed.buffer = rig_buffer(&rig, got, n * size + offset);
    rig_good(&rig, session_gpu_same(gpu, &rig.call, &changed, fill, seed, LAST, &same));
    assert_false(same);
    rig_free(&rig, changed.buffer);
    free(want);
    free(got);
}

static void all_fills_have_the_hosts_bits(void **state)
{
    (void)state;
    for (int k = 0; rung_fill_kinds[k]; k++)
        for (int d = 0; d < N_DTYPES; d++) {
            struct rung_fill fill = {
                .struct_size = sizeof fill, .tensor = 2, .kind = rung_fill_kinds[k]};
            draw_both(&fill, dtypes[d], N, 99);
        }
}

static void scale_shift_and_sizes(void **state)
{
    (void)state;
    struct rung_fill fill = {
        .struct_size = sizeof fill, .tensor = 1, .kind = "normal", .scale = 3e4, .shift = -7};
    for (int d = 0; d < N_DTYPES; d++) {
        draw_both(&fill, dtypes[d], 1, 5);
        draw_both(&fill, dtypes[d], 2, UINT64_MAX);
        draw_both(&fill, dtypes[d], 700, (uint64_t)1 << 40);
    }
    fill.scale = 1e-40;
    fill.shift = 0;
    draw_both(&fill, RUNG_F32, N, 1);
    fill.scale = 3e-6;
    draw_both(&fill, RUNG_F16, N, 1);
}

static void wrong_fills_are_refused(void **state)
{
    (void)state;
    struct rung_buffer *buffer = rig_buffer(&rig, NULL, 64);
    const struct session_gpu_range range = {buffer, 0, RUNG_F32, 4};
    struct rung_fill fill = {.struct_size = sizeof fill, .kind = "no such"};
    assert_int_equal(session_gpu_draw(gpu, &rig.call, &range, &fill, 0, 1), RUNG_EINVAL);
    rig.error = (struct rung_error){.struct_size = sizeof rig.error};
    fill = (struct rung_fill){
        .struct_size = sizeof fill, .kind = "ones", .bytes = &range, .n_bytes = 16};
    assert_int_equal(session_gpu_draw(gpu, &rig.call, &range, &fill, 0, 1), RUNG_EINVAL);
    rig.error = (struct rung_error){.struct_size = sizeof rig.error};
    rig_free(&rig, buffer);
}

static bool same_bytes(struct rung_buffer *a, uint64_t at, uint64_t stride, uint64_t count,
                       struct rung_buffer *b, uint64_t b_at, uint64_t bytes)
{
    bool same;
    rig_good(&rig,
             session_gpu_same_bytes(gpu, &rig.call, a, at, stride, count, b, b_at, bytes, &same));
    return same;
}

static void ranges_of_bytes(void **state)
{
    (void)state;
    uint8_t a[4096], b[1024];
    for (int i = 0; i < 4096; i++)
        a[i] = (uint8_t)(i % 256 % 251);
    for (int i = 0; i < 1024; i++)
        b[i] = (uint8_t)(i % 256 % 251);
    a[2048 + 77] ^= 1;
    struct rung_buffer *x = rig_buffer(&rig, a, sizeof a), *y = rig_buffer(&rig, b, sizeof b);
    assert_true(same_bytes(x, 0, 0, 1, y, 0, 1024));
    assert_true(same_bytes(x, 0, 256, 4, y, 256, 256));
    assert_false(same_bytes(x, 0, 256, 16, y, 0, 256));
    assert_true(same_bytes(x, 0, 256, 16, y, 0, 77));
    assert_false(same_bytes(x, 0, 256, 16, y, 0, 78));
    assert_true(same_bytes(x, 78, 256, 15, y, 78, 100));
    assert_true(same_bytes(x, 4, 256, 15, y, 4, 12));
    assert_false(same_bytes(x, 1, 0, 1, y, 2, 4));
    assert_true(same_bytes(x, 0, 0, 0, y, 0, 4) && same_bytes(x, 5, 0, 1, y, 0, 0));
    rig_free(&rig, x);
    rig_free(&rig, y);
}

/* ---- Comparisons: the host's, of a run over the fake device, against the kernel's ---- */

enum { PERIOD = 4088 };

static struct crafted {
    uint64_t n, size;
    uint8_t got[N * 8], poison[N * 8 + PERIOD];
    bool unwritten[N];
    double value[N], bound[N];
} crafted;

/* The fake kernel: keeps the poison, writes all elements but some. */
static void write_crafted(const struct fake_args *a, const struct rung_launch *l,
                          struct rung_fault *f)
{
    (void)l, (void)f;
    memcpy(crafted.poison, a->y, crafted.n * crafted.size);
    for (uint64_t i = 0; i < crafted.n; i++)
        if (!crafted.unwritten[i])
            memcpy((uint8_t *)a->y + i * crafted.size, crafted.got + i * crafted.size,
                   crafted.size);
}

static struct rung_comparison on_host(uint32_t dtype, uint32_t precision)
{
    struct harness h;
    struct rung_comparison c;
    fake_config.flags = RUNG_DEVICE_EXACT_BOUNDS;
    fake_config.memory = 1u << 30;
    fake_config.kernels[0].symbol = "copy";
    fake_config.kernels[0].run = write_crafted;
    fake_config.value = crafted.value;
    fake_config.bound = crafted.bound;
    harness_init(&h, dtype);
    h.task.precision = precision;
    harness_open(&h, ONE_LAUNCH("copy"));
    struct rung_run *run = harness_run(&h, (int64_t)crafted.n, 11, 0);
    if (h.session->compare(h.session, &h.call, run, 1, &c))
        fail_msg("%s", h.error.message);
    for (uint64_t i = 0; i < crafted.n; i++)
        if (crafted.unwritten[i])
            memcpy(crafted.got + i * crafted.size, crafted.poison + i * crafted.size, crafted.size);
    harness_done(&h);
    return c;
}

static struct rung_comparison on_device(uint32_t dtype, uint32_t precision)
{
    struct rung_comparison c = {.struct_size = sizeof c, .tensor = 1};
    uint64_t n = crafted.n;
    struct rung_buffer *y = rig_buffer(&rig, crafted.got, n * crafted.size);
    struct rung_buffer *value = rig_buffer(&rig, crafted.value, n * 8);
    struct rung_buffer *bound = rig_buffer(&rig, crafted.bound, n * 8);
    const struct session_gpu_range range = {y, 0, dtype, n};
    rig_good(&rig, session_gpu_compare(gpu, &rig.call, &range, crafted.poison, PERIOD, precision,
                                       value, bound, &c));
    rig_free(&rig, y);
    rig_free(&rig, value);
    rig_free(&rig, bound);
    return c;
}

static void near(const char *what, double got, double want)
{
    if (got == want || fabs(got - want) <= 1e-13 * fabs(want) || (isnan(got) && isnan(want)))
        return;
    fail_msg("%s: %.17g on the device, %.17g on the host", what, got, want);
}

static void compare_both(uint32_t dtype, uint32_t precision)
{
    struct rung_comparison want = on_host(dtype, precision), got = on_device(dtype, precision);
    assert_int_equal(got.struct_size, want.struct_size);
    assert_int_equal(got.tensor, want.tensor);
    assert_int_equal(got.n, want.n);
    assert_int_equal(got.n_bad, want.n_bad);
    assert_int_equal(got.n_unwritten, want.n_unwritten);
    assert_int_equal(got.n_nan, want.n_nan);
    assert_int_equal(got.n_inf, want.n_inf);
    assert_int_equal(got.n_missing, want.n_missing);
    assert_int_equal(got.first_bad, want.first_bad);
    assert_int_equal(got.max_abs_at, want.max_abs_at);
    assert_int_equal(got.max_rel_at, want.max_rel_at);
    near("first_got", got.first_got, want.first_got);
    near("first_want", got.first_want, want.first_want);
    near("first_bound", got.first_bound, want.first_bound);
    near("max_abs", got.max_abs, want.max_abs);
    near("max_rel", got.max_rel, want.max_rel);
    near("rmse", got.rmse, want.rmse);
    near("psnr", got.psnr, want.psnr);
    assert_true(fabs(got.cosine - want.cosine) <= 1e-15); /* of numbers that cancel */
    near("worst", got.worst, want.worst);
    near("worst_half", got.worst_half, want.worst_half);
    near("fraction_out", got.fraction_out, want.fraction_out);
}

static double random_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Outputs near their reference, on rounding edges, far off, of every special kind, unwritten. */
static void craft(uint32_t dtype, uint64_t n, uint64_t seed, double size, int wild)
{
    static const double specials[] = {NAN,   INFINITY, -INFINITY, 0,    -0.0,
                                      1e300, 65504,    65520,     3e-8, 0x1p-149};
    enum { SPECIALS = sizeof specials / sizeof *specials };
    crafted.n = n;
    crafted.size = rung_dtype_bits(dtype) / 8;
    for (uint64_t i = 0; i < n; i++) {
        double want = (random_unit(&seed) - 0.5) * size, pick = random_unit(&seed);
        crafted.bound[i] = fabs(want) * 0x1p-9 * random_unit(&seed);
        double got = want + 1.5 * crafted.bound[i] * (random_unit(&seed) - 0.5);
        if (wild && pick < 0.1)
            want = specials[(int)(random_unit(&seed) * SPECIALS)];
        if (wild && pick > 0.05 && pick < 0.15)
            got = specials[(int)(random_unit(&seed) * SPECIALS)];
        if (wild && pick > 0.15 && pick < 0.2)
            crafted.bound[i] = pick < 0.17 ? INFINITY : 0;
        if (wild && pick > 0.2 && pick < 0.25)
            got = want * 1.1;
        crafted.unwritten[i] = wild && random_unit(&seed) < 0.05;
        crafted.value[i] = want;
        struct rung_fill fill = {
            .struct_size = sizeof fill, .kind = "ones", .scale = got == 0 ? 1e-320 : got};
        rung_fill_draw(&fill, dtype, 0, 0, 1, 1, crafted.got + i * crafted.size);
    }
}

static void comparisons_agree(void **state)
{
    (void)state;
    for (int d = 0; d < N_DTYPES; d++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            craft(dtypes[d], N, seed, 100, seed != 1);
            compare_both(dtypes[d], d % 2 ? RUNG_PRECISION_FP32 : RUNG_PRECISION_FP16);
        }
    craft(RUNG_F32, 1, 9, 1, 0);
    compare_both(RUNG_F32, RUNG_PRECISION_FP32);
    craft(RUNG_F16, 2, 9, 1, 1);
    compare_both(RUNG_F16, RUNG_PRECISION_BF16);
}

static void squares_beyond_float64(void **state)
{
    (void)state;
    craft(RUNG_F64, 301, 17, 1e306, 0);
    compare_both(RUNG_F64, RUNG_PRECISION_FP32);
}

static void all_equal_and_all_zero(void **state)
{
    (void)state;
    craft(RUNG_F32, 64, 3, 1, 0);
    for (int i = 0; i < 64; i++) {
        float f = (float)crafted.value[i];
        crafted.value[i] = f;
        memcpy(crafted.got + 4 * i, &f, 4);
    }
    compare_both(RUNG_F32, RUNG_PRECISION_FP32);
    memset(crafted.got, 0, sizeof crafted.got);
    memset(crafted.value, 0, sizeof crafted.value);
    compare_both(RUNG_F32, RUNG_PRECISION_FP32);
}

static int close_rig(void **state)
{
    (void)state;
    session_gpu_free(gpu);
    rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fills_have_the_hosts_bits),
        cmocka_unit_test(scale_shift_and_sizes),
        cmocka_unit_test(wrong_fills_are_refused),
        cmocka_unit_test(ranges_of_bytes),
        cmocka_unit_test(comparisons_agree),
        cmocka_unit_test(squares_beyond_float64),
        cmocka_unit_test(all_equal_and_all_zero),
    };
    if (!rig_open(&rig))
        return 77;
    gpu = rig_session(&rig);
    return cmocka_run_group_tests(tests, NULL, close_rig);
}
