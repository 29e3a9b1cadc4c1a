// operator: softmax
// idea: Give each row to one warp and combine its lanes with shuffles, so that no shared memory and no barrier is needed.
// category: parallelism
// after: naive
// unroll: 1, 2, 4
//@ tune   WARPS = 4, 8, 2
//@ launch softmax_warp<WARPS> grid=(ceil_div({{rows}}, WARPS)) block=(32, WARPS) args=({{x}}, {{y}}, {{rows}}, {{cols}})

__device__ __forceinline__ float warp_max(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
softmax_warp(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows) return; //! guard
    const int lane = threadIdx.x;
    const float *in = x + row * cols;
    float *out = y + row * cols;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = lane; i < cols; i += 32)
        top = fmaxf(top, in[i]);
    top = warp_max(top);
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = lane; i < cols; i += 32)
        sum += expf(in[i] - top);
    const float scale = 1.0f / warp_sum(sum);
#pragma unroll {{UNROLL}}
    for (int i = lane; i < cols; i += 32)
        out[i] = expf(in[i] - top) * scale;
}
