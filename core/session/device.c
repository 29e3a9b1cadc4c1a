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

int32_t device_reset(struct rung_open_session *s, struct rung_call *call)
{
    int32_t status = RUNG_OK;
    if (HAS(s, reset))
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
