/* Which candidates are best, and which seed a round; see branching.h. */
#include "branching.h"
#include <rung/timer.h>
#include <string.h>

const struct rung_candidate *branching_candidate(const struct turn *turn, uint32_t number)
{
    return number ? turn->history->candidate(turn->history, number) : NULL;
}

/* Measured before modelled before untimed; then by time; then by number. */
static int compare(const struct rung_candidate *a, const struct rung_candidate *b)
{
    const int kind_a = a->time_kind == RUNG_TIME_MEASURED ? 0 : a->time_kind ? 1 : 2;
    const int kind_b = b->time_kind == RUNG_TIME_MEASURED ? 0 : b->time_kind ? 1 : 2;
    if (kind_a != kind_b)
        return kind_a < kind_b ? -1 : 1;
    if (kind_a != 2 && a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Whether b, which does not rank before a, is no slower than the tie band of a allows. */
static bool ties(const struct rung_candidate *a, const struct rung_candidate *b)
{
    if (a->time_kind != b->time_kind)
        return false;
    return a->time_kind == 0 || b->time_ns <= a->time_ns * (1.0 + a->tie_band);
}

/*
 * Accepted, and neither the idea nor the source of one that is kept: branches of one idea are tries
 * at the same thing, so that the best of them stands for all.
 */
static bool can_be_kept(const struct turn *turn, const struct rung_candidate *c)
{
    if (!c || c->state != RUNG_CANDIDATE_ACCEPTED)
        return false;
    for (uint32_t i = 0; i < turn->n_kept; ++i) {
        const struct rung_candidate *k = branching_candidate(turn, turn->kept[i]);
        if (!k || k->idea == c->idea)
            return false;
        if (k->source_hash && c->source_hash && strcmp(k->source_hash, c->source_hash) == 0)
            return false;
    }
    return true;
}

const struct rung_candidate *branching_fastest(const struct turn *turn)
{
    const struct rung_candidate *best = NULL;
    for (uint32_t n = 1; n <= turn->history->n_candidates; ++n) {
        const struct rung_candidate *c = branching_candidate(turn, n);
        if (can_be_kept(turn, c) && (!best || compare(c, best) < 0))
            best = c;
    }
    return best;
}

void branching_keep_best(struct turn *turn)
{
    while (turn->n_kept < turn->policy->keep) {
        const struct rung_candidate *lead = branching_fastest(turn), *pick = NULL;
        if (!lead)
            return;
        for (uint32_t n = 1; n <= turn->history->n_candidates; ++n) {
            const struct rung_candidate *c = branching_candidate(turn, n);
            if (!pick && can_be_kept(turn, c) && ties(lead, c))
                pick = c;
        }
        turn->kept[turn->n_kept++] = pick->number;
    }
}

/* SplitMix64 (Steele, Lea, Flood 2014): one mixing step. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void branching_keep_wild(struct turn *turn)
{
    const struct policy *p = turn->policy;
    for (uint32_t w = 0; w < p->wild && turn->n_kept < MAX_KEEP; ++w) {
        uint32_t pick = 0;
        uint64_t lowest = UINT64_MAX;
        for (uint32_t n = 1; n <= turn->history->n_candidates; ++n) {
            const uint64_t draw =
                mix(mix(p->seed ^ turn->history->seed) ^ ((uint64_t)p->round << 32 | n));
            if (can_be_kept(turn, branching_candidate(turn, n)) && draw < lowest) {
                lowest = draw;
                pick = n;
            }
        }
        if (!pick)
            return;
        turn->kept[turn->n_kept++] = pick;
    }
}
