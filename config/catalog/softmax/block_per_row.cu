// operator: softmax
// idea: Give each row to a whole block, so that neighbouring threads read neighbouring addresses, and combine the threads' partial results with a tree in shared memory.
// category: parallelism
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 128, 256, 512
//@ launch softmax_block<TPB> grid=({{rows}}) block=(TPB) args=({{x}}, {{y}}, {{cols}})

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_block(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    __shared__ float part[TPB];
    const int tid = threadIdx.x;
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = tid; i < cols; i += TPB)
        top = fmaxf(top, in[i]);
    part[tid] = top;
    __syncthreads();
    for (int width = TPB / 2; width > 0; width /= 2) {
        if (tid < width)
            part[tid] = fmaxf(part[tid], part[tid + width]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads(); // all have read part[0] before it is written again

    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = tid; i < cols; i += TPB)
        sum += expf(in[i] - top);
    part[tid] = sum;
    __syncthreads();
    for (int width = TPB / 2; width > 0; width /= 2) {
        if (tid < width)
            part[tid] += part[tid + width];
        __syncthreads();
    }
    const float scale = 1.0f / part[0];
#pragma unroll {{UNROLL}}
    for (int i = tid; i < cols; i += TPB)
        out[i] = expf(in[i] - top) * scale;
}
