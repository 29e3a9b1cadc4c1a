// operator: layernorm
// idea: Read and write four floats with one instruction where the row length allows it, and merge the moments of four values at a time.
// category: memory
// after: welford
// unroll: 1, 2, 4
//@ tune   TPB = 256, 512, 128
//@ launch layernorm_vec4<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{cols}} / 4, {{eps}}) when=({{cols}} % 4 == 0)
//@ launch layernorm_scalar<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{cols}}, {{eps}}) when=({{cols}} % 4 != 0)

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

// The moments of four values, by their own mean, join the others with one division.
__device__ __forceinline__ void add4(Moments &a, float4 v)
{
    const float mean = v.x + ((v.y - v.x) + (v.z - v.x) + (v.w - v.x)) * 0.25f;
    const float dx = v.x - mean, dy = v.y - mean, dz = v.z - mean, dw = v.w - mean;
    a = merge(a, {4.0f, mean, (dx * dx + dy * dy) + (dz * dz + dw * dw)});
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

__device__ __forceinline__ float4 normal4(float4 v, float4 w, float4 b, float mean, float scale)
{
    v.x = (v.x - mean) * scale * w.x + b.x;
    v.y = (v.y - mean) * scale * w.y + b.y;
    v.z = (v.z - mean) * scale * w.z + b.z;
    v.w = (v.w - mean) * scale * w.w + b.w;
    return v;
}

// quads: float4 values a row. Rows begin at multiples of 16 bytes, as cols is a multiple of four.
template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_vec4(const float4 *__restrict__ x, const float4 *__restrict__ w,
               const float4 *__restrict__ b, float4 *__restrict__ y, int quads, float eps)
{
    const float4 *in = x + (long long)blockIdx.x * quads;
    float4 *out = y + (long long)blockIdx.x * quads;

    Moments all = {0.0f, 0.0f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB)
        add4(all, in[i]);
    all = block_merge<TPB>(all);
    const float scale = 1.0f / sqrtf(all.m2 / all.n + eps);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB)
        out[i] = normal4(in[i], w[i], b[i], all.mean, scale);
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_scalar(const float *__restrict__ x, const float *__restrict__ w,
                 const float *__restrict__ b, float *__restrict__ y, int cols, float eps)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    Moments all = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < cols; i += TPB)
        add(all, in[i]);
    all = block_merge<TPB>(all);
    const float scale = 1.0f / sqrtf(all.m2 / cols + eps);
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = (in[i] - all.mean) * scale * w[i] + b[i];
}
