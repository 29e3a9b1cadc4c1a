// operator: layernorm
// idea: Give each row to one warp, which keeps its moments in registers and needs no shared memory and no barrier.
// category: synchronisation
// after: welford
// unroll: 1, 2, 4
//@ tune   WARPS = 4, 8, 2
//@ launch layernorm_warp<WARPS> grid=(ceil_div({{rows}}, WARPS)) block=(32, WARPS) args=({{x}}, {{w}}, {{b}}, {{y}}, {{rows}}, {{cols}}, {{eps}})

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

template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
layernorm_warp(const float *__restrict__ x, const float *__restrict__ w,
               const float *__restrict__ b, float *__restrict__ y, long long rows, int cols,
               float eps)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows) return; //! guard
    const float *in = x + row * cols;
    float *out = y + row * cols;

    Moments all = {0.0f, 0.0f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += 32)
        add(all, in[i]);
    all = warp_merge(all);
    const float scale = 1.0f / sqrtf(all.m2 / cols + eps);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += 32)
        out[i] = (in[i] - all.mean) * scale * w[i] + b[i];
}
