/*
 * launch.c - checks a launch and makes a job of it. Blocks are independent: with one worker (the
 * default) they run in order, so that a launch gives the same bits every time.
 */
#include "launch.h"

#include "counters.h"
#include "worker.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_FRAMES ((uint64_t)1 << 30)
#define MAX_CONTEXTS                                                                               \
    ((uint64_t)2 << 30) /* bytes of all blocks that have started, in all workers                   \
                         */
#define MAX_CLUSTER 16u
#define FUEL_TOGETHER 256 /* back-edges of a turn of blocks that wait for each other by looping */
/* Of a multiprocessor: how many blocks of a cooperative launch it takes. */
#define SM_THREADS 2048u
#define SM_BLOCKS 32u
#define SM_SHARED 233472u
#define SM_REGISTERS 65536u
#define BLOCK_SHARED 1024u /* that the system takes */

struct plan {
    const struct ptx_program *program;
    const struct rung_launch *launch;
    const struct ptx_limits *limits;
    struct rung_fault *fault;
    struct rung_dim3 cluster;
    uint64_t threads, shared;
    int is_cooperative;
};

static const char *kernel_name(const struct rung_launch *l)
{
    return l->kernel->expression ? l->kernel->expression : l->kernel->symbol;
}

static int refuse(const struct plan *p, const char *code, const char *what, uint64_t has,
                  uint64_t limit)
{
    struct rung_fault *fault = p->fault;

    snprintf(fault->code, sizeof fault->code, "%s", code);
    snprintf(fault->kernel, sizeof fault->kernel, "%s", kernel_name(p->launch));
    snprintf(fault->message, sizeof fault->message, "%s: %llu, the limit is %llu", what,
             (unsigned long long)has, (unsigned long long)limit);
    return -1;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int check_block(const struct plan *p)
{
    const struct rung_launch *l = p->launch;
    const uint64_t threads = p->threads, warps = (threads + PTX_LANES - 1) / PTX_LANES;
    const struct ptx_program *k = p->program;

    if (l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64 || !threads ||
        threads > p->limits->max_threads)
        return refuse(p, "launch.error", "threads of a block", threads, p->limits->max_threads);
    if (k->max_threads && threads > k->max_threads)
        return refuse(p, "launch.error", "threads of a block (see __launch_bounds__)", threads,
                      k->max_threads);
    if (p->shared > p->limits->max_shared)
        return refuse(p, "launch.resources", "shared memory of a block in bytes", p->shared,
                      p->limits->max_shared);
    if (l->param_bytes < k->param_bytes || (k->param_bytes && !l->params))
        return refuse(p, "launch.error", "bytes of parameters given, needed", l->param_bytes,
                      k->param_bytes);
    if (k->local_bytes > (512u << 10))
        return refuse(p, "launch.resources", "local memory of a thread in bytes", k->local_bytes,
                      512u << 10);
    if (warps * k->frame_bytes > MAX_FRAMES)
        return refuse(p, "launch.resources", "registers of a block in bytes",
                      warps * k->frame_bytes, MAX_FRAMES);
    return 0;
}

static int check_grid(const struct plan *p)
{
    const struct rung_dim3 *g = &p->launch->grid, *c = &p->cluster;
    const uint64_t blocks = (uint64_t)c->x * c->y * c->z;

    if (g->x > 0x7fffffffu)
        return refuse(p, "launch.error", "grid in x", g->x, 0x7fffffffu);
    if (g->y > 65535 || g->z > 65535)
        return refuse(p, "launch.error", "grid in y or z", g->y > 65535 ? g->y : g->z, 65535);
    if (c->x > MAX_CLUSTER || c->y > MAX_CLUSTER || c->z > MAX_CLUSTER || blocks > MAX_CLUSTER)
        return refuse(p, "launch.error", "blocks of a cluster", blocks, MAX_CLUSTER);
    if (g->x % c->x || g->y % c->y || g->z % c->z)
        return refuse(p, "launch.error",
                      "the grid is not a multiple of the cluster; blocks of the grid, of a cluster",
                      (uint64_t)g->x * g->y * g->z, blocks);
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* All blocks of a cooperative launch must be resident at once. */
static int check_resident(const struct plan *p, uint64_t context_bytes)
{
    const struct rung_dim3 *g = &p->launch->grid;
    const uint64_t blocks = (uint64_t)g->x * g->y * g->z;
    const uint64_t threads = (p->threads + PTX_LANES - 1) / PTX_LANES * PTX_LANES;
    const uint64_t registers = p->launch->kernel->registers * threads;
    uint64_t most = least(SM_BLOCKS, SM_THREADS / threads);

    most = least(most, SM_SHARED / (p->shared + BLOCK_SHARED));
    if (registers)
        most = least(most, SM_REGISTERS / registers);
    if (blocks > most * p->limits->sm_count)
        return refuse(p, "launch.resources",
                      "blocks of a cooperative launch, which must all be resident at once", blocks,
                      most * p->limits->sm_count);
    if (blocks * context_bytes > MAX_CONTEXTS)
        return refuse(p, "device.memory", "bytes for all blocks of a cooperative launch",
                      blocks * context_bytes, MAX_CONTEXTS);
    return 0;
}

/* ---- The launch ------------------------------------------------------------------------------ */

static struct plan make_plan(const struct ptx_program *program, const struct rung_launch *l,
                             const struct ptx_limits *limits, struct rung_fault *fault)
{
    struct plan p = {.program = program, .launch = l, .limits = limits, .fault = fault};
    const uint32_t *code = program->cluster;
    const int is_new = l->struct_size >= offsetof(struct rung_launch, flags) + sizeof l->flags;

    p.threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    p.shared = l->shared_bytes ? program->dynamic_offset + l->shared_bytes : program->static_shared;
    p.is_cooperative = is_new && l->flags & RUNG_LAUNCH_COOPERATIVE;
    if (is_new)
        p.cluster = l->cluster;
    if (!p.cluster.x && !p.cluster.y && !p.cluster.z)
        p.cluster = (struct rung_dim3){code[0], code[1], code[2]};
    p.cluster.x += !p.cluster.x;
    p.cluster.y += !p.cluster.y;
    p.cluster.z += !p.cluster.z;
    return p;
}

static struct ptx_exec common_exec(const struct plan *p)
{
    const struct rung_launch *l = p->launch;
    const int together = p->is_cooperative || p->cluster.x * p->cluster.y * p->cluster.z > 1;

    return (struct ptx_exec){
        .program = p->program,
        .code = p->program->code,
        .params = l->params,
        .param_bytes = p->program->param_bytes,
        .n_threads = (uint32_t)p->threads,
        .n_warps = (uint32_t)(p->threads + PTX_LANES - 1) / PTX_LANES,
        .max_lane_instructions =
            l->max_lane_instructions ? l->max_lane_instructions : p->limits->max_lane_instructions,
        .grid = l->grid,
        .block = l->block,
        .cluster_dim = p->cluster,
        .is_cooperative = (uint32_t)p->is_cooperative,
        .turn_fuel = together ? FUEL_TOGETHER : PTX_FUEL,
        .kernel = kernel_name(l),
        .prints = 64,
        .shared_bytes = l->shared_bytes,
        .sm_count = p->limits->sm_count,
    };
}

static struct ptx_job make_job(const struct plan *p)
{
    const struct rung_launch *l = p->launch;
    const uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    const uint32_t size = p->cluster.x * p->cluster.y * p->cluster.z;
    struct ptx_job job = {.shared_bytes = p->shared,
                          .n_clusters = blocks / size,
                          .n_gangs = blocks / size,
                          .gang_blocks = size,
                          .gang_clusters = 1,
                          .checks = l->counters ? PTX_CHECK_OFF : p->limits->checks,
                          .seed = p->limits->seed,
                          .n_workers = p->limits->n_threads};

    if (p->is_cooperative) {
        job.n_gangs = 1;
        job.gang_blocks = (uint32_t)blocks;
        job.gang_clusters = (uint32_t)(blocks / size);
    } else if (l->counters && l->sample_blocks && l->sample_blocks < job.n_gangs) {
        job.n_gangs = l->sample_blocks;
    }
    if (l->counters)
        job.n_workers = 1;
    if (job.n_workers > job.n_gangs)
        job.n_workers = (uint32_t)job.n_gangs;
    if (job.n_workers > PTX_MAX_WORKERS)
        job.n_workers = PTX_MAX_WORKERS;
    job.max_context_bytes = MAX_CONTEXTS / job.n_workers;
    return job;
}

static int32_t no_memory(const struct rung_call *call)
{
    call->error->code = RUNG_ENOMEM;
    snprintf(call->error->symbol, sizeof call->error->symbol, "ptx.memory");
    snprintf(call->error->message, sizeof call->error->message,
             "no memory for the warps of a launch");
    return RUNG_ENOMEM;
}

static void take_counters(const struct rung_launch *l, const struct ptx_counting *c)
{
    struct rung_counters sum = c->sum, *out = l->counters;
    const uint32_t known = out->struct_size < sizeof sum ? out->struct_size : (uint32_t)sizeof sum;

    sum.struct_size = out->struct_size;
    sum.grid_blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    sum.threads_per_block = (uint64_t)l->block.x * l->block.y * l->block.z;
    memcpy(out, &sum, known);
}

static int32_t cancelled(const struct rung_host *host, const struct rung_call *call)
{
    if (!call->cancel || !host->is_cancelled(host, call->cancel))
        return RUNG_OK;
    call->error->code = RUNG_ECANCELLED;
    snprintf(call->error->message, sizeof call->error->message, "cancelled during a launch");
    return RUNG_ECANCELLED;
}

/* The words that a grid-wide barrier of cooperative groups works with, zero at the start. */
static struct ptx_buffer *make_workspace(const struct plan *p, struct ptx_memory *memory,
                                         struct ptx_exec *common)
{
    struct ptx_buffer *b =
        p->is_cooperative ? ptx_buffer_new(memory, 64, 64, "the grid's workspace") : NULL;

    common->workspace = b ? b->segment.base : 0;
    return b;
}

static int32_t run(const struct plan *p, struct ptx_memory *memory, struct ptx_exec *common)
{
    struct ptx_job job = make_job(p);
    struct ptx_counting *counting = p->launch->counters ? ptx_counting_new() : NULL;
    struct ptx_buffer *workspace = make_workspace(p, memory, common);
    int rc = -1;

    common->counting = counting;
    common->one_worker = job.n_workers == 1;
    common->max_lane_instructions /= job.n_workers;
    job.common = common;
    if ((counting || !p->launch->counters) && (workspace || !p->is_cooperative))
        rc = ptx_run_job(&job, p->fault);
    if (!rc && counting)
        take_counters(p->launch, counting);
    if (workspace)
        ptx_buffer_free(workspace);
    ptx_counting_free(counting);
    return rc;
}

int32_t ptx_launch(const struct rung_host *host, const struct rung_call *call,
                   struct ptx_memory *memory, const struct ptx_isa *isa,
                   const struct ptx_limits *limits, const struct ptx_program *program,
                   const struct rung_launch *launch, struct rung_fault *fault)
{
    const struct plan p = make_plan(program, launch, limits, fault);
    struct ptx_exec common = common_exec(&p);

    common.host = host;
    common.call = call;
    common.memory = memory;
    common.isa = isa;
    if (!launch->grid.x || !launch->grid.y || !launch->grid.z || check_block(&p) || check_grid(&p))
        return RUNG_OK;
    if (p.is_cooperative && check_resident(&p, ptx_context_bytes(&common, p.shared)))
        return RUNG_OK;
    if (run(&p, memory, &common)) {
        memset(fault->code, 0, sizeof fault->code);
        return no_memory(call);
    }
    return cancelled(host, call);
}
