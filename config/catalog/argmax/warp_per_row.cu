// operator: argmax
// idea: Where values lie side by side, give each result to one warp and combine values and places with shuffles.
// category: memory
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch argmax_warp<{{least}}, TPB> grid=(ceil_div({{outer}}, TPB / 32)) block=(TPB) args=({{x}}, {{y}}, {{outer}}, {{length}}) when=({{inner}} == 1)
//@ launch argmax_naive<{{least}}, TPB> grid=(ceil_div({{outer}} * {{inner}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{outer}} * {{inner}}, {{length}}, {{inner}}) when=({{inner}} != 1)

// The best value so far and where it stands. Of equals the first counts; NaN is better than any number.
struct Best {
    float v;
    long long place;
};

template <int LEAST>
__device__ __forceinline__ Best better(Best a, Best b)
{
    const bool nan_a = a.v != a.v, nan_b = b.v != b.v;
    const bool equal = a.v == b.v || (nan_a && nan_b);
    const bool first = equal ? a.place < b.place : nan_a || (!nan_b && (LEAST ? a.v < b.v : a.v > b.v));
    return first ? a : b;
}

// Loses against every value: it stands after all of them.
template <int LEAST>
__device__ __forceinline__ Best nothing()
{
    return {__int_as_float(LEAST ? 0x7f800000 : 0xff800000), 0x7fffffffffffffff};
}

template <int LEAST>
__device__ __forceinline__ Best warp_best(Best a)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        a = better<LEAST>(a, {__shfl_xor_sync(0xffffffffu, a.v, lane),
                              __shfl_xor_sync(0xffffffffu, a.place, lane)});
    return a;
}

template <int LEAST, int TPB>
__global__ void __launch_bounds__(TPB)
argmax_warp(const float *__restrict__ x, long long *__restrict__ y, long long rows, long long length)
{
    const long long row = (long long)blockIdx.x * (TPB / 32) + threadIdx.x / 32;
    if (row >= rows) return; //! guard
    const float *in = x + row * length;
    Best best = nothing<LEAST>();
#pragma unroll {{UNROLL}}
    for (long long i = threadIdx.x % 32; i < length; i += 32)
        best = better<LEAST>(best, {in[i], i});
    best = warp_best<LEAST>(best);
    if (threadIdx.x % 32 == 0)
        y[row] = best.place;
}

// x is [outer, length, inner]; neighbouring threads have neighbouring results.
template <int LEAST, int TPB>
__global__ void __launch_bounds__(TPB)
argmax_naive(const float *__restrict__ x, long long *__restrict__ y, long long results,
             long long length, long long inner)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= results) return; //! guard
    const float *in = x + at / inner * length * inner + at % inner;
    Best best = {in[0], 0};
    for (long long i = 1; i < length; ++i)
        best = better<LEAST>(best, {in[i * inner], i});
    y[at] = best.place;
}
