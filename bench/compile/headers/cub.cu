#include <cub/cub.cuh>

__global__ void kernel(const float *x, float *y, int n)
{
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage storage;
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        sum += x[i];
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0)
        *y = sum;
}
