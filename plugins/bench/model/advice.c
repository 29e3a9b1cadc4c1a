#include "advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_LAUNCHES = 4 };

struct text {
    char *out;
    size_t size, len;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list args;
    if (t->len + 1 >= t->size)
        return;
    va_start(args, format);
    int n = vsnprintf(t->out + t->len, t->size - t->len, format, args);
    va_end(args);
    if (n > 0)
        t->len = (size_t)n < t->size - t->len ? t->len + (size_t)n : t->size - 1;
}

static void add_time(struct text *t, double ns)
{
    if (ns >= 1e6)
        add(t, "%.3g ms", ns / 1e6);
    else
        add(t, "%.3g us", ns / 1e3);
}

static void add_bytes(struct text *t, double bytes)
{
    if (bytes >= 1e9)
        add(t, "%.3g GB", bytes / 1e9);
    else if (bytes >= 1e6)
        add(t, "%.3g MB", bytes / 1e6);
    else
        add(t, "%.3g kB", bytes / 1e3);
}

static void add_head(struct text *t, const struct prediction *p)
{
    add(t, "Modelled for %s (not measured; times within a factor 1.3 of each other are ties): ",
        p->gpu->name);
    add_time(t, p->time_ns);
    add(t, ", limited by %s.\n", limiter_words(p->limiter));
    if (p->floor_ns > 0) {
        add(t, "Floor of the task: ");
        add_time(t, p->floor_ns);
        add(t, " (");
        add_bytes(t, p->min_bytes);
        add(t, " at %.3g TB/s); this takes %.3g times that.\n", p->gpu->dram_bytes_per_s / 1e12,
            p->time_ns / p->floor_ns);
    }
    if (p->min_bytes > 0 && p->dram_bytes > 0) {
        add(t, "DRAM traffic: ");
        add_bytes(t, p->dram_bytes);
        add(t, " = %.2g times the least; L2 traffic: ", p->dram_bytes / p->min_bytes);
        add_bytes(t, p->l2_bytes);
        add(t, ".\n");
    }
}

static void add_launch_facts(struct text *t, const struct prediction *p, uint32_t i)
{
    const struct estimate *e = &p->launches[i];
    const struct rung_launch_facts *f = &p->run->facts[i];
    add(t, "Launch %u, %.80s: ", i + 1, p->run->kernels[i]);
    add_time(t, e->time_ns);
    add(t, " (");
    for (int k = 0; k < N_LIMITERS; k++) {
        add(t, "%s%s ", k ? ", " : "", limiter_name(k));
        add_time(t, e->ns[k]);
    }
    add(t, ").\n  grid %u x %u x %u, block %u x %u x %u, ", f->grid.x, f->grid.y, f->grid.z,
        f->block.x, f->block.y, f->block.z);
    if (f->registers)
        add(t, "%u registers", f->registers);
    else
        add(t, "registers not known");
    add(t, ", %u bytes of shared memory; ", f->shared_bytes);
    add(t, "%.0f blocks an SM at once (%.0f %% of its warps; bounded by %s), %.2g waves.\n",
        e->occupancy.blocks_per_sm, 100 * e->occupancy.share, e->occupancy.limit, e->waves);
}

/* Registers a thread with which one more block would fit. */
static double registers_for_more(const struct gpu *gpu, const struct estimate *e,
                                 const struct rung_launch_facts *f)
{
    double warps = ceil((double)f->block.x * f->block.y * f->block.z / 32);
    double need =
        ceil((e->occupancy.blocks_per_sm + 1) * warps / gpu->schedulers) * gpu->schedulers;
    return floor(gpu->registers_per_sm / need / 256) * 256 / 32;
}

static void advise_memory(struct text *t, const struct prediction *p, const struct estimate *e)
{
    if (e->sectors_per_line > 0 && e->sectors_per_line < 2 && e->lines_per_request > 4)
        add(t,
            "  - A warp's access to global memory touches %.1f lines of 128 bytes and uses %.1f of "
            "4 sectors "
            "of each: let neighbouring threads access neighbouring elements.\n",
            e->lines_per_request, e->sectors_per_line);
    if (e->lines_per_request > 0 && e->lines_per_request <= 1.25 && e->sectors_per_line > 3 &&
        e->global_share > 0.1 && (e->limiter == LIMIT_LSU || e->limiter == LIMIT_ISSUE))
        add(t, "  - Each access moves one line a warp: 16-byte vector accesses (float4) need a "
               "quarter of the "
               "instructions.\n");
    if (e->wavefronts_per_request > 4.5)
        add(t, "  - Shared memory takes %.1f cycles an access: bank conflicts; pad or swizzle.\n",
            e->wavefronts_per_request);
    if (e->reread_bytes > 0.1 * e->dram_bytes)
        add(t,
            "  - A block reads its data %.2g times and no cache holds them (about %.0f %% of the "
            "DRAM "
            "traffic): keep them in registers or shared memory, or make fewer passes.\n",
            e->reread, 100 * e->reread_bytes / e->dram_bytes);
    else if (p->min_bytes > 0 && e->dram_bytes > 1.3 * p->min_bytes)
        add(t,
            "  - It moves %.2g times the task's least bytes: blocks fetch the same data again.\n",
            e->dram_bytes / p->min_bytes);
}

static void advise_parallelism(struct text *t, const struct prediction *p, const struct estimate *e,
                               const struct rung_launch_facts *f)
{
    if (e->grid_blocks < p->gpu->sm_count && e->time_ns > 2 * e->ns[LIMIT_LAUNCH])
        add(t, "  - Only %.0f of %.0f SMs have a block: split the work finer.\n", e->active_sms,
            p->gpu->sm_count);
    else if (e->waves > 1 && e->waves < 3 && ceil(e->waves) / e->waves > 1.25)
        add(t,
            "  - The last wave is mostly empty (%.2f waves): another grid size would use the SMs "
            "better.\n",
            e->waves);
    if (e->latency_bound && e->limiter == LIMIT_DRAM)
        add(t, "  - Too few loads are in flight for the bandwidth: more warps, wider loads, or "
               "several "
               "independent loads a thread.\n");
    if (e->occupancy.share < 0.5 && e->occupancy.blocks_per_sm > 0 && e->latency_bound &&
        e->occupancy.limit[0] == 'r')
        add(t, "  - At most %.0f registers a thread would give %.0f blocks an SM.\n",
            registers_for_more(p->gpu, e, f), e->occupancy.blocks_per_sm + 1);
    if (e->occupancy.blocks_per_sm < 1)
        add(t, "  - Not one block fits on an SM of this GPU: fewer registers, threads or bytes of "
               "shared memory.\n");
    if (f->spill_bytes)
        add(t,
            "  - Registers spill (%u bytes of spill code a thread): less unrolling or fewer live "
            "values.\n",
            f->spill_bytes);
    if (e->limiter == LIMIT_LAUNCH && p->n_launches > 1)
        add(t, "  - The launch costs more than its work: fuse it with its neighbours.\n");
    if (e->limiter == LIMIT_ISSUE)
        add(t, "  - Instructions are the limit: fewer index computations, hoisted invariants, "
               "wider accesses.\n");
}

size_t advice_write(const struct prediction *p, char *out, size_t size)
{
    struct text t = {out, size, 0};
    out[0] = 0;
    add_head(&t, p);
    char told[64] = {0};
    for (int k = 0; k < MOST_LAUNCHES && k < (int)p->n_launches; k++) {
        uint32_t at = UINT32_MAX;
        for (uint32_t i = 0; i < p->n_launches && i < sizeof told; i++)
            if (!told[i] && (at == UINT32_MAX || p->launches[i].time_ns > p->launches[at].time_ns))
                at = i;
        if (at == UINT32_MAX)
            break;
        told[at] = 1;
        add_launch_facts(&t, p, at);
        advise_memory(&t, p, &p->launches[at]);
        advise_parallelism(&t, p, &p->launches[at], &p->run->facts[at]);
    }
    if (p->n_launches > MOST_LAUNCHES)
        add(&t, "(%u cheaper launches not shown)\n", p->n_launches - MOST_LAUNCHES);
    return t.len;
}
