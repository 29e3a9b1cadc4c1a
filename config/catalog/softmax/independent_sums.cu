// operator: softmax
// idea: Give each thread several independent running maxima and sums, so that loads and exponentials of one iteration overlap instead of waiting for each other.
// category: latency
// after: block_shuffle
// unroll: 4, 2, 8
//@ tune   TPB = 256, 128, 512
//@ launch softmax_lanes<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}})

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
softmax_lanes(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    constexpr int LANES = {{UNROLL}};
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    const int whole = cols - cols % (LANES * TPB); // columns that full strides of all threads cover

    float tops[LANES];
#pragma unroll
    for (int k = 0; k < LANES; ++k)
        tops[k] = -3.402823466e+38f;
    for (int i = threadIdx.x; i < whole; i += LANES * TPB) {
#pragma unroll
        for (int k = 0; k < LANES; ++k)
            tops[k] = fmaxf(tops[k], in[i + k * TPB]);
    }
    for (int i = whole + threadIdx.x; i < cols; i += TPB)
        tops[0] = fmaxf(tops[0], in[i]);
    float top = tops[0];
#pragma unroll
    for (int k = 1; k < LANES; ++k)
        top = fmaxf(top, tops[k]);
    top = block_max<TPB>(top);

    float sums[LANES] = {};
    for (int i = threadIdx.x; i < whole; i += LANES * TPB) {
#pragma unroll
        for (int k = 0; k < LANES; ++k)
            sums[k] += expf(in[i + k * TPB] - top);
    }
    for (int i = whole + threadIdx.x; i < cols; i += TPB)
        sums[0] += expf(in[i] - top);
    float sum = sums[0];
#pragma unroll
    for (int k = 1; k < LANES; ++k)
        sum += sums[k];
    const float scale = 1.0f / block_sum<TPB>(sum);

#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = expf(in[i] - top) * scale;
}
