// operator: layernorm
// idea: Read each row once for mean and deviations together with Welford's update, and merge the threads' moments with shuffles.
// category: algorithm
// after: block_shuffle
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch layernorm_welford<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{cols}}, {{eps}})

// Count, mean and sum of squared deviations of some values.
struct Moments {
    float n, mean, m2;
};

// Both together (T. F. Chan, G. H. Golub, R. J. LeVeque, 1979).
__device__ __forceinline__ Moments merge(Moments a, Moments b)
{
    const float n = a.n + b.n;
    const float d = b.mean - a.mean;
    const float share = n > 0.0f ? b.n / n : 0.0f;
    return {n, a.mean + d * share, a.m2 + b.m2 + d * d * a.n * share};
}

// One more value (B. P. Welford, 1962).
__device__ __forceinline__ void add(Moments &a, float v)
{
    a.n += 1.0f;
    const float d = v - a.mean;
    a.mean += d / a.n;
    a.m2 += d * (v - a.mean);
}

__device__ __forceinline__ Moments warp_merge(Moments a)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        a = merge(a, {__shfl_xor_sync(0xffffffffu, a.n, lane),
                      __shfl_xor_sync(0xffffffffu, a.mean, lane),
                      __shfl_xor_sync(0xffffffffu, a.m2, lane)});
    return a;
}

template <int TPB>
__device__ __forceinline__ Moments block_merge(Moments a)
{
    __shared__ Moments part[TPB / 32];
    const int lane = threadIdx.x % 32;
    a = warp_merge(a);
    if (lane == 0)
        part[threadIdx.x / 32] = a;
    __syncthreads();
    a = {0.0f, 0.0f, 0.0f};
    if (lane < TPB / 32)
        a = part[lane];
    return warp_merge(a);
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_welford(const float *__restrict__ x, const float *__restrict__ w,
                  const float *__restrict__ b, float *__restrict__ y, int cols, float eps)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    Moments all = {0.0f, 0.0f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        add(all, in[i]);
    all = block_merge<TPB>(all);
    const float scale = 1.0f / sqrtf(all.m2 / cols + eps);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = (in[i] - all.mean) * scale * w[i] + b[i];
}
