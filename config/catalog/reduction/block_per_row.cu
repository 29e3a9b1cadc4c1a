// operator: reduction
// idea: Give each result, or 32 neighbouring ones where values lie apart, to one block, whose warps share the values and meet in shared memory.
// category: parallelism
// after: warp_per_row
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch reduce_block<{{op}}, TPB> grid=({{outer}}) block=(TPB) args=({{x}}, {{y}}, {{length}}) when=({{inner}} == 1)
//@ launch reduce_columns<{{op}}, TPB> grid=({{outer}} * ceil_div({{inner}}, 32)) block=(TPB) args=({{x}}, {{y}}, {{length}}, {{inner}}) when=({{inner}} != 1)

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
__device__ __forceinline__ float block_combine(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_combine<OP>(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_combine<OP>(lane < TPB / 32 ? part[lane] : start<OP>());
}

template <int OP, int TPB>
__global__ void __launch_bounds__(TPB)
reduce_block(const float *__restrict__ x, float *__restrict__ y, long long length)
{
    const float *in = x + blockIdx.x * length;

    float all = start<OP>();
#pragma unroll {{UNROLL}}
    for (long long i = threadIdx.x; i < length; i += TPB)
        all = combine<OP>(all, in[i]);
    all = block_combine<OP, TPB>(all);
    if (threadIdx.x == 0)
        y[blockIdx.x] = finish<OP>(all, length);
}

// x is [outer, length, inner]: a block has 32 neighbouring results, and each of its warps every
// TPB / 32-th value of them.
template <int OP, int TPB>
__global__ void __launch_bounds__(TPB)
reduce_columns(const float *__restrict__ x, float *__restrict__ y, long long length, long long inner)
{
    __shared__ float part[TPB / 32][32];
    const long long groups = (inner + 31) / 32;
    const long long column = blockIdx.x % groups * 32 + threadIdx.x % 32;
    const float *in = x + blockIdx.x / groups * length * inner + column;

    float all = start<OP>();
    if (column < inner)
        for (long long i = threadIdx.x / 32; i < length; i += TPB / 32)
            all = combine<OP>(all, in[i * inner]);
    part[threadIdx.x / 32][threadIdx.x % 32] = all;
    __syncthreads();
    if (threadIdx.x >= 32 || column >= inner)
        return;
#pragma unroll
    for (int w = 1; w < TPB / 32; ++w)
        all = combine<OP>(all, part[w][threadIdx.x]);
    y[blockIdx.x / groups * inner + column] = finish<OP>(all, length);
}
