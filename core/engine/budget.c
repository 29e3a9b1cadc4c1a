#include "base/io.h"
#include "base/status.h"
#include "engine/engine.h"

double engine_wall_s(const struct engine *e)
{
    return e->spent.wall_s_before + (double)(rung_now_ns() - e->start_ns) * 1e-9;
}

static double share(double used, double limit)
{
    return limit > 0 ? used / limit : 0;
}

double engine_budget_used(const struct engine *e)
{
    const struct rung_budget *b = &e->pipeline->budget;
    double tokens = (double)(e->spent.tokens_in + e->spent.tokens_out);
    double shares[] = {share((double)e->spent.evaluations, (double)b->evaluations),
                       share((double)e->spent.calls, (double)b->calls),
                       share(tokens, (double)b->tokens), share(engine_wall_s(e), b->wall_s)};
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
    uint64_t tokens = e->spent.tokens_in + e->spent.tokens_out;
    pthread_mutex_unlock(&e->lock);
    return may(e, &tokens, b->tokens, "tokens", err);
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
