// operator: logsumexp
// idea: Give each row to one block whose threads read neighbouring elements, and combine them with shuffles and one value a warp in shared memory.
// category: parallelism
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch logsumexp_block<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}})

// What the exponents are relative to: the largest value, but finite, so that inf - inf never comes up.
__device__ __forceinline__ float finite(float top) { return fminf(top, 3.402823466e+38f); }

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
logsumexp_block(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        top = fmaxf(top, in[i]);
    top = finite(block_max<TPB>(top));
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        sum += expf(in[i] - top);
    sum = block_sum<TPB>(sum);
    if (threadIdx.x == 0)
        y[blockIdx.x] = top + logf(sum);
}
