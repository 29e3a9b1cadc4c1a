#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void kernel(const __half2 *x, const __nv_bfloat162 *b, __half2 *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float2 f = __bfloat1622float2(b[i]);
        y[i] = __hfma2(x[i], __floats2half2_rn(f.x, f.y), x[i]);
    }
}
