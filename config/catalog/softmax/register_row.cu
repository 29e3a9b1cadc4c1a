// operator: softmax
// idea: Hold the whole row in the registers of its block where it fits, so that memory is read exactly once and every exponential is computed once.
// category: registers
// after: block_shuffle
//@ tune   TPB = 256, 128, 512, 1024
//@ tune   KEEP = 4, 8, 16
//@ launch softmax_registers<TPB, KEEP> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}}) when=({{cols}} <= TPB * KEEP)
//@ launch softmax_scalar<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}}) when=({{cols}} > TPB * KEEP)

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

template <int TPB>
__device__ __forceinline__ float block_max(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_max(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_max(lane < TPB / 32 ? part[lane] : -3.402823466e+38f);
}

template <int TPB>
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_sum(v);
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_sum(lane < TPB / 32 ? part[lane] : 0.0f);
}

// Rows of at most TPB * KEEP floats.
template <int TPB, int KEEP>
__global__ void __launch_bounds__(TPB)
softmax_registers(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    float v[KEEP];

    float top = -3.402823466e+38f;
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * TPB;
        v[k] = i < cols ? in[i] : -3.402823466e+38f;
    }
#pragma unroll
    for (int k = 0; k < KEEP; ++k)
        top = fmaxf(top, v[k]);
    top = block_max<TPB>(top);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * TPB;
        v[k] = i < cols ? expf(v[k] - top) : 0.0f;
        sum += v[k];
    }
    const float scale = 1.0f / block_sum<TPB>(sum);
#pragma unroll
    for (int k = 0; k < KEEP; ++k) {
        const int i = threadIdx.x + k * TPB;
        if (i < cols)
            out[i] = v[k] * scale;
    }
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_scalar(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    float top = -3.402823466e+38f;
    for (int i = threadIdx.x; i < cols; i += TPB)
        top = fmaxf(top, in[i]);
    top = block_max<TPB>(top);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += TPB)
        sum += expf(in[i] - top);
    const float scale = 1.0f / block_sum<TPB>(sum);
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = expf(in[i] - top) * scale;
}
