// operator: softmax
// idea: Keep the single-read maximum and sum, but take four floats at a time: one rescale then serves four values.
// category: memory
// after: online
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch softmax_online4<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}} / 4) when=({{cols}} % 4 == 0)
//@ launch softmax_online1<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}}) when=({{cols}} % 4 != 0)

// Maximum so far and the sum of exponentials relative to it. It starts at the lowest finite number,
// not at minus infinity, which would bring inf - inf into rows that hold minus infinity.
struct Partial {
    float top, sum;
};

__device__ __forceinline__ void add(Partial &p, float v)
{
    const float top = fmaxf(p.top, v);
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

__device__ __forceinline__ void add4(Partial &p, float4 v)
{
    const float top = fmaxf(p.top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    p.sum = p.sum * expf(p.top - top) + (expf(v.x - top) + expf(v.y - top)) +
            (expf(v.z - top) + expf(v.w - top));
    p.top = top;
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_online4(const float *__restrict__ x, float *__restrict__ y, int quads)
{
    const float4 *in = reinterpret_cast<const float4 *>(x) + (long long)blockIdx.x * quads;
    float4 *out = reinterpret_cast<float4 *>(y) + (long long)blockIdx.x * quads;

    Partial p = {-3.402823466e+38f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB)
        add4(p, in[i]);
    p = block_merge<TPB>(p);
    const float scale = 1.0f / p.sum;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB) {
        float4 v = in[i];
        v.x = expf(v.x - p.top) * scale;
        v.y = expf(v.y - p.top) * scale;
        v.z = expf(v.z - p.top) * scale;
        v.w = expf(v.w - p.top) * scale;
        out[i] = v;
    }
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_online1(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    Partial p = {-3.402823466e+38f, 0.0f};
    for (int i = threadIdx.x; i < cols; i += TPB)
        add(p, in[i]);
    p = block_merge<TPB>(p);
    const float scale = 1.0f / p.sum;
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = expf(in[i] - p.top) * scale;
}
