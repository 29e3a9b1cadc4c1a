/*
 * Turns. One round goes there and back, candidate, rival, baselines, baselines, rival, candidate,
 * so that a clock that drifts evenly does to all the same; what counts is the ratio of two that
 * were measured in the same round. Rounds go on until every comparison says something or the time
 * is up.
 */
#include "worker/race.h"
#include "base/io.h"
#include "base/status.h"

#include <math.h>

enum { LOOK_EVERY = 5 };

/* Rounds that are due may take longer than the budget, but not for ever. */
static const double patience = 4;

static const char *turn_text(struct rung_race *race, uint32_t shape)
{
    return rung_arena_printf(race->trial->arena, "turns %u/%u", shape + 1,
                             race->trial->ex->task->n_bench);
}

static void announce(struct rung_race *race, const struct rung_racer *racer, uint32_t shape)
{
    struct rung_trial *trial = race->trial;
    const struct rung_task *task = trial->ex->task;
    if (racer->kind != RUNG_RACER_CANDIDATE) {
        rung_trial_enter_guest(trial, racer->name, turn_text(race, shape), trial->ex->time_s);
        return;
    }
    rung_trial_enter(trial, RUNG_AT_TIME, "time", turn_text(race, shape), trial->ex->time_s);
    rung_trial_at(trial, rung_task_dims_text(trial->arena, task, task->bench[shape].dims));
}

/* A guest's fault is only its own. */
static bool guest_good(struct rung_race *race, struct rung_racer *racer, int32_t status,
                       const struct rung_timing *timing, const struct rung_error *err)
{
    struct rung_text message;
    if (status != RUNG_OK) {
        rung_racer_drop(race, racer, "%s", err->message);
        return false;
    }
    const char *code = rung_block_fault(race->trial, timing, &message);
    if (!code || *code)
        rung_racer_drop(race, racer, "it failed: %s", message.ptr);
    return code && !*code;
}

/* false: the candidate has failed, and there is no race any more. */
static bool turn(struct rung_race *race, struct rung_racer *racer, struct rung_block *block,
                 double *median)
{
    struct rung_trial *trial = race->trial;
    struct rung_timing timing;
    struct rung_error err;
    bool own = racer->kind == RUNG_RACER_CANDIDATE;
    block->track = racer->tracks[block->shape];
    rung_block_size(block);
    announce(race, racer, block->shape);
    int32_t status = rung_racer_block(race, racer, block, &timing, &err);
    bool good = own ? rung_block_good(trial, status, &timing, &err)
                    : guest_good(race, racer, status, &timing, &err);
    if (good && !rung_track_add(racer->tracks[block->shape], &timing, true, median)) {
        good = false;
        if (own)
            rung_trial_settlef(trial, "internal", "the timer gave no time");
        else
            rung_racer_drop(race, racer, "its samples are no times");
    }
    return good || !own;
}

/* Outputs are compared in the first round, in the middle, and when all is done. */
static uint32_t verify_of(const struct rung_race *race, const struct rung_racer *racer,
                          uint32_t round)
{
    bool due = round == 0 || round == race->trial->ex->timing.rounds / 2;
    return racer->kind != RUNG_RACER_BASELINE && due;
}

static bool way(struct rung_race *race, uint32_t shape, uint32_t round, bool back)
{
    for (uint32_t k = 0; k < race->n && !race->trial->sticky; k++) {
        struct rung_racer *racer = &race->racers[back ? race->n - 1 - k : k];
        struct rung_block block = {.shape = shape, .number = round};
        double median = 0;
        if (racer->out)
            continue;
        if (!back)
            block.verify = verify_of(race, racer, round);
        if (!turn(race, racer, &block, &median))
            return false;
        if (back && !racer->out)
            racer->tracks[shape]->rounds_ns[round] = sqrt(racer->going_ns * median);
        racer->going_ns = median;
    }
    return true;
}

static uint32_t active(const struct rung_race *race)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < race->n; i++)
        n += !race->racers[i].out;
    return n;
}

/* Whether each comparison at this shape has an answer. */
static bool decided(const struct rung_race *race, uint32_t shape, uint32_t rounds)
{
    for (uint32_t i = 1; i < race->n; i++) {
        struct rung_ratio ratio;
        const struct rung_racer *other = &race->racers[i];
        if (!other->out && (!rung_stats_ratio(race->racers[0].tracks[shape]->rounds_ns,
                                              other->tracks[shape]->rounds_ns, rounds, &ratio) ||
                            rung_stats_judge(&ratio, race->delta) == RUNG_STATS_UNKNOWN))
            return false;
    }
    return true;
}

/* Looking after each round would find a difference by chance sooner or later. */
static bool enough(const struct rung_race *race, uint32_t shape, uint32_t rounds, double wall_s)
{
    const struct rung_timing_settings *timing = &race->trial->ex->timing;
    if (rounds >= RUNG_TRACK_ROUNDS || wall_s > patience * timing->budget_s)
        return true;
    if (rounds < timing->rounds)
        return false;
    bool look = (rounds - timing->rounds) % LOOK_EVERY == 0;
    return wall_s > timing->budget_s || (look && decided(race, shape, rounds));
}

static void count_rounds(struct rung_race *race, uint32_t shape, uint32_t rounds)
{
    for (uint32_t i = 0; i < race->n; i++)
        race->racers[i].tracks[shape]->n_rounds = rounds;
}

/* The last word on the candidate's and the rival's outputs. */
static bool close_shape(struct rung_race *race, uint32_t shape, uint32_t rounds)
{
    for (uint32_t i = 0; i < race->n && !race->trial->sticky; i++) {
        struct rung_block block = {.shape = shape, .number = rounds, .verify = 1};
        struct rung_racer *racer = &race->racers[i];
        if (racer->kind != RUNG_RACER_BASELINE && !racer->out && !turn(race, racer, &block, NULL))
            return false;
    }
    return true;
}

static bool take_turns(struct rung_race *race, uint32_t shape)
{
    uint64_t start = rung_now_ns();
    uint32_t rounds = 0;
    double wall_s = 0;
    while (active(race) && !race->trial->sticky && !enough(race, shape, rounds, wall_s)) {
        if (!way(race, shape, rounds, false) || !way(race, shape, rounds, true))
            return false;
        if (race->trial->sticky)
            break;
        count_rounds(race, shape, ++rounds);
        wall_s = (double)(rung_now_ns() - start) / 1e9;
    }
    return rounds == 0 || close_shape(race, shape, rounds);
}

static bool race_shape(struct rung_race *race, uint32_t shape)
{
    for (uint32_t i = 1; i < race->n; i++)
        if (!race->racers[i].out && race->racers[i].kind == RUNG_RACER_BASELINE &&
            !race->trial->sticky)
            rung_racer_prepare(race, &race->racers[i], shape);
    bool good = take_turns(race, shape);
    for (uint32_t i = 1; i < race->n; i++)
        rung_racer_release(&race->racers[i]);
    return good;
}

/* ---- Who takes part ---- */

static struct rung_track **new_tracks(struct rung_trial *trial)
{
    uint32_t n = trial->ex->task->n_bench;
    struct rung_track **tracks = RUNG_ARENA_NEW(trial->arena, struct rung_track *, n);
    for (uint32_t i = 0; i < n; i++)
        tracks[i] = rung_track_new(trial->arena);
    return tracks;
}

static struct rung_racer new_racer(struct rung_trial *trial, enum rung_racer_kind kind,
                                   const char *name)
{
    return (struct rung_racer){.kind = kind,
                               .name = name,
                               .label = "",
                               .math = "",
                               .within_why = "",
                               .tracks = new_tracks(trial)};
}

/* The other kernel, compiled and loaded beside the candidate; its artifacts are not the job's. */
static void load_rival(struct rung_race *race, struct rung_racer *racer)
{
    struct rung_trial *rival = race->trial->rival;
    rival->ex->trial = rival;
    bool loaded = rung_trial_load(rival);
    rival->ex->trial = race->trial;
    race->trial->sticky |= rival->sticky;
    for (uint32_t i = 0; loaded && i < rival->ex->task->n_bench; i++)
        rung_racer_match(race, racer, i, race->trial->tracks[i]->quartiles.median);
    if (loaded)
        racer->session = rung_trial_watch(rival, false);
    else
        rung_racer_drop(race, racer, "%s: %.*s", rival->code, (int)rival->message.len,
                        rival->message.ptr ? rival->message.ptr : "");
}

static void gather(struct rung_race *race)
{
    struct rung_trial *trial = race->trial;
    struct rung_executor *ex = trial->ex;
    race->racers = RUNG_ARENA_NEW(trial->arena, struct rung_racer, 2 + ex->n_baselines);
    race->racers[race->n++] = new_racer(trial, RUNG_RACER_CANDIDATE, trial->label);
    race->racers[0].tracks = trial->tracks;
    race->racers[0].session = rung_trial_watch(trial, false);
    if (trial->rival)
        race->racers[race->n++] = new_racer(trial, RUNG_RACER_RIVAL, trial->rival->guest);
    for (uint32_t i = 0; i < ex->n_baselines; i++) {
        struct rung_racer *racer = &race->racers[race->n++];
        *racer = new_racer(trial, RUNG_RACER_BASELINE, ex->baselines[i].name);
        racer->baseline = &ex->baselines[i];
        racer->out = ex->baselines[i].problem;
    }
}

static void close_rival(struct rung_trial *trial)
{
    if (!trial->rival)
        return;
    trial->sticky |= trial->rival->sticky;
    rung_session_close(trial->rival->session);
    cJSON_Delete(trial->rival->stored);
    trial->rival->session = NULL;
    trial->rival->stored = NULL;
}

static void run_race(struct rung_race *race)
{
    struct rung_trial *trial = race->trial;
    const struct rung_task *task = trial->ex->task;
    bool good = true;
    rung_trial_draft(trial);
    if (trial->rival)
        load_rival(race, &race->racers[1]);
    for (uint32_t i = 0; i < task->n_bench && good && !trial->sticky; i++)
        good = race_shape(race, i);
    if (!good)
        return;
    for (uint32_t i = 0; i < task->n_bench; i++)
        rung_track_settle(trial->tracks[i]);
    rung_times_publish(trial);
    rung_race_publish(race, NULL);
}

void rung_trial_race(struct rung_trial *trial)
{
    struct rung_race *race = RUNG_ARENA_NEW(trial->arena, struct rung_race, 1);
    *race = (struct rung_race){.trial = trial,
                               .delta = trial->delta > 0 ? trial->delta : trial->ex->timing.delta};
    gather(race);
    if (race->n == 1)
        return;
    bool measured = trial->times[0].track && trial->ex->info.flags & RUNG_DEVICE_MEASURES;
    rung_race_publish(race, measured ? "its turn did not come"
                                     : "a modelled time is not compared with measured ones");
    if (!measured)
        return;
    trial->race = race;
    run_race(race);
    close_rival(trial);
}
