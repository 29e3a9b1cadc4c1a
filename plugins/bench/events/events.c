/*
 * timer "events": real times, from events around the launches of the plan on the device's stream.
 * One call is one block of a measurement: discarded warm-ups, then samples, raw; the core
 * interleaves blocks and does the statistics. The instance holds the description of the GPU, for
 * the physical floor, and what blocks of late cost.
 */
#include "events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Share of the highest clock below which a throttled block is thrown away. */
#define LEAST_CLOCK 0.75

int32_t events_fail(struct rung_error *err, int32_t code, const char *symbol, const char *message)
{
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    snprintf(err->message, sizeof err->message, "%s", message);
    return code;
}

/* ---- One block ---- */

/* Warm-ups are launches of the plan, so a batch has several; a graph is always replayed once. */
static void count(const struct rung_timing_recipe *recipe, struct events_mode *mode)
{
    uint32_t samples = recipe->samples;
    mode->warmups = (recipe->warmups + mode->batch - 1) / mode->batch;
    if (mode->batch > 1 && mode->warmups == 0)
        mode->warmups = 1;
    if (recipe->budget_s > 0 && mode->sample_s > 0) {
        double fit = floor(recipe->budget_s / mode->sample_s) - mode->warmups;
        samples = fit < 1 ? 1 : fit < samples ? (uint32_t)fit : samples;
    }
    mode->repeats = mode->warmups + samples;
}

/* Held down by heat or by the board; a power cap is how such a GPU always runs. */
static bool held_down(const struct rung_run *run)
{
    const struct rung_device_condition *c = &run->after;
    return c->known && c->throttle & (RUNG_THROTTLE_THERMAL | RUNG_THROTTLE_HARDWARE) &&
           c->sm_mhz < LEAST_CLOCK * c->sm_mhz_max;
}

static int32_t take_block(struct events_timer *self, struct rung_call *call,
                          const struct rung_session *session,
                          const struct rung_timing_recipe *recipe, struct events_mode *mode,
                          uint64_t seed, struct rung_run **run)
{
    count(recipe, mode);
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .flags = RUNG_RUN_TIMED | (recipe->cold ? RUNG_RUN_COLD : 0),
                                       .dims = recipe->dims,
                                       .seed = seed,
                                       .repeats = mode->repeats,
                                       .sets = mode->sets,
                                       .batch = mode->batch,
                                       .verify = recipe->verify};
    uint64_t start = self->host->now_ns(self->host);
    int32_t status = session->run(session, call, &request, run);
    if (status != RUNG_OK)
        return status;
    mode->sample_s = (double)(self->host->now_ns(self->host) - start) / 1e9 / mode->repeats;
    return RUNG_OK;
}

/* One by one, where the device has no graphs, the plan can't be captured or memory is short. */
static bool without_batch(const struct rung_run *run, int32_t status, struct events_mode *mode)
{
    const char *code = status == RUNG_OK ? run->fault.code : "";
    bool refused = status == RUNG_EUNSUPPORTED || strcmp(code, "device.unsupported") == 0 ||
                   strcmp(code, "device.memory") == 0;
    if (!refused || mode->batch == 1)
        return false;
    *mode = (struct events_mode){1, 1, mode->sample_s / mode->batch, 0, 0};
    return true;
}

static int32_t take_blocks(struct events_timer *self, struct rung_call *call,
                           const struct rung_session *session,
                           const struct rung_timing_recipe *recipe, struct events_mode *mode,
                           struct rung_timing *out, struct rung_run **run)
{
    int32_t status = take_block(self, call, session, recipe, mode, recipe->seed, run);
    if (without_batch(*run, status, mode)) {
        session->end(session, *run);
        *run = NULL;
        call->error->code = RUNG_OK;
        status = take_block(self, call, session, recipe, mode, recipe->seed, run);
    }
    if (status != RUNG_OK || !held_down(*run) || (*run)->fault.code[0])
        return status;
    out->measured.n_dropped = mode->repeats - mode->warmups;
    session->end(session, *run);
    *run = NULL;
    return take_block(self, call, session, recipe, mode, recipe->seed ^ UINT64_C(1) << 63, run);
}

/* ---- What came out ---- */

static void fill_measured(const struct rung_timing_recipe *recipe, const struct events_mode *mode,
                          const struct rung_run *run, struct rung_measured *m)
{
    m->floor_ns = run->floor_ns;
    m->sets = mode->sets;
    m->batch = mode->batch;
    m->cold = !recipe->cold ? RUNG_COLD_WARM : mode->batch > 1 ? RUNG_COLD_ROTATE : RUNG_COLD_FLUSH;
    m->n_verified = run->n_verified;
    m->before = run->before;
    m->after = run->after;
}

static int32_t conclude(struct events_timer *self, struct rung_call *call,
                        const struct rung_session *session, const struct rung_timing_recipe *recipe,
                        const struct events_mode *mode, const struct rung_run *run,
                        struct rung_timing *out)
{
    uint32_t skip = mode->warmups, n = mode->repeats - skip;
    const struct rung_host *host = self->host;
    double *raw = host->alloc(host, call->arena, 2 * (uint64_t)n * sizeof *raw, sizeof *raw);
    char *advice = host->alloc(host, call->arena, EVENTS_ADVICE_BYTES, 1);
    struct events_block b = {.self = self,
                             .session = session,
                             .timing = out,
                             .peaks = events_peaks(self, session),
                             .work.struct_size = sizeof b.work,
                             .set_bytes = run->set_bytes};
    if (!raw || !advice)
        return events_fail(call->error, RUNG_ENOMEM, "events.memory", "no room for the samples");
    int32_t status = session->work(session, call, recipe->dims, &b.work);
    if (status != RUNG_OK)
        return status;
    memcpy(raw, run->samples_ns + skip, n * sizeof *raw);
    memcpy(raw + n, raw, n * sizeof *raw);
    b.times = events_summarise(raw + n, n);
    fill_measured(recipe, mode, run, &out->measured);
    out->measured.n_samples = n;
    out->measured.samples_ns = raw;
    out->measured.launch_bound = b.times.median < 3 * run->floor_ns;
    out->physical_floor_ns = events_floor(&b.peaks, &b.work);
    out->metrics = events_metrics(&b, call);
    events_advise(&b, advice);
    out->advice = (struct rung_text){advice, strlen(advice)};
    return out->metrics
               ? RUNG_OK
               : events_fail(call->error, RUNG_ENOMEM, "events.memory", "no room for the metrics");
}

static int32_t check_recipe(struct rung_call *call, const struct rung_timing_recipe *recipe)
{
    if (recipe->samples && recipe->samples <= EVENTS_MAX_REPEATS &&
        recipe->warmups <= EVENTS_MAX_REPEATS - recipe->samples)
        return RUNG_OK;
    return events_fail(call->error, RUNG_EINVAL, "events.recipe",
                       "between 1 and 2^20 launches, warm-ups included");
}

static int32_t measure(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    struct events_timer *self = ptr;
    struct events_mode mode = {0};
    struct rung_run *run = NULL;
    *out = (struct rung_timing){
        .struct_size = sizeof *out, .kind = RUNG_TIME_MEASURED, .advice = {"", 0}};
    out->fault.struct_size = sizeof out->fault;
    out->measured.struct_size = sizeof out->measured;
    out->modelled.struct_size = sizeof out->modelled;
    int32_t status = check_recipe(call, recipe);
    if (status == RUNG_OK)
        status = events_choose(self, call, session, recipe, out, &mode);
    if (status != RUNG_OK || out->fault.code[0])
        return status;
    status = take_blocks(self, call, session, recipe, &mode, out, &run);
    if (status == RUNG_OK)
        events_fault(session, run, &out->fault);
    if (status == RUNG_OK && !out->fault.code[0]) {
        if (!run->samples_ns || run->n_samples != mode.repeats)
            status = events_fail(call->error, RUNG_EMISUSE, "events.samples",
                                 "the session timed not every launch");
        else
            status = conclude(self, call, session, recipe, &mode, run, out);
        events_note(self, session, recipe, &mode);
    }
    session->end(session, run);
    return status;
}

/* ---- Life ---- */

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *path = host->opt_string(host, options, "gpu");
    struct events_timer *self = calloc(1, sizeof *self);
    if (!self)
        return events_fail(err, RUNG_ENOMEM, "events.memory", "out of memory");
    if (!path || strlen(path) >= sizeof self->path) {
        free(self);
        return events_fail(err, RUNG_ECONFIG, "events.gpu",
                           "option gpu: a path of at most 4095 bytes is needed");
    }
    self->host = host;
    memcpy(self->path, path, strlen(path) + 1);
    *out = self;
    return RUNG_OK;
}

static int32_t start(void *ptr, struct rung_error *err)
{
    struct events_timer *self = ptr;
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
    .doc =
        "Plans of less than 200 us are replayed as a graph of many executions, about 1 ms of them, "
        "each on buffers of its own; longer ones are launched one by one. Before every sample all "
        "inputs are drawn anew and outputs and temps poisoned; a cold recipe then empties the L2. "
        "Some samples, chosen at random, and the last one are compared with the reference. "
        "Launches queue up behind the flush, so that the host's part of a launch is not in the "
        "time. A block during which heat or the board held the clock below three quarters of its "
        "highest is thrown away and measured once more.",
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
