template <bool MAX> __device__ float block_reduce(float v)
{
    __shared__ float part[32];
    for (int o = 16; o; o >>= 1) {
        float w = __shfl_xor_sync(~0u, v, o);
        v = MAX ? fmaxf(v, w) : v + w;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int i = 1; i < blockDim.x / 32; i++)
        v = MAX ? fmaxf(v, part[i]) : v + part[i];
    return v;
}

__global__ void kernel(const float *x, float *y, int cols)
{
    const float *row = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    float top = -3.4e38f, sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        top = fmaxf(top, row[i]);
    top = block_reduce<true>(top);
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        sum += __expf(row[i] - top);
    sum = block_reduce<false>(sum);
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        out[i] = __expf(row[i] - top) / sum;
}
