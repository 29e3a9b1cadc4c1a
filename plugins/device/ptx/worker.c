/*
 * worker.c - see worker.h. A worker runs one gang after the other. A gang that loops on without an
 * end in sight stays where it is while others are started beside it, since it may wait for them;
 * when no more can be started and nothing changes any more, it has no end.
 */
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 64u       /* of fuel before another gang is started beside */
#define MAX_GANGS 1024u  /* side by side, a worker */
#define SAMPLE_BLOCKS 8u /* checked ones, spread over the grid, besides the first */
#define SAMPLE_BUDGET                                                                              \
    200000000u /* thread instructions after which no block is checked any more                     \
                */

struct worker {
    struct ptx_job *job;
    struct rung_fault fault;
    uint64_t failed_at; /* block number */
    uint64_t instructions, next_look;
    uint32_t prints, hot_line;
    struct ptx_gang *running, *unused;
    uint32_t n_running;
    int no_memory;
    /* For the search of loops without an end: Brent's method on ptx_block_hash. */
    uint64_t saved, power, age, matches;
    int searching, watching, stuck;
    pthread_t thread;
};

/* ---- Which blocks ---------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The i-th gang to run: all, in order or in one that the seed makes; or spread evenly with first,
 * middle and last. */
static uint64_t gang_number(const struct ptx_job *job, uint64_t i)
{
    const uint64_t n = job->n_gangs, all = job->n_clusters / job->gang_clusters;
    uint64_t step = n / 2 + 1 + job->seed % (n ? n : 1);

    if (n == all && job->seed && n > 2) {
        while (common_divisor(step, n) != 1)
            step++;
        return (uint64_t)(((unsigned __int128)i * step + job->seed) % n);
    }
    if (n == all || n < 2)
        return i;
    if (n >= 3 && i == n / 2)
        return all / 2;
    return (uint64_t)((unsigned __int128)i * (all - 1) / (n - 1));
}

/* Number in the grid of the block of this rank in this cluster. */
static uint64_t block_number(const struct ptx_exec *x, uint64_t cluster, uint32_t rank)
{
    const struct rung_dim3 *c = &x->cluster_dim, *g = &x->grid;
    const uint64_t nx = g->x / c->x, ny = g->y / c->y;
    const uint64_t bx = cluster % nx * c->x + rank % c->x;
    const uint64_t by = cluster / nx % ny * c->y + rank / c->x % c->y;
    const uint64_t bz = cluster / nx / ny * c->z + rank / c->x / c->y;

    return bx + g->x * (by + g->y * bz);
}

static int is_checked(const struct worker *k, uint64_t block)
{
    const struct ptx_job *job = k->job;
    const struct rung_dim3 *g = &job->common->grid;
    const uint64_t all = (uint64_t)g->x * g->y * g->z, step = all / SAMPLE_BLOCKS;

    if (job->checks != PTX_CHECK_SAMPLE)
        return job->checks == PTX_CHECK_ALL;
    return k->instructions < SAMPLE_BUDGET / job->n_workers &&
           (step < 2 || block % step == 0 || block + 1 == all);
}

/* ---- Gangs ----------------------------------------------------------------------------------- */

/* Starts the next gang of the grid; 0 when there is none left, -1 when memory is out. */
static int start_gang(struct worker *k)
{
    struct ptx_job *job = k->job;
    struct ptx_gang *g = k->unused;
    const uint64_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    const uint32_t size = job->gang_blocks / job->gang_clusters;

    if (i >= job->n_gangs)
        return 0;
    if (g)
        k->unused = g->next;
    else
        g = ptx_gang_new(job->common, job->gang_blocks, job->shared_bytes);
    if (!g)
        return -1;
    const uint64_t first = gang_number(job, i) * job->gang_clusters;
    for (uint32_t b = 0; b < g->n; b++) {
        const uint64_t block = block_number(job->common, first + b / size, b % size);

        g->contexts[b].x.fault = &k->fault;
        ptx_context_start(&g->contexts[b], block, job->seed, is_checked(k, block));
    }
    for (uint32_t c = 0; c < g->n / size; c++)
        g->clusters[c].arrived = g->clusters[c].phase = 0;
    g->n_live = g->n;
    g->next = k->running;
    k->running = g;
    k->n_running++;
    return 1;
}

/* May another gang be started beside those that run? */
static int has_room(const struct worker *k)
{
    const struct ptx_job *job = k->job;
    const uint64_t bytes = ptx_context_bytes(job->common, job->shared_bytes) * job->gang_blocks;

    return k->n_running < MAX_GANGS && (k->n_running + 1) * bytes <= job->max_context_bytes &&
           __atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->n_gangs;
}

/* One turn of a context, with the worker's budget in it. */
static int turn(struct worker *k, struct ptx_context *c)
{
    struct ptx_exec *x = &c->x;

    x->lane_instructions = k->instructions;
    x->next_look = k->next_look;
    x->prints = k->prints;
    x->watches = (uint32_t)k->watching;
    c->state = ptx_block_turn(x, x->turn_fuel != PTX_FUEL ? 1 : k->searching ? 4 : ROUNDS);
    k->instructions = x->lane_instructions;
    k->next_look = x->next_look;
    k->prints = x->prints;
    return c->state;
}

/* One turn of all contexts of a gang. Returns how many ended, or -1 on a fault. */
static int gang_turn(struct worker *k, struct ptx_gang *g)
{
    int ended = 0;

    for (uint32_t b = 0; b < g->n; b++) {
        struct ptx_context *c = &g->contexts[b];

        if (c->state == PTX_BLOCK_ENDED)
            continue;
        if (turn(k, c) == PTX_BLOCK_FAULT) {
            k->failed_at = c->block;
            return -1;
        }
        ended += c->state == PTX_BLOCK_ENDED;
    }
    g->n_live -= (uint32_t)ended;
    return ended;
}

/* One turn of everything that runs. Returns how many blocks ended, or -1 on a fault. */
static int pass(struct worker *k)
{
    struct ptx_gang **at = &k->running, *g;
    int ended = 0;

    while ((g = *at)) {
        const int n = gang_turn(k, g);

        if (n < 0)
            return -1;
        ended += n;
        if (g->n_live) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        g->next = k->unused;
        k->unused = g;
        k->n_running--;
    }
    return ended;
}

/* ---- Loops without an end -------------------------------------------------------------------- */

static void stop_search(struct worker *k)
{
    k->power = 1;
    k->age = k->matches = 0;
    k->watching = 0;
    if (k->stuck)
        __atomic_fetch_sub(&k->job->n_stuck, 1, __ATOMIC_RELAXED);
    k->stuck = 0;
}

/* The state of all that runs, and the changes to memory since the last call. */
static uint64_t state_of(struct worker *k, uint64_t *changes)
{
    uint64_t hash = k->n_running;

    *changes = 0;
    for (struct ptx_gang *g = k->running; g; g = g->next)
        for (uint32_t b = 0; b < g->n; b++) {
            struct ptx_exec *x = &g->contexts[b].x;

            if (g->contexts[b].state == PTX_BLOCK_ENDED)
                continue;
            hash = (hash ^ ptx_block_hash(x)) * 0x9e3779b97f4a7c15u;
            *changes += x->changes;
            x->changes = 0;
        }
    return hash;
}

/*
 * Called when a pass ended no block and no other can be started. The registers of all that runs
 * come back to a state that was saved, and nothing changed memory in between: then they will for
 * ever. That holds for the machine when all its workers are in this state.
 */
static int is_endless(struct worker *k)
{
    uint64_t changes;
    const uint64_t hash = state_of(k, &changes);

    if (k->watching && changes) { /* they come back, but memory moves on */
        k->watching = 0;
        k->saved = hash;
        k->power *= 16;
        k->age = k->matches = 0;
        return 0;
    }
    if (hash != k->saved) {
        if (++k->age >= k->power) {
            k->saved = hash;
            k->power *= 2;
            k->age = 0;
        }
        return 0;
    }
    k->age = 0;
    if (++k->matches < 3)
        return 0;
    if (!k->watching) {
        k->watching = 1;
        k->matches = 0;
        return 0;
    }
    if (!k->stuck)
        __atomic_fetch_add(&k->job->n_stuck, 1, __ATOMIC_RELAXED);
    k->stuck = 1;
    return __atomic_load_n(&k->job->n_stuck, __ATOMIC_RELAXED) ==
           __atomic_load_n(&k->job->n_alive, __ATOMIC_RELAXED);
}

/* The block to blame: one with threads that wait, else the first. */
static void blame(struct worker *k)
{
    struct ptx_context *found = NULL;

    for (struct ptx_gang *g = k->running; g; g = g->next)
        for (uint32_t b = 0; b < g->n; b++) {
            struct ptx_context *c = &g->contexts[b];

            if (c->state != PTX_BLOCK_ENDED && (!found || c->block < found->block))
                found = c;
        }
    k->failed_at = found->block;
    ptx_blame_endless(&found->x);
}

/* ---- Workers --------------------------------------------------------------------------------- */

/* Runs until no gang is left. Returns 0, or -1 on a fault or without memory. */
static int run_gangs(struct worker *k)
{
    int wants = 1;

    while (!__atomic_load_n(&k->job->stop, __ATOMIC_RELAXED)) {
        if (wants) {
            const int started = start_gang(k);

            if (started < 0 && !k->n_running) {
                k->no_memory = 1;
                return -1;
            }
            if (started <= 0 && !k->n_running)
                return 0;
            stop_search(k);
        }
        const int ended = pass(k);

        if (ended < 0)
            return -1;
        wants = !k->n_running || (!ended && has_room(k));
        k->searching = !ended && !wants;
        if (ended) {
            stop_search(k);
        } else if (!wants && is_endless(k)) {
            blame(k);
            return -1;
        }
    }
    return 0;
}

static void *work(void *of)
{
    struct worker *k = of;

    if (run_gangs(k))
        __atomic_store_n(&k->job->stop, 1, __ATOMIC_RELAXED);
    stop_search(k);
    __atomic_fetch_sub(&k->job->n_alive, 1, __ATOMIC_RELAXED);
    for (struct ptx_gang *lists[2] = {k->running, k->unused}, **l = lists; l < lists + 2; l++)
        while (*l) {
            struct ptx_gang *next = (*l)->next;

            ptx_gang_free(*l);
            *l = next;
        }
    return NULL;
}

/* The fault of the lowest block that failed, so that more workers rarely change the answer. */
static int take_fault(struct rung_fault *fault, const struct worker *workers, uint32_t n)
{
    const struct worker *first = NULL;
    const uint32_t size = fault->struct_size;
    int no_memory = 0;

    for (uint32_t i = 0; i < n; i++) {
        no_memory |= workers[i].no_memory;
        if (workers[i].fault.code[0] && (!first || workers[i].failed_at < first->failed_at))
            first = &workers[i];
    }
    if (first) {
        *fault = first->fault;
        fault->struct_size = size;
    }
    return !first && no_memory ? -1 : 0;
}

int ptx_run_job(struct ptx_job *job, struct rung_fault *fault)
{
    struct worker *workers = calloc(job->n_workers, sizeof *workers);
    uint32_t n_threads = 0;

    if (!workers)
        return -1;
    job->n_alive = job->n_workers;
    for (uint32_t i = 0; i < job->n_workers; i++) {
        workers[i].job = job;
        workers[i].prints = job->common->prints;
        workers[i].power = 1;
    }
    for (uint32_t i = 1; i < job->n_workers; i++, n_threads++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
            __atomic_fetch_sub(&job->n_alive, job->n_workers - i, __ATOMIC_RELAXED);
            break;
        }
    work(&workers[0]);
    for (uint32_t i = 1; i <= n_threads; i++)
        pthread_join(workers[i].thread, NULL);
    const int rc = take_fault(fault, workers, job->n_workers);
    free(workers);
    return rc;
}
