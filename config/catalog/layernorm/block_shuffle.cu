// operator: layernorm
// idea: Combine the threads of a block with warp shuffles first and exchange only one value a warp through shared memory.
// category: synchronisation
// after: block_per_row
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch layernorm_shuffle<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{cols}}, {{eps}})

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

// Barriers on both sides: it is called twice.
template <int TPB>
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[TPB / 32];
    const int lane = threadIdx.x % 32;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_sum(lane < TPB / 32 ? part[lane] : 0.0f);
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_shuffle(const float *__restrict__ x, const float *__restrict__ w,
                  const float *__restrict__ b, float *__restrict__ y, int cols, float eps)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    const float first = in[0]; // a common offset costs no digits of the sum
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        sum += in[i] - first;
    const float mean = first + block_sum<TPB>(sum) / cols;
    float squares = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        squares += (in[i] - mean) * (in[i] - mean);
    const float scale = 1.0f / sqrtf(block_sum<TPB>(squares) / cols + eps);
#pragma unroll {{UNROLL}}
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = (in[i] - mean) * scale * w[i] + b[i];
}
