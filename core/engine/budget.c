/* What a run may spend, what it has spent, and when it has done enough. */
#include "base/json.h"
#include "base/io.h"
#include "base/status.h"
#include "engine/engine.h"

#include <string.h>

double engine_wall_s(const struct engine *e)
{
    return e->spent.wall_s_before + (double)(rung_now_ns() - e->start_ns) * 1e-9;
}

/* ---- Money ---- */

static const struct engine_llm *llm_named(const struct engine *e, const char *name)
{
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        if (strcmp(e->llms[i].stage->name, name) == 0)
            return &e->llms[i];
    return NULL;
}

static bool is_free(const struct engine_llm *llm)
{
    return (llm->instance->factory->capabilities & RUNG_LLM_FREE) != 0;
}

static double tokens(const cJSON *usage, const char *name)
{
    int64_t n = rung_json_i64(usage, name, 0);
    return n > 0 ? (double)n : 0;
}

void engine_spend(struct engine *e, const char *name, const cJSON *usage)
{
    const struct engine_llm *llm = llm_named(e, name);
    if (!llm || !llm->stage->price.given) {
        e->spent.usd_gapped |= !llm || !is_free(llm);
        return;
    }
    const struct rung_price *p = &llm->stage->price;
    double written = tokens(usage, "cache_write_5m") + tokens(usage, "cache_write_1h");
    e->spent.usd += (tokens(usage, "input") * p->input +
                     tokens(usage, "cache_read") * p->cache_read + written * p->cache_write +
                     (tokens(usage, "output") + tokens(usage, "reasoning")) * p->output) *
                    1e-6;
}

/* ---- Enough ---- */

static void follow(struct engine *e, const struct engine_candidate *best)
{
    double now = best ? best->time_ns : 0;
    bool better =
        best && best->time_kind && (e->best_ns <= 0 || now * (1 + best->tie_band) < e->best_ns);
    e->stale = better ? 0 : e->stale + 1;
    if (better)
        e->best_ns = now;
}

const char *engine_enough(struct engine *e)
{
    const struct rung_stop *stop = &e->pipeline->stop;
    const struct engine_candidate *best = engine_best(&e->state);
    follow(e, best);
    if (best && best->time_kind && stop->roofline > 0 && best->floor_ns > 0 &&
        best->floor_ns >= stop->roofline * best->time_ns)
        return rung_arena_printf(
            e->arena, "the best reaches %.0f %% of the speed that the physical floor allows",
            100 * best->floor_ns / best->time_ns);
    if (best && best->time_kind && stop->target_s > 0 && best->time_ns <= stop->target_s * 1e9)
        return "the target time is reached";
    if (stop->patience && e->best_ns > 0 && e->stale >= stop->patience)
        return rung_arena_printf(e->arena, "%u rounds brought no faster kernel", e->stale);
    return NULL;
}

/* ---- Limits ---- */

static double share(double used, double limit)
{
    return limit > 0 ? used / limit : 0;
}

double engine_budget_used(const struct engine *e)
{
    const struct rung_budget *b = &e->pipeline->budget;
    double all = (double)(e->spent.tokens_in + e->spent.tokens_out);
    double shares[] = {share((double)e->spent.evaluations, (double)b->evaluations),
                       share((double)e->spent.calls, (double)b->calls),
                       share(all, (double)b->tokens), share(e->spent.usd, b->usd),
                       share(engine_wall_s(e), b->wall_s)};
    double most = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        most = shares[i] > most ? shares[i] : most;
    return most < 1 ? most : 1;
}

/* Fails when the run is ending; `limit` of 0 means none. Takes the lock. */
static int32_t may(struct engine *e, const uint64_t *used, uint64_t limit, const char *what,
                   struct rung_error *err)
{
    const struct rung_budget *b = &e->pipeline->budget;
    int32_t status = RUNG_OK;
    pthread_mutex_lock(&e->lock);
    if (rung_cancel_requested(e->cancel))
        status = rung_fail(err, RUNG_ECANCELLED, "", "interrupted");
    else if (limit && *used >= limit)
        status = rung_fail(err, RUNG_EBUDGET, "", "the budget of %llu %s is used up",
                           (unsigned long long)limit, what);
    else if (b->usd > 0 && e->spent.usd >= b->usd)
        status = rung_fail(err, RUNG_EBUDGET, "", "the budget of %.2f USD is used up", b->usd);
    else if (b->wall_s > 0 && engine_wall_s(e) >= b->wall_s)
        status = rung_fail(err, RUNG_EBUDGET, "", "the budget of %.0f s is used up", b->wall_s);
    if (status == RUNG_EBUDGET)
        atomic_store(&e->out_of_budget, 1);
    pthread_mutex_unlock(&e->lock);
    return status;
}

int32_t engine_may_call(struct engine *e, struct rung_error *err)
{
    const struct rung_budget *b = &e->pipeline->budget;
    int32_t status = may(e, &e->spent.calls, b->calls, "calls", err);
    if (status || !b->tokens)
        return status;
    pthread_mutex_lock(&e->lock);
    uint64_t all = e->spent.tokens_in + e->spent.tokens_out;
    pthread_mutex_unlock(&e->lock);
    return may(e, &all, b->tokens, "tokens", err);
}

int32_t engine_may_evaluate(struct engine *e, struct rung_error *err)
{
    return may(e, &e->spent.evaluations, e->pipeline->budget.evaluations, "evaluations", err);
}

void engine_give_up(struct engine *e, const struct rung_error *err)
{
    pthread_mutex_lock(&e->lock);
    if (!e->failure.code)
        e->failure = *err;
    pthread_mutex_unlock(&e->lock);
    rung_cancel_request(e->cancel);
    if (e->pool)
        rung_pool_cancel(e->pool);
}
