/*
 * Timed runs. Before every sample all sets that it uses get inputs that no launch saw before and
 * poisoned outputs and temps, so that nothing kept from an earlier launch is of use. A sample is
 * one interval between two events around the executions, each on a set of its own: launched one by
 * one, or captured as a graph and replayed. The flush of the caches lies before the first event and
 * is not waited for: launches queue up behind it, so that their start-up on the host is not
 * measured. The host's clock runs beside the events, so that work they do not see is noticed.
 */
#include "session/private.h"

#include "base/io.h"
#include "base/philox.h"

#include <math.h>
#include <stdlib.h>

/* Philox streams below 2^32 are the tensors' fills. */
#define TIMED_STREAM (UINT64_C(3) << 32)

enum { FLOOR_SAMPLES = 21, CHECKED_SETS = 32, EVENTS = 3 };

/* One timed run. events: before the flush, before the executions, after them. */
struct timed {
    struct run *run;
    struct rung_device_event **events;
    struct overwrite overwrite;
    struct rung_graph **graphs; /* one a group of sets; NULL: launched one by one */
    uint32_t n_groups, batch;   /* sets of a group */
    uint32_t n_samples;
    double *samples, *beyond; /* the host's time beyond the events, one a sample */
    uint8_t *marks;           /* which samples are verified */
};

static bool good(const struct timed *t, int32_t status)
{
    return status == RUNG_OK && !fault_is(&t->run->pub.fault);
}

/* ---- One interval ---- */

/* What lies between the events: graph, or executions, or nothing. */
enum content { NOTHING, EXECUTIONS, GRAPH };

static int32_t queue_content(struct timed *t, struct rung_call *call, enum content content,
                             struct rung_graph *graph)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    if (content == NOTHING)
        return RUNG_OK;
    if (content == EXECUTIONS)
        return launch_steps(t->run, call);
    int32_t status = device_replay(t->run->session, call, graph, &fault);
    if (status == RUNG_OK)
        launch_take_fault(t->run, &fault, NULL);
    return status;
}

static int32_t queue_flush(struct timed *t, struct rung_call *call, enum content content)
{
    int32_t status = device_event_record(t->run->session, call, t->events[0]);
    if (status == RUNG_OK && content != NOTHING)
        status = overwrite_queue(t->run, call, &t->overwrite);
    return status;
}

static int32_t queue_interval(struct timed *t, struct rung_call *call, enum content content,
                              struct rung_graph *graph)
{
    struct rung_open_session *s = t->run->session;
    int32_t status = device_event_record(s, call, t->events[1]);
    if (status == RUNG_OK)
        status = queue_content(t, call, content, graph);
    if (good(t, status))
        status = device_event_record(s, call, t->events[2]);
    return status;
}

/*
 * ns: between the last two events. beyond: what the host's clock read besides all of it; a flush
 * that is not done when the clock starts is between the events as well.
 */
static int32_t interval(struct timed *t, struct rung_call *call, enum content content,
                        struct rung_graph *graph, double *ns, double *beyond)
{
    const struct rung_resolved_plan *plan = t->run->memory->plan;
    struct rung_open_session *s = t->run->session;
    bool one_step = content == EXECUTIONS && plan && plan->n_steps == 1;
    double all = 0;
    int32_t status = queue_flush(t, call, content);
    uint64_t start = rung_now_ns();
    if (status == RUNG_OK)
        status = queue_interval(t, call, content, graph);
    if (good(t, status))
        status = launch_sync(t->run, call, one_step ? &plan->steps[0] : NULL);
    uint64_t wall = rung_now_ns() - start;
    if (content != NOTHING)
        t->run->pub.host_ns += wall;
    if (good(t, status))
        status = device_event_elapsed(s, call, t->events[1], t->events[2], ns);
    if (good(t, status))
        status = device_event_elapsed(s, call, t->events[0], t->events[2], &all);
    *beyond = (double)wall - all;
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that `share` of n values lie below; sorts them. */
static double quantile(double *values, uint32_t n, double share)
{
    qsort(values, n, sizeof *values, ascending);
    return values[(uint32_t)(share * (n - 1))];
}

/* ---- Graphs ---- */

/* Ends the capture, whatever was recorded. */
static int32_t end_capture(struct timed *t, struct rung_call *call, int32_t recorded,
                           struct rung_graph **out)
{
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_error err = rung_error_init();
    struct rung_call inner = *call;
    inner.error = recorded == RUNG_OK ? call->error : &err;
    int32_t status = device_captured(t->run->session, &inner, out, &fault);
    if (recorded != RUNG_OK)
        return recorded;
    if (status == RUNG_OK)
        launch_take_fault(t->run, &fault, NULL);
    if (status == RUNG_OK && !*out && !fault_is(&t->run->pub.fault))
        status = rung_fail(call->error, RUNG_EMISUSE, "session.graph",
                           "the device gave neither a graph nor a fault");
    return status;
}

/* One execution on each set of a group, in order. */
static int32_t capture_group(struct timed *t, struct rung_call *call, uint32_t group)
{
    struct run *run = t->run;
    int32_t status = device_capture(run->session, call);
    if (status != RUNG_OK)
        return status;
    for (uint32_t i = 0; i < t->batch && good(t, status); i++) {
        run_use(run, group * t->batch + i);
        status = launch_steps(run, call);
    }
    return end_capture(t, call, status, &t->graphs[group]);
}

static int32_t capture_groups(struct timed *t, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    if (t->batch == 1)
        return RUNG_OK;
    t->graphs = RUNG_ARENA_NEW(t->run->arena, struct rung_graph *, t->n_groups);
    for (uint32_t g = 0; g < t->n_groups && good(t, status); g++)
        status = capture_group(t, call, g);
    return status;
}

/* ---- Floors ---- */

/* A graph of as many settings of one word as the batch has executions. */
static int32_t capture_words(struct timed *t, struct rung_call *call, struct rung_buffer *word,
                             struct rung_graph **out)
{
    static const uint32_t zero;
    struct rung_open_session *s = t->run->session;
    int32_t status = device_capture(s, call);
    if (status != RUNG_OK)
        return status;
    for (uint32_t i = 0; i < t->batch && status == RUNG_OK; i++)
        status = device_fill(s, call, word, 0, sizeof zero, &zero, sizeof zero, 1);
    return end_capture(t, call, status, out);
}

static int32_t measure_floors(struct timed *t, struct rung_call *call, struct rung_graph *words)
{
    double ns[FLOOR_SAMPLES], beyond[FLOOR_SAMPLES];
    struct floors *f = &t->run->memory->floors;
    int32_t status = RUNG_OK;
    for (int i = 0; i < FLOOR_SAMPLES && good(t, status); i++)
        status = interval(t, call, NOTHING, NULL, &ns[i], &beyond[i]);
    if (!good(t, status))
        return status;
    *f = (struct floors){.batch = t->batch, .floor_ns = quantile(ns, FLOOR_SAMPLES, 0.5)};
    f->host_ns = fmax(0, quantile(beyond, FLOOR_SAMPLES, 0.5));
    f->slop = fmax(0, quantile(beyond, FLOOR_SAMPLES, 0.75) - f->host_ns);
    for (int i = 0; words && i < FLOOR_SAMPLES && good(t, status); i++)
        status = interval(t, call, GRAPH, words, &ns[i], &beyond[i]);
    if (words && good(t, status))
        f->floor_ns = quantile(ns, FLOOR_SAMPLES, 0.5) / t->batch;
    return status;
}

/* Once for a memory: what empty measurements read, in the same mode. */
static int32_t floors_of(struct timed *t, struct rung_call *call)
{
    struct run *run = t->run;
    struct rung_buffer *word = NULL;
    struct rung_graph *words = NULL;
    int32_t status = RUNG_OK;
    if (run->memory->floors.batch != t->batch) {
        if (t->batch > 1)
            status = memory_buffer(run->session, call, 256, 256, "word", &word);
        if (word)
            status = capture_words(t, call, word, &words);
        if (good(t, status))
            status = measure_floors(t, call, words);
        device_graph_free(run->session, words);
        memory_drop(run->session, word, 256);
    }
    run->pub.floor_ns = run->memory->floors.floor_ns;
    return status;
}

/* ---- Samples ---- */

static uint64_t set_seed(const struct run *run, uint32_t sample, uint32_t set)
{
    uint32_t w[4];
    rung_philox4(run->seed, TIMED_STREAM + set, sample, w);
    return w[0] | (uint64_t)w[1] << 32;
}

/* Fresh inputs and poison in all sets of a group; done when it returns. */
static int32_t refresh(struct timed *t, struct rung_call *call, uint32_t sample, uint32_t group)
{
    struct run *run = t->run;
    const struct set *first = &run->memory->sets[group * t->batch];
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < t->batch && good(t, status); i++) {
        run_use(run, group * t->batch + i);
        run_forget(run);
        status = repeat_go_on(run, call, sample);
        if (good(t, status))
            status = slots_draw(run, call, set_seed(run, sample, group * t->batch + i));
        if (good(t, status))
            status = slots_reset_like(run, call, first);
    }
    return good(t, status) ? launch_sync(run, call, NULL) : status;
}

/* A random set of the group, after the sample. */
static int32_t verify(struct timed *t, struct rung_call *call, uint32_t sample, uint32_t group)
{
    run_use(t->run, group * t->batch + verify_random(t->batch));
    run_forget(t->run);
    return verify_sample(t->run, call, sample, t->n_samples);
}

static int32_t one_sample(struct timed *t, struct rung_call *call, uint32_t sample)
{
    uint32_t group = sample % t->n_groups;
    struct rung_graph *graph = t->graphs ? t->graphs[group] : NULL;
    double ns = 0, beyond = 0;
    int32_t status = refresh(t, call, sample, group);
    run_use(t->run, (group + 1) * t->batch - 1);
    if (good(t, status))
        status = interval(t, call, graph ? GRAPH : EXECUTIONS, graph, &ns, &beyond);
    if (!good(t, status))
        return status;
    t->samples[sample] = ns / t->batch;
    t->beyond[sample] = beyond;
    t->run->pub.n_samples = sample + 1;
    return t->marks[sample] ? verify(t, call, sample, group) : RUNG_OK;
}

/*
 * The host's time beyond the events must not grow with the work: what it grows by ran where the
 * events do not see it, on another stream or after the last event. Medians, so that an interruption
 * of the host decides nothing.
 */
static void compare_clocks(struct timed *t)
{
    const struct floors *f = &t->run->memory->floors;
    uint32_t n = t->run->pub.n_samples;
    double *sorted = RUNG_ARENA_NEW(t->run->arena, double, n + 1);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = t->samples[i] * t->batch;
    double events = n ? quantile(sorted, n, 0.5) : 0;
    double beyond = n ? quantile(t->beyond, n, 0.5) - f->host_ns : 0;
    if (beyond > 0.2 * events + 20e3 + 4 * f->slop)
        fault_set(&t->run->pub.fault, "time.unstable", "", 0,
                  "the events around the launches read %.1f us, but the host waited %.1f us longer "
                  "than for an empty measurement: work goes on where the events do not see it, on "
                  "another stream or after the last launch, so this time means nothing",
                  events / 1e3, beyond / 1e3);
}

/* Inputs of the last sample's sets; of many sets some, chosen at random. */
static int32_t check_inputs(struct timed *t, struct rung_call *call)
{
    struct run *run = t->run;
    uint32_t group = (t->n_samples - 1) % t->n_groups, n = t->batch;
    int32_t status = RUNG_OK;
    if (run->flags & RUNG_RUN_KEEP_INPUTS)
        return RUNG_OK;
    for (uint32_t i = 0; i < n && i < CHECKED_SETS && status == RUNG_OK; i++) {
        run_use(run, group * n + (n > CHECKED_SETS ? verify_random(n) : i));
        status = slots_check_inputs(run, call);
    }
    run_use(run, (group + 1) * n - 1);
    return status;
}

/* ---- The whole ---- */

static int32_t timed_new(struct timed *t, struct rung_call *call,
                         const struct rung_run_request *request)
{
    struct run *run = t->run;
    struct rung_open_session *s = run->session;
    int32_t status = overwrite_new(run, call, &t->overwrite);
    for (int i = 0; i < EVENTS && status == RUNG_OK; i++)
        if (!s->events[i])
            status = device_event_new(s, call, &s->events[i]);
    t->events = s->events;
    t->batch = request->batch ? request->batch : 1;
    t->n_groups = run->memory->n_sets / t->batch;
    t->n_samples = request->repeats ? request->repeats : 1;
    run->pub.samples_ns = t->samples = RUNG_ARENA_NEW(run->arena, double, t->n_samples);
    t->beyond = RUNG_ARENA_NEW(run->arena, double, t->n_samples);
    t->marks = RUNG_ARENA_NEW(run->arena, uint8_t, t->n_samples);
    for (uint32_t i = 0; i < run->n_slots; i++)
        run->pub.set_bytes += run->slots[i].extent;
    if (status == RUNG_OK && request->verify)
        verify_choose(t->n_samples, request->verify, t->marks);
    return status;
}

static int32_t take_samples(struct timed *t, struct rung_call *call)
{
    struct rung_run *pub = &t->run->pub;
    double sum = 0;
    int32_t status = device_condition(t->run->session, call, &pub->before);
    for (uint32_t i = 0; i < t->n_samples && good(t, status); i++)
        status = one_sample(t, call, i);
    for (uint32_t i = 0; i < pub->n_samples; i++)
        sum += t->samples[i];
    pub->elapsed_ns = pub->n_samples ? sum / pub->n_samples : 0;
    if (good(t, status))
        status = device_condition(t->run->session, call, &pub->after);
    return status;
}

int32_t timed_all(struct run *run, struct rung_call *call, const struct rung_run_request *request)
{
    struct timed t = {.run = run};
    int32_t status = timed_new(&t, call, request);
    if (status == RUNG_OK && !(run->flags & RUNG_RUN_KEEP_STATE))
        status = device_reset(run->session, call);
    if (status == RUNG_OK)
        status = launch_prepare(run, call);
    if (good(&t, status))
        status = floors_of(&t, call);
    /* After the reset: it may have moved the kernels. */
    if (good(&t, status))
        status = capture_groups(&t, call);
    if (good(&t, status))
        status = take_samples(&t, call);
    if (good(&t, status))
        compare_clocks(&t);
    if (good(&t, status))
        status = check_inputs(&t, call);
    for (uint32_t g = 0; t.graphs && g < t.n_groups; g++)
        device_graph_free(run->session, t.graphs[g]);
    overwrite_free(run, &t.overwrite);
    return status;
}
