/* Guarded calls of the device plugin: see RUNG_INVOKE. */
#include "session/private.h"

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

int32_t device_sync(struct rung_open_session *s, struct rung_call *call, struct rung_fault *fault)
{
    int32_t status;
    CALL(status, s, sync, call, fault);
    return status;
}
