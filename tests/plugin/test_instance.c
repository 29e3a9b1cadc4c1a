/* Instances: order of life, the host's services, the guards around every call. */
#include "plugin/harness.h"

#include "base/io.h"
#include "base/json.h"
#include "base/status.h"

#include <pthread.h>
#include <rung/host.h>
#include <stdlib.h>
#include <string.h>

static int64_t metric(struct harness *h, struct rung_instance *instance, const char *name)
{
    cJSON *metrics = NULL;
    assert_int_equal(harness_check(h, instance, &metrics), RUNG_OK);
    int64_t value = rung_json_i64(metrics, name, -1);
    cJSON_Delete(metrics);
    return value;
}

static void life_has_its_order(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_instance *instance = harness_instance(&h, "good", "{\"whole\":3}");
    assert_int_equal(metric(&h, instance, "started"), 0);
    assert_int_equal(rung_instance_start(instance, &h.err), RUNG_OK);
    assert_int_equal(rung_instance_start(instance, &h.err), RUNG_OK);
    assert_int_equal(metric(&h, instance, "started"), 1);
    assert_int_equal(metric(&h, instance, "whole"), 3);
    rung_instance_free(instance);
    rung_instance_free(NULL);
    harness_close(&h);
}

static void two_instances_do_not_mix(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_instance *a = harness_instance(&h, "good", "{\"whole\":1}");
    struct rung_instance *b = harness_instance(&h, "good", "{\"whole\":2}");
    assert_int_equal(rung_instance_start(b, &h.err), RUNG_OK);
    assert_int_equal(metric(&h, a, "whole"), 1);
    assert_int_equal(metric(&h, b, "whole"), 2);
    assert_int_equal(metric(&h, a, "started"), 0);
    rung_instance_free(b);
    assert_int_equal(metric(&h, a, "whole"), 1);
    rung_instance_free(a);
    harness_close(&h);
}

static void refusals_reach_the_caller(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_loaded *loaded = harness_load(&h, RUNG_KIND_VERIFIER, "good");
    struct rung_instance *instance = NULL;
    struct rung_options *o = harness_options(&h, loaded->factory, "{\"whole\":9}");
    assert_int_equal(rung_instance_new(loaded, o, "v", "/data", NULL, &instance, &h.err),
                     RUNG_ECONFIG);
    assert_string_equal(h.err.message, "whole may not be 9");
    o = harness_options(&h, loaded->factory, "{\"word\":\"refuse\"}");
    assert_int_equal(rung_instance_new(loaded, o, "v", "/data", NULL, &instance, &h.err),
                     RUNG_ECONFIG);
    assert_string_equal(h.err.message, "refused in create");
    assert_null(instance);
    instance = harness_instance(&h, "good", "{\"whole\":8}");
    assert_int_equal(rung_instance_start(instance, &h.err), RUNG_ECONFIG);
    assert_string_equal(h.err.message, "refused in start");
    rung_instance_free(
        instance); /* destroyed without stop: the plugin aborts if stop were missed */
    harness_close(&h);
}

static void a_silent_failure_gets_words(void **state)
{
    (void)state;
    struct harness h = harness_open(FAULTY_PLUGINS);
    const struct rung_loaded *loaded =
        harness_load(&h, RUNG_KIND_VERIFIER, FAULTY_PLUGINS "/verifier_faulty_silent.so");
    struct rung_instance *instance = NULL;
    struct rung_options *o = harness_options(&h, loaded->factory, NULL);
    assert_int_equal(rung_instance_new(loaded, o, "mute", "/data", NULL, &instance, &h.err),
                     RUNG_ECONFIG);
    assert_string_equal(h.err.symbol, "plugin.silent");
    support_contains(h.err.message, "verifier mute failed (configuration) without a message");
    harness_close(&h);
}

static bool subnormals_live(void)
{
    volatile double tiny = 2.2250738585072014e-308;
    volatile double half = tiny / 2;
    return half != 0;
}

static void check_and_keep_going(void *arg)
{
    struct harness *h = arg;
    struct rung_instance *instance =
        harness_instance(h, FAULTY_PLUGINS "/verifier_faulty_fpenv.so", NULL);
    assert_int_equal(harness_check(h, instance, NULL), RUNG_OK);
    assert_true(subnormals_live());
    rung_instance_free(instance);
}

static void load_and_keep_going(void *arg)
{
    harness_load(arg, RUNG_KIND_VERIFIER, FAULTY_PLUGINS "/verifier_faulty_fpload.so");
    assert_true(subnormals_live());
}

static void a_changed_floating_point_environment_is_put_back(void **state)
{
    (void)state;
    struct harness h = harness_open(FAULTY_PLUGINS);
    char *log = harness_log(check_and_keep_going, &h);
    support_contains(log, "API MISUSE: changed the floating-point environment; restored");
    free(log);
    log = harness_log(load_and_keep_going, &h);
    support_contains(log, "verifier_faulty_fpload.so changed the floating-point environment");
    free(log);
    harness_close(&h);
}

static void *check_often(void *arg)
{
    struct harness *h = ((void **)arg)[0];
    struct rung_instance *instance = ((void **)arg)[1];
    struct harness mine = *h;
    for (int i = 0; i < 300; i++)
        if (harness_check(&mine, instance, NULL) != RUNG_OK)
            return (void *)1;
    return NULL;
}

/* The plugin answers with an error when it is entered twice at once. */
static void calls_of_a_serial_instance_take_turns(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_instance *instance = harness_instance(&h, "good", NULL);
    void *arg[2] = {&h, instance}, *failed;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_often, arg), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    rung_instance_free(instance);
    harness_close(&h);
}

static void services_are_found_by_id(void **state)
{
    (void)state;
    static const int table = 7;
    int user = 8;
    const struct rung_service services[] = {{"test.service/0", &table, &user}, {NULL, NULL, NULL}};
    struct harness h = harness_open(GOOD_PLUGINS);
    const struct rung_loaded *loaded = harness_load(&h, RUNG_KIND_VERIFIER, "good");
    struct rung_options *o = harness_options(&h, loaded->factory, NULL);
    struct rung_instance *instance = NULL;
    assert_int_equal(rung_instance_new(loaded, o, "mine", "/data", services, &instance, &h.err),
                     RUNG_OK);
    const struct rung_host *host = instance->host;
    assert_ptr_equal(host->get_extension(host, "test.service/0"), &table);
    assert_ptr_equal(rung_host_user(host, "test.service/0"), &user);
    assert_null(host->get_extension(host, "test.other/0"));
    assert_null(host->get_extension(host, NULL));
    assert_string_equal(host->data_dir, "/data");
    assert_string_equal(rung_host_plugin_path(host), loaded->path);
    assert_string_equal(rung_host_factory_name(host), "good");
    assert_string_equal(rung_host_factory_kind(host), RUNG_KIND_VERIFIER);
    const struct rung_host_rng *rng = host->get_extension(host, RUNG_HOST_RNG);
    uint32_t words[4];
    rng->words(0, 0, 0, words, 4);
    assert_int_equal(words[0], 0x6627e8d5);
    rung_instance_free(instance);
    harness_close(&h);
}

static void maps_keep_types_order_and_last_values(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_instance *instance = harness_instance(&h, "good", NULL);
    const struct rung_host *host = instance->host;
    struct rung_map *map = host->map_new(host, h.arena);
    char value[] = "text";
    assert_int_equal(host->map_set_int(map, "big", INT64_MAX), RUNG_OK);
    assert_int_equal(host->map_set_float(map, "f", 0.1), RUNG_OK);
    assert_int_equal(host->map_set_string(map, "s", value), RUNG_OK);
    value[0] = 'n';
    assert_int_equal(host->map_set_float(map, "big", 2), RUNG_OK);
    assert_int_equal(host->map_set_int(map, "", 1), RUNG_EINVAL);
    assert_int_equal(host->map_set_int(map, "Upper", 1), RUNG_EINVAL);
    assert_int_equal(host->map_set_int(map, NULL, 1), RUNG_EINVAL);
    assert_int_equal(host->map_set_string(map, "s", NULL), RUNG_EINVAL);
    cJSON *json = rung_map_to_json(map);
    char *line = rung_json_line(json);
    cJSON_Delete(json);
    assert_string_equal(line, "{\"big\":2.0,\"f\":0.10000000000000001,\"s\":\"text\"}");
    free(line);
    rung_instance_free(instance);
    harness_close(&h);
}

static void *cancel_soon(void *cancel)
{
    rung_cancel_request(cancel);
    return NULL;
}

static void cancellation_reaches_other_threads(void **state)
{
    (void)state;
    struct harness h = harness_open(GOOD_PLUGINS);
    struct rung_instance *instance = harness_instance(&h, "good", NULL);
    const struct rung_host *host = instance->host;
    struct rung_cancel *cancel = rung_cancel_new();
    pthread_t thread;
    assert_false(host->is_cancelled(host, cancel));
    assert_false(host->is_cancelled(host, NULL));
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    uint64_t until = rung_now_ns() + 5000000000u;
    while (!host->is_cancelled(host, cancel) && rung_now_ns() < until)
        ;
    assert_true(host->is_cancelled(host, cancel));
    pthread_join(thread, NULL);
    rung_cancel_free(cancel);
    rung_instance_free(instance);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_has_its_order),
        cmocka_unit_test(two_instances_do_not_mix),
        cmocka_unit_test(refusals_reach_the_caller),
        cmocka_unit_test(a_silent_failure_gets_words),
        cmocka_unit_test(a_changed_floating_point_environment_is_put_back),
        cmocka_unit_test(calls_of_a_serial_instance_take_turns),
        cmocka_unit_test(services_are_found_by_id),
        cmocka_unit_test(maps_keep_types_order_and_last_values),
        cmocka_unit_test(cancellation_reaches_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
