#include "engine/run.h"
#include "base/die.h"
#include "base/status.h"
#include "engine/engine.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

/*
 * The first signal ends the run in order, the second at once. A handler may not take locks, so it
 * only leaves a mark; a thread acts on it.
 */
static void on_signal(int number)
{
    (void)number;
    if (++signals > 1)
        _exit(130);
}

static void *watch_signals(void *ctx)
{
    struct engine *e = ctx;
    while (!rung_cancel_requested(e->cancel)) {
        if (signals) {
            rung_cancel_request(e->cancel);
            pthread_mutex_lock(&e->lock);
            struct rung_pool *pool = e->pool;
            pthread_mutex_unlock(&e->lock);
            if (pool)
                rung_pool_cancel(pool);
            break;
        }
        usleep(50000);
    }
    return NULL;
}

static int exit_status(const struct rung_error *err)
{
    /* No key, no money left at the provider: the environment, not the pipeline. */
    if (strcmp(err->symbol, "llm.key") == 0 || strcmp(err->symbol, "llm.quota") == 0)
        return 3;
    switch (err->code) {
    case RUNG_OK:
        return 0;
    case RUNG_ECONFIG:
    case RUNG_EINVAL:
    case RUNG_ENOTFOUND:
    case RUNG_EMISUSE:
        return 2;
    default:
        return 3;
    }
}

static int32_t open_and_loop(struct engine *e, struct rung_error *err)
{
    int32_t status = engine_open(e, err);
    if (status)
        return status;
    e->progress = engine_progress_new(e);
    engine_say(e, "run %s", rung_journal_dir(e->journal));
    status = engine_start(e, err);
    if (status)
        return status;
    engine_say(e, "%u worker%s on %s", rung_pool_size(e->pool),
               rung_pool_size(e->pool) == 1 ? "" : "s", rung_pool_device(e->pool));
    engine_warn_rungs(e);
    return engine_loop(e, err);
}

static int run(struct engine *e)
{
    struct rung_error err = rung_error_init();
    pthread_t watcher;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    bool watching = pthread_create(&watcher, NULL, watch_signals, e) == 0;
    int32_t status = open_and_loop(e, &err);
    bool begun = e->pool != NULL;
    if (begun && !status)
        status = engine_final(e, &err);
    engine_progress_free(e->progress);
    e->progress = NULL;
    if (status)
        fprintf(stderr, "rung: %s\n", err.message);
    int code = begun ? engine_finish(e) : 0;
    if (status && begun)
        fprintf(stderr, "rung: go on with: rung run --resume %s\n", rung_journal_dir(e->journal));
    rung_cancel_request(e->cancel);
    if (watching)
        pthread_join(watcher, NULL);
    if (signals)
        return 130;
    return status ? exit_status(&err) : code;
}

int rung_run_main(const struct rung_run_options *options)
{
    struct engine e = {.options = options,
                       .arena = rung_arena_new(),
                       .registry = rung_registry_new(),
                       .data_dir = rung_data_dir(),
                       .cancel = rung_cancel_new()};
    e.state.arena = rung_arena_new();
    if (!e.arena || !e.state.arena)
        rung_die("out of memory");
    pthread_mutex_init(&e.lock, NULL);
    int code = run(&e);
    engine_close(&e);
    cJSON_Delete(e.final.json);
    engine_state_free(&e.state);
    pthread_mutex_destroy(&e.lock);
    rung_cancel_free(e.cancel);
    rung_registry_free(e.registry);
    rung_arena_free(e.arena);
    return code;
}
