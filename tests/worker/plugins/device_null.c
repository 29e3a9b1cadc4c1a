/*
 * A device whose launches do nothing; its buffers are host memory. Under another name it may have a
 * clock, as far as its flags go: the timer "clock" is the only one to look at it.
 */
#include "fake.h"
#include <rung/device.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct rung_buffer {
    uint64_t bytes;
    char *memory;
};

struct rung_module {
    char *text; /* the code: markers are in it */
    uint32_t launches;
};

#ifndef DEVICE_NAME
#define DEVICE_NAME "null"
#endif
#ifdef DEVICE_CLOCK
enum { DEVICE_FLAGS = RUNG_DEVICE_HOST_MEMORY | RUNG_DEVICE_MEASURES };
#define DEVICE_ID DEVICE_NAME
#else
enum { DEVICE_FLAGS = RUNG_DEVICE_HOST_MEMORY | RUNG_DEVICE_COUNTERS };
#define DEVICE_ID "null"
#endif

static int32_t info(void *self, struct rung_call *call, struct rung_device_info *out)
{
    (void)self, (void)call;
    *out = (struct rung_device_info){.struct_size = sizeof *out,
                                     .flags = DEVICE_FLAGS,
                                     .name = "nothing",
                                     .id = DEVICE_ID,
                                     .format = RUNG_FORMAT_PTX,
                                     .sm_count = 4,
                                     .arch = "compute_90",
                                     .memory_bytes = 1 << 30,
                                     .max_threads_per_block = 1024,
                                     .max_shared_bytes = 49152,
                                     .driver = "0"};
    return RUNG_OK;
}

static int32_t dev_alloc(void *self, struct rung_call *call, uint64_t bytes, uint64_t align,
                         const char *label, struct rung_buffer **out)
{
    (void)self, (void)label;
    struct rung_buffer *b = malloc(sizeof *b);
    void *memory = NULL;
    if (!b || posix_memalign(&memory, align < 16 ? 16 : align, bytes) != 0) {
        free(b);
        return fake_fail(call, RUNG_ENOMEM, "memory is out");
    }
    *b = (struct rung_buffer){bytes, memory};
    *out = b;
    return RUNG_OK;
}

static void dev_free(void *self, struct rung_buffer *b)
{
    (void)self;
    if (b)
        free(b->memory);
    free(b);
}

static uint64_t address(void *self, struct rung_buffer *b)
{
    (void)self;
    return (uint64_t)(uintptr_t)b->memory;
}

static void *map(void *self, struct rung_buffer *b)
{
    (void)self;
    return b->memory;
}

static int32_t dev_write(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                         const void *from, uint64_t bytes)
{
    (void)self, (void)call;
    memcpy(b->memory + offset, from, bytes);
    return RUNG_OK;
}

static int32_t dev_read(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        void *to, uint64_t bytes)
{
    (void)self, (void)call;
    memcpy(to, b->memory + offset, bytes);
    return RUNG_OK;
}

static int32_t dev_fill(void *self, struct rung_call *call, struct rung_buffer *b, uint64_t offset,
                        uint64_t bytes, const void *pattern, uint64_t n, uint32_t written)
{
    (void)self, (void)call, (void)written;
    for (uint64_t at = 0; at < bytes; at += n)
        memcpy(b->memory + offset + at, pattern, n < bytes - at ? n : bytes - at);
    return RUNG_OK;
}

/* What a kernel does to the process that runs it. */
static void misbehave(const char *text)
{
    struct timespec moment = {100, 0};
    static const char noise[] = "noise\n{\"t\":\"bye\"}\n";
    if (fake_marked(text, "crash"))
        raise(SIGSEGV);
    if (fake_marked(text, "hang"))
        nanosleep(&moment, NULL);
    if (fake_marked(text, "exit"))
        _exit(7);
    if (fake_marked(text, "killed"))
        raise(SIGKILL);
    for (int i = 0; fake_marked(text, "print") && i < 100000; i++)
        if (write(STDOUT_FILENO, noise, sizeof noise - 1) < 0)
            _exit(9);
}

static int32_t load(void *self, struct rung_call *call, const struct rung_artifact *artifact,
                    struct rung_module **out, struct rung_fault *fault)
{
    (void)self, (void)call;
    *out = NULL;
    if (fake_marked(artifact->codes[0].bytes, "load-unsupported")) {
        strcpy(fault->code, "device.unsupported");
        strcpy(fault->message, "wgmma is not for this device");
        return RUNG_OK;
    }
    *out = malloc(sizeof **out);
    if (!*out)
        return fake_fail(call, RUNG_ENOMEM, "memory is out");
    **out = (struct rung_module){strdup(artifact->codes[0].bytes), 0};
    return RUNG_OK;
}

static void unload(void *self, struct rung_module *m)
{
    (void)self;
    if (m)
        free(m->text);
    free(m);
}

static int32_t launch(void *self, struct rung_call *call, const struct rung_launch *l,
                      struct rung_fault *fault)
{
    (void)self, (void)call;
    if (++l->module->launches == 2) /* the first rung sees nothing yet */
        misbehave(l->module->text);
    if (strcmp(l->kernel->symbol, "lost") == 0) {
        strcpy(fault->code, "device.lost");
        strcpy(fault->message, "the device fell off");
        fault->sticky = 1;
    }
    return RUNG_OK;
}

static int32_t dev_sync(void *self, struct rung_call *call, struct rung_fault *fault)
{
    (void)self, (void)call, (void)fault;
    return RUNG_OK;
}

static const struct rung_device_ops ops = {.struct_size = sizeof ops,
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
FAKE_PLUGIN(RUNG_KIND_DEVICE, DEVICE_NAME, 0, NULL, ops)
