// operator: softmax
// idea: Copy the row into shared memory on its only read where it fits, and compute maximum, sum and results from there.
// category: memory
// after: online
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch softmax_shared<TPB> grid=({{rows}}) block=(TPB) shared={{cols}}*4 args=({{x}}, {{y}}, {{cols}}) when=({{cols}} <= 12000)
//@ launch softmax_scalar<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}}) when=({{cols}} > 12000)

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

// Each thread reads back only what it wrote itself, so that the row needs no barrier of its own.
template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_shared(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    extern __shared__ float row[];
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB) {
        const float v = in[i];
        row[i] = v;
        top = fmaxf(top, v);
    }
    top = block_max<TPB>(top);
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB) {
        const float e = expf(row[i] - top);
        row[i] = e;
        sum += e;
    }
    const float scale = 1.0f / block_sum<TPB>(sum);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = row[i] * scale;
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
