/* The pool: its thread, the queue of jobs, and what the engine calls. */
#include "worker/pool.h"
#include "base/die.h"
#include "base/io.h"
#include "base/status.h"
#include "worker/outcome.h"
#include "worker/pool_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    INLINE_MAX = 256 << 10,
    LABEL_MAX = 200,
    POLL_MS = 250,
    REAP_MS = 5,
    OUT_MAX = 16 << 20,
    CRASHES_MAX = 8
};

/* ---- Jobs (lock held) ---- */

void pool_job_finish(struct rung_pool *pool, struct pool_job *job, enum pool_job_state state)
{
    job->state = state;
    pthread_cond_broadcast(&pool->changed);
}

void pool_job_return(struct rung_pool *pool, struct pool_job *job)
{
    if (pool->cancelled || pool->closing) {
        pool_job_finish(pool, job, POOL_JOB_CANCELLED);
        return;
    }
    if (++job->losses >= 2) {
        pool_job_finish(pool, job, POOL_JOB_DONE);
        return;
    }
    job->state = POOL_JOB_QUEUED;
    job->next = pool->first;
    pool->first = job;
    if (!pool->last)
        pool->last = job;
}

static void enqueue(struct rung_pool *pool, struct pool_job *job)
{
    job->next = NULL;
    if (pool->last)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
}

static struct pool_job *dequeue(struct rung_pool *pool, struct pool_job *after)
{
    struct pool_job **link = after ? &after->next : &pool->first, *job = *link;
    *link = job->next;
    if (pool->last == job)
        pool->last = after;
    return job;
}

static void finish_queue(struct rung_pool *pool, enum pool_job_state state)
{
    while (pool->first)
        pool_job_finish(pool, dequeue(pool, NULL), state);
}

/* ---- Who can do what ---- */

static const char *plugin_of(const struct rung_pool *pool, const struct pool_job *job)
{
    return job->device ? job->device : pool->own ? pool->own->plugin : NULL;
}

static bool has(const struct pool_worker *w, const char *plugin)
{
    return w->plugin && plugin && strcmp(w->plugin, plugin) == 0;
}

/* A worker that was never ready may turn out to have any device that its entry allows. */
static bool may_have(const struct pool_worker *w, const char *plugin)
{
    const char *asked = w->spec->device;
    if (w->state == POOL_GONE)
        return false;
    if (w->plugin)
        return has(w, plugin);
    return !asked || strcmp(asked, "auto") == 0 || strcmp(asked, plugin) == 0;
}

static bool any_may_have(const struct rung_pool *pool, const char *plugin)
{
    for (uint32_t i = 0; plugin && i < pool->n_workers; i++)
        if (may_have(&pool->workers[i], plugin))
            return true;
    return false;
}

/* ---- The thread ---- */

static uint32_t count(const struct rung_pool *pool, enum pool_worker_state from,
                      enum pool_worker_state to)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pool->n_workers; i++)
        n += pool->workers[i].state >= from && pool->workers[i].state <= to;
    return n;
}

static void serve_worker(struct rung_pool *pool, struct pool_worker *w)
{
    struct pool_job *before = NULL;
    for (struct pool_job *job = pool->first; job; before = job, job = job->next)
        if (has(w, plugin_of(pool, job))) {
            pool_worker_give(w, dequeue(pool, before));
            return;
        }
}

/* Jobs that nobody is left for. */
static void drop_hopeless(struct rung_pool *pool)
{
    struct pool_job *before = NULL, *next;
    for (struct pool_job *job = pool->first; job; job = next) {
        next = job->next;
        if (any_may_have(pool, plugin_of(pool, job)))
            before = job;
        else
            pool_job_finish(pool, dequeue(pool, before), POOL_JOB_FAILED);
    }
}

static void hand_out(struct rung_pool *pool)
{
    for (uint32_t i = 0; i < pool->n_workers && pool->first; i++)
        if (pool->workers[i].state == POOL_FREE)
            serve_worker(pool, &pool->workers[i]);
    drop_hopeless(pool);
}

static void cancel_all(struct rung_pool *pool)
{
    finish_queue(pool, POOL_JOB_CANCELLED);
    for (uint32_t i = 0; i < pool->n_workers; i++)
        if (pool->workers[i].state == POOL_BUSY)
            pool_worker_cancel(&pool->workers[i]);
}

static void beat(struct rung_pool *pool, uint64_t now)
{
    static const char line[] = "{\"t\":\"beat\"}";
    if (now < pool->beat_ns)
        return;
    pool->beat_ns = now + UINT64_C(1000000000);
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        struct pool_worker *w = &pool->workers[i];
        if (pool_worker_alive(w) && w->state != POOL_LAUNCHED &&
            rung_line_waiting(&w->out) < OUT_MAX)
            rung_line_push(&w->out, line, sizeof line - 1);
    }
}

static void attend(struct rung_pool *pool)
{
    uint64_t now = rung_now_ns();
    if (pool->cancelled || pool->closing)
        cancel_all(pool);
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        if (pool->closing)
            pool_worker_close(&pool->workers[i]);
        pool_worker_attend(&pool->workers[i], now);
    }
    hand_out(pool);
    beat(pool, now);
    for (uint32_t i = 0; i < pool->n_workers; i++)
        pool_worker_flush(&pool->workers[i]);
}

/* fds[0] is the wake-up; fds[1 + 2i] and fds[2 + 2i] are output and input of worker i. */
static int prepare(const struct rung_pool *pool, struct pollfd *fds)
{
    int patience = POLL_MS;
    fds[0] = (struct pollfd){pool->wake, POLLIN, 0};
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        const struct pool_worker *w = &pool->workers[i];
        bool alive = pool_worker_alive(w);
        fds[1 + 2 * i] = (struct pollfd){alive ? w->pipes.from : -1, POLLIN, 0};
        fds[2 + 2 * i] =
            (struct pollfd){alive && rung_line_waiting(&w->out) ? w->pipes.to : -1, POLLOUT, 0};
        if (w->state == POOL_CLOSING)
            patience = REAP_MS;
    }
    return patience;
}

static void serve(struct rung_pool *pool, const struct pollfd *fds)
{
    uint64_t now = rung_now_ns(), woken;
    if (fds[0].revents && read(pool->wake, &woken, sizeof woken) < 0 && errno != EAGAIN)
        rung_die("the pool's wake-up descriptor broke: %s", strerror(errno));
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        struct pool_worker *w = &pool->workers[i];
        if (fds[1 + 2 * i].revents && w->pipes.from == fds[1 + 2 * i].fd)
            pool_worker_listen(w, now);
    }
}

static void *run_thread(void *arg)
{
    struct rung_pool *pool = arg;
    struct pollfd *fds = rung_xcalloc(1 + 2 * pool->n_workers, sizeof *fds);
    sigset_t all;
    sigfillset(&all); /* signals are for the main thread; SIGPIPE must kill nobody */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        attend(pool);
        if (pool->closing && count(pool, POOL_GONE, POOL_GONE) == pool->n_workers)
            break;
        int patience = prepare(pool, fds);
        pthread_mutex_unlock(&pool->lock);
        poll(fds, 1 + 2 * pool->n_workers, patience);
        pthread_mutex_lock(&pool->lock);
        serve(pool, fds);
    }
    pthread_mutex_unlock(&pool->lock);
    free(fds);
    return NULL;
}

static void wake(struct rung_pool *pool)
{
    static const uint64_t one = 1;
    if (write(pool->wake, &one, sizeof one) < 0 && errno != EAGAIN)
        rung_die("the pool's wake-up descriptor broke: %s", strerror(errno));
}

/* ---- Start and end ---- */

static void make_workers(struct rung_pool *pool)
{
    const struct rung_pipeline *pipeline = pool->spec.pipeline;
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        pool->n_workers += pipeline->workers[i].count;
    pool->workers = rung_xcalloc(pool->n_workers + 1, sizeof *pool->workers);
    uint32_t next = 0;
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        for (uint32_t k = 0; k < pipeline->workers[i].count; k++, next++)
            pool_worker_init(pool, &pool->workers[next], &pipeline->workers[i], next);
}

static int32_t start_thread(struct rung_pool *pool, struct rung_error *err)
{
    pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = pool->wake < 0 ? errno : pthread_create(&pool->thread, NULL, run_thread, pool);
    if (!failed)
        return RUNG_OK;
    if (pool->wake >= 0)
        close(pool->wake);
    return rung_fail(err, RUNG_EUNAVAILABLE, "pool.thread", "can't start the pool: %s",
                     strerror(failed));
}

static void release(struct rung_pool *pool)
{
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    cJSON_Delete(pool->setup);
    free(pool->workers);
    rung_arena_free(pool->arena);
    free(pool);
}

static bool serves(const struct pool_worker *w)
{
    return w->state >= POOL_FREE && w->state <= POOL_DRAINING;
}

/*
 * The first ready worker of the first entry that has any; NULL with *hope while one of it may
 * still come. What is chosen does not depend on who starts fastest.
 */
static const struct pool_worker *choose_own(const struct rung_pool *pool, bool *hope)
{
    *hope = false;
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        const struct pool_worker *w = &pool->workers[i];
        if (i > 0 && w->spec != w[-1].spec && *hope)
            return NULL;
        if (serves(w))
            return w;
        *hope |= w->state != POOL_GONE;
    }
    return NULL;
}

static int32_t await_first(struct rung_pool *pool, struct rung_error *err)
{
    int32_t status = RUNG_OK;
    bool hope;
    pthread_mutex_lock(&pool->lock);
    while (!(pool->own = choose_own(pool, &hope)) && hope)
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (!pool->own)
        status =
            rung_fail(err, pool->failure.code == RUNG_ECONFIG ? RUNG_ECONFIG : RUNG_EUNAVAILABLE,
                      "pool.no_worker", "%s", pool->failure.message);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

int32_t rung_pool_new(const struct rung_pool_spec *spec, struct rung_pool **out,
                      struct rung_error *err)
{
    struct rung_pool *pool = rung_xcalloc(1, sizeof *pool);
    pool->spec = *spec;
    pool->arena = rung_arena_new();
    pool->failure = rung_error_init();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    make_workers(pool);
    int32_t status = pool->n_workers ? pool_setup_build(spec, pool->arena, &pool->setup, err)
                                     : rung_fail(err, RUNG_ECONFIG, "pool.empty",
                                                 "the pipeline has no workers: workers = ( { } );");
    if (status == RUNG_OK)
        status = start_thread(pool, err);
    if (status != RUNG_OK) {
        release(pool);
        return status;
    }
    status = await_first(pool, err);
    if (status != RUNG_OK) {
        rung_pool_free(pool);
        return status;
    }
    *out = pool;
    return RUNG_OK;
}

void rung_pool_free(struct rung_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_mutex_unlock(&pool->lock);
    wake(pool);
    pthread_join(pool->thread, NULL);
    close(pool->wake);
    release(pool);
}

/* ---- What the engine calls ---- */

uint32_t rung_pool_size(const struct rung_pool *pool)
{
    struct rung_pool *mine = (struct rung_pool *)pool; /* the lock is not part of what is const */
    pthread_mutex_lock(&mine->lock);
    uint32_t n = count(pool, POOL_FREE, POOL_DRAINING);
    pthread_mutex_unlock(&mine->lock);
    return n;
}

/* own and what it says of its device stay as they are once the pool was made. */

const char *rung_pool_device(const struct rung_pool *pool)
{
    return pool->own->device;
}

const char *rung_pool_plugin(const struct rung_pool *pool)
{
    return pool->own->plugin;
}

uint32_t rung_pool_sm_count(const struct rung_pool *pool)
{
    return pool->own->sm_count;
}

bool rung_pool_has(const struct rung_pool *pool, const char *plugin)
{
    struct rung_pool *mine = (struct rung_pool *)pool;
    pthread_mutex_lock(&mine->lock);
    bool found = any_may_have(pool, plugin);
    pthread_mutex_unlock(&mine->lock);
    return found;
}

static bool keep_line(void *ctx, const char *line)
{
    rung_buf_puts(ctx, line);
    rung_buf_putc(ctx, '\n');
    return true;
}

/* A bundle inside a message, or, when it is large, ahead of it in chunks. */
static void add_bundle(cJSON *message, const struct rung_bundle *which, struct rung_buf *lines)
{
    cJSON *bundle = rung_bundle_to_json(which);
    char *text = rung_json_line(bundle), sha256[RUNG_SHA256_HEX];
    size_t n = strlen(text);
    if (n <= INLINE_MAX) {
        cJSON_AddItemToObject(message, "bundle", bundle);
    } else {
        rung_sha256(text, n, sha256);
        rung_blob_send(sha256, text, n, keep_line, lines);
        cJSON_AddStringToObject(message, "bundle_sha256", sha256);
        cJSON_Delete(bundle);
    }
    free(text);
}

static void add_rival(cJSON *message, const struct rung_job *job, struct rung_buf *lines)
{
    cJSON *rival = cJSON_AddObjectToObject(message, "rival");
    rung_json_add_text(rival, "label", rung_text_of(job->rival_label ? job->rival_label : "rival"));
    if (job->rival_point)
        rung_json_add_text(rival, "point", rung_text_of(job->rival_point));
    add_bundle(rival, job->rival, lines);
}

static void write_job(const struct rung_job *job, uint64_t id, const char *label,
                      struct rung_buf *lines)
{
    cJSON *message = rung_message_new(RUNG_MSG_JOB);
    if (job->fresh)
        keep_line(lines, "{\"t\":\"renew\"}");
    rung_json_add_i64(message, "id", (int64_t)id);
    rung_json_add_text(message, "label", rung_text_of(label));
    rung_json_add_i64(message, "stages", job->stages | RUNG_STAGE_COMPILE);
    rung_json_add_i64(message, "occasions",
                      job->occasions ? job->occasions : 1u << RUNG_WHEN_ALWAYS);
    if (job->device)
        cJSON_AddTrueToObject(message, "named");
    if (job->point)
        rung_json_add_text(message, "point", rung_text_of(job->point));
    if (job->delta > 0)
        rung_json_add_f64(message, "delta", job->delta);
    add_bundle(message, job->bundle, lines);
    if (job->rival)
        add_rival(message, job, lines);
    char *line = rung_message_line(message);
    keep_line(lines, line);
    free(line);
}

static void await(struct rung_pool *pool, struct pool_job *job)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->cancelled || pool->closing)
        job->state = POOL_JOB_CANCELLED;
    else
        enqueue(pool, job);
    wake(pool);
    while (job->state == POOL_JOB_QUEUED || job->state == POOL_JOB_RUNNING)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static int32_t conclude(struct rung_pool *pool, struct pool_job *job, struct rung_arena *arena,
                        struct rung_outcome *out, struct rung_error *err)
{
    struct rung_error why = rung_error_init();
    if (job->state == POOL_JOB_CANCELLED)
        return rung_fail(err, RUNG_ECANCELLED, "pool.cancelled", "%s was cancelled", job->label);
    pthread_mutex_lock(&pool->lock);
    struct rung_error last = pool->failure;
    pthread_mutex_unlock(&pool->lock);
    if (job->state == POOL_JOB_FAILED)
        return rung_fail(err, RUNG_EUNAVAILABLE, "pool.no_worker", "no worker is left; %.900s",
                         last.message);
    if (job->result && rung_outcome_read(arena, job->result, out, &why) == RUNG_OK)
        return RUNG_OK;
    rung_outcome_lost(arena,
                      rung_arena_printf(arena, "%s: no worker could finish it; %s", job->label,
                                        job->result ? why.message : last.message),
                      out);
    return RUNG_OK;
}

static int32_t run_once(struct rung_pool *pool, const struct rung_job *job,
                        struct rung_arena *arena, struct rung_outcome *out, struct rung_error *err)
{
    const char *label = job->label ? job->label : "a job";
    struct pool_job mine = {
        .device = job->device,
        .label = rung_arena_strndup(arena, label, rung_utf8_cut(label, strlen(label), LABEL_MAX))};
    pthread_mutex_lock(&pool->lock);
    mine.id = ++pool->next_id;
    pthread_mutex_unlock(&pool->lock);
    write_job(job, mine.id, mine.label, &mine.lines);
    await(pool, &mine);
    rung_buf_free(&mine.lines);
    int32_t status = conclude(pool, &mine, arena, out, err);
    cJSON_Delete(mine.result);
    return status;
}

/* Whether a baseline took the executor down, so that others had no turn. */
static bool was_spared(const struct rung_outcome *outcome)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, rung_json_get(outcome->report, "baselines"))
    {
        if (rung_json_bool(entry, "crashed", false))
            return true;
    }
    return false;
}

int32_t rung_pool_run(struct rung_pool *pool, const struct rung_job *job, struct rung_arena *arena,
                      struct rung_outcome *out, struct rung_error *err)
{
    int32_t status = run_once(pool, job, arena, out, err);
    for (int again = 0; again < CRASHES_MAX && status == RUNG_OK && was_spared(out); again++) {
        cJSON_Delete(out->report);
        status = run_once(pool, job, arena, out, err);
    }
    return status;
}

void rung_pool_cancel(struct rung_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->cancelled = true;
    pthread_mutex_unlock(&pool->lock);
    wake(pool);
}
