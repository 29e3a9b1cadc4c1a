/* The texts that the store has of its own, and what it takes away from the toolkit's: headers.h. */
#include "headers.h"
#include <stdlib.h>
#include <string.h>

/* Headers that a kernel file may include by habit: what device code wants of them is in the prelude
 * and in NV_STD. */
static const char *const habitual[] = {
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "device_functions.h",
    "math.h",
    "cmath",
    "math_functions.h",
    "stdio.h",
    "cstdio",
    "stdlib.h",
    "cstdlib",
    "stdint.h",
    "cstdint",
    "stddef.h",
    "cstddef",
    "stdbool.h",
    "float.h",
    "cfloat",
    "limits.h",
    "climits",
    "limits",
    "assert.h",
    "cassert",
    "string.h",
    "cstring",
    "algorithm",
    "type_traits",
    "utility",
    "tuple",
    "array",
    "inttypes.h",
    "cinttypes",
    "new",
    "initializer_list",
};

/* Headers with nothing for device code. */
static const char *const host[] = {
    "time.h",
    "ctime",
    "iostream",
    "iomanip",
    "sstream",
    "fstream",
    "ostream",
    "string",
    "string_view",
    "vector",
    "map",
    "unordered_map",
    "set",
    "unordered_set",
    "queue",
    "deque",
    "list",
    "memory",
    "functional",
    "optional",
    "variant",
    "numeric",
    "random",
    "chrono",
    "thread",
    "mutex",
    "atomic",
    "exception",
    "stdexcept",
    "iterator",
    "complex",
    "bitset",
    "unistd.h",
    "sys/time.h",
    "cuda_profiler_api.h",
    "helper_cuda.h",
    "helper_functions.h",
    "helper_string.h",
    "helper_timer.h",
    "cublas_v2.h",
    "cublas.h",
    "cublasLt.h",
    "cudnn.h",
    "cusparse.h",
    "cusolverDn.h",
    "cufft.h",
    "nvrtc.h",
    "nccl.h",
    "pybind11/pybind11.h",
    "pybind11/stl.h",
    "pybind11/numpy.h",
    "Python.h",
    "torch/all.h",
    "torch/cuda.h",
    "torch/extension.h",
    "torch/library.h",
    "torch/python.h",
    "torch/script.h",
    "torch/torch.h",
    "torch/types.h",
    "ATen/ATen.h",
    "ATen/AccumulateType.h",
    "ATen/Dispatch.h",
    "ATen/OpMathType.h",
    "ATen/core/Tensor.h",
    "ATen/cuda/Atomic.cuh",
    "ATen/cuda/CUDABlas.h",
    "ATen/cuda/CUDAContext.h",
    "ATen/cuda/CUDAContextLight.h",
    "ATen/cuda/CUDAUtils.h",
    "ATen/cuda/DeviceUtils.cuh",
    "ATen/cuda/Exceptions.h",
    "c10/core/ScalarType.h",
    "c10/cuda/CUDAException.h",
    "c10/cuda/CUDAFunctions.h",
    "c10/cuda/CUDAGuard.h",
    "c10/cuda/CUDAMathCompat.h",
    "c10/cuda/CUDAStream.h",
    "c10/macros/Macros.h",
    "c10/util/BFloat16.h",
    "c10/util/Exception.h",
    "c10/util/Half.h",
    "c10/util/Optional.h",
    "thrust/copy.h",
    "thrust/count.h",
    "thrust/device_malloc.h",
    "thrust/device_ptr.h",
    "thrust/device_vector.h",
    "thrust/execution_policy.h",
    "thrust/extrema.h",
    "thrust/fill.h",
    "thrust/for_each.h",
    "thrust/gather.h",
    "thrust/generate.h",
    "thrust/host_vector.h",
    "thrust/inner_product.h",
    "thrust/random.h",
    "thrust/reduce.h",
    "thrust/scan.h",
    "thrust/scatter.h",
    "thrust/sequence.h",
    "thrust/sort.h",
    "thrust/transform.h",
    "thrust/transform_reduce.h",
    "thrust/unique.h",
    "thrust/system/cuda/execution_policy.h",
};

#define HOST_CUB "cub/device/" /* functions that launch kernels */
#define ALL_CUB "cub/cub.cuh"

/* Parts of CUB that NVRTC does not take, as ALL_CUB includes them. */
static const char *const host_cub[] = {HOST_CUB, "cub/grid/", "cub/util_allocator",
                                       "cub/util_device", "cub/util_temporary_storage"};

bool nv_stubs_add(struct nv_store *store)
{
    bool ok = nv_store_add(store, NV_PRELUDE, nv_text_prelude_h, 0) &&
              nv_store_add(store, NV_STD, nv_text_std_h, 0) &&
              nv_store_add(store, "cuda.h", nv_text_cuda_h, 0);
    for (size_t i = 0; i < sizeof(habitual) / sizeof(*habitual); i++)
        ok = ok && nv_store_add(store, habitual[i], "\n", 0);
    for (size_t i = 0; i < sizeof(host) / sizeof(*host); i++)
        ok = ok && nv_store_add(store, host[i], "\n", 0);
    return ok;
}

bool nv_stub_is_host(const char *name)
{
    for (size_t i = 0; i < sizeof(host) / sizeof(*host); i++)
        if (!strcmp(host[i], name))
            return true;
    return !strncmp(name, HOST_CUB, strlen(HOST_CUB));
}

static bool includes_host_cub(const char *line, size_t n)
{
    for (size_t i = 0; i < sizeof(host_cub) / sizeof(*host_cub); i++)
        if (memmem(line, n, host_cub[i], strlen(host_cub[i])))
            return memchr(line, '#', n) != NULL;
    return false;
}

/* A copy without the lines that include host parts; NULL when memory is out. */
static char *trim(const char *text)
{
    char *copy = malloc(strlen(text) + 1), *to = copy;
    for (const char *line = text; copy && *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        if (!includes_host_cub(line, n)) {
            memcpy(to, line, n);
            to += n;
        }
        line += n;
    }
    if (copy)
        *to = '\0';
    return copy;
}

bool nv_stubs_trim(struct nv_store *store)
{
    for (size_t i = 0; i < store->n; i++) {
        struct nv_header *header = &store->items[i];
        if (!strcmp(header->name, ALL_CUB)) {
            header->text = trim(header->text);
            if (!header->text)
                return false;
        } else if (!strncmp(header->name, HOST_CUB, strlen(HOST_CUB))) {
            header->text = "\n";
            header->rank = 0;
        }
    }
    return true;
}

const char *nv_store_offer(const struct nv_store *store)
{
    if (!nv_store_find(store, "cuda_fp16.h"))
        return "the usual C headers";
    if (!nv_store_find(store, ALL_CUB))
        return "CUDA's device headers (cuda_fp16.h, mma.h, ...; cub and cuda/std are not installed "
               "here) and the usual C headers";
    return "CUDA's device headers (cuda_fp16.h, mma.h, cooperative_groups.h, cub, cuda/std/...) "
           "and the usual C headers";
}
