// operator: softmax
// idea: Write the results with streaming stores, so that they do not push the input out of the cache between the three reads of a row.
// category: memory
// after: vectorised
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch softmax_vec4<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}} / 4) when=({{cols}} % 4 == 0)
//@ launch softmax_scalar<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}}) when=({{cols}} % 4 != 0)

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

// quads: float4 values a row. Rows begin at multiples of 16 bytes, as cols is a multiple of four.
template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_vec4(const float *__restrict__ x, float *__restrict__ y, int quads)
{
    const float4 *in = reinterpret_cast<const float4 *>(x) + (long long)blockIdx.x * quads;
    float4 *out = reinterpret_cast<float4 *>(y) + (long long)blockIdx.x * quads;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB) {
        const float4 v = in[i];
        top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    top = block_max<TPB>(top);
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB) {
        const float4 v = in[i];
        sum += (expf(v.x - top) + expf(v.y - top)) + (expf(v.z - top) + expf(v.w - top));
    }
    const float scale = 1.0f / block_sum<TPB>(sum);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < quads; i += TPB) {
        float4 v = in[i];
        v.x = expf(v.x - top) * scale;
        v.y = expf(v.y - top) * scale;
        v.z = expf(v.z - top) * scale;
        v.w = expf(v.w - top) * scale;
        __stcs(out + i, v);
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
