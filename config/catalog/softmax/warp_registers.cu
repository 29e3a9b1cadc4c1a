// operator: softmax
// idea: Let each warp hold its whole row in registers where it is short enough, so that the row is read once and no barrier is needed.
// category: registers
// after: warp_per_row
//@ tune   WARPS = 4, 8, 2
//@ tune   KEEP = 32, 16, 8
//@ launch softmax_warp_registers<WARPS, KEEP> grid=(ceil_div({{rows}}, WARPS)) block=(32, WARPS) args=({{x}}, {{y}}, {{rows}}, {{cols}}) when=({{cols}} <= 32 * KEEP)
//@ launch softmax_warp<WARPS> grid=(ceil_div({{rows}}, WARPS)) block=(32, WARPS) args=({{x}}, {{y}}, {{rows}}, {{cols}}) when=({{cols}} > 32 * KEEP)

__device__ __forceinline__ float warp_max(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

// Rows of at most 32 * KEEP floats.
template <int WARPS, int KEEP>
__global__ void __launch_bounds__(32 * WARPS)
softmax_warp_registers(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows) return; //! guard
    const float *in = x + row * cols;
    float *out = y + row * cols;
    float v[KEEP];

    float top = -3.402823466e+38f;
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * 32;
        v[k] = i < cols ? in[i] : -3.402823466e+38f;
    }
#pragma unroll
    for (int k = 0; k < KEEP; ++k)
        top = fmaxf(top, v[k]);
    top = warp_max(top);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * 32;
        v[k] = i < cols ? expf(v[k] - top) : 0.0f;
        sum += v[k];
    }
    const float scale = 1.0f / warp_sum(sum);
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * 32;
        if (i < cols)
            out[i] = v[k] * scale;
    }
}

template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
softmax_warp(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows) return;
    const float *in = x + row * cols;
    float *out = y + row * cols;

    float top = -3.402823466e+38f;
    for (int i = threadIdx.x; i < cols; i += 32)
        top = fmaxf(top, in[i]);
    top = warp_max(top);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32)
        sum += expf(in[i] - top);
    const float scale = 1.0f / warp_sum(sum);
    for (int i = threadIdx.x; i < cols; i += 32)
        out[i] = expf(in[i] - top) * scale;
}
