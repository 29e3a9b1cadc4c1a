/* Turns on a device: flock counts by open file, so that two locks of one process stand for two
 * executors. */
#include "support/support.h"

#include "worker/device_lock.h"

#include <stdio.h>
#include <unistd.h>

static struct rung_device_lock a, b, c;

static int setup(void **state)
{
    char id[64];
    (void)state;
    snprintf(id, sizeof id, "test-device-%d", (int)getpid());
    return !(rung_device_lock_open(&a, id) && rung_device_lock_open(&b, id) &&
             rung_device_lock_open(&c, id));
}

static int teardown(void **state)
{
    (void)state;
    rung_device_lock_close(&a);
    rung_device_lock_close(&b);
    rung_device_lock_close(&c);
    return 0;
}

static void checks_share_and_timing_is_alone(void **state)
{
    (void)state;
    assert_true(rung_device_lock_try(&a, false));
    assert_true(rung_device_lock_try(&b, false));
    assert_false(rung_device_lock_try(&c, true));
    rung_device_lock_release(&a);
    assert_false(rung_device_lock_try(&c, true));
    rung_device_lock_release(&b);
    assert_true(rung_device_lock_try(&c, true));
    assert_false(rung_device_lock_try(&a, false));
    assert_false(rung_device_lock_try(&a, true));
    rung_device_lock_release(&c);
    assert_true(rung_device_lock_try(&a, true));
}

static void who_waits_to_time_is_not_kept_out_by_checks(void **state)
{
    (void)state;
    assert_true(rung_device_lock_try(&a, false));
    assert_false(rung_device_lock_try(&b, true)); /* waits */
    assert_false(rung_device_lock_try(&c, false));
    rung_device_lock_release(&a);
    assert_false(rung_device_lock_try(&c, false));
    assert_true(rung_device_lock_try(&b, true));
}

static void a_lock_ends_with_its_holder(void **state)
{
    (void)state;
    assert_true(rung_device_lock_try(&a, true));
    rung_device_lock_close(&a);
    assert_true(rung_device_lock_try(&b, true));
    assert_true(rung_device_lock_try(&a, true)); /* not open: nothing to wait for */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checks_share_and_timing_is_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_to_time_is_not_kept_out_by_checks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_lock_ends_with_its_holder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
