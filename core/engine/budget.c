/* What a run may spend, what it has spent, and when it has done enough. */
#include "base/json.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOLD_POLL_NS = 20000000 };

double engine_wall_s(const struct engine *e)
{
    return e->spent.wall_s_before + (double)(rung_now_ns() - e->start_ns) * 1e-9;
}

/* ---- Money ---- */

double engine_cost(const struct rung_price *p, const struct engine_tokens *t)
{
    return ((double)t->input * p->input + (double)t->cache_read * p->cache_read +
            (double)t->cache_write_5m * p->cache_write_5m +
            (double)t->cache_write_1h * p->cache_write_1h +
            (double)(t->output + t->reasoning) * p->output) *
           1e-6;
}

static uint64_t tokens(const cJSON *usage, const char *name)
{
    int64_t n = rung_json_i64(usage, name, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static struct engine_tokens tokens_of(const cJSON *usage)
{
    return (struct engine_tokens){.input = tokens(usage, "input"),
                                  .cache_read = tokens(usage, "cache_read"),
                                  .cache_write_5m = tokens(usage, "cache_write_5m"),
                                  .cache_write_1h = tokens(usage, "cache_write_1h"),
                                  .output = tokens(usage, "output"),
                                  .reasoning = tokens(usage, "reasoning")};
}

static void add_tokens(struct engine_tokens *to, const struct engine_tokens *t)
{
    to->input += t->input;
    to->cache_read += t->cache_read;
    to->cache_write_5m += t->cache_write_5m;
    to->cache_write_1h += t->cache_write_1h;
    to->output += t->output;
    to->reasoning += t->reasoning;
}

static uint64_t tokens_in(const struct engine_tokens *t)
{
    return t->input + t->cache_read + t->cache_write_5m + t->cache_write_1h;
}

static uint64_t tokens_out(const struct engine_tokens *t)
{
    return t->output + t->reasoning;
}

static double cost_of(struct engine *e, const char *name, const struct engine_tokens *t)
{
    struct engine_llm *llm = engine_llm_named(e, name);
    if (llm && llm->price.given)
        return engine_cost(&llm->price, t);
    if (llm && llm->free)
        return 0;
    e->spent.usd_gapped = true;
    if (llm && !llm->told_price)
        rung_log(RUNG_LOG_WARN, "engine",
                 "what llm '%s' costs is not known: the run tells its tokens but no cost. price = "
                 "{ input = ..; output = ..; } in the pipeline says it, or an item of prices.cfg",
                 name);
    if (llm)
        llm->told_price = true;
    return 0;
}

void engine_spend(struct engine *e, const char *name, const cJSON *record)
{
    struct engine_spent *s = &e->spent;
    const char *billed = rung_json_text(record, "billed", "said");
    struct engine_tokens t = tokens_of(rung_json_get(record, "usage"));
    if (strcmp(billed, "no") == 0)
        return;
    double usd = cost_of(e, name, &t);
    s->calls++;
    if (strcmp(billed, "guessed") == 0) {
        s->guessed_calls++;
        s->guessed_usd += usd;
        add_tokens(&s->guessed, &t);
        return;
    }
    s->usd += usd;
    s->tokens_in += tokens_in(&t);
    s->tokens_out += tokens_out(&t);
    add_tokens(&s->tokens, &t);
}

static cJSON *tokens_json(const struct engine_tokens *t)
{
    cJSON *json = cJSON_CreateObject();
    rung_json_add_i64(json, "input", (int64_t)t->input);
    rung_json_add_i64(json, "cache_read", (int64_t)t->cache_read);
    rung_json_add_i64(json, "cache_write_5m", (int64_t)t->cache_write_5m);
    rung_json_add_i64(json, "cache_write_1h", (int64_t)t->cache_write_1h);
    rung_json_add_i64(json, "output", (int64_t)t->output);
    rung_json_add_i64(json, "reasoning", (int64_t)t->reasoning);
    return json;
}

cJSON *engine_spent_json(const struct engine *e)
{
    const struct engine_spent *s = &e->spent;
    cJSON *json = cJSON_CreateObject();
    rung_json_add_i64(json, "calls", (int64_t)s->calls);
    cJSON_AddItemToObject(json, "tokens", tokens_json(&s->tokens));
    rung_json_add_f64(json, "usd", s->usd);
    cJSON_AddBoolToObject(json, "price_known", !s->usd_gapped);
    cJSON *guessed = cJSON_AddObjectToObject(json, "estimated");
    rung_json_add_i64(guessed, "calls", (int64_t)s->guessed_calls);
    cJSON_AddItemToObject(guessed, "tokens", tokens_json(&s->guessed));
    rung_json_add_f64(guessed, "usd", s->guessed_usd);
    return json;
}

void engine_tell_spent(struct engine *e)
{
    const struct engine_spent *s = &e->spent;
    bool paid = false;
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        paid |= !e->llms[i].free;
    if (!paid)
        return;
    engine_say(e,
               "models: %llu calls, %llu tokens in (%llu cached), %llu out (%llu reasoning), %.4f "
               "USD%s",
               (unsigned long long)s->calls, (unsigned long long)s->tokens_in,
               (unsigned long long)s->tokens.cache_read, (unsigned long long)s->tokens_out,
               (unsigned long long)s->tokens.reasoning, s->usd,
               s->usd_gapped ? " and calls whose price is not known" : "");
    if (s->guessed_calls)
        engine_say(e, "estimated for %llu of the calls: %llu tokens in, %llu out, %.4f USD",
                   (unsigned long long)s->guessed_calls, (unsigned long long)tokens_in(&s->guessed),
                   (unsigned long long)tokens_out(&s->guessed), s->guessed_usd);
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

static uint64_t all_tokens(const struct engine_spent *s)
{
    return s->tokens_in + s->tokens_out + tokens_in(&s->guessed) + tokens_out(&s->guessed);
}

double engine_budget_used(const struct engine *e)
{
    const struct rung_budget *b = &e->pipeline->budget;
    const struct engine_spent *s = &e->spent;
    double shares[] = {share((double)s->evaluations, (double)b->evaluations),
                       share((double)s->calls, (double)b->calls),
                       share((double)all_tokens(s), (double)b->tokens),
                       share(s->usd + s->guessed_usd, b->usd), share(engine_wall_s(e), b->wall_s)};
    double most = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        most = shares[i] > most ? shares[i] : most;
    return most < 1 ? most : 1;
}

static int32_t used_up(struct engine *e, struct rung_error *err, const char *limit)
{
    atomic_store(&e->out_of_budget, 1);
    return rung_fail(err, RUNG_EBUDGET, "", "the budget of %s is used up", limit);
}

/* What ends every kind of work. With the lock held. */
static int32_t may_go_on(struct engine *e, struct rung_error *err)
{
    const struct rung_budget *b = &e->pipeline->budget;
    char limit[64];
    if (rung_cancel_requested(e->cancel))
        return rung_fail(err, RUNG_ECANCELLED, "", "interrupted");
    if (b->usd > 0 && e->spent.usd + e->spent.guessed_usd >= b->usd) {
        snprintf(limit, sizeof limit, "%.2f USD", b->usd);
        return used_up(e, err, limit);
    }
    if (b->wall_s > 0 && engine_wall_s(e) >= b->wall_s) {
        snprintf(limit, sizeof limit, "%.0f s", b->wall_s);
        return used_up(e, err, limit);
    }
    return RUNG_OK;
}

enum fit { FITS, FITS_LATER, FITS_NEVER };

static enum fit fit(double used, double held, double need, double limit)
{
    if (limit <= 0 || used + held + need <= limit)
        return FITS;
    return used + need <= limit ? FITS_LATER : FITS_NEVER;
}

static enum fit worse(enum fit a, enum fit b)
{
    return a > b ? a : b;
}

/* What is used alone may stand at its limit already; then even a need of nothing doesn't fit. */
static enum fit fit_all(const struct engine *e, const struct engine_hold *need)
{
    const struct rung_budget *b = &e->pipeline->budget;
    const struct engine_spent *s = &e->spent;
    enum fit calls =
        fit((double)s->calls, (double)s->held_calls, (double)need->calls, (double)b->calls);
    enum fit tokens = fit((double)all_tokens(s), (double)s->held_tokens,
                          (double)(need->tokens ? need->tokens : 1), (double)b->tokens);
    enum fit usd = fit(s->usd + s->guessed_usd, s->held_usd, need->usd, b->usd);
    return worse(calls, worse(tokens, usd));
}

/* Tells once why a run ends while some budget is left. */
static int32_t too_dear(struct engine *e, const struct engine_hold *need, struct rung_error *err)
{
    const struct rung_budget *b = &e->pipeline->budget;
    if (!atomic_load(&e->out_of_budget) && (need->tokens || need->usd > 0))
        rung_log(RUNG_LOG_WARN, "engine",
                 "the budget ends here: %llu calls, %llu tokens, %.4f USD are spent, and the next "
                 "request may need %llu tokens and %.4f USD (max_output_tokens of the llm bounds "
                 "it)",
                 (unsigned long long)e->spent.calls, (unsigned long long)all_tokens(&e->spent),
                 e->spent.usd + e->spent.guessed_usd, (unsigned long long)need->tokens, need->usd);
    atomic_store(&e->out_of_budget, 1);
    return rung_fail(err, RUNG_EBUDGET, "",
                     "the budget of %llu calls, %llu tokens, %.2f USD (0: no limit) is used up",
                     (unsigned long long)b->calls, (unsigned long long)b->tokens, b->usd);
}

static void hold(struct engine_spent *s, const struct engine_hold *need)
{
    s->held_calls += need->calls;
    s->held_tokens += need->tokens;
    s->held_usd += need->usd;
}

int32_t engine_hold(struct engine *e, const struct engine_hold *need, struct rung_error *err)
{
    for (;;) {
        pthread_mutex_lock(&e->lock);
        int32_t status = may_go_on(e, err);
        enum fit how = status ? FITS_NEVER : fit_all(e, need);
        if (!status && how == FITS_NEVER)
            status = too_dear(e, need, err);
        if (!status && how == FITS)
            hold(&e->spent, need);
        pthread_mutex_unlock(&e->lock);
        if (status || how == FITS)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = HOLD_POLL_NS}, NULL);
    }
}

void engine_release(struct engine *e, const struct engine_hold *h)
{
    pthread_mutex_lock(&e->lock);
    e->spent.held_calls -= h->calls;
    e->spent.held_tokens -= h->tokens;
    e->spent.held_usd -= h->usd;
    pthread_mutex_unlock(&e->lock);
}

int32_t engine_may_evaluate(struct engine *e, struct rung_error *err)
{
    uint64_t limit = e->pipeline->budget.evaluations;
    char text[48];
    pthread_mutex_lock(&e->lock);
    int32_t status = may_go_on(e, err);
    if (!status && limit && e->spent.evaluations >= limit) {
        snprintf(text, sizeof text, "%llu evaluations", (unsigned long long)limit);
        status = used_up(e, err, text);
    }
    pthread_mutex_unlock(&e->lock);
    return status;
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
