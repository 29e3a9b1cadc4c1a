/* What a kernel may want of <cuda.h>: the descriptor of tensor maps. The rest is for host code. */
#ifndef RUNG_STUB_CUDA_H
#define RUNG_STUB_CUDA_H
struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
};
typedef struct CUtensorMap_st CUtensorMap;
typedef unsigned long long CUdeviceptr;
#endif
