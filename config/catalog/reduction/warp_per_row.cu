// operator: reduction
// idea: Where values lie side by side, give each result to one warp, which reads neighbouring values and combines its lanes with shuffles.
// category: memory
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch reduce_warp<{{op}}, TPB> grid=(ceil_div({{outer}}, TPB / 32)) block=(TPB) args=({{x}}, {{y}}, {{outer}}, {{length}}) when=({{inner}} == 1)
//@ launch reduce_naive<{{op}}, TPB> grid=(ceil_div({{outer}} * {{inner}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{outer}} * {{inner}}, {{length}}, {{inner}}) when=({{inner}} != 1)

// OP: 0 sum, 1 mean, 2 largest, 3 smallest; NaN goes through.
template <int OP>
__device__ __forceinline__ float start()
{
    return OP < 2 ? 0.0f : __int_as_float(OP == 2 ? 0xff800000 : 0x7f800000);
}

template <int OP>
__device__ __forceinline__ float combine(float a, float b)
{
    if (OP < 2)
        return a + b;
    return (OP == 2 ? a > b : a < b) || a != a ? a : b;
}

template <int OP>
__device__ __forceinline__ float finish(float v, long long length)
{
    return OP == 1 ? v / length : v;
}

template <int OP>
__device__ __forceinline__ float warp_combine(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v = combine<OP>(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

template <int OP, int TPB>
__global__ void __launch_bounds__(TPB)
reduce_warp(const float *__restrict__ x, float *__restrict__ y, long long rows, long long length)
{
    const long long row = (long long)blockIdx.x * (TPB / 32) + threadIdx.x / 32;
    if (row >= rows) return; //! guard
    const float *in = x + row * length;

    float all = start<OP>();
#pragma unroll {{UNROLL}}
    for (long long i = threadIdx.x % 32; i < length; i += 32)
        all = combine<OP>(all, in[i]);
    all = warp_combine<OP>(all);
    if (threadIdx.x % 32 == 0)
        y[row] = finish<OP>(all, length);
}

// x is [outer, length, inner]; neighbouring threads have neighbouring results. Sums are taken in runs of
// CHUNK values, so that rounding does not grow with the length.
template <int OP, int TPB>
__global__ void __launch_bounds__(TPB)
reduce_naive(const float *__restrict__ x, float *__restrict__ y, long long results, long long length,
             long long inner)
{
    constexpr int CHUNK = 512;
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= results) return; //! guard
    const float *in = x + at / inner * length * inner + at % inner;

    float all = start<OP>();
    for (long long from = 0; from < length; from += CHUNK) {
        const long long to = min(from + CHUNK, length);
        float part = start<OP>();
        for (long long i = from; i < to; ++i)
            part = combine<OP>(part, in[i * inner]);
        all = combine<OP>(all, part);
    }
    y[at] = finish<OP>(all, length);
}
