/*
 * A stand-in for libcuda.so.1, so that the device's own code is tried where there is no GPU: memory
 * is the host's, the kernels of gpu.c are C, and their faults stick as the real ones do. A process,
 * one thread. With FAKE_OLD it is an old driver on an old GPU. FAKE_CUDA_INIT in the environment is
 * what cuInit answers; with FAKE_CUDA_NO_JIT PTX does not load without a log.
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, MAX_SHARED = 232448, DEFAULT_SHARED = 49152 };
static struct {
    char *memory;
    size_t bytes;
} blocks[MOST];
static result sticky;
static int spinning, context;
/* Blocks of memory that hold variables belong to a module, and are freed with it. */
struct module {
    uint32_t *counter;
    float *c_w;
};
struct function {
    const char *name;
    struct module *module;
    int shared, wide;
};
static const char *const names[] = {"twice",       "poke",    "spin",       "stop",
                                    "shared_user", "count",   "read_const", "answer",
                                    "wide",        "discard", "sweep"};
enum { N_NAMES = sizeof names / sizeof *names, MODULES = 128, BLOCKS_EACH = 4 };
/* Handles of functions stay valid memory after their module is gone, but are refused. */
static struct function functions[MODULES * N_NAMES];
static int n_functions;

EXPORT struct fake_seen fake_seen;

#define ENTER                                                                                      \
    do {                                                                                           \
        if (sticky)                                                                                \
            return sticky;                                                                         \
    } while (0)
/* For calls that may not be made while a graph is recorded; they spoil it. */
#define ENTER_ALONE                                                                                \
    do {                                                                                           \
        ENTER;                                                                                     \
        if (fake_spoil())                                                                          \
            return 900;                                                                            \
    } while (0)

static int inside(address at, size_t bytes)
{
    for (int i = 0; i < MOST; i++) {
        address base = (address)(uintptr_t)blocks[i].memory;
        if (base && at >= base && at - base <= blocks[i].bytes &&
            bytes <= blocks[i].bytes - (at - base))
            return 1;
    }
    return 0;
}

EXPORT result cuInit(unsigned flags)
{
    const char *answer = getenv("FAKE_CUDA_INIT");
    return answer ? atoi(answer) : flags != 0;
}

EXPORT result cuDriverGetVersion(int *v)
{
    *v = 13000;
    return 0;
}

EXPORT result cuGetErrorName(result r, const char **text)
{
    static char name[32];
    snprintf(name, sizeof name, "CUDA_ERROR_%d", r);
    *text = name;
    return 0;
}

EXPORT result cuGetErrorString(result r, const char **text)
{
    return cuGetErrorName(r, text);
}

EXPORT result cuDeviceGetCount(int *n)
{
    *n = 1;
    return 0;
}

EXPORT result cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? 0 : 101;
}

EXPORT result cuDeviceGetName(char *name, int len, int device)
{
    (void)device;
    snprintf(name, (size_t)len, "Fake GPU");
    return 0;
}

EXPORT result cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    (void)device;
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(17 * i);
    return 0;
}

EXPORT result cuDeviceGetAttribute(int *value, int which, int device)
{
    (void)device;
    static const struct {
        int which, value, old; /* old < 0: not known to it */
    } known[] = {{1, 1024, 1024},  {13, 1980000, 1980000},       {16, 132, 132}, {36, 2619000, -1},
                 {37, 5120, 5120}, {38, 4 << 20, 4 << 20},       {75, 9, 7},     {76, 0, 5},
                 {95, 1, 1},       {97, MAX_SHARED, MAX_SHARED}, {120, 1, -1},   {127, 1, -1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].which == which) {
            *value = FAKE_OLD ? known[i].old : known[i].value;
            return *value < 0;
        }
    return 1;
}

EXPORT result cuDevicePrimaryCtxRetain(void **out, int device)
{
    (void)device;
    *out = &context;
    context++;
    return 0;
}

EXPORT result cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    context--;
    return 0;
}

EXPORT result cuCtxSetCurrent(void *c)
{
    return c == &context ? 0 : 201;
}

EXPORT result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)4 << 30;
    return 0;
}

static void *block_new(size_t bytes)
{
    for (int i = 0; i < MOST; i++)
        if (!blocks[i].memory) {
            blocks[i].memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
            blocks[i].bytes = bytes;
            return blocks[i].memory;
        }
    return NULL;
}

EXPORT result cuMemAlloc_v2(address *out, size_t bytes)
{
    ENTER_ALONE;
    void *memory = bytes > (size_t)4 << 30 ? NULL : block_new(bytes);
    *out = (address)(uintptr_t)memory;
    return memory ? 0 : 2;
}

EXPORT result cuMemFree_v2(address at)
{
    if (fake_spoil())
        return 900;
    for (int i = 0; i < MOST; i++)
        if (blocks[i].memory && (address)(uintptr_t)blocks[i].memory == at) {
            free(blocks[i].memory);
            blocks[i].memory = NULL;
            return sticky;
        }
    return 1;
}

static void *pointer(address at)
{
    return (void *)(uintptr_t)at;
}

EXPORT result cuMemcpyHtoDAsync_v2(address to, const void *from, size_t n, void *stream)
{
    (void)stream;
    ENTER;
    if (!inside(to, n))
        return 1;
    if (fake_record(&(struct fake_node){.kind = FAKE_COPY_IN, .to = to, .host = from, .n = n}))
        return 0;
    memcpy(pointer(to), from, n);
    return 0;
}

EXPORT result cuMemcpyDtoHAsync_v2(void *to, address from, size_t n, void *stream)
{
    (void)stream;
    ENTER;
    if (!inside(from, n))
        return 1;
    memcpy(to, pointer(from), n);
    return 0;
}

EXPORT result cuMemcpyDtoDAsync_v2(address to, address from, size_t n, void *stream)
{
    (void)stream;
    ENTER;
    if (!inside(to, n) || !inside(from, n) || (to < from + n && from < to + n))
        return 1;
    if (fake_record(&(struct fake_node){.kind = FAKE_COPY, .to = to, .from = from, .n = n}))
        return 0;
    memcpy(pointer(to), pointer(from), n);
    return 0;
}

EXPORT result cuMemsetD8Async(address to, unsigned char v, size_t n, void *stream)
{
    (void)stream;
    ENTER;
    if (!inside(to, n))
        return 1;
    if (fake_record(&(struct fake_node){.kind = FAKE_SET8, .to = to, .value = v, .n = n}))
        return 0;
    fake_seen.set_bytes = n;
    memset(pointer(to), v, n);
    return 0;
}

EXPORT result cuMemsetD32Async(address to, unsigned v, size_t n, void *stream)
{
    (void)stream;
    ENTER;
    if (to % 4 || !inside(to, n * 4))
        return 1;
    if (fake_record(&(struct fake_node){.kind = FAKE_SET32, .to = to, .value = v, .n = n}))
        return 0;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)pointer(to) + 4 * i, &v, 4);
    return 0;
}

EXPORT result cuModuleLoadDataEx(void **out, const void *code, unsigned n, int *options,
                                 void **values)
{
    ENTER_ALONE;
    if (n != 0 && (n != 2 || options[0] != 5 || options[1] != 6))
        return 1;
    if (n && strncmp(code, "\177ELF", 4) == 0)
        return 209; /* every CUBIN is for another GPU */
    if (!n && getenv("FAKE_CUDA_NO_JIT"))
        return 221;
    if (strncmp(code, ".version", 8) != 0) {
        snprintf(values[0], (size_t)(uintptr_t)values[1], "the code is nonsense");
        return 218;
    }
    struct module *m = calloc(1, sizeof *m);
    m->counter = block_new(sizeof *m->counter);
    m->c_w = block_new(4 * sizeof *m->c_w);
    *m->counter = 0;
    for (int i = 0; i < 4; i++)
        m->c_w[i] = 7;
    *out = m;
    return 0;
}

EXPORT result cuModuleUnload(void *module)
{
    struct module *m = module;
    if (fake_spoil())
        return 900;
    for (int i = 0; i < n_functions; i++)
        if (functions[i].module == m)
            functions[i].module = NULL;
    cuMemFree_v2((address)(uintptr_t)m->counter);
    cuMemFree_v2((address)(uintptr_t)m->c_w);
    free(module);
    return sticky;
}

EXPORT result cuModuleGetGlobal_v2(address *out, size_t *bytes, void *module, const char *name)
{
    const struct module *m = module;
    int is_counter = strcmp(name, "counter") == 0;
    ENTER;
    if (!is_counter && strcmp(name, "c_w") != 0)
        return 500;
    *out = is_counter ? (address)(uintptr_t)m->counter : (address)(uintptr_t)m->c_w;
    *bytes = is_counter ? sizeof *m->counter : 4 * sizeof *m->c_w;
    return 0;
}

EXPORT result cuModuleGetFunction(void **out, void *module, const char *name)
{
    for (int i = 0; i < N_NAMES && n_functions < MODULES * N_NAMES; i++)
        if (strcmp(names[i], name) == 0) {
            functions[n_functions] = (struct function){names[i], module, DEFAULT_SHARED, 0};
            *out = &functions[n_functions++];
            return 0;
        }
    return 500;
}

#if !FAKE_OLD
/* Only "wide" is asked for its parameters: as a CUBIN has them, 48 bytes further. */
EXPORT result cuFuncGetParamInfo(void *f, size_t index, size_t *offset, size_t *size)
{
    int twice = strcmp(((struct function *)f)->name, "twice") == 0;
    if (twice && index < 3) {
        *offset = 8 * index;
        *size = index == 2 ? 4 : 8;
        return 0;
    }
    if (strcmp(((struct function *)f)->name, "wide") != 0 || index > 1)
        return 1;
    *offset = index ? 176 : 48;
    *size = index ? 8 : 128;
    return 0;
}

EXPORT result cuFuncLoad(void *f)
{
    ENTER_ALONE;
    return ((struct function *)f)->module ? 0 : 400;
}
#endif

EXPORT result cuFuncSetAttribute(void *f, int attribute, int value)
{
    ENTER;
    if (attribute == 14)
        ((struct function *)f)->wide = value;
    else if (attribute == 8 && value <= MAX_SHARED)
        ((struct function *)f)->shared = value;
    else
        return 1;
    return 0;
}

static void twice(const char *p, uint64_t threads)
{
    uint64_t x, y;
    uint32_t n;
    memcpy(&x, p, 8);
    memcpy(&y, p + 8, 8);
    memcpy(&n, p + 16, 4);
    for (uint64_t i = 0; i < n && i < threads; i++)
        ((float *)pointer(y))[i] = 2 * ((float *)pointer(x))[i];
}

static void poke(const char *p)
{
    uint64_t y, offset;
    memcpy(&y, p, 8);
    memcpy(&offset, p + 8, 8);
    if ((y + offset) % 4)
        sticky = 716;
    else if (!inside(y + offset, 4))
        sticky = 700;
    else
        memset(pointer(y + offset), 0, 4);
}

result fake_run(void *fn, const void *block, uint64_t threads)
{
    const struct function *f = fn;
    if (!f->module)
        return 400;
    fake_seen.launches++;
    if (strcmp(f->name, "twice") == 0)
        twice(block, threads);
    else if (strcmp(f->name, "poke") == 0)
        poke(block);
    else if (strcmp(f->name, "wide") == 0)
        memcpy(pointer(*(const uint64_t *)(const void *)block), (const char *)block + 8, 4);
    else if (strcmp(f->name, "discard") == 0 || strcmp(f->name, "sweep") == 0)
        memcpy(fake_seen.discarded, block, sizeof fake_seen.discarded);
    else if (strcmp(f->name, "spin") == 0)
        spinning = 1;
    else if (strcmp(f->name, "stop") == 0)
        sticky = 719;
    else if (strcmp(f->name, "count") == 0)
        *(uint32_t *)pointer(*(const uint64_t *)(const void *)block) = ++*f->module->counter;
    else if (strcmp(f->name, "read_const") == 0)
        *(float *)pointer(*(const uint64_t *)(const void *)block) = f->module->c_w[1];
    else
        *(uint32_t *)pointer(*(const uint64_t *)(const void *)block) = 1234;
    return 0;
}

EXPORT result cuLaunchKernel(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                             void **extra)
{
    const struct function *f = fn;
    (void)stream;
    ENTER;
    if (!f->module)
        return 400;
    if ((params != NULL) != (strcmp(f->name, "wide") == 0) || !gx || !gy || !gz ||
        (uint64_t)bx * by * bz > 1024 || shared > (unsigned)f->shared)
        return 1;
    if (extra && ((uintptr_t)extra[0] != 1 || (uintptr_t)extra[2] != 2 || extra[4]))
        return 1;
    const char *block = extra ? extra[1] : NULL;
    size_t bytes = extra ? *(size_t *)extra[3] : 0;
    if (strcmp(f->name, "answer") == 0 && block)
        return (result) * (const uint64_t *)(const void *)block;
    struct fake_node node = {.kind = FAKE_LAUNCH, .function = fn, .n = bytes, .value = gx * bx};
    if (bytes > sizeof node.params)
        return 1;
    if (params) { /* a map and an address: word 1 of the one is stored at the other */
        memcpy(node.params, params[1], 8);
        memcpy(node.params + 8, (const char *)params[0] + 4, 4);
    } else if (bytes) {
        memcpy(node.params, block, bytes);
    }
    return fake_record(&node) ? 0 : fake_run(fn, node.params, (uint64_t)gx * bx);
}

EXPORT result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *fn, int threads,
                                                          size_t shared)
{
    (void)fn;
    *out = threads > 1024 || shared > MAX_SHARED ? 0 : BLOCKS_EACH;
    return 0;
}

struct attribute {
    int id;
    char reserved[4];
    union {
        char room[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};

struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    const struct attribute *attributes;
    unsigned n;
};

EXPORT result cuLaunchKernelEx(const struct config *c, void *fn, void **params, void **extra)
{
    const struct function *f = fn;
    for (unsigned i = 0; i < c->n; i++) {
        const struct attribute *a = &c->attributes[i];
        const unsigned *cluster = a->value.cluster;
        if (a->id == 2 && a->value.cooperative &&
            (uint64_t)c->grid[0] * c->grid[1] * c->grid[2] > 132 * BLOCKS_EACH)
            return 720;
        if (a->id == 4 && cluster[0] * cluster[1] * cluster[2] > (f->wide ? 16u : 8u))
            return 912;
        if (a->id == 4 && (c->grid[0] % cluster[0] || c->grid[1] % cluster[1]))
            return 1;
        if (a->id != 2 && a->id != 4)
            return 801;
    }
    /* A launch with attributes comes with pointers: recorded, it would not take a block. */
    char block[24] = {0};
    size_t bytes = 20;
    void *packed[] = {(void *)(uintptr_t)1, block, (void *)(uintptr_t)2, &bytes, NULL};
    if (extra || !params)
        return 1;
    int twice = strcmp(f->name, "twice") == 0;
    for (int i = 0; twice && i < 3; i++)
        memcpy(block + 8 * i, params[i], i == 2 ? 4 : 8);
    return cuLaunchKernel(fn, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                          c->block[2], c->shared, c->stream, twice ? NULL : params,
                          twice ? packed : NULL);
}

EXPORT result cuStreamCreate(void **out, unsigned flags)
{
    *out = malloc(1);
    return flags == 1 ? 0 : 1;
}

EXPORT result cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

EXPORT result cuStreamQuery(void *stream)
{
    (void)stream;
    ENTER_ALONE;
    return spinning ? 600 : 0;
}

EXPORT result cuEventCreate(void **out, unsigned flags)
{
    (void)flags;
    ENTER_ALONE;
    *out = malloc(1);
    return 0;
}

EXPORT result cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

EXPORT result cuEventRecord(void *event, void *stream)
{
    (void)event, (void)stream;
    ENTER;
    return 0;
}

EXPORT result cuEventElapsedTime(float *ms, void *from, void *to)
{
    (void)from, (void)to;
    ENTER;
    *ms = 0.01f;
    return 0;
}

#if !FAKE_OLD
EXPORT result cuCtxSetLimit(int limit, size_t value)
{
    fake_seen.limits += limit == 6 && value == 0;
    return 0;
}

EXPORT result cuCtxResetPersistingL2Cache(void)
{
    fake_seen.resets++;
    return 0;
}

EXPORT result cuDeviceGetPCIBusId(char *out, int len, int device)
{
    snprintf(out, (size_t)len, "0000:%02x:00.0", device + 1);
    return 0;
}

/* The arguments, so that a test can look at them. Rank 5 with 13 elements: refused. */
EXPORT result cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *at,
                                     const uint64_t *dims, const uint64_t *strides,
                                     const uint32_t *box, const uint32_t *elements, int interleave,
                                     int swizzle, int promotion, int fill)
{
    uint32_t words[32] = {
        (uint32_t)type,      rank,           (uint32_t)interleave,   (uint32_t)swizzle,
        (uint32_t)promotion, (uint32_t)fill, (uint32_t)(uintptr_t)at};
    if ((uintptr_t)out % 64 || (rank == 5 && dims[4] == 13))
        return 1;
    for (uint32_t i = 0; i < rank; i++) {
        words[7 + i] = (uint32_t)dims[i];
        words[12 + i] = i + 1 < rank ? (uint32_t)strides[i] : 0;
        words[17 + i] = box[i];
        words[22 + i] = elements[i];
    }
    memcpy(out, words, sizeof words);
    return 0;
}
#endif
