/*
 * The time stage: every bench shape through the timer, then statistics and the physical floor. A
 * timer that measures gets several blocks, until the interval of the median is narrow or the budget
 * is used; one that models is asked once.
 */
#include "base/io.h"
#include "base/status.h"
#include "worker/block.h"
#include "worker/times.h"

#include <math.h>

enum { WARMUPS = 5, SAMPLES = 20, SAMPLES_ONCE = 50, MAX_BLOCKS = 40 };

/* Enough for a search: what differs by less than 1 % is taken as the same there. */
static const double gpu_s = 0.25, wall_s = 2, half_width = 0.01, spread_max = 0.2;

static bool modelled_of(struct rung_trial *trial, const struct rung_modelled *modelled,
                        struct rung_shape_time *out)
{
    out->kind = RUNG_TIME_MODELLED;
    out->time_ns = modelled->time_ns;
    out->tie_band = modelled->tie_band;
    out->gpu = rung_arena_strdup(trial->arena, modelled->gpu ? modelled->gpu : "");
    out->limiter = rung_arena_strdup(trial->arena, modelled->limiter ? modelled->limiter : "");
    return isfinite(out->time_ns) && out->time_ns >= 0 && isfinite(out->tie_band) &&
           out->tie_band >= 0;
}

/* The first shape's words stand for all. */
static void keep_advice(struct rung_trial *trial, struct rung_text advice)
{
    if (trial->advice.ptr)
        return;
    size_t n = advice.ptr ? advice.len : 0;
    const char *text = rung_arena_strndup(trial->arena, n ? advice.ptr : "", n);
    trial->advice = (struct rung_text){text, n};
}

/* Reads one block's answer into the time; false when something was settled. */
static bool read_block(struct rung_trial *trial, const struct rung_timing *timing,
                       struct rung_track *track, struct rung_shape_time *out)
{
    double floor = timing->physical_floor_ns;
    bool good = timing->kind == RUNG_TIME_MODELLED
                    ? track->n == 0 && modelled_of(trial, &timing->modelled, out)
                    : rung_track_add(track, timing, false, NULL) && rung_track_settle(track);
    if (good && timing->kind == RUNG_TIME_MEASURED)
        *out = rung_shape_time_of(track);
    else
        out->floor_ns = isfinite(floor) && floor > 0 ? floor : 0;
    if (!good)
        rung_trial_settlef(trial, "internal", "the timer gave no time");
    else
        keep_advice(trial, timing->advice);
    return good;
}

/* An idle GPU takes a while to its full clock; what was measured on the way is no time of anything.
 */
static bool catch_up(struct rung_track *track, struct rung_shape_time *out)
{
    if (!rung_track_catch_up(track))
        return false;
    rung_track_settle(track);
    *out = rung_shape_time_of(track);
    return true;
}

static bool enough(const struct rung_track *track, double wall, double limit)
{
    return rung_track_half_width(track) < half_width || track->gpu_ns > gpu_s * 1e9 ||
           wall > limit || track->n >= RUNG_TRACK_SAMPLES || track->n_turns >= MAX_BLOCKS;
}

/*
 * One block after the other. Outputs are compared with the reference in the first two blocks and in
 * the last one, which is therefore taken knowingly.
 */
static bool measure(struct rung_trial *trial, uint32_t shape, struct rung_track *track,
                    struct rung_shape_time *out)
{
    const struct rung_session *session = rung_trial_watch(trial, false);
    bool clocked = (trial->ex->info.flags & RUNG_DEVICE_MEASURES) != 0, closing = false;
    uint64_t start = rung_now_ns();
    double limit = fmin(wall_s, trial->ex->time_s / 2);
    for (uint32_t number = 0;; number++) {
        double wall = (double)(rung_now_ns() - start) / 1e9;
        struct rung_block block = {.shape = shape, .number = number, .track = track};
        struct rung_timing timing;
        struct rung_error err;
        rung_block_size(&block);
        if (number == 0) {
            block.warmups = WARMUPS;
            block.samples = clocked ? SAMPLES : SAMPLES_ONCE;
        }
        if (clocked) {
            block.verify = number == 0 ? 1 : number == 1 ? 2 : closing;
            block.budget_s = fmax(limit - wall, 0.1);
        }
        int32_t status = rung_block_run(trial, session, &block, &timing, &err);
        if (!rung_block_good(trial, status, &timing, &err) ||
            !read_block(trial, &timing, track, out))
            return false;
        if (!clocked || out->kind == RUNG_TIME_MODELLED)
            return true;
        wall = (double)(rung_now_ns() - start) / 1e9;
        bool rising = wall < limit && catch_up(track, out);
        bool done = !rising && track->n_turns > 1 && enough(track, wall, limit);
        if (done && block.verify)
            return true;
        closing = done;
    }
}

/* A measured time that physics excludes: the work was not done, whatever the outputs say. */
static bool above_floor(struct rung_trial *trial, uint32_t shape,
                        const struct rung_shape_time *time)
{
    const struct rung_task *task = trial->ex->task;
    if (time->kind != RUNG_TIME_MEASURED || time->time_ns >= time->floor_ns)
        return true;
    rung_trial_settlef(
        trial, "time.below_floor",
        "%.3f us at %s is less than the %.3f us that this work takes at the peak rates of %s",
        time->time_ns / 1e3, rung_task_dims_text(trial->arena, task, task->bench[shape].dims),
        time->floor_ns / 1e3, trial->ex->info.name);
    return false;
}

/*
 * After the whole budget half of the samples still lie far apart: no number would mean anything. A
 * kernel that is hardly longer than its launch is no fault of its own then; the report tells it.
 */
static bool steady(struct rung_trial *trial, uint32_t shape, const struct rung_shape_time *time)
{
    const struct rung_task *task = trial->ex->task;
    const struct rung_track *t = time->track;
    if (!t || !(trial->ex->info.flags & RUNG_DEVICE_MEASURES) || t->launch_bound ||
        rung_track_spread(t) <= spread_max)
        return true;
    rung_trial_settlef(trial, "time.unstable",
                       "the time at %s varies too much to be told: half of %u samples lie outside "
                       "%.4g to %.4g us around %.4g us",
                       rung_task_dims_text(trial->arena, task, task->bench[shape].dims), t->n,
                       time->q1_ns / 1e3, time->q3_ns / 1e3, time->time_ns / 1e3);
    return false;
}

static bool time_shape(struct rung_trial *trial, uint32_t shape, struct rung_shape_time *out)
{
    const struct rung_task *task = trial->ex->task;
    const char *text = rung_arena_printf(trial->arena, "time %u/%u", shape + 1, task->n_bench);
    rung_trial_enter(trial, RUNG_AT_TIME, "time", text, trial->ex->time_s);
    rung_trial_at(trial, rung_task_dims_text(trial->arena, task, task->bench[shape].dims));
    *out = (struct rung_shape_time){.gpu = "", .limiter = ""};
    trial->tracks[shape] = rung_track_new(trial->arena);
    return measure(trial, shape, trial->tracks[shape], out) && above_floor(trial, shape, out) &&
           steady(trial, shape, out);
}

void rung_trial_time(struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    if (!trial->ex->timer)
        return;
    trial->times = RUNG_ARENA_NEW(trial->arena, struct rung_shape_time, task->n_bench);
    trial->tracks = RUNG_ARENA_NEW(trial->arena, struct rung_track *, task->n_bench);
    for (uint32_t i = 0; i < task->n_bench; i++) {
        if (!time_shape(trial, i, &trial->times[i]))
            return;
        if (trial->times[i].kind != trial->times[0].kind) {
            rung_trial_settlef(trial, "internal",
                               "the timer measured one shape and modelled another");
            return;
        }
    }
    rung_times_publish(trial);
}
