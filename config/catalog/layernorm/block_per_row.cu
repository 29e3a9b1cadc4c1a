// operator: layernorm
// idea: Give each row to one block whose threads read neighbouring elements, and combine their sums in shared memory by halving.
// category: parallelism
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch layernorm_block<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{cols}}, {{eps}})

template <int TPB>
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[TPB];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = TPB / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    v = part[0];
    __syncthreads();
    return v;
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_block(const float *__restrict__ x, const float *__restrict__ w,
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
