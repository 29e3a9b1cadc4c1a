#include "fake_device.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fake_config fake_config;
struct fake_counts fake_counts;

struct rung_buffer {
    uint64_t bytes;
    char *memory;
};

struct rung_module {
    struct rung_buffer variable;
};

float fake_variable[FAKE_VARIABLE];
struct rung_launch fake_last_launch;

double fake_clock;

struct rung_device_event {
    int records;
    double at;
};

char *fake_memory(struct rung_buffer *buffer)
{
    return buffer->memory;
}

/* ---- Graphs: what was queued while one was recorded ---- */

struct queued {
    enum { LAUNCH, FILL, COPY } kind;
    struct rung_launch launch;
    char params[64];
    struct rung_buffer *to, *from;
    uint64_t to_offset, from_offset, bytes;
    char pattern[64];
    uint64_t n;
};

struct rung_graph {
    struct queued queued[4096];
    int n;
};

static struct rung_graph *recording;

/* Room for what is queued, or NULL when nothing is recorded. */
static struct queued *record_queued(int kind)
{
    if (!recording)
        return NULL;
    struct queued *q = &recording->queued[recording->n++];
    q->kind = kind;
    return q;
}

static int32_t info(void *self, struct rung_call *call, struct rung_device_info *out)
{
    (void)self, (void)call;
    *out = (struct rung_device_info){.struct_size = sizeof *out,
                                     .flags = fake_config.flags,
                                     .name = "fake",
                                     .id = "fake",
                                     .format = RUNG_FORMAT_PTX,
                                     .sm_count = 4,
                                     .arch = "compute_90",
                                     .memory_bytes = fake_config.memory,
                                     .max_threads_per_block = 1024,
                                     .max_shared_bytes = 49152,
                                     .driver = "fake"};
    return RUNG_OK;
}

static int32_t dev_alloc(void *self, struct rung_call *call, uint64_t bytes, uint64_t align,
                         const char *label, struct rung_buffer **out)
{
    (void)self, (void)label;
    if (bytes > UINT64_C(1) << 32)
        return rung_fail(call->error, RUNG_ENOMEM, "fake.memory", "too much");
    struct rung_buffer *b = calloc(1, sizeof *b);
    b->bytes = bytes;
    b->memory = aligned_alloc(align, (bytes + align - 1) / align * align);
    fake_counts.buffers++;
    fake_counts.allocs++;
    *out = b;
    return RUNG_OK;
}

static void dev_free(void *self, struct rung_buffer *b)
{
    (void)self;
    if (!b)
        return;
    free(b->memory);
    free(b);
    fake_counts.buffers--;
}

static uint64_t address(void *self, struct rung_buffer *b)
{
    (void)self;
    return (uint64_t)(uintptr_t)b->memory;
}

static void *map(void *self, struct rung_buffer *b)
{
    (void)self;
    return fake_config.flags & RUNG_DEVICE_HOST_MEMORY ? b->memory : NULL;
}

static int inside(const struct rung_buffer *b, uint64_t offset, uint64_t bytes)
{
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static int32_t dev_write(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                         const void *from, uint64_t bytes)
{
    (void)self;
    if (!inside(b, offset, bytes))
        return rung_fail(call->error, RUNG_EINVAL, "", "write outside");
    memcpy(b->memory + offset, from, bytes);
    return RUNG_OK;
}

static int32_t dev_read(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        void *to, uint64_t bytes)
{
    (void)self;
    if (!inside(b, offset, bytes))
        return rung_fail(call->error, RUNG_EINVAL, "", "read outside");
    memcpy(to, b->memory + offset, bytes);
    return RUNG_OK;
}

static int32_t dev_fill(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    (void)self;
    if (!inside(b, offset, bytes))
        return rung_fail(call->error, RUNG_EINVAL, "", "fill outside");
    struct queued *q = record_queued(FILL);
    if (q) {
        q->to = b;
        q->to_offset = offset;
        q->bytes = bytes;
        q->n = n;
        memcpy(q->pattern, pattern, n < sizeof q->pattern ? n : sizeof q->pattern);
        return RUNG_OK;
    }
    for (uint64_t at = 0; at < bytes; at += n)
        memcpy(b->memory + offset + at, pattern, n < bytes - at ? n : bytes - at);
    fake_counts.fills++;
    fake_counts.unwritten_fills += !written;
    fake_counts.flushed += n == 1 && *(const char *)pattern == 0 ? bytes : 0;
    return RUNG_OK;
}

static int32_t dev_copy(void *self, struct rung_call *call, struct rung_buffer *to,
                        uint64_t to_offset, struct rung_buffer *from, uint64_t from_offset,
                        uint64_t bytes)
{
    (void)self;
    if (!inside(to, to_offset, bytes) || !inside(from, from_offset, bytes))
        return rung_fail(call->error, RUNG_EINVAL, "", "copy outside");
    struct queued *q = record_queued(COPY);
    if (q) {
        q->to = to;
        q->from = from;
        q->to_offset = to_offset;
        q->from_offset = from_offset;
        q->bytes = bytes;
        return RUNG_OK;
    }
    memcpy(to->memory + to_offset, from->memory + from_offset, bytes);
    fake_counts.copies++;
    return RUNG_OK;
}

static int32_t load(void *self, struct rung_call *call, const struct rung_artifact *artifact,
                    struct rung_module **out, struct rung_fault *fault)
{
    (void)self, (void)call, (void)artifact;
    if (fake_config.load_fault) {
        strcpy(fault->code, fake_config.load_fault);
        return RUNG_OK;
    }
    *out = calloc(1, sizeof **out);
    (*out)->variable = (struct rung_buffer){sizeof fake_variable, (char *)fake_variable};
    memset(fake_variable, 0, sizeof fake_variable);
    fake_counts.modules++;
    return RUNG_OK;
}

static int32_t reset(void *self, struct rung_call *call, struct rung_module *m)
{
    (void)self, (void)call;
    memset(m->variable.memory, 0, m->variable.bytes);
    fake_counts.resets++;
    return RUNG_OK;
}

static int32_t symbol(void *self, struct rung_call *call, struct rung_module *m, const char *name,
                      struct rung_buffer **out, uint64_t *bytes)
{
    (void)self;
    if (!fake_config.variable || strcmp(name, fake_config.variable) != 0)
        return rung_fail(call->error, RUNG_ENOTFOUND, "", "no variable %s", name);
    *out = &m->variable;
    *bytes = m->variable.bytes;
    return RUNG_OK;
}

static void unload(void *self, struct rung_module *m)
{
    (void)self;
    free(m);
    fake_counts.modules--;
}

static int32_t launch(void *self, struct rung_call *call, const struct rung_launch *l,
                      struct rung_fault *fault)
{
    (void)self;
    struct fake_args args = {0};
    struct queued *q = record_queued(LAUNCH);
    if (q) {
        q->launch = *l;
        memcpy(q->params, l->params, l->param_bytes);
        return RUNG_OK;
    }
    fake_clock += fake_config.launch_ns;
    memcpy(&args, l->params, l->param_bytes < sizeof args ? l->param_bytes : sizeof args);
    if (l->counters)
        *l->counters = (struct rung_counters){.struct_size = sizeof *l->counters,
                                              .grid_blocks = l->grid.x,
                                              .blocks = l->sample_blocks};
    fake_counts.launches++;
    fake_last_launch = *l;
    for (int i = 0; i < 16 && fake_config.kernels[i].symbol; i++)
        if (strcmp(fake_config.kernels[i].symbol, l->kernel->symbol) == 0) {
            fake_config.kernels[i].run(&args, l, fault);
            return RUNG_OK;
        }
    return rung_fail(call->error, RUNG_EINVAL, "", "no kernel %s", l->kernel->symbol);
}

static int32_t dev_sync(void *self, struct rung_call *call, struct rung_fault *fault)
{
    (void)self, (void)call, (void)fault;
    fake_counts.syncs++;
    return RUNG_OK;
}

static int32_t event_new(void *self, struct rung_call *call, struct rung_device_event **out)
{
    (void)self, (void)call;
    *out = calloc(1, sizeof **out);
    fake_counts.events++;
    return RUNG_OK;
}

static void event_free(void *self, struct rung_device_event *e)
{
    (void)self;
    fake_counts.events -= e != NULL;
    free(e);
}

static int32_t event_record(void *self, struct rung_call *call, struct rung_device_event *e)
{
    (void)self, (void)call;
    e->records++;
    e->at = fake_clock;
    return RUNG_OK;
}

static int32_t event_elapsed(void *self, struct rung_call *call, struct rung_device_event *from,
                             struct rung_device_event *to, double *ns)
{
    (void)self, (void)call;
    *ns = 1000.0 * (from->records + to->records);
    return RUNG_OK;
}

static int32_t clock_elapsed(void *self, struct rung_call *call, struct rung_device_event *from,
                             struct rung_device_event *to, double *ns)
{
    (void)self, (void)call;
    *ns = to->at - from->at;
    return RUNG_OK;
}

static int32_t capture(void *self, struct rung_call *call)
{
    (void)self, (void)call;
    recording = calloc(1, sizeof *recording);
    fake_counts.captures++;
    fake_counts.graphs++;
    return RUNG_OK;
}

static void graph_free(void *self, struct rung_graph *graph)
{
    (void)self;
    fake_counts.graphs -= graph != NULL;
    free(graph);
}

static int32_t captured(void *self, struct rung_call *call, struct rung_graph **out,
                        struct rung_fault *fault)
{
    (void)call;
    *out = recording;
    recording = NULL;
    if (fake_config.no_capture) {
        graph_free(self, *out);
        *out = NULL;
        strcpy(fault->code, "device.unsupported");
    }
    return RUNG_OK;
}

static int32_t replay(void *self, struct rung_call *call, struct rung_graph *graph,
                      struct rung_fault *fault)
{
    int32_t status = RUNG_OK;
    fake_counts.replays++;
    for (int i = 0; i < graph->n && status == RUNG_OK; i++) {
        struct queued *q = &graph->queued[i];
        q->launch.params = q->params;
        if (q->kind == LAUNCH)
            status = launch(self, call, &q->launch, fault);
        else if (q->kind == FILL)
            status = dev_fill(self, call, q->to, q->to_offset, q->bytes, q->pattern, q->n, 1);
        else
            status = dev_copy(self, call, q->to, q->to_offset, q->from, q->from_offset, q->bytes);
    }
    return status;
}

static int32_t flush(void *self, struct rung_call *call)
{
    (void)self, (void)call;
    fake_counts.flushes++;
    fake_clock += 30e3;
    return RUNG_OK;
}

static int32_t condition(void *self, struct rung_call *call, struct rung_device_condition *out)
{
    (void)self, (void)call;
    out->known = 1;
    out->sm_mhz = 1000 + (uint32_t)fake_counts.replays;
    return RUNG_OK;
}

#define PLAIN_OPS                                                                                  \
    .struct_size = sizeof(struct rung_device_ops), .info = info, .alloc = dev_alloc,               \
    .free = dev_free, .address = address, .map = map, .write = dev_write, .read = dev_read,        \
    .fill = dev_fill, .load = load, .unload = unload, .launch = launch, .sync = dev_sync,          \
    .event_new = event_new, .event_free = event_free, .event_record = event_record
static const struct rung_device_ops plain_ops = {PLAIN_OPS, .event_elapsed = event_elapsed};
static const struct rung_device_ops device_ops = {
    PLAIN_OPS, .event_elapsed = event_elapsed, .reset = reset, .symbol = symbol, .copy = dev_copy};
static const struct rung_device_ops timed_ops = {PLAIN_OPS,
                                                 .reset = reset,
                                                 .symbol = symbol,
                                                 .copy = dev_copy,
                                                 .event_elapsed = clock_elapsed,
                                                 .capture = capture,
                                                 .captured = captured,
                                                 .replay = replay,
                                                 .graph_free = graph_free,
                                                 .flush = flush,
                                                 .condition = condition};

/* ---- The reference ---- */

static double value_store[1 << 16], bound_store[1 << 16];

static int32_t check(void *self, struct rung_call *call, const struct rung_task *task)
{
    (void)self, (void)call, (void)task;
    return RUNG_OK;
}

/* Whether element i of y, which has the shape of x, is asked for. */
static int in_box(const struct rung_tensor_view *x, const struct rung_region *regions, uint64_t i)
{
    for (uint32_t d = x->n_dims; regions && d-- > 0;) {
        int64_t at = (int64_t)(i % (uint64_t)x->dims[d]);
        i /= (uint64_t)x->dims[d];
        if (!regions[0].skip || regions[1].skip || at < regions[1].start[d] ||
            at >= regions[1].start[d] + regions[1].count[d])
            return 0;
    }
    return 1;
}

static int32_t evaluate(void *self, struct rung_call *call, const struct rung_reference_request *r,
                        struct rung_reference_output *out, uint32_t n_out)
{
    (void)self;
    const struct rung_tensor_view *x = &r->tensors[0];
    uint64_t n = 1;
    for (uint32_t d = 0; d < x->n_dims; d++)
        n *= (uint64_t)x->dims[d];
    if (fake_config.no_regions && r->regions)
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "", "no boxes");
    if ((n > 1 << 16 && !r->regions) || n_out != 1)
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "", "too large for the fake");
    out[0].n = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t to = out[0].n;
        if (!fake_config.ignore_regions && !in_box(x, r->regions, i))
            continue;
        value_store[to] =
            fake_config.value ? fake_config.value[i] : 2.0 * ((const float *)x->data)[i] + 1;
        bound_store[to] = fake_config.bound ? fake_config.bound[i] : 1e-6 * fabs(value_store[to]);
        out[0].n++;
    }
    out[0].value = value_store;
    out[0].bound = bound_store;
    fake_counts.evaluations++;
    fake_counts.regions += r->regions != NULL;
    fake_counts.reference_saw = x->data;
    return RUNG_OK;
}

static int32_t work(void *self, struct rung_call *call, const struct rung_task *task,
                    const int64_t *dims, struct rung_work *out)
{
    (void)self, (void)call, (void)task;
    out->flops = 2.0 * (double)dims[0];
    out->min_bytes = 8.0 * (double)dims[0];
    return RUNG_OK;
}

/* 2 x + 1 of the first input, which must lie in memory of its own. */
static int32_t evaluate_device(void *self, struct rung_call *call,
                               const struct rung_reference_request *r,
                               struct rung_reference_device_output *out, uint32_t n_out)
{
    const struct rung_tensor_view *x = &r->tensors[0];
    uint64_t n = (uint64_t)x->dims[0];
    if (fake_config.device_refuses)
        return rung_fail(call->error, fake_config.device_refuses, "", "refused");
    if (n_out != 1 || x->data != ((struct rung_buffer *)x->handle)->memory)
        return rung_fail(call->error, RUNG_EINVAL, "", "the request is wrong");
    dev_alloc(self, call, n * sizeof(double), 256, "value", &out[0].value);
    dev_alloc(self, call, n * sizeof(double), 256, "bound", &out[0].bound);
    for (uint64_t i = 0; i < n; i++) {
        double v = 2.0 * ((const float *)x->data)[i] + 1;
        ((double *)(void *)out[0].value->memory)[i] = v;
        ((double *)(void *)out[0].bound->memory)[i] = 1e-6 * fabs(v);
    }
    out[0].n = n;
    fake_counts.device_evaluations++;
    fake_counts.reference_saw = x->data;
    return RUNG_OK;
}

static const struct rung_reference_ops reference_ops = {.struct_size = sizeof reference_ops,
                                                        .check = check,
                                                        .evaluate = evaluate,
                                                        .work = work,
                                                        .evaluate_device = evaluate_device};

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **self)
{
    (void)host, (void)options, (void)err;
    *self = &fake_config;
    return RUNG_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static const struct rung_factory device_factory = {.struct_size = sizeof device_factory,
                                                   .thread_model = RUNG_SERIAL_INSTANCE,
                                                   .kind = RUNG_KIND_DEVICE,
                                                   .name = "fake",
                                                   .summary = "fake",
                                                   .ops = &device_ops,
                                                   .create = create,
                                                   .destroy = destroy};
static const struct rung_factory plain_factory = {.struct_size = sizeof plain_factory,
                                                  .thread_model = RUNG_SERIAL_INSTANCE,
                                                  .kind = RUNG_KIND_DEVICE,
                                                  .name = "plain",
                                                  .summary = "plain",
                                                  .ops = &plain_ops,
                                                  .create = create,
                                                  .destroy = destroy};
static const struct rung_factory timed_factory = {.struct_size = sizeof timed_factory,
                                                  .thread_model = RUNG_SERIAL_INSTANCE,
                                                  .kind = RUNG_KIND_DEVICE,
                                                  .name = "timed",
                                                  .summary = "timed",
                                                  .ops = &timed_ops,
                                                  .create = create,
                                                  .destroy = destroy};
static const struct rung_factory reference_factory = {.struct_size = sizeof reference_factory,
                                                      .thread_model = RUNG_PARALLEL,
                                                      .kind = RUNG_KIND_REFERENCE,
                                                      .name = "fake",
                                                      .summary = "fake",
                                                      .ops = &reference_ops,
                                                      .create = create,
                                                      .destroy = destroy};

const struct rung_loaded fake_device_loaded = {.path = "fake", .factory = &device_factory};
const struct rung_loaded fake_plain_loaded = {.path = "plain", .factory = &plain_factory};
const struct rung_loaded fake_timed_loaded = {.path = "timed", .factory = &timed_factory};
const struct rung_loaded fake_reference_loaded = {.path = "fake", .factory = &reference_factory};
