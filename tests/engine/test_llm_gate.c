/* The gate before a model: its window, the server's limits, waits; under the thread sanitizer too.
 */
#include "base/io.h"
#include "engine/llm_gate.h"
#include "plugin/instance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void pass_once(struct llm_gate *g, enum llm_gate_end end)
{
    struct llm_pass pass;
    assert_true(llm_gate_enter(g, 1, NULL, &pass));
    llm_gate_leave(g, &pass, end, NULL, 0);
}

static void test_the_window_grows_by_one_a_window_of_answers(void **state)
{
    (void)state;
    struct llm_gate *g = llm_gate_new(2, 5);
    static const uint32_t after[] = {2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        pass_once(g, LLM_GATE_GOOD);
        assert_int_equal(llm_gate_window(g), after[i]);
    }
    llm_gate_free(g);
}

static void test_what_ran_together_halves_the_window_once(void **state)
{
    (void)state;
    struct llm_gate *g = llm_gate_new(8, 8);
    struct llm_pass pass[8];
    for (int i = 0; i < 8; i++)
        assert_true(llm_gate_enter(g, 1, NULL, &pass[i]));
    for (int i = 0; i < 8; i++)
        llm_gate_leave(g, &pass[i], LLM_GATE_BUSY, NULL, 0);
    assert_int_equal(llm_gate_window(g), 4);
    pass_once(g, LLM_GATE_BUSY);
    pass_once(g, LLM_GATE_BUSY);
    pass_once(g, LLM_GATE_BUSY);
    assert_int_equal(llm_gate_window(g), 1);
    pass_once(g, LLM_GATE_OTHER);
    assert_int_equal(llm_gate_window(g), 1);
    llm_gate_free(g);
}

static void assert_waits(struct llm_gate *g, uint64_t tokens, double least_s, double most_s)
{
    struct llm_pass pass;
    uint64_t begun = rung_now_ns();
    assert_true(llm_gate_enter(g, tokens, NULL, &pass));
    double waited = (double)(rung_now_ns() - begun) * 1e-9;
    assert_true(waited >= least_s && waited <= most_s);
    llm_gate_leave(g, &pass, LLM_GATE_GOOD, NULL, 0);
}

static void test_the_servers_limits_are_obeyed(void **state)
{
    (void)state;
    struct llm_gate *g = llm_gate_new(4, 4);
    struct llm_pass pass;
    struct rung_rate_limit none = {sizeof none, 0, 10, 0, 200, -1, -1, -1};
    assert_true(llm_gate_enter(g, 1, NULL, &pass));
    llm_gate_leave(g, &pass, LLM_GATE_GOOD, &none, 0);
    assert_waits(g, 1, 0.15, 5);
    struct rung_rate_limit few = {sizeof few, 0, -1, -1, -1, 10000, 500, 200};
    assert_true(llm_gate_enter(g, 1, NULL, &pass));
    llm_gate_leave(g, &pass, LLM_GATE_GOOD, &few, 0);
    assert_waits(g, 400, 0, 0.1);
    struct llm_pass other;
    assert_true(llm_gate_enter(g, 50, NULL, &other));
    assert_waits(g, 400, 0.1, 5);
    llm_gate_leave(g, &other, LLM_GATE_GOOD, NULL, 0);
    assert_true(llm_gate_enter(g, 1, NULL, &pass));
    llm_gate_leave(g, &pass, LLM_GATE_BUSY, NULL, 200);
    assert_waits(g, 1, 0.15, 5);
    llm_gate_free(g);
}

static void test_cancelling_ends_the_wait(void **state)
{
    (void)state;
    struct llm_gate *g = llm_gate_new(1, 1);
    struct rung_cancel *cancel = rung_cancel_new();
    struct llm_pass pass, second;
    assert_true(llm_gate_enter(g, 1, cancel, &pass));
    rung_cancel_request(cancel);
    assert_false(llm_gate_enter(g, 1, cancel, &second));
    llm_gate_leave(g, &pass, LLM_GATE_OTHER, NULL, 0);
    rung_cancel_free(cancel);
    llm_gate_free(g);
}

struct crowd {
    struct llm_gate *gate;
    _Atomic uint32_t inside, most, wrong, passed;
    uint32_t limit;
};

static void *visitor(void *ctx)
{
    struct crowd *c = ctx;
    for (int i = 0; i < 50; i++) {
        struct llm_pass pass;
        if (!llm_gate_enter(c->gate, 10, NULL, &pass))
            return NULL;
        uint32_t inside = atomic_fetch_add(&c->inside, 1) + 1;
        if (inside > c->limit)
            atomic_fetch_add(&c->wrong, 1);
        usleep(200);
        atomic_fetch_sub(&c->inside, 1);
        atomic_fetch_add(&c->passed, 1);
        llm_gate_leave(c->gate, &pass, i % 7 ? LLM_GATE_GOOD : LLM_GATE_BUSY, NULL, 0);
    }
    return NULL;
}

static void test_a_crowd_never_passes_the_limit(void **state)
{
    (void)state;
    struct crowd c = {.gate = llm_gate_new(2, 6), .limit = 6};
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, visitor, &c), 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.wrong, 0);
    assert_int_equal(c.passed, 16 * 50);
    llm_gate_free(c.gate);
}

static void test_waits_double_within_bounds(void **state)
{
    (void)state;
    for (uint32_t tries = 0; tries < 40; tries++)
        for (uint64_t random = 0; random < 100000; random += 7919) {
            uint64_t whole = tries < 7 ? 500u << tries : 60000, wait;
            wait = llm_backoff_ms(tries, 0, random);
            assert_true(wait >= (whole > 60000 ? 60000 : whole) * 3 / 4);
            assert_true(wait <= 75000);
            wait = llm_backoff_ms(tries, 2000, random);
            assert_true(wait >= 2000 && wait <= 2200);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_window_grows_by_one_a_window_of_answers),
        cmocka_unit_test(test_what_ran_together_halves_the_window_once),
        cmocka_unit_test(test_the_servers_limits_are_obeyed),
        cmocka_unit_test(test_cancelling_ends_the_wait),
        cmocka_unit_test(test_a_crowd_never_passes_the_limit),
        cmocka_unit_test(test_waits_double_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
