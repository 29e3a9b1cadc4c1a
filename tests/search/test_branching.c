/* search_branching: its limits, its order among equals, and that it always ends. */
#include "simulation.h"
#include <rung/timer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim sim;

static int close_sim(void **state)
{
    (void)state;
    sim_close(&sim);
    return 0;
}

/* A number that looks random but depends on its arguments alone. */
static uint32_t dice(uint32_t number, uint32_t sides)
{
    return (number * 2654435761u >> 7) % sides;
}

static void reject(struct rung_candidate *c, const char *code)
{
    c->state = RUNG_CANDIDATE_REJECTED;
    snprintf(c->code, sizeof c->code, "%s", code);
    c->time_kind = 0;
    c->time_ns = 0;
    c->n_points = c->n_tried = 0;
}

/* A third fails; the others get faster with their number, with eight tune points. */
static void judge_mixed(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    if (dice(c->number, 3) == 0) {
        reject(c, dice(c->number, 2) ? "numeric.mismatch" : "compile.error");
        return;
    }
    c->time_ns = 1e6 / (1.0 + c->number);
    c->n_points = 8;
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        ++n;
    return n;
}

static void a_run_keeps_its_limits(void **state)
{
    (void)state;
    sim_open(&sim, "branching",
             "{\"rounds\": 6, \"ideas\": 7, \"branches\": 3, \"keep\": 2, \"tune\": 3, "
             "\"patience\": 0}");
    sim.judge = judge_mixed;
    sim_run(&sim, 200);
    const char *log = rung_buf_text(&sim.log);
    assert_true(strncmp(log, "0: implement idea=0 n=3 from=0\n", 31) == 0);
    assert_int_equal(sim.history.n_ideas, 6 * 7);
    assert_int_equal(sim.n_idea_requests, 1 + 5 * 2); /* the first kernels are one idea */
    assert_int_equal(count(log, "implement"), 1 + 6 * 7);
    assert_true(sim.n_repairs > 0 && sim.n_tuned > 0);
    assert_int_equal(sim.history.n_candidates, 3 * (1 + 6 * 7) + sim.n_repairs);
    for (uint32_t n = 1; n <= sim.history.n_candidates; ++n)
        assert_true(sim.candidates[n - 1].n_tried <= sim.candidates[n - 1].n_points);
    support_contains(sim.stop_note, "rounds are done");
}

static void repairs_are_bounded_by_chain(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 3, \"repairs\": 2}");
    sim.judge = judge_mixed;
    sim_run(&sim, 200);
    uint32_t longest = 0;
    for (uint32_t n = 1; n <= sim.history.n_candidates; ++n) {
        const struct rung_candidate *c = &sim.candidates[n - 1];
        uint32_t length = 0;
        while (c->n_parents && sim.candidates[c->parents[0] - 1].idea == c->idea) {
            assert_int_equal(sim.candidates[c->parents[0] - 1].state, RUNG_CANDIDATE_REJECTED);
            c = &sim.candidates[c->parents[0] - 1];
            ++length;
        }
        longest = length > longest ? length : longest;
        assert_true(length <= 2);
    }
    assert_int_equal(longest, 2);
}

static void the_same_history_gives_the_same_actions(void **state)
{
    (void)state;
    static const char options[] = "{\"rounds\": 5, \"wild\": 2, \"seed\": 9}";
    sim_open(&sim, "branching", options);
    sim.judge = judge_mixed;
    sim_run(&sim, 200);
    char *first = strdup(rung_buf_text(&sim.log));
    sim_close(&sim);
    sim_open(&sim, "branching", options);
    sim.judge = judge_mixed;
    sim_run(&sim, 200);
    assert_string_equal(first, rung_buf_text(&sim.log));
    sim_close(&sim);
    /* Another seed draws other wild parents. */
    sim_open(&sim, "branching", "{\"rounds\": 5, \"wild\": 2, \"seed\": 10}");
    sim.judge = judge_mixed;
    sim_run(&sim, 200);
    assert_string_not_equal(first, rung_buf_text(&sim.log));
    free(first);
}

static void judge_all_wrong(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    reject(c, "output.unwritten");
}

static void when_all_fail_it_goes_on_from_nothing_and_ends(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 4, \"ideas\": 2, \"branches\": 1, \"patience\": 1}");
    sim.judge = judge_all_wrong;
    sim_run(&sim, 100);
    const char *log = rung_buf_text(&sim.log);
    assert_int_equal(count(log, "ideas idea=0 n=2 from=0"), 4);
    assert_int_equal(count(log, "implement idea=0 n=1 from=0"), 5);
    assert_int_equal(count(log, "tune"), 0);
    /* Each first try is repaired once, no repair is. */
    assert_int_equal(sim.n_repairs, 5 + 4 * 2);
    support_contains(sim.stop_note, "rounds are done");
}

static void judge_beyond_repair(struct sim *s, struct rung_candidate *c)
{
    static const char *const codes[] = {"device.unsupported", "device.memory", "internal",
                                        "reply.refused", "task.weak"};
    (void)s;
    reject(c, codes[c->number % 5]);
    if (c->number % 5 < 2)
        c->state = RUNG_CANDIDATE_UNSUPPORTED;
}

static void what_no_reply_can_mend_is_not_repaired(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 3, \"repairs\": 3}");
    sim.judge = judge_beyond_repair;
    sim_run(&sim, 100);
    assert_int_equal(sim.n_repairs, 0);
}

static void judge_slower_after_two_rounds(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    const uint32_t round = c->idea ? (c->idea + 1) / 2 : 0; /* two ideas a round */
    c->tie_band = 0.3;
    c->time_ns = round == 0   ? 1000
                 : round == 1 ? 500
                 : round == 2 ? 250
                              : 240; /* 240 ties with 250 */
}

static void patience_ends_it(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 50, \"ideas\": 2, \"patience\": 3}");
    sim.judge = judge_slower_after_two_rounds;
    sim_run(&sim, 100);
    assert_int_equal(sim.history.n_ideas, 2 * (2 + 3));
    support_contains(sim.stop_note, "patience");
}

static void judge_ties(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    c->tie_band = 0.3;
    /* Ideas 1..4: 100, 120, 90, 200. The first kernels: 125 and 125. */
    static const double times[] = {125, 100, 120, 90, 200};
    c->time_ns = times[c->idea < 5 ? c->idea : 4];
}

static void ties_go_to_other_ideas_and_to_lower_numbers(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 2, \"ideas\": 4, \"branches\": 2, \"keep\": 3}");
    sim.judge = judge_ties;
    sim_run(&sim, 100);
    /*
     * Candidates 1,2: idea 0 (125); 3,4: idea 1 (100); 5,6: idea 2 (120); 7,8: idea 3 (90); 9,10:
     * idea 4 (200). The band of 90 reaches 117: 3 ties and has the lower number. Then 90 leads
     * again, now alone: 7. Then 120 leads and ties with the first kernels: 1.
     */
    assert_int_equal(sim.n_last_ideas, 3);
    assert_int_equal(sim.last_ideas_parents[0], 3);
    assert_int_equal(sim.last_ideas_parents[1], 7);
    assert_int_equal(sim.last_ideas_parents[2], 1);
}

static void judge_copies(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    c->time_ns = 100.0 + c->number;
    c->source_hash = c->number <= 2 ? "same" : c->source_hash;
}

static void equal_sources_seed_only_once(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 2, \"ideas\": 4, \"branches\": 1, \"keep\": 4}");
    sim.judge = judge_copies;
    sim_run(&sim, 100);
    /* Candidate 2 realises idea 1 with the source of candidate 1. */
    assert_int_equal(sim.n_last_ideas, 4);
    assert_int_equal(sim.last_ideas_parents[0], 1);
    assert_int_equal(sim.last_ideas_parents[1], 3);
}

static void judge_kinds(struct sim *s, struct rung_candidate *c)
{
    (void)s;
    c->time_kind = c->number == 3 ? RUNG_TIME_MEASURED : c->number == 2 ? 0 : RUNG_TIME_MODELLED;
    c->time_ns = c->number == 3 ? 5000 : 10;
}

static void measured_goes_before_modelled(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 2, \"ideas\": 2, \"branches\": 1, \"keep\": 3}");
    sim.judge = judge_kinds;
    sim_run(&sim, 100);
    assert_int_equal(sim.last_ideas_parents[0], 3);
    assert_int_equal(sim.last_ideas_parents[1], 1);
    assert_int_equal(sim.n_last_ideas, 2); /* as many requests as ideas, 2 is the third */
}

static const char *think_nothing(struct sim *s, uint32_t number)
{
    (void)s;
    (void)number;
    return NULL;
}

static void without_ideas_it_ends(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 5, \"patience\": 2}");
    sim.think = think_nothing;
    sim_run(&sim, 20);
    assert_int_equal(sim.history.n_candidates, 2);
}

static const char *think_the_same(struct sim *s, uint32_t number)
{
    return rung_arena_printf(s->arena, "Idea %u.", number % 3);
}

static void a_sentence_is_built_once_a_round(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 3, \"branches\": 1, \"patience\": 0}");
    sim.think = think_the_same;
    sim_run(&sim, 100);
    assert_int_equal(sim.history.n_candidates, 1 + 3 * 3);
}

static void an_idea_of_a_person_is_built_too(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 2, \"ideas\": 1, \"branches\": 1}");
    assert_true(sim_step(&sim)); /* first kernel */
    sim.ideas[0] = (struct rung_idea){.struct_size = sizeof *sim.ideas,
                                      .number = 1,
                                      .parent = 1,
                                      .sentence = "Mine.",
                                      .category = "person"};
    sim.history.n_ideas = 1;
    sim_run(&sim, 100);
    support_contains(rung_buf_text(&sim.log), "implement idea=1 n=1 from=1");
}

static void a_used_budget_ends_it(void **state)
{
    (void)state;
    sim_open(&sim, "branching", "{\"rounds\": 50, \"patience\": 0}");
    for (int i = 0; i < 5; ++i)
        assert_true(sim_step(&sim));
    sim.budget_used = 1.0;
    assert_false(sim_step(&sim));
    support_contains(sim.stop_note, "budget");
}

static void many_rounds_stay_in_bounds(void **state)
{
    (void)state;
    sim_open(&sim, "branching",
             "{\"rounds\": 30, \"ideas\": 16, \"branches\": 4, \"keep\": 16, \"patience\": 0, "
             "\"wild\": 16}");
    sim.judge = judge_mixed;
    sim_run(&sim, 500);
    assert_int_equal(sim.history.n_ideas, 30 * 16);
    assert_int_equal(sim.n_stops, 1);
}

#define CASE(test) cmocka_unit_test_teardown(test, close_sim)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_run_keeps_its_limits),
        CASE(repairs_are_bounded_by_chain),
        CASE(the_same_history_gives_the_same_actions),
        CASE(when_all_fail_it_goes_on_from_nothing_and_ends),
        CASE(what_no_reply_can_mend_is_not_repaired),
        CASE(patience_ends_it),
        CASE(ties_go_to_other_ideas_and_to_lower_numbers),
        CASE(equal_sources_seed_only_once),
        CASE(measured_goes_before_modelled),
        CASE(without_ideas_it_ends),
        CASE(a_sentence_is_built_once_a_round),
        CASE(an_idea_of_a_person_is_built_too),
        CASE(a_used_budget_ends_it),
        CASE(many_rounds_stay_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
