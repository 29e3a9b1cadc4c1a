/* Guarded calls of the device plugin: see RUNG_INVOKE. */
#include "session/private.h"

#include <stddef.h>

#define OPS(s) ((const struct rung_device_ops *)(s)->spec.device->ops)
#define CALL(status, s, op, call, ...)                                                             \
    RUNG_INVOKE(status, (s)->spec.device, struct rung_device_ops, op, call, __VA_ARGS__)

int32_t device_alloc(struct rung_open_session *s, struct rung_call *call, uint64_t bytes,
                     uint64_t align, const char *label, struct rung_buffer **out)
{
    int32_t status;
    *out = NULL;
    CALL(status, s, alloc, call, bytes, align, label, out);
    return status;
}

/* Guards also the operations that have no call and can't fail. */
#define PLAIN(s, statement)                                                                        \
    do {                                                                                           \
        struct rung_guard guard_;                                                                  \
        struct rung_error err_ = rung_error_init();                                                \
        rung_guard_enter(&guard_, (s)->spec.device);                                               \
        statement;                                                                                 \
        rung_guard_leave(&guard_, RUNG_OK, &err_);                                                 \
    } while (0)

void device_free(struct rung_open_session *s, struct rung_buffer *buffer)
{
    PLAIN(s, OPS(s)->free(s->spec.device->self, buffer));
}

uint64_t device_address(struct rung_open_session *s, struct rung_buffer *buffer)
{
    uint64_t address;
    PLAIN(s, address = OPS(s)->address(s->spec.device->self, buffer));
    return address;
}

void *device_map(struct rung_open_session *s, struct rung_buffer *buffer)
{
    void *host = NULL;
    if (s->spec.info->flags & RUNG_DEVICE_HOST_MEMORY)
        PLAIN(s, host = OPS(s)->map(s->spec.device->self, buffer));
    return host;
}

int32_t device_write(struct rung_open_session *s, struct rung_call *call,
                     struct rung_buffer *buffer, uint64_t offset, const void *from, uint64_t bytes)
{
    int32_t status;
    CALL(status, s, write, call, buffer, offset, from, bytes);
    return status;
}

int32_t device_read(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *buffer,
                    uint64_t offset, void *to, uint64_t bytes)
{
    int32_t status;
    CALL(status, s, read, call, buffer, offset, to, bytes);
    return status;
}

int32_t device_fill(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *buffer,
                    uint64_t offset, uint64_t bytes, const void *pattern, uint64_t n,
                    uint32_t written)
{
    int32_t status;
    CALL(status, s, fill, call, buffer, offset, bytes, pattern, n, written);
    return status;
}

int32_t device_launch(struct rung_open_session *s, struct rung_call *call,
                      const struct rung_launch *launch, struct rung_fault *fault)
{
    int32_t status;
    CALL(status, s, launch, call, launch, fault);
    return status;
}

/* Operations past the table's struct_size are missing ones. */
#define HAS(s, op)                                                                                 \
    (OPS(s)->struct_size >= offsetof(struct rung_device_ops, op) + sizeof OPS(s)->op &&            \
     OPS(s)->op != NULL)

bool device_has_symbols(const struct rung_open_session *s)
{
    return HAS(s, symbol) && HAS(s, copy);
}

bool device_has_copy(const struct rung_open_session *s)
{
    return HAS(s, copy);
}

int32_t device_reset(struct rung_open_session *s, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    if (s->module && HAS(s, reset))
        CALL(status, s, reset, call, s->module);
    return status;
}

int32_t device_symbol(struct rung_open_session *s, struct rung_call *call, const char *name,
                      struct rung_buffer **out, uint64_t *bytes)
{
    int32_t status;
    *out = NULL;
    CALL(status, s, symbol, call, s->module, name, out, bytes);
    return status;
}

int32_t device_copy(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *to,
                    uint64_t to_offset, struct rung_buffer *from, uint64_t from_offset,
                    uint64_t bytes)
{
    int32_t status;
    CALL(status, s, copy, call, to, to_offset, from, from_offset, bytes);
    return status;
}

int32_t device_sync(struct rung_open_session *s, struct rung_call *call, struct rung_fault *fault)
{
    int32_t status;
    CALL(status, s, sync, call, fault);
    return status;
}

bool device_has_tensormaps(const struct rung_open_session *s)
{
    return HAS(s, tensormap);
}

int32_t device_tensormap(struct rung_open_session *s, struct rung_call *call,
                         const struct rung_tensormap *map, void *out, struct rung_fault *fault)
{
    int32_t status;
    CALL(status, s, tensormap, call, map, out, fault);
    return status;
}

/* ---- Time ---- */

bool device_has_graphs(const struct rung_open_session *s)
{
    return HAS(s, capture) && HAS(s, captured) && HAS(s, replay) && HAS(s, graph_free);
}

bool device_has_flush(const struct rung_open_session *s)
{
    return HAS(s, flush);
}

int32_t device_capture(struct rung_open_session *s, struct rung_call *call)
{
    struct rung_guard guard;
    rung_guard_enter(&guard, s->spec.device);
    int32_t status = OPS(s)->capture(s->spec.device->self, call);
    return rung_guard_leave(&guard, status, call->error);
}

int32_t device_captured(struct rung_open_session *s, struct rung_call *call,
                        struct rung_graph **out, struct rung_fault *fault)
{
    int32_t status;
    *out = NULL;
    CALL(status, s, captured, call, out, fault);
    return status;
}

int32_t device_replay(struct rung_open_session *s, struct rung_call *call, struct rung_graph *graph,
                      struct rung_fault *fault)
{
    int32_t status;
    CALL(status, s, replay, call, graph, fault);
    return status;
}

void device_graph_free(struct rung_open_session *s, struct rung_graph *graph)
{
    if (graph)
        PLAIN(s, OPS(s)->graph_free(s->spec.device->self, graph));
}

int32_t device_flush(struct rung_open_session *s, struct rung_call *call)
{
    struct rung_guard guard;
    rung_guard_enter(&guard, s->spec.device);
    int32_t status = OPS(s)->flush(s->spec.device->self, call);
    return rung_guard_leave(&guard, status, call->error);
}

int32_t device_condition(struct rung_open_session *s, struct rung_call *call,
                         struct rung_device_condition *out)
{
    int32_t status = RUNG_OK;
    *out = (struct rung_device_condition){.struct_size = sizeof *out};
    if (HAS(s, condition))
        CALL(status, s, condition, call, out);
    return status;
}

int32_t device_event_new(struct rung_open_session *s, struct rung_call *call,
                         struct rung_device_event **out)
{
    int32_t status;
    *out = NULL;
    CALL(status, s, event_new, call, out);
    return status;
}

void device_event_free(struct rung_open_session *s, struct rung_device_event *event)
{
    if (event)
        PLAIN(s, OPS(s)->event_free(s->spec.device->self, event));
}

int32_t device_event_record(struct rung_open_session *s, struct rung_call *call,
                            struct rung_device_event *event)
{
    int32_t status;
    CALL(status, s, event_record, call, event);
    return status;
}

int32_t device_event_elapsed(struct rung_open_session *s, struct rung_call *call,
                             struct rung_device_event *from, struct rung_device_event *to,
                             double *ns)
{
    int32_t status;
    CALL(status, s, event_elapsed, call, from, to, ns);
    return status;
}
