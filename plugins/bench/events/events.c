/*
 * timer "events": real times, from events around the launches of the plan on the device's stream.
 * One call is one block of a measurement: discarded warm-ups, then samples, raw; the core
 * interleaves blocks and does the statistics. The instance holds the description of the GPU, for
 * the physical floor.
 */
#include "../model/estimate.h"

#include <rung/timer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADVICE_BYTES = 1024, PATH_BYTES = 4096, MAX_REPEATS = 1 << 20 };

struct timer {
    const struct rung_host *host;
    char path[PATH_BYTES];
    struct gpu gpu;
};

static int32_t fail(struct rung_error *err, int32_t code, const char *symbol, const char *message)
{
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    snprintf(err->message, sizeof err->message, "%s", message);
    return code;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- What the timed launches did wrong, as a fault ---- */

static void take_fault(const struct rung_session *session, const struct rung_run *run,
                       struct rung_fault *out)
{
    uint32_t n = session->task->n_tensors, broken = run->guard_broken,
             changed = run->modified_input;
    uint32_t size = out->struct_size;
    *out = run->fault;
    out->struct_size = size;
    if (out->code[0])
        return;
    if (broken) {
        snprintf(out->code, sizeof out->code, "mem.out_of_bounds");
        snprintf(out->message, sizeof out->message,
                 "memory just outside %s was overwritten in the timed launches",
                 broken <= n ? session->task->tensors[broken - 1].name : "a temp of the plan");
    } else if (changed) {
        snprintf(out->code, sizeof out->code, "input.modified");
        snprintf(out->message, sizeof out->message, "the timed launches changed the input %s",
                 changed <= n ? session->task->tensors[changed - 1].name : "");
    }
}

/* ---- Numbers ---- */

/*
 * The least time that this task can take on the described GPU; 0 when the device is another one.
 * What fits L2 need not reach DRAM before the last event, so that much is not asked for.
 */
static double physical_floor(const struct timer *self, const struct rung_session *session,
                             const struct rung_work *work)
{
    struct rung_work least = *work;
    if (strcmp(session->device->name, self->gpu.name) != 0)
        return 0;
    least.min_bytes = fmax(0, work->min_bytes - self->gpu.l2_bytes);
    return floor_ns(&self->gpu, &least, session->task->precision);
}

struct summary {
    double min, q1, median, q3;
};

static struct summary summarise(double *sorted, uint32_t n)
{
    qsort(sorted, n, sizeof *sorted, ascending);
    double middle = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return (struct summary){sorted[0], sorted[n / 4], middle, sorted[n - 1 - n / 4]};
}

static const struct rung_map *metrics_of(const struct rung_host *host, struct rung_call *call,
                                         const struct summary *s, uint32_t n, double floor)
{
    struct rung_map *map = host->map_new(host, call->arena);
    if (!map)
        return NULL;
    host->map_set_int(map, "samples", n);
    host->map_set_float(map, "min_us", s->min / 1e3);
    host->map_set_float(map, "q1_us", s->q1 / 1e3);
    host->map_set_float(map, "median_us", s->median / 1e3);
    host->map_set_float(map, "q3_us", s->q3 / 1e3);
    host->map_set_float(map, "event_floor_us", floor / 1e3);
    return map;
}

static void advise(const struct timer *self, const struct rung_session *session,
                   const struct rung_timing *t, const struct rung_timing_recipe *recipe,
                   const struct summary *s, const struct rung_work *work, char *out)
{
    int n = snprintf(out, ADVICE_BYTES,
                     "Measured on %s, %s caches: median %.4g us (quartiles %.4g to %.4g, least "
                     "%.4g, n = %u).\n",
                     session->device->name, recipe->cold ? "cold" : "warm", s->median / 1e3,
                     s->q1 / 1e3, s->q3 / 1e3, s->min / 1e3, t->measured.n_samples);
    if (work->min_bytes > 0 && s->median > 0 && n < ADVICE_BYTES)
        n += snprintf(out + n, ADVICE_BYTES - (size_t)n,
                      "The task's least traffic of %.4g MB in that time is %.3g TB/s",
                      work->min_bytes / 1e6, work->min_bytes / s->median / 1e3);
    if (t->physical_floor_ns > 0 && n < ADVICE_BYTES)
        n += snprintf(out + n, ADVICE_BYTES - (size_t)n, " of %.3g; its floor is %.4g us",
                      self->gpu.dram_bytes_per_s / 1e12, t->physical_floor_ns / 1e3);
    if (work->min_bytes > 0 && s->median > 0 && n < ADVICE_BYTES)
        n += snprintf(out + n, ADVICE_BYTES - (size_t)n, ".\n");
    if (s->median < 3 * t->measured.floor_ns && n < ADVICE_BYTES)
        snprintf(out + n, ADVICE_BYTES - (size_t)n,
                 "Launch-bound: an empty measurement reads %.4g us already; fewer "
                 "launches matter more than faster kernels.\n",
                 t->measured.floor_ns / 1e3);
}

static int32_t conclude(struct timer *self, struct rung_call *call,
                        const struct rung_session *session, const struct rung_timing_recipe *recipe,
                        const struct rung_run *run, struct rung_timing *out)
{
    uint32_t n = run->n_samples - recipe->warmups;
    double *raw =
        self->host->alloc(self->host, call->arena, 2 * (uint64_t)n * sizeof *raw, sizeof *raw);
    char *advice = self->host->alloc(self->host, call->arena, ADVICE_BYTES, 1);
    struct rung_work work = {.struct_size = sizeof work};
    if (!raw || !advice)
        return fail(call->error, RUNG_ENOMEM, "events.memory", "no room for the samples");
    int32_t status = session->work(session, call, recipe->dims, &work);
    if (status != RUNG_OK)
        return status;
    memcpy(raw, run->samples_ns + recipe->warmups, n * sizeof *raw);
    memcpy(raw + n, raw, n * sizeof *raw);
    struct summary s = summarise(raw + n, n);
    out->measured.n_samples = n;
    out->measured.samples_ns = raw;
    out->measured.floor_ns = run->floor_ns;
    out->physical_floor_ns = physical_floor(self, session, &work);
    out->metrics = metrics_of(self->host, call, &s, n, run->floor_ns);
    advise(self, session, out, recipe, &s, &work, advice);
    out->advice = (struct rung_text){advice, strlen(advice)};
    return out->metrics
               ? RUNG_OK
               : fail(call->error, RUNG_ENOMEM, "events.memory", "no room for the metrics");
}

static int32_t measure(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    struct timer *self = ptr;
    struct rung_run *run = NULL;
    *out = (struct rung_timing){
        .struct_size = sizeof *out, .kind = RUNG_TIME_MEASURED, .advice = {"", 0}};
    out->fault.struct_size = sizeof out->fault;
    out->measured.struct_size = sizeof out->measured;
    out->modelled.struct_size = sizeof out->modelled;
    if (!recipe->samples || recipe->samples > MAX_REPEATS ||
        recipe->warmups > MAX_REPEATS - recipe->samples)
        return fail(call->error, RUNG_EINVAL, "events.recipe",
                    "between 1 and 2^20 launches, warm-ups included");
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED | (recipe->cold ? RUNG_RUN_COLD : 0),
                                       .dims = recipe->dims,
                                       .seed = recipe->seed,
                                       .repeats = recipe->warmups + recipe->samples};
    int32_t status = session->run(session, call, &request, &run);
    if (status == RUNG_OK) {
        take_fault(session, run, &out->fault);
        if (!out->fault.code[0] && (run->n_samples != request.repeats || !run->samples_ns))
            status = fail(call->error, RUNG_EMISUSE, "events.samples",
                          "the session timed not every launch");
        else if (!out->fault.code[0])
            status = conclude(self, call, session, recipe, run, out);
    }
    session->end(session, run);
    return status;
}

/* ---- Life ---- */

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *path = host->opt_string(host, options, "gpu");
    if (!path || strlen(path) >= PATH_BYTES)
        return fail(err, RUNG_ECONFIG, "events.gpu",
                    "option gpu: a path of at most 4095 bytes is needed");
    struct timer *self = calloc(1, sizeof *self);
    if (!self)
        return fail(err, RUNG_ENOMEM, "events.memory", "out of memory");
    self->host = host;
    memcpy(self->path, path, strlen(path) + 1);
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

static const struct rung_option option_gpu = {
    .struct_size = sizeof option_gpu,
    .type = RUNG_OPT_PATH,
    .name = "gpu",
    .default_text = "data:gpus/h200.cfg",
    .summary =
        "Description of the GPU, for the physical floor; used only when its name is the device's."};
static const struct rung_option *const options[] = {&option_gpu, NULL};

static const struct rung_timer_ops ops = {.struct_size = sizeof ops, .measure = measure};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .capabilities = RUNG_TIMER_MEASURES,
    .kind = RUNG_KIND_TIMER,
    .name = "events",
    .summary = "Measured times from events on the device's stream",
    .doc = "Outputs and temps are poisoned before every launch of the plan, inputs are compared "
           "afterwards. A cold "
           "recipe overwrites twice the L2 before each launch; the launches queue up behind that, "
           "so that the "
           "host's part of a launch is not in the time.",
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
                                          .id = "rung.timer.events",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
