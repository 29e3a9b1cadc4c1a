/*
 * The model. With the weights below, max(issue, LSU, L2, DRAM) ordered 11 published SGEMM kernels
 * with a Spearman correlation of 0.87 and all pairs that differ by 1.5x right (notes of the
 * project); adding a general latency term made that worse, so latency counts only where too few
 * loads are in flight.
 */
#include "estimate.h"

#include <math.h>

/* Warp instructions of a kernel whose spills are executed once: longer runs loop over them. */
#define SPILL_SPAN 1000.0
/* Warps a scheduler needs to issue every cycle: instruction-level parallelism covers the rest. */
#define WARPS_TO_ISSUE 1.5
/* Shares of blocks' common data that L2 loses between them, and of re-read data: estimates. */
#define SHARED_LOSS 0.25
#define MOST_REREADS 3.0

static const char *const names[N_LIMITERS] = {"dram", "l2", "lsu", "issue", "launch"};
static const char *const words[N_LIMITERS] = {"DRAM bandwidth", "L2 bandwidth", "load/store units",
                                              "instruction issue", "launch overhead"};

const char *limiter_name(int limiter)
{
    return names[limiter];
}

const char *limiter_words(int limiter)
{
    return words[limiter];
}

static double least(double a, double b, const char *what, const char **limit)
{
    if (b < a)
        *limit = what;
    return b < a ? b : a;
}

/* Hopper tuning guide and cuda_occupancy.h: registers come in units of 256 a warp, shared memory of
 * 128. */
struct occupancy occupancy_of(const struct gpu *gpu, const struct rung_launch_facts *facts)
{
    double threads = (double)facts->block.x * facts->block.y * facts->block.z;
    double warps = fmax(1, ceil(threads / 32));
    double registers = ceil((facts->registers ? facts->registers : 32) * 32.0 / 256) * 256;
    double shared = ceil(facts->shared_bytes / 128.0) * 128 + gpu->shared_reserved;
    struct occupancy o = {.limit = "warps"};
    double warps_by_registers =
        floor(gpu->registers_per_sm / registers / gpu->schedulers) * gpu->schedulers;
    o.blocks_per_sm = floor(gpu->warps_per_sm / warps);
    o.blocks_per_sm = least(o.blocks_per_sm, gpu->blocks_per_sm, "blocks", &o.limit);
    o.blocks_per_sm =
        least(o.blocks_per_sm, floor(warps_by_registers / warps), "registers", &o.limit);
    o.blocks_per_sm =
        least(o.blocks_per_sm, floor(gpu->shared_per_sm / shared), "shared memory", &o.limit);
    o.share = o.blocks_per_sm * warps / gpu->warps_per_sm;
    return o;
}

/* How the grid lies on the SMs. */
struct spread {
    double blocks;         /* of the grid */
    double scale;          /* from the counted blocks to the grid */
    double active_sms;     /* with at least one block */
    double most;           /* blocks of the SM that has most */
    double resident_warps; /* an active SM, at once */
};

static struct spread spread_of(const struct gpu *gpu, const struct rung_counters *c,
                               const struct occupancy *o)
{
    struct spread s = {.blocks = (double)c->grid_blocks};
    s.scale = c->blocks ? s.blocks / (double)c->blocks : 0;
    s.active_sms = fmin(s.blocks, gpu->sm_count);
    s.most = ceil(s.blocks / gpu->sm_count);
    s.resident_warps =
        fmin(fmax(o->blocks_per_sm, 1), s.most) * ceil((double)c->threads_per_block / 32);
    return s;
}

static double requests_global(const struct rung_counters *c)
{
    return (double)c->global_loads + (double)c->global_stores + (double)c->global_atomics;
}

static double requests_shared(const struct rung_counters *c)
{
    return (double)c->shared_loads + (double)c->shared_stores;
}

/* Spill accesses of all counted warps; ptxas tells bytes in the code, not how often they run. */
static double spill_requests(const struct rung_counters *c, const struct rung_launch_facts *facts)
{
    double warps = (double)c->blocks * ceil((double)c->threads_per_block / 32);
    double span = warps > 0 ? (double)c->warp_instructions / warps / SPILL_SPAN : 0;
    return facts->spill_bytes / 4.0 * warps * fmax(1, span);
}

/* Cycles of one SM's issue slots and pipes for all counted blocks. */
static double issue_cycles(const struct gpu *gpu, const struct rung_counters *c, double local)
{
    double full = (double)c->warp_fp32 + (double)c->warp_fp64 + (double)c->warp_special +
                  (double)c->warp_tensor + (double)c->warp_branch + (double)c->warp_barrier +
                  requests_global(c) + requests_shared(c) + local;
    double cheap =
        fmax(0, (double)c->warp_instructions - full); /* integer, moves: PTX has more than SASS */
    double slots = (full + 0.5 * cheap) / gpu->schedulers;
    slots = fmax(slots, (double)c->warp_special * 32 / gpu->special_lanes);
    slots = fmax(slots, (double)c->warp_fp64 * 32 / gpu->fp64_lanes);
    return fmax(slots, (double)c->warp_tensor * gpu->tensor_cycles);
}

static double lsu_cycles(const struct rung_counters *c, double local)
{
    double requests = requests_global(c) + requests_shared(c) + local;
    return fmax(2 * requests, (double)c->shared_wavefronts + (double)c->global_lines + local);
}

/* Share of what is read again that a cache of `room` bytes no longer holds. */
static double loss(double room, double bytes)
{
    return bytes > room && bytes > 0 ? 1 - fmax(0, room) / bytes : 0;
}

/* Traffic of the whole grid, in bytes. */
struct traffic {
    double l2_read, l2_write, dram_read, dram_write, again;
};

static struct traffic traffic_of(const struct gpu *gpu, const struct rung_counters *c,
                                 const struct rung_launch_facts *facts, const struct occupancy *o,
                                 const struct spread *s, double footprint)
{
    double read = 32 * (double)c->unique_sectors_read * s->scale;
    double asked = 32 * (double)c->global_sectors_read * s->scale;
    double block = s->blocks > 0 ? read / s->blocks : 0,
           held = fmin(fmax(o->blocks_per_sm, 1), s->most);
    /* A block whose data outgrows its share of L1 fetches them again on each pass over them. */
    double again = fmin(fmax(0, asked - read), MOST_REREADS * read) *
                   loss(gpu->l1_bytes - held * facts->shared_bytes, block * held);
    double known = footprint > 0 ? fmin(read, footprint) : read;
    double again_dram = again * loss(gpu->l2_bytes, fmin(block * held * s->active_sms, known));
    struct traffic t = {.l2_read = read + again,
                        .l2_write = 32 * (double)c->global_sectors_written * s->scale,
                        .dram_write = 32 * (double)c->unique_sectors_written * s->scale,
                        .again = again_dram};
    /* What several blocks read is fetched once, and again where L2 is too small to keep it. */
    t.dram_read = known + again_dram + SHARED_LOSS * (read - known) * loss(gpu->l2_bytes, known);
    return t;
}

/* Little's law: bytes a second that the loads in flight can bring, at most `peak`. */
static double reachable(const struct gpu *gpu, const struct rung_counters *c,
                        const struct spread *s, double latency, double peak, int *short_of)
{
    if (!c->global_loads || !c->global_sectors_read)
        return peak;
    double request = 32 * (double)c->global_sectors_read / (double)c->global_loads;
    double flight = s->active_sms * s->resident_warps * request * gpu->loads_in_flight;
    *short_of |= flight / latency < peak;
    return fmin(peak, flight / latency);
}

static void describe(const struct rung_counters *c, struct estimate *out)
{
    double sectors = (double)c->global_sectors_read + (double)c->global_sectors_written;
    double global = requests_global(c), shared = requests_shared(c);
    if (c->global_lines)
        out->sectors_per_line = sectors / (double)c->global_lines;
    if (global > 0)
        out->lines_per_request = (double)c->global_lines / global;
    if (c->warp_instructions)
        out->global_share = global / (double)c->warp_instructions;
    if (shared > 0)
        out->wavefronts_per_request = (double)c->shared_wavefronts / shared;
    if (c->unique_sectors_read)
        out->reread = (double)c->global_sectors_read / (double)c->unique_sectors_read;
}

void estimate_launch(const struct gpu *gpu, const struct rung_counters *c,
                     const struct rung_launch_facts *facts, double footprint, double resident,
                     struct estimate *out)
{
    *out = (struct estimate){.occupancy = occupancy_of(gpu, facts)};
    struct spread s = spread_of(gpu, c, &out->occupancy);
    struct traffic t = traffic_of(gpu, c, facts, &out->occupancy, &s, footprint);
    t.dram_read *= 1 - resident;
    double local = (double)c->local_loads + (double)c->local_stores + spill_requests(c, facts);
    double per_sm = c->blocks ? s.most / (double)c->blocks : 0, cycle = 1e9 / gpu->clock_hz;
    double fed = fmin(1, s.resident_warps / (gpu->schedulers * WARPS_TO_ISSUE));
    out->ns[LIMIT_ISSUE] = fed > 0 ? issue_cycles(gpu, c, local) * per_sm * cycle / fed : 0;
    out->ns[LIMIT_LSU] = lsu_cycles(c, local) * per_sm * cycle;
    out->l2_bytes = t.l2_read + t.l2_write;
    out->dram_bytes = t.dram_read + t.dram_write;
    out->reread_bytes = t.again;
    double l2 = fmin(gpu->l2_bytes_per_s, s.active_sms * gpu->sm_bytes_per_cycle * gpu->clock_hz);
    if (out->l2_bytes > 0)
        out->ns[LIMIT_L2] = 1e9 * out->l2_bytes / l2;
    double peak = gpu->dram_bytes_per_s * gpu->dram_efficiency;
    double reads = reachable(gpu, c, &s, gpu->dram_latency_s, peak, &out->latency_bound);
    if (out->dram_bytes > 0)
        out->ns[LIMIT_DRAM] = 1e9 * fmax(out->dram_bytes / peak, t.dram_read / reads);
    out->ns[LIMIT_LAUNCH] = 1e9 * gpu->launch_s;
    for (int i = 0; i < LIMIT_LAUNCH; i++)
        if (out->ns[i] > out->ns[out->limiter])
            out->limiter = i;
    out->time_ns = out->ns[out->limiter] + out->ns[LIMIT_LAUNCH];
    if (out->ns[LIMIT_LAUNCH] > out->ns[out->limiter])
        out->limiter = LIMIT_LAUNCH;
    out->grid_blocks = s.blocks;
    out->active_sms = s.active_sms;
    out->waves = s.blocks / (gpu->sm_count * fmax(out->occupancy.blocks_per_sm, 1));
    describe(c, out);
}

double floor_ns(const struct gpu *gpu, const struct rung_work *work, uint32_t precision)
{
    double peak = gpu->fp32_flops;
    if (precision == RUNG_PRECISION_FP64)
        peak = gpu->fp64_flops;
    else if (precision == RUNG_PRECISION_TF32)
        peak = gpu->tf32_flops;
    else if (precision == RUNG_PRECISION_FP16 || precision == RUNG_PRECISION_BF16)
        peak = gpu->fp16_flops;
    else if (precision == RUNG_PRECISION_EXACT)
        return 1e9 * work->min_bytes / gpu->dram_bytes_per_s;
    return 1e9 * fmax(work->min_bytes / gpu->dram_bytes_per_s, work->flops / peak);
}
