/* Concurrency and rate limits of one model; see llm_gate.h. */
#include "engine/llm_gate.h"
#include "base/die.h"
#include "base/io.h"
#include "plugin/instance.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { POLL_MS = 20, FIRST_WAIT_MS = 500, MAX_WAIT_MS = 60000, MAX_DOUBLINGS = 7 };

/* What is left of one of the server's limits until it is full again. */
struct bucket {
    int64_t left;      /* < 0: nothing is known */
    uint64_t reset_ns; /* from then on nothing is known */
};

struct llm_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t window, most, busy;
    uint32_t good; /* since the window changed */
    uint64_t epoch, held_until_ns;
    struct bucket requests, tokens;
};

struct llm_gate *llm_gate_new(uint32_t first, uint32_t most)
{
    struct llm_gate *g = rung_xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->window = first < most ? first : most;
    g->most = most;
    g->requests.left = g->tokens.left = -1;
    return g;
}

void llm_gate_free(struct llm_gate *g)
{
    if (!g)
        return;
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* Whether a bucket lets `need` through. A need that no full bucket could meet waits for nobody. */
static bool has_room(struct bucket *b, int64_t need, uint32_t busy, uint64_t now)
{
    if (b->left >= 0 && now >= b->reset_ns)
        b->left = -1;
    return b->left < 0 || b->left >= need || (b->left > 0 && busy == 0);
}

static bool may_enter(struct llm_gate *g, int64_t tokens)
{
    uint64_t now = rung_now_ns();
    return g->busy < g->window && now >= g->held_until_ns &&
           has_room(&g->requests, 1, g->busy, now) && has_room(&g->tokens, tokens, g->busy, now);
}

static void take(struct bucket *b, int64_t n)
{
    if (b->left >= 0)
        b->left = b->left > n ? b->left - n : 0;
}

bool llm_gate_enter(struct llm_gate *g, uint64_t tokens, const struct rung_cancel *cancel,
                    struct llm_pass *pass)
{
    pthread_mutex_lock(&g->lock);
    while (!may_enter(g, (int64_t)tokens) && !rung_cancel_requested(cancel)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&g->changed, &g->lock, &until);
    }
    bool cancelled = rung_cancel_requested(cancel);
    if (!cancelled) {
        g->busy++;
        take(&g->requests, 1);
        take(&g->tokens, (int64_t)tokens);
        pass->epoch = g->epoch;
    }
    pthread_mutex_unlock(&g->lock);
    return !cancelled;
}

/* Headers say what was left when the reply was made; what was let in since is not in them. */
static void learn(struct bucket *b, int64_t left, int64_t reset_ms)
{
    if (left < 0)
        return;
    b->left = left;
    b->reset_ns = rung_now_ns() + (uint64_t)(reset_ms > 0 ? reset_ms : 1000) * 1000000;
}

static void adapt(struct llm_gate *g, const struct llm_pass *pass, enum llm_gate_end end)
{
    if (end == LLM_GATE_GOOD && ++g->good >= g->window) {
        g->window += g->window < g->most;
        g->good = 0;
    }
    if (end != LLM_GATE_BUSY || pass->epoch != g->epoch)
        return;
    g->window = g->window > 1 ? g->window / 2 : 1;
    g->good = 0;
    g->epoch++;
}

void llm_gate_leave(struct llm_gate *g, const struct llm_pass *pass, enum llm_gate_end end,
                    const struct rung_rate_limit *limits, uint64_t hold_ms)
{
    pthread_mutex_lock(&g->lock);
    g->busy--;
    adapt(g, pass, end);
    if (limits) {
        learn(&g->requests, limits->requests_left, limits->requests_reset_ms);
        learn(&g->tokens, limits->tokens_left, limits->tokens_reset_ms);
    }
    uint64_t until = hold_ms ? rung_now_ns() + hold_ms * 1000000 : 0;
    if (until > g->held_until_ns)
        g->held_until_ns = until;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

uint32_t llm_gate_window(struct llm_gate *g)
{
    pthread_mutex_lock(&g->lock);
    uint32_t window = g->window;
    pthread_mutex_unlock(&g->lock);
    return window;
}

uint64_t llm_backoff_ms(uint32_t tries, uint64_t hint_ms, uint64_t random)
{
    uint32_t doublings = tries < MAX_DOUBLINGS ? tries : MAX_DOUBLINGS;
    uint64_t wait = (uint64_t)FIRST_WAIT_MS << doublings;
    if (hint_ms)
        return hint_ms + random % (hint_ms / 10 + 1);
    if (wait > MAX_WAIT_MS)
        wait = MAX_WAIT_MS;
    return wait - wait / 4 + random % (wait / 2 + 1);
}
