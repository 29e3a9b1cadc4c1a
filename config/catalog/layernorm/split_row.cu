// operator: layernorm
// idea: Split each row over several blocks that leave partial moments in a temporary, and let a second launch combine them and write, so that few long rows still fill the device.
// category: parallelism
// after: welford
// unroll: 1, 2, 4
//@ tune   TPB = 256, 512, 128
//@ tune   SPLITS = 64, 128, 16
//@ temp   partial f32 [{{rows}} * SPLITS * 3]
//@ launch layernorm_partial<TPB, SPLITS> grid=({{rows}} * SPLITS) block=(TPB) args=({{x}}, partial, {{cols}})
//@ launch layernorm_finish<TPB, SPLITS> grid=({{rows}} * SPLITS) block=(TPB) args=({{x}}, {{w}}, {{b}}, partial, {{y}}, {{cols}}, {{eps}})

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

// The elements [first, last) of this block: part blockIdx.x % SPLITS of row blockIdx.x / SPLITS.
template <int SPLITS>
__device__ __forceinline__ void span(int n, int &first, int &last)
{
    const long long chunk = ((long long)n + SPLITS - 1) / SPLITS;
    const long long part = blockIdx.x % SPLITS;
    first = (int)min(part * chunk, (long long)n);
    last = (int)min((part + 1) * chunk, (long long)n);
}

// The moments of a whole row out of those of its parts; every warp of a block gets them.
template <int SPLITS>
__device__ __forceinline__ Moments whole_row(const float *__restrict__ parts)
{
    Moments all = {0.0f, 0.0f, 0.0f};
    for (int k = threadIdx.x % 32; k < SPLITS; k += 32)
        all = merge(all, {parts[3 * k], parts[3 * k + 1], parts[3 * k + 2]});
    return warp_merge(all);
}

template <int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
layernorm_partial(const float *__restrict__ x, float *__restrict__ partial, int cols)
{
    const float *in = x + (long long)(blockIdx.x / SPLITS) * cols;
    int first, last;
    span<SPLITS>(cols, first, last);

    Moments all = {0.0f, 0.0f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = first + threadIdx.x; i < last; i += TPB)
        add(all, in[i]);
    all = block_merge<TPB>(all);
    if (threadIdx.x == 0) {
        partial[3ll * blockIdx.x] = all.n;
        partial[3ll * blockIdx.x + 1] = all.mean;
        partial[3ll * blockIdx.x + 2] = all.m2;
    }
}

template <int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
layernorm_finish(const float *__restrict__ x, const float *__restrict__ w,
                 const float *__restrict__ b, const float *__restrict__ partial,
                 float *__restrict__ y, int cols, float eps)
{
    const long long row = blockIdx.x / SPLITS;
    const float *in = x + row * cols;
    float *out = y + row * cols;
    int first, last;
    span<SPLITS>(cols, first, last);

    const Moments all = whole_row<SPLITS>(partial + row * SPLITS * 3);
    const float scale = 1.0f / sqrtf(all.m2 / cols + eps);
#pragma unroll {{UNROLL}}
    for (int i = first + threadIdx.x; i < last; i += TPB)
        out[i] = (in[i] - all.mean) * scale * w[i] + b[i];
}
