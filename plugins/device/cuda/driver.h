/*
 * The part of the CUDA driver API that the device uses, found in libcuda.so.1 at run time, with
 * prototypes of our own: neither the toolkit nor a driver is needed to build. Names and numbers are
 * those of the driver API reference (CUDA 12 and 13).
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include <rung/plugin.h>

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_address;
typedef struct cu_context *cu_context;
typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;
typedef struct cu_event *cu_event;
typedef struct cu_graph *cu_graph;
typedef struct cu_graph_exec *cu_graph_exec;
struct cu_uuid {
    unsigned char bytes[16];
};

enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_DEINITIALIZED = 4,
    CU_DEVICE_UNAVAILABLE = 46,
    CU_NO_DEVICE = 100,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_ECC_UNCORRECTABLE = 214,
    CU_INVALID_PTX = 218,
    CU_NVLINK_UNCORRECTABLE = 220,
    CU_JIT_COMPILER_NOT_FOUND = 221,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_JIT_DISABLED = 223,
    CU_CONTAINED = 226,
    CU_INVALID_SOURCE = 300,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_CONTEXT_IS_DESTROYED = 709,
    CU_ASSERT = 710,
    CU_HARDWARE_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_INVALID_ADDRESS_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_COOPERATIVE_TOO_LARGE = 720,
    CU_TENSOR_MEMORY_LEAK = 721,
    CU_NOT_SUPPORTED = 801,
    CU_SYSTEM_NOT_READY = 802,
    CU_MPS_FIRST = 805, /* 805 to 810: the server of the Multi-Process Service */
    CU_MPS_LAST = 810,
    CU_CAPTURE_FIRST = 900, /* 900 to 908: what stream capture can't take */
    CU_CAPTURE_LAST = 908,
    CU_EXTERNAL_DEVICE = 911,
    CU_INVALID_CLUSTER_SIZE = 912,
    CU_KEY_ROTATION = 916,
};

enum { /* CUdevice_attribute */
       CU_ATTR_MAX_THREADS_PER_BLOCK = 1,
       CU_ATTR_SM_KHZ = 13,
       CU_ATTR_SM_COUNT = 16,
       CU_ATTR_MEMORY_KHZ = 36,
       CU_ATTR_MEMORY_BUS_BITS = 37,
       CU_ATTR_L2_BYTES = 38,
       CU_ATTR_MAJOR = 75,
       CU_ATTR_MINOR = 76,
       CU_ATTR_COOPERATIVE_LAUNCH = 95,
       CU_ATTR_MAX_SHARED_OPTIN = 97,
       CU_ATTR_CLUSTER_LAUNCH = 120,
       CU_ATTR_TENSOR_MAPS = 127,
};

enum {
    CU_FUNC_MAX_DYNAMIC_SHARED = 8, /* CUfunction_attribute */
    CU_FUNC_NON_PORTABLE_CLUSTER = 14,
    CU_LAUNCH_COOPERATIVE = 2, /* CUlaunchAttributeID */
    CU_LAUNCH_CLUSTER = 4,
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_THREAD_LOCAL = 1, /* CUstreamCaptureMode */
    CU_LIMIT_PERSISTING_L2 = 6,  /* CUlimit */
    CU_JIT_ERROR_LOG = 5,        /* CUjit_option */
    CU_JIT_ERROR_LOG_BYTES = 6,
};

/* CUlaunchAttribute and CUlaunchConfig */
struct cu_launch_attribute {
    int id;
    char reserved[4];
    union {
        char room[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};
struct cu_launch_config {
    unsigned grid[3], block[3], shared;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    unsigned n_attributes;
};

/* X(result, member, exported symbol, parameters) */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (cu_result, const char **))                                    \
    X(error_text, "cuGetErrorString", (cu_result, const char **))                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (cu_device *, int ordinal))                                       \
    X(device_name, "cuDeviceGetName", (char *, int len, cu_device))                                \
    X(device_uuid, "cuDeviceGetUuid_v2", (struct cu_uuid *, cu_device))                            \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int attribute, cu_device))                 \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cu_context *, cu_device))                       \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device))                                \
    X(context_set, "cuCtxSetCurrent", (cu_context))                                                \
    X(mem_info, "cuMemGetInfo_v2", (size_t *, size_t *))                                           \
    X(mem_alloc, "cuMemAlloc_v2", (cu_address *, size_t))                                          \
    X(mem_free, "cuMemFree_v2", (cu_address))                                                      \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (cu_address, const void *, size_t, cu_stream))              \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *, cu_address, size_t, cu_stream))                   \
    X(copy, "cuMemcpyDtoDAsync_v2", (cu_address, cu_address, size_t, cu_stream))                   \
    X(set8, "cuMemsetD8Async", (cu_address, unsigned char, size_t, cu_stream))                     \
    X(set32, "cuMemsetD32Async", (cu_address, unsigned, size_t, cu_stream))                        \
    X(module_load, "cuModuleLoadDataEx",                                                           \
      (cu_module *, const void *, unsigned n, int *options, void **values))                        \
    X(module_unload, "cuModuleUnload", (cu_module))                                                \
    X(module_function, "cuModuleGetFunction", (cu_function *, cu_module, const char *))            \
    X(module_global, "cuModuleGetGlobal_v2", (cu_address *, size_t *, cu_module, const char *))    \
    X(function_set, "cuFuncSetAttribute", (cu_function, int attribute, int value))                 \
    X(launch, "cuLaunchKernel",                                                                    \
      (cu_function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,  \
       unsigned shared, cu_stream, void **params, void **extra))                                   \
    X(launch_ex, "cuLaunchKernelEx",                                                               \
      (const struct cu_launch_config *, cu_function, void **params, void **extra))                 \
    X(resident_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                              \
      (int *, cu_function, int threads, size_t shared))                                            \
    X(stream_new, "cuStreamCreate", (cu_stream *, unsigned flags))                                 \
    X(stream_free, "cuStreamDestroy_v2", (cu_stream))                                              \
    X(stream_query, "cuStreamQuery", (cu_stream))                                                  \
    X(event_new, "cuEventCreate", (cu_event *, unsigned flags))                                    \
    X(event_free, "cuEventDestroy_v2", (cu_event))                                                 \
    X(event_record, "cuEventRecord", (cu_event, cu_stream))                                        \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, cu_event, cu_event))                        \
    X(capture_begin, "cuStreamBeginCapture_v2", (cu_stream, int mode))                             \
    X(capture_end, "cuStreamEndCapture", (cu_stream, cu_graph *))                                  \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (cu_graph_exec *, cu_graph, unsigned long long flags))                                       \
    X(graph_launch, "cuGraphLaunch", (cu_graph_exec, cu_stream))                                   \
    X(graph_free, "cuGraphDestroy", (cu_graph))                                                    \
    X(graph_exec_free, "cuGraphExecDestroy", (cu_graph_exec))

/* Those that old drivers lack: NULL there. Found as the others. */
#define CUDA_OPTIONAL(X)                                                                           \
    X(function_param, "cuFuncGetParamInfo",                                                        \
      (cu_function, size_t index, size_t * offset, size_t * size))                                 \
    X(function_load, "cuFuncLoad", (cu_function))                                                  \
    X(graph_upload, "cuGraphUpload", (cu_graph_exec, cu_stream))                                   \
    X(limit_set, "cuCtxSetLimit", (int limit, size_t value))                                       \
    X(persisting_reset, "cuCtxResetPersistingL2Cache", (void))                                     \
    X(device_pci, "cuDeviceGetPCIBusId", (char *, int len, cu_device))                             \
    X(tensormap, "cuTensorMapEncodeTiled",                                                         \
      (void *out, int type, uint32_t rank, void *address, const uint64_t *dims,                    \
       const uint64_t *strides, const uint32_t *box, const uint32_t *elements, int interleave,     \
       int swizzle, int l2_promotion, int fill))

struct cuda_driver {
    void *library;
#define CUDA_MEMBER(member, symbol, params) cu_result(*member) params;
    CUDA_FUNCTIONS(CUDA_MEMBER)
    CUDA_OPTIONAL(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* [worker] Opens `file` ("libcuda.so.1") and initialises it. RUNG_EUNAVAILABLE says what is
 * missing. */
int32_t cuda_driver_open(struct cuda_driver *driver, const char *file, struct rung_error *err);
/* Fills err with "what: CUDA_ERROR_... (text)"; returns code. */
int32_t cuda_fail(const struct cuda_driver *driver, struct rung_error *err, int32_t code,
                  const char *what, cu_result result);
/* "CUDA_ERROR_...", "text"; static, never NULL. */
const char *cuda_name(const struct cuda_driver *driver, cu_result result);
const char *cuda_text(const struct cuda_driver *driver, cu_result result);

#endif
