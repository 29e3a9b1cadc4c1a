#include <cuda_fp16.h>
#include <mma.h>

__global__ void kernel(const __half2 *x, __half2 *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = __hfma2(x[i], x[i], x[i]);
}
