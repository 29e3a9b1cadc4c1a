//@ tune   TPB = 256, 128, 512
//@ launch softmax_rows<TPB> grid=(rows) block=(TPB) args=(x, y, cols)

template <int TPB>
__global__ void softmax_rows(const float *x, float *y, int cols)
{
    __shared__ float s[TPB];
    const float *in = x + (size_t)blockIdx.x * cols;
    float m = -INFINITY, t = 0.0f;
    for (int i = threadIdx.x; i < cols; i += TPB)
        m = fmaxf(m, in[i]);
    s[threadIdx.x] = m;
    __syncthreads();
    for (int h = TPB / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h)
            s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + h]);
        __syncthreads();
    }
    m = s[0];
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += TPB)
        t += expf(in[i] - m);
    s[threadIdx.x] = t;
    __syncthreads();
    for (int h = TPB / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h)
            s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < cols; i += TPB)
        y[(size_t)blockIdx.x * cols + i] = expf(in[i] - m) / s[0];
}
