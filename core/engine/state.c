#include "engine/state.h"

#include <stdlib.h>
#include <string.h>

/* Times of different jobs: clocks and allocations differ by about so much. */
static const double measured_band = 0.01;

static void *grown(struct rung_arena *arena, void *old, uint32_t n, uint32_t *cap)
{
    if (n < *cap)
        return old;
    *cap = *cap ? *cap * 2 : 64;
    void **fresh = RUNG_ARENA_NEW(arena, void *, *cap);
    if (n)
        memcpy(fresh, old, n * sizeof *fresh);
    return fresh;
}

struct engine_idea *engine_idea_add(struct engine_state *s)
{
    s->ideas = grown(s->arena, s->ideas, s->n_ideas, &s->cap_ideas);
    struct engine_idea *idea = RUNG_ARENA_NEW(s->arena, struct engine_idea, 1);
    s->ideas[s->n_ideas++] = idea;
    idea->number = s->n_ideas;
    return idea;
}

struct engine_candidate *engine_candidate_add(struct engine_state *s)
{
    s->candidates = grown(s->arena, s->candidates, s->n_candidates, &s->cap_candidates);
    struct engine_candidate *c = RUNG_ARENA_NEW(s->arena, struct engine_candidate, 1);
    s->candidates[s->n_candidates++] = c;
    c->number = s->n_candidates;
    c->point = "";
    return c;
}

void engine_state_free(struct engine_state *s)
{
    rung_arena_free(s->arena);
}

struct engine_idea *engine_idea_get(const struct engine_state *s, uint32_t number)
{
    return number && number <= s->n_ideas ? s->ideas[number - 1] : NULL;
}

struct engine_candidate *engine_candidate_get(const struct engine_state *s, uint32_t number)
{
    return number && number <= s->n_candidates ? s->candidates[number - 1] : NULL;
}

/* A tried point counts once, however often it was judged (a repaired reply judges it again). */
static struct engine_variant *add_variant(struct engine_state *s, struct engine_candidate *c,
                                          const struct rung_outcome *o, uint64_t seq)
{
    struct engine_variant *v = RUNG_ARENA_NEW(s->arena, struct engine_variant, 1);
    *v = (struct engine_variant){.point = rung_arena_strdup(s->arena, o->point ? o->point : ""),
                                 .verdict = o->verdict,
                                 .seq = seq,
                                 .time_kind = o->time_kind,
                                 .time_ns = o->time_ns,
                                 .tie_band = o->tie_band,
                                 .floor_ns = o->floor_ns,
                                 .low_ns = o->low_ns,
                                 .high_ns = o->high_ns};
    memcpy(v->code, o->code, sizeof v->code);
    struct engine_variant **end = &c->variants;
    while (*end)
        end = &(*end)->next;
    *end = v;
    c->n_tried++;
    return v;
}

static bool faster(const struct engine_variant *a, const struct engine_variant *b)
{
    return a->time_kind && (!b->time_kind || a->time_ns < b->time_ns);
}

static void take_best(struct engine_candidate *c, struct engine_variant *v)
{
    c->state = RUNG_CANDIDATE_ACCEPTED;
    c->code[0] = 0;
    c->best = v;
    c->point = v->point;
    c->time_kind = v->time_kind;
    c->time_ns = v->time_ns;
    c->tie_band = v->tie_band;
    c->floor_ns = v->floor_ns;
    c->low_ns = v->low_ns;
    c->high_ns = v->high_ns;
}

static void take_failure(struct engine_candidate *c, uint32_t verdict, const char *code)
{
    c->state = verdict == RUNG_REJECTED ? RUNG_CANDIDATE_REJECTED : RUNG_CANDIDATE_UNSUPPORTED;
    c->best = NULL;
    c->time_kind = 0;
    memcpy(c->code, code, sizeof c->code);
}

void engine_candidate_judge(struct engine_state *s, struct engine_candidate *c,
                            const struct rung_outcome *o, uint64_t seq)
{
    c->seq = seq;
    if (o->n_points)
        c->n_points = o->n_points;
    struct engine_variant *v = add_variant(s, c, o, seq);
    if (o->verdict == RUNG_ACCEPTED) {
        if (c->state != RUNG_CANDIDATE_ACCEPTED || faster(v, c->best))
            take_best(c, v);
    } else if (c->state != RUNG_CANDIDATE_ACCEPTED) { /* a bad point does not undo a good one */
        take_failure(c, o->verdict, o->code);
    }
}

void engine_candidate_demote(struct engine_candidate *c, const struct rung_outcome *o, uint64_t seq)
{
    struct engine_variant *best = NULL;
    c->best->verdict = o->verdict;
    memcpy(c->best->code, o->code, sizeof c->best->code);
    for (struct engine_variant *v = c->variants; v; v = v->next)
        if (v->verdict == RUNG_ACCEPTED && (!best || faster(v, best)))
            best = v;
    c->seq = seq;
    if (best)
        take_best(c, best);
    else
        take_failure(c, o->verdict, o->code);
}

bool engine_ahead(const struct engine_candidate *a, const struct engine_candidate *b)
{
    bool a_ok = a->state == RUNG_CANDIDATE_ACCEPTED, b_ok = b->state == RUNG_CANDIDATE_ACCEPTED;
    if (a_ok != b_ok)
        return a_ok;
    if (a_ok && (a->time_kind != 0) != (b->time_kind != 0))
        return a->time_kind != 0;
    if (a_ok && a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    return a->number < b->number;
}

static int by_rank(const void *a, const void *b)
{
    const struct engine_candidate *x = *(struct engine_candidate *const *)a;
    const struct engine_candidate *y = *(struct engine_candidate *const *)b;
    return engine_ahead(x, y) ? -1 : engine_ahead(y, x) ? 1 : 0;
}

struct engine_candidate **engine_ranking(const struct engine_state *s, struct rung_arena *arena,
                                         uint32_t *n)
{
    struct engine_candidate **list =
        RUNG_ARENA_NEW(arena, struct engine_candidate *, s->n_candidates);
    *n = s->n_candidates;
    if (*n)
        memcpy(list, s->candidates, *n * sizeof *list);
    qsort(list, *n, sizeof *list, by_rank);
    return list;
}

struct engine_candidate *engine_best(const struct engine_state *s)
{
    struct engine_candidate *best = NULL;
    for (uint32_t i = 0; i < s->n_candidates; i++) {
        struct engine_candidate *c = s->candidates[i];
        if (c->state == RUNG_CANDIDATE_ACCEPTED && (!best || engine_ahead(c, best)))
            best = c;
    }
    return best;
}

bool engine_tie(const struct engine_candidate *a, const struct engine_candidate *b)
{
    bool measured = b->time_kind == RUNG_TIME_MEASURED;
    double band = measured ? measured_band : b->tie_band;
    if (!a->time_kind || a->time_kind != b->time_kind || band <= 0)
        return false;
    double low = a->time_ns < b->time_ns ? a->time_ns : b->time_ns;
    double high = a->time_ns < b->time_ns ? b->time_ns : a->time_ns;
    bool known = a->high_ns > 0 && b->high_ns > 0;
    return high <= low * (1 + band) ||
           (measured && known && a->low_ns <= b->high_ns && b->low_ns <= a->high_ns);
}

/* ---- The policy's view --------------------------------------------------------------------------
 */

struct view {
    struct rung_history history; /* first: the getters cast back */
    struct rung_idea *ideas;
    struct rung_candidate *candidates;
    double budget_used;
};

static const struct rung_idea *view_idea(const struct rung_history *h, uint32_t number)
{
    const struct view *v = h->ctx;
    return number && number <= h->n_ideas ? &v->ideas[number - 1] : NULL;
}

static const struct rung_candidate *view_candidate(const struct rung_history *h, uint32_t number)
{
    const struct view *v = h->ctx;
    return number && number <= h->n_candidates ? &v->candidates[number - 1] : NULL;
}

static double view_budget(const struct rung_history *h)
{
    return ((const struct view *)h->ctx)->budget_used;
}

static struct rung_candidate candidate_view(const struct engine_candidate *c)
{
    struct rung_candidate v = {.struct_size = sizeof v,
                               .number = c->number,
                               .idea = c->idea,
                               .round = c->round,
                               .n_parents = c->n_parents,
                               .state = c->state ? c->state : (uint32_t)RUNG_CANDIDATE_UNSUPPORTED,
                               .time_kind = c->time_kind,
                               .repairs = c->replies ? c->replies - 1 : 0,
                               .time_ns = c->time_ns,
                               .tie_band = c->tie_band,
                               .n_points =
                                   c->n_points > UINT32_MAX ? UINT32_MAX : (uint32_t)c->n_points,
                               .n_tried = (uint32_t)c->n_tried,
                               .source_hash = c->source_sha};
    memcpy(v.parents, c->parents, sizeof v.parents);
    memcpy(v.code, c->code, sizeof v.code);
    return v;
}

static struct rung_idea idea_view(const struct engine_idea *i)
{
    return (struct rung_idea){.struct_size = sizeof(struct rung_idea),
                              .number = i->number,
                              .parent = i->parent,
                              .round = i->round,
                              .sentence = i->sentence,
                              .category = i->category};
}

struct rung_history *engine_history(const struct engine_state *s, struct rung_arena *arena,
                                    uint32_t decisions, uint64_t seed, double budget_used)
{
    struct view *v = RUNG_ARENA_NEW(arena, struct view, 1);
    v->ideas = RUNG_ARENA_NEW(arena, struct rung_idea, s->n_ideas);
    v->candidates = RUNG_ARENA_NEW(arena, struct rung_candidate, s->n_candidates);
    v->budget_used = budget_used;
    for (uint32_t i = 0; i < s->n_ideas; i++)
        v->ideas[i] = idea_view(s->ideas[i]);
    for (uint32_t i = 0; i < s->n_candidates; i++)
        v->candidates[i] = candidate_view(s->candidates[i]);
    const struct engine_candidate *best = engine_best(s);
    v->history = (struct rung_history){.struct_size = sizeof v->history,
                                       .decisions = decisions,
                                       .n_ideas = s->n_ideas,
                                       .n_candidates = s->n_candidates,
                                       .seed = seed,
                                       .floor_ns = best ? best->floor_ns : 0,
                                       .ctx = v,
                                       .idea = view_idea,
                                       .candidate = view_candidate,
                                       .budget_used = view_budget};
    return &v->history;
}
