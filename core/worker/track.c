#include "worker/track.h"

#include <math.h>
#include <string.h>

enum { BLOCK_MAX = 1 << 20 };

/* Blocks of a steady clock differ by less. */
static const double rise = 0.02;

struct rung_track *rung_track_new(struct rung_arena *arena)
{
    struct rung_track *track = RUNG_ARENA_NEW(arena, struct rung_track, 1);
    track->arena = arena;
    return track;
}

static bool are_times(const struct rung_measured *m)
{
    if (m->n_samples == 0 || m->n_samples > BLOCK_MAX || !m->samples_ns)
        return false;
    for (uint32_t i = 0; i < m->n_samples; i++)
        if (!isfinite(m->samples_ns[i]) || m->samples_ns[i] < 0)
            return false;
    return true;
}

static void *grown(struct rung_arena *arena, const void *old, uint32_t used, uint32_t *cap,
                   uint32_t wanted, size_t size)
{
    uint32_t fresh = *cap ? *cap : 64;
    while (fresh < wanted)
        fresh *= 2;
    char *memory = rung_arena_need(arena, (uint64_t)fresh * size);
    if (used)
        memcpy(memory, old, used * size);
    *cap = fresh;
    return memory;
}

/* Of a block that is too long, its first samples. */
static void keep(struct rung_track *t, const struct rung_measured *m, double median, bool in_rounds)
{
    uint32_t room = RUNG_TRACK_SAMPLES - t->n, n = m->n_samples < room ? m->n_samples : room;
    if (t->n + n > t->cap)
        t->samples = grown(t->arena, t->samples, t->n, &t->cap, t->n + n, sizeof *t->samples);
    if (t->n_turns == t->cap_turns)
        t->turns =
            grown(t->arena, t->turns, t->n_turns, &t->cap_turns, t->n_turns + 1, sizeof *t->turns);
    memcpy(t->samples + t->n, m->samples_ns, n * sizeof *t->samples);
    t->turns[t->n_turns++] = (struct rung_turn){t->n, n, median, in_rounds};
    t->n += n;
}

static void note_condition(struct rung_track *t, const struct rung_measured *m)
{
    uint32_t before = m->before.sm_mhz, after = m->after.sm_mhz;
    uint32_t least = before && (!after || before < after) ? before : after;
    if (!m->before.known && !m->after.known)
        return;
    if (!t->has_condition)
        t->before = m->before;
    t->has_condition = true;
    t->after = m->after;
    t->throttle |= m->before.throttle | m->after.throttle;
    if (least && (!t->sm_mhz_min || least < t->sm_mhz_min))
        t->sm_mhz_min = least;
}

static double above_zero(double v)
{
    return isfinite(v) && v > 0 ? v : 0;
}

bool rung_track_add(struct rung_track *t, const struct rung_timing *timing, bool in_rounds,
                    double *median)
{
    const struct rung_measured *m = &timing->measured;
    if (timing->kind != RUNG_TIME_MEASURED || !are_times(m))
        return false;
    double middle = rung_stats_median(m->samples_ns, m->n_samples);
    if (t->n_turns == 0) {
        t->sets = m->sets;
        t->batch = m->batch;
        t->cold = m->cold;
        t->event_floor_ns = above_zero(m->floor_ns);
        t->physical_floor_ns = above_zero(timing->physical_floor_ns);
    }
    for (uint32_t i = 0; i < m->n_samples; i++)
        t->gpu_ns += m->samples_ns[i] * (m->batch ? m->batch : 1);
    keep(t, m, middle, in_rounds);
    t->n_dropped += m->n_dropped;
    t->n_verified += m->n_verified;
    t->launch_bound |= m->launch_bound != 0;
    note_condition(t, m);
    if (median)
        *median = middle;
    return true;
}

bool rung_track_catch_up(struct rung_track *t)
{
    struct rung_turn *last = t->n_turns > 1 ? &t->turns[t->n_turns - 1] : NULL;
    if (!last || last->median_ns * (1 + rise) >= last[-1].median_ns)
        return false;
    t->n_dropped += last->first;
    t->n = last->n;
    memmove(t->samples, t->samples + last->first, last->n * sizeof *t->samples);
    t->turns[0] = *last;
    t->turns[0].first = 0;
    t->n_turns = 1;
    return true;
}

bool rung_track_settle(struct rung_track *t)
{
    return rung_stats_quartiles(t->samples, t->n, &t->quartiles) &&
           rung_stats_median_interval(t->samples, t->n, &t->interval);
}

double rung_track_half_width(const struct rung_track *t)
{
    double median = t->quartiles.median;
    return median > 0 ? (t->interval.high - t->interval.low) / 2 / median : INFINITY;
}

double rung_track_spread(const struct rung_track *t)
{
    double median = t->quartiles.median;
    return median > 0 ? (t->quartiles.q3 - t->quartiles.q1) / median : 0;
}
