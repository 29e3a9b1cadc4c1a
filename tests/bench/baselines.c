#include "bench/baselines.h"

#include "base/diag.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "config/config.h"
#include "config/load.h"
#include "plugin/options.h"
#include "task/task.h"
#include "worker/process/program.h"

#include <stdlib.h>
#include <string.h>

/* ---- A device that is host memory ---- */

struct rung_buffer {
    void *bytes;
};

static int32_t fake_alloc(void *self, struct rung_call *call, uint64_t bytes, uint64_t align,
                          const char *label, struct rung_buffer **out)
{
    (void)self, (void)call, (void)label;
    *out = calloc(1, sizeof **out);
    (*out)->bytes = aligned_alloc(align, (bytes + align - 1) / align * align);
    return RUNG_OK;
}

static void fake_free(void *self, struct rung_buffer *buffer)
{
    (void)self;
    if (buffer)
        free(buffer->bytes);
    free(buffer);
}

static uint64_t fake_address(void *self, struct rung_buffer *buffer)
{
    (void)self;
    return (uint64_t)(uintptr_t)buffer->bytes;
}

static int32_t fake_fill(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                         uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    (void)self, (void)call, (void)written;
    for (uint64_t i = 0; i < bytes; i++)
        ((char *)b->bytes)[offset + i] = ((const char *)pattern)[i % n];
    return RUNG_OK;
}

static int32_t fake_sync(void *self, struct rung_call *call, struct rung_fault *fault)
{
    (void)self, (void)call;
    fault->code[0] = '\0';
    return RUNG_OK;
}

struct rung_device_event {
    uint64_t at;
};

static int32_t fake_event_new(void *self, struct rung_call *call, struct rung_device_event **out)
{
    (void)self, (void)call;
    *out = calloc(1, sizeof **out);
    return RUNG_OK;
}

static void fake_event_free(void *self, struct rung_device_event *event)
{
    (void)self;
    free(event);
}

static int32_t fake_record(void *self, struct rung_call *call, struct rung_device_event *event)
{
    (void)call;
    ((struct bench *)self)->fake_events++;
    event->at = rung_now_ns();
    return RUNG_OK;
}

static int32_t fake_elapsed(void *self, struct rung_call *call, struct rung_device_event *from,
                            struct rung_device_event *to, double *ns)
{
    (void)self, (void)call;
    *ns = (double)(to->at - from->at);
    return RUNG_OK;
}

static uint64_t fake_native(void *self, uint32_t what)
{
    (void)self;
    return what == RUNG_NATIVE_CONTEXT ? 1 : 0;
}

static const struct rung_device_ops fake_ops = {.struct_size = sizeof fake_ops,
                                                .alloc = fake_alloc,
                                                .free = fake_free,
                                                .address = fake_address,
                                                .fill = fake_fill,
                                                .sync = fake_sync,
                                                .event_new = fake_event_new,
                                                .event_free = fake_event_free,
                                                .event_record = fake_record,
                                                .event_elapsed = fake_elapsed,
                                                .native = fake_native};

/* ---- The host service ---- */

static const struct rung_device_ops *service_ops(const struct rung_host *host, void **self)
{
    struct bench *b = rung_host_user(host, RUNG_HOST_DEVICE);
    *self = b->device ? b->device->self : b;
    return b->device ? b->device->ops : &fake_ops;
}

static const struct rung_device_info *service_info(const struct rung_host *host)
{
    return &((struct bench *)rung_host_user(host, RUNG_HOST_DEVICE))->info;
}

static const struct rung_host_device device_service = {
    .struct_size = sizeof device_service, .ops = service_ops, .info = service_info};

/* ---- The session ---- */

static int32_t session_shape(const struct rung_session *session, uint32_t tensor,
                             const int64_t *dims, int64_t *shape)
{
    struct bench *b = session->ctx;
    return rung_task_shape(b->task, tensor, dims, shape, &b->error);
}

/* ---- Opening ---- */

void bench_call(struct bench *b, double seconds)
{
    b->error = rung_error_init();
    b->call =
        (struct rung_call){.struct_size = sizeof b->call, .arena = b->arena, .error = &b->error};
    if (seconds > 0)
        b->call.deadline_ns = rung_now_ns() + (uint64_t)(seconds * 1e9);
}

void bench_open(struct bench *b, const char *plugins)
{
    *b = (struct bench){.arena = rung_arena_new(), .registry = rung_registry_new()};
    bench_call(b, 0);
    rung_registry_allow_insecure(b->registry);
    rung_registry_add_dir(b->registry, plugins);
    b->info = (struct rung_device_info){
        .struct_size = sizeof b->info, .name = "memory", .id = "GPU-of-a-test"};
}

static int32_t make(struct bench *b, const char *kind, const char *name, const char *json,
                    const char *data_dir, struct rung_instance **out)
{
    const struct rung_loaded *loaded;
    struct rung_diags diags = {0};
    const struct rung_service services[] = {
        {RUNG_HOST_DEVICE, &device_service, b},
        {RUNG_HOST_PROGRAM, &rung_program_table, (void *)(uintptr_t)HELPER_MAIN},
        {NULL, NULL, NULL}};
    if (rung_registry_load(b->registry, kind, name, &loaded, &b->error))
        fail_msg("%s", b->error.message);
    cJSON *object = cJSON_Parse(json);
    assert_non_null(object);
    struct rung_node *node = rung_node_from_json(b->arena, object, NULL, name);
    cJSON_Delete(object);
    const struct rung_options *options =
        rung_options_read(b->arena, loaded->factory, node, NULL, data_dir, &diags);
    if (!options)
        fail_msg("%s", rung_buf_text(&diags.text));
    if (rung_instance_new(loaded, options, name, data_dir, services, out, &b->error))
        fail_msg("%s", b->error.message);
    return rung_instance_start(*out, &b->error);
}

int bench_open_gpu(struct bench *b, const char *plugins)
{
    int32_t status;
    bench_open(b, plugins);
    if (make(b, RUNG_KIND_DEVICE, "cuda", "{}", "/", &b->device))
        return 0;
    RUNG_INVOKE(status, b->device, struct rung_device_ops, info, &b->call, &b->info);
    return status == RUNG_OK;
}

void bench_close(struct bench *b)
{
    bench_baseline_end(b);
    rung_instance_free(b->device);
    rung_registry_free(b->registry);
    rung_arena_free(b->arena);
}

void bench_baseline(struct bench *b, const char *name, const char *options, const char *data_dir)
{
    bench_baseline_end(b);
    if (make(b, RUNG_KIND_BASELINE, name, options, data_dir, &b->baseline))
        fail_msg("%s", b->error.message);
}

void bench_baseline_end(struct bench *b)
{
    bench_release(b);
    rung_instance_free(b->baseline);
    b->baseline = NULL;
}

static void read_task(struct bench *b, struct rung_node *root, struct rung_diags *diags)
{
    b->task = root ? rung_task_read(b->arena, root, diags) : NULL;
    if (!b->task)
        fail_msg("%s", rung_buf_text(&diags->text));
    rung_diags_free(diags);
    b->session = (struct rung_session){.struct_size = sizeof b->session,
                                       .task = b->task,
                                       .device = &b->info,
                                       .ctx = b,
                                       .shape = session_shape};
}

void bench_task_text(struct bench *b, const char *text)
{
    struct rung_diags diags = {0};
    read_task(b, rung_config_parse(b->arena, text, "test.cfg", &diags), &diags);
}

void bench_task_file(struct bench *b, const char *path)
{
    struct rung_diags diags = {0};
    read_task(b, rung_config_task(b->arena, path, &diags), &diags);
}

const int64_t *bench_dims(const struct bench *b)
{
    return b->task->bench[0].dims;
}

const struct rung_baseline_ops *bench_ops(const struct bench *b)
{
    return b->baseline->ops;
}

int32_t bench_prepare(struct bench *b)
{
    int32_t status;
    bench_release(b);
    bench_call(b, 120);
    b->ready = (struct rung_baseline_case){.struct_size = sizeof b->ready};
    RUNG_INVOKE(status, b->baseline, struct rung_baseline_ops, prepare, &b->call, &b->session,
                bench_dims(b), &b->ready);
    return status;
}

void bench_release(struct bench *b)
{
    if (b->ready.ctx)
        bench_ops(b)->release(b->baseline->self, &b->ready);
    b->ready.ctx = NULL;
}
