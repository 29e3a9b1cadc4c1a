// operator: softmax
// idea: Launch only as many blocks as the device can hold at once and let each walk over rows, which saves the start and the tail of many short blocks.
// category: scheduling
// after: block_shuffle
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ tune   PER_SM = 8, 4
//@ launch softmax_persistent<TPB> grid=(min({{rows}}, sm_count * PER_SM)) block=(TPB) args=({{x}}, {{y}}, {{rows}}, {{cols}})

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

template <int TPB>
__device__ __forceinline__ float block_max(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_max(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_max(lane < TPB / 32 ? part[lane] : -3.402823466e+38f);
}

template <int TPB>
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_sum(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_sum(lane < TPB / 32 ? part[lane] : 0.0f);
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_persistent(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *in = x + row * cols;
        float *out = y + row * cols;

        float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
        for (int i = threadIdx.x; i < cols; i += TPB)
            top = fmaxf(top, in[i]);
        top = block_max<TPB>(top);
        float sum = 0.0f;
#pragma unroll {{UNROLL}}
        for (int i = threadIdx.x; i < cols; i += TPB)
            sum += expf(in[i] - top);
        const float scale = 1.0f / block_sum<TPB>(sum);
#pragma unroll {{UNROLL}}
        for (int i = threadIdx.x; i < cols; i += TPB)
            out[i] = expf(in[i] - top) * scale;
    }
}
