// operator: reduction
// idea: Split each row over several blocks that leave partial results in a temporary, and let a second launch combine them, so that few long rows still fill the device.
// category: parallelism
// after: vectorised
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ tune   SPLITS = 64, 256, 16
//@ temp   partial f32 [{{outer}} * SPLITS]
//@ launch reduce_part<{{op}}, TPB, SPLITS> grid=({{outer}} * SPLITS) block=(TPB) args=({{x}}, partial, {{length}}) when=({{inner}} == 1)
//@ launch reduce_parts<{{op}}, TPB, SPLITS> grid=(ceil_div({{outer}}, TPB / 32)) block=(TPB) args=(partial, {{y}}, {{outer}}, {{length}}) when=({{inner}} == 1)
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

// Part blockIdx.x % SPLITS of row blockIdx.x / SPLITS, four floats at a time where rows begin at
// multiples of 16 bytes.
template <int OP, int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
reduce_part(const float *__restrict__ x, float *__restrict__ partial, long long length)
{
    const long long row = blockIdx.x / SPLITS, first = blockIdx.x % SPLITS * TPB + threadIdx.x;
    const float *in = x + row * length;
    const long long quads = length % 4 == 0 ? length / 4 : 0;

    float all = start<OP>();
#pragma unroll {{UNROLL}}
    for (long long i = first; i < quads; i += TPB * SPLITS) {
        const float4 v = reinterpret_cast<const float4 *>(in)[i];
        all = combine<OP>(all, combine<OP>(combine<OP>(v.x, v.y), combine<OP>(v.z, v.w)));
    }
    for (long long i = quads * 4 + first; i < length; i += TPB * SPLITS)
        all = combine<OP>(all, in[i]);
    all = block_combine<OP, TPB>(all);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = all;
}

// A warp a row.
template <int OP, int TPB, int SPLITS>
__global__ void __launch_bounds__(TPB)
reduce_parts(const float *__restrict__ partial, float *__restrict__ y, long long rows, long long length)
{
    const long long row = (long long)blockIdx.x * (TPB / 32) + threadIdx.x / 32;
    if (row >= rows) return; //! guard
    float all = start<OP>();
    for (int k = threadIdx.x % 32; k < SPLITS; k += 32)
        all = combine<OP>(all, partial[row * SPLITS + k]);
    all = warp_combine<OP>(all);
    if (threadIdx.x % 32 == 0)
        y[row] = finish<OP>(all, length);
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
