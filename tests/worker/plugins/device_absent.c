/* A device that is never there, so that "auto" has something to pass over. */
#include "fake.h"
#include <rung/device.h>

static int32_t info(void *self, struct rung_call *call, struct rung_device_info *out)
{
    (void)self, (void)out;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t dev_alloc(void *self, struct rung_call *call, uint64_t bytes, uint64_t align,
                         const char *label, struct rung_buffer **out)
{
    (void)self, (void)bytes, (void)align, (void)label, (void)out;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static void dev_free(void *self, struct rung_buffer *b)
{
    (void)self, (void)b;
}

static uint64_t address(void *self, struct rung_buffer *b)
{
    (void)self, (void)b;
    return 0;
}

static void *map(void *self, struct rung_buffer *b)
{
    (void)self, (void)b;
    return NULL;
}

static int32_t dev_write(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                         const void *from, uint64_t bytes)
{
    (void)self, (void)b, (void)offset, (void)from, (void)bytes;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t dev_read(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        void *to, uint64_t bytes)
{
    (void)self, (void)b, (void)offset, (void)to, (void)bytes;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t dev_fill(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    (void)self, (void)b, (void)offset, (void)bytes, (void)pattern, (void)n, (void)written;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t load(void *self, struct rung_call *call, const struct rung_artifact *artifact,
                    struct rung_module **out, struct rung_fault *fault)
{
    (void)self, (void)artifact, (void)out, (void)fault;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static void unload(void *self, struct rung_module *m)
{
    (void)self, (void)m;
}

static int32_t launch(void *self, struct rung_call *call, const struct rung_launch *l,
                      struct rung_fault *fault)
{
    (void)self, (void)l, (void)fault;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t dev_sync(void *self, struct rung_call *call, struct rung_fault *fault)
{
    (void)self, (void)fault;
    return fake_fail(call, RUNG_EUNAVAILABLE, "not started");
}

static int32_t start(void *self, struct rung_error *err)
{
    (void)self;
    err->code = RUNG_EUNAVAILABLE;
    strcpy(err->message, "no such device here");
    return RUNG_EUNAVAILABLE;
}

static const struct rung_device_ops device_ops = {.struct_size = sizeof device_ops,
                                                  .info = info,
                                                  .alloc = dev_alloc,
                                                  .free = dev_free,
                                                  .address = address,
                                                  .map = map,
                                                  .write = dev_write,
                                                  .read = dev_read,
                                                  .fill = dev_fill,
                                                  .load = load,
                                                  .unload = unload,
                                                  .launch = launch,
                                                  .sync = dev_sync};

static const struct rung_factory factory = {.struct_size = sizeof factory,
                                            .thread_model = RUNG_SERIAL_INSTANCE,
                                            .kind = RUNG_KIND_DEVICE,
                                            .name = "absent",
                                            .summary = "for tests",
                                            .ops = &device_ops,
                                            .create = fake_create,
                                            .start = start,
                                            .destroy = fake_destroy};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "test.worker.absent",
                                          .version = "1",
                                          .vendor = "test",
                                          .licence = "MIT",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
