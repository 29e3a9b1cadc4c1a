/* Rungs that only the best, or only the winner, must pass. */
#include "base/die.h"
#include "engine/engine.h"

static int32_t judge(struct engine *e, struct engine_candidate *c, uint32_t occasion,
                     struct rung_arena *arena, struct rung_error *err)
{
    struct engine_source source;
    struct rung_outcome o = {0};
    uint64_t seq = 0;
    int32_t status = engine_recall(e, c, arena, &source, err);
    if (!status)
        status =
            engine_evaluate_later(e, c, source.bundle, c->point, occasion, arena, &o, &seq, err);
    if (status)
        return status;
    if (o.verdict != RUNG_REJECTED) {
        c->best->passed |= 1u << occasion;
        return RUNG_OK;
    }
    engine_tell(e, c, &o);
    pthread_mutex_lock(&e->lock);
    engine_candidate_demote(c, &o, seq);
    pthread_mutex_unlock(&e->lock);
    return RUNG_OK;
}

int32_t engine_confirm_one(struct engine *e, struct engine_candidate *c, uint32_t occasion,
                           struct rung_error *err)
{
    if (!engine_has_rungs(e, occasion) || c->best->passed & 1u << occasion)
        return RUNG_OK;
    struct rung_arena *arena = rung_arena_new();
    if (!arena)
        rung_die("out of memory");
    int32_t status = judge(e, c, occasion, arena, err);
    rung_arena_free(arena);
    return status;
}

int32_t engine_confirm(struct engine *e, uint32_t occasion, struct rung_error *err)
{
    struct engine_candidate *best;
    int32_t status = RUNG_OK;
    if (!engine_has_rungs(e, occasion))
        return RUNG_OK;
    while (!status && (best = engine_best(&e->state)) && !(best->best->passed & 1u << occasion))
        status = engine_confirm_one(e, best, occasion, err);
    return status;
}
