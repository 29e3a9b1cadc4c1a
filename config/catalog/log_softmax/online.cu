// operator: log_softmax
// idea: Find the maximum and the sum of exponentials in one reading: when a larger value comes, rescale the sum so far.
// category: algorithm
// after: block_per_row
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch log_softmax_online<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}})

// What the exponents are relative to: the largest value, but finite, so that inf - inf never comes up.
__device__ __forceinline__ float finite(float top) { return fminf(top, 3.402823466e+38f); }

// Maximum so far and the sum of exponentials relative to it. It starts at the lowest finite number,
// not at minus infinity, which would bring inf - inf into rows that hold minus infinity.
struct Partial {
    float top, sum;
};

__device__ __forceinline__ void add(Partial &p, float v)
{
    const float top = finite(fmaxf(p.top, v));
    p.sum = p.sum * expf(p.top - top) + expf(v - top);
    p.top = top;
}

__device__ __forceinline__ Partial merge(Partial a, Partial b)
{
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__device__ __forceinline__ Partial warp_merge(Partial p)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        p = merge(p, {__shfl_xor_sync(0xffffffffu, p.top, lane),
                      __shfl_xor_sync(0xffffffffu, p.sum, lane)});
    return p;
}

template <int TPB>
__device__ __forceinline__ Partial block_merge(Partial p)
{
    __shared__ Partial part[TPB / 32];
    const int lane = threadIdx.x % 32;
    p = warp_merge(p);
    if (lane == 0)
        part[threadIdx.x / 32] = p;
    __syncthreads();
    p = {-3.402823466e+38f, 0.0f};
    if (lane < TPB / 32)
        p = part[lane];
    return warp_merge(p);
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
log_softmax_online(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    Partial p = {-3.402823466e+38f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        add(p, in[i]);
    p = block_merge<TPB>(p);
    const float shift = logf(p.sum);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = (in[i] - p.top) - shift;
}
