/*
 * launch.c - checks a launch, prepares workers, deals out blocks. Blocks are independent: with one
 * worker (the default) they run in order, so that a launch gives the same bits every time.
 */
#include "launch.h"

#include "counters.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKERS 64u
#define MAX_FRAMES ((uint64_t)1 << 30)

struct job {
    const struct ptx_program *program;
    const struct rung_launch *launch;
    const struct ptx_limits *limits;
    uint64_t grid_blocks, n_blocks; /* all, to run */
    uint64_t next;                  /* atomic: number of the next block to run */
    uint32_t stop;                  /* atomic: a worker has failed */
    uint32_t n_workers;
};

struct worker {
    struct job *job;
    struct ptx_exec x;
    struct rung_fault fault;
    uint64_t failed_at; /* block number */
    uint8_t *frames, *locals, *shared;
    pthread_t thread;
};

/* ---- Frames ---------------------------------------------------------------------------------- */

static uint32_t special_value(const struct ptx_warp *w, uint32_t special, uint32_t lane)
{
    const struct ptx_exec *x = w->x;
    const uint32_t linear = w->index * PTX_LANES + lane;

    switch (special) {
    case PTX_SR_TID_X:
        return linear % x->block.x;
    case PTX_SR_TID_Y:
        return linear / x->block.x % x->block.y;
    case PTX_SR_TID_Z:
        return linear / x->block.x / x->block.y;
    case PTX_SR_NTID_X:
        return x->block.x;
    case PTX_SR_NTID_Y:
        return x->block.y;
    case PTX_SR_NTID_Z:
        return x->block.z;
    case PTX_SR_CTAID_X:
        return x->at.x;
    case PTX_SR_CTAID_Y:
        return x->at.y;
    case PTX_SR_CTAID_Z:
        return x->at.z;
    case PTX_SR_NCTAID_X:
        return x->grid.x;
    case PTX_SR_NCTAID_Y:
        return x->grid.y;
    case PTX_SR_NCTAID_Z:
        return x->grid.z;
    case PTX_SR_LANEID:
        return lane;
    case PTX_SR_WARPID:
        return w->index;
    case PTX_SR_NWARPID:
        return 64;
    case PTX_SR_SMID:
        return x->at.x % x->sm_count;
    case PTX_SR_NSMID:
        return x->sm_count;
    case PTX_SR_MASK_EQ:
        return 1u << lane;
    case PTX_SR_MASK_LT:
        return (1u << lane) - 1;
    case PTX_SR_MASK_LE:
        return (1u << lane) | ((1u << lane) - 1);
    case PTX_SR_MASK_GT:
        return ~((1u << lane) | ((1u << lane) - 1));
    case PTX_SR_MASK_GE:
        return ~((1u << lane) - 1);
    case PTX_SR_DYNAMIC_SHARED:
        return x->shared_bytes;
    case PTX_SR_TOTAL_SHARED:
        return (uint32_t)x->shared.size;
    case PTX_SR_ONE:
        return 1;
    default:
        return 0;
    }
}

static uint64_t param_value(const struct ptx_exec *x, const struct ptx_fill *f)
{
    uint64_t v = 0;

    memcpy(&v, x->params + f->value, f->bytes);
    if (f->is_signed && f->bytes < 8)
        v = (uint64_t)((int64_t)(v << (64 - 8 * f->bytes)) >> (64 - 8 * f->bytes));
    return v;
}

static void fill_slot(struct ptx_warp *w, const struct ptx_fill *f)
{
    uint8_t *slot = w->frame + f->offset;
    uint64_t v = f->kind == PTX_FILL_PARAM ? param_value(w->x, f) : f->value;

    if (f->width == PTX_WP) {
        uint32_t mask = v ? PTX_ALL : 0;

        memcpy(slot, &mask, sizeof mask);
        return;
    }
    for (uint32_t i = 0; i < PTX_LANES; i++) {
        if (f->kind == PTX_FILL_SPECIAL || f->kind == PTX_FILL_BLOCK)
            v = special_value(w, f->special, i);
        if (f->width == PTX_W64)
            memcpy(slot + 8 * i, &v, 8);
        else
            memcpy(slot + 4 * i, &v, 4);
    }
}

/* Slots that hold for the launch, or those that each block needs anew. */
static void fill_frames(struct ptx_exec *x, int block)
{
    for (uint32_t i = 0; i < x->program->n_fills; i++) {
        const struct ptx_fill *f = &x->program->fills[i];
        int is_block = f->kind == PTX_FILL_BLOCK || f->kind == PTX_FILL_ZERO;

        for (uint32_t k = 0; is_block == block && k < x->n_warps; k++)
            fill_slot(&x->warps[k], f);
    }
}

/* ---- Workers --------------------------------------------------------------------------------- */

static void worker_end(struct worker *k)
{
    free(k->frames);
    free(k->locals);
    free(k->shared);
    free(k->x.warps);
    free(k->x.hints);
}

static uint64_t shared_size(const struct job *job)
{
    if (!job->launch->shared_bytes)
        return job->program->static_shared;
    return job->program->dynamic_offset + job->launch->shared_bytes;
}

static int worker_memory(struct worker *k, uint64_t frame, uint64_t shared)
{
    struct ptx_exec *x = &k->x;
    const uint64_t local = x->program->local_bytes * PTX_LANES;

    x->warps = aligned_alloc(64, sizeof *x->warps * x->n_warps);
    x->hints = calloc(x->program->n_hints + 1, sizeof *x->hints);
    k->frames = aligned_alloc(64, frame * x->n_warps);
    k->locals = calloc(x->n_warps, local ? local : 1);
    k->shared = calloc(1, shared ? shared : 1);
    if (!x->warps || !x->hints || !k->frames || !k->locals || !k->shared)
        return -1;
    memset(x->warps, 0, sizeof *x->warps * x->n_warps);
    memset(k->frames, 0, frame * x->n_warps);
    for (uint32_t i = 0; i < x->n_warps; i++) {
        x->warps[i].frame = k->frames + frame * i;
        x->warps[i].local = k->locals + local * i;
        x->warps[i].index = i;
        x->warps[i].x = x;
    }
    for (uint32_t i = 0; i <= x->program->n_hints; i++)
        x->hints[i] = &x->nowhere;
    return 0;
}

/* Fills what is the same for all workers of a launch, and allocates. */
static int worker_start(struct worker *k, struct job *job, const struct ptx_exec *common)
{
    const uint64_t shared = shared_size(job);
    struct ptx_exec *x = &k->x;

    *x = *common;
    k->job = job;
    x->fault = &k->fault;
    x->max_lane_instructions /= job->n_workers;
    if (worker_memory(k, (job->program->frame_bytes + 63) / 64 * 64, shared))
        return -1;
    x->nowhere = (struct ptx_segment){.base = UINT64_MAX};
    x->shared = (struct ptx_segment){.size = shared, .host = k->shared};
    x->shared_window =
        (struct ptx_segment){.base = PTX_SHARED_WINDOW, .size = shared, .host = k->shared};
    fill_frames(x, 0);
    return 0;
}

/* Number of the i-th block to run: all in order, or spread evenly with first, middle and last. */
static uint64_t block_number(const struct job *job, uint64_t i)
{
    const uint64_t n = job->n_blocks, all = job->grid_blocks;

    if (n == all || n < 2)
        return i;
    if (n >= 3 && i == n / 2)
        return all / 2;
    return (uint64_t)((unsigned __int128)i * (all - 1) / (n - 1));
}

/* Shared and local memory hold garbage when a block begins: NaN to floats, -1 to integers. */
static void forget_block(struct worker *k)
{
    memset(k->shared, 0xff, k->x.shared.size);
    memset(k->locals, 0xff, k->x.n_warps * k->x.program->local_bytes * PTX_LANES);
}

static void *work(void *of)
{
    struct worker *k = of;
    struct job *job = k->job;
    struct ptx_exec *x = &k->x;

    while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
        const uint64_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

        if (i >= job->n_blocks)
            break;
        const uint64_t b = block_number(job, i);
        x->at = (struct rung_dim3){(uint32_t)(b % x->grid.x), (uint32_t)(b / x->grid.x % x->grid.y),
                                   (uint32_t)(b / x->grid.x / x->grid.y)};
        fill_frames(x, 1);
        forget_block(k);
        if (ptx_run_block(x)) {
            k->failed_at = b;
            __atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int refuse(struct rung_fault *fault, const struct rung_launch *launch, const char *code,
                  const char *what, uint64_t has, uint64_t limit)
{
    snprintf(fault->code, sizeof fault->code, "%s", code);
    snprintf(fault->kernel, sizeof fault->kernel, "%s", launch->kernel->symbol);
    snprintf(fault->message, sizeof fault->message, "%s: %llu, the limit is %llu", what,
             (unsigned long long)has, (unsigned long long)limit);
    return -1;
}

static int check_launch(const struct job *job, struct rung_fault *fault)
{
    const struct rung_launch *l = job->launch;
    const struct ptx_program *p = job->program;
    const struct ptx_limits *limits = job->limits;
    const uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    const uint64_t warps = (threads + PTX_LANES - 1) / PTX_LANES;

    if (l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64 || !threads ||
        threads > limits->max_threads)
        return refuse(fault, l, "launch.error", "threads of a block", threads, limits->max_threads);
    if (l->grid.x > 0x7fffffffu)
        return refuse(fault, l, "launch.error", "grid in x", l->grid.x, 0x7fffffffu);
    if (l->grid.y > 65535 || l->grid.z > 65535)
        return refuse(fault, l, "launch.error", "grid in y or z",
                      l->grid.y > 65535 ? l->grid.y : l->grid.z, 65535);
    if (p->max_threads && threads > p->max_threads)
        return refuse(fault, l, "launch.error", "threads of a block (see __launch_bounds__)",
                      threads, p->max_threads);
    if (shared_size(job) > limits->max_shared)
        return refuse(fault, l, "launch.resources", "shared memory of a block in bytes",
                      shared_size(job), limits->max_shared);
    if (l->param_bytes < p->param_bytes || (p->param_bytes && !l->params))
        return refuse(fault, l, "launch.error", "bytes of parameters given, needed", l->param_bytes,
                      p->param_bytes);
    if (p->local_bytes > (512u << 10))
        return refuse(fault, l, "launch.resources", "local memory of a thread in bytes",
                      p->local_bytes, 512u << 10);
    if (warps * p->frame_bytes > MAX_FRAMES)
        return refuse(fault, l, "launch.resources", "registers of a block in bytes",
                      warps * p->frame_bytes, MAX_FRAMES);
    return 0;
}

/* ---- The launch ------------------------------------------------------------------------------ */

static int32_t no_memory(const struct rung_call *call)
{
    call->error->code = RUNG_ENOMEM;
    snprintf(call->error->symbol, sizeof call->error->symbol, "ptx.memory");
    snprintf(call->error->message, sizeof call->error->message,
             "no memory for the warps of a launch");
    return RUNG_ENOMEM;
}

static void take_counters(struct rung_counters *out, const struct ptx_counting *c,
                          const struct job *job)
{
    struct rung_counters sum = c->sum;
    const uint32_t known = out->struct_size < sizeof sum ? out->struct_size : (uint32_t)sizeof sum;

    sum.struct_size = out->struct_size;
    sum.grid_blocks = job->grid_blocks;
    sum.threads_per_block =
        (uint64_t)job->launch->block.x * job->launch->block.y * job->launch->block.z;
    memcpy(out, &sum, known);
}

/* The fault of the lowest block that failed, so that more workers rarely change the answer. */
static void take_fault(struct rung_fault *fault, const struct worker *workers, uint32_t n)
{
    const struct worker *first = NULL;
    const uint32_t size = fault->struct_size;

    for (uint32_t i = 0; i < n; i++)
        if (workers[i].fault.code[0] && (!first || workers[i].failed_at < first->failed_at))
            first = &workers[i];
    if (first) {
        *fault = first->fault;
        fault->struct_size = size;
    }
}

static int32_t run_workers(struct worker *workers, struct job *job, const struct ptx_exec *common)
{
    uint32_t n_started = 0, n_threads = 0;

    while (n_started < job->n_workers && !worker_start(&workers[n_started], job, common))
        n_started++;
    if (n_started == job->n_workers) {
        for (uint32_t i = 1; i < n_started; i++, n_threads++)
            if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                break;
        work(&workers[0]);
        for (uint32_t i = 1; i <= n_threads; i++)
            pthread_join(workers[i].thread, NULL);
    }
    for (uint32_t i = 0; i < n_started; i++)
        worker_end(&workers[i]);
    if (n_started < job->n_workers) {
        worker_end(&workers[n_started]);
        return no_memory(common->call);
    }
    return RUNG_OK;
}

static struct ptx_exec common_exec(const struct job *job, struct ptx_memory *memory,
                                   const struct ptx_isa *isa)
{
    const struct rung_launch *l = job->launch;
    const uint32_t threads = l->block.x * l->block.y * l->block.z;
    const uint64_t most =
        l->max_lane_instructions ? l->max_lane_instructions : job->limits->max_lane_instructions;

    return (struct ptx_exec){
        .program = job->program,
        .code = job->program->code,
        .isa = isa,
        .memory = memory,
        .params = l->params,
        .param_bytes = job->program->param_bytes,
        .n_threads = threads,
        .n_warps = (threads + PTX_LANES - 1) / PTX_LANES,
        .max_lane_instructions = most,
        .grid = l->grid,
        .block = l->block,
        .kernel = l->kernel->symbol,
        .prints = 64,
        .one_worker = job->n_workers == 1,
        .shared_bytes = l->shared_bytes,
        .sm_count = job->limits->sm_count,
    };
}

static int32_t cancelled(const struct rung_host *host, const struct rung_call *call)
{
    if (!call->cancel || !host->is_cancelled(host, call->cancel))
        return RUNG_OK;
    call->error->code = RUNG_ECANCELLED;
    snprintf(call->error->message, sizeof call->error->message, "cancelled during a launch");
    return RUNG_ECANCELLED;
}

int32_t ptx_launch(const struct rung_host *host, const struct rung_call *call,
                   struct ptx_memory *memory, const struct ptx_isa *isa,
                   const struct ptx_limits *limits, const struct ptx_program *program,
                   const struct rung_launch *launch, struct rung_fault *fault)
{
    struct job job = {.program = program, .launch = launch, .limits = limits};
    int32_t status;

    if (!launch->grid.x || !launch->grid.y || !launch->grid.z || check_launch(&job, fault))
        return RUNG_OK;
    job.grid_blocks = job.n_blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    if (launch->counters && launch->sample_blocks && launch->sample_blocks < job.n_blocks)
        job.n_blocks = launch->sample_blocks;
    job.n_workers = launch->counters ? 1 : limits->n_threads;
    if (job.n_workers > job.n_blocks)
        job.n_workers = (uint32_t)job.n_blocks;
    if (job.n_workers > MAX_WORKERS)
        job.n_workers = MAX_WORKERS;
    struct ptx_counting *counting = launch->counters ? ptx_counting_new() : NULL;
    struct worker *workers = calloc(job.n_workers, sizeof *workers);
    if ((launch->counters && !counting) || !workers) {
        ptx_counting_free(counting);
        free(workers);
        return no_memory(call);
    }
    struct ptx_exec common = common_exec(&job, memory, isa);
    common.host = host;
    common.call = call;
    common.counting = counting;
    status = run_workers(workers, &job, &common);
    if (!status)
        status = cancelled(host, call);
    if (!status)
        take_fault(fault, workers, job.n_workers);
    if (!status && counting)
        take_counters(launch->counters, counting, &job);
    ptx_counting_free(counting);
    free(workers);
    return status;
}
