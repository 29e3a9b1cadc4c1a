/*
 * timer "model": a time for a GPU that is not there. Runs the variant with counters on a few
 * sampled blocks of each launch, at the full size of the bench shape, and scales. Its results are
 * of the kind RUNG_TIME_MODELLED and never anything else. The instance holds the GPU's description
 * only.
 */
#include "advice.h"

#include <rung/timer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAUNCHES = 4096, ADVICE_BYTES = 8192, PATH_BYTES = 4096 };
#define LONG_BLOCK 5e6 /* warp instructions; about 0.2 s of interpreting */

struct timer {
    const struct rung_host *host;
    char path[PATH_BYTES];
    uint32_t sample_blocks;
    struct gpu gpu;
};

static int32_t fail(struct rung_error *err, int32_t code, const char *symbol, const char *message)
{
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    snprintf(err->message, sizeof err->message, "%s", message);
    return code;
}

/* Sums over the plan; the limiter is the one whose launches take most time. */
static void sum_up(struct prediction *p)
{
    double share[N_LIMITERS] = {0};
    for (uint32_t i = 0; i < p->n_launches; i++) {
        const struct estimate *e = &p->launches[i];
        share[e->limiter] += e->time_ns;
        p->time_ns += e->time_ns;
        p->dram_bytes += e->dram_bytes;
        p->l2_bytes += e->l2_bytes;
    }
    for (int k = 0; k < N_LIMITERS; k++)
        if (share[k] > share[p->limiter])
            p->limiter = k;
    /* Sampled blocks can mislead; nothing is faster than the task's floor. */
    if (p->time_ns < p->floor_ns) {
        p->time_ns = p->floor_ns;
        p->limiter = LIMIT_DRAM;
    }
}

static int32_t predict(struct timer *self, struct rung_call *call, const struct rung_run *run,
                       struct prediction *p)
{
    struct estimate *launches = self->host->alloc(
        self->host, call->arena, ((uint64_t)run->n_counters + 1) * sizeof *launches, 16);
    if (!launches)
        return fail(call->error, RUNG_ENOMEM, "model.memory", "no room for the estimates");
    p->gpu = &self->gpu;
    p->run = run;
    p->launches = launches;
    p->n_launches = run->n_counters;
    for (uint32_t i = 0; i < run->n_counters; i++) {
        double resident =
            i && p->min_bytes > 0 ? fmax(0, 1 - p->min_bytes / self->gpu.l2_bytes) : 0;
        estimate_launch(&self->gpu, &run->counters[i], &run->facts[i], p->min_bytes, resident,
                        &launches[i]);
    }
    sum_up(p);
    return RUNG_OK;
}

static struct rung_map *metrics_of(const struct rung_host *host, struct rung_call *call,
                                   const struct prediction *p)
{
    struct rung_map *map = host->map_new(host, call->arena);
    double ns[N_LIMITERS] = {0}, share = 0;
    const struct estimate *slowest = p->launches;
    if (!map)
        return NULL;
    for (uint32_t i = 0; i < p->n_launches; i++) {
        for (int k = 0; k < N_LIMITERS; k++)
            ns[k] += p->launches[i].ns[k];
        if (p->launches[i].time_ns >= share) {
            share = p->launches[i].time_ns;
            slowest = &p->launches[i];
        }
    }
    for (int k = 0; k < N_LIMITERS; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_us", limiter_name(k));
        host->map_set_float(map, key, ns[k] / 1e3);
    }
    host->map_set_int(map, "launches", p->n_launches);
    host->map_set_float(map, "dram_bytes", p->dram_bytes);
    host->map_set_float(map, "l2_bytes", p->l2_bytes);
    if (p->n_launches) {
        host->map_set_float(map, "occupancy", slowest->occupancy.share);
        host->map_set_float(map, "waves", slowest->waves);
        host->map_set_float(map, "sectors_per_line", slowest->sectors_per_line);
        host->map_set_float(map, "reread", slowest->reread);
    }
    return map;
}

static int32_t conclude(struct timer *self, struct rung_call *call, const struct prediction *p,
                        struct rung_timing *out)
{
    char *advice = self->host->alloc(self->host, call->arena, ADVICE_BYTES, 1);
    out->metrics = metrics_of(self->host, call, p);
    if (!advice || !out->metrics)
        return fail(call->error, RUNG_ENOMEM, "model.memory", "no room for the advice");
    out->advice.ptr = advice;
    out->advice.len = advice_write(p, advice, ADVICE_BYTES);
    out->physical_floor_ns = p->floor_ns;
    out->modelled.time_ns = p->time_ns;
    out->modelled.tie_band = 0.3;
    out->modelled.gpu = self->gpu.name;
    out->modelled.limiter = limiter_name(p->limiter);
    return RUNG_OK;
}

static int32_t judge(struct timer *self, struct rung_call *call, const struct rung_session *session,
                     const struct rung_timing_recipe *recipe, const struct rung_run *run,
                     struct rung_timing *out)
{
    struct rung_work work = {.struct_size = sizeof work};
    struct prediction p = {.n_launches = 0};
    if (run->fault.code[0]) {
        out->fault = run->fault;
        return RUNG_OK;
    }
    if (run->n_counters != run->n_launches || run->n_counters > MAX_LAUNCHES ||
        (run->n_counters && (!run->counters || !run->facts || !run->kernels)))
        return fail(call->error, RUNG_EMISUSE, "model.counters",
                    "the device counted not every launch");
    int32_t status = session->work(session, call, recipe->dims, &work);
    if (status != RUNG_OK)
        return status;
    p.min_bytes = work.min_bytes;
    p.floor_ns = floor_ns(&self->gpu, &work, session->task->precision);
    status = predict(self, call, run, &p);
    return status == RUNG_OK ? conclude(self, call, &p, out) : status;
}

/* Warp instructions that a run executed. */
static double executed(const struct rung_run *run)
{
    double sum = 0;
    for (uint32_t i = 0; i < run->n_counters; i++)
        sum += (double)run->counters[i].warp_instructions;
    return sum;
}

/*
 * One block of each launch, then, unless that was long already, as many as asked for. The choice
 * hangs on counts, not on time, so that it is the same on every machine.
 */
static int32_t count(const struct timer *self, struct rung_call *call,
                     const struct rung_session *session, const struct rung_timing_recipe *recipe,
                     struct rung_run **out)
{
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_COUNTERS | RUNG_RUN_SAMPLED,
                                       .dims = recipe->dims,
                                       .seed = recipe->seed,
                                       .repeats = 1,
                                       .sample_blocks = 1};
    int32_t status = session->run(session, call, &request, out);
    if (status != RUNG_OK || (*out)->fault.code[0] || self->sample_blocks == 1 ||
        executed(*out) > LONG_BLOCK)
        return status;
    session->end(session, *out);
    *out = NULL;
    request.sample_blocks = self->sample_blocks;
    return session->run(session, call, &request, out);
}

static int32_t measure(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    struct timer *self = ptr;
    struct rung_run *run = NULL;
    *out = (struct rung_timing){
        .struct_size = sizeof *out, .kind = RUNG_TIME_MODELLED, .advice = {"", 0}};
    out->fault.struct_size = sizeof out->fault;
    out->measured.struct_size = sizeof out->measured;
    out->modelled.struct_size = sizeof out->modelled;
    out->modelled.gpu = self->gpu.name;
    out->modelled.limiter = "";
    int32_t status = count(self, call, session, recipe, &run);
    if (status == RUNG_OK)
        status = judge(self, call, session, recipe, run, out);
    session->end(session, run);
    return status;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *path = host->opt_string(host, options, "gpu");
    if (!path || strlen(path) >= PATH_BYTES)
        return fail(err, RUNG_ECONFIG, "model.gpu",
                    "option gpu: a path of at most 4095 bytes is needed");
    struct timer *self = calloc(1, sizeof *self);
    if (!self)
        return fail(err, RUNG_ENOMEM, "model.memory", "out of memory");
    self->host = host;
    memcpy(self->path, path, strlen(path) + 1);
    self->sample_blocks = (uint32_t)host->opt_int(host, options, "sample_blocks");
    *out = self;
    return RUNG_OK;
}

static int32_t start(void *ptr, struct rung_error *err)
{
    struct timer *self = ptr;
    return gpu_read(self->path, &self->gpu, err);
}

static void destroy(void *ptr)
{
    free(ptr);
}

static const struct rung_option option_gpu = {.struct_size = sizeof option_gpu,
                                              .type = RUNG_OPT_PATH,
                                              .flags = RUNG_OPT_AFFECTS_RESULT,
                                              .name = "gpu",
                                              .default_text = "data:gpus/h200.cfg",
                                              .summary =
                                                  "Description of the GPU that is modelled."};
static const struct rung_option option_sample_blocks = {
    .struct_size = sizeof option_sample_blocks,
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_ADVANCED | RUNG_OPT_AFFECTS_RESULT,
    .name = "sample_blocks",
    .default_text = "3",
    .unit = "blocks",
    .summary = "Blocks of each launch that are executed and counted; one when they are long.",
    .min = 1,
    .max = 1024};
static const struct rung_option *const options[] = {&option_gpu, &option_sample_blocks, NULL};

static const struct rung_timer_ops ops = {.struct_size = sizeof ops, .measure = measure};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .capabilities = RUNG_TIMER_COUNTERS,
    .kind = RUNG_KIND_TIMER,
    .name = "model",
    .summary = "Modelled times for a GPU that is not there, from counters",
    .doc = "Counts a few blocks of each launch and takes the slowest of instruction issue, "
           "load/store units, "
           "L2 and DRAM of the described GPU, plus the launch. Good for an order, not for a claim: "
           "two times "
           "within a factor 1.3 are ties.",
    .options = options,
    .ops = &ops,
    .create = create,
    .start = start,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "rung.timer.model",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
