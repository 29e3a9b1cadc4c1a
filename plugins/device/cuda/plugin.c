/*
 * device "cuda": an NVIDIA GPU through the driver API. Memory, events, description, life. It loads
 * libcuda only in start(), so that its descriptor can be read anywhere. One thread at a time.
 */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FOR_DRIVER = 512 << 20 }; /* bytes left to the driver: local memory, code, printf */

static int32_t fail(struct rung_error *err, int32_t code, const char *symbol, const char *message)
{
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    snprintf(err->message, sizeof err->message, "%s", message);
    return code;
}

/* ---- Memory ---- */

static int32_t mem_alloc(void *ptr, struct rung_call *call, uint64_t bytes, uint64_t align,
                         const char *label, struct rung_buffer **out)
{
    struct cuda *self = ptr;
    (void)label;
    *out = NULL;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    if (!bytes || !align || align > 4096 || (align & (align - 1)) || bytes > SIZE_MAX - align)
        return fail(call->error, RUNG_EINVAL, "cuda.alloc",
                    "a size and an alignment of at most 4096 are needed");
    struct rung_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return fail(call->error, RUNG_ENOMEM, "cuda.host_memory", "no host memory");
    uint64_t slack = align > 256 ? align : 0; /* the driver aligns to 256 bytes at least */
    cu_result result = self->driver.mem_alloc(&b->base, bytes + slack);
    if (result != CU_OK) {
        free(b);
        return cuda_fail(&self->driver, call->error,
                         result == CU_OUT_OF_MEMORY ? RUNG_ENOMEM : RUNG_EUNAVAILABLE, "cuMemAlloc",
                         result);
    }
    b->address = (b->base + align - 1) & ~(align - 1);
    b->bytes = bytes;
    *out = b;
    return RUNG_OK;
}

static void mem_free(void *ptr, struct rung_buffer *b)
{
    struct cuda *self = ptr;
    if (!b)
        return;
    cuda_graph_abandon(self);
    if (!self->dead && self->driver.context_set(self->context) == CU_OK)
        self->driver.mem_free(b->base);
    free(b);
}

static uint64_t mem_address(void *ptr, struct rung_buffer *b)
{
    (void)ptr;
    return b->address;
}

static void *mem_map(void *ptr, struct rung_buffer *b)
{
    (void)ptr, (void)b;
    return NULL;
}

static int32_t check_range(struct rung_call *call, const struct rung_buffer *b, uint64_t offset,
                           uint64_t bytes)
{
    if (offset > b->bytes || bytes > b->bytes - offset)
        return fail(call->error, RUNG_EINVAL, "cuda.range", "the range lies outside the buffer");
    return RUNG_OK;
}

static int32_t mem_write(void *ptr, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                         const void *from, uint64_t bytes)
{
    struct cuda *self = ptr;
    int32_t status = check_range(call, b, offset, bytes);
    if (status == RUNG_OK)
        status = cuda_enter(self, call);
    if (status != RUNG_OK || !bytes)
        return status;
    cu_result result = self->driver.copy_in(b->address + offset, from, bytes, self->stream);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuMemcpyHtoD", result);
    return cuda_settle(self, call, "copy to the GPU");
}

static int32_t mem_read(void *ptr, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        void *to, uint64_t bytes)
{
    struct cuda *self = ptr;
    int32_t status = check_range(call, b, offset, bytes);
    if (status == RUNG_OK)
        status = cuda_enter(self, call);
    /* A kernel that hangs must meet the deadline here, not inside the copy. */
    if (status == RUNG_OK)
        status = cuda_settle(self, call, "before a copy from the GPU");
    if (status != RUNG_OK || !bytes)
        return status;
    cu_result result = self->driver.copy_out(to, b->address + offset, bytes, self->stream);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuMemcpyDtoH", result);
    return cuda_settle(self, call, "copy from the GPU");
}

/* Whether the pattern repeats its first 4 bytes. */
static int is_word(const unsigned char *pattern, uint64_t n)
{
    return n % 4 == 0 && memcmp(pattern, pattern + 4, n - 4) == 0;
}

static int is_byte(const unsigned char *pattern, uint64_t n)
{
    return memcmp(pattern, pattern + 1, n - 1) == 0;
}

/* Bytes of one value at the start of p, at most n. */
static uint64_t run_of(const unsigned char *p, uint64_t n)
{
    uint64_t same = 1;
    while (same < n && p[same] == p[0])
        same++;
    return same;
}

/*
 * Writes bytes that the caller may change afterwards. A graph would copy from host memory at each
 * replay, so there they become values of fills.
 */
static cu_result put(struct cuda *self, cu_address at, const unsigned char *p, uint64_t n)
{
    cu_result result = CU_OK;
    unsigned word;
    if (!self->recording)
        return self->driver.copy_in(at, p, n, self->stream);
    for (uint64_t i = 0, take; i < n && result == CU_OK; i += take) {
        take = run_of(p + i, n - i);
        if (take < 4 && (at + i) % 4 == 0 && n - i >= 4) {
            take = 4;
            memcpy(&word, p + i, sizeof word);
            result = self->driver.set32(at + i, word, 1, self->stream);
        } else {
            result = self->driver.set8(at + i, p[i], take, self->stream);
        }
    }
    return result;
}

/* The pattern once, then what is there already behind itself, doubling. */
static cu_result fill_doubling(struct cuda *self, cu_address at, uint64_t bytes,
                               const void *pattern, uint64_t n)
{
    uint64_t done = n < bytes ? n : bytes;
    cu_result result = put(self, at, pattern, done);
    while (result == CU_OK && done < bytes) {
        uint64_t take = done < bytes - done ? done : bytes - done;
        result = self->driver.copy(at + done, at, take, self->stream);
        done += take;
    }
    return result;
}

static int32_t mem_fill(void *ptr, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    struct cuda *self = ptr;
    const unsigned char *p = pattern;
    (void)written; /* this device does not watch reads */
    int32_t status = check_range(call, b, offset, bytes);
    if (status == RUNG_OK)
        status = cuda_enter_queue(self, call);
    if (status != RUNG_OK || !bytes)
        return status;
    if (!n)
        return fail(call->error, RUNG_EINVAL, "cuda.fill", "the pattern is empty");
    cu_address at = b->address + offset;
    cu_result result;
    unsigned word;
    if (is_byte(p, n)) {
        result = self->driver.set8(at, p[0], bytes, self->stream);
    } else if (is_word(p, n) && at % 4 == 0 && bytes % 4 == 0) {
        memcpy(&word, p, sizeof word);
        result = self->driver.set32(at, word, bytes / 4, self->stream);
    } else {
        result = fill_doubling(self, at, bytes, pattern, n);
    }
    /* Queued like a launch: a memset of the plan is timed between its neighbours. */
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "fill", result);
    return RUNG_OK;
}

/* Queued like a launch: the plan's copies into variables lie among its launches. */
static int32_t mem_copy(void *ptr, struct rung_call *call, struct rung_buffer *to,
                        uint64_t to_offset, struct rung_buffer *from, uint64_t from_offset,
                        uint64_t bytes)
{
    struct cuda *self = ptr;
    int32_t status = check_range(call, to, to_offset, bytes);
    if (status == RUNG_OK)
        status = check_range(call, from, from_offset, bytes);
    if (status == RUNG_OK)
        status = cuda_enter_queue(self, call);
    if (status != RUNG_OK || !bytes)
        return status;
    cu_result result = self->driver.copy(to->address + to_offset, from->address + from_offset,
                                         bytes, self->stream);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuMemcpyDtoD", result);
    return RUNG_OK;
}

/* ---- Events ---- */

struct rung_device_event {
    cu_event event;
};

static int32_t event_new(void *ptr, struct rung_call *call, struct rung_device_event **out)
{
    struct cuda *self = ptr;
    *out = NULL;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    struct rung_device_event *e = calloc(1, sizeof *e);
    if (!e)
        return fail(call->error, RUNG_ENOMEM, "cuda.host_memory", "no host memory");
    cu_result result = self->driver.event_new(&e->event, 0);
    if (result != CU_OK) {
        free(e);
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuEventCreate", result);
    }
    *out = e;
    return RUNG_OK;
}

static void event_free(void *ptr, struct rung_device_event *e)
{
    struct cuda *self = ptr;
    if (!e)
        return;
    cuda_graph_abandon(self);
    if (!self->dead && self->driver.context_set(self->context) == CU_OK)
        self->driver.event_free(e->event);
    free(e);
}

static int32_t event_record(void *ptr, struct rung_call *call, struct rung_device_event *e)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    cu_result result = self->driver.event_record(e->event, self->stream);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuEventRecord", result);
    return RUNG_OK;
}

static int32_t event_elapsed(void *ptr, struct rung_call *call, struct rung_device_event *from,
                             struct rung_device_event *to, double *ns)
{
    struct cuda *self = ptr;
    float ms = 0;
    int32_t status = cuda_enter(self, call);
    if (status == RUNG_OK)
        status = cuda_settle(self, call, "between events");
    if (status != RUNG_OK)
        return status;
    cu_result result = self->driver.event_elapsed(&ms, from->event, to->event);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuEventElapsedTime",
                         result);
    *ns = (double)ms * 1e6;
    return RUNG_OK;
}

/* ---- Life ---- */

static int32_t info(void *ptr, struct rung_call *call, struct rung_device_info *out)
{
    struct cuda *self = ptr;
    (void)call;
    *out = self->info;
    return RUNG_OK;
}

static uint64_t native(void *ptr, uint32_t what)
{
    struct cuda *self = ptr;
    if (self->dead || self->driver.context_set(self->context) != CU_OK)
        return 0;
    switch (what) {
    case RUNG_NATIVE_CONTEXT:
        return (uintptr_t)self->context;
    case RUNG_NATIVE_STREAM:
        return (uintptr_t)self->stream;
    case RUNG_NATIVE_ORDINAL:
        return (uint64_t)self->device;
    default:
        return 0;
    }
}

static int attribute(struct cuda *self, int which, int otherwise)
{
    int value;
    return self->driver.device_attribute(&value, which, self->device) == CU_OK ? value : otherwise;
}

static void describe_id(struct cuda *self)
{
    struct cu_uuid u;
    if (self->driver.device_uuid(&u, self->device) != CU_OK) {
        snprintf(self->id, sizeof self->id, "cuda:%d", self->ordinal);
        return;
    }
    int len = snprintf(self->id, sizeof self->id, "GPU-");
    for (int i = 0; i < 16; i++)
        len += snprintf(self->id + len, sizeof self->id - (size_t)len, "%s%02x",
                        i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u.bytes[i]);
}

static void describe(struct cuda *self)
{
    size_t free_bytes = 0, total = 0;
    int version = 0;
    if (self->driver.device_name(self->name, sizeof self->name, self->device) != CU_OK)
        snprintf(self->name, sizeof self->name, "NVIDIA GPU");
    self->name[sizeof self->name - 1] = 0;
    describe_id(self);
    self->clusters = attribute(self, CU_ATTR_CLUSTER_LAUNCH, 0);
    self->cooperative = attribute(self, CU_ATTR_COOPERATIVE_LAUNCH, 0);
    self->tensor_maps = self->driver.tensormap && attribute(self, CU_ATTR_TENSOR_MAPS, 0);
    self->driver.driver_version(&version);
    self->driver.mem_info(&free_bytes, &total);
    snprintf(self->version, sizeof self->version, "CUDA %d.%d", version / 1000,
             version % 1000 / 10);
    uint32_t major = (uint32_t)attribute(self, CU_ATTR_MAJOR, 0),
             minor = (uint32_t)attribute(self, CU_ATTR_MINOR, 0);
    snprintf(self->arch, sizeof self->arch, "sm_%u%u", major, minor);
    self->info = (struct rung_device_info){
        .struct_size = sizeof self->info,
        .flags = RUNG_DEVICE_MEASURES,
        .name = self->name,
        .id = self->id,
        .format = RUNG_FORMAT_CUBIN,
        .sm_count = (uint32_t)attribute(self, CU_ATTR_SM_COUNT, 1),
        .arch = self->arch,
        .memory_bytes = free_bytes > 2 * (size_t)ROOM_FOR_DRIVER ? free_bytes - ROOM_FOR_DRIVER
                                                                 : free_bytes / 2,
        .max_threads_per_block = (uint32_t)attribute(self, CU_ATTR_MAX_THREADS_PER_BLOCK, 1024),
        .max_shared_bytes = (uint32_t)attribute(self, CU_ATTR_MAX_SHARED_OPTIN, 48 << 10),
        .l2_bytes = (uint32_t)attribute(self, CU_ATTR_L2_BYTES, 0),
        .driver = self->version,
        .compute_major = major,
        .compute_minor = minor,
        .sm_khz = (uint32_t)attribute(self, CU_ATTR_SM_KHZ, 0),
        .memory_khz = (uint32_t)attribute(self, CU_ATTR_MEMORY_KHZ, 0),
        .memory_bus_bits = (uint32_t)attribute(self, CU_ATTR_MEMORY_BUS_BITS, 0),
        .ordinal = (uint32_t)self->ordinal};
}

static int32_t pick_device(struct cuda *self, struct rung_error *err)
{
    int count = 0;
    cu_result result = self->driver.device_count(&count);
    if (result != CU_OK)
        return cuda_fail(&self->driver, err, RUNG_EUNAVAILABLE, "counting GPUs", result);
    if (self->ordinal >= count) {
        err->code = RUNG_EUNAVAILABLE;
        snprintf(err->symbol, sizeof err->symbol, "cuda.no_gpu");
        snprintf(err->message, sizeof err->message, "there is no GPU %d; the driver shows %d",
                 self->ordinal, count);
        return RUNG_EUNAVAILABLE;
    }
    result = self->driver.device_get(&self->device, self->ordinal);
    if (result != CU_OK)
        return cuda_fail(&self->driver, err, RUNG_EUNAVAILABLE, "cuDeviceGet", result);
    return RUNG_OK;
}

static int32_t start(void *ptr, struct rung_error *err)
{
    struct cuda *self = ptr;
    int32_t status = cuda_driver_open(&self->driver, "libcuda.so.1", err);
    if (status == RUNG_OK)
        status = pick_device(self, err);
    if (status != RUNG_OK)
        return status;
    cu_result result = self->driver.context_retain(&self->context, self->device);
    if (result != CU_OK)
        return cuda_fail(&self->driver, err, RUNG_EUNAVAILABLE, "cuDevicePrimaryCtxRetain", result);
    result = self->driver.context_set(self->context);
    if (result == CU_OK)
        result = self->driver.stream_new(&self->stream, CU_STREAM_NON_BLOCKING);
    if (result != CU_OK) {
        self->driver.context_release(self->device);
        return cuda_fail(&self->driver, err, RUNG_EUNAVAILABLE, "cuStreamCreate", result);
    }
    self->started = 1;
    describe(self);
    return RUNG_OK;
}

/* A kernel that hangs would make these wait for ever, and the driver's library does not unload. */
static void stop(void *ptr)
{
    struct cuda *self = ptr;
    nvml_close(&self->nvml);
    cuda_graph_abandon(self);
    if (!self->started || self->dead)
        return;
    self->driver.context_set(self->context);
    cuda_flush_free(self);
    self->driver.stream_free(self->stream);
    self->driver.context_release(self->device);
    self->started = 0;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    struct cuda *self = calloc(1, sizeof *self);
    if (!self)
        return fail(err, RUNG_ENOMEM, "cuda.host_memory", "out of memory");
    self->host = host;
    self->ordinal = (int)host->opt_int(host, options, "index");
    *out = self;
    return RUNG_OK;
}

static void destroy(void *ptr)
{
    free(ptr);
}

static const struct rung_option option_index = {
    .struct_size = sizeof option_index,
    .type = RUNG_OPT_INT,
    .name = "index",
    .default_text = "0",
    .summary = "Which of the GPUs that the driver shows, from 0.",
    .min = 0,
    .max = 1023};
static const struct rung_option *const options[] = {&option_index, NULL};

static const struct rung_device_ops ops = {.struct_size = sizeof ops,
                                           .info = info,
                                           .alloc = mem_alloc,
                                           .free = mem_free,
                                           .address = mem_address,
                                           .map = mem_map,
                                           .write = mem_write,
                                           .read = mem_read,
                                           .fill = mem_fill,
                                           .load = cuda_load,
                                           .unload = cuda_unload,
                                           .launch = cuda_launch,
                                           .sync = cuda_sync,
                                           .event_new = event_new,
                                           .event_free = event_free,
                                           .event_record = event_record,
                                           .event_elapsed = event_elapsed,
                                           .reset = cuda_reset,
                                           .symbol = cuda_symbol,
                                           .copy = mem_copy,
                                           .capture = cuda_capture,
                                           .captured = cuda_captured,
                                           .replay = cuda_replay,
                                           .graph_free = cuda_graph_free,
                                           .flush = cuda_flush,
                                           .condition = cuda_condition,
                                           .native = native,
                                           .tensormap = cuda_tensormap};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_DEVICE,
    .name = "cuda",
    .summary = "An NVIDIA GPU through the CUDA driver",
    .doc = "Needs libcuda.so.1, which comes with the NVIDIA driver, and nothing of the toolkit. "
           "Measures time; tells clocks and temperature where libnvidia-ml.so.1 is there. "
           "After a fault such as an illegal address the process must be replaced.",
    .options = options,
    .ops = &ops,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "rung.device.cuda",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
