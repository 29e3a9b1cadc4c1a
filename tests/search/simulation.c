/* A run without engine; see simulation.h. */
#include "simulation.h"
#include <rung/timer.h>
#include <stdio.h>
#include <string.h>

static const struct rung_idea *get_idea(const struct rung_history *history, uint32_t number)
{
    struct sim *sim = history->ctx;
    return number && number <= history->n_ideas ? &sim->ideas[number - 1] : NULL;
}

static const struct rung_candidate *get_candidate(const struct rung_history *history,
                                                  uint32_t number)
{
    struct sim *sim = history->ctx;
    return number && number <= history->n_candidates ? &sim->candidates[number - 1] : NULL;
}

static double get_budget(const struct rung_history *history)
{
    return ((struct sim *)history->ctx)->budget_used;
}

void sim_open(struct sim *sim, const char *name, const char *options)
{
    memset(sim, 0, sizeof *sim);
    struct rung_error error = {.struct_size = sizeof error};
    struct rung_diags diags = {0};
    const struct rung_loaded *loaded = NULL;
    sim->registry = rung_registry_new();
    sim->arena = rung_arena_new();
    rung_registry_allow_insecure(sim->registry);
    assert_int_equal(rung_registry_load(sim->registry, RUNG_KIND_SEARCH, name, &loaded, &error),
                     RUNG_OK);
    cJSON *json = cJSON_Parse(options);
    assert_non_null(json);
    const struct rung_node *group = rung_node_from_json(sim->arena, json, NULL, "test");
    cJSON_Delete(json);
    const struct rung_options *set =
        rung_options_read(sim->arena, loaded->factory, group, NULL, rung_data_dir(), &diags);
    assert_non_null(set);
    rung_diags_free(&diags);
    assert_int_equal(
        rung_instance_new(loaded, set, name, rung_data_dir(), NULL, &sim->instance, &error),
        RUNG_OK);
    assert_int_equal(rung_instance_start(sim->instance, &error), RUNG_OK);
    sim->history = (struct rung_history){.struct_size = sizeof sim->history,
                                         .seed = 1,
                                         .ctx = sim,
                                         .idea = get_idea,
                                         .candidate = get_candidate,
                                         .budget_used = get_budget};
}

void sim_close(struct sim *sim)
{
    rung_instance_free(sim->instance);
    rung_arena_free(sim->arena);
    rung_registry_free(sim->registry);
    rung_buf_free(&sim->log);
}

static void new_candidate(struct sim *sim, uint32_t idea, uint32_t parent)
{
    assert_true(sim->history.n_candidates < SIM_MAX);
    const uint32_t number = ++sim->history.n_candidates;
    struct rung_candidate *c = &sim->candidates[number - 1];
    *c = (struct rung_candidate){.struct_size = sizeof *c,
                                 .number = number,
                                 .idea = idea,
                                 .round = sim->history.decisions,
                                 .n_parents = parent != 0,
                                 .parents = {parent},
                                 .state = RUNG_CANDIDATE_ACCEPTED,
                                 .time_kind = RUNG_TIME_MODELLED,
                                 .time_ns = 1000,
                                 .n_points = 1,
                                 .n_tried = 1,
                                 .source_hash = rung_arena_printf(sim->arena, "%064x", number)};
    if (sim->judge)
        sim->judge(sim, c);
}

static void new_ideas(struct sim *sim, uint32_t count, uint32_t parent)
{
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t number = sim->history.n_ideas + 1;
        const char *sentence = sim->think
                                   ? sim->think(sim, number)
                                   : rung_arena_printf(sim->arena, "Idea number %u.", number);
        if (!sentence)
            return;
        assert_true(number < SIM_MAX);
        sim->ideas[number - 1] = (struct rung_idea){.struct_size = sizeof *sim->ideas,
                                                    .number = number,
                                                    .parent = parent,
                                                    .round = sim->history.decisions,
                                                    .sentence = sentence,
                                                    .category = "memory"};
        sim->history.n_ideas = number;
    }
}

static const char *const kinds[] = {"?", "ideas", "implement", "repair", "tune", "stop"};

/* The contract of every action, whatever the policy. */
static void check_action(const struct sim *sim, const struct rung_action *a)
{
    assert_int_equal(a->struct_size, sizeof *a);
    assert_in_range(a->kind, RUNG_ACTION_IDEAS, RUNG_ACTION_STOP);
    if (a->kind == RUNG_ACTION_STOP) {
        assert_non_null(a->note);
        return;
    }
    assert_in_range(a->count, 1, 64);
    assert_true(a->n_parents <= RUNG_MAX_PARENTS);
    for (uint32_t p = 0; p < a->n_parents; ++p)
        assert_in_range(a->parents[p], 1, sim->history.n_candidates);
    if (a->kind == RUNG_ACTION_REPAIR || a->kind == RUNG_ACTION_TUNE) {
        assert_int_equal(a->n_parents, 1);
        const struct rung_candidate *c = &sim->candidates[a->parents[0] - 1];
        assert_int_equal(c->state, a->kind == RUNG_ACTION_TUNE ? RUNG_CANDIDATE_ACCEPTED
                                                               : RUNG_CANDIDATE_REJECTED);
        if (a->kind == RUNG_ACTION_TUNE)
            assert_true(a->count <= c->n_points - c->n_tried);
    }
    if (a->kind == RUNG_ACTION_IMPLEMENT)
        assert_true(a->idea <= sim->history.n_ideas);
}

static void carry_out(struct sim *sim, const struct rung_action *a)
{
    const uint32_t parent = a->n_parents ? a->parents[0] : 0;
    switch (a->kind) {
    case RUNG_ACTION_IDEAS:
        sim->last_ideas_parents[sim->n_last_ideas++ % 64] = parent;
        sim->n_idea_requests++;
        new_ideas(sim, a->count, parent);
        break;
    case RUNG_ACTION_IMPLEMENT:
        for (uint32_t i = 0; i < a->count; ++i)
            new_candidate(sim, a->idea, parent);
        break;
    case RUNG_ACTION_REPAIR:
        sim->n_repairs++;
        new_candidate(sim, sim->candidates[parent - 1].idea, parent);
        break;
    case RUNG_ACTION_TUNE:
        sim->n_tuned += a->count;
        sim->candidates[parent - 1].n_tried += a->count;
        break;
    default:
        sim->n_stops++;
        snprintf(sim->stop_note, sizeof sim->stop_note, "%s", a->note);
    }
}

bool sim_step(struct sim *sim)
{
    struct rung_error error = {.struct_size = sizeof error};
    struct rung_arena *arena = rung_arena_new();
    struct rung_call call = {.struct_size = sizeof call, .arena = arena, .error = &error};
    const struct rung_event start = {.struct_size = sizeof start, .kind = RUNG_EVENT_START};
    const struct rung_action *actions = NULL;
    uint32_t n = 0;
    int32_t status = RUNG_EINTERNAL;
    RUNG_INVOKE(status, sim->instance, struct rung_search_ops, decide, &call, &sim->history, &start,
                sim->history.decisions == 0, &actions, &n);
    assert_int_equal(status, RUNG_OK);
    assert_true(n >= 1);
    bool asked = false;
    for (uint32_t i = 0; i < n; ++i) {
        check_action(sim, &actions[i]);
        asked |= actions[i].kind == RUNG_ACTION_IDEAS;
        rung_buf_printf(&sim->log, "%u: %s idea=%u n=%u from=%u\n", sim->history.decisions,
                        kinds[actions[i].kind], actions[i].idea, actions[i].count,
                        actions[i].n_parents ? actions[i].parents[0] : 0);
    }
    if (asked)
        sim->n_last_ideas = 0;
    for (uint32_t i = 0; i < n; ++i)
        carry_out(sim, &actions[i]);
    sim->history.decisions++;
    rung_arena_free(arena);
    return sim->n_stops == 0;
}

void sim_run(struct sim *sim, uint32_t limit)
{
    while (sim_step(sim))
        assert_true(sim->history.decisions < limit);
}
