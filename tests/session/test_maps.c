/* Tensor maps of a plan: encoded by the device with the run's addresses, passed by value. */
#include "support/support.h"

#include "harness.h"

#include "base/status.h"

#include <string.h>

static int encoded;
static struct rung_tensormap last;
static const char *refusal; /* code of the fault that encoding answers, or NULL */

/* The fake's encoding is the map itself, cut short: its address lies within. */
enum { PARAM_Y = 128, PARAM_N = 136, PARAM_BYTES = 140 };

static int32_t encode(void *self, struct rung_call *call, const struct rung_tensormap *map,
                      void *out, struct rung_fault *fault)
{
    (void)self, (void)call;
    encoded++;
    last = *map;
    memcpy(out, map, RUNG_TENSORMAP_BYTES);
    if (refusal) {
        strcpy(fault->code, refusal);
        strcpy(fault->message, "the hardware does not take it");
    }
    return RUNG_OK;
}

/* y = 2 x + 1, with x where the map says. */
static void mapped(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)a, (void)f;
    const char *params = l->params;
    struct rung_tensormap map = {0};
    float *y;
    int32_t n;
    memcpy(&map, params, RUNG_TENSORMAP_BYTES);
    memcpy(&y, params + PARAM_Y, sizeof y);
    memcpy(&n, params + PARAM_N, sizeof n);
    const float *x = (const float *)(uintptr_t)map.address;
    for (int i = 0; i < n; i++)
        y[i] = 2 * x[i] + 1;
}

static struct rung_device_ops ops;

/* The plan's launches take a map, y and n; the device encodes maps unless that is taken away. */
static void begin(struct harness *h, bool can)
{
    fake_config.kernels[0].symbol = "mapped";
    fake_config.kernels[0].run = mapped;
    encoded = 0;
    refusal = NULL;
    harness_init(h, RUNG_F32);
    h->params[0] = (struct rung_kernel_param){.struct_size = sizeof h->params[0],
                                              .type = RUNG_PARAM_BYTES,
                                              .size = RUNG_TENSORMAP_BYTES,
                                              .alignment = 64};
    h->params[1].offset = PARAM_Y;
    h->params[2].offset = PARAM_N;
    h->kernels[0].param_bytes = PARAM_BYTES;
    ops = *(const struct rung_device_ops *)h->device->ops;
    ops.tensormap = can ? encode : NULL;
    h->device->ops = &ops;
}

static void a_launch_gets_the_encoded_map(void **state)
{
    struct harness h;
    (void)state;
    begin(&h, true);
    harness_open(&h, "//@ tensormap never = x box=(1 / 0)\n"
                     "//@ tensormap m = x box=(16) elements=(2) swizzle=64 oob=nan\n"
                     "//@ launch mapped grid=(1) block=(32) args=(never, y, n) when=(n < 0)\n"
                     "//@ launch mapped grid=(1) block=(32) args=(m, y, n)\n");
    struct rung_run *run = harness_run(&h, 48, 1, 0);
    assert_string_equal(run->fault.code, "");
    assert_true(encoded > 0);
    assert_int_equal(last.struct_size, sizeof last);
    assert_int_equal(last.n_dims, 1);
    assert_int_equal(last.dims[0], 48);
    assert_int_equal(last.box[0], 16);
    assert_int_equal(last.elements[0], 2);
    assert_int_equal(last.swizzle, 64);
    assert_int_equal(last.fill_nan, 1);
    assert_int_equal(last.address % 256, 0);
    struct rung_comparison c = {.struct_size = sizeof c};
    assert_int_equal(h.session->compare(h.session, &h.call, run, 1, &c), RUNG_OK);
    assert_int_equal(c.n_bad, 0);
    harness_done(&h);
}

static void what_the_hardware_refuses_is_the_plans_fault(void **state)
{
    struct harness h;
    (void)state;
    begin(&h, true);
    refusal = "plan.error";
    harness_open(&h, "//@ launch mapped grid=(1) block=(32) args=(m, y, n)\n"
                     "//@ tensormap m = x + 1 dims=(n - 1) box=(16)\n");
    struct rung_run *run = harness_run(&h, 48, 1, 0);
    assert_string_equal(run->fault.code, "plan.error");
    assert_string_equal(run->fault.message, "the hardware does not take it");
    assert_int_equal(run->fault.line, 2);
    assert_int_equal(last.address % 256, 4); /* one element further */
    assert_int_equal(fake_counts.launches, 0);
    harness_done(&h);
}

static void a_device_without_maps_is_unsupported(void **state)
{
    struct harness h;
    (void)state;
    begin(&h, false);
    harness_open(&h, "//@ tensormap m = x box=(16)\n"
                     "//@ launch mapped grid=(1) block=(32) args=(m, y, n)\n");
    struct rung_run *run = harness_run(&h, 48, 1, 0);
    assert_string_equal(run->fault.code, "device.unsupported");
    assert_int_equal(run->fault.line, 1);
    support_contains(run->fault.message, "has no tensor maps");
    assert_int_equal(fake_counts.launches, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_launch_gets_the_encoded_map, harness_clean,
                                        harness_clean),
        cmocka_unit_test_setup_teardown(what_the_hardware_refuses_is_the_plans_fault, harness_clean,
                                        harness_clean),
        cmocka_unit_test_setup_teardown(a_device_without_maps_is_unsupported, harness_clean,
                                        harness_clean),
    };
    return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
