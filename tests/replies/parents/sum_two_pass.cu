//@ temp   sums f32 [4 * sm_count]
//@ launch part grid=(4 * sm_count) block=(256) args=(x, sums, n)
//@ launch whole grid=(1) block=(256) args=(sums, out, 4 * sm_count)

__global__ void part(const float *x, float *sums, long long n)
{
    __shared__ float s[256];
    float v = 0;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL)
        v += x[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = 128; h; h >>= 1) {
        if (threadIdx.x < h)
            s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = s[0];
}

__global__ void whole(const float *sums, float *out, int count)
{
    __shared__ float s[256];
    float v = 0;
    for (int i = threadIdx.x; i < count; i += 256)
        v += sums[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = 128; h; h >>= 1) {
        if (threadIdx.x < h)
            s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *out = s[0];
}
