/* A session with the real reference plugin "ops": honest kernels pass, others do not. */
#include "support/support.h"

#include "harness.h"

#include "base/status.h"
#include "plugin/options.h"

#include <math.h>
#include <string.h>

static int cut_bits; /* low bits of the significand that the kernel drops */

static float cut(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits &= ~0u << cut_bits;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void softmax(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    float most = -INFINITY, sum = 0;
    (void)l, (void)f;
    for (int i = 0; i < a->n; i++)
        most = fmaxf(most, cut(a->x[i]));
    for (int i = 0; i < a->n; i++)
        sum += expf(cut(a->x[i]) - most);
    for (int i = 0; i < a->n; i++)
        a->y[i] = expf(cut(a->x[i]) - most) / sum;
}

static struct rung_comparison compared(int64_t n, const char *fill)
{
    struct harness h;
    struct rung_registry *registry = rung_registry_new();
    struct rung_diags diags = {0};
    struct rung_comparison c;
    const struct rung_loaded *loaded;
    fake_config.flags = RUNG_DEVICE_EXACT_BOUNDS;
    fake_config.kernels[0].symbol = "softmax";
    fake_config.kernels[0].run = softmax;
    harness_init(&h, RUNG_F32);
    rung_registry_allow_insecure(registry);
    rung_registry_add_dir(registry, PLUGIN_DIR);
    if (rung_registry_load(registry, RUNG_KIND_REFERENCE, "ops", &loaded, &h.error))
        fail_msg("%s", h.error.message);
    struct rung_options *options =
        rung_options_read(h.arena, loaded->factory, NULL, NULL, "/", &diags);
    assert_non_null(options);
    rung_instance_free(h.reference);
    assert_int_equal(rung_instance_new(loaded, options, "ops", "/", NULL, &h.reference, &h.error),
                     RUNG_OK);
    assert_int_equal(rung_instance_start(h.reference, &h.error), RUNG_OK);
    h.task.graph = "y = softmax(x, axis=0)";
    h.tensors[0].fill = fill;
    harness_open(&h, ONE_LAUNCH("softmax"));
    struct rung_run *run = harness_run(&h, n, 3, 0);
    if (h.session->compare(h.session, &h.call, run, 1, &c))
        fail_msg("%s", h.error.message);
    struct rung_work work;
    assert_int_equal(h.session->work(h.session, &h.call, &n, &work), RUNG_OK);
    assert_true(work.min_bytes == 8.0 * (double)n);
    harness_done(&h);
    rung_registry_free(registry);
    rung_diags_free(&diags);
    return c;
}

static void honest_float32_passes(void **state)
{
    (void)state;
    cut_bits = 0;
    for (int k = 0; rung_fill_kinds[k]; k++) {
        struct rung_comparison c = compared(1000, rung_fill_kinds[k]);
        if (c.n_bad)
            fail_msg("%s: [%lu] is %.9g, wanted %.9g within %.3g", rung_fill_kinds[k],
                     (unsigned long)c.first_bad, c.first_got, c.first_want, c.first_bound);
    }
    assert_int_equal(compared(1, "normal").n_bad, 0);
}

static void ten_bits_do_not(void **state)
{
    (void)state;
    cut_bits = 13;
    struct rung_comparison c = compared(1000, "normal");
    assert_true(c.n_bad > 500);
    assert_true(c.worst > 10 && c.worst_half <= 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_clean, harness_clean)
    const struct CMUnitTest tests[] = {T(honest_float32_passes), T(ten_bits_do_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
