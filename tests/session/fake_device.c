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

struct rung_device_event {
    int records;
};

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
    return RUNG_OK;
}

static int32_t event_elapsed(void *self, struct rung_call *call, struct rung_device_event *from,
                             struct rung_device_event *to, double *ns)
{
    (void)self, (void)call;
    *ns = 1000.0 * (from->records + to->records);
    return RUNG_OK;
}

#define PLAIN_OPS                                                                                  \
    .struct_size = sizeof(struct rung_device_ops), .info = info, .alloc = dev_alloc,               \
    .free = dev_free, .address = address, .map = map, .write = dev_write, .read = dev_read,        \
    .fill = dev_fill, .load = load, .unload = unload, .launch = launch, .sync = dev_sync,          \
    .event_new = event_new, .event_free = event_free, .event_record = event_record,                \
    .event_elapsed = event_elapsed
static const struct rung_device_ops plain_ops = {PLAIN_OPS};
static const struct rung_device_ops device_ops = {PLAIN_OPS, .reset = reset, .symbol = symbol,
                                                  .copy = dev_copy};

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
    if (n > 1 << 16 || n_out != 1)
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

static const struct rung_reference_ops reference_ops = {
    .struct_size = sizeof reference_ops, .check = check, .evaluate = evaluate, .work = work};

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
const struct rung_loaded fake_reference_loaded = {.path = "fake", .factory = &reference_factory};
