#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

__global__ void kernel(const float *x, float *y, int n)
{
    namespace cg = cooperative_groups;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0)
        atomicAdd(y, sum);
}
