// operator: softmax
// idea: Split each row over several blocks that leave partial maxima and sums in a temporary, and let a second launch combine them, so that few long rows still fill the device.
// category: parallelism
// after: online
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ tune   SPLITS = 4, 8, 2
//@ where  TPB * SPLITS <= 2048
//@ temp   partial f32 [{{rows}} * SPLITS * 2]
//@ launch softmax_partial<TPB, SPLITS> grid=({{rows}} * SPLITS) block=(TPB) args=({{x}}, partial, {{cols}})
//@ launch softmax_finish<TPB, SPLITS> grid=({{rows}} * SPLITS) block=(TPB) args=({{x}}, partial, {{y}}, {{cols}})

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

// The columns [first, last) of this block: part blockIdx.x % SPLITS of row blockIdx.x / SPLITS.
template <int SPLITS>
__device__ __forceinline__ void span(int cols, int &first, int &last)
{
    const long long chunk = ((long long)cols + SPLITS - 1) / SPLITS;
    const long long part = blockIdx.x % SPLITS;
    first = (int)min(part * chunk, (long long)cols);
    last = (int)min((part + 1) * chunk, (long long)cols);
}

template <int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
softmax_partial(const float *__restrict__ x, float *__restrict__ partial, int cols)
{
    const float *in = x + (long long)(blockIdx.x / SPLITS) * cols;
    int first, last;
    span<SPLITS>(cols, first, last);

    Partial p = {-3.402823466e+38f, 0.0f};
#pragma unroll {{UNROLL}}
    for (int i = first + threadIdx.x; i < last; i += TPB)
        add(p, in[i]);
    p = block_merge<TPB>(p);
    if (threadIdx.x == 0) {
        partial[2ll * blockIdx.x] = p.top;
        partial[2ll * blockIdx.x + 1] = p.sum;
    }
}

template <int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
softmax_finish(const float *__restrict__ x, const float *__restrict__ partial,
               float *__restrict__ y, int cols)
{
    const long long row = blockIdx.x / SPLITS;
    const float *in = x + row * cols;
    float *out = y + row * cols;
    const float *parts = partial + row * SPLITS * 2;
    int first, last;
    span<SPLITS>(cols, first, last);

    Partial p = {-3.402823466e+38f, 0.0f};
#pragma unroll
    for (int k = 0; k < SPLITS; ++k)
        p = merge(p, {parts[2 * k], parts[2 * k + 1]});
    const float scale = 1.0f / p.sum;
#pragma unroll {{UNROLL}}
    for (int i = first + threadIdx.x; i < last; i += TPB)
        out[i] = expf(in[i] - p.top) * scale;
}
