/* What a run knows: order of candidates, ties, and the view that a policy gets. */
#include "engine/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static struct engine_state fresh(void)
{
    return (struct engine_state){.arena = rung_arena_new()};
}

static struct rung_outcome accepted(double time_ns, const char *point)
{
    return (struct rung_outcome){.verdict = RUNG_ACCEPTED,
                                 .point = point,
                                 .n_points = 4,
                                 .time_kind = RUNG_TIME_MODELLED,
                                 .time_ns = time_ns,
                                 .tie_band = 0.3,
                                 .advice = "advice"};
}

static struct rung_outcome rejected(const char *code)
{
    struct rung_outcome o = {.verdict = RUNG_REJECTED, .message = "why", .point = ""};
    strcpy(o.code, code);
    return o;
}

static void test_the_fastest_accepted_candidate_is_best(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct rung_outcome fast = accepted(100, ""), slow = accepted(900, ""),
                        bad = rejected("numeric.mismatch");
    assert_null(engine_best(&s));
    engine_candidate_judge(&s, engine_candidate_add(&s), &bad, 1);
    assert_null(engine_best(&s));
    engine_candidate_judge(&s, engine_candidate_add(&s), &slow, 2);
    engine_candidate_judge(&s, engine_candidate_add(&s), &fast, 3);
    assert_int_equal(engine_best(&s)->number, 3);
    engine_state_free(&s);
}

static void test_equal_times_go_to_the_earlier_candidate(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct rung_outcome o = accepted(100, "");
    for (uint64_t i = 0; i < 3; i++)
        engine_candidate_judge(&s, engine_candidate_add(&s), &o, i);
    assert_int_equal(engine_best(&s)->number, 1);
    engine_state_free(&s);
}

static void test_the_best_tune_point_counts(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct engine_candidate *c = engine_candidate_add(&s);
    struct rung_outcome a = accepted(500, "TPB=128"), b = accepted(300, "TPB=256"),
                        d = accepted(400, "TPB=512");
    struct rung_outcome bad = rejected("launch.resources");
    engine_candidate_judge(&s, c, &a, 1);
    engine_candidate_judge(&s, c, &b, 2);
    engine_candidate_judge(&s, c, &d, 3);
    engine_candidate_judge(&s, c, &bad, 4);
    assert_int_equal(c->state, RUNG_CANDIDATE_ACCEPTED);
    assert_string_equal(c->point, "TPB=256");
    assert_true(c->time_ns == 300);
    assert_int_equal(c->n_tried, 4);
    engine_state_free(&s);
}

static void test_a_candidate_can_recover_from_a_failed_reply(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct engine_candidate *c = engine_candidate_add(&s);
    struct rung_outcome bad = rejected("compile.error"), good = accepted(10, "");
    engine_candidate_judge(&s, c, &bad, 1);
    assert_string_equal(c->code, "compile.error");
    engine_candidate_judge(&s, c, &good, 2);
    assert_string_equal(c->code, "");
    assert_int_equal(c->state, RUNG_CANDIDATE_ACCEPTED);
    engine_state_free(&s);
}

static void test_a_refused_best_point_gives_way_to_the_next(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct engine_candidate *c = engine_candidate_add(&s);
    struct rung_outcome a = accepted(500, "TPB=128"), b = accepted(300, "TPB=256"),
                        bad = rejected("mem.race");
    engine_candidate_judge(&s, c, &a, 1);
    engine_candidate_judge(&s, c, &b, 2);
    engine_candidate_demote(c, &bad, 3);
    assert_int_equal(c->state, RUNG_CANDIDATE_ACCEPTED);
    assert_string_equal(c->point, "TPB=128");
    assert_true(c->time_ns == 500 && c->best->seq == 1 && c->seq == 3);
    engine_candidate_demote(c, &bad, 4);
    assert_int_equal(c->state, RUNG_CANDIDATE_REJECTED);
    assert_string_equal(c->code, "mem.race");
    assert_null(c->best);
    assert_null(engine_best(&s));
    engine_state_free(&s);
}

static void test_unsupported_is_not_rejected(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct engine_candidate *c = engine_candidate_add(&s);
    struct rung_outcome o = {.verdict = RUNG_NOT_SUPPORTED,
                             .code = "device.unsupported",
                             .message = "wgmma",
                             .point = ""};
    engine_candidate_judge(&s, c, &o, 1);
    assert_int_equal(c->state, RUNG_CANDIDATE_UNSUPPORTED);
    engine_state_free(&s);
}

static void test_ties_are_symmetric_and_need_a_band(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct engine_candidate *a = engine_candidate_add(&s), *b = engine_candidate_add(&s);
    struct rung_outcome x = accepted(100, ""), y = accepted(129, "");
    engine_candidate_judge(&s, a, &x, 1);
    engine_candidate_judge(&s, b, &y, 2);
    assert_true(engine_tie(a, b) && engine_tie(b, a));
    b->time_ns = 131;
    assert_false(engine_tie(a, b));
    b->time_ns = 100;
    a->tie_band = b->tie_band = 0;
    assert_false(engine_tie(a, b));
    engine_state_free(&s);
}

static struct rung_outcome measured(double time_ns, double low_ns, double high_ns)
{
    return (struct rung_outcome){.verdict = RUNG_ACCEPTED,
                                 .point = "",
                                 .time_kind = RUNG_TIME_MEASURED,
                                 .time_ns = time_ns,
                                 .low_ns = low_ns,
                                 .high_ns = high_ns};
}

static void test_measured_times_tie_where_intervals_overlap(void **state)
{
    (void)state;
    static const struct {
        double time, low, high;
        bool tie;
    } table[] = {{1005, 1004, 1006, true},  /* within 1 % */
                 {1020, 1019, 1021, false}, /* neither */
                 {1020, 1002, 1030, true},  /* the intervals overlap */
                 {1020, 0, 0, false},       /* no interval is known */
                 {1009, 0, 0, true}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct engine_state s = fresh();
        struct engine_candidate *a = engine_candidate_add(&s), *b = engine_candidate_add(&s);
        struct rung_outcome x = measured(1000, 998, 1003),
                            y = measured(table[i].time, table[i].low, table[i].high),
                            z = accepted(1000, "");
        engine_candidate_judge(&s, a, &x, 1);
        engine_candidate_judge(&s, b, &y, 2);
        assert_true(engine_tie(a, b) == table[i].tie && engine_tie(b, a) == table[i].tie);
        struct engine_candidate *c = engine_candidate_add(&s);
        engine_candidate_judge(&s, c, &z, 3);
        assert_false(engine_tie(a, c)); /* measured and modelled never mix */
        engine_state_free(&s);
    }
}

static void test_history_shows_what_was_judged(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    struct rung_arena *arena = rung_arena_new();
    struct engine_idea *idea = engine_idea_add(&s);
    idea->sentence = "Use float4.";
    idea->category = "memory";
    struct engine_candidate *c = engine_candidate_add(&s);
    struct rung_outcome o = accepted(77, "TPB=64");
    c->idea = 1;
    c->replies = 3;
    engine_candidate_judge(&s, c, &o, 9);
    const struct rung_history *h = engine_history(&s, arena, 5, 42, 0.5);
    assert_int_equal(h->n_ideas, 1);
    assert_string_equal(h->idea(h, 1)->sentence, "Use float4.");
    assert_null(h->idea(h, 2));
    assert_null(h->candidate(h, 0));
    assert_int_equal(h->candidate(h, 1)->repairs, 2);
    assert_true(h->candidate(h, 1)->time_ns == 77);
    assert_true(h->budget_used(h) == 0.5);
    assert_int_equal(h->seed, 42);
    rung_arena_free(arena);
    engine_state_free(&s);
}

static void test_many_candidates_keep_their_numbers(void **state)
{
    (void)state;
    struct engine_state s = fresh();
    for (uint32_t i = 1; i <= 300; i++)
        assert_int_equal(engine_candidate_add(&s)->number, i);
    assert_int_equal(engine_candidate_get(&s, 257)->number, 257);
    assert_null(engine_candidate_get(&s, 301));
    engine_state_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_accepted_candidate_is_best),
        cmocka_unit_test(test_equal_times_go_to_the_earlier_candidate),
        cmocka_unit_test(test_the_best_tune_point_counts),
        cmocka_unit_test(test_a_candidate_can_recover_from_a_failed_reply),
        cmocka_unit_test(test_a_refused_best_point_gives_way_to_the_next),
        cmocka_unit_test(test_unsupported_is_not_rejected),
        cmocka_unit_test(test_ties_are_symmetric_and_need_a_band),
        cmocka_unit_test(test_measured_times_tie_where_intervals_overlap),
        cmocka_unit_test(test_history_shows_what_was_judged),
        cmocka_unit_test(test_many_candidates_keep_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
